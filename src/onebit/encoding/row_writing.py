"""One record on its way into a row: which place each of its values takes, and what is new in it."""

import math
from datetime import date
from typing import Any

from onebit.encoding.columns import DATE_PARTS, SHARED, Column, check_name, date_numbers, shared_column
from onebit.encoding.fields import MOST_LETTERS, Text, moment_of, shown, too_large
from onebit.encoding.hashing import shared_place, text_places
from onebit.encoding.slots import Places
from onebit.engine.lengths import MOST
from onebit.inputs import Floats

_SENTENCE = 3  # spaces: what has so many is text
_LONG_WORD = 40  # letters: so is what has more

NUMBER, DATE, OTHER, CROWDED, MISSING = "ndos-"
"""What was met in a column: a number, a date, anything else, something for which there was no place, nothing."""
MET = frozenset("ndos-")


class IsNewError(Exception):
    """A record holds something that has no place yet."""


class RowWriter:
    """Writes the values of one record.

    Parameters
    ----------
    places : Places
        Who has which place.
    row : array
        The row of a record in which nothing is met; it is written to.
    new : list or None
        Where to note what is new, which then gets its place; None if nothing may be.
    """

    def __init__(self, places: Places, row: Floats, new: list[Any] | None) -> None:
        self._places, self.row, self._new = places, row, new
        self.n_others = 0
        """How many values are of columns that have no place of their own."""

    def write_all(self, values: dict[str, Any]) -> str:
        """Write a record's values; return what was met, a letter for each column.

        Raises `IsNewError` where something new is met and must not be.
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
        """Write a value; return what was met."""
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
        # Beside words, which are 1, a large number would be all that counts.
        self._share(token, math.copysign(math.log1p(abs(value)), value))

    def _newcomer(self, name: str) -> Column:
        """Return a column that was not there before; if all places are given away, one that shares them."""
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
    """Return a string of which nothing is known as None, a date, `Text`, or a word."""
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
