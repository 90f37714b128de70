"""Other learners on the rounds of a log: what each guesses, and what is known and estimated of its mistakes.

A learner guesses a round before it gets its feedback, so a guess depends on the rounds before and on its own random
numbers, never on this round's answer. The results describe the learner as it was run here: in a stream of its own it
would have got other feedback, and would have guessed differently later.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebit.experiments.evaluate.estimates import METHODS, Estimate, Estimates, Known, estimate, expect, known
from onebit.experiments.evaluate.log import RIGHT, UNKNOWN, WRONG, LoggedRounds
from onebit.inputs import Integers, check_choice, check_rows, check_seed, take
from onebit.labels import encode_labels
from onebit.learners import Learner
from onebit.playing import play
from onebit.streams.preprocess import preprocess

_HEARS = ("facts", "own", "nothing")
"""The feedback of a log: every answer, as a round that others played; only what the learner would have got itself;
nothing."""
_LOGGED = "the log itself"  # the title of the first row
_GLANCE = 100  # rounds after which progress is reported


@dataclass(frozen=True, eq=False)
class Candidate:
    """A learner that is to be evaluated."""

    title: str
    """Its name in tables and figures."""
    learner: Learner
    """With its settings. A copy of it is played, which starts a new run unless it is frozen."""
    is_frozen: bool = False
    """Whether it is a fixed model: it guesses its best label, and learns nothing."""

    @property
    def scales_rows(self) -> bool:
        """Whether it gets rows that are not preprocessed: it scales columns itself, or was trained on them."""
        return self.is_frozen or getattr(self.learner, "scale", None) is not None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One learner on a log."""

    title: str
    """Its name in tables and figures."""
    written: str
    """What it is, as Python writes it: figures colour by it."""
    guesses: Integers
    """Its guess in every round, as positions in the log's classes; −1 for a label that the log does not have."""
    known: Known
    """Its guesses in the answered rounds that are surely right, surely wrong, and unknown."""
    estimates: Estimates
    """Of its share of mistakes, by method, with intervals; and what to know about them."""
    logged_mistakes: int
    """What the log itself did in the same rounds."""
    is_logged: bool = False
    """Whether it is the log itself."""

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
        if self.is_logged:
            return ""
        made = self.logged_mistakes / self.known.rounds
        if not self.known.low <= made <= self.known.high:
            return "surely fewer" if self.known.high < made else "surely more"
        # An interval with a warning that it may be too narrow decides nothing.
        if self.best is None or self.estimates.warnings or self.best.low <= made <= self.best.high:
            return "open"
        return "fewer" if self.best.high < made else "more"

    @property
    def verdict_by(self) -> str:
        """What the verdict rests on: "bounds", the name of an estimate, or nothing if it is open."""
        return "bounds" if "surely" in self.verdict else self._steadiest if self.verdict in ("fewer", "more") else ""

    @property
    def _steadiest(self) -> str:
        return next((method for method in reversed(METHODS) if method in self.estimates.found), "")


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
    check_choice("hears", hears, _HEARS)
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
    check_choice("hears", hears, _HEARS)
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
    labels, truths, checked = log.classes.tolist(), log.truths().tolist(), check_rows(rows)
    guesses = np.empty(log.n_rounds, dtype=np.int64)
    for t, allowed in enumerate(log.among or [None] * log.n_rounds):
        row = rows[[t]] if hasattr(rows, "indptr") else rows[t]
        guess = learner.guess(row, None if allowed is None else log.classes[allowed])
        guesses[t] = guess.index
        logged, correct, chance = int(log.guesses[t]), bool(log.answers[t] == RIGHT), float(log.propensities[t])
        try:
            if log.answers[t] == UNKNOWN or hears == "nothing":
                pass
            elif hears == "facts":
                # What `learn_from` does, without the checks that the log as a whole has passed.
                truth, propensity = logged if learner.full_information and correct else -1, chance
                with learner._lock:
                    learner._state.learn_from_log(
                        take(checked, t, t + 1), logged, correct, truth, None if math.isnan(propensity) else propensity
                    )
            elif truths[t] >= 0:
                extra = {"label": labels[truths[t]]} if learner.full_information else {}
                learner.tell(guess, guess.index == truths[t], **extra)
            elif guess.index == logged and not learner.full_information:
                learner.tell(guess, False)
        except ValueError as error:
            raise ValueError(f"{title}, round {t}: {error}") from error
        if on_progress is not None and t % _GLANCE == 0:
            on_progress(t)
    return guesses


def _frozen_guesses(log: LoggedRounds, candidate: Candidate, rows: Any) -> Integers:
    """Return the labels with the highest scores."""
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
    places = np.array([known_places.get(label, -1) for label in own], dtype=np.int64)  # -1: a label not in the log
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
