"""``onebit compare``: tables, figures and a page; `onebit league` shares most of how it plays."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, TypeVar

from rich.console import Console

from onebit.cli import options
from onebit.cli.options import Games, has_figures, say_what_was_read, several, typed
from onebit.experiments.comparison import RUNS, Comparison, run_comparison, settle_in_hindsight, write_outcomes
from onebit.experiments.entries import DEFAULT_ENTRIES, Entry, enter, rival_entries
from onebit.experiments.run import Executor
from onebit.experiments.statistics import LEVEL, TOO_FEW_RUNS, ComparisonRow, Tally, compare, signs_to_decide, tally
from onebit.reporting.console import on_screen, prepare_folder, print_table, progress_bar, say_where
from onebit.reporting.pages import Drawing, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, number, what_means_are, with_error, write_csv
from onebit.streams.data_set import in_lines
from onebit.streams.preprocess import describe_preprocessing
from onebit.streams.reading import Reading
from onebit.streams.sources import find_sources

_Played = TypeVar("_Played")
_INTRO = (
    "Each round a learner is shown a row, names its label and learns only whether it was right; a learner that is "
    "told the label marks how far one could get with full information. All play the same rows in the same order."
)
_COLUMNS = ("learner", "mistakes", "rate", "/ told", "p", "verdict", "µs/round", "remark")
_STYLES = ("name", *["number"] * 6, "")
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
    played, details, is_drawn = play_and_show(console, comparison, place, workers.jobs, out, run_comparison)
    with console.status("Drawing figures and writing the report …"):
        outcomes = settle_in_hindsight(played)
        rows = compare(outcomes, chosen)
        tallies = tally(rows, chosen)
        _write_tables(out, rows, tallies)
        write_outcomes(out, outcomes, comparison.seed)
        details |= {"Command": typed(), "Baseline": chosen}
        drawn: list[Drawing] = []
        if is_drawn:
            from onebit.experiments.figures import drawings

            drawn = drawings(outcomes)
        _write_report(out / "report.html", rows, _tally_tables(rows, tallies, chosen), drawn, details)
    for table in (_comparison_table(rows, chosen), *_tally_tables(rows, tallies, chosen)):
        print_table(console, table)
    say_where(console, "Tables, figures and report.html are", out)


def _baseline(named: str | None, entries: Sequence[Entry]) -> str:
    """Return the one all others are compared with: the first that hears only right or wrong, unless one is named."""
    bandits = [entry.title for entry in entries if not entry.full_information]
    if named is None:
        return bandits[0] if bandits else entries[0].title
    if named not in bandits:
        raise ValueError(f"--baseline must be one of those who play: {', '.join(bandits)}; got {named!r}")
    return named


def play_and_show(
    console: Console,
    comparison: Comparison,
    place: AbstractContextManager[Executor | None],
    jobs: int | None,
    out: Path,
    play: Callable[..., _Played],
) -> tuple[_Played, dict[str, str], bool]:
    """Say what is played, and play it; return what came of it, the facts for its page, and whether to draw figures."""
    sparse = {source.name: facts.is_sparse for source, facts in comparison.facts.items()}
    texts = {
        kind: describe_preprocessing(comparison.preprocessing, comparison.unit_length, kind)
        for kind in dict.fromkeys(sparse.values())
    }
    preprocessing = next(iter(texts.values()))
    if len(texts) > 1:
        names = ", ".join(name for name, is_sparse in sparse.items() if is_sparse)
        preprocessing = f"{texts[False]}; for {names}: {texts[True]}"
    # After everything that can be wrong with the request, before anything is played.
    prepare_folder(out)
    for source, facts in comparison.facts.items():
        say_what_was_read(console, source.name, facts.about)
    text = f"Preprocessing, for all who do not scale columns themselves: {preprocessing}."
    console.print(on_screen(text), highlight=False, soft_wrap=True)
    is_drawn = has_figures(console)
    n_sets, n_runs = len(comparison.sources), comparison.runs
    size = f"{n_sets} data set{'s' * (n_sets > 1)}, {n_runs} run{'s' * (n_runs > 1)}"
    with progress_bar(console, size) as show, place as executor:
        played = play(comparison, out, jobs=jobs, on_progress=show, executor=executor)
    details = {
        "Data sets": ", ".join(source.name for source in comparison.sources),
        **{f"Read: {source.name}": in_lines(facts.about) for source, facts in comparison.facts.items()},
        "Rounds": f"at most {grouped(comparison.rounds)}, each row once",
        "Runs": f"{n_runs}, each on a shuffle of its own, the same for all learners",
        "Seeds": f"{comparison.seed} to {comparison.seed + n_runs - 1}",
        "Preprocessing": f"{preprocessing}; learners that scale columns themselves get rows as they come",
    }
    return played, details, is_drawn


def _write_tables(folder: Path, rows: Sequence[ComparisonRow], tallies: Sequence[Tally]) -> None:
    """Write the tables as CSV: the same bytes whenever the same is played."""
    columns: tuple[str, ...] = ("dataset", "rounds", "runs", "learner", "mean", "standard_error")
    columns += ("ratio_to_full_information", "p", "p_adjusted", "verdict", "remark")
    lines = [
        (
            *(row.outcome.dataset, int(row.outcome.rounds[-1]), len(row.outcome.final), row.outcome.entry.title),
            *map(number, (row.outcome.mean, row.outcome.standard_error, row.ratio, row.p, row.p_adjusted)),
            *(row.verdict, row.outcome.remark),
        )
        for row in rows
    ]
    write_csv(folder / "comparison.csv", columns, lines)
    tallied = [(row.title, row.wins, row.ties, row.losses, number(row.ratio), number(row.p)) for row in tallies]
    columns = ("learner", "wins", "ties", "losses", "ratio_to_baseline", "p_across")
    write_csv(folder / "tally.csv", columns, tallied)


def _comparison_table(rows: Sequence[ComparisonRow], baseline: str) -> Table:
    """Return every entry on every data set, for the screen."""
    begins = [at for at, row in enumerate(rows) if at == 0 or rows[at - 1].outcome.dataset != row.outcome.dataset]
    first = {at: f"{rows[at].outcome.dataset} ({grouped(rows[at].outcome.rounds[-1])})" for at in begins}
    lines = [[first.get(at, ""), *_cells(row)[:-1]] for at, row in enumerate(rows)]
    styles = ("name", *_STYLES[:-1])
    title = what_means_are(len(rows[0].outcome.final))
    return Table(("data", *_COLUMNS[:-1]), lines, title, _legend(baseline, rows), styles, begins)


def _tally_tables(rows: Sequence[ComparisonRow], tallies: Sequence[Tally], baseline: str) -> list[Table]:
    """Return wins, ties and losses of every entry; nothing over a single data set, whose table has them."""
    if not tallies or len({row.outcome.dataset for row in rows}) < 2:
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
    notes += dict.fromkeys(row.outcome.entry.note for row in rows if row.outcome.entry.note)
    return [*notes, "a single run has no standard error and no p"] if n_runs == 1 else notes


def _write_report(
    path: Path,
    rows: Sequence[ComparisonRow],
    tallied: Sequence[Table],
    figures: Sequence[Drawing],
    details: dict[str, str],
) -> None:
    run, facts, again, command = what_was_run(details)
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
        *(_INTRO, run, facts),
        *(section("Over all data sets", over_all, *tallied) if tallied else ()),
        *figures[:1],
        *section("Every data set", legend, *each),
        *section("Curves", *figures[1:]),
        *(again, command),
    ]
    write_page(path, "Learners compared", blocks)
