"""Who did what: a file of JSON lines beside the deciders, which a thread of its own writes.

A request is only counted. A few times a second the thread writes a line for each caller, verb, decider and status, with
how many there were. Guesses and answers that were taken are written once a minute: a service that is asked thousands of
times a second must not push out of its bounded files what an admin did days ago. A kill loses the last moments of the
audit log, up to a minute of those counts, and never an event of a decider, whose own log has each of them.
"""

import logging
import math
import os
import re
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from onebit.service.names import PATTERN

FILE = "audit.jsonl"
LARGEST_FILE = 64 << 20
"""Bytes after which another file is begun."""
N_FILES = 8
"""How many are kept: ``audit.jsonl``, and ``audit.jsonl.1`` to ``audit.jsonl.7``, the oldest."""
_WRITE_SECONDS = 0.2
_OFTEN = frozenset({"guess", "tell", "shadow"})
_OFTEN_SECONDS = 60.0  # between lines about these
_MOST_WAITING = 100_000  # lines; beyond them, while the disk is full, requests are only counted
_MOST_REFUSED_NAMES = 5  # each time; beyond them refused requests share lines: their names are the caller's choice
_LONGEST_PATH = 200
_decider_of = re.compile(f"/v1/({PATTERN}/{PATTERN})(?:/.*)?", re.ASCII).fullmatch
_LOG = logging.getLogger("onebit.serve")


class _What(NamedTuple):
    token: str | None
    verb: str
    path: str
    status: int
    address: str

    @property
    def is_often(self) -> bool:
        """Whether it is one of the verbs that are asked all the time, and was done."""
        return self.verb in _OFTEN and self.status < 400

    def described(self, first: float, n_requests: int) -> dict[str, Any]:
        decider = _decider_of(self.path)
        return {
            "time": datetime.fromtimestamp(first, UTC).isoformat(timespec="milliseconds"),
            "token": self.token,
            "verb": self.verb,
            "decider": None if decider is None else decider[1],
            "status": self.status,
            "address": self.address,
            "requests": n_requests,
        }


class AuditLog:
    """Lines that say who did what, in files that only this user may read.

    Parameters
    ----------
    folder : Path
        The service's.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._counting = threading.Lock()
        self._waiting: dict[_What, tuple[float, int]] = {}
        """When the first was, and how many there were since the last time that lines were written."""
        self._n_refused_names, self._n_lost, self._is_failing = 0, 0, False
        self._unwritten = b""
        """What could not be written; it comes first when the disk has room again."""
        self._writing = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write_in_turn, name="onebit audit", daemon=True)

    def start(self) -> None:
        """Begin to write; raises OSError if that cannot be done."""
        self.check()
        self._thread.start()

    def check(self) -> None:
        """Raise OSError if the file cannot be written."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(self._open())
        except OSError as error:
            says = f"the audit log cannot be written ({error.strerror}): mend that, or serve with --no-audit"
            raise OSError(error.errno, says, str(self._path)) from error

    def note(self, token: str | None, verb: str, path: str, status: int, address: str) -> None:
        """Count a request.

        Parameters
        ----------
        token : str or None
            The name of the caller's token.
        verb, path : str
            What was asked, and where.
        status : int
            What was answered.
        address : str
            Where the request came from.
        """
        what = _What(token, verb, path[:_LONGEST_PATH], status, address)
        with self._counting:
            if status >= 400 and what not in self._waiting:
                self._n_refused_names += 1
                what = what if self._n_refused_names <= _MOST_REFUSED_NAMES else what._replace(path="")
            found = self._waiting.get(what)
            if found is not None:
                self._waiting[what] = found[0], found[1] + 1
            elif len(self._waiting) < _MOST_WAITING:
                self._waiting[what] = time.time(), 1
            else:
                self._n_lost += 1
        if self._stop.is_set():  # an answer that came when all was closed
            self._write()

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._stop.set()
        self._thread.join()

    def _write_in_turn(self) -> None:
        while not self._stop.wait(_WRITE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        """Write all lines that wait, or keep them until it can be done."""
        with self._writing:
            try:
                self._write_out()
                if self._waiting:
                    self._unwritten = self._next_lines()
                    self._write_out()
                self._is_failing = False
            except OSError as error:
                if not self._is_failing:  # once, not every time
                    _LOG.error("the audit log cannot be written (%s); lines wait in memory", error)
                self._is_failing = True

    def _next_lines(self) -> bytes:
        with self._counting:
            since = math.inf if self._stop.is_set() else time.time() - _OFTEN_SECONDS
            due = {what: counted for what, counted in self._waiting.items() if not what.is_often or counted[0] <= since}
            self._waiting = {what: counted for what, counted in self._waiting.items() if what not in due}
            n_lost, self._n_refused_names = self._n_lost if due else 0, 0
            self._n_lost -= n_lost
        lines = [what.described(*counted) for what, counted in due.items()]
        if n_lost:
            lines.append({"time": lines[-1]["time"], "verb": "lost", "requests": n_lost})
        return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)

    def _write_out(self) -> None:
        if not self._unwritten:
            return
        opened = self._open()
        try:
            if 0 < os.fstat(opened).st_size > LARGEST_FILE - len(self._unwritten):
                os.close(opened)
                opened = -1
                self._begin_another()
                opened = self._open()
            while self._unwritten:
                n_written = os.write(opened, self._unwritten)
                self._unwritten = self._unwritten[n_written:]
        finally:
            if opened >= 0:
                os.close(opened)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def _begin_another(self) -> None:
        for number in range(N_FILES - 1, 0, -1):
            newer = self._path if number == 1 else self._older(number - 1)
            if newer.exists():
                os.replace(newer, self._older(number))

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{FILE}.{number}")
