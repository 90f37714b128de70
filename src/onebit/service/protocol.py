"""Limits that uvicorn lacks: number of connections, invalid HTTP, large or slow headers, unread responses."""

import asyncio
from typing import Any

from uvicorn import Config

from onebit.service.connections import Connections, counted_as
from onebit.service.web import HEADERS, Problem

LARGEST_HEAD = 64_000
"""Maximum bytes of a request line and headers."""
HEAD_SECONDS = 30.0
"""Maximum time for them to arrive."""
KEEP_ALIVE_SECONDS = 30
"""Maximum idle time of a connection after a response."""
SEND_SECONDS = 30.0
"""Maximum time for a client to read `LEAST_READ` bytes of a response, or the rest."""
LEAST_READ = 1 << 16
REFUSED_SECONDS = 1.0
"""How long a refused connection stays open, so that its client can read the reason."""
_RETRY_SECONDS = 5


def guard(config: Config, places: Connections) -> Config:
    """Return a server's settings, with a protocol class that enforces these limits.

    Parameters
    ----------
    config : uvicorn.Config
        The server's settings.
    places : Connections
        The limits on connections.
    """
    config.load()
    config.http_protocol_class = _guarded(config.http_protocol_class, places)
    return config


def _guarded(base: Any, places: Connections) -> Any:
    n_refused = 0  # refused connections that are still open

    class Guarded(base):  # type: ignore[misc]
        _n_unread = 0
        _patience: asyncio.TimerHandle | None = None
        _sending: asyncio.TimerHandle | None = None
        _is_refused = False

        def connection_made(self, transport: Any) -> None:
            nonlocal n_refused
            super().connection_made(transport)
            self._read_no_further_than_needed()
            transport.set_write_buffer_limits(0)  # call `pause_writing` for any unread bytes
            self._address = counted_as(self.client[0] if self.client else "")
            refusal = places.take(self._address)
            if refusal is None:
                self._wait()
                return
            self._is_refused = True
            n_refused += 1
            transport.write(_written(Problem(503, refusal, "BusyError", _RETRY_SECONDS)))
            if n_refused > places.most_refused or not transport.can_write_eof():
                transport.close()
                return
            # Not closed at once: further data of the client would cause a reset before it reads the response.
            transport.write_eof()
            self._patience = self.loop.call_later(REFUSED_SECONDS, transport.close)

        def _read_no_further_than_needed(self) -> None:
            """Stop reading while pipelined requests wait in this connection."""
            resume, waiting = self.flow.resume_reading, getattr(self, "pipeline", ())  # the h11 protocol has none
            self.flow.resume_reading = lambda: None if waiting else resume()

        def connection_lost(self, exc: Exception | None) -> None:
            nonlocal n_refused
            self._wait_no_more()
            self._stop_sending_timer()
            if self._is_refused:
                n_refused -= 1
            else:
                places.give_back(self._address)
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch_sending(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._stop_sending_timer()
            super().resume_writing()

        def _watch_sending(self, n_bytes: int) -> None:
            def look() -> None:
                left = self.transport.get_write_buffer_size()
                if left > n_bytes - LEAST_READ:
                    self.transport.abort()
                else:
                    self._watch_sending(left)

            self._sending = self.loop.call_later(SEND_SECONDS, look)

        def _stop_sending_timer(self) -> None:
            if self._sending is not None:
                self._sending.cancel()
                self._sending = None

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.scope["state"].get("caller") is not None:
                places.know(self._address)

        def data_received(self, data: bytes) -> None:
            if self._is_refused:
                return
            super().data_received(data)
            cycle = self.cycle
            if cycle is not None and not cycle.response_complete:
                self._wait_no_more()
            elif not self.transport.is_closing():
                if cycle is None or not cycle.more_body:  # else the rest of a body that was answered early
                    self._n_unread += len(data)
                if self._patience is None:
                    self._wait()
                if self._n_unread > LARGEST_HEAD:
                    self._refuse(Problem(431, f"the headers are larger than {LARGEST_HEAD} bytes"))

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self.cycle.more_body = False  # httptools does not set it after the response

        def send_400_response(self, msg: str) -> None:
            cycle = self.cycle
            # No second response can be sent in the middle of one.
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
    """Return the bytes of a response that closes the connection."""
    response = problem.response()
    headers = [*response.raw_headers, *HEADERS]
    headers += [] if b"connection" in dict(headers) else [(b"connection", b"close")]
    lines = [f"HTTP/1.1 {problem.status} {problem.described()['title']}".encode()]
    return b"\r\n".join([*lines, *(name + b": " + value for name, value in headers), b"", response.body])
