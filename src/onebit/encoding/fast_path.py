"""Records that are like the one before, and hold nothing but numbers: they take a short way into a row."""

from typing import Any

import numpy as np

from onebit.encoding.record_json import NUMBERS
from onebit.encoding.statistics import all_within
from onebit.engine.lengths import MOST
from onebit.inputs import Floats, Integers

_FLOAT64 = np.dtype(np.float64)


class SameNumbers:
    """How the numbers of such a record are named, and where they go.

    Parameters
    ----------
    names : tuple of str
        The columns, in the order of the record.
    is_listed : bool
        Whether a record is a list or array of numbers, and the names are their positions.
    places : array
        Where each number goes in a row.
    """

    def __init__(self, names: tuple[str, ...], is_listed: bool, places: Integers) -> None:
        self._names, self._is_listed = names, is_listed
        self.places = places
        first, n = int(places[0]), len(places)
        self.where = slice(first, first + n) if np.array_equal(places, np.arange(first, first + n)) else places
        """The same, in the way in which NumPy is fastest to write there."""

    def numbers_of(self, record: Any) -> Floats | None:
        """Return the numbers of a record in an array of its own, or None if it is not like that."""
        kind = type(record)
        if kind is np.ndarray:
            if not self._is_listed or record.dtype is not _FLOAT64 or record.shape != self.places.shape:
                return None
            numbers: Floats = record.copy()  # whoever gave it may write to it meanwhile
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
            except OverflowError:  # a whole number that is no float
                return None
        return numbers if all_within(numbers, MOST) else None


def same_numbers(record: Any, values: dict[str, Any], places: list[int | None]) -> SameNumbers | None:
    """Return how the next record may be like this one, if it holds nothing but numbers.

    Parameters
    ----------
    record : object
        The record.
    values : dict
        What it holds, by column.
    places : list
        Where each column's numbers go, for all columns there are; None for one that has no place of its own for them.
    """
    if not values or len(places) != len(values) or not NUMBERS.issuperset(map(type, values.values())):
        return None
    known = np.array([-1 if place is None else place for place in places], np.int64)
    is_listed = type(record) in (list, np.ndarray)
    if (known < 0).any() or not (is_listed or (type(record) is dict and tuple(record) == tuple(values))):
        return None
    return SameNumbers(tuple(values), is_listed, known)
