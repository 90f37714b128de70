"""Middleware for every request: authentication, size limits, response headers, and logging.

Where no token is required, only requests from this machine are accepted, and none of other sites through a browser.
"""

import asyncio
import logging
import time
from datetime import UTC, datetime

from onebit.service.audit import AuditLog
from onebit.service.limits import FAILURES_PER_SECOND, MOST_BYTES_HELD, Allowance
from onebit.service.metrics import Metrics
from onebit.service.tokens import ANYBODY, Caller, Tokens
from onebit.service.web import (
    HEADERS,
    PAGE_HEADERS,
    Application,
    Message,
    Problem,
    Receive,
    Scope,
    Send,
    check_own_page,
    headers_of,
    read_body,
)

PUBLIC = frozenset({"/", "/api", "/healthz", "/readyz", "/openapi.json"})
PAGES = ("/desk/", "/page/", "/parts/")
"""Path prefixes that need no token: static files without data of deciders."""
VERBS = frozenset(
    {"guess", "tell", "shadow", "correct", "withdraw", "settings", "classes", "status", "report", "log", "metrics"}
    | {"desk", "open", "ticket", "columns", "overview"}
)
_HEADERS = [
    *HEADERS,
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
]
_PAGE_HEADERS = [*HEADERS, *PAGE_HEADERS]
_FORWARDED = frozenset(
    {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}
)
_STOPPED = Problem(
    504, "the service stopped before this was done, and nothing of it happened; try again", "BusyError", retry_after=1
)
_LOG = logging.getLogger("onebit.serve")


class Gate:
    """ASGI middleware that puts caller and body into the scope's state.

    Parameters
    ----------
    app : application
        The wrapped application.
    tokens : Tokens
        The valid tokens.
    metrics : Metrics
        Counters of requests.
    audit : AuditLog, optional
        The audit log.
    """

    def __init__(self, app: Application, tokens: Tokens, metrics: Metrics, audit: AuditLog | None = None) -> None:
        self._app, self._tokens, self._metrics, self._audit = app, tokens, metrics, audit
        self._failures = Allowance(FAILURES_PER_SECOND)
        self._n_held = 0
        """Bytes of large requests in progress."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, is_begun = time.perf_counter(), 500, False
        is_page = scope["path"] == "/" or scope["path"].startswith(PAGES)

        async def send_with_headers(message: Message) -> None:
            nonlocal status, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = message["status"], True
                message["headers"] = [*message.get("headers", []), *(_PAGE_HEADERS if is_page else _HEADERS)]
            await send(message)

        state = scope.setdefault("state", {})
        state["caller"] = None
        try:
            await self._let_in(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # the server stops
            if is_begun:
                raise
            await _STOPPED.response()(scope, receive, send_with_headers)
        finally:
            self._n_held -= state.pop("held", 0)
            self._note(scope, status, time.perf_counter() - began)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]

        def hold(n_bytes: int) -> None:
            if self._n_held - state.get("held", 0) + n_bytes > MOST_BYTES_HELD:
                raise Problem(503, "there are too many large requests; send less at once, or later", "BusyError", 1)
            self._n_held += n_bytes - state.get("held", 0)
            state["held"] = n_bytes

        try:
            headers = headers_of(scope)
            state["caller"] = self._caller(scope, headers)
            state["body"] = await read_body(scope["method"], headers, receive, hold)
        except Problem as problem:
            await problem.response()(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _caller(self, scope: Scope, headers: dict[bytes, str]) -> Caller | None:
        """Return the caller of a request, or raise Problem."""
        caller = self._tokens.caller(headers.get(b"authorization"))
        if not self._tokens.are_required:
            check_own_page(headers, "without tokens the service")
            if not _FORWARDED.isdisjoint(headers):
                raise Problem(403, "a proxy passes on what others ask; make a token first", "PermissionError")
            return caller
        if caller is not None and not caller.is_expired:
            return caller
        is_public = scope["path"] in PUBLIC or scope["path"].startswith(PAGES)
        if is_public and scope["method"] not in ("POST", "PUT"):  # whose bodies would be read
            return None
        wait = self._failures.take(address_of(scope))
        if wait:
            raise Problem(429, "too many requests without a valid token; try later", "PermissionError", 1 + int(wait))
        if caller is None:
            raise Problem(401, "a valid token is needed: Authorization: Bearer …", "PermissionError")
        scope["state"]["expired"] = caller.name
        ended = datetime.fromtimestamp(caller.expires, UTC).isoformat(timespec="seconds")
        raise Problem(401, f"token {caller.name!r} expired at {ended}; ask for a new one", "PermissionError")

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        state, verb = scope["state"], scope["path"].rpartition("/")[2]
        caller: Caller | None = state["caller"]
        verb = verb if verb in VERBS else "other"
        self._metrics.count(verb, status, seconds)
        if self._audit is not None and (status in (401, 403) or (caller and scope["method"] in ("POST", "PUT"))):
            token = state.get("expired") if caller is None or caller is ANYBODY else caller.name
            verb = "create" if scope["method"] == "PUT" else verb
            self._audit.note(token, verb, scope["path"], status, address_of(scope))
        level = logging.INFO if status >= 400 else logging.DEBUG
        if _LOG.isEnabledFor(level):
            extra = {"method": scope["method"], "path": scope["path"], "status": status, "seconds": round(seconds, 6)}
            extra |= {"caller": None if caller is None else caller.name, "address": address_of(scope)}
            _LOG.log(level, "request", extra=extra)


def address_of(scope: Scope) -> str:
    """Return the client address of a request."""
    client = scope.get("client")
    return client[0] if client else ""
