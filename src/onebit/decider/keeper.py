"""What is under a decider: the log, what is known, and the lock that keeps them the same.

Whatever happens is an event: it changes what is known and is put in line for the log, both or neither. If one of them
fails, what is known is made anew from the log before anybody is answered.
"""

import os
import platform
import secrets
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self

import numba
import numpy as np

from onebit.decider.events import Event, Kind
from onebit.decider.log import Batch, Log, Snapshot
from onebit.decider.log_errors import LogError, LogWriteError
from onebit.decider.replay import replay
from onebit.decider.settings import Settings
from onebit.decider.state import Open, State
from onebit.decider.tickets import LATEST, Shadow, Ticket, check_time
from onebit.inputs import check_choice

_EVENTS_PER_SNAPSHOT = 50_000
_BYTES_PER_SNAPSHOT = 256 << 20
_WORTH_A_SNAPSHOT = 1_000  # events when it is closed: fewer are replayed in no time
_BYTES_WORTH_A_SNAPSHOT = 16 << 20
_FLUSH_SECONDS = 0.02
_SECRET = 8  # bytes of a ticket's name that nobody can guess
_SECRETS_AT_ONCE = 256


class ReplayWarning(UserWarning):
    """Guesses of the log that this onebit would have made otherwise; the message says how many."""


class Keeper:
    """Holds a log and what is known by it; `Decider` says what may happen.

    Parameters
    ----------
    log : Log
        The log, which nobody else has open.
    settings : Settings
        What the decider was told when it was begun.
    durability : "full" or "batch"
        Whether an event is on the disk before its call returns.
    trusted : list
        What the learner's file may name.
    clock : callable
        Seconds since 1970.
    check : callable, optional
        Raises if what the log says is not what was to be opened; then nothing is written.
    """

    def __init__(
        self,
        log: Log,
        settings: Settings,
        durability: str,
        trusted: Any,
        clock: Callable[[], float],
        check: Callable[[State], None] = lambda _state: None,
    ) -> None:
        self._log, self._settings, self._trusted, self._clock = log, settings, trusted, clock
        self._lock = threading.RLock()
        self._is_durable = check_choice("durability", durability, ("full", "batch")) == "full"
        self._is_stale, self._is_closed = False, False
        self._lost: LogWriteError | None = None
        self._set_back: tuple[float, float] | None = None
        """The time of the log, and of a clock that cannot be set, when the clock was found behind it."""
        self._pid = os.getpid()
        _deciders.add(self)
        self._secrets: list[str] = []
        self._held = threading.local()
        self._requests: OrderedDict[str, Ticket | Shadow] = OrderedDict()
        self._answers: OrderedDict[str, bool | None] = OrderedDict()
        self._last_snapshot = self._n_snapshot = 0
        """The event of the latest snapshot, and the log's `n_appended` at that time."""
        self._kept: Snapshot | None = None
        """What was known when a write failed, in memory: the next one that fails takes no replay."""
        self._opened = check_time(clock())
        self._state = self._replayed()
        check(self._state)
        self._flusher: threading.Thread | None = None
        with self._lock:
            self._make_ready()
            self._add(Kind.OPENED, None, _surroundings() | ({} if log.lost is None else {"lost": log.lost}))
            self._log.wait(self._log.pending())
        if not self._is_durable:
            self._stop = threading.Event()
            self._flusher = threading.Thread(target=self._flush_in_turn, name="onebit log", daemon=True)
            self._flusher.start()

    @contextmanager
    def together(self) -> Iterator[list[Batch]]:
        """Let what this thread calls in the block wait for the disk once, at its end: nothing is certain before.

        Yields the batches in which the events are written; after the block each says whether it was. `LogWriteError` is
        raised if one was not.
        """
        held: list[Batch] = []
        self._held.batches = held
        try:
            yield held
        finally:
            self._held.batches = None
            failed = None
            for batch in held:
                try:
                    self._wait(batch)
                except LogWriteError as error:
                    failed = failed or error
            if failed is not None:
                raise failed

    @property
    def refusal(self) -> LogError | None:
        """Why its log is not this process's any more, if it is not: another took it over, or it cannot be reached."""
        return self._log.refusal

    @property
    def lost(self) -> dict[str, int] | None:
        """The last event that was "acknowledged" and the last that was "found", if `open` was told to accept a loss."""
        return self._log.lost

    @property
    def settings(self) -> Settings:
        """What it was told, when it was begun or later."""
        return self._state.settings

    def close(self) -> None:
        """Write a snapshot if it is worth it, and let go of the file."""
        if os.getpid() != self._pid:  # a fork's: not to be touched, nor its lock
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._flusher is not None:
                self._stop.set()
            try:
                if not self._is_stale and self._is_long(_WORTH_A_SNAPSHOT, _BYTES_WORTH_A_SNAPSHOT):
                    self._log.wait(self._log.pending())
                    self._snapshot_if_possible()
            finally:
                self._log.close()
        if self._flusher is not None:
            self._flusher.join()
        if self._lost is not None:
            raise self._lost

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: Any, _trace: TracebackType | None) -> None:
        self.close()

    # What the verbs are made of.

    def _make_ready(self) -> None:
        """Let what is known be what the log says, and keep deadlines; whoever calls has the lock.

        The lock is taken by a plain ``with``: Ctrl-C may come at the first line of any context of our own, which would
        then keep it for ever.
        """
        if os.getpid() != self._pid:
            raise ValueError("the decider belongs to the process that opened it, of which this is a fork")
        if self._is_closed:
            raise ValueError("the decider is closed; open it again: Decider.open(path)")
        if self._is_stale or self._log.is_behind:
            failed, self._is_stale = self._log.is_behind, True  # until all of it is read
            with suppress(LogWriteError):  # whoever waits for it is told
                self._log.wait(self._log.pending())
            self._log.forget_line()
            self._requests.clear()  # what was not written did not happen
            self._answers.clear()
            self._state = self._replayed()
            self._is_stale = False
            if failed and (self._kept is None or self._kept.seq != self._state.seq):
                self._kept = Snapshot(self._state.seq, self._state.to_bytes())
        elif self._kept is not None and self._log.last_seq > self._kept.seq + _WORTH_A_SNAPSHOT:
            self._kept = None
        if self._is_long(_EVENTS_PER_SNAPSHOT, _BYTES_PER_SNAPSHOT):
            self._snapshot_if_possible()
        if self._lost is not None:
            lost, self._lost = self._lost, None
            raise lost
        deadline = self._state.settings.deadline
        if deadline is not None:
            now = self._now()
            while (oldest := next(iter(self._state.open.values()), None)) and self._since(oldest) + deadline <= now:
                self._close_beyond(len(self._state.open) - 1)

    def _make_sure(self) -> None:
        """Make ready to answer from memory: first ask the log whether it is still this process's."""
        if not self._is_closed and os.getpid() == self._pid:
            self._log.check_owned()
        self._make_ready()

    def _since(self, waiting: Open) -> float:
        """Return from when on a ticket waits: since the decider was opened, where its own time cannot be."""
        return waiting.time if waiting.time <= LATEST else self._opened

    def _replayed(self) -> State:
        kept = self._kept
        if kept is not None and not self._log.compacted <= kept.seq <= self._log.last_seq:
            kept = None  # events are gone that came after it, or in it
        state = replay(self._log, self._settings, self._trusted, kept=kept)
        if kept is None:
            self._note_snapshot(state.restored, self._log.bytes_after(state.restored))
        if state.differences:
            warnings.warn(
                f"this onebit would have guessed otherwise in {state.differences} rounds (first in event "
                f"{state.first_difference}): it, or what it computes with, is not what wrote the log. The guesses and "
                "answers of the log stand",
                ReplayWarning,
                stacklevel=3,
            )
        return state

    def _now(self) -> float:
        """Return the time, which never runs backwards: a clock that is set back must not reopen a deadline.

        It goes on all the same: one that was years ahead when something was written, and is right again, must not keep
        tickets open for years.
        """
        now, last = check_time(self._clock()), self._log.last_time
        if now >= last or last > LATEST:  # a log of before may hold what a clock said in milliseconds
            self._set_back = None
            return now
        at, since = self._set_back = self._set_back or (last, time.monotonic())
        return max(last, at + time.monotonic() - since)

    def _add(self, kind: Kind, ticket: str | None, body: dict[str, Any]) -> None:
        """Write an event down, and let it be known."""
        event = Event(self._log.last_seq + 1, self._now(), kind, ticket, body)
        with self._stale_if_it_fails():
            self._state.apply(event)  # first: what cannot be learned must not be in the log
            self._log.append(event)

    def _stale_if_it_fails(self) -> "_StaleIfItFails":
        """Return a context that lets the state be made anew from the log if something fails half-way."""
        return _StaleIfItFails(self)

    def _next_secret(self) -> str:
        """Return what nobody can guess; asking the system each time would let other threads in between."""
        if not self._secrets:
            drawn = secrets.token_hex(_SECRET * _SECRETS_AT_ONCE)
            self._secrets = [drawn[i : i + 2 * _SECRET] for i in range(0, len(drawn), 2 * _SECRET)]
        return self._secrets.pop()

    def _close_beyond(self, most: int) -> None:
        """Close the oldest tickets until so many are open."""
        while len(self._state.open) > most:
            # With what it says: that may be changed later.
            self._add(Kind.SILENT, next(iter(self._state.open)), {"says": self._state.settings.silence})

    def _wait(self, batch: Batch) -> None:
        """Return when events are on the disk, if that is promised."""
        held = getattr(self._held, "batches", None)
        if held is not None:
            held += [batch] if batch not in held[-1:] else []
        elif self._is_durable:
            try:
                self._log.wait(batch)
            except BaseException:
                with self._lock:
                    self._is_stale = True
                raise

    def _flush_in_turn(self) -> None:
        while not self._stop.wait(_FLUSH_SECONDS):
            try:
                self._log.wait(self._log.pending())
            except LogWriteError as error:
                with self._lock:
                    # Whoever called has gone on: the next one is told.
                    self._is_stale, self._lost = True, error

    def _snapshot_if_possible(self) -> None:
        """Write a snapshot that nobody asked for: whoever happened to call must not hear that it could not be."""
        try:
            self._snapshot()
        except LogWriteError:
            pass  # events that could not be written are told to those who wait for them
        except Exception as error:
            warnings.warn(
                f"no snapshot could be written ({error!r:.200}): events are safe, and opening replays them",
                RuntimeWarning,
                stacklevel=4,
            )
        self._note_snapshot(self._state.seq)  # the next is due as late as if it had been

    def _snapshot(self) -> None:
        self._log.save_snapshot(Snapshot(self._state.seq, self._state.to_bytes()))
        self._note_snapshot(self._state.seq)

    def _note_snapshot(self, seq: int, n_bytes_since: int = 0) -> None:
        self._last_snapshot, self._n_snapshot = seq, self._log.n_appended - n_bytes_since

    def _is_long(self, n_events: int, n_bytes: int) -> bool:
        """Return whether a replay from the latest snapshot would read so many events, or bytes."""
        log = self._log
        return log.last_seq - self._last_snapshot >= n_events or log.n_appended - self._n_snapshot >= n_bytes


class _StaleIfItFails:
    """What a decider knows is made anew if something fails in the block."""

    __slots__ = ("_desk",)

    def __init__(self, desk: Keeper) -> None:
        self._desk = desk

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, _error: Any, _trace: TracebackType | None) -> None:
        if kind is not None:
            self._desk._is_stale = True


_deciders: "weakref.WeakSet[Keeper]" = weakref.WeakSet()


def _renew_locks() -> None:
    """In a fork, let nobody wait for a thread that is not there: the decider refuses by itself."""
    for desk in list(_deciders):
        desk._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _surroundings() -> dict[str, Any]:
    """Return what guesses may depend on beside the log."""
    return {
        "onebit": version("onebit"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": platform.machine(),
    }
