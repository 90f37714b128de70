"""The event log of a decider in one SQLite file, owned by one process at a time.

Two small files lie beside it. ``.owner`` is locked by the process that has the log open, and names it. ``.last`` holds
the number and checksum of the last acknowledged event: if SQLite's journal is truncated, damaged or deleted, SQLite
silently drops the events after the damage, and comparing the end of the log with ``.last`` detects the loss.
"""

import errno
import json
import os
import sqlite3
import stat
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from onebit.decider.log import Batch, EventLog
from onebit.decider.tickets import LogError, LostEventsError, LostJournalWarning, OwnedError, Owner
from onebit.files import replace_file

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock is all there is
    fcntl = None  # type: ignore[assignment]

_APPLICATION_ID = 0x31424445  # "1BDE": marks a SQLite file as a decider's
_HEADER, _APPLICATION = 100, slice(68, 72)  # bytes of a SQLite file, and those of them that tell its application
_SCHEMA = [
    *EventLog.SCHEMA.format(schema="", own="", key="", integer="INTEGER", blob="BLOB").split(";"),
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {EventLog.FORMAT_VERSION}",
]
_END = """
SELECT (SELECT max(seq) FROM events), (SELECT value FROM about WHERE name = 'compacted'),
    (SELECT checksum FROM events WHERE seq = ?)
"""
_AT_ONCE = 64  # maximum events of one INSERT. Each statement releases and reacquires the GIL
_CONNECTING: dict[str, Any] = {"timeout": 5.0, "isolation_level": None, "check_same_thread": False}
_CONNECTING |= {"cached_statements": 2 * _AT_ONCE}
_INSERT = f"INSERT INTO events ({EventLog.COLUMNS}) VALUES "
_ONE = "(?, ?, ?, ?, ?, ?, ?, ?)"
_LONGEST_FILE = 1000  # bytes of the owner file, and of the mark
# A symbolic link is an error: a user who may write in the folder could point it to another file.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_PLAIN = _NO_LINK | getattr(os, "O_NONBLOCK", 0)  # opening a pipe would block


class SQLiteLog(EventLog):
    """A log in a SQLite file; with `about`, the settings of a decider, it may be a new one.

    With `accept_loss` it is opened even if acknowledged events are missing; `lost` then holds their numbers.
    """

    errors = sqlite3.Error
    event_bytes = "length(CAST(body AS BLOB)) + coalesce(length(row), 0)"
    remedy = "Make room or mend the disk: the decider goes on from what the file holds"

    def __init__(
        self, path: "str | os.PathLike[str]", about: dict[str, Any] | None = None, accept_loss: bool = False
    ) -> None:
        super().__init__(Path(path))
        self._file = Path(path).resolve()  # SQLite too puts its other files beside the target of a link
        self._journal = _beside(self._file, "-wal")
        self._mark = _MarkFile(self._file)
        if about is None and self._is_empty() and (accept_loss or not os.path.lexists(self._mark.path)):
            raise LogError(f"{self.path}: there is no decider; give its classes to begin one")
        self._owner = _OwnerFile(self._file)
        with ExitStack() as undo:
            undo.callback(self._owner.release)
            self._check_mark(accept_loss)  # after locking: the last owner may have written it
            try:
                if about is not None:  # SQLite would let others read a new file, and keep it open
                    with suppress(FileExistsError):
                        self._file.touch(0o600, exist_ok=False)
                self._connection: sqlite3.Connection = sqlite3.connect(self.path, **_CONNECTING)
            except (sqlite3.Error, OSError) as error:
                remedy = "is its folder there, may you write?"
                raise LogError(f"{self.path}: cannot be opened ({error}); {remedy}") from error
            undo.callback(self._connection.close)
            self._begin(about)
            undo.pop_all()

    @staticmethod
    def is_at(path: str) -> bool:
        """Return whether a file is a log."""
        try:
            with open(path, "rb") as file:
                header = file.read(_HEADER)
        except OSError:
            return False
        # Of a new one that is open, or was when its process died, the header is still in the journal.
        is_marked = int.from_bytes(header[_APPLICATION]) == _APPLICATION_ID or Path(f"{path}-wal").exists()
        return header.startswith(b"SQLite format 3\0") and is_marked

    # Detection of lost events.

    def _check_mark(self, accept_loss: bool) -> None:
        """Raise LostEventsError if the log ends before its mark; warn if the mark cannot tell."""
        mark, name, journal = None, self._mark.path.name, self._journal.name
        try:
            mark = self._mark.read()
        except ValueError:
            lost = "it does not tell any more whether the decider beside it is whole"
            warnings.warn(f"{self._mark.path}: is damaged: {lost}", LostJournalWarning, stacklevel=5)
        except OSError as error:
            raise LogError(f"{self._mark.path}: cannot be read ({error}); move it away") from error
        if mark is None:
            if self._owner.was_left and (self._journal.exists() or not self._is_empty()):
                lost = f"{name}, which tells how far it went, is not there or damaged: what came last may be lost"
                remedy = f"If you have it, or a better {journal}, put it back before anything else is written"
                message = f"{self.path}: the process that had it open did not close it, and {lost}. {remedy}"
                warnings.warn(message, LostJournalWarning, stacklevel=5)
            return
        last, event = self._end(mark.seq)
        if last >= mark.seq and event in (None, mark.checksum):
            return
        if accept_loss:
            self.lost = {"acknowledged": mark.seq, "found": last}
            return
        what, why = f"event {mark.seq} and others", "is this another decider, or a backup that went on elsewhere"
        if last < mark.seq:
            what = f"{mark.seq - last} events ({last + 1} to {mark.seq})" if last else f"all {mark.seq} events"
            why = f"is {self._file.name} or {journal} damaged or missing, or is this an old backup"
        raise LostEventsError(
            f"{self.path}: {what} that were acknowledged are not in it; {why}? Put the right files back: nothing was "
            f"changed. To go on without those events, open it once with accept_loss=True (onebit accept-loss "
            f"{self.path}); to begin another decider here, remove {name}"
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
                if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone():
                    return 0, None
                last, compacted, event = connection.execute(_END, (seq,)).fetchone()
                return max(int(last or 0), int(compacted or 0)), event
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._unusable(error) from error

    # Opening.

    def _is_empty(self) -> bool:
        return not self.path.exists() or not self.path.stat().st_size

    def _begin(self, about: dict[str, Any] | None) -> None:
        """Create the tables of a new log, or check that there is one; the file of another program is not touched."""
        try:
            is_empty = not self._fetch("SELECT 1 FROM sqlite_master")
            ((application,),) = self._fetch("PRAGMA application_id")
            if is_empty and about is None:
                lost = f"{self.path}-wal is lost, which has all that came last: put it back, or a backup"
                problem = "there is no decider in it; give its classes to begin one"
                raise LogError(f"{self.path}: {problem}. If there was one, {lost}")
            if not is_empty and application != _APPLICATION_ID:
                raise LogError(f"{self.path}: is another program's SQLite file; choose another path")
            # SQLite copies the permissions of the first to files that it makes. Changed by name: closing another
            # descriptor of a file would let go of the locks that this process has on it.
            for path in (_beside(self._file, suffix) for suffix in ("", "-wal", "-shm")):
                with suppress(FileNotFoundError, PermissionError):  # another user's file is theirs to close
                    if stat.S_ISREG(mode := path.lstat().st_mode):
                        os.chmod(path, mode & 0o700)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "cell_size_check = ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            if is_empty:
                with self._transaction():
                    for statement in _SCHEMA:
                        self._connection.execute(statement)
                    self._connection.executemany("INSERT INTO about VALUES (?, ?)", self.about_rows(about or {}))
            ((version,),) = self._fetch("PRAGMA user_version")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._unusable(error) from error
        self._check_version(version)
        self.discard_pending()
        self._identity = _identity(self.path)

    def _unusable(self, error: Exception) -> LogError:
        return LogError(
            f"{self.path}: cannot be used as a log ({error}). If it is read-only, let it be written; if it was "
            "copied while a decider had it open, copy it again after close(); if it is damaged, put a backup there"
        )

    # Implementation of `EventLog`.

    def _fetch(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _change(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(statement, rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._access:
            try:
                self._roll_back()
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._roll_back()
                raise

    def _roll_back(self) -> None:  # for example after a second Ctrl-C
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def discard_pending(self) -> None:
        """Discard events that could not be written, and continue from the last event in the file."""
        with self._access:
            self._roll_back()
            super().discard_pending()

    def _commit(self, lines: list[tuple[Any, ...]]) -> None:
        with self._access:
            self._check_in_place()
            # A single statement is a transaction.
            is_single = len(lines) <= _AT_ONCE and not self._connection.in_transaction
            with nullcontext() if is_single else self._transaction():
                for start in range(0, len(lines), _AT_ONCE):
                    some = lines[start : start + _AT_ONCE]
                    self._connection.execute(_INSERT + ", ".join([_ONE] * len(some)), [*chain.from_iterable(some)])
            self._acknowledge(lines)

    def _acknowledge(self, lines: list[tuple[Any, ...]]) -> None:
        with suppress(OSError):  # the events are in the log, and the next write records a later mark
            self._mark.write(_Mark(lines[-1][0], lines[-1][-1]))

    def _check_in_place(self) -> None:
        """Raise if the file was removed or replaced: writes to it would be lost."""
        if _identity(self.path) != self._identity:
            raise sqlite3.OperationalError("the file was removed or replaced while it was open")

    def check_owned(self) -> None:
        """Check that the file still exists and ends with the last event of this process."""
        with self._access:
            try:
                self._check_in_place()
            except sqlite3.Error as error:
                raise LogError(f"{self.path}: {error}; put it back, or open it again") from error
            ((last,),) = self._select("coalesce(max(seq), 0)", "events")
            with self._queueing:
                written = self._pending.lines[0][0] - 1 if self._pending.lines else self.last_seq
            if last > written:
                self._fall_behind()

    def _holds(self, batch: Batch) -> bool:
        with suppress(LogError):
            if batch.lines and self._select("1", "events", "seq = ?", batch.lines[-1][0]):
                self._acknowledge(batch.lines)
                return True
        return False

    def _wipe(self) -> None:
        """Overwrite deleted data with zeros, compact the file, and truncate the journal."""
        self._connection.execute("VACUUM")
        is_busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise sqlite3.OperationalError("another program reads it, and what was erased is still in its journal")

    def check(self) -> None:
        """Raise LogError if a page or an index is damaged."""
        with self._access:
            try:
                ((found,),) = self._fetch("PRAGMA integrity_check(1)")
            except sqlite3.Error as error:
                found = error
        if found != "ok":
            raise self._damaged(f"is damaged ({found})")

    def _release(self) -> None:
        self._connection.close()
        self._owner.release()


def _is_in_place(opened: int, path: Path) -> bool:
    """Return whether a file that is open still lies where it was: it may have been removed, or replaced."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(opened))
    except FileNotFoundError:
        return False


class _OwnerFile:
    """The lock on a log file: a locked file beside it that names the owner; released when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = _beside(path, ".owner")
        self._file: int | None = None
        self.was_left = self._path.exists()  # whether the last owner did not close the log
        if fcntl is not None:
            try:
                self._claim(path)
            except OSError as error:
                is_link = self._path.is_symlink()
                remedy = f"{self._path.name} is a link: remove it" if is_link else "is its folder there, may you write?"
                raise LogError(f"{path}: cannot be locked ({error}); {remedy}") from error

    def _claim(self, path: Path) -> None:
        while self._file is None:
            opened = os.open(self._path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The last owner may have removed it between our opening and locking it.
                if _is_in_place(opened, self._path):
                    found = os.fstat(opened)
                    is_empty = not os.pread(opened, _LONGEST_FILE, 0).strip(b"\0")
                    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or not (is_empty or _owner_in(opened)):
                        raise LogError(f"{self._path}: is no file of a decider's; move it away")
                    os.fchmod(opened, 0o600)
                    os.ftruncate(opened, 0)
                    os.pwrite(opened, json.dumps(Owner.here()._asdict()).encode(), 0)
                    self._file = opened
            except BlockingIOError:
                owner = str(_owner_in(opened) or "another process")
                raise OwnedError(f"{path}: is open in {owner}; one process at a time", owner) from None
            finally:
                if self._file is None:
                    os.close(opened)

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            if _is_in_place(self._file, self._path):  # it may have been removed, and replaced by another process
                self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


class _Mark(NamedTuple):
    """The last acknowledged event, with its checksum in the log."""

    seq: int
    checksum: bytes


class _MarkFile:
    """The file with a log's mark: one line of fixed length, within a sector of the disk, which is written whole.

    It is not synced with every event: it survives a crash of the process, and after a power failure it may be behind
    the log, never ahead of it.
    """

    def __init__(self, log: Path) -> None:
        self.path = _beside(log, ".last")
        self._is_ours = False  # it was read or written, and may be written over

    def read(self) -> _Mark | None:
        """Return the mark, None if there is no file; raises ValueError if damaged, OSError for a link or pipe."""
        try:
            with open(self.path, "rb", opener=_open_plain) as file:
                line = file.read(_LONGEST_FILE)
            seq, event, _ = line.decode().split()
            mark = _Mark(int(seq), bytes.fromhex(event))
            if line != _mark_line(mark):
                raise ValueError("it is damaged")
        except FileNotFoundError:
            return None
        self._is_ours = True
        return mark

    def write(self, mark: _Mark) -> None:
        """Write a new mark, to a new file if the present one is damaged or was removed."""
        if self._is_ours:
            with suppress(FileNotFoundError):
                opened = os.open(self.path, os.O_WRONLY | _PLAIN)
                try:
                    os.write(opened, _mark_line(mark))
                finally:
                    os.close(opened)
                return
        replace_file(self.path, _mark_line(mark), mode=0o600)
        self._is_ours = True


def _mark_line(mark: _Mark) -> bytes:
    text = f"{mark.seq:020d} {mark.checksum.hex()}"
    return f"{text} {blake2b(text.encode(), digest_size=8).hexdigest()}\n".encode()


def _open_plain(path: str, flags: int) -> int:
    opened = os.open(path, flags | _PLAIN)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "is no plain file")
    return opened


def _owner_in(opened: int) -> Owner | None:
    """Return the owner named in an owner file, or None if it has another format."""
    with suppress(ValueError, TypeError):
        return Owner(**json.loads(os.pread(opened, _LONGEST_FILE, 0)))
    return None


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and number of a file, which tell whether it was replaced; None if there is none."""
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None
