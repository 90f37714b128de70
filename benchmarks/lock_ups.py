"""Streams of few rows without noise on which a learner that keeps facts can repeat a mistake forever.

Right guesses on neighbours prove "not y" where y is right, so that y scores below classes that were proved wrong there,
and the same wrong guess teaches nothing new.
"""

import numpy as np

from onebit.checks.problems import Problem
from onebit.inputs import Floats, Integers


def _three_directions(n_rounds: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
    angles = np.radians([-13.0, 13.0, 0.0])
    y = generator.integers(3, size=n_rounds)
    return np.column_stack([np.cos(angles), np.sin(angles)])[y], y


def _ten_levels(n_rounds: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
    y = generator.integers(10, size=n_rounds)
    return np.column_stack([(y - 4.5) / np.std(np.arange(10)), np.ones(n_rounds)]), y


def _two_ratings(n_rounds: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
    labels, (i, j) = generator.integers(5, size=(5, 5)), generator.integers(5, size=(2, n_rounds))
    spread = np.std(np.arange(5))
    return np.column_stack([(i - 2) / spread, (j - 2) / spread, np.ones(n_rounds)]), labels[i, j]


def _in_turn(n_rounds: int, _generator: np.random.Generator) -> tuple[Floats, Integers]:
    y = np.arange(n_rounds) % 3
    return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [3**-0.5, 3**-0.5, 3**-0.5]])[y], y


_LOCK_UPS = {
    "three directions": (_three_directions, 3),
    "ten levels": (_ten_levels, 10),
    "two ratings": (_two_ratings, 5),
    "rows in turn": (_in_turn, 3),
}


def lock_up_problem(name: str, n_rounds: int, seed: int) -> Problem:
    """Return "three directions", "ten levels" (of a rating), "two ratings" (with random labels) or "rows in turn"."""
    draw, n_classes = _LOCK_UPS[name]
    X, y = draw(n_rounds, np.random.default_rng(seed))
    return Problem(X, y, n_classes)
