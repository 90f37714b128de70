"""The process of ``onebit serve``: its server, its limits, and its log."""

import asyncio
import gc
import json
import logging
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import uvicorn

NAME = "onebit.serve"  # name of the log
_LAST_ANSWERS_SECONDS = 1.0
_MOST_FILES = 65_536
_SWITCH_SECONDS = 0.001  # the event loop must not wait long for worker threads
_OBJECTS = (50_000, 20, 50)  # thresholds of the garbage collector
_EXTRAS = ("method", "path", "status", "seconds", "caller", "address", "decider", "detail")
_LOG = logging.getLogger(NAME)


class Server(uvicorn.Server):
    """A server with a log line at startup; `on_stop` is called before it waits for running requests to end."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None] | None = None) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        for server in self.servers:
            for listening in server.sockets:
                where = listening.getsockname()
                shown = f"[{where[0]}]" if ":" in where[0] else where[0]
                _LOG.info("listening on http://%s:%d", shown, where[1])

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
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than the hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, allowed))
            now = wanted
    return _MOST_FILES if now == resource.RLIM_INFINITY else now


def set_up_process() -> None:
    """Shorten the thread switch interval, and exclude imported modules from garbage collection.

    A full collection would block all requests for a tenth of a second.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_OBJECTS)


class JsonLines(logging.Formatter):
    """Formats log records as JSON lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record as a JSON line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "says": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)


def set_up_log(with_requests: bool) -> None:
    """Log to standard error; with all requests, or only refused ones."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.captureWarnings(True)
    for name in (NAME, "py.warnings", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(logging.WARNING if name != NAME else logging.DEBUG if with_requests else logging.INFO)
