"""Read files in a child process: its crash, or too much memory, becomes one error here.

Polars aborts the process on some damaged Parquet files, and a small file may decompress to gigabytes. The child starts
in a fraction of a second, since it imports neither scikit-learn nor Numba.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebit.machine_memory import check_memory, memory, no_more_than

if TYPE_CHECKING:
    import polars as pl

    from onebit.streams.columns import TableColumns
    from onebit.streams.reading import Reading

_STARTING = 60  # seconds, for a child on a busy machine
_SLOWEST = 1_000_000  # bytes of a Parquet file in a second
_SHOWN = 200  # characters of a child's last output
_PROGRAM = """
import json, sys, types
job = json.loads(sys.stdin.read())
sys.path[:] = job["sys_path"]
# An empty package in place of the real one, which imports seconds and 200 MB.
package = sys.modules["onebit.streams"] = types.ModuleType("onebit.streams")
package.__path__ = [job["package"]]
from onebit.streams.child_reader import run
run(job)
"""


def read_parquet_in_child(path: Path) -> "pl.DataFrame":
    """Read a Parquet file; raises ValueError if it is damaged, and MemoryError if it takes more than is allowed."""
    import polars as pl

    seconds = _STARTING + path.stat().st_size // _SLOWEST
    with _answer(path, {"kind": "parquet"}, seconds, "is not a whole Parquet file") as (_, folder):
        check_memory((folder / "frame.arrow").stat().st_size)
        return pl.read_ipc((folder / "frame.arrow").read_bytes())  # a mapped file cannot be removed on every system


def read_text_in_child(path: Path, reading: "Reading", seconds: int) -> "TableColumns":
    """Read delimited text and understand its columns; raises as `read_parquet_in_child` does."""
    import numpy as np

    from onebit.streams.columns import TableColumns

    job = {"kind": "text", "reading": reading._asdict()}
    with _answer(path, job, seconds, "cannot be understood") as (answer, folder):
        check_memory((folder / "columns.npz").stat().st_size)
        with np.load(folder / "columns.npz", allow_pickle=False) as arrays:
            features = [
                (name, kind, arrays[f"{j}"], None if words is None else tuple(words))
                for j, (name, kind, words) in enumerate(answer["features"])
            ]
            return TableColumns(features, arrays["labels"], answer["where"], answer["about"])


@contextmanager
def _answer(path: Path, job: dict[str, Any], seconds: int, damage: str) -> Iterator[tuple[dict[str, Any], Path]]:
    """Run a child, and yield its answer and the folder with its arrays; or raise the error that ended it."""
    n_bytes = int(min(memory(), sys.maxsize // 2))
    with tempfile.TemporaryDirectory(prefix="onebit-") as folder:
        limits = {"bytes": n_bytes, "seconds": seconds}
        places = {"path": os.path.abspath(path), "folder": folder, "package": str(Path(__file__).parent)}
        try:
            child = subprocess.run(
                [sys.executable, "-P", "-c", _PROGRAM],  # -P: no imports from where Python is started
                input=json.dumps({**job, **limits, **places, "sys_path": [*map(os.path.abspath, sys.path)]}),
                cwd=folder,
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
        yield answer, Path(folder)


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


# In the child.


def run(job: dict[str, Any]) -> None:
    """Read a file; write arrays into the job's folder, and print the rest of the answer as JSON."""
    try:
        answer = (_read_parquet if job["kind"] == "parquet" else _read_text)(job, Path(job["folder"]))
    except MemoryError as error:
        answer = {"no_memory": str(error)}
    except BaseException as error:  # a panic of Polars is no Exception
        lines = str(error).strip().splitlines() or [type(error).__name__]
        answer = {"error": lines[0], "is_clear": type(error) is ValueError}
    print(json.dumps(answer))


def _read_parquet(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    import polars as pl

    _limit(job)
    lazy = pl.scan_parquet(job["path"], glob=False)
    needed = 8 * len(lazy.collect_schema()) * int(lazy.select(pl.len()).collect().item())
    if needed > job["bytes"]:
        raise MemoryError(f"its rows and columns ask for {needed / 2**30:.3g} GiB")
    frame = pl.read_parquet(job["path"], glob=False)
    try:
        frame.write_ipc(folder / "frame.arrow")
    except (OSError, pl.exceptions.PolarsError) as error:  # a full disk
        raise ValueError(f"{job['path']}: its columns cannot be put into {folder.parent} ({error})") from error
    return {}


def _read_text(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    import numpy as np

    from onebit.streams.columns import read_columns
    from onebit.streams.reading import Reading
    from onebit.streams.table import read_text_table

    _limit(job)
    path, reading = Path(job["path"]), Reading(**job["reading"]).checked()
    with no_more_than(job["bytes"]):
        found = read_columns(read_text_table(path, path.read_bytes(), reading), reading)
    arrays = {f"{j}": values for j, (_, _, values, _) in enumerate(found.features)}
    np.savez(folder / "columns.npz", labels=found.labels, **arrays)
    features = [(name, kind, words) for name, kind, _, words in found.features]
    return {"features": features, "where": found.where, "about": found.about}


def _limit(job: dict[str, Any]) -> None:
    """Let this process take no more memory and time than it is allowed; neither can be done on Windows."""
    if hasattr(signal, "alarm"):
        signal.alarm(job["seconds"])  # ends the process, even inside compiled code
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        taken = 1024 * int(status.partition("VmData:")[2].split()[0])
        room = (256 << 20) + (8 << 20) * (os.cpu_count() or 1)  # for the threads of Polars
        resource.setrlimit(resource.RLIMIT_DATA, (taken + room + job["bytes"], resource.RLIM_INFINITY))
