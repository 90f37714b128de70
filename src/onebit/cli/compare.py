"""``onebit compare``: tables, figures and a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.console import Console

from onebit.cli import options
from onebit.cli.options import Games, play_and_show, several
from onebit.experiments.comparison import RUNS, Comparison, run_comparison, write_outcomes
from onebit.experiments.entries import DEFAULT_ENTRIES, Entry, enter, rival_entries
from onebit.experiments.statistics import LEVEL, TOO_FEW_RUNS, ComparisonRow, Tally, compare, signs_to_decide, tally
from onebit.reporting.console import print_line, print_table
from onebit.reporting.pages import Drawing, Sections, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, what_means_are, with_error, write_csv
from onebit.streams.reading import Reading
from onebit.streams.sources import find_sources

_INTRO = (
    "Each round a learner is shown a row, names its label and learns only whether it was right; a learner that is "
    "told the label marks how far one could get with full information. All play the same rows in the same order."
)
_OVER_ALL = (
    "Wins, ties and losses of each learner against the baseline on the single data sets; the geometric mean of the "
    "ratios of mistakes; Wilcoxon's signed-rank test across the data sets, Holm-corrected. It takes the sets for an "
    "independent sample, and speaks of sets like these."
)
_COLUMNS = ("learner", "mistakes", "rate", "asked", "wrong of rest", "/ told", "p", "verdict", "µs/round", "remark")
_STYLES = ("name", *["number"] * 8, "")
_KINDS = {"win": "good", "tie": "dim", "loss": "bad", TOO_FEW_RUNS: "dim"}


def command(
    data: Annotated[tuple[str, ...], f"Files ({options.FILES}), folders of them, or names: {options.NAMES}."],
    *,
    games: Games,
    baseline: Annotated[str | None, "Whom all others are compared with; the first learner by default."] = None,
    runs: Annotated[int, "Runs of every learner, each on its own shuffle."] = RUNS,
    reading: Reading,
    workers: options.Workers,
    out: options.Out = Path("results/compare"),
) -> None:
    """Play learners on the same shuffles of your data; write tables, figures and report.html."""
    console = Console()
    games = games._replace(learners=tuple(several(games.learners) or DEFAULT_ENTRIES))
    entries = [*map(enter, games.learners), *rival_entries(several(games.rival), whole_grid=games.grid)]
    comparison = Comparison(tuple(find_sources(data, reading)), tuple(entries), runs=runs, **games.settings)
    chosen = _baseline(baseline, entries)
    outcomes, facts, is_drawn = play_and_show(console, comparison, workers, out, run_comparison)
    with console.status("Drawing figures and writing the report …"):
        rows = compare(outcomes, chosen)
        tallies = tally(rows, chosen)
        _write_tables(out, rows, tallies)
        write_outcomes(out, outcomes, comparison.seed)
        drawn: list[Drawing] = []
        if is_drawn:
            from onebit.experiments.figures import comparison_drawings

            drawn = comparison_drawings(outcomes)
        sets = _set_tables(rows, chosen)
        # The table of a single data set has its wins and losses.
        over_all = [_tally_table(tallies, chosen)] if tallies and len(sets) > 1 else []
        sections: Sections = {
            "": [_INTRO],
            "Over all data sets": [_OVER_ALL, *over_all] if over_all else [],
            "Mistakes": drawn[:1],
            "Every data set": sets,
            "Curves": drawn[1:],
        }
        write_page(out, "Learners compared", sections, {**facts, "Baseline": chosen})
    for table in (*sets, *over_all):
        print_table(console, table)
    print_line(console, f"Tables, figures and report.html are in {out}.")


def _baseline(named: str | None, entries: Sequence[Entry]) -> str:
    """Return the one all others are compared with: the first that hears only right or wrong, unless one is named."""
    bandits = [entry.title for entry in entries if not (entry.full_information or entry.asks)]
    if named is None:
        return bandits[0] if bandits else entries[0].title
    if named not in bandits:
        raise ValueError(f"--baseline must be one of those who play: {', '.join(bandits)}; got {named!r}")
    return named


def _write_tables(folder: Path, rows: Sequence[ComparisonRow], tallies: Sequence[Tally]) -> None:
    """Write the tables as CSV: the same bytes whenever the same is played."""
    columns = ["dataset", "rounds", "runs", "learner", "mean", "standard_error", "ratio_to_full_information", "p"]
    columns += ["p_adjusted", "verdict", "remark", "asked", "wrong_of_rest"]
    lines: list[tuple[object, ...]] = []
    for row in rows:
        it = row.outcome
        found = it.mean, it.standard_error, row.ratio, row.p, row.p_adjusted, row.verdict, it.remark
        game = it.dataset, int(it.rounds[-1]), len(it.final), it.entry.title
        lines.append((*game, *found, it.asked.mean(), it.wrong_of_rest))
    write_csv(folder / "comparison.csv", columns, lines)
    lines = [(row.title, row.wins, row.ties, row.losses, row.ratio, row.p) for row in tallies]
    write_csv(folder / "tally.csv", ("learner", "wins", "ties", "losses", "ratio_to_baseline", "p_across"), lines)


def _set_tables(rows: Sequence[ComparisonRow], baseline: str) -> list[Table]:
    """Return a table of every data set, with the legend below the last."""
    lines: dict[str, list[list[str | Cell]]] = {}
    for row in rows:
        title = f"{row.outcome.dataset} ({grouped(row.outcome.rounds[-1])})"
        lines.setdefault(title, []).append(_cells(row))
    *others, last = lines
    titled = [Table(_COLUMNS, lines[title], title, styles=_STYLES) for title in others]
    return [*titled, Table(_COLUMNS, lines[last], last, _legend(baseline, rows), _STYLES)]


def _tally_table(tallies: Sequence[Tally], baseline: str) -> Table:
    """Return the wins, ties and losses over all data sets."""
    lines = [
        [row.title, *map(str, (row.wins, row.ties, row.losses)), f"{row.ratio:.2f}", fixed(row.p, ".2g")]
        for row in tallies
    ]
    columns = ("learner", "wins", "ties", "losses", "mistakes / baseline's", "p across")
    return Table(columns, lines, f"Against {baseline}, over the data sets")


def _cells(row: ComparisonRow) -> list[str | Cell]:
    it = row.outcome
    mistakes, rate = with_error(it.mean, it.standard_error), f"{it.mean / it.rounds[-1]:.1%}"
    verdict = fixed(row.p_adjusted, ".2g"), Cell(row.verdict, _KINDS.get(row.verdict, ""))
    shares = fixed(it.asked.mean(), ".1%"), fixed(it.wrong_of_rest, ".1%"), fixed(row.ratio, ".2f")
    return [it.entry.shown, mistakes, rate, *shares, *verdict, grouped(it.microseconds_per_round, 1), it.remark]


# Under the table, not only in the documentation: readers ask this first.
def _legend(baseline: str, rows: Sequence[ComparisonRow]) -> list[str]:
    n_runs, n_tests = len(rows[0].outcome.final), sum(row.p is not None for row in rows)
    notes = [
        what_means_are(n_runs),
        f"win/loss: fewer/more mistakes than {baseline} in significantly more of the runs, and on average",
        f"p: exact sign test over the runs, Holm-corrected over the table, level {LEVEL:g}",
        "the test is about other shuffles of the same rows (of a stream: other draws), not of new data",
    ]
    if any(row.verdict == TOO_FEW_RUNS for row in rows):
        needed = signs_to_decide(n_tests)
        notes.append(f"{TOO_FEW_RUNS}: with {n_runs} no difference could be significant; --runs {needed} is the least")
    if any(row.ratio is not None for row in rows):
        notes.append("/ told: mistakes over those of the first learner that is told the label")
    if any(row.outcome.entry.asks for row in rows):
        notes.append(
            "asked: the share of rounds in which the label was asked for; these are no mistakes, and not tested"
        )
    notes += dict.fromkeys(row.outcome.entry.note for row in rows if row.outcome.entry.note)
    return [*notes, "a single run has no standard error and no p"] if n_runs == 1 else notes
