"""Tables of named columns (pandas, polars and what narwhals knows): recognised when they come, never imported here."""

from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

_REAL = (Real, Decimal, np.bool_)


def is_frame(thing: Any) -> bool:
    """Say whether something is a table of named columns that is in memory."""
    return type(thing) is not np.ndarray and bool(nw.dependencies.is_into_dataframe(thing))


def as_frame(features: Any) -> Any:
    """Return a row of a pandas frame, which comes as a series, as a frame of one row; all else as it is."""
    return features.to_frame().T if nw.dependencies.is_pandas_series(features) else features


def frame_values(frame: Any, name: str) -> npt.NDArray[Any]:
    """Return the numbers of a frame, one row for each of its rows; truth values are 0 and 1.

    Raises
    ------
    ValueError
        Naming the column that holds something else, or in which an entry is missing.
    """
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
            numbers_of_objects(table[column].to_numpy(), f"{name}[{column!r}]")
            if column in untyped
            else table[column].cast(nw.Float64).to_numpy()
            for column in schema
        ]
        values = np.column_stack(read)
    else:
        values = table.select(nw.all().cast(nw.Float64)).to_numpy()
    _check_nothing_is_missing(values, list(schema), name)
    return values


def numbers_of_objects(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return an array of Python objects as floats, or raise if one of them is no real number."""
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
    """Say whether a value stands for one that is not there: None, NaN, pandas' NA and NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True
    except ValueError:  # neither has an array, which is something all the same
        return False


def _check_nothing_is_missing(values: npt.NDArray[Any], columns: list[Any], name: str) -> None:
    missing = np.isnan(values)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise ValueError(
            f"{name} contains NaN: its column {columns[column]!r} has no number in row {row}. Fill or remove such rows"
        )
