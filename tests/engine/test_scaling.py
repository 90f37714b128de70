"""Lengths at every scale: the compiled and the NumPy form, dense and sparse rows."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from onebit.engine.jit import jit
from onebit.engine.scaling import (
    are_safe,
    divided_by_units,
    power_of_two_below,
    row_lengths,
    shorten,
    unit_of,
    unit_rows,
)
from onebit.inputs import Floats

POWERS = [-1000, -600, -330, 0, 330, 600, 1000]
ROWS = np.random.default_rng(0).normal(size=(6, 7))


@jit
def _shortened(values: Floats) -> float:
    return shorten(values, values.shape[0])


@pytest.mark.parametrize("power", POWERS)
def test_a_power_of_two_changes_no_bit_of_a_row_divided_by_its_length(power: int) -> None:
    expected = unit_rows(ROWS)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1.0, rtol=1e-15)
    assert np.array_equal(unit_rows(np.ldexp(ROWS, power)), expected)
    assert np.array_equal(unit_rows(np.ldexp(ROWS[:1], power)), expected[:1])
    assert np.array_equal(row_lengths(np.ldexp(ROWS, power)), np.ldexp(row_lengths(ROWS), power))
    one, other = ROWS[0].copy(), np.ldexp(ROWS[0], power)
    assert _shortened(other) == np.ldexp(_shortened(one), power)
    assert np.array_equal(one, other)
    np.testing.assert_allclose(one, expected[0], rtol=1e-15)


def test_rows_of_all_scales_beside_each_other() -> None:
    X = np.vstack([np.ldexp(ROWS[0], power) for power in POWERS] + [np.zeros(7)])
    assert np.array_equal(unit_rows(X), np.vstack([unit_rows(ROWS[:1])] * len(POWERS) + [np.zeros((1, 7))]))
    assert _shortened(np.zeros(3)) == 0.0


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-170, 3.0, 2.0**1000, 1.7e308])
def test_powers_of_two(size: float) -> None:
    power = power_of_two_below(size)
    assert power <= size
    assert size / power < 2.0
    assert math.frexp(power)[0] == 0.5
    assert unit_of(size) == (1.0 if size == 3.0 else power)


def test_safe_numbers() -> None:
    assert are_safe(np.array([0.0, -1.0]))
    for numbers in ([0.0], [1e-310, 0.0], [1e300], [np.inf, 1.0], [np.nan, 1.0]):
        assert not are_safe(np.array(numbers))


def test_ordinary_rows_are_not_copied() -> None:
    rows: Any
    for rows in (ROWS, scipy.sparse.csr_array(ROWS)):
        assert divided_by_units(rows, axis=0) is rows
