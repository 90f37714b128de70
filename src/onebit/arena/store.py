"""Where results are kept: one SQLite file per arena, one checked row per finished cell."""

import hashlib
import io
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from onebit.arena.grid import Cell

APPLICATION_ID = 0x31424954  # "1BIT": marks a SQLite file as ours
FORMAT_VERSION = 2  # 1 had the seconds among the numbers, and keys of the old code
BUSY_SECONDS = 60.0  # a commit takes milliseconds: who waits longer has met a process that hangs
KEYS_PER_QUERY = 500  # SQLite may allow no more than 999 parameters

_REMEDY = "Move it away or choose another --out."
_HEADER_BYTES = 100  # of a SQLite file; its format and application are in it
_SCHEMA = (
    """
CREATE TABLE results (
    key TEXT PRIMARY KEY NOT NULL,
    cell TEXT NOT NULL,
    numbers TEXT NOT NULL,
    arrays BLOB NOT NULL,
    checksum TEXT NOT NULL
)
""",
    # Apart from the results, which are the same whenever and wherever they are played.
    "CREATE TABLE timings (key TEXT PRIMARY KEY NOT NULL, seconds REAL NOT NULL)",
)


class StoreError(ValueError):
    """The file cannot be used as a store; the message says which, why, and what to do."""


class MissingResultError(KeyError):
    """The store has no result for this cell."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, eq=False)
class Result:
    """What one cell gave. Two results are equal when they are bit for bit.

    Parameters
    ----------
    numbers : dict of str to int or float
        Plain numbers: mistakes, updates. No clocks: a result is the same whenever it is played.
    arrays : dict of str to ndarray
        Curves and the like, of any dtype but object.
    """

    numbers: dict[str, int | float] = field(default_factory=dict)
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, number in self.numbers.items():
            if type(name) is not str or type(number) not in (int, float):
                raise TypeError(
                    f"number {name!r} is {number!r} of type {type(number).__name__}; "
                    "a result needs a plain int or float under a plain str (for NumPy values: .item())"
                )
        for name, array in self.arrays.items():
            if type(name) is not str or type(array) is not np.ndarray or array.dtype.hasobject:
                raise TypeError(
                    f"array {name!r} is {array!r} of type {type(array).__name__}; "
                    "a result needs a plain ndarray that holds no Python objects, under a plain str"
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return _pack_numbers(self.numbers) == _pack_numbers(other.numbers) and (
            _pack_arrays(self.arrays) == _pack_arrays(other.arrays)
        )


class Store:
    """The results of one arena, in one SQLite file that many processes may write to at once.

    A file that is not ours, is damaged, or has another format is refused and left as it is.
    A kill at any moment loses at most the row being written. Use it in a ``with`` statement.

    Parameters
    ----------
    path : str or path
        The file; it is created when there is none, its folder is not.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        _require_ours_or_new(self.path)
        with self._explaining():
            self._connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            with self._explaining():
                self._check_and_initialise()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def finished(self, keys: Iterable[str]) -> set[str]:
        """Which of these keys have a result.

        Parameters
        ----------
        keys : iterable of str
            Keys of cells.
        """
        wanted = list(keys)
        found: set[str] = set()
        with self._explaining():
            for start in range(0, len(wanted), KEYS_PER_QUERY):
                part = wanted[start : start + KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                rows = self._connection.execute(f"SELECT key FROM results WHERE key IN ({marks})", part)
                found.update(key for (key,) in rows)
        return found

    def put(self, cell: Cell, result: Result, seconds: float | None = None) -> None:
        """Keep the result of a cell; when this returns, it survives a kill.

        Parameters
        ----------
        cell : Cell
            What was played.
        result : Result
            What it gave. Putting the same result again changes nothing; a different one is an error.
        seconds : float, optional
            How long it took. The first time stays, so that who plays a cell again changes nothing.
        """
        contents = (cell.canonical, _pack_numbers(result.numbers), _pack_arrays(result.arrays))
        row = (*contents, _checksum(cell.key, *contents))
        with self._explaining(), self._transaction():
            stored = self._row(cell.key)
            if stored is None:
                self._connection.execute("INSERT INTO results VALUES (?, ?, ?, ?, ?)", (cell.key, *row))
                if seconds is not None:
                    self._connection.execute("INSERT INTO timings VALUES (?, ?)", (cell.key, seconds))
            elif stored != row:
                raise StoreError(
                    f"{self.path}: a different result of {cell.label} is already stored. A cell must give the same "
                    f"result every time it is played; if the code has changed, so must the version. {_REMEDY}"
                )

    def get(self, cell: Cell) -> Result:
        """Read the result of a cell, bit for bit as it was put.

        Parameters
        ----------
        cell : Cell
            What was played.
        """
        with self._explaining():
            row = self._row(cell.key)
        if row is None:
            raise MissingResultError(f"{self.path}: no result of {cell.label}; run it first (key {cell.key})")
        description, numbers, arrays, checksum = row
        if checksum != _checksum(cell.key, description, numbers, arrays):
            raise StoreError(f"{self.path}: the result of {cell.label} is damaged (wrong checksum). {_REMEDY}")
        return Result(json.loads(numbers), _unpack_arrays(arrays))

    def seconds(self, cell: Cell) -> float | None:
        """Return how long a cell took when it was played first, or None if that was not measured.

        Parameters
        ----------
        cell : Cell
            What was played.
        """
        with self._explaining():
            row = self._connection.execute("SELECT seconds FROM timings WHERE key = ?", (cell.key,)).fetchone()
        return None if row is None else float(row[0])

    def _check_and_initialise(self) -> None:
        problem = self._value("PRAGMA quick_check(1)")
        if problem != "ok":
            raise StoreError(f"{self.path}: the file is damaged ({problem}). {_REMEDY}")
        # SQLite reads a page that is cut off as if it ended in zeros.
        if self.path.stat().st_size < self._value("PRAGMA page_count") * self._value("PRAGMA page_size"):
            raise StoreError(f"{self.path}: the file is damaged (its end is missing). {_REMEDY}")
        # A rollback journal and not a write-ahead log: the store stays one file that can be copied, works on network
        # folders, and with EXTRA a committed row survives kill -9 and power loss; a cell takes seconds, a commit ms.
        self._connection.execute("PRAGMA synchronous = EXTRA")
        if self._value("PRAGMA application_id") == 0:
            with self._transaction():
                # Another process may have been faster.
                if self._value("PRAGMA application_id") == 0:
                    for table in _SCHEMA:
                        self._connection.execute(table)
                    self._connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
                    self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._row("")  # fails when the table is not there

    def _row(self, key: str) -> tuple[str, str, bytes, str] | None:
        query = "SELECT cell, numbers, arrays, checksum FROM results WHERE key = ?"
        row: tuple[str, str, bytes, str] | None = self._connection.execute(query, (key,)).fetchone()
        return row

    def _value(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE takes the write lock at once: two readers that both turn writer would fail instead of waiting.
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite has already rolled back by itself after some errors, a full disk among them.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn errors of SQLite into a StoreError that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                advice = "The disk is full. Nothing finished was lost: free some space and run again."
            elif code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                advice = f"Another process kept the file locked for {BUSY_SECONDS:.0f} s. Run again when it is done."
            elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
                advice = "The file and its folder must be writable. Change that or choose another --out."
            else:
                advice = f"The file is damaged or cannot be used. {_REMEDY}"
            raise StoreError(f"{self.path}: {error}. {advice}") from error


def _require_ours_or_new(path: Path) -> None:
    """Look at the file's first bytes, so that SQLite never touches a file of somebody else."""
    if not path.parent.is_dir():
        raise StoreError(f"{path}: there is no folder {path.parent}. Create it first or choose another --out.")
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror}). {_REMEDY}") from error
    # SQLite creates an empty file before its first write, and a kill at that moment leaves it.
    if not header:
        return
    if len(header) < _HEADER_BYTES or not header.startswith(b"SQLite format 3\0"):
        raise StoreError(f"{path}: found a file that is not a (whole) SQLite database. {_REMEDY}")
    version, application = int.from_bytes(header[60:64], "big"), int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise StoreError(f"{path}: found a SQLite database of another program (id {application:#x}). {_REMEDY}")
    if version != FORMAT_VERSION:
        raise StoreError(f"{path}: found a store of format {version}, this onebit reads {FORMAT_VERSION}. {_REMEDY}")


def _checksum(key: str, cell: str, numbers: str, arrays: bytes) -> str:
    digest = hashlib.sha256()
    for part in (key.encode(), cell.encode(), numbers.encode(), arrays):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _pack_numbers(numbers: dict[str, int | float]) -> str:
    return json.dumps(numbers, sort_keys=True, separators=(",", ":"))


def _pack_arrays(arrays: dict[str, np.ndarray[Any, np.dtype[Any]]]) -> bytes:
    """Write a line with the sorted names as JSON, then the arrays one after the other in NumPy's own format."""
    names = sorted(arrays)
    buffer = io.BytesIO()
    buffer.write(json.dumps(names).encode() + b"\n")
    for name in names:
        np.lib.format.write_array(buffer, np.asarray(arrays[name], order="C"), allow_pickle=False)
    return buffer.getvalue()


def _unpack_arrays(packed: bytes) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    buffer = io.BytesIO(packed)
    names = json.loads(buffer.readline())
    return {name: np.lib.format.read_array(buffer, allow_pickle=False) for name in names}
