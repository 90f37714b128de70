"""Lengths of rows at any scale: beyond 1e154 squares overflow, below 1e-162 they vanish.

Where squares would be lost, numbers are first divided by their *unit*: the power of two just below the largest of them.
That is exact, so a row and the same row times a power of two are the same to the last bit once each is divided by its
length. Where squares are safe nothing is divided.
"""

import math
from typing import Any

import numpy as np
import scipy.sparse

from onebit.engine.jit import jit_inline
from onebit.inputs import Floats

LEAST, MOST = 1e-100, 1e100
"""Numbers of sizes between these have safe squares, however many are added up."""
LEAST_SQUARE, MOST_SQUARE = LEAST**2, MOST**2


@jit_inline
def power_of_two_below(size: float) -> float:
    """Return the largest power of two that is at most a size greater than 0."""
    return math.ldexp(0.5, math.frexp(size)[1])


@jit_inline
def unit_of(largest: float) -> float:
    """Return what to divide numbers by whose largest has this size: 1 where their squares are safe."""
    return 1.0 if largest == 0.0 or LEAST < largest < MOST else power_of_two_below(largest)


@jit_inline
def are_safe(numbers: Floats) -> bool:
    """Return whether numbers are far from overflow, and not all zero or so small that digits may be lost."""
    total = 0.0  # one sum, and no branch for each
    for i in range(numbers.shape[0]):
        total += abs(numbers[i])
    return LEAST_SQUARE < total < MOST_SQUARE


@jit_inline
def to_unit(values: Floats, n: int) -> tuple[float, float]:
    """Divide n values by their unit; return the unit and the sum of their squares then."""
    total, unit = 0.0, 1.0
    for e in range(n):
        total += values[e] * values[e]
    if not LEAST_SQUARE < total < MOST_SQUARE:
        total, largest = 0.0, 0.0
        for e in range(n):
            largest = max(largest, abs(values[e]))
        unit = unit_of(largest)
        for e in range(n):
            values[e] /= unit
            total += values[e] * values[e]
    return unit, total


@jit_inline
def shorten(values: Floats, n: int) -> float:
    """Divide n values by their length, unless all are 0; return that length."""
    unit, square = to_unit(values, n)
    length = math.sqrt(square)
    for e in range(n if length > 0.0 else 0):
        values[e] /= length
    return length * unit


def _units_of(largest: Floats) -> Floats:
    """Return the unit for each of several sizes."""
    is_safe = (largest == 0.0) | ((largest > LEAST) & (largest < MOST))
    units: Floats = np.where(is_safe, 1.0, np.ldexp(0.5, np.frexp(largest)[1]))
    return units


def row_lengths(X: Floats) -> Floats:
    """Return the length of every row."""
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", X, X))
    if not _are_safe(lengths):
        units = _units_of(np.abs(X).max(axis=1))
        scaled = X / units[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled)) * units
    return lengths


def unit_rows(X: Floats) -> Floats:
    """Return rows divided by their lengths; a row of zeros stays."""
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", X, X))
    if len(lengths) == 1 and LEAST < lengths[0] < MOST:
        shortened: Floats = X / lengths[0]  # what every single round brings
        return shortened
    if not _are_safe(lengths):
        X = X / _units_of(np.abs(X).max(axis=1))[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    return X / np.where(lengths > 0.0, lengths, 1.0)[:, None]


def _are_safe(lengths: Floats) -> bool:
    return bool(lengths.min(initial=1.0) > LEAST and lengths.max(initial=1.0) < MOST)


def columns_to_unit(X: Any) -> Any:
    """Return rows, dense or sparse, with every column divided by its unit; the same rows if all units are 1."""
    if scipy.sparse.issparse(X):
        units = _units_of(abs(X).max(axis=0).toarray().ravel())
        return X if np.all(units == 1.0) else _entries_divided(X, units, axis=1)
    units = _units_of(np.maximum(X.max(axis=0), -X.min(axis=0)))
    return X if np.all(units == 1.0) else X / units


def sparse_rows_to_unit(X: Any) -> Any:
    """Return sparse rows, each divided by its unit; the same rows if all units are 1."""
    units = _units_of(abs(X).max(axis=1).toarray().ravel())
    return X if np.all(units == 1.0) else _entries_divided(X, units, axis=0)


def _entries_divided(X: Any, units: Floats, axis: int) -> Any:
    # Entry by entry: one over the smallest unit is no float.
    entries = X.tocoo(copy=True)
    entries.data = entries.data / units[entries.coords[axis]]
    return entries.tocsr()
