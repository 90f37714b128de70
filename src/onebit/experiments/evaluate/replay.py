"""Other learners on the rounds of a log: what each guesses, what is known and estimated of its mistakes, the report.

A learner guesses a round before it gets its feedback, so a guess depends on the rounds before and on its own random
numbers, never on this round's answer. The results describe the learner as it was run here: in a stream of its own it
would have got other feedback, and would have guessed differently later.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from onebit.experiments.evaluate.answer_rates import ASSUMPTION
from onebit.experiments.evaluate.estimates import LEVEL, METHODS, Estimate, Estimates, Known, estimate, expect, known
from onebit.experiments.evaluate.log import RIGHT, UNKNOWN, WRONG, LoggedRounds
from onebit.inputs import Integers, check_choice, check_seed
from onebit.labels import encode_labels
from onebit.learners import Learner
from onebit.playing import play
from onebit.reporting.console import on_screen, print_table
from onebit.reporting.pages import Block, FigureFile, section, what_was_run, write_page
from onebit.reporting.text import Cell, Table, grouped, number, write_csv
from onebit.streams.preprocess import preprocess

HEARS = ("facts", "own", "nothing")
"""The feedback of a log: every answer, as a round that others played; only what the learner would have got itself;
nothing."""
_LOGGED = "the log itself"  # the title of the first row
_GLANCE = 100  # rounds after which progress is reported
_KEYS = {"IPS": "ips", "SNIPS": "snips", "DR": "dr", "DR+": "dr_plus"}
COLUMNS = (
    *("learner", "rounds", "known_right", "known_wrong", "unknown", "least_mistakes", "most_mistakes"),
    *(f"{key}{end}" for key in _KEYS.values() for end in ("", "_low", "_high")),
    *("effective_rounds", "largest_weight", "telling_rounds"),
    *("against_the_log", "against_the_log_by", "estimates_assume", "warnings", "notes"),
)
_INTRO = (
    "Each learner guessed every round of the log before it got any feedback on it. After a right answer the label is "
    "known, so its guess is decided; after a wrong one only the same guess is. What is surely so needs true answers, "
    "and no more than one right label in a round; estimates also need the chances that are in the log, and an "
    "assumption that stands beside them. All of it is about the learners as they were run here."
)
_KINDS = {"surely fewer": "good", "fewer": "good", "surely more": "bad", "more": "bad", "open": "dim"}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A learner that is to be evaluated.

    Attributes
    ----------
    title : str
        Its name in tables and figures.
    learner : Learner
        With its settings. A copy of it is played, which starts a new run unless it is frozen.
    is_frozen : bool
        Whether it is a fixed model: it guesses its best label, and learns nothing.
    """

    title: str
    learner: Learner
    is_frozen: bool = False

    @property
    def scales_rows(self) -> bool:
        """Whether it gets rows that are not preprocessed: it scales columns itself, or was trained on them."""
        return self.is_frozen or getattr(self.learner, "scale", None) is not None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One learner on a log.

    Attributes
    ----------
    title : str
        Its name in tables and figures.
    written : str
        What it is, as Python writes it: figures colour by it.
    guesses : array of int
        Its guess in every round, as positions in the log's classes; −1 for a label that the log does not have.
    known : Known
        Its guesses in the answered rounds that are surely right, surely wrong, and unknown.
    estimates : Estimates
        Of its share of mistakes, by method, with intervals; and what to know about them.
    logged_mistakes : int
        What the log itself did in the same rounds.
    is_logged : bool
        Whether it is the log itself.
    """

    title: str
    written: str
    guesses: Integers
    known: Known
    estimates: Estimates
    logged_mistakes: int
    is_logged: bool = False

    @property
    def best(self) -> Estimate | None:
        """The steadiest estimate that there is."""
        return self.estimates.found.get(self._steadiest)

    @property
    def verdict(self) -> str:
        """Whether it makes fewer mistakes than the log did, in the answered rounds.

        "surely fewer" and "surely more" are by the bounds, if no more than one label is right in a round.
        "fewer" and "more" are by the interval of the steadiest estimate, with its assumption. Otherwise it is "open".
        """
        return self._verdict_and_ground[0]

    @property
    def verdict_by(self) -> str:
        """What the verdict rests on: "bounds", the name of an estimate, or nothing if it is open."""
        return self._verdict_and_ground[1]

    @property
    def _steadiest(self) -> str:
        return next((method for method in reversed(METHODS) if method in self.estimates.found), "")

    @cached_property
    def _verdict_and_ground(self) -> tuple[str, str]:
        if self.is_logged:
            return "", ""
        made = self.logged_mistakes / self.known.rounds
        if not self.known.low <= made <= self.known.high:
            return "surely fewer" if self.known.high < made else "surely more", "bounds"
        # An interval with a warning that it may be too narrow decides nothing.
        if self.best is not None and not self.estimates.warnings and not self.best.low <= made <= self.best.high:
            return "fewer" if self.best.high < made else "more", self._steadiest
        return "open", ""


def evaluate(
    log: LoggedRounds,
    candidates: Sequence[Candidate],
    *,
    hears: str = "facts",
    preprocessing: str = "online",
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Evaluation]:
    """Replay a log with other learners, and return what is known and estimated of each, after the log itself.

    Parameters
    ----------
    log : LoggedRounds
        From `logged_rounds` or `read_log`.
    candidates : sequence of Candidate
        The learners to evaluate.
    hears, preprocessing, seed
        As for `replay`.
    on_progress : callable, optional
        Called now and then with the number of rounds replayed, and of all rounds.

    Examples
    --------
    >>> import onebit
    >>> from onebit.experiments.evaluate import play_with_floor
    >>> X, y = onebit.streams.paper_strong(rounds=300, seed=1)
    >>> log = play_with_floor(onebit.UniformGuess(classes=9, seed=1), X, y)
    >>> rows = evaluate(log, [Candidate("BanditPerceptron", onebit.BanditPerceptron())])
    >>> [row.title for row in rows]
    ['the log itself', 'BanditPerceptron']
    >>> rows[1].verdict, rows[1].verdict_by
    ('fewer', 'DR+')
    """
    check_choice("hears", hears, HEARS)
    check_seed(seed)
    if not candidates:
        raise ValueError("candidates must have at least one learner; got none")
    replayed = []
    for at, candidate in enumerate(candidates):

        def show(n_done: int, before: int = at * log.n_rounds) -> None:
            if on_progress is not None:
                on_progress(before + n_done, log.n_rounds * len(candidates))

        replayed.append(replay(log, candidate, hears=hears, preprocessing=preprocessing, seed=seed, on_progress=show))
    mistakes = int((log.answers == WRONG).sum())
    rows = [Evaluation(_LOGGED, _LOGGED, log.guesses, known(log, log.guesses), Estimates({}, None, ()), mistakes, True)]
    for candidate, expected in zip(candidates, expect(log, replayed), strict=True):
        facts, found = known(log, expected.guesses), estimate(log, expected)
        rows.append(Evaluation(candidate.title, repr(candidate.learner), expected.guesses, facts, found, mistakes))
    return rows


def replay(
    log: LoggedRounds,
    candidate: Candidate,
    *,
    hears: str = "facts",
    preprocessing: str = "online",
    seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> Integers:
    """Let a learner guess every round of a log, and return its guesses.

    Parameters
    ----------
    log : LoggedRounds
        The rounds.
    candidate : Candidate
        The learner to evaluate.
    hears : {"facts", "own", "nothing"}
        "facts": after each round, the label that was logged and whether it was right, by `learn_from`, whatever the
        learner itself guessed. "own": the feedback on its own guess, where that is known: the logged answer if it
        guessed the logged label, "wrong" if another label was right, and nothing otherwise. "nothing": no answers. A
        frozen learner gets no feedback.
    preprocessing : {"online", "standardize", "none"}
        The preprocessing for learners that do not scale columns themselves.
    seed : int
        Seed of the learner's random numbers.
    on_progress : callable, optional
        Called now and then with the number of rounds replayed.

    Returns
    -------
    array of int
        Positions in the log's classes; −1 for a label that the log does not have.
    """
    check_choice("hears", hears, HEARS)
    rows = log.X if candidate.scales_rows else preprocess(log.X, preprocessing)
    truths = log.truths()
    if candidate.is_frozen:
        guesses = _frozen_guesses(log, candidate, rows)
    else:
        settings = candidate.learner.get_params(deep=False)
        learner = type(candidate.learner)(**{**settings, "classes": log.classes.tolist(), "seed": seed})
        if hears == "own" and log.among is None and (truths >= 0).all():
            # Every guess has its answer: this is a stream as any other.
            trace = play(learner, rows, log.classes[truths], seed=seed, keep_guesses=True)
            guesses = encode_labels(np.asarray(trace.guesses), log.classes, "guesses")
        else:
            guesses = _replayed(log, candidate.title, learner, rows, hears, on_progress)
    if on_progress is not None:
        on_progress(log.n_rounds)
    return guesses


def _replayed(
    log: LoggedRounds, title: str, learner: Learner, rows: Any, hears: str, on_progress: Callable[[int], None] | None
) -> Integers:
    """Play round by round: after a guess comes the answer of the log, which need not be one to that guess."""
    tried, correct = log.classes[log.guesses], log.answers == RIGHT
    labels, truths = log.classes.tolist(), log.truths().tolist()
    guesses = np.empty(log.n_rounds, dtype=np.int64)
    for t, allowed in enumerate(log.among or [None] * log.n_rounds):
        row = rows[[t]] if hasattr(rows, "indptr") else rows[t]
        guess = learner.guess(row, None if allowed is None else log.classes[allowed])
        guesses[t] = guess.index
        try:
            if log.answers[t] == UNKNOWN or hears == "nothing":
                pass
            elif hears == "facts":
                # As arrays of one: lists would be searched for frames.
                chance = log.propensities[t : t + 1]
                one = slice(t, t + 1)
                learner.learn_from(rows[[t]], tried[one], correct[one], None if np.isnan(chance[0]) else chance)
            elif truths[t] >= 0:
                extra = {"label": labels[truths[t]]} if learner.full_information else {}
                learner.tell(guess, guess.index == truths[t], **extra)
            elif guess.index == log.guesses[t] and not learner.full_information:
                learner.tell(guess, False)
        except ValueError as error:
            raise ValueError(f"{title}, round {t}: {error}") from error
        if on_progress is not None and t % _GLANCE == 0:
            on_progress(t)
    return guesses


def _frozen_guesses(log: LoggedRounds, candidate: Candidate, rows: Any) -> Integers:
    """Return the labels with the highest scores."""
    places = _places_in_log(log, candidate)
    try:
        scores = candidate.learner.score_classes(rows)
    except ValueError as error:
        raise ValueError(
            f"{candidate.title}: {error}. A saved model guesses rows with the columns that it was trained on"
        ) from error
    for t, allowed in enumerate(log.among or ()):
        if allowed is not None:
            scores[t, ~np.isin(places, allowed)] = -np.inf
    guesses: Integers = places[np.argmax(scores, axis=1)]
    return guesses


def _places_in_log(log: LoggedRounds, candidate: Candidate) -> Integers:
    """Return the positions of a saved learner's labels among those of the log, −1 for a label not in it."""
    own = candidate.learner.classes_.tolist()
    known_places = {label: place for place, label in enumerate(log.classes.tolist())}
    if not known_places.keys() <= set(own) and {str(label) for label in known_places} <= {str(label) for label in own}:
        # A log file holds text: 3 in a model is "3" in a log.
        own = [str(label) for label in own]
        known_places = {str(label): place for label, place in known_places.items()}
    missing = [label for label in known_places if label not in set(own)]
    if missing:
        raise ValueError(
            f"{candidate.title} does not know the label {missing[0]!r} of the log; it knows {own!r:.200}. Leave it "
            "out, or save a model that knows all labels (classes=[…])"
        )
    return np.array([known_places.get(label, -1) for label in own], dtype=np.int64)


# The report.


def write_table(path: Path, rows: Sequence[Evaluation]) -> None:
    """Write the table as CSV; shares are between 0 and 1."""
    write_csv(path, COLUMNS, [_line(row) for row in rows])


def _line(row: Evaluation) -> tuple[object, ...]:
    facts, weights = row.known, row.estimates.weights
    found: list[str] = []
    for method in METHODS:
        estimate = row.estimates.found.get(method)
        found += ["", "", ""] if estimate is None else [number(value) for value in estimate]
    rests_on = ("", "", "") if weights is None else (*map(number, weights[:2]), weights.telling)
    return (
        *(row.title, facts.rounds, facts.right, facts.wrong, facts.unknown),
        *(facts.wrong, facts.wrong + facts.unknown),
        *found,
        *rests_on,
        *(row.verdict, row.verdict_by, row.estimates.assumption),
        *("; ".join(row.estimates.warnings), "; ".join(row.estimates.notes)),
    )


def _facts_table(rows: Sequence[Evaluation], title: str = "") -> Table:
    """Return what is known of every learner."""
    lines: list[list[str | Cell]] = []
    for row in rows:
        facts = row.known
        least, most = facts.wrong, facts.wrong + facts.unknown
        verdict = f"{row.verdict}, by {row.verdict_by}" if row.verdict_by in METHODS else row.verdict
        lines.append(
            [
                row.title,
                *(grouped(count) for count in (facts.right, facts.wrong, facts.unknown)),
                grouped(least) if least == most else f"{grouped(least)} to {grouped(most)}",
                f"{100 * facts.low:.1f}" if least == most else f"{100 * facts.low:.1f}–{100 * facts.high:.1f}",
                Cell(verdict, _KINDS.get(row.verdict, "")),
            ]
        )
    notes = [
        f"{grouped(rows[0].known.rounds)} answered rounds; surely: no fewer and no more, whatever the unknown ones are",
        "sure if answers are true, and no more than one label is right in a round",
        "than the log: surely, by the bounds; or by an estimate's interval and its assumption",
    ]
    columns = ("learner", "right", "wrong", "unknown", "mistakes surely", "surely %", "than the log")
    return Table(columns, lines, title, notes, ("name", *["number"] * 5, ""), [1])


def _estimates_table(rows: Sequence[Evaluation], title: str = "") -> Table:
    """Return what is estimated of every learner."""
    lines = []
    for row in rows[1:]:
        weights = row.estimates.weights
        rests_on = ["", "", ""]
        if weights is not None:
            rests_on = [grouped(weights.effective), f"{weights.largest:.3g}", grouped(weights.telling)]
        lines.append([row.title, *(_percent(row.estimates.found.get(method)) for method in METHODS), *rests_on])
    notes = (
        f"estimated share of mistakes in the answered rounds, with {LEVEL:.0%} intervals; both cut to what is sure",
        f"{ASSUMPTION}; bounds do not",
        "effective rounds: as many of equal weight count as much; telling: an unlikely label was tried and informative",
    )
    columns = ("learner", *(f"{name} %" for name in METHODS), "effective rounds", "largest weight", "telling rounds")
    return Table(columns, lines, title, notes)


def _percent(found: Estimate | None) -> str:
    return "" if found is None else f"{100 * found.rate:.1f} ({100 * found.low:.1f}–{100 * found.high:.1f})"


def _warnings_and_notes(rows: Sequence[Evaluation]) -> tuple[list[str], list[str]]:
    """Return every learner's warnings, and which estimates are not offered; once, where several have the same."""
    n_learners = sum(not row.is_logged for row in rows)
    warnings = [(row.title, text) for row in rows for text in row.estimates.warnings]
    notes = [(row.title, text) for row in rows for text in row.estimates.notes]
    return _together(warnings, n_learners), _together(notes, n_learners)


def _together(texts: Sequence[tuple[str, str]], n_learners: int) -> list[str]:
    by_text: dict[str, list[str]] = {}
    for title, text in texts:
        by_text.setdefault(text, []).append(title)
    return [
        f"{'all learners' if len(titles) == n_learners > 1 else ', '.join(titles)}: {text}"
        for text, titles in by_text.items()
    ]


def print_tables(console: Console, rows: Sequence[Evaluation], name: str) -> None:
    """Print what is known and what is estimated of all learners, and the warnings."""
    print_table(console, _facts_table(rows, f"{name}: what is known of each learner"))
    if any(row.estimates.found for row in rows):
        print_table(console, _estimates_table(rows, "What is estimated"))
    warnings, notes = _warnings_and_notes(rows)
    marked = [("warning: ", "bold yellow", text) for text in warnings] + [("note: ", "bold", text) for text in notes]
    for mark, style, text in marked:
        console.print(Text.assemble((mark, style), on_screen(text)), soft_wrap=True)


def write_report(
    path: Path, rows: Sequence[Evaluation], figures: Sequence[FigureFile], details: Mapping[str, str]
) -> None:
    """Write the page: what was run ("Command" and other details), the figure, every number, every warning."""
    run, facts, again, command = what_was_run(details)
    warnings, notes = _warnings_and_notes(rows)
    blocks: list[Block] = [
        *(_INTRO, run, facts),
        *figures,
        *section("What is known", _facts_table(rows)),
        *section("What is estimated", _estimates_table(rows)),
        *section("Warnings", *(f"{text}." for text in warnings)),
        *section("Notes", *(f"{text}." for text in notes)),
        *(again, command),
    ]
    write_page(path, "What other learners would have done", blocks)
