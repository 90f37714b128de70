"""Records as JSON, and back: a log keeps them, and what comes back makes the same row.

Most records are JSON as they are. What JSON has no word for is a mapping with one name that begins with a dollar:
``{"$date": "2026-11-16"}``.
"""

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import numpy as np

from onebit.encoding.fields import MOST_LETTERS, MOST_VALUES, in_order, items_of, key_of, named_values, plain

_DEEPEST = 20
NUMBERS = frozenset((float, int))
"""Types of plain numbers."""
_PLAIN = frozenset((float, int, bool, str, type(None)))
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def record_to_json(record: Any) -> Any:
    """Return a record as a value that JSON can write.

    Numbers, words, truth values, None, NaN, dates, datetimes, sets, lists and mappings come back as they were; tuples
    and arrays as lists, frames and series as mappings, and NumPy's and other numbers as Python's. What cannot be a
    value, and so stands in a column that is ignored, comes back as None.

    Examples
    --------
    >>> from datetime import date
    >>> record_to_json({"channel": "mail", "sent": date(2026, 11, 16), "tags": {"late", "angry"}})
    {'channel': 'mail', 'sent': {'$date': '2026-11-16'}, 'tags': {'$set': ['angry', 'late']}}
    """
    numbers = _only_numbers(record)
    if numbers is not None:
        return numbers
    named = record if isinstance(record, Mapping) else named_values(record)
    return _Writer().write(items_of(record, "the record") if named is None else named, 0)


def _only_numbers(record: Any) -> Any:
    """Return a record of finite numbers as it can be written, in a tenth of the time; None for any other."""
    kind = type(record)
    if kind is np.ndarray and record.dtype == np.float64 and record.ndim == 1:
        record, kind = record.tolist(), list
    if (kind is not list and kind is not dict) or len(record) > MOST_VALUES:
        return None
    values = record.values() if kind is dict else record
    try:
        if (
            NUMBERS.issuperset(map(type, values))
            and math.isfinite(sum(values))
            and (kind is list or "$" not in "".join(record))
        ):
            return record.copy()
    except (TypeError, OverflowError):  # a name that is no text, a whole number that is no float
        pass
    return None


class _Writer:
    def __init__(self) -> None:
        self._left = 2 * MOST_VALUES  # every mapping and list counts as well

    def write(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str and len(value) <= MOST_LETTERS:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if kind is bool or value is None or (kind is int and value.bit_length() < 1024):
            return value
        if depth > _DEEPEST:
            return _unreadable(value)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, list | tuple | set | frozenset) or (isinstance(value, np.ndarray) and value.ndim == 1):
            return self._list(value, depth)
        try:
            found = plain("", value)
        except ValueError:
            return _unreadable(value)
        if isinstance(found, date):
            return {"$datetime" if isinstance(found, datetime) else "$date": found.isoformat()}
        return _unreadable(value) if type(found) is kind else self.write(found, depth + 1)

    def _mapping(self, mapping: Mapping[Any, Any], depth: int) -> Any:
        if not self._has_room_for(len(mapping)):
            return _unreadable(mapping)
        try:
            pairs = [(key_of(key), self.write(value, depth + 1)) for key, value in mapping.items()]
        except ValueError:
            return _unreadable(mapping)
        if any(name.startswith("$") for name, _ in pairs) or len({name for name, _ in pairs}) < len(pairs):
            return {"$mapping": [list(pair) for pair in pairs]}
        return dict(pairs)

    def _list(self, values: Any, depth: int) -> Any:
        if not self._has_room_for(len(values)):
            return _unreadable(values)
        items = items_of(values, "the list")
        if isinstance(values, set | frozenset):
            try:
                return {"$set": [self.write(item, depth + 1) for item in in_order(items, "the set")]}
            except ValueError:
                return _unreadable(values)
        return [self.write(item, depth + 1) for item in items]

    def _has_room_for(self, n_values: int) -> bool:
        self._left -= 1 + n_values
        return self._left >= 0


def _unreadable(value: Any) -> dict[str, str]:
    return {"$unreadable": type(value).__name__[:80]}


def record_from_json(described: Any) -> Any:
    """Return a record that `record_to_json` described; raises ValueError for what it could not have.

    Examples
    --------
    >>> record_from_json({"sent": {"$datetime": "2026-11-16T09:30:00"}, "length": 212})
    {'sent': datetime.datetime(2026, 11, 16, 9, 30), 'length': 212}
    """
    if type(described) is list and _PLAIN.issuperset(map(type, described)):
        return described
    return _read(described, 0)


def _read(described: Any, depth: int) -> Any:
    if depth > 2 * _DEEPEST:
        raise ValueError("the record is nested too deep")
    if isinstance(described, list):
        return [_read(item, depth + 1) for item in described]
    if not isinstance(described, dict):
        return described
    if len(described) != 1 or not next(iter(described)).startswith("$"):
        return {name: _read(value, depth + 1) for name, value in described.items()}
    ((kind, held),) = described.items()
    try:
        if kind == "$mapping":
            return {key_of(name): _read(value, depth + 1) for name, value in held}
        if kind == "$set":
            return {_read(item, depth + 1) for item in held}
        if kind == "$unreadable":
            return None
        return {"$date": date.fromisoformat, "$datetime": datetime.fromisoformat, "$float": _FLOATS.__getitem__}[kind](
            held
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{described!r:.80} is no value of a record") from error


def named_parts(record: Any, prefix: str = "") -> dict[str, Any]:
    """Return all that a record holds, mappings and lists too, by the names that columns have.

    >>> named_parts({"customer": {"id": 17}, "tags": ["late"]})
    {'customer': {'id': 17}, 'customer.id': 17, 'tags': ['late'], 'tags.0': 'late'}
    """
    pairs: Any = enumerate(record) if isinstance(record, list) else record.items() if isinstance(record, dict) else ()
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[f"{prefix}{key}"] = value
        found |= named_parts(value, f"{prefix}{key}.")
    return found
