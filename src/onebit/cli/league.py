"""``onebit league``, with a progress bar and the standings at the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from rich.console import Console

from onebit.cli import options
from onebit.cli.compare import comparison_words, details_of, preprocessing_words, say_what_is_played, size_words
from onebit.cli.options import Games, after_options, has_figures, option_words, several
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
from onebit.streams.reading import Reading
from onebit.streams.sources import known_names


class Field(NamedTuple):
    """Who plays on what."""

    bundled: Annotated[bool, f"Play on all that comes with onebit: {', '.join(known_names())}."] = True
    diagonal: Annotated[bool, "Play the diagonal forms too of all who keep whole matrices."] = False
    seconds_per_game: Annotated[float, "The longest game; by what a learner says of its effort, not by a clock."] = (
        SECONDS
    )


def command(
    data: Annotated[
        tuple[str, ...], f"More to play on: files ({options.FILES}), folders of them, or streams of your own."
    ] = (),
    *,
    field: Field,
    games: Games,
    runs: options.Runs = RUNS,
    reading: Reading,
    workers: options.Workers,
    out: options.Out = Path("results/league"),
) -> None:
    """Rank all learners over all streams and your data; write tables, figures and a page for each."""
    console = Console()
    place = workers.executor(console)
    games = games._replace(learners=tuple(several(games.learners)))
    league, absent = _league(data, field, games, reading, runs)
    preprocessing = preprocessing_words(league)
    prepare_folder(out)
    say_what_is_played(console, league, preprocessing)
    is_drawn = has_figures(console)
    with progress_bar(console, size_words(league)) as show, place as executor:
        outcomes, failures = play_league(league, out, jobs=workers.jobs, on_progress=show, executor=executor)
    with console.status("Drawing figures and writing the pages …"):
        results = Results(standings(outcomes), outcomes, failures, absent)
        write_tables(out, results, league.seed)
        words = ["league", *option_words(field), *comparison_words(games, reading, runs), *after_options(data)]
        longest = f"{in_seconds(league.seconds_per_game)} at 10⁹ numbers a second, by what a learner says of its effort"
        details = details_of(league, preprocessing, words) | {"Longest game": longest}
        write_pages(out, results, details, is_drawn)
    print_results(console, results)
    say_where(console, "report.html, a page for every learner, tables and figures are", out)


def _league(
    data: Sequence[str], field: Field, games: Games, reading: Reading, runs: int
) -> tuple[League, dict[str, str]]:
    """Return the league, and the learners that cannot be entered, with the reason."""
    rivals = rival_entries(several(games.rival), whole_grid=games.grid)
    named = [enter(text) for text in games.learners]
    ours, absent = (named, {}) if named else every_learner(games.rounds, diagonal=field.diagonal)
    if named and field.diagonal:
        ours = with_diagonals(named)
    entries = [*ours, *rivals]
    check_distinct(entries)
    if sum(entry.is_ranked for entry in entries) < 2:
        raise ValueError(
            "a league needs two who hear only right or wrong and are not tuned in hindsight; name more with --learners"
        )
    league = League(
        tuple(league_sources(data, reading, bundled=field.bundled)),
        tuple(entries),
        runs=runs,
        field=None if named else whole_field(*rivals, diagonal=field.diagonal),
        seconds_per_game=field.seconds_per_game,
        **games.settings,
    )
    return league, absent
