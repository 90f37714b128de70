"""Encode records as rows: named values of several kinds become numbers in fixed slots.

Learners have a fixed number of features, but new columns and categories keep appearing. So some slots of a row are
assigned in order of appearance, and the rest are shared by hashing. The first record determines their numbers.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from onebit.encoding.columns import DATE_PARTS, SHARED, Column, ColumnInfo, check_name, date_places
from onebit.encoding.fast_path import NumericFastPath, numeric_fast_path
from onebit.encoding.fields import KINDS, MOST_VALUES, FieldValues, Text, read_fields, shown
from onebit.encoding.record_json import record_from_json, record_to_json
from onebit.encoding.row_writing import CROWDED, DATE, MET, MISSING, NUMBER, IsNewError, RowWriter, guessed
from onebit.encoding.slots import WIDEST, FeatureSlots, check_size
from onebit.encoding.statistics import Running
from onebit.engine.lengths import MOST
from onebit.inputs import Floats, Integers, Rows, SparseRows, check_choice, check_integer, check_switch

__all__ = ["ColumnInfo", "Encoded", "Encoder", "record_from_json", "record_to_json"]

_VERSION = 1
_WIDEST_DENSE = 1_024
# Slots reserved at the first record: per category column, per empty column, spare, shared.
_WORDS, _UNKNOWN, _SPARE, _TO_SHARE = 8, 4, 8, 8
_MOST_TALLIED = 100  # distinct patterns of met columns


class Encoded(NamedTuple):
    """An encoded record."""

    row: Rows
    """A dense row of one dimension, or a sparse one if it is wide."""
    additions: dict[str, Any]
    """What it adds to the encoder, as plain JSON values."""


class Encoder:
    """Online encoder of records as rows of fixed width.

    Numbers and bools take one slot, dates seven (days, and sine and cosine of the time of day, week and year), each
    category or tag one, and a missing value has an indicator slot; missing numbers are replaced by the mean so far.
    Texts are hashed: words and character n-grams. A column can hold several kinds: a string among numbers is a category
    of that column. `columns` returns how each column is encoded.

    The first record determines the width of rows, with spare slots for later columns and categories. When all slots are
    assigned, new ones share slots by hashing, so memory is bounded.

    `look` encodes a record without changing the encoder; `take` updates the encoder, from the result of `look` alone.
    So the encoder can be rebuilt exactly from stored results of `look`, without the records.

    Parameters
    ----------
    kinds : mapping of column to {"number", "category", "text", "tags", "date", "ignore"}, optional
        Kinds of columns that would be inferred wrongly: numbers that are codes, texts of one word. Values that do
        not fit the kind become categories.
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
        self._wished = None if width is None else check_integer("width", width, low=4, high=WIDEST)
        self._max_categories = check_integer("max_categories", max_categories, low=0, high=WIDEST)
        self._text_width = check_integer("text_width", text_width, low=1, high=WIDEST // 2)
        self._scale = check_switch("scale", scale)
        self._n_records = self._n_others = 0
        self._set_size(0, 0)

    def _set_size(self, own: int, to_share: int) -> None:
        self._places = FeatureSlots(own, to_share, self._max_categories)
        self._running = Running(own + to_share)
        # The row of an empty record: all numbers at their means.
        self._at_rest = np.zeros(own + to_share) if self._scale else self._running.means
        self._last_met: tuple[str, Integers] = "", np.zeros(0, np.int64)
        self._fast_path: NumericFastPath | None = None
        self._latest: tuple[Encoded, Integers, Floats] | None = None
        """The latest purely numeric record: the result of `look`, its slots and its numbers."""
        self._tally: Counter[str] = Counter()
        """Number of records by pattern of met columns; added to the columns' counts when these are read."""

    def __repr__(self) -> str:
        places = self._places
        size = f"{self.width} places, {places.n_given} of {places.own} given away" if self.width else "no record yet"
        return f"<Encoder: {len(places.columns)} columns, {size}>"

    @property
    def width(self) -> int:
        """Number of slots in a row; 0 before the first record."""
        return len(self._at_rest)

    def example_rows(self) -> list[Rows]:
        """Return a small example row: dense or sparse, as records are encoded; both before the first record."""
        rows: list[Rows] = [np.zeros(2), _as_sparse(np.ones(2))]
        return rows if not self.width else rows[:1] if self.width <= _WIDEST_DENSE else rows[1:]

    # Encoding.

    def look(self, record: Any) -> Encoded:
        """Encode a record, without changing the encoder.

        Parameters
        ----------
        record : mapping, frame of one row, row of a pandas frame, or list or array of numbers
            Mappings in it are flattened, as ``"a.b"``. None, NaN, NA, NaT and blank strings are missing values.

        Raises
        ------
        ValueError
            For invalid records, infinite numbers, and too many values; the message names the column.
        """
        fast_path = self._fast_path
        if fast_path is not None and len(fast_path.places) == len(self._places.columns):
            numbers = fast_path.numbers_of(record)
            if numbers is not None:
                return self._finished_numbers(fast_path, numbers)
        fields = read_fields(record, self._kinds)
        if not self.width:
            fresh, size = self._copy(), self._first_size(fields)
            fresh._set_size(*size)
            row, additions = fresh._encoded(fields.values, [])
            return Encoded(row, {**additions, "size": list(size)})
        try:
            encoded = self._encoded(fields.values, None)
        except IsNewError:
            return self._copy()._encoded(fields.values, [])
        if not self._kinds:
            by_name = self._places.by_name
            places = [by_name[name].number if name in by_name else None for name in fields.values]
            self._fast_path = numeric_fast_path(record, fields.values, places)
        return encoded

    def _encoded(self, values: dict[str, Any], new: list[Any] | None) -> Encoded:
        """Encode values; new entries are added to this encoder and to `new`, unless that is None."""
        writer = RowWriter(self._places, self._at_rest.copy(), new)
        additions: dict[str, Any] = {"at": self._n_records, "met": writer.write_all(values)}
        if new:
            additions["new"] = new
        if writer.n_others:
            additions["others"] = writer.n_others
        return self._finished(writer.row, additions)

    def _finished_numbers(self, fast_path: NumericFastPath, numbers: Floats) -> Encoded:
        """Encode a record with a number in every column and nothing else."""
        row = self._at_rest.copy()
        row[fast_path.where] = numbers
        encoded = self._finished(row, {"at": self._n_records, "met": NUMBER * len(numbers)})
        self._latest = encoded, fast_path.places, numbers
        return encoded

    def _finished(self, row: Floats, additions: dict[str, Any]) -> Encoded:
        """Scale the numbers of a row if necessary, and make wide rows sparse."""
        if self._scale:
            places = self._places_met(additions["met"])
            numbers = row[places]
            additions["numbers"] = numbers.tolist()
            row[places] = self._running.standardized(places, numbers)
        return Encoded(row if len(row) <= _WIDEST_DENSE else _as_sparse(row), additions)

    def _copy(self) -> "Encoder":
        """Return a copy with slots of its own, for encoding only; the statistics are shared."""
        self._count_columns()
        copy = object.__new__(Encoder)
        copy.__dict__.update(self.__dict__)
        copy._places = self._places.copy()
        return copy

    def _first_size(self, fields: FieldValues) -> tuple[int, int]:
        """Return the numbers of individual and of shared slots for the first record."""
        if not fields.values and self._wished is None:
            raise ValueError("the first record decides how wide rows are, and has no value: give one, or give width")
        has_text = "text" in self._kinds.values()
        needed = 0
        for name, value in fields.values.items():
            read = guessed(Column(0, name), value) if type(value) is str else value
            has_text = has_text or type(read) is Text
            if isinstance(read, tuple):
                needed += max(len(read), min(_WORDS, self._max_categories))
            elif read is None or read != read:
                needed += _UNKNOWN
            elif type(read) is not Text:
                needed += len(DATE_PARTS) if isinstance(read, date) else 1
        to_share = self._text_width if has_text else _TO_SHARE
        if self._wished is not None:
            to_share = max(1, min(to_share, self._wished // (2 if has_text else 4)))
            return self._wished - to_share, to_share
        n_named = len(fields.values) - fields.n_listed
        return needed + (needed - fields.n_listed) // 4 + n_named // 2 + _SPARE, to_share

    # Learning.

    def take(self, encoded: Encoded) -> None:
        """Update the encoder with an encoded record.

        Parameters
        ----------
        encoded : Encoded
            Result of `look` of this encoder, or of an identical one. Its row may be a vector or a matrix of one
            row.

        Raises
        ------
        ValueError
            If another record was taken since, or `look` could not have returned this; the encoder is unchanged.
        """
        row, additions = encoded
        if self._latest is not None and encoded is self._latest[0] and additions["at"] == self._n_records:
            self._count(additions["met"], *self._latest[1:])  # the latest numeric record
            return
        if type(additions) is not dict or additions.get("at") != self._n_records:
            at = additions.get("at") if type(additions) is dict else additions
            raise ValueError(f"looked is of record {at!r:.80}, and record {self._n_records} is next; look again")
        grown = self
        if "new" in additions or "size" in additions:
            grown = self._copy()
            grown._grow(additions)
        met, n_others = grown._check_met(additions.get("met")), additions.get("others", 0)
        if n_others or type(n_others) is not int:
            check_integer("looked's number of others", n_others, low=0, high=MOST_VALUES)
        places = grown._places_met(met)
        numbers = grown._numbers_in(row, places, additions.get("numbers"))
        # Nothing can fail from here on.
        if grown is not self:
            self.__dict__.update(grown.__dict__)
        self._n_others += n_others
        self._count(met, places, numbers)

    def _count(self, met: str, places: Integers, numbers: Floats) -> None:
        """Update statistics and counts with a record."""
        self._running.take(places, numbers[None])
        self._n_records += 1
        self._tally[met] += 1
        if len(self._tally) > _MOST_TALLIED:
            self._count_columns()

    def take_many(self, rows: Floats, additions: list[dict[str, Any]]) -> None:
        """Update the encoder with consecutive records that add no columns or categories.

        Parameters
        ----------
        rows : array
            The rows of the records.
        additions : list
            Their additions; an invalid one raises as in `take`, after those before it were applied.
        """
        met = self._check_met(additions[0].get("met"))
        places = self._places_met(met)
        numbers = rows.take(places, axis=1)
        is_same = not self._scale and all(
            len(each) == 2 and each.get("at") == at and each.get("met") == met
            for at, each in enumerate(additions, self._n_records)
        )
        if not is_same or not (abs(numbers) <= MOST).all():
            for row, each in zip(rows, additions, strict=True):
                self.take(Encoded(row, each))
            return
        self._running.take(places, numbers)
        self._n_records += len(rows)
        self._tally[met] += len(rows)

    def _check_met(self, met: Any) -> str:
        """Return the pattern of met columns, or raise ValueError if invalid."""
        if type(met) is not str or met not in self._tally:
            n_columns = len(self._places.columns)
            if type(met) is not str or len(met) != n_columns or not MET.issuperset(met):
                raise ValueError(f"looked must say what was met in {n_columns} columns; got {met!r:.80}")
        return met

    def _count_columns(self) -> None:
        """Add the tally to the columns' counts."""
        for met, times in self._tally.items():
            for column, letter in zip(self._places.columns, met, strict=True):
                if letter == MISSING:
                    column.missing += times
                else:
                    column.seen += times
                    column.shared += times * (letter == CROWDED)
        self._tally = Counter()

    def _grow(self, additions: dict[str, Any]) -> None:
        size, new = additions.get("size"), additions.get("new", [])
        if size is not None:
            if self.width:
                raise ValueError("looked decides how wide rows are, which is decided; look again")
            self._set_size(*check_size(size))
        if type(new) is not list:
            raise ValueError(f"looked must have a list of what is new; got {new!r:.80}")
        for entry in new:
            self._places.grow(entry)

    def _places_met(self, met: str) -> Integers:
        """Return the slots of the numbers in a pattern, column by column."""
        last, places = self._last_met
        if met == last:
            return places
        found: list[int] = []
        for column, letter in zip(self._places.columns, met, strict=True):
            if letter in (NUMBER, DATE):
                number = [SHARED if column.number is None else column.number]
                here = number if letter == NUMBER else date_places(column.date)
                if not here or here[0] == SHARED:
                    raise ValueError(f"column {shown(column.name)} cannot have met a number: it has no place for one")
                found += here
        # Cached: most records have the pattern of the one before, and its meaning never changes.
        self._last_met = met, np.array(found, np.int64)
        return self._last_met[1]

    def _numbers_in(self, row: Any, places: Integers, raw: Any) -> Floats:
        """Return the numbers of a record before scaling."""
        values = self._values_of(row)
        if self._scale:
            if type(raw) is not list or len(raw) != len(places) or not all(type(value) is float for value in raw):
                raise ValueError(
                    f"looked must have {len(places)} numbers, from before they were scaled; got {raw!r:.80}"
                )
            numbers = np.array(raw, np.float64)
        else:
            numbers = values[places]
        if not (abs(numbers) <= MOST).all():
            raise ValueError(f"looked must have finite numbers, of at most {MOST:g} in size; got {numbers}")
        return numbers

    def _values_of(self, row: Any) -> Floats:
        """Return a row as a dense vector, or raise ValueError."""
        try:
            if isinstance(row, SparseRows):
                values = np.zeros(row.n_columns if row.n_columns == self.width else 0)
                values[row.columns] = row.values
            else:
                values = np.asarray(row, np.float64)
                values = values[0] if values.ndim == 2 and len(values) == 1 else values
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(f"the row must be one of {self.width} numbers; got {row!r:.80}") from error
        if values.shape != (self.width,) or not self.width:
            raise ValueError(f"the row must be one of {self.width} numbers; got shape {np.shape(row)}")
        return values

    # Inspection.

    def columns(self) -> list[ColumnInfo]:
        """Return how each column is encoded, in order of appearance.

        The last one, ``"(others)"``, stands for all columns without slots of their own: `seen` counts their values.
        """
        self._count_columns()
        found = [column.info(self._kinds.get(column.name) == "tags") for column in self._places.columns]
        if self._n_others:
            found.append(ColumnInfo("(others)", "shared", (), (), self._n_others, 0, self._n_others))
        return found

    def feature_names(self) -> list[str]:
        """Return the name of each slot of a row."""
        return self._places.names()

    def explain(self, row: Rows) -> dict[str, float]:
        """Return the nonzero values of a row by slot name."""
        values = self._values_of(row).tolist()
        return {name: value for name, value in zip(self.feature_names(), values, strict=True) if value}

    # Serialization.

    def state(self) -> dict[str, Any]:
        """Return the encoder as plain JSON values; floats survive JSON exactly."""
        self._count_columns()
        return {
            "version": _VERSION,
            "settings": {
                "kinds": dict(self._kinds),
                "width": self._wished,
                "max_categories": self._max_categories,
                "text_width": self._text_width,
                "scale": self._scale,
            },
            "size": [self._places.own, self._places.to_share] if self.width else None,
            "counts": [self._n_records, self._n_others],
            "columns": self._places.state(),
            "statistics": self._running.state(self._places.measured()),
        }

    @classmethod
    def from_state(cls, state: Any) -> "Encoder":
        """Rebuild an encoder from the result of `state`.

        Raises
        ------
        ValueError
            For values that `state` could not have returned.
        """
        if type(state) is not dict or set(state) != set(Encoder().state()):
            raise ValueError(f"an encoder's state has settings, size, counts, columns, …; got {state!r:.80}")
        if state["version"] != _VERSION:
            raise ValueError(f"the state is of version {state['version']!r:.80}; this onebit reads version {_VERSION}")
        try:
            encoder = cls(**state["settings"])
        except TypeError as error:
            raise ValueError(f"the state's settings are none of an encoder: {state['settings']!r:.80}") from error
        if state["size"] is not None:
            encoder._set_size(*check_size(state["size"]))
        counts = state["counts"]
        if type(counts) is not list or len(counts) != 2:
            raise ValueError(f"the state must have two counts; got {counts!r:.80}")
        encoder._n_records, encoder._n_others = (check_integer("the state's count", n, low=0) for n in counts)
        encoder._places.set_state(state["columns"])
        encoder._running.set_state(encoder._places.measured(), state["statistics"])
        return encoder


def _check_kinds(kinds: Any) -> dict[str, str]:
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping) or len(kinds) > MOST_VALUES:
        raise ValueError(f"kinds must be a mapping of columns to kinds, as {{'zip': 'category'}}; got {kinds!r:.80}")
    return {check_name(name): check_choice(f"kinds[{name!r}]", kind, KINDS) for name, kind in kinds.items()}


def _as_sparse(row: Floats) -> SparseRows:
    columns = np.flatnonzero(row)
    return SparseRows(row[columns], columns, np.array([0, len(columns)]), len(row))
