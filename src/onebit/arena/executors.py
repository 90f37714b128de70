"""Who plays: worker processes that take batches in order and store every result as soon as it is there."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeAlias

from threadpoolctl import threadpool_limits

from onebit.arena.grid import Batch, Cell, batches
from onebit.arena.store import Result, Store

PlayBatch: TypeAlias = Callable[[Batch], Iterator[tuple[Cell, Result]]]
OnProgress: TypeAlias = Callable[[int, int], None]

POLL_SECONDS = 0.2
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class CellError(RuntimeError):
    """A cell could not be played; the message says which one and why."""


def run(
    cells: Iterable[Cell],
    store_path: str | os.PathLike[str],
    play_batch: PlayBatch,
    jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> None:
    """Play all cells that have no result yet.

    Cells that share a stream and a seed form a batch, and a worker plays one batch at a time. Every result is
    committed as soon as it comes, so a run that was killed or interrupted goes on where it stopped.
    The first cell that fails stops the run.

    Parameters
    ----------
    cells : iterable of Cell
        What to play; a cell named twice is played once.
    store_path : str or path
        The SQLite file of the results.
    play_batch : callable
        A top-level function from a batch to an iterator over (cell, result), in the order of the batch's cells.
    jobs : int, optional
        Number of worker processes; all cores this process may use by default. With 1, everything is played in this
        process, to the same results.
    on_progress : callable, optional
        Told the number of finished cells and of all cells, at the start and whenever the former has grown.
    """
    n_workers = _number_of_workers(jobs)
    wanted = {cell.key: cell for cell in cells}
    with Store(store_path) as store:
        progress = _Progress(store, set(wanted), on_progress)
        todo = batches(cell for key, cell in wanted.items() if key in progress.missing)
        if n_workers == 1:
            # One thread here too: sums in another order would be other bits.
            with threadpool_limits(limits=1):
                for batch in todo:
                    for cell in _play_and_store(batch, store, play_batch):
                        progress.add({cell.key})
        elif todo:
            _play_in_workers(todo, store, play_batch, min(n_workers, len(todo)), progress)


class _Progress:
    """Knows which cells are missing and tells the caller when there are fewer."""

    def __init__(self, store: Store, keys: set[str], on_progress: OnProgress | None) -> None:
        self.missing = keys - store.finished(keys)
        self._store = store
        self._total = len(keys)
        self._on_progress = on_progress
        self._data_version = store.data_version
        self._report()

    def add(self, finished: set[str]) -> None:
        if finished:
            self.missing -= finished
            self._report()

    def look(self) -> None:
        """Find out what the workers have finished."""
        data_version = self._store.data_version
        if data_version != self._data_version:
            self._data_version = data_version
            self.add(self._store.finished(self.missing))

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._total - len(self.missing), self._total)


def _number_of_workers(jobs: int | None) -> int:
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if type(jobs) is not int or jobs < 1:
        raise ValueError(f"jobs must be a whole number of at least 1, or None for all cores; got jobs={jobs!r}")
    return jobs


def _play_and_store(batch: Batch, store: Store, play_batch: PlayBatch) -> Iterator[Cell]:
    """Play a batch and yield each of its cells once its result is committed."""
    results = _started_late(batch, play_batch)
    for cell in batch.cells:
        store.put(cell, _result_of(cell, results))
        yield cell
    for played, _ in results:
        raise CellError(f"{played.label}: play_batch yielded it after the last cell of the batch")


def _started_late(batch: Batch, play_batch: PlayBatch) -> Iterator[tuple[Cell, Result]]:
    """Call play_batch at the first ``next``, so that errors of the call itself come from there."""
    yield from play_batch(batch)


def _result_of(cell: Cell, results: Iterator[tuple[Cell, Result]]) -> Result:
    try:
        played, result = next(results)
        if played.key != cell.key:
            raise ValueError(f"play_batch must keep the order of its cells, but yielded {played.label}")
        return result
    except StopIteration:
        raise CellError(f"{cell.label} failed: play_batch ended before it") from None
    except (Exception, SystemExit) as error:
        raise CellError(f"{cell.label} failed with {type(error).__name__}: {error}") from error


def _play_in_workers(
    todo: Sequence[Batch], store: Store, play_batch: PlayBatch, n_workers: int, progress: _Progress
) -> None:
    context = multiprocessing.get_context("spawn")
    with _single_threaded_children():
        pool = ProcessPoolExecutor(n_workers, mp_context=context, initializer=_prepare_worker)
        try:
            futures = [pool.submit(_work, batch, store.path, play_batch) for batch in todo]
            _wait_for_all(futures, progress)
        except BrokenProcessPool as error:
            _stop_at_once(pool)
            raise CellError(_who_was_playing(todo, store, n_workers)) from error
        except BaseException:
            _stop_at_once(pool)
            raise
        pool.shutdown()


def _wait_for_all(futures: Sequence[Future[None]], progress: _Progress) -> None:
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        progress.look()


def _stop_at_once(pool: ProcessPoolExecutor) -> None:
    # Python 3.14 has terminate_workers() for this. SQLite undoes a half-written row when the file is next opened.
    for worker in list(pool._processes.values()):
        worker.terminate()
    pool.shutdown(cancel_futures=True)


def _who_was_playing(todo: Sequence[Batch], store: Store, n_workers: int) -> str:
    """Batches are taken in order, so the dead worker had one of the first that are not finished."""
    finished = store.finished(cell.key for batch in todo for cell in batch.cells)
    first_missing = [next((cell for cell in batch.cells if cell.key not in finished), None) for batch in todo]
    suspects = [cell.label for cell in first_missing if cell is not None][:n_workers]
    return (
        f"a worker process died while playing {' or '.join(suspects)}. Was it killed, out of memory, or is run() "
        "called by a script without `if __name__ == '__main__':`?"
    )


@contextmanager
def _single_threaded_children() -> Iterator[None]:
    """Set the environment that children start with: the libraries read it once, when NumPy is first imported."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _prepare_worker() -> None:
    # Ctrl-C reaches the whole process group; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(batch: Batch, store_path: Path, play_batch: PlayBatch) -> None:
    for _ in _play_and_store(batch, _store_of_this_process(store_path), play_batch):
        pass


@cache
def _store_of_this_process(path: Path) -> Store:
    """Open the store once per worker, because opening checks the whole file."""
    return Store(path)
