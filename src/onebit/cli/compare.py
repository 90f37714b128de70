"""``onebit compare``: tables, figures and a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.console import Console

from onebit.cli import options
from onebit.cli.options import Games, play_and_show, several, typed
from onebit.experiments.comparison import RUNS, Comparison, run_comparison, write_outcomes
from onebit.experiments.entries import DEFAULT_ENTRIES, Entry, enter, rival_entries
from onebit.experiments.statistics import LEVEL, TOO_FEW_RUNS, ComparisonRow, Tally, compare, signs_to_decide, tally
from onebit.reporting.console import print_table, print_where
from onebit.reporting.pages import Drawing, how_again, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, number, what_means_are, with_error, write_csv
from onebit.streams.reading import Reading
from onebit.streams.sources import find_sources

_INTRO = (
    "Each round a learner is shown a row, names its label and learns only whether it was right; a learner that is "
    "told the label marks how far one could get with full information. All play the same rows in the same order."
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
    place = workers.executor(console)
    games = games._replace(learners=tuple(several(games.learners) or DEFAULT_ENTRIES))
    entries = [*map(enter, games.learners), *rival_entries(several(games.rival), whole_grid=games.grid)]
    comparison = Comparison(tuple(find_sources(data, reading)), tuple(entries), runs=runs, **games.settings)
    chosen = _baseline(baseline, entries)
    outcomes, details, is_drawn = play_and_show(console, comparison, place, workers.jobs, out, run_comparison)
    with console.status("Drawing figures and writing the report …"):
        rows = compare(outcomes, chosen)
        tallies = tally(rows, chosen)
        _write_tables(out, rows, tallies)
        write_outcomes(out, outcomes, comparison.seed)
        details |= {"Command": typed(), "Baseline": chosen}
        drawn: list[Drawing] = []
        if is_drawn:
            from onebit.experiments.figures import comparison_drawings

            drawn = comparison_drawings(outcomes)
        tables = _tables(rows, tallies, chosen)
        _write_report(out / "report.html", rows, tables[1:], drawn, details)
    for table in tables:
        print_table(console, table)
    print_where(console, "Tables, figures and report.html are", out)


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
    columns: tuple[str, ...] = ("dataset", "rounds", "runs", "learner", "mean", "standard_error")
    columns += ("ratio_to_full_information", "p", "p_adjusted", "verdict", "remark")
    columns += ("asked", "wrong_of_rest")
    lines = []
    for row in rows:
        it = row.outcome
        numbers = map(number, (it.mean, it.standard_error, row.ratio, row.p, row.p_adjusted))
        size = int(it.rounds[-1]), len(it.final)
        shares = map(number, (it.asked.mean(), it.wrong_of_rest))
        lines.append((it.dataset, *size, it.entry.title, *numbers, row.verdict, it.remark, *shares))
    write_csv(folder / "comparison.csv", columns, lines)
    tallied = [(row.title, row.wins, row.ties, row.losses, number(row.ratio), number(row.p)) for row in tallies]
    columns = ("learner", "wins", "ties", "losses", "ratio_to_baseline", "p_across")
    write_csv(folder / "tally.csv", columns, tallied)


def _tables(rows: Sequence[ComparisonRow], tallies: Sequence[Tally], baseline: str) -> list[Table]:
    """Return every entry on every data set, for the screen, then its wins, ties and losses."""
    begins = [at for at, row in enumerate(rows) if at == 0 or rows[at - 1].outcome.dataset != row.outcome.dataset]
    first = {at: f"{rows[at].outcome.dataset} ({grouped(rows[at].outcome.rounds[-1])})" for at in begins}
    lines = [[first.get(at, ""), *_cells(row)[:-1]] for at, row in enumerate(rows)]
    title = what_means_are(len(rows[0].outcome.final))
    all_sets = Table(("data", *_COLUMNS[:-1]), lines, title, _legend(baseline, rows), ("name", *_STYLES[:-1]), begins)
    if not tallies or len(begins) < 2:  # the table of a single data set has them
        return [all_sets]
    counts = [
        [row.title, *map(str, (row.wins, row.ties, row.losses)), f"{row.ratio:.2f}", fixed(row.p, ".2g")]
        for row in tallies
    ]
    columns = ("learner", "wins", "ties", "losses", "mistakes / baseline's", "p across")
    return [all_sets, Table(columns, counts, f"Against {baseline}, over the data sets")]


def _cells(row: ComparisonRow) -> list[str | Cell]:
    it = row.outcome
    mistakes, rate = with_error(it.mean, it.standard_error), f"{it.mean / it.rounds[-1]:.1%}"
    verdict = fixed(row.p_adjusted, ".2g"), Cell(row.verdict, _KINDS.get(row.verdict, ""))
    time, shares = (
        grouped(it.microseconds_per_round, 1),
        (fixed(it.asked.mean(), ".1%"), fixed(it.wrong_of_rest, ".1%")),
    )
    return [it.entry.shown, mistakes, rate, *shares, fixed(row.ratio, ".2f"), *verdict, time, it.remark]


# Under the table, not only in the documentation: readers ask this first.
def _legend(baseline: str, rows: Sequence[ComparisonRow]) -> list[str]:
    n_runs, n_tests = len(rows[0].outcome.final), sum(row.p is not None for row in rows)
    notes = [
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


def _write_report(
    path: Path,
    rows: Sequence[ComparisonRow],
    tallied: Sequence[Table],
    figures: Sequence[Drawing],
    details: dict[str, str],
) -> None:
    over_all = (
        f"Wins, ties and losses of each learner against {details['Baseline']} on the single data sets; the geometric "
        "mean of the ratios of mistakes; Wilcoxon's signed-rank test across the data sets, Holm-corrected. That one "
        "takes the data sets for an independent sample, and speaks of sets like these."
    )
    of_set: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        of_set.setdefault(f"{row.outcome.dataset}: {grouped(row.outcome.rounds[-1])} rounds", []).append(row)
    legend = "\n".join(f"{line}." for line in _legend(details["Baseline"], rows))
    each = [Table(_COLUMNS, list(map(_cells, some)), title, (), _STYLES) for title, some in of_set.items()]
    blocks = [
        _INTRO,
        *what_was_run(details),
        *(section("Over all data sets", over_all, *tallied) if tallied else ()),
        *figures[:1],
        *section("Every data set", legend, *each),
        *section("Curves", *figures[1:]),
        *how_again(details),
    ]
    write_page(path, "Learners compared", blocks)
