"""The event log of a decider in one SQLite file, owned by one process at a time."""

import os
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from onebit.decider import log
from onebit.decider.log import COLUMNS, FORMAT_VERSION, Batch, DatabaseLog, about_rows, check_version
from onebit.decider.log_errors import LogError, LostEventsError
from onebit.decider.mark import Mark, MarkFile
from onebit.decider.owner import OwnerFile
from onebit.files import make_private

APPLICATION_ID = 0x31424445  # "1BDE": marks a SQLite file as a decider's
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
_PARTS = """
CREATE TABLE IF NOT EXISTS snapshot_parts (
    seq INTEGER NOT NULL, part INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (seq, part)
)
"""  # absent in files of older versions
_AT_ONCE = 64
"""Maximum events of one INSERT. Each statement releases and reacquires the GIL."""
_INSERT = f"INSERT INTO events ({COLUMNS}) VALUES "
_ONE = "(?, ?, ?, ?, ?, ?, ?, ?)"


class LostJournalWarning(UserWarning):
    """The latest events may be lost, and it cannot be checked whether they are."""


class SQLiteLog(DatabaseLog):
    """A log in a SQLite file.

    Parameters
    ----------
    path : path-like
        The file; its folder must exist.
    about : dict, optional
        Metadata of a new log; without it the file must exist.
    accept_loss : bool
        Whether to open the log although acknowledged events are missing; `lost` holds their numbers.
    """

    errors = sqlite3.Error
    size = "length(CAST(body AS BLOB)) + coalesce(length(row), 0)"
    remedy = "Make room or mend the disk: the decider goes on from what the file holds"

    def __init__(
        self, path: "str | os.PathLike[str]", about: dict[str, Any] | None = None, accept_loss: bool = False
    ) -> None:
        super().__init__(Path(path))
        self._file = Path(path).resolve()  # SQLite too puts its other files beside the target of a link
        self._journal = self._beside("-wal")
        self._mark = MarkFile(self._file)
        if about is None and self._is_empty() and (accept_loss or not os.path.lexists(self._mark.path)):
            raise LogError(f"{self.path}: there is no decider; give its classes to begin one")
        self._owner = OwnerFile(self._file)
        try:
            mark = self._marked()  # after locking: the last owner may have written it
            if mark is not None:
                self.lost = self._check_end(mark, accept_loss)
            elif self._owner.was_left and (self._journal.exists() or not self._is_empty()):
                _warn(
                    f"{self.path}: the process that had it open did not close it, and {self._mark.path.name}, which "
                    f"tells how far it went, is not there or damaged: what came last may be lost. If you have it, or a "
                    f"better {self._journal.name}, put it back before anything else is written"
                )
            self._connection = self._connect(about is not None)
            try:
                self._begin(about)
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._owner.let_go()
            raise

    # Detection of lost events.

    def _beside(self, suffix: str) -> Path:
        return self._file.with_name(self._file.name + suffix)

    def _marked(self) -> Mark | None:
        """Return the last acknowledged event, if known."""
        try:
            return self._mark.read()
        except ValueError:
            _warn(f"{self._mark.path}: is damaged: it does not tell any more whether the decider beside it is whole")
            return None
        except OSError as error:
            raise LogError(f"{self._mark.path}: cannot be read ({error}); move it away") from error

    def _check_end(self, mark: Mark, accept_loss: bool) -> dict[str, int] | None:
        """Raise LostEventsError if the log ends before its mark; with `accept_loss` return the loss."""
        last, event = self._end(mark.seq)
        if last >= mark.seq and event in (None, mark.checksum):
            return None
        if accept_loss:
            return {"acknowledged": mark.seq, "found": last}
        if last == 0:
            what, why = f"all {mark.seq} events", f"is {self._file.name} or {self._journal.name} missing"
        elif last < mark.seq:
            what = f"{mark.seq - last} events ({last + 1} to {mark.seq})"
            why = f"is {self._journal.name} damaged or missing, or is this an old backup"
        else:
            what, why = f"event {mark.seq} and others", "is this another decider, or a backup that went on elsewhere"
        raise LostEventsError(
            f"{self.path}: {what} that were acknowledged are not in it; {why}? Put the right files back: nothing was "
            f"changed. To go on without those events, open it once with accept_loss=True (onebit accept-loss "
            f"{self.path}); to begin another decider here, remove {self._mark.path.name}"
        )

    def _end(self, seq: int) -> tuple[int, bytes | None]:
        """Return the number of the last event, 0 if there is none, and the checksum of event `seq`, if present.

        The journal is not modified: a writing connection would truncate its unreadable part.
        """
        if self._is_empty():
            return 0, None
        mode = "ro" if self._journal.exists() else "rw"
        try:
            with closing(sqlite3.connect(f"{self._file.as_uri()}?mode={mode}", uri=True)) as connection:
                find = connection.execute
                if not find("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone():
                    return 0, None
                (last,) = find("SELECT coalesce(max(seq), 0) FROM events").fetchone()
                compacted = find("SELECT value FROM about WHERE name = 'compacted'").fetchone()
                found = find("SELECT checksum FROM events WHERE seq = ?", (seq,)).fetchone()
                return max(int(last), int(compacted[0]) if compacted else 0), found[0] if found else None
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._unusable(error) from error

    def _note_end(self, lines: list[tuple[Any, ...]]) -> None:
        """Record that events are acknowledged."""
        if lines:
            with suppress(OSError):  # the events are in the log, and the next write records a later mark
                self._mark.write(Mark(lines[-1][0], lines[-1][-1]))

    # Opening.

    def _is_empty(self) -> bool:
        return not self.path.exists() or self.path.stat().st_size == 0

    def _connect(self, create: bool) -> sqlite3.Connection:
        try:
            make_private(self._file, create=create)  # SQLite copies the permissions to its other files
            for suffix in ("-wal", "-shm"):
                make_private(self._beside(suffix))
            return sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=5.0, cached_statements=2 * _AT_ONCE
            )
        except (sqlite3.Error, OSError) as error:
            raise LogError(f"{self.path}: cannot be opened ({error}); is its folder there, may you write?") from error

    def _begin(self, about: dict[str, Any] | None) -> None:
        try:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "cell_size_check = ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            if about is not None and not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._create(about)
            is_empty = not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            application, version = (
                self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
            )
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._unusable(error) from error
        if is_empty:
            raise LogError(
                f"{self.path}: there is no decider in it; give its classes to begin one. If there was one, "
                f"{self.path}-wal is lost, which has all that came last: put it back, or a backup"
            )
        if application != APPLICATION_ID:
            raise LogError(f"{self.path}: is another program's SQLite file; choose another path")
        check_version(self.path, version)
        try:
            self._connection.execute(_PARTS)
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        self.discard_pending()
        found = os.stat(self.path)
        self._place = found.st_dev, found.st_ino

    def _unusable(self, error: Exception) -> LogError:
        return LogError(
            f"{self.path}: cannot be used as a log ({error}). If it is read-only, let it be written; if it was "
            "copied while a decider had it open, copy it again after close(); if it is damaged, put a backup there"
        )

    def _create(self, about: dict[str, Any]) -> None:
        with self._transaction():
            for statement in _SCHEMA:
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            self._connection.executemany("INSERT INTO about VALUES (?, ?)", about_rows(about))

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
        """Roll back an unfinished transaction, for example after a second Ctrl-C."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def discard_pending(self) -> None:
        """Discard events that could not be written, and continue from the last event in the file."""
        with self._writing:
            self._roll_back()
            super().discard_pending()

    # Implementation of `DatabaseLog`.

    def _rows(self, columns: str, table: str, where: str, values: tuple[Any, ...]) -> list[Any]:
        return self._connection.execute(f"SELECT {columns} FROM {table} WHERE {where}", values).fetchall()

    def _lines_after(self, after: int) -> list[Any]:
        statement = f"SELECT {COLUMNS} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        lines: list[Any] = []
        n_bytes = 0
        try:
            with self._writing, closing(self._connection.execute(statement, (after, log.AT_ONCE))) as found:
                for line in found:
                    n_bytes += sum(len(each) for each in line if isinstance(each, (str, bytes)))
                    if lines and n_bytes > log.BYTES_AT_ONCE:
                        break
                    lines.append(line)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        return lines

    def _commit(self, lines: list[tuple[Any, ...]]) -> None:
        with self._writing:
            self._check_place()
            if len(lines) <= _AT_ONCE and not self._connection.in_transaction:
                self._insert(lines)  # a single statement is a transaction
            else:
                with self._transaction():
                    for start in range(0, len(lines), _AT_ONCE):
                        self._insert(lines[start : start + _AT_ONCE])
            self._note_end(lines)

    def _insert(self, lines: list[tuple[Any, ...]]) -> None:
        if lines:
            values = ", ".join([_ONE] * len(lines))
            self._connection.execute(_INSERT + values, [*chain.from_iterable(lines)])

    def _check_place(self) -> None:
        """Raise if the file was removed or replaced: writes to it would be lost."""
        try:
            found = os.stat(self.path)
            is_there = (found.st_dev, found.st_ino) == self._place
        except OSError:
            is_there = False
        if not is_there:
            raise sqlite3.OperationalError("the file was removed or replaced while it was open")

    def check_owned(self) -> None:
        """Check that the file still exists and ends with the last event of this process."""
        with self._writing:
            try:
                self._check_place()
            except sqlite3.Error as error:
                raise LogError(f"{self.path}: {error}; put it back, or open it again") from error
            ((last,),) = self._find("coalesce(max(seq), 0)", "events")
            with self._lining:
                written = self._line.lines[0][0] - 1 if self._line.lines else self.last_seq
            if last > written:
                self._fall_behind()

    def _holds(self, batch: Batch) -> bool:
        with suppress(LogError):
            if batch.lines and self._find("1", "events", "seq = ?", batch.lines[-1][0]):
                self._note_end(batch.lines)
                return True
        return False

    def _put(self, table: str, row: tuple[Any, ...]) -> None:
        self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def _delete(self, table: str, where: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(f"DELETE FROM {table} WHERE {where}", rows)

    def _wipe(self) -> None:
        """Overwrite deleted data with zeros, compact the file, and truncate the journal."""
        self._connection.execute("VACUUM")
        is_busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise sqlite3.OperationalError("another program reads it, and what was erased is still in its journal")

    def check(self) -> None:
        """Raise LogError if a page or an index is damaged."""
        try:
            with self._writing:
                found = self._connection.execute("PRAGMA integrity_check(1)").fetchall()
        except sqlite3.Error as error:
            found = [(str(error),)]
        if found != [("ok",)]:
            raise LogError(f"{self.path}: is damaged ({found[0][0]}); put a backup in its place")

    def _let_go(self) -> None:
        self._connection.close()
        self._mark.close()
        self._owner.let_go()


def _warn(message: str) -> None:
    warnings.warn(message, LostJournalWarning, stacklevel=5)
