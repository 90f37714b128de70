"""Fast path for purely numeric records with the same columns as the one before."""

from typing import Any

import numpy as np

from onebit.encoding.record_json import NUMBERS
from onebit.encoding.statistics import all_within
from onebit.engine.lengths import MOST
from onebit.inputs import Floats, Integers

_FLOAT64 = np.dtype(np.float64)


class NumericFastPath:
    """Column names and slots of a purely numeric record.

    Parameters
    ----------
    names : tuple of str
        The columns, in the order of the record.
    is_listed : bool
        Whether records are lists or arrays, named by position.
    places : array
        The slot of each number.
    """

    def __init__(self, names: tuple[str, ...], is_listed: bool, places: Integers) -> None:
        self._names, self._is_listed = names, is_listed
        self.places = places
        first, n = int(places[0]), len(places)
        self.where = slice(first, first + n) if np.array_equal(places, np.arange(first, first + n)) else places
        """The slots as a slice if they are consecutive, which is faster to assign to."""

    def numbers_of(self, record: Any) -> Floats | None:
        """Return the numbers of a record in a new array, or None if it has another form."""
        kind = type(record)
        if kind is np.ndarray:
            if not self._is_listed or record.dtype is not _FLOAT64 or record.shape != self.places.shape:
                return None
            numbers: Floats = record.copy()  # the caller may modify it meanwhile
        else:
            if kind is dict:
                if self._is_listed or tuple(record) != self._names:
                    return None
                values = record.values()
            elif kind is list and self._is_listed and len(record) == len(self._names):
                values = record
            else:
                return None
            if not NUMBERS.issuperset(map(type, values)):
                return None
            try:
                numbers = np.array([*values], np.float64)
            except OverflowError:  # an integer too large for float
                return None
        return numbers if all_within(numbers, MOST) else None


def numeric_fast_path(record: Any, values: dict[str, Any], places: list[int | None]) -> NumericFastPath | None:
    """Return a fast path for records like this one, or None if it is not purely numeric.

    Parameters
    ----------
    record : object
        The record.
    values : dict
        Its values by column.
    places : list
        The number slot of each of all columns; None for a column without one.
    """
    if not values or len(places) != len(values) or not NUMBERS.issuperset(map(type, values.values())):
        return None
    known = np.array([-1 if place is None else place for place in places], np.int64)
    is_listed = type(record) in (list, np.ndarray)
    if (known < 0).any() or not (is_listed or (type(record) is dict and tuple(record) == tuple(values))):
        return None
    return NumericFastPath(tuple(values), is_listed, known)
