"""What a decider returns and raises."""

import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

_METHODS = {"correct": "correct_answer"}  # where the Python name differs
_ROUTES = {"add_class": "classes"}  # where the name in the URL differs
_LONGEST_LABEL = 200


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


class Moment(NamedTuple):
    """One point of the learning curve: the counts after some feedback."""

    time: float
    """Seconds since 1970."""
    guesses: int
    answered: int
    wrong: int


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
    """Another process has the decider open; the message names it.

    Parameters
    ----------
    message : str
        The error message.
    owner : str
        Description of the owning process.
    epoch : int
        The owner's epoch in a database; 0 for files.
    """

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
    >>> error = AdvisedError("no class; it can join", "add_class", label="refund")
    >>> str(error)
    "no class; it can join: add_class('refund')"
    >>> error.worded(in_http)
    'no class; it can join: POST …/classes {"label": "refund"}'
    """

    def __init__(self, problem: str, verb: str | None = None, **arguments: Any) -> None:
        self.problem, self.verb, self.arguments = problem, verb, arguments
        super().__init__(self.worded(in_python))

    def worded(self, call: Callable[[str, dict[str, Any]], str]) -> str:
        """Return the message, with the remedy formatted by `call`."""
        return self.problem if self.verb is None else f"{self.problem}: {call(self.verb, self.arguments)}"

    def described(self) -> dict[str, Any]:
        """Return the error as plain JSON values, the inverse of `of_description`."""
        return {"problem": self.problem, "verb": self.verb, "arguments": self.arguments}

    @classmethod
    def of_description(cls, description: Any) -> "AdvisedError | None":
        """Rebuild an error from `described`, or return None for other values."""
        try:
            return cls(str(description["problem"]), description["verb"], **description["arguments"])
        except (KeyError, TypeError):
            return None


class TicketConflictError(AdvisedError):
    """The call does not fit the ticket: it has other feedback, none, or is closed."""


def in_python(verb: str, arguments: dict[str, Any]) -> str:
    """Format a call as Python."""
    return f"{_METHODS.get(verb, verb)}({', '.join(map(repr, arguments.values()))})"


def in_http(verb: str, arguments: dict[str, Any]) -> str:
    """Format a call as an HTTP request."""
    return f"POST …/{in_tools(_ROUTES.get(verb, verb), arguments)}"


def in_tools(verb: str, arguments: dict[str, Any]) -> str:
    """Format a call as an agent's tool call.

    >>> in_tools("correct", {"id": "5-9f86", "correct": False})
    'correct {"id": "5-9f86", "correct": false}'
    """
    return f"{verb} {json.dumps(arguments, ensure_ascii=False)}"


def no_class_error(problem: str, label: Any) -> AdvisedError:
    """Return the error for an unknown label; the remedy is to add it, if it is a short text or number."""
    if not isinstance(label, (str, int)) or len(str(label)) > _LONGEST_LABEL:
        return AdvisedError(problem)
    return AdvisedError(f"{problem}. A new label can join", "add_class", label=label)
