"""The pages of a league: one for the whole, and one for every learner."""

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from onebit.experiments.comparison import Failure, Outcome
from onebit.experiments.entries import Entry
from onebit.experiments.league import Absence
from onebit.experiments.league_figures import drawings, learner_drawings
from onebit.experiments.league_tables import SHOWN, percent, shown_columns, shown_standing, verdict_in_words
from onebit.experiments.players import LearnerPlayer, build, player_from
from onebit.experiments.standings import Pair, Standing, Standings
from onebit.experiments.statistics import signs_to_decide
from onebit.files import replace_file
from onebit.reporting import pages
from onebit.reporting.names import in_page
from onebit.reporting.style import draw_files
from onebit.reporting.tables import grouped, with_error

_INTRO = (
    "<p>Every learner on every set, each with its own default settings. Each round a learner is shown a row, names its "
    "label and hears only whether it was right. All play the same rows in the same order.</p>"
)
_SET_COLUMNS = ("set", "rounds", "mistakes", "rate", "rank", "/ best", "explored", "µs per round", "remark")
_PAIR_COLUMNS = ("against", "wins", "ties", "losses", "mistakes / theirs", "p across")


_HINDSIGHT = (
    "<p>“Best setting” and “best per run” are rivals whose settings were chosen in hindsight, set by set, by these "
    "very games: the most that tuning could bring. Nobody could play so: they stand below the table, unranked.</p>"
)


@dataclass(frozen=True)
class Results:
    """All that the pages show."""

    standings: Standings
    outcomes: Sequence[Outcome]
    failures: Sequence[Failure]
    absent: Sequence[Absence]
    details: Mapping[str, str]
    """Lines for "What was run", by name; "Command" is what to type to get the same again."""


def write_pages(folder: Path, results: Results) -> None:
    """Draw all figures and write ``report.html``, and a page for every learner in ``learners/``."""
    standings = results.standings
    everyone = [*standings.ranked, *standings.unranked]
    names = page_names([row.title for row in everyone])
    (folder / "learners").mkdir(parents=True, exist_ok=True)
    for row in everyone:
        name = names[row.title]
        figures = draw_files(learner_drawings(row, name, results.outcomes), folder / "figures" / "learners")
        parts = [
            '<p><a href="../report.html">The whole league</a></p>',
            _about(row, standings),
            *([_pairs_of(row, standings, names)] if row.number is not None and len(standings.ranked) > 1 else []),
            _sets_of(row, results),
            *(pages.figure(figure) for figure in figures),
        ]
        replace_file(
            folder / "learners" / f"{name}.html", pages.page(row.entry.shown, "\n".join(parts) + "\n").encode()
        )
    replace_file(folder / "report.html", _whole(results, names, folder).encode())


def page_names(titles: Sequence[str]) -> dict[str, str]:
    """Return a file's name for every title: letters, digits and dashes, no two the same.

    >>> list(page_names(["BanditSVM", "VW --epsilon 0.05", "VW -epsilon 0.05", "…"]).values())
    ['banditsvm', 'vw-epsilon-0-05', 'vw-epsilon-0-05-2', 'learner']
    """
    names: dict[str, str] = {}
    for title in titles:
        # Short enough for any file system.
        plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "learner"
        name, tries = plain, 1
        while name in names.values():
            tries += 1
            name = f"{plain}-{tries}"
        names[title] = name
    return names


def _whole(results: Results, names: Mapping[str, str], folder: Path) -> str:
    standings = results.standings
    figures = {drawn.name: pages.figure(drawn) for drawn in draw_files(drawings(standings), folder / "figures")}
    listed = {**results.details, "Version": f"onebit {version('onebit')}"}
    command = listed.pop("Command")
    parts = [
        intro(results),
        "<h2>Standings</h2>",
        f"<p>{pages.prose(verdict_in_words(standings))}</p>",
        _standings_html(standings, names),
        figures.pop("critical_difference", ""),
        _unfinished_html(results),
        "<h2>Exploration and time</h2>",
        figures.pop("exploration", ""),
        figures.pop("time", ""),
        "<h2>Every set</h2>",
        "<p>Mistakes in per cent of the rounds, and the rank on the set; those who are not ranked have none.</p>",
        _rates_html(results, names),
        figures.pop("ranks", ""),
        *([_pairs_html(standings, names), figures.pop("pairs", "")] if standings.pairs else []),
        f"<h2>What was run</h2>\n<dl>\n{pages.facts(listed)}\n</dl>",
        f"<h2>How to get it again</h2>\n<pre><code>{in_page(command)}</code></pre>",
    ]
    return pages.page("The league", "\n".join(part for part in parts if part) + "\n")


def intro(results: Results) -> str:
    """Return what was played, and which entries had an advantage."""
    chosen = any(row.entry.hindsight for row in results.standings.unranked)
    return f"{_INTRO}\n{_HINDSIGHT}" if chosen else _INTRO


def _link(title: str, names: Mapping[str, str], folder: str = "learners/") -> str:
    # Names of classes are long, and on a phone they had better break where a word begins.
    broken = re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", in_page(title))
    return f'<a href="{folder}{names[title]}.html">{broken}</a>'


def _standings_html(standings: Standings, names: Mapping[str, str]) -> str:
    everyone = (*standings.ranked, *standings.unranked)
    texts = [shown_standing(row, len(standings.datasets)) for row in everyone]
    lines = []
    for row, (number, shown, *rest) in zip(everyone, texts, strict=True):
        linked = _link(row.title, names) + in_page(shown.removeprefix(row.title))
        numbers = pages.cells(rest, ["number"] * len(rest))
        lines.append([("number", in_page(number) or pages.NOTHING), ("name", linked), *numbers])
    legend = ".<br>".join(map(in_page, shown_columns(texts)[1]))
    return f"{pages.table(SHOWN, lines)}\n<p>{legend}.</p>"


def _unfinished_html(results: Results) -> str:
    lines = [[failure.entry.title, failure.dataset, failure.reason] for failure in results.failures]
    lines += [[title, "every set", reason] for title, reason in results.absent]
    if not lines:
        return ""
    table = pages.table(("learner", "set", "reason"), [pages.cells(line, ("name", "", "remark")) for line in lines])
    text = (
        "Whoever did not finish a set shares its last ranks, and loses there to all who did. Who finished none is not "
        "ranked."
    )
    return f"<h2>Not finished</h2>\n<p>{text}</p>\n{table}"


def _rates_html(results: Results, names: Mapping[str, str]) -> str:
    standings = results.standings
    outcome_of = {(outcome.dataset, outcome.entry.title): outcome for outcome in results.outcomes}
    lines = []
    for row in (*standings.ranked, *standings.unranked):
        line = [("name", _link(row.title, names))]
        for dataset in standings.datasets:
            outcome = outcome_of.get((dataset, row.title))
            line.append(("number", _rate(outcome, standings.ranks.get((dataset, row.title)))))
        lines.append(line)
    return pages.table(("learner", *map(in_page, standings.datasets)), lines)


def _rate(outcome: Outcome | None, rank: float | None) -> str:
    text = "not finished" if outcome is None else f"{outcome.mean / outcome.rounds[-1]:.1%}"
    return text if rank is None else f"{text} <small>({rank:g})</small>"


def _pairs_html(standings: Standings, names: Mapping[str, str]) -> str:
    text = (
        "Wins, ties and losses of the learner of the row against that of the column, over the sets. Columns are "
        "numbered as the rows are. A learner's own page has the test across the sets."
    )
    lines = []
    for row in standings.ranked:
        line = [("name", f"{row.number} {_link(row.title, names)}")]
        for other in standings.ranked:
            pair = standings.pairs.get((row.title, other.title))
            line.append((f"number {_kind(pair)}", "" if pair is None else f"{pair.wins}/{pair.ties}/{pair.losses}"))
        lines.append(line)
    columns = ("learner", *(str(row.number) for row in standings.ranked))
    return f"<h2>Pairs</h2>\n<p>{in_page(text)}</p>\n{pages.table(columns, lines)}"


def _kind(pair: Pair | None) -> str:
    """Return the CSS class that the page has for good and bad."""
    balance = 0 if pair is None else pair.wins - pair.losses
    return "agrees" if balance > 0 else "unexplained" if balance < 0 else "plain"


def _about(row: Standing, standings: Standings) -> str:
    n_sets, n_ranked = len(standings.datasets), len(standings.ranked)
    unranked = f"not ranked: {row.entry.advantage}"
    facts = {
        "Played as": row.entry.written,
        "Place": unranked if row.number is None else f"{row.number} of {n_ranked}, mean rank {row.mean_rank:.2f}",
        "Finished": f"{row.finished} of {n_sets} sets",
        "First on": f"{row.firsts} of {n_sets} sets",
        "Mistakes": f"{row.relative:.2f} times those of the best on each set, geometric mean",
        "Wins, ties, losses": f"{row.wins}, {row.ties}, {row.losses} against everyone on every set",
        "Explored": f"{percent(row.explored)} of its guesses",
        "Time": f"{grouped(row.microseconds, 1)} µs per round, geometric mean" if row.microseconds > 0 else "",
        "Note": row.entry.note,
    }
    left_out = {"First on", "Wins, ties, losses"} if row.number is None else set()
    left_out |= {"Explored"} if math.isnan(row.explored) else set()
    listed = {name: text for name, text in facts.items() if text and name not in left_out}
    return f"<p>{in_page(what_it_is(row.entry))}</p>\n<dl>\n{pages.facts(listed)}\n</dl>"


def what_it_is(entry: Entry) -> str:
    """Return the first line of the documentation of a learner or rival; nothing if it has none.

    >>> from onebit.experiments.entries import enter
    >>> what_it_is(enter("UniformGuess"))
    'Guesses every label with the same probability and never learns.'
    """
    player = player_from(entry.spec)
    thing = build(entry.spec) if isinstance(player, LearnerPlayer) else player
    return (inspect.getdoc(type(thing)) or "").partition("\n\n")[0].replace("\n", " ").replace("`", "")


def _pairs_of(row: Standing, standings: Standings, names: Mapping[str, str]) -> str:
    text = (
        "Sets won, tied and lost against each; the geometric mean of the ratios of mistakes over the sets that both "
        "finished; Wilcoxon's signed-rank test across the sets, Holm-corrected over all pairs of the league."
    )
    n_pairs, n_sets = len(standings.pairs) // 2, len(standings.datasets)
    needed = signs_to_decide(n_pairs)
    if n_sets < needed:
        text += f" {n_sets} sets are too few for it: to tell one of {n_pairs} pairs apart takes {needed}."
    lines = []
    for other in standings.ranked:
        if other is row:
            continue
        pair = standings.pairs[row.title, other.title]
        ratio = "" if math.isnan(pair.ratio) else f"{pair.ratio:.2f}"
        texts = [str(pair.wins), str(pair.ties), str(pair.losses), ratio, "" if pair.p is None else f"{pair.p:.2g}"]
        css = ["number", "number", "number", f"number {_kind(pair)}", "number"]
        lines.append([("name", f"{other.number} {_link(other.title, names, folder='')}"), *pages.cells(texts, css)])
    return f"<h2>Against the others</h2>\n<p>{in_page(text)}</p>\n{pages.table(_PAIR_COLUMNS, lines)}"


def _sets_of(row: Standing, results: Results) -> str:
    standings = results.standings
    best = {
        name: min((o.mean for o in results.outcomes if o.dataset == name and o.entry.is_ranked), default=math.nan)
        for name in standings.datasets
    }
    mine = {outcome.dataset: outcome for outcome in results.outcomes if outcome.entry.title == row.title}
    reasons = {failure.dataset: failure.reason for failure in results.failures if failure.entry.title == row.title}
    lines = []
    for name in standings.datasets:
        rank = standings.ranks.get((name, row.title))
        place = "" if rank is None else f"{rank:g}"
        if name in mine:
            outcome = mine[name]
            time = outcome.microseconds_per_round
            texts = [
                name,
                grouped(outcome.rounds[-1]),
                with_error(outcome.mean, outcome.standard_error),
                f"{outcome.mean / outcome.rounds[-1]:.1%}",
                place,
                f"{(outcome.mean + 0.5) / (best[name] + 0.5):.2f}",
                percent(outcome.exploration),
                "" if math.isnan(time) else grouped(time, 1),
                outcome.remark,
            ]
        else:
            texts = [
                name,
                "",
                "",
                "",
                place,
                "",
                "",
                "",
                f"not finished: {reasons.get(name, 'no setting of it could')}",
            ]
        lines.append(pages.cells(texts, ("name", *["number"] * 7, "")))
    return f"<h2>Set by set</h2>\n{pages.table(_SET_COLUMNS, lines)}"
