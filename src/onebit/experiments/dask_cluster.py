"""An executor on the workers of a Dask cluster; the second half of this module is called there, by tasks.

Workers play games in processes of their own, not in their threads: code and libraries are those that are on the disk
now, with one thread each; a compiled loop of an hour leaves the worker free to answer the scheduler; and a run that has
ended is ended there at once. The task that called `join` leaves its result in the worker, and the process that started
the run holds on to it. When that lets go, stops, is killed or cannot be reached, Dask forgets the result, and what the
worker has of the run is removed.
"""

import gc
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
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import file_digest
from pathlib import Path
from typing import Any, Self

from onebit.code_version import code_version
from onebit.experiments.run import CellError, EnvironmentMismatchError
from onebit.experiments.workers import LocalProcesses
from onebit.extras import require_extra
from onebit.files import replace_file

CONNECTING = 30.0  # seconds for a scheduler to answer
_RECONNECTING = 120.0  # seconds for a scheduler that was there to come back: as long as a machine takes to start
HOPING = 10.0  # seconds to wait for an acceptable worker when all others were refused
_GLANCE = 1.0  # seconds between two checks of the workers
_COLLECTING = 10.0  # seconds for a result that is there to arrive
_LEAVING = 5.0  # seconds to disconnect
_IS_WANTED = 0.5  # seconds between two checks of a worker whether a run is still active
_DIGITS = 32  # 128 bits: no two files of a run have the same
CODE = code_version([__name__]).partition(",")[0]
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
    say : callable, optional
        Called with messages for the user: the dashboard's address, workers refused. By default they are written to
        standard error.
    """

    def __init__(self, address: str, say: Callable[[str], None] | None = None) -> None:
        require_extra("Dask clusters need", "dask")
        if not address.strip():
            raise ValueError("the address of the Dask scheduler is empty; give one such as tcp://10.0.0.1:8786")
        self.address = address
        self.bytes_sent = 0
        """Bytes of files sent."""
        self._say = say or (lambda text: print(text, file=sys.stderr))
        self._client: Any = None
        self._run = secrets.token_hex(8)
        self._workers: dict[str, _Worker] = {}
        self._looked_at = -_GLANCE
        self._hopeless_since: float | None = None
        self._has_waited = False

    def __enter__(self) -> Self:
        scheduler_at(self.address)
        self._connect(CONNECTING)
        present = self._present() or {}
        n, n_threads = len(present), sum(int(about["nthreads"]) for about in present.values())
        size = f"{n} worker{'s' * (n != 1)}, {n_threads} thread{'s' * (n_threads != 1)}"
        self._say(f"Dask scheduler {self.address}: {size}; its dashboard is at {self._client.dashboard_link}")
        return self

    def __exit__(self, *_error: object) -> None:
        client, self._client = self._client, None
        _close(client)

    @property
    def n_workers(self) -> int:
        """The threads of all workers that may play now."""
        if time.monotonic() - self._looked_at > _GLANCE:
            self._look_around()
        return sum(worker.n_threads for worker in self._workers.values() if worker.is_ready)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Call a function in a process of the worker with the most free threads."""
        outcome: Future[Any] = Future()
        ready = [worker for worker in self._workers.values() if worker.is_ready]
        if not ready:
            outcome.set_exception(CancelledError())
            return outcome
        worker = max(ready, key=lambda each: each.n_threads - len(each.playing))
        packed, files = pack(function, *arguments)
        try:
            keys = self._send_files(worker, files)
        except CellError:
            raise
        except Exception as error:
            self._refuse(worker, f"it could not be sent a file ({type(error).__name__}: {error})")
            outcome.set_exception(CancelledError())
            return outcome
        worker.playing.add(outcome)
        self._start(worker, partial(self._finish, worker, outcome), call, self._run, packed, keys)
        return outcome

    def _connect(self, patience: float) -> None:
        Client: Any = importlib.import_module("distributed").Client

        # Silence Dask's messages: this class reports what matters.
        for name in ("distributed.client", "distributed.core", "distributed.comm", "distributed.batched"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        deadline = time.monotonic() + patience
        while self._client is None:
            # A client that could not connect must not be collected while the next one starts: both would wait forever
            # for the lock that a client holds when it starts, and takes when it is collected.
            gc.collect()
            try:
                # The scheduler file is missing for a while during a restart.
                where = scheduler_at(self.address)
                self._client = Client(where, timeout=CONNECTING, set_as_default=False, name="onebit")
                self._scheduler = self._identity()["id"]
            except Exception as error:
                client, self._client = self._client, None
                _close(client)
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"no Dask scheduler answers at {self.address} ({type(error).__name__}); start one with "
                        "`dask scheduler`, or mend the address. What was finished is kept"
                    ) from error
                time.sleep(min(_GLANCE, patience))

    def _look_around(self) -> None:
        """Let new workers join, and give up the tasks of lost ones."""
        while (present := self._present()) is None:
            self._reconnect()
        self._looked_at = time.monotonic()
        for address in [address for address in self._workers if address not in present]:
            worker = self._workers.pop(address)
            worker.give_up(BrokenExecutor(f"worker {worker.shown} is gone"))
        for address, about in present.items():
            if address not in self._workers:
                worker = self._workers[address] = _Worker(address, str(about["name"]), int(about["nthreads"]))
                self._start(worker, partial(self._join, worker), join, self._run, CODE)
        self._check_hope()

    def _present(self) -> dict[str, Any] | None:
        """Return the scheduler's workers, or None if it is gone."""
        try:
            info = self._identity()
        except Exception:
            return None
        # A restarted scheduler has the old address, but does not know this run.
        if self._client.status != "running" or info.get("id") != self._scheduler:
            return None
        workers: dict[str, Any] = info["workers"]
        return workers

    def _identity(self) -> dict[str, Any]:
        # Asked anew: what `Client.scheduler_info` returns is overwritten, without the workers, by a thread of its own.
        identity: dict[str, Any] = self._client.sync(self._client.scheduler.identity, n_workers=-1)
        return identity

    def _check_hope(self) -> None:
        refusals = [worker.refusal for worker in self._workers.values() if worker.refusal]
        if len(refusals) < len(self._workers):
            self._hopeless_since = None
        elif self._hopeless_since is None:
            self._hopeless_since = time.monotonic()
        elif time.monotonic() - self._hopeless_since > HOPING and refusals:
            raise ClusterError(f"no worker of {self.address} may play. {' '.join(refusals)}")
        elif not refusals and not self._has_waited:
            self._has_waited = True
            self._say(f"{self.address} has no worker now; waiting for one")

    def _reconnect(self) -> None:
        """Reconnect to a lost scheduler and start over: its knowledge of this run is lost."""
        self._say(
            f"the Dask scheduler at {self.address} is gone; waiting up to {_RECONNECTING:.0f} s for it to come back"
        )
        for worker in self._workers.values():
            worker.give_up(CancelledError())
        self._workers.clear()
        client, self._client = self._client, None
        _close(client)
        self._connect(_RECONNECTING)
        self._say(f"the Dask scheduler at {self.address} is back")

    def _refuse(self, worker: "_Worker", reason: str) -> None:
        if not worker.refusal:
            worker.refusal = (
                f"Worker {worker.shown} is refused: {reason}. Install there what is installed here, and start it again."
            )
            self._say(worker.refusal)

    def _send_files(self, worker: "_Worker", files: Mapping[str, Path]) -> dict[str, str]:
        """Send the files that a worker does not have yet, and return the keys of Dask's data that hold them."""
        for name, path in files.items():
            if name not in worker.files:
                content = path.read_bytes()
                if _copy_name(path) != name:
                    raise CellError(f"{path} has changed while it was being played; run again")
                # A key of its own for every worker: of several copies under one key Dask would drop all but one.
                key = f"onebit-{secrets.token_hex(16)}"
                worker.files[name] = key, self._client.scatter({key: content}, workers=[worker.address])
                self.bytes_sent += len(content)
        return {name: worker.files[name][0] for name in files}

    def _start(self, worker: "_Worker", finish: Callable[[Any], None], function: Any, *arguments: Any) -> None:
        future = self._client.submit(
            pickle.loads,
            pickle.dumps(_Call(function, *arguments)),
            key=f"{function.__name__}-{secrets.token_hex(16)}",
            workers=[worker.address],
            allow_other_workers=False,
            pure=False,
        )
        worker.held.append(future)
        future.add_done_callback(finish)

    # Both are called in a thread of Dask's client.

    def _join(self, worker: "_Worker", future: Any) -> None:
        try:
            refusal = self._answer(future)
            worker.is_joined = not refusal
            if refusal:
                self._refuse(worker, refusal)
        except (BrokenExecutor, CancelledError):
            pass  # it is gone
        except Exception as error:
            self._refuse(worker, f"{type(error).__name__}: {error}")

    def _finish(self, worker: "_Worker", outcome: "Future[Any]", future: Any) -> None:
        worker.held.remove(future)
        worker.playing.discard(outcome)
        with suppress(InvalidStateError):  # its worker or the scheduler was lost meanwhile
            try:
                returned = self._answer(future)
                if returned is not None:
                    outcome.set_result(returned[0])
                    return
                worker.is_joined = False  # it was cut off for a while, and has removed the run: let it join again
                self._workers.pop(worker.address, None)
                outcome.set_exception(CancelledError())
            except (BrokenExecutor, CancelledError) as error:
                outcome.set_exception(error)
            except Exception as error:
                # Errors of games are returned: what this run needs cannot be called there, or differs.
                is_known = isinstance(error, EnvironmentMismatchError)
                self._refuse(worker, str(error) if is_known else f"{type(error).__name__}: {error}")
                outcome.set_exception(CancelledError())

    def _answer(self, future: Any) -> Any:
        KilledWorker: Any = importlib.import_module("distributed").KilledWorker

        if future.status == "error":
            error = future.exception(timeout=_COLLECTING)
            raise BrokenExecutor("it was killed") if isinstance(error, KilledWorker) else error
        if future.status != "finished":  # cancelled, or its worker went with it
            raise CancelledError
        return future.result(timeout=_COLLECTING)


@dataclass(eq=False)
class _Worker:
    address: str
    name: str
    n_threads: int
    is_joined: bool = False
    refusal: str = ""  # why it may not play
    playing: "set[Future[Any]]" = field(default_factory=set)
    files: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Those that it has: the keys of Dask's data, and what keeps Dask from forgetting them."""
    held: list[Any] = field(default_factory=list)
    """Futures of tasks. When that of joining is released, the worker removes all that it has of the run."""

    @property
    def is_ready(self) -> bool:
        return self.is_joined and not self.refusal

    @property
    def shown(self) -> str:
        return self.address if self.name == self.address else f"{self.name} ({self.address})"

    def give_up(self, error: Exception) -> None:
        """End all that it was playing."""
        playing, self.playing = self.playing, set()
        for outcome in playing:
            with suppress(InvalidStateError):
                outcome.set_exception(error)


class _Call:
    """A value that becomes a call when it is unpickled: the scheduler, which unpickles tasks too, needs no onebit."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._function, self._arguments = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._function, self._arguments


def scheduler_at(address: str) -> str:
    """Return the address of a scheduler, read from its file if it is one, or raise an error with the reason."""
    coerce: Any = importlib.import_module("distributed.core").coerce_to_address
    split: Any = importlib.import_module("distributed.comm.addressing").get_address_host_port
    try:
        is_file = Path(address).is_file()
        found = str(json.loads(Path(address).read_text(encoding="utf-8"))["address"]) if is_file else address
        split(coerce(found))
    except (ValueError, LookupError, TypeError, OSError) as error:
        raise ClusterError(
            f"{address} is neither the address of a Dask scheduler, such as tcp://10.0.0.1:8786, nor the path of a "
            f"scheduler file ({type(error).__name__}: {error})"
        ) from error
    return found


def _close(client: Any) -> None:
    if client is not None:
        with suppress(Exception):
            client.close(timeout=_LEAVING)


# In a worker.

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
    """Return what a packed call gives in a process of this worker, or None if the run is not here any more."""
    from distributed import get_worker

    joined = _RUNS.get((run, get_worker().address))
    return None if joined is None else joined.call(packed, keys)


class _Run:
    """What a worker has of a run: processes, and a folder for files."""

    def __init__(self, run: str, worker: Any) -> None:
        # A new folder each time: a lost worker may join again while its old folder is being removed.
        self._folder = Path(worker.local_directory) / f"onebit-{run}-{secrets.token_hex(4)}"
        self._worker, self._lease = worker, worker.get_current_task()
        self._files, scratch = self._folder / "files", self._folder / "scratch"
        for part in (self._files, scratch):
            part.mkdir(parents=True)
        # Dask's nanny makes its workers daemons, which may start no processes; ours end with the worker.
        config: dict[str, Any] = getattr(multiprocessing.current_process(), "_config", {})
        config["daemon"] = False
        self._pool = LocalProcesses(worker.state.nthreads, scratch)
        self._lock = threading.Lock()
        self._is_closed = False

    def call(self, packed: bytes, keys: Mapping[str, str]) -> tuple[Any] | None:
        try:
            with self._lock:
                for name, key in keys.items():
                    path = self._files / name
                    if not path.exists():
                        path.parent.mkdir(exist_ok=True)
                        replace_file(path, self._worker.data[key])
                future = self._pool.submit(_call, packed, self._files)
            return (future.result(),)
        except (BrokenExecutor, CancelledError, OSError):
            if self._is_closed:
                return None
            raise

    def watch(self) -> None:
        """Wait until the run is released, then end its processes and remove its folder."""
        while self._is_wanted():
            time.sleep(_IS_WANTED)
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


def pack(*call: Any) -> tuple[bytes, dict[str, Path]]:
    """Return a pickled call, and its files by the names under which the worker finds their copies."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(call)
    return buffer.getvalue(), pickler.files


def unpack(packed: bytes, folder: Path) -> Any:
    """Return the function and its arguments, with the paths of the copies in the folder."""
    return _Unpickler(io.BytesIO(packed), folder).load()


def _call(packed: bytes, folder: Path) -> Any:
    function, *arguments = unpack(packed, folder)
    return function(*arguments)


def _copy_name(path: Path) -> str:
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
        name = _copy_name(thing)
        self.files[name] = thing
        return name


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, folder: Path) -> None:
        super().__init__(buffer)
        self._folder = folder

    def persistent_load(self, name: Any) -> Path:
        return self._folder / str(name)
