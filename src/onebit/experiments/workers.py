"""Worker processes on this machine. They, and the programs of rivals, end with the process that started them."""

import ctypes
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from onebit.engine.compile_notice import NOTICE

_PR_SET_PDEATHSIG = 1
# Looked up now: a program that is being started may not load libraries any more.
_PRCTL: Any = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


class LocalProcesses:
    """An executor of worker processes on this machine.

    A worker that dies breaks its pool, and every task in it fails. So each worker has a pool of its own: the others go
    on, and the next task gets a new worker in its place. Use it in a ``with`` statement, which ends the workers and
    removes their temporary files.

    Parameters
    ----------
    n_workers : int
        How many tasks will be submitted at once, at most; workers start when they are needed.
    folder : Path, optional
        Where their temporary files are.
    """

    def __init__(self, n_workers: int, folder: Path | None = None) -> None:
        self.n_workers = n_workers
        self._folder = tempfile.mkdtemp(prefix="onebit-run-", dir=folder)
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
        self.close()

    def close(self) -> None:
        """End the workers at once, whatever they are doing, and remove their files."""
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
            NOTICE.say_once(notices.recv())


def _begin_worker(to_notices: Connection, folder: str) -> None:
    # Ctrl-C reaches the whole process group; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    NOTICE.say = to_notices.send  # a message this short is written at once: no lock that a killed worker would keep
    # For all temporary files, and those of programs that are started.
    tempfile.tempdir = os.environ["TMPDIR"] = folder


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
