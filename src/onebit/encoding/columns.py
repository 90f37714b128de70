"""What an encoder keeps of each column: its places in the row, how often it was there, and its running means."""

import math
from datetime import date, datetime
from typing import Any, NamedTuple

from onebit.encoding.fields import LONGEST_NAME, shown
from onebit.inputs import check_integer, check_switch

SHARED = -1
"""The place of what has none of its own."""
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
"""The numbers that a date becomes."""


class ColumnInfo(NamedTuple):
    """What a column became."""

    name: str
    kind: str
    """All that was met in it: "number", "date", "category", "tags", "text", joined by "+"; "unknown" if nothing was."""
    places: tuple[int, ...]
    """The positions in the row that are its own."""
    categories: tuple[str, ...]
    """The words that have places of their own, in the order in which they came."""
    seen: int
    """In how many records it had a value."""
    missing: int
    """In how many it had none, since it joined."""
    shared: int
    """In how many its value, or a part of it, went to places that it shares with others, for want of room."""


class Column:
    """One column of the records, with its places; a place that is None was not needed yet."""

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
        """The first of the places of a date, which follow each other."""
        self.absent: int | None = None
        """Where it says that there is no value."""
        self.words: dict[str, int] = {}
        self.has_text = self.has_lists = False

    def copy(self) -> "Column":
        """Return another one that can grow by itself."""
        copy = Column(self.index, self.name)
        for slot in Column.__slots__:
            setattr(copy, slot, getattr(self, slot))
        copy.words = dict(self.words)
        return copy

    def measured(self) -> list[int]:
        """Return its places for numbers."""
        number = [] if self.number is None else [self.number]
        return [place for place in number + date_places(self.date) if place != SHARED]

    def places(self) -> dict[int, str]:
        """Return the places that are its own, with what each of them means."""
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
        """Return what it became, for people."""
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
        """Return all that is kept of it, as JSON can write it."""
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
        """Return the column that a state describes, or raise ValueError; places are only whole numbers yet."""
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
    """Return a column of which nothing is kept: all of it goes to places that it shares."""
    column = Column(SHARED, check_name(name))
    column.number = column.date = column.absent = SHARED
    column.has_lists = True
    return column


def date_places(first: int | None) -> list[int]:
    """Return the places of a date, given the first of them."""
    return [] if first is None or first == SHARED else list(range(first, first + len(DATE_PARTS)))


def check_name(name: Any) -> str:
    """Return a column's name, or raise if it is none, or too long to be kept."""
    if type(name) is not str or len(name) > LONGEST_NAME:
        raise ValueError(f"names of columns are texts of at most {LONGEST_NAME} letters; got {name!r:.80}. Rename it")
    return name


def date_numbers(moment: date) -> tuple[float, ...]:
    """Return the numbers of a date: days since 1970, and where it stands on the circles of a day, a week and a year.

    The days of a moment with a time zone are those of UTC, the circles those of its own clock. A date without a time
    says nothing about the time of day.
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
