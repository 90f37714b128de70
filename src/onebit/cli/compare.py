"""``onebit compare``, with a progress bar and tables at the end; `onebit league` shares most of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.console import Console

from onebit.cli import options
from onebit.cli.options import Games, after_options, has_figures, option_words, say_what_was_read, several
from onebit.experiments.compare import comparison_table, tally_tables, write_report, write_tables
from onebit.experiments.comparison import RUNS, Comparison, run_comparison, settle_in_hindsight
from onebit.experiments.entries import DEFAULT_ENTRIES, Entry, check_distinct, enter, rival_entries
from onebit.experiments.statistics import compare, tally
from onebit.reporting.console import on_screen, prepare_folder, print_table, progress_bar, say_where
from onebit.reporting.pages import FigureFile
from onebit.reporting.text import grouped, in_shell
from onebit.streams.data_set import in_lines
from onebit.streams.preprocess import describe_preprocessing
from onebit.streams.reading import Reading
from onebit.streams.sources import find_sources


def command(
    data: Annotated[tuple[str, ...], f"Files ({options.FILES}), folders of them, or names: {options.NAMES}."],
    *,
    games: Games,
    baseline: Annotated[str | None, "Whom all others are compared with; the first learner by default."] = None,
    runs: options.Runs = RUNS,
    reading: Reading,
    workers: options.Workers,
    out: options.Out = Path("results/compare"),
) -> None:
    """Play learners on the same shuffles of your data; write tables, figures and report.html."""
    console = Console()
    place = workers.executor(console)
    games = games._replace(learners=tuple(several(games.learners) or DEFAULT_ENTRIES))
    entries = [*map(enter, games.learners), *rival_entries(several(games.rival), whole_grid=games.grid)]
    check_distinct(entries)
    comparison = Comparison(tuple(find_sources(data, reading)), tuple(entries), runs=runs, **games.settings)
    chosen = _baseline(baseline, entries)
    preprocessing = preprocessing_words(comparison)
    # After everything that can be wrong with the request, before anything is played.
    prepare_folder(out)
    say_what_is_played(console, comparison, preprocessing)
    is_drawn = has_figures(console)
    with progress_bar(console, size_words(comparison)) as show, place as executor:
        played = run_comparison(comparison, out, jobs=workers.jobs, on_progress=show, executor=executor)
    with console.status("Drawing figures and writing the report …"):
        outcomes = settle_in_hindsight(played)
        rows = compare(outcomes, chosen)
        tallies = tally(rows, chosen)
        write_tables(out, rows, tallies, comparison.seed)
        figures: list[FigureFile] = []
        if is_drawn:
            from onebit.experiments.figures import drawings
            from onebit.reporting.figures import draw_files

            figures = draw_files(drawings(outcomes), out / "figures")
        words = ["compare", *([] if baseline is None else ["--baseline", baseline])]
        words += [*comparison_words(games, reading, runs), *after_options(data)]
        details = details_of(comparison, preprocessing, words) | {"Baseline": chosen}
        write_report(out / "report.html", rows, tallies, figures, details)
    for table in (comparison_table(rows, chosen), *tally_tables(rows, tallies, chosen)):
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


def comparison_words(games: Games, reading: Reading, runs: int) -> list[str]:
    """Return the options to type to get the same comparison again, of those that all have."""
    games = games._replace(rival=tuple(several(games.rival)))
    always = ("rounds", "seed", "preprocess")
    return ["--runs", str(runs), *option_words(reading), *option_words(games, always)]


def say_what_is_played(console: Console, comparison: Comparison, preprocessing: str) -> None:
    """Print what was read of every data set, and what is done to its rows."""
    for source, facts in comparison.facts.items():
        say_what_was_read(console, source.name, facts.about)
    text = f"Preprocessing, for all who do not scale columns themselves: {preprocessing}."
    console.print(on_screen(text), highlight=False, soft_wrap=True)


def size_words(comparison: Comparison) -> str:
    """Return how much is played, to stand beside a progress bar."""
    n_sets, n_runs = len(comparison.sources), comparison.runs
    return f"{n_sets} data set{'s' * (n_sets > 1)}, {n_runs} run{'s' * (n_runs > 1)}"


def preprocessing_words(comparison: Comparison) -> str:
    """Return what is done to the rows, for dense and for sparse sets where both play."""
    sparse = {source.name: facts.is_sparse for source, facts in comparison.facts.items()}
    texts = {
        kind: describe_preprocessing(comparison.preprocessing, comparison.unit_length, kind)
        for kind in dict.fromkeys(sparse.values())
    }
    if len(texts) == 1:
        return next(iter(texts.values()))
    return f"{texts[False]}; for {', '.join(name for name, kind in sparse.items() if kind)}: {texts[True]}"


def details_of(comparison: Comparison, preprocessing: str, command: Sequence[str]) -> dict[str, str]:
    """Return what a report says was run, such as the words of the command that does it again."""
    return {
        "Data sets": ", ".join(source.name for source in comparison.sources),
        **{f"Read: {source.name}": in_lines(facts.about) for source, facts in comparison.facts.items()},
        "Rounds": f"at most {grouped(comparison.rounds)}, each row once",
        "Runs": f"{comparison.runs}, each on a shuffle of its own, the same for all learners",
        "Seeds": f"{comparison.seed} to {comparison.seed + comparison.runs - 1}",
        "Preprocessing": f"{preprocessing}; learners that scale columns themselves get rows as they come",
        "Command": in_shell(["onebit", *command]),
    }
