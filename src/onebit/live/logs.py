"""Where logs are: a file, or a database that keeps many."""

import importlib.util
import os
from typing import Any

from onebit.live.log import DatabaseLog
from onebit.live.sqlite import SQLiteLog

_SCHEMES = ("postgresql://", "postgres://")


def is_database(path: Any) -> bool:
    """Say whether a log is to be in a database, and not in a file."""
    return isinstance(path, str) and path.startswith(_SCHEMES)


def open_log(path: "str | os.PathLike[str]", name: str | None, about: dict[str, Any] | None) -> DatabaseLog:
    """Open a log, a new one if there is none.

    Parameters
    ----------
    path : str or path-like
        A file, or the URL of a database.
    name : str
        Which one of the database.
    about : dict, optional
        What a new log says about itself; without it there must be one.
    """
    if not is_database(path):
        if name is not None:
            raise ValueError(f"name={name!r:.80} is for deciders in a database; a file has one, leave it out")
        return SQLiteLog(path, about)
    if name is None:
        raise ValueError('a database has many deciders: say which, name="routing"')
    check_database_is_supported()
    from onebit.live.postgres import PostgresLog

    return PostgresLog(str(path), name, about)


def check_database_is_supported() -> None:
    """Raise RuntimeError if what speaks to databases is not installed; it is an extra."""
    if importlib.util.find_spec("psycopg") is None:
        raise RuntimeError("psycopg must be installed for this: pip install 'onebit[postgres]'")
