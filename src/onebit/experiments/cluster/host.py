"""In a Dask worker: the processes that play a run's games, and its folder. Tasks call `join` and `play`.

Games are played in processes of their own, not in the worker's threads: code and libraries are those that are on the
disk now, with one thread each; a compiled loop of an hour leaves the worker free to answer the scheduler; and what is
not wanted any more can be ended at once.

The task that called `join` leaves its result in the worker, and the process that started the run holds on to it. When
that lets go, stops, is killed or cannot be reached, Dask forgets the result, and what is here of the run is removed.
"""

import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Hashable
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, TypeAlias

from onebit.code_version import code_version
from onebit.experiments.cluster.game_process import FILES, READY, REFUSED, SCRATCH
from onebit.experiments.run import THREAD_VARIABLES

Answer: TypeAlias = tuple[Any, ...]
"""A word and what belongs to it, in plain types."""

DIED, GONE = "died", "gone"
_GLANCE = 0.5  # seconds between two checks whether a run is still active
_PATIENCE = 1.0  # seconds for a process to end whose pipe has closed
CODE = code_version([__name__]).partition(",")[0]
"""The version of this module as loaded: a worker that is not restarted after an update keeps the old one."""
_RUNS: "dict[tuple[str, str], _Run]" = {}
_LOCK = threading.Lock()


def join(run: str, needs: tuple[Any, ...], code: str) -> Answer:
    """Prepare for a run; refused unless the installed code and libraries are those of the run.

    Parameters
    ----------
    run : str
        Its name, which no other run has.
    needs : tuple
        A `Needs`, as a plain tuple.
    code : str
        The `CODE` that the run needs.
    """
    from distributed import get_worker

    if code != CODE:
        return REFUSED, "it runs another version of onebit or Python, or was started before that was installed"
    worker = get_worker()
    # A new folder each time: a lost worker may join again while its old folder is being removed.
    folder = Path(worker.local_directory) / f"onebit-{run}-{secrets.token_hex(4)}"
    joined = _Run(worker, worker.get_current_task(), folder, needs)
    answer = joined.start_process()
    if answer[0] != READY:
        joined.close()
        return answer
    with _LOCK:
        _RUNS[run, worker.address] = joined
    threading.Thread(target=joined.watch, name=f"onebit-{run}", daemon=True).start()
    return answer


def receive(run: str, name: str, start: int, content: bytes, dask_worker: Any = None) -> bool:
    """Store a part of a file, and return whether the run is still here.

    Parameters
    ----------
    run : str
        Whose file it is.
    name : str
        Its `travelling_name`.
    start : int
        Where the part begins.
    content : bytes
        The part.
    dask_worker : Worker
        Where this is; Dask fills it in.
    """
    joined = _RUNS.get((run, dask_worker.address))
    if joined is None:
        return False
    path = joined.folder / FILES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+b" if start else "wb") as file:
        file.seek(start)
        file.write(content)
    return True


def play(run: str, ticket: str, job: bytes | None, is_last: bool) -> Answer:
    """Return what the next cell of a batch gave.

    Parameters
    ----------
    run : str
        Of which run.
    ticket : str
        Names the batch here.
    job : bytes, optional
        The batch, packed, when this is its first cell.
    is_last : bool
        Whether the batch ends with this cell.
    """
    from distributed import get_worker

    joined = _RUNS.get((run, get_worker().address))
    return (GONE,) if joined is None else joined.play(ticket, job, is_last)


class _Run:
    """What a worker has of a run: a folder, and processes that play or wait."""

    def __init__(self, worker: Any, key: Hashable, folder: Path, needs: tuple[Any, ...]) -> None:
        self.folder = folder
        self._worker, self._key, self._needs = worker, key, needs
        self._idle: list[_GameProcess] = []
        self._playing: dict[str, _GameProcess] = {}
        self._is_closed = False
        self._lock = threading.Lock()
        for part in (FILES, SCRATCH):
            (folder / part).mkdir(parents=True)

    def start_process(self) -> Answer:
        """Start a process, and return its report."""
        process = _GameProcess(self.folder, self._needs)
        with self._lock:
            # Registered first: if the run ends now, so does the process.
            self._idle.append(process)
            if self._is_closed:
                process.end()
        answer = process.next_answer()
        if answer[0] != READY:
            with self._lock:
                self._idle.remove(process)
            process.end()
        return answer

    def play(self, ticket: str, job: bytes | None, is_last: bool) -> Answer:
        process = self._playing.get(ticket)
        if process is None and job is None:
            return (GONE,)
        if process is None:
            while (process := self._take_idle(ticket)) is None:
                answer = self.start_process()
                if answer[0] != READY:
                    return self._or_gone(answer)
        if job is not None and not process.send(job):
            return self._ended(ticket, process)
        answer = process.next_answer()
        if answer[0] == DIED:
            return self._ended(ticket, process)
        if is_last:
            with self._lock:
                self._idle.append(self._playing.pop(ticket))
        return answer

    def _take_idle(self, ticket: str) -> "_GameProcess | None":
        with self._lock:
            if self._idle:
                self._playing[ticket] = self._idle.pop()
            return self._playing.get(ticket)

    def _ended(self, ticket: str, process: "_GameProcess") -> Answer:
        with self._lock:
            self._playing.pop(ticket, None)
        return self._or_gone((DIED, process.end()))

    def _or_gone(self, answer: Answer) -> Answer:
        return (GONE,) if self._is_closed else answer

    def watch(self) -> None:
        """Wait until the run is released, then remove it."""
        while self._is_wanted():
            time.sleep(_GLANCE)
        self.close()

    def _is_wanted(self) -> bool:
        if self._worker.status.name in ("closing", "closed", "failed"):
            return False
        task = self._worker.state.tasks.get(self._key)
        return task is not None and task.state in ("executing", "long-running", "memory")

    def close(self) -> None:
        """End all processes, and remove the folder."""
        with _LOCK:
            for name in [name for name, run in _RUNS.items() if run is self]:
                del _RUNS[name]
        with self._lock:
            self._is_closed = True
            for process in [*self._idle, *self._playing.values()]:
                process.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class _GameProcess:
    """A process that plays, and the pipe to it."""

    def __init__(self, folder: Path, needs: tuple[Any, ...]) -> None:
        self._pipe, theirs = Pipe()
        # A worker under Dask's nanny may start no process of multiprocessing.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "onebit.experiments.cluster.game_process", str(theirs.fileno())],
            stdin=subprocess.PIPE,
            env=os.environ
            | dict.fromkeys(THREAD_VARIABLES, "1")
            | {"PYTHONPATH": os.pathsep.join(part or os.getcwd() for part in sys.path)},
            pass_fds=[theirs.fileno()],
        )
        # If it stayed open here, the pipe would not close with the process.
        theirs.close()
        with suppress(OSError):
            self._pipe.send((str(folder), tuple(needs)))

    def send(self, job: bytes) -> bool:
        """Return whether the message could be sent to the process."""
        try:
            self._pipe.send_bytes(job)
        except OSError:
            return False
        return True

    def next_answer(self) -> Answer:
        try:
            answer: Answer = self._pipe.recv()
        except (EOFError, OSError):
            # Let it exit by itself first, so that its exit status is known.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE)
            return DIED, self.end()
        return answer

    def end(self) -> str:
        """End it at once, and return how it ended."""
        # The pipe stays open: another thread may wait for it, and gets an error when it breaks.
        self._process.kill()
        self._process.wait()
        return f"status {self._process.returncode}"
