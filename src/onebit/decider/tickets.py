"""What a decider records, returns and raises.

Events are immutable. The state follows from them in order, so each event holds all that a replay cannot compute: time,
random draws, and input of the application.
"""

import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from onebit.inputs import Rows

Feedback = tuple[bool | None, int | None]
"""Whether a guess was right, None if withdrawn; and the index of the right label, if given."""


class Kind(StrEnum):
    """Kinds of events."""

    OPENED = "opened"  # a process opened the decider; holds versions and platform
    GUESSED = "guessed"
    FEEDBACK = "feedback"
    CLOSED = "closed"  # without feedback; `correct` is False if silence is wrong (not counted where asked), else None
    CORRECTED = "corrected"  # feedback was reversed or withdrawn; holds the number of the event it corrects
    CHANGED = "changed"  # some settings were changed
    CLASS_ADDED = "class_added"
    SHADOW = "shadow"  # a decision of the application, with its feedback


class Event(NamedTuple):
    """One event of the log."""

    seq: int  # the event's number; consecutive, from 1
    time: float  # seconds since 1970; never decreases
    kind: str
    ticket: str | None  # the ticket id of the guess that it belongs to
    body: dict[str, Any]
    row: Rows | None = None  # the encoded record of a guess or shadow decision
    key: str | None = None  # the idempotency key of the request


class Ticket(NamedTuple):
    """A guess, for which feedback can be given; a suggestion if `ask` is True: then a person is to give the label."""

    id: str
    """Unpredictable id of the guess, for `tell`."""
    label: Any
    propensity: float
    """Probability with which this label was drawn; not the probability that it is right."""
    time: datetime
    confidence: float | None = None
    """Estimated probability that the label is right; None while there is too little feedback."""
    ask: bool = False
    """Whether the decider wants the right label from a person: see `wrong_at_most` and `ask_at_most`."""
    ranking: tuple[Any, ...] = ()
    """The allowed labels, the highest score first; at most 20."""


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
    """Of the decisions that were not asked about, as is `wrong`."""
    wrong: int
    asked: int
    """Guesses for which the label was asked for."""
    asked_answered: int
    suggestions_right: int
    """How often the suggestion was right, of those that were asked about and answered."""
    open: int
    silent: int
    watched: int
    columns: int
    events: int
    oldest_open: datetime | None
    differences: int
    """Number of guesses in the log that the replay made differently."""
    since: datetime
    last: datetime
    """Time of the latest event."""


class Moment(NamedTuple):
    """One point of the learning curve: the counts after some feedback."""

    time: float
    """Seconds since 1970."""
    guesses: int
    answered: int
    wrong: int
    asked: int = 0


# Errors of the log.


class LogError(ValueError):
    """The log cannot be used; the message gives the cause and the remedy."""


class LostEventsError(LogError):
    """Acknowledged events are missing from the log; the message gives their number and the remedy."""


class LogWriteError(OSError):
    """An event could not be written and has no effect; the message gives the remedy."""


class LogUnsureError(LogWriteError):
    """The connection to the database broke during a write, whose outcome is unknown: retry."""


class UnreachableError(LogError):
    """The database of a log cannot be reached; the next call tries again."""


class OwnedError(LogError):
    """Another process has the decider open: the message and `owner` name it; `epoch` is its number in a database."""

    def __init__(self, message: str, owner: str = "another process", epoch: int = 0) -> None:
        super().__init__(message)
        self.owner, self.epoch = owner, epoch


class Owner(NamedTuple):
    """A process that has a log open."""

    pid: int
    host: str
    since: str

    @classmethod
    def here(cls) -> "Owner":
        """Return this process, as owner from now on."""
        return cls(os.getpid(), socket.gethostname(), datetime.now(UTC).isoformat(timespec="seconds"))

    def __str__(self) -> str:
        is_here = (self.pid, self.host) == (os.getpid(), socket.gethostname())
        return f"{'this process' if is_here else f'process {self.pid}'} on {self.host} since {self.since}"


class ReplayWarning(UserWarning):
    """The replay of the log made other guesses than those recorded; the message gives their number."""


class LostJournalWarning(UserWarning):
    """The latest events may be lost, and it cannot be checked whether they are."""


# Errors of a call, some of which name the call that is the remedy.


class UnknownTicketError(ValueError):
    """There is no ticket with that id."""


class AdvisedError(ValueError):
    """An error whose remedy is another call, given by the name of the agents' tool and its arguments.

    Examples
    --------
    >>> str(AdvisedError("no class; it can join", "add_class", label="refund"))
    "no class; it can join: add_class('refund')"
    """

    def __init__(self, problem: str, verb: str | None = None, **arguments: Any) -> None:
        self.problem, self.verb, self.arguments = problem, verb, arguments
        super().__init__(self.worded(_in_python))

    def worded(self, call: Callable[[str, dict[str, Any]], str]) -> str:
        """Return the message, with the remedy formatted by `call`."""
        return self.problem if self.verb is None else f"{self.problem}: {call(self.verb, self.arguments)}"


class TicketConflictError(AdvisedError):
    """The call does not fit the ticket: it has other feedback, none, or is closed."""


def _in_python(verb: str, arguments: dict[str, Any]) -> str:
    by_name = {"label"} if verb == "correct" else set()
    given = [f"{name}={each!r}" if name in by_name else repr(each) for name, each in arguments.items()]
    return f"{'correct_answer' if verb == 'correct' else verb}({', '.join(given)})"
