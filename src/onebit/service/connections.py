"""Limits on connections that uvicorn lacks: their number, invalid HTTP, large or slow headers, unread responses.

Without them, many slow connections could use up the process's file descriptors, which the deciders need too. Half of
the descriptors are for connections, the others for logs and the database.
"""

import asyncio
import ipaddress
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from uvicorn import Config

from onebit.inputs import check_integer
from onebit.service.gate import HEADERS, Problem

MOST_CONNECTIONS = 1_000  # default limit, unless the process can open fewer than twice as many files
LARGEST_HEAD = 64_000  # maximum bytes of a request line and headers
HEAD_SECONDS = 30.0  # maximum time for them to arrive
KEEP_ALIVE_SECONDS = 30  # maximum idle time of a connection after a response
SEND_SECONDS = 30.0  # maximum time for a client to read `LEAST_READ` bytes of a response, or the rest
LEAST_READ = 1 << 16
REFUSED_SECONDS = 1.0  # how long a refused connection stays open, so that its client can read the reason
_RETRY_SECONDS = 5
_SHARE_OF_ONE = 4  # one address may have this fraction of all connections
_SHARE_KEPT = 4  # this fraction is reserved for known addresses
_KNOWN_SECONDS = 600.0
_MOST_KNOWN = 10_000
_WARN_AGAIN_SECONDS = 10.0
_LOG = logging.getLogger("onebit.serve")


class Connections:
    """Counts connections and enforces the limits.

    The last quarter of all connections is reserved for known addresses: those with a successful request in the last ten
    minutes, with a valid token where one is required. An IPv6 /64 network counts as one address.

    >>> limits = Connections(4, 2)
    >>> [limits.take(address) is None for address in ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3")]
    [True, True, False, True, False]
    """

    def __init__(self, most: int, most_of_address: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._most_of_address, self._clock = most, most_of_address, clock
        self._n_kept = most // _SHARE_KEPT
        self._taken: Counter[str] = Counter()
        self._n_taken = 0
        self._known: OrderedDict[str, float] = OrderedDict()
        self._n_refused, self._last_warning = 0, -_WARN_AGAIN_SECONDS
        self.most_refused = max(16, most // 4)
        """Maximum number of refused connections kept open until their clients have read the response."""

    def take(self, address: str) -> str | None:
        """Count a new connection; return None, or the reason for a refusal."""
        if self._taken[address] >= self._most_of_address:
            return self._refused(f"there are {self._most_of_address} connections from this address; try again")
        if self._n_taken >= self._most - (0 if self._is_known(address) else self._n_kept):
            return self._refused(f"there are {self._n_taken} connections; try again")
        self._taken[address] += 1
        self._n_taken += 1
        return None

    def give_back(self, address: str) -> None:
        """Count the end of a connection."""
        self._n_taken -= 1
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]

    def know(self, address: str) -> None:
        """Record a successful request from an address."""
        self._known[address] = self._clock()
        self._known.move_to_end(address)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _is_known(self, address: str) -> bool:
        return self._known.get(address, -_KNOWN_SECONDS) + _KNOWN_SECONDS > self._clock()

    def _refused(self, message: str) -> str:
        self._n_refused += 1
        if self._clock() - self._last_warning >= _WARN_AGAIN_SECONDS:  # at intervals, not for each
            _LOG.warning("%d connections were refused: %s", self._n_refused, message)
            self._n_refused, self._last_warning = 0, self._clock()
        return message


def connection_limits(most: int | None, most_of_address: int | None, n_files: int) -> Connections:
    """Return the limits that the operator chose, or raise ValueError if they exceed half of the open files allowed."""
    if most is None:
        most = max(1, min(MOST_CONNECTIONS, n_files // 2))
    elif check_integer("--max-connections", most, low=1) > n_files // 2:
        raise ValueError(
            f"--max-connections {most} needs {2 * most} open files, half of them for logs, and this process may open "
            f"{n_files}; raise that (ulimit -n, or LimitNOFILE of systemd), or say at most {n_files // 2}"
        )
    if most_of_address is None:
        most_of_address = max(1, most // _SHARE_OF_ONE)
    return Connections(most, check_integer("--max-connections-per-address", most_of_address, low=1, high=most))


def counted_as(host: str) -> str:
    """Return the address or network under which an address is counted.

    >>> counted_as("192.0.2.7"), counted_as("::ffff:192.0.2.7"), counted_as("2001:db8:1:2:3:4:5:6"), counted_as("::1")
    ('192.0.2.7', '192.0.2.7', '2001:db8:1:2::', '::1')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # not an IP socket
        return host
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False).network_address)


def guard(config: Config, limits: Connections) -> Config:
    """Return a server's settings, with a protocol class that enforces all limits of this module."""
    config.load()
    config.http_protocol_class = _guarded(config.http_protocol_class, limits)
    return config


def _guarded(base: Any, limits: Connections) -> Any:
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
            refusal = limits.take(self._address)
            if refusal is None:
                self._wait()
                return
            self._is_refused = True
            n_refused += 1
            transport.write(_written(Problem(503, refusal, "BusyError", _RETRY_SECONDS)))
            if n_refused > limits.most_refused or not transport.can_write_eof():
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
                limits.give_back(self._address)
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
                limits.know(self._address)

        def data_received(self, data: bytes) -> None:
            if self._is_refused:
                return
            cycle = self.cycle
            is_body = cycle is not None and cycle.more_body  # the rest of one, if it was answered early
            expects_head = cycle is None or (cycle.response_complete and not is_body)
            if expects_head and len(data) > LARGEST_HEAD and b"\r\n\r\n" not in data[: LARGEST_HEAD + 4]:
                self._refuse(Problem(431, f"the headers are larger than {LARGEST_HEAD} bytes"))
                return
            super().data_received(data)
            cycle = self.cycle
            if cycle is not None and not cycle.response_complete:
                self._wait_no_more()
            elif not self.transport.is_closing():
                if not is_body:
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
