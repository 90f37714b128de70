"""Values of a record: read from mappings, frames, lists or arrays, and written as JSON for the log.

A value is a number, a bool, a string, a date, several strings (tags), or missing. What JSON does not have is a mapping
there, with one key that begins with a dollar, as ``{"$date": "2026-11-16"}``.
"""

import math
import numbers
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from onebit.engine.scaling import MOST
from onebit.inputs import brief, is_frame, is_missing

MOST_VALUES = 10_000  # maximum number of values in a record
_MOST_LETTERS = 1_000_000  # maximum number of characters in a value
NUMBERS = frozenset((float, int))  # types of numbers that need no conversion
_PLAIN = frozenset((float, int, bool, str, type(None)))
_DEEPEST, _DEEPEST_JSON = 10, 20  # nested mappings
_SENTENCE, _LONG_WORD = 3, 40  # a string with so many spaces, or with more characters, is text
_EPOCH = datetime(1970, 1, 1)
_SECONDS_IN_A_DAY, _DAYS_IN_A_YEAR = 86_400, 365.25
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Text(str):
    """A string to be encoded as text, even if it is a single word."""

    __slots__ = ()


def read_fields(record: Any, kinds: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    """Return the values of a record by column name, and how many of them came from lists of numbers.

    Each is a float, int, bool, str, `Text`, date, datetime, None if missing, or a tuple of strings. Mappings are
    flattened, ``{"a": {"b": 1}}`` has a column ``"a.b"``, and so are lists of numbers: ``"a.0"``.
    """
    reader = _Reader(kinds)
    named = record if isinstance(record, Mapping) else _named_values(record)
    if named is None:
        reader.read_list("", _items(record, "the record"))
    else:
        reader.read_mapping("", named, 0)
    values = reader.found
    for name, kind in kinds.items():
        if kind == "ignore":
            values.pop(name, None)
        elif name in values:
            values[name] = _as_kind(kind, name, values[name])
    return values, reader.n_listed


class _Reader:
    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.found: dict[str, Any] = {}
        self.n_listed = self._n_read = 0
        self._kinds = kinds

    def read_mapping(self, prefix: str, mapping: Mapping[Any, Any], depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError(
                f"{prefix!r:.80} lies more than {_DEEPEST} mappings deep; leave it out, or name its values at the top"
            )
        self._check_room(len(mapping))
        for key, value in mapping.items():
            name = prefix + (key if type(key) is str else _name_of(key))
            if type(value) in _PLAIN:
                self._add(name, value)
            else:
                self._read_other(name, value, depth)

    def read_list(self, prefix: str, items: list[Any]) -> None:
        self._check_room(len(items))
        self.n_listed += len(items)
        for i, item in enumerate(items):
            self._add(f"{prefix}{i}", item if type(item) in _PLAIN else _plain(f"{prefix}{i}", item))

    def _read_other(self, name: str, value: Any, depth: int) -> None:
        if self._kinds.get(name) == "ignore":
            return
        if isinstance(value, Mapping):
            self.read_mapping(f"{name}.", value, depth + 1)
        elif isinstance(value, set | frozenset):
            self._add(name, _words_of(name, _items(value, name)))
        elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
            items = _items(value, name)
            if name not in self._kinds and _are_numbers(items):
                self.read_list(f"{name}.", items)
            else:
                self._add(name, _words_of(name, items))
        else:
            self._add(name, _plain(name, value))

    def _add(self, name: str, value: Any) -> None:
        if name in self.found:
            raise _clash(name)
        self.found[name] = value

    def _check_room(self, n_more: int) -> None:
        # Mappings count too: one that occurs repeatedly is read each time.
        self._n_read += n_more
        if self._n_read > MOST_VALUES:
            raise ValueError(f"a record has at most {MOST_VALUES} values; got {self._n_read} or more. Leave some out")


def _named_values(record: Any) -> Mapping[Any, Any] | None:
    """Return the row of a frame or series by name, or None for other objects."""
    if nw.dependencies.is_pandas_series(record):
        named = dict(record.items())
        if len(named) < len(record):
            raise _clash(_name_of(record.index[record.index.duplicated()][0]))
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


def _name_of(key: Any) -> str:
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


def _items(values: Any, name: str) -> list[Any]:
    """Return the items of a list, a set (in a fixed order), or an array of one dimension (or one row)."""
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
    try:
        return sorted(values, key=repr) if isinstance(values, set | frozenset) else list(values)
    except RecursionError:
        raise ValueError(f"{shown(name)} holds a set that is nested too deep; leave it out") from None


def _are_numbers(items: list[Any]) -> bool:
    """Return whether items are numbers, some of which may be missing."""
    is_number = [isinstance(item, numbers.Real | Decimal | np.bool_) for item in items]
    return any(is_number) and all(known or is_missing(item) for known, item in zip(is_number, items, strict=True))


def _words_of(name: str, items: Iterable[Any]) -> tuple[str, ...]:
    """Return items as distinct strings, without missing ones."""
    found = (item if type(item) is str else _plain(name, item) for item in items)
    return tuple(dict.fromkeys(_word(name, item) for item in found if item is not None and item == item))


def _plain(name: str, value: Any) -> Any:
    """Return a value as a float, int, bool, str, date, datetime or None, or raise a ValueError naming its column."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        kind = value.dtype.kind
        value = value.astype("datetime64[us]").item() if kind == "M" else value.item()
        if kind == "M" and isinstance(value, int):  # beyond the calendar
            return math.inf
        value = float(value) if isinstance(value, np.floating) else value
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Decimal):
        return None if value.is_nan() else float(value)
    if isinstance(value, str):
        return str.__str__(value)
    with suppress(Exception):  # comparisons of user-defined classes may raise anything
        if is_missing(value):
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
        f"column {shown(name)} holds {brief(value)}, of type {type(value).__name__}; give a number, a word, a date, a "
        f"list of words or of numbers, or a mapping, or leave it out with kinds={{{shown(name)}: 'ignore'}}"
    )


def _as_kind(kind: str, name: str, value: Any) -> Any:
    """Convert a value to its column's kind; values that do not fit become categories."""
    if value is None or value != value or (type(value) is str and (not value or value.isspace())):
        return None
    is_tags, is_text = type(value) is tuple, type(value) is str
    if kind == "text":
        return Text(" ".join(value) if is_tags else _word(name, value))
    if is_text and kind in ("date", "days"):
        value = moment_of(value) or value
    elif is_text and kind == "number":
        with suppress(ValueError):
            value = float(value)
    if kind == "days" and isinstance(value, date):
        return date_numbers(value)[0]
    is_fit = is_tags or (kind in ("number", "date", "days") and type(value) is not str)
    return value if is_fit else (_word(name, value),)


def _word(name: str, value: Any) -> str:
    """Return a value as a category: integral floats and integers give the same string."""
    if type(value) is str:
        if len(value) <= _MOST_LETTERS:
            return value
        most = f"{_MOST_LETTERS} are the most; give the first of them"
        raise ValueError(f"column {shown(name)} holds {len(value)} letters, and {most}")
    if isinstance(value, date):
        return value.isoformat()
    if type(value) is not bool and not -MOST <= value <= MOST:
        raise too_large(name, value)
    return str(int(value)) if type(value) is float and value.is_integer() else str(value)


def guess_kind(name: str, text: str, is_text: bool) -> Any:
    """Infer the kind of a string: return None if blank, a date, `Text` if long or in a column of texts, or one word."""
    if not text or text.isspace():
        return None
    moment = moment_of(text)
    if moment is not None:
        return moment
    word = _word(name, text)
    return Text(word) if is_text or len(word) > _LONG_WORD or word.count(" ") >= _SENTENCE else (word,)


def moment_of(text: str) -> date | None:
    """Parse a date or datetime in ISO 8601 format; return None for other strings."""
    if len(text) < 10 or text[4] != "-" or text[7] != "-" or not text[:4].isdigit():
        return None
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None


def date_numbers(moment: date) -> tuple[float, ...]:
    """Return the numbers of a date: days since 1970, and sine and cosine of the time of day, week and year.

    With a time zone, days are in UTC and the other numbers in local time. Without a time, those of the time of day
    are 0.
    """
    days, time, of_day = float(moment.toordinal() - _EPOCH.toordinal()), 0.0, (0.0, 0.0)
    if isinstance(moment, datetime):
        since = moment.replace(tzinfo=None) - _EPOCH - (moment.utcoffset() or timedelta())
        days = since.days + (since.seconds + since.microseconds * 1e-6) / _SECONDS_IN_A_DAY
        time = (moment.hour * 3600 + moment.minute * 60 + moment.second) / _SECONDS_IN_A_DAY
        of_day = _circle(time)
    day_of_year = moment.toordinal() - date(moment.year, 1, 1).toordinal()
    of_week, of_year = _circle((moment.weekday() + time) / 7), _circle((day_of_year + time) / _DAYS_IN_A_YEAR)
    return (days, *of_day, *of_week, *of_year)


def _circle(turns: float) -> tuple[float, float]:
    angle = 2.0 * math.pi * turns
    return math.sin(angle), math.cos(angle)


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


# Records as JSON.


def record_to_json(record: Any) -> Any:
    """Return a record as plain JSON values, from which `record_from_json` makes one that is encoded to the same row.

    Tuples and arrays become lists, frames and series mappings, other numbers Python's. Unsupported values, which can
    only stand in ignored columns, become None.

    Examples
    --------
    >>> from datetime import date
    >>> record_to_json({"channel": "mail", "sent": date(2026, 11, 16), "tags": {"late", "angry"}})
    {'channel': 'mail', 'sent': {'$date': '2026-11-16'}, 'tags': {'$set': ['angry', 'late']}}
    """
    numbers = _only_numbers(record)
    if numbers is not None:
        return numbers
    named = record if isinstance(record, Mapping) else _named_values(record)
    return _Writer().write(_items(record, "the record") if named is None else named, 0)


def _only_numbers(record: Any) -> Any:
    """Fast path: return a record of finite numbers as plain values, or None for other records."""
    kind = type(record)
    if kind is np.ndarray and record.dtype == np.float64 and record.ndim == 1:
        record, kind = record.tolist(), list
    if (kind is not list and kind is not dict) or len(record) > MOST_VALUES:
        return None
    values = record.values() if kind is dict else record
    with suppress(TypeError, OverflowError):  # a key that is not a string, an integer too large for float
        is_plain = NUMBERS.issuperset(map(type, values)) and math.isfinite(sum(values))
        if is_plain and (kind is list or "$" not in "".join(record)):
            return record.copy()
    return None


class _Writer:
    def __init__(self) -> None:
        self._left = 2 * MOST_VALUES  # mappings and lists count as well

    def write(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str and len(value) <= _MOST_LETTERS:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if kind is bool or value is None or (kind is int and value.bit_length() < 1024):
            return value
        try:
            if depth <= _DEEPEST_JSON:
                return self._write_other(value, depth)
        except ValueError:
            pass
        return {"$unreadable": kind.__name__[:80]}

    def _write_other(self, value: Any, depth: int) -> Any:
        """Write a value that is not plain, or raise a ValueError."""
        is_list = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)
        if is_list or isinstance(value, Mapping | set | frozenset):
            self._left -= 1 + len(value)
            if self._left < 0:
                raise ValueError("too many values")
        if isinstance(value, Mapping):
            pairs = [(_name_of(key), self.write(held, depth + 1)) for key, held in value.items()]
            if any(name.startswith("$") for name, _ in pairs) or len({name for name, _ in pairs}) < len(pairs):
                return {"$mapping": [list(pair) for pair in pairs]}
            return dict(pairs)
        if isinstance(value, set | frozenset):
            return {"$set": [self.write(item, depth + 1) for item in _items(value, "the set")]}
        if is_list:
            return [self.write(item, depth + 1) for item in _items(value, "the list")]
        found = _plain("", value)
        if isinstance(found, date):
            return {"$datetime" if isinstance(found, datetime) else "$date": found.isoformat()}
        if type(found) is type(value):
            raise ValueError("a string or an integer that is too long")
        return self.write(found, depth + 1)


def record_from_json(described: Any) -> Any:
    """Invert `record_to_json`; raises ValueError for invalid input.

    Examples
    --------
    >>> record_from_json({"sent": {"$datetime": "2026-11-16T09:30:00"}, "length": 212})
    {'sent': datetime.datetime(2026, 11, 16, 9, 30), 'length': 212}
    """
    if type(described) is list and _PLAIN.issuperset(map(type, described)):
        return described
    return _read_json(described, 0)


def _read_json(described: Any, depth: int) -> Any:
    if depth > 2 * _DEEPEST_JSON:
        raise ValueError("the record is nested too deep")
    if isinstance(described, list):
        return [_read_json(item, depth + 1) for item in described]
    if not isinstance(described, dict):
        return described
    if len(described) != 1 or not next(iter(described)).startswith("$"):
        return {name: _read_json(value, depth + 1) for name, value in described.items()}
    ((kind, held),) = described.items()
    read = {"$date": date.fromisoformat, "$datetime": datetime.fromisoformat, "$float": _FLOATS.__getitem__}
    try:
        if kind == "$mapping":
            return {_name_of(name): _read_json(value, depth + 1) for name, value in held}
        if kind == "$set":
            return {_read_json(item, depth + 1) for item in held}
        return None if kind == "$unreadable" else read[kind](held)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{described!r:.80} is no value of a record") from error


def named_parts(record: Any, prefix: str = "") -> dict[str, Any]:
    """Return all values of a record by column name, including nested mappings and lists.

    >>> named_parts({"customer": {"id": 17}, "tags": ["late"]})
    {'customer': {'id': 17}, 'customer.id': 17, 'tags': ['late'], 'tags.0': 'late'}
    """
    pairs: Any = enumerate(record) if isinstance(record, list) else record.items() if isinstance(record, dict) else ()
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[f"{prefix}{key}"] = value
        found |= named_parts(value, f"{prefix}{key}.")
    return found
