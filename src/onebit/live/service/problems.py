"""Errors as problem+json (RFC 9457), in the words of the library; what went wrong inside never leaves the process."""

import json
from http import HTTPStatus
from typing import Any

from fastapi import Response

from onebit.live.log import LogError, LogWriteError, OwnedError

MEDIA_TYPE = "application/problem+json"
_LONGEST = 2_000
# Not the error's own words: they name a path of the machine.
_UNWRITTEN = "the log cannot be written, and nothing of this happened; try again, with the same key"


class Problem(Exception):  # noqa: N818 -- the name that RFC 9457 gives it
    """A request that cannot be done: its status, and what to say.

    Parameters
    ----------
    status : int
        The status of the answer.
    detail : str
        What is wrong, and what to do.
    error : str
        Which exception the library itself would have raised; `onebit.Client` raises it.
    retry_after : int, optional
        After how many seconds it may be tried again.
    """

    def __init__(self, status: int, detail: str, error: str = "ValueError", retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.error, self.retry_after = status, detail, error, retry_after

    def described(self) -> dict[str, Any]:
        """Return it as JSON can write it."""
        title = HTTPStatus(self.status).phrase
        return {"title": title, "status": self.status, "detail": self.detail[:_LONGEST], "error": self.error}

    def response(self) -> Response:
        """Return it as an answer."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        return Response(json.dumps(self.described()), self.status, headers, MEDIA_TYPE)


def problem_of(error: BaseException) -> Problem:
    """Return what to say about an exception: a bug's own words are not told."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, LogWriteError):
        return Problem(503, _UNWRITTEN, "LogWriteError", retry_after=1)
    if isinstance(error, OwnedError):
        return Problem(503, "another process has this decider open; the service's log says which", "OwnedError", 5)
    if isinstance(error, LogError):
        return Problem(503, "this decider's file cannot be used; the service's log says why", "LogError")
    if isinstance(error, UnicodeError):
        return Problem(422, "the request has text that is no Unicode: half of a pair of surrogates")
    if isinstance(error, ValueError):
        return Problem(422, str(error))
    if isinstance(error, RecursionError):
        return Problem(422, "the request is nested too deep")
    return Problem(500, "something went wrong inside; the service's log says what", "RuntimeError")
