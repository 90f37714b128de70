"""The log of a decider in one SQLite file, which one process owns at a time."""

import json
import os
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from onebit.live import log
from onebit.live.log import (
    COLUMNS,
    FORMAT_VERSION,
    Batch,
    DatabaseLog,
    LogError,
    OwnedError,
    Owner,
    about_rows,
    check_version,
)

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock is all there is
    fcntl = None  # type: ignore[assignment]

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
_AT_ONCE = 64
"""The most events of one statement. In each, Python gives other threads their turn, and waits for its own again."""
_INSERT = f"INSERT INTO events ({COLUMNS}) VALUES "
_ONE = "(?, ?, ?, ?, ?, ?, ?, ?)"


class LostJournalWarning(UserWarning):
    """The journal of a file that was not closed is gone, and with it what came last."""


class SQLiteLog(DatabaseLog):
    """A log in a SQLite file.

    Parameters
    ----------
    path : path-like
        The file; its folder must exist.
    about : dict, optional
        What a new log says about itself; without it the file must be there.
    """

    errors = sqlite3.Error
    size = "length(CAST(body AS BLOB)) + coalesce(length(row), 0)"
    remedy = "Make room or mend the disk: the decider goes on from what the file holds"

    def __init__(self, path: "str | os.PathLike[str]", about: dict[str, Any] | None = None) -> None:
        super().__init__(Path(path))
        if about is None and self._is_empty():
            raise LogError(f"{self.path}: there is no decider; give its classes to begin one")
        self._owner = _OwnerFile(self.path)
        journal = self.path.with_name(self.path.name + "-wal")
        if self._owner.was_left and not self._is_empty() and not journal.exists():
            warnings.warn(
                f"{self.path}: the process that had it open did not close it, and {journal.name} is not there: what "
                "came last may be lost. If you have that file put it back, before anything else is written",
                LostJournalWarning,
                stacklevel=4,
            )
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
            return sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=5.0, cached_statements=2 * _AT_ONCE
            )
        except sqlite3.Error as error:
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
            raise LogError(
                f"{self.path}: cannot be used as a log ({error}). If it is read-only, let it be written; if it was "
                "copied while a decider had it open, copy it again after close(); if it is damaged, put a backup there"
            ) from error
        if is_empty:
            raise LogError(
                f"{self.path}: there is no decider in it; give its classes to begin one. If there was one, "
                f"{self.path}-wal is lost, which has all that came last: put it back, or a backup"
            )
        if application != APPLICATION_ID:
            raise LogError(f"{self.path}: is another program's SQLite file; choose another path")
        check_version(self.path, version)
        self.forget_line()
        found = os.stat(self.path)
        self._place = found.st_dev, found.st_ino

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
        """Undo what was begun and not finished, also by one whom a second Ctrl-C kept from undoing it."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def forget_line(self) -> None:
        """Forget what could not be written, and go on from what the file holds."""
        with self._writing:
            self._roll_back()
            super().forget_line()

    # What `DatabaseLog` asks for.

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
                self._insert(lines)  # one statement is a transaction of its own
                return
            with self._transaction():
                for start in range(0, len(lines), _AT_ONCE):
                    self._insert(lines[start : start + _AT_ONCE])

    def _insert(self, lines: list[tuple[Any, ...]]) -> None:
        if lines:
            values = ", ".join([_ONE] * len(lines))
            self._connection.execute(_INSERT + values, [*chain.from_iterable(lines)])

    def _check_place(self) -> None:
        """Raise unless the file is still where it was: what is written to one that was removed is lost."""
        try:
            found = os.stat(self.path)
            is_there = (found.st_dev, found.st_ino) == self._place
        except OSError:
            is_there = False
        if not is_there:
            raise sqlite3.OperationalError("the file was removed or replaced while it was open")

    def _holds(self, batch: Batch) -> bool:
        with suppress(LogError):
            return bool(batch.lines and self._find("1", "events", "seq = ?", batch.lines[-1][0]))
        return False

    def _put(self, table: str, row: tuple[Any, ...]) -> None:
        self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def _delete(self, table: str, where: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(f"DELETE FROM {table} WHERE {where}", rows)

    def _wipe(self) -> None:
        """Write what was deleted over with zeros; the pages of the old file go too, and what lies in the journal."""
        self._connection.execute("VACUUM")
        is_busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise sqlite3.OperationalError("another program reads it, and what was erased is still in its journal")

    def check(self) -> None:
        """Raise LogError if a page or an index is damaged."""
        with self._writing:
            found = self._connection.execute("PRAGMA integrity_check(1)").fetchall()
        if found != [("ok",)]:
            raise LogError(f"{self.path}: is damaged ({found[0][0]}); put a backup in its place")

    def _let_go(self) -> None:
        self._connection.close()
        self._owner.let_go()


class _OwnerFile:
    """The lock on a log, in a file beside it that names the owner; it goes with the process, however that ends."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".owner")
        self._file: int | None = None
        self.was_left = self._path.exists()
        """Whether the last owner did not let go by itself."""
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
                        os.ftruncate(opened, 0)
                        os.write(opened, json.dumps(Owner.here()._asdict()).encode())
                        return opened
            except BlockingIOError:
                named = self._named(opened)
                os.close(opened)
                raise OwnedError(f"{path}: is open in {named}; one process at a time", named) from None
            except BaseException:
                os.close(opened)
                raise
            os.close(opened)

    @staticmethod
    def _named(opened: int) -> str:
        with suppress(ValueError, TypeError):
            return str(Owner(**json.loads(os.pread(opened, 1000, 0))))
        return "another process"

    def let_go(self) -> None:
        """Let others own the log."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None
