"""From predictions and their widths to the chance of each label: the ways to explore.

All learners on regressions share one compiled game; which of these ways it goes is one of its numbers.
"""

import math
from typing import NamedTuple

from onebit.engine.jit import frugal, inlined
from onebit.engine.loop import highest
from onebit.inputs import Floats, Integers
from onebit.learners.regression.winning import winning_chances

OPTIMISTIC, CONFIDENT, ELIMINATING, MIXED, FIRST, GAPS, SAMPLING = range(7)
"""The ways: `LinUCB` and `Confidit`; `RegCB`, both; `EpsilonGreedy`; `ExploreFirst`; `SquareCB`; `ThompsonSampling`."""


class Exploring(NamedTuple):
    """The numbers of a way to explore."""

    way: int
    strength: float
    """How much: what it means is the way's own."""
    n_first: int
    """Until so many answers were heard, `ExploreFirst` explores."""


class RegressionSight(NamedTuple):
    """What is known about one round."""

    scores: Floats
    """What each class's regression predicts, more being better."""
    projected: Floats
    """The same, projected to where `Confidit`'s predictions can lie."""
    widths: Floats
    """√(xᵀAᵢ⁻¹x); 0 where nobody asks for it."""
    square: Floats
    """‖x‖², the only entry."""
    heard: Integers
    """How many answers there were, the only entry."""
    image: Floats
    """Scratch paper: one number per feature."""
    below: Floats
    """Scratch paper for `winning_chances`: one number per class."""
    chances: Floats


@frugal
def weigh(sight: RegressionSight, exploring: Exploring) -> None:
    """Write the chance of each label."""
    chances, n = sight.chances, sight.chances.shape[0]
    for i in range(n):
        chances[i] = 0.0
    if exploring.way == OPTIMISTIC:
        chances[_most_promising(sight, exploring.strength)] = 1.0
    elif exploring.way in (CONFIDENT, ELIMINATING):
        _among_the_plausible(sight, exploring)
    elif exploring.way == GAPS:
        _by_gaps(sight, exploring.strength * math.sqrt(sight.heard[0] + 1.0))
    elif exploring.way == SAMPLING and is_uncertain(sight):
        winning_chances(sight.scores, sight.widths, exploring.strength, sight.below, chances)
    else:
        rate = 0.0
        if exploring.way == MIXED:
            rate = exploring.strength
        elif exploring.way == FIRST and sight.heard[0] < exploring.n_first:
            rate = 1.0
        for i in range(n):
            chances[i] = rate / n
        chances[highest(sight.scores)] += 1.0 - rate


@inlined
def is_uncertain(sight: RegressionSight) -> bool:
    """Say whether all widths are above 0: those of a row of zeros, or of next to nothing, are not."""
    least = math.inf
    for i in range(sight.widths.shape[0]):
        least = min(least, sight.widths[i])
    return least > 0.0


@inlined
def _most_promising(sight: RegressionSight, factor: float) -> int:
    best, top = 0, -math.inf
    for i in range(sight.scores.shape[0]):
        hope = sight.projected[i] + factor * sight.widths[i]
        if hope > top:
            best, top = i, hope
    return best


@inlined
def _within(score: float) -> float:
    """Return minus a cost, cut off where costs end: at −1 and 0."""
    return min(max(score, -1.0), 0.0)


@inlined
def _among_the_plausible(sight: RegressionSight, exploring: Exploring) -> None:
    """Share the chance among the labels with the best upper bound, or among those with any hope to be the best."""
    chances, n = sight.chances, sight.chances.shape[0]
    factor = math.sqrt(exploring.strength * math.log(n * (sight.heard[0] + 1.0)))
    bar, sign = -math.inf, 1.0 if exploring.way == CONFIDENT else -1.0
    for i in range(n):
        bar = max(bar, _within(sight.scores[i] + sign * factor * sight.widths[i]))
    n_plausible = 0
    for i in range(n):
        if _within(sight.scores[i] + factor * sight.widths[i]) >= bar:
            chances[i] = 1.0
            n_plausible += 1
    for i in range(n):
        chances[i] /= n_plausible


@inlined
def _by_gaps(sight: RegressionSight, gamma: float) -> None:
    """Give label i the chance 1/(K + γ·gap) and the rest to the best. Scores are minus costs."""
    chances, n, best = sight.chances, sight.chances.shape[0], highest(sight.scores)
    top, rest = _within(sight.scores[best]), 1.0
    for i in range(n):
        if i != best:
            chances[i] = 1.0 / (n + gamma * (top - _within(sight.scores[i])))
            rest -= chances[i]
    chances[best] = rest


@inlined
def drawn_label(chances: Floats, number: float) -> int:
    """Turn a uniform number in [0, 1) into a label that has its chance."""
    total, last = 0.0, 0
    for i in range(chances.shape[0]):
        if chances[i] > 0.0:
            total, last = total + chances[i], i
            if number < total:
                return i
    return last  # rounding: the chances add up to a little less than 1
