"""The deciders of a service: a thread and a queue for each, and where they are stored.

A worker takes all queued requests of its decider, executes them, waits for the disk once, and then answers them. Where
several services share a database, each decider is open in one of them; the first to find it free takes it over.
"""

import asyncio
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onebit.decider.decider import Decider
from onebit.decider.log import Batch
from onebit.decider.tickets import LogError, LogWriteError, OwnedError, Status, UnreachableError
from onebit.extras import require_extra
from onebit.files import make_folder
from onebit.machine_memory import Budget, MemoryBudgetError
from onebit.service.access import check_name
from onebit.service.gate import Problem

_MOST_DECIDERS = 200  # maximum number of deciders; each has a thread and a file
_MOST_WAITING = 10_000  # maximum number of queued requests for one decider
_MOST_BYTES_WAITING = 64 << 20  # maximum bytes of all queued requests; parsed, they take several times as much
_MOST_BYTES_FOR_ONE = 16 << 20  # and for one decider, so that one that replays does not block others
_MOST_READERS = 4  # maximum number of concurrent reads of one decider
_LOOK_SECONDS = 2.0  # interval at which a service checks for free deciders
_OPENING_SECONDS = 1.0  # how long a stopping service waits for deciders that are being opened
_MOST_TOGETHER = 500  # requests between two commits
_SETTLE_SECONDS = 0.1  # interval at which the memory of a decider is measured that only guesses
_GLANCE_SECONDS = 0.05  # interval at which a worker that waits for the compiler sees whether the service stops
_REMEDY = (
    "answer open tickets, give fewer columns or classes or a learner that keeps less (diagonal=True), or start the "
    "service with a larger --memory"
)
_TEMPORARY = (OwnedError, UnreachableError, LogWriteError)
_STOPPING = "the service is stopping"
_LOG = logging.getLogger("onebit.serve")


@dataclass(slots=True, eq=False)
class _Job:
    call: Callable[[Decider], Any]
    claims: bool  # the memory that it takes, by itself
    answer: "asyncio.Future[Any]"
    begun: threading.Lock  # acquired once: by the thread when it starts the job, or by the request when it is cancelled
    value: Any = None
    error: BaseException | None = None
    batches: Sequence[Batch] = ()  # in which its events are written


class DeciderWorker:
    """A decider with its thread; `title` is its namespace and name. With `settings` a request creates it."""

    def __init__(self, pool: "WorkerPool", title: str, settings: dict[str, Any] | None = None) -> None:
        self._pool, self.title, self._settings, self.is_new = pool, title, settings or {}, settings is not None
        self.decider: Decider | None = None
        self.fault: Exception | None = None
        self.opened = threading.Event()  # set when the decider is open, or opening failed
        self.ready = threading.Event()  # set when compilation is done as well
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._n_bytes = 0  # bytes of requests queued here; accessed only by the event loop
        self._reading = threading.BoundedSemaphore(_MOST_READERS)
        self._queueing = threading.Lock()
        self._is_closed = False
        self._status: Status | None = None
        # Its own, and that of the compiler. Daemons: the process may end during a replay without loss.
        self.threads = [threading.Thread(target=self._run, name=f"onebit {title}", daemon=True)]
        self.threads[0].start()

    @property
    def is_ours(self) -> bool:
        """Whether the decider is open and owned by this process."""
        return self.decider is not None and self.decider.refusal is None

    async def submit(self, call: Callable[[Decider], Any], n_bytes: int, claims: bool = False) -> Any:
        """Queue a call, which may claim its memory itself, and return its result once its events are on disk.

        If the task is cancelled, a call that has not begun is dropped; the end of one that has is awaited.
        """
        self.open_decider()
        if self._queue.qsize() >= _MOST_WAITING:
            raise Problem.busy(f"{_MOST_WAITING} requests are in line for {self.title}")
        if self._n_bytes + n_bytes > _MOST_BYTES_FOR_ONE:
            raise Problem.busy(f"requests of {_MOST_BYTES_FOR_ONE >> 20} MB are in line for {self.title}")
        if self._pool.n_bytes + n_bytes > _MOST_BYTES_WAITING:
            raise Problem.busy(f"requests of {_MOST_BYTES_WAITING >> 20} MB are in line")
        job = _Job(call, claims, asyncio.get_running_loop().create_future(), threading.Lock())
        with self._queueing:
            if self._is_closed:
                raise Problem.busy(_STOPPING)
            self._queue.put(job)
        self._n_bytes += n_bytes
        self._pool.n_bytes += n_bytes
        try:
            return await asyncio.shield(job.answer)
        except asyncio.CancelledError:
            if job.begun.acquire(blocking=False):
                job.answer.cancel()
                raise
            return await job.answer
        finally:
            self._n_bytes -= n_bytes
            self._pool.n_bytes -= n_bytes

    async def read(self, call: Callable[[Decider], Any]) -> Any:
        """Return the result of a read-only call, concurrently with the queue."""
        decider = self.open_decider()
        if not self._reading.acquire(blocking=False):
            raise Problem.busy(f"{_MOST_READERS} reports of {self.title} are being made")
        try:
            return await asyncio.to_thread(call, decider)
        except ValueError:
            if self._is_closed:  # closed meanwhile: not the caller's mistake
                raise Problem.busy(_STOPPING) from None
            raise
        finally:
            self._reading.release()

    def open_decider(self) -> Decider:
        """Return the decider, or raise Problem if it is not open."""
        if self.decider is None:
            raise Problem.busy(f"{self.title} is being opened") if self.fault is None else Problem.of(self.fault)
        if (refusal := self.decider.refusal) is not None:  # it tries to regain ownership by itself
            raise Problem.of(refusal)
        return self.decider

    def status_within(self, seconds: float) -> tuple[Status | None, bool]:
        """Return the latest known status of an open decider, and whether it is busy for longer than `seconds`."""
        found = self.open_decider().status_within(seconds)
        self._status = found or self._status
        return self._status, found is None

    def stop(self) -> None:
        """Let the thread end after all queued requests."""
        with self._queueing:
            self._is_closed = True
            self._queue.put(None)

    def _run(self) -> None:
        pool, extra = self._pool, {"decider": self.title}
        with pool.budget.shared_by(self.title, beside=Decider.least_bytes()):
            try:
                self.decider = pool.open(self.title, self._settings)
            except Exception as error:
                self.fault = error
                if isinstance(error, OwnedError):
                    _LOG.info("is open in %s", error.owner, extra=extra)
                else:  # of a file the message is sufficient
                    is_known = isinstance(error, (ValueError, OSError))
                    _LOG.warning("cannot be opened: %s", error, extra=extra, exc_info=None if is_known else error)
            self.opened.set()
            if self.decider is not None:
                try:
                    is_compiled = not pool.warms or self._compile(self.decider)  # while requests are queued
                    self.ready.set()
                    self._work(self.decider, is_compiled)
                finally:
                    try:
                        with pool.closing:
                            self.decider.close()
                    except (LogError, LogWriteError) as error:
                        _LOG.warning("cannot be closed in order: %s", error, extra=extra)
        self.ready.set()
        pool.budget.settle(self.title, 0.0)

    def _compile(self, decider: Decider) -> bool:
        """Compile what the first guess needs in another thread; return whether it was done before the service stops."""

        def compile_() -> None:
            extra, began = {"decider": self.title}, time.monotonic()
            _LOG.info("compiling what its first guess needs", extra=extra)
            try:
                with self._pool.budget.shared_by(self.title, beside=Decider.least_bytes()):
                    decider.warm_up()
                _LOG.info("is ready: compiled in %.1f seconds", time.monotonic() - began, extra=extra)
            except Exception as error:  # guesses may still work; otherwise the first caller gets the error
                _LOG.warning("cannot be compiled in advance: %s", error, extra=extra)

        compiler = threading.Thread(target=compile_, name=f"onebit {self.title} compiler", daemon=True)
        self.threads.append(compiler)
        compiler.start()
        while compiler.is_alive() and not self._pool.stopping.is_set():  # the compiler cannot be interrupted
            compiler.join(_GLANCE_SECONDS)
        return not self._pool.stopping.is_set()

    def _work(self, decider: Decider, is_compiled: bool) -> None:
        """Do what is queued, as much at once as there is, until the worker is stopped."""
        is_last, settled = False, -math.inf
        while not is_last:
            taken = [self._queue.get()]
            taken += [self._queue.get() for _ in range(min(self._queue.qsize(), _MOST_TOGETHER - 1))]
            jobs = [job for job in taken if job is not None]
            is_last = len(jobs) < len(taken)
            if not jobs:
                continue
            failure = self._do(decider, jobs) if is_compiled else Problem.busy(_STOPPING)
            if is_compiled and (not all(job.claims for job in jobs) or time.monotonic() - settled > _SETTLE_SECONDS):
                self._pool.budget.settle(self.title, decider.n_bytes())
                settled = time.monotonic()
            try:
                jobs[0].answer.get_loop().call_soon_threadsafe(_hand_over, jobs, failure)
            except RuntimeError:  # the event loop is closed
                _LOG.warning("%d answers came too late", len(jobs))

    def _do(self, decider: Decider, jobs: list[_Job]) -> Exception | None:
        """Do jobs, and wait for the disk once; return what failed for all of them."""
        try:
            with decider.batch() as batches:
                for job in jobs:
                    n_before = max(len(batches) - 1, 0)
                    if job.begun.acquire(blocking=False):  # else the request was cancelled
                        try:
                            job.value = job.call(decider)
                        except Exception as error:
                            job.error = error
                    job.batches = batches[n_before:]
        except Exception as error:
            _LOG.error("cannot be written", extra={"decider": self.title}, exc_info=error)
            return None if isinstance(error, LogWriteError) else error  # a bug: nothing counts as written
        return None


def _hand_over(jobs: list[_Job], failure: Exception | None) -> None:
    """Set the results of jobs, in the event loop."""
    for job in jobs:
        error = failure or job.error or next((batch.error for batch in job.batches if batch.error is not None), None)
        if job.answer.done():  # cancelled
            continue
        if error is None:
            job.answer.set_result(job.value)
        else:
            job.answer.set_exception(error)


class WorkerPool:
    """The workers of all deciders of a folder, in files ``namespace/name.onebit``, or of the database at a URL.

    `memory` is the maximum of all deciders in bytes, `warms` whether learners are compiled before the first guess.
    """

    def __init__(self, folder: Path, url: str | None = None, *, warms: bool = False, memory: float = math.inf) -> None:
        self._folder, self.warms = folder, warms
        self._database: Any = None
        self.is_shared = url is not None  # with other services
        if url is not None:
            require_extra("PostgreSQL needs", "postgres")
            from onebit.decider.postgres import Database

            self._database = Database(url)
        self.n_bytes = 0  # bytes of all queued requests; accessed only by the event loop
        self.budget = Budget(memory, _REMEDY)
        self.closing = threading.Lock()  # held to close a decider, since each may copy its state for a snapshot
        self.stopping = threading.Event()  # set when the service stops: nothing is compiled or begun any more
        self._workers: dict[tuple[str, str], DeciderWorker] = {}
        self._creating = threading.Lock()
        self._has_looked = False
        self._asking, self._asked = asyncio.Lock(), -math.inf
        self._trouble: LogError | None = None
        self._standby = threading.Thread(target=self._look_repeatedly, name="onebit standby")

    def stored(self) -> dict[str, str | None]:
        """Return the titles of all stored deciders, each with its owner in a database."""
        if self._database is not None:
            return dict(self._database.deciders())
        return {f"{path.parent.name}/{path.stem}": None for path in sorted(self._folder.glob("*/*.onebit"))}

    def open(self, title: str, settings: dict[str, Any]) -> Decider:
        """Open a decider, if there is memory for it."""
        if self._database is not None:
            decider = Decider.open(self._database.url, name=title, **settings)
        else:
            path = self._folder / f"{title}.onebit"
            make_folder(path.parent)
            try:
                decider = Decider.open(path, **settings)
            except BaseException:
                with suppress(OSError):  # not empty
                    path.parent.rmdir()
                raise
        try:  # its state may need more than was claimed at creation
            self.budget.claim(title, decider.n_bytes())
        except MemoryBudgetError:
            decider.close()
            raise
        return decider

    def open_all(self) -> None:
        """Start opening all deciders; in a shared database, keep checking for free ones."""
        for path in [] if self.is_shared else sorted(self._folder.glob("*.onebit")):
            _LOG.warning(
                "%s is not served: a decider is in a folder of the folder. Move all files %s* to one, as shop/%s",
                path.name,
                path.name,
                path.name,
            )
        if self.is_shared:
            self._standby.start()
        else:
            self.look()

    def _look_repeatedly(self) -> None:
        last = ""
        while not self.stopping.is_set():
            trouble = ""
            try:
                self.look()
            except Exception as error:  # any error: the standby thread must go on
                trouble = str(error) or repr(error)
            if trouble != last:  # log changes only
                _LOG.warning("%s", trouble or "the database can be reached again")
            last = trouble
            self.stopping.wait(_LOOK_SECONDS)

    def look(self) -> None:
        """Start opening deciders that are new, or were released by another process."""
        found = self.stored()
        with self._creating:
            for title, owner in found.items():
                namespace, _, name = title.partition("/")
                try:
                    key = check_name("namespace", namespace), check_name("name", name)
                except ValueError as error:
                    if not self._has_looked:
                        _LOG.warning("%s is left alone: %s", title, error)
                    continue
                worker = self._workers.get(key)
                # Opening may succeed later.
                is_free = worker is None or (owner is None and isinstance(worker.fault, _TEMPORARY))
                if is_free and not self.stopping.is_set():
                    self._workers[key] = DeciderWorker(self, title)
            self._has_looked = True

    def get(self, namespace: str, name: str) -> DeciderWorker:
        """Return the worker of a decider, or raise Problem if there is none."""
        worker, title = self._workers.get((namespace, name)), f"{namespace}/{name}"
        if worker is None:
            raise Problem(404, f"there is no decider {title}; PUT /v1/{title} makes one", "LogError")
        return worker

    async def find(self, namespace: str, name: str) -> DeciderWorker:
        """Like `get`, but also find deciders just created by another service; raises ValueError for invalid names."""
        if (worker := self._workers.get((namespace, name))) is not None:
            return worker
        check_name("namespace", namespace)
        check_name("name", name)
        if self.is_shared:
            asked = time.monotonic()
            async with self._asking:  # one search at a time
                if asked >= self._asked:  # else another request has searched meanwhile
                    self._asked, self._trouble = time.monotonic(), None
                    try:
                        await asyncio.to_thread(self.look)
                    except LogError as error:
                        self._trouble = error
                if self._trouble is not None:
                    raise Problem.of(self._trouble)
        return self.get(namespace, name)

    async def submit(self, namespace: str, name: str, *call: Any) -> Any:
        """Queue a call of a decider, as its worker's `submit` does."""
        return await (await self.find(namespace, name)).submit(*call)

    def __iter__(self) -> Iterator[tuple[str, str, DeciderWorker]]:
        for (namespace, name), worker in sorted(self._workers.items()):
            yield namespace, name, worker

    @property
    def awaited(self) -> str:
        """Message on what is pending before the service is ready; empty if it is."""
        if not self._has_looked:
            return "deciders are being looked for"
        # Only its own caller waits for one that a request creates.
        waiting = [each for each in list(self._workers.values()) if not each.is_new and not each.ready.is_set()]
        n_compiling = sum(worker.opened.is_set() for worker in waiting)
        doing = f"{len(waiting) - n_compiling} deciders are being opened, {n_compiling} are being compiled"
        return doing if waiting else ""

    def create(self, namespace: str, name: str, settings: dict[str, Any]) -> bool:
        """Create a decider and wait until it is ready; return whether it is new. An existing one must match."""
        title, key = f"{namespace}/{name}", (namespace, name)
        before = self._workers.get(key)
        if before is not None:
            before.opened.wait()  # without the lock: may take long
        with self._creating:
            if self.stopping.is_set():
                raise Problem.busy(_STOPPING)
            before = self._workers.get(key)
            if before is not None and before.fault is None:
                worker, decider = before, before.open_decider()
                classes = decider.classes  # not within try: its errors are no conflict, and name a path
                try:
                    decider.settings.check_same(title, settings, classes)
                except LogError as error:
                    raise Problem(409, str(error), "LogError") from error
            else:
                if before is None and len(self._workers) >= _MOST_DECIDERS:
                    raise Problem(409, f"the service has {_MOST_DECIDERS} deciders, and takes no more", "LogError")
                # Before a file is created; the width of rows is known only after the first record.
                given = settings["classes"]
                self.budget.claim(title, Decider.least_bytes(given if isinstance(given, int) else len(given)))
                worker = DeciderWorker(self, title, settings)
                worker.opened.wait()
                if worker.fault is not None:
                    worker.threads[0].join()
                    raise worker.fault
                self._workers[key] = worker
        worker.ready.wait()  # without the lock: may take a minute
        return before is None

    @property
    def has_left_threads(self) -> bool:
        """Whether abandoned threads are still opening or compiling deciders."""
        return any(thread.is_alive() for worker in list(self._workers.values()) for thread in worker.threads)

    def close(self) -> None:
        """Finish all queued requests and close all deciders."""
        self.stopping.set()
        if self._standby.is_alive():
            self._standby.join()
        with self._creating:  # no more workers are added
            workers = list(self._workers.values())
        for worker in workers:
            worker.stop()
        end = time.monotonic() + _OPENING_SECONDS
        for worker in workers:
            if worker.opened.wait(max(0.0, end - time.monotonic())):
                worker.threads[0].join()
            else:
                _LOG.warning("is left while it is being opened", extra={"decider": worker.title})
