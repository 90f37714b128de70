"""Pairs of floats and whole numbers, against fractions."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.inputs import Floats
from onebit.theory import double_double
from onebit.theory.evidence import longest
from onebit.theory.whole_numbers import root_down, root_up, vanishing_weights, whole

property_test = settings(max_examples=60, derandomize=True, deadline=None)
# Far from where floats under- or overflow.
numbers = st.floats(-1.0, 1.0).filter(lambda value: value == 0.0 or abs(value) > 1e-100)


def as_fraction(pair: Floats) -> Fraction:
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def pairs(rng: np.random.Generator, *shape: int) -> Floats:
    high = rng.standard_normal(shape)
    return np.stack([high, high * 2.0**-54 * rng.uniform(-1.0, 1.0, shape)], axis=-1)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
@property_test
def test_products_have_twice_the_digits(terms: list[tuple[float, float]]) -> None:
    row, vector, out = np.array([[a for a, _ in terms]]), np.array([[b, 0.0] for _, b in terms]), np.empty((1, 2))
    double_double.products_with(row, vector, out)
    exact = sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(0))
    size = sum((abs(Fraction(a) * Fraction(b)) for a, b in terms), Fraction(0))
    assert abs(as_fraction(out[0]) - exact) <= len(terms) * size / 2**102


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8), st.booleans())
@property_test
def test_lower_bounds_are_below_and_near(terms: list[tuple[float, float, float]], is_weak: bool) -> None:
    x, w, v = (np.array(column) for column in zip(*terms, strict=True))
    out = np.empty(1)
    double_double.least_conditions(x[None], np.array([0]), np.array([w, v]), is_weak, out)
    own, rival = (sum((Fraction(a) * Fraction(b) for a, b in zip(x, u, strict=True)), Fraction(0)) for u in (w, v))
    exact = own - rival if is_weak else min(own, -rival)
    size = sum((abs(Fraction(a)) * (abs(Fraction(b)) + abs(Fraction(c))) for a, b, c in terms), Fraction(0))
    assert Fraction(float(out[0])) <= exact
    assert Fraction(float(out[0])) >= exact - abs(exact) / 2**50 - size * 32 / 2**102 - Fraction(1, 2**800)


def test_a_triangle_of_pairs_is_solved_and_kept_by_rotations() -> None:
    rng = np.random.default_rng(0)
    q, r = np.zeros((4, 6, 2)), np.zeros((4, 4, 2))
    columns = pairs(rng, 4, 6)
    for count, column in enumerate(columns):
        rest, products, length = column.copy(), np.zeros((count, 2)), np.empty(2)
        for _ in range(2):
            double_double.project_out(rest, q, count, products)
        double_double.normalize(rest, length)
        q[count], r[:count, count], r[count, count] = rest, products, length
    for kept in ([0, 1, 2, 3], [0, 2, 3]):
        if len(kept) == 3:
            double_double.delete_column(q, r, 1, 3)
        for j, column in enumerate(kept):
            for k in range(6):
                made = sum((as_fraction(q[i, k]) * as_fraction(r[i, j]) for i in range(j + 1)), Fraction(0))
                assert abs(made - as_fraction(columns[column, k])) < Fraction(1, 2**95)
    right, solution = pairs(rng, 3), np.empty((3, 2))
    double_double.back_substitute(r, right, solution)
    for i in range(3):
        left = sum((as_fraction(r[i, j]) * as_fraction(solution[j]) for j in range(i, 3)), Fraction(0))
        assert abs(left - as_fraction(right[i])) < Fraction(1, 2**90)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6))
@property_test
def test_whole_numbers_are_the_floats(values: list[float]) -> None:
    found, exponent = whole(values)
    assert [Fraction(int(value)) * Fraction(2) ** exponent for value in found] == [Fraction(value) for value in values]


@given(st.fractions(min_value=0, max_value=10**40), st.integers(-200, 200))
@property_test
def test_roots_are_next_to_each_other(value: Fraction, exponent: int) -> None:
    square = value * Fraction(4) ** exponent
    low, high = root_down(square), root_up(square)
    assert Fraction(low) ** 2 <= square <= Fraction(high) ** 2
    assert high in (low, math.nextafter(low, math.inf))
    assert (low == high) == (Fraction(low) ** 2 == square)


def test_roots_beyond_the_largest_float() -> None:
    largest = Fraction(sys.float_info.max)
    assert root_up(largest**2) == root_down(largest**2) == root_down(4 * largest**2) == sys.float_info.max
    assert root_up(largest**2 + 1) == math.inf


def test_the_longest_row_is_rounded_up() -> None:
    assert longest(np.array([[2.0**900, 2.0**-900]])) > 2.0**900
    assert longest(np.array([[3.0, 4.0], [1.0, 1.0]])) == 5.0
    assert longest(np.array([[3e200, 4e200], [1.0, 1.0]])) == pytest.approx(5e200, rel=1e-15)
    assert longest(np.zeros((2, 3))) == 0.0
    assert Fraction(longest(np.array([[1.0, 1.0]]))) ** 2 > 2


@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize("spread", [0, 30])
def test_weights_that_cancel_rows(size: int, spread: int) -> None:
    rng = np.random.default_rng(size)
    mantissas = rng.integers(-(10**9), 10**9, (size, size)).astype(object)
    rows = mantissas << rng.integers(0, spread + 1, (size, size)).astype(object)
    weights = rng.integers(1, 1000, size).astype(object)
    last = -(weights @ rows)
    found = vanishing_weights(np.concatenate([rows, 3 * last[None]]))
    assert found is not None
    assert [Fraction(each, found[-1]) for each in found[:-1]] == [3 * each for each in weights]
    # With the other sign weights would be negative; one more equation, or one row less, and there are none.
    assert vanishing_weights(np.concatenate([rows, -last[None]])) is None
    assert (
        vanishing_weights(np.column_stack([np.concatenate([rows, last[None]]), np.eye(size + 1, dtype=int)[0]])) is None
    )
    assert vanishing_weights(rows) is None


def test_rows_of_zeros_cancel() -> None:
    assert vanishing_weights(np.zeros((1, 3), dtype=object)) == [1]
    assert vanishing_weights(np.zeros((2, 3), dtype=object)) is None
    # Dependent columns are no obstacle.
    assert vanishing_weights(np.array([[1, 2, 0], [-2, -4, 0]], dtype=object)) == [2, 1]
