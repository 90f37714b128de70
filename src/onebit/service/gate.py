"""The HTTP gate of service and playground: who may ask, how much may be sent, headers, and errors as problem+json."""

import asyncio
import inspect
import json
import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from starlette import routing
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from onebit.decider import tickets
from onebit.decider.client import LARGEST_BODY, MOST_AT_ONCE
from onebit.decider.log import to_json
from onebit.decider.requests import checked, parsed
from onebit.machine_memory import MemoryBudgetError
from onebit.service.access import ANYBODY, Token, Tokens, check_name

_HEADERS = [  # of every response, beside a content security policy
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_PAGE_PARTS = Path(__file__).parent / "page_parts"  # shared by the pages: uPlot, styles, and helpers
_MOST_BYTES_HELD = 128 << 20  # maximum bytes of all large requests in progress, including those still arriving slowly
_BODY_SECONDS = 30.0  # maximum time to receive a request body
_POLICY = b"default-src 'none'; %sbase-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_OWN_FILES = b"script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "  # no inline scripts
_DATA_HEADERS = [*_HEADERS, (b"content-security-policy", _POLICY % b"")]
_PAGE_HEADERS = [*_HEADERS, (b"content-security-policy", _POLICY % _OWN_FILES)]
_PAGE_HEADERS.append((b"cross-origin-opener-policy", b"same-origin"))
_is_page = re.compile(r"/\Z|/(desk|page|parts)/").match  # static files without data of deciders
_is_public = re.compile(r"/(api|healthz|readyz|openapi\.json)\Z").match  # neither needs a token
_SMALL_BODY = 1 << 16  # bytes up to which a body does not count as large
_LONGEST = 2_000  # characters of an error message
_MOST_CALLERS = 10_000
_FAILURES_PER_SECOND = 20.0  # maximum rate of wrong tokens from one address
_OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_SINGLE_HEADERS = (b"authorization", b"host", b"origin", b"content-type", b"content-length", b"sec-fetch-site")
_FORWARDED = frozenset(
    {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}
)
_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LOG = logging.getLogger("onebit.serve")


# Errors.


_AGAIN = "try again, with the same key"
# Status, name of the exception for clients, seconds after which to try again, and message, if not the exception's own.
_PROBLEMS: list[tuple[type[BaseException], int, str, int | None, str]] = [
    (tickets.LogUnsureError, 504, "LogWriteError", 1,  # not 503, which clients may retry for any request
     f"the database went away, and it is not known yet whether this happened; {_AGAIN}"),
    (tickets.LogWriteError, 503, "LogWriteError", 1,
     f"the log cannot be written, and nothing of this happened; {_AGAIN}"),
    (tickets.OwnedError, 503, "OwnedError", 2, "this decider is open in {.owner}; ask there, or try again"),
    (tickets.UnreachableError, 503, "LogError", 2, "the database of this decider cannot be reached; try again"),
    (tickets.LogError, 503, "LogError", None, "this decider's file cannot be used; the service's log says why"),
    (MemoryBudgetError, 409, "ValueError", None, ""),
    (UnicodeError, 422, "ValueError", None, "the request has text that is no Unicode: half of a pair of surrogates"),
    (tickets.UnknownTicketError, 404, "ValueError", None, ""),
    (tickets.TicketConflictError, 409, "ValueError", None, ""),
    (ValueError, 422, "ValueError", None, ""),
    (RecursionError, 422, "ValueError", None, "the request is nested too deep"),
    (BaseException, 500, "RuntimeError", None, "something went wrong inside; the log of the server says what"),
]  # fmt: skip


class Problem(Exception):  # noqa: N818 -- the name that RFC 9457 gives it
    """A refused request, with status and message; `error` names the exception that `onebit.Client` raises.

    `remedy` has the problem alone and the call that remedies it, which `onebit.Client` and the page word themselves.
    """

    def __init__(self, status: int, detail: str, error: str = "ValueError", retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.error = status, detail, error
        self.remedy: dict[str, Any] | None = None
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        if status == HTTPStatus.UNAUTHORIZED:
            self.headers["WWW-Authenticate"] = "Bearer"
        if status == HTTPStatus.REQUEST_TIMEOUT:
            self.headers["Connection"] = "close"  # the unread rest of the body is not the next request

    @classmethod
    def busy(cls, detail: str) -> "Problem":
        """Return the problem of a request that may be sent again in a second."""
        return cls(503, f"{detail}; try again", "BusyError", 1)

    @classmethod
    def of(cls, error: BaseException) -> "Problem":
        """Return the problem for an exception; internal errors get a generic message, and none tells a path."""
        if isinstance(error, Problem):
            return error
        if isinstance(error, HTTPException):  # of Starlette's router
            is_missing = error.status_code == HTTPStatus.NOT_FOUND
            message = "there is nothing at this address; /api lists what there is" if is_missing else str(error.detail)
            problem = Problem(error.status_code, message)
            problem.headers |= error.headers or {}
            return problem
        _, status, name, retry_after, message = next(known for known in _PROBLEMS if isinstance(error, known[0]))
        problem = Problem(status, message.format(error) if message else str(error), name, retry_after)
        if isinstance(error, tickets.AdvisedError):
            routes, problem.remedy = {"add_class": "classes"}, vars(error)
            problem.detail = error.worded(
                lambda verb, given: f"POST …/{routes.get(verb, verb)} {json.dumps(given, ensure_ascii=False)}"
            )
        return problem

    def described(self) -> dict[str, Any]:
        """Return the problem as plain JSON values."""
        title = HTTPStatus(self.status).phrase
        described = {"title": title, "status": self.status, "detail": self.detail[:_LONGEST], "error": self.error}
        return described if self.remedy is None else described | {"remedy": self.remedy}

    def response(self) -> Response:
        """Return the problem as a response."""
        return Response(json.dumps(self.described()), self.status, self.headers, "application/problem+json")

    def written(self) -> bytes:
        """Return the bytes of a response that closes the connection."""
        self.headers["Connection"] = "close"
        response = self.response()
        head = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}".encode()
        headers = (name + b": " + value for name, value in (*response.raw_headers, *_HEADERS))
        return b"\r\n".join([head, *headers, b"", response.body])


# Routes.


class Route(NamedTuple):
    """A route, with its documentation."""

    method: str
    path: str
    work: Callable[..., Any]  # returns its response, or a value that becomes JSON, perhaps as a coroutine
    about: str = ""
    role: str | None = None  # that a caller needs; without one any token will do, or none where the path is public
    asks: type[Struct] | None = None  # the class of its body, or of its query, which `work` gets after the request
    result: Any = dict[str, Any]
    example: Any = None
    takes_lists: bool = False  # of plain values, in place of one body
    is_everywhere: bool = False  # the role is needed in all namespaces, not in the path's

    @property
    def description(self) -> str:
        """What it does, and which role that needs."""
        everywhere = ", in every namespace" if self.is_everywhere else ""
        return self.about + ("" if self.role is None else f" Role: {self.role}{everywhere}.")

    async def answer(self, request: Request) -> Response:
        """Answer a request of a caller who is known, if it may ask."""
        state = request.scope["state"]
        caller: Token = state["caller"]
        if self.role is not None and caller is not ANYBODY:
            namespace = "*" if self.is_everywhere else request.path_params.get("namespace")
            if self.role not in caller.all_roles or not caller.sees(namespace):
                for what, text in request.path_params.items():  # what is no name is 422 for everybody
                    check_name(what, text)
                refusal = f"may not see the namespace {namespace!r:.80}"
                if self.role not in caller.all_roles:
                    refusal = f"has the role {', '.join(caller.roles)}; this needs {self.role}"
                raise Problem(403, f"token {caller.name!r} {refusal}", "PermissionError")
        asked: list[Any] = []
        if self.asks is not None and self.method == "GET":
            given = {name: text for name, text in request.query_params.items() if name in self.asks.__struct_fields__}
            asked = [checked(self.asks, given, strict=False)]
        elif self.asks is not None:
            asked = [parsed(self.asks, state["body"], self.takes_lists)]
        n_items = len(asked[0]) if asked and isinstance(asked[0], list) else 1
        if not 0 < n_items <= MOST_AT_ONCE:
            raise ValueError(f"a list must have 1 to {MOST_AT_ONCE} items; got {n_items}")
        if self.role is not None and not self.is_everywhere:
            request.app.charge(state, n_items)
        found = self.work(request, *asked)
        if inspect.isawaitable(found):
            found = await found
        return found if isinstance(found, Response) else json_response(found)


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(to_json(value), status, media_type="application/json")


def page_routes(folder: Path, about: str = "") -> list[Route]:
    """Return the routes of a page's own files and of those that pages share, which are read once."""
    found = {
        f"{root}/{path.relative_to(at).as_posix()}": Response(
            path.read_bytes(), media_type=_MEDIA_TYPES.get(path.suffix, "text/plain")
        )
        for root, at in (("/page", folder), ("/parts", _PAGE_PARTS))
        for path in at.rglob("*")
        if path.is_file()
    }

    def work(request: Request) -> Response:
        if (path := request.scope["path"]) not in found:
            raise Problem(404, f"there is no file {path!r:.80}")
        return found[path]

    return [Route("GET", f"{root}/{{path:path}}", work, about, result=None) for root in ("/page", "/parts")]


class _Allowance:
    """Rate limit for each caller, with a burst of one second; a rate of 0 is no limit."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = float(per_second), clock
        self._burst = max(1.0, math.ceil(self._rate))
        self._due: OrderedDict[str, float] = OrderedDict()  # when a caller has its whole burst again

    def take(self, caller: str, cost: int = 1) -> float:
        """Return 0 if the request is allowed, else the seconds to wait; a cost above the burst is allowed when idle."""
        if not self._rate:
            return 0.0
        now = self._clock()
        due = max(self._due.pop(caller, now), now)
        wait = max(due - now - (self._burst - min(cost, self._burst)) / self._rate, 0.0)
        self._due[caller] = due if wait else due + cost / self._rate
        if len(self._due) > _MOST_CALLERS:
            self._due.popitem(last=False)
        return wait


# The gate.


class Gate:
    """An ASGI application behind the checks of every request, of which it answers all errors.

    A request's state has its `body`, `caller` (None if unknown), `address`, and the name of its `token`. `name` is the
    server's in messages, `rate` as for `Service`.
    """

    def __init__(self, routes: Sequence[Route], name: str, tokens: Tokens | None = None, rate: float = 0.0) -> None:
        made = [routing.Route(route.path, route.answer) for route in routes]
        for route, each in zip(made, routes, strict=True):
            route.methods = {each.method}  # without HEAD
        self._router = routing.Router(made, redirect_slashes=False, lifespan=lambda _app: self.running())
        self._name, self._tokens = name, tokens
        self._allowance, self._failures = _Allowance(rate), _Allowance(_FAILURES_PER_SECOND)
        self._n_held = 0  # bytes of large requests in progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        began, status, is_begun = time.perf_counter(), 500, False
        more_headers = _PAGE_HEADERS if _is_page(scope["path"]) else _DATA_HEADERS
        state, client = scope.setdefault("state", {}), scope.get("client")
        state |= {"caller": None, "token": None, "address": client[0] if client else ""}
        scope["app"] = self  # also so that the router raises exceptions

        async def send_with_headers(message: Message) -> None:
            nonlocal status, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = message["status"], True
                message["headers"] = [*message.get("headers", []), *more_headers]
            await send(message)

        try:
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            if len(headers) < len(scope["headers"]):  # a proxy may have used the other one
                names = [name for name, _ in scope["headers"]]
                for name in _SINGLE_HEADERS:
                    if (count := names.count(name)) > 1:
                        raise Problem(400, f"the header {name.decode()} must be given once; it is there {count} times")
            self._admit(scope, headers)
            is_sent = scope["method"] in ("POST", "PUT")
            state["body"] = await self._read_body(Request(scope, receive), headers) if is_sent else b""
            await self._router(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # the server stops
            if is_begun:
                raise
            message = "the service stopped before this was done, and nothing of it happened; try again"
            await Problem(504, message, "BusyError", 1).response()(scope, receive, send_with_headers)
        except Exception as error:
            problem = Problem.of(error)
            if problem.status >= 500 and not isinstance(error, Problem):
                _LOG.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            if not is_begun:
                await problem.response()(scope, receive, send_with_headers)
        finally:
            self._n_held -= state.pop("held", 0)
            self.note(scope, status, time.perf_counter() - began)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Context in which the server runs."""
        yield

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Record a request that was answered."""

    def charge(self, state: Mapping[str, Any], cost: int) -> None:
        """Raise Problem if a caller exceeds its rate limit."""
        wait = self._allowance.take(state["address"] if state["caller"] is ANYBODY else state["caller"].name, cost)
        if wait:
            message = "that is more than one caller may ask for in a second; try later"
            raise Problem(429, message, "BusyError", math.ceil(wait))

    def _admit(self, scope: Scope, headers: Mapping[bytes, str]) -> None:
        """Put the caller of a request into its state, or raise Problem."""
        state = scope["state"]
        caller = ANYBODY if self._tokens is None else self._tokens.caller(headers.get(b"authorization"))
        if caller is ANYBODY:  # requests of other sites through a browser are refused; the host, for DNS rebinding
            host, origin = headers.get(b"host", ""), headers.get(b"origin")
            name, _, port = host.rpartition(":")
            if (name if port.isdigit() else host).lower() not in _OWN_HOSTS:
                message = f"{self._name} answers only to localhost, 127.0.0.1 and [::1]; ask it under one of them"
                raise Problem(421, message)
            is_ours = origin is None or origin.partition("://")[2] == host
            if not is_ours or headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
                raise Problem(403, f"{self._name} answers no page of another site", "PermissionError")
            if self._tokens is not None and not _FORWARDED.isdisjoint(headers):
                raise Problem(403, "a proxy passes on what others ask; make a token first", "PermissionError")
        elif caller is None or caller.is_expired:
            is_open = _is_public(scope["path"]) or _is_page(scope["path"])
            if is_open and scope["method"] not in ("POST", "PUT"):  # whose bodies would be read
                return
            if wait := self._failures.take(state["address"]):
                message = "too many requests without a valid token; try later"
                raise Problem(429, message, "PermissionError", 1 + int(wait))
            message = "a valid token is needed: Authorization: Bearer …"
            if caller is not None:
                state["token"] = caller.name
                message = f"token {caller.name!r} expired at {caller.expires}; ask for a new one"
            raise Problem(401, message, "PermissionError")
        else:
            state["token"] = caller.name
        state["caller"] = caller

    async def _read_body(self, request: Request, headers: Mapping[bytes, str]) -> bytes:
        """Return the whole body, or raise Problem; the Content-Length header is not trusted."""
        content_type, length = headers.get(b"content-type", ""), headers.get(b"content-length", "0")
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise Problem(415, f"send the header content-type: application/json; got {content_type or 'none'!r:.80}")
        too_large = Problem(413, f"the request is larger than {LARGEST_BODY} bytes; send less at once")
        if not (length.isascii() and length.isdigit()) or int(length[:16]) > LARGEST_BODY:
            raise too_large
        body, state = bytearray(), request.scope["state"]
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for piece in request.stream():
                    body += piece
                    if len(body) > LARGEST_BODY:
                        raise too_large
                    if len(body) > _SMALL_BODY:
                        n_more = len(body) - state.get("held", 0)
                        if self._n_held + n_more > _MOST_BYTES_HELD:
                            message = "there are too many large requests; send less at once, or later"
                            raise Problem(503, message, "BusyError", 1)
                        self._n_held, state["held"] = self._n_held + n_more, len(body)
        except ClientDisconnect:  # the body is incomplete, though it may look complete
            raise Problem(400, "the request was cut off before its end") from None
        except TimeoutError:
            raise Problem(408, f"the request took longer than {_BODY_SECONDS:.0f} seconds to arrive") from None
        return bytes(body)
