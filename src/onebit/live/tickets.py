"""The words of a decider: what it hands out, and what it says of itself."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np


class UnknownTicketError(ValueError):
    """There is no ticket with that id."""


class TicketConflictError(ValueError):
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


def moment(seconds: float) -> datetime:
    """Return a time of the log."""
    return datetime.fromtimestamp(seconds, UTC)


def name_of(ticket: "str | Ticket") -> str:
    """Return the id of a ticket, or raise ValueError if it is none."""
    name = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(name, str):
        raise ValueError(f"ticket must be a ticket or its id; got {ticket!r:.80}")
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
        raise ValueError(f"correct must be True or False; got {correct!r:.80}")
    return bool(correct)
