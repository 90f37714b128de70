"""In a Dask worker: the processes that play a run's games, and its files. Tasks call `join` and `call`.

Games are played in processes of their own, not in the worker's threads: code and libraries are those that are on the
disk now, with one thread each; a compiled loop of an hour leaves the worker free to answer the scheduler; and what is
not wanted any more can be ended at once.

The task that called `join` leaves its result in the worker, and the process that started the run holds on to it. When
that lets go, stops, is killed or cannot be reached, Dask forgets the result, and what is here of the run is removed.
"""

import io
import multiprocessing
import pickle
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

from onebit.code_version import code_version
from onebit.experiments.workers import LocalProcesses
from onebit.files import replace_file

_FILES, _SCRATCH = "files", "scratch"
_GLANCE = 0.5  # seconds between two checks whether a run is still active
_DIGITS = 32  # 128 bits: no two files of a run have the same
CODE = code_version([__name__]).partition(",")[0]
"""The version of this module as loaded: a worker that is not restarted after an update keeps the old one."""
_RUNS: "dict[tuple[str, str], _Run]" = {}


def join(run: str, code: str) -> str:
    """Prepare for a run; return why this worker cannot take part, or nothing."""
    from distributed import get_worker

    if code != CODE:
        return "it runs another version of onebit or Python, or was started before that was installed"
    worker = get_worker()
    joined = _RUNS[run, worker.address] = _Run(run, worker)
    threading.Thread(target=joined.watch, name=f"onebit-{run}", daemon=True).start()
    return ""


def call(run: str, packed: bytes, keys: Mapping[str, str]) -> tuple[Any] | None:
    """Return what a packed call gives in a process of this worker, or None if the run is not here any more.

    Files are given by the names under which the call finds them, and the keys of Dask's data that hold them.
    """
    from distributed import get_worker

    joined = _RUNS.get((run, get_worker().address))
    return None if joined is None else joined.call(packed, keys)


class _Run:
    """What a worker has of a run: processes, and a folder for files."""

    def __init__(self, run: str, worker: Any) -> None:
        # A new folder each time: a lost worker may join again while its old folder is being removed.
        self._folder = Path(worker.local_directory) / f"onebit-{run}-{secrets.token_hex(4)}"
        self._worker, self._lease = worker, worker.get_current_task()
        for part in (_FILES, _SCRATCH):
            (self._folder / part).mkdir(parents=True)
        # Dask's nanny makes its workers daemons, which may start no processes; ours end with the worker.
        config: dict[str, Any] = getattr(multiprocessing.current_process(), "_config", {})
        config["daemon"] = False
        self._pool = LocalProcesses(worker.state.nthreads, self._folder / _SCRATCH)
        self._lock = threading.Lock()
        self._is_closed = False

    def call(self, packed: bytes, keys: Mapping[str, str]) -> tuple[Any] | None:
        try:
            with self._lock:
                for name, key in keys.items():
                    path = self._folder / _FILES / name
                    if not path.exists():
                        path.parent.mkdir(exist_ok=True)
                        replace_file(path, self._worker.data[key])
                future = self._pool.submit(_call, packed, self._folder / _FILES)
            return (future.result(),)
        except (BrokenExecutor, CancelledError, OSError):
            if self._is_closed:
                return None
            raise

    def watch(self) -> None:
        """Wait until the run is released, then end its processes and remove its folder."""
        while self._is_wanted():
            time.sleep(_GLANCE)
        for key in [key for key, run in _RUNS.items() if run is self]:
            del _RUNS[key]
        self._is_closed = True
        with self._lock:
            self._pool.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_wanted(self) -> bool:
        if self._worker.status.name in ("closing", "closed", "failed"):
            return False
        task = self._worker.state.tasks.get(self._lease)
        return task is not None and task.state in ("executing", "long-running", "memory")


class Packed(NamedTuple):
    """A pickled call."""

    content: bytes
    files: dict[str, Path]
    """The files that it reads, by the name under which the other side finds them."""


def pack(*call: Any) -> Packed:
    """Pickle a function and its arguments; every path of a file in there becomes the path of a copy on the worker."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(call)
    return Packed(buffer.getvalue(), pickler.files)


def unpack(packed: bytes, folder: Path) -> Any:
    """Return the function and its arguments, with the paths of the copies in the folder."""
    return _Unpickler(io.BytesIO(packed), folder).load()


def _call(packed: bytes, folder: Path) -> Any:
    function, *arguments = unpack(packed, folder)
    return function(*arguments)


def copy_name(path: Path) -> str:
    """Return the name of a file's copy: its content, then its own name, since that tells how to read it."""
    stamp = path.stat()
    return f"{_digest(path, stamp.st_mtime_ns, stamp.st_size)}/{path.name}"


@lru_cache
def _digest(path: Path, _mtime: int, _size: int) -> str:
    """Read a file once for every state of it."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:_DIGITS]


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer)
        self.files: dict[str, Path] = {}

    def persistent_id(self, thing: Any) -> str | None:
        if not isinstance(thing, Path) or not thing.is_file():
            return None
        name = copy_name(thing)
        self.files[name] = thing
        return name


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, folder: Path) -> None:
        super().__init__(buffer)
        self._folder = folder

    def persistent_load(self, name: Any) -> Path:
        return self._folder / str(name)
