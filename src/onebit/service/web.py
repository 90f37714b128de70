"""What the service and the playground share: errors as problem+json, and who may ask on this machine.

No page of another site may ask through somebody's browser. The host must be this machine's own name (else a name that
an attacker points at 127.0.0.1 would do), and a request that says where it comes from must come from here.
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
"""Of every answer; what else it may load is for each to say."""
_PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = [(b"content-security-policy", _PAGE_POLICY), (b"cross-origin-opener-policy", b"same-origin")]
"""Of a page with scripts: only files of this server, and nothing that stands in the page itself."""
PAGE_PARTS = Path(__file__).parent / "page_parts"
"""What the pages share, at ``/parts``: uPlot, the look, and small helpers."""
LARGEST_BODY = 4_000_000
"""Bytes of a request."""
SMALL_BODY = 1 << 16
"""Bytes that each connection may keep in any case."""
BODY_SECONDS = 30.0
"""How long the sending of a request may take."""
_LONGEST = 2_000  # letters of what is said
_SAID_ONCE = (b"authorization", b"host", b"origin", b"content-type", b"content-length", b"sec-fetch-site")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


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
    remedy : dict, optional
        What is wrong without the remedy, and which call is the remedy: `onebit.Client` and the page have other words
        for it.
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
        """Return it as JSON can write it."""
        title = HTTPStatus(self.status).phrase
        said = {"title": title, "status": self.status, "detail": self.detail[:_LONGEST], "error": self.error}
        return said if self.remedy is None else said | {"remedy": self.remedy}

    def response(self) -> Response:
        """Return it as an answer."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status == HTTPStatus.REQUEST_TIMEOUT:
            headers["Connection"] = "close"  # whatever comes now is no next request
        return Response(json.dumps(self.described()), self.status, headers, MEDIA_TYPE)


def headers_of(scope: Scope) -> dict[bytes, str]:
    """Return what a request says about itself, by names of small letters; raises Problem if it says two things."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    if len(headers) < len(scope["headers"]):  # whoever stands before the service may have looked at the other one
        names = Counter(name for name, _ in scope["headers"])
        for name in _SAID_ONCE:
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
    """Raise Problem if another site asks through a browser on this machine; `who` is asked."""
    host, origin = headers.get(b"host", ""), headers.get(b"origin")
    if host_name(host) not in OWN_HOSTS:
        raise Problem(421, f"{who} answers only to localhost, 127.0.0.1 and [::1]; ask it under one of them")
    is_ours = origin is None or origin.partition("://")[2] == host
    if not is_ours or headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Problem(403, f"{who} answers no page of another site", "PermissionError")


async def read_body(
    method: str, headers: Mapping[bytes, str], receive: Receive, hold: Callable[[int], None] | None = None
) -> bytes:
    """Return the whole body, or raise Problem: its length need not be what its header says.

    While a body of more than `SMALL_BODY` bytes comes, `hold` is told how many there are, and may raise Problem.
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
                if message["type"] == "http.disconnect":  # what came may look whole, and is not
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
