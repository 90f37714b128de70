"""What an encoder has learned: columns with their slots in a row, and statistics of the numbers in these.

Slots are assigned in order of appearance, and permanently. What was assigned is a list of *entries*, and the state is
rebuilt by adding them again: ``["column", name]`` is a new column, ``["word", i, word]`` a category of column i, and
``["number", i]``, ``["date", i]``, ``["missing", i]``, ``["text", i]``, ``["tags", i]`` a kind of value that it holds.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from onebit.encoding.fields import KINDS, MOST_VALUES, Text, guess_kind, shown
from onebit.engine.scaling import MOST
from onebit.inputs import Floats, Integers, SparseRows, check_choice, check_integer
from onebit.machine_memory import check_memory

SHARED = -1  # stands for the slot of a value that has none of its own
WIDEST = 1 << 20  # maximum number of slots
NUMBER, DATE, OTHER, CROWDED, MISSING = _LETTERS = "ndos-"
"""What a column held in a record: a number, a date, another value, a value in shared slots, nothing."""
COUNT, MEAN, SQUARES = range(3)
"""Statistics of a slot: how many numbers it has had, their mean, and the sum of squared deviations from it."""
ENDINGS: dict[str, tuple[str, ...]] = {
    "number": ("",),
    "date": (
        ": days",
        *(f": time of {circle} ({part})" for circle in ("day", "week", "year") for part in ("sin", "cos")),
    ),
    "missing": (" is missing",),
    "text": (),
    "tags": (),
}
"""The slots that each kind of value has in a column: what their names have after the column's."""
# Slots reserved at the first record: per category column, per empty column, spare, shared.
_WORDS, _UNKNOWN, _SPARE, _TO_SHARE = 8, 4, 8, 8
MOST_PATTERNS = 100  # maximum number of distinct patterns of what columns held that are remembered
LONGEST_NAME = 200  # maximum characters of a column's name in a record, and of a category with its own slot
_KEPT_FOR_COLUMNS = 8  # the last eighth of the slots is reserved for columns, not categories
_MOST_SQUARE = 16.0 * MOST * MOST
_MOST_COUNT = 1 << 52


class ColumnInfo(NamedTuple):
    """How a column is encoded.

    Its kind is "number", "date", "category", "tags" or "text", several joined by "+", or "unknown" if it is empty. The
    slots and categories are its own, in order of appearance. Counted are records with a value (`seen`), without one
    since its first appearance (`missing`), and with a value, or a part of it, in shared slots (`shared`).
    """

    name: str
    kind: str
    slots: tuple[int, ...]
    categories: tuple[str, ...]
    seen: int
    missing: int
    shared: int


class Column(NamedTuple):
    """A column of the records."""

    position: int
    name: str
    kinds: dict[str, int]  # its kinds of values, each with its first slot; `SHARED` if too few were left
    words: dict[str, int]  # its categories, each with its slot

    def slots_of(self, kind: str) -> list[int]:
        """Return its own slots for a kind of value."""
        first = self.kinds.get(kind, SHARED)
        return [] if first == SHARED else list(range(first, first + len(ENDINGS[kind])))

    def named_slots(self) -> dict[int, str]:
        """Return its own slots with their names."""
        found = {slot: f"{self.name}={word}" for word, slot in self.words.items()}
        for kind in self.kinds:
            found |= {slot: f"{self.name}{end}" for slot, end in zip(self.slots_of(kind), ENDINGS[kind], strict=False)}
        return found

    def info(self, is_tags: bool, counts: list[int]) -> ColumnInfo:
        """Return how the column is encoded; counts are of records with a value, without one, and in shared slots."""
        words = "tags" if is_tags or "tags" in self.kinds else "category"
        held = {*self.kinds, words} if self.words else set(self.kinds)
        kind = "+".join(kind for kind in ("number", "date", words, "text") if kind in held)
        kind = kind or ("category" if counts[0] else "unknown")
        return ColumnInfo(self.name, kind, tuple(sorted(self.named_slots())), tuple(self.words), *counts)


class EncoderState:
    """Columns and their slots: `own` that are assigned, then `to_share` that are shared by hashing."""

    def __init__(self, own: int, to_share: int, max_categories: int) -> None:
        self.own, self.to_share, self.max_categories = own, to_share, max_categories
        self.width = own + to_share
        self.n_records = self.n_others = self.n_assigned = 0
        self.entries: list[Any] = []
        self.columns: list[Column] = []
        self.by_name: dict[str, Column] = {}
        self.statistics = np.zeros((3, self.width))
        self.tally: Counter[str] = Counter()
        """Number of records by what the columns held; added to the counts of columns when these are read."""
        self._counts = np.zeros((0, 3), np.int64)
        self._slots_by_met: dict[str, Integers] = {}
        """What the columns held in records, with the slots of the numbers: mostly as in a record before."""

    def grown_by(self, entries: list[Any]) -> "EncoderState":
        """Return a copy with more entries; the statistics are shared."""
        grown = copy(self)
        grown.entries, grown._slots_by_met = list(self.entries), {}
        grown.columns = [each._replace(kinds=dict(each.kinds), words=dict(each.words)) for each in self.columns]
        grown.by_name = {column.name: column for column in grown.columns}
        for entry in entries:
            grown.add(entry)
        return grown

    def add(self, entry: Any) -> Column:
        """Assign slots to an entry and return its column, or raise a ValueError if it has some or cannot have any."""
        if type(entry) is not list or len(entry) != (3 if entry[:1] == ["word"] else 2) or type(entry[0]) is not str:
            raise ValueError(f"{entry!r:.80} is no addition")
        kind, where = entry[:2]
        if kind == "column":
            if type(where) is not str or where in self.by_name or not self.has_room_for_column():
                raise ValueError(f"column {where!r:.80} cannot be added: it is there, or all slots are assigned")
            column = self.by_name[where] = Column(len(self.columns), where, {}, {})
            self.columns.append(column)
        else:
            column = self.columns[check_integer("a column's position", where, low=0, high=len(self.columns) - 1)]
            if kind in ENDINGS and kind not in column.kinds:
                column.kinds[kind] = self._assign(len(ENDINGS[kind]))
            elif kind == "word" and type(entry[2]) is str and self._has_room_for_word(column, entry[2]):
                column.words[entry[2]] = self._assign(1)
            else:
                raise ValueError(f"{entry!r:.80} cannot be added to column {shown(column.name)}")
        self.entries.append(entry)
        return column

    def _assign(self, n_slots: int) -> int:
        """Assign slots and return the first, or SHARED if there are not enough."""
        if self.own - self.n_assigned < n_slots:
            return SHARED
        self.n_assigned += n_slots
        return self.n_assigned - n_slots

    def _has_room_for_word(self, column: Column, word: str) -> bool:
        return word not in column.words and len(column.words) < self.max_categories and self.n_assigned < self.own

    def has_room_for_column(self) -> bool:
        """Return whether a column can be added."""
        return self.n_assigned < self.own and len(self.columns) < self.own

    def may_have_slot(self, column: Column, word: str) -> bool:
        """Return whether a new word of a record gets a slot: it is not long, and leaves some for later columns."""
        is_room = self.own - self.n_assigned > self.own // _KEPT_FOR_COLUMNS and column.position >= 0
        return is_room and len(word) <= LONGEST_NAME and len(column.words) < self.max_categories

    def number_slots(self, met: str) -> Integers:
        """Return the slots of the numbers and dates that a record has, column by column."""
        if met in self._slots_by_met:
            return self._slots_by_met[met]
        found: list[int] = []
        for column, letter in zip(self.columns, met, strict=True):
            if letter in (NUMBER, DATE):
                here = column.slots_of("number" if letter == NUMBER else "date")
                if not here:
                    raise ValueError(f"column {shown(column.name)} cannot have met a number: it has no slot for one")
                found += here
        if len(self._slots_by_met) > MOST_PATTERNS:
            self._slots_by_met.clear()
        self._slots_by_met[met] = slots = np.array(found, np.int64)
        return slots

    def checked(self, row: Any, additions: Any, is_scaled: bool) -> tuple["EncoderState", Integers, Floats]:
        """Return the state with what a record adds, the slots of its numbers, and these; or raise a ValueError."""
        at = additions.get("at") if type(additions) is dict else additions
        if type(additions) is not dict or at != self.n_records:
            raise ValueError(f"this is record {at!r:.80}, and record {self.n_records} is next; look again")
        state, size, new, met = self, additions.get("size"), additions.get("new", []), additions.get("met")
        if size is not None and not self.width:
            state = EncoderState(*_check_size(size), self.max_categories)
        if type(new) is not list or (size is not None and self.width):
            raise ValueError(f"additions have no list of what is new, or a second width; got {additions!r:.80}")
        state = state.grown_by(new) if new else state
        if type(met) is not str or len(met) != len(state.columns) or met.strip(_LETTERS):
            raise ValueError(f"additions must have what was met in {len(state.columns)} columns; got {met!r:.80}")
        check_integer("the number of others", additions.get("others", 0), low=0, high=MOST_VALUES)
        slots = state.number_slots(met)
        numbers = dense_row(row, state.width)[slots]
        if is_scaled:
            raw = additions.get("numbers")
            if type(raw) is not list or len(raw) != len(slots) or not all(type(value) is float for value in raw):
                raise ValueError(f"additions must have {len(slots)} numbers before they were scaled; got {raw!r:.80}")
            numbers = np.array(raw, np.float64)
        if not (abs(numbers) <= MOST).all():
            raise ValueError(f"a record must have finite numbers, of at most {MOST:g} in size; got {numbers}")
        return state, slots, numbers

    def counts(self) -> Integers:
        """Return how many records had a value in each column, had none, and had one in shared slots."""
        counts = np.zeros((len(self.columns), 3), np.int64)
        counts[: len(self._counts)] = self._counts
        for met, times in self.tally.items():
            letters = np.frombuffer(met.encode(), np.uint8)
            is_missing, is_shared = letters == ord(MISSING), letters == ord(CROWDED)
            counts[: len(met)] += times * np.column_stack([~is_missing, is_missing, is_shared])
        self._counts, self.tally = counts, Counter()
        return counts

    def names(self) -> list[str]:
        """Return a unique name for each slot."""
        known = {self.own + i: f"(shared {i})" for i in range(self.to_share)}
        for column in self.columns:
            known |= column.named_slots()
        found: dict[str, None] = {}
        for slot in range(self.width):
            name = known.get(slot, f"(free {slot})")
            while name in found:  # a column "a=b" beside the category "b" of a column "a"
                name += f" (slot {slot})"
            found[name] = None
        return list(found)

    def _slots_of_numbers(self) -> list[int]:
        return [slot for column in self.columns for kind in ("number", "date") for slot in column.slots_of(kind)]

    def to_json(self) -> dict[str, Any]:
        """Return the state as plain JSON values."""
        return {
            "size": [self.own, self.to_share],
            "entries": list(self.entries),
            "records": self.n_records,
            "others": self.n_others,
            "counts": self.counts().tolist(),
            "statistics": self.statistics[:, self._slots_of_numbers()].tolist(),
        }

    @classmethod
    def from_json(cls, described: dict[str, Any], max_categories: int) -> "EncoderState":
        """Invert `to_json`, or raise a ValueError for what it could not have returned."""
        state = cls(*_check_size(described["size"]), max_categories)
        if type(described["entries"]) is not list:
            raise ValueError(f"the state must have a list of entries; got {described['entries']!r:.80}")
        for entry in described["entries"]:
            state.add(entry)
        state.n_records = check_integer("the state's records", described["records"], low=0, high=_MOST_COUNT)
        state.n_others = check_integer("the state's others", described["others"], low=0, high=_MOST_COUNT)
        state._counts = _check_array("counts", described["counts"], (len(state.columns), 3)).astype(np.int64)
        slots = state._slots_of_numbers()
        found = _check_array("statistics", described["statistics"], (3, len(slots)))
        is_possible = (abs(found[MEAN]) <= 2.0 * MOST) & (found[SQUARES] <= found[COUNT] * _MOST_SQUARE)
        if not (is_possible & ((found[COUNT] > 0.0) | (found[MEAN] == 0.0))).all():
            raise ValueError(f"no numbers have the statistics {described['statistics']!r:.80}")
        state.statistics[:, slots] = found
        return state


def _check_size(size: Any) -> tuple[int, int]:
    """Return the numbers of individual and of shared slots, or raise a ValueError."""
    if type(size) is not list or len(size) != 2:
        raise ValueError(f"the size must be two numbers of slots; got {size!r:.80}")
    own, to_share = (check_integer("a number of slots", n, low=0, high=WIDEST) for n in size)
    return own, to_share


def _check_array(name: str, values: Any, shape: tuple[int, int]) -> Floats:
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.full(1, np.nan)
    if found.size != shape[0] * shape[1] or not np.isfinite(found).all():
        raise ValueError(f"the state's {name} must be {shape[0]} × {shape[1]} numbers; got {values!r:.80}")
    found = found.reshape(shape)
    counts = found[COUNT] if name == "statistics" else found
    if not ((counts >= 0) & (counts <= _MOST_COUNT) & (counts == np.floor(counts))).all():
        raise ValueError(f"the state's {name} must have whole numbers from 0 as counts; got {values!r:.80}")
    return found


def first_size(
    values: dict[str, Any], n_listed: int, *, width: int | None, max_categories: int, text_width: int, has_text: bool
) -> tuple[int, int]:
    """Return the numbers of individual and of shared slots for a first record."""
    if not values and width is None:
        raise ValueError("the first record decides how wide rows are, and has no value: give one, or give width")
    needed = 0
    for name, value in values.items():
        read = guess_kind(name, value, False) if type(value) is str else value
        if isinstance(read, tuple):
            needed += max(len(read), min(_WORDS, max_categories))
        elif type(read) is Text:
            has_text = True
        elif read is None or read != read:
            needed += _UNKNOWN
        else:
            needed += len(ENDINGS["date"]) if isinstance(read, date) else 1
    to_share = text_width if has_text else _TO_SHARE
    if width is not None:
        to_share = max(1, min(to_share, width // (2 if has_text else 4)))
        return width - to_share, to_share
    return needed + (needed - n_listed) // 4 + (len(values) - n_listed) // 2 + _SPARE, to_share


def dense_row(row: Any, width: int) -> Floats:
    """Return a row as a dense vector, or raise a ValueError."""
    try:
        if isinstance(row, SparseRows):
            values = np.zeros(row.n_columns if row.n_columns == width else 0)
            values[row.columns] = row.values
        else:
            values = np.asarray(row, np.float64)
            values = values[0] if values.ndim == 2 and len(values) == 1 else values
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"the row must be one of {width} numbers; got {row!r:.80}") from error
    if values.shape != (width,) or not width:
        raise ValueError(f"the row must be one of {width} numbers; got shape {np.shape(row)}")
    return values


def check_kinds(kinds: Any) -> dict[str, str]:
    """Return the kinds of columns that the user gave, or raise a ValueError."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping) or len(kinds) > WIDEST:
        raise ValueError(f"kinds must be a mapping of columns to kinds, as {{'zip': 'category'}}; got {kinds!r:.80}")
    for name, kind in kinds.items():
        if type(name) is not str:
            raise ValueError(f"names of columns are texts; got {name!r:.80} in kinds")
        check_choice(f"kinds[{name!r}]", kind, KINDS)
    return dict(kinds)


# Tables.


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


@np.errstate(over="ignore")
def fit_table(columns: Sequence[TableColumn]) -> tuple[EncoderState, Floats]:
    """Return a state with exactly the slots that a table needs, and the rows of the table.

    A column has a slot for its numbers or one for each of its words, then one that marks missing values if it has any.
    Missing numbers are the mean of all others.
    """
    n_rows, most = len(columns[0].values), max(len(column.words or ()) for column in columns)
    missing = [column.is_missing() for column in columns]
    n_missing = [int(np.count_nonzero(each)) for each in missing]
    width = sum(1 if column.words is None else len(column.words) for column in columns) + sum(map(bool, n_missing))
    check_memory(8 * n_rows * width)
    X, state = np.zeros((n_rows, width)), EncoderState(width, 0, most)
    state.n_records, state._counts = n_rows, np.array([[n_rows - n, n, 0] for n in n_missing])
    for j, column in enumerate(columns):
        state.add(["column", column.name])
        first = state.n_assigned
        if column.words is None:
            state.add(["number", j])
            given = column.values[~missing[j]] if n_missing[j] else column.values
            mean = float(given.mean())
            if not math.isfinite(mean):  # the mean of huge numbers may overflow; the median cannot
                mean = float(np.median(given / 2.0)) * 2.0
            X[:, first] = np.where(missing[j], mean, column.values) if n_missing[j] else given
            off = given - mean
            squares = min(float(off @ off), len(given) * _MOST_SQUARE)
            state.statistics[:, first] = len(given), min(max(mean, -MOST), MOST), squares
        else:
            for word in column.words:
                state.add(["word", j, word])
            X[np.arange(n_rows), first + column.values] = 1.0
        if n_missing[j]:
            state.add(["missing", j])
            X[:, state.n_assigned - 1] = missing[j]
    return state, X
