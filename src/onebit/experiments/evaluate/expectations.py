"""How likely each label was to be right, estimated from the rounds before.

A ridge regression per class learns the log block by block and predicts each block before learning from it. So its
predictions depend on earlier rounds alone: however wrong they are, they do not bias a doubly robust estimate.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.experiments.evaluate.logged_rounds import RIGHT, LoggedRounds
from onebit.inputs import Floats, Integers
from onebit.learners import EpsilonGreedy
from onebit.streams.preprocess import preprocess

_FIRST_BLOCK, _GROWTH = 50, 0.1  # rounds; later blocks are a tenth of the rounds so far
_MOST_NUMBERS = 1 << 22  # in the matrices of a regression; beyond, their diagonals
_LEAST = 1e-3  # least probability before normalising


class Expected(NamedTuple):
    """What was expected of guesses, round by round, given the rounds before."""

    guesses: Integers
    of_guess: Floats
    """How likely the guess was to be right."""
    of_logged: Floats
    """How likely the logged label was to be right."""
    squares: Floats
    """The sum of the squared probabilities of all labels."""

    def at(self, rounds: npt.NDArray[np.bool_]) -> "Expected":
        """Return the same of some rounds only."""
        return Expected(self.guesses[rounds], self.of_guess[rounds], self.of_logged[rounds], self.squares[rounds])


def expect(log: LoggedRounds, asked: Sequence[Integers]) -> list[Expected]:
    """Return how likely guesses were to be right, given the rounds before.

    Parameters
    ----------
    log : LoggedRounds
        The rounds.
    asked : sequence of arrays of int
        Guesses for every round, as positions; −1 for a label that is not in the log, which has probability 0.

    Returns
    -------
    list of Expected
        One for each. Over the labels that were allowed in a round the probabilities sum to 1.
    """
    rows, n_classes = preprocess(log.X, "online"), len(log.classes)
    model = EpsilonGreedy(
        exploration=0.0, diagonal=n_classes * rows.shape[1] ** 2 > _MOST_NUMBERS, classes=log.classes.tolist()
    )
    answers, labels = log.is_answered, log.classes[log.guesses]
    wanted = [log.guesses, *asked]
    chances, squares = [np.empty(log.n_rounds) for _ in wanted], np.empty(log.n_rounds)
    for start, stop in _blocks(log.n_rounds):
        if start == 0:
            expected = np.ones((stop, n_classes))
        else:
            expected = np.clip(model.score_classes(rows[start:stop]), _LEAST, 1.0)
        if log.among is not None:
            for t in range(start, stop):
                allowed = log.allowed(t)
                if allowed is not None:
                    expected[t - start, np.setdiff1d(np.arange(n_classes), allowed)] = 0.0
        expected /= expected.sum(axis=1, keepdims=True)
        squares[start:stop] = np.sum(expected**2, axis=1)
        for found, guesses in zip(chances, wanted, strict=True):
            places = guesses[start:stop]
            found[start:stop] = np.where(places >= 0, expected[np.arange(stop - start), places], 0.0)
        # Even without answers so far: the model must be started before it predicts.
        answered = np.flatnonzero(answers[start:stop]) + start
        if len(answered):
            model.learn_from(rows[answered], labels[answered], log.answers[answered] == RIGHT)
        elif start == 0:
            model.begin(rows.shape[1])
    of_logged, *of_guesses = chances
    return [Expected(guesses, own, of_logged, squares) for guesses, own in zip(asked, of_guesses, strict=True)]


def _blocks(n_rounds: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < n_rounds:
        stop = min(n_rounds, start + max(_FIRST_BLOCK, int(_GROWTH * start)))
        yield start, stop
        start = stop
