"""A round's row as the kernels see it: columns scaled by the rows so far, and a constant behind them.

The scale in force is that of the first 1, 2, 4, 8, … rows heard; when it changes, stored examples are scaled anew.
Dense rows are standardised; sparse rows are not centred, which would fill them, but divided by the root mean square of
each column.
"""

from typing import Any

from onebit.compiled import inlined
from onebit.inputs import Floats
from onebit.scaling import change_weight, count_square, count_value, put_in_force

DENSE, SPARSE = range(2)
"""Kinds of rows: each has statistics and a scale of its own, and a count of rows."""


@inlined
def count_entry(memory: Any, kind: int, j: int, value: float) -> None:
    """Take the entry of a row that was counted in ``memory.seen`` into the statistics of column j."""
    if kind == DENSE:
        count_value(memory.statistics[DENSE], j, value, float(memory.seen[DENSE]))
    elif value != 0.0:
        count_square(memory.statistics[SPARSE], j, value)


@inlined
def scale_is_due(memory: Any, kind: int) -> bool:
    """Say whether a new scale is to be put in force: after 1, 2, 4, 8, … rows."""
    n: int = memory.seen[kind]
    return n & (n - 1) == 0


@inlined
def change_scale(scale: Floats, statistics: Floats, n: float, is_centred: bool, weights: Floats) -> None:
    """Put the scale of the n rows so far in force, and let weights mean the same hyperplanes as before."""
    last = weights.shape[0] - 1
    for j in range(statistics.shape[1]):
        old = scale[0, j], scale[1, j], scale[2, j]
        put_in_force(statistics, j, n, is_centred, scale)
        for i in range(weights.shape[1] if last > 0 else 0):
            weights[j, i], gained = change_weight(old, scale, j, weights[j, i])
            weights[last, i] += gained
