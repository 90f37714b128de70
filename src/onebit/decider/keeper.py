"""The core of a decider: its event log, its state, and the lock that keeps them consistent.

Every change is an event, which is applied to the state and appended to the log. If either fails, the state is stale and
is rebuilt from the log before the next call returns.
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
_WORTH_A_SNAPSHOT = 1_000  # events at closing: fewer are replayed quickly
_BYTES_WORTH_A_SNAPSHOT = 16 << 20
_FLUSH_SECONDS = 0.02
_SECRET = 8  # random bytes in a ticket's id
_SECRETS_AT_ONCE = 256


class ReplayWarning(UserWarning):
    """The replay of the log made other guesses than those recorded; the message gives their number."""


class DeciderCore:
    """Event log and state of a decider; `Decider` adds the operations.

    Parameters
    ----------
    log : Log
        The log, opened by this process.
    settings : Settings
        The settings with which the decider was created.
    durability : "full" or "batch"
        Whether an event is on disk before its call returns.
    trusted : list
        Classes that may be loaded, as in `onebit.load`.
    clock : callable
        Returns the time in seconds since 1970.
    check : callable, optional
        Called with the replayed state; raises if it is not the expected one, before anything is written.
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
        """The log's last time and the monotonic time when the clock was first found behind the log."""
        self._pid = os.getpid()
        _deciders.add(self)
        self._secrets: list[str] = []
        self._held = threading.local()
        self._requests: OrderedDict[str, Ticket | Shadow] = OrderedDict()
        self._answers: OrderedDict[str, bool | None] = OrderedDict()
        self._last_snapshot = self._n_snapshot = 0
        """The event of the latest snapshot, and the log's `n_appended` at that time."""
        self._kept: Snapshot | None = None
        """In-memory snapshot from after a failed write: the next failure needs no full replay."""
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
    def batch(self) -> Iterator[list[Batch]]:
        """Context in which this thread's calls share one wait for the disk, at the end of the block.

        Yields the batches in which the events are written; their `error` is set after the block. Raises
        `LogWriteError` at the end if a batch could not be written.
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
        """Why this process lost the log, if it did: another process took it over, or it is unreachable."""
        return self._log.refusal

    @property
    def lost(self) -> dict[str, int] | None:
        """Numbers of the last "acknowledged" and the last "found" event, if opened with `accept_loss`."""
        return self._log.lost

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._state.settings

    def close(self) -> None:
        """Close the log, after writing a snapshot if a replay would be long."""
        if os.getpid() != self._pid:  # a fork: neither the log nor the lock may be touched
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

    # Building blocks of the operations.

    def _make_ready(self) -> None:
        """Rebuild the state from the log if it is stale, and close tickets past their deadline.

        The caller holds the lock, taken by a plain ``with``: in a custom context manager Ctrl-C could leave it locked.
        """
        if os.getpid() != self._pid:
            raise ValueError("the decider belongs to the process that opened it, of which this is a fork")
        if self._is_closed:
            raise ValueError("the decider is closed; open it again: Decider.open(path)")
        if self._is_stale or self._log.is_behind:
            failed, self._is_stale = self._log.is_behind, True  # until the replay is complete
            with suppress(LogWriteError):  # raised to the callers that wait for it
                self._log.wait(self._log.pending())
            self._log.discard_pending()
            self._requests.clear()  # they may hold unwritten events
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
        """Like `_make_ready`, after checking that this process still owns the log; for answers from memory."""
        if not self._is_closed and os.getpid() == self._pid:
            self._log.check_owned()
        self._make_ready()

    def _since(self, waiting: Open) -> float:
        """Return the time of a ticket; the opening time of the decider if the recorded one is impossible."""
        return waiting.time if waiting.time <= LATEST else self._opened

    def _replayed(self) -> State:
        kept = self._kept
        if kept is not None and not self._log.compacted <= kept.seq <= self._log.last_seq:
            kept = None  # the log was compacted beyond it, or lost events that it contains
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
        """Return the time, at least that of the last event: deadlines must not move when the clock is set back.

        While the clock is behind the log, a monotonic clock advances the time, so that deadlines still pass.
        """
        now, last = check_time(self._clock()), self._log.last_time
        if now >= last or last > LATEST:  # an old log may hold times in milliseconds
            self._set_back = None
            return now
        at, since = self._set_back = self._set_back or (last, time.monotonic())
        return max(last, at + time.monotonic() - since)

    def _add(self, kind: Kind, ticket: str | None, body: dict[str, Any]) -> None:
        """Apply an event to the state and append it to the log."""
        event = Event(self._log.last_seq + 1, self._now(), kind, ticket, body)
        with self._stale_if_it_fails():
            self._state.apply(event)  # first: an event that cannot be applied must not be in the log
            self._log.append(event)

    def _stale_if_it_fails(self) -> "_StaleIfItFails":
        """Return a context that marks the state as stale if the block raises."""
        return _StaleIfItFails(self)

    def _next_secret(self) -> str:
        """Return a random hex string; drawn in blocks, since each system call releases the GIL."""
        if not self._secrets:
            drawn = secrets.token_hex(_SECRET * _SECRETS_AT_ONCE)
            self._secrets = [drawn[i : i + 2 * _SECRET] for i in range(0, len(drawn), 2 * _SECRET)]
        return self._secrets.pop()

    def _close_beyond(self, most: int) -> None:
        """Close the oldest tickets until at most `most` are open."""
        while len(self._state.open) > most:
            # Record the setting in force: it may be changed later.
            self._add(Kind.SILENT, next(iter(self._state.open)), {"says": self._state.settings.silence})

    def _wait(self, batch: Batch) -> None:
        """Wait until a batch is on disk, if durability is "full"; in a `batch` block, at its end."""
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
                    # The calls have returned already: the next one raises.
                    self._is_stale, self._lost = True, error

    def _snapshot_if_possible(self) -> None:
        """Write a periodic snapshot; a failure only warns, since the current call did not ask for it."""
        try:
            self._snapshot()
        except LogWriteError:
            pass  # raised to the callers that wait for those events
        except Exception as error:
            warnings.warn(
                f"no snapshot could be written ({error!r:.200}): events are safe, and opening replays them",
                RuntimeWarning,
                stacklevel=4,
            )
        self._note_snapshot(self._state.seq)  # also after a failure: the next is tried after the usual interval

    def _snapshot(self) -> None:
        self._log.save_snapshot(Snapshot(self._state.seq, self._state.to_bytes()))
        self._note_snapshot(self._state.seq)

    def _note_snapshot(self, seq: int, n_bytes_since: int = 0) -> None:
        self._last_snapshot, self._n_snapshot = seq, self._log.n_appended - n_bytes_since

    def _is_long(self, n_events: int, n_bytes: int) -> bool:
        """Return whether a replay from the latest snapshot would read at least so many events or bytes."""
        log = self._log
        return log.last_seq - self._last_snapshot >= n_events or log.n_appended - self._n_snapshot >= n_bytes


class _StaleIfItFails:
    """Context that marks a decider's state as stale if the block raises."""

    __slots__ = ("_decider",)

    def __init__(self, decider: DeciderCore) -> None:
        self._decider = decider

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, _error: Any, _trace: TracebackType | None) -> None:
        if kind is not None:
            self._decider._is_stale = True


_deciders: "weakref.WeakSet[DeciderCore]" = weakref.WeakSet()


def _renew_locks() -> None:
    """Replace all locks after a fork: the threads that hold them do not exist in the child."""
    for decider in list(_deciders):
        decider._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _surroundings() -> dict[str, Any]:
    """Return versions and platform, which may influence guesses."""
    return {
        "onebit": version("onebit"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": platform.machine(),
    }
