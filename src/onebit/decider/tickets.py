"""The words of a decider: what it hands out, and what it says of itself."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from onebit.decider.advice import AdvisedError
from onebit.inputs import brief


class UnknownTicketError(ValueError):
    """There is no ticket with that id."""


class TicketConflictError(AdvisedError):
    """The ticket is there, and its answer is not what the call needs: told otherwise, not told, or closed."""


class Ticket(NamedTuple):
    """A guess that waits for its answer."""

    id: str
    """For `tell`: it names the guess, and nobody can guess it."""
    label: Any
    propensity: float
    """The chance with which this label was drawn; it does not say how likely the label is to be right."""
    time: datetime


class Shadow(NamedTuple):
    """What a decider would have done."""

    label: Any
    agrees: bool
    """Whether the application did the same."""


class Status(NamedTuple):
    """How a decider fares; `Decider.status` returns it."""

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
    """How many guesses of the log this onebit would have made otherwise."""
    since: datetime


LATEST = 32_503_680_000.0
"""The year 3000: a clock that says more does not count seconds."""


def check_time(seconds: Any) -> float:
    """Return what a clock says, or raise ValueError unless that can be seconds since 1970.

    >>> check_time(1_794_960_000_000)
    Traceback (most recent call last):
    ...
    ValueError: clock must return seconds since 1970, before the year 3000; got 1794960000000. Are they milliseconds?
    """
    # Not below 0 or NaN either; a plain comparison, since every event comes here.
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
    """Return a time of the log; the last that there is for one that is beyond all, which a log of before may hold."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def name_of(ticket: "str | Ticket") -> str:
    """Return the id of a ticket, or raise ValueError if it is none."""
    name = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(name, str):
        raise ValueError(f"ticket must be a ticket or its id; got {brief(ticket)}")
    return name


def number_of(name: str) -> int:
    """Return the number of a ticket's guess, with which its id begins, or raise ValueError."""
    number = name.partition("-")[0]
    if not (number.isascii() and number.isdigit() and len(number) < 20):
        raise ValueError(f"ticket {name!r:.80} is no ticket's id")
    return int(number)


def check_answer(correct: Any) -> bool:
    """Return whether a guess was right, or raise ValueError if that is not said."""
    if not isinstance(correct, (bool, np.bool_)):
        raise ValueError(f"correct must be True or False; got {brief(correct)}")
    return bool(correct)
