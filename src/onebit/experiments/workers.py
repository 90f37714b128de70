"""Worker processes on this machine: their pool, and their temporary files.

Workers and the programs of rivals end with the process that started them. Players write their files into the folder of
the run, which the parent removes. It holds the lock of that folder: the folder of a killed parent is not locked, and
the next run removes it.
"""

import ctypes
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from onebit.engine.compile_notice import NOTICE
from onebit.files import abandoned, claimed

# Every library that numpy, scipy or numba may compute with reads its own.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
_PREFIX, _LOCK, _FILES = "onebit-run-", "lock", "files"
_FOLDER: ContextVar[Path | None] = ContextVar("folder of the run", default=None)
_PR_SET_PDEATHSIG = 1
# Looked up now: a program that is being started may not load libraries any more.
_PRCTL: Any = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


class LocalProcesses:
    """An executor of worker processes on this machine, each with one thread for linear algebra.

    A worker that dies breaks its pool, and every task in it fails. So each worker has a pool of its own: the others go
    on, and the next task gets a new worker in its place. Use it in a ``with`` statement, which ends the workers.

    Parameters
    ----------
    n_workers : int
        At most this many; they start when they are needed.
    folder : Path, optional
        Where workers keep temporary files; by default the folder of the run that submits the task.
    """

    def __init__(self, n_workers: int, folder: Path | None = None) -> None:
        self.n_workers, self._folder = n_workers, folder
        self._pools: list[tuple[ProcessPoolExecutor, Future[Any]]] = []
        self._notices, self._to_notices = multiprocessing.Pipe(duplex=False)
        self._relay = threading.Thread(target=_relay_notices, args=(self._notices,), daemon=True)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Call a function in an idle worker; `BrokenExecutor` is the exception of a worker that died."""
        folder = self._folder or _FOLDER.get()
        with _single_threaded_children():
            pool = self._free_pool()
            try:
                future = pool.submit(_call, folder, function, *arguments)
            except BrokenExecutor:  # its worker died while it was idle
                pool.shutdown()
                pool = self._new_pool()
                future = pool.submit(_call, folder, function, *arguments)
            self._pools.append((pool, future))
        return future

    def _free_pool(self) -> ProcessPoolExecutor:
        # The latest first: what follows a task often uses what its worker has made for it.
        for at in reversed(range(len(self._pools))):
            pool, last = self._pools[at]
            if last.done():
                del self._pools[at]
                if last.cancelled() or not isinstance(last.exception(), BrokenExecutor):
                    return pool
                pool.shutdown()
                break
        # If all are busy, the task waits for the one that began first.
        return self._new_pool() if len(self._pools) < self.n_workers else self._pools.pop(0)[0]

    def _new_pool(self) -> ProcessPoolExecutor:
        if self._relay.ident is None:
            self._relay.start()
        # Not forked: a fork would inherit the locks of other threads, numba's among them.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, context, initializer=_begin_worker, initargs=(self._to_notices,))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers at once, whatever they are doing."""
        pools, self._pools = self._pools, []
        for pool, _ in pools:
            # Python 3.14 has `kill_workers` for it.
            for process in list((pool._processes or {}).values()):
                process.kill()
        for pool, _ in pools:
            pool.shutdown(cancel_futures=True)
        self._to_notices.close()


def _relay_notices(notices: Connection) -> None:
    """Show what workers report about compiling in this process, which may have a progress bar."""
    with suppress(EOFError, OSError), notices:
        while True:
            NOTICE.say_once(notices.recv())


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


def _begin_worker(to_notices: Connection) -> None:
    # Ctrl-C reaches the whole process group; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    NOTICE.say = to_notices.send  # a message this short is written at once: no lock that a killed worker would keep


def _call(folder: Path | None, function: Callable[..., Any], *arguments: Any) -> Any:
    if folder is not None:
        # For all temporary files, and those of programs that are started.
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    return function(*arguments)


@contextmanager
def run_folder() -> Iterator[None]:
    """Create and lock the temporary folder of a run, for `batch_folder`, and remove it at the end."""
    with suppress(OSError):
        for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError), abandoned(left / _LOCK) as is_left:
                if is_left and left.lstat().st_uid == os.getuid():
                    _remove(left)
    root = Path(tempfile.mkdtemp(prefix=_PREFIX))
    before = _FOLDER.set(root / _FILES)
    try:
        with claimed(root / _LOCK):
            (root / _FILES).mkdir()
            yield
    finally:
        _FOLDER.reset(before)
        _remove(root)


def _remove(root: Path) -> None:
    shutil.rmtree(root / _FILES, ignore_errors=True)
    # A program that a killed worker had started may still be writing there: then the lock stays for the next run.
    if not (root / _FILES).exists():
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def batch_folder() -> Iterator[Path]:
    """Give a folder for the files of one batch; it goes at the end of the ``with``, or with the run."""
    folder = tempfile.mkdtemp(prefix="batch-", dir=_FOLDER.get())
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_parent() -> None:
    """End this worker when its parent is killed, even in the middle of a game; Python's own pools would stay."""
    parent: Any = multiprocessing.parent_process()

    def exit_after_parent() -> None:
        parent.join()
        os._exit(1)

    # A thread must wait for the GIL, which a long compiled call holds; the kernel need not.
    if not _ask_kernel():
        threading.Thread(target=exit_after_parent, daemon=True).start()
    elif os.getppid() != parent.pid:  # the parent died before the request to the kernel
        os._exit(1)


def _ask_kernel() -> bool:
    """Ask the kernel to kill this process when its parent ends (Linux only); return whether it will."""
    return _PRCTL is not None and bool(_PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0)


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
            preexec_fn=_ask_kernel if sys.platform == "linux" else None,  # the program must not outlive a killed worker
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{name} was ended after {seconds:g} s: {remedy}") from error
