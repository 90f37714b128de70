"""Encode records as rows: named values of several kinds become numbers in fixed slots.

Learners have a fixed number of features, but new columns and categories keep appearing. So some slots of a row are
assigned in order of appearance, and the rest are shared by hashing. The first record determines their numbers; or a
table, which gets exactly the slots that it needs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onebit.encoding.fields import (
    NUMBERS,
    Text,
    date_numbers,
    guess_kind,
    hashed_slot,
    hashed_text,
    read_fields,
    too_large,
)
from onebit.encoding.state import (
    COUNT,
    CROWDED,
    DATE,
    ENDINGS,
    LONGEST_NAME,
    MEAN,
    MISSING,
    MOST_PATTERNS,
    NUMBER,
    OTHER,
    SHARED,
    SQUARES,
    WIDEST,
    Column,
    ColumnInfo,
    EncoderState,
    TableColumn,
    check_kinds,
    dense_row,
    first_size,
    fit_table,
)
from onebit.engine.jit import jit_no_refcount
from onebit.engine.scaling import MOST
from onebit.inputs import Floats, Integers, Rows, SparseRows, check_integer, check_switch

_VERSION = 1
_WIDEST_DENSE = 1_024


class Encoded(NamedTuple):
    """An encoded record: its row, sparse if it is wide, and what it adds to the encoder, as plain JSON values."""

    row: Rows
    additions: dict[str, Any]


class Encoder:
    """Online encoder of records as rows of fixed width.

    Numbers and bools take one slot, dates seven (days, and sine and cosine of the time of day, week and year), each
    category or tag one, and a missing value has an indicator slot; missing numbers are replaced by the mean so far.
    Texts are hashed: words and character n-grams. A column can hold several kinds: a string among numbers is a category
    of that column. The first record determines the width of rows, with spare slots for later columns and categories.
    When all slots are assigned, new ones share slots by hashing, so memory is bounded.

    `look` encodes a record without changing the encoder; `take` updates the encoder, from the result of `look` alone:
    from stored results it can be rebuilt exactly, without the records.

    Parameters
    ----------
    kinds : mapping of column to {"number", "category", "text", "tags", "date", "days", "ignore"}, optional
        Kinds of columns that would be inferred wrongly: numbers that are codes, texts of one word. Dates of kind "days"
        take one slot. Values that do not fit the kind become categories.
    width : int, optional
        Number of slots in a row; by default determined by the first record.
    max_categories : int
        Maximum number of categories of one column with slots of their own.
    text_width : int
        Number of slots shared by texts, if the first record or `kinds` has any.
    scale : bool
        Standardise numbers and dates by the mean and variance of earlier records, clipped to ±√n after n of them. For
        learners that do not scale columns themselves.

    Examples
    --------
    >>> encoder = Encoder()
    >>> first = encoder.look({"channel": "mail", "length": 212})
    >>> encoder.take(first)
    >>> second = encoder.look({"channel": "phone", "urgent": True})
    >>> encoder.take(second)
    >>> encoder.explain(second.row)
    {'length': 212.0, 'channel=phone': 1.0, 'urgent': 1.0, 'length is missing': 1.0}
    >>> len(first.row) == len(second.row) == encoder.width
    True
    """

    def __init__(
        self,
        kinds: Mapping[str, str] | None = None,
        *,
        width: int | None = None,
        max_categories: int = 32,
        text_width: int = 2_048,
        scale: bool = False,
    ) -> None:
        self._kinds = check_kinds(kinds)
        self._sizes: dict[str, Any] = {
            "width": None if width is None else check_integer("width", width, low=4, high=WIDEST),
            "max_categories": check_integer("max_categories", max_categories, low=0, high=WIDEST),
            "text_width": check_integer("text_width", text_width, low=1, high=WIDEST // 2),
        }
        self._scale = check_switch("scale", scale)
        self._numeric: tuple[tuple[str, ...] | None, Integers] | None = None
        """Columns, None for those of a list, and slots of a record that had a number in every column and no more."""
        self._pending: tuple[Encoded, EncoderState, Integers, Floats] | None = None
        """The latest result of `look`, and what `take` needs: the new state, the slots of numbers, and these."""
        self._set_state(EncoderState(0, 0, max_categories))

    def _set_state(self, state: EncoderState) -> None:
        self._state = state
        # The row of an empty record: all numbers at their means.
        self._at_rest = np.zeros(state.width) if self._scale else state.statistics[MEAN]

    def __repr__(self) -> str:
        state = self._state
        size = f"{self.width} slots, {state.n_assigned} of {state.own} assigned" if self.width else "no record yet"
        return f"<Encoder: {len(state.columns)} columns, {size}>"

    @property
    def width(self) -> int:
        """Number of slots in a row; 0 before the first record."""
        return self._state.width

    def example_rows(self) -> list[Rows]:
        """Return a small example row: dense or sparse, as records are encoded; both before the first record."""
        rows: list[Rows] = [np.zeros(2), _as_sparse(np.ones(2))]
        return rows if not self.width else rows[:1] if self.width <= _WIDEST_DENSE else rows[1:]

    def look(self, record: Any) -> Encoded:
        """Encode a record, without changing the encoder; a ValueError names the column that is wrong.

        Parameters
        ----------
        record : mapping, frame of one row, row of a pandas frame, or list or array of numbers
            Mappings in it are flattened, as ``"a.b"``. None, NaN, NA, NaT and blank strings are missing values.
        """
        state = self._state
        additions: dict[str, Any] = {"at": state.n_records}
        row = self._row_of_numbers(record)
        if row is not None:
            additions["met"] = NUMBER * len(state.columns)
            return self._finish(row, additions, state)
        values, n_listed = read_fields(record, self._kinds)
        if not state.width:
            size = first_size(values, n_listed, **self._sizes, has_text="text" in self._kinds.values())
            additions["size"] = list(size)
            state = EncoderState(*size, state.max_categories)
        writer = _RowWriter(state, self._at_rest.copy() if self.width else np.zeros(state.width))
        additions["met"] = met = writer.write_all(values)
        if writer.new:
            additions["new"] = writer.new
        if writer.n_others:
            additions["others"] = writer.n_others
        if writer.state is self._state and not self._kinds and met == NUMBER * len(values):
            is_listed = type(record) in (list, np.ndarray)
            slots = [state.by_name[name].kinds["number"] for name in values]
            self._numeric = None if is_listed else tuple(values), np.array(slots, np.int64)
        return self._finish(writer.row, additions, writer.state)

    def _row_of_numbers(self, record: Any) -> Floats | None:
        """Fast path: return the row of a record with a number in every column, or None unless `_numeric` fits it."""
        if self._numeric is None or len(self._numeric[1]) != len(self._state.columns):
            return None
        names, slots = self._numeric
        kind = type(record)
        if kind is np.ndarray and names is None and record.dtype == np.float64 and record.shape == slots.shape:
            numbers = record.copy()  # the caller may modify it meanwhile
        elif tuple(record) == names if kind is dict else kind is list and not names and len(record) == len(slots):
            values = record.values() if kind is dict else record
            if not NUMBERS.issuperset(map(type, values)):
                return None
            try:
                numbers = np.array([*values], np.float64)
            except OverflowError:  # an integer too large for float
                return None
        else:
            return None
        if not all_within(numbers, MOST):
            return None
        row = self._at_rest.copy()
        row[slots] = numbers
        return row

    def _finish(self, row: Floats, additions: dict[str, Any], state: EncoderState) -> Encoded:
        """Scale the numbers of a row if necessary, and make wide rows sparse."""
        slots = state.number_slots(additions["met"])
        numbers = row[slots]
        if self._scale:
            additions["numbers"] = numbers.tolist()
            _standardize(state.statistics, slots, row)
        encoded = Encoded(row if len(row) <= _WIDEST_DENSE else _as_sparse(row), additions)
        self._pending = encoded, state, slots, numbers
        return encoded

    def take(self, encoded: Encoded) -> None:
        """Update the encoder with an encoded record.

        Parameters
        ----------
        encoded : Encoded
            Result of `look` of this encoder, or of an identical one; its row may be a matrix of one row. If another
            record was taken since, or `look` could not have returned this, it is a ValueError and changes nothing.
        """
        row, additions = encoded
        if self._pending is not None and self._pending[0] is encoded and additions["at"] == self._state.n_records:
            _, state, slots, numbers = self._pending
        else:
            state, slots, numbers = self._state.checked(row, additions, self._scale)
        # Nothing can fail from here on.
        if state is not self._state:
            self._set_state(state)
        self._pending = None
        state.n_others += additions.get("others", 0)
        _count_numbers(state.statistics, slots, numbers)
        state.n_records += 1
        state.tally[additions["met"]] += 1
        if len(state.tally) > MOST_PATTERNS:
            state.counts()

    @classmethod
    def of_table(cls, columns: Sequence[TableColumn]) -> tuple["Encoder", Floats]:
        """Return an encoder with exactly the slots that a table needs, and the rows of the table.

        It encodes later records in the same slots; words that the table does not have get none.
        """
        state, X = fit_table(columns)
        encoder = cls({column.name: column.kind for column in columns}, max_categories=state.max_categories)
        encoder._set_state(state)
        return encoder, X

    def columns(self) -> list[ColumnInfo]:
        """Return how each column is encoded, in order of appearance.

        The last one, ``"(others)"``, stands for all columns without slots of their own: `seen` counts their values.
        """
        state, counts = self._state, self._state.counts().tolist()
        found = [each.info(self._kinds.get(each.name) == "tags", counts[each.position]) for each in state.columns]
        if state.n_others:
            found.append(ColumnInfo("(others)", "shared", (), (), state.n_others, 0, state.n_others))
        return found

    def feature_names(self) -> list[str]:
        """Return the name of each slot of a row."""
        return self._state.names()

    def explain(self, row: Rows) -> dict[str, float]:
        """Return the nonzero values of a row by slot name."""
        values = dense_row(row, self.width).tolist()
        return {name: value for name, value in zip(self.feature_names(), values, strict=True) if value}

    def state(self) -> dict[str, Any]:
        """Return the encoder as plain JSON values; floats survive JSON exactly."""
        settings = {"kinds": dict(self._kinds), **self._sizes, "scale": self._scale}
        return {"version": _VERSION, "settings": settings, **self._state.to_json()}

    @classmethod
    def from_state(cls, state: Any) -> "Encoder":
        """Rebuild an encoder from the result of `state`; a ValueError for what `state` could not have returned."""
        if type(state) is not dict or set(state) != set(cls().state()):
            raise ValueError(f"an encoder's state has settings, size, entries, counts, …; got {state!r:.80}")
        if state["version"] != _VERSION:
            raise ValueError(f"the state is of version {state['version']!r:.80}; this onebit reads version {_VERSION}")
        try:
            encoder = cls(**state["settings"])
        except TypeError as error:
            raise ValueError(f"the state's settings are none of an encoder: {state['settings']!r:.80}") from error
        encoder._set_state(EncoderState.from_json(state, encoder._state.max_categories))
        return encoder


class _RowWriter:
    """Writes the values of one record into a row; what is new gets slots in a copy of the state."""

    def __init__(self, state: EncoderState, row: Floats) -> None:
        self.state, self.row = state, row
        self.new: list[Any] = []  # entries that were added
        self.n_others = 0  # values in columns without slots of their own

    def write_all(self, values: dict[str, Any]) -> str:
        """Write a record's values; return what each column held, as one letter a column."""
        met = [MISSING] * len(self.state.columns)
        for name, value in values.items():
            column = self.state.by_name.get(name)
            if column is None:
                column = self._new_column(name)
                met += MISSING * (len(self.state.columns) - len(met))
            letter = self._write(column, value)
            if column.position >= 0:
                met[column.position] = letter
            elif letter == MISSING:
                self._write_missing(column)
            else:
                self.n_others += 1
        if MISSING in met:
            for i, letter in enumerate(met):
                if letter == MISSING:
                    self._write_missing(self.state.columns[i])
        return "".join(met)

    def _write_missing(self, column: Column) -> None:
        slot = self._slot(column, "missing")
        if slot == SHARED:
            self._share(f"{column.name} is missing", 1.0)
        else:
            self.row[slot] = 1.0

    def _write(self, column: Column, value: Any) -> str:
        """Write a value; return its letter."""
        kind = type(value)
        if kind is str:
            slot = column.words.get(value)
            if slot is not None:
                self.row[slot] = 1.0
                return OTHER
            value = guess_kind(column.name, value, "text" in column.kinds)
            kind = type(value)
        if kind is float or kind is int or kind is bool:
            if not -MOST <= value <= MOST:
                if value != value:
                    return MISSING
                raise too_large(column.name, value)
            slot = self._slot(column, "number")
            if slot == SHARED:
                return self._share_numbers(column, "number", (value,))
            self.row[slot] = value
            return NUMBER
        if value is None:
            return MISSING
        if kind is tuple:
            return self._write_words(column, value)
        if kind is Text:
            if column.position >= 0:
                self._slot(column, "text")
            slots, shares = hashed_text(column.name, value, self.state.to_share)
            self.row[self.state.own + slots] += shares
            return OTHER
        numbers, first = date_numbers(value), self._slot(column, "date")
        if first == SHARED:
            return self._share_numbers(column, "date", numbers)
        self.row[first : first + len(numbers)] = numbers
        return DATE

    def _share_numbers(self, column: Column, kind: str, numbers: tuple[float, ...]) -> str:
        for ending, number in zip(ENDINGS[kind], numbers, strict=True):
            # The logarithm: categories have the value 1, which large numbers would dominate.
            self._share(f"{column.name}{ending}", math.copysign(math.log1p(abs(number)), number))
        return CROWDED

    def _write_words(self, column: Column, words: tuple[str, ...]) -> str:
        met = OTHER
        if len(words) != 1:
            self._slot(column, "tags")
        for word in words:
            slot = column.words.get(word)
            if slot is None and self.state.may_have_slot(column, word):
                column = self._add("word", column.position, word)
                slot = column.words[word]
            if slot is None:
                self._share(f"{column.name}={word}", 1.0)
                met = CROWDED
            else:
                self.row[slot] = 1.0
        return met

    def _slot(self, column: Column, kind: str) -> int:
        """Return the first slot of a kind of value in a column, assigned now if it has none."""
        slot = column.kinds.get(kind)
        return self._add(kind, column.position).kinds[kind] if slot is None else slot

    def _new_column(self, name: str) -> Column:
        """Add a column; if no slots are left, return one whose values all go to shared slots."""
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"names of columns are texts of at most {LONGEST_NAME} letters; got {name!r:.80}. Rename it"
            )
        if self.state.has_room_for_column():
            return self._add("column", name)
        return Column(SHARED, name, dict.fromkeys(("number", "date", "missing", "tags"), SHARED), {})

    def _add(self, *entry: Any) -> Column:
        """Add a column, a kind of value or a word, and return the column."""
        if not self.new:
            self.state = self.state.grown_by([])
        self.new.append([*entry])
        return self.state.add([*entry])

    def _share(self, token: str, value: float) -> None:
        if self.state.to_share:
            slot, sign = hashed_slot(token, self.state.to_share)
            self.row[self.state.own + slot] += sign * value


def _as_sparse(row: Floats) -> SparseRows:
    columns = np.flatnonzero(row)
    return SparseRows(row[columns], columns, np.array([0, len(columns)]), len(row))


# Statistics of slots.


@jit_no_refcount
def all_within(values: Floats, most: float) -> bool:
    """Return whether all |values| ≤ most, false for NaN; several times as fast as NumPy for few values."""
    is_within = True
    for i in range(values.shape[0]):
        is_within &= abs(values[i]) <= most
    return is_within


@jit_no_refcount
def _count_numbers(statistics: Floats, slots: Integers, numbers: Floats) -> None:
    """Add numbers to the statistics of their slots (Welford's method)."""
    for i in range(slots.shape[0]):
        slot = slots[i]
        statistics[COUNT, slot] += 1.0
        off = numbers[i] - statistics[MEAN, slot]
        statistics[MEAN, slot] += off / statistics[COUNT, slot]
        statistics[SQUARES, slot] += off * (numbers[i] - statistics[MEAN, slot])


@jit_no_refcount
def _standardize(statistics: Floats, slots: Integers, row: Floats) -> None:
    """Standardise the numbers in some slots of a row by mean and variance so far; constant slots become 0.

    Clipped to ±√n, the maximum for any of the n numbers so far, so that outliers do not dominate.
    """
    for i in range(slots.shape[0]):
        slot = slots[i]
        n, mean, scaled = statistics[COUNT, slot], statistics[MEAN, slot], 0.0
        deviation = np.sqrt(statistics[SQUARES, slot] / max(n, 1.0))
        if deviation > 1e-12 * abs(mean):  # rounding leaves a constant column a tiny variance
            scaled = min(max((row[slot] - mean) / deviation, -np.sqrt(n)), np.sqrt(n))
        row[slot] = scaled
