"""Lemmas 19 and 20, exactly: how near examples of different labels come, and how many points a packing has."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import onebit
from onebit.bounds import is_safe_reach, packing_bound
from onebit.theory import margin
from onebit.theory.certificates import is_packing, nearest_pair
from onebit.theory.exact import dot
from onebit.theory.weak_to_strong import weak_margin_of

exactly = settings(derandomize=True, deadline=None, max_examples=50)
entries = st.fractions(-2, 2, max_denominator=12)


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
    pair = nearest_pair(points, codes)
    assume(pair is not None)
    assert pair is not None
    # The lemma's own words, and the √2 that its proof leaves on the table.
    assert pair.squared_distance > gamma**2
    assert pair.squared_distance >= 2 * gamma**2
    assert Fraction(pair.weak_margin_bound) >= gamma
    assert codes[pair.first] != codes[pair.second]


def test_lemma_19_is_an_equality_for_the_points_one_and_minus_one() -> None:
    pair = nearest_pair([[1], [-1]], [0, 1])
    assert pair is not None
    assert pair.squared_distance == 4
    assert pair.weak_margin_bound == pytest.approx(margin([[1.0], [-1.0]], [0, 1]).weak, rel=1e-12)
    assert not is_safe_reach(2, pair.weak_margin_bound)
    assert is_safe_reach(1.999, pair.weak_margin_bound)


@pytest.mark.parametrize("size", [5e-324, 1e-170, 1.0, 0.1, 1e170, 1e307])
def test_the_nearest_pairs_bound_is_none_too_small(size: float) -> None:
    # Squares of such numbers are no floats, and a root rounded down is no bound.
    pair = nearest_pair([[size], [-size]], [0, 1])
    assert pair is not None
    assert margin([[size], [-size]], [0, 1]).weak <= pair.weak_margin_bound
    assert Fraction(pair.weak_margin_bound) ** 2 >= 2 * Fraction(size) ** 2


def test_the_nearest_pair_bounds_measured_margins() -> None:
    for X, y in (onebit.streams.wedges(), onebit.streams.paper_weak(rounds=150, seed=3)):
        pair = nearest_pair(X, y)
        assert pair is not None
        assert margin(X, y).weak <= pair.weak_margin_bound
        assert y[pair.first] != y[pair.second]
        distances = np.linalg.norm(X[:, None] - X[None], axis=2)
        distances[y[:, None] == y[None]] = np.inf
        assert math.sqrt(pair.squared_distance) == pytest.approx(distances.min(), rel=1e-12)


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
    assert nearest_pair([[0, 0]]) is None
    assert nearest_pair([[0, 0], [1, 1]], ["a", "a"]) is None
    pair = nearest_pair([[0], [3], [1]])
    assert pair is not None
    assert pair == (0, 2, Fraction(1))
    assert is_packing([[5]], 1)
    assert not is_packing([[0.5], [0.5]], 0.001)
    assert packing_bound(Fraction(1, 2), Fraction(1, 3), 2) == 16
    with pytest.raises(ValueError, match="distance must be greater than 0; got 0"):
        is_packing([[1], [2]], 0)
    with pytest.raises(ValueError, match="y must hold one label"):
        nearest_pair([[1], [2]], ["a"])
    with pytest.raises(ValueError, match="distance must be greater than 0"):
        packing_bound(1, 0, 2)
