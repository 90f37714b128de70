"""``onebit league``: the standings of all learners, their tables, and a page for each."""

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

from rich.console import Console

from onebit.cli import options
from onebit.cli.compare import play_and_show
from onebit.cli.options import Games, several, typed
from onebit.experiments.comparison import Failure, Outcome, write_outcomes
from onebit.experiments.entries import Entry, enter, rival_entries
from onebit.experiments.league import RUNS, SECONDS, League, every_learner, play_league, with_diagonals
from onebit.experiments.players import LearnerPlayer, build, player_from
from onebit.experiments.statistics import LEVEL, Standing, Standings, Tally, signs_to_decide, standings
from onebit.reporting.console import on_screen, print_table, say_where
from onebit.reporting.pages import Block, Drawing, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, fixed, grouped, number, with_error, write_csv
from onebit.streams.reading import Reading
from onebit.streams.sources import find_sources, known_names

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
_PAIRS = (
    "Wins, ties and losses of the learner of the row against that of the column, over the sets. Columns are numbered "
    "as the rows are. A learner's own page has the test across the sets."
)
_AGAINST = (
    "Sets won, tied and lost against each; the geometric mean of the ratios of mistakes over the sets that both "
    "finished; Wilcoxon's signed-rank test across the sets, Holm-corrected over all pairs of the league."
)
_LEGEND = {
    "mean rank": "of the mean mistakes, over the sets; a learner that did not finish a set shares its last ranks",
    "of common": "mean rank over the sets that all have finished",
    "first": "sets on which no other made fewer mistakes",
    "mistakes / best": "over those of the best on each set, geometric mean over the sets it finished",
    "w/t/l": "wins, ties, losses against all others on every set; exact sign test over the runs, Holm-corrected over "
    f"all, level {LEVEL:g}: of other shuffles of the same rows, not of new data",
}


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
    runs: Annotated[int, "Runs of every learner, each on its own shuffle."] = RUNS,
    reading: Reading,
    workers: options.Workers,
    out: options.Out = Path("results/league"),
) -> None:
    """Rank all learners over all streams and your data; write tables, figures and a page for each."""
    console = Console()
    place = workers.executor(console)
    games = games._replace(learners=tuple(several(games.learners)))
    league, absent = _league(data, field, games, reading, runs)
    (outcomes, failures), details, is_drawn = play_and_show(console, league, place, workers.jobs, out, play_league)
    with console.status("Drawing figures and writing the pages …"):
        results = _Results(standings(outcomes), outcomes, failures, absent)
        _write_tables(out, results)
        write_outcomes(out, outcomes, league.seed)
        details |= {"Command": typed(), "Longest game": league.longest_game}
        _write_pages(out, results, details, is_drawn)
    print_table(console, replace(_standings_table(results.standings, {}), title="Standings"))
    console.print(on_screen(_verdict_in_words(results.standings)), highlight=False)
    lines = [f"{entry.title} did not finish {dataset}: {reason}" for dataset, entry, reason in failures]
    for line in lines + [f"{title} does not play: {reason}" for title, reason in absent.items()]:
        console.print(on_screen(line), highlight=False, soft_wrap=True)
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
    if sum(entry.is_ranked for entry in entries) < 2:
        raise ValueError(
            "a league needs two who hear only right or wrong and are not tuned in hindsight; name more with --learners"
        )
    bundled = [name for name in known_names() if name not in data] if field.bundled else []
    if not bundled and not data:
        raise ValueError("there is nothing to play: name data sets, or leave out --no-bundled")
    league = League(
        tuple(find_sources([*bundled, *data], reading)),
        tuple(entries),
        runs=runs,
        # A learner is built, and begins, to be entered.
        field=None if named else cache(lambda rounds: (*every_learner(rounds, diagonal=field.diagonal)[0], *rivals)),
        seconds_per_game=field.seconds_per_game,
        **games.settings,
    )
    return league, absent


class _Results(NamedTuple):
    """All that the report shows."""

    standings: Standings
    outcomes: Sequence[Outcome]
    failures: Sequence[Failure]
    absent: Mapping[str, str]  # learners that could not be entered at all, and why

    def unfinished(self, every_set: str) -> list[tuple[str, str, str]]:
        """Return learner, set and reason of every game that was not played."""
        rows = [(failure.entry.title, failure.dataset, failure.reason) for failure in self.failures]
        return rows + [(title, every_set, reason) for title, reason in self.absent.items()]


def _write_tables(folder: Path, results: _Results) -> None:
    """Write tables as CSV: the same bytes whenever the same is played."""
    found, test = results.standings, results.standings.friedman
    lines: list[tuple[object, ...]] = []
    for row in found.everyone:
        counts = (row.firsts, row.wins, row.ties, row.losses) if row.number else [""] * 4
        lines.append(
            (
                *(row.number or "", row.title, number(row.mean_rank), number(row.mean_rank_of_common)),
                *(counts[0], number(row.relative), *counts[1:]),
                *(number(row.explored), row.finished, len(found.datasets)),
            )
        )
    columns = ["place", "learner", "mean_rank", "mean_rank_of_common_sets", "first_on", "relative_mistakes"]
    columns += ["wins", "ties", "losses", "explored", "finished", "sets"]
    write_csv(folder / "standings.csv", columns, lines)
    lines = [
        (
            *(outcome.dataset, int(outcome.rounds[-1]), len(outcome.final), outcome.entry.title),
            *map(number, (outcome.mean, outcome.standard_error)),
            number(found.ranks.get((outcome.dataset, outcome.entry.title))),
            number(outcome.exploration),
        )
        for outcome in results.outcomes
    ]
    columns = ["dataset", "rounds", "runs", "learner", "mean", "standard_error", "rank", "explored"]
    write_csv(folder / "results.csv", columns, lines)
    pairs = found.pairs.items()
    lines = [(*names, each.wins, each.ties, each.losses, number(each.ratio), number(each.p)) for names, each in pairs]
    write_csv(folder / "pairs.csv", ("learner", "against", "wins", "ties", "losses", "ratio", "p_across"), lines)
    lines = [("sets", len(found.datasets)), ("learners_ranked", len(found.ranked))]
    if test is not None:
        values = {
            "friedman_chi2": test.chi2,
            "friedman_chi2_p": test.p_chi2,
            "iman_davenport_f": test.f,
            "iman_davenport_p": test.p_f,
            "friedman_permutation_p": test.p,
            "level": LEVEL,
            "nemenyi_critical_difference": found.critical_difference,
        }
        lines += [(name, number(value)) for name, value in values.items()]
    lines += [("runs", found.n_runs), ("sign_tests_on_sets", found.n_tests)]
    lines += [("runs_to_decide_one", found.runs_to_decide)] if found.n_tests else []
    write_csv(folder / "tests.csv", ("quantity", "value"), lines)
    unfinished = [(dataset, title, reason) for title, dataset, reason in results.unfinished("")]
    write_csv(folder / "unfinished.csv", ("dataset", "learner", "reason"), unfinished)


def _standings_table(found: Standings, links: Mapping[str, str]) -> Table:
    """Return the standings; links lead to the learners' pages, by title."""
    columns = ("", "learner", "mean rank", "of common", "first", "mistakes / best", "w/t/l", "explored", "µs/round")
    rows: list[list[str | Cell]] = []
    for row in found.everyone:
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
                _percent(row.explored),
                grouped(row.microseconds, 1),
                f"{row.finished} of {len(found.datasets)}",
            ]
        )
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
    text = (
        f"Friedman's test over {len(found.datasets)} sets and {len(found.ranked)} learners: χ² = {test.chi2:.2f} "
        f"(p = {test.p_chi2:.2g}), Iman and Davenport's F = {test.f:.2f} (p = {test.p_f:.2g}); by permutations "
        f"p = {test.p:.2g}, which decides."
    )
    if test.p >= LEVEL:
        return f"{text} The mean ranks do not tell these learners apart.{few}"
    difference = f"{found.critical_difference:.2f}"
    return f"{text} Mean ranks that are at least {difference} apart differ (Nemenyi, {LEVEL:g}).{few}"


def _write_pages(folder: Path, results: _Results, details: Mapping[str, str], is_drawn: bool) -> None:
    """Write ``report.html``, and a page for every learner in ``learners/``, with figures if they are to be drawn."""
    found = results.standings
    names = _page_names([row.title for row in found.everyone])
    drawn: dict[str, list[Drawing]] = {}
    if is_drawn:
        from onebit.experiments.league_figures import drawings, learner_drawings

        for drawing in drawings(found):
            drawn[drawing.name] = [drawing]
    (folder / "learners").mkdir(parents=True, exist_ok=True)
    for row in found.everyone:
        blocks: list[Block] = [
            Cell("The whole league", link="../report.html"),
            *_about(row, found),
            *section("Against the others", *_pairs_of(row, found, names)),
            *section("Set by set", _sets_of(row, results)),
            *(learner_drawings(row, names[row.title], results.outcomes) if is_drawn else ()),
        ]
        path = folder / "learners" / f"{names[row.title]}.html"
        write_page(path, row.entry.shown, blocks, folder / "figures" / "learners")
    links = {title: f"learners/{name}.html" for title, name in names.items()}
    headings = ("learner", "set", "reason")
    unfinished = Table(headings, results.unfinished("every set"), styles=("name", "", "remark"))
    whole = [
        *_intro(found),
        *section("Standings", _verdict_in_words(found), _standings_table(found, links)),
        *drawn.get("critical_difference", ()),
        *section("Not finished", *((_UNFINISHED, unfinished) if unfinished.rows else ())),
        *section("Exploration and time", *drawn.get("exploration", ()), *drawn.get("time", ())),
        *section("Every set", _RATES, _rates(results, links), *drawn.get("ranks", ())),
        *section("Pairs", *((_PAIRS, _pairs(found, links)) if found.pairs else ()), *drawn.get("pairs", ())),
        *what_was_run(details),
    ]
    write_page(folder / "report.html", "The league", whole)


def _page_names(titles: Sequence[str]) -> dict[str, str]:
    """Return a file's name for every title: letters, digits and dashes, no two the same."""
    names: dict[str, str] = {}
    for title in titles:
        # Short enough for any file system.
        plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "learner"
        numbered = (plain, *(f"{plain}-{tries}" for tries in range(2, len(titles) + 1)))
        names[title] = next(name for name in numbered if name not in names.values())
    return names


def _intro(found: Standings) -> list[str]:
    """Return what was played, and which entries had an advantage."""
    return [_INTRO, _HINDSIGHT] if any(row.entry.hindsight for row in found.unranked) else [_INTRO]


def _rates(results: _Results, links: Mapping[str, str]) -> Table:
    found = results.standings
    rates = {(each.dataset, each.entry.title): f"{each.mean / each.rounds[-1]:.1%}" for each in results.outcomes}

    def cell(dataset: str, title: str) -> Cell:
        rank = found.ranks.get((dataset, title))
        return Cell(rates.get((dataset, title), "not finished"), small="" if rank is None else f"({rank:g})")

    rows = [
        [Cell(row.title, link=links[row.title]), *(cell(name, row.title) for name in found.datasets)]
        for row in found.everyone
    ]
    return Table(("learner", *found.datasets), rows)


def _pairs(found: Standings, links: Mapping[str, str]) -> Table:
    rows = []
    for row in found.ranked:
        pairs = [found.pairs.get((row.title, other.title)) for other in found.ranked]
        counts = [Cell(f"{pair.wins}/{pair.ties}/{pair.losses}", _kind(pair)) if pair else Cell("") for pair in pairs]
        rows.append([Cell(f"{row.number} {row.title}", link=links[row.title]), *counts])
    return Table(("learner", *(str(row.number) for row in found.ranked)), rows)


def _kind(pair: Tally) -> str:
    return "good" if pair.wins > pair.losses else "bad" if pair.wins < pair.losses else ""


def _about(row: Standing, found: Standings) -> list[Block]:
    n_sets, is_ranked = len(found.datasets), row.number is not None
    place = f"{row.number} of {len(found.ranked)}, mean rank {row.mean_rank:.2f}"
    counts = f"{row.wins}, {row.ties}, {row.losses} against all others on every set"
    facts = {
        "Played as": row.entry.written,
        "Place": place if is_ranked else f"not ranked: {row.entry.advantage}",
        "Finished": f"{row.finished} of {n_sets} sets",
        "First on": f"{row.firsts} of {n_sets} sets" if is_ranked else "",
        "Mistakes": f"{row.relative:.2f} times those of the best on each set, geometric mean",
        "Wins, ties, losses": counts if is_ranked else "",
        "Explored": "" if math.isnan(row.explored) else f"{_percent(row.explored)} of its guesses",
        "Time": f"{grouped(row.microseconds, 1)} µs per round, geometric mean" if row.microseconds > 0 else "",
        "Note": row.entry.note,
    }
    return [_what_it_is(row.entry), {name: text for name, text in facts.items() if text}]


def _what_it_is(entry: Entry) -> str:
    """Return the first line of the documentation of a learner or rival; nothing if it has none."""
    player = player_from(entry.spec)
    thing = build(entry.spec) if isinstance(player, LearnerPlayer) else player
    return (inspect.getdoc(type(thing)) or "").partition("\n\n")[0].replace("\n", " ").replace("`", "")


def _pairs_of(row: Standing, found: Standings, names: Mapping[str, str]) -> list[Block]:
    if row.number is None or len(found.ranked) < 2:
        return []
    n_pairs, n_sets, text = len(found.pairs) // 2, len(found.datasets), _AGAINST
    needed = signs_to_decide(n_pairs)
    if n_sets < needed:
        text += f" {n_sets} sets are too few for it: to tell one of {n_pairs} pairs apart takes {needed}."
    rows: list[list[str | Cell]] = []
    for other in found.ranked:
        if other is not row:
            pair = found.pairs[row.title, other.title]
            link = Cell(f"{other.number} {other.title}", link=f"{names[other.title]}.html")
            ratio = Cell(fixed(pair.ratio, ".2f"), _kind(pair))
            rows.append([link, str(pair.wins), str(pair.ties), str(pair.losses), ratio, fixed(pair.p, ".2g")])
    return [text, Table(("against", "wins", "ties", "losses", "mistakes / theirs", "p across"), rows)]


def _sets_of(row: Standing, results: _Results) -> Table:
    mine = {outcome.dataset: outcome for outcome in results.outcomes if outcome.entry.title == row.title}
    reasons = {failure.dataset: failure.reason for failure in results.failures if failure.entry.title == row.title}
    rows: list[list[str]] = []
    for name in results.standings.datasets:
        rank, outcome = fixed(results.standings.ranks.get((name, row.title)), "g"), mine.get(name)
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
                *(_percent(outcome.exploration), grouped(outcome.microseconds_per_round, 1), outcome.remark),
            ]
        )
    columns = ("set", "rounds", "mistakes", "rate", "rank", "/ best", "explored", "µs per round", "remark")
    return Table(columns, rows, styles=("name", *["number"] * 7, ""))
