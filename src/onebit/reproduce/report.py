"""The report of an experiment: one HTML file with the table and all figures, and nothing loaded from elsewhere."""

import base64
from collections.abc import Mapping
from html import escape
from importlib.metadata import version
from pathlib import Path
from string import Template

from onebit.reproduce import boundaries, curves, figure_1, figure_3, style
from onebit.reproduce.contestants import DATASETS, PAPER_ROUNDS, PAPER_RUNS, Outcome
from onebit.reproduce.style import FigureFile
from onebit.reproduce.summary import SummaryRow, grouped, replace_file

TITLE = "Bandit multiclass linear classification: the experiments, reproduced"
CITATION = (
    "A. Beygelzimer, D. Pál, B. Szörényi, D. Thiruvenkatachari, C.-Y. Wei, C. Zhang (2019). Bandit multiclass linear "
    "classification: efficient algorithms for the separable case. International Conference on Machine Learning (ICML)."
)
_COLUMNS = ("learner", "settings", "mistakes", "least to most", "published", "ours / published", "remark")
_KINDS = ("agrees", "explained", "unexplained")


def draw_all(outcomes: list[Outcome], folder: Path, seed: int) -> list[FigureFile]:
    """Draw every figure that the outcomes allow, save each as PNG and SVG, and return them in the paper's order."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [("figure_1", figure_1.TITLE, figure_1.CAPTION, figure_1.draw())]
    drawn.append(("figure_3", figure_3.TITLE, figure_3.CAPTION, figure_3.draw(seed)))
    played = {outcome.dataset for outcome in outcomes}
    for dataset, number in curves.NUMBERS.items():
        for is_log in (False, True) if dataset in played else ():
            name = f"figure_{number}_loglog" if is_log else f"figure_{number}"
            about = curves.title(dataset, is_log), curves.caption(outcomes, dataset, is_log)
            drawn.append((name, *about, curves.draw(outcomes, dataset, is_log)))
    for name, key in boundaries.FIGURES.items():
        mine = [outcome for outcome in outcomes if outcome.contestant.key == key]
        if mine:
            about = boundaries.title(name, mine[0]), boundaries.caption(mine)
            drawn.append((name, *about, boundaries.draw(mine, seed)))
    return [
        FigureFile(name, title, caption, *style.save(figure, folder, name)) for name, title, caption, figure in drawn
    ]


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
        From `draw_all`.
    details : mapping
        Lines for "What was run", by name; they come after, or replace, the rounds, runs and version that are always
        there. "Command" is what to type to get the same results.
    """
    titles = {outcome.contestant.key: outcome.contestant.title for outcome in outcomes}
    tables = [
        _table(heading, [row for row in rows if row.dataset == dataset], titles)
        for dataset, heading in DATASETS.items()
    ]
    page = _PAGE.substitute(
        title=escape(TITLE),
        intro=_intro(outcomes),
        facts=_facts(outcomes, details),
        tables="\n".join(tables),
        figures="\n".join(_figure(figure) for figure in figures),
        command=escape(details.get("Command", _command(outcomes))),
        citation=escape(CITATION),
    )
    replace_file(path, page.encode())


def _intro(outcomes: list[Outcome]) -> str:
    rounds = int(outcomes[0].rounds[-1])
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
    return "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in listed.items())


def _command(outcomes: list[Outcome]) -> str:
    return f"onebit reproduce --rounds {outcomes[0].rounds[-1]} --runs {len(outcomes[0].mistakes)}"


def _table(heading: str, rows: list[SummaryRow], titles: dict[str, str]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    body = "\n".join(_table_row(row, titles.get(row.learner, row.learner)) for row in rows)
    caption = escape(heading.capitalize())
    return f"<h3>{caption} set</h3>\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _table_row(row: SummaryRow, title: str) -> str:
    published = "–" if row.published is None else grouped(row.published)
    ratio = "–" if not row.published else f"{row.mean / row.published:.2f}"
    kind = next((kind for kind in _KINDS if row.remark.startswith(kind)), "plain")
    cells = (
        ("name", f"{escape(title)} <code>{escape(row.learner)}</code>"),
        ("", escape(row.parameters) or "–"),
        ("number", f"{grouped(row.mean)} ± {grouped(row.standard_error)}"),
        ("number", f"{grouped(row.minimum)} to {grouped(row.maximum)}"),
        ("number", published),
        ("number", ratio),
        (f"remark {kind}", escape(row.remark)),
    )
    pairs = zip(_COLUMNS, cells, strict=True)
    return (
        "<tr>" + "".join(f'<td class="{css}" data-name="{name}">{text}</td>' for name, (css, text) in pairs) + "</tr>"
    )


def _figure(figure: FigureFile) -> str:
    image = base64.b64encode(figure.svg.read_bytes()).decode("ascii")
    return (
        f'<figure id="{escape(figure.name)}">\n<h3>{escape(figure.title)}</h3>\n'
        f'<div class="card"><img alt="{escape(figure.title)}" src="data:image/svg+xml;base64,{image}"></div>\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>"
    )


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1d2125; --soft: #5b646d; --page: #fff; --line: #d9dee3; --band: #f4f6f8;
  --good: #00704f; --known: #00598c; --open: #a94400; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --soft: #a3acb5; --page: #15181b; --line: #363c42; --band: #1e2226;
    --good: #4fd0a8; --known: #73bdf0; --open: #ff9d5c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .6rem; }
h2 { margin: 2.6rem 0 .6rem; padding-top: .8rem; border-top: 1px solid var(--line); }
h3 { margin: 1.6rem 0 .5rem; font-size: 1.05rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; }
dt { color: var(--soft); }
dd { margin: 0; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .45rem .55rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
tbody tr:nth-child(even) { background: var(--band); }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.name code { display: block; color: var(--soft); font-size: .78rem; }
.name { min-width: 12rem; }
.remark { min-width: 17rem; }
.agrees { color: var(--good); } .explained { color: var(--known); } .unexplained { color: var(--open); }
figure { margin: 0 0 2.4rem; max-width: 58rem; }
p, figcaption { max-width: 46rem; }
.card { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: .6rem; text-align: center; }
.card img { max-width: 100%; height: auto; }
figcaption { margin-top: .5rem; }
pre { background: var(--band); padding: .8rem 1rem; border-radius: 8px; overflow-x: auto; }
@media (max-width: 48rem) {
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td { display: grid; grid-template-columns: 8.5rem 1fr; gap: .6rem; border: 0; padding: .12rem .5rem; }
  td::before { content: attr(data-name); color: var(--soft); }
  td.name { display: block; font-weight: 600; }
  td.name::before { content: none; }
  .number { white-space: normal; }
  .name, .remark { min-width: 0; }
}
</style>
</head>
<body>
<h1>$title</h1>
<p>Two streams of three classes, one strongly and one weakly separable, played by the paper's algorithms. A learner
names a label each round and hears only whether it was right. $intro</p>
<h2>What was run</h2>
<dl>
$facts
</dl>
<h2>Mistakes, beside the published numbers</h2>
<p>Mean number of mistakes after the last round ± its standard error, and the least and the most of any run. A row
<span class="agrees">agrees</span> if its mean is within 5&nbsp;% of the published one or, where no cause of a
difference is known, within three standard errors (taking the authors' runs to spread as ours do). Every other
difference is <span class="explained">explained</span> or called <span class="unexplained">unexplained</span>.</p>
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
</body>
</html>
""")
