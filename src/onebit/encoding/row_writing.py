"""Write the values of one record into a row, and note what is new to the encoder."""

import math
from datetime import date
from typing import Any

from onebit.encoding.columns import DATE_PARTS, SHARED, Column, check_name, date_numbers, shared_column
from onebit.encoding.fields import MOST_LETTERS, Text, moment_of, shown, too_large
from onebit.encoding.hashing import shared_place, text_places
from onebit.encoding.slots import FeatureSlots
from onebit.engine.lengths import MOST
from onebit.inputs import Floats

_SENTENCE = 3  # a string with so many spaces is text
_LONG_WORD = 40  # and so is one with more characters

NUMBER, DATE, OTHER, CROWDED, MISSING = "ndos-"
"""What a column held: a number, a date, another value, a value in shared slots, nothing."""
MET = frozenset("ndos-")


class IsNewError(Exception):
    """A record holds something that has no slot yet."""


class RowWriter:
    """Writes the values of one record into a row.

    Parameters
    ----------
    places : FeatureSlots
        The slots.
    row : array
        The row of an empty record; modified in place.
    new : list or None
        List to which new entries are added, after they got slots; None to raise `IsNewError` instead.
    """

    def __init__(self, places: FeatureSlots, row: Floats, new: list[Any] | None) -> None:
        self._places, self.row, self._new = places, row, new
        self.n_others = 0
        """Number of values in columns without slots of their own."""

    def write_all(self, values: dict[str, Any]) -> str:
        """Write a record's values; return what each column held, as one letter a column.

        Raises `IsNewError` for new entries if `new` is None.
        """
        by_name, columns = self._places.by_name, self._places.columns
        met = [MISSING] * len(columns)
        for name, value in values.items():
            column = by_name.get(name)
            if column is None:
                column = self._newcomer(name)
                met += MISSING * (len(columns) - len(met))
            letter = self._write(column, value)
            if column.index >= 0:
                met[column.index] = letter
            elif letter == MISSING:
                self._share(f"{name} is missing", 1.0)
            else:
                self.n_others += 1
        if MISSING in met:
            self._write_missing(met)
        return "".join(met)

    def _write(self, column: Column, value: Any) -> str:
        """Write a value; return its letter."""
        kind = type(value)
        if kind is str:
            place = column.words.get(value)
            if place is not None:
                self.row[place] = 1.0
                return OTHER
            value = guessed(column, value)
            kind = type(value)
        if kind is float or kind is int or kind is bool:
            if not -MOST <= value <= MOST:
                if value != value:
                    return MISSING
                raise too_large(column.name, value)
            if column.number is None:
                self._add(["number", column.index])
            if column.number == SHARED:
                self._share_number(column.name, value)
                return CROWDED
            self.row[column.number] = value
            return NUMBER
        if value is None:
            return MISSING
        if kind is tuple:
            return self._write_words(column, value)
        if kind is Text:
            if not column.has_text and column.index >= 0:
                self._add(["text", column.index])
            _check_letters(column.name, value)
            places, shares = text_places(column.name, value, self._places.to_share)
            self.row[self._places.own + places] += shares
            return OTHER
        return self._write_date(column, value)

    def _write_date(self, column: Column, value: date) -> str:
        if column.date is None:
            self._add(["date", column.index])
        numbers, first = date_numbers(value), column.date
        if first == SHARED or first is None:
            for part, number in zip(DATE_PARTS, numbers, strict=True):
                self._share_number(f"{column.name}: {part}", number)
            return CROWDED
        self.row[first : first + len(DATE_PARTS)] = numbers
        return DATE

    def _write_words(self, column: Column, words: tuple[str, ...]) -> str:
        met = OTHER
        if len(words) != 1 and not column.has_lists:
            self._add(["lists", column.index])
        for word in words:
            place = column.words.get(word)
            if place is None and self._places.has_place_for_word(column, word):
                self._add(["word", column.index, word])
                place = column.words[word]
            if place is None:
                _check_letters(column.name, word)
                self._share(f"{column.name}={word}", 1.0)
                met = CROWDED
            else:
                self.row[place] = 1.0
        return met

    def _write_missing(self, met: list[str]) -> None:
        for column, letter in zip(self._places.columns, met, strict=True):
            if letter == MISSING:
                if column.absent is None:
                    self._add(["missing", column.index])
                if column.absent == SHARED:
                    self._share(f"{column.name} is missing", 1.0)
                else:
                    self.row[column.absent] = 1.0

    def _share(self, token: str, value: float) -> None:
        place, sign = shared_place(token, self._places.to_share)
        self.row[self._places.own + place] += sign * value

    def _share_number(self, token: str, value: float) -> None:
        # Logarithm: categories have the value 1, which large numbers would dominate.
        self._share(token, math.copysign(math.log1p(abs(value)), value))

    def _newcomer(self, name: str) -> Column:
        """Add a new column; if no slots are left, return one that uses shared slots."""
        if not self._places.has_place_for_column():
            return shared_column(name)
        self._add(["column", check_name(name)])
        return self._places.by_name[name]

    def _add(self, entry: list[Any]) -> None:
        if self._new is None:
            raise IsNewError
        self._places.grow(entry)
        self._new.append(entry)


def guessed(column: Column, text: str) -> Any:
    """Infer the kind of a string: return None, a date, `Text`, or a tuple of one category."""
    if not text or text.isspace():
        return None
    moment = moment_of(text)
    if moment is not None:
        return moment
    is_text = column.has_text or len(text) > _LONG_WORD or text.count(" ") >= _SENTENCE
    return Text(text) if is_text else (text,)


def _check_letters(name: str, text: str) -> None:
    if len(text) > MOST_LETTERS:
        raise ValueError(
            f"column {shown(name)} holds {len(text)} letters, and {MOST_LETTERS} are the most; give the first of them"
        )
