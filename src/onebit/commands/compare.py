"""What ``onebit compare`` does, with a progress bar and a table at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from onebit.commands.what_was_read import reading_words, say_what_was_read
from onebit.commands.workers import executor_for
from onebit.experiments.compare import comparison_table, tally_tables, write_report, write_tables
from onebit.experiments.comparison import ROUNDS, RUNS, Comparison, run_comparison, settle_in_hindsight
from onebit.experiments.entries import DEFAULT_ENTRIES, Entry, check_distinct, enter, rival_entries
from onebit.experiments.figures import drawings
from onebit.experiments.players import PATIENCE
from onebit.experiments.statistics import compare, tally
from onebit.reporting.console import on_screen, prepare_folder, print_table, progress_bar, say_where
from onebit.reporting.figures import draw_files
from onebit.reporting.text import grouped, in_shell
from onebit.streams.data_set import in_lines
from onebit.streams.preprocess import describe_preprocessing
from onebit.streams.reading import PLAIN, Reading
from onebit.streams.sources import find_sources


@dataclass(frozen=True)
class Request:
    """What the user asked for, in the user's words."""

    data: Sequence[str]
    learners: Sequence[str] = ()
    """Each may name several, with spaces between; none means the defaults."""
    rivals: Sequence[str] = ()
    """Each may name several, with spaces between."""
    grid: bool = True
    baseline: str | None = None
    reading: Reading = PLAIN
    rounds: int = ROUNDS
    runs: int = RUNS
    seed: int = 0
    preprocessing: str = "standardize"
    unit_length: bool = False
    jobs: int | None = None
    out: Path = Path("results/compare")
    dask: str | None = None
    rival_seconds: float = PATIENCE

    @property
    def learner_texts(self) -> list[str]:
        """The learners, one each, or the defaults."""
        return [text for part in self.learners for text in part.split()] or list(DEFAULT_ENTRIES)

    @property
    def rival_names(self) -> list[str]:
        """The rivals, one each."""
        return [name for part in self.rivals for name in part.split()]


def compare_command(request: Request) -> None:
    """Play, then write tables, figures and the report into the folder."""
    console = Console()
    place = executor_for(request.dask, request.jobs, console)
    comparison = _comparison(request)
    baseline = _baseline(request, comparison.entries)
    said = preprocessing_words(comparison)
    # After everything that can be wrong with the request, before anything is played.
    prepare_folder(request.out)
    say_what_is_played(console, comparison, said)
    with progress_bar(console, size_words(comparison)) as show, place as executor:
        played = run_comparison(comparison, request.out, jobs=request.jobs, on_progress=show, executor=executor)
    with console.status("Drawing figures and writing the report …"):
        outcomes = settle_in_hindsight(played)
        rows = compare(outcomes, baseline)
        tallies = tally(rows, baseline)
        write_tables(request.out, rows, tallies, comparison.seed)
        figures = draw_files(drawings(outcomes), request.out / "figures")
        words = ["--baseline", request.baseline] if request.baseline is not None else []
        details = details_of(request, comparison, said, ["compare", *words]) | {"Baseline": baseline}
        write_report(request.out / "report.html", rows, tallies, figures, details)
    for table in (comparison_table(rows, baseline), *tally_tables(rows, tallies, baseline)):
        print_table(console, table)
    say_where(console, "Tables, figures and report.html are", request.out)


def say_what_is_played(console: Console, comparison: Comparison, preprocessing: str) -> None:
    """Print what was read of every data set, and what is done to its rows."""
    for source, facts in comparison.facts.items():
        say_what_was_read(console, source.name, facts.about)
    console.print(
        on_screen(f"Preprocessing, for all who do not scale columns themselves: {preprocessing}."),
        highlight=False,
        soft_wrap=True,
    )


def size_words(comparison: Comparison) -> str:
    """Say how much is played, beside a progress bar."""
    n_sets, n_runs = len(comparison.sources), comparison.runs
    return f"{n_sets} data set{'s' * (n_sets > 1)}, {n_runs} run{'s' * (n_runs > 1)}"


def _comparison(request: Request) -> Comparison:
    rivals = rival_entries(request.rival_names, whole_grid=request.grid)
    entries = [*(enter(text) for text in request.learner_texts), *rivals]
    check_distinct(entries)
    return Comparison(
        tuple(find_sources(request.data, request.reading)),
        tuple(entries),
        rounds=request.rounds,
        runs=request.runs,
        seed=request.seed,
        preprocessing=request.preprocessing,
        unit_length=request.unit_length,
        rival_seconds=request.rival_seconds,
    )


def _baseline(request: Request, entries: Sequence[Entry]) -> str:
    """Return the one all others are compared with: the first that hears only right or wrong, unless one is named."""
    if request.baseline is None:
        return next((entry.title for entry in entries if not entry.full_information), entries[0].title)
    bandits = [entry.title for entry in entries if not entry.full_information]
    if request.baseline not in bandits:
        raise ValueError(f"--baseline must be one of those who play: {', '.join(bandits)}; got {request.baseline!r}")
    return request.baseline


def preprocessing_words(comparison: Comparison) -> str:
    """Say what is done to the rows, for dense and for sparse sets where both play."""
    sparse = {source.name: facts.is_sparse for source, facts in comparison.facts.items()}
    said = {
        kind: describe_preprocessing(comparison.preprocessing, comparison.unit_length, kind)
        for kind in dict.fromkeys(sparse.values())
    }
    if len(said) == 1:
        return next(iter(said.values()))
    return f"{said[False]}; for {', '.join(name for name, kind in sparse.items() if kind)}: {said[True]}"


def details_of(request: Request, comparison: Comparison, preprocessing: str, command: list[str]) -> dict[str, str]:
    """Return what a report says was run.

    Parameters
    ----------
    request, comparison : Request and Comparison
        What was asked for, and what was made of it.
    preprocessing : str
        From `preprocessing_words`.
    command : list of str
        The command and the options that only it has.
    """
    return {
        "Data sets": ", ".join(source.name for source in comparison.sources),
        **{f"Read: {source.name}": in_lines(facts.about) for source, facts in comparison.facts.items()},
        "Rounds": f"at most {grouped(comparison.rounds)}, each row once",
        "Runs": f"{comparison.runs}, each on a shuffle of its own, the same for all learners",
        "Seeds": f"{comparison.seed} to {comparison.seed + comparison.runs - 1}",
        "Preprocessing": f"{preprocessing}; learners that scale columns themselves get rows as they come",
        "Command": _command(request, command),
    }


def _command(request: Request, command: list[str]) -> str:
    """Return what to type to get the same again."""
    words = ["onebit", *command]
    for text in request.learner_texts:
        words += ["--learners", text]
    for name in request.rival_names:
        words += ["--rival", name]
    words += reading_words(request.reading)
    words += [] if request.grid else ["--no-grid"]
    words += [] if request.rival_seconds == PATIENCE else ["--rival-seconds", f"{request.rival_seconds:g}"]
    words += ["--rounds", str(request.rounds), "--runs", str(request.runs), "--seed", str(request.seed)]
    words += ["--preprocess", request.preprocessing, *(["--unit-length"] if request.unit_length else [])]
    # After the options: a file's name may begin with a dash.
    return in_shell([*words, *(["--"] if any(name.startswith("-") for name in request.data) else []), *request.data])
