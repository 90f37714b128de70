"""``onebit league``: the standings of all learners, tables, figures and a page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

from rich.console import Console

from onebit.cli import options
from onebit.cli.options import Games, play_and_show, several
from onebit.experiments.comparison import Comparison, Outcome, play_league, write_outcomes
from onebit.experiments.entries import enter, every_learner, rival_entries, with_diagonals
from onebit.experiments.statistics import LEVEL, Standings, standings
from onebit.reporting.console import print_line, print_table
from onebit.reporting.pages import Drawing, Sections, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, write_csv
from onebit.streams.reading import Reading
from onebit.streams.sources import find_sources, known_names

_RUNS = 20  # enough for a significant difference among 26 000 pairs on single sets, corrected for all of them
_INTRO = (
    "Every learner on every set, each with its own default settings. Each round a learner is shown a row, names its "
    "label and learns only whether it was right. All play the same rows in the same order."
)
_HINDSIGHT = (
    "“Best setting” and “best per run” are rivals whose settings were chosen in hindsight, set by set, by these very "
    "games: the most that tuning could bring. No learner could play so: they stand below the table, unranked."
)
_UNFINISHED = (
    "A learner that did not finish a set shares its last ranks, and loses there to all that did. One that finished "
    "none is not ranked."
)
_RATES = "Mistakes in per cent of the rounds, and the rank on the set; learners that are not ranked have none."
_LEGEND = {
    "mean rank": "of the mean mistakes, over the sets; a learner that did not finish a set shares its last ranks",
    "of common": "mean rank over the sets that all have finished",
    "first": "sets on which no other made fewer mistakes",
    "mistakes / best": "over those of the best on each set, geometric mean over the sets it finished",
    "w/t/l": "wins, ties, losses against all others on every set; exact sign test over the runs, Holm-corrected over "
    f"all, level {LEVEL:g}: of other shuffles of the same rows, not of new data",
}


class _Field(NamedTuple):
    """Who plays on what."""

    bundled: Annotated[bool, f"Play on all that comes with onebit: {', '.join(known_names())}."] = True
    diagonal: Annotated[bool, "Play the diagonal forms too of all who keep whole matrices."] = False
    seconds_per_game: Annotated[float, "The longest game; by what a learner says of its effort, not by a clock."] = (
        600.0
    )


def command(
    data: Annotated[
        tuple[str, ...], f"More to play on: files ({options.FILES}), folders of them, or streams of your own."
    ] = (),
    *,
    field: _Field,
    games: Games,
    runs: Annotated[int, "Runs of every learner, each on its own shuffle."] = _RUNS,
    reading: Reading,
    workers: options.Workers,
    out: options.Out = Path("results/league"),
) -> None:
    """Rank all learners over all streams and your data; write tables, figures and report.html."""
    console = Console()
    games = games._replace(learners=tuple(several(games.learners)))
    league, absent = _league(data, field, games, reading, runs)
    (outcomes, failures), facts, is_drawn = play_and_show(console, league, workers, out, play_league)
    unfinished = [(dataset, entry.title, reason) for dataset, entry, reason in failures]
    unfinished += [("", title, reason) for title, reason in absent.items()]
    with console.status("Drawing figures and writing the report …"):
        found = standings(outcomes)
        _write_tables(out, found, outcomes, unfinished)
        write_outcomes(out, outcomes, league.seed)
        longest = f"{field.seconds_per_game:g} s at 10⁹ numbers a second, by what a learner says of its effort"
        _write_report(out, found, outcomes, unfinished, {**facts, "Longest game": longest}, is_drawn)
    print_table(console, replace(_standings_table(found), title="Standings"))
    print_line(console, _verdict_in_words(found))
    for dataset, title, reason in unfinished:
        print_line(console, f"{title} {f'did not finish {dataset}' if dataset else 'does not play'}: {reason}")
    print_line(console, f"Tables, figures and report.html are in {out}.")


def _league(
    data: Sequence[str], field: _Field, games: Games, reading: Reading, runs: int
) -> tuple[Comparison, dict[str, str]]:
    """Return the league, and the learners that cannot be entered, with the reason."""
    rivals = rival_entries(several(games.rival), whole_grid=games.grid)
    named = [enter(text) for text in games.learners]
    ours, absent = (named, {}) if named else every_learner(games.rounds, diagonal=field.diagonal)
    if named and field.diagonal:
        ours = with_diagonals(named)
    entries = [*ours, *rivals]
    if sum(entry.is_ranked for entry in entries) < 2:
        raise ValueError(
            "a league needs two who hear only right or wrong and are not tuned in hindsight; name more with --learners"
        )
    bundled = [name for name in known_names() if name not in data] if field.bundled else []
    if not bundled and not data:
        raise ValueError("there is nothing to play: name data sets, or leave out --no-bundled")
    # Cached: a learner is built, and begins, to be entered.
    field_for = cache(lambda rounds: (*every_learner(rounds, diagonal=field.diagonal)[0], *rivals))
    league = Comparison(
        tuple(find_sources([*bundled, *data], reading)),
        tuple(entries),
        runs=runs,
        field_for=None if named else field_for,
        seconds_per_game=field.seconds_per_game,
        **games.settings,
    )
    return league, absent


def _write_tables(
    folder: Path, found: Standings, outcomes: Sequence[Outcome], unfinished: Sequence[tuple[str, str, str]]
) -> None:
    """Write tables as CSV: the same bytes whenever the same is played."""
    lines: list[tuple[object, ...]] = []
    for row in found.everyone:
        firsts, *counts = (row.firsts, row.wins, row.ties, row.losses) if row.number else [""] * 4
        place = row.number or "", row.title, row.mean_rank, row.mean_rank_of_common, firsts, row.relative
        lines.append((*place, *counts, row.explored, row.finished, len(found.datasets)))
    columns = ["place", "learner", "mean_rank", "mean_rank_of_common_sets", "first_on", "relative_mistakes"]
    columns += ["wins", "ties", "losses", "explored", "finished", "sets"]
    write_csv(folder / "standings.csv", columns, lines)
    lines = []
    for each in outcomes:
        rank = found.ranks.get((each.dataset, each.entry.title))
        game = each.dataset, int(each.rounds[-1]), len(each.final), each.entry.title
        lines.append((*game, each.mean, each.standard_error, rank, each.exploration))
    columns = ["dataset", "rounds", "runs", "learner", "mean", "standard_error", "rank", "explored"]
    write_csv(folder / "results.csv", columns, lines)
    lines = [(*names, pair.wins, pair.ties, pair.losses, pair.ratio, pair.p) for names, pair in found.pairs.items()]
    write_csv(folder / "pairs.csv", ("learner", "against", "wins", "ties", "losses", "ratio", "p_across"), lines)
    tests: dict[str, object] = {"sets": len(found.datasets), "learners_ranked": len(found.ranked)}
    if (test := found.friedman) is not None:
        tests |= {
            "friedman_permutation_p": test,
            "level": LEVEL,
            "nemenyi_critical_difference": found.critical_difference,
        }
    tests |= {"runs": found.n_runs, "sign_tests_on_sets": found.n_tests}
    tests |= {"runs_to_decide_one": found.runs_to_decide} if found.n_tests else {}
    write_csv(folder / "tests.csv", ("quantity", "value"), list(tests.items()))
    write_csv(folder / "unfinished.csv", ("dataset", "learner", "reason"), unfinished)


def _standings_table(found: Standings) -> Table:
    columns = ("", "learner", "mean rank", "of common", "first", "mistakes / best", "w/t/l", "explored", "µs/round")
    rows: list[list[str | Cell]] = []
    for row in found.everyone:
        mean, common = fixed(row.mean_rank, ".2f"), fixed(row.mean_rank_of_common, ".2f")
        # Where all have finished all sets the second would be redundant.
        ranks = mean, "" if common == mean else common
        firsts, counts = (str(row.firsts), f"{row.wins}/{row.ties}/{row.losses}") if row.number else ("", "")
        costs = _percent(row.explored), grouped(row.microseconds, 1), f"{row.finished} of {len(found.datasets)}"
        rows.append([str(row.number or ""), row.entry.shown, *ranks, firsts, f"{row.relative:.2f}", counts, *costs])
    table = Table((*columns, "finished"), rows, "", (), ("number", "name", *["number"] * 8), [len(found.ranked)])
    shown = [heading for heading, _, _ in table.filled()]
    return replace(table, notes=[f"{name}: {_LEGEND[name]}" for name in shown if name in _LEGEND])


def _percent(share: float) -> str:
    """Return a share as a percentage; empty for NaN."""
    return fixed(share, ".1%") if math.isnan(share) or share >= 0.001 else f"{100 * share:.1g}%"


def _verdict_in_words(found: Standings) -> str:
    """Return the results of Friedman's test and the critical difference in words."""
    needed, few = found.runs_to_decide, ""
    if found.n_tests and found.n_runs < needed:
        few = (
            f" On single sets no pair can be told apart: {found.n_runs} runs are too few for {grouped(found.n_tests)} "
            f"tests, which take {needed} (--runs {needed}). Wins and losses are sets that only one of two has finished."
        )
    test = found.friedman
    if test is None:
        return f"There is no test over the sets: it takes two learners and two sets.{few}"
    size = f"{len(found.datasets)} sets and {len(found.ranked)} learners"
    text = f"Friedman's test over {size}: p = {test:.2g}, by permutations."
    if test >= LEVEL:
        return f"{text} The mean ranks do not tell these learners apart.{few}"
    difference = f"{found.critical_difference:.2f}"
    return f"{text} Mean ranks that are at least {difference} apart differ (Nemenyi, {LEVEL:g}).{few}"


def _write_report(
    folder: Path,
    found: Standings,
    outcomes: Sequence[Outcome],
    unfinished: Sequence[tuple[str, str, str]],
    facts: Mapping[str, str],
    is_drawn: bool,
) -> None:
    drawn: list[Drawing] = []
    if is_drawn:
        from onebit.experiments.figures import league_drawings

        drawn = league_drawings(found)
    rows = [(title, dataset or "every set", reason) for dataset, title, reason in unfinished]
    reasons = Table(("learner", "set", "reason"), rows, styles=("name", "", "remark"))
    sections: Sections = {
        "": _intro(found),
        "Standings": [_verdict_in_words(found), _standings_table(found), *drawn],
        "Not finished": [_UNFINISHED, reasons] if rows else [],
        "Every set": [_RATES, _rates(found, outcomes)],
    }
    write_page(folder, "The league", sections, facts)


def _intro(found: Standings) -> list[str]:
    """Return what was played, and which entries had an advantage."""
    return [_INTRO, _HINDSIGHT] if any(row.entry.hindsight for row in found.unranked) else [_INTRO]


def _rates(found: Standings, outcomes: Sequence[Outcome]) -> Table:
    rates = {(each.dataset, each.entry.title): f"{each.mean / each.rounds[-1]:.1%}" for each in outcomes}

    def cell(dataset: str, title: str) -> Cell:
        rank = found.ranks.get((dataset, title))
        return Cell(rates.get((dataset, title), "not finished"), small="" if rank is None else f"({rank:g})")

    rows = [[Cell(row.title), *(cell(name, row.title) for name in found.datasets)] for row in found.everyone]
    return Table(("learner", *found.datasets), rows)
