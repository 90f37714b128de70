"""The report of an experiment: one HTML file with the table and all figures, and nothing loaded from elsewhere."""

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from string import Template

from onebit.experiments.comparison import Outcome
from onebit.experiments.reproduce import boundaries, curves, figure_1, figure_3
from onebit.experiments.reproduce.contestants import DATASETS, PAPER_ROUNDS, PAPER_RUNS
from onebit.experiments.reproduce.summary import SummaryRow
from onebit.files import replace_file
from onebit.reporting import pages
from onebit.reporting.names import in_page
from onebit.reporting.style import Drawing, FigureFile
from onebit.reporting.tables import grouped, with_error

TITLE = "Bandit multiclass linear classification: the experiments, reproduced"
CITATION = (
    "A. Beygelzimer, D. Pál, B. Szörényi, D. Thiruvenkatachari, C.-Y. Wei, C. Zhang (2019). Bandit multiclass linear "
    "classification: efficient algorithms for the separable case. International Conference on Machine Learning (ICML)."
)
_COLUMNS = ("learner", "settings", "mistakes", "least to most", "published", "ours / published", "remark")
# A remark begins with one of these words, which is also the CSS class of its cell.
_KINDS = ("agrees", "explained", "unexplained")


def drawings(outcomes: list[Outcome], seed: int) -> list[Drawing]:
    """Return what to draw: the weak set at a glance, then all figures that the outcomes allow, in the paper's order."""
    listed = []
    if mine := [outcome for outcome in outcomes if outcome.dataset == "weak"]:
        about = curves.glance_title("weak"), curves.glance_caption(mine, "weak")
        listed.append(Drawing(curves.GLANCE, *about, partial(curves.draw_glance, mine, "weak")))
    listed.append(Drawing("figure_1", figure_1.TITLE, figure_1.CAPTION, figure_1.draw))
    listed.append(Drawing("figure_3", figure_3.TITLE, figure_3.CAPTION, partial(figure_3.draw, seed)))
    for dataset in curves.NUMBERS:
        mine = [outcome for outcome in outcomes if outcome.dataset == dataset]
        for is_log in (False, True) if mine else ():
            about = curves.title(dataset, is_log), curves.caption(mine, dataset, is_log)
            name = curves.name(dataset, is_log)
            listed.append(Drawing(name, *about, partial(curves.draw, mine, dataset, is_log)))
    for name, key in boundaries.FIGURES.items():
        mine = [outcome for outcome in outcomes if outcome.entry.key == key]
        if mine:
            about = boundaries.title(name, mine[0]), boundaries.caption(mine)
            listed.append(Drawing(name, *about, partial(boundaries.draw, mine, seed)))
    return listed


def write_report(
    path: Path, outcomes: list[Outcome], rows: list[SummaryRow], figures: list[FigureFile], details: Mapping[str, str]
) -> None:
    """Write the report: what was run, the table beside the published numbers, every figure, how to run it again.

    Parameters
    ----------
    path : Path
        Where to.
    outcomes : list of Outcome
        What was played.
    rows : list of SummaryRow
        The table.
    figures : list of FigureFile
        From `draw_files`.
    details : mapping
        Lines for "What was run", by name; they come after, or replace, the rounds, runs and version that are always
        there. "Command" is what to type to get the same results.
    """
    titles = {outcome.entry.key: outcome.entry.shown for outcome in outcomes}
    tables = [
        _table(heading, [row for row in rows if row.dataset == dataset], titles)
        for dataset, heading in DATASETS.items()
    ]
    body = _BODY.substitute(
        intro=pages.prose(_intro(outcomes)),
        facts=_facts(outcomes, details),
        # Only where there is something to compare with.
        verdicts=_VERDICTS if any(row.published is not None for row in rows) else "",
        tables="\n".join(tables),
        figures="\n".join(pages.figure(figure) for figure in figures),
        command=in_page(details.get("Command", _command(outcomes))),
        citation=in_page(CITATION),
    )
    replace_file(path, pages.page(TITLE, body).encode())


def _intro(outcomes: list[Outcome]) -> str:
    rounds = int(outcomes[0].rounds[-1])
    # Mistakes of a shorter game are not a share of a longer one's: curves flatten.
    if rounds == PAPER_ROUNDS:
        return "As many rounds as in the paper: the numbers can be compared."
    return (
        f"This run has {grouped(rounds)} rounds where the paper has {grouped(PAPER_ROUNDS)}: "
        "its numbers cannot be compared with the published ones, which are left out of the table."
    )


def _facts(outcomes: list[Outcome], details: Mapping[str, str]) -> str:
    n_runs = len(outcomes[0].mistakes)
    listed = {
        "Rounds": grouped(outcomes[0].rounds[-1]),
        "Runs": f"{n_runs} of each learner on each data set (the paper: {PAPER_RUNS})",
        "Version": f"onebit {version('onebit')}",
        **details,
    }
    listed.pop("Command", None)
    return pages.facts(listed)


def _command(outcomes: list[Outcome]) -> str:
    return f"onebit reproduce --rounds {outcomes[0].rounds[-1]} --runs {len(outcomes[0].mistakes)}"


def _table(heading: str, rows: list[SummaryRow], titles: dict[str, str]) -> str:
    if not rows:
        return ""
    body = pages.table(_COLUMNS, [_cells(row, titles.get(row.learner, row.learner)) for row in rows])
    return f"<h3>{in_page(heading.capitalize())} set</h3>\n{body}"


def _cells(row: SummaryRow, title: str) -> list[tuple[str, str]]:
    published = pages.NOTHING if row.published is None else grouped(row.published)
    ratio = pages.NOTHING if not row.published else f"{row.mean / row.published:.2f}"
    kind = next((kind for kind in _KINDS if row.remark.startswith(kind)), "plain")
    return [
        ("name", f"{in_page(title)} <code>{in_page(row.learner)}</code>"),
        ("", in_page(row.parameters) or pages.NOTHING),
        ("number", with_error(row.mean, row.standard_error)),
        ("number", f"{grouped(row.minimum)} to {grouped(row.maximum)}"),
        ("number", published),
        ("number", ratio),
        (f"remark {kind}", pages.prose(row.remark)),
    ]


_VERDICTS = """ A row
<span class="agrees">agrees</span> if its mean is within 5&nbsp;% of the published one or, where no cause of a
difference is known, within three standard errors (taking the authors' runs to spread as ours do). Every other
difference is <span class="explained">explained</span> or called <span class="unexplained">unexplained</span>."""
_BODY = Template("""\
<p>Two streams of three classes, one strongly and one weakly separable, played by the paper's algorithms. A learner
names a label each round and hears only whether it was right. $intro</p>
<h2>What was run</h2>
<dl>
$facts
</dl>
<h2>Mistakes</h2>
<p>Mean number of mistakes after the last round ± its standard error (a single run has none), and the least and the most
of any run.$verdicts</p>
$tables
<h2>Figures</h2>
$figures
<h2>How to reproduce it</h2>
<pre><code>$command</code></pre>
<p>The same seed, rounds, runs and version give the same numbers.</p>
<h2>Sources</h2>
<p>$citation</p>
<p>The published values are the end points of the curves in the paper's Figures 4 and 5, read off its vector graphics;
each is the mean over the authors' 20 runs. The figures keep the paper's numbers.</p>
""")
