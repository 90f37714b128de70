"""How many mistakes nearest neighbour makes at most, and how many examples it remembers: Lemmas 19, 20, Theorem 21.

It remembers an example only if none that it remembers is within its reach r, so any two of them are more than r apart:
balls of radius r/2 around them are disjoint and lie in one of radius R + r/2, which leaves room for (2R/r+1)^d of them
(Lemma 20). Each is found by guessing among K labels, which costs K−1 mistakes on average. The theorem takes r = γ,
within which all examples have one label (Lemma 19); but examples of different classes are at least √2·γ apart, because
‖wᵢ − wⱼ‖ ≤ √2, so every r below that is as safe. At r = √2·γ itself it is not: x = ±1 have γ = √2 and distance 2.
"""

import math
from fractions import Fraction

from onebit.bounds.registry import LARGEST_LOG2, MOST_EXACT_DIMENSIONS, bound, weak_ratio
from onebit.exact import Number, check_decimal, log2
from onebit.inputs import check_integer

# A margin that was measured may be too large by its rounding, and at √2·γ itself the reach is not safe.
_SLACK = Fraction(1, 10**9)


def is_safe_reach(reach: float, margin: float) -> bool:
    """Return whether a reach is below √2·γ, by more than rounding, so that nothing within it has another label.

    This is Lemma 19, which has γ in place of every number below √2·γ.

    Examples
    --------
    >>> is_safe_reach(0.14, margin=0.1), is_safe_reach(0.15, margin=0.1), is_safe_reach(2, margin=math.sqrt(2))
    (True, False, False)
    """
    # In squares √2 need not be rounded.
    return check_decimal("reach", reach) ** 2 < 2 * check_decimal("margin", margin) ** 2 * (1 - _SLACK)


def packing_bound(radius: Number, distance: Number, dimension: int) -> Fraction:
    """Return Lemma 20's (2R/r+1)^d, exactly: the most points in a ball of radius R, any two more than r apart.

    Parameters
    ----------
    radius, distance, dimension : number, number, int
        R, the length of the longest point; r, which the points are more than apart; d entries of each.

    Examples
    --------
    >>> packing_bound(radius=1, distance=0.1, dimension=2)
    Fraction(441, 1)
    """
    base = 2 * check_decimal("radius", radius) / check_decimal("distance", distance) + 1
    return Fraction(base ** check_integer("dimension", dimension, low=1))


def log2_nearest_neighbor_mistakes_within(n_classes: int, radius: float, reach: float, dimension: int) -> float:
    """Return the base-2 logarithm of `nearest_neighbor_mistakes_within`, which says what the parameters mean."""
    K, d = check_integer("n_classes", n_classes, low=1), check_integer("dimension", dimension, low=1)
    return d * log2(packing_bound(radius, check_decimal("reach", reach), 1)) + log2(Fraction(K - 1))


def _log2_memory(radius: float, reach: float, dimension: int) -> float:
    return log2_nearest_neighbor_mistakes_within(2, radius, reach, dimension)


@bound("21-memory", "upper", "updates", binds="nearest neighbour within a reach", log2=_log2_memory)
def nearest_neighbor_memory(radius: float, reach: float, dimension: int) -> float:
    """Return (2R/r+1)^d: the examples that nearest neighbour within r remembers; infinite beyond the largest float.

    Parameters
    ----------
    radius, reach, dimension : float, float, int
        No example is longer than R; r, the learner's radius; d features.

    Examples
    --------
    >>> nearest_neighbor_memory(radius=1, reach=0.1, dimension=2)
    441.0
    """
    # One mistake on average for each example remembered, where there are two classes.
    return nearest_neighbor_mistakes_within(2, radius, reach, dimension)


@bound("21-reach", "upper", binds="nearest neighbour within a safe reach", log2=log2_nearest_neighbor_mistakes_within)
def nearest_neighbor_mistakes_within(n_classes: int, radius: float, reach: float, dimension: int) -> float:
    """Return (K−1)(2R/r+1)^d: the expected mistakes of nearest neighbour within r, which must be a safe reach.

    Parameters
    ----------
    n_classes, radius, reach, dimension : int, float, float, int
        K classes; no example is longer than R; r, the learner's radius (see `is_safe_reach`); d features.

    Examples
    --------
    >>> nearest_neighbor_mistakes_within(n_classes=3, radius=1, reach=0.1, dimension=2)
    882.0
    """
    size = log2_nearest_neighbor_mistakes_within(n_classes, radius, reach, dimension)
    # An upper bound of infinity is true; a lower bound of infinity would not be.
    if size >= LARGEST_LOG2:
        return math.inf
    if dimension > MOST_EXACT_DIMENSIONS:
        return float(2.0**size)
    return float((int(n_classes) - 1) * packing_bound(radius, reach, dimension))


def log2_nearest_neighbor_mistakes(n_classes: int, radius: float, margin: float, dimension: int) -> float:
    """Return the base-2 logarithm of `nearest_neighbor_mistakes`, which says what the parameters mean.

    Examples
    --------
    >>> log2_nearest_neighbor_mistakes(n_classes=2, radius=1.5, margin=1, dimension=500)
    1000.0
    """
    weak_ratio(n_classes, radius, margin)
    return log2_nearest_neighbor_mistakes_within(n_classes, radius, margin, dimension)


@bound("21", "upper", binds="nearest neighbour within the weak margin", log2=log2_nearest_neighbor_mistakes)
def nearest_neighbor_mistakes(n_classes: int, radius: float, margin: float, dimension: int) -> float:
    """Return (K−1)(2R/γ+1)^d: the expected mistakes of nearest neighbour within γ on weakly separable examples.

    Infinite where it exceeds the largest float; see `log2_nearest_neighbor_mistakes`.

    Parameters
    ----------
    n_classes, radius, margin, dimension : int, float, float, int
        K classes, at least 2; no example is longer than R; γ, the weak margin; d features.

    Examples
    --------
    >>> nearest_neighbor_mistakes(n_classes=3, radius=1, margin=0.1, dimension=2)
    882.0
    """
    weak_ratio(n_classes, radius, margin)
    return nearest_neighbor_mistakes_within(n_classes, radius, margin, dimension)


def log2_nearest_neighbor_mistakes_sharp(n_classes: int, radius: float, margin: float, dimension: int) -> float:
    """Return the base-2 logarithm of `nearest_neighbor_mistakes_sharp`, which says what the parameters mean."""
    ratio = weak_ratio(n_classes, radius, margin)
    # √2·R/γ = √(2(R/γ)²) is the only root; where it is beyond a float the 1 does not matter.
    base = math.log2(math.sqrt(2 * ratio) + 1.0) if ratio < 2**1000 else log2(2 * ratio) / 2
    return check_integer("dimension", dimension, low=1) * base + math.log2(n_classes - 1)


@bound(
    "21-sharp",
    "upper",
    binds="nearest neighbour just within √2 times the weak margin",
    log2=log2_nearest_neighbor_mistakes_sharp,
)
def nearest_neighbor_mistakes_sharp(n_classes: int, radius: float, margin: float, dimension: int) -> float:
    """Return (K−1)(√2·R/γ+1)^d: nearest neighbour within a radius just below √2·γ instead of γ.

    Infinite where it exceeds the largest float.

    Parameters
    ----------
    n_classes, radius, margin, dimension : int, float, float, int
        K classes, at least 2; no example is longer than R; γ, the weak margin; d features.

    Examples
    --------
    >>> round(nearest_neighbor_mistakes_sharp(n_classes=3, radius=1, margin=0.1, dimension=2), 1)
    458.6
    """
    if log2_nearest_neighbor_mistakes_sharp(n_classes, radius, margin, dimension) >= LARGEST_LOG2:
        return math.inf
    base = math.sqrt(2 * weak_ratio(n_classes, radius, margin)) + 1.0
    return (int(n_classes) - 1) * base ** int(dimension)
