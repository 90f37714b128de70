"""Lets every call that SQLite makes to the operating system go wrong, one after the other. Run as a script.

SQLite's own table of system calls is made for this; it is reached through ctypes. The script is a process of its own,
so that it can be forked and killed at a call, and so that nobody else's SQLite is touched.
"""

import _sqlite3
import ctypes
import errno
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onebit.experiments import Cell, DamageWarning, Result, Spec, Store, StoreError

KILLED, UNEXPECTED = 9, 1
CELLS = [Cell(Spec("paper_weak", {"rounds": 10}), Spec("Banditron"), seed, "1") for seed in range(4)]
RESULTS = {cell.key: Result({"mistakes": cell.seed}, {"curve": np.arange(2000) / (7 + cell.seed)}) for cell in CELLS}

_INT, _POINTER, _SIZE, _OFFSET = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
_SIZED = ctypes.c_ssize_t
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "open": (_INT, ctypes.c_char_p, _INT, _INT),
    "read": (_SIZED, _INT, _POINTER, _SIZE),
    "pread": (_SIZED, _INT, _POINTER, _SIZE, _OFFSET),
    "pread64": (_SIZED, _INT, _POINTER, _SIZE, _OFFSET),
    "write": (_SIZED, _INT, _POINTER, _SIZE),
    "pwrite": (_SIZED, _INT, _POINTER, _SIZE, _OFFSET),
    "pwrite64": (_SIZED, _INT, _POINTER, _SIZE, _OFFSET),
    "ftruncate": (_INT, _INT, _OFFSET),
    "fstat": (_INT, _INT, _POINTER),
    "unlink": (_INT, ctypes.c_char_p),
    "close": (_INT, _INT),
}


class _VFS(ctypes.Structure):
    _fields_ = (
        ("version", _INT),
        ("file_size", _INT),
        ("longest_path", _INT),
        ("next", _POINTER),
        ("name", ctypes.c_char_p),
        ("data", _POINTER),
        ("others", _POINTER * 13),
        ("set_call", ctypes.CFUNCTYPE(_INT, _POINTER, ctypes.c_char_p, _POINTER)),
        ("get_call", ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p)),
        ("next_call", _POINTER),
    )


class Faults:
    """Counts SQLite's system calls; at one of them something happens."""

    def __init__(self, at: int = 0, go_wrong: Callable[[], int] | None = None) -> None:
        self.at, self.go_wrong, self.n_calls = at, go_wrong, 0
        self.names: set[str] = set()

    def _wrapped(self, name: str, function: Any) -> Callable[..., int]:
        def call(*args: Any) -> int:
            self.n_calls += 1
            self.names.add(name)
            if self.n_calls == self.at and self.go_wrong is not None:
                ctypes.set_errno(self.go_wrong())
                return -1
            answer: int = function(*args)
            return answer

        return call

    @contextmanager
    def injected(self) -> Iterator[None]:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_VFS)
        vfs = library.sqlite3_vfs_find(None)
        kept, before = [], {}
        for name, signature in _SIGNATURES.items():
            address = vfs.contents.get_call(vfs, name.encode())
            if address:
                kind = ctypes.CFUNCTYPE(*signature, use_errno=True)
                kept.append(kind(self._wrapped(name, kind(address))))
                before[name] = address
                vfs.contents.set_call(vfs, name.encode(), ctypes.cast(kept[-1], _POINTER))
        try:
            yield
        finally:
            for name, address in before.items():
                vfs.contents.set_call(vfs, name.encode(), address)


def put_all(path: Path) -> None:
    with Store(path) as store:
        for cell in CELLS:
            store.put(cell, RESULTS[cell.key], seconds=1.0)


def begin_new(path: Path) -> set[str]:
    return set()


def begin_with_two(path: Path) -> set[str]:
    with Store(path) as store:
        for cell in CELLS[:2]:
            store.put(cell, RESULTS[cell.key], seconds=1.0)
    return {cell.key for cell in CELLS[:2]}


def check(path: Path, kept: set[str]) -> None:
    """Nothing that was there is lost, nothing is wrong, and what is missing can be put."""
    with Store(path) as store:
        found = store.finished(RESULTS, warn=True)
        assert found >= kept, (found, kept)
        for cell in CELLS:
            assert cell.key not in found or store.get(cell) == RESULTS[cell.key]
    put_all(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        n_rows, n_times = connection.execute(
            "SELECT (SELECT count(*) FROM results), (SELECT count(*) FROM timings)"
        ).fetchone()
    assert n_rows == n_times == len(CELLS)


def attempt(path: Path, faults: Faults) -> str:
    try:
        with faults.injected():
            put_all(path)
    except StoreError as error:
        said = str(error)
    else:
        return "done"
    assert said.startswith(f"{path}: "), said
    assert said.endswith("."), said
    return "refused"


def crash(path: Path, at: int) -> str:
    def die() -> int:
        os._exit(KILLED)

    child = os.fork()
    if child == 0:
        try:
            attempt(path, Faults(at, die))
            os._exit(0)
        finally:
            os._exit(UNEXPECTED)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED)
    return "killed" if status == KILLED else "done"


def every_call(folder: Path, stride: int, begin: Callable[[Path], set[str]]) -> dict[str, int]:
    (folder / "begun").mkdir()
    kept = begin(folder / "begun" / "arena.sqlite")
    path = folder / "arena.sqlite"
    faults = Faults()
    shutil.copytree(folder / "begun", folder, dirs_exist_ok=True)
    assert attempt(path, faults) == "done"
    assert len(faults.names) > 5, faults.names
    counts: dict[str, int] = {}
    for at in range(1, faults.n_calls + 1, stride):
        for fault in ("EIO", "ENOSPC", "kill"):
            for left in folder.glob("arena.sqlite*"):
                left.unlink()
            shutil.copytree(folder / "begun", folder, dirs_exist_ok=True)
            fail = partial(getattr, errno, fault, 0)
            outcome = crash(path, at) if fault == "kill" else attempt(path, Faults(at, fail))
            check(path, kept)
            counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def main() -> None:
    stride = int(sys.argv[1])
    warnings.filterwarnings("error", ".*wrong checksum", DamageWarning)
    # In memory, where a sync costs nothing, if there is such a place.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    counts = {}
    for begin in (begin_new, begin_with_two):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            counts[begin.__name__] = every_call(Path(folder), stride, begin)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
