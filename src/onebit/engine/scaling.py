"""Lengths of rows at any scale, and columns scaled as they come; squares neither overflow nor vanish.

Where squares would be lost (beyond 1e154 or below 1e-162), numbers are first divided by their *unit*: the power of two
just below the largest of them. That is exact: the row divided by its length is the same to the last bit.
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
def _to_unit(values: Floats, n: int) -> tuple[float, float]:
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
    unit, square = _to_unit(values, n)
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


def divided_by_units(X: Any, axis: int) -> Any:
    """Return rows with every column (axis 0), or every one of sparse rows (axis 1), divided by its unit.

    If all units are 1 they are the same rows.
    """
    is_sparse = scipy.sparse.issparse(X)
    sizes = abs(X).max(axis=axis).toarray().ravel() if is_sparse else np.maximum(X.max(axis=0), -X.min(axis=0))
    units = _units_of(sizes)
    if np.all(units == 1.0) or not is_sparse:
        return X if np.all(units == 1.0) else X / units
    entries = X.tocoo(copy=True)
    entries.data = entries.data / units[entries.coords[1 - axis]]  # one by one: 1 over the smallest unit is no float
    return entries.tocsr()


# Columns scaled as they come: by mean and variance, or by the root mean square, of the rows so far.

# What is kept of each column: the mean and the sum of squared deviations, in its unit; the largest size; the unit.
_MEAN, _SQUARES, _LARGEST, _UNIT = range(4)


def new_statistics(n_columns: int) -> Floats:
    """Return the statistics of columns of which nothing was seen, one column each."""
    statistics = np.zeros((4, n_columns))
    statistics[_UNIT] = 1.0
    return statistics


@jit_inline
def count_entry(statistics: Floats, j: int, value: float, n: int, is_centred: bool) -> None:
    """Take the entry of the n-th row into column j: Welford's mean and squared deviations, or the sum of squares.

    Not centred, entries of 0 may be left out.
    """
    x = _take_unit(statistics, j, value)
    off = x - statistics[_MEAN, j] if is_centred else x
    statistics[_MEAN, j] += off / n if is_centred else 0.0
    statistics[_SQUARES, j] += off * (x - statistics[_MEAN, j])


@jit_inline
def _take_unit(statistics: Floats, j: int, value: float) -> Any:
    """Return a value in the unit of its column, which grows with its largest value."""
    size, largest, unit = abs(value), statistics[_LARGEST, j], statistics[_UNIT, j]
    if size > largest:
        larger = unit_of(size)
        # Before the first value that is not 0 there is nothing to shrink, and the unit may still become smaller.
        shrink = unit / larger if largest > 0.0 else 1.0
        statistics[_MEAN, j] *= shrink
        statistics[_SQUARES, j] *= shrink * shrink
        statistics[_LARGEST, j], statistics[_UNIT, j] = size, larger
        unit = larger
    return value / unit


@jit_inline
def standardized(statistics: Floats, j: int, value: float, n: float) -> Any:
    """Return a value with the mean and variance of column j's n values taken off; 0 while the column has not varied.

    Of a column that is not centred, which has a mean of 0, it is the value divided by the root mean square.
    """
    deviation = np.sqrt(statistics[_SQUARES, j] / n)
    # Rounding leaves a constant column a speck of variance, which must not be blown up.
    varies = deviation > 1e-12 * abs(statistics[_MEAN, j])
    return (value / statistics[_UNIT, j] - statistics[_MEAN, j]) / deviation if varies else 0.0


_SHIFT, FACTOR, _SCALE_UNIT, LIMIT = range(4)
"""What a scale has for each column: a value in this unit, less the shift, is multiplied by the factor, and is at most
so far from 0."""
# Weights beyond this would make scores that are not finite.
_FARTHEST = 1e100
# Where a column's deviation has grown this much, weights from before would drown what is learned on the new scale, and
# so would their rounding errors.
_MOST_GROWTH = 1e3


def new_scale(n_columns: int) -> Floats:
    """Return the scale before anything was seen: all of every column is 0."""
    scale = np.zeros((4, n_columns))
    scale[_SCALE_UNIT] = 1.0
    return scale


@jit_inline
def scaled(scale: Floats, j: int, value: float) -> Any:
    """Return a value of column j by the scale in force: finite if the value is, and NaN if not."""
    result = 0.0
    if scale[FACTOR, j] > 0.0:
        result = (value / scale[_SCALE_UNIT, j] - scale[_SHIFT, j]) * scale[FACTOR, j]
        result = min(max(result, -scale[LIMIT, j]), scale[LIMIT, j])
    return result + (value - value)


def scaled_rows(scale: Floats, X: Floats) -> Floats:
    """Return finite rows by the scale in force: `scaled`, for all of them at once."""
    with np.errstate(all="ignore"):
        within = (X / scale[_SCALE_UNIT] - scale[_SHIFT]) * scale[FACTOR]
        within = np.clip(within, -scale[LIMIT], scale[LIMIT])
    rows: Floats = np.where(scale[FACTOR] > 0.0, within, 0.0)
    return rows


def put_in_force(statistics: Floats, n: int, centred: bool, scale: Floats) -> None:
    """Write the scale of all columns from the statistics of n rows."""
    mean, deviation = statistics[_MEAN], np.sqrt(statistics[_SQUARES] / n)
    scale[_SHIFT] = mean if centred else 0.0
    with np.errstate(divide="ignore", over="ignore"):
        scale[FACTOR] = np.where(deviation > 1e-12 * np.abs(mean), 1.0 / deviation, 0.0)
    scale[_SCALE_UNIT] = statistics[_UNIT]
    # No value among n rows is farther from their mean than √n deviations; a later one that is would drown the others.
    scale[LIMIT] = np.sqrt(n)


def change_weights(old: Floats, new: Floats, weights: Floats) -> None:
    """Change weights of scaled columns, and of a constant behind them, to the same hyperplanes on the new scale."""
    with np.errstate(all="ignore"):
        grown = (new[_SCALE_UNIT] / old[_SCALE_UNIT])[:, None]
        share, factor = weights[:-1] * old[FACTOR][:, None], new[FACTOR][:, None]
        gained = share * (grown * new[_SHIFT][:, None] - old[_SHIFT][:, None])
        changed = np.where(factor > 0.0, share * grown / factor, 0.0)
        is_same_measure = (old[FACTOR][:, None] * grown < _MOST_GROWTH * factor) | (factor == 0.0)
        is_kept = is_same_measure & (np.abs(changed) < _FARTHEST) & (np.abs(gained) < _FARTHEST)
    weights[:-1] = np.where(is_kept, changed, 0.0)
    weights[-1] += np.where(is_kept, gained, 0.0).sum(axis=0)
