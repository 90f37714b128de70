"""How several learners explore: the label with the highest score, and with some probability one drawn uniformly."""

import math

from onebit.engine.jit import jit_inline
from onebit.engine.loop import highest
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.inputs import Floats


@jit_inline
def mostly_highest(scores: Floats, draw: Draw, exploration: float) -> tuple[int, bool]:
    """Return the label with the highest score, or one drawn uniformly; and whether it was drawn."""
    number = uniform(draw)
    # One number serves both choices: given that it is below the rate, it is uniform again after rescaling.
    if number < exploration:
        return uniform_label(number / exploration, scores.shape[0]), True
    return highest(scores), False


@jit_inline
def chance_of(is_highest: bool, exploration: float, n_classes: int) -> float:
    """Return the propensity of the label with the highest score, or of any other."""
    return exploration / n_classes + (1.0 - exploration if is_highest else 0.0)


@jit_inline
def write_chances(scores: Floats, exploration: float, out: Floats) -> None:
    """Write the propensity of each label."""
    best = highest(scores)
    for i in range(scores.shape[0]):
        out[i] = chance_of(i == best, exploration, scores.shape[0])


@jit_inline
def n_allowed(scores: Floats) -> int:
    """Return the number of labels that were allowed; the scores of the others are −∞."""
    count = 0
    for i in range(scores.shape[0]):
        count += scores[i] > -math.inf
    return count
