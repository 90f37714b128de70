"""Reads files in a child process: a crash of the child, or too much memory, becomes one error here.

Polars aborts the process on some damaged Parquet files, and a small file may decompress to gigabytes.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.machine_memory import check_memory, memory
from onebit.streams.reading import Reading

if TYPE_CHECKING:
    import polars as pl

    from onebit.streams.columns import TableColumns

_PROGRAM = Path(__file__).with_name("child_reader_program.py")
_STARTING = 60  # seconds, for a child on a busy machine
_SLOWEST = 1_000_000  # bytes of a Parquet file in a second
_SHOWN = 200  # characters of a child's last output


def read_parquet_in_child(path: Path) -> "pl.DataFrame":
    """Read a Parquet file; raises ValueError if it is damaged, and MemoryError if it takes more than is allowed."""
    import polars as pl

    seconds = _STARTING + path.stat().st_size // _SLOWEST
    with _answer(path, {"kind": "parquet"}, seconds, "is not a whole Parquet file") as (_, folder):
        check_memory((folder / "frame.arrow").stat().st_size)
        return pl.read_ipc((folder / "frame.arrow").read_bytes())  # a mapped file cannot be removed on every system


def read_text_in_child(path: Path, reading: Reading, seconds: int) -> "TableColumns":
    """Read delimited text and understand its columns; raises as `read_parquet_in_child` does.

    Parameters
    ----------
    path : Path
        The file.
    reading : Reading
        The user's reading options.
    seconds : int
        The time limit.
    """
    from onebit.streams.columns import TableColumns

    job = {"kind": "text", "reading": reading._asdict(), "package": str(_PROGRAM.parent.parent)}
    with _answer(path, job, seconds, "cannot be understood") as (answer, folder):
        X, labels = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("X", "labels"))
    return TableColumns(X, labels, answer["where"], answer["about"], tuple(answer["feature_names"]))


@contextmanager
def _answer(path: Path, job: dict[str, Any], seconds: int, damage: str) -> Iterator[tuple[dict[str, Any], Path]]:
    """Run a child, and yield its answer and the folder with its arrays; or raise the error that ended it."""
    n_bytes = int(min(memory(), sys.maxsize // 2))
    with tempfile.TemporaryDirectory(prefix="onebit-") as name:
        folder = Path(name)
        limits = {"bytes": n_bytes, "seconds": seconds}
        described = {**job, **limits, "path": os.path.abspath(path), "sys_path": [*map(os.path.abspath, sys.path)]}
        (folder / "job.json").write_text(json.dumps(described), encoding="utf-8")
        command = [sys.executable, "-P", str(_PROGRAM), str(folder)]  # -P: no imports from the program's folder
        try:
            child = subprocess.run(
                command,
                cwd=folder,  # Python may import from where it is started
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                timeout=seconds + _STARTING,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"{path}: could not be read in {seconds} s; the file may be damaged") from None
        if child.returncode or not child.stdout.strip():  # where SIGCHLD is ignored the status is always 0
            raise _what_ended(path, child, seconds, n_bytes)
        answer = json.loads(child.stdout.splitlines()[-1])
        if "no_memory" in answer:
            raise MemoryError(answer["no_memory"] or "it asks for more than is allowed")
        if "error" in answer:
            error = answer["error"]
            raise ValueError(error if answer["is_clear"] and str(path) in error else f"{path}: {damage} ({error})")
        yield answer, folder


def _what_ended(path: Path, child: "subprocess.CompletedProcess[str]", seconds: int, n_bytes: int) -> Exception:
    """Return the error for how a child ended."""
    asked = re.search(r"memory allocation of (\d+) bytes failed", child.stderr)
    if asked:
        at_once, allowed = int(asked[1]) / 2**30, n_bytes / 2**30
        return MemoryError(f"it asks for {at_once:.3g} GiB at once, {allowed:.3g} GiB are allowed; is it damaged?")
    end = f"status {child.returncode}"
    if child.returncode < 0:
        if child.returncode == -getattr(signal, "SIGALRM", 0):
            return ValueError(f"{path}: could not be read in {seconds} s; the file may be damaged")
        end = signal.Signals(-child.returncode).name
    last = (child.stderr.strip().splitlines() or [""])[-1][:_SHOWN]
    ending = f" ({last})" if last else ""
    return ValueError(f"{path}: could not be read: the reader ended with {end}{ending}; the file may be damaged")
