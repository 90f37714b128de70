"""The logs of many deciders in one PostgreSQL database, for several machines.

**One owner.** The process that has a decider open holds an advisory lock on its id, bound to its session. The server
ends sessions that are idle for `PATIENCE_SECONDS`, which frees the lock of a dead or disconnected machine; an owner
sends a heartbeat more often.

**Fencing.** Each owner gets the next epoch of the decider. An append is one statement that writes only if the epoch and
the last event are those of the writer. So the database refuses late writes of a former owner.

**Interrupted commits.** The owner reconnects, takes the lock and the next epoch, and checks whether the events were
written; the old session can no longer write them. If the database stays unreachable, `LogUnsureError` is raised.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from onebit.decider.log import COLUMNS, DatabaseLog, about_rows
from onebit.decider.log_errors import LogError, LogUnsureError, LogWriteError, OwnedError, UnreachableError
from onebit.decider.owner import Owner
from onebit.decider.postgres_place import (
    EVENT_SIZE,
    LOCKS,
    PARTS,
    SCHEMA,
    Connection,
    Place,
    check_decider_name,
    has_table,
    lines_after,
    named,
    number_of,
    one_row,
    selected,
    version_of,
    words,
)

BEAT_SECONDS = 2.5
"""Interval of the owner's heartbeat."""
_REGAIN_SECONDS = 5.0  # how long an owner tries to reconnect
_PAUSE_SECONDS = 0.1
_REFUSED_SECONDS = 1.0  # pause before trying an unreachable database again
_TRIES = 3
_LONG_SECONDS = 600.0  # timeout of snapshots and VACUUM
_LONG_MESSAGES = "SET LOCAL idle_in_transaction_session_timeout = '60s'"  # sending a snapshot may take so long
_VACUUM = "VACUUM onebit.events, onebit.snapshots, onebit.snapshot_parts"
_BEGINNING = "SELECT pg_advisory_xact_lock(%s, 0)"  # other processes may create tables at the same time
_CLAIM = """
UPDATE onebit.deciders SET epoch = epoch + 1, pid = %s, host = %s, since = %s WHERE id = %s RETURNING epoch, last_seq
"""
_INSERT = f"""
WITH owned AS (
    UPDATE onebit.deciders SET last_seq = %s WHERE id = %s AND epoch = %s AND last_seq = %s RETURNING id
)
INSERT INTO onebit.events (decider, {COLUMNS})
SELECT owned.id, line.* FROM owned, unnest(
    %s::bigint[], %s::float8[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::text[], %s::bytea[]
) AS line
"""

_Value = TypeVar("_Value")


class PostgresLog(DatabaseLog):
    """A log among others in a PostgreSQL database.

    Parameters
    ----------
    url : str
        The database: ``postgresql://user@host/database``. Passwords from libpq's password file or PGPASSWORD are used
        too.
    name : str
        Name of the decider: at most 200 characters.
    about : dict, optional
        Metadata of a new log; without it the decider must exist.
    """

    errors, size = psycopg.Error, EVENT_SIZE
    remedy = "See what ails the database: the decider goes on from what it holds"

    def __init__(self, url: str, name: str, about: dict[str, Any] | None = None) -> None:
        check_decider_name(name)
        self._place = Place.of_url(url)
        super().__init__(f"{self._place.shown} {name!r}")
        self._name = name
        self._connection: Connection | None = None
        self._session: tuple[int, Any] | None = None
        """Process id and start time of our latest session on the server."""
        self._id, self._epoch = 0, -1
        self._is_changing = False
        self._refused = 0.0
        self._stop = threading.Event()
        try:
            with self._place.connect() as connection:
                self._id = self._begin(connection, about)
            self._take()
        except psycopg.Error as error:
            raise self._unreachable(error) from None
        try:
            self.discard_pending()
        except BaseException:
            self._let_go()
            raise
        self._heart = threading.Thread(target=self._beat, name=f"onebit {name}", daemon=True)
        self._heart.start()

    # Opening.

    def _begin(self, connection: Connection, about: dict[str, Any] | None) -> int:
        """Return the id of the decider, creating it if necessary."""
        try:
            number = number_of(connection, self.path, self._name)
            if number is None and about is not None:
                with connection.transaction():
                    connection.execute(_BEGINNING, [LOCKS])
                    if not version_of(connection):
                        connection.execute(SCHEMA)
                    self._create(connection, about)
                number = number_of(connection, self.path, self._name)
            if number is not None and not has_table(connection, "snapshot_parts"):
                with connection.transaction():
                    connection.execute(_BEGINNING, [LOCKS])
                    connection.execute(PARTS)
        except psycopg.Error as error:
            if connection.info.transaction_status == TransactionStatus.UNKNOWN:
                raise
            raise LogError(
                f"{self.path}: cannot be used as a log ({words(error)}); may you create a schema and write there?"
            ) from None
        if number is None:
            raise LogError(f"{self.path}: there is no decider; give its classes to begin one")
        return number

    def _create(self, connection: Connection, about: dict[str, Any]) -> None:
        made = connection.execute(
            "INSERT INTO onebit.deciders (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id", [self._name]
        ).fetchone()
        if made is not None:
            rows = [(made[0], *row) for row in about_rows(about)]
            connection.cursor().executemany("INSERT INTO onebit.about VALUES (%s, %s, %s)", rows)

    # Owning.

    def _take(self) -> None:
        """Take the lock in a new session, and the next epoch."""
        connection = self._place.connect()
        try:
            if self._session is not None:  # end our old session, which the server may consider alive
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s",
                    self._session,
                )
            (is_free,) = one_row(connection, "SELECT pg_try_advisory_lock(%s, %s)", [LOCKS, self._id])
            if not is_free:
                raise self._owned(connection)
            mine = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
            self._session = connection.execute(mine).fetchone()
            claimed = connection.execute(_CLAIM, [*Owner.here(), self._id]).fetchone()
            if claimed is None:
                raise LogError(f"{self.path}: is gone from the database; put a backup in its place")
            about = "SELECT value FROM onebit.about WHERE decider = %s AND name = 'compacted'"
            compacted = connection.execute(about, [self._id]).fetchone()
        except BaseException:
            connection.close()
            raise
        is_first, is_ours = self._epoch < 0, claimed[0] == self._epoch + 1
        if not (is_first or is_ours):
            self._fall_behind()  # before the connection can be used
        self._connection, self.refusal, self._epoch = connection, None, claimed[0]
        self.compacted = 0 if compacted is None else int(compacted[0])

    def _owned(self, connection: Connection) -> OwnedError:
        find = "SELECT pid, host, since, epoch FROM onebit.deciders WHERE id = %s"
        *who, epoch = one_row(connection, find, [self._id])
        owner = named(who)
        return OwnedError(f"{self.path}: is open in {owner}; one process at a time", owner, epoch)

    def check_owned(self) -> None:
        """Run an empty query, which regains ownership if the connection is lost."""
        self._find("seq", "snapshots", "FALSE")

    def _drop(self) -> None:
        """Close a broken connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _regain(self) -> None:
        """Regain ownership after the connection broke, or raise LogError."""
        if self._stop.is_set():
            raise LogError(f"{self.path}: is closed; open it again")
        self._drop()
        now = time.monotonic()
        if self.refusal is not None and now < self._refused + _REFUSED_SECONDS:
            raise self.refusal.with_traceback(None)  # a traceback would grow with every raise
        give_up = now + (_REGAIN_SECONDS if self.refusal is None else 0.0)
        while True:
            try:
                self._take()
                return
            except (LogError, psycopg.Error) as error:
                refusal = error if isinstance(error, LogError) else self._unreachable(error)
            is_another = isinstance(refusal, OwnedError) and refusal.epoch != self._epoch
            if is_another or time.monotonic() >= give_up:
                self.refusal, self._refused = refusal, time.monotonic()
                raise refusal
            time.sleep(_PAUSE_SECONDS)

    def _unreachable(self, error: psycopg.Error) -> UnreachableError:
        return UnreachableError(f"{self.path}: cannot be reached ({words(error)}); it is tried again")

    def _owning(self) -> Connection:
        """Return the connection that holds the lock, regaining ownership if necessary."""
        if self._connection is None:
            if self._is_changing:
                raise psycopg.OperationalError("the connection is gone")
            self._regain()
        assert self._connection is not None
        return self._connection

    def _beat(self) -> None:
        """Send heartbeats, so that the server does not end the session."""
        while not self._stop.wait(BEAT_SECONDS):
            if self._writing.acquire(blocking=False):  # otherwise the connection is in use
                try:
                    with suppress(LogError):
                        self.check_owned()
                finally:
                    self._writing.release()

    # Implementation of `DatabaseLog`.

    def _rows(self, columns: str, table: str, where: str, values: tuple[Any, ...]) -> list[Any]:
        if any(isinstance(value, str) and "\0" in value for value in values):
            raise ValueError("PostgreSQL keeps no text with the character NUL; leave it out")
        return self._tried_again(lambda connection: selected(connection, self._id, columns, table, where, values))

    def _lines_after(self, after: int) -> list[Any]:
        return lines_after(self._find, after)

    def _tried_again(self, work: Callable[[Connection], _Value]) -> _Value:
        """Run a read-only query; retry once if the connection is broken."""
        try:
            return self._used(work)
        except psycopg.Error as error:
            if self._connection is not None or self._is_changing:
                raise
            self._regain()
            try:
                return self._used(work)
            except psycopg.Error as again:
                raise (again if self._connection is not None else self._unreachable(error)) from None

    def _used(self, work: Callable[[Connection], _Value]) -> _Value:
        """Use the connection, and drop it if it is broken afterwards."""
        connection = self._owning()
        try:
            return work(connection)
        except BaseException:
            if connection.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.INERROR):
                self._drop()
            raise

    def _commit(self, lines: list[tuple[Any, ...]]) -> None:
        if not lines:
            return
        for n_tries in range(1, _TRIES + 1):
            try:
                self._owning()
            except LogError as error:
                raise LogWriteError(f"{error}; nothing of this happened") from None
            if self._broken is not None:
                raise self._broken
            try:
                n_written = self._used(lambda connection: self._insert(connection, lines))
            except psycopg.Error:
                if self._connection is not None:
                    raise  # the database refused the statement
                if self._are_written(lines):
                    return
                if n_tries == _TRIES:
                    raise
            else:
                if n_written == len(lines):
                    return
                # Another process has taken a later epoch, or has written events.
                self._drop()
                self._fall_behind()
        assert self._broken is not None
        raise self._broken

    def _insert(self, connection: Connection, lines: list[tuple[Any, ...]]) -> int:
        first, last = lines[0][0], lines[-1][0]
        columns = [list(column) for column in zip(*lines, strict=True)]
        return connection.execute(_INSERT, [last, self._id, self._epoch, first - 1, *columns]).rowcount

    def _are_written(self, lines: list[tuple[Any, ...]]) -> bool:
        """Return whether the events of an interrupted commit were written; fences the old session."""
        try:
            self._regain()
            return self._are_there(self._owning(), lines)
        except OwnedError as error:
            if error.epoch != self._epoch:  # there is a next owner: our writes are refused
                with suppress(LogError, psycopg.Error), self._place.connect() as connection:
                    if not self._are_there(connection, lines):
                        raise LogWriteError(f"{error}; nothing of this happened") from None
                    self._fall_behind()
                    return True
        except (LogError, psycopg.Error):
            pass
        raise self._unsure()

    def _are_there(self, connection: Connection, lines: list[tuple[Any, ...]]) -> bool:
        statement = "SELECT checksum FROM onebit.events WHERE decider = %s AND seq = ANY(%s::bigint[]) ORDER BY seq"
        found = connection.execute(statement, [self._id, [line[0] for line in lines]]).fetchall()
        return [bytes(each) for (each,) in found] == [line[-1] for line in lines]

    def _unsure(self) -> LogUnsureError:
        return LogUnsureError(
            f"{self.path}: the connection broke, and nobody knows yet whether this was written; ask again, a guess "
            "with the same key: the decider goes on from what the database holds"
        )

    def _unwritten(self, error: BaseException) -> LogWriteError:
        return super()._unwritten(error) if isinstance(error, Exception) else self._unsure()  # Ctrl-C

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._writing:
            connection, is_ours = self._owning(), False
            self._is_changing = True
            try:
                with _patient(connection), connection.transaction():
                    connection.execute(_LONG_MESSAGES)
                    fence = "SELECT 1 FROM onebit.deciders WHERE id = %s AND epoch = %s FOR UPDATE"
                    is_ours = connection.execute(fence, [self._id, self._epoch]).fetchone() is not None
                    if not is_ours:
                        raise psycopg.OperationalError("another process has the decider")
                    yield
            finally:
                self._is_changing = False
                if not is_ours or connection.info.transaction_status != TransactionStatus.IDLE:
                    self._drop()

    def _put(self, table: str, row: tuple[Any, ...]) -> None:
        statement = f"INSERT INTO onebit.{table} VALUES (%s{', %s' * len(row)})"
        self._owning().execute(statement, [self._id, *row])

    def _delete(self, table: str, where: str, rows: list[tuple[Any, ...]]) -> None:
        statement = f"DELETE FROM onebit.{table} WHERE decider = %s AND {where.replace('?', '%s')}"
        self._owning().cursor().executemany(statement, [(self._id, *row) for row in rows])

    def _wipe(self) -> None:
        """Vacuum the tables; the server's write-ahead log, replicas and backups are not affected."""
        with _patient(self._owning()):
            self._used(lambda connection: connection.execute(_VACUUM))

    def discard_pending(self) -> None:
        """Discard events that could not be written, and continue from the last event in the database."""
        with self._writing:
            find, epoch, noted = "SELECT last_seq FROM onebit.deciders WHERE id = %s", -1, 0
            while epoch != self._epoch:  # repeat if ownership was regained meanwhile
                self._owning()
                epoch = self._epoch
                super().discard_pending()
                (noted,) = self._tried_again(lambda connection: one_row(connection, find, [self._id]))
            if noted != self.last_seq:
                raise LogError(f"{self.path}: event {noted} is missing; put a backup in its place")

    def _let_go(self) -> None:
        self._stop.set()
        if self._connection is not None:
            with suppress(psycopg.Error):
                release = (
                    "UPDATE onebit.deciders SET pid = NULL, host = NULL, since = NULL WHERE id = %s AND epoch = %s"
                )
                self._connection.execute(release, [self._id, self._epoch])
                # Explicitly: the server may notice the closed connection late, and would refuse the next owner.
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._drop()


@contextmanager
def _patient(connection: Connection) -> Iterator[None]:
    """Context with a longer timeout for statements."""
    before, connection.patience = connection.patience, _LONG_SECONDS
    try:
        yield
    finally:
        connection.patience = before
