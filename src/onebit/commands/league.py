"""What ``onebit league`` does, with a progress bar and the standings at the end."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from onebit.commands.compare import (
    Request,
    details_of,
    preprocessing_words,
    say_what_is_played,
    size_words,
)
from onebit.commands.workers import executor_for
from onebit.experiments.entries import check_distinct, enter, rival_entries
from onebit.experiments.league import (
    RUNS,
    SECONDS,
    League,
    Results,
    every_learner,
    in_seconds,
    league_sources,
    play_league,
    print_results,
    whole_field,
    with_diagonals,
    write_pages,
    write_tables,
)
from onebit.experiments.statistics import standings
from onebit.reporting.console import prepare_folder, progress_bar, say_where


@dataclass(frozen=True)
class LeagueRequest(Request):
    """What the user asked for, in the user's words."""

    runs: int = RUNS
    out: Path = Path("results/league")
    bundled: bool = True
    seconds_per_game: float = SECONDS
    diagonal: bool = False

    @property
    def learner_texts(self) -> list[str]:
        """The learners that were named; none means the whole field."""
        return [text for part in self.learners for text in part.split()]


def league_command(request: LeagueRequest) -> None:
    """Play, then write tables, figures and pages into the folder."""
    console = Console()
    place = executor_for(request.dask, request.jobs, console)
    league, absent = _league(request)
    said = preprocessing_words(league)
    prepare_folder(request.out)
    say_what_is_played(console, league, said)
    with progress_bar(console, size_words(league)) as show, place as executor:
        outcomes, failures = play_league(league, request.out, jobs=request.jobs, on_progress=show, executor=executor)
    with console.status("Drawing figures and writing the pages …"):
        results = Results(standings(outcomes), outcomes, failures, absent)
        write_tables(request.out, results, league.seed)
        write_pages(request.out, results, _details(request, league, said))
    print_results(console, results)
    say_where(console, "report.html, a page for every learner, tables and figures are", request.out)


def _league(request: LeagueRequest) -> tuple[League, dict[str, str]]:
    rivals = rival_entries(request.rival_names, whole_grid=request.grid)
    named = [enter(text) for text in request.learner_texts]
    ours, absent = (named, {}) if named else every_learner(request.rounds, diagonal=request.diagonal)
    if named and request.diagonal:
        ours = with_diagonals(named)
    entries = [*ours, *rivals]
    check_distinct(entries)
    if sum(entry.is_ranked for entry in entries) < 2:
        raise ValueError(
            "a league needs two who hear only right or wrong and are not tuned in hindsight; name more with --learners"
        )
    league = League(
        tuple(league_sources(request.data, request.reading, bundled=request.bundled)),
        tuple(entries),
        rounds=request.rounds,
        runs=request.runs,
        seed=request.seed,
        preprocessing=request.preprocessing,
        unit_length=request.unit_length,
        rival_seconds=request.rival_seconds,
        field=None if named else whole_field(*rivals, diagonal=request.diagonal),
        seconds_per_game=request.seconds_per_game,
    )
    return league, absent


def _details(request: LeagueRequest, league: League, preprocessing: str) -> dict[str, str]:
    words = ["league", *([] if request.bundled else ["--no-bundled"]), *(["--diagonal"] if request.diagonal else [])]
    words += [] if request.seconds_per_game == SECONDS else ["--seconds-per-game", f"{request.seconds_per_game:g}"]
    listed = details_of(request, league, preprocessing, words)
    longest = f"{in_seconds(league.seconds_per_game)} at 10⁹ numbers a second, by what a learner says of its effort"
    return {**listed, "Longest game": longest}
