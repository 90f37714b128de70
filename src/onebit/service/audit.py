"""The audit log: JSON lines in a file beside the deciders, written by a thread.

Requests are only counted. A few times a second the thread writes a line for each caller, verb, decider and status, of
guesses and feedback that were taken once a minute.
"""

import logging
import math
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from onebit.service.tokens import NAME

_FILE = "audit.jsonl"
_LARGEST_FILE = 64 << 20  # bytes after which a new file is started
_N_FILES = 8  # number of files kept: ``audit.jsonl``, and ``audit.jsonl.1`` to ``audit.jsonl.7``, the oldest
_WRITE_SECONDS = 0.2
_OFTEN = frozenset({"guess", "tell", "shadow"})
_OFTEN_SECONDS = 60.0  # between lines about frequent verbs
_MOST_WAITING = 100_000  # lines kept while the disk is full; further requests are only counted
_MOST_REFUSED_NAMES = 5  # per write; further refused requests share lines, since callers choose their names
_LONGEST_PATH = 200
_decider_of = re.compile(f"/v1/({NAME}/{NAME})(?:/.*)?", re.ASCII).fullmatch
_LOG = logging.getLogger("onebit.serve")


class AuditLog:
    """Writes the audit log, in files of a folder that are readable by this user only."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._counting, self._writing, self._stop = threading.Lock(), threading.Lock(), threading.Event()
        self._waiting: dict[tuple[Any, ...], list[Any]] = {}  # line: the time of its first request, and their number
        self._n_refused_names, self._n_lost, self._is_failing = 0, 0, False
        self._unwritten = b""  # lines that could not be written; retried first
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.close(self._open())
        except OSError as error:
            message = f"the audit log cannot be written ({error.strerror}): mend that, or serve with --no-audit"
            raise OSError(error.errno, message, str(self._path)) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Context in which a thread writes the file."""
        thread = threading.Thread(target=self._write_in_turn, name="onebit audit", daemon=True)
        thread.start()
        yield
        self._stop.set()
        thread.join()

    def note(self, token: str | None, verb: str, path: str, status: int, address: str) -> None:
        """Count a request: the name of its token, its verb and path, its status, and the client's address."""
        key = token, verb, path[:_LONGEST_PATH], status, address
        with self._counting:
            if status >= 400 and key not in self._waiting:
                self._n_refused_names += 1
                key = key if self._n_refused_names <= _MOST_REFUSED_NAMES else (token, verb, "", status, address)
            if key in self._waiting or len(self._waiting) < _MOST_WAITING:
                self._waiting.setdefault(key, [time.time(), 0])[1] += 1
            else:
                self._n_lost += 1
        if self._stop.is_set():  # a response after closing
            self._write()

    def _write_in_turn(self) -> None:
        while not self._stop.wait(_WRITE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        """Write all pending lines, or keep them for the next try."""
        with self._writing:
            try:
                self._write_out()
                if self._waiting:
                    self._unwritten = self._next_lines()
                    self._write_out()
                self._is_failing = False
            except OSError as error:
                if not self._is_failing:  # log only once
                    _LOG.error("the audit log cannot be written (%s); lines wait in memory", error)
                self._is_failing = True

    def _next_lines(self) -> bytes:
        since = math.inf if self._stop.is_set() else time.time() - _OFTEN_SECONDS
        with self._counting:
            waiting = list(self._waiting.items())
            due = [key for key, (first, _) in waiting if key[1] not in _OFTEN or key[3] >= 400 or first <= since]
            taken = [(key, self._waiting.pop(key)) for key in due]
            n_lost, self._n_refused_names = self._n_lost if due else 0, 0
            self._n_lost -= n_lost
        lines: list[dict[str, Any]] = []
        for (token, verb, path, status, address), (first, n_requests) in taken:
            at, decider = datetime.fromtimestamp(first, UTC).isoformat(timespec="milliseconds"), _decider_of(path)
            line = {"time": at, "token": token, "verb": verb, "decider": None if decider is None else decider[1]}
            lines.append(line | {"status": status, "address": address, "requests": n_requests})
        if n_lost:
            lines.append({"time": at, "verb": "lost", "requests": n_lost})
        return msgspec.json.Encoder().encode_lines(lines)

    def _write_out(self) -> None:
        if not self._unwritten:
            return
        if self._path.exists() and self._path.stat().st_size > max(_LARGEST_FILE - len(self._unwritten), 0):
            for number in reversed(range(1, _N_FILES)):
                older = self._path.with_name(f"{_FILE}.{number - 1}") if number > 1 else self._path
                if older.exists():
                    os.replace(older, self._path.with_name(f"{_FILE}.{number}"))
        opened = self._open()
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[os.write(opened, self._unwritten) :]
        finally:
            os.close(opened)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
