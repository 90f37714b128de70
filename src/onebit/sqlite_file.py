"""A SQLite file of ours: known by its application id and format, written in transactions, checked for damage."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_HEADER_BYTES = 100  # of a SQLite file; its format and application are in it
DAMAGE_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises; Python cannot decode SQLite's message about a table whose name is damaged."""


def foreign_content(path: Path, application_id: int, version: int) -> str:
    """Return what a file holds instead of a database of this kind; nothing if it is one, empty, or not there.

    It reads the first bytes only: SQLite never touches a file that is not ours.
    """
    if not path.exists():
        return ""
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    # SQLite creates an empty file before its first write, and a kill at that moment leaves it.
    if not header:
        return ""
    if len(header) < _HEADER_BYTES or not header.startswith(b"SQLite format 3\0"):
        return "a file that is not a (whole) SQLite database"
    found_version, found_id = int.from_bytes(header[60:64], "big"), int.from_bytes(header[68:72], "big")
    if found_id != application_id:
        return f"a SQLite database of another program (id {found_id:#x})"
    return "" if found_version == version else f"format {found_version}, where this onebit reads {version}"


def create_tables(connection: sqlite3.Connection, schema: Iterable[str], application_id: int, version: int) -> None:
    """Make the tables of an empty database, and mark it as ours."""
    for statement in schema:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA application_id = {application_id}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write all that is written inside, or nothing."""
    # IMMEDIATE takes the write lock at once: two readers that both turn writer would fail instead of waiting.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls back by itself after some errors, a full disk among them, and when it is closed.
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def value_of(connection: sqlite3.Connection, query: str) -> Any:
    """Return the first value of the first row."""
    return connection.execute(query).fetchone()[0]


def damage_of(connection: sqlite3.Connection, path: Path) -> str | None:
    """Return what is wrong with the file as such, whatever its rows hold; None if nothing is."""
    try:
        problem: str = value_of(connection, "PRAGMA integrity_check(1)")
    except DAMAGE_ERRORS as error:
        if not is_damage(error):
            raise
        return str(error)
    if problem != "ok":
        return problem.replace("\n", " ")
    # SQLite reads a page that is cut off as if it ended in zeros.
    n_bytes = value_of(connection, "PRAGMA page_count") * value_of(connection, "PRAGMA page_size")
    # Only now: another process may add to the file meanwhile, and none takes from it.
    return "its end is missing" if path.stat().st_size < n_bytes else None


def error_code(error: Exception) -> int:
    """Return SQLite's primary code of an error, 0 if it has none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF  # the rest is the extended code


def is_damage(error: Exception) -> bool:
    """Return whether the file is damaged, as opposed to temporarily unreadable."""
    return isinstance(error, UnicodeDecodeError) or error_code(error) == sqlite3.SQLITE_CORRUPT
