"""What an encoder has learned: columns with their slots in a row, and statistics of the numbers in these.

Slots are assigned in order of appearance, and permanently. What was assigned is a list of *entries*, and the state is
rebuilt by adding them again: ``["column", name]`` is a new column, ``["word", i, word]`` a category of column i, and
``["number", i]``, ``["date", i]``, ``["missing", i]``, ``["text", i]``, ``["tags", i]`` a kind of value that it holds.
"""

import math
from collections import Counter
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import murmurhash3_32

from onebit.encoding import fields
from onebit.engine.jit import jit_no_refcount
from onebit.engine.scaling import MOST
from onebit.inputs import Floats, Integers, SparseRows, check_integer

WIDEST = 1 << 20  # maximum number of slots
NUMBER, _DATE, _OTHER, _CROWDED, _MISSING = _LETTERS = "ndos-"
"""What a column held in a record: a number, a date, another value, a value in shared slots, nothing."""
_COUNT, _MEAN, _SQUARES = range(3)
"""Statistics of a slot: how many numbers it has had, their mean, and the sum of squared deviations from it."""
_ENDINGS: dict[str, tuple[str, ...]] = {
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
_NONE = range(0)  # stands for the slots of a kind of value that has none of its own
_MOST_PATTERNS = 100  # maximum number of distinct patterns of what columns held that are remembered
_LONGEST_NAME = 200  # maximum characters of a column's name in a record, and of a category with its own slot
_KEPT_FOR_COLUMNS = 8  # the last eighth of the slots is reserved for columns, not categories
_MOST_READ = 10_000  # characters of a text that are used
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


class _Column(NamedTuple):
    position: int  # −1 if all its values go to shared slots
    name: str
    kinds: dict[str, range]  # its kinds of values, each with its slots; `_NONE` if too few were left
    words: dict[str, int]  # its categories, each with its slot

    def named_slots(self) -> dict[int, str]:
        """Return its own slots with their names."""
        found = {slot: f"{self.name}={word}" for word, slot in self.words.items()}
        for kind, slots in self.kinds.items():
            found |= {slot: f"{self.name}{end}" for slot, end in zip(slots, _ENDINGS[kind], strict=False)}
        return found

    def info(self, is_tags: bool, counts: list[int]) -> ColumnInfo:
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
        self.columns: list[_Column] = []
        self.by_name: dict[str, _Column] = {}
        self.statistics = np.zeros((3, self.width))
        self.counted = np.zeros((0, 3), np.int64)  # what `counts` returns, but for the records in the tally
        self._tally: Counter[str] = Counter()  # by what the columns held
        self._slots_by_met: dict[str, Integers] = {}

    @property
    def means(self) -> Floats:
        """The mean of the numbers that each slot has had."""
        means: Floats = self.statistics[_MEAN]
        return means

    def grown_by(self, entries: list[Any]) -> "EncoderState":
        """Return a copy with more entries; statistics and counts are shared."""
        grown = copy(self)
        grown.entries, grown._slots_by_met = list(self.entries), {}
        grown.columns = [each._replace(kinds=dict(each.kinds), words=dict(each.words)) for each in self.columns]
        grown.by_name = {column.name: column for column in grown.columns}
        for entry in entries:
            grown.add(entry)
        return grown

    def add(self, entry: Any) -> _Column:
        """Assign slots to an entry and return its column, or raise a ValueError if it has some or cannot have any."""
        if type(entry) is not list or len(entry) != (3 if entry[:1] == ["word"] else 2) or type(entry[0]) is not str:
            raise ValueError(f"{entry!r:.80} is no addition")
        kind, where = entry[:2]
        if kind == "column":
            if type(where) is not str or where in self.by_name or not self.has_room_for_column():
                raise ValueError(f"column {where!r:.80} cannot be added: it is there, or all slots are assigned")
            column = self.by_name[where] = _Column(len(self.columns), where, {}, {})
            self.columns.append(column)
        else:
            column = self.columns[check_integer("a column's position", where, low=0, high=len(self.columns) - 1)]
            if kind in _ENDINGS and kind not in column.kinds:
                n_slots = len(_ENDINGS[kind])
                column.kinds[kind] = self._assign(n_slots) if self.own - self.n_assigned >= n_slots else _NONE
            elif kind == "word" and type(entry[2]) is str and self._has_room_for_word(column, entry[2]):
                column.words[entry[2]] = self._assign(1).start
            else:
                raise ValueError(f"{entry!r:.80} cannot be added to column {fields.shown(column.name)}")
        self.entries.append(entry)
        return column

    def _assign(self, n_slots: int) -> range:
        self.n_assigned += n_slots
        return range(self.n_assigned - n_slots, self.n_assigned)

    def _has_room_for_word(self, column: _Column, word: str) -> bool:
        return word not in column.words and len(column.words) < self.max_categories and self.n_assigned < self.own

    def has_room_for_column(self) -> bool:
        """Return whether a column can be added."""
        return self.n_assigned < self.own and len(self.columns) < self.own

    def may_have_slot(self, column: _Column, word: str) -> bool:
        """Return whether a new word of a record gets a slot: it is not long, and leaves some for later columns."""
        is_room = self.own - self.n_assigned > self.own // _KEPT_FOR_COLUMNS and column.position >= 0
        return is_room and len(word) <= _LONGEST_NAME and len(column.words) < self.max_categories

    def _number_slots(self, met: str) -> Integers:
        """Return the slots of the numbers and dates that a record has, column by column."""
        if met not in self._slots_by_met:
            slots: list[int] = []
            for column, letter in zip(self.columns, met, strict=True):
                if letter in (NUMBER, _DATE):
                    here = column.kinds.get("number" if letter == NUMBER else "date", _NONE)
                    if not here:
                        shown = fields.shown(column.name)
                        raise ValueError(f"column {shown} cannot have met a number: it has no slot for one")
                    slots += here
            if len(self._slots_by_met) > _MOST_PATTERNS:
                self._slots_by_met.clear()
            self._slots_by_met[met] = np.array(slots, np.int64)
        return self._slots_by_met[met]

    def numbers_in(self, row: Floats, met: str, is_scaled: bool) -> Floats:
        """Return the numbers and dates of a row, which are then standardised in it if they are to be scaled."""
        slots = self._number_slots(met)
        numbers = row[slots]
        if is_scaled:
            _standardize(self.statistics, slots, row)
        return numbers

    def checked(self, row: Any, additions: Any, is_scaled: bool) -> tuple["EncoderState", Floats]:
        """Return the state with what a record adds, and the record's numbers; or raise a ValueError."""
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
        check_integer("the number of others", additions.get("others", 0), low=0, high=fields.MOST_VALUES)
        slots = state._number_slots(met)
        numbers = dense_row(row, state.width)[slots]
        if is_scaled:
            raw = additions.get("numbers")
            if type(raw) is not list or len(raw) != len(slots) or not all(type(value) is float for value in raw):
                raise ValueError(f"additions must have {len(slots)} numbers before they were scaled; got {raw!r:.80}")
            numbers = np.array(raw, np.float64)
        if not (abs(numbers) <= MOST).all():
            raise ValueError(f"a record must have finite numbers, of at most {MOST:g} in size; got {numbers}")
        return state, numbers

    def count(self, additions: dict[str, Any], numbers: Floats) -> None:
        """Count a record that was checked; this cannot fail."""
        met = additions["met"]
        _count_numbers(self.statistics, self._number_slots(met), numbers)
        self.n_others += additions.get("others", 0)
        self.n_records += 1
        self._tally[met] += 1
        if len(self._tally) > _MOST_PATTERNS:
            self.counts()

    def counts(self) -> Integers:
        """Return how many records had a value in each column, had none, and had one in shared slots."""
        counts = np.zeros((len(self.columns), 3), np.int64)
        counts[: len(self.counted)] = self.counted
        for met, times in self._tally.items():
            letters = np.frombuffer(met.encode(), np.uint8)
            is_missing, is_shared = letters == ord(_MISSING), letters == ord(_CROWDED)
            counts[: len(met)] += times * np.column_stack([~is_missing, is_missing, is_shared])
        self.counted, self._tally = counts, Counter()
        return counts

    def count_column(self, numbers: Floats, mean: float) -> None:
        """Set the statistics of the last slot, a column's: those of numbers of which this is the mean."""
        off = numbers - mean
        squares = min(float(off @ off), len(numbers) * _MOST_SQUARE)
        self.statistics[:, self.n_assigned - 1] = len(numbers), min(max(mean, -MOST), MOST), squares

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
        kinds = ("number", "date")
        return [slot for column in self.columns for kind in kinds for slot in column.kinds.get(kind, _NONE)]

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
        state.counted = _check_array("counts", described["counts"], (len(state.columns), 3)).astype(np.int64)
        slots = state._slots_of_numbers()
        found = _check_array("statistics", described["statistics"], (3, len(slots)))
        is_possible = (abs(found[_MEAN]) <= 2.0 * MOST) & (found[_SQUARES] <= found[_COUNT] * _MOST_SQUARE)
        if not (is_possible & ((found[_COUNT] > 0.0) | (found[_MEAN] == 0.0))).all():
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
    counts = found[_COUNT] if name == "statistics" else found
    if not ((counts >= 0) & (counts <= _MOST_COUNT) & (counts == np.floor(counts))).all():
        raise ValueError(f"the state's {name} must have whole numbers from 0 as counts; got {values!r:.80}")
    return found


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


class RowWriter:
    """Writes the values of one record into a row; what is new gets slots in a copy of the state."""

    def __init__(self, state: EncoderState, row: Floats, values: dict[str, Any], is_scaled: bool) -> None:
        self.state, self.row = state, row
        self.new: list[Any] = []  # entries that were added
        self.n_others = 0  # values in columns without slots of their own
        self.met = self._write_all(values)  # what each column held, one letter a column
        self.numbers = self.state.numbers_in(self.row, self.met, is_scaled)

    def _write_all(self, values: dict[str, Any]) -> str:
        met = [_MISSING] * len(self.state.columns)
        for name, value in values.items():
            column = self.state.by_name.get(name)
            if column is None:
                column = self._new_column(name)
                met += _MISSING * (len(self.state.columns) - len(met))
            letter = self._write(column, value)
            if column.position >= 0:
                met[column.position] = letter
            elif letter == _MISSING:
                self._write_missing(column)
            else:
                self.n_others += 1
        if _MISSING in met:
            for i, letter in enumerate(met):
                if letter == _MISSING:
                    self._write_missing(self.state.columns[i])
        return "".join(met)

    def _write_missing(self, column: _Column) -> None:
        slots = self._slots(column, "missing")
        if slots:
            self.row[slots.start] = 1.0
        else:
            self._share(f"{column.name} is missing", 1.0)

    def _write(self, column: _Column, value: Any) -> str:
        """Write a value; return its letter."""
        if type(value) is str:
            slot = column.words.get(value)
            if slot is not None:
                self.row[slot] = 1.0
                return _OTHER
            value = fields.guess_kind(column.name, value, "text" in column.kinds)
        kind = type(value)
        if kind is float or kind is int or kind is bool:
            if -MOST <= value <= MOST:
                slots = self._slots(column, "number")
                if not slots:
                    return self._share_numbers(column, "number", (value,))
                self.row[slots.start] = value
                return NUMBER
            if value != value:
                return _MISSING
            raise fields.too_large(column.name, value)
        if value is None:
            return _MISSING
        if kind is tuple:
            return self._write_words(column, value)
        if kind is fields.Text:
            if column.position >= 0:
                self._slots(column, "text")
            shared, values = _hashed_text(column.name, value, self.state.to_share)
            self.row[self.state.own + shared] += values
            return _OTHER
        numbers, slots = fields.date_numbers(value), self._slots(column, "date")
        if not slots:
            return self._share_numbers(column, "date", numbers)
        self.row[slots.start : slots.stop] = numbers
        return _DATE

    def _share_numbers(self, column: _Column, kind: str, numbers: tuple[float, ...]) -> str:
        for ending, number in zip(_ENDINGS[kind], numbers, strict=True):
            # The logarithm: categories have the value 1, which large numbers would dominate.
            self._share(f"{column.name}{ending}", math.copysign(math.log1p(abs(number)), number))
        return _CROWDED

    def _write_words(self, column: _Column, words: tuple[str, ...]) -> str:
        met = _OTHER
        if len(words) != 1:
            self._slots(column, "tags")
        for word in words:
            slot = column.words.get(word)
            if slot is None and self.state.may_have_slot(column, word):
                column = self._add("word", column.position, word)
                slot = column.words[word]
            if slot is None:
                self._share(f"{column.name}={word}", 1.0)
                met = _CROWDED
            else:
                self.row[slot] = 1.0
        return met

    def _slots(self, column: _Column, kind: str) -> range:
        """Return the slots of a kind of value in a column, assigned now if it has none."""
        slots = column.kinds.get(kind)
        return self._add(kind, column.position).kinds[kind] if slots is None else slots

    def _new_column(self, name: str) -> _Column:
        """Add a column; if no slots are left, return one whose values all go to shared slots."""
        if len(name) > _LONGEST_NAME:
            raise ValueError(
                f"names of columns are texts of at most {_LONGEST_NAME} letters; got {name!r:.80}. Rename it"
            )
        if self.state.has_room_for_column():
            return self._add("column", name)
        return _Column(-1, name, dict.fromkeys(("number", "date", "missing", "tags"), _NONE), {})

    def _add(self, *entry: Any) -> _Column:
        """Add a column, a kind of value or a word, and return the column."""
        if not self.new:
            self.state = self.state.grown_by([])
        self.new.append([*entry])
        return self.state.add([*entry])

    def _share(self, token: str, value: float) -> None:
        if self.state.to_share:
            slot, sign = _hashed_slot(token, self.state.to_share)
            self.row[self.state.own + slot] += sign * value


def _hashed_slot(token: str, n_slots: int) -> tuple[int, int]:
    """Return the slot and the sign of a token, as scikit-learn's FeatureHasher does: the same on every machine."""
    hashed = murmurhash3_32(token.encode("utf-8", "surrogatepass"))
    return abs(hashed) % n_slots, 1 if hashed >= 0 else -1


def _hashed_text(column: str, text: str, n_slots: int) -> tuple[Integers, Floats]:
    """Return the slots of a column's text and their values, a vector of norm 1."""
    counts: dict[int, int] = {}
    for token in _text_tokens(column, text) if n_slots else ():
        slot, sign = _hashed_slot(token, n_slots)
        counts[slot] = counts.get(slot, 0) + sign
    slots, values = np.array([*counts], np.int64), np.array([*counts.values()], np.float64)
    return slots, values / (np.sqrt(values @ values) or 1.0)  # a sum of integers: exact in any order


def _text_tokens(column: str, text: str) -> list[str]:
    """Return the tokens of a column's text: its words, and their character 3- and 4-grams."""
    return [f"{column}:{token}" for analyze in _analyzers() for token in analyze(text[:_MOST_READ])]


@cache
def _analyzers() -> tuple[Callable[[str], list[str]], ...]:
    from sklearn.feature_extraction.text import HashingVectorizer  # slow import, needed only for texts

    words = HashingVectorizer(analyzer="word")
    pieces = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4))
    return words.build_analyzer(), pieces.build_analyzer()


@jit_no_refcount
def _count_numbers(statistics: Floats, slots: Integers, numbers: Floats) -> None:
    """Add numbers to the statistics of their slots (Welford's method)."""
    for i in range(slots.shape[0]):
        slot = slots[i]
        statistics[_COUNT, slot] += 1.0
        off = numbers[i] - statistics[_MEAN, slot]
        statistics[_MEAN, slot] += off / statistics[_COUNT, slot]
        statistics[_SQUARES, slot] += off * (numbers[i] - statistics[_MEAN, slot])


@jit_no_refcount
def _standardize(statistics: Floats, slots: Integers, row: Floats) -> None:
    """Standardise the numbers in some slots of a row by mean and variance so far; constant slots become 0.

    Clipped to ±√n, the maximum for any of the n numbers so far, so that outliers do not dominate.
    """
    for i in range(slots.shape[0]):
        slot = slots[i]
        n, mean, scaled = statistics[_COUNT, slot], statistics[_MEAN, slot], 0.0
        deviation = np.sqrt(statistics[_SQUARES, slot] / max(n, 1.0))
        if deviation > 1e-12 * abs(mean):  # rounding leaves a constant column a tiny variance
            scaled = min(max((row[slot] - mean) / deviation, -np.sqrt(n)), np.sqrt(n))
        row[slot] = scaled
