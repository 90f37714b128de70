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
_UNWINDING = 1.0  # upper bound on the seconds from an interrupt to the start of clean-up
_MOST_DEATHS = 3  # a cell that ends so many workers will end the next one too
_VERSION = "version"  # the setting with a rival's version; by default the installed one
_WRAPPED = "scikit-learn"  # learners may wrap its classifiers
# A worker takes some 200 MB: far more workers than cores would exhaust a machine, and are a typing error.
_JOBS_PER_CORE, _JOBS_ANYWHERE = 4, 64


PlayBatch: TypeAlias = Callable[[Batch], Iterator[Played]]
"""A top-level function (or a `functools.partial` of one) that yields the batch's cells in their order.

It may have a method ``only_for(batch)`` that returns the function for this one batch, without the data of others."""
OnProgress: TypeAlias = Callable[[int, int], None]
_OnFailure: TypeAlias = Callable[[Cell, str], None]


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
    play_batch: PlayBatch,
    jobs: int | None = None,
    on_progress: OnProgress | None = None,
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
        finished = _sound(store, wanted)
        todo = batches(cell for key, cell in wanted.items() if key not in finished)
        if on_progress is not None:
            on_progress(len(finished), len(wanted))
        if not todo:
            return
        place: AbstractContextManager[Executor]
        if executor is not None:
            place = nullcontext(executor)
        else:
            place = InThisProcess() if n_jobs == 1 else LocalProcesses(n_jobs)
        with _Signals() as signals, run_folder(), place as chosen:
            for cell, played in _Schedule(chosen, play_batch, todo, n_jobs, on_failure).results(signals):
                if played is not None:
                    # At once, so that this cell need never be played again.
                    store.put(*played)
                finished.add(cell.key)
                if on_progress is not None:
                    on_progress(len(finished), len(wanted))


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


class _Task(NamedTuple):
    """The cells of a batch that are still to be played, and the seconds that its next slice may take (0: one cell)."""

    cells: tuple[Cell, ...]
    seconds: float = _SLICE


class _Terminated(KeyboardInterrupt):
    """SIGTERM as an exception that, like KeyboardInterrupt, handlers of game errors do not catch."""


class _Signals:
    """Defers Ctrl-C and SIGTERM, except within `allowed`: set-up, storing and clean-up are never left half done.

    SIGTERM cleans up too, and ends the process afterwards. Handlers that others installed are left in place; in other
    threads than the main one there is nothing to do, since Python delivers no signals there.
    """

    def __init__(self) -> None:
        self._is_allowed = False
        self._raised: type[KeyboardInterrupt] | None = None
        self._raised_at = -_UNWINDING
        self._pending: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # Ctrl-C first, and last in `__exit__`: it cannot come between.
            defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
            self._before = {number: kept for number, kept in defaults.items() if signal.getsignal(number) is kept}
            for number in self._before:
                signal.signal(number, self._on_signal)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        for number in reversed(self._before):
            signal.signal(number, self._before[number])
        if self._raised is None and self._pending is not None:
            error = _kind_of(self._pending)()
        if isinstance(error, _Terminated):
            raise SystemExit(128 + signal.SIGTERM) from None
        if isinstance(error, KeyboardInterrupt):
            raise error

    def _on_signal(self, number: int, _frame: object) -> None:
        self._pending = number
        self._raise_pending()

    def _raise_pending(self) -> None:
        number, now = self._pending, time.monotonic()
        # A second signal must not interrupt the clean-up of the first, but may pass where the first was swallowed.
        if number is not None and self._is_allowed and now - self._raised_at >= _UNWINDING:
            self._raised, self._raised_at, self._pending = _kind_of(number), now, None
            raise self._raised

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let the signals through."""
        self._is_allowed = True
        try:
            self._raise_pending()
            yield
        finally:
            self._is_allowed = False
        if self._raised is not None:  # and was swallowed by a player
            raise self._raised


def _kind_of(number: int) -> type[KeyboardInterrupt]:
    return _Terminated if number == signal.SIGTERM else KeyboardInterrupt


class _Schedule:
    """Submits batches slice by slice, never more at once than there are workers, and yields every cell once."""

    def __init__(
        self, executor: Executor, play_batch: PlayBatch, todo: list[Batch], n_jobs: int, on_failure: _OnFailure | None
    ) -> None:
        self._executor, self._play_batch, self._n_jobs, self._on_failure = executor, play_batch, n_jobs, on_failure
        self._run = secrets.token_hex(8)
        self._waiting = deque(_Task(batch.cells) for batch in todo)
        self._playing: dict[Future[Slice], _Task] = {}
        self._deaths: Counter[str] = Counter()
        self._error: CellError | None = None

    def results(self, signals: "_Signals") -> Iterator[tuple[Cell, Played | None]]:
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
                    done = self._wait()
                in_order = [future for future in self._playing if future in done]
                arrived = [result for future in in_order for result in self._take(future)]
            yield from arrived
        finally:
            for future in self._playing:
                future.cancel()
        if self._error is not None:
            raise self._error

    def _submit(self, task: _Task) -> None:
        batch = Batch(task.cells[0].stream, task.cells[0].seed, task.cells)
        only_for: Callable[[Batch], PlayBatch] | None = getattr(self._play_batch, "only_for", None)
        play = self._play_batch if only_for is None else only_for(batch)
        is_here = isinstance(self._executor, (InThisProcess, LocalProcesses))
        needs = None if is_here else needs_of(play, batch)
        self._playing[self._executor.submit(_play_slice, self._run, needs, play, batch, task.seconds)] = task

    def _wait(self) -> "set[Future[Slice]]":
        if isinstance(self._executor, InThisProcess):
            self._executor.play()
        elif not self._playing:
            time.sleep(_GLANCE / 20)
        return wait(self._playing, _GLANCE, FIRST_COMPLETED).done

    def _take(self, future: "Future[Slice]") -> Iterator[tuple[Cell, Played | None]]:
        task = self._playing.pop(future)
        try:
            played, reason, trace = future.result()
            for cell, packed in zip(task.cells, played, strict=False):
                yield cell, _unpacked(cell, packed)
                task = task._replace(cells=task.cells[1:])
            if reason:
                cell, task = task.cells[0], task._replace(cells=task.cells[1:])
                if self._on_failure is None:
                    error = CellError(f"{cell.label} failed with {reason}")
                    error.add_note(trace)
                    raise error
                self._on_failure(cell, reason)
                yield cell, None
            self._wait_again(task)
        except CancelledError:
            self._wait_again(task)
        except BrokenExecutor as broken:
            self._count_death(task, str(broken))
        except CellError as failed:
            self._error = failed
        except Exception as other:
            self._error = CellError(f"{task.cells[0].label} failed with {type(other).__name__}: {other}")

    def _wait_again(self, task: _Task) -> None:
        # First: a worker has its rounds ready.
        if task.cells:
            self._waiting.appendleft(task)

    def _count_death(self, task: _Task, reason: str) -> None:
        cell = task.cells[0]
        # Of several cells it is not known which one it was: from now on they are played one by one.
        self._deaths[cell.key] += task.seconds == 0 or len(task.cells) == 1
        if self._deaths[cell.key] < _MOST_DEATHS:
            warnings.warn(f"a worker died ({reason}); {cell.label} is played again", WorkerWarning, stacklevel=5)
            self._wait_again(task._replace(seconds=0.0))
            return
        self._error = CellError(
            f"{cell.label} was given up: {_MOST_DEATHS} workers died while playing it, the last time: {reason}. "
            "Were they killed, out of memory, or is run() called by a script without `if __name__ == '__main__':`?"
        )


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


class Needs(NamedTuple):
    """What a worker must have."""

    modules: tuple[str, ...]  # whose code decides the games, with all that they import
    rivals: tuple[Spec, ...]  # players that depend on the version of another program; one of each
    described: tuple[str, ...]
    """The environment of the process that writes the store: code, Python, libraries and rivals, with versions."""


def needs_of(play_batch: Any, batch: Batch) -> Needs:
    """Return what a worker must have to play a batch; users' own code is named in there by import path."""
    specs = {batch.stream, *(cell.player for cell in batch.cells)}
    named = {path.partition(":")[0] for spec in specs for path in paths_in([spec.name, dict(spec.settings)])}
    rivals = {spec.name: spec for spec in specs if _VERSION in spec.settings}
    return _described(tuple(sorted(_modules_of(play_batch) | named)), tuple(rivals[name] for name in sorted(rivals)))


def _described(modules: tuple[str, ...], rivals: tuple[Spec, ...]) -> Needs:
    for module in modules:
        importlib.import_module(module)
    # After the import: what was imported is what is on the disk now, or older, and then the two differ.
    ours = code_version(reachable(*modules)).split(", ")
    installed = (f"{rival.name} {_installed(rival)}" for rival in rivals)
    return Needs(modules, rivals, (*ours, f"{_WRAPPED} {version(_WRAPPED)}", *installed))


@cache  # once in every process
def check_environment(needs: Needs) -> None:
    """Raise EnvironmentMismatchError unless this process has all that is needed."""
    try:
        here = _described(needs.modules, needs.rivals).described
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


def _installed(rival: Spec) -> str:
    given = {setting: value for setting, value in rival.settings.items() if setting != _VERSION}
    return str(player_from(Spec(rival.name, given)).spec.settings[_VERSION])


class InThisProcess:
    """An executor that plays in this process, while the result is waited for: so Ctrl-C interrupts a game."""

    n_workers = 1

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Remember what to call."""
        self._future: Future[Any] = Future()
        self._call = partial(function, *arguments)
        return self._future

    def play(self) -> None:
        """Call it."""
        self._future.set_result(self._call())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        _OPEN.close()


class Slice(NamedTuple):
    """What a task gives: the cells that were played, pickled, and why the one after them failed, with the traceback."""

    played: list[bytes]
    failure: str = ""
    traceback: str = ""


class _OpenBatch(threading.local):
    """The batch that this thread is in the middle of: its rounds need not be made again for the next slice."""

    key: tuple[str, ...] = ()
    results: Iterator[Played] = iter(())

    def close(self) -> None:
        self.key, self.results = (), iter(())


_OPEN = _OpenBatch()


def _play_slice(run: str, needs: Needs | None, play_batch: PlayBatch, batch: Batch, seconds: float) -> Slice:
    """Play cells of a batch, in order, until so many seconds have passed, one fails, or none is left."""
    if needs is not None:
        check_environment(needs)
    if _OPEN.key != (run, *(cell.key for cell in batch.cells)):
        _OPEN.close()
        _OPEN.results = _started_late(play_batch, batch)
    played: list[bytes] = []
    start = time.monotonic()
    try:
        # One thread: sums in another order round differently.
        with threadpool_limits(limits=1):
            for cell in batch.cells:
                played.append(_play_next(cell, _OPEN.results))
                if time.monotonic() - start >= seconds:
                    break
            left = batch.cells[len(played) :]
            if not left:
                for extra in _OPEN.results:
                    raise ValueError(f"play_batch yielded {extra.cell.label} after the last cell of the batch")
    except (Exception, SystemExit) as error:
        _OPEN.close()
        # After the last cell it is that cell's failure.
        reason = f"{type(error).__name__}: {error}"
        return Slice(played[: len(batch.cells) - 1], reason, traceback.format_exc())
    _OPEN.key = (run, *(cell.key for cell in left))
    return Slice(played)


def _started_late(play_batch: PlayBatch, batch: Batch) -> Iterator[Played]:
    """Call play_batch at the first ``next``, so that errors of the call itself come from there."""
    yield from play_batch(batch)


def _play_next(cell: Cell, results: Iterator[Played]) -> bytes:
    played = next(results, None)
    if played is None:
        raise ValueError("play_batch ended before it")
    if played.cell.key != cell.key:
        raise ValueError(f"play_batch must keep the order of its cells, but yielded {played.cell.label}")
    if not isinstance(played.result, Result):
        raise TypeError(f"play_batch must yield a Result, but yielded {played.result!r}")
    try:
        return pickle.dumps(played)
    except Exception as error:
        raise TypeError(f"its result cannot be sent back: {error}") from error
