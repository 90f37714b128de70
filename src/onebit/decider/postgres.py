"""The logs of many deciders in one PostgreSQL database, for several machines.

**One owner.** Whoever has a decider open holds an advisory lock on its number, which goes with the session. The server
ends a session that has been silent for `PATIENCE_SECONDS`, so the lock of a machine that is dead or cut off comes free;
an owner says something sooner than that.

**Fencing.** To own a decider is also to have its last epoch, a number that grows with every owner. Each append is one
statement that writes only if epoch and last event are still what the writer thinks. So whatever a former owner sends,
however late, the database refuses it.

**A commit that was cut off.** The owner connects anew, takes the lock and the next epoch, and looks whether the events
are there: nobody can write them any more. Only if the database stays out of reach is that not known, and said.
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
"""How often an owner says something."""
_REGAIN_SECONDS = 5.0  # how long an owner whose connection broke tries to come back before it gives up for now
_PAUSE_SECONDS = 0.1
_REFUSED_SECONDS = 1.0  # how long a database that could not be reached is not asked again
_TRIES = 3
_LONG_SECONDS = 600.0  # what snapshots and sweeping may take
_LONG_MESSAGES = "SET LOCAL idle_in_transaction_session_timeout = '60s'"  # a snapshot may be on its way so long
_VACUUM = "VACUUM onebit.events, onebit.snapshots, onebit.snapshot_parts"
_BEGINNING = "SELECT pg_advisory_xact_lock(%s, 0)"  # others begin too
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
        The database: ``postgresql://user@host/database``. Libpq's other ways to give a password (its file, PGPASSWORD)
        work too.
    name : str
        Which decider: a text of at most 200 characters.
    about : dict, optional
        What a new log says about itself; without it the decider must be there.
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
        """Process and start of the session that was last ours."""
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
            self.forget_line()
        except BaseException:
            self._let_go()
            raise
        self._heart = threading.Thread(target=self._beat, name=f"onebit {name}", daemon=True)
        self._heart.start()

    # Opening.

    def _begin(self, connection: Connection, about: dict[str, Any] | None) -> int:
        """Return the number of the decider, a new one's if there is none."""
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
            told = [(made[0], *row) for row in about_rows(about)]
            connection.cursor().executemany("INSERT INTO onebit.about VALUES (%s, %s, %s)", told)

    # Owning.

    def _take(self) -> None:
        """Take the lock in a new session, and the next epoch."""
        connection = self._place.connect()
        try:
            if self._session is not None:  # our own, which the server may still think alive
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
            self._fall_behind()  # before anybody is let in
        self._connection, self.refusal, self._epoch = connection, None, claimed[0]
        self.compacted = 0 if compacted is None else int(compacted[0])

    def _owned(self, connection: Connection) -> OwnedError:
        find = "SELECT pid, host, since, epoch FROM onebit.deciders WHERE id = %s"
        *who, epoch = one_row(connection, find, [self._id])
        owner = named(who)
        return OwnedError(f"{self.path}: is open in {owner}; one process at a time", owner, epoch)

    def check_owned(self) -> None:
        """Ask the server for nothing: without a connection the decider must be regained first."""
        self._find("seq", "snapshots", "FALSE")

    def _drop(self) -> None:
        """Close a connection that is of no use any more."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _regain(self) -> None:
        """Own the decider again after a connection broke; raises LogError if that cannot be now."""
        if self._stop.is_set():
            raise LogError(f"{self.path}: is closed; open it again")
        self._drop()
        now = time.monotonic()
        if self.refusal is not None and now < self._refused + _REFUSED_SECONDS:
            raise self.refusal.with_traceback(None)  # one that is raised often would remember every time
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
        """Return the connection that has the lock."""
        if self._connection is None:
            if self._is_changing:
                raise psycopg.OperationalError("the connection is gone")
            self._regain()
        assert self._connection is not None
        return self._connection

    def _beat(self) -> None:
        """Say something from time to time: the server must not think that we are gone."""
        while not self._stop.wait(BEAT_SECONDS):
            if self._writing.acquire(blocking=False):  # otherwise somebody speaks
                try:
                    with suppress(LogError):
                        self.check_owned()
                finally:
                    self._writing.release()

    # What `DatabaseLog` asks for.

    def _rows(self, columns: str, table: str, where: str, values: tuple[Any, ...]) -> list[Any]:
        if any(isinstance(value, str) and "\0" in value for value in values):
            raise ValueError("PostgreSQL keeps no text with the character NUL; leave it out")
        return self._tried_again(lambda connection: selected(connection, self._id, columns, table, where, values))

    def _lines_after(self, after: int) -> list[Any]:
        return lines_after(self._find, after)

    def _tried_again(self, work: Callable[[Connection], _Value]) -> _Value:
        """Do what changes nothing; once more if the connection turns out to be broken."""
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
        """Use the connection, and let go of it if it is broken then."""
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
                    raise  # it is the database that said no
                if self._are_written(lines):
                    return
                if n_tries == _TRIES:
                    raise
            else:
                if n_written == len(lines):
                    return
                # Somebody else has an epoch, or the log is not what it was.
                self._drop()
                self._fall_behind()
        assert self._broken is not None
        raise self._broken

    def _insert(self, connection: Connection, lines: list[tuple[Any, ...]]) -> int:
        first, last = lines[0][0], lines[-1][0]
        columns = [list(column) for column in zip(*lines, strict=True)]
        return connection.execute(_INSERT, [last, self._id, self._epoch, first - 1, *columns]).rowcount

    def _are_written(self, lines: list[tuple[Any, ...]]) -> bool:
        """Say whether events are there whose commit was cut off; from now on nobody can write them."""
        try:
            self._regain()
            return self._are_there(self._owning(), lines)
        except OwnedError as error:
            if error.epoch != self._epoch:  # of the next owner: ours are refused
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
        """Let the server sweep what was deleted out of its tables; its journal, replicas and backups are its own."""
        with _patient(self._owning()):
            self._used(lambda connection: connection.execute(_VACUUM))

    def forget_line(self) -> None:
        """Forget what could not be written, and go on from what the database holds."""
        with self._writing:
            find, epoch, said = "SELECT last_seq FROM onebit.deciders WHERE id = %s", -1, 0
            while epoch != self._epoch:  # else the connection broke meanwhile
                self._owning()
                epoch = self._epoch
                super().forget_line()
                (said,) = self._tried_again(lambda connection: one_row(connection, find, [self._id]))
            if said != self.last_seq:
                raise LogError(f"{self.path}: event {said} is missing; put a backup in its place")

    def _let_go(self) -> None:
        self._stop.set()
        if self._connection is not None:
            with suppress(psycopg.Error):
                nobody = "UPDATE onebit.deciders SET pid = NULL, host = NULL, since = NULL WHERE id = %s AND epoch = %s"
                self._connection.execute(nobody, [self._id, self._epoch])
                # Now: the server may notice later that the connection is gone, and the next owner would be refused.
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._drop()


@contextmanager
def _patient(connection: Connection) -> Iterator[None]:
    """Let statements take long."""
    before, connection.patience = connection.patience, _LONG_SECONDS
    try:
        yield
    finally:
        connection.patience = before
