"""What an encoder stores of each column: its slots in the row, and counts."""

import math
from datetime import date, datetime
from typing import Any, NamedTuple

from onebit.encoding.fields import LONGEST_NAME, shown
from onebit.inputs import check_integer, check_switch

SHARED = -1
"""Marks a value without a slot of its own."""
_EPOCH = datetime(1970, 1, 1)
_SECONDS = 86_400  # of a day
_DAYS = 365.25  # of a year
DATE_PARTS = (
    "days",
    "time of day (sin)",
    "time of day (cos)",
    "time of week (sin)",
    "time of week (cos)",
    "time of year (sin)",
    "time of year (cos)",
)
"""The numbers that encode a date."""


class ColumnInfo(NamedTuple):
    """How a column is encoded."""

    name: str
    kind: str
    """Kinds of its values: "number", "date", "category", "tags", "text", joined by "+"; "unknown" if empty."""
    places: tuple[int, ...]
    """Its own slots in the row."""
    categories: tuple[str, ...]
    """The categories with slots of their own, in order of appearance."""
    seen: int
    """Number of records with a value."""
    missing: int
    """Number of records without a value, since its first appearance."""
    shared: int
    """Number of records whose value, or a part of it, went to shared slots."""


class Column:
    """One column of the records, with its slots; None for slots not needed yet."""

    __slots__ = (
        "absent",
        "date",
        "has_lists",
        "has_text",
        "index",
        "missing",
        "name",
        "number",
        "seen",
        "shared",
        "words",
    )

    def __init__(self, index: int, name: str) -> None:
        self.index, self.name = index, name
        self.seen = self.missing = self.shared = 0
        self.number: int | None = None
        self.date: int | None = None
        """The first of the consecutive slots of a date."""
        self.absent: int | None = None
        """The slot that indicates a missing value."""
        self.words: dict[str, int] = {}
        self.has_text = self.has_lists = False

    def copy(self) -> "Column":
        """Return an independent copy."""
        copy = Column(self.index, self.name)
        for slot in Column.__slots__:
            setattr(copy, slot, getattr(self, slot))
        copy.words = dict(self.words)
        return copy

    def measured(self) -> list[int]:
        """Return its slots for numbers."""
        number = [] if self.number is None else [self.number]
        return [place for place in number + date_places(self.date) if place != SHARED]

    def places(self) -> dict[int, str]:
        """Return its own slots with their names."""
        found = {} if self.number is None else {self.number: self.name}
        found |= {
            place: f"{self.name}: {part}" for place, part in zip(date_places(self.date), DATE_PARTS, strict=False)
        }
        found |= {place: f"{self.name}={word}" for word, place in self.words.items()}
        if self.absent is not None:
            found[self.absent] = f"{self.name} is missing"
        found.pop(SHARED, None)
        return found

    def info(self, is_tags: bool) -> ColumnInfo:
        """Return how the column is encoded."""
        kinds = {
            "number": self.number is not None,
            "date": self.date is not None,
            "tags" if is_tags or self.has_lists else "category": bool(self.words) or self.has_lists,
            "text": self.has_text,
        }
        kind = "+".join(kind for kind, is_met in kinds.items() if is_met)
        if not kind:
            kind = "category" if self.seen else "unknown"
        return ColumnInfo(
            self.name, kind, tuple(sorted(self.places())), tuple(self.words), self.seen, self.missing, self.shared
        )

    def state(self) -> dict[str, Any]:
        """Return the column as plain JSON values."""
        return {
            "name": self.name,
            "counts": [self.seen, self.missing, self.shared],
            "number": self.number,
            "date": self.date,
            "absent": self.absent,
            "words": dict(self.words),
            "text": self.has_text,
            "lists": self.has_lists,
        }

    @classmethod
    def from_state(cls, index: int, state: Any) -> "Column":
        """Rebuild a column from `state`, or raise ValueError; slots are only checked to be integers."""
        if type(state) is not dict or set(state) != set(Column(0, "").state()):
            raise ValueError(f"column {index} must have a name, counts and places; got {state!r:.80}")
        column = cls(index, check_name(state["name"]))
        called = f"column {shown(column.name)}"
        counts, words = state["counts"], state["words"]
        if type(counts) is not list or len(counts) != 3:
            raise ValueError(f"{called} must have three counts; got {counts!r:.80}")
        column.seen, column.missing, column.shared = (check_integer(f"{called}'s count", n, low=0) for n in counts)
        for slot in ("number", "date", "absent"):
            if state[slot] is not None:
                setattr(column, slot, check_integer(f"{called}'s place", state[slot], low=SHARED))
        if type(words) is not dict or any(type(word) is not str or len(word) > LONGEST_NAME for word in words):
            raise ValueError(f"{called} must have words, each with a place; got {words!r:.80}")
        column.words = {word: check_integer(f"{called}'s place", place, low=0) for word, place in words.items()}
        column.has_text = check_switch(f"{called}'s text", state["text"])
        column.has_lists = check_switch(f"{called}'s lists", state["lists"])
        return column


def shared_column(name: str) -> Column:
    """Return a temporary column whose values all go to shared slots."""
    column = Column(SHARED, check_name(name))
    column.number = column.date = column.absent = SHARED
    column.has_lists = True
    return column


def date_places(first: int | None) -> list[int]:
    """Return the slots of a date, given the first."""
    return [] if first is None or first == SHARED else list(range(first, first + len(DATE_PARTS)))


def check_name(name: Any) -> str:
    """Return a column's name, or raise ValueError if it is not a string or too long."""
    if type(name) is not str or len(name) > LONGEST_NAME:
        raise ValueError(f"names of columns are texts of at most {LONGEST_NAME} letters; got {name!r:.80}. Rename it")
    return name


def date_numbers(moment: date) -> tuple[float, ...]:
    """Return the numbers of a date: days since 1970, and sine and cosine of the time of day, week and year.

    With a time zone, days are in UTC and the other numbers in local time. Without a time, those of the time of day
    are 0.
    """
    days_in_year = moment.toordinal() - date(moment.year, 1, 1).toordinal()
    weekday = moment.weekday()
    if not isinstance(moment, datetime):
        days = float(moment.toordinal() - _EPOCH.toordinal())
        return (days, 0.0, 0.0, *_circle(weekday / 7), *_circle(days_in_year / _DAYS))
    since = moment.replace(tzinfo=None) - _EPOCH - (moment.utcoffset() or _EPOCH - _EPOCH)
    days = since.days + (since.seconds + since.microseconds * 1e-6) / _SECONDS
    time = (moment.hour * 3600 + moment.minute * 60 + moment.second) / _SECONDS
    return (days, *_circle(time), *_circle((weekday + time) / 7), *_circle((days_in_year + time) / _DAYS))


def _circle(turns: float) -> tuple[float, float]:
    angle = 2.0 * math.pi * turns
    return math.sin(angle), math.cos(angle)
