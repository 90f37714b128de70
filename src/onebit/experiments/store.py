"""Cells (a player on a stream with a seed), and the store of their results: one SQLite file per experiment."""

import hashlib
import io
import json
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""Values of settings: anything JSON can represent."""
_APPLICATION_ID = 0x31424954  # "1BIT": marks a SQLite file as ours
_FORMAT_VERSION = 1
_HEADER_BYTES = 100  # of a SQLite file; its format and application are in it
_BUSY_SECONDS = 60.0  # a commit takes milliseconds: a longer wait means that another process hangs
_REMEDY = "Move it away or choose another --out."
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
    f"PRAGMA user_version = {_FORMAT_VERSION}",
    f"PRAGMA application_id = {_APPLICATION_ID}",
)
_BEGIN = "BEGIN IMMEDIATE"  # takes the write lock at once: two readers that both turn writer would fail, not wait
_SELECT = "SELECT key, cell, numbers, arrays, checksum FROM results WHERE key = CAST(? AS TEXT)"
_INSERT = (
    "INSERT OR REPLACE INTO results VALUES (CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?, CAST(? AS TEXT))"
)
_LOCKED = "Another process kept the file locked for a minute. Run again when it is done."
_READ_ONLY = "The file and its folder must be writable. Change that or choose another --out."
_ADVICE = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), _LOCKED),
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM), _READ_ONLY),
    sqlite3.SQLITE_TOOBIG: "A result must fit in a row of SQLite: keep fewer rounds of it, or not what was learned.",
    sqlite3.SQLITE_FULL: "The disk is full. Nothing finished was lost: free some space and run again.",
    sqlite3.SQLITE_IOERR: "The disk could not be read or written. Nothing finished was lost: see to it and run again.",
}

_Row: TypeAlias = tuple[bytes, ...]  # key, cell, numbers, arrays and checksum


@dataclass(frozen=True)
class Spec:
    """A stream or a player by name, with its settings.

    Settings are copied and sorted by name. Two specs are equal when their canonical JSON is:
    ``1`` and ``1.0`` are different settings, the order in which settings are given does not matter.

    Examples
    --------
    >>> Spec("Banditron", {"exploration": 0.02}).label
    'Banditron(exploration=0.02)'
    """

    name: str = field(compare=False)
    settings: Mapping[str, JSON] = field(default_factory=dict, compare=False)
    """Only what survives JSON exactly: None, bool, int, float other than NaN, str, and lists and dicts of these."""
    shown: str = field(default="", compare=False)
    """The name in messages, if that is to be another; it identifies nothing."""
    canonical: str = field(init=False, repr=False)
    """The one JSON text of this spec."""

    def __post_init__(self) -> None:
        try:
            # Through JSON and back: a private copy, equal to what is read from a store.
            text = _canonical({"name": self.name, "settings": dict(self.settings)})
            kept = json.loads(text)["settings"]
        except TypeError:
            kept = None
        if kept != dict(self.settings):
            raise ValueError(
                f"settings of {self.name} must survive JSON exactly: None, bool, int, float other than nan, str, list "
                f"or dict (for NumPy values: .item() or .tolist()); got {dict(self.settings)!r}"
            )
        object.__setattr__(self, "settings", kept)
        object.__setattr__(self, "canonical", text)

    @property
    def label(self) -> str:
        """The spec as one would write it in Python."""
        name = self.shown or self.name
        given = ", ".join(f"{setting}={_as_python(value)}" for setting, value in self.settings.items())
        return f"{name}({given})" if given else name


@dataclass(frozen=True)
class Cell:
    """One player on one stream with one seed, under one version of the code.

    Examples
    --------
    >>> cell = Cell(Spec("paper_weak", {"rounds": 500}), Spec("Banditron", {"exploration": 0.02}), 3, "1")
    >>> cell.label
    'paper_weak(rounds=500) × Banditron(exploration=0.02), seed 3'
    >>> cell.key[:12]
    '7743f6df64cf'
    """

    stream: Spec
    player: Spec
    seed: int
    version: str
    """Anything else that the result depends on; another version is another key."""
    source: Any = field(default=None, compare=False, repr=False)
    """What the play function needs to make the stream, such as the path of its file; no part of the key."""

    @cached_property
    def canonical(self) -> str:
        """The one JSON text of this cell, which its key is the hash of."""
        seed, version = json.dumps(self.seed), json.dumps(self.version)
        texts = f'"player":{self.player.canonical},"seed":{seed},"stream":{self.stream.canonical},"version":{version}'
        return f"{{{texts}}}"

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()

    @property
    def label(self) -> str:
        """A readable name of the cell."""
        return f"{self.stream.label} × {self.player.label}, seed {self.seed}"


def grid(streams: Iterable[Spec], players: Iterable[Spec], seeds: Iterable[int], version: str) -> list[Cell]:
    """Return every player on every stream with every seed: streams outermost, then seeds, then players."""
    players, seeds = list(players), list(seeds)
    return [Cell(stream, player, seed, version) for stream in streams for seed in seeds for player in players]


class StoreError(ValueError):
    """The file cannot be used as a store; the message has the file, the reason and a remedy."""


class DamageWarning(UserWarning):
    """Something in a store was damaged; the message has what, and what was done."""


@dataclass(frozen=True, eq=False)
class Result:
    """The result of one cell. Two results are equal when all their bits are."""

    numbers: dict[str, int | float] = field(default_factory=dict)
    """Plain numbers: mistakes, updates. No times: a result is the same whenever it is played."""
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]] = field(default_factory=dict)
    """Curves and the like, of any dtype but object."""

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
        return self._packed() == other._packed() if isinstance(other, Result) else NotImplemented

    def _packed(self) -> tuple[bytes, bytes]:
        """Return the numbers as JSON, and the arrays: a line of sorted names, then each in NumPy's own format."""
        names = sorted(self.arrays)
        buffer = io.BytesIO()
        buffer.write(json.dumps(names).encode() + b"\n")
        for name in names:
            np.lib.format.write_array(buffer, np.asarray(self.arrays[name], order="C"), allow_pickle=False)
        return _canonical(self.numbers).encode(), buffer.getvalue()


class Played(NamedTuple):
    """The result of a cell."""

    cell: Cell
    result: Result
    seconds: float | None = None
    """How long it took; not part of the result."""


class Store:
    """The results of one experiment, in one SQLite file that many processes may write to at once.

    A file that is not ours, is damaged, or has another format is refused and left as it is; a single damaged row is
    noticed by its checksum. A kill at any moment loses at most the row being written. Use it in a ``with`` statement.

    Parameters
    ----------
    path : str or path
        The file; it is created when there is none, its folder is not.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise StoreError(f"{path}: there is no folder {self.path.parent}. Create it first or choose another --out.")
        try:
            foreign = _foreign_content(self.path)
        except OSError as error:
            raise StoreError(f"{path}: cannot be read ({error.strerror}). {_REMEDY}") from error
        if foreign:
            raise StoreError(f"{path}: found {foreign}. {_REMEDY}")
        with self._explaining(), ExitStack() as opened:
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._connection.text_factory = bytes  # damage may make texts anything but text
            opened.callback(self._connection.close)
            if problem := _damage_of(self._connection, self.path):
                raise StoreError(f"{path}: the file is damaged ({problem}). {_REMEDY}")
            # A rollback journal and not a write-ahead log: the store stays one file that can be copied, works on
            # network folders, and with EXTRA a committed row survives kill -9 and power loss; a commit takes ms.
            self._connection.execute("PRAGMA synchronous = EXTRA")
            if _value_of(self._connection, "PRAGMA application_id") == 0:
                with self._connection:
                    self._connection.execute(_BEGIN)
                    # Another process may have been faster.
                    if _value_of(self._connection, "PRAGMA application_id") == 0:
                        for statement in _SCHEMA:
                            self._connection.execute(statement)
            self._row("")  # fails when the table is not there
            opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def finished(self, keys: Iterable[str], warn: bool = False) -> set[str]:
        """Return which of these keys of cells have a sound result; warn of damaged ones if asked for."""
        with self._explaining():
            rows = [(key, self._row(key)) for key in keys]
        stored = {key: _is_sound(row, key) for key, row in rows if row is not None}
        sound = {key for key, is_sound in stored.items() if is_sound}
        if warn and len(sound) < len(stored):
            message = f"{len(stored) - len(sound)} of {len(stored)} stored results are damaged (wrong checksum)"
            warnings.warn(f"{self.path}: {message} and will be played again", DamageWarning, stacklevel=3)
        return sound

    def put(self, cell: Cell, result: Result, seconds: float | None = None) -> None:
        """Keep the result of a cell, and how many seconds it took; when this returns, it survives a kill.

        Putting the same result again changes nothing, and the first time stays; a different result is an error.
        """
        row = _with_checksum(cell.key.encode(), cell.canonical.encode(), *result._packed())
        with self._explaining(), self._connection:  # all of it, or nothing
            self._connection.execute(_BEGIN)
            stored = self._row(cell.key)
            if stored is not None and stored != row and _is_sound(stored, cell.key):
                raise StoreError(
                    f"{self.path}: a different result of {cell.label} is already stored. A cell must give the same "
                    "result every time it is played; if the code has changed, so must the version, and other kinds of "
                    f"processors may differ in last digits. {_REMEDY}"
                )
            if stored != row:
                self._connection.execute(_INSERT, row)
                if seconds is not None:
                    self._connection.execute("INSERT OR IGNORE INTO timings VALUES (?, ?)", (cell.key, seconds))

    def get(self, cell: Cell) -> Result:
        """Read the result of a cell, bit for bit as it was put."""
        with self._explaining():
            row = self._row(cell.key)
        if row is None:
            raise StoreError(f"{self.path}: no result of {cell.label}; run it first (key {cell.key})")
        if not _is_sound(row, cell.key):
            raise StoreError(
                f"{self.path}: the result of {cell.label} is damaged (wrong checksum). Run again: it is played anew."
            )
        _, _, numbers, arrays, _ = row
        buffer = io.BytesIO(arrays)
        names = json.loads(buffer.readline())
        unpacked = {name: np.lib.format.read_array(buffer, allow_pickle=False) for name in names}
        return Result(json.loads(numbers), unpacked)

    def seconds(self, cell: Cell) -> float | None:
        """Return how long a cell took when it was played first, or None if that was not measured."""
        with self._explaining():
            row = self._connection.execute("SELECT seconds FROM timings WHERE key = ?", (cell.key,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], float) else None

    def _row(self, key: str) -> _Row | None:
        row: _Row | None = self._connection.execute(_SELECT, (key,)).fetchone()
        return row

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn errors of SQLite into a StoreError with a remedy."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary one; the rest is the extended code
            advice = _ADVICE.get(code, f"The file is damaged or cannot be used. {_REMEDY}")
            raise StoreError(f"{self.path}: {error}. {advice}") from error


def _foreign_content(path: Path) -> str:
    """Return what a file holds instead of results; nothing if it holds some, is empty, or not there.

    It reads the first bytes only: SQLite never touches a file that is not ours.
    """
    header = b""
    if path.exists():
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    if not header:  # SQLite creates an empty file before its first write, and a kill at that moment leaves it
        return ""
    if len(header) < _HEADER_BYTES or not header.startswith(b"SQLite format 3\0"):
        return "a file that is not a (whole) SQLite database"
    version, program = int.from_bytes(header[60:64], "big"), int.from_bytes(header[68:72], "big")
    if program != _APPLICATION_ID:
        return f"a SQLite database of another program (id {program:#x})"
    return "" if version == _FORMAT_VERSION else f"format {version}, where this onebit reads {_FORMAT_VERSION}"


def _value_of(connection: sqlite3.Connection, query: str) -> Any:
    return connection.execute(query).fetchone()[0]


def _damage_of(connection: sqlite3.Connection, path: Path) -> str:
    """Return what is wrong with the file as such, whatever its rows hold; nothing if all is well."""
    problem = str(_value_of(connection, "PRAGMA integrity_check(1)"), "utf-8", "replace")
    if problem != "ok":
        return problem.replace("\n", " ")
    # SQLite reads a page that is cut off as if it ended in zeros.
    n_bytes = _value_of(connection, "PRAGMA page_count") * _value_of(connection, "PRAGMA page_size")
    # Only now: another process may add to the file meanwhile, and none takes from it.
    return "its end is missing" if path.stat().st_size < n_bytes else ""


def _is_sound(row: _Row, key: str | None = None) -> bool:
    """Return whether a row is as it was written, under this key."""
    if any(type(part) is not bytes for part in row) or (key is not None and row[0] != key.encode()):
        return False
    return row == _with_checksum(*row[:-1])


def _with_checksum(*contents: bytes) -> _Row:
    digest = hashlib.sha256()
    for part in contents:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return *contents, digest.hexdigest().encode()


def _canonical(value: Any) -> str:
    """Return the one JSON text: names sorted, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _as_python(value: JSON) -> str:
    """Return a value as Python writes it; objects and functions by name, not as `onebit.typed_json` describes them."""
    kind, held = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
    if kind == "made" and isinstance(held, list) and isinstance(held[1], list):
        given = ", ".join(f"{pair[0]}={_as_python(pair[1])}" for pair in held[1] if isinstance(pair, list))
        return f"{str(held[0]).rpartition(':')[2]}({given})"
    if kind == "float":
        return str(held)
    return str(held).rpartition(":")[2] if kind == "import" else repr(value)
