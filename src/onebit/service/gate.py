"""The HTTP gate of service and playground: who may ask, how much may be sent, headers, and errors as problem+json.

Local servers refuse requests of other sites through a browser: the Host header must name this machine, against DNS
rebinding, and the Origin header, if present, must be this server's.
"""

import asyncio
import json
import logging
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from onebit.decider.client import LARGEST_BODY
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

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
"""Headers of every response, beside a content security policy."""
_CLOSED = b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_DATA_HEADERS = [*HEADERS, (b"content-security-policy", b"default-src 'none'; " + _CLOSED)]
_PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " + _CLOSED
)
_PAGE_HEADERS = [
    *HEADERS,
    (b"content-security-policy", _PAGE_POLICY),  # only files of this server, no inline scripts
    (b"cross-origin-opener-policy", b"same-origin"),
]
PAGE_PARTS = Path(__file__).parent / "page_parts"
"""Files shared by the pages, served at ``/parts``: uPlot, styles, and helpers."""
MOST_BYTES_HELD = 128 << 20  # maximum bytes of all large requests in progress, including those still arriving slowly
SMALL_BODY = 1 << 16  # bytes up to which a body does not count as large
BODY_SECONDS = 30.0  # maximum time to receive a request body
_LONGEST = 2_000  # characters of an error message
_MOST_CALLERS = 10_000
_OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_SINGLE_HEADERS = (b"authorization", b"host", b"origin", b"content-type", b"content-length", b"sec-fetch-site")
_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Mapping[bytes, str]  # headers by lower-case name


# Errors.


class Problem(Exception):  # noqa: N818 -- the name that RFC 9457 gives it
    """A refused request, with status and message.

    `error` names the exception that the library would raise, and `onebit.Client` raises. `remedy` is the problem
    without its remedy, and the call that is the remedy, which `onebit.Client` and the page format in their own way.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        error: str = "ValueError",
        retry_after: int | None = None,
        remedy: dict[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.error, self.remedy = status, detail, error, remedy
        self._headers = dict(headers or {})
        if retry_after is not None:
            self._headers["Retry-After"] = str(retry_after)
        if status == HTTPStatus.UNAUTHORIZED:
            self._headers["WWW-Authenticate"] = "Bearer"
        if status == HTTPStatus.REQUEST_TIMEOUT:
            self._headers["Connection"] = "close"  # the unread rest of the body is not the next request

    def described(self) -> dict[str, Any]:
        """Return the problem as plain JSON values."""
        title = HTTPStatus(self.status).phrase
        described = {"title": title, "status": self.status, "detail": self.detail[:_LONGEST], "error": self.error}
        return described if self.remedy is None else described | {"remedy": self.remedy}

    def response(self) -> Response:
        """Return the problem as a response."""
        return Response(json.dumps(self.described()), self.status, self._headers, "application/problem+json")


def problem_of(error: BaseException) -> Problem:
    """Return the problem for an exception; internal errors get a generic message, and none tells a path."""
    match error:
        case Problem():
            return error
        case HTTPException():
            is_missing = error.status_code == HTTPStatus.NOT_FOUND
            message = "there is nothing at this address; /api lists what there is" if is_missing else str(error.detail)
            return Problem(error.status_code, message, headers=error.headers)
        case LogUnsureError():  # not 503, which clients may retry for any request
            message = "the database went away, and it is not known yet whether this happened"
            return Problem(504, f"{message}; try again, with the same key", "LogWriteError", retry_after=1)
        case LogWriteError():
            message = "the log cannot be written, and nothing of this happened; try again, with the same key"
            return Problem(503, message, "LogWriteError", retry_after=1)
        case OwnedError():
            return Problem(503, f"this decider is open in {error.owner}; ask there, or try again", "OwnedError", 2)
        case UnreachableError():
            return Problem(503, "the database of this decider cannot be reached; try again", "LogError", 2)
        case LogError():
            return Problem(503, "this decider's file cannot be used; the service's log says why", "LogError")
        case MemoryBudgetError():
            return Problem(409, str(error))
        case UnicodeError():
            return Problem(422, "the request has text that is no Unicode: half of a pair of surrogates")
        case UnknownTicketError():
            return Problem(404, str(error))
        case AdvisedError():
            status = 409 if isinstance(error, TicketConflictError) else 422
            return Problem(status, error.worded(_as_request), remedy=vars(error))
        case ValueError():
            return Problem(422, str(error))
        case RecursionError():
            return Problem(422, "the request is nested too deep")
    return Problem(500, "something went wrong inside; the service's log says what", "RuntimeError")


def _as_request(verb: str, arguments: dict[str, Any]) -> str:
    route = "classes" if verb == "add_class" else verb
    return f"POST …/{route} {json.dumps(arguments, ensure_ascii=False)}"


# Checks.


def headers_of(scope: Scope) -> Headers:
    """Return the headers; raises Problem if an important one is repeated."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    if len(headers) < len(scope["headers"]):  # a proxy may have used the other one
        names = Counter(name for name, _ in scope["headers"])
        for name in _SINGLE_HEADERS:
            if names[name] > 1:
                raise Problem(400, f"the header {name.decode()} must be given once; it is there {names[name]} times")
    return headers


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> host_name("localhost:8018"), host_name("[::1]:8018"), host_name("[::1].evil.example")
    ('localhost', '[::1]', '[::1].evil.example')
    """
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).lower()


def check_own_page(headers: Headers, server: str) -> None:
    """Raise Problem for requests of other sites through a browser; `server` is its name in the message."""
    host, origin = headers.get(b"host", ""), headers.get(b"origin")
    if host_name(host) not in _OWN_HOSTS:
        raise Problem(421, f"{server} answers only to localhost, 127.0.0.1 and [::1]; ask it under one of them")
    is_ours = origin is None or origin.partition("://")[2] == host
    if not is_ours or headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Problem(403, f"{server} answers no page of another site", "PermissionError")


async def read_body(headers: Headers, receive: Receive, hold: Callable[[int], None]) -> bytes:
    """Return the whole body, or raise Problem; the Content-Length header is not trusted.

    For large bodies, `hold` is called with the bytes so far, and may raise Problem.
    """
    content_type = headers.get(b"content-type", "")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise Problem(415, f"send the header content-type: application/json; got {content_type or 'none'!r:.80}")
    too_large = Problem(413, f"the request is larger than {LARGEST_BODY} bytes; send less at once")
    length = headers.get(b"content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length[:16]) > LARGEST_BODY:
        raise too_large
    body, has_more = bytearray(), True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while has_more:
                message = await receive()
                if message["type"] == "http.disconnect":  # the body is incomplete, though it may look complete
                    raise Problem(400, "the request was cut off before its end")
                body += message.get("body", b"")
                has_more = message.get("more_body", False)
                if len(body) > LARGEST_BODY:
                    raise too_large
                if len(body) > SMALL_BODY:
                    hold(len(body))
    except TimeoutError:
        raise Problem(408, f"the request took longer than {BODY_SECONDS:.0f} seconds to arrive") from None
    return bytes(body)


class Allowance:
    """Rate limit for each caller, with a burst of one second; a rate of 0 is no limit.

    >>> allowance = Allowance(2.0, clock=lambda: 0.0)
    >>> allowance.take("shop"), allowance.take("shop"), allowance.take("shop")
    (0.0, 0.0, 0.5)
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = float(per_second), clock
        self._burst = max(1.0, math.ceil(self._rate))
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str, cost: int = 1) -> float:
        """Return 0 if the request is allowed, else the seconds to wait; a cost above the burst is allowed when idle."""
        if not self._rate:
            return 0.0
        with self._lock:
            now = self._clock()
            left, since = self._left.pop(caller, (self._burst, now))
            left = min(self._burst, left + (now - since) * self._rate)
            needed = min(float(cost), self._burst)
            is_allowed = left >= needed
            self._left[caller] = (left - (cost if is_allowed else 0.0), now)
            if len(self._left) > _MOST_CALLERS:
                self._left.popitem(last=False)
            return 0.0 if is_allowed else (needed - left) / self._rate


# The gate.


class Gate:
    """ASGI middleware for every request: puts its body into the scope's state, and answers all its errors.

    `admit` raises Problem for a request that is refused, before its body is read; `explain` returns the problem for an
    exception; `is_page` is whether a path is one of a page with scripts; `note` is called with scope, status and
    seconds; `log` is the name of the log for internal errors.
    """

    def __init__(
        self,
        app: Application,
        admit: Callable[[Scope, Headers], None],
        log: str,
        explain: Callable[[BaseException], Problem] = problem_of,
        is_page: Callable[[str], object] = lambda _path: True,
        note: Callable[[Scope, int, float], None] = lambda _scope, _status, _seconds: None,
        expected: tuple[type[Exception], ...] = (),
    ) -> None:
        self._expected: tuple[type[BaseException], ...] = (Problem, *expected)  # they are not logged
        self._app, self._admit, self._explain, self._is_page, self._note = app, admit, explain, is_page, note
        self._log = logging.getLogger(log)
        self._n_held = 0  # bytes of large requests in progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, is_begun = time.perf_counter(), 500, False
        more_headers = _PAGE_HEADERS if self._is_page(scope["path"]) else _DATA_HEADERS
        state = scope.setdefault("state", {})
        scope["app"] = self  # so that the router raises exceptions

        async def send_with_headers(message: Message) -> None:
            nonlocal status, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = message["status"], True
                message["headers"] = [*message.get("headers", []), *more_headers]
            await send(message)

        try:
            headers = headers_of(scope)
            self._admit(scope, headers)
            is_sent = scope["method"] in ("POST", "PUT")
            state["body"] = await read_body(headers, receive, lambda n: self._hold(state, n)) if is_sent else b""
            await self._app(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # the server stops
            if is_begun:
                raise
            message = "the service stopped before this was done, and nothing of it happened; try again"
            await Problem(504, message, "BusyError", 1).response()(scope, receive, send_with_headers)
        except Exception as error:
            problem = self._explain(error)
            if problem.status >= 500 and not isinstance(error, self._expected):
                self._log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            if not is_begun:
                await problem.response()(scope, receive, send_with_headers)
        finally:
            self._n_held -= state.pop("held", 0)
            self._note(scope, status, time.perf_counter() - began)

    def _hold(self, state: dict[str, Any], n_bytes: int) -> None:
        n_others = self._n_held - state.get("held", 0)
        if n_others + n_bytes > MOST_BYTES_HELD:
            raise Problem(503, "there are too many large requests; send less at once, or later", "BusyError", 1)
        self._n_held, state["held"] = n_others + n_bytes, n_bytes


# Pages.


class Files:
    """The files of a folder, read once; only these are served."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): (
                path.read_bytes(),
                f"{_MEDIA_TYPES.get(path.suffix, 'text/plain')}; charset=utf-8",
            )
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def response(self, path: str, replace: Mapping[bytes, bytes] | None = None) -> Response:
        """Return a file as a response, with some text replaced; raises Problem if there is none."""
        if path not in self._files:
            raise Problem(404, f"there is no file {path!r:.80}")
        content, media_type = self._files[path]
        for old, new in (replace or {}).items():
            content = content.replace(old, new)
        return Response(content, media_type=media_type)
