"""The deciders of a service: one log and one thread each.

A decider's thread takes all requests that are in line for it, lets the decider do them, waits for the disk once, and
only then answers them. So many callers share one commit, and a decider that is slow keeps only its own callers waiting.

Where several services share a database, each decider is open in one of them. The others look every `LOOK_SECONDS`
whether its owner has let go, and the first that sees it takes it over.
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
from onebit.decider.log_errors import LogError, LogWriteError, OwnedError, UnreachableError
from onebit.decider.looks import AT_LEAST, OF_A_CLASS
from onebit.decider.settings import check_same
from onebit.machine_memory import Budget, MemoryBudgetError
from onebit.service.bodies import Call
from onebit.service.compiling import Compiling
from onebit.service.limits import MOST_BYTES_FOR_ONE, MOST_BYTES_WAITING, MOST_DECIDERS, MOST_READERS, MOST_WAITING
from onebit.service.names import check_name
from onebit.service.problems import problem_of
from onebit.service.stores import Store
from onebit.service.web import Problem

LOOK_SECONDS = 2.0
"""How often a service looks whether a decider of another one has come free."""
_OPENING_SECONDS = 1.0  # that a service which stops waits for deciders that it opens
_MOST_TOGETHER = 500  # requests between two commits
_REMEDY = (
    "answer open tickets, give fewer columns or classes or a learner that keeps less (diagonal=True), or start the "
    "service with a larger --memory"
)
_LOG = logging.getLogger("onebit.serve")


class Load:
    """What all deciders take together.

    Parameters
    ----------
    memory : float
        Bytes of memory that they may take.
    """

    def __init__(self, memory: float = math.inf) -> None:
        self.n_bytes = 0
        """Of what is in line; only the service's loop looks at it."""
        self.budget = Budget(memory, _REMEDY)
        self.closing = threading.Lock()
        """Held by the one that is being closed: a snapshot is a copy of all that it knows."""
        self.is_stopping = False
        """Whether the service is about to stop, and nothing need be compiled any more."""


class _Job(NamedTuple):
    call: Call
    n_bytes: int
    answer: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    begun: threading.Lock
    """Held for good by the first to take it: the thread, which then does the job, or the request, which gave it up."""


class Desk:
    """A decider with its thread.

    Parameters
    ----------
    title : str
        Its namespace and name.
    opener : callable
        Opens it.
    load : Load
        What is in line here and elsewhere.
    warms : bool
        Whether to compile what a first guess needs before there is one.
    is_new : bool
        Whether a request has just made it.
    """

    def __init__(
        self, title: str, opener: Callable[[], Decider], load: Load, warms: bool = False, is_new: bool = False
    ) -> None:
        self.title, self._opener, self._load, self.is_new = title, opener, load, is_new
        self.decider: Decider | None = None
        self.fault: Exception | None = None
        self.opened = threading.Event()
        """Set when it is open, or cannot be."""
        self.ready = threading.Event()
        """Set when its first guess need not wait for the compiler either."""
        self._line: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._n_bytes = 0
        """Of what is in line here; only the service's loop looks at it."""
        self._reading = threading.BoundedSemaphore(MOST_READERS)
        self._lining = threading.Lock()
        self._is_closed = False
        self.compiling = Compiling(title, warms)
        # The process may end while it is being opened, which takes a replay: nothing of that is lost.
        self._thread = threading.Thread(target=self._work_within_budget, name=f"onebit {title}", daemon=True)
        self._thread.start()

    @property
    def is_ours(self) -> bool:
        """Whether it is open, and no other process's."""
        return self.decider is not None and self.decider.refusal is None

    @property
    def may_come_free(self) -> bool:
        """Whether it could not be opened, and might be later."""
        return isinstance(self.fault, (OwnedError, UnreachableError, LogWriteError))

    # What requests call.

    async def submit(self, call: Call, n_bytes: int) -> Any:
        """Put a request of so many bytes in line, and return what it returned once that is on the disk.

        If the task is cancelled, a request that the thread has not begun never is. One that it has begun is waited for:
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
            says = f"requests of {MOST_BYTES_FOR_ONE >> 20} MB are in line for {self.title}; try again"
            raise Problem(503, says, "BusyError", 1)
        if self._load.n_bytes + n_bytes > MOST_BYTES_WAITING:
            says = f"requests of {MOST_BYTES_WAITING >> 20} MB are in line; try again"
            raise Problem(503, says, "BusyError", 1)
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
        """Return what a call says that changes nothing, beside the requests in line."""
        decider = self.open_decider()
        if not self._reading.acquire(blocking=False):
            raise Problem(503, f"{MOST_READERS} reports of {self.title} are being made; try again", "BusyError", 1)
        try:
            return await asyncio.to_thread(call, decider)
        except ValueError:
            if self._is_closed:  # the decider was closed meanwhile, which is not the caller's mistake
                raise _stopping() from None
            raise
        finally:
            self._reading.release()

    def open_decider(self) -> Decider:
        """Return the decider, or raise what there is to say if it is not open."""
        if self.decider is None:
            if self.fault is not None:
                raise problem_of(self.fault)
            raise Problem(503, f"{self.title} is being opened; try again", "BusyError", 1)
        if (refusal := self.decider.refusal) is not None:  # it tries by itself to become ours again
            raise problem_of(refusal)
        return self.decider

    def stop(self) -> None:
        """Let the thread end when it has done what is in line; `join` waits for it."""
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
        """Whether it has a thread still, its own or the compiler's."""
        return self._thread.is_alive() or self.compiling.is_alive

    # What its thread does.

    def _work_within_budget(self) -> None:
        with self._load.budget.shared_by(self.title, beside=AT_LEAST):
            self._work()
        self._load.budget.settle(self.title, 0.0)

    def _work(self) -> None:
        try:
            self.decider = self._opened_within_budget()
        except OwnedError as error:
            self.fault = error
            _LOG.info("is open in %s", error.owner, extra={"decider": self.title})
        except (ValueError, OSError) as error:  # in the library's words, which say all
            self.fault = error
            _LOG.warning("cannot be opened: %s", error, extra={"decider": self.title})
        except Exception as error:
            self.fault = error
            _LOG.error("cannot be opened", extra={"decider": self.title}, exc_info=error)
        finally:
            self.opened.set()
        if self.decider is not None and not self._load.is_stopping:
            self.compiling.wait(self.decider)  # while requests wait in line
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
        try:  # what it learned, and its open tickets, may take more than was claimed when it began
            self._load.budget.claim(self.title, decider.n_bytes())
        except MemoryBudgetError:
            decider.close()
            raise
        return decider

    def _next_jobs(self) -> list[_Job]:
        """Return all that is in line, at least one; nothing when it is time to stop."""
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
            with decider.together() as batches:
                for job in jobs:
                    n_before = max(len(batches) - 1, 0)
                    if not job.begun.acquire(blocking=False):
                        outcomes.append((None, None, []))  # the request was given up
                        continue
                    try:
                        outcomes.append((job.call(decider), None, []))
                    except Exception as error:
                        outcomes.append((None, error, []))
                    outcomes[-1][2].extend(batches[n_before:])
        except LogWriteError as error:
            _LOG.error("cannot be written", extra={"decider": self.title}, exc_info=error)
        except Exception as error:  # a bug: nobody may think that it is written, and the next in line are answered too
            _LOG.error("cannot be written", extra={"decider": self.title}, exc_info=error)
            outcomes = [(None, error, [])] * len(jobs)
        self._note_memory(decider)
        self._deliver(jobs, [(value, error or _unwritten(held)) for value, error, held in outcomes])

    def _note_memory(self, decider: Decider) -> None:
        self._load.budget.settle(self.title, decider.n_bytes())

    def _deliver(self, jobs: list[_Job], outcomes: list[tuple[Any, BaseException | None]]) -> None:
        """Hand the answers over to whoever waits for them."""

        def hand_over() -> None:
            for job, (value, error) in zip(jobs, outcomes, strict=True):
                self._note_bytes(-job.n_bytes)
                if job.answer.done():  # nobody waits any more
                    continue
                if error is None:
                    job.answer.set_result(value)
                else:
                    job.answer.set_exception(error)

        try:
            jobs[0].loop.call_soon_threadsafe(hand_over)
        except RuntimeError:  # the loop is gone: the service was ended while it waited
            _LOG.warning("%d answers came too late", len(jobs))


def n_classes_of(told: dict[str, Any]) -> int:
    """Return how many classes a new decider is told of, 0 for what are none."""
    classes = told.get("classes")
    return classes if isinstance(classes, int) else len(classes) if isinstance(classes, list) else 0


def _stopping() -> Problem:
    return Problem(503, "the service is stopping; try again", "BusyError", 1)


def _unwritten(batches: list[Batch]) -> LogWriteError | None:
    return next((batch.error for batch in batches if batch.error is not None), None)


class Desks:
    """All deciders of a store.

    Parameters
    ----------
    store : Store
        Where they are.
    warms : bool
        As for `Desk`.
    memory : float
        Bytes of memory that they may take together.
    """

    def __init__(self, store: Store, warms: bool = False, memory: float = math.inf) -> None:
        self._store, self._warms, self._load = store, warms, Load(memory)
        self._desks: dict[tuple[str, str], Desk] = {}
        self._creating = threading.Lock()
        self._left_alone: set[str] = set()
        self._has_looked = False
        self._asking, self._asked = asyncio.Lock(), -math.inf
        self._trouble: LogError | None = None
        self._stop = threading.Event()
        self._looker = threading.Thread(target=self._look_in_turn, name="onebit standby")

    def open_all(self) -> None:
        """Begin to open all that are there; where others use them too, go on looking."""
        if self._store.is_shared:
            self._looker.start()
        else:
            self.look()

    def _look_in_turn(self) -> None:
        said = ""
        while True:
            trouble = ""
            try:
                self.look()
            except Exception as error:  # whatever it is: who does not look takes nothing over
                trouble = str(error) or repr(error)
            if trouble != said:  # once, not every time
                _LOG.warning("%s", trouble or "the database can be reached again")
            said = trouble
            if self._stop.wait(LOOK_SECONDS):
                return

    def look(self) -> None:
        """Begin to open what is new, and what was another process's and has come free."""
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
                desk = self._desks.get(key)
                if not self._stop.is_set() and (desk is None or (desk.may_come_free and owner is None)):
                    self._desks[key] = self._desk(title, {})
            self._has_looked = True

    def _desk(self, title: str, told: dict[str, Any]) -> Desk:
        return Desk(title, lambda: self._store.open(title, told), self._load, self._warms, bool(told))

    def get(self, namespace: str, name: str) -> Desk:
        """Return a decider, or raise Problem if there is none."""
        desk = self._desks.get((namespace, name))
        if desk is None:
            raise Problem(
                404, f"there is no decider {namespace}/{name}; PUT /v1/{namespace}/{name} makes one", "LogError"
            )
        return desk

    async def find(self, namespace: str, name: str) -> Desk:
        """Return a decider, one that another service has just made too, or raise Problem if there is none."""
        if (namespace, name) not in self._desks and self._store.is_shared:
            asked = time.monotonic()
            async with self._asking:  # one at a time, whoever asks for what is not there
                if asked >= self._asked:  # else somebody has looked since, for all who waited
                    self._asked, self._trouble = time.monotonic(), None
                    try:
                        await asyncio.to_thread(self.look)
                    except LogError as error:
                        self._trouble = error
                if self._trouble is not None:
                    raise problem_of(self._trouble)
        return self.get(namespace, name)

    def __iter__(self) -> Iterator[tuple[str, str, Desk]]:
        for (namespace, name), desk in sorted(self._desks.items()):
            yield namespace, name, desk

    @property
    def awaited(self) -> str:
        """What is still to be done before all can be asked, in words; empty when they can.

        Those that were made by a request are not waited for: their own callers wait, and no others.
        """
        if not self._has_looked:
            return "deciders are being looked for"
        waiting = [desk for desk in list(self._desks.values()) if not desk.ready.is_set() and not desk.is_new]
        n_compiling = sum(desk.opened.is_set() for desk in waiting)
        what = f"{len(waiting) - n_compiling} deciders are being opened, {n_compiling} are being compiled"
        return what if waiting else ""

    def create(self, namespace: str, name: str, told: dict[str, Any]) -> bool:
        """Begin a decider, wait until it is ready, and return whether it is new; one that is there must be the same."""
        is_new = self._created(namespace, name, told)
        self.get(namespace, name).ready.wait()  # without the lock: that may take a minute
        return is_new

    def _created(self, namespace: str, name: str, told: dict[str, Any]) -> bool:
        before = self._desks.get((namespace, name))
        if before is not None:
            before.opened.wait()  # without the lock: that may take long, and others are made meanwhile
        with self._creating:
            if self._stop.is_set():
                raise _stopping()
            before = self._desks.get((namespace, name))
            if before is not None and before.fault is None:
                decider = before.open_decider()
                classes = decider.classes
                try:
                    check_same(before.title, decider.settings, told, classes=classes)
                except LogError as error:
                    raise Problem(409, str(error), "LogError") from error
                return False
            if before is None and len(self._desks) >= MOST_DECIDERS:
                raise Problem(409, f"the service has {MOST_DECIDERS} deciders, and takes no more", "LogError")
            title = f"{namespace}/{name}"
            # Here, before there is a file; how wide its rows will be only the first record says.
            self._load.budget.claim(title, AT_LEAST + OF_A_CLASS * n_classes_of(told))
            desk = self._desk(title, told)
            desk.opened.wait()
            if desk.fault is not None:
                desk.join()
                raise desk.fault
            self._desks[namespace, name] = desk
            return before is None

    def stop_compiling(self) -> None:
        """Wait for the compiler no longer: the service is about to stop, and need not be ready first."""
        self._load.is_stopping = True
        for desk in list(self._desks.values()):
            desk.compiling.leave()

    @property
    def has_left_threads(self) -> bool:
        """Whether threads still open deciders or compile for them, though they are waited for no longer."""
        return any(desk.is_alive for desk in list(self._desks.values()))

    def close(self) -> None:
        """Finish what is in line, and close all."""
        self._stop.set()
        if self._looker.is_alive():
            self._looker.join()
        with self._creating:  # nothing is added from now on
            desks = list(self._desks.values())
        for desk in desks:
            desk.stop()
        end = time.monotonic() + _OPENING_SECONDS
        for desk in desks:
            if desk.opened.wait(max(0.0, end - time.monotonic())):
                desk.join()
            else:
                _LOG.warning("is left while it is being opened", extra={"decider": desk.title})
