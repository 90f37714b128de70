"""How several learners explore: the label with the highest score, and with probability ``settings[0]`` any label.

And what they ask of a propensity that they divide by.
"""

import math
from typing import Any

import numpy as np

from onebit.engine.algorithm import highest
from onebit.engine.jit import jit_inline
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.inputs import Floats, Rows, SparseRows
from onebit.spaces.rule import needed_propensity


@jit_inline
def mostly_highest(scores: Floats, draw: Draw, settings: Any) -> tuple[int, bool]:
    """Return the label with the highest score, or one drawn uniformly; and whether it was drawn."""
    if settings[0] > 0.0:
        number = uniform(draw)
        # One number serves both choices: given that it is below the rate, it is uniform again after rescaling.
        if number < settings[0]:
            return uniform_label(number / settings[0], scores.shape[0]), True
    return highest(scores), False


@jit_inline
def propensity_of(is_highest: bool, rate: float, n_classes: int) -> float:
    """Return the propensity of the label with the highest score, or of any other."""
    return rate / n_classes + (1.0 - rate if is_highest else 0.0)


@jit_inline
def fill_propensities(scores: Floats, settings: Any, out: Floats) -> None:
    """Write the propensity of each label."""
    best = highest(scores)
    for i in range(scores.shape[0]):
        out[i] = propensity_of(i == best, settings[0], scores.shape[0])


@jit_inline
def choose_mostly_highest(scratch: Any, draw: Draw, settings: Any) -> tuple[int, bool]:
    """Do it as the `choose` of an `Algorithm`."""
    label, explored = mostly_highest(scratch.scores, draw, settings)
    is_highest = not explored or label == highest(scratch.scores)
    scratch.propensities[label] = propensity_of(is_highest, settings[0], scratch.scores.shape[0])
    return label, explored


@jit_inline
def write_propensities(scratch: Any, settings: Any) -> None:
    """Do it as the `probabilities` of an `Algorithm`."""
    fill_propensities(scratch.scores, settings, scratch.propensities)


@jit_inline
def n_allowed(scores: Floats) -> int:
    """Return the number of labels that were allowed; the scores of the others are −∞."""
    count = 0
    for i in range(scores.shape[0]):
        count += scores[i] > -math.inf
    return count


@jit_inline
def write_softmax(scores: Floats, sharpness: float, out: Floats) -> int:
    """Write the softmax of the scores times `sharpness`; return the label with the highest. One not allowed gets 0."""
    greedy, total = highest(scores), 0.0
    for i in range(scores.shape[0]):
        out[i] = math.exp(sharpness * (scores[i] - scores[greedy]))
        total += out[i]
    for i in range(scores.shape[0]):
        out[i] /= total
    return greedy


LARGEST_SQUARE = 1e100
"""Of a row, for learners that divide it by a propensity: the squares of its squares must be floats."""


def divisible_propensity(propensity: float | None, row: Rows) -> float:
    """Return the propensity of a label that was tried, for learners that square what they divide by it."""
    needed = needed_propensity(propensity)
    entries = row.values if isinstance(row, SparseRows) else row
    if not (needed >= 1.0 / LARGEST_SQUARE and float(np.vdot(entries, entries)) <= LARGEST_SQUARE * needed):
        raise ValueError(
            f"propensities must not be so small ({propensity}) that a step divided by them is no number; scale the "
            "features, or leave that round out"
        )
    return needed
