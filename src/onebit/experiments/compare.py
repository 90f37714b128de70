"""The report of a comparison: CSV files, tables for the screen, and a page."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from onebit.experiments.comparison import Outcome
from onebit.experiments.statistics import LEVEL, LOSS, TIE, TOO_FEW_RUNS, WIN, ComparisonRow, Tally, signs_to_decide
from onebit.reporting.pages import Block, FigureFile, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, number, what_means_are, with_error, write_csv

_COMPARISON_COLUMNS = (
    *("dataset", "rounds", "runs", "learner", "mean", "standard_error", "ratio_to_full_information"),
    *("p", "p_adjusted", "verdict", "remark"),
)
_INTRO = (
    "Each round a learner is shown a row, names its label and learns only whether it was right; a learner that is "
    "told the label marks how far one could get with full information. All play the same rows in the same order."
)
_COLUMNS = ("learner", "mistakes", "rate", "/ told", "p", "verdict", "µs/round", "remark")
_STYLES = ("name", *["number"] * 6, "")
_KINDS = {WIN: "good", TIE: "dim", LOSS: "bad", TOO_FEW_RUNS: "dim"}


def write_tables(folder: Path, rows: Sequence[ComparisonRow], tallies: Sequence[Tally], first_seed: int) -> None:
    """Write every table as CSV; all but timing.csv have the same bytes whenever the same is played."""
    lines = [
        (
            *(row.outcome.dataset, int(row.outcome.rounds[-1]), len(row.outcome.final), row.outcome.entry.title),
            *map(number, (row.outcome.mean, row.outcome.standard_error, row.ratio, row.p, row.p_adjusted)),
            *(row.verdict, row.outcome.remark),
        )
        for row in rows
    ]
    write_csv(folder / "comparison.csv", _COMPARISON_COLUMNS, lines)
    columns = ("learner", "wins", "ties", "losses", "ratio_to_baseline", "p_across")
    tallied = [(row.title, row.wins, row.ties, row.losses, number(row.ratio), number(row.p)) for row in tallies]
    write_csv(folder / "tally.csv", columns, tallied)
    write_outcomes(folder, [row.outcome for row in rows], first_seed)


def write_outcomes(folder: Path, outcomes: Sequence[Outcome], first_seed: int) -> None:
    """Write curves, mistakes run by run, and time per round as CSV."""
    write_curves(outcomes, folder / "curves.csv")
    runs = [
        (outcome.dataset, outcome.entry.title, first_seed + run, mistakes)
        for outcome in outcomes
        for run, mistakes in enumerate(outcome.final.tolist())
    ]
    write_csv(folder / "runs.csv", ("dataset", "learner", "run", "mistakes"), runs)
    # In a separate file: the only numbers that depend on the machine and the day.
    times = [(each.dataset, each.entry.title, fixed(each.microseconds_per_round, ".4g")) for each in outcomes]
    write_csv(folder / "timing.csv", ("dataset", "learner", "microseconds_per_round"), times)


def write_curves(outcomes: Iterable[Outcome], path: Path, *, with_ends: bool = False) -> None:
    """Write every learning curve as CSV, with the least and the most mistakes of any run if asked for."""
    lines: list[tuple[object, ...]] = []
    for outcome in outcomes:
        ends = np.stack([outcome.mistakes.min(axis=0), outcome.mistakes.max(axis=0)], axis=1).tolist()
        curve = zip(outcome.rounds.tolist(), outcome.means, outcome.errors, ends, strict=True)
        for t, mean, error, low_high in curve:
            shown = low_high if with_ends else ()
            lines.append((outcome.dataset, outcome.entry.key, t, number(mean), number(error), *shown))
    columns = ("dataset", "learner", "round", "mean", "standard_error", *(("min", "max") if with_ends else ()))
    write_csv(path, columns, lines)


def comparison_table(rows: Sequence[ComparisonRow], baseline: str) -> Table:
    """Return every entry on every data set, for the screen."""
    begins = [at for at, row in enumerate(rows) if at == 0 or rows[at - 1].outcome.dataset != row.outcome.dataset]
    first = {at: f"{rows[at].outcome.dataset} ({grouped(rows[at].outcome.rounds[-1])})" for at in begins}
    lines = [[first.get(at, ""), *_cells(row)[:-1]] for at, row in enumerate(rows)]
    styles = ("name", *_STYLES[:-1])
    title = what_means_are(len(rows[0].outcome.final))
    return Table(("data", *_COLUMNS[:-1]), lines, title, _legend(baseline, rows), styles, begins)


def tally_tables(rows: Sequence[ComparisonRow], tallies: Sequence[Tally], baseline: str) -> list[Table]:
    """Return wins, ties and losses of every entry; nothing over a single data set, whose table has them."""
    if not tallies or len(_datasets(rows)) < 2:
        return []
    lines = [
        [row.title, str(row.wins), str(row.ties), str(row.losses), f"{row.ratio:.2f}", fixed(row.p, ".2g")]
        for row in tallies
    ]
    columns = ("learner", "wins", "ties", "losses", "mistakes / baseline's", "p across")
    return [Table(columns, lines, f"Against {baseline}, over the data sets")]


def _cells(row: ComparisonRow) -> list[str | Cell]:
    outcome = row.outcome
    return [
        outcome.entry.shown,
        with_error(outcome.mean, outcome.standard_error),
        f"{outcome.mean / outcome.rounds[-1]:.1%}",
        fixed(row.ratio, ".2f"),
        fixed(row.p_adjusted, ".2g"),
        Cell(row.verdict, _KINDS.get(row.verdict, "")),
        grouped(outcome.microseconds_per_round, 1),
        outcome.remark,
    ]


# Under the table, not only in the documentation: readers ask this first.
def _legend(baseline: str, rows: Sequence[ComparisonRow]) -> list[str]:
    notes = dict.fromkeys(row.outcome.entry.note for row in rows if row.outcome.entry.note)
    n_runs, n_tests = len(rows[0].outcome.final), sum(row.p is not None for row in rows)
    needed = signs_to_decide(n_tests)
    too_few = f"{TOO_FEW_RUNS}: with {n_runs} no difference could be significant; --runs {needed} is the least"
    return [
        f"win/loss: fewer/more mistakes than {baseline} in significantly more of the runs, and on average",
        f"p: exact sign test over the runs, Holm-corrected over the table, level {LEVEL:g}",
        "the test is about other shuffles of the same rows (of a stream: other draws), not of new data",
        *([too_few] if any(row.verdict == TOO_FEW_RUNS for row in rows) else []),
        *(
            ["/ told: mistakes over those of the first learner that is told the label"]
            if any(row.ratio is not None for row in rows)
            else []
        ),
        *notes,
        *(["a single run has no standard error and no p"] if n_runs == 1 else []),
    ]


def write_report(
    path: Path,
    rows: Sequence[ComparisonRow],
    tallies: Sequence[Tally],
    figures: Sequence[FigureFile],
    details: Mapping[str, str],
) -> None:
    """Write the page: what was run ("Command", "Baseline" and other details), every figure and every number."""
    run, facts, again, command = what_was_run(details)
    over_all = (
        f"Wins, ties and losses of each learner against {details['Baseline']} on the single data sets; the geometric "
        "mean of the ratios of mistakes; Wilcoxon's signed-rank test across the data sets, Holm-corrected. That one "
        "takes the data sets for an independent sample, and speaks of sets like these."
    )
    tallied = tally_tables(rows, tallies, details["Baseline"])
    legend = "\n".join(f"{line}." for line in _legend(details["Baseline"], rows))
    each = [_dataset_table([row for row in rows if row.outcome.dataset == name]) for name in _datasets(rows)]
    blocks: list[Block] = [
        *(_INTRO, run, facts),
        *(section("Over all data sets", over_all, *tallied) if tallied else ()),
        *figures[:1],
        *section("Every data set", legend, *each),
        *section("Curves", *figures[1:]),
        *(again, command),
    ]
    write_page(path, "Learners compared", blocks)


def _datasets(rows: Sequence[ComparisonRow]) -> list[str]:
    return list(dict.fromkeys(row.outcome.dataset for row in rows))


def _dataset_table(rows: Sequence[ComparisonRow]) -> Table:
    title = f"{rows[0].outcome.dataset}: {grouped(rows[0].outcome.rounds[-1])} rounds"
    return Table(_COLUMNS, [_cells(row) for row in rows], title, (), _STYLES)
