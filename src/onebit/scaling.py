"""Columns scaled as they come: by mean and variance, or by the root mean square, of the rows so far.

Statistics of a column are kept in its unit (see `onebit.lengths`), so that squares neither overflow nor vanish.
"""

from typing import Any

import numpy as np

from onebit.compiled import inlined
from onebit.inputs import Floats
from onebit.lengths import unit_of

MEAN, SQUARES, LARGEST, UNIT = range(4)
"""What is kept of each column: the mean and the sum of squared deviations, in its unit; the largest size; the unit."""


def new_statistics(n_columns: int) -> Floats:
    """Return the statistics of columns of which nothing was seen, one column each."""
    statistics = np.zeros((4, n_columns))
    statistics[UNIT] = 1.0
    return statistics


@inlined
def count_value(statistics: Floats, j: int, value: float, n: float) -> None:
    """Take the n-th value of column j into its mean and squared deviations (Welford's method)."""
    x = _take_unit(statistics, j, value)
    off = x - statistics[MEAN, j]
    statistics[MEAN, j] += off / n
    statistics[SQUARES, j] += off * (x - statistics[MEAN, j])


@inlined
def count_square(statistics: Floats, j: int, value: float) -> None:
    """Take a value of column j into its sum of squares; zeros need not be told."""
    x = _take_unit(statistics, j, value)
    statistics[SQUARES, j] += x * x


@inlined
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


@inlined
def standardized(statistics: Floats, j: int, value: float, n: float) -> Any:
    """Return a value with the mean and variance of column j's n values taken off; 0 while the column has not varied."""
    deviation = np.sqrt(statistics[SQUARES, j] / n)
    # Rounding leaves a constant column a speck of variance, which must not be blown up.
    varies = deviation > 1e-12 * abs(statistics[MEAN, j])
    return (value / statistics[UNIT, j] - statistics[MEAN, j]) / deviation if varies else 0.0


@inlined
def to_root_mean_square(statistics: Floats, j: int, value: float, n: float) -> Any:
    """Return a value divided by the root mean square of column j in n rows; 0 while all of it is 0."""
    square = statistics[SQUARES, j]
    return value / statistics[UNIT, j] / np.sqrt(square / n) if square > 0.0 else 0.0


@inlined
def put_in_force(statistics: Floats, j: int, n: float, centred: bool, scale: Floats) -> None:
    """Write what to take off column j and what to multiply it by then, from the statistics of n rows."""
    mean, unit = statistics[MEAN, j], statistics[UNIT, j]
    deviation = np.sqrt(statistics[SQUARES, j] / n)
    scale[0, j] = mean * unit if centred else 0.0
    scale[1, j] = 1.0 / deviation / unit if deviation > 1e-12 * abs(mean) else 0.0
