"""A learner on the rounds of a log: it guesses every one, and gets the feedback that the log contains.

It guesses a round before it gets its feedback, so a guess depends on the rounds before and on its own random numbers,
never on this round's answer. The results describe the learner as it was run here: in a stream of its own it would have
got other feedback, and would have guessed differently later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebit.experiments.evaluate.logged_rounds import RIGHT, UNKNOWN, LoggedRounds
from onebit.game import Guess
from onebit.inputs import Integers, check_choice
from onebit.learners import Learner
from onebit.streams.preprocess import preprocess

HEARS = ("facts", "own", "nothing")
"""The feedback of a log: every answer, as a round that others played; only what the learner would have got itself;
nothing."""


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


def replay(
    log: LoggedRounds,
    candidate: Candidate,
    *,
    hears: str = "facts",
    preprocessing: str = "online",
    seed: int = 0,
    on_round: Callable[[], None] | None = None,
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
    on_round : callable, optional
        Called after every round.

    Returns
    -------
    array of int
        Positions in the log's classes; −1 for a label that the log does not have.
    """
    check_choice("hears", hears, HEARS)
    rows = log.X if candidate.scales_rows else preprocess(log.X, preprocessing)
    if candidate.is_frozen:
        return _frozen_guesses(log, candidate, rows, on_round)
    learner = _fresh(candidate.learner, log, seed)
    facts = log.classes[log.guesses], log.answers == RIGHT, log.propensities
    labels, truths = log.classes.tolist(), log.truths()
    guesses = np.empty(log.n_rounds, dtype=np.int64)
    for t in range(log.n_rounds):
        allowed = log.allowed(t)
        row = rows[[t]] if hasattr(rows, "indptr") else rows[t]
        guess = learner.guess(row, None if allowed is None else log.classes[allowed])
        guesses[t] = guess.index
        if log.answers[t] != UNKNOWN and hears != "nothing":
            try:
                if hears == "facts":
                    # As arrays of one: lists would be searched for frames.
                    tried, correct, chance = (each[t : t + 1] for each in facts)
                    learner.learn_from(rows[[t]], tried, correct, None if np.isnan(chance[0]) else chance)
                else:
                    _hear_own(learner, log, guess, int(truths[t]), labels, t)
            except ValueError as error:
                raise ValueError(f"{candidate.title}, round {t}: {error}") from error
        if on_round is not None:
            on_round()
    return guesses


def _fresh(learner: Learner, log: LoggedRounds, seed: int) -> Learner:
    """Return an unplayed learner with the same settings and the labels of the log."""
    settings = learner.get_params(deep=False)
    return type(learner)(**{**settings, "classes": log.classes.tolist(), "seed": seed})


def _hear_own(learner: Learner, log: LoggedRounds, guess: Guess, truth: int, labels: list[Any], t: int) -> None:
    if truth >= 0:
        extra = {"label": labels[truth]} if learner.full_information else {}
        learner.tell(guess, guess.index == truth, **extra)
    elif guess.index == log.guesses[t] and not learner.full_information:
        learner.tell(guess, False)


def _frozen_guesses(
    log: LoggedRounds, candidate: Candidate, rows: Any, on_round: Callable[[], None] | None
) -> Integers:
    """Return the labels with the highest scores."""
    learner = candidate.learner
    places = _places_in_log(log, candidate)
    try:
        scores = learner.score_classes(rows)
    except ValueError as error:
        raise ValueError(
            f"{candidate.title}: {error}. A saved model guesses rows with the columns that it was trained on"
        ) from error
    if log.among is not None:
        for t, allowed in enumerate(log.among):
            if allowed is not None:
                scores[t, ~np.isin(places, allowed)] = -np.inf
    if on_round is not None:
        for _ in range(log.n_rounds):
            on_round()
    guesses: Integers = places[np.argmax(scores, axis=1)]
    return guesses


def _places_in_log(log: LoggedRounds, candidate: Candidate) -> Integers:
    """Return the positions of a saved learner's labels among those of the log, −1 for a label not in it."""
    own = candidate.learner.classes_.tolist()
    known = {label: place for place, label in enumerate(log.classes.tolist())}
    if not known.keys() <= set(own) and {str(label) for label in known} <= {str(label) for label in own}:
        # A log file holds text: 3 in a model is "3" in a log.
        own, known = [str(label) for label in own], {str(label): place for label, place in known.items()}
    missing = [label for label in known if label not in set(own)]
    if missing:
        raise ValueError(
            f"{candidate.title} does not know the label {missing[0]!r} of the log; it knows {own!r:.200}. Leave it "
            "out, or save a model that was told all labels (classes=[…])"
        )
    return np.array([known.get(label, -1) for label in own], dtype=np.int64)
