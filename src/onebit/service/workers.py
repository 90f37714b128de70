"""A worker: one decider with its thread, and the queue of its requests.

A worker takes all queued requests of its decider, executes them, waits for the disk once, and then answers them. So
many callers share one commit, and a slow decider delays only its own callers.
"""

import asyncio
import contextvars
import logging
import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from onebit.decider.calls import Call
from onebit.decider.decider import Decider
from onebit.decider.log import Batch
from onebit.decider.queries import BASE_BYTES
from onebit.decider.tickets import LogError, LogWriteError, OwnedError, Status, UnreachableError
from onebit.machine_memory import Budget, MemoryBudgetError
from onebit.service.gate import Problem, problem_of

MOST_WAITING = 10_000  # maximum number of queued requests for one decider
MOST_BYTES_WAITING = 64 << 20  # maximum bytes of all queued requests; parsed, they take several times as much
MOST_BYTES_FOR_ONE = 16 << 20
"""Maximum bytes of requests queued for one decider, so that one that replays does not block others."""
MOST_READERS = 4  # maximum number of concurrent reads of one decider
_MOST_TOGETHER = 500  # requests between two commits
_REMEDY = (
    "answer open tickets, give fewer columns or classes or a learner that keeps less (diagonal=True), or start the "
    "service with a larger --memory"
)
_LOG = logging.getLogger("onebit.serve")


class Load:
    """Resources used by all deciders; `memory` is their maximum in bytes."""

    def __init__(self, memory: float = math.inf) -> None:
        self.n_bytes = 0  # bytes of all queued requests; accessed only by the event loop
        self.budget = Budget(memory, _REMEDY)
        self.closing = threading.Lock()
        """Deciders are closed one at a time, since each may copy its state for a snapshot."""
        self.is_stopping = False  # whether the service is stopping, so that compilation is pointless


class _Job(NamedTuple):
    call: Call
    n_bytes: int
    answer: "asyncio.Future[Any]"
    begun: threading.Lock  # acquired once: by the thread when it starts the job, or by the request when it is cancelled


class DeciderWorker:
    """A decider with its thread; `title` is its namespace and name.

    `warms` is whether to compile the learner before the first guess, `is_new` whether a request just created it.
    """

    def __init__(
        self, title: str, opener: Callable[[], Decider], load: Load, warms: bool = False, is_new: bool = False
    ) -> None:
        self.title, self._opener, self._load, self.is_new = title, opener, load, is_new
        self.decider: Decider | None = None
        self.fault: Exception | None = None
        self.opened = threading.Event()  # set when the decider is open, or opening failed
        self.ready = threading.Event()  # set when compilation is done as well
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._n_bytes = 0  # bytes of requests queued here; accessed only by the event loop
        self._reading = threading.BoundedSemaphore(MOST_READERS)
        self._queueing = threading.Lock()
        self._is_closed = False
        self._status: Status | None = None
        self._is_compiled, self._stop_waiting = not warms, threading.Event()
        self._compiler: threading.Thread | None = None
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
        job = self._put(call, n_bytes)
        try:
            return await asyncio.shield(job.answer)
        except asyncio.CancelledError:
            if job.begun.acquire(blocking=False):
                job.answer.cancel()
                raise
            return await job.answer

    def _put(self, call: Call, n_bytes: int) -> _Job:
        self.open_decider()
        full = ""
        if self._queue.qsize() >= MOST_WAITING:
            full = f"{MOST_WAITING} requests are in line for {self.title}"
        elif self._n_bytes + n_bytes > MOST_BYTES_FOR_ONE:
            full = f"requests of {MOST_BYTES_FOR_ONE >> 20} MB are in line for {self.title}"
        elif self._load.n_bytes + n_bytes > MOST_BYTES_WAITING:
            full = f"requests of {MOST_BYTES_WAITING >> 20} MB are in line"
        if full:
            raise Problem(503, f"{full}; try again", "BusyError", 1)
        with self._queueing:
            if self._is_closed:
                raise stopping()
            job = _Job(call, n_bytes, asyncio.get_running_loop().create_future(), threading.Lock())
            self._queue.put(job)
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
                raise stopping() from None
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

    def status_within(self, seconds: float) -> tuple[Status | None, bool]:
        """Return the latest known status of an open decider, and whether it is busy for longer than `seconds`."""
        found = self.open_decider().status_within(seconds)
        self._status = found or self._status
        return self._status, found is None

    def stop(self) -> None:
        """Let the thread end after all queued requests; `join` waits for it."""
        with self._queueing:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        self.leave_compiler()

    def leave_compiler(self) -> None:
        """Stop waiting for the compiler, which cannot be interrupted."""
        self._stop_waiting.set()

    def join(self) -> None:
        """Wait until the decider is closed."""
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether its thread, or that of the compiler, is still running."""
        return self._thread.is_alive() or (self._compiler is not None and self._compiler.is_alive())

    # Run by the thread.

    def _work_within_budget(self) -> None:
        with self._load.budget.shared_by(self.title, beside=BASE_BYTES):
            self._work()
        self._load.budget.settle(self.title, 0.0)

    def _work(self) -> None:
        extra = {"decider": self.title}
        try:
            self.decider = self._opened_within_budget()
        except OwnedError as error:
            self.fault = error
            _LOG.info("is open in %s", error.owner, extra=extra)
        except (ValueError, OSError) as error:  # the message is sufficient, without traceback
            self.fault = error
            _LOG.warning("cannot be opened: %s", error, extra=extra)
        except Exception as error:
            self.fault = error
            _LOG.error("cannot be opened", extra=extra, exc_info=error)
        finally:
            self.opened.set()
        if self.decider is not None and not self._load.is_stopping:
            self._compile(self.decider)  # while requests are queued
        self.ready.set()
        if self.decider is None:
            return
        try:
            while jobs := self._next_jobs():
                if self._is_compiled:
                    self._do(self.decider, jobs)
                else:
                    self._deliver(jobs, [(None, stopping()) for _ in jobs])
        finally:
            try:
                with self._load.closing:
                    self.decider.close()
            except (LogError, LogWriteError) as error:
                _LOG.warning("cannot be closed in order: %s", error, extra=extra)

    def _opened_within_budget(self) -> Decider:
        decider = self._opener()
        try:  # its state may need more than was claimed at creation
            self._load.budget.claim(self.title, decider.n_bytes())
        except MemoryBudgetError:
            decider.close()
            raise
        return decider

    def _compile(self, decider: Decider) -> None:
        """Compile what the first guess needs in another thread; return when done, or when the service stops."""
        if self._is_compiled or self._stop_waiting.is_set():
            return

        def compile_() -> None:
            extra, began = {"decider": self.title}, time.monotonic()
            _LOG.info("compiling what its first guess needs", extra=extra)
            try:
                decider.warm_up()
                _LOG.info("is ready: compiled in %.1f seconds", time.monotonic() - began, extra=extra)
            except Exception as error:  # guesses may still work; otherwise the first caller gets the error
                _LOG.warning("cannot be compiled in advance: %s", error, extra=extra)
            self._is_compiled = True
            self._stop_waiting.set()

        within_budget, name = contextvars.copy_context().run, f"onebit {self.title} compiler"
        self._compiler = threading.Thread(target=within_budget, args=(compile_,), name=name, daemon=True)
        self._compiler.start()
        self._stop_waiting.wait()

    def _next_jobs(self) -> list[_Job]:
        """Return all queued jobs, waiting for at least one; none when stopping."""
        first = self._queue.get()
        if first is None:
            return []
        jobs = [first]
        while len(jobs) < _MOST_TOGETHER:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._queue.put(None)
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
        self._load.budget.settle(self.title, decider.n_bytes())
        self._deliver(jobs, [(value, error or _unwritten(held)) for value, error, held in outcomes])

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
            jobs[0].answer.get_loop().call_soon_threadsafe(hand_over)
        except RuntimeError:  # the event loop is closed
            _LOG.warning("%d answers came too late", len(jobs))


def stopping() -> Problem:
    """Return the problem of a request while the service stops."""
    return Problem(503, "the service is stopping; try again", "BusyError", 1)


def _unwritten(batches: list[Batch]) -> LogWriteError | None:
    return next((batch.error for batch in batches if batch.error is not None), None)
