"""Plays the cells that have no result yet, and stores each as soon as it comes. This process alone writes the store.

Where cells are played is an *executor*: anything with ``submit(function, *arguments)`` that returns a future, such as
`LocalProcesses`, `onebit.experiments.dask_cluster.DaskCluster` or a pool of `concurrent.futures`. A task is one cell,
so a worker that dies costs one. The cells of a stream and seed are submitted one after the other, each when the one
before is done: so they come to the same worker, which has the rounds ready.
"""

import ctypes
import importlib
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache, partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

from threadpoolctl import threadpool_limits

from onebit.code_version import code_version, reachable
from onebit.engine.compile_notice import NOTICE
from onebit.experiments.players import paths_in, player_from
from onebit.experiments.store import Cell, Played, Result, Spec, Store
from onebit.import_paths import import_path_of
from onebit.inputs import check_integer

_GLANCE = 1.0  # seconds after which an executor is asked again how many workers it has
_MOST_DEATHS = 3  # a cell that ends so many workers will end the next one too
_VERSION = "version"  # the setting with a rival's version; by default the installed one
_WRAPPED = "scikit-learn"  # learners may wrap its classifiers
# A worker takes some 200 MB: far more workers than cores would exhaust a machine, and are a typing error.
_JOBS_PER_CORE, _JOBS_ANYWHERE = 4, 64
_PR_SET_PDEATHSIG = 1
# Looked up now: a program that is being started may not load libraries any more.
_PRCTL: Any = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

_Play: TypeAlias = Callable[[Cell], Played]
_Answer: TypeAlias = bytes | tuple[str, str]
"""A pickled result, or why there is none, with the traceback: not every exception can be sent."""


class CellError(RuntimeError):
    """A cell could not be played; the message has the cell and the reason."""


class WorkerWarning(UserWarning):
    """A worker died, and what it was playing is played again."""


class Executor(Protocol):
    """Where cells are played: anything that calls functions in other processes, here or on other machines.

    Its workers must be able to import what this process has imported, users' code too; they are processes, since a
    thread would share the number of threads for linear algebra with others. If it has an attribute `n_workers`, so many
    cells are played at once, otherwise as many as `run` has jobs. A future that ends in a `BrokenExecutor` means that
    its worker died; one that is cancelled is submitted again.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Call a function elsewhere."""


class _ThisProcess:
    """An executor that plays here, at once: Ctrl-C interrupts a game."""

    n_workers = 1

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


def run(
    cells: Iterable[Cell],
    store_path: str | os.PathLike[str],
    play: _Play,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    executor: Executor | None = None,
    on_failure: Callable[[Cell, str], None] | None = None,
) -> None:
    """Play all cells that have no result yet.

    Every result is committed as soon as it comes, so a run that was killed or interrupted goes on where it stopped. The
    first cell that fails stops the run, unless `on_failure` is given. A stored result that is damaged is played again,
    under a `DamageWarning`. Ctrl-C ends the workers and removes their temporary files.

    Parameters
    ----------
    cells : iterable of Cell
        What to play; a cell named twice is played once.
    store_path : str or path
        The SQLite file of the results.
    play : callable
        A top-level function (or a `functools.partial` of one) that plays a cell. Cells with the same stream and seed
        mostly follow each other in a process, so that it may keep their rounds.
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
        finished = store.finished(wanted, warn=True)
        groups: dict[tuple[Spec, int], deque[Cell]] = {}
        for key, cell in wanted.items():
            if key not in finished:
                groups.setdefault((cell.stream, cell.seed), deque()).append(cell)
        show = on_progress or (lambda *_: None)
        show(n_done := len(finished), len(wanted))
        if not groups:
            return
        place: AbstractContextManager[Executor] = nullcontext(executor or _ThisProcess())
        if executor is None and n_jobs > 1:
            place = LocalProcesses(n_jobs)
        with place as chosen:
            is_here = isinstance(chosen, LocalProcesses | _ThisProcess)
            todo = [cell for group in groups.values() for cell in group]
            play_one = partial(_play_one, None if is_here else _needs_of(play, todo), play)
            for cell, played in _results(chosen, play_one, deque(groups.values()), n_jobs, on_failure):
                if played is not None:
                    # At once, so that this cell need never be played again.
                    store.put(cell, played.result, played.seconds)
                n_done += 1
                show(n_done, len(wanted))


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


def _results(
    executor: Executor,
    play_one: Callable[[Cell], _Answer],
    waiting: deque[deque[Cell]],
    n_jobs: int,
    on_failure: Callable[[Cell, str], None] | None,
) -> Iterator[tuple[Cell, Played | None]]:
    """Submit cells, never more at once than there are workers; yield each with its result, or None where it failed."""
    playing: dict[Future[_Answer], deque[Cell]] = {}
    deaths: Counter[Cell] = Counter()
    arrived: list[tuple[Cell, Played | None]] = []
    try:
        while waiting or playing:
            n_workers = getattr(executor, "n_workers", n_jobs)
            while waiting and len(playing) < n_workers:
                group = waiting.popleft()
                playing[executor.submit(play_one, group[0])] = group
            # Stored while the workers go on.
            yield from arrived
            arrived = []
            if not playing:
                time.sleep(_GLANCE / 20)
            done = wait(playing, _GLANCE, FIRST_COMPLETED).done
            for future in [each for each in playing if each in done]:
                group = playing.pop(future)
                try:
                    arrived.append((group[0], _result_of(group[0], future, on_failure)))
                    group.popleft()
                except CancelledError:
                    pass
                except BrokenExecutor as broken:
                    deaths[group[0]] += 1
                    _check_deaths(group[0], deaths[group[0]], broken)
                if group:
                    # First: a worker has its rounds ready.
                    waiting.appendleft(group)
        yield from arrived
    except Exception:
        yield from arrived
        raise
    finally:
        for future in playing:
            future.cancel()


def _check_deaths(cell: Cell, n_deaths: int, broken: BrokenExecutor) -> None:
    """Warn that a worker died while it played a cell; raise, if that has happened too often."""
    if n_deaths == _MOST_DEATHS:
        raise CellError(
            f"{cell.label} was given up: {_MOST_DEATHS} workers died while playing it, the last time: {broken}. Were "
            "they killed, out of memory, or is run() called by a script without `if __name__ == '__main__':`?"
        )
    warnings.warn(f"a worker died ({broken}); {cell.label} is played again", WorkerWarning, stacklevel=4)


def _result_of(cell: Cell, future: "Future[_Answer]", on_failure: Callable[[Cell, str], None] | None) -> Played | None:
    """Return the result of a cell that was played, or report its failure."""
    try:
        answer = future.result()
        played = pickle.loads(answer) if isinstance(answer, bytes) else answer
    except (CancelledError, BrokenExecutor, CellError):
        raise
    except Exception as error:
        raise CellError(f"{cell.label} failed with {type(error).__name__}: {error}") from error
    if isinstance(played, Played) and played.cell.key == cell.key and isinstance(played.result, Result):
        return played
    if not isinstance(answer, tuple):
        raise CellError(f"{cell.label}: the play function answered with something else: {played!r:.200}")
    reason, trace = answer
    if on_failure is None:
        failed = CellError(f"{cell.label} failed with {reason}")
        failed.add_note(trace)
        raise failed
    on_failure(cell, reason)
    return None


def _play_one(needs: "_Needs | None", play: _Play, cell: Cell) -> _Answer:
    """Play a cell in this process, if it has what is needed."""
    if needs is not None:
        _check_environment(needs)
    try:
        # One thread: sums in another order round differently.
        with threadpool_limits(limits=1):
            return pickle.dumps(play(cell))
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}", traceback.format_exc()


# Worker processes on this machine. They, and the programs of rivals, end with the process that started them.


class LocalProcesses:
    """An executor of worker processes on this machine.

    A worker that dies breaks its pool, and every task in it fails. So each worker has a pool of its own: the others go
    on, and the next task gets a new worker in its place. Use it in a ``with`` statement, which ends the workers and
    removes their temporary files.

    Parameters
    ----------
    n_workers : int
        How many tasks will be submitted at once, at most; workers start when they are needed.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._folder = tempfile.mkdtemp(prefix="onebit-run-")
        self._pools: list[tuple[ProcessPoolExecutor, Future[Any]]] = []
        self._notices, self._to_notices = multiprocessing.Pipe(duplex=False)
        threading.Thread(target=_relay_notices, args=(self._notices,), daemon=True).start()

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Call a function in an idle worker; `BrokenExecutor` is the exception of a worker that died."""
        # The latest that is idle: what follows a task often uses what its worker has made for it.
        idle = [at for at, (_, last) in enumerate(self._pools) if last.done()]
        pool = self._pools.pop(idle[-1])[0] if idle else self._new_pool()
        try:
            future = pool.submit(function, *arguments)
        except BrokenExecutor:  # its worker has died
            pool.shutdown()
            pool = self._new_pool()
            future = pool.submit(function, *arguments)
        self._pools.append((pool, future))
        return future

    def _new_pool(self) -> ProcessPoolExecutor:
        # Not forked: a fork would inherit the locks of other threads, numba's among them.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, context, initializer=_begin_worker, initargs=(self._to_notices, self._folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pools, self._pools = self._pools, []
        for pool, _ in pools:
            # Python 3.14 has `kill_workers` for it.
            for process in list((pool._processes or {}).values()):
                process.kill()
        for pool, _ in pools:
            pool.shutdown(cancel_futures=True)
        self._to_notices.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _relay_notices(notices: Connection) -> None:
    """Show what workers report about compiling in this process, which may have a progress bar."""
    with suppress(EOFError, OSError), notices:
        while True:
            NOTICE.print_once(notices.recv())


def _begin_worker(to_notices: Connection, folder: str) -> None:
    # Ctrl-C reaches the whole process group; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    NOTICE.show = to_notices.send  # a message this short is written at once: no lock that a killed worker would keep
    # For all temporary files, and those of programs that are started.
    tempfile.tempdir = os.environ["TMPDIR"] = folder


def _end_with_parent() -> None:
    """End this worker when its parent is killed; Python's own pools would stay. Long compiled loops let threads run."""
    parent: Any = multiprocessing.parent_process()
    parent.join()
    os._exit(1)


def _end_with_worker() -> None:
    """Let Linux kill this program when the worker that started it is killed, as it is by Ctrl-C."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run_program(
    command: Sequence[str], name: str, seconds: float, remedy: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program without a terminal and return its output; after the time limit kill it and raise RuntimeError."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            env=environment,
            timeout=seconds,
            preexec_fn=_end_with_worker if _PRCTL is not None else None,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{name} was ended after {seconds:g} s: {remedy}") from error


# What a worker must have to play as this process would.


class _Needs(NamedTuple):
    modules: tuple[str, ...]  # whose code decides the games, with all that they import
    rivals: tuple[Spec, ...]  # players that depend on the version of another program
    described: tuple[str, ...] = ()
    """The environment of the process that writes the store: code, Python, libraries and rivals, with versions."""


_FIRST_SEEN: dict[str, str] = {}  # the code of every module that was needed: a process keeps what it has imported


def _needs_of(play: Any, cells: Iterable[Cell]) -> _Needs:
    """Return what a worker must have to play these cells; users' own code is named in them by import path."""
    specs = dict.fromkeys(spec for cell in cells for spec in (cell.stream, cell.player))
    paths = {path for spec in specs for path in paths_in([spec.name, dict(spec.settings)])}
    while isinstance(play, partial):
        play = play.func
    # An error, if it is in a script or a session, where other machines cannot find it.
    modules = {path.partition(":")[0] for path in (import_path_of(play), *paths)}
    needs = _Needs(tuple(sorted(modules)), tuple(spec for spec in specs if _VERSION in spec.settings))
    return needs._replace(described=tuple(_environment(needs)))


def _environment(needs: _Needs) -> Iterator[str]:
    """Yield what of the needed code and programs there is in this process, with versions."""
    for module in needs.modules:
        importlib.import_module(module)
    # After the import: what was imported is what is on the disk now, or older, and then the two differ.
    followed = reachable(*needs.modules)
    yield from [*code_version(followed).split(", "), f"{_WRAPPED} {version(_WRAPPED)}"]
    for rival in needs.rivals:
        given = {setting: value for setting, value in rival.settings.items() if setting != _VERSION}
        yield f"{rival.name} {player_from(Spec(rival.name, given)).spec.settings[_VERSION]}"


@cache  # once in every process
def _check_environment(needs: _Needs) -> None:
    """Raise CellError unless this process has all that is needed."""
    try:
        here = list(_environment(needs))
        changed = [name for name in reachable(*needs.modules) if _has_changed(name)]
    except (Exception, SystemExit) as error:
        raise CellError(f"{type(error).__name__}: {error}") from error
    if changed:
        raise CellError(f"it has imported {', '.join(sorted(changed))} before a change of that code")
    differing = [(own, needed) for own, needed in zip(here, needs.described, strict=True) if own != needed]
    if differing:
        own, needed = (", ".join(parts) for parts in zip(*differing, strict=True))
        raise CellError(f"it has {own}, this run needs {needed}")


def _has_changed(module: str) -> bool:
    code = code_version([module])
    return _FIRST_SEEN.setdefault(module, code) != code
