"""What every request passes: who asks, how much is sent, the headers of every answer, and its line in the journal.

Where no token is needed, only this machine may ask, and no page of another site may do so through somebody's browser:
the host must be this machine's own name, and a request that says where it comes from must come from here.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from onebit.live.service.limits import BODY_SECONDS, FAILURES_PER_SECOND, LARGEST_BODY, Allowance
from onebit.live.service.metrics import Metrics
from onebit.live.service.problems import Problem
from onebit.live.service.tokens import Caller, Tokens

OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
PUBLIC = frozenset({"/", "/healthz", "/readyz", "/openapi.json"})
"""What may be asked without a token: nothing of it is about a decider."""
VERBS = frozenset({"guess", "tell", "shadow", "correct", "withdraw", "classes", "status", "report", "log", "metrics"})
_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_LOG = logging.getLogger("onebit.serve")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gate:
    """Lets requests in, with their caller and body in the scope's state.

    Parameters
    ----------
    app : application
        What is behind it.
    tokens : Tokens
        Who may ask.
    metrics : Metrics
        Where requests are counted.
    """

    def __init__(self, app: Application, tokens: Tokens, metrics: Metrics) -> None:
        self._app, self._tokens, self._metrics = app, tokens, metrics
        self._failures = Allowance(FAILURES_PER_SECOND)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        caller = None
        try:
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            caller = self._caller(scope, headers)
            state = scope.setdefault("state", {})
            state["caller"], state["body"] = caller, await _body(scope["method"], headers, receive)
        except Problem as problem:
            await problem.response()(scope, receive, send_with_headers)
        else:
            await self._app(scope, _nothing_more, send_with_headers)
        finally:
            self._note(scope, status, time.perf_counter() - began, caller)

    def _caller(self, scope: Scope, headers: dict[bytes, str]) -> Caller | None:
        """Return who asks, or raise Problem."""
        caller = self._tokens.caller(headers.get(b"authorization"))
        if not self._tokens.are_required:
            _check_own_page(headers)
        elif caller is None and scope["path"] not in PUBLIC:
            wait = self._failures.take(address_of(scope))
            if wait:
                raise Problem(
                    429, "too many requests without a valid token; try later", "PermissionError", 1 + int(wait)
                )
            raise Problem(401, "a valid token is needed: Authorization: Bearer …", "PermissionError")
        return caller

    def _note(self, scope: Scope, status: int, seconds: float, caller: Caller | None) -> None:
        verb = scope["path"].rpartition("/")[2]
        self._metrics.count(verb if verb in VERBS else "other", status, seconds)
        level = logging.INFO if status >= 400 else logging.DEBUG
        if _LOG.isEnabledFor(level):
            said = {"method": scope["method"], "path": scope["path"], "status": status, "seconds": round(seconds, 6)}
            said |= {"caller": None if caller is None else caller.name, "address": address_of(scope)}
            _LOG.log(level, "request", extra=said)


def address_of(scope: Scope) -> str:
    """Return where a request comes from."""
    client = scope.get("client")
    return client[0] if client else ""


def _check_own_page(headers: dict[bytes, str]) -> None:
    """Raise Problem if another site asks through a browser on this machine."""
    host = headers.get(b"host", "")
    if host_name(host) not in OWN_HOSTS:
        raise Problem(
            421, "without tokens the service answers only to localhost, 127.0.0.1 and [::1]: onebit tokens add"
        )
    origin = headers.get(b"origin")
    is_ours = origin is None or urlsplit(origin).netloc == host
    if not is_ours or headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Problem(403, "without tokens the service answers no page of another site", "PermissionError")


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> host_name("localhost:8018"), host_name("[::1]:8018"), host_name("evil.example")
    ('localhost', '[::1]', 'evil.example')
    """
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0].lower()


async def _body(method: str, headers: dict[bytes, str], receive: Receive) -> bytes:
    """Return the whole body, or raise Problem: its length need not be what its header says."""
    if method not in ("POST", "PUT"):
        return b""
    if headers.get(b"content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Problem(415, "content-type must be application/json")
    too_large = Problem(413, f"the request is larger than {LARGEST_BODY} bytes; send less at once")
    length = headers.get(b"content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length[:16]) > LARGEST_BODY:
        raise too_large
    message = await receive()
    if not message.get("more_body", False):
        return bytes(message.get("body", b""))
    body = bytearray(message.get("body", b""))
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while message.get("more_body", False):
                message = await receive()
                body += message.get("body", b"")
                if len(body) > LARGEST_BODY:
                    raise too_large
    except TimeoutError:
        raise Problem(408, f"the request took longer than {BODY_SECONDS:.0f} seconds to arrive") from None
    return bytes(body)


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
