"""Types that a decider returns, and checks of tickets, feedback and times."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from onebit.decider.advice import AdvisedError
from onebit.inputs import brief


class UnknownTicketError(ValueError):
    """There is no ticket with that id."""


class TicketConflictError(AdvisedError):
    """The call does not fit the ticket: it has other feedback, none, or is closed."""


class Ticket(NamedTuple):
    """A guess, for which feedback can be given."""

    id: str
    """Unpredictable id of the guess, for `tell`."""
    label: Any
    propensity: float
    """Probability with which this label was drawn; not the probability that it is right."""
    time: datetime


class Shadow(NamedTuple):
    """What a decider would have guessed."""

    label: Any
    agrees: bool
    """Whether the application chose the same label."""


class Status(NamedTuple):
    """Result of `Decider.status`."""

    path: str
    learner: str
    classes: list[Any]
    guesses: int
    right: int
    wrong: int
    open: int
    silent: int
    watched: int
    columns: int
    events: int
    oldest_open: datetime | None
    differences: int
    """Number of guesses in the log that the replay made differently."""
    since: datetime


LATEST = 32_503_680_000.0
"""The year 3000: later times are not in seconds."""


def check_time(seconds: Any) -> float:
    """Return the time of a clock, or raise ValueError unless it can be in seconds since 1970.

    >>> check_time(1_794_960_000_000)
    Traceback (most recent call last):
    ...
    ValueError: clock must return seconds since 1970, before the year 3000; got 1794960000000. Are they milliseconds?
    """
    # Fast path, taken for every event; also false for negative numbers and NaN.
    if type(seconds) is float and 0.0 <= seconds <= LATEST:
        return seconds
    try:
        found = float(seconds)
    except (TypeError, ValueError, OverflowError):
        found = -1.0
    if not 0.0 <= found <= LATEST:
        raise ValueError(
            f"clock must return seconds since 1970, before the year 3000; got {brief(seconds)}. Are they milliseconds?"
        )
    return found


def moment(seconds: float) -> datetime:
    """Convert a time of the log; impossible times, which old logs may hold, become the latest datetime."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def name_of(ticket: "str | Ticket") -> str:
    """Return the id of a ticket, or raise ValueError for other objects."""
    name = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(name, str):
        raise ValueError(f"ticket must be a ticket or its id; got {brief(ticket)}")
    return name


def number_of(name: str) -> int:
    """Return the number of a ticket's guess event, the first part of its id, or raise ValueError."""
    number = name.partition("-")[0]
    if not (number.isascii() and number.isdigit() and len(number) < 20):
        raise ValueError(f"ticket {name!r:.80} is no ticket's id")
    return int(number)


def check_answer(correct: Any) -> bool:
    """Return feedback as a bool, or raise ValueError."""
    if not isinstance(correct, (bool, np.bool_)):
        raise ValueError(f"correct must be True or False; got {brief(correct)}")
    return bool(correct)
