"""What comes in from outside, checked once: numbers and features.

Every error names the argument, the value and the remedy, and is raised before anything is changed.
"""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import chain
from numbers import Real
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MAX_SEED = 2**63 - 1  # compiled code reads seeds as signed 64-bit integers
ENTRIES_AT_ONCE = 1 << 22
"""Numbers of an array made on the way: 32 MB, long enough for fast products, small enough for any machine."""
_REAL_KINDS = "fiub"  # floats, signed and unsigned integers, booleans
_REAL = (Real, Decimal, np.bool_)


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

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.values.nbytes + self.columns.nbytes + self.starts.nbytes

    def copy(self) -> "SparseRows":
        """Return rows with arrays of their own."""
        return SparseRows(self.values.copy(), self.columns.copy(), self.starts.copy(), self.n_columns)


Rows = Floats | SparseRows
_AnyRows = TypeVar("_AnyRows", Floats, SparseRows, Rows)


def brief(value: Any) -> str:
    """Return a value as an error shows it: its first letters, or its type where it is nested too deep to be written.

    >>> brief([1, 2]), brief("x" * 1000) == repr("x" * 1000)[:80]
    ('[1, 2]', True)
    """
    try:
        return f"{value!r:.80}"
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deep"


def check_integer(name: str, value: Any, *, low: int, high: int | None = None) -> int:
    """Return a whole number within [low, high], or raise a ValueError that names it."""
    span = f"at least {low}" if high is None else f"between {low} and {high}"
    # True is an int to Python; as a count it is a slip.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be a whole number {span}; got {brief(value)}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} must be {span}; got {brief(value)}")
    return int(value)


def check_number(
    name: str, value: Any, *, above: float = -math.inf, at_least: float = -math.inf, at_most: float = math.inf
) -> float:
    """Return a real number in (above, at_most] or [at_least, at_most], or raise a ValueError that names it."""
    span = f"greater than {above:g}" if at_least == -math.inf else f"at least {at_least:g}"
    span += "" if at_most == math.inf else f" and at most {at_most:g}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be a number {span}; got {brief(value)}")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond every float
        number = math.inf
    if not (above < number and at_least <= number <= at_most) or math.isinf(number):
        raise ValueError(f"{name} must be {span}{', and finite' if math.isinf(number) else ''}; got {brief(value)}")
    return number


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of the named choices, or raise a ValueError that lists them."""
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {brief(value)}")
    return str(value)


def check_switch(name: str, value: Any) -> bool:
    """Return True or False, or raise a ValueError that names it."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False; got {brief(value)}")
    return value


def check_seed(seed: Any) -> int:
    """Return a seed: a whole number from 0 to 2⁶³−1."""
    return check_integer("seed", seed, low=0, high=MAX_SEED)


def check_rows(X: Any, name: str = "X") -> Rows:
    """Return feature rows as float64 (dense, C order) or as `SparseRows`, or raise a ValueError that names it."""
    if scipy.sparse.issparse(X) or isinstance(X, SparseRows):
        return check_sparse(X, name)
    array = check_real(X, name)
    if array.ndim != 2:
        hint = ". For a single round use guess(x). Reshape your data with x.reshape(1, -1)" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have two dimensions (rounds, features); got shape {array.shape}{hint}")
    _check_size(array.shape, name)
    array = _as_floats(array)
    check_finite(array, name)
    return array


def _check_size(shape: tuple[int, ...], name: str) -> None:
    if 0 in shape:
        what = "feature(s)" if shape[-1] == 0 else "sample(s)"
        raise ValueError(f"{name} is empty: 0 {what} (shape={shape}) while a minimum of 1 is required.")


def check_real(X: Any, name: str) -> npt.NDArray[Any]:
    """Return an array of real numbers of any shape, or raise a ValueError that names it."""
    if is_frame(X):
        return _frame_values(X, name)
    if isinstance(X, Mapping):
        raise ValueError(
            f"{name} must be numbers in order; got a dictionary. Give a frame of it: pandas.DataFrame([row])"
        )
    array = as_array(X, name)
    if array.dtype.kind == "O" and array.ndim:
        return _numbers_of_objects(array, name)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must hold real numbers. Complex data not supported; got dtype {array.dtype}")
    if array.dtype.kind not in _REAL_KINDS:
        raise ValueError(
            f"{name} must hold real numbers; got dtype {array.dtype}. Convert it first, for example with astype(float)"
        )
    return array


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Return a plain array; what masked arrays hide must not come back as numbers."""
    if callable(getattr(values, "collect", None)):
        raise ValueError(f"{name} is lazy and not read yet; give {name}.collect()")
    parts = values if isinstance(values, (list, tuple)) else (values,)
    for part in parts:
        if isinstance(part, np.ma.MaskedArray) and np.ma.getmaskarray(part).any():
            raise ValueError(f"{name} must have no masked entries; fill them with filled(…), or remove their rows")
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must be an array, or lists of one length; got {brief(values)} ({error})") from error


def _as_floats(array: npt.NDArray[Any]) -> Floats:
    """Return float64 as compiled code reads it: in C order, in this machine's bytes, aligned."""
    with np.errstate(over="ignore"):  # a longer float may become an infinity, which is found later
        return np.require(array, np.float64, ["C", "A"])


def check_finite(array: Floats, name: str) -> None:
    """Raise if a dense array holds NaN or an infinity; a plain sum settles nearly every case in one pass."""
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(array.sum())):
            return
    # The sum may have overflowed although every number is finite: look closer.
    rows = array.reshape(len(array), -1)
    is_finite = np.isfinite(rows)
    if not is_finite.all():
        row, column = np.unravel_index(is_finite.argmin(), rows.shape)
        what = "NaN" if np.isnan(rows[row, column]) else "an infinity"
        raise ValueError(
            f"{name} must be finite and contains {what}: {name}[{row}, {column}] is {rows[row, column]}. "
            "Remove or fill such rows"
        )


def check_sparse(X: Any, name: str, *, one_round: bool = False) -> SparseRows:
    """Return a copy of sparse rows, or of one round's, which may be a vector; or raise a ValueError that names them.

    Their arrays can be changed at will, and compiled code does not look before it reads: scipy's own check lets a
    negative end of `indptr` pass.
    """
    try:
        shape = tuple(check_integer("its shape", size, low=0, high=MAX_SEED) for size in X.shape)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{name} is no whole sparse matrix: {error}") from error
    if len(shape) != 2 and not (one_round and len(shape) == 1):
        raise ValueError(f"{name} must have two dimensions (rounds, features); got shape {shape}")
    _check_size(shape, name)
    n_rows, n_columns = shape if len(shape) == 2 else (1, *shape)
    if one_round and n_rows != 1:
        raise ValueError(f"{name} must be one round's; got {n_rows} rows")
    try:
        rows = _read_sparse(X, n_rows, n_columns)
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError, MemoryError) as error:
        raise ValueError(f"{name} is no whole sparse matrix of shape {shape}: {error}") from error
    values = _as_floats(check_real(rows.values, f"{name}.data"))
    check_finite(values.reshape(-1, 1), f"{name}.data")
    return SparseRows(values.copy() if one_round else values, *rows[1:])


def check_whole_numbers(name: str, values: Any) -> Integers:
    """Return a copy of a list of whole numbers, as int64, or raise a ValueError that names it."""
    array = as_array(values, name)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name} must be a list of whole numbers; got {array.dtype} of shape {array.shape}")
    if array.dtype.kind == "u" and array.size and array.max() > MAX_SEED:
        raise ValueError(f"{name} must be below 2⁶³; got {array.max()}")
    return array.astype(np.int64)


def _read_sparse(X: Any, n_rows: int, n_columns: int) -> SparseRows:
    """Return a sparse matrix as rows whose columns rise, or raise an error if its arrays do not fit together."""
    if isinstance(X, SparseRows):
        X = SimpleNamespace(format="csr", data=X.values, indices=X.columns, indptr=X.starts)
    if X.format in ("csr", "csc"):
        values, within = as_array(X.data, "data"), check_whole_numbers("indices", X.indices)
        starts, n_lists = check_whole_numbers("indptr", X.indptr), n_columns if X.format == "csc" else n_rows
        if len(values) != len(within):
            raise ValueError(f"data and indices must be of one length; got {len(values)} and {len(within)}")
        if len(starts) != n_lists + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any() or starts[-1] > len(values):
            raise ValueError(f"indptr must rise from 0 to at most {len(values)}; got {starts.tolist()!r:.80}")
        used = slice(starts[-1])
        if X.format == "csr":
            columns = within[used].copy()
            is_rising = columns[1:] > columns[:-1]
            is_rising[starts[(starts > 0) & (starts < len(columns))] - 1] = True  # from one row to the next
            if is_rising.all() and (columns >= 0).all() and (columns < n_columns).all():
                return SparseRows(values[used], columns, starts.copy(), n_columns)
        lists = np.repeat(np.arange(n_lists), np.diff(starts))
        rows, columns = (within[used], lists) if X.format == "csc" else (lists, within[used])
        return _in_order(rows, columns, values[used], n_rows, n_columns)
    # With arrays or lists that do not fit together scipy's compiled code would read or write beyond them.
    if X.format == "lil":
        lengths = [len(columns) for columns in X.rows]
        if len(lengths) != n_rows or lengths != [len(values) for values in X.data]:
            raise ValueError("rows and data must have a list for each row, the two of one length")
        held, data = (list(chain.from_iterable(lists)) for lists in (X.rows, X.data))
        return _in_order(np.repeat(np.arange(n_rows), lengths), held, as_array(data, "data"), n_rows, n_columns)
    if X.format == "dia":
        offsets, diagonals = check_whole_numbers("offsets", X.offsets), as_array(X.data, "data")[:, :n_columns]
        if diagonals.ndim != 2 or len(diagonals) != len(offsets) or len(set(offsets.tolist())) < len(offsets):
            raise ValueError(f"data must have one row for each of the {len(offsets)} diagonals, and none may repeat")
        places = np.broadcast_to(np.arange(diagonals.shape[1]), diagonals.shape)
        lines = places - offsets[:, None]
        is_inside = (lines >= 0) & (lines < n_rows) & (diagonals != 0)  # zeros are padding
        return _in_order(lines[is_inside], places[is_inside], diagonals[is_inside], n_rows, n_columns)
    X = X.tocoo()
    coords = X.coords if hasattr(X, "coords") else (X.row, X.col)  # scipy before 1.13
    rows, columns = coords if len(X.shape) == 2 else (np.zeros(len(coords[0]), np.int64), *coords)
    return _in_order(rows, columns, as_array(X.data, "data"), n_rows, n_columns)


def _in_order(rows: Any, columns: Any, values: npt.NDArray[Any], n_rows: int, n_columns: int) -> SparseRows:
    """Return entries in order, those of the same place added up in the order and the dtype in which they are stored."""
    rows, columns = check_whole_numbers("rows", rows), check_whole_numbers("columns", columns)
    if not values.shape == rows.shape == columns.shape:
        raise ValueError(f"rows, columns and data must be numbers of one length; got shape {values.shape}")
    for name, places, size in (("rows", rows, n_rows), ("columns", columns, n_columns)):
        if len(places) and not 0 <= places.min() <= places.max() < size:
            wrong = places[(places < 0) | (places >= size)][0]
            raise ValueError(f"{name} must lie between 0 and {size - 1}; got {wrong}")
    if not ((rows[1:] > rows[:-1]) | ((rows[1:] == rows[:-1]) & (columns[1:] > columns[:-1]))).all():
        order = np.lexsort((columns, rows))
        rows, columns, values = rows[order], columns[order], values[order]
        is_new = np.append(True, (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1]))
        sums = np.zeros(np.count_nonzero(is_new), dtype=values.dtype)
        np.add.at(sums, np.cumsum(is_new) - 1, values)
        rows, columns, values = rows[is_new], columns[is_new], sums
    return SparseRows(values, columns, np.append(0, np.cumsum(np.bincount(rows, minlength=n_rows))), n_columns)


def dense(rows: Rows) -> Floats:
    """Return rows as one dense array: the same array if they are dense already."""
    if not isinstance(rows, SparseRows):
        return rows
    return np.asarray(scipy.sparse.csr_array((rows.values, rows.columns, rows.starts), shape=rows.shape).toarray())


def take(rows: Rows, start: int, stop: int) -> Rows:
    """Return rows start…stop−1, dense or sparse as they are; nothing but the row starts of sparse ones is copied."""
    if not isinstance(rows, SparseRows):
        return rows[start:stop]
    stop = min(stop, len(rows))
    first, last = rows.starts[start], rows.starts[stop]
    starts = rows.starts[start : stop + 1] - first
    return SparseRows(rows.values[first:last], rows.columns[first:last], starts, rows.n_columns)


def row_of(rows: Rows, t: int) -> Any:
    """Return one row as a learner's `guess` takes it."""
    return take(rows, t, t + 1) if isinstance(rows, SparseRows) else rows[t]


class _Unlocked:
    """Lends an array's memory without its lock, and keeps the array alive."""

    def __init__(self, array: Floats) -> None:
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def unlocked(rows: _AnyRows) -> _AnyRows:
    """Return rows whose arrays are not marked read-only, for compiled code, which only reads them.

    Read-only arrays are another type to Numba: every loop would be compiled a second time for them.
    """
    if isinstance(rows, SparseRows):
        values, columns, starts, n_columns = rows
        return rows if values.flags.writeable else SparseRows(np.asarray(_Unlocked(values)), columns, starts, n_columns)
    return rows if rows.flags.writeable else np.asarray(_Unlocked(rows))


# Tables of named columns (pandas, polars and what narwhals knows): recognised when they come, never imported here.


def is_frame(thing: Any) -> bool:
    """Return whether something is a table of named columns that is in memory."""
    return type(thing) is not np.ndarray and bool(nw.dependencies.is_into_dataframe(thing))


def as_frame(features: Any) -> Any:
    """Return a row of a pandas frame, which comes as a series, as a frame of one row; all else as it is."""
    return features.to_frame().T if nw.dependencies.is_pandas_series(features) else features


def _frame_values(frame: Any, name: str) -> npt.NDArray[Any]:
    """Return the numbers of a frame, truth values as 0 and 1; raise ValueError naming a column that has others."""
    try:
        table = nw.from_native(frame, eager_only=True)
        schema = table.schema
    except Exception as error:  # each kind of frame has errors of its own, for columns of one name, say
        raise ValueError(f"{name} is no frame that can be read: {error}") from error
    untyped = [column for column, dtype in schema.items() if dtype in (nw.Object, nw.Unknown)]
    for column, dtype in schema.items():
        if column not in untyped and not (dtype.is_numeric() or dtype == nw.Boolean):
            how = "as days since a day of yours" if dtype.is_temporal() else "with sklearn.preprocessing.OneHotEncoder"
            raise ValueError(
                f"{name} must hold numbers; its column {column!r} holds {dtype}. Leave it out, or turn it into numbers "
                f"first, for example {how}"
            )
    if untyped:
        read = [
            _numbers_of_objects(table[column].to_numpy(), f"{name}[{column!r}]")
            if column in untyped
            else table[column].cast(nw.Float64).to_numpy()
            for column in schema
        ]
        values = np.column_stack(read)
    else:
        values = table.select(nw.all().cast(nw.Float64)).to_numpy()
    for row, column in np.argwhere(np.isnan(values))[:1]:
        missing = list(schema)[column]
        raise ValueError(
            f"{name} contains NaN: its column {missing!r} has no number in row {row}. Fill or remove such rows"
        )
    return values


def _numbers_of_objects(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return Python objects as floats, or raise if one is no real number."""
    if not all(issubclass(kind, _REAL) for kind in set(map(type, array.flat))):
        place, wrong = next((place, each) for place, each in np.ndenumerate(array) if not isinstance(each, _REAL))
        where = f"{name}[{', '.join(map(str, place))}]"
        if is_missing(wrong):
            raise ValueError(f"{name} contains NaN: {where} is {wrong!r}. Fill or remove such rows")
        raise TypeError(f"{where} is {wrong!r:.80}; each argument must be no string or other object, but a real number")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"{name} must be finite; it holds a whole number beyond every float") from None


def is_missing(value: Any) -> bool:
    """Return whether a value stands for one that is not there: None, NaN, pandas' NA and NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True
    except ValueError:  # neither has an array, which is something all the same
        return False
