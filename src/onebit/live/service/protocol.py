"""What uvicorn leaves open before a request is one: bytes that are no HTTP, headers that never end, or never come."""

import asyncio
from typing import Any

from uvicorn import Config

from onebit.live.web import HEADERS, Problem

LARGEST_HEAD = 64_000
"""Bytes of a request's first line and headers."""
HEAD_SECONDS = 30.0
"""How long they may take."""


def guard(config: Config) -> Config:
    """Return a server's settings, with connections that answer such requests with problems and let go of them."""
    config.load()
    config.http_protocol_class = _guarded(config.http_protocol_class)
    return config


def _guarded(base: Any) -> Any:
    class Guarded(base):  # type: ignore[misc]
        _n_unread = 0
        _patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait_no_more()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            cycle = self.cycle
            if cycle is not None and not cycle.response_complete:
                self._wait_no_more()
            elif not self.transport.is_closing():
                if cycle is None or not cycle.more_body:  # else it is the rest of what was answered before it all came
                    self._n_unread += len(data)
                if self._patience is None:
                    self._wait()
                if self._n_unread > LARGEST_HEAD:
                    self._refuse(Problem(431, f"the headers are larger than {LARGEST_HEAD} bytes"))

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self.cycle.more_body = False  # httptools' own does not note it once there is an answer

        def send_400_response(self, msg: str) -> None:
            cycle = self.cycle
            # In the middle of an answer nothing else can be said.
            if cycle is None or cycle.response_complete or (cycle.more_body and not cycle.response_started):
                self._refuse(Problem(400, "this is no request of HTTP/1.1"))
            else:
                self.transport.close()

        def _wait(self) -> None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

        def _give_up(self) -> None:
            if self.cycle is None or self._n_unread:
                self._refuse(Problem(408, f"the headers took longer than {HEAD_SECONDS:.0f} seconds to arrive"))
            else:
                self.transport.close()

        def _wait_no_more(self) -> None:
            self._n_unread = 0
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _refuse(self, problem: Problem) -> None:
            self._wait_no_more()
            if not self.transport.is_closing():
                self.transport.write(_written(problem))
                self.transport.close()

    return Guarded


def _written(problem: Problem) -> bytes:
    """Return an answer as it is sent, by a connection that ends with it."""
    response = problem.response()
    headers = [*response.raw_headers, *HEADERS]
    headers += [] if b"connection" in dict(headers) else [(b"connection", b"close")]
    lines = [f"HTTP/1.1 {problem.status} {problem.described()['title']}".encode()]
    return b"\r\n".join([*lines, *(name + b": " + value for name, value in headers), b"", response.body])
