"""Plays the cells that have no result yet, and stores each as soon as it comes. This process alone writes the store.

Where cells are played is an *executor*: anything with ``submit(function, *arguments)`` that returns a future, such as
`LocalProcesses`, `onebit.experiments.dask_cluster.DaskCluster` or a pool of `concurrent.futures`. A batch is submitted
in slices: a task plays cells for a fraction of a second, returns them, and the rest of the batch is submitted again. So
an interrupted run loses little, and so does a worker that dies: its batch is then played again cell by cell, until the
cell that ends workers is found.
"""

import importlib
import os
import pickle
import secrets
import signal
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from importlib.metadata import version
from itertools import chain
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

from threadpoolctl import threadpool_limits

from onebit.code_version import code_version, reachable
from onebit.experiments.grid import Batch, Cell, Spec, batches
from onebit.experiments.players import paths_in, player_from
from onebit.experiments.store import DamageWarning, Played, Result, Store
from onebit.experiments.workers import LocalProcesses, run_folder
from onebit.import_paths import import_path_of
from onebit.inputs import check_integer

_SLICE = 0.25  # seconds that a task plays, at least
_GLANCE = 1.0  # seconds after which an executor is asked again how many workers it has
_MOST_DEATHS = 3  # a cell that ends so many workers will end the next one too
_VERSION = "version"  # the setting with a rival's version; by default the installed one
_WRAPPED = "scikit-learn"  # learners may wrap its classifiers
# A worker takes some 200 MB: far more workers than cores would exhaust a machine, and are a typing error.
_JOBS_PER_CORE, _JOBS_ANYWHERE = 4, 64

_PlayBatch: TypeAlias = Callable[[Batch], Iterator[Played]]
"""A top-level function (or a `functools.partial` of one) that yields the batch's cells in their order."""
_OnFailure: TypeAlias = Callable[[Cell, str], None]
_Task: TypeAlias = tuple[tuple[Cell, ...], float]
"""The cells of a batch that are still to be played, and the seconds that its next slice may take (0: one cell)."""
_Slice: TypeAlias = tuple[list[bytes], str, str]
"""What a task gives: the cells that were played, pickled, and why the one after them failed, with the traceback."""


class CellError(RuntimeError):
    """A cell could not be played; the message has the cell and the reason."""


class WorkerWarning(UserWarning):
    """A worker died, and what it was playing is played again."""


class Executor(Protocol):
    """Where batches are played: anything that calls functions in other processes, here or on other machines.

    Its workers must be able to import what this process has imported, users' code too; they are processes, since a
    thread would share the number of threads for linear algebra with others. If it has an attribute `n_workers`, so many
    batches are played at once, otherwise as many as `run` has jobs. A future that ends in a `BrokenExecutor` means that
    its worker died; one that is cancelled is submitted again.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Call a function elsewhere."""


def run(
    cells: Iterable[Cell],
    store_path: str | os.PathLike[str],
    play_batch: _PlayBatch,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    executor: Executor | None = None,
    on_failure: _OnFailure | None = None,
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
        Number of worker processes; all cores this process may use by default, at most 64, or four
        per core if that is more. With 1, everything is played in this process, to the same results.
    on_progress : callable, optional
        Called with the number of finished cells and of all cells, at the start and after every cell.
    executor : Executor, optional
        Where to play, instead of `jobs` processes on this machine. It is not shut down.
    on_failure : callable, optional
        Called with every cell that failed, and why; all others are played. A cell that ends three workers still stops
        the run.
    """
    n_jobs = check_jobs(jobs)
    wanted = {cell.key: cell for cell in cells}
    with Store(store_path) as store:
        stored = store.look_up(wanted)
        finished = {key for key, is_sound in stored.items() if is_sound}
        if len(finished) < len(stored):
            damaged = [wanted[key].label for key in stored if key not in finished]
            others = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
            message = f"{store.path}: {len(damaged)} of {len(stored)} stored results are damaged (wrong checksum)"
            warnings.warn(f"{message} and will be played again: {damaged[0]}{others}", DamageWarning, stacklevel=2)
        todo = batches(cell for key, cell in wanted.items() if key not in finished)
        if on_progress is not None:
            on_progress(len(finished), len(wanted))
        if not todo:
            return
        place: AbstractContextManager[Executor | None] = nullcontext(executor)
        if executor is None and n_jobs > 1:
            place = LocalProcesses(n_jobs)
        with _Signals() as signals, run_folder(), place as chosen:
            for cell, played in _Schedule(chosen, play_batch, todo, n_jobs, on_failure).results(signals):
                if played is not None:
                    # At once, so that this cell need never be played again.
                    store.put(*played)
                finished.add(cell.key)
                if on_progress is not None:
                    on_progress(len(finished), len(wanted))


def check_jobs(jobs: int | None, name: str = "jobs") -> int:
    """Return a number of worker processes, all cores for None, or raise ValueError that names the option."""
    # Containers and batch systems may offer fewer cores than the machine has.
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jobs is None:
        return n_cores
    jobs = check_integer(name, jobs, low=1)
    most = max(_JOBS_ANYWHERE, _JOBS_PER_CORE * n_cores)
    if jobs > most:
        raise ValueError(f"{name} must be at most {most} on this machine, which has {n_cores} cores; got {jobs}")
    return jobs


class _Signals:
    """Defers Ctrl-C and SIGTERM, except within `allowed`: set-up, storing and clean-up are never left half done.

    The first of them raises KeyboardInterrupt there; after SIGTERM the process ends when all is cleaned up. Handlers
    that others installed are left in place; in other threads than the main one Python delivers no signals.
    """

    def __init__(self) -> None:
        self._is_allowed = False
        self._received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # Ctrl-C first, and last in `__exit__`: it cannot come between.
            defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
            self._before = {number: kept for number, kept in defaults.items() if signal.getsignal(number) is kept}
            for number in self._before:
                signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_error: object) -> None:
        for number in reversed(self._before):
            signal.signal(number, self._before[number])
        if self._received == signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM) from None
        self._raise_received()

    def _on_signal(self, number: int, _frame: object) -> None:
        self._received = self._received or number
        if self._is_allowed:
            self._is_allowed = False  # another signal must not interrupt the clean-up
            raise KeyboardInterrupt

    def _raise_received(self) -> None:
        if self._received is not None:
            raise KeyboardInterrupt from None

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let the signals through."""
        self._is_allowed = True
        try:
            self._raise_received()
            yield
        finally:
            self._is_allowed = False
        self._raise_received()  # a player may have swallowed it


class _Schedule:
    """Submits batches slice by slice, never more at once than there are workers, and yields every cell once.

    Without an executor it plays in this process, while it waits: so Ctrl-C interrupts a game.
    """

    def __init__(
        self,
        executor: Executor | None,
        play_batch: _PlayBatch,
        todo: list[Batch],
        n_jobs: int,
        on_failure: _OnFailure | None,
    ) -> None:
        self._executor, self._play_batch, self._on_failure = executor, play_batch, on_failure
        self._n_jobs = 1 if executor is None else n_jobs
        self._run = secrets.token_hex(8)
        self._waiting: deque[_Task] = deque((batch.cells, _SLICE) for batch in todo)
        self._playing: dict[Future[_Slice], _Task] = {}
        self._play_here: Callable[[], _Slice] | None = None
        self._deaths: Counter[str] = Counter()
        self._error: CellError | None = None

    def results(self, signals: _Signals) -> Iterator[tuple[Cell, Played | None]]:
        """Yield cells with their results, None for one that failed; the first failure raises without `on_failure`."""
        arrived: list[tuple[Cell, Played | None]] = []
        try:
            while (self._waiting or self._playing) and self._error is None:
                with signals.allowed():
                    n_workers = getattr(self._executor, "n_workers", self._n_jobs)
                while self._waiting and len(self._playing) < n_workers:
                    with signals.allowed():
                        self._submit(self._waiting.popleft())
                # Stored while the workers go on.
                yield from arrived
                with signals.allowed():
                    if self._play_here is not None:
                        next(iter(self._playing)).set_result(self._play_here())
                    elif not self._playing:
                        time.sleep(_GLANCE / 20)
                    done = wait(self._playing, _GLANCE, FIRST_COMPLETED).done
                in_order = [future for future in self._playing if future in done]
                arrived = [result for future in in_order for result in self._take(future)]
            yield from arrived
        finally:
            _OPEN.close()
            for future in self._playing:
                future.cancel()
        if self._error is not None:
            raise self._error

    def _submit(self, task: _Task) -> None:
        cells, seconds = task
        batch = Batch(cells[0].stream, cells[0].seed, cells)
        is_here = self._executor is None or isinstance(self._executor, LocalProcesses)
        needs = None if is_here else _needs_of(self._play_batch, batch)
        play = partial(_play_slice, self._run, needs, self._play_batch, batch, seconds)
        if self._executor is None:
            self._play_here = play
        self._playing[Future() if self._executor is None else self._executor.submit(play)] = task

    def _take(self, future: "Future[_Slice]") -> Iterator[tuple[Cell, Played | None]]:
        cells, seconds = self._playing.pop(future)
        try:
            played, reason, trace = future.result()
            for packed in played:
                yield cells[0], _unpacked(cells[0], packed)
                cells = cells[1:]
            if reason:
                failed, cells = cells[0], cells[1:]
                if self._on_failure is None:
                    self._error = CellError(f"{failed.label} failed with {reason}")
                    self._error.add_note(trace)
                    return
                self._on_failure(failed, reason)
                yield failed, None
        except CancelledError:
            pass
        except BrokenExecutor as broken:
            # Of several cells it is not known which one it was: from now on they are played one by one.
            self._deaths[cells[0].key] += seconds == 0 or len(cells) == 1
            seconds = 0.0
            if self._deaths[cells[0].key] == _MOST_DEATHS:
                self._error = CellError(
                    f"{cells[0].label} was given up: {_MOST_DEATHS} workers died while playing it, the last time: "
                    f"{broken}. Were they killed, out of memory, or is run() called by a script without "
                    "`if __name__ == '__main__':`?"
                )
                return
            message = f"a worker died ({broken}); {cells[0].label} is played again"
            warnings.warn(message, WorkerWarning, stacklevel=4)
        except CellError as error:
            self._error = error
            return
        except Exception as other:
            self._error = CellError(f"{cells[0].label} failed with {type(other).__name__}: {other}")
            return
        # First: a worker has its rounds ready.
        if cells:
            self._waiting.appendleft((cells, seconds))


def _unpacked(cell: Cell, packed: bytes) -> Played:
    try:
        played: Played = pickle.loads(packed)
    except Exception as error:
        raise CellError(f"{cell.label} gave something that cannot be read here: {error}") from error
    # Replies of workers are checked: only the cell that was asked for is stored.
    if not isinstance(played, Played) or played.cell.key != cell.key or not isinstance(played.result, Result):
        raise CellError(f"{cell.label}: a worker answered with something else; start it again")
    return played


class EnvironmentMismatchError(RuntimeError):
    """A worker has other code or other libraries than the process that writes the store."""


class _Needs(NamedTuple):
    """What a worker must have."""

    modules: tuple[str, ...]  # whose code decides the games, with all that they import
    rivals: tuple[Spec, ...]  # players that depend on the version of another program; one of each
    described: tuple[str, ...]
    """The environment of the process that writes the store: code, Python, libraries and rivals, with versions."""


def _needs_of(play_batch: Any, batch: Batch) -> _Needs:
    """Return what a worker must have to play a batch; users' own code is named in there by import path."""
    specs = {batch.stream, *(cell.player for cell in batch.cells)}
    named = {path.partition(":")[0] for spec in specs for path in paths_in([spec.name, dict(spec.settings)])}
    rivals = {spec.name: spec for spec in specs if _VERSION in spec.settings}
    modules = tuple(sorted(_modules_of(play_batch) | named))
    one_of_each = tuple(rivals[name] for name in sorted(rivals))
    return _Needs(modules, one_of_each, _described(modules, one_of_each))


def _described(modules: tuple[str, ...], rivals: tuple[Spec, ...]) -> tuple[str, ...]:
    for module in modules:
        importlib.import_module(module)
    # After the import: what was imported is what is on the disk now, or older, and then the two differ.
    described = [*code_version(reachable(*modules)).split(", "), f"{_WRAPPED} {version(_WRAPPED)}"]
    for rival in rivals:
        given = {setting: value for setting, value in rival.settings.items() if setting != _VERSION}
        described.append(f"{rival.name} {player_from(Spec(rival.name, given)).spec.settings[_VERSION]}")
    return tuple(described)


@cache  # once in every process
def _check_environment(needs: _Needs) -> None:
    """Raise EnvironmentMismatchError unless this process has all that is needed."""
    try:
        here = _described(needs.modules, needs.rivals)
    except (Exception, SystemExit) as error:
        raise EnvironmentMismatchError(f"{type(error).__name__}: {error}") from error
    differing = [(own, needed) for own, needed in zip(here, needs.described, strict=True) if own != needed]
    if differing:
        own, needed = (", ".join(parts) for parts in zip(*differing, strict=True))
        raise EnvironmentMismatchError(f"it has {own}, this run needs {needed}")


def _modules_of(play_batch: Any) -> set[str]:
    """Return the modules of a function, and of all functions that it is a `partial` of."""
    if isinstance(play_batch, partial):
        functions = [play_batch.func, *filter(callable, play_batch.args)]
        return {module for function in functions for module in _modules_of(function)}
    # An error, if it is in a script or a session, where other machines cannot find it.
    return {import_path_of(play_batch).partition(":")[0]}


class _OpenBatch(threading.local):
    """The batch that this thread is in the middle of: its rounds need not be made again for the next slice."""

    key: tuple[str, ...] = ()
    results: Iterator[Played] = iter(())

    def close(self) -> None:
        self.key, self.results = (), iter(())


_OPEN = _OpenBatch()


def _play_slice(run: str, needs: _Needs | None, play_batch: _PlayBatch, batch: Batch, seconds: float) -> _Slice:
    """Play cells of a batch, in order, until so many seconds have passed, one fails, or none is left."""
    if needs is not None:
        _check_environment(needs)
    if _OPEN.key != (run, *(cell.key for cell in batch.cells)):
        _OPEN.close()
        # Called at the first `next`, so that errors of the call itself come from there.
        _OPEN.results = chain.from_iterable(map(play_batch, [batch]))
    played: list[bytes] = []
    start = time.monotonic()
    try:
        # One thread: sums in another order round differently.
        with threadpool_limits(limits=1):
            for cell in batch.cells:
                result = next(_OPEN.results, None)
                if result is None:
                    raise ValueError("play_batch ended before it")
                if result.cell.key != cell.key:
                    raise ValueError(f"play_batch must keep the order of its cells, but yielded {result.cell.label}")
                if not isinstance(result.result, Result):
                    raise TypeError(f"play_batch must yield a Result, but yielded {result.result!r}")
                try:
                    played.append(pickle.dumps(result))
                except Exception as error:
                    raise TypeError(f"its result cannot be sent back: {error}") from error
                if time.monotonic() - start >= seconds:
                    break
            left = batch.cells[len(played) :]
            if not left:
                for extra in _OPEN.results:
                    raise ValueError(f"play_batch yielded {extra.cell.label} after the last cell of the batch")
    except (Exception, SystemExit) as error:
        _OPEN.close()
        # After the last cell it is that cell's failure.
        return played[: len(batch.cells) - 1], f"{type(error).__name__}: {error}", traceback.format_exc()
    _OPEN.key = (run, *(cell.key for cell in left))
    return played, "", ""
