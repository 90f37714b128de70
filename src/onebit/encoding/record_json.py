"""Convert records to JSON and back, so that a record from the log is encoded to the same row.

Values that JSON cannot represent become a mapping with one key that begins with a dollar: ``{"$date": "2026-11-16"}``.
"""

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import numpy as np

from onebit.encoding.fields import MOST_LETTERS, MOST_VALUES, in_order, items_of, key_of, named_values, plain

_DEEPEST = 20
NUMBERS = frozenset((float, int))
"""Types of numbers that need no conversion."""
_PLAIN = frozenset((float, int, bool, str, type(None)))
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def record_to_json(record: Any) -> Any:
    """Return a record as plain JSON values.

    Numbers, strings, bools, None, NaN, dates, datetimes, sets, lists and mappings are preserved. Tuples and arrays
    become lists, frames and series become mappings, and NumPy and other numbers become Python numbers. Unsupported
    values, which can only stand in ignored columns, become None.

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
    """Fast path: return a record of finite numbers as plain values, or None for other records."""
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
    except (TypeError, OverflowError):  # a key that is not a string, an integer too large for float
        pass
    return None


class _Writer:
    def __init__(self) -> None:
        self._left = 2 * MOST_VALUES  # mappings and lists count as well

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
    """Invert `record_to_json`; raises ValueError for invalid input.

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
