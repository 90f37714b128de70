"""Lemmas 19 and 20, exactly: how near examples of different labels come, and how many points a packing has."""

import math
import operator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import onebit
from onebit.bounds import is_safe_reach, packing_bound
from onebit.theory import margin
from onebit.theory.weak_to_strong import weak_margin_of

exactly = settings(derandomize=True, deadline=None, max_examples=50)
entries = st.fractions(-2, 2, max_denominator=12)


def dot(left: Any, right: Any) -> Any:
    """The inner product, exactly."""
    return sum(map(operator.mul, left, right))


def nearest_pair(X: Any, y: Any = None) -> tuple[Fraction, int, int]:
    """The least squared distance, of examples with different labels if there are labels, and whose it is; exact."""
    points = [[Fraction(entry) for entry in x] for x in X]
    pairs = [(i, j) for i, j in combinations(range(len(points)), 2) if y is None or y[i] != y[j]]
    none = Fraction(10**1000), -1, -1
    return min(
        ((sum(((a - b) ** 2 for a, b in zip(points[i], points[j], strict=True)), Fraction(0)), i, j) for i, j in pairs),
        default=none,
    )


def is_packing(X: Any, distance: Any) -> bool:
    return nearest_pair(X)[0] > Fraction(distance) ** 2


@exactly
@given(data=st.data(), K=st.integers(2, 4), d=st.integers(1, 3))
def test_lemma_19(data: st.DataObject, K: int, d: int) -> None:
    rows = st.lists(st.tuples(*[entries] * d), min_size=K, max_size=12)
    w = [tuple(e / (3 * d) for e in v) for v in data.draw(st.lists(st.tuples(*[entries] * d), min_size=K, max_size=K))]
    assume(sum(dot(v, v) for v in w) <= 1)
    points = data.draw(rows)
    codes = [max(range(K), key=[dot(v, x) for v in w].__getitem__) for x in points]
    gamma = weak_margin_of(w, points, codes)
    assume(gamma > 0)
    square, first, second = nearest_pair(points, codes)
    assume(first >= 0)
    # The lemma's own words, and the √2 that its proof leaves on the table.
    assert square > gamma**2
    assert square >= 2 * gamma**2
    assert codes[first] != codes[second]


def test_lemma_19_is_an_equality_for_the_points_one_and_minus_one() -> None:
    assert nearest_pair([[1], [-1]], [0, 1]) == (Fraction(4), 0, 1)
    assert margin([[1.0], [-1.0]], [0, 1]).weak == pytest.approx(math.sqrt(2.0), rel=1e-12)
    assert not is_safe_reach(2, math.sqrt(2.0))
    assert is_safe_reach(1.999, math.sqrt(2.0))


@pytest.mark.parametrize("size", [5e-324, 1e-170, 1.0, 0.1, 1e170, 1e307])
def test_the_nearest_pair_bounds_the_margin_at_any_scale(size: float) -> None:
    # Squares of such numbers are no floats, and a margin rounded up is no margin.
    square, _, _ = nearest_pair([[size], [-size]], [0, 1])
    assert Fraction(margin([[size], [-size]], [0, 1]).weak) ** 2 <= square / 2


def test_the_nearest_pair_bounds_measured_margins() -> None:
    for X, y in (onebit.streams.wedges(), onebit.streams.paper_weak(rounds=150, seed=3)):
        assert Fraction(margin(X, y).weak) ** 2 <= nearest_pair(X, y)[0] / 2


@exactly
@given(data=st.data(), d=st.integers(1, 3), apart=st.fractions(Fraction(1, 4), 2, max_denominator=8))
def test_lemma_20(data: st.DataObject, d: int, apart: Fraction) -> None:
    kept: list[Any] = []
    for x in data.draw(st.lists(st.tuples(*[entries] * d), min_size=1, max_size=40)):
        if is_packing([*kept, x], apart):
            kept.append(x)
    # The longest entry times √d bounds every length; squared it is rational, and rounded up it is a radius.
    radius = Fraction(math.isqrt(math.ceil(max(dot(x, x) for x in kept) * 10**6)) + 1, 1000)
    assert len(kept) <= packing_bound(radius, apart, d)


@pytest.mark.parametrize(("d", "steps"), [(1, 40), (2, 8), (3, 4)])
def test_grids_are_packings_within_the_bound(d: int, steps: int) -> None:
    grid = [tuple(Fraction(e, steps) for e in point) for point in product(range(-steps, steps + 1), repeat=d)]
    inside = [x for x in grid if dot(x, x) <= 1]
    apart = Fraction(1, steps) * Fraction(999, 1000)
    assert is_packing(inside, apart)
    assert not is_packing(inside, Fraction(1, steps))
    assert len(inside) <= packing_bound(1, apart, d)
    # On a line the bound is nearly met; in more dimensions the balls of the proof leave gaps.
    assert d > 1 or len(inside) == 2 * steps + 1 >= packing_bound(1, apart, d) - 1


def test_nearest_neighbour_remembers_a_packing_of_one_label_each() -> None:
    X, y = onebit.streams.paper_weak(rounds=400, seed=5)
    reach = 0.06
    assert is_safe_reach(reach, margin(X, y).weak)
    learner = onebit.NearestNeighbor(reach)
    onebit.play(learner, X, y)
    assert is_packing(learner.support_, reach)
    assert len(learner.support_) <= packing_bound(1, reach, 3)


def test_small_cases() -> None:
    assert packing_bound(Fraction(1, 2), Fraction(1, 3), 2) == 16
    with pytest.raises(ValueError, match="distance must be greater than 0"):
        packing_bound(1, 0, 2)
