"""Other learners on the rounds of a log: what each guesses, and what is known and estimated of its mistakes.

A learner guesses a round before it gets its feedback, so a guess depends on the rounds before and on its own random
numbers, never on this round's answer. The results describe the learner as it was run here: in a stream of its own it
would have got other feedback, and would have guessed differently later.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onebit.experiments.evaluate.estimates import METHODS, Estimate, Estimates, Known, estimate, expect, known
from onebit.experiments.evaluate.log import RIGHT, UNKNOWN, WRONG, LoggedRounds
from onebit.inputs import Integers, Rows, check_choice, check_rows, check_seed, take
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
    if not candidates:
        raise ValueError("candidates must have at least one learner; got none")
    replayed = []
    for at, candidate in enumerate(candidates):

        def show(n_done: int, before: int = at * log.n_rounds) -> None:
            if on_progress is not None:
                on_progress(before + n_done, log.n_rounds * len(candidates))

        replayed.append(replay(log, candidate, hears=hears, preprocessing=preprocessing, seed=seed, on_progress=show))
    mistakes = int((log.answers == WRONG).sum())
    rows = [Evaluation(_LOGGED, log.guesses, known(log, log.guesses), Estimates({}, ()), mistakes, True)]
    for candidate, expected in zip(candidates, expect(log, replayed), strict=True):
        facts, found = known(log, expected.guesses), estimate(log, expected)
        rows.append(Evaluation(candidate.title, expected.guesses, facts, found, mistakes))
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
    """Let a learner guess every round of a log; return its guesses as positions in the log's classes, −1 for others.

    Parameters
    ----------
    log : LoggedRounds
        The rounds.
    candidate : Candidate
        The learner to evaluate.
    hears : {"facts", "own", "nothing"}
        "facts": after each round, the label that was logged and whether it was right, by `learn_from`, whatever the
        learner itself guessed; then the label that a person named, if one did. "own": the feedback on its own guess,
        where that is known: the logged answer if it guessed the logged label, "wrong" if another label was right, and
        nothing otherwise. "nothing": no answers. A frozen learner gets no feedback.
    preprocessing : {"online", "standardize", "none"}
        The preprocessing for learners that do not scale columns themselves.
    seed : int
        Seed of the learner's random numbers.
    on_progress : callable, optional
        Called now and then with the number of rounds replayed.
    """
    check_choice("hears", hears, _HEARS)
    check_seed(seed)
    rows = check_rows(log.X if candidate.scales_rows else preprocess(log.X, preprocessing))
    truths, show = log.truths(), on_progress or (lambda *_: None)
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
            one_round = _one_round_on_its_own if hears == "own" else _one_round_on_facts
            shown = replace(log, answers=np.full_like(log.answers, UNKNOWN)) if hears == "nothing" else log
            guesses = np.empty(log.n_rounds, dtype=np.int64)
            learner.begin(rows.shape[1])
            for t, allowed in enumerate(log.among or [None] * log.n_rounds):
                try:
                    guesses[t] = one_round(shown, learner, take(rows, t, t + 1), t, allowed, int(truths[t]))
                except ValueError as error:
                    raise ValueError(f"{candidate.title}, round {t}: {error}") from error
                if t % _GLANCE == 0:
                    show(t)
    show(log.n_rounds)
    return guesses


def _one_round_on_facts(
    log: LoggedRounds, learner: Learner, row: Rows, t: int, allowed: Integers | None, _truth: int
) -> int:
    """Guess a round, then learn what the log knows of it: as `guess` and `learn_from`, without checks or tickets."""
    state, key = learner._state, learner._key
    guess = state.guess(row, key, t) if allowed is None else state.guess_among(row, key, t, allowed)
    learner.n_rounds_ = t + 1
    if log.answers[t] != UNKNOWN:
        logged, correct, propensity = int(log.guesses[t]), bool(log.answers[t] == RIGHT), float(log.propensities[t])
        named = -1 if log.named is None else int(log.named[t])
        right = (logged if correct else named) if learner.full_information else -1
        state.learn_from_log(row, logged, correct, right, None if math.isnan(propensity) else propensity)
        if named >= 0 and not correct and not learner.full_information:
            state.learn_from_log(row, named, True, -1, 1.0)  # as `Learner.label` does
    return int(guess[0])


def _one_round_on_its_own(
    log: LoggedRounds, learner: Learner, row: Any, t: int, allowed: Integers | None, truth: int
) -> int:
    """Guess a round, and give the feedback on that guess, if the log has it."""
    guess = learner.guess(row, None if allowed is None else log.classes[allowed])
    if log.answers[t] != UNKNOWN and truth >= 0:
        extra = {"label": log.classes[[truth]].tolist()[0]} if learner.full_information else {}
        learner.tell(guess, guess.index == truth, **extra)
    elif log.answers[t] != UNKNOWN and guess.index == log.guesses[t] and not learner.full_information:
        learner.tell(guess, False)
    return guess.index


def _frozen_guesses(log: LoggedRounds, candidate: Candidate, rows: Rows) -> Integers:
    """Return the labels with the highest scores."""
    own, of_log = candidate.learner.classes_.tolist(), log.classes.tolist()
    if not set(of_log) <= set(own) and set(map(str, of_log)) <= set(map(str, own)):
        # A log file holds text: 3 in a model is "3" in a log.
        own, of_log = [str(label) for label in own], [str(label) for label in of_log]
    if missing := [label for label in of_log if label not in set(own)]:
        raise ValueError(
            f"{candidate.title} does not know the label {missing[0]!r} of the log; it knows {own!r:.200}. Leave it "
            "out, or save a model that knows all labels (classes=[…])"
        )
    # -1: a label not in the log
    places = np.array([of_log.index(label) if label in of_log else -1 for label in own], dtype=np.int64)
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
