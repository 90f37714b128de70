"""Records as rows: named values of any kind become numbers at fixed places.

Learners have a fixed number of features, and an application meets new columns and new words for as long as it runs. So
a row has places that are given away one by one, to whatever comes, and places that all the rest shares by hashing. The
first record decides how many.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from onebit.encoding.columns import DATE_PARTS, SHARED, Column, ColumnInfo, check_name, date_places
from onebit.encoding.fast_path import SameNumbers, same_numbers
from onebit.encoding.fields import KINDS, MOST_VALUES, Cells, Text, read_cells, shown
from onebit.encoding.record_json import record_from_json, record_to_json
from onebit.encoding.row_writing import CROWDED, DATE, MET, MISSING, NUMBER, IsNewError, RowWriter, guessed
from onebit.encoding.slots import WIDEST, Places, check_size
from onebit.encoding.statistics import Running
from onebit.engine.lengths import MOST
from onebit.inputs import Floats, Integers, Rows, SparseRows, check_choice, check_integer, check_switch

__all__ = ["ColumnInfo", "Encoder", "Looked", "record_from_json", "record_to_json"]

_VERSION = 1
_WIDEST_DENSE = 1_024
# What the first record makes room for.
_WORDS, _UNKNOWN, _SPARE, _TO_SHARE = 8, 4, 8, 8
_MOST_TALLIED = 100  # kinds of records


class Looked(NamedTuple):
    """A record as an encoder sees it."""

    row: Rows
    """One dense row, of one dimension; or, if it is wide, a sparse one."""
    additions: dict[str, Any]
    """What it adds to the encoder, as JSON can write it."""


class Encoder:
    """Turns records into rows, for as long as an application runs.

    Numbers and truth values take one place, dates seven (days, and the time of day, week and year on circles), every
    word of a category or a list of tags one, and a place of its own says that a column has no value; a number that is
    missing, there or not at all, is the mean so far. Texts are hashed: words, and pieces of words. A column can hold
    several of these: a word among numbers is a category of that column. Whatever a column is taken for can be read
    (`columns`).

    The first record decides how wide rows are, with room for columns and words met later. When all places are given
    away, what is new shares some by hashing. So memory is bounded, whatever comes.

    `look` changes nothing; `take` does, and all it needs is what `look` returned. So whoever keeps that can make the
    same encoder again, bit for bit, without the records.

    Parameters
    ----------
    kinds : mapping of column to {"number", "category", "text", "tags", "date", "ignore"}, optional
        What columns are, where a guess from the values would be wrong: a number that is a code, a text of one word.
        What cannot be read as its kind is a category.
    width : int, optional
        How many places a row has; by default the first record decides.
    max_categories : int
        The most words of one column that get places of their own.
    text_width : int
        How many places texts share, if the first record or `kinds` has any.
    scale : bool
        Standardise numbers and dates by mean and variance of the records before, at most √n deviations from 0 after n
        of them. For learners that do not scale columns themselves.

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
        self._places = Places(own, to_share, self._max_categories)
        self._running = Running(own + to_share)
        # The row of a record in which nothing is met: all numbers at their means.
        self._at_rest = np.zeros(own + to_share) if self._scale else self._running.means
        self._last_met: tuple[str, Integers] = "", np.zeros(0, np.int64)
        self._same: SameNumbers | None = None
        self._latest: tuple[Looked, Integers, Floats] | None = None
        """The latest record of nothing but numbers: what `look` returned, and its numbers by place."""
        self._tally: Counter[str] = Counter()
        """What was met, and how often: the columns' counts are made of it when somebody asks."""

    def __repr__(self) -> str:
        places = self._places
        size = f"{self.width} places, {places.n_given} of {places.own} given away" if self.width else "no record yet"
        return f"<Encoder: {len(places.columns)} columns, {size}>"

    @property
    def width(self) -> int:
        """How many places a row has; 0 before the first record."""
        return len(self._at_rest)

    def example_rows(self) -> list[Rows]:
        """Return a small row of each kind that records become: dense, sparse, or both before the first record."""
        rows: list[Rows] = [np.zeros(2), _as_sparse(np.ones(2))]
        return rows if not self.width else rows[:1] if self.width <= _WIDEST_DENSE else rows[1:]

    # Looking.

    def look(self, record: Any) -> Looked:
        """Return a record as a row, and what it would add; nothing is changed.

        Parameters
        ----------
        record : mapping, frame of one row, row of a pandas frame, or list or array of numbers
            Mappings in it are flattened, as ``"a.b"``. None, NaN, NA, NaT and blank texts are missing values.

        Raises
        ------
        ValueError
            For what is no record, what no learner takes (infinities), and too much of anything; it names the column.
        """
        same = self._same
        if same is not None and len(same.places) == len(self._places.columns):
            numbers = same.numbers_of(record)
            if numbers is not None:
                return self._finished_numbers(same, numbers)
        cells = read_cells(record, self._kinds)
        if not self.width:
            fresh, size = self._copy(), self._first_size(cells)
            fresh._set_size(*size)
            row, additions = fresh._encoded(cells.values, [])
            return Looked(row, {**additions, "size": list(size)})
        try:
            looked = self._encoded(cells.values, None)
        except IsNewError:
            return self._copy()._encoded(cells.values, [])
        if not self._kinds:
            by_name = self._places.by_name
            places = [by_name[name].number if name in by_name else None for name in cells.values]
            self._same = same_numbers(record, cells.values, places)
        return looked

    def _encoded(self, values: dict[str, Any], new: list[Any] | None) -> Looked:
        """Return the row of a record, and its additions; what is new is added to the encoder, and noted in `new`."""
        writer = RowWriter(self._places, self._at_rest.copy(), new)
        additions: dict[str, Any] = {"at": self._n_records, "met": writer.write_all(values)}
        if new:
            additions["new"] = new
        if writer.n_others:
            additions["others"] = writer.n_others
        return self._finished(writer.row, additions)

    def _finished_numbers(self, same: SameNumbers, numbers: Floats) -> Looked:
        """Return a row that has a number in every column, and nothing else."""
        row = self._at_rest.copy()
        row[same.where] = numbers
        looked = self._finished(row, {"at": self._n_records, "met": NUMBER * len(numbers)})
        self._latest = looked, same.places, numbers
        return looked

    def _finished(self, row: Floats, additions: dict[str, Any]) -> Looked:
        """Return a row with its numbers scaled, if they are."""
        if self._scale:
            places = self._places_met(additions["met"])
            numbers = row[places]
            additions["numbers"] = numbers.tolist()
            row[places] = self._running.standardized(places, numbers)
        return Looked(row if len(row) <= _WIDEST_DENSE else _as_sparse(row), additions)

    def _copy(self) -> "Encoder":
        """Return another encoder that can grow by itself; it must not take anything."""
        self._count_columns()
        copy = object.__new__(Encoder)
        copy.__dict__.update(self.__dict__)
        copy._places = self._places.copy()
        return copy

    def _first_size(self, cells: Cells) -> tuple[int, int]:
        """Return how many places there will be to give away, and how many to share."""
        if not cells.values and self._wished is None:
            raise ValueError("the first record decides how wide rows are, and has no value: give one, or give width")
        has_text = "text" in self._kinds.values()
        needed = 0
        for name, value in cells.values.items():
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
        n_named = len(cells.values) - cells.n_listed
        return needed + (needed - cells.n_listed) // 4 + n_named // 2 + _SPARE, to_share

    # Taking.

    def take(self, looked: Looked) -> None:
        """Make what `look` returned part of the encoder.

        Parameters
        ----------
        looked : Looked
            Of the encoder as it is now, or as it was when it stood here. Its row may have one dimension, or be a
            matrix of one row.

        Raises
        ------
        ValueError
            If another record was taken since, or if `look` could not have returned this; then nothing is changed.
        """
        row, additions = looked
        if self._latest is not None and looked is self._latest[0] and additions["at"] == self._n_records:
            self._count(additions["met"], *self._latest[1:])  # as it was looked at a moment ago
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
        """Count a record, by what was met in it."""
        self._running.take(places, numbers[None])
        self._n_records += 1
        self._tally[met] += 1
        if len(self._tally) > _MOST_TALLIED:
            self._count_columns()

    def take_many(self, rows: Floats, additions: list[dict[str, Any]]) -> None:
        """Take what `look` returned for records that brought nothing new, one after the other.

        Parameters
        ----------
        rows : array
            Their rows.
        additions : list
            What each adds; if one cannot be, `take` says why, and those before it are taken.
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
                self.take(Looked(row, each))
            return
        self._running.take(places, numbers)
        self._n_records += len(rows)
        self._tally[met] += len(rows)

    def _check_met(self, met: Any) -> str:
        """Return what was met in the columns, or raise ValueError if it could not be."""
        if type(met) is not str or met not in self._tally:
            n_columns = len(self._places.columns)
            if type(met) is not str or len(met) != n_columns or not MET.issuperset(met):
                raise ValueError(f"looked must say what was met in {n_columns} columns; got {met!r:.80}")
        return met

    def _count_columns(self) -> None:
        """Let the columns' counts say all that was met."""
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
        """Return the places of the numbers that were met, column by column."""
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
        # Most records are like the one before. What a text of letters means never changes.
        self._last_met = met, np.array(found, np.int64)
        return self._last_met[1]

    def _numbers_in(self, row: Any, places: Integers, raw: Any) -> Floats:
        """Return the numbers of a record, as they were before they were scaled."""
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
        """Return a row's numbers, one for each place, or raise ValueError."""
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

    # Reading.

    def columns(self) -> list[ColumnInfo]:
        """Return what each column became, in the order in which they came.

        The last one, ``"(others)"``, stands for all columns that came when no place was left: `seen` counts their
        values.
        """
        self._count_columns()
        found = [column.info(self._kinds.get(column.name) == "tags") for column in self._places.columns]
        if self._n_others:
            found.append(ColumnInfo("(others)", "shared", (), (), self._n_others, 0, self._n_others))
        return found

    def feature_names(self) -> list[str]:
        """Return what each place of a row means."""
        return self._places.names()

    def explain(self, row: Rows) -> dict[str, float]:
        """Return what a row holds, by name; zeros are left out."""
        values = self._values_of(row).tolist()
        return {name: value for name, value in zip(self.feature_names(), values, strict=True) if value}

    # Keeping.

    def state(self) -> dict[str, Any]:
        """Return all that the encoder is, as JSON can write it; floats come back from JSON as they were."""
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
        """Return the encoder that `state` described.

        Raises
        ------
        ValueError
            For all that `state` could not have returned.
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
