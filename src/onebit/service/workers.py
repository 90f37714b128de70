"""The workers of a service: one log and one thread for each decider.

A worker takes all queued requests of its decider, executes them, waits for the disk once, and then answers them. So
many callers share one commit, and a slow decider delays only its own callers.

If several services share a database, each decider is open in one of them. The others check every `LOOK_SECONDS` whether
it is free, and the first one takes it over.
"""

import asyncio
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from onebit.decider.decider import Decider
from onebit.decider.log import Batch
from onebit.decider.queries import BASE_BYTES, CLASS_BYTES
from onebit.decider.settings import check_same
from onebit.decider.tickets import LogError, LogWriteError, OwnedError, UnreachableError
from onebit.machine_memory import Budget, MemoryBudgetError
from onebit.service.bodies import Call
from onebit.service.compiling import Compiling
from onebit.service.limits import MOST_BYTES_FOR_ONE, MOST_BYTES_WAITING, MOST_DECIDERS, MOST_READERS, MOST_WAITING
from onebit.service.names import check_name
from onebit.service.problems import problem_of
from onebit.service.stores import Store
from onebit.service.web import Problem

LOOK_SECONDS = 2.0
"""Interval at which a service checks for free deciders."""
_OPENING_SECONDS = 1.0  # how long a stopping service waits for deciders that are being opened
_MOST_TOGETHER = 500  # requests between two commits
_REMEDY = (
    "answer open tickets, give fewer columns or classes or a learner that keeps less (diagonal=True), or start the "
    "service with a larger --memory"
)
_LOG = logging.getLogger("onebit.serve")


class Load:
    """Resources used by all deciders.

    Parameters
    ----------
    memory : float
        Maximum memory in bytes.
    """

    def __init__(self, memory: float = math.inf) -> None:
        self.n_bytes = 0
        """Bytes of all queued requests; accessed only by the event loop."""
        self.budget = Budget(memory, _REMEDY)
        self.closing = threading.Lock()
        """Deciders are closed one at a time, since each may copy its state for a snapshot."""
        self.is_stopping = False
        """Whether the service is stopping, so that compilation is pointless."""


class _Job(NamedTuple):
    call: Call
    n_bytes: int
    answer: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    begun: threading.Lock
    """Acquired once: by the thread when it starts the job, or by the request when it is cancelled."""


class DeciderWorker:
    """A decider with its thread.

    Parameters
    ----------
    title : str
        Its namespace and name.
    opener : callable
        Opens the decider.
    load : Load
        Resources shared with the other workers.
    warms : bool
        Whether to compile the learner before the first guess.
    is_new : bool
        Whether the decider was just created by a request.
    """

    def __init__(
        self, title: str, opener: Callable[[], Decider], load: Load, warms: bool = False, is_new: bool = False
    ) -> None:
        self.title, self._opener, self._load, self.is_new = title, opener, load, is_new
        self.decider: Decider | None = None
        self.fault: Exception | None = None
        self.opened = threading.Event()
        """Set when the decider is open, or opening failed."""
        self.ready = threading.Event()
        """Set when compilation is done as well."""
        self._line: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._n_bytes = 0
        """Bytes of requests queued here; accessed only by the event loop."""
        self._reading = threading.BoundedSemaphore(MOST_READERS)
        self._lining = threading.Lock()
        self._is_closed = False
        self.compiling = Compiling(title, warms)
        # Daemon: the process may end during a replay without loss.
        self._thread = threading.Thread(target=self._work_within_budget, name=f"onebit {title}", daemon=True)
        self._thread.start()

    @property
    def is_ours(self) -> bool:
        """Whether the decider is open and owned by this process."""
        return self.decider is not None and self.decider.refusal is None

    @property
    def may_come_free(self) -> bool:
        """Whether opening failed, but may succeed later."""
        return isinstance(self.fault, (OwnedError, UnreachableError, LogWriteError))

    # Called by requests.

    async def submit(self, call: Call, n_bytes: int) -> Any:
        """Queue a call, and return its result once its events are on disk.

        If the task is cancelled before the thread starts the call, it is dropped; otherwise its end is awaited, since
        it will be written.
        """
        job = self._put_in_line(call, n_bytes)
        try:
            return await asyncio.shield(job.answer)
        except asyncio.CancelledError:
            if job.begun.acquire(blocking=False):
                job.answer.cancel()
                raise
            return await job.answer

    def _put_in_line(self, call: Call, n_bytes: int) -> _Job:
        self.open_decider()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        if self._line.qsize() >= MOST_WAITING:
            raise Problem(503, f"{MOST_WAITING} requests are in line for {self.title}; try again", "BusyError", 1)
        if self._n_bytes + n_bytes > MOST_BYTES_FOR_ONE:
            message = f"requests of {MOST_BYTES_FOR_ONE >> 20} MB are in line for {self.title}; try again"
            raise Problem(503, message, "BusyError", 1)
        if self._load.n_bytes + n_bytes > MOST_BYTES_WAITING:
            message = f"requests of {MOST_BYTES_WAITING >> 20} MB are in line; try again"
            raise Problem(503, message, "BusyError", 1)
        with self._lining:
            if self._is_closed:
                raise _stopping()
            job = _Job(call, n_bytes, answer, loop, threading.Lock())
            self._line.put(job)
        self._note_bytes(n_bytes)
        return job

    def _note_bytes(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        self._load.n_bytes += n_bytes

    async def read(self, call: Call) -> Any:
        """Return the result of a read-only call, concurrently with the queue."""
        decider = self.open_decider()
        if not self._reading.acquire(blocking=False):
            raise Problem(503, f"{MOST_READERS} reports of {self.title} are being made; try again", "BusyError", 1)
        try:
            return await asyncio.to_thread(call, decider)
        except ValueError:
            if self._is_closed:  # closed meanwhile: not the caller's mistake
                raise _stopping() from None
            raise
        finally:
            self._reading.release()

    def open_decider(self) -> Decider:
        """Return the decider, or raise Problem if it is not open."""
        if self.decider is None:
            if self.fault is not None:
                raise problem_of(self.fault)
            raise Problem(503, f"{self.title} is being opened; try again", "BusyError", 1)
        if (refusal := self.decider.refusal) is not None:  # it tries to regain ownership by itself
            raise problem_of(refusal)
        return self.decider

    def stop(self) -> None:
        """Let the thread end after all queued requests; `join` waits for it."""
        with self._lining:
            if not self._is_closed:
                self._is_closed = True
                self._line.put(None)
        self.compiling.leave()

    def join(self) -> None:
        """Wait until the decider is closed."""
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether its thread, or that of the compiler, is still running."""
        return self._thread.is_alive() or self.compiling.is_alive

    # Run by the thread.

    def _work_within_budget(self) -> None:
        with self._load.budget.shared_by(self.title, beside=BASE_BYTES):
            self._work()
        self._load.budget.settle(self.title, 0.0)

    def _work(self) -> None:
        try:
            self.decider = self._opened_within_budget()
        except OwnedError as error:
            self.fault = error
            _LOG.info("is open in %s", error.owner, extra={"decider": self.title})
        except (ValueError, OSError) as error:  # the message is sufficient, without traceback
            self.fault = error
            _LOG.warning("cannot be opened: %s", error, extra={"decider": self.title})
        except Exception as error:
            self.fault = error
            _LOG.error("cannot be opened", extra={"decider": self.title}, exc_info=error)
        finally:
            self.opened.set()
        if self.decider is not None and not self._load.is_stopping:
            self.compiling.wait(self.decider)  # while requests are queued
        self.ready.set()
        if self.decider is None:
            return
        try:
            while jobs := self._next_jobs():
                if self.compiling.is_done:
                    self._do(self.decider, jobs)
                else:
                    self._deliver(jobs, [(None, _stopping()) for _ in jobs])
        finally:
            try:
                with self._load.closing:
                    self.decider.close()
            except (LogError, LogWriteError) as error:
                _LOG.warning("cannot be closed in order: %s", error, extra={"decider": self.title})

    def _opened_within_budget(self) -> Decider:
        decider = self._opener()
        try:  # its state may need more than was claimed at creation
            self._load.budget.claim(self.title, decider.n_bytes())
        except MemoryBudgetError:
            decider.close()
            raise
        return decider

    def _next_jobs(self) -> list[_Job]:
        """Return all queued jobs, waiting for at least one; none when stopping."""
        first = self._line.get()
        if first is None:
            return []
        jobs = [first]
        while len(jobs) < _MOST_TOGETHER:
            try:
                job = self._line.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._line.put(None)
                break
            jobs.append(job)
        return jobs

    def _do(self, decider: Decider, jobs: list[_Job]) -> None:
        outcomes: list[tuple[Any, BaseException | None, list[Batch]]] = []
        try:
            with decider.batch() as batches:
                for job in jobs:
                    n_before = max(len(batches) - 1, 0)
                    if not job.begun.acquire(blocking=False):
                        outcomes.append((None, None, []))  # the request was cancelled
                        continue
                    try:
                        outcomes.append((job.call(decider), None, []))
                    except Exception as error:
                        outcomes.append((None, error, []))
                    outcomes[-1][2].extend(batches[n_before:])
        except LogWriteError as error:
            _LOG.error("cannot be written", extra={"decider": self.title}, exc_info=error)
        except Exception as error:  # a bug: nothing counts as written, and the thread goes on
            _LOG.error("cannot be written", extra={"decider": self.title}, exc_info=error)
            outcomes = [(None, error, [])] * len(jobs)
        self._note_memory(decider)
        self._deliver(jobs, [(value, error or _unwritten(held)) for value, error, held in outcomes])

    def _note_memory(self, decider: Decider) -> None:
        self._load.budget.settle(self.title, decider.n_bytes())

    def _deliver(self, jobs: list[_Job], outcomes: list[tuple[Any, BaseException | None]]) -> None:
        """Set the results of jobs, in the event loop."""

        def hand_over() -> None:
            for job, (value, error) in zip(jobs, outcomes, strict=True):
                self._note_bytes(-job.n_bytes)
                if job.answer.done():  # cancelled
                    continue
                if error is None:
                    job.answer.set_result(value)
                else:
                    job.answer.set_exception(error)

        try:
            jobs[0].loop.call_soon_threadsafe(hand_over)
        except RuntimeError:  # the event loop is closed
            _LOG.warning("%d answers came too late", len(jobs))


def n_classes_of(settings: dict[str, Any]) -> int:
    """Return the number of classes in the settings of a new decider, 0 if invalid."""
    classes = settings.get("classes")
    return classes if isinstance(classes, int) else len(classes) if isinstance(classes, list) else 0


def _stopping() -> Problem:
    return Problem(503, "the service is stopping; try again", "BusyError", 1)


def _unwritten(batches: list[Batch]) -> LogWriteError | None:
    return next((batch.error for batch in batches if batch.error is not None), None)


class WorkerPool:
    """The workers of all deciders of a store.

    Parameters
    ----------
    store : Store
        Where the deciders are stored.
    warms : bool
        As for `DeciderWorker`.
    memory : float
        Maximum memory of all deciders in bytes.
    """

    def __init__(self, store: Store, warms: bool = False, memory: float = math.inf) -> None:
        self._store, self._warms, self._load = store, warms, Load(memory)
        self._workers: dict[tuple[str, str], DeciderWorker] = {}
        self._creating = threading.Lock()
        self._left_alone: set[str] = set()
        self._has_looked = False
        self._asking, self._asked = asyncio.Lock(), -math.inf
        self._trouble: LogError | None = None
        self._stop = threading.Event()
        self._looker = threading.Thread(target=self._look_in_turn, name="onebit standby")

    def open_all(self) -> None:
        """Start opening all deciders; with a shared store, keep checking for free ones."""
        if self._store.is_shared:
            self._looker.start()
        else:
            self.look()

    def _look_in_turn(self) -> None:
        last = ""
        while True:
            trouble = ""
            try:
                self.look()
            except Exception as error:  # any error: the standby thread must go on
                trouble = str(error) or repr(error)
            if trouble != last:  # log changes only
                _LOG.warning("%s", trouble or "the database can be reached again")
            last = trouble
            if self._stop.wait(LOOK_SECONDS):
                return

    def look(self) -> None:
        """Start opening deciders that are new, or were released by another process."""
        found = self._store.deciders()
        with self._creating:
            for title, owner in found.items():
                namespace, _, name = title.partition("/")
                try:
                    key = check_name("namespace", namespace), check_name("name", name)
                except ValueError as error:
                    if title not in self._left_alone:
                        self._left_alone.add(title)
                        _LOG.warning("%s is left alone: %s", title, error)
                    continue
                worker = self._workers.get(key)
                if not self._stop.is_set() and (worker is None or (worker.may_come_free and owner is None)):
                    self._workers[key] = self._new_worker(title, {})
            self._has_looked = True

    def _new_worker(self, title: str, settings: dict[str, Any]) -> DeciderWorker:
        return DeciderWorker(title, lambda: self._store.open(title, settings), self._load, self._warms, bool(settings))

    def get(self, namespace: str, name: str) -> DeciderWorker:
        """Return the worker of a decider, or raise Problem if there is none."""
        worker = self._workers.get((namespace, name))
        if worker is None:
            raise Problem(
                404, f"there is no decider {namespace}/{name}; PUT /v1/{namespace}/{name} makes one", "LogError"
            )
        return worker

    async def find(self, namespace: str, name: str) -> DeciderWorker:
        """Like `get`, but also find deciders just created by another service."""
        if (namespace, name) not in self._workers and self._store.is_shared:
            asked = time.monotonic()
            async with self._asking:  # one search at a time
                if asked >= self._asked:  # else another request has searched meanwhile
                    self._asked, self._trouble = time.monotonic(), None
                    try:
                        await asyncio.to_thread(self.look)
                    except LogError as error:
                        self._trouble = error
                if self._trouble is not None:
                    raise problem_of(self._trouble)
        return self.get(namespace, name)

    def __iter__(self) -> Iterator[tuple[str, str, DeciderWorker]]:
        for (namespace, name), worker in sorted(self._workers.items()):
            yield namespace, name, worker

    @property
    def awaited(self) -> str:
        """Message on what is pending before the service is ready; empty if it is.

        Deciders created by a request do not count: only their own callers wait for them.
        """
        if not self._has_looked:
            return "deciders are being looked for"
        waiting = [worker for worker in list(self._workers.values()) if not worker.ready.is_set() and not worker.is_new]
        n_compiling = sum(worker.opened.is_set() for worker in waiting)
        what = f"{len(waiting) - n_compiling} deciders are being opened, {n_compiling} are being compiled"
        return what if waiting else ""

    def create(self, namespace: str, name: str, settings: dict[str, Any]) -> bool:
        """Create a decider and wait until it is ready; return whether it is new. An existing one must match."""
        is_new = self._created(namespace, name, settings)
        self.get(namespace, name).ready.wait()  # without the lock: may take a minute
        return is_new

    def _created(self, namespace: str, name: str, settings: dict[str, Any]) -> bool:
        before = self._workers.get((namespace, name))
        if before is not None:
            before.opened.wait()  # without the lock: may take long
        with self._creating:
            if self._stop.is_set():
                raise _stopping()
            before = self._workers.get((namespace, name))
            if before is not None and before.fault is None:
                decider = before.open_decider()
                classes = decider.classes
                try:
                    check_same(before.title, decider.settings, settings, classes=classes)
                except LogError as error:
                    raise Problem(409, str(error), "LogError") from error
                return False
            if before is None and len(self._workers) >= MOST_DECIDERS:
                raise Problem(409, f"the service has {MOST_DECIDERS} deciders, and takes no more", "LogError")
            title = f"{namespace}/{name}"
            # Before a file is created; the width of rows is known only after the first record.
            self._load.budget.claim(title, BASE_BYTES + CLASS_BYTES * n_classes_of(settings))
            worker = self._new_worker(title, settings)
            worker.opened.wait()
            if worker.fault is not None:
                worker.join()
                raise worker.fault
            self._workers[namespace, name] = worker
            return before is None

    def stop_compiling(self) -> None:
        """Stop waiting for compilation: the service is stopping."""
        self._load.is_stopping = True
        for worker in list(self._workers.values()):
            worker.compiling.leave()

    @property
    def has_left_threads(self) -> bool:
        """Whether abandoned threads are still opening or compiling deciders."""
        return any(worker.is_alive for worker in list(self._workers.values()))

    def close(self) -> None:
        """Finish all queued requests and close all deciders."""
        self._stop.set()
        if self._looker.is_alive():
            self._looker.join()
        with self._creating:  # no more workers are added
            workers = list(self._workers.values())
        for worker in workers:
            worker.stop()
        end = time.monotonic() + _OPENING_SECONDS
        for worker in workers:
            if worker.opened.wait(max(0.0, end - time.monotonic())):
                worker.join()
            else:
                _LOG.warning("is left while it is being opened", extra={"decider": worker.title})
