"""Convert exceptions to problems; details of internal errors are never sent."""

import json
from typing import Any

from onebit.decider.tickets import (
    AdvisedError,
    LogError,
    LogUnsureError,
    LogWriteError,
    OwnedError,
    TicketConflictError,
    UnknownTicketError,
    UnreachableError,
)
from onebit.machine_memory import MemoryBudgetError
from onebit.service.web import Problem

# Not the error's own message, which names a path.
_UNWRITTEN = "the log cannot be written, and nothing of this happened; try again, with the same key"

_UNSURE = "the database went away, and it is not known yet whether this happened; try again, with the same key"


def problem_of(error: BaseException) -> Problem:
    """Return the problem for an exception; internal errors get a generic message."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, LogUnsureError):  # not 503, which clients may retry for any request
        return Problem(504, _UNSURE, "LogWriteError", retry_after=1)
    if isinstance(error, LogWriteError):
        return Problem(503, _UNWRITTEN, "LogWriteError", retry_after=1)
    if isinstance(error, OwnedError):
        return Problem(503, f"this decider is open in {error.owner}; ask there, or try again", "OwnedError", 2)
    if isinstance(error, UnreachableError):
        return Problem(503, "the database of this decider cannot be reached; try again", "LogError", 2)
    if isinstance(error, LogError):
        return Problem(503, "this decider's file cannot be used; the service's log says why", "LogError")
    if isinstance(error, MemoryBudgetError):
        return Problem(409, str(error))
    if isinstance(error, UnicodeError):
        return Problem(422, "the request has text that is no Unicode: half of a pair of surrogates")
    if isinstance(error, UnknownTicketError):
        return Problem(404, str(error))
    if isinstance(error, AdvisedError):
        status = 409 if isinstance(error, TicketConflictError) else 422
        return Problem(status, error.worded(_in_http), remedy=vars(error))
    if isinstance(error, ValueError):
        return Problem(422, str(error))
    if isinstance(error, RecursionError):
        return Problem(422, "the request is nested too deep")
    return Problem(500, "something went wrong inside; the service's log says what", "RuntimeError")


def _in_http(verb: str, arguments: dict[str, Any]) -> str:
    route = "classes" if verb == "add_class" else verb
    return f"POST …/{route} {json.dumps(arguments, ensure_ascii=False)}"
