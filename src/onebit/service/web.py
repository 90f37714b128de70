"""Shared by service and playground: errors as problem+json, and protection of local servers.

Requests of other sites through a browser are refused: the Host header must name this machine, against DNS rebinding,
and the Origin header, if present, must be this server's.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
"""Headers of every response; each adds its own content security policy."""
_PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = [(b"content-security-policy", _PAGE_POLICY), (b"cross-origin-opener-policy", b"same-origin")]
"""Headers of pages with scripts: only files of this server, no inline scripts."""
PAGE_PARTS = Path(__file__).parent / "page_parts"
"""Files shared by the pages, served at ``/parts``: uPlot, styles, and helpers."""
LARGEST_BODY = 4_000_000
"""Maximum bytes of a request body."""
SMALL_BODY = 1 << 16
"""Bytes of a body below which `hold` is not called."""
BODY_SECONDS = 30.0
"""Maximum time to receive a request body."""
_LONGEST = 2_000  # characters of an error message
_SINGLE_HEADERS = (b"authorization", b"host", b"origin", b"content-type", b"content-length", b"sec-fetch-site")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Problem(Exception):  # noqa: N818 -- the name that RFC 9457 gives it
    """A refused request, with status and message.

    Parameters
    ----------
    status : int
        The HTTP status.
    detail : str
        The problem and its remedy.
    error : str
        Name of the exception that the library would raise, and `onebit.Client` raises.
    retry_after : int, optional
        Seconds after which to retry.
    remedy : dict, optional
        The problem without its remedy, and the call that is the remedy, which `onebit.Client` and the page format
        in their own way.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        error: str = "ValueError",
        retry_after: int | None = None,
        remedy: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.error, self.retry_after = status, detail, error, retry_after
        self.remedy = remedy

    def described(self) -> dict[str, Any]:
        """Return the problem as plain JSON values."""
        title = HTTPStatus(self.status).phrase
        described = {"title": title, "status": self.status, "detail": self.detail[:_LONGEST], "error": self.error}
        return described if self.remedy is None else described | {"remedy": self.remedy}

    def response(self) -> Response:
        """Return the problem as a response."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status == HTTPStatus.REQUEST_TIMEOUT:
            headers["Connection"] = "close"  # the unread rest of the body is not the next request
        return Response(json.dumps(self.described()), self.status, headers, MEDIA_TYPE)


def headers_of(scope: Scope) -> dict[bytes, str]:
    """Return the headers by lower-case name; raises Problem if an important one is repeated."""
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


def check_own_page(headers: Mapping[bytes, str], who: str) -> None:
    """Raise Problem for requests of other sites through a browser; `who` names the server in the message."""
    host, origin = headers.get(b"host", ""), headers.get(b"origin")
    if host_name(host) not in OWN_HOSTS:
        raise Problem(421, f"{who} answers only to localhost, 127.0.0.1 and [::1]; ask it under one of them")
    is_ours = origin is None or origin.partition("://")[2] == host
    if not is_ours or headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Problem(403, f"{who} answers no page of another site", "PermissionError")


async def read_body(
    method: str, headers: Mapping[bytes, str], receive: Receive, hold: Callable[[int], None] | None = None
) -> bytes:
    """Return the whole body, or raise Problem; the Content-Length header is not trusted.

    For bodies above `SMALL_BODY` bytes, `hold` is called with the bytes so far, and may raise Problem.
    """
    if method not in ("POST", "PUT"):
        return b""
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
                if hold is not None and len(body) > SMALL_BODY:
                    hold(len(body))
    except TimeoutError:
        raise Problem(408, f"the request took longer than {BODY_SECONDS:.0f} seconds to arrive") from None
    return bytes(body)
