"""Adaptive streams: each round's example may depend on the learner's probabilities.

In a module of its own because it is part of the code of every game, and the adversaries are not.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy.typing as npt

from onebit.inputs import Floats


class LearnerView(NamedTuple):
    """What an adaptive stream may see of a learner: its distribution, never its random numbers."""

    round: int
    probabilities: Callable[[npt.ArrayLike], Floats]
    """The probability of every class for given features, without side effects."""


@runtime_checkable
class AdaptiveStream(Protocol):
    """A stream that chooses each example by the learner's probabilities, before the guess is drawn.

    ``onebit.play(learner, stream)`` plays it. `next` returns None when the game is over. A stream is used once; make
    another for another game.
    """

    classes: Any
    """The labels, or how many."""
    n_features: int

    def next(self, learner: LearnerView) -> tuple[npt.ArrayLike, Any] | None:
        """Return the next features and their label, or None at the end."""
        ...
