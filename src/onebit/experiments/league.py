"""The league: every learner on all data that comes with onebit, and on the user's own; its tables and pages.

A game that would take too long is not begun. This is decided by a learner's `effort`, not by the clock, so that the
same games are played on every machine.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from rich.console import Console

from onebit.experiments.compare import write_outcomes
from onebit.experiments.comparison import Comparison, Failure, Outcome, run_comparison, settle_in_hindsight
from onebit.experiments.entries import Entry, enter
from onebit.experiments.grid import Spec
from onebit.experiments.players import LearnerPlayer, build, player_from
from onebit.experiments.run import Executor, OnProgress
from onebit.experiments.statistics import LEVEL, Standing, Standings, Tally, signs_to_decide
from onebit.inputs import check_integer, check_number
from onebit.learners import all_learners
from onebit.reporting.console import on_screen, print_table
from onebit.reporting.pages import Block, FigureFile, Link, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, number, with_error, write_csv
from onebit.streams.reading import PLAIN, Reading
from onebit.streams.sources import Source, find_sources, has_several_right, known_names

RUNS = 20  # enough for a significant difference among 26 000 pairs on single sets, after the correction for all of them
SECONDS = 600.0  # the limit of a game, in seconds of 10⁹ numbers each
_NUMBERS_PER_SECOND = 1e9  # what one core does, roughly: products of a few million numbers, from memory

_STANDING_COLUMNS = (
    *("place", "learner", "mean_rank", "mean_rank_of_common_sets", "first_on", "relative_mistakes"),
    *("wins", "ties", "losses", "explored", "finished", "sets"),
)
_RESULT_COLUMNS = ("dataset", "rounds", "runs", "learner", "mean", "standard_error", "rank", "explored")
_INTRO = (
    "Every learner on every set, each with its own default settings. Each round a learner is shown a row, names its "
    "label and learns only whether it was right. All play the same rows in the same order."
)
_HINDSIGHT = (
    "“Best setting” and “best per run” are rivals whose settings were chosen in hindsight, set by set, by these very "
    "games: the most that tuning could bring. No learner could play so: they stand below the table, unranked."
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

Field = Callable[[int], Sequence[Entry]]
"""The entries for a game of so many rounds: always the same titles, in the same order."""


@dataclass(frozen=True)
class League(Comparison):
    """A comparison in which a learner may be entered differently on every source, and may be left out of one."""

    field: Field | None = None  # the entries; the same everywhere by default
    seconds_per_game: float = SECONDS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("runs", self.runs, low=2)  # one run has no spread to test a difference by
        check_number("seconds_per_game", self.seconds_per_game, above=0.0)

    def entries_on(self, source: Source) -> tuple[Entry, ...]:
        """Return the entries that play a source: all but those of `left_out`."""
        return tuple(entry for entry, reason in self._with_reasons(source) if not reason)

    def left_out(self) -> list[Failure]:
        """Return which entries do not play which source: they would take too long, or are for longer games."""
        listed = ((source, self._with_reasons(source)) for source in self.sources)
        return [Failure(source.name, entry, reason) for source, all_of in listed for entry, reason in all_of if reason]

    def _with_reasons(self, source: Source) -> list[tuple[Entry, str]]:
        facts = self.facts[source]
        size = {"rounds": facts.rounds, "n_features": facts.n_features, "n_classes": facts.n_classes}
        entries = self.entries if self.field is None else self.field(facts.rounds)
        titles = {entry.title for entry in entries}
        too_short = f"it cannot be entered for a game of {grouped(facts.rounds)} rounds"
        players = [(entry, player_from(entry.spec)) for entry in entries]
        one_right = "several labels may be right in a round, and it needs the right one"
        is_for_all = not has_several_right(source)
        return [
            *(
                (
                    entry,
                    self._too_long(player.effort(**size)) if is_for_all or player.takes_several_right else one_right,
                )
                for entry, player in players
            ),
            *((entry, too_short) for entry in self.entries if entry.title not in titles),
        ]

    def _too_long(self, effort: float) -> str:
        seconds = effort / _NUMBERS_PER_SECOND
        if seconds <= self.seconds_per_game:
            return ""
        return (
            f"too long: {in_seconds(seconds)} at 10⁹ numbers a second, where a game may take "
            f"{in_seconds(self.seconds_per_game)} (--seconds-per-game)"
        )


def in_seconds(seconds: float) -> str:
    """Return seconds as readable text, also below one."""
    return f"{grouped(seconds)} s" if seconds >= 10 else f"{seconds:.2g} s"


def play_league(
    league: League,
    folder: Path,
    *,
    jobs: int | None = None,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
) -> tuple[list[Outcome], list[Failure]]:
    """Play what is not stored yet, as `run_comparison` does; return outcomes, and games that failed or were not begun.

    Tuned families are chosen in hindsight.
    """
    failures = league.left_out()
    outcomes = run_comparison(
        league, folder, jobs=jobs, on_progress=on_progress, executor=executor, on_failure=failures.append
    )
    for source in league.sources:
        # A set without ranked entries has no standings.
        if not any(outcome.dataset == source.name and outcome.entry.is_ranked for outcome in outcomes):
            hopeless = [failure for failure in failures if failure.dataset == source.name and failure.entry.is_ranked]
            reason = f"; {hopeless[0].entry.title} failed with: {hopeless[0].reason}" if hopeless else ""
            raise ValueError(f"{source.name}: no ranked learner could play it{reason}")
    return settle_in_hindsight(outcomes), failures


def every_learner(rounds: int, *, diagonal: bool = False) -> tuple[list[Entry], dict[str, str]]:
    """Return the entries of every class of `onebit.learners` for so many rounds, and the reasons of those left out."""
    entries: list[Entry] = []
    absent: dict[str, str] = {}
    for cls in all_learners():
        try:
            contenders = cls.contenders(rounds)
            entries += [enter(learner, f"{cls.__name__} {form}".strip()) for form, learner in contenders.items()]
            if not contenders:
                absent[cls.__name__] = "needs settings that cannot be chosen for it"
        except (ValueError, TypeError) as error:
            absent[cls.__name__] = str(error)
    return with_diagonals(entries) if diagonal else entries, absent


def with_diagonals(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries, each that keeps whole matrices followed by its diagonal form, if that does not play already."""
    specs = {entry.spec for entry in entries}
    found: list[Entry] = []
    for entry in entries:
        found.append(entry)
        if entry.spec.settings.get("diagonal") is False:
            spec = Spec(entry.spec.name, {**entry.spec.settings, "diagonal": True})
            form = enter(player_from(spec), f"{entry.title} diagonal")
            found += [] if form.spec in specs else [form]
    return found


def whole_field(*more: Entry, diagonal: bool = False) -> Field:
    """Return the field of every learner and of those named, for `League`."""

    @cache  # a learner is built, and begins, to be entered
    def field(rounds: int) -> tuple[Entry, ...]:
        return (*every_learner(rounds, diagonal=diagonal)[0], *more)

    return field


def league_sources(given: Sequence[str], reading: Reading = PLAIN, *, bundled: bool = True) -> list[Source]:
    """Return the sources that are named and, unless those are enough, all that come with onebit and scikit-learn."""
    ours = [name for name in known_names() if name not in given] if bundled else []
    if not ours and not given:
        raise ValueError("there is nothing to play: name data sets, or leave out --no-bundled")
    return find_sources([*ours, *given], reading)


# The report.


@dataclass(frozen=True)
class Results:
    """All that the report shows."""

    standings: Standings
    outcomes: Sequence[Outcome]
    failures: Sequence[Failure]
    absent: Mapping[str, str]  # learners that could not be entered at all, and why


def write_tables(folder: Path, results: Results, first_seed: int) -> None:
    """Write every table as CSV; all but timing.csv have the same bytes whenever the same is played."""
    standings = results.standings
    n_sets, pairs = len(standings.datasets), standings.pairs.items()
    write_csv(folder / "standings.csv", _STANDING_COLUMNS, [_standing_line(row, n_sets) for row in standings.everyone])
    lines = [
        (
            *(outcome.dataset, int(outcome.rounds[-1]), len(outcome.final), outcome.entry.title),
            *map(number, (outcome.mean, outcome.standard_error)),
            number(standings.ranks.get((outcome.dataset, outcome.entry.title))),
            number(outcome.exploration),
        )
        for outcome in results.outcomes
    ]
    write_csv(folder / "results.csv", _RESULT_COLUMNS, lines)
    listed = [(*names, each.wins, each.ties, each.losses, number(each.ratio), number(each.p)) for names, each in pairs]
    write_csv(folder / "pairs.csv", ("learner", "against", "wins", "ties", "losses", "ratio", "p_across"), listed)
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
        values = {
            "friedman_chi2": test.chi2,
            "friedman_chi2_p": test.p_chi2,
            "iman_davenport_f": test.f,
            "iman_davenport_p": test.p_f,
            "friedman_permutation_p": test.p,
            "level": LEVEL,
            "nemenyi_critical_difference": standings.critical_difference,
        }
        lines += [(name, number(value)) for name, value in values.items()]
    lines += [("runs", standings.n_runs), ("sign_tests_on_sets", standings.n_tests)]
    return lines + ([("runs_to_decide_one", standings.runs_to_decide)] if standings.n_tests else [])


def _standings_table(standings: Standings, links: Mapping[str, str]) -> Table:
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
                grouped(row.microseconds, 1),
                f"{row.finished} of {len(standings.datasets)}",
            ]
        )
    table = Table((*columns, "finished"), rows, "", (), ("number", "name", *["number"] * 8), [len(standings.ranked)])
    shown = [heading for heading, _, _ in table.filled()]
    return replace(table, notes=[f"{name}: {_LEGEND[name]}" for name in shown if name in _LEGEND])


def percent(share: float) -> str:
    """Return a share as a percentage; empty for NaN."""
    return fixed(share, ".1%") if math.isnan(share) or share >= 0.001 else f"{100 * share:.1g}%"


def verdict_in_words(standings: Standings) -> str:
    """Return the results of Friedman's test and the critical difference in words."""
    n_runs, needed, few = standings.n_runs, standings.runs_to_decide, ""
    if standings.n_tests and n_runs < needed:
        few = (
            f" On single sets no pair can be told apart: {n_runs} runs are too few for {grouped(standings.n_tests)} "
            f"tests, which take {needed} (--runs {needed}). Wins and losses are sets that only one of two has finished."
        )
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


def print_results(console: Console, results: Results) -> None:
    """Print the standings, the tests, and the games that were not finished."""
    print_table(console, replace(_standings_table(results.standings, {}), title="Standings"))
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
        *section("Standings", verdict_in_words(standings), _standings_table(standings, links)),
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
    """Return a file's name for every title: letters, digits and dashes, no two the same."""
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
    counts = f"{row.wins}, {row.ties}, {row.losses} against all others on every set"
    facts = {
        "Played as": row.entry.written,
        "Place": place if is_ranked else f"not ranked: {row.entry.advantage}",
        "Finished": f"{row.finished} of {n_sets} sets",
        "First on": f"{row.firsts} of {n_sets} sets" if is_ranked else "",
        "Mistakes": f"{row.relative:.2f} times those of the best on each set, geometric mean",
        "Wins, ties, losses": counts if is_ranked else "",
        "Explored": "" if math.isnan(row.explored) else f"{percent(row.explored)} of its guesses",
        "Time": f"{grouped(row.microseconds, 1)} µs per round, geometric mean" if row.microseconds > 0 else "",
        "Note": row.entry.note,
    }
    return [what_it_is(row.entry), {name: text for name, text in facts.items() if text}]


def what_it_is(entry: Entry) -> str:
    """Return the first line of the documentation of a learner or rival; nothing if it has none."""
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
        rows.append(
            [
                *(name, grouped(outcome.rounds[-1]), with_error(outcome.mean, outcome.standard_error)),
                *(f"{outcome.mean / outcome.rounds[-1]:.1%}", rank),
                f"{(outcome.mean + 0.5) / (min(ranked, default=math.nan) + 0.5):.2f}",
                *(percent(outcome.exploration), grouped(outcome.microseconds_per_round, 1), outcome.remark),
            ]
        )
    columns = ("set", "rounds", "mistakes", "rate", "rank", "/ best", "explored", "µs per round", "remark")
    return Table(columns, rows, styles=("name", *["number"] * 7, ""))
