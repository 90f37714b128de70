"""The log of a decider: one SQLite file, which one process owns at a time.

Appending only puts an event in line. Whoever waits first writes all that are in line in one transaction, so that many
threads share one commit; what `wait` has returned for is on the disk, where a crash or a loss of power later finds it.

A snapshot is what a decider knew after some event. It saves time, and nothing else depends on it.
"""

import json
import os
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from onebit.live.events import Event, checksum, packed, unpacked
from onebit.typed_json import parse, write

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock is all there is
    fcntl = None  # type: ignore[assignment]

APPLICATION_ID = 0x31424445  # "1BDE": marks a SQLite file as a decider's
FORMAT_VERSION = 1
_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY NOT NULL,
        time REAL NOT NULL,
        kind TEXT NOT NULL,
        ticket TEXT,
        body TEXT NOT NULL,
        row BLOB,
        key TEXT,
        checksum BLOB NOT NULL
    )
    """,
    "CREATE INDEX events_of_ticket ON events (ticket) WHERE ticket IS NOT NULL",
    "CREATE INDEX events_corrected ON events (kind) WHERE kind = 'corrected'",
    "CREATE UNIQUE INDEX events_by_key ON events (key) WHERE key IS NOT NULL",
    "CREATE TABLE snapshots (seq INTEGER PRIMARY KEY NOT NULL, content BLOB NOT NULL, checksum BLOB NOT NULL)",
)
_COLUMNS = "seq, time, kind, ticket, body, row, key, checksum"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_AT_ONCE = 1000
_SNAPSHOTS = 2
"""How many are kept: the last may be the one that a fault has spoilt."""


class LogError(ValueError):
    """The file cannot be used as a log; the message says why, and what to do."""


class LogWriteError(OSError):
    """Something could not be written, and did not happen; the message says what to do."""


class OwnedError(LogError):
    """Another process has the decider open; the message says which."""


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


class Log(Protocol):
    """What a decider needs of a log; `SQLiteLog` keeps one in a file."""

    last_seq: int
    """The number of the last event, of those in line too; 0 if there is none."""
    last_time: float
    """Its time."""
    compacted: int
    """Up to this event, those are gone that a snapshot makes needless."""

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

    def compact(self, keep: set[str]) -> int:
        """Remove all events before the latest snapshot, but for those about tickets to keep; return how many."""

    def erase(self, seqs: list[int]) -> None:
        """Remove events before the latest snapshot, by their numbers."""

    def close(self) -> None:
        """Write what is in line, and let go."""


class SQLiteLog:
    """A log in a SQLite file.

    Parameters
    ----------
    path : path-like
        The file; its folder must exist.
    about : dict, optional
        What a new log says about itself; without it the file must be there.
    """

    def __init__(self, path: "str | os.PathLike[str]", about: dict[str, Any] | None = None) -> None:
        self.path = Path(path)
        if about is None and self._is_empty():
            raise LogError(f"{self.path}: there is no decider; give its classes to begin one")
        self._owner = _Owner(self.path)
        self._writing = threading.RLock()
        """Who has it uses the connection."""
        self._lining = threading.Lock()
        """Who has it changes the line."""
        self._line, self._written = Batch(), Batch()
        self._broken: LogWriteError | None = None
        self.last_seq = self.compacted = 0
        self.last_time = 0.0
        try:
            self._connection = self._connect()
            try:
                self._begin(about)
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._owner.let_go()
            raise

    # Opening.

    def _is_empty(self) -> bool:
        return not self.path.exists() or self.path.stat().st_size == 0

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5.0)
        except sqlite3.Error as error:
            raise LogError(f"{self.path}: cannot be opened ({error}); is its folder there, may you write?") from error

    def _begin(self, about: dict[str, Any] | None) -> None:
        try:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "cell_size_check = ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            if about is not None and not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._create(about)
            application, version = (
                self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
            )
        except sqlite3.Error as error:
            raise LogError(
                f"{self.path}: cannot be used as a log ({error}). If it is read-only, let it be written; if it was "
                "copied while a decider had it open, copy it again after close(); if it is damaged, put a backup there"
            ) from error
        if application != APPLICATION_ID:
            raise LogError(f"{self.path}: is another program's SQLite file; choose another path")
        if version > FORMAT_VERSION:
            raise LogError(
                f"{self.path}: was written by a newer onebit (format {version}, this one knows {FORMAT_VERSION}): "
                "update onebit"
            )
        self.forget_line()

    def _create(self, about: dict[str, Any]) -> None:
        with self._transaction():
            for statement in _SCHEMA:
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            told = [(name, write(value)) for name, value in about.items()]
            self._connection.executemany("INSERT INTO about VALUES (?, ?)", told)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._writing:
            try:
                self._roll_back()
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._roll_back()
                raise

    def _roll_back(self) -> None:
        """Undo what was begun and not finished, also by one whom a second Ctrl-C kept from undoing it."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _select(self, statement: str, *values: Any) -> list[Any]:
        try:
            with self._writing:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise LogError(f"{self.path}: cannot be read ({error}); put a backup in its place") from error

    def about(self) -> dict[str, Any]:
        """Return what the log says about itself."""
        return {name: parse(value) for name, value in self._select("SELECT name, value FROM about")}

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
                with self._transaction():
                    self._connection.executemany(_INSERT, batch.lines)
        except BaseException as error:  # also Ctrl-C: nobody may think that it is written
            if isinstance(error, sqlite3.Error) or not self._holds(batch):
                with self._lining:
                    self._broken = batch.error = LogWriteError(
                        f"{self.path}: cannot be written ({error!r}); nothing of this happened. Make room or mend the "
                        "disk: the decider goes on from what the file holds"
                    )
            if not isinstance(error, sqlite3.Error):
                raise
        finally:
            batch.is_done = True

    def _holds(self, batch: Batch) -> bool:
        """Return whether a batch is in the file: Ctrl-C may have come just after."""
        with suppress(LogError):
            return bool(batch.lines and self._select("SELECT 1 FROM events WHERE seq = ?", batch.lines[-1][0]))
        return False

    def forget_line(self) -> None:
        """Forget what could not be written, and go on from what the file holds."""
        with self._writing:
            self._roll_back()
            ((last,),) = self._select("SELECT max(seq) FROM events")
            times = self._select("SELECT time FROM events WHERE seq = ?", last)
            self.compacted = int(self.about().get("compacted", 0))
            with self._lining:
                self._line.error = self._broken or LogWriteError(f"{self.path}: the event was forgotten")
                self._line.is_done = True
                self._line, self._written, self._broken = Batch(), Batch(), None
                self._written.is_done = True
                self.last_seq = max(last or 0, self.compacted)
                self.last_time = times[0][0] if times else 0.0

    # Reading.

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after that one, in order; those in line are written first."""
        self.flush()
        last = max(after, self.compacted)
        while found := self._read("WHERE seq > ? ORDER BY seq LIMIT ?", after, _AT_ONCE):
            for event in found:
                if event.seq > self.compacted:
                    if event.seq != last + 1:
                        raise LogError(f"{self.path}: event {last + 1} is missing; put a backup in its place")
                    last = event.seq
                yield event
            after = found[-1].seq

    def _read(self, where: str, *values: Any) -> list[Event]:
        lines = self._select(f"SELECT {_COLUMNS} FROM events {where}", *values)
        try:
            return [unpacked(line) for line in lines]
        except (ValueError, TypeError) as error:
            raise LogError(f"{self.path}: {error}; put a backup in its place") from error

    def about_ticket(self, ticket: str) -> list[Event]:
        """Return all events about a ticket, in order."""
        self.flush()
        return self._read("WHERE ticket = ? ORDER BY seq", ticket)

    def of_kind(self, kind: str) -> list[Event]:
        """Return all events of a kind, in order."""
        self.flush()
        return self._read("WHERE kind = ? ORDER BY seq", str(kind))

    def with_key(self, key: str) -> Event | None:
        """Return the event of a request that is on the disk, if there is one."""
        found = self._read("WHERE key = ?", key)
        return found[0] if found else None

    # Snapshots.

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and the one before: a fault may spoil the last."""
        seq, content = snapshot
        self.flush()
        try:
            with self._transaction():
                self._connection.execute(
                    "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (seq, content, checksum(seq, content))
                )
                self._connection.execute(
                    "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)",
                    (_SNAPSHOTS,),
                )
        except sqlite3.Error as error:
            raise LogWriteError(f"{self.path}: the snapshot cannot be written ({error}); events are safe") from error

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the snapshots that are whole, the latest first."""
        for (seq,) in self._select("SELECT seq FROM snapshots ORDER BY seq DESC"):
            ((content, check),) = self._select("SELECT content, checksum FROM snapshots WHERE seq = ?", seq)
            if checksum(seq, content) == check:
                yield Snapshot(seq, content)

    def compact(self, keep: set[str]) -> int:
        """Remove all events before the latest snapshot, but for those about tickets to keep; return how many.

        What is removed is written over with zeros. The decider cannot be replayed from its beginning any more.
        """
        up_to = self._latest_snapshot()
        found = self._select("SELECT seq, ticket FROM events WHERE seq <= ?", up_to)
        gone = [seq for seq, ticket in found if ticket is None or ticket not in keep]
        self.erase(gone)
        return len(gone)

    def erase(self, seqs: list[int]) -> None:
        """Remove events before the latest snapshot, by their numbers; what they held is written over with zeros."""
        up_to = self._latest_snapshot()
        if any(seq > up_to for seq in seqs):
            raise ValueError(f"events after the latest snapshot, {up_to}, cannot be erased")
        try:
            with self._transaction():
                self._connection.executemany("DELETE FROM events WHERE seq = ?", [(seq,) for seq in seqs])
                # Older snapshots could not be gone on from.
                self._connection.execute("DELETE FROM snapshots WHERE seq < ?", (up_to,))
                self._connection.execute("INSERT OR REPLACE INTO about VALUES ('compacted', ?)", (write(up_to),))
            self.compacted = up_to
            with self._writing:
                # The pages of the old file go too, and what lies in the journal.
                self._connection.execute("VACUUM")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise LogWriteError(f"{self.path}: cannot be compacted ({error}); try again when there is room") from error

    def _latest_snapshot(self) -> int:
        ((up_to,),) = self._select("SELECT coalesce(max(seq), 0) FROM snapshots")
        return int(up_to)

    def close(self) -> None:
        """Write what is in line, and let go."""
        try:
            if self._broken is None:
                self.flush()
        finally:
            with self._writing:
                self._connection.close()
            self._owner.let_go()


class _Owner:
    """The lock on a log, in a file beside it that names the owner; it goes with the process, however that ends."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".owner")
        self._file: int | None = None
        if fcntl is not None:
            try:
                self._file = self._claim(path)
            except OSError as error:
                raise LogError(f"{path}: cannot be locked ({error}); is its folder there, may you write?") from error

    def _claim(self, path: Path) -> int:
        while True:
            opened = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The last owner may have removed it between our opening and locking it.
                with suppress(FileNotFoundError):
                    if os.path.samestat(self._path.stat(), os.fstat(opened)):
                        since = datetime.now(UTC).isoformat(timespec="seconds")
                        os.ftruncate(opened, 0)
                        who = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
                        os.write(opened, json.dumps(who).encode())
                        return opened
            except BlockingIOError:
                named = self._named(opened)
                os.close(opened)
                raise OwnedError(f"{path}: is open in {named}; one process at a time") from None
            except BaseException:
                os.close(opened)
                raise
            os.close(opened)

    @staticmethod
    def _named(opened: int) -> str:
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(os.pread(opened, 1000, 0))
            who = "this process" if said["pid"] == os.getpid() else f"process {said['pid']}"
            return f"{who} on {said['host']} since {said['since']}"
        return "another process"

    def let_go(self) -> None:
        """Let others own the log."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None
