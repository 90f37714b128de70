"""Preprocessing of rows, the same for every learner: standardise, add a constant, scale to length 1 if asked.

Sparse rows are not centred, since that would fill them: each column is divided by its root mean square instead.
"""

from typing import Any

import numpy as np
import scipy.sparse

from onebit.engine.jit import jit
from onebit.engine.scaling import (
    count_entry,
    divided_by_units,
    new_statistics,
    standardized,
    unit_rows,
)
from onebit.inputs import Floats, Integers, check_choice, check_rows, unlocked
from onebit.streams.data_set import as_matrix

METHODS = ("standardize", "online", "none")


def preprocess(X: Any, method: str, unit_length: bool = False) -> Any:
    """Return preprocessed rows, in the order in which they are played.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (rounds, features)
        The rows; not modified.
    method : {"standardize", "online", "none"}
        Over all rows, over the rows so far, or not at all (then no constant is added either).
    unit_length : bool
        Divide every row by its length at the end.

    Examples
    --------
    >>> preprocess(np.array([[1.0, 5.0], [3.0, 5.0]]), "standardize").tolist()
    [[-1.0, 1.0], [1.0, 1.0]]
    >>> preprocess(np.array([[1.0], [3.0], [9.0]]), "online").round(3).tolist()
    [[0.0, 1.0], [1.0, 1.0], [1.373, 1.0]]
    """
    check_choice("preprocessing", method, METHODS)
    rows = as_matrix(check_rows(X))
    ready = rows if method == "none" else _standardize(rows) if method == "standardize" else _online(rows)
    if not unit_length or not scipy.sparse.issparse(ready):
        return unit_rows(ready) if unit_length else ready
    ready = divided_by_units(ready, axis=1)
    lengths = np.sqrt(np.asarray(ready.multiply(ready).sum(axis=1)).ravel())
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ ready)


def describe_preprocessing(method: str, unit_length: bool, is_sparse: bool) -> str:
    """Return a description of what `preprocess` does."""
    seen = "all rows played" if method == "standardize" else "the rows so far"
    how = "sparse: columns not centred, divided by their root mean square" if is_sparse else "columns standardised"
    description = "rows as they are" if method == "none" else f"{how} over {seen}, a constant column added"
    return f"{description}, then rows divided by their length" if unit_length else description


def _standardize(X: Any) -> Any:
    """Return columns with mean 0 and variance 1 over all rows, constant columns dropped, a column of ones appended."""
    X = divided_by_units(X, axis=0)
    if scipy.sparse.issparse(X):
        sizes = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel() / X.shape[0])
        used = np.flatnonzero(sizes > 0)
        return _with_ones(X.tocsc()[:, used] @ scipy.sparse.diags_array(1.0 / sizes[used]))
    deviations = X.std(axis=0)
    # Check both: rounding gives a constant column a tiny deviation, and underflow gives a varying one 0.
    varies = (np.ptp(X, axis=0) > 0) & (deviations > 0)
    standard = (X[:, varies] - X[:, varies].mean(axis=0)) / deviations[varies]
    return np.column_stack([standard, np.ones(len(X))])


def _online(X: Any) -> Any:
    """Return rows standardised over the rows up to and with each; 0 in a column that has not varied; ones appended."""
    if scipy.sparse.issparse(X):
        rows = X.tocsr().astype(np.float64, copy=True)
        columns, starts = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        _scale_online(rows.data, columns, starts, new_statistics(X.shape[1]))
        return _with_ones(rows)
    out = np.ones((X.shape[0], X.shape[1] + 1))
    _standardize_online(unlocked(np.ascontiguousarray(X, dtype=np.float64)), new_statistics(X.shape[1]), out)
    return out


def _with_ones(X: Any) -> Any:
    return scipy.sparse.csr_array(scipy.sparse.hstack([X, np.ones((X.shape[0], 1))]))


@jit
def _standardize_online(X: Floats, statistics: Floats, out: Floats) -> None:
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            count_entry(statistics, j, X[t, j], t + 1, True)
            out[t, j] = standardized(statistics, j, X[t, j], t + 1.0)


@jit
def _scale_online(values: Floats, columns: Integers, starts: Integers, statistics: Floats) -> None:
    for t in range(starts.shape[0] - 1):
        for at in range(starts[t], starts[t + 1]):
            count_entry(statistics, columns[at], values[at], 1, False)
            values[at] = standardized(statistics, columns[at], values[at], t + 1.0)
