"""The server of ``onebit serve`` and the playground: limits on connections that uvicorn lacks, process and log."""

import asyncio
import gc
import ipaddress
import json
import logging
import math
import socket
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onebit.inputs import check_integer
from onebit.service.gate import Problem

_NAME = "onebit.serve"  # of the log
_MOST_CONNECTIONS = 1_000  # default limit, unless the process can open fewer than twice as many files
_SHARE_OF_ONE, _SHARE_KEPT = 4, 4  # one address may have a quarter of them; a quarter is kept for known addresses
_KNOWN_SECONDS, _MOST_KNOWN = 600.0, 10_000
_WARN_AGAIN_SECONDS = 10.0
_LARGEST_HEAD, _HEAD_SECONDS = 64_000, 30.0  # maximum bytes of a request line and headers, and time for them to arrive
_SEND_SECONDS, _LEAST_READ = 30.0, 1 << 16  # so many bytes of a response, or its rest, must be read in this time
_REFUSED_SECONDS = 1.0  # how long a refused connection stays open, so that its client can read the reason
_RETRY_SECONDS = 5
_LAST_ANSWERS_SECONDS = 1.0
_MOST_FILES = 65_536
_EXTRAS = ("method", "path", "status", "seconds", "caller", "address", "decider", "detail")  # of a line of the log
_LOG = logging.getLogger(_NAME)


class Connections:
    """Counts connections and enforces the limits: those that the operator chose, or what `n_files` open files allow.

    Raises ValueError if there may be more connections than half of these files: deciders and logs need the others. The
    last quarter of all connections is kept for known addresses: those of callers that were answered lately.
    """

    def __init__(self, most: int | None = None, most_of_address: int | None = None, n_files: int = _MOST_FILES) -> None:
        if most is None:
            most = max(1, min(_MOST_CONNECTIONS, n_files // 2))
        elif check_integer("--max-connections", most, low=1) > n_files // 2:
            raise ValueError(
                f"--max-connections {most} needs {2 * most} open files, half of them for logs, and this process may "
                f"open {n_files}; raise that (ulimit -n, or LimitNOFILE of systemd), or say at most {n_files // 2}"
            )
        if most_of_address is None:
            most_of_address = max(1, most // _SHARE_OF_ONE)
        check_integer("--max-connections-per-address", most_of_address, low=1, high=most)
        self._most, self._most_of_address = most, most_of_address
        self._taken: Counter[str] = Counter()  # by address
        self._n_taken = 0
        self._known: OrderedDict[str, float] = OrderedDict()  # when each was answered
        self._n_refused, self._last_warning = 0, -_WARN_AGAIN_SECONDS
        self.n_leaving, self.most_leaving = 0, max(16, most // 4)  # refused, and open until the response is read

    def take(self, address: str) -> str | None:
        """Count a new connection; return None, or the reason for a refusal."""
        now = time.monotonic()
        n_kept = 0 if now - self._known.get(address, -math.inf) < _KNOWN_SECONDS else self._most // _SHARE_KEPT
        if self._taken[address] >= self._most_of_address:
            message = f"there are {self._most_of_address} connections from this address; try again"
        elif self._n_taken >= self._most - n_kept:
            message = f"there are {self._n_taken} connections; try again"
        else:
            self._taken[address] += 1
            self._n_taken += 1
            return None
        self._n_refused += 1
        if now - self._last_warning >= _WARN_AGAIN_SECONDS:  # at intervals, not for each
            _LOG.warning("%d connections were refused: %s", self._n_refused, message)
            self._n_refused, self._last_warning = 0, now
        return message

    def give_back(self, address: str) -> None:
        """Count the end of a connection."""
        self._n_taken -= 1
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]

    def know(self, address: str) -> None:
        """Note that a caller at an address was answered: one with a valid token, where tokens are needed."""
        self._known[address] = time.monotonic()
        self._known.move_to_end(address)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


def _counted_as(host: str) -> str:
    """Return the address under which one is counted: an IPv6 /64 network counts as one."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # not an IP socket
        return host
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False).network_address)


class _Guarded(HttpToolsProtocol):
    """uvicorn's protocol of a connection, with all limits; `Server` calls its `look` now and then."""

    def __init__(self, limits: Connections, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._limits = limits

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # Nothing more is read while pipelined requests wait in this connection.
        resume, waiting = self.flow.resume_reading, self.pipeline
        self.flow.resume_reading = lambda: None if waiting else resume()  # type: ignore[method-assign]
        transport.set_write_buffer_limits(0)  # call `pause_writing` for any unread bytes
        self._waiting_since, self._n_unread = time.monotonic(), 0  # for a head, and bytes of it so far
        self._sending_since, self._n_unsent = math.inf, 0
        limits, self._address = self._limits, _counted_as(self.client[0] if self.client else "")
        refusal = limits.take(self._address)
        self._is_refused = refusal is not None
        if refusal is not None:
            limits.n_leaving += 1
            transport.write(Problem(503, refusal, "BusyError", _RETRY_SECONDS).written())
            if limits.n_leaving > limits.most_leaving or not transport.can_write_eof():
                transport.close()
            else:  # not closed at once: further data of the client would cause a reset before it reads the response
                transport.write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_refused:
            self._limits.n_leaving -= 1
        else:
            self._limits.give_back(self._address)
        super().connection_lost(exc)

    def look(self, now: float) -> None:
        """Let go of a client that is too slow."""
        if now - self._waiting_since > (_REFUSED_SECONDS if self._is_refused else _HEAD_SECONDS):
            if self._is_refused or (self.cycle is not None and not self._n_unread):
                self.transport.close()
            else:
                self._refuse(Problem(408, f"the headers took longer than {_HEAD_SECONDS:.0f} seconds to arrive"))
        if now - self._sending_since > _SEND_SECONDS:
            left = self.transport.get_write_buffer_size()
            if left > self._n_unsent - _LEAST_READ:
                self.transport.abort()
            self._sending_since, self._n_unsent = now, left

    def pause_writing(self) -> None:
        super().pause_writing()
        self._sending_since, self._n_unsent = time.monotonic(), self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        self._sending_since = math.inf
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.scope["state"].get("caller") is not None:
            self._limits.know(self._address)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        cycle = self.cycle
        is_body = cycle is not None and cycle.more_body  # the rest of one, if it was answered early
        expects_head = cycle is None or (cycle.response_complete and not is_body)
        if expects_head and len(data) > _LARGEST_HEAD and b"\r\n\r\n" not in data[: _LARGEST_HEAD + 4]:
            self._n_unread = len(data)
        else:
            super().data_received(data)
            cycle = self.cycle
            if cycle is not None and not cycle.response_complete:
                self._waiting_since, self._n_unread = math.inf, 0
            else:
                self._n_unread += 0 if is_body else len(data)
                self._waiting_since = min(self._waiting_since, time.monotonic())
        if self._n_unread > _LARGEST_HEAD:
            self._refuse(Problem(431, f"the headers are larger than {_LARGEST_HEAD} bytes"))

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

    def _refuse(self, problem: Problem) -> None:
        self._waiting_since = math.inf
        if not self.transport.is_closing():
            self.transport.write(problem.written())
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn with limits on connections; `on_stop` is called before it waits for running requests to end."""

    def __init__(self, config: uvicorn.Config, limits: Connections, on_stop: Callable[[], None] | None = None) -> None:
        config.load()
        config.http_protocol_class = partial(_Guarded, limits)  # type: ignore[assignment]
        super().__init__(config)
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        for listening in (each for server in self.servers for each in server.sockets):
            host, port, *_ = listening.getsockname()
            _LOG.info("listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)

    async def on_tick(self, counter: int) -> bool:
        """Look at all connections twice a second; called by uvicorn ten times a second."""
        if counter % 5 == 0:
            connections: list[Any] = list(self.server_state.connections)
            for each in connections:
                each.look(time.monotonic())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; requests that workers have started are still answered after the grace period."""
        if self._on_stop is not None:
            self._on_stop()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_LAST_ANSWERS_SECONDS)


def raise_file_limit() -> int:
    """Raise the limit on open files as far as allowed, within reason; return the limit."""
    try:
        import resource
    except ImportError:  # Windows, where sockets are not files
        return _MOST_FILES
    now, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if allowed == resource.RLIM_INFINITY else min(allowed, _MOST_FILES)
    if now == resource.RLIM_INFINITY:
        return _MOST_FILES
    with suppress(ValueError, OSError):  # some systems allow less than the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, wanted), allowed))
        return max(now, wanted)
    return now


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "says": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)


def set_up_process(log_requests: bool = False) -> None:
    """Log to standard error as JSON lines, with all requests or only refused ones, and let no request wait long."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.captureWarnings(True)
    for name in (_NAME, "py.warnings", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(logging.WARNING if name != _NAME else logging.DEBUG if log_requests else logging.INFO)
    sys.setswitchinterval(0.001)  # the event loop must not wait long for worker threads
    gc.collect()
    gc.freeze()  # collecting among all modules would block requests for 0.1 s
    gc.set_threshold(50_000, 20, 50)
