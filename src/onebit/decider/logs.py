"""Where logs are: a file, or a database that keeps many."""

import importlib.util
import os
from typing import Any
from urllib.parse import parse_qs

from onebit.decider.log import DatabaseLog, LogReader
from onebit.decider.sqlite import SQLiteLog

_SCHEMES = ("postgresql://", "postgres://")


def is_database(path: Any) -> bool:
    """Say whether a log is to be in a database, and not in a file."""
    return isinstance(path, str) and path.startswith(_SCHEMES)


def has_password(url: str) -> bool:
    """Say whether the URL of a database tells a password, in the places where libpq looks for one.

    >>> has_password("postgresql://app@db.example:5432/decisions"), has_password("postgresql://app:se#cret@db/decisions")
    (False, True)
    """
    user, at, _ = url.partition("//")[2].partition("/")[0].partition("@")
    return bool(at and ":" in user) or any(name.endswith("password") for name in parse_qs(url.partition("?")[2]))


def open_log(
    path: "str | os.PathLike[str]", name: str | None, about: dict[str, Any] | None, accept_loss: bool = False
) -> DatabaseLog:
    """Open a log, a new one if there is none.

    Parameters
    ----------
    path : str or path-like
        A file, or the URL of a database.
    name : str
        Which one of the database.
    about : dict, optional
        What a new log says about itself; without it there must be one.
    accept_loss : bool
        Whether to go on with a file that has lost events.
    """
    within = _within_database(path, name)
    if within is None:
        return SQLiteLog(path, about, accept_loss)
    if accept_loss:
        raise ValueError("accept_loss=True is for deciders in files; a database keeps its own journal, leave it out")
    from onebit.decider.postgres import PostgresLog

    return PostgresLog(str(path), within, about)


def open_to_read(path: "str | os.PathLike[str]", name: str | None) -> LogReader:
    """Open a log that is there, for who writes nothing; one in a database may be open elsewhere.

    Parameters
    ----------
    path : str or path-like
        A file, which must not be open elsewhere, or the URL of a database.
    name : str
        Which one of the database.
    """
    within = _within_database(path, name)
    if within is None:
        return SQLiteLog(path)
    from onebit.decider.postgres_reader import PostgresReader

    return PostgresReader(str(path), within)


def _within_database(path: "str | os.PathLike[str]", name: str | None) -> str | None:
    """Return which decider of a database is meant, or None for a file."""
    if not is_database(path):
        if name is not None:
            raise ValueError(f"name={name!r:.80} is for deciders in a database; a file has one, leave it out")
        return None
    if name is None:
        raise ValueError('a database has many deciders: say which, name="routing"')
    check_database_is_supported()
    return name


def check_database_is_supported() -> None:
    """Raise RuntimeError if what speaks to databases is not installed; it is an extra."""
    if importlib.util.find_spec("psycopg") is None:
        raise RuntimeError("psycopg must be installed for this: pip install 'onebit[postgres]'")
