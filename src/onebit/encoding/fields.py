"""Read the values of a record from mappings, frames, lists or arrays.

A value is a number, a bool, a string, a date, several strings (tags), or missing. Other values, and too many of them,
raise an error that names the column, the value and the remedy.
"""

import math
import numbers
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from onebit.engine.lengths import MOST
from onebit.inputs import brief, is_frame, is_missing

MOST_VALUES = 10_000
"""Maximum number of values in a record."""
MOST_LETTERS = 1_000_000
"""Maximum number of characters in a value."""
LONGEST_NAME = 200
"""Maximum characters of a column's name, and of a category with its own slot."""
_DEEPEST = 10  # maximum depth of nested mappings

KINDS = ("number", "category", "text", "tags", "date", "ignore")
"""Kinds of columns that the user can choose."""

_AS_THEY_ARE = frozenset((float, int, bool, str, type(None)))


class Text(str):
    """A string to be encoded as text, even if it is a single word."""

    __slots__ = ()


class FieldValues(NamedTuple):
    """The values of a record by column name."""

    values: dict[str, Any]
    """Each a float, int, bool, str, `Text`, date, datetime, None if missing, or a tuple of strings."""
    n_listed: int
    """Number of values that came from lists of numbers, whose length hardly grows."""


def read_fields(record: Any, kinds: Mapping[str, str]) -> FieldValues:
    """Return the values of a record.

    Parameters
    ----------
    record : mapping, frame of one row, row of a pandas frame, or list or array of numbers
        Mappings in it are flattened: ``{"a": {"b": 1}}`` has a column ``"a.b"``. So are numbers in a list: ``"a.0"``.
    kinds : mapping
        Kinds of columns given by the user.

    Raises
    ------
    ValueError
        For invalid records, unsupported values, and too many values.
    """
    reader = _Reader(kinds)
    if isinstance(record, Mapping):
        reader.read_mapping("", record, 0)
    else:
        named = named_values(record)
        if named is None:
            reader.read_numbers("", items_of(record, "the record"))
        else:
            reader.read_mapping("", named, 0)
    values = reader.found
    if kinds:
        for name, kind in kinds.items():
            if kind == "ignore":
                values.pop(name, None)
            elif name in values:
                values[name] = _as_kind(kind, name, values[name])
    return FieldValues(values, reader.n_listed)


def named_values(record: Any) -> Mapping[Any, Any] | None:
    """Return the row of a frame or series by name, or None for other objects."""
    if nw.dependencies.is_pandas_series(record):
        named = dict(record.items())
        if len(named) < len(record):
            raise _clash(key_of(record.index[record.index.duplicated()][0]))
        return named
    if not is_frame(record):
        return None
    try:
        table = nw.from_native(record, eager_only=True)
        n_rows, names = len(table), table.columns
    except Exception as error:  # frame libraries raise different errors
        raise ValueError(f"the record is no frame that can be read: {error}") from error
    if n_rows != 1:
        raise ValueError(f"a record is one row; got a frame of {n_rows}. Give its rows one by one, as frame[i : i + 1]")
    return dict(zip(names, table.row(0), strict=True))


class _Reader:
    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.found: dict[str, Any] = {}
        self.n_listed = 0
        self._n_read = 0
        self._kinds = kinds

    def read_mapping(self, prefix: str, mapping: Mapping[Any, Any], depth: int) -> None:
        """Read all values of a mapping, with a prefix for their names."""
        if depth > _DEEPEST:
            raise ValueError(
                f"{prefix!r:.80} lies more than {_DEEPEST} mappings deep; leave it out, or name its values at the top"
            )
        found = self.found
        self._check_room(len(mapping))
        for key, value in mapping.items():
            name = prefix + (key if type(key) is str else key_of(key))
            if type(value) not in _AS_THEY_ARE:
                self._read_other(name, value, depth)
            elif name in found:
                raise _clash(name)
            else:
                found[name] = value

    def _read_other(self, name: str, value: Any, depth: int) -> None:
        if self._kinds.get(name) == "ignore":
            return
        if isinstance(value, Mapping):
            self.read_mapping(f"{name}.", value, depth + 1)
        elif isinstance(value, set | frozenset):
            self._note(name, _words_of(name, in_order(items_of(value, name), name)))
        elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
            items = items_of(value, name)
            is_numbers = self._kinds.get(name) is None and _are_numbers(items)
            if is_numbers:
                self.read_numbers(f"{name}.", items)
            else:
                self._note(name, _words_of(name, items))
        else:
            self._note(name, plain(name, value))

    def read_numbers(self, prefix: str, items: list[Any]) -> None:
        """Read the values of a list, named by their positions."""
        self._check_room(len(items))
        self.n_listed += len(items)
        for i, item in enumerate(items):
            self._note(f"{prefix}{i}", item if type(item) in _AS_THEY_ARE else plain(f"{prefix}{i}", item))

    def _note(self, name: str, value: Any) -> None:
        if name in self.found:
            raise _clash(name)
        self.found[name] = value

    def _check_room(self, n_more: int) -> None:
        # Mappings count too: one that occurs repeatedly is read each time.
        self._n_read += n_more
        if self._n_read > MOST_VALUES:
            raise ValueError(f"a record has at most {MOST_VALUES} values; got {self._n_read} or more. Leave some out")


def key_of(key: Any) -> str:
    """Return the name of a column: a string, or an integer converted to one."""
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        return str(int(key))
    raise ValueError(f"names of columns must be texts; got {brief(key)}. Give str(name)")


def _clash(name: str) -> ValueError:
    return ValueError(
        f"the record has two values for column {shown(name)}; a dot in a name stands for a mapping in a mapping: "
        "rename one of them"
    )


def items_of(values: Any, name: str) -> list[Any]:
    """Return the items of a list, a set, or an array of one dimension (or one row)."""
    if isinstance(values, np.ndarray):
        if name == "the record" and values.ndim == 2 and len(values) == 1:
            values = values[0]
        if values.ndim != 1:
            raise ValueError(f"{name} must have one dimension; got shape {values.shape}. Give ravel() of it")
        # Masked items become None; tolist() would turn dates into integers.
        return values.tolist() if values.dtype.kind in "biufUO" else list(values)
    if not isinstance(values, list | tuple | set | frozenset):
        hint = "{'text': record}" if isinstance(values, str) else "a mapping of named values"
        raise ValueError(f"a record is a mapping, a row of a frame, or numbers; got {brief(values)}. Give {hint}")
    if len(values) > MOST_VALUES:
        raise ValueError(f"{shown(name)} holds {len(values)} values, and {MOST_VALUES} are the most; leave some out")
    return list(values)


def in_order(items: list[Any], name: str) -> list[Any]:
    """Return the items of a set in a fixed order, since that of a set differs between processes."""
    try:
        return sorted(items, key=repr)
    except RecursionError:
        raise ValueError(f"{shown(name)} holds a set that is nested too deep; leave it out") from None


def _are_numbers(items: list[Any]) -> bool:
    """Return whether items are numbers, some of which may be missing."""
    if any(isinstance(item, str) for item in items[:1]):
        return False
    is_number = [isinstance(item, numbers.Real | Decimal | np.bool_) for item in items]
    if all(is_number):
        return bool(items)
    return any(is_number) and all(known or is_missing(item) for known, item in zip(is_number, items, strict=True))


def _words_of(name: str, items: Iterable[Any]) -> tuple[str, ...]:
    """Return items as distinct strings, without missing ones."""
    found = (item if type(item) is str else plain(name, item) for item in items)
    return tuple(dict.fromkeys(word(name, item) for item in found if item is not None and item == item))


def plain(name: str, value: Any) -> Any:
    """Return a value as a float, int, bool, str, date, datetime or None, or raise a ValueError naming its column."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = _without_numpy(value)
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, Decimal):
        return None if value.is_nan() else float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if _is_missing(value):
        return None
    if isinstance(value, datetime):
        return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    if isinstance(value, date):
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, numbers.Real):
        try:
            return float(value)
        except OverflowError:
            return math.inf  # a fraction of huge integers
    raise ValueError(
        f"column {shown(name)} holds {brief(value)}, a {type(value).__name__}; give a number, a word, a date, a list "
        f"of words or of numbers, or a mapping, or leave it out with kinds={{{shown(name)}: 'ignore'}}"
    )


def _is_missing(value: Any) -> bool:
    try:
        return is_missing(value)
    except Exception:  # comparisons of user-defined classes may raise anything
        return False


def _without_numpy(value: Any) -> Any:
    if value.dtype.kind == "M":
        moment = value.astype("datetime64[us]").item()
        return moment if isinstance(moment, date | None) else math.inf
    found = value.item()
    return float(found) if isinstance(found, np.floating) else found


def _as_kind(kind: str, name: str, value: Any) -> Any:
    """Convert a value to its column's kind; values that do not fit become categories."""
    if value is None or value != value or (type(value) is str and (not value or value.isspace())):
        return None
    is_tags = type(value) is tuple
    if kind == "text":
        return Text(" ".join(value) if is_tags else word(name, value))
    if is_tags or (kind in ("number", "date") and type(value) is not str):
        return value
    found: float | date | None = None
    if kind == "number":
        with suppress(ValueError):
            found = float(value)
    elif kind == "date":
        found = moment_of(value)
    return (word(name, value),) if found is None else found


def word(name: str, value: Any) -> str:
    """Return a value as a category: integral floats and integers give the same string."""
    if type(value) is str:
        return value
    if isinstance(value, date):
        return value.isoformat()
    if type(value) is not bool and not -MOST <= value <= MOST:
        raise too_large(name, value)
    return str(int(value)) if type(value) is float and value.is_integer() else str(value)


def moment_of(text: str) -> date | None:
    """Parse a date or datetime in ISO 8601 format; return None for other strings."""
    if len(text) < 10 or text[4] != "-" or text[7] != "-" or not text[:4].isdigit():
        return None
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None


def too_large(name: str, value: Any) -> ValueError:
    """Return the error for a number that is too large for the learners."""
    what = f"{value:.3g}" if isinstance(value, float) else f"a whole number of {value.bit_length()} bits"
    return ValueError(
        f"column {shown(name)} holds {what}; numbers must be finite and at most {MOST:g} in size. Give None if it is "
        "not known, or its logarithm if it can be so large"
    )


def shown(name: str) -> str:
    """Return a column's name for an error message: quoted and shortened."""
    return repr(name if len(name) <= 60 else f"{name[:59]}…")
