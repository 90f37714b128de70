"""An executor on the workers of a Dask cluster; `_Pickler` is how files travel to them."""

import importlib
import io
import json
import logging
import pickle
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from onebit.experiments.run import CellError
from onebit.extras import require_extra
from onebit.files import replace_file

_CONNECTING = 30.0  # seconds for a scheduler to answer
_HOPING = 10.0  # seconds to wait for an acceptable worker when all others were refused
_GLANCE = 1.0  # seconds between two checks of the workers
_COLLECTING = 10.0  # seconds for a result that is there to arrive
_LEAVING = 5.0  # seconds to disconnect


class DaskCluster:
    """An executor on the workers of a Dask cluster, each of which plays one game at a time.

    A worker plays only if its code, Python and libraries are those of this process. Data sets are sent to it from here,
    each at most once. Workers may come and go; while there are none, a run waits. The results are the same as on one
    machine. Use it in a ``with`` statement.

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
        self._files: dict[str, Any] = {}  # what keeps Dask from forgetting files that were sent, by the name of a copy
        self._checked_at = self._hopeful_at = -_GLANCE

    def __enter__(self) -> Self:
        Client: Any = importlib.import_module("distributed").Client

        # Silence Dask's messages: this class reports what matters.
        for name in ("distributed.client", "distributed.core", "distributed.comm", "distributed.batched"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        file = Path(self.address)
        try:
            where = json.loads(file.read_text(encoding="utf-8"))["address"] if file.is_file() else self.address
            self._client: Any = Client(where, timeout=_CONNECTING, set_as_default=False, name="onebit")
            n = len(self._present())
        except Exception as error:
            raise self._unreachable(f" ({type(error).__name__}: {error})") from error
        size = f"{n} worker{'s' * (n != 1)}"
        self._show(f"Dask scheduler {self.address}: {size}; its dashboard is at {self._client.dashboard_link}")
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(Exception):
            self._client.close(timeout=_LEAVING)

    @property
    def n_workers(self) -> int:
        """How many workers may play now."""
        now = time.monotonic()
        if now - self._checked_at > _GLANCE:
            self._checked_at = now
            self._check_workers()
        refusals = [worker.refusal for worker in self._workers.values() if worker.refusal]
        if not refusals or len(refusals) < len(self._workers):
            self._hopeful_at = now
        elif now - self._hopeful_at > _HOPING:
            raise RuntimeError(f"no worker of {self.address} may play. {' '.join(refusals)}")
        return len(self._workers) - len(refusals)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Call a function in a worker that is idle."""
        outcome: Future[Any] = Future()
        idle = [worker for worker in self._workers.values() if not (worker.refusal or worker.playing)]
        if not idle:
            outcome.set_exception(CancelledError())
            return outcome
        worker, buffer = idle[0], io.BytesIO()
        pickler = _Pickler(buffer)
        pickler.dump(_Call(function, *arguments))
        try:
            files = [self._sent(name, path, worker) for name, path in pickler.files]
        except Exception as error:
            self._refuse(worker, f"it could not be sent a file ({type(error).__name__}: {error})")
            outcome.set_exception(CancelledError())
            return outcome
        # To this worker alone, so that it is known who is to be refused, or has died.
        where = {"workers": [worker.address], "pure": False}
        task = self._client.submit(pickle.loads, buffer.getvalue(), buffers=files, **where)
        worker.playing = outcome, task
        task.add_done_callback(partial(self._finish, worker, outcome))
        return outcome

    def _sent(self, name: str, path: Path, worker: "_Worker") -> Any:
        """Return the content of a file as data of Dask's, which goes from worker to worker as it is needed."""
        sent = self._files.get(name)
        if sent is None or sent.status != "finished":  # it is lost with the last worker that had it
            sent = self._files[name] = self._client.scatter(path.read_bytes(), workers=[worker.address])
        return sent

    def _unreachable(self, why: str = "") -> RuntimeError:
        return RuntimeError(
            f"no Dask scheduler answers at {self.address}{why}; start one with `dask scheduler`, or mend the address, "
            "such as tcp://10.0.0.1:8786, or the path of a scheduler file. What was finished is kept"
        )

    def _present(self) -> dict[str, Any]:
        # Asked anew: what `Client.scheduler_info` returns is overwritten, without the workers, by a thread of its own.
        workers: dict[str, Any] = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        return workers

    def _check_workers(self) -> None:
        """Let new workers join, and give up the games of lost ones."""
        try:
            present = self._present() if self._client.status == "running" else None
        except Exception:
            present = None
        if present is None:
            raise self._unreachable()
        for address in self._workers.keys() - present.keys():
            worker = self._workers.pop(address)
            if worker.playing:
                with suppress(InvalidStateError):
                    worker.playing[0].set_exception(BrokenExecutor(f"worker {worker.shown} is gone"))
        for address in present.keys() - self._workers.keys():
            name = str(present[address]["name"])
            self._workers[address] = _Worker(address, address if name == address else f"{name} ({address})")

    def _refuse(self, worker: "_Worker", reason: str) -> None:
        worker.refusal = (
            f"Worker {worker.shown} is refused: {reason}. Install there what is installed here, and start it again."
        )
        self._show(worker.refusal)

    def _finish(self, worker: "_Worker", outcome: "Future[Any]", task: Any) -> None:
        """Take what a task gave; called in a thread of Dask's client."""
        worker.playing = None
        error: BaseException | None = CancelledError()  # unless there is a result: the worker went with it
        result = None
        with suppress(Exception):
            if task.status == "error":
                # Errors of games are returned: what this run needs cannot be called there, or differs.
                found = task.exception(timeout=_COLLECTING)
                self._refuse(worker, str(found) if isinstance(found, CellError) else f"{type(found).__name__}: {found}")
            elif task.status == "finished":
                result, error = task.result(timeout=_COLLECTING), None
        with suppress(InvalidStateError):  # its worker was lost meanwhile
            outcome.set_result(result) if error is None else outcome.set_exception(error)


@dataclass(eq=False)
class _Worker:
    address: str
    shown: str
    refusal: str = ""  # why it may not play
    playing: tuple["Future[Any]", Any] | None = None  # the outcome of its game, and Dask's future of it


class _Call:
    """A value that becomes a call when it is unpickled: the scheduler, which unpickles tasks too, needs no onebit."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


class _Pickler(pickle.Pickler):
    """Pickles files as copies of them, whose contents are buffers that `pickle.loads` is given in the worker."""

    def __init__(self, buffer: io.BytesIO) -> None:
        self._places: list[pickle.PickleBuffer] = []
        super().__init__(buffer, protocol=5, buffer_callback=lambda each: each not in self._places)
        self.files: list[tuple[str, Path]] = []

    def reducer_override(self, thing: Any) -> Any:
        if not isinstance(thing, Path) or not thing.is_file():
            return NotImplemented
        stamp = thing.stat()
        name = sha256(f"{thing} {stamp.st_mtime_ns} {stamp.st_size}".encode()).hexdigest()[:32]
        self._places.append(pickle.PickleBuffer(b""))
        self.files.append((name, thing))
        return _copied, (name, thing.name, self._places[-1])


def _copied(folder: str, name: str, content: bytes) -> Path:
    """Return a copy of a file, in a worker, which removes it when it ends; its name tells how to read it."""
    from distributed import get_worker

    path = Path(get_worker().local_directory) / folder / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        replace_file(path, content)
    return path
