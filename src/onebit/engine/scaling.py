"""Columns scaled as they come: by mean and variance, or by the root mean square, of the rows so far.

Statistics of a column are kept in its unit (see `onebit.engine.lengths`), so that squares neither overflow nor vanish.
"""

from typing import Any

import numpy as np

from onebit.engine.jit import jit_inline
from onebit.engine.lengths import unit_of
from onebit.inputs import Floats

MEAN, SQUARES, LARGEST, UNIT = range(4)
"""What is kept of each column: the mean and the sum of squared deviations, in its unit; the largest size; the unit."""


def new_statistics(n_columns: int) -> Floats:
    """Return the statistics of columns of which nothing was seen, one column each."""
    statistics = np.zeros((4, n_columns))
    statistics[UNIT] = 1.0
    return statistics


@jit_inline
def count_entry(statistics: Floats, j: int, value: float, n: int, is_centred: bool) -> None:
    """Take the entry of the n-th row into column j: Welford's mean and squared deviations, or the sum of squares.

    Not centred, entries of 0 may be left out.
    """
    x = _take_unit(statistics, j, value)
    off = x - statistics[MEAN, j] if is_centred else x
    statistics[MEAN, j] += off / n if is_centred else 0.0
    statistics[SQUARES, j] += off * (x - statistics[MEAN, j])


@jit_inline
def _take_unit(statistics: Floats, j: int, value: float) -> Any:
    """Return a value in the unit of its column, which grows with its largest value."""
    size, largest, unit = abs(value), statistics[LARGEST, j], statistics[UNIT, j]
    if size > largest:
        larger = unit_of(size)
        # Before the first value that is not 0 there is nothing to shrink, and the unit may still become smaller.
        shrink = unit / larger if largest > 0.0 else 1.0
        statistics[MEAN, j] *= shrink
        statistics[SQUARES, j] *= shrink * shrink
        statistics[LARGEST, j], statistics[UNIT, j] = size, larger
        unit = larger
    return value / unit


@jit_inline
def standardized(statistics: Floats, j: int, value: float, n: float) -> Any:
    """Return a value with the mean and variance of column j's n values taken off; 0 while the column has not varied."""
    deviation = np.sqrt(statistics[SQUARES, j] / n)
    # Rounding leaves a constant column a speck of variance, which must not be blown up.
    varies = deviation > 1e-12 * abs(statistics[MEAN, j])
    return (value / statistics[UNIT, j] - statistics[MEAN, j]) / deviation if varies else 0.0


@jit_inline
def to_root_mean_square(statistics: Floats, j: int, value: float, n: float) -> Any:
    """Return a value divided by the root mean square of column j in n rows; 0 while all of it is 0."""
    square = statistics[SQUARES, j]
    return value / statistics[UNIT, j] / np.sqrt(square / n) if square > 0.0 else 0.0


SHIFT, FACTOR, SCALE_UNIT, LIMIT = range(4)
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
    scale[SCALE_UNIT] = 1.0
    return scale


@jit_inline
def scaled(scale: Floats, j: int, value: float) -> Any:
    """Return a value of column j by the scale in force: finite if the value is, and NaN if not."""
    result = 0.0
    if scale[FACTOR, j] > 0.0:
        result = (value / scale[SCALE_UNIT, j] - scale[SHIFT, j]) * scale[FACTOR, j]
        result = min(max(result, -scale[LIMIT, j]), scale[LIMIT, j])
    return result + (value - value)


def scaled_rows(scale: Floats, X: Floats) -> Floats:
    """Return finite rows by the scale in force: `scaled`, for all of them at once."""
    with np.errstate(all="ignore"):
        within = (X / scale[SCALE_UNIT] - scale[SHIFT]) * scale[FACTOR]
        within = np.clip(within, -scale[LIMIT], scale[LIMIT])
    rows: Floats = np.where(scale[FACTOR] > 0.0, within, 0.0)
    return rows


def put_in_force(statistics: Floats, n: int, centred: bool, scale: Floats) -> None:
    """Write the scale of all columns from the statistics of n rows."""
    mean, deviation = statistics[MEAN], np.sqrt(statistics[SQUARES] / n)
    scale[SHIFT] = mean if centred else 0.0
    with np.errstate(divide="ignore", over="ignore"):
        scale[FACTOR] = np.where(deviation > 1e-12 * np.abs(mean), 1.0 / deviation, 0.0)
    scale[SCALE_UNIT] = statistics[UNIT]
    # No value among n rows is farther from their mean than √n deviations; a later one that is would drown the others.
    scale[LIMIT] = np.sqrt(n)


def change_weights(old: Floats, new: Floats, weights: Floats) -> None:
    """Change weights of scaled columns, and of a constant behind them, to the same hyperplanes on the new scale."""
    with np.errstate(all="ignore"):
        grown = (new[SCALE_UNIT] / old[SCALE_UNIT])[:, None]
        share, factor = weights[:-1] * old[FACTOR][:, None], new[FACTOR][:, None]
        gained = share * (grown * new[SHIFT][:, None] - old[SHIFT][:, None])
        changed = np.where(factor > 0.0, share * grown / factor, 0.0)
        is_same_measure = (old[FACTOR][:, None] * grown < _MOST_GROWTH * factor) | (factor == 0.0)
        is_kept = is_same_measure & (np.abs(changed) < _FARTHEST) & (np.abs(gained) < _FARTHEST)
    weights[:-1] = np.where(is_kept, changed, 0.0)
    weights[-1] += np.where(is_kept, gained, 0.0).sum(axis=0)
