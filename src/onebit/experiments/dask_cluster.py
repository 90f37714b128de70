"""An executor on the workers of a Dask cluster; the second half of this module is called there, by tasks.

Workers play games in processes of their own, not in their threads: code and libraries are those that are on the disk
now, with one thread each; a compiled loop of an hour leaves the worker free to answer the scheduler; and a run that has
ended is ended there at once. A worker holds some of Dask's data for the process that started the run, its lease. When
that process lets go of it, stops, is killed or cannot be reached, Dask forgets the data, and the worker ends the run.
"""

import importlib
import io
import json
import logging
import multiprocessing
import pickle
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import file_digest
from pathlib import Path
from typing import Any, Self

from onebit.code_version import code_version
from onebit.experiments.run import CellError, EnvironmentMismatchError, LocalProcesses
from onebit.extras import require_extra
from onebit.files import replace_file

_CONNECTING = 30.0  # seconds for a scheduler to answer
_RECONNECTING = 120.0  # seconds for a scheduler that was there to come back: as long as a machine takes to start
_HOPING = 10.0  # seconds to wait for an acceptable worker when all others were refused
_GLANCE = 1.0  # seconds between two checks of the workers
_COLLECTING = 10.0  # seconds for a result that is there to arrive
_LEAVING = 5.0  # seconds to disconnect
_IS_WANTED = 0.5  # seconds between two checks of a worker whether a run is still active
_DIGITS = 32  # 128 bits: no two files of a run have the same
_CODE = code_version([__name__]).partition(",")[0]
"""The version of this module as loaded: a worker that is not restarted after an update keeps the old one."""


class ClusterError(RuntimeError):
    """The cluster cannot be reached, or none of its workers may play; the message has a remedy."""


class DaskCluster:
    """An executor on the workers of a Dask cluster, each of which plays as many batches at once as it has threads.

    A worker plays only if its code, Python and libraries are those of this process. Data sets are sent to it from here,
    each at most once. Workers may come and go; while there are none, a run waits. The results are the same as on one
    machine. Use it in a ``with`` statement: at its end the workers stop playing and remove what they have of the run.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://10.0.0.1:8786``, or the path of its scheduler file.
    show : callable, optional
        Called with messages for the user: the dashboard's address, workers refused. By default they are written to
        standard error.
    """

    def __init__(self, address: str, show: Callable[[str], None] | None = None) -> None:
        require_extra("Dask clusters need", "dask")
        self.address = address
        self._show = show or (lambda text: print(text, file=sys.stderr))
        self._workers: dict[str, _Worker] = {}
        self._checked_at = -_GLANCE
        self._hopeless_since: float | None = None
        self._is_away = False

    def __enter__(self) -> Self:
        Client: Any = importlib.import_module("distributed").Client

        # Silence Dask's messages: this class reports what matters.
        for name in ("distributed.client", "distributed.core", "distributed.comm", "distributed.batched"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        file = Path(self.address)
        try:
            where = json.loads(file.read_text(encoding="utf-8"))["address"] if file.is_file() else self.address
            self._client: Any = Client(where, timeout=_CONNECTING, set_as_default=False, name="onebit")
            present = self._present()
        except Exception as error:
            raise self._unreachable(f" ({type(error).__name__}: {error})") from error
        self._client._timeout = _RECONNECTING
        n, n_threads = len(present), sum(int(about["nthreads"]) for about in present.values())
        size = f"{n} worker{'s' * (n != 1)}, {n_threads} thread{'s' * (n_threads != 1)}"
        self._show(f"Dask scheduler {self.address}: {size}; its dashboard is at {self._client.dashboard_link}")
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(Exception):
            self._client.close(timeout=_LEAVING)

    @property
    def n_workers(self) -> int:
        """The threads of all workers that may play now."""
        if time.monotonic() - self._checked_at > _GLANCE:
            self._check_workers()
            self._checked_at = time.monotonic()
        return sum(worker.n_threads for worker in self._workers.values() if worker.is_ready)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Call a function in a process of the worker with the most free threads."""
        outcome: Future[Any] = Future()
        ready = [worker for worker in self._workers.values() if worker.is_ready]
        if not ready:
            outcome.set_exception(CancelledError())
            return outcome
        worker = max(ready, key=lambda each: each.n_threads - len(each.playing))
        packed, files = _pack(_Call(function, *arguments), worker.folder)
        try:
            for copy, path in files.items():
                if copy not in worker.files:
                    content = path.read_bytes()
                    if _copy_name(path) != copy.relative_to(worker.folder):
                        raise CellError(f"{path} has changed while it was being played; run again")
                    worker.files[copy] = self._client.scatter({str(copy): content}, workers=[worker.address])
        except CellError:
            raise
        except Exception as error:
            self._refuse(worker, f"it could not be sent a file ({type(error).__name__}: {error})")
            outcome.set_exception(CancelledError())
            return outcome
        task = pickle.dumps(_Call(_call, _CODE, worker.folder, worker.n_threads, packed, list(files)))
        key = f"onebit-{secrets.token_hex(16)}"
        future = self._client.submit(pickle.loads, task, key=key, workers=[worker.address])
        worker.playing[outcome] = future
        future.add_done_callback(partial(self._finish, worker, outcome))
        return outcome

    def _unreachable(self, why: str = "") -> ClusterError:
        return ClusterError(
            f"no Dask scheduler answers at {self.address}{why}; start one with `dask scheduler`, or mend the address, "
            "such as tcp://10.0.0.1:8786, or the path of a scheduler file. What was finished is kept"
        )

    def _present(self) -> dict[str, Any]:
        # Asked anew: what `Client.scheduler_info` returns is overwritten, without the workers, by a thread of its own.
        workers: dict[str, Any] = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        return workers

    def _check_workers(self) -> None:
        """Let new workers join, and give up the tasks of lost ones."""
        if self._client.status == "closed":  # it has tried to reconnect for long enough
            raise self._unreachable()
        present = {}
        was_away, self._is_away = self._is_away, True
        if self._client.status == "running":
            with suppress(Exception):
                present, self._is_away = self._present(), False
        if was_away != self._is_away:
            wait = f"gone; waiting up to {_RECONNECTING:.0f} s for it to come back"
            self._show(f"the Dask scheduler at {self.address} is {wait if self._is_away else 'back'}")
        for address, worker in list(self._workers.items()):
            if worker.is_lost or address not in present:
                del self._workers[address]
                # A scheduler that was restarted does not know this run: no worker's fault.
                is_gone = not (worker.is_lost or self._is_away)
                for outcome in list(worker.playing):
                    with suppress(InvalidStateError):
                        gone = BrokenExecutor(f"worker {worker.shown} is gone")
                        outcome.set_exception(gone if is_gone else CancelledError())
        for address, about in present.items():
            if address not in self._workers:
                name, n_threads = str(about["name"]), int(about["nthreads"])
                # Another folder each time: a lost worker may join again while its old one is being removed.
                folder = Path(about["local_directory"]) / f"onebit-{secrets.token_hex(16)}"
                with suppress(Exception):  # it is gone again
                    lease = self._client.scatter({str(folder): b""}, workers=[address])
                    shown = address if name == address else f"{name} ({address})"
                    self._workers[address] = _Worker(address, shown, n_threads, folder, lease)
        if not self._is_away:
            self._check_hope()

    def _check_hope(self) -> None:
        refusals = [worker.refusal for worker in self._workers.values() if worker.refusal]
        if len(refusals) < len(self._workers):
            self._hopeless_since = None
        elif self._hopeless_since is None:
            self._hopeless_since = time.monotonic()
        elif time.monotonic() - self._hopeless_since > _HOPING and refusals:
            raise ClusterError(f"no worker of {self.address} may play. {' '.join(refusals)}")

    def _refuse(self, worker: "_Worker", reason: str) -> None:
        if not worker.refusal:
            worker.refusal = (
                f"Worker {worker.shown} is refused: {reason}. Install there what is installed here, and start it again."
            )
            self._show(worker.refusal)

    def _finish(self, worker: "_Worker", outcome: "Future[Any]", future: Any) -> None:
        """Take what a task gave; called in a thread of Dask's client."""
        worker.playing.pop(outcome, None)
        error: Exception | None = None
        try:
            if future.status == "error":
                raise future.exception(timeout=_COLLECTING)
            # If it is neither, it was cancelled, or its worker went with it.
            returned = future.result(timeout=_COLLECTING) if future.status == "finished" else None
            if returned is None:  # the worker was cut off for a while, and has removed the run: let it join again
                worker.is_lost, error = True, CancelledError()
        except BrokenExecutor as broken:
            error = broken
        except Exception as other:
            # Errors of games are returned: what this run needs cannot be called there, or differs.
            is_known = isinstance(other, EnvironmentMismatchError)
            self._refuse(worker, str(other) if is_known else f"{type(other).__name__}: {other}")
            error = CancelledError()
        with suppress(InvalidStateError):  # its worker or the scheduler was lost meanwhile
            outcome.set_result(returned[0]) if error is None and returned is not None else outcome.set_exception(error)


@dataclass(eq=False)
class _Worker:
    address: str
    shown: str
    n_threads: int
    folder: Path
    """Where it has what it needs for this run. Dask's data for it there has keys that are paths in this folder: of
    several copies under one key Dask would drop all but one."""
    lease: Any  # when this is released, it ends the run
    refusal: str = ""  # why it may not play
    is_lost: bool = False
    playing: "dict[Future[Any], Any]" = field(default_factory=dict)
    files: dict[Path, Any] = field(default_factory=dict)  # those that it has, and what keeps Dask from forgetting them

    @property
    def is_ready(self) -> bool:
        return not (self.refusal or self.is_lost)


class _Call:
    """A value that becomes a call when it is unpickled: the scheduler, which unpickles tasks too, needs no onebit."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


def _pack(call: Any, folder: Path) -> tuple[bytes, dict[Path, Path]]:
    """Return a pickled call in which files are their copies in a folder of a worker, and the files by their copies."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, folder)
    pickler.dump(call)
    return buffer.getvalue(), pickler.files


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, folder: Path) -> None:
        super().__init__(buffer)
        self.files: dict[Path, Path] = {}
        self._folder = folder

    def reducer_override(self, thing: Any) -> Any:
        if not isinstance(thing, Path) or not thing.is_file():
            return NotImplemented
        copy = self._folder / _copy_name(thing)
        self.files[copy] = thing
        return type(copy), (str(copy),)


def _copy_name(path: Path) -> Path:
    """Return the name of a file's copy: its content, then its own name, since that tells how to read it."""
    stamp = path.stat()
    return Path(_digest(path, stamp.st_mtime_ns, stamp.st_size), path.name)


@lru_cache  # read once for every state of it
def _digest(path: Path, _mtime: int, _size: int) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:_DIGITS]


# In a worker.

_RUNS: "dict[Path, _Run]" = {}
_LOCK = threading.Lock()


def _call(code: str, folder: Path, n_threads: int, packed: bytes, files: list[Path]) -> tuple[Any] | None:
    """Return what a packed call gives in a process of this worker, or None if the run is not here any more."""
    if code != _CODE:
        reason = "it runs another version of onebit or Python, or was started before that was installed"
        raise EnvironmentMismatchError(reason)
    from distributed import get_worker

    worker = get_worker()
    with _LOCK:
        if folder not in _RUNS and str(folder) in worker.data:
            _RUNS[folder] = _Run(folder, worker, n_threads)
        run = _RUNS.get(folder)
    return None if run is None else run.call(packed, files)


class _Run:
    """What a worker has of a run: processes, and a folder for files."""

    def __init__(self, folder: Path, worker: Any, n_threads: int) -> None:
        self._folder, self._worker = folder, worker
        folder.mkdir(parents=True)
        # Dask's nanny makes its workers daemons, which may start no processes; ours end with the worker.
        config: dict[str, Any] = getattr(multiprocessing.current_process(), "_config", {})
        config["daemon"] = False
        self._pool = LocalProcesses(n_threads, folder)
        threading.Thread(target=self._end_with_lease, name=folder.name, daemon=True).start()

    def call(self, packed: bytes, files: list[Path]) -> tuple[Any] | None:
        try:
            with _LOCK:
                for copy in files:
                    if not copy.exists():
                        copy.parent.mkdir(exist_ok=True)
                        replace_file(copy, self._worker.data[str(copy)])
                future = self._pool.submit(pickle.loads, packed)
            return (future.result(),)
        except (BrokenExecutor, CancelledError, OSError):
            if self._folder not in _RUNS:
                return None
            raise

    def _end_with_lease(self) -> None:
        """Wait until the run is released, then end its processes and remove its folder."""
        over = "closing", "closed", "failed"
        while str(self._folder) in self._worker.data and self._worker.status.name not in over:
            time.sleep(_IS_WANTED)
        with _LOCK:
            del _RUNS[self._folder]
            self._pool.close()
        shutil.rmtree(self._folder, ignore_errors=True)
