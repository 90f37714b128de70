"""A PostgreSQL database with deciders: tables, connections and owners."""

from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from onebit.decider import log
from onebit.decider.log import COLUMNS, FORMAT_VERSION, check_version
from onebit.decider.log_errors import LogError, UnreachableError
from onebit.decider.owner import Owner

PATIENCE_SECONDS = 10.0
"""Timeout for a silent server, and for idle sessions of owners."""
LOCKS = 0x31424445
"""The first key of advisory locks ("1BDE"); the second is the decider's id."""
EVENT_SIZE = "octet_length(body) + coalesce(octet_length(row), 0)"
"""SQL expression for the bytes of an event."""
_OLDEST_SERVER = 14_00_00
_LONGEST_NAME = 200
SCHEMA = f"""
CREATE SCHEMA onebit;
CREATE TABLE onebit.format (version INTEGER NOT NULL);
INSERT INTO onebit.format VALUES ({FORMAT_VERSION});
CREATE TABLE onebit.deciders (
    id INTEGER PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name TEXT NOT NULL UNIQUE,
    epoch BIGINT NOT NULL DEFAULT 0,
    last_seq BIGINT NOT NULL DEFAULT 0,
    pid INTEGER,
    host TEXT,
    since TEXT
) WITH (fillfactor = 50);
CREATE TABLE onebit.about (
    decider INTEGER NOT NULL REFERENCES onebit.deciders,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (decider, name)
);
CREATE TABLE onebit.events (
    decider INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    time DOUBLE PRECISION NOT NULL,
    kind TEXT NOT NULL,
    ticket TEXT,
    body TEXT NOT NULL,
    row BYTEA,
    key TEXT,
    checksum BYTEA NOT NULL,
    PRIMARY KEY (decider, seq)
);
CREATE INDEX events_of_ticket ON onebit.events (decider, ticket) WHERE ticket IS NOT NULL;
CREATE INDEX events_corrected ON onebit.events (decider, kind) WHERE kind = 'corrected';
CREATE UNIQUE INDEX events_by_key ON onebit.events (decider, key) WHERE key IS NOT NULL;
CREATE TABLE onebit.snapshots (
    decider INTEGER NOT NULL REFERENCES onebit.deciders,
    seq BIGINT NOT NULL,
    content BYTEA NOT NULL,
    checksum BYTEA NOT NULL,
    PRIMARY KEY (decider, seq)
);
"""
PARTS = """
CREATE TABLE IF NOT EXISTS onebit.snapshot_parts (
    decider INTEGER NOT NULL REFERENCES onebit.deciders,
    seq BIGINT NOT NULL,
    part INTEGER NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (decider, seq, part)
)
"""
"""Created if absent, as in databases of older versions."""
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
_REACHING = {
    "application_name": "onebit",
    "connect_timeout": 3,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": int(1000 * PATIENCE_SECONDS),
}


class Connection(psycopg.Connection[Any]):
    """A connection with a timeout for statements."""

    patience = PATIENCE_SECONDS
    """Timeout of a statement in seconds."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for the server as psycopg does, with a timeout."""
        return super().wait(gen, interval, self.patience if timeout is None else timeout)


class Place(NamedTuple):
    """A database, with a name for messages that contains no password."""

    url: str
    """The URL, which may contain a password."""
    shown: str
    """The name in error messages."""

    @classmethod
    def of_url(cls, url: str) -> "Place":
        """Return the database at a URL, or raise ValueError for an invalid one."""
        try:
            parts = conninfo_to_dict(url)
            # Otherwise a part of a password could be parsed as host, port or database, which are shown.
            where, _, database = url.partition("?")[0].partition("//")[2].partition("/")
            ports = str(parts.get("port") or "")
            is_plain = where.count("@") < 2 and "@" not in database and set(ports) <= set("0123456789,")
        except psycopg.Error:  # its message may contain the password
            is_plain = False
        if not is_plain:
            raise ValueError(
                "the URL of the database must be one such as postgresql://user@host:5432/database; special characters "
                "of a password are written with a percent sign"
            )
        host, port = (str(parts.get(name) or "") for name in ("host", "port"))
        where = "" if host.startswith("/") else host + (f":{port}" if port else "")
        return cls(url, f"postgresql://{where}/{parts.get('dbname') or ''}")

    def connect(self) -> Connection:
        """Return a new connection in autocommit mode."""
        given = conninfo_to_dict(self.url)
        settings = _REACHING | {name: value for name, value in given.items() if value} | {"client_encoding": "UTF8"}
        try:
            connection = Connection.connect(**settings, autocommit=True)  # type: ignore[arg-type]
        except psycopg.Error as error:
            raise UnreachableError(
                f"{self.shown}: cannot be reached ({words(error)}); is it running, may you use it?"
            ) from None
        try:
            if connection.info.server_version < _OLDEST_SERVER:
                raise LogError(f"{self.shown}: is older than PostgreSQL {_OLDEST_SERVER // 10_000}; update it")
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise LogError(f"{self.shown}: keeps texts as {encoding}; create a database with ENCODING 'UTF8'")
            connection.execute(_SESSION.format(PATIENCE_SECONDS))
            connection.patience = PATIENCE_SECONDS
        except psycopg.Error as error:
            connection.close()
            raise UnreachableError(f"{self.shown}: does not answer ({words(error)}); try again") from None
        except BaseException:
            connection.close()
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
                if not version_of(connection):
                    return {}
                found = connection.execute(statement, [LOCKS]).fetchall()
        except psycopg.Error as error:
            raise UnreachableError(f"{self.shown}: cannot be read ({words(error)})") from None
        return {name: named(owner) if is_owned else None for name, *owner, is_owned in found}


def named(owner: list[Any]) -> str:
    """Format an owner for messages."""
    return "another process" if owner[0] is None else str(Owner(*owner))


def one_row(connection: Connection, statement: Any, values: list[Any]) -> tuple[Any, ...]:
    """Return the first row of a statement that always returns one."""
    found = connection.execute(statement, values).fetchone()
    assert found is not None
    return tuple(found)


def version_of(connection: Connection) -> int:
    """Return the format version of the tables, 0 if there are none."""
    return (
        int(one_row(connection, "SELECT version FROM onebit.format", [])[0]) if has_table(connection, "format") else 0
    )


def has_table(connection: Connection, name: str) -> bool:
    """Return whether a table exists."""
    # Not to_regclass: within a transaction its result may be outdated.
    find = "SELECT count(*) FROM pg_tables WHERE schemaname = 'onebit' AND tablename = %s"
    return bool(one_row(connection, find, [name])[0])


def check_decider_name(name: Any) -> None:
    """Raise ValueError for an invalid name of a decider."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"name must be a text of 1 to {_LONGEST_NAME} printable characters; got {name!r:.80}")


def number_of(connection: Connection, path: str, name: str) -> int | None:
    """Return the id of a decider, None if there is none; `path` is used in errors."""
    version = version_of(connection)
    if not version:
        return None
    check_version(path, version)
    found = connection.execute("SELECT id FROM onebit.deciders WHERE name = %s", [name]).fetchone()
    return None if found is None else int(found[0])


def selected(
    connection: Connection, decider: int, columns: str, table: str, where: str, values: tuple[Any, ...]
) -> list[Any]:
    """Select rows of a decider's table by a condition with a question mark for each value."""
    statement = f"SELECT {columns} FROM onebit.{table} WHERE decider = %s AND {where.replace('?', '%s')}"
    return connection.execute(statement, [decider, *values]).fetchall()


def lines_after(find: Callable[..., list[Any]], after: int) -> list[Any]:
    """Return the next stored events by the log's `_find`; queries their sizes first, to limit memory."""
    up_to, n_bytes = after, 0
    for seq, size in find(f"seq, {EVENT_SIZE}", "events", "seq > ? ORDER BY seq LIMIT ?", after, log.AT_ONCE):
        n_bytes += size
        if up_to > after and n_bytes > log.BYTES_AT_ONCE:
            break
        up_to = seq
    return find(COLUMNS, "events", "seq > ? AND seq <= ? ORDER BY seq", after, up_to)


def words(error: BaseException) -> str:
    """Return an error message on one line."""
    return " ".join(str(error).split()) or type(error).__name__
