"""The report of the paper's experiments: the table beside the published numbers, and all figures."""

from collections.abc import Mapping
from pathlib import Path

from onebit.experiments.comparison import Outcome
from onebit.experiments.reproduce.paper import DATASETS, PAPER_ROUNDS, PAPER_RUNS, SummaryRow
from onebit.reporting.pages import Block, FigureFile, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, what_means_are, with_error

CITATION = (
    "A. Beygelzimer, D. Pál, B. Szörényi, D. Thiruvenkatachari, C.-Y. Wei, C. Zhang (2019). Bandit multiclass linear "
    "classification: efficient algorithms for the separable case. International Conference on Machine Learning (ICML)."
)
# A remark begins with one of these words.
_KINDS = {"agrees": "good", "explained": "known", "unexplained": "bad"}
_INTRO = (
    "Two streams of three classes, one strongly and one weakly separable, played by the paper's algorithms. A learner "
    "names a label each round and hears only whether it was right."
)
_MISTAKES = (
    "Mean number of mistakes after the last round ± its standard error (a single run has none), and the least and the "
    "most of any run."
)
_VERDICTS = (
    "A row agrees if its mean is within 5 % of the published one or, where no cause of a difference is known, within "
    "three standard errors (taking the authors' runs to spread as ours do). Every other difference is explained or "
    "called unexplained."
)
_SOURCES = (
    "The published values are the end points of the curves in the paper's Figures 4 and 5, read off its vector "
    "graphics; each is the mean over the authors' 20 runs. The figures keep the paper's numbers."
)


def summary_table(rows: list[SummaryRow], n_runs: int) -> Table:
    """Return our mistakes beside the published ones, for the screen."""
    lines = [
        [
            *(row.dataset, row.learner, with_error(row.mean, row.standard_error)),
            *(grouped(row.minimum), grouped(row.maximum), "" if row.published is None else grouped(row.published)),
        ]
        for row in rows
    ]
    columns = ("data", "learner", "mean", "min", "max", "paper")
    return Table(columns, lines, what_means_are(n_runs), styles=("name", "name", *["number"] * 4))


def write_report(
    path: Path, outcomes: list[Outcome], rows: list[SummaryRow], figures: list[FigureFile], details: Mapping[str, str]
) -> None:
    """Write the page: what was run, the table beside the published numbers, every figure, how to run it again.

    The details come after the rounds and runs that are always there; "Command" is what to type to get the same results.
    """
    rounds, n_runs = int(outcomes[0].rounds[-1]), len(outcomes[0].mistakes)
    facts = {
        "Rounds": grouped(rounds),
        "Runs": f"{n_runs} of each learner on each data set (the paper: {PAPER_RUNS})",
        "Command": f"onebit reproduce --rounds {rounds} --runs {n_runs}",
    }
    run, listed, _, command = what_was_run({**facts, **details})
    titles = {outcome.entry.key: outcome.entry.shown for outcome in outcomes}
    tables = [_table(name, rows, titles) for name in DATASETS if any(row.dataset == name for row in rows)]
    has_published = any(row.published is not None for row in rows)
    blocks: list[Block] = [
        *(f"{_INTRO} {_about_size(rounds)}", run, listed),
        *section("Mistakes", f"{_MISTAKES} {_VERDICTS}" if has_published else _MISTAKES, *tables),
        *section("Figures", *figures),
        *section("How to reproduce it", command, "The same seed, rounds, runs and version give the same numbers."),
        *section("Sources", CITATION, _SOURCES),
    ]
    write_page(path, "Bandit multiclass linear classification: the experiments, reproduced", blocks)


def _about_size(rounds: int) -> str:
    # Mistakes of a shorter game are not a share of a longer one's: curves flatten.
    if rounds == PAPER_ROUNDS:
        return "As many rounds as in the paper: the numbers can be compared."
    return (
        f"This run has {grouped(rounds)} rounds where the paper has {grouped(PAPER_ROUNDS)}: "
        "its numbers cannot be compared with the published ones, which are left out of the table."
    )


def _table(dataset: str, rows: list[SummaryRow], titles: dict[str, str]) -> Table:
    lines: list[list[str | Cell]] = [
        [
            Cell(titles.get(row.learner, row.learner), small=row.learner),
            row.parameters,
            with_error(row.mean, row.standard_error),
            f"{grouped(row.minimum)} to {grouped(row.maximum)}",
            "" if row.published is None else grouped(row.published),
            fixed(row.mean / row.published if row.published else None, ".2f"),
            Cell(row.remark, next((_KINDS[word] for word in _KINDS if row.remark.startswith(word)), "")),
        ]
        for row in rows
        if row.dataset == dataset
    ]
    columns = ("learner", "settings", "mistakes", "least to most", "published", "ours / published", "remark")
    styles = ("name", "", *["number"] * 4, "remark")
    return Table(columns, lines, f"{DATASETS[dataset].capitalize()} set", (), styles)
