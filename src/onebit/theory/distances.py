"""How near examples come to each other: what Lemmas 19 and 20 speak of, exactly.

Lemma 19. Examples with weak margin γ that are at most γ apart have the same label. The proof gives more: those of
different labels are at least √2·γ apart, so the nearest such pair bounds the weak margin from above.

Lemma 20. A γ-packing, points of which any two are more than γ apart, has at most (2R/γ+1)^d points in a ball of radius
R (`onebit.bounds.packing_bound`).

References
----------
Beygelzimer et al. (2019). ICML. Lemmas 19 and 20.
"""

from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

from onebit.exact import Number, check_fraction, check_points
from onebit.labels import check_labels
from onebit.theory.whole_numbers import root_up


class NearestPair(NamedTuple):
    """Two examples, by position, and the square of their distance."""

    first: int
    second: int
    squared_distance: Fraction

    @property
    def weak_margin_bound(self) -> float:
        """What Lemma 19 says the weak margin is at most, if the labels differ: the distance over √2, rounded up."""
        return root_up(self.squared_distance / 2)


def nearest_pair(X: Any, y: Any = None) -> NearestPair | None:
    """Return the two nearest examples, with labels the two nearest of different labels; None if there are none.

    Every pair is looked at, in exact arithmetic: meant for hundreds of examples.

    Parameters
    ----------
    X : sequence of sequences of numbers
        The examples.
    y : sequence, optional
        Their labels.

    Examples
    --------
    >>> pair = nearest_pair([[0, 0], [0, 1], [3, 4]], y=["a", "a", "b"])
    >>> pair.first, pair.second, pair.squared_distance
    (1, 2, Fraction(18, 1))
    >>> pair.weak_margin_bound
    3.0
    """
    points = check_points("X", X)
    labels = None if y is None else check_labels(y, len(points))
    pairs = (
        NearestPair(i, j, sum(((a - b) ** 2 for a, b in zip(points[i], points[j], strict=True)), Fraction(0)))
        for i, j in combinations(range(len(points)), 2)
        if labels is None or labels[i] != labels[j]
    )
    return min(pairs, key=lambda pair: pair.squared_distance, default=None)


def is_packing(X: Any, distance: Number) -> bool:
    """Return whether any two of the points are more than a distance apart, exactly.

    Examples
    --------
    >>> is_packing([[0, 0], [0, 1]], 0.5), is_packing([[0, 0], [0, 1]], 1)
    (True, False)
    """
    apart = check_fraction("distance", distance)
    if apart <= 0:
        raise ValueError(f"distance must be greater than 0; got {distance!r}")
    pair = nearest_pair(X)
    return pair is None or pair.squared_distance > apart**2
