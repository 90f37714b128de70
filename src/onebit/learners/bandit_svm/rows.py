"""A round's row as the kernels see it: columns scaled by the rows so far, and a constant behind them.

The scale in force is that of the first 1, 2, 4, 8, … rows heard; when it changes, stored examples are scaled anew.
Dense rows are standardised; sparse rows are not centred, which would fill them, but divided by the root mean square of
each column.
"""

from typing import Any

import numpy as np

from onebit.compiled import compiled, inlined
from onebit.inputs import Floats, Rows, SparseRows, unlocked
from onebit.scaling import change_weight, count_square, count_value, put_in_force, scaled

DENSE, SPARSE = range(2)
"""Kinds of rows: each has statistics and a scale of its own, and a count of rows."""


@inlined
def read_dense(memory: Any, X: Floats, t: int, scales: bool, out: Floats) -> None:
    """Write row t of a dense matrix as the kernels see it to out[0]."""
    n_features = X.shape[1]
    if scales:
        scale = memory.scales[DENSE]
        for j in range(n_features):
            out[0, j] = scaled(scale, j, X[t, j])
        out[0, n_features] = 1.0
    else:
        for j in range(n_features):
            out[0, j] = X[t, j]


@inlined
def read_sparse(memory: Any, X: SparseRows, t: int, scales: bool, out: Floats) -> None:
    """Write row t of sparse rows as the kernels see it to out[0]."""
    for j in range(out.shape[1]):
        out[0, j] = 0.0
    for entry in range(X.starts[t], X.starts[t + 1]):
        j = X.columns[entry]
        out[0, j] = scaled(memory.scales[SPARSE], j, X.values[entry]) if scales else X.values[entry]
    if scales:
        out[0, out.shape[1] - 1] = 1.0


@inlined
def count_dense(memory: Any, X: Floats, t: int) -> None:
    """Take row t into the statistics."""
    memory.seen[DENSE] += 1
    for j in range(X.shape[1]):
        count_value(memory.statistics[DENSE], j, X[t, j], float(memory.seen[DENSE]))


@inlined
def count_sparse(memory: Any, X: SparseRows, t: int) -> None:
    """Take row t into the statistics."""
    memory.seen[SPARSE] += 1
    for entry in range(X.starts[t], X.starts[t + 1]):
        count_square(memory.statistics[SPARSE], X.columns[entry], X.values[entry])


@inlined
def scale_is_due(memory: Any, kind: int) -> bool:
    """Say whether a new scale is to be put in force: after 1, 2, 4, 8, … rows."""
    n: int = memory.seen[kind]
    return n & (n - 1) == 0


@inlined
def change_scale(memory: Any, kind: int, weights: Floats) -> None:
    """Put the scale of the rows so far in force, and let weights mean the same hyperplanes as before."""
    scale, statistics, n = memory.scales[kind], memory.statistics[kind], float(memory.seen[kind])
    last = weights.shape[0] - 1
    for j in range(statistics.shape[1]):
        old = scale[0, j], scale[1, j], scale[2, j]
        put_in_force(statistics, j, n, kind == DENSE, scale)
        for i in range(weights.shape[1] if last > 0 else 0):
            weights[j, i], gained = change_weight(old, scale, j, weights[j, i])
            weights[last, i] += gained


def as_seen(memory: Any, rows: Rows, scales: bool) -> Floats:
    """Return rows as the kernels see them."""
    n_features = rows.shape[1]
    out = np.empty((rows.shape[0], n_features + scales))
    read: Any = _read_sparse_rows if isinstance(rows, SparseRows) else _read_dense_rows
    read(memory, unlocked(rows), scales, out)
    return out


@compiled
def _read_dense_rows(memory: Any, rows: Floats, scales: bool, out: Floats) -> None:
    for t in range(out.shape[0]):
        read_dense(memory, rows, t, scales, out[t : t + 1])


@compiled
def _read_sparse_rows(memory: Any, rows: SparseRows, scales: bool, out: Floats) -> None:
    for t in range(out.shape[0]):
        read_sparse(memory, rows, t, scales, out[t : t + 1])
