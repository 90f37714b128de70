"""What comes in from outside, checked once: numbers, features, labels.

Every error names the argument, the value and the remedy, and is raised before anything is changed.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from onebit.compiled import compiled

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MAX_SEED = 2**63 - 1  # compiled code reads seeds as signed 64-bit integers
_REAL_KINDS = "fiub"  # floats, signed and unsigned integers, booleans
_BLOCK = 1 << 20  # rows looked at together, labels told apart in one pass


class SparseRows(NamedTuple):
    """Rows in compressed sparse form (CSR), as the compiled code reads them."""

    values: Floats
    columns: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    n_columns: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), self.n_columns


Rows = Floats | SparseRows


def check_integer(name: str, value: Any, *, low: int, high: int | None = None) -> int:
    """Return a whole number within [low, high], or raise a ValueError that names it."""
    span = f"at least {low}" if high is None else f"between {low} and {high}"
    # True is an int to Python; as a count it is a slip.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be a whole number {span}; got {value!r}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} must be {span}; got {value!r}")
    return int(value)


def check_number(name: str, value: Any, *, above: float, at_most: float = math.inf) -> float:
    """Return a real number in (above, at_most], or raise a ValueError that names it."""
    span = f"greater than {above:g}" + ("" if at_most == math.inf else f" and at most {at_most:g}")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be a number {span}; got {value!r}")
    if not (above < value <= at_most) or math.isinf(value):
        raise ValueError(f"{name} must be {span}; got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of the named choices, or raise a ValueError that lists them."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")
    return str(value)


def check_seed(seed: Any) -> int:
    """Return a seed: a whole number from 0 to 2⁶³−1."""
    return check_integer("seed", seed, low=0, high=MAX_SEED)


def check_rows(X: Any, name: str = "X") -> Rows:
    """Return feature rows as float64 (dense, C order) or as `SparseRows`; never the caller's memory changed.

    Raises
    ------
    ValueError
        If X is not two-dimensional, is empty, is not numeric, or holds NaN or an infinity.
    """
    if scipy.sparse.issparse(X):
        return _check_sparse(X, name)
    if isinstance(X, SparseRows):
        return X
    array = np.asarray(X)
    _check_real(array, name)
    if array.ndim != 2:
        hint = "; for a single round use guess(x)" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have two dimensions (rounds, features); got shape {array.shape}{hint}")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty: shape {array.shape}; give at least one round and one feature")
    array = np.ascontiguousarray(array, dtype=np.float64)
    check_finite(array, name)
    return array


def _check_real(array: npt.NDArray[Any], name: str) -> None:
    if array.dtype.kind not in _REAL_KINDS:
        raise ValueError(
            f"{name} must hold real numbers; got dtype {array.dtype}. Convert it first, for example with astype(float)"
        )


def check_finite(array: Floats, name: str) -> None:
    """Raise if a dense array holds NaN or an infinity; a plain sum settles nearly every case in one pass."""
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(array.sum())):
            return
    # The sum may have overflowed although every number is finite: look closer.
    rows = array.reshape(len(array), -1)
    for start in range(0, len(rows), _BLOCK):
        bad = ~np.isfinite(rows[start : start + _BLOCK])
        if bad.any():
            row, column = np.argwhere(bad)[0]
            row += start
            raise ValueError(
                f"{name} must be finite; {name}[{row}, {column}] is {rows[row, column]}. Remove or fill such rows"
            )


def _check_sparse(X: Any, name: str) -> SparseRows:
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rounds, features); got shape {X.shape}")
    if 0 in X.shape:
        raise ValueError(f"{name} is empty: shape {X.shape}; give at least one round and one feature")
    _check_real(X.data if hasattr(X, "data") and isinstance(X.data, np.ndarray) else np.empty(0, X.dtype), name)
    matrix = X.tocsr()
    # Repeated entries mean their sum to scipy, but would be read one by one here.
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = np.ascontiguousarray(matrix.data, dtype=np.float64)
    check_finite(values.reshape(-1, 1), f"{name}.data")
    return SparseRows(values, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64), int(X.shape[1]))


def densify(rows: SparseRows, start: int, stop: int) -> Floats:
    """Return rows start…stop−1 as a dense array."""
    first, last = rows.starts[start], rows.starts[stop]
    matrix = scipy.sparse.csr_array(
        (rows.values[first:last], rows.columns[first:last], rows.starts[start : stop + 1] - first),
        shape=(stop - start, rows.n_columns),
    )
    dense: Floats = matrix.toarray()
    return dense


def dense(rows: Rows) -> Floats:
    """Return rows as one dense array: the same array if they are dense already."""
    return densify(rows, 0, len(rows)) if isinstance(rows, SparseRows) else rows


def take(rows: Rows, start: int, stop: int) -> Rows:
    """Return rows start…stop−1, dense or sparse as they are; nothing but the row starts of sparse ones is copied."""
    if not isinstance(rows, SparseRows):
        return rows[start:stop]
    stop = min(stop, len(rows))
    first, last = rows.starts[start], rows.starts[stop]
    starts = rows.starts[start : stop + 1] - first
    return SparseRows(rows.values[first:last], rows.columns[first:last], starts, rows.n_columns)


def check_classes(classes: Any) -> npt.NDArray[Any]:
    """Return the labels a learner may guess: 0…K−1 for a count K, or the labels of a list, in its order."""
    if isinstance(classes, (int, np.integer)) and not isinstance(classes, bool):
        return np.arange(check_integer("classes", classes, low=1))
    if isinstance(classes, (str, bytes)) or not isinstance(classes, (Sequence, np.ndarray, set, frozenset, range)):
        raise ValueError(f"classes must be a count or a list of labels; got {classes!r}")
    labels = np.asarray(sorted(classes) if isinstance(classes, (set, frozenset)) else classes)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"classes must list at least one label; got {classes!r}")
    if len(set(labels.tolist())) != len(labels):
        raise ValueError(f"classes must not repeat a label; got {classes!r}")
    return labels


def infer_classes(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct labels of a stream, sorted."""
    if y.dtype.kind in "iu":
        # One pass over millions of labels, where sorting them takes seconds.
        seen = np.zeros(_BLOCK, dtype=np.bool_)
        if _mark_seen(y, seen):
            return np.flatnonzero(seen)
    return np.unique(y)


@compiled
def _mark_seen(y: npt.NDArray[Any], seen: npt.NDArray[np.bool_]) -> bool:
    """Mark the labels that occur; give up and return False at one that is negative or large."""
    for t in range(y.shape[0]):
        if y[t] < 0 or y[t] >= seen.shape[0]:
            return False
        seen[y[t]] = True
    return True


def check_labels(y: Any, n_rounds: int, name: str = "y") -> npt.NDArray[Any]:
    """Return the labels of a stream as a one-dimensional array with one entry per round."""
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != n_rounds:
        raise ValueError(f"{name} must hold one label for each of the {n_rounds} rounds; got shape {labels.shape}")
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            at = int(np.argmin(np.isfinite(labels)))
            raise ValueError(f"{name} must hold labels; {name}[{at}] is {labels[at]}")
        whole = labels.astype(np.int64)  # 1.0 and 2.0 are what spreadsheets make of 1 and 2
        if not np.array_equal(whole, labels):
            raise ValueError(f"{name} must hold labels, not real numbers; got {labels[whole != labels][0]!r}")
        labels = whole
    return labels


def encode_labels(y: npt.NDArray[Any], classes: npt.NDArray[Any], name: str = "y") -> Integers:
    """Return each label's position in `classes`, or raise a ValueError for the first label that has none."""
    n_classes = len(classes)
    if y.dtype.kind in "iu" and classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(n_classes)):
        codes = y.astype(np.int64, copy=False)
        unknown = None if not len(y) or (y.min() >= 0 and y.max() < n_classes) else (y < 0) | (y >= n_classes)
    else:
        order = np.argsort(classes, kind="stable")
        try:
            places = np.minimum(np.searchsorted(classes, y, sorter=order), n_classes - 1)
        except TypeError:
            raise ValueError(f"{name} has dtype {y.dtype}, but the classes are {classes.tolist()}") from None
        codes = order[places].astype(np.int64)
        unknown = classes[codes] != y
    if unknown is not None and np.any(unknown):
        at = int(np.argmax(unknown))
        raise ValueError(
            f"{name}[{at}] is {y[at].item()!r}, which is not among the {n_classes} classes "
            f"{_shorten(classes)}; pass classes= that lists every label"
        )
    return codes


def _shorten(classes: npt.NDArray[Any], most: int = 8) -> str:
    shown = ", ".join(repr(label) for label in classes[:most].tolist())
    return f"[{shown}{', …' if len(classes) > most else ''}]"
