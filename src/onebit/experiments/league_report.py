"""The report of a league: CSV files, the standings on the screen, a page for the whole and one for every learner."""

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from onebit.experiments.compare import write_outcomes
from onebit.experiments.comparison import Failure, Outcome
from onebit.experiments.entries import Entry
from onebit.experiments.players import LearnerPlayer, build, player_from
from onebit.experiments.statistics import LEVEL, Standing, Standings, Tally, signs_to_decide
from onebit.reporting.console import on_screen, print_table
from onebit.reporting.pages import Block, FigureFile, Link, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, number, with_error, write_csv

STANDING_COLUMNS = (
    *("place", "learner", "mean_rank", "mean_rank_of_common_sets", "first_on", "relative_mistakes"),
    *("wins", "ties", "losses", "explored", "finished", "sets"),
)
RESULT_COLUMNS = ("dataset", "rounds", "runs", "learner", "mean", "standard_error", "rank", "explored")
_INTRO = (
    "Every learner on every set, each with its own default settings. Each round a learner is shown a row, names its "
    "label and hears only whether it was right. All play the same rows in the same order."
)
_HINDSIGHT = (
    "“Best setting” and “best per run” are rivals whose settings were chosen in hindsight, set by set, by these very "
    "games: the most that tuning could bring. Nobody could play so: they stand below the table, unranked."
)
_RATES = "Mistakes in per cent of the rounds, and the rank on the set; those who are not ranked have none."
_LEGEND = {
    "mean rank": "of the mean mistakes, over the sets; who did not finish a set shares its last ranks",
    "of common": "mean rank over the sets that all have finished",
    "first": "sets on which nobody made fewer mistakes",
    "mistakes / best": "over those of the best on each set, geometric mean over the sets it finished",
    "w/t/l": "wins, ties, losses against everyone on every set; exact sign test over the runs, Holm-corrected over "
    f"all, level {LEVEL:g}: of other shuffles of the same rows, not of new data",
}


@dataclass(frozen=True)
class Results:
    """All that the report shows."""

    standings: Standings
    outcomes: Sequence[Outcome]
    failures: Sequence[Failure]
    absent: Mapping[str, str]
    """Learners that could not be entered at all, and why."""


def write_tables(folder: Path, results: Results, first_seed: int) -> None:
    """Write every table as CSV; all but timing.csv have the same bytes whenever the same is played."""
    standings = results.standings
    lines: list[tuple[object, ...]] = [_standing_line(row, len(standings.datasets)) for row in standings.everyone]
    write_csv(folder / "standings.csv", STANDING_COLUMNS, lines)
    lines = [
        (
            *(outcome.dataset, int(outcome.rounds[-1]), len(outcome.final), outcome.entry.title),
            *map(number, (outcome.mean, outcome.standard_error)),
            number(standings.ranks.get((outcome.dataset, outcome.entry.title))),
            number(outcome.exploration),
        )
        for outcome in results.outcomes
    ]
    write_csv(folder / "results.csv", RESULT_COLUMNS, lines)
    pairs = [
        (first, second, pair.wins, pair.ties, pair.losses, number(pair.ratio), number(pair.p))
        for (first, second), pair in standings.pairs.items()
    ]
    write_csv(folder / "pairs.csv", ("learner", "against", "wins", "ties", "losses", "ratio", "p_across"), pairs)
    write_csv(folder / "tests.csv", ("quantity", "value"), _test_lines(standings))
    unfinished = [(failure.dataset, failure.entry.title, failure.reason) for failure in results.failures]
    unfinished += [("", title, reason) for title, reason in results.absent.items()]
    write_csv(folder / "unfinished.csv", ("dataset", "learner", "reason"), unfinished)
    write_outcomes(folder, results.outcomes, first_seed)


def _standing_line(row: Standing, n_sets: int) -> tuple[object, ...]:
    counts = (row.firsts, row.wins, row.ties, row.losses) if row.number else [""] * 4
    return (
        *(row.number or "", row.title, number(row.mean_rank), number(row.mean_rank_of_common)),
        *(counts[0], number(row.relative), *counts[1:]),
        *(number(row.explored), row.finished, n_sets),
    )


def _test_lines(standings: Standings) -> list[tuple[str, object]]:
    test = standings.friedman
    lines: list[tuple[str, object]] = [("sets", len(standings.datasets)), ("learners_ranked", len(standings.ranked))]
    if test is not None:
        lines += [("friedman_chi2", number(test.chi2)), ("friedman_chi2_p", number(test.p_chi2))]
        lines += [("iman_davenport_f", number(test.f)), ("iman_davenport_p", number(test.p_f))]
        lines += [("friedman_permutation_p", number(test.p)), ("level", number(LEVEL))]
        lines += [("nemenyi_critical_difference", number(standings.critical_difference))]
    lines += [("runs", standings.n_runs), ("sign_tests_on_sets", standings.n_tests)]
    lines += [("runs_to_decide_one", standings.runs_to_decide)] if standings.n_tests else []
    return lines


def standings_table(standings: Standings, links: Mapping[str, str]) -> Table:
    """Return the standings; links lead to the learners' pages, by title."""
    columns = ("", "learner", "mean rank", "of common", *("first", "mistakes / best", "w/t/l"), "explored", "µs/round")
    rows: list[list[str | Cell]] = []
    for row in standings.everyone:
        is_ranked = row.number is not None
        mean, common = fixed(row.mean_rank, ".2f"), fixed(row.mean_rank_of_common, ".2f")
        rows.append(
            [
                str(row.number or ""),
                Cell(row.entry.shown, link=links.get(row.title, "")),
                mean,
                # Where all have finished all sets it would be redundant.
                "" if common == mean else common,
                str(row.firsts) if is_ranked else "",
                f"{row.relative:.2f}",
                f"{row.wins}/{row.ties}/{row.losses}" if is_ranked else "",
                percent(row.explored),
                "" if math.isnan(row.microseconds) else grouped(row.microseconds, 1),
                f"{row.finished} of {len(standings.datasets)}",
            ]
        )
    table = Table((*columns, "finished"), rows, "", (), ("number", "name", *["number"] * 8), [len(standings.ranked)])
    shown = [heading for heading, _, _ in table.filled()]
    return replace(table, notes=[f"{name}: {_LEGEND[name]}" for name in shown if name in _LEGEND])


def percent(share: float) -> str:
    """Return a share as a percentage; empty for NaN.

    >>> percent(0.0512), percent(0.0), percent(0.0004), percent(math.nan)
    ('5.1%', '0%', '0.04%', '')
    """
    return fixed(share, ".1%") if math.isnan(share) or share >= 0.001 else f"{100 * share:.1g}%"


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


def print_results(console: Console, results: Results) -> None:
    """Print the standings, the tests, and the games that were not finished."""
    print_table(console, replace(standings_table(results.standings, {}), title="Standings"))
    console.print(on_screen(verdict_in_words(results.standings)), highlight=False)
    lines = [f"{entry.title} did not finish {dataset}: {reason}" for dataset, entry, reason in results.failures]
    lines += [f"{title} does not play: {reason}" for title, reason in results.absent.items()]
    for line in lines:
        console.print(on_screen(line), highlight=False, soft_wrap=True)


def write_pages(folder: Path, results: Results, details: Mapping[str, str], is_drawn: bool = True) -> None:
    """Write ``report.html``, and a page for every learner in ``learners/``, with figures if they are to be drawn."""
    standings = results.standings
    names = page_names([row.title for row in standings.everyone])
    of_learner, drawn = _draw(folder / "figures", results, names) if is_drawn else ({}, [])
    (folder / "learners").mkdir(parents=True, exist_ok=True)
    for row in standings.everyone:
        is_paired = row.number is not None and len(standings.ranked) > 1
        blocks: list[Block] = [
            Link("The whole league", "../report.html"),
            *_about(row, standings),
            *section("Against the others", *(_pairs_of(row, standings, names) if is_paired else ())),
            *section("Set by set", _sets_of(row, results)),
            *of_learner.get(row.title, ()),
        ]
        write_page(folder / "learners" / f"{names[row.title]}.html", row.entry.shown, blocks)
    links = {title: f"learners/{name}.html" for title, name in names.items()}

    def figure(name: str) -> list[Block]:
        return [each for each in drawn if each.name == name]

    whole: list[Block] = [
        *intro(results),
        *section("Standings", verdict_in_words(standings), standings_table(standings, links)),
        *figure("critical_difference"),
        *section("Not finished", *_unfinished(results)),
        *section("Exploration and time", *figure("exploration"), *figure("time")),
        *section("Every set", _RATES, _rates(results, links), *figure("ranks")),
        *section("Pairs", *(_pairs(standings, links) if standings.pairs else ()), *figure("pairs")),
        *what_was_run(details),
    ]
    write_page(folder / "report.html", "The league", whole)


def _draw(
    folder: Path, results: Results, names: Mapping[str, str]
) -> tuple[dict[str, list[FigureFile]], list[FigureFile]]:
    """Draw the figures of every learner, and those of all."""
    from onebit.experiments.league_figures import drawings, learner_drawings
    from onebit.reporting.figures import draw_files

    of_learner = {
        row.title: draw_files(learner_drawings(row, names[row.title], results.outcomes), folder / "learners")
        for row in results.standings.everyone
    }
    return of_learner, draw_files(drawings(results.standings), folder)


def page_names(titles: Sequence[str]) -> dict[str, str]:
    """Return a file's name for every title: letters, digits and dashes, no two the same.

    >>> list(page_names(["BanditSVM", "VW --epsilon 0.05", "VW -epsilon 0.05", "…"]).values())
    ['banditsvm', 'vw-epsilon-0-05', 'vw-epsilon-0-05-2', 'learner']
    """
    names: dict[str, str] = {}
    for title in titles:
        # Short enough for any file system.
        plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "learner"
        numbered = (plain, *(f"{plain}-{tries}" for tries in range(2, len(titles) + 1)))
        names[title] = next(name for name in numbered if name not in names.values())
    return names


def intro(results: Results) -> list[str]:
    """Return what was played, and which entries had an advantage."""
    chosen = any(row.entry.hindsight for row in results.standings.unranked)
    return [_INTRO, _HINDSIGHT] if chosen else [_INTRO]


def _unfinished(results: Results) -> list[Block]:
    rows = [[failure.entry.title, failure.dataset, failure.reason] for failure in results.failures]
    rows += [[title, "every set", reason] for title, reason in results.absent.items()]
    if not rows:
        return []
    text = (
        "A learner that did not finish a set shares its last ranks, and loses there to all that did. One that finished "
        "none is not ranked."
    )
    return [text, Table(("learner", "set", "reason"), rows, styles=("name", "", "remark"))]


def _rates(results: Results, links: Mapping[str, str]) -> Table:
    standings = results.standings
    rates = {
        (outcome.dataset, outcome.entry.title): f"{outcome.mean / outcome.rounds[-1]:.1%}"
        for outcome in results.outcomes
    }

    def cell(dataset: str, title: str) -> Cell:
        rank = standings.ranks.get((dataset, title))
        return Cell(rates.get((dataset, title), "not finished"), small="" if rank is None else f"({rank:g})")

    rows = [
        [Cell(row.title, link=links[row.title]), *(cell(name, row.title) for name in standings.datasets)]
        for row in standings.everyone
    ]
    return Table(("learner", *standings.datasets), rows)


def _pairs(standings: Standings, links: Mapping[str, str]) -> list[Block]:
    text = (
        "Wins, ties and losses of the learner of the row against that of the column, over the sets. Columns are "
        "numbered as the rows are. A learner's own page has the test across the sets."
    )
    rows = [
        [
            Cell(f"{row.number} {row.title}", link=links[row.title]),
            *(_counts(standings.pairs.get((row.title, other.title))) for other in standings.ranked),
        ]
        for row in standings.ranked
    ]
    return [text, Table(("learner", *(str(row.number) for row in standings.ranked)), rows)]


def _counts(pair: Tally | None) -> Cell:
    return Cell("") if pair is None else Cell(f"{pair.wins}/{pair.ties}/{pair.losses}", _kind(pair))


def _kind(pair: Tally) -> str:
    return "good" if pair.wins > pair.losses else "bad" if pair.wins < pair.losses else ""


def _about(row: Standing, standings: Standings) -> list[Block]:
    n_sets, n_ranked, is_ranked = len(standings.datasets), len(standings.ranked), row.number is not None
    place = f"{row.number} of {n_ranked}, mean rank {row.mean_rank:.2f}"
    counts = f"{row.wins}, {row.ties}, {row.losses} against everyone on every set"
    time = f"{grouped(row.microseconds, 1)} µs per round, geometric mean" if row.microseconds > 0 else ""
    facts = {
        "Played as": row.entry.written,
        "Place": place if is_ranked else f"not ranked: {row.entry.advantage}",
        "Finished": f"{row.finished} of {n_sets} sets",
        "First on": f"{row.firsts} of {n_sets} sets" if is_ranked else "",
        "Mistakes": f"{row.relative:.2f} times those of the best on each set, geometric mean",
        "Wins, ties, losses": counts if is_ranked else "",
        "Explored": "" if math.isnan(row.explored) else f"{percent(row.explored)} of its guesses",
        "Time": time,
        "Note": row.entry.note,
    }
    return [what_it_is(row.entry), {name: text for name, text in facts.items() if text}]


def what_it_is(entry: Entry) -> str:
    """Return the first line of the documentation of a learner or rival; nothing if it has none.

    >>> from onebit.experiments.entries import enter
    >>> what_it_is(enter("UniformGuess"))
    'Guesses every label with the same probability and never learns.'
    """
    player = player_from(entry.spec)
    thing = build(entry.spec) if isinstance(player, LearnerPlayer) else player
    return (inspect.getdoc(type(thing)) or "").partition("\n\n")[0].replace("\n", " ").replace("`", "")


def _pairs_of(row: Standing, standings: Standings, names: Mapping[str, str]) -> list[Block]:
    text = (
        "Sets won, tied and lost against each; the geometric mean of the ratios of mistakes over the sets that both "
        "finished; Wilcoxon's signed-rank test across the sets, Holm-corrected over all pairs of the league."
    )
    n_pairs, n_sets = len(standings.pairs) // 2, len(standings.datasets)
    needed = signs_to_decide(n_pairs)
    if n_sets < needed:
        text += f" {n_sets} sets are too few for it: to tell one of {n_pairs} pairs apart takes {needed}."
    rows: list[list[str | Cell]] = []
    for other in standings.ranked:
        if other is not row:
            pair = standings.pairs[row.title, other.title]
            link = Cell(f"{other.number} {other.title}", link=f"{names[other.title]}.html")
            ratio = Cell(fixed(pair.ratio, ".2f"), _kind(pair))
            rows.append([link, str(pair.wins), str(pair.ties), str(pair.losses), ratio, fixed(pair.p, ".2g")])
    return [text, Table(("against", "wins", "ties", "losses", "mistakes / theirs", "p across"), rows)]


def _sets_of(row: Standing, results: Results) -> Table:
    standings = results.standings
    mine = {outcome.dataset: outcome for outcome in results.outcomes if outcome.entry.title == row.title}
    reasons = {failure.dataset: failure.reason for failure in results.failures if failure.entry.title == row.title}
    rows: list[list[str]] = []
    for name in standings.datasets:
        rank, outcome = fixed(standings.ranks.get((name, row.title)), "g"), mine.get(name)
        if outcome is None:
            remark = f"not finished: {reasons.get(name, 'no setting of it could')}"
            rows.append([name, "", "", "", rank, "", "", "", remark])
            continue
        ranked = [each.mean for each in results.outcomes if each.dataset == name and each.entry.is_ranked]
        time = outcome.microseconds_per_round
        rows.append(
            [
                *(name, grouped(outcome.rounds[-1]), with_error(outcome.mean, outcome.standard_error)),
                *(f"{outcome.mean / outcome.rounds[-1]:.1%}", rank),
                f"{(outcome.mean + 0.5) / (min(ranked, default=math.nan) + 0.5):.2f}",
                *(percent(outcome.exploration), "" if math.isnan(time) else grouped(time, 1), outcome.remark),
            ]
        )
    columns = ("set", "rounds", "mistakes", "rate", "rank", "/ best", "explored", "µs per round", "remark")
    return Table(columns, rows, styles=("name", *["number"] * 7, ""))
