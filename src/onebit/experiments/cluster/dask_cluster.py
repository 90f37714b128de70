"""The executor on the workers of a Dask cluster. Only this process writes the store.

Batches are handed out from here, one to each thread of each worker, and cell by cell: a task plays one cell, bound to
the worker that has begun its batch. So a worker that dies takes with it no more than the cells it was playing, which go
to others; so does a batch whose worker is refused.
"""

import gc
import importlib
import importlib.util
import json
import logging
import pickle
import queue
import secrets
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onebit.experiments.cluster import host
from onebit.experiments.cluster.environment import needs_of
from onebit.experiments.cluster.game_process import FAILED, PLAYED, READY, REFUSED
from onebit.experiments.cluster.host import DIED, GONE, Answer
from onebit.experiments.cluster.luggage import Luggage, only_for, pack, travelling_name
from onebit.experiments.grid import Batch, Cell
from onebit.experiments.run import CellError, InWorkerError, PlayBatch, Played
from onebit.experiments.store import Result

CONNECTING = 30.0  # seconds for a scheduler to answer
RECONNECTING = 120.0  # seconds for a scheduler that was there to come back: as long as a machine takes to start
HOPING = 10.0  # seconds to wait for an acceptable worker when all others were refused
_GLANCE = 1.0  # seconds between two checks of the workers
_COLLECTING = 10.0  # seconds for a result that is there to arrive
_LEAVING = 5.0  # seconds to disconnect
_MOST_DEATHS = 3  # a cell that ends so many workers will end the next one too
_PART_OF_FILE = 2**24  # bytes sent at once


class ClusterError(RuntimeError):
    """The cluster cannot be reached, or none of its workers may play; the message has a remedy."""


class DaskCluster:
    """Plays on the workers of a Dask cluster, each of which plays as many batches at once as it has threads.

    A worker plays only if its code, Python and libraries are those of this process. Data sets are sent to it from here,
    each at most once. Workers may come and go; while there are none, it waits. The results are the same as on one
    machine.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://10.0.0.1:8786``, or the path of its scheduler file.
    say : callable, optional
        Called with messages for the user: the dashboard's address, workers refused or lost. By default they are written
        to standard error.
    """

    def __init__(self, address: str, say: Callable[[str], None] | None = None) -> None:
        if importlib.util.find_spec("distributed") is None:
            raise ValueError("Dask is not installed; install it with: pip install 'onebit[dask]'")
        if not address.strip():
            raise ValueError("the address of the Dask scheduler is empty; give one such as tcp://10.0.0.1:8786")
        self.address = address
        self.bytes_sent = 0
        """Bytes of files sent."""
        self._say = say or _to_standard_error
        self._client: Any = None

    def start(self, play_batch: PlayBatch, todo: Sequence[Batch]) -> None:
        """Connect to the scheduler."""
        self._run = secrets.token_hex(8)
        self._play_batch = play_batch
        self._waiting = deque(_Job(batch, list(batch.cells)) for batch in todo)
        self._n_left = sum(len(batch.cells) for batch in todo)
        self._needs = needs_of(only_for(play_batch, todo[0]), todo)
        self._workers: dict[str, _Worker] = {}
        self._tasks: dict[str, _Task] = {}
        self._deaths: Counter[str] = Counter()
        self._finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._looked_at = -_GLANCE
        self._hopeless_since: float | None = None
        self._has_waited = False
        scheduler_at(self.address)
        self._connect(CONNECTING)
        present = self._present() or {}
        n_threads = sum(int(about["nthreads"]) for about in present.values())
        self._say(
            f"Dask scheduler {self.address}: {_counted(len(present), 'worker')}, {_counted(n_threads, 'thread')}; its "
            f"dashboard is at {self._client.dashboard_link}"
        )

    def results(self) -> Iterator[Played]:
        """Yield the workers' results, and assign what is left."""
        while self._n_left:
            if time.monotonic() - self._looked_at > _GLANCE:
                self._look_around()
            self._hand_out()
            with suppress(queue.Empty):
                yield from self._take(self._finished.get(timeout=_GLANCE))

    def stop(self) -> None:
        """Release the workers: they stop playing and remove what they have of this run."""
        client, self._client = self._client, None
        _close(client)

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
        """Register new workers, and take back the work of lost ones."""
        while (present := self._present()) is None:
            self._reconnect()
        self._looked_at = time.monotonic()
        for address in [address for address in self._workers if address not in present]:
            self._lose(self._workers[address], is_death=True)
        for address, about in present.items():
            if address not in self._workers:
                worker = self._workers[address] = _Worker(address, str(about["name"]), int(about["nthreads"]))
                needs = tuple(self._needs)
                worker.joined = self._submit("join", worker, None, host.join, self._run, needs, host.CODE)
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
            f"the Dask scheduler at {self.address} is gone; waiting up to {RECONNECTING:.0f} s for it to come back"
        )
        for task in self._tasks.values():
            self._take_back(task.job)
        self._tasks.clear()
        self._workers.clear()
        client, self._client = self._client, None
        _close(client)
        self._connect(RECONNECTING)
        self._say(f"the Dask scheduler at {self.address} is back")

    def _lose(self, worker: "_Worker", is_death: bool) -> None:
        """Take back a worker's work."""
        del self._workers[worker.address]
        for key in [key for key, task in self._tasks.items() if task.worker is worker]:
            task = self._tasks.pop(key)
            with suppress(Exception):
                task.future.cancel()
            self._take_back(task.job)
            if is_death and task.job is not None:
                self._count_death(task.job.cells[0], f"worker {worker.shown} is gone")

    def _count_death(self, cell: Cell, how: str) -> None:
        self._deaths[cell.key] += 1
        if self._deaths[cell.key] >= _MOST_DEATHS:
            raise CellError(
                f"{cell.label} was given up: {_MOST_DEATHS} workers died while playing it, the last time {how}. Were "
                "they killed, or out of memory?"
            )
        self._say(f"{how}; {cell.label} is played again by another")

    def _take_back(self, job: "_Job | None") -> None:
        if job is not None:
            # To the front: it was assigned before those that wait.
            self._waiting.appendleft(job)

    def _refuse(self, worker: "_Worker", reason: str) -> None:
        worker.is_ready = False
        worker.refusal = (
            f"Worker {worker.shown} is refused: {reason}. Install there what is installed here, and start it again."
        )
        self._say(worker.refusal)

    def _hand_out(self) -> None:
        for worker in list(self._workers.values()):
            while self._waiting and worker.is_ready and worker.n_playing < worker.n_threads:
                job = self._waiting.popleft()
                luggage = pack(self._play_batch, Batch(job.batch.stream, job.batch.seed, tuple(job.cells)))
                try:
                    self._send_files(worker, luggage)
                except _RemovedError:
                    self._take_back(job)
                    self._lose(worker, is_death=False)
                    self._looked_at = -_GLANCE
                    return
                except _NotSentError as error:
                    self._take_back(job)
                    if worker.address in (self._present() or ()):
                        self._refuse(worker, f"it could not be sent a file ({error})")
                    else:
                        self._looked_at = -_GLANCE
                    return
                worker.n_playing += 1
                self._play_next(worker, job, secrets.token_hex(4), luggage.job)

    def _send_files(self, worker: "_Worker", luggage: Luggage) -> None:
        for name, path in luggage.files.items():
            if name in worker.files:
                continue
            if travelling_name(path) != name:
                raise CellError(f"{path} has changed while it was being played; run again")
            with path.open("rb") as file:
                start = 0
                while (part := file.read(_PART_OF_FILE)) or not start:
                    self._send(worker, name, start, part)
                    start += max(1, len(part))
                    self.bytes_sent += len(part)
            worker.files.add(name)

    def _send(self, worker: "_Worker", name: str, start: int, part: bytes) -> None:
        try:
            taken = self._client.run(host.receive, self._run, name, start, part, workers=[worker.address])
        except Exception as error:
            raise _NotSentError(f"{type(error).__name__}: {error}") from error
        if not taken[worker.address]:
            raise _RemovedError

    def _play_next(self, worker: "_Worker", job: "_Job", ticket: str, packed: bytes | None) -> None:
        job.ticket = ticket
        is_last = len(job.cells) == 1
        self._submit(job.cells[0].player.name, worker, job, host.play, self._run, ticket, packed, is_last)

    def _submit(self, name: str, worker: "_Worker", job: "_Job | None", function: Any, *arguments: Any) -> Any:
        call = pickle.dumps(_Call(function, *arguments))
        future = self._client.submit(
            pickle.loads,
            call,
            key=f"{name}-{secrets.token_hex(16)}",
            workers=[worker.address],
            allow_other_workers=False,
            pure=False,
        )
        self._tasks[future.key] = _Task(worker, job, future)
        future.add_done_callback(self._finished.put)
        return future

    def _take(self, future: Any) -> Iterator[Played]:
        """Handle a finished task."""
        task = self._tasks.pop(future.key, None)
        if task is None:  # of a worker or scheduler that was lost
            return
        word, *rest = self._answer(future)
        worker, job = task.worker, task.job
        if word == READY:
            worker.is_ready = True
        elif word == REFUSED:
            self._take_back(job)
            self._refuse(worker, rest[0])
        elif job is None or word == GONE:
            self._take_back(job)
            self._lose(worker, is_death=False)
            self._looked_at = -_GLANCE
        elif word == DIED:
            worker.n_playing -= 1
            self._take_back(job)
            self._count_death(job.cells[0], f"a process of worker {worker.shown} died ({rest[0]})")
        elif word == FAILED:
            reason, traceback = rest
            raise CellError(reason) from InWorkerError(traceback)
        elif word == PLAYED:
            yield self._played(worker, job, rest[0])

    def _played(self, worker: "_Worker", job: "_Job", packed: bytes) -> Played:
        cell = job.cells.pop(0)
        try:
            played: Played = pickle.loads(packed)
        except Exception as error:
            raise CellError(f"{cell.label} gave something that cannot be read here: {error}") from error
        # Workers' replies are checked: only the requested cell is stored.
        if not isinstance(played, Played) or played.cell.key != cell.key or not isinstance(played.result, Result):
            raise CellError(f"{cell.label}: worker {worker.shown} answered with something else; start it again")
        if job.cells:
            self._play_next(worker, job, job.ticket, None)
        else:
            worker.n_playing -= 1
        self._n_left -= 1
        return played

    def _answer(self, future: Any) -> Answer:
        from distributed import KilledWorker

        try:
            if future.status == "error":
                error = future.exception(timeout=_COLLECTING)
                if isinstance(error, KilledWorker):
                    return DIED, "it was killed"
                # What this run needs cannot even be called there.
                return REFUSED, f"{type(error).__name__}: {error}"
            answer: Answer = future.result(timeout=_COLLECTING)
        except Exception:  # cancelled, or its worker went with it
            return (GONE,)
        return answer


@dataclass
class _Job:
    """A batch, and the cells of it that are still to be played."""

    batch: Batch
    cells: list[Cell]
    ticket: str = ""
    """Its name where it is played."""


@dataclass
class _Worker:
    address: str
    name: str
    n_threads: int
    is_ready: bool = False
    refusal: str = ""
    """Why it may not play."""
    n_playing: int = 0
    files: set[str] = field(default_factory=set)
    """Those that it has."""
    joined: Any = None
    """Held as long as the run lasts: when released, the worker removes all that it has of the run."""

    @property
    def shown(self) -> str:
        return self.address if self.name == self.address else f"{self.name} ({self.address})"


@dataclass
class _Task:
    worker: _Worker
    job: _Job | None
    """None for the task that prepares a worker."""
    future: Any


class _Call:
    """A value that becomes a call when it is unpickled.

    So tasks consist of Python's own functions, and the scheduler, which unpickles tasks too, needs no onebit.
    """

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._function, self._arguments = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._function, self._arguments


class _RemovedError(Exception):
    """A worker has removed what it had of the run after losing the connection: it must join again."""


class _NotSentError(Exception):
    """A file could not be sent to a worker."""


def scheduler_at(address: str) -> str:
    """Return the address of a scheduler, read from its file if it is one, or raise an error with the reason.

    A client that is given a bad one ends with a traceback, a minute later.

    Parameters
    ----------
    address : str
        What the user gave.
    """
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
    """Disconnect from a scheduler, whether it still answers or not."""
    if client is not None:
        with suppress(Exception):
            client.close(timeout=_LEAVING)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _to_standard_error(text: str) -> None:
    print(text, file=sys.stderr)
