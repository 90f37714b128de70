"""The tables of a league: files for programs, and the standings on the screen."""

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from onebit.experiments.compare_tables import write_outcomes
from onebit.experiments.comparison import Failure, Outcome
from onebit.experiments.league import Absence
from onebit.experiments.standings import Standing, Standings
from onebit.experiments.statistics import LEVEL
from onebit.reporting.names import in_cell, on_screen
from onebit.reporting.tables import filled, grouped, number, write_csv

STANDING_COLUMNS = (
    "place",
    "learner",
    "mean_rank",
    "mean_rank_of_common_sets",
    "first_on",
    "relative_mistakes",
    "wins",
    "ties",
    "losses",
    "explored",
    "finished",
    "sets",
)
RESULT_COLUMNS = ("dataset", "rounds", "runs", "learner", "mean", "standard_error", "rank", "explored")
PAIR_COLUMNS = ("learner", "against", "wins", "ties", "losses", "ratio", "p_across")
TEST_COLUMNS = ("quantity", "value")
UNFINISHED_COLUMNS = ("dataset", "learner", "reason")
SHOWN = (
    "",
    "learner",
    "mean rank",
    "of common",
    "first",
    "mistakes / best",
    "w/t/l",
    "explored",
    "µs/round",
    "finished",
)
"""The columns of a standing, on the screen and on the page."""


def write_tables(
    folder: Path,
    standings: Standings,
    outcomes: Sequence[Outcome],
    failures: Sequence[Failure],
    absent: Sequence[Absence],
    first_seed: int,
) -> None:
    """Write every table as CSV; all but timing.csv have the same bytes whenever the same is played.

    Parameters
    ----------
    folder : Path
        Where to.
    standings, outcomes, failures, absent
        What came out.
    first_seed : int
        Run r has the seed first_seed + r.
    """
    everyone = (*standings.ranked, *standings.unranked)
    n_sets = len(standings.datasets)
    write_csv(folder / "standings.csv", STANDING_COLUMNS, [_standing_line(row, n_sets) for row in everyone])
    write_csv(folder / "results.csv", RESULT_COLUMNS, [_result_line(outcome, standings) for outcome in outcomes])
    pairs = [
        (first, second, pair.wins, pair.ties, pair.losses, number(pair.ratio), number(pair.p))
        for (first, second), pair in standings.pairs.items()
    ]
    write_csv(folder / "pairs.csv", PAIR_COLUMNS, pairs)
    write_csv(folder / "tests.csv", TEST_COLUMNS, _test_lines(standings))
    unfinished = [(failure.dataset, failure.entry.title, failure.reason) for failure in failures]
    unfinished += [("", title, reason) for title, reason in absent]
    write_csv(folder / "unfinished.csv", UNFINISHED_COLUMNS, unfinished)
    write_outcomes(folder, outcomes, first_seed)


def _standing_line(row: Standing, n_sets: int) -> tuple[object, ...]:
    return (
        row.number or "",
        row.title,
        number(row.mean_rank),
        number(row.mean_rank_of_common),
        *((row.firsts,) if row.number else ("",)),
        number(row.relative),
        *((row.wins, row.ties, row.losses) if row.number else ("", "", "")),
        number(row.explored),
        row.finished,
        n_sets,
    )


def _result_line(outcome: Outcome, standings: Standings) -> tuple[object, ...]:
    return (
        outcome.dataset,
        int(outcome.rounds[-1]),
        len(outcome.final),
        outcome.entry.title,
        number(outcome.mean),
        number(outcome.standard_error),
        number(standings.ranks.get((outcome.dataset, outcome.entry.title))),
        number(outcome.exploration),
    )


def _test_lines(standings: Standings) -> list[tuple[object, ...]]:
    lines: list[tuple[object, ...]] = [("sets", len(standings.datasets)), ("learners_ranked", len(standings.ranked))]
    test = standings.friedman
    if test is not None:
        lines += [("friedman_chi2", number(test.chi2)), ("friedman_chi2_p", number(test.p_chi2))]
        lines += [("iman_davenport_f", number(test.f)), ("iman_davenport_p", number(test.p_f))]
        lines += [("friedman_permutation_p", number(test.p)), ("level", number(LEVEL))]
        lines += [("nemenyi_critical_difference", number(standings.critical_difference))]
    lines += [("runs", standings.n_runs), ("sign_tests_on_sets", standings.n_tests)]
    lines += [("runs_to_decide_one", standings.runs_to_decide)] if standings.n_tests else []
    return lines


def shown_standing(row: Standing, n_sets: int) -> list[str]:
    """Return the cells of a standing: one text for each of `SHOWN`."""
    common = "" if math.isnan(row.mean_rank_of_common) else f"{row.mean_rank_of_common:.2f}"
    return [
        "" if row.number is None else str(row.number),
        row.entry.shown,
        "" if row.number is None else f"{row.mean_rank:.2f}",
        # Where all have finished all sets it would be redundant.
        "" if common == f"{row.mean_rank:.2f}" else common,
        "" if row.number is None else str(row.firsts),
        f"{row.relative:.2f}",
        "" if row.number is None else f"{row.wins}/{row.ties}/{row.losses}",
        percent(row.explored),
        "" if math.isnan(row.microseconds) else grouped(row.microseconds, 1),
        f"{row.finished} of {n_sets}",
    ]


def percent(share: float) -> str:
    """Return a share as a percentage; empty for NaN.

    >>> percent(0.0512), percent(0.0), percent(0.0004), percent(math.nan)
    ('5.1%', '0%', '0.04%', '')
    """
    if math.isnan(share):
        return ""
    return f"{share:.1%}" if share >= 0.001 else f"{100 * share:.1g}%"


def verdict_in_words(standings: Standings) -> str:
    """Return the results of Friedman's test and the critical difference in words."""
    few = _too_few_runs(standings)
    test, k, n = standings.friedman, len(standings.ranked), len(standings.datasets)
    if test is None:
        return f"There is no test over the sets: it takes two learners and two sets.{few}"
    text = (
        f"Friedman's test over {n} sets and {k} learners: χ² = {test.chi2:.2f} (p = {test.p_chi2:.2g}), Iman and "
        f"Davenport's F = {test.f:.2f} (p = {test.p_f:.2g}); by permutations p = {test.p:.2g}, which decides."
    )
    if test.p >= LEVEL:
        return f"{text} The mean ranks do not tell these learners apart.{few}"
    difference = f"{standings.critical_difference:.2f}"
    return f"{text} Mean ranks that are at least {difference} apart differ (Nemenyi, {LEVEL:g}).{few}"


def _too_few_runs(standings: Standings) -> str:
    n_runs, needed = standings.n_runs, standings.runs_to_decide
    if not standings.n_tests or n_runs >= needed:
        return ""
    return (
        f" On single sets no pair can be told apart: {n_runs} runs are too few for {grouped(standings.n_tests)} tests, "
        f"which take {needed} (--runs {needed}). Wins and losses are sets that only one of two has finished."
    )


_LEGEND = {
    "mean rank": "of the mean mistakes, over the sets; who did not finish a set shares its last ranks",
    "of common": "mean rank over the sets that all have finished",
    "first": "sets on which nobody made fewer mistakes",
    "mistakes / best": "over those of the best on each set, geometric mean over the sets it finished",
    "w/t/l": "wins, ties, losses against everyone on every set; exact sign test over the runs, Holm-corrected over "
    f"all, level {LEVEL:g}: of other shuffles of the same rows, not of new data",
}


def shown_columns(lines: Sequence[Sequence[str]]) -> tuple[list[int], list[str]]:
    """Return the positions of the columns that are not empty, and their legend."""
    kept = filled(SHOWN, lines)
    return kept, [f"{SHOWN[at]}: {_LEGEND[SHOWN[at]]}" for at in kept if SHOWN[at] in _LEGEND]


def print_tables(
    console: Console, standings: Standings, failures: Sequence[Failure], absent: Sequence[Absence]
) -> None:
    """Print the standings, the tests, and the games that were not finished."""
    n_sets = len(standings.datasets)
    lines = [shown_standing(row, n_sets) for row in (*standings.ranked, *standings.unranked)]
    kept, legend = shown_columns(lines)
    table = Table(title="Standings", caption=Text("\n").join(on_screen(text) for text in legend))
    for at in kept:
        table.add_column(SHOWN[at], **({"overflow": "fold"} if at == 1 else {"justify": "right", "no_wrap": True}))
    for at, line in enumerate(lines):
        if at == len(standings.ranked) and at:
            table.add_section()
        table.add_row(*(in_cell(line[place]) for place in kept))
    console.print(table)
    console.print(on_screen(verdict_in_words(standings)), highlight=False)
    for dataset, entry, reason in failures:
        text = f"{entry.title} did not finish {dataset}: {reason}"
        console.print(on_screen(text), highlight=False, soft_wrap=True)
    for title, reason in absent:
        console.print(on_screen(f"{title} does not play: {reason}"), highlight=False, soft_wrap=True)
