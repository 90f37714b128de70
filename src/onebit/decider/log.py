"""The event log of a decider: its interface, and the base class of logs in `sqlite.py` and `postgres.py`.

Appending only queues an event. The first thread that waits writes all pending events in one transaction, so that many
threads share one commit. When `wait` returns, the batch is on disk and survives crashes and power failures.

A snapshot is the state of a decider after some event. It only shortens the replay.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, Protocol

from onebit.decider.events import Event, checksum, packed, unpacked
from onebit.decider.log_errors import LogError, LogWriteError, OwnedError, UnreachableError
from onebit.typed_json import parse, write

FORMAT_VERSION = 2  # 1 had other checksums and was never released
COLUMNS = "seq, time, kind, ticket, body, row, key, checksum"
_COMPACTED, _CHECKSUM = "compacted", "checksum"  # rows of the table `about` beside the settings
AT_ONCE = 1000
"""Maximum number of events read at once."""
BYTES_AT_ONCE = 4 << 20
"""Maximum bytes of events read at once, unless a single event is larger."""
_SNAPSHOTS = 2
"""Number of snapshots kept: the latest may be damaged."""
_PART = 1 << 26
"""Maximum bytes of a snapshot in one row: databases allow at most a gigabyte."""


class Snapshot(NamedTuple):
    """The serialized state of a decider."""

    seq: int
    """The last event that it includes."""
    content: bytes


class Batch:
    """Events written in one transaction; `Log.wait` waits for it."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self.is_done = False
        self.error: LogWriteError | None = None


def about_rows(about: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of a new log's table `about`: names, JSON values, and a checksum."""
    texts = {name: write(value) for name, value in about.items()}
    return [*texts.items(), (_CHECKSUM, _about_checksum(texts))]


def check_version(path: Any, version: int) -> None:
    """Raise LogError unless this onebit can read logs of that format."""
    if version == FORMAT_VERSION:
        return
    what = "a newer onebit" if version > FORMAT_VERSION else "an onebit from before deciders were released"
    remedy = "update onebit" if version > FORMAT_VERSION else "export it with that one, and begin another"
    raise LogError(f"{path}: was written by {what} (format {version}, this one knows {FORMAT_VERSION}): {remedy}")


def _about_checksum(texts: dict[str, str]) -> str:
    """Return the checksum of the rows that never change."""
    return checksum(tuple(sorted(row for row in texts.items() if row[0] != _COMPACTED)), b"").hex()


class Log(Protocol):
    """Interface of an event log; `DatabaseLog` implements it with tables."""

    last_seq: int
    """The number of the last event, pending ones included; 0 if there is none."""
    last_time: float
    """The time of the last event."""
    compacted: int
    """Events up to this number were removed by compaction."""
    n_appended: int
    """Approximate bytes of all events appended by this process."""

    refusal: "LogError | None"
    """Why this process does not own the log any more, if so; ownership may be regained."""

    lost: dict[str, int] | None
    """Numbers of the last "acknowledged" and the last "found" event, if opened with `accept_loss`."""

    @property
    def is_behind(self) -> bool:
        """Whether the log differs from what was appended here, so that it must be read again."""

    def check_owned(self) -> None:
        """Raise `LogError` if the log is lost or unreachable; set `is_behind` if others have written."""

    def about(self) -> dict[str, Any]:
        """Return the decider's settings and other metadata of the log."""

    def append(self, event: Event) -> None:
        """Queue an event; it is not on disk yet."""

    def pending(self) -> Batch:
        """Return the batch to wait for so that all appended events are on disk."""

    def wait(self, batch: Batch) -> None:
        """Wait until a batch and all before it are on disk; raises `LogWriteError` on failure."""

    def discard_pending(self) -> None:
        """Discard events that could not be written, and continue from the last event on disk."""

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events with numbers above `after`, in order; pending ones are written first."""

    def bytes_after(self, after: int) -> int:
        """Return the bytes of all written events with numbers above `after`."""

    def about_ticket(self, ticket: str) -> list[Event]:
        """Return all events of a ticket, in order."""

    def of_kind(self, kind: str) -> list[Event]:
        """Return all events of a kind, in order."""

    def with_key(self, key: str) -> Event | None:
        """Return the written event of a request by its key, if there is one."""

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Save a snapshot; older ones may be deleted."""

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the undamaged snapshots, latest first."""

    def check(self) -> None:
        """Raise `LogError` if any part is damaged, including indexes."""

    def compact(self, keep: set[str]) -> int:
        """Remove all events up to the latest snapshot, except those of tickets in `keep`; return how many."""

    def erase(self, seqs: list[int]) -> None:
        """Remove events, all up to the latest snapshot, by their numbers."""

    def close(self) -> None:
        """Write pending events and close the log."""


class LogReader(ABC):
    """A log in the tables of a database, for reading.

    Tables: about (name, value), events, snapshots (seq, content, checksum), and snapshot_parts (seq, part, content) for
    the rest of large snapshots. Conditions have a question mark for each value.

    Parameters
    ----------
    path : object
        The name of the log in error messages.
    """

    errors: ClassVar[type[Exception]]
    """The base class of the database driver's errors."""
    size: ClassVar[str]
    """SQL expression for the bytes of an event."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self._writing = threading.RLock()
        """Protects the connection."""
        self.last_seq = self.compacted = 0

    @abstractmethod
    def _rows(self, columns: str, table: str, where: str, values: tuple[Any, ...]) -> list[Any]:
        """Select rows of a table; `where` may contain ORDER BY and LIMIT."""

    @abstractmethod
    def flush(self) -> None:
        """Write all pending events."""

    def _find(self, columns: str, table: str, where: str = "TRUE", *values: Any) -> list[Any]:
        try:
            with self._writing:
                return self._rows(columns, table, where, values)
        except self.errors as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> LogError:
        return LogError(f"{self.path}: cannot be read ({error}); put a backup in its place")

    def about(self) -> dict[str, Any]:
        """Return the metadata of the log."""
        texts = dict(self._find("name, value", "about"))
        check = texts.pop(_CHECKSUM, None)  # absent in logs of older versions
        try:
            found = {name: parse(value) for name, value in texts.items()}
            is_damaged = check not in (None, _about_checksum(texts))
        except (ValueError, TypeError) as error:
            raise LogError(f"{self.path}: its settings cannot be read ({error}); put a backup in its place") from error
        if is_damaged:
            raise LogError(f"{self.path}: its settings are damaged; put a backup in its place")
        return found

    def _compacted_now(self) -> int:
        return int(self.about().get(_COMPACTED, 0))

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events with numbers above `after`, in order; pending ones are written first."""
        self.flush()
        last = max(after, self.compacted)
        while lines := self._lines_after(after):
            for line in lines:
                event = self._unpacked(line)
                after = event.seq
                if after > self.compacted:
                    if after != last + 1:
                        raise LogError(f"{self.path}: event {last + 1} is missing; put a backup in its place")
                    last = after
                yield event

    @abstractmethod
    def _lines_after(self, after: int) -> list[Any]:
        """Return the next stored events, within the limits `AT_ONCE` and `BYTES_AT_ONCE`."""

    def bytes_after(self, after: int) -> int:
        """Return the bytes of all written events with numbers above `after`."""
        ((n_bytes,),) = self._find(f"coalesce(sum({self.size}), 0)", "events", "seq > ?", after)
        return int(n_bytes)

    def _read(self, where: str, *values: Any) -> list[Event]:
        return [self._unpacked(line) for line in self._find(COLUMNS, "events", where, *values)]

    def _unpacked(self, line: tuple[Any, ...]) -> Event:
        try:
            return unpacked(line)
        except (ValueError, TypeError, AttributeError) as error:
            raise LogError(f"{self.path}: {error}; put a backup in its place") from error

    def about_ticket(self, ticket: str) -> list[Event]:
        """Return all events of a ticket, in order."""
        self.flush()
        return self._read("ticket = ? ORDER BY seq", ticket)

    def of_kind(self, kind: str) -> list[Event]:
        """Return all events of a kind, in order."""
        self.flush()
        return self._read("kind = ? ORDER BY seq", str(kind))

    def with_key(self, key: str) -> Event | None:
        """Return the written event of a request by its key, if there is one."""
        found = self._read("key = ?", key)
        return found[0] if found else None

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the undamaged snapshots, latest first."""
        for (seq,) in self._find("seq", "snapshots", "TRUE ORDER BY seq DESC"):
            try:
                content, check = self._snapshot(seq)
            except (UnreachableError, OwnedError):
                raise
            except (LogError, TypeError):
                continue  # damaged
            if checksum((seq,), content) == check:
                yield Snapshot(seq, content)

    def _snapshot(self, seq: int) -> tuple[bytes, Any]:
        """Return the content and checksum of a snapshot."""
        ((first, check),) = self._find("content, checksum", "snapshots", "seq = ?", seq)
        parts = [first]
        while len(parts[-1]) == _PART:  # there may be more
            more = self._find("content", "snapshot_parts", "seq = ? AND part = ?", seq, len(parts))
            parts += more[0] if more else [b""]
        return b"".join(parts), check

    @abstractmethod
    def close(self) -> None:
        """Close the log."""


class DatabaseLog(LogReader):
    """A log in the tables of a database, for reading and writing.

    Parameters
    ----------
    path : object
        The name of the log in error messages.
    """

    remedy: ClassVar[str]
    """Advice in the error message when writing fails."""

    def __init__(self, path: Any) -> None:
        super().__init__(path)
        self._lining = threading.Lock()
        """Protects the pending batch."""
        self._line, self._written = Batch(), Batch()
        self._broken: LogWriteError | None = None
        self.last_time, self.n_appended = 0.0, 0
        self.refusal: LogError | None = None
        self.lost: dict[str, int] | None = None

    @property
    def is_behind(self) -> bool:
        """Whether a write failed, or another process has written; `discard_pending` resets this."""
        return self._broken is not None

    def _fall_behind(self) -> None:
        """Refuse further appends until the log is read again."""
        with self._lining:
            self._broken = self._broken or LogWriteError(
                f"{self.path}: another process had the decider meanwhile; nothing of this happened. The decider goes "
                "on from what is there"
            )

    # To be implemented for each database.

    @abstractmethod
    def check_owned(self) -> None:
        """Raise LogError if the log is lost or unreachable; set `is_behind` if others have written."""

    @abstractmethod
    def _commit(self, lines: list[tuple[Any, ...]]) -> None:
        """Write events atomically."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Return a context whose insertions and deletions are one transaction."""

    @abstractmethod
    def _put(self, table: str, row: tuple[Any, ...]) -> None:
        """Insert a row into a table."""

    @abstractmethod
    def _delete(self, table: str, where: str, rows: list[tuple[Any, ...]]) -> None:
        """Delete the rows that match a condition, for each of several values."""

    @abstractmethod
    def _wipe(self) -> None:
        """Remove deleted data from the disk."""

    @abstractmethod
    def _let_go(self) -> None:
        """Close the connection and release ownership of the log."""

    # Writing.

    def append(self, event: Event) -> None:
        """Queue an event; it is not on disk yet."""
        line = packed(event)  # now: a bad event must not affect the rest of the batch
        with self._lining:
            if self._broken is not None:
                raise self._broken
            if event.seq != self.last_seq + 1:
                raise ValueError(f"event {event.seq} cannot follow event {self.last_seq}")
            self._line.lines.append(line)
            self.n_appended += len(line[4]) + len(line[5] or b"")  # body and row
            self.last_seq, self.last_time = event.seq, event.time

    def pending(self) -> Batch:
        """Return the batch to wait for so that all appended events are on disk."""
        with self._lining:
            return self._line if self._line.lines else self._written

    def wait(self, batch: Batch) -> None:
        """Wait until a batch and all before it are on disk."""
        if not batch.is_done:
            with self._writing:
                if not batch.is_done:  # another thread may have written it meanwhile
                    self._write_line()
        if batch.error is not None:
            raise batch.error

    def flush(self) -> None:
        """Write all pending events."""
        self.wait(self.pending())

    def _write_line(self) -> None:
        batch = self._line
        try:  # before the swap: if Ctrl-C comes first, the batch fails and later ones must not be written
            with self._lining:
                self._line, self._written, batch.error = Batch(), batch, self._broken
            if batch.error is None:
                self._commit(batch.lines)
        except BaseException as error:  # also Ctrl-C: the batch must not count as written
            is_known = isinstance(error, (self.errors, LogWriteError))
            if is_known or not self._holds(batch):
                with self._lining:
                    self._broken = batch.error = self._unwritten(error)
            if not is_known:
                raise
        finally:
            batch.is_done = True

    def _holds(self, batch: Batch) -> bool:
        """Return whether a batch is certainly on disk: Ctrl-C may have come just after the commit."""
        return False

    def _unwritten(self, error: BaseException) -> LogWriteError:
        """Return the error for events that could not be written."""
        if isinstance(error, LogWriteError):
            return error
        return LogWriteError(f"{self.path}: cannot be written ({error!r}); nothing of this happened. {self.remedy}")

    def discard_pending(self) -> None:
        """Discard events that could not be written, and continue from the last event on disk."""
        with self._writing:
            ((last,),) = self._find("max(seq)", "events")
            times = self._find("time", "events", "seq = ?", last)
            self.compacted = self._compacted_now()
            with self._lining:
                self._line.error = self._broken or LogWriteError(f"{self.path}: the event was forgotten")
                self._line.is_done = True
                self._line, self._written, self._broken = Batch(), Batch(), None
                self._written.is_done = True
                self.last_seq = max(last or 0, self.compacted)
                self.last_time = times[0][0] if times else 0.0

    def check(self) -> None:
        """Raise LogError if an event is damaged; indexes are checked by the database itself."""
        for _ in self.events():
            pass

    # Snapshots.

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Save a snapshot, and keep the previous one in case this is damaged."""
        seq, content = snapshot
        self.flush()
        try:
            with self._transaction():
                self._delete_snapshots("seq = ?", seq)
                view = memoryview(content)
                self._put("snapshots", (seq, view[:_PART], checksum((seq,), content)))
                for part, start in enumerate(range(_PART, len(view), _PART), 1):
                    self._put("snapshot_parts", (seq, part, view[start : start + _PART]))
                *_, (oldest,) = self._find("seq", "snapshots", "TRUE ORDER BY seq DESC LIMIT ?", _SNAPSHOTS)
                self._delete_snapshots("seq < ?", oldest)
        except self.errors as error:
            raise LogWriteError(f"{self.path}: the snapshot cannot be written ({error}); events are safe") from error

    def compact(self, keep: set[str]) -> int:
        """Remove all events up to the latest snapshot, except those of tickets in `keep`; return how many.

        The log can then no longer be replayed from its beginning.
        """
        up_to = self._latest_snapshot()
        found = self._find("seq, ticket", "events", "seq <= ?", up_to)
        gone = [seq for seq, ticket in found if ticket is None or ticket not in keep]
        self.erase(gone)
        return len(gone)

    def erase(self, seqs: list[int]) -> None:
        """Remove events, all up to the latest snapshot, by their numbers."""
        up_to = self._latest_snapshot()
        if any(seq > up_to for seq in seqs):
            raise ValueError(f"events after the latest snapshot, {up_to}, cannot be erased")
        try:
            if seqs:
                self._remove(seqs, up_to)
            with self._writing:
                self._wipe()
        except self.errors as error:
            raise LogWriteError(f"{self.path}: cannot be compacted ({error}); try again when there is room") from error

    def _remove(self, seqs: list[int], up_to: int) -> None:
        with self._transaction():
            self._delete("events", "seq = ?", [(seq,) for seq in seqs])
            self._delete_snapshots("seq < ?", up_to)  # cannot be replayed from
            self._delete("about", "name = ?", [(_COMPACTED,)])
            self._put("about", (_COMPACTED, write(up_to)))
        self.compacted = up_to

    def _delete_snapshots(self, where: str, seq: int) -> None:
        for table in ("snapshots", "snapshot_parts"):
            self._delete(table, where, [(seq,)])

    def _latest_snapshot(self) -> int:
        ((up_to,),) = self._find("coalesce(max(seq), 0)", "snapshots")
        return int(up_to)

    def close(self) -> None:
        """Write pending events and close the log."""
        try:
            if self._broken is None:
                self.flush()
        finally:
            with self._writing:
                self._let_go()
