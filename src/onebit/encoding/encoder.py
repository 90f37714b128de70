"""Encode records as rows: named values of several kinds become numbers in fixed slots.

New columns and categories keep appearing, but rows have a fixed width. So some slots are assigned in order of
appearance, and the rest are shared by hashing.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from onebit.encoding.fields import NUMBERS, Text, date_numbers, guess_kind, read_fields
from onebit.encoding.state import NUMBER, WIDEST, ColumnInfo, EncoderState, RowWriter, dense_row
from onebit.engine.jit import jit_no_refcount
from onebit.engine.scaling import MOST
from onebit.inputs import Floats, Integers, Rows, SparseRows, check_choice, check_integer, check_switch
from onebit.machine_memory import check_memory

_VERSION = 1
_WIDEST_DENSE = 1_024
_KINDS = ("number", "category", "text", "tags", "date", "days", "ignore")  # of columns, that the user can choose
# Slots reserved at the first record: per category column, per empty column, spare, shared.
_WORDS, _UNKNOWN, _SPARE, _TO_SHARE = 8, 4, 8, 8


class Encoded(NamedTuple):
    """An encoded record: its row, sparse if it is wide, and what it adds to the encoder, as plain JSON values."""

    row: Rows
    additions: dict[str, Any]


class TableColumn(NamedTuple):
    """A column of a table, all of one of an encoder's kinds: "number", "days" or "category".

    Values are numbers, NaN where missing; or positions in `words`, one past the last where missing.
    """

    name: str
    kind: str
    values: Any
    words: tuple[str, ...] | None = None

    def is_missing(self) -> Any:
        """Return where values are missing."""
        return np.isnan(self.values) if self.words is None else self.values == len(self.words)


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
        self._kinds = _check_kinds(kinds)
        self._sizes: dict[str, Any] = {
            "width": None if width is None else check_integer("width", width, low=4, high=WIDEST),
            "max_categories": check_integer("max_categories", max_categories, low=0, high=WIDEST),
            "text_width": check_integer("text_width", text_width, low=1, high=WIDEST // 2),
        }
        self._scale = check_switch("scale", scale)
        self._numeric: tuple[tuple[str, ...] | None, Integers] | None = None
        """Columns, None for those of a list, and slots of a record that had a number in every column and no more."""
        self._pending: tuple[Encoded, EncoderState, Floats] | None = None
        """The latest result of `look`, and what `take` needs: the new state, and the record's numbers."""
        self._set_state(EncoderState(0, 0, max_categories))

    def _set_state(self, state: EncoderState) -> None:
        self._state = state
        # The row of an empty record: all numbers at their means.
        self._at_rest = np.zeros(state.width) if self._scale else state.means

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
            additions["met"] = met = NUMBER * len(state.columns)
            return self._finish(row, additions, state, state.numbers_in(row, met, self._scale))
        values, n_listed = read_fields(record, self._kinds)
        if not state.width:
            size = self._first_size(values, n_listed)
            additions["size"] = list(size)
            state = EncoderState(*size, state.max_categories)
        row = self._at_rest.copy() if self._state.width else np.zeros(state.width)
        writer = RowWriter(state, row, values, self._scale)
        additions["met"] = met = writer.met
        if writer.new:
            additions["new"] = writer.new
        if writer.n_others:
            additions["others"] = writer.n_others
        if writer.state is self._state and not self._kinds and met == NUMBER * len(values):
            is_listed = type(record) in (list, np.ndarray)
            slots = [state.by_name[name].kinds["number"].start for name in values]
            self._numeric = None if is_listed else tuple(values), np.array(slots, np.int64)
        return self._finish(writer.row, additions, writer.state, writer.numbers)

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
        if not _all_within(numbers, MOST):
            return None
        row = self._at_rest.copy()
        row[slots] = numbers
        return row

    def _first_size(self, values: dict[str, Any], n_listed: int) -> tuple[int, int]:
        """Return the numbers of individual and of shared slots for a first record."""
        width, has_text = self._sizes["width"], "text" in self._kinds.values()
        if not values and width is None:
            raise ValueError("the first record decides how wide rows are, and has no value: give one, or give width")
        needed = 0
        for name, value in values.items():
            read = guess_kind(name, value, False) if type(value) is str else value
            if isinstance(read, tuple):
                needed += max(len(read), min(_WORDS, self._sizes["max_categories"]))
            elif type(read) is Text:
                has_text = True
            elif read is None or read != read:
                needed += _UNKNOWN
            else:
                needed += len(date_numbers(read)) if isinstance(read, date) else 1
        to_share = self._sizes["text_width"] if has_text else _TO_SHARE
        if width is not None:
            to_share = max(1, min(to_share, width // (2 if has_text else 4)))
            return width - to_share, to_share
        return needed + (needed - n_listed) // 4 + (len(values) - n_listed) // 2 + _SPARE, to_share

    def _finish(self, row: Floats, additions: dict[str, Any], state: EncoderState, numbers: Floats) -> Encoded:
        """Make wide rows sparse, and keep what `take` needs."""
        if self._scale:
            additions["numbers"] = numbers.tolist()
        encoded = Encoded(row if len(row) <= _WIDEST_DENSE else _as_sparse(row), additions)
        self._pending = encoded, state, numbers
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
            _, state, numbers = self._pending
        else:
            state, numbers = self._state.checked(row, additions, self._scale)
        # Nothing can fail from here on.
        if state is not self._state:
            self._set_state(state)
        self._pending = None
        state.count(additions, numbers)

    @classmethod
    @np.errstate(over="ignore")
    def of_table(cls, columns: Sequence[TableColumn]) -> tuple["Encoder", Floats]:
        """Return an encoder with exactly the slots that a table needs, and the rows of the table.

        A column has a slot for its numbers or one for each of its words, then one that marks missing values if it has
        any. Missing numbers are the mean of all others. The encoder encodes later records in the same slots; words that
        the table does not have get none.
        """
        n_rows, most = len(columns[0].values), max(len(column.words or ()) for column in columns)
        missing = [column.is_missing() for column in columns]
        n_missing = [int(np.count_nonzero(each)) for each in missing]
        width = sum(1 if column.words is None else len(column.words) for column in columns) + sum(map(bool, n_missing))
        check_memory(8 * n_rows * width)
        X, state = np.zeros((n_rows, width)), EncoderState(width, 0, most)
        state.n_records, state.counted = n_rows, np.array([[n_rows - n, n, 0] for n in n_missing])
        for j, column in enumerate(columns):
            state.add(["column", column.name])
            first = state.n_assigned
            if column.words is None:
                given = column.values[~missing[j]]
                mean = float(given.mean())
                if not math.isfinite(mean):  # the mean of huge numbers may overflow; the median cannot
                    mean = float(np.median(given / 2.0)) * 2.0
                X[:, first] = np.where(missing[j], mean, column.values)
                state.add(["number", j])
                state.count_column(given, mean)
            else:
                for word in column.words:
                    state.add(["word", j, word])
                X[np.arange(n_rows), first + column.values] = 1.0
            if n_missing[j]:
                state.add(["missing", j])
                X[:, state.n_assigned - 1] = missing[j]
        encoder = cls({column.name: column.kind for column in columns}, max_categories=most)
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


def _as_sparse(row: Floats) -> SparseRows:
    columns = np.flatnonzero(row)
    return SparseRows(row[columns], columns, np.array([0, len(columns)]), len(row))


def _check_kinds(kinds: Any) -> dict[str, str]:
    """Return the kinds of columns that the user gave, or raise a ValueError."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping) or len(kinds) > WIDEST:
        raise ValueError(f"kinds must be a mapping of columns to kinds, as {{'zip': 'category'}}; got {kinds!r:.80}")
    for name, kind in kinds.items():
        if type(name) is not str:
            raise ValueError(f"names of columns are texts; got {name!r:.80} in kinds")
        check_choice(f"kinds[{name!r}]", kind, _KINDS)
    return dict(kinds)


@jit_no_refcount
def _all_within(values: Floats, most: float) -> bool:
    """Return whether all |values| ≤ most, false for NaN; several times as fast as NumPy for few values."""
    is_within = True
    for i in range(values.shape[0]):
        is_within &= abs(values[i]) <= most
    return is_within
