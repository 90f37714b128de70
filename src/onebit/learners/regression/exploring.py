"""From predictions and their widths to the propensity of each label: the ways to explore.

All regression learners share one compiled algorithm; the way to explore is one of its settings.
"""

import math
from typing import NamedTuple

from onebit.engine.jit import jit_inline, jit_no_refcount
from onebit.engine.loop import highest
from onebit.inputs import Floats, Integers
from onebit.learners.regression.winning import winning_chances

OPTIMISTIC, CONFIDENT, ELIMINATING, MIXED, FIRST, GAPS, SAMPLING = range(7)
"""The ways: `LinUCB` and `Confidit`; `RegCB`, both; `EpsilonGreedy`; `ExploreFirst`; `SquareCB`; `ThompsonSampling`."""


class Exploring(NamedTuple):
    """A way to explore and its settings."""

    way: int
    strength: float
    """How much to explore; its meaning depends on the way."""
    n_first: int
    """The number of answers for which `ExploreFirst` explores."""


class RegressionScratch(NamedTuple):
    """What is known about one round."""

    scores: Floats
    """The prediction of each class's regression; higher is better."""
    projected: Floats
    """The same, projected to the range of `Confidit`'s model."""
    widths: Floats
    """√(xᵀAᵢ⁻¹x); 0 where it is not needed."""
    square: Floats
    """‖x‖², the only entry."""
    heard: Integers
    """The number of answers so far; one entry."""
    image: Floats
    """Work space: one number per feature."""
    below: Floats
    """Work space of `winning_chances`: one number per class."""
    propensities: Floats


@jit_no_refcount
def probabilities(scratch: RegressionScratch, exploring: Exploring) -> None:
    """Write the propensity of each label."""
    propensities, n = scratch.propensities, scratch.propensities.shape[0]
    for i in range(n):
        propensities[i] = 0.0
    if exploring.way == OPTIMISTIC:
        propensities[_most_promising(scratch, exploring.strength)] = 1.0
    elif exploring.way in (CONFIDENT, ELIMINATING):
        _among_the_plausible(scratch, exploring)
    elif exploring.way == GAPS:
        _by_gaps(scratch, exploring.strength * math.sqrt(scratch.heard[0] + 1.0))
    elif exploring.way == SAMPLING and is_uncertain(scratch):
        winning_chances(scratch.scores, scratch.widths, exploring.strength, scratch.below, propensities)
    else:
        rate = 0.0
        if exploring.way == MIXED:
            rate = exploring.strength
        elif exploring.way == FIRST and scratch.heard[0] < exploring.n_first:
            rate = 1.0
        for i in range(n):
            propensities[i] = rate / n
        propensities[highest(scratch.scores)] += 1.0 - rate


@jit_inline
def is_uncertain(scratch: RegressionScratch) -> bool:
    """Return whether all widths are above 0: those of a row of (nearly) zeros are not."""
    least = math.inf
    for i in range(scratch.widths.shape[0]):
        least = min(least, scratch.widths[i])
    return least > 0.0


@jit_inline
def _most_promising(scratch: RegressionScratch, factor: float) -> int:
    best, top = 0, -math.inf
    for i in range(scratch.scores.shape[0]):
        hope = scratch.projected[i] + factor * scratch.widths[i]
        if hope > top:
            best, top = i, hope
    return best


@jit_inline
def _within(score: float) -> float:
    """Return minus a cost, clipped to [−1, 0]."""
    return min(max(score, -1.0), 0.0)


@jit_inline
def _among_the_plausible(scratch: RegressionScratch, exploring: Exploring) -> None:
    """Spread the propensity evenly over the labels with the best upper bound, or over those that may be the best."""
    propensities, n = scratch.propensities, scratch.propensities.shape[0]
    factor = math.sqrt(exploring.strength * math.log(n * (scratch.heard[0] + 1.0)))
    bar, sign = -math.inf, 1.0 if exploring.way == CONFIDENT else -1.0
    for i in range(n):
        bar = max(bar, _within(scratch.scores[i] + sign * factor * scratch.widths[i]))
    n_plausible = 0
    for i in range(n):
        if _within(scratch.scores[i] + factor * scratch.widths[i]) >= bar:
            propensities[i] = 1.0
            n_plausible += 1
    for i in range(n):
        propensities[i] /= n_plausible


@jit_inline
def _by_gaps(scratch: RegressionScratch, gamma: float) -> None:
    """Give label i the propensity 1/(K + γ·gap) and the rest to the best. Scores are minus costs."""
    propensities, n, best = scratch.propensities, scratch.propensities.shape[0], highest(scratch.scores)
    top, rest = _within(scratch.scores[best]), 1.0
    for i in range(n):
        if i != best:
            propensities[i] = 1.0 / (n + gamma * (top - _within(scratch.scores[i])))
            rest -= propensities[i]
    propensities[best] = rest


@jit_inline
def drawn_label(propensities: Floats, number: float) -> int:
    """Draw a label by its propensity from a uniform number in [0, 1)."""
    total, last = 0.0, 0
    for i in range(propensities.shape[0]):
        if propensities[i] > 0.0:
            total, last = total + propensities[i], i
            if number < total:
                return i
    return last  # rounding: the propensities add up to a little less than 1
