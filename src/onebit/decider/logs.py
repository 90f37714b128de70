"""Open logs in SQLite files or in a PostgreSQL database."""

import importlib.util
import os
from typing import Any
from urllib.parse import parse_qs

from onebit.decider.log import DatabaseLog, LogReader
from onebit.decider.sqlite import SQLiteLog

_SCHEMES = ("postgresql://", "postgres://")


def is_database(path: Any) -> bool:
    """Return whether a path is the URL of a database."""
    return isinstance(path, str) and path.startswith(_SCHEMES)


def has_password(url: str) -> bool:
    """Return whether the URL of a database contains a password, in any form that libpq accepts.

    >>> has_password("postgresql://app@db.example:5432/decisions"), has_password("postgresql://app:se#cret@db/decisions")
    (False, True)
    """
    user, at, _ = url.partition("//")[2].partition("/")[0].partition("@")
    return bool(at and ":" in user) or any(name.endswith("password") for name in parse_qs(url.partition("?")[2]))


def open_log(
    path: "str | os.PathLike[str]", name: str | None, about: dict[str, Any] | None, accept_loss: bool = False
) -> DatabaseLog:
    """Open a log, creating it if necessary.

    Parameters
    ----------
    path : str or path-like
        A file, or the URL of a database.
    name : str
        Name of the decider in the database.
    about : dict, optional
        Metadata of a new log; without it the log must exist.
    accept_loss : bool
        Whether to open a file that has lost events.
    """
    within = _within_database(path, name)
    if within is None:
        return SQLiteLog(path, about, accept_loss)
    if accept_loss:
        raise ValueError("accept_loss=True is for deciders in files; a database keeps its own journal, leave it out")
    from onebit.decider.postgres import PostgresLog

    return PostgresLog(str(path), within, about)


def open_to_read(path: "str | os.PathLike[str]", name: str | None) -> LogReader:
    """Open an existing log for reading; in a database it may be open elsewhere.

    Parameters
    ----------
    path : str or path-like
        A file, which must not be open elsewhere, or the URL of a database.
    name : str
        Name of the decider in the database.
    """
    within = _within_database(path, name)
    if within is None:
        return SQLiteLog(path)
    from onebit.decider.postgres_reader import PostgresReader

    return PostgresReader(str(path), within)


def _within_database(path: "str | os.PathLike[str]", name: str | None) -> str | None:
    """Return the name of the decider in a database, or None for a file."""
    if not is_database(path):
        if name is not None:
            raise ValueError(f"name={name!r:.80} is for deciders in a database; a file has one, leave it out")
        return None
    if name is None:
        raise ValueError('a database has many deciders: say which, name="routing"')
    check_database_is_supported()
    return name


def check_database_is_supported() -> None:
    """Raise RuntimeError if psycopg, an optional dependency, is not installed."""
    if importlib.util.find_spec("psycopg") is None:
        raise RuntimeError("psycopg must be installed for this: pip install 'onebit[postgres]'")
