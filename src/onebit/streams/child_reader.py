"""Read a file in a child process: its crash, or too much memory, becomes one error here.

Polars aborts the process on some damaged Parquet files, and a small file may decompress to gigabytes. This module is
also the child's program: it imports no more than a file needs, so that a child starts in a fraction of a second.
"""

import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_STARTING = 60  # seconds, for a child on a busy machine
_COMMAND = [sys.executable, "-P", __file__]  # -P: no imports from where Python is started


def read_in_child(path: Path, n_bytes: float, seconds: int, reader: Callable[[Path], Any] | None = None) -> Any:
    """Return what a reader makes of a file, a Parquet file's frame by default; or raise what ended the child."""
    # Where modules are looked for comes first: the reader is found by its import path.
    job = pickle.dumps(sys.path) + pickle.dumps((path, int(min(n_bytes, sys.maxsize // 2)), seconds, reader))
    too_slow = ValueError(f"{path}: could not be read in {seconds} s; the file may be damaged")
    try:
        child = subprocess.run(_COMMAND, input=job, capture_output=True, check=False, timeout=seconds + _STARTING)
    except subprocess.TimeoutExpired:
        raise too_slow from None
    if child.returncode == -getattr(signal, "SIGALRM", 0) != 0:
        raise too_slow
    output = child.stderr.decode(errors="replace").strip()
    if asked := re.search(r"memory allocation of (\d+) bytes failed", output):
        at_once, allowed = int(asked[1]) / 2**30, n_bytes / 2**30
        raise MemoryError(f"it asks for {at_once:.3g} GiB at once, {allowed:.3g} GiB are allowed; is it damaged?")
    if child.returncode or not child.stdout:  # where SIGCHLD is ignored the status is always 0
        end = signal.Signals(-child.returncode).name if child.returncode < 0 else f"status {child.returncode}"
        last = f" ({output.splitlines()[-1][:200]})" if output else ""
        raise ValueError(f"{path}: could not be read: the reader ended with {end}{last}; the file may be damaged")
    answer = pickle.loads(child.stdout)
    if isinstance(answer, Exception):
        raise answer
    return answer


# In the child.


def _read(path: Path, n_bytes: int, seconds: int, reader: Callable[[Path], Any] | None) -> Any:
    try:
        import polars  # its own memory comes first

        _limit(n_bytes, seconds)
        return _read_parquet(polars, path, n_bytes) if reader is None else reader(path)
    except (ValueError, MemoryError) as error:
        return error
    except BaseException as error:  # a panic of Polars is no Exception
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return ValueError(f"{path}: is not a whole Parquet file ({reason})")


def _read_parquet(pl: Any, path: Path, n_bytes: int) -> Any:
    lazy = pl.scan_parquet(path, glob=False)
    needed = 8 * len(lazy.collect_schema()) * int(lazy.select(pl.len()).collect().item())
    if needed <= n_bytes:
        frame = pl.read_parquet(path, glob=False)
        needed = int(frame.estimated_size())
    if needed > n_bytes:
        raise MemoryError(f"its rows and columns ask for {needed / 2**30:.3g} GiB")
    return frame


def _limit(n_bytes: int, seconds: int) -> None:
    """Let this process take so much more memory and time; neither can be limited on Windows."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)  # ends the process, even inside compiled code
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        taken = 1024 * int(status.partition("VmData:")[2].split()[0])
        room = (256 << 20) + (8 << 20) * (os.cpu_count() or 1)  # for the threads of Polars
        most = min(taken + room + n_bytes, sys.maxsize)
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


if __name__ == "__main__":
    sys.path[:] = pickle.load(sys.stdin.buffer)
    job = pickle.load(sys.stdin.buffer)
    answer = _read(*job)
    _limit(sys.maxsize, job[2])  # an answer is twice in memory while it is written
    pickle.dump(answer, sys.stdout.buffer)
