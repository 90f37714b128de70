"""The log of a decider: the words, and what logs in databases share; `sqlite.py` and `postgres.py` are two.

Appending only puts an event in line. Whoever waits first writes all that are in line in one transaction, so that many
threads share one commit; what `wait` has returned for is on the disk, where a crash or a loss of power later finds it.

A snapshot is what a decider knew after some event. It saves time, and nothing else depends on it.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, Protocol

from onebit.decider.events import Event, checksum, packed, unpacked
from onebit.decider.log_errors import LogError, LogWriteError, OwnedError, UnreachableError
from onebit.typed_json import parse, write

FORMAT_VERSION = 2  # 1 had other checksums, and was never released
COLUMNS = "seq, time, kind, ticket, body, row, key, checksum"
_COMPACTED, _CHECKSUM = "compacted", "checksum"  # what a log says about itself, beside the settings
AT_ONCE = 1000
"""Events that are read together."""
BYTES_AT_ONCE = 4 << 20
"""Of them, unless one alone has more: a record may have megabytes."""
_SNAPSHOTS = 2
"""How many are kept: the last may be the one that a fault has spoilt."""
_PART = 1 << 26
"""Bytes of a snapshot that are kept in one row: databases take no more than a gigabyte."""


class Snapshot(NamedTuple):
    """What a decider knew."""

    seq: int
    """After which event."""
    content: bytes


class Batch:
    """Events that are written together; `Log.wait` returns when they are."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self.is_done = False
        self.error: LogWriteError | None = None


def about_rows(about: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a new log says about itself, by name and as JSON, and a checksum of that."""
    told = {name: write(value) for name, value in about.items()}
    return [*told.items(), (_CHECKSUM, _about_checksum(told))]


def check_version(path: Any, version: int) -> None:
    """Raise LogError unless this onebit reads logs of that format."""
    if version == FORMAT_VERSION:
        return
    what = "a newer onebit" if version > FORMAT_VERSION else "an onebit from before deciders were released"
    remedy = "update onebit" if version > FORMAT_VERSION else "export it with that one, and begin another"
    raise LogError(f"{path}: was written by {what} (format {version}, this one knows {FORMAT_VERSION}): {remedy}")


def _about_checksum(told: dict[str, str]) -> str:
    """Return the checksum of what never changes."""
    return checksum(tuple(sorted(row for row in told.items() if row[0] != _COMPACTED)), b"").hex()


class Log(Protocol):
    """What a decider needs of a log; `DatabaseLog` keeps one in tables."""

    last_seq: int
    """The number of the last event, of those in line too; 0 if there is none."""
    last_time: float
    """Its time."""
    compacted: int
    """Up to this event, those are gone that a snapshot makes needless."""
    n_appended: int
    """Roughly the bytes of all that was appended here."""

    refusal: "LogError | None"
    """Why the log is not this process's any more, if it is not; it may become so again."""

    lost: dict[str, int] | None
    """The last event that was "acknowledged" and the last that was "found", if it was opened with a loss accepted."""

    @property
    def is_behind(self) -> bool:
        """Whether it holds other events than were appended here: they must be read anew."""

    def check_owned(self) -> None:
        """Raise `LogError` if the log is another's by now, or out of reach; `is_behind` says if others have written."""

    def about(self) -> dict[str, Any]:
        """Return what the log says about itself: the decider's settings."""

    def append(self, event: Event) -> None:
        """Put an event in line; it is not on the disk yet."""

    def pending(self) -> Batch:
        """Return what must be on the disk for all that was appended to be there."""

    def wait(self, batch: Batch) -> None:
        """Return when a batch, and all before, is on the disk; raises `LogWriteError` if that cannot be."""

    def forget_line(self) -> None:
        """Forget what could not be written, and go on from what is on the disk."""

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after that one, in order; those in line are written first."""

    def bytes_after(self, after: int) -> int:
        """Return how many bytes the events after that one have, as far as they are written."""

    def about_ticket(self, ticket: str) -> list[Event]:
        """Return all events about a ticket, in order."""

    def of_kind(self, kind: str) -> list[Event]:
        """Return all events of a kind, in order."""

    def with_key(self, key: str) -> Event | None:
        """Return the event of a request that is on the disk, if there is one."""

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot; older ones may go."""

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the snapshots that are whole, the latest first."""

    def check(self) -> None:
        """Raise `LogError` if what finds tickets and requests is damaged, which reading all events does not show."""

    def compact(self, keep: set[str]) -> int:
        """Remove all events before the latest snapshot, but for those about tickets to keep; return how many."""

    def erase(self, seqs: list[int]) -> None:
        """Remove events before the latest snapshot, by their numbers."""

    def close(self) -> None:
        """Write what is in line, and let go."""


class LogReader(ABC):
    """What can be read of a log in the tables of a database.

    There are about (name, value), events, snapshots (seq, content, checksum), and what does not fit there of a large
    snapshot, snapshot_parts (seq, part, content). Conditions are written with a question mark for each value.

    Parameters
    ----------
    path : object
        What errors call it.
    """

    errors: ClassVar[type[Exception]]
    """What its database raises."""
    size: ClassVar[str]
    """How its database counts the bytes of an event."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self._writing = threading.RLock()
        """Who has it uses the connection."""
        self.last_seq = self.compacted = 0

    @abstractmethod
    def _rows(self, columns: str, table: str, where: str, values: tuple[Any, ...]) -> list[Any]:
        """Return some rows of a table; a condition may go on with an order."""

    @abstractmethod
    def flush(self) -> None:
        """Write all that is in line."""

    def _find(self, columns: str, table: str, where: str = "TRUE", *values: Any) -> list[Any]:
        try:
            with self._writing:
                return self._rows(columns, table, where, values)
        except self.errors as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> LogError:
        return LogError(f"{self.path}: cannot be read ({error}); put a backup in its place")

    def about(self) -> dict[str, Any]:
        """Return what the log says about itself."""
        told = dict(self._find("name, value", "about"))
        check = told.pop(_CHECKSUM, None)  # a log of an older onebit has none
        try:
            found = {name: parse(value) for name, value in told.items()}
            is_damaged = check not in (None, _about_checksum(told))
        except (ValueError, TypeError) as error:
            raise LogError(f"{self.path}: its settings cannot be read ({error}); put a backup in its place") from error
        if is_damaged:
            raise LogError(f"{self.path}: its settings are damaged; put a backup in its place")
        return found

    def _compacted_now(self) -> int:
        return int(self.about().get(_COMPACTED, 0))

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after that one, in order; those in line are written first."""
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
        """Return the next events as they are kept, no more than `AT_ONCE` and `BYTES_AT_ONCE` say."""

    def bytes_after(self, after: int) -> int:
        """Return how many bytes the events after that one have, as far as they are written."""
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
        """Return all events about a ticket, in order."""
        self.flush()
        return self._read("ticket = ? ORDER BY seq", ticket)

    def of_kind(self, kind: str) -> list[Event]:
        """Return all events of a kind, in order."""
        self.flush()
        return self._read("kind = ? ORDER BY seq", str(kind))

    def with_key(self, key: str) -> Event | None:
        """Return the event of a request that is on the disk, if there is one."""
        found = self._read("key = ?", key)
        return found[0] if found else None

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the snapshots that are whole, the latest first."""
        for (seq,) in self._find("seq", "snapshots", "TRUE ORDER BY seq DESC"):
            try:
                content, check = self._snapshot(seq)
            except (UnreachableError, OwnedError):
                raise
            except (LogError, TypeError):
                continue  # its pages are damaged
            if checksum((seq,), content) == check:
                yield Snapshot(seq, content)

    def _snapshot(self, seq: int) -> tuple[bytes, Any]:
        """Return the content of a snapshot, and its checksum."""
        ((first, check),) = self._find("content, checksum", "snapshots", "seq = ?", seq)
        parts = [first]
        while len(parts[-1]) == _PART:  # there may be more
            more = self._find("content", "snapshot_parts", "seq = ? AND part = ?", seq, len(parts))
            parts += more[0] if more else [b""]
        return b"".join(parts), check

    @abstractmethod
    def close(self) -> None:
        """Let go."""


class DatabaseLog(LogReader):
    """A log in the tables of a database, which is written too.

    Parameters
    ----------
    path : object
        What errors call it.
    """

    remedy: ClassVar[str]
    """What to do when it cannot be written."""

    def __init__(self, path: Any) -> None:
        super().__init__(path)
        self._lining = threading.Lock()
        """Who has it changes the line."""
        self._line, self._written = Batch(), Batch()
        self._broken: LogWriteError | None = None
        self.last_time, self.n_appended = 0.0, 0
        self.refusal: LogError | None = None
        self.lost: dict[str, int] | None = None

    @property
    def is_behind(self) -> bool:
        """Whether something could not be written, or others have written since: `forget_line` goes on from there."""
        return self._broken is not None

    def _fall_behind(self) -> None:
        """Let nothing be appended before all is read anew."""
        with self._lining:
            self._broken = self._broken or LogWriteError(
                f"{self.path}: another process had the decider meanwhile; nothing of this happened. The decider goes "
                "on from what is there"
            )

    # What a database does.

    @abstractmethod
    def check_owned(self) -> None:
        """Raise LogError if the log is another's by now, or out of reach; fall behind if others have written."""

    @abstractmethod
    def _commit(self, lines: list[tuple[Any, ...]]) -> None:
        """Write events, all or none."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Let all that is put and deleted in the block happen, or nothing."""

    @abstractmethod
    def _put(self, table: str, row: tuple[Any, ...]) -> None:
        """Add a row to a table."""

    @abstractmethod
    def _delete(self, table: str, where: str, rows: list[tuple[Any, ...]]) -> None:
        """Delete what a condition finds, with each of several values."""

    @abstractmethod
    def _wipe(self) -> None:
        """Let what was deleted be gone from the disk."""

    @abstractmethod
    def _let_go(self) -> None:
        """Close the connection, and let others own the log."""

    # Writing.

    def append(self, event: Event) -> None:
        """Put an event in line; it is not on the disk yet."""
        line = packed(event)  # now: what cannot be written must not spoil the others in line
        with self._lining:
            if self._broken is not None:
                raise self._broken
            if event.seq != self.last_seq + 1:
                raise ValueError(f"event {event.seq} cannot follow event {self.last_seq}")
            self._line.lines.append(line)
            self.n_appended += len(line[4]) + len(line[5] or b"")  # body and row
            self.last_seq, self.last_time = event.seq, event.time

    def pending(self) -> Batch:
        """Return what must be on the disk for all that was appended to be there."""
        with self._lining:
            return self._line if self._line.lines else self._written

    def wait(self, batch: Batch) -> None:
        """Return when a batch, and all before, is on the disk."""
        if not batch.is_done:
            with self._writing:
                if not batch.is_done:  # whoever had the lock before may have written it
                    self._write_line()
        if batch.error is not None:
            raise batch.error

    def flush(self) -> None:
        """Write all that is in line."""
        self.wait(self.pending())

    def _write_line(self) -> None:
        batch = self._line
        try:  # from here on: Ctrl-C may come before anything is written, and the next line must not be written then
            with self._lining:
                self._line, self._written, batch.error = Batch(), batch, self._broken
            if batch.error is None:
                self._commit(batch.lines)
        except BaseException as error:  # also Ctrl-C: nobody may think that it is written
            is_known = isinstance(error, (self.errors, LogWriteError))
            if is_known or not self._holds(batch):
                with self._lining:
                    self._broken = batch.error = self._unwritten(error)
            if not is_known:
                raise
        finally:
            batch.is_done = True

    def _holds(self, batch: Batch) -> bool:
        """Return whether a batch is on the disk for certain: Ctrl-C may have come just after."""
        return False

    def _unwritten(self, error: BaseException) -> LogWriteError:
        """Return what to say when events could not be written."""
        if isinstance(error, LogWriteError):
            return error
        return LogWriteError(f"{self.path}: cannot be written ({error!r}); nothing of this happened. {self.remedy}")

    def forget_line(self) -> None:
        """Forget what could not be written, and go on from what is on the disk."""
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
        """Raise LogError if something is damaged; a database that others look after is not looked at beyond that."""
        for _ in self.events():
            pass

    # Snapshots.

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and the one before: a fault may spoil the last."""
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
        """Remove all events before the latest snapshot, but for those about tickets to keep; return how many.

        The decider cannot be replayed from its beginning any more.
        """
        up_to = self._latest_snapshot()
        found = self._find("seq, ticket", "events", "seq <= ?", up_to)
        gone = [seq for seq, ticket in found if ticket is None or ticket not in keep]
        self.erase(gone)
        return len(gone)

    def erase(self, seqs: list[int]) -> None:
        """Remove events before the latest snapshot, by their numbers."""
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
            self._delete_snapshots("seq < ?", up_to)  # could not be gone on from
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
        """Write what is in line, and let go."""
        try:
            if self._broken is None:
                self.flush()
        finally:
            with self._writing:
                self._let_go()
