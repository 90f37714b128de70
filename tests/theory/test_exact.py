"""Floats as whole numbers, roots on either side, and exact zeros, against fractions."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.theory.certificates import _root_down, root_up, whole
from onebit.theory.exact import vanishing_weights

property_test = settings(max_examples=60, derandomize=True, deadline=None)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6))
@property_test
def test_whole_numbers_are_the_floats(values: list[float]) -> None:
    found, exponent = whole(values)
    assert [Fraction(int(value)) * Fraction(2) ** exponent for value in found] == [Fraction(value) for value in values]


@given(st.fractions(min_value=0, max_value=10**40), st.integers(-200, 200))
@property_test
def test_roots_are_next_to_each_other(value: Fraction, exponent: int) -> None:
    square = value * Fraction(4) ** exponent
    low, high = _root_down(square), root_up(square)
    assert Fraction(low) ** 2 <= square <= Fraction(high) ** 2
    assert high in (low, math.nextafter(low, math.inf))
    assert (low == high) == (Fraction(low) ** 2 == square)


def test_roots_beyond_the_largest_float() -> None:
    largest = Fraction(sys.float_info.max)
    assert root_up(largest**2) == _root_down(largest**2) == _root_down(4 * largest**2) == sys.float_info.max
    assert root_up(largest**2 + 1) == math.inf


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


def test_largest_whole_numbers_of_32_bits_cancel() -> None:
    # They are zero to one prime, and often stand for what is missing.
    most = 2**31 - 1
    assert vanishing_weights(np.array([[most, 1], [-most, 0], [0, -1]], dtype=object)) == [1, 1, 1]
    assert vanishing_weights(np.array([[most, 1], [-most, 0], [1, -1]], dtype=object)) == [most, most + 1, most]
