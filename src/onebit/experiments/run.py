"""Where cells are computed: in this process, or in worker processes. The parent alone writes the store.

`run` passes batches to an *executor*, any object with the three methods of `Executor`, and stores the results.
"""

import multiprocessing
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, cast

from threadpoolctl import threadpool_limits

from onebit.engine.compile_notice import NOTICE
from onebit.experiments.grid import Batch, Cell, batches
from onebit.experiments.interrupts import allowed, held, orderly_exit
from onebit.experiments.orphans import end_with_parent
from onebit.experiments.scratch import current_folder, enter_folder, run_folder
from onebit.experiments.store import DamageWarning, Result, Store
from onebit.inputs import check_integer


class Played(NamedTuple):
    """The result of a cell."""

    cell: Cell
    result: Result
    seconds: float | None = None
    """How long it took; not part of the result."""


PlayBatch: TypeAlias = Callable[[Batch], Iterator[Played]]
"""A top-level function (or a `functools.partial` of one) that yields the batch's cells in their order.

It may have a method ``only_for(batch)`` that returns the function for this one batch, without the data of others."""
OnProgress: TypeAlias = Callable[[int, int], None]
OnFailure: TypeAlias = Callable[[Cell, str], None]


@dataclass(frozen=True, eq=False)
class Failed(Result):
    """In place of the result of a cell that could not be played. It is not stored: the next run tries again."""

    reason: str = ""


# Every library that numpy, scipy or numba may compute with reads its own.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)

_PATIENCE = 2.0  # seconds for a worker to exit; a player's own threads may need some
# A worker takes some 200 MB: far more workers than cores would exhaust a machine, and are a typing error.
_JOBS_PER_CORE, _JOBS_ANYWHERE = 4, 64


class CellError(RuntimeError):
    """A cell could not be played; the message has the cell and the reason."""


class Executor(Protocol):
    """Where batches are computed: `onebit.experiments.cluster` is another place. One more is a class with its methods.

    Its workers must be able to import what this process has imported, users' code too, and play every batch with one
    thread for linear algebra, since sums in another order round differently. It uses `in_order`, which turns errors
    into a `CellError` that names the cell, and yields each cell as soon as it is played, so that an interrupted run
    loses little.
    """

    def start(self, play_batch: PlayBatch, todo: Sequence[Batch]) -> None:
        """Start playing the batches (at least one), in their order. Nothing need be finished when this returns."""

    def results(self) -> Iterator[Played]:
        """Yield every cell of every batch once, in any order, waiting for those not finished.

        The first cell that fails, or whose worker died, raises a CellError; cells that came before it are yielded.
        """

    def stop(self) -> None:
        """Stop all workers at once. Called exactly once, also after an error in any method."""


def run(
    cells: Iterable[Cell],
    store_path: str | os.PathLike[str],
    play_batch: PlayBatch,
    jobs: int | None = None,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
    on_failure: OnFailure | None = None,
) -> None:
    """Play all cells that have no result yet.

    Cells that share a stream and a seed form a batch, and a worker plays one batch at a time. Every result is committed
    as soon as it comes, so a run that was killed or interrupted goes on where it stopped. The first cell that fails
    stops the run, unless `on_failure` is given. A stored result that is damaged is played again, under a
    `DamageWarning`. Ctrl-C and SIGTERM end the workers and remove what players have written to scratch folders.

    Parameters
    ----------
    cells : iterable of Cell
        What to play; a cell named twice is played once.
    store_path : str or path
        The SQLite file of the results.
    play_batch : callable
        A top-level function from a batch to an iterator over `Played`, in the order of the batch's cells.
    jobs : int, optional
        Number of worker processes; all cores this process may use by default, at most 64 or four per core. With 1,
        everything is played in this process, to the same results.
    on_progress : callable, optional
        Called with the number of finished cells and of all cells, at the start and after every cell.
    executor : Executor, optional
        Where to play, instead of `jobs` processes on this machine.
    on_failure : callable, optional
        Called with every cell that failed, and why; all others are played. A worker that dies still stops the run.
    """
    if on_failure is not None:
        play_batch = partial(going_on, play_batch)
    chosen = _local_executor(jobs) if executor is None else executor
    wanted = {cell.key: cell for cell in cells}
    with Store(store_path) as store:
        finished = _sound(store, wanted)
        todo = batches(cell for key, cell in wanted.items() if key not in finished)
        if on_progress is not None:
            on_progress(len(finished), len(wanted))
        if not todo:
            return
        with orderly_exit(), run_folder():
            try:
                with allowed():
                    chosen.start(play_batch, todo)
                    for played in chosen.results():
                        if on_failure is not None and isinstance(played.result, Failed):
                            on_failure(played.cell, played.result.reason)
                        else:
                            # At once, so that this cell need never be played again.
                            with held():
                                store.put(*played)
                        finished.add(played.cell.key)
                        if on_progress is not None:
                            on_progress(len(finished), len(wanted))
            finally:
                chosen.stop()
    missing = [cell.label for key, cell in wanted.items() if key not in finished]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CellError(f"{type(chosen).__name__} ended without {missing[0]}{others}")


def _sound(store: Store, wanted: dict[str, Cell]) -> set[str]:
    """Return the keys that need not be played, and warn about damaged results."""
    stored = store.look_up(wanted)
    damaged = [wanted[key].label for key, is_sound in stored.items() if not is_sound]
    if damaged:
        others = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        message = f"{store.path}: {len(damaged)} of {len(stored)} stored results are damaged (wrong checksum)"
        warnings.warn(f"{message} and will be played again: {damaged[0]}{others}", DamageWarning, stacklevel=3)
    return {key for key, is_sound in stored.items() if is_sound}


def check_jobs(jobs: int | None, name: str = "jobs") -> int:
    """Return a number of worker processes, all cores for None, or raise ValueError.

    Parameters
    ----------
    jobs : int, optional
        The requested number.
    name : str
        The name of the option, for the error.
    """
    # Containers and batch systems may offer fewer cores than the machine has.
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jobs is None:
        return n_cores
    jobs = check_integer(name, jobs, low=1)
    most = max(_JOBS_ANYWHERE, _JOBS_PER_CORE * n_cores)
    if jobs > most:
        raise ValueError(f"{name} must be at most {most} on this machine, which has {n_cores} cores; got {jobs}")
    return jobs


def _local_executor(jobs: int | None) -> Executor:
    n_workers = check_jobs(jobs)
    return InThisProcess() if n_workers == 1 else LocalProcesses(n_workers)


def in_order(play_batch: PlayBatch, batch: Batch) -> Iterator[Played]:
    """Play a batch, check the order of its cells, and raise a CellError that names the cell that fails."""
    results = _started_late(play_batch, batch)
    for cell in batch.cells:
        try:
            played = next(results)
            if played.cell.key != cell.key:
                raise ValueError(f"play_batch must keep the order of its cells, but yielded {played.cell.label}")
            if not isinstance(played.result, Result):
                raise TypeError(f"play_batch must yield a Result, but yielded {played.result!r}")
        except StopIteration:
            raise CellError(f"{cell.label} failed: play_batch ended before it") from None
        except (Exception, SystemExit) as error:
            raise CellError(f"{cell.label} failed with {type(error).__name__}: {error}") from error
        yield played
    for played in results:
        raise CellError(f"{played.cell.label}: play_batch yielded it after the last cell of the batch")


def going_on(play_batch: PlayBatch, batch: Batch) -> Iterator[Played]:
    """Play a batch to its end, with a `Failed` in place of every result that failed."""
    left = batch.cells
    while left:
        try:
            # All remaining cells in one call: the rounds are generated again only after a failure.
            for played in play_batch(replace(batch, cells=left)):
                yield played
                left = left[1:]
            return
        except (Exception, SystemExit) as error:
            if not left:
                raise
            yield Played(left[0], Failed(reason=f"{type(error).__name__}: {error}"))
            left = left[1:]


def _started_late(play_batch: PlayBatch, batch: Batch) -> Iterator[Played]:
    """Call play_batch at the first ``next``, so that errors of the call itself come from there."""
    yield from play_batch(batch)


class InThisProcess:
    """Plays one batch after the other in this process."""

    def __init__(self) -> None:
        self._limits: threadpool_limits | None = None

    def start(self, play_batch: PlayBatch, todo: Sequence[Batch]) -> None:
        """Store what to play."""
        self._play_batch, self._todo = play_batch, todo
        # One thread, as in the workers: identical results.
        with held():
            self._limits = threadpool_limits(limits=1)

    def results(self) -> Iterator[Played]:
        """Play, and yield each cell."""
        for batch in self._todo:
            yield from in_order(self._play_batch, batch)

    def stop(self) -> None:
        """Restore the libraries' threads."""
        if self._limits is not None:
            self._limits.restore_original_limits()


class LocalProcesses:
    """Plays in worker processes on this machine, each with a pipe of its own.

    A pipe closes when its worker dies, even in the middle of a message, so the parent always knows which worker died
    and what it was playing; a shared queue would be left locked.

    Parameters
    ----------
    n_workers : int
        At most this many; never more than there are batches.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._workers: dict[Connection, SpawnProcess] = {}
        self._left: dict[Connection, list[Cell]] = {}

    def start(self, play_batch: PlayBatch, todo: Sequence[Batch]) -> None:
        """Start the workers and give each a batch."""
        self._todo = iter(todo)
        # Not forked: a fork would inherit the locks of other threads, numba's among them.
        context = multiprocessing.get_context("spawn")
        # If Ctrl-C came in between, `stop` would not know of the worker.
        with held(), _single_threaded_children():
            for _ in range(min(self.n_workers, len(todo))):
                ours, theirs = context.Pipe()
                worker = context.Process(target=_work, args=(theirs, play_batch, current_folder()), daemon=True)
                worker.start()
                # If it stayed open here, the pipe would not close with the worker.
                theirs.close()
                self._workers[ours] = worker
        # Only now: sending blocks until the worker reads, and the others can start meanwhile.
        for pipe in self._workers:
            self._hand_out(pipe)

    def results(self) -> Iterator[Played]:
        """Yield what the workers send, and give the next batch to each worker that has finished one."""
        while self._left:
            for pipe in cast(list[Connection], wait(list(self._left))):
                try:
                    message = pipe.recv()
                except (EOFError, OSError) as error:
                    raise self._died(pipe) from error
                except Exception as error:
                    reason = f"{self._left[pipe][0].label} gave something that cannot be read here: {error}"
                    raise CellError(reason) from error
                if isinstance(message, Played):
                    # The first remaining cell of its batch is blamed if the worker dies.
                    self._left[pipe].pop(0)
                    yield message
                elif isinstance(message, _Compiling):
                    NOTICE.say_once(message.text)
                elif isinstance(message, _Failure):
                    raise CellError(message.reason) from InWorkerError(message.traceback)
                else:
                    self._hand_out(pipe)

    def stop(self) -> None:
        """End the workers: the idle ones by closing their pipe, the others at once."""
        for pipe, worker in self._workers.items():
            if pipe in self._left:
                worker.terminate()
            pipe.close()
        for worker in self._workers.values():
            worker.join(_PATIENCE)
            # A player's own thread, or code that ignores the signal, must not block the run.
            worker.kill()
            worker.join()
        self._workers.clear()
        self._left.clear()

    def _hand_out(self, pipe: Connection) -> None:
        batch = next(self._todo, None)
        if batch is None:
            self._left.pop(pipe, None)
            return
        self._left[pipe] = list(batch.cells)
        try:
            pipe.send(batch)
        except OSError as error:
            raise self._died(pipe) from error

    def _died(self, pipe: Connection) -> CellError:
        where = f" while playing {self._left[pipe][0].label}" if self._left[pipe] else " after its last cell"
        return CellError(
            f"a worker process died{where}. Was it killed, out of memory, or is run() called by a script without "
            "`if __name__ == '__main__':`?"
        )


class _Failure(NamedTuple):
    """What a worker sends instead of a cell that failed."""

    reason: str
    traceback: str


class _Compiling(NamedTuple):
    """What a worker sends when it has to compile for long."""

    text: str


class InWorkerError(Exception):
    """Shows the worker's own traceback."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@contextmanager
def _single_threaded_children() -> Iterator[None]:
    """Set the environment of child processes: the libraries read it once, when NumPy is first imported."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _work(pipe: Connection, play_batch: PlayBatch, folder: Path | None) -> None:
    """Play what comes through the pipe until it closes."""
    # Ctrl-C reaches the whole process group; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    enter_folder(folder)
    sending = threading.Lock()

    def send(message: Played | _Failure | _Compiling | None) -> None:
        with sending:
            pipe.send(message)

    NOTICE.say = lambda text: send(_Compiling(text))  # from its own thread; the parent has the progress bar
    # The pipe breaks if the parent stops while we send; there is nothing left to report to.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            batch = pipe.recv()
            try:
                for played in in_order(play_batch, batch):
                    _send(send, played)
                send(None)
            except CellError as error:
                send(_Failure(str(error), traceback.format_exc()))


def _send(send: Callable[[Played], None], played: Played) -> None:
    try:
        send(played)
    except (EOFError, OSError):
        raise
    except Exception as error:
        raise CellError(f"{played.cell.label} gave something that cannot be sent back: {error}") from error
