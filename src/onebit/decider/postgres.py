"""The logs of many deciders in one PostgreSQL database, for several machines.

**One owner.** The process that has a decider open holds an advisory lock on its id, bound to its session. The server
ends sessions that are idle for `_PATIENCE_SECONDS`, which frees the lock of a dead or disconnected machine; an owner
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
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from onebit.decider.log import EventLog
from onebit.decider.tickets import LogError, LogUnsureError, LogWriteError, OwnedError, Owner, UnreachableError

_PATIENCE_SECONDS = 10.0  # timeout for a silent server, and for idle sessions of owners
_BEAT_SECONDS = 2.5  # interval of the owner's heartbeat
_REGAIN_SECONDS = 5.0  # how long an owner tries to reconnect
_PAUSE_SECONDS = 0.1
_REFUSED_SECONDS = 1.0  # pause before trying an unreachable database again
_TRIES = 3
_LONG_SECONDS = 600.0  # timeout of snapshots and VACUUM
_LOCKS = 0x31424445  # first key of advisory locks ("1BDE"); the second is the decider's id
_OLDEST_SERVER = 14_00_00
_LONGEST_NAME = 200
_SCHEMA = f"""
CREATE SCHEMA onebit;
CREATE TABLE onebit.format (version INTEGER NOT NULL);
INSERT INTO onebit.format VALUES ({EventLog.FORMAT_VERSION});
CREATE TABLE onebit.deciders (
    id INTEGER PRIMARY KEY GENERATED ALWAYS AS IDENTITY, name TEXT NOT NULL UNIQUE,
    epoch BIGINT NOT NULL DEFAULT 0, last_seq BIGINT NOT NULL DEFAULT 0, pid INTEGER, host TEXT, since TEXT
) WITH (fillfactor = 50);
{EventLog.SCHEMA.format(schema="onebit.", own="decider INTEGER NOT NULL,", key="decider,", integer="BIGINT", blob="BYTEA")}
"""  # noqa: E501
_SESSION = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply';
SET idle_session_timeout = '{0}s';
SET idle_in_transaction_session_timeout = '{0}s';
SET tcp_user_timeout = '{0}s';
SET tcp_keepalives_idle = 4;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3;
SET client_min_messages = 'error';
"""
_CONNECTING = {"application_name": "onebit", "connect_timeout": 3, "tcp_user_timeout": int(1000 * _PATIENCE_SECONDS)}
_CONNECTING |= {"keepalives_idle": 4, "keepalives_interval": 2, "keepalives_count": 3}
_CLAIM = """
UPDATE onebit.deciders SET epoch = epoch + 1, pid = %s, host = %s, since = %s WHERE id = %s RETURNING epoch
"""
_INSERT = f"""
WITH owned AS (
    UPDATE onebit.deciders SET last_seq = %s WHERE id = %s AND epoch = %s AND last_seq = %s RETURNING id
)
INSERT INTO onebit.events (decider, {EventLog.COLUMNS})
SELECT owned.id, line.* FROM owned, unnest(
    %s::bigint[], %s::float8[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::text[], %s::bytea[]
) AS line
"""

_Value = TypeVar("_Value")


class _Connection(psycopg.Connection[Any]):
    """A connection with a timeout for statements."""

    patience = _PATIENCE_SECONDS  # timeout of a statement

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for the server, as psycopg does."""
        return super().wait(gen, interval, self.patience if timeout is None else timeout)

    def one(self, statement: Any, *values: Any) -> Any:
        """Return the first row of a statement, None if there is none."""
        return self.execute(statement, values).fetchone()

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Context with a longer timeout."""
        before, self.patience = self.patience, _LONG_SECONDS
        try:
            yield
        finally:
            self.patience = before


class Database:
    """A database with deciders; `shown` is its name in messages, which contains no password."""

    def __init__(self, url: str) -> None:
        try:
            self._parts = conninfo_to_dict(url)
            # Otherwise a part of a password could be parsed as host, port or database, which are shown.
            where, _, database = url.partition("?")[0].partition("//")[2].partition("/")
            ports = str(self._parts.get("port") or "")
            is_plain = where.count("@") < 2 and "@" not in database and set(ports) <= set("0123456789,")
        except psycopg.Error:  # its message may contain the password
            is_plain = False
        if not is_plain:
            example = "postgresql://user@host:5432/database"
            remedy = "special characters of a password are written with a percent sign"
            raise ValueError(f"the URL of the database must be one such as {example}; {remedy}")
        host = str(self._parts.get("host") or "")
        where = "" if host.startswith("/") else host + (f":{ports}" if ports else "")
        self.url, self.shown = url, f"postgresql://{where}/{self._parts.get('dbname') or ''}"

    def connect(self) -> _Connection:
        """Return a new connection in autocommit mode."""
        given = {name: value for name, value in self._parts.items() if value}
        settings: dict[str, Any] = _CONNECTING | given | {"client_encoding": "UTF8"}
        try:
            connection = _Connection.connect(**settings, autocommit=True)
        except psycopg.Error as error:
            remedy = "is it running, may you use it?"
            raise UnreachableError(f"{self.shown}: cannot be reached ({_words(error)}); {remedy}") from None
        try:
            if connection.info.server_version < _OLDEST_SERVER:
                raise LogError(f"{self.shown}: is older than PostgreSQL {_OLDEST_SERVER // 10_000}; update it")
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise LogError(f"{self.shown}: keeps texts as {encoding}; create a database with ENCODING 'UTF8'")
            connection.execute(_SESSION.format(_PATIENCE_SECONDS))
            connection.patience = _PATIENCE_SECONDS
        except BaseException as error:
            connection.close()
            if isinstance(error, psycopg.Error):
                raise UnreachableError(f"{self.shown}: does not answer ({_words(error)}); try again") from None
            raise
        return connection

    def deciders(self) -> dict[str, str | None]:
        """Return the names of all deciders and their owners, None for those that are not open."""
        statement = """
            SELECT name, pid, host, since, id IN (
                SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND granted
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            ) FROM onebit.deciders
        """
        try:
            with self.connect() as connection:
                found = connection.execute(statement, [_LOCKS]).fetchall() if _version_of(connection) else []
        except psycopg.Error as error:
            raise UnreachableError(f"{self.shown}: cannot be read ({_words(error)})") from None
        return {name: _named(owner) if is_owned else None for name, *owner, is_owned in found}


class PostgresLog(EventLog):
    """A log among others in a PostgreSQL database; with `about`, the settings of a decider, it may be a new one."""

    errors, event_bytes = psycopg.Error, "octet_length(body) + coalesce(octet_length(row), 0)"
    remedy = "See what ails the database: the decider goes on from what it holds"
    schema = "onebit."

    def __init__(self, url: str, name: str, about: dict[str, Any] | None = None) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            raise ValueError(f"name must be a text of 1 to {_LONGEST_NAME} printable characters; got {name!r:.80}")
        self._database = Database(url)
        super().__init__(f"{self._database.shown} {name!r}")
        self._connection: _Connection | None = None
        self._session: tuple[int, Any] | None = None  # process id and start time of our latest session on the server
        self._id, self._epoch = 0, -1
        self._is_changing, self._refused = False, 0.0
        self._stop = threading.Event()
        try:
            self._open(name, about)
            self.discard_pending()
        except BaseException as error:
            self._release()
            if isinstance(error, psycopg.Error):
                raise self._unreachable(error) from None
            raise

    def _open(self, name: str, about: dict[str, Any] | None) -> None:
        """Find or create the decider, and become its owner."""
        with self._database.connect() as connection:
            try:
                if not self._exists(connection, name) and about is not None:
                    with connection.transaction():
                        # Other processes may create tables at the same time.
                        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [_LOCKS])
                        if not _version_of(connection):
                            connection.execute(_SCHEMA)
                        create = "INSERT INTO onebit.deciders (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id"
                        if (made := connection.one(create, name)) is not None:
                            rows = [(*made, *row) for row in self.about_rows(about)]
                            connection.cursor().executemany("INSERT INTO onebit.about VALUES (%s, %s, %s)", rows)
                    self._exists(connection, name)
            except psycopg.Error as error:
                if connection.info.transaction_status == TransactionStatus.UNKNOWN:
                    raise
                remedy = "may you create a schema and write there?"
                raise LogError(f"{self.path}: cannot be used as a log ({_words(error)}); {remedy}") from None
        if not self._id:
            raise LogError(f"{self.path}: there is no decider; give its classes to begin one")
        self._take()
        threading.Thread(target=self._beat, name=f"onebit {name}", daemon=True).start()

    def _exists(self, connection: _Connection, name: str) -> bool:
        """Return whether there is a decider of that name, which is this log's from then on."""
        if version := _version_of(connection):
            self._check_version(version)
            (self._id,) = connection.one("SELECT id FROM onebit.deciders WHERE name = %s", name) or (0,)
            self.own = f"decider = {self._id}"
        return self._id > 0

    # Owning.

    def _take(self) -> None:
        """Take the lock in a new session, and the next epoch."""
        connection = self._database.connect()
        try:
            if self._session is not None:  # end our old session, which the server may consider alive
                end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
                connection.execute(end, self._session)
            if connection.one("SELECT pg_try_advisory_lock(%s, %s)", _LOCKS, self._id) != (True,):
                find = "SELECT pid, host, since, epoch FROM onebit.deciders WHERE id = %s"
                *who, epoch = connection.one(find, self._id)
                raise OwnedError(f"{self.path}: is open in {_named(who)}; one process at a time", _named(who), epoch)
            mine = connection.one("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
            claimed = connection.one(_CLAIM, *Owner.here(), self._id)
            if claimed is None:
                raise self._damaged("is gone from the database")
        except BaseException:
            connection.close()
            raise
        if self._epoch >= 0 and claimed[0] != self._epoch + 1:  # there was another owner
            self._fall_behind()  # before the connection can be used
        self._connection, self._session, self.refusal, self._epoch = connection, mine, None, claimed[0]

    def check_owned(self) -> None:
        """Run an empty query, which regains ownership if the connection is lost."""
        self._select("seq", "snapshots", "FALSE")

    def _drop(self) -> None:
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
        return UnreachableError(f"{self.path}: cannot be reached ({_words(error)}); it is tried again")

    def _owning(self) -> _Connection:
        """Return the connection that holds the lock, regaining ownership if necessary."""
        if self._connection is None:
            if self._is_changing:
                raise psycopg.OperationalError("the connection is gone")
            self._regain()
        assert self._connection is not None
        return self._connection

    def _beat(self) -> None:
        """Send heartbeats, so that the server does not end the session."""
        while not self._stop.wait(_BEAT_SECONDS):
            if self._access.acquire(blocking=False):  # otherwise the connection is in use
                try:
                    with suppress(LogError):
                        self.check_owned()
                finally:
                    self._access.release()

    def _run(self, work: Callable[[_Connection], _Value], *, again: bool = False) -> _Value:
        """Use the connection, and drop it if it breaks; with `again`, then regain ownership and retry once."""
        connection = self._owning()
        try:
            return work(connection)
        except BaseException as error:
            if connection.info.transaction_status in (TransactionStatus.IDLE, TransactionStatus.INERROR):
                raise
            self._drop()
            if not again or self._is_changing or not isinstance(error, psycopg.Error):
                raise
        self._regain()
        try:
            return self._run(work)
        except psycopg.Error as error:
            if self._connection is None:
                raise self._unreachable(error) from None
            raise

    # Implementation of `EventLog`.

    def _fetch(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        if any(isinstance(value, str) and "\0" in value for value in values):
            raise ValueError("PostgreSQL keeps no text with the character NUL; leave it out")
        statement = statement.replace("?", "%s")
        return self._run(lambda connection: connection.execute(statement, values).fetchall(), again=True)

    def _change(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        self._owning().cursor().executemany(statement.replace("?", "%s"), rows)

    def _insert(self, table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
        super()._insert(table, f"decider, {columns}", [(self._id, *row) for row in rows])

    def _commit(self, lines: list[tuple[Any, ...]]) -> None:
        for n_tries in range(1, _TRIES + 1):
            try:
                self._owning()
            except LogError as error:
                raise LogWriteError(f"{error}; nothing of this happened") from None
            if self._broken is not None:
                raise self._broken
            try:
                n_written = self._run(lambda connection: self._append(connection, lines))
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

    def _append(self, connection: _Connection, lines: list[tuple[Any, ...]]) -> int:
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
                with suppress(LogError, psycopg.Error), self._database.connect() as connection:
                    if not self._are_there(connection, lines):
                        raise LogWriteError(f"{error}; nothing of this happened") from None
                    self._fall_behind()
                    return True
        except (LogError, psycopg.Error):
            pass
        raise LogUnsureError

    def _are_there(self, connection: _Connection, lines: list[tuple[Any, ...]]) -> bool:
        statement = "SELECT checksum FROM onebit.events WHERE decider = %s AND seq = ANY(%s::bigint[]) ORDER BY seq"
        found = connection.execute(statement, [self._id, [line[0] for line in lines]]).fetchall()
        return [bytes(each) for (each,) in found] == [line[-1] for line in lines]

    def _unwritten(self, error: BaseException) -> LogWriteError:
        if isinstance(error, Exception) and not isinstance(error, LogUnsureError):
            return super()._unwritten(error)
        return LogUnsureError(  # it may be Ctrl-C
            f"{self.path}: the connection broke, and it is not known yet whether this was written; ask again, a guess "
            "with the same key: the decider goes on from what the database holds"
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._access:
            connection, is_ours = self._owning(), False
            self._is_changing = True
            try:
                with connection.patient(), connection.transaction():
                    # Sending a snapshot may take so long.
                    connection.execute("SET LOCAL idle_in_transaction_session_timeout = '60s'")
                    fence = "SELECT 1 FROM onebit.deciders WHERE id = %s AND epoch = %s FOR UPDATE"
                    is_ours = connection.one(fence, self._id, self._epoch) is not None
                    if not is_ours:
                        raise psycopg.OperationalError("another process has the decider")
                    yield
            finally:
                self._is_changing = False
                if not is_ours or connection.info.transaction_status != TransactionStatus.IDLE:
                    self._drop()

    def _wipe(self) -> None:
        """Vacuum the tables; the server's write-ahead log, replicas and backups are not affected."""
        with self._owning().patient():
            self._run(lambda connection: connection.execute("VACUUM onebit.events, onebit.snapshots"))

    def discard_pending(self) -> None:
        """Discard events that could not be written, and continue from the last event in the database."""
        with self._access:
            find, epoch, noted = "SELECT last_seq FROM onebit.deciders WHERE id = %s", None, 0
            while epoch != self._epoch:  # repeat if ownership was regained meanwhile
                self._owning()
                epoch = self._epoch
                super().discard_pending()
                (noted,) = self._run(lambda connection: connection.one(find, self._id), again=True)
            if noted != self.last_seq:
                raise self._damaged(f"event {noted} is missing")

    def _release(self) -> None:
        self._stop.set()
        if self._connection is not None:
            with suppress(psycopg.Error):
                leave = "UPDATE onebit.deciders SET pid = NULL, host = NULL, since = NULL WHERE id = %s AND epoch = %s"
                self._connection.execute(leave, [self._id, self._epoch])
                # Explicitly: the server may notice the closed connection late, and would refuse the next owner.
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._drop()


class PostgresReader(PostgresLog):
    """A log for reading one moment: it takes neither lock nor epoch, but keeps the server from vacuuming."""

    def _open(self, name: str, about: dict[str, Any] | None) -> None:
        connection = self._connection = self._database.connect()
        try:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if not self._exists(connection, name):
                has_tables = _version_of(connection) > 0
                found = connection.execute("SELECT name FROM onebit.deciders ORDER BY name") if has_tables else ()
                names = ", ".join(repr(each) for (each,) in found)
                raise LogError(f"{self.path}: there is no decider of that name; there are {names or 'none':.200}")
        except psycopg.Error as error:
            raise LogError(f"{self.path}: cannot be read ({_words(error)}); may you read there?") from None

    def _regain(self) -> None:
        raise UnreachableError(f"{self.path}: cannot be reached any more; try again")


def _named(owner: list[Any]) -> str:
    return "another process" if owner[0] is None else str(Owner(*owner))


def _version_of(connection: _Connection) -> int:
    """Return the format version of the tables, 0 if there are none."""
    # Not to_regclass: within a transaction its result may be outdated.
    has_tables = connection.one("SELECT 1 FROM pg_tables WHERE schemaname = 'onebit' AND tablename = 'format'")
    return int(connection.one("SELECT version FROM onebit.format")[0]) if has_tables else 0


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
