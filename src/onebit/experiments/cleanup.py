"""What a stopped run leaves behind: nothing. Signals that wait for an orderly moment, and a folder for temporary files.

Ctrl-C and SIGTERM are deferred within `orderly_exit`, except inside `allowed`, so that set-up, storing and clean-up are
never interrupted half-way. Players write their files into the folder of the run, which the parent removes. It holds the
lock of that folder: the folder of a killed parent is not locked, and the next run removes it.
"""

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

from onebit.files import abandoned, claimed

_STOPPED = 128  # shells add the number of the signal
_UNWINDING = 1.0  # upper bound on the seconds from an interrupt to the start of clean-up
_PREFIX, _LOCK, _FILES = "onebit-run-", "lock", "files"
_FOLDER: ContextVar[Path | None] = ContextVar("folder of the run", default=None)


class _Terminated(KeyboardInterrupt):
    """SIGTERM as an exception that, like KeyboardInterrupt, handlers of game errors do not catch."""


class _State:
    """The state of the handlers; one per process."""

    n_holds = 0
    raised_at: float | None = None
    pending: int | None = None
    before: dict[int, Any] | None = None
    """The handlers to restore; None where ours are not installed."""


def _on_signal(number: int, _frame: FrameType | None) -> None:
    _State.pending = number
    _raise_pending()


def _raise_pending() -> None:
    number, now = _State.pending, time.monotonic()
    # A second signal must not interrupt the clean-up of the first, but may pass where the first was swallowed.
    is_unwinding = _State.raised_at is not None and now - _State.raised_at < _UNWINDING
    if number is not None and not _State.n_holds and not is_unwinding:
        _State.raised_at, _State.pending = now, None
        raise _Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def orderly_exit() -> Iterator[None]:
    """Defer both signals, except within `allowed`; SIGTERM cleans up too, and ends the process afterwards.

    Handlers that others installed are left in place, and other threads are not affected.
    """
    if threading.current_thread() is not threading.main_thread() or _State.before is not None:
        with held():
            yield
        return
    try:
        try:
            _take_over()
            yield
        finally:
            _give_back()
    except _Terminated:
        raise SystemExit(_STOPPED + signal.SIGTERM) from None


def _take_over() -> None:
    # Ctrl-C comes last, so that it cannot interrupt restoring the handlers.
    defaults = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    _State.n_holds, _State.raised_at, _State.pending = 1, None, None
    _State.before = {number: handler for number, handler in defaults.items() if signal.getsignal(number) is handler}
    for number in _State.before:
        signal.signal(number, _on_signal)


def _give_back() -> None:
    before, _State.before = _State.before or {}, None
    for number, handler in before.items():
        signal.signal(number, handler)
    if _State.raised_at is None:
        _State.n_holds = 0
        _raise_pending()


@contextmanager
def allowed() -> Iterator[None]:
    """Let the signals through within `orderly_exit`."""
    is_ours = _is_ours()
    _State.n_holds -= is_ours
    try:
        if is_ours:
            _raise_pending()
        yield
    finally:
        _State.n_holds += is_ours


@contextmanager
def held() -> Iterator[None]:
    """Hold the signals back within `allowed`."""
    is_ours = _is_ours()
    _State.n_holds += is_ours
    try:
        yield
    finally:
        _State.n_holds -= is_ours
        if is_ours:
            _raise_pending()


def _is_ours() -> bool:
    """Return whether signals come here: Python delivers them to its main thread only."""
    return threading.current_thread() is threading.main_thread() and _State.before is not None


@contextmanager
def run_folder() -> Iterator[None]:
    """Own a folder that `batch_folder` makes its folders in, and remove it with all that is in it."""
    _remove_abandoned()
    with ExitStack() as lock:
        root = _new_root(lock)
        try:
            (root / _FILES).mkdir()
            before = _FOLDER.set(root / _FILES)
            try:
                yield
            finally:
                _FOLDER.reset(before)
        finally:
            _remove(root)


def _new_root(lock: ExitStack) -> Path:
    while True:
        root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            lock.enter_context(claimed(root / _LOCK))
            return root
        except FileNotFoundError:  # another run removed it as abandoned before it was locked
            continue
        except BaseException:
            shutil.rmtree(root, ignore_errors=True)
            raise


def current_folder() -> Path | None:
    """Return the folder of the run that this is called in, for its workers; None outside of one."""
    return _FOLDER.get()


def enter_folder(folder: Path | None) -> None:
    """Make a worker keep all its temporary files in the folder of its run, and those of programs that it starts."""
    if folder is not None:
        tempfile.tempdir = str(folder)
        os.environ["TMPDIR"] = str(folder)


@contextmanager
def batch_folder() -> Iterator[Path]:
    """Give a folder for the files of one batch; it goes at the end of the ``with``, or with the run."""
    with held():
        folder = tempfile.mkdtemp(prefix="batch-", dir=_FOLDER.get())
    try:
        yield Path(folder)
    finally:
        with held():
            shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove the folders of runs that were killed."""
    with suppress(OSError):
        for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError), abandoned(root / _LOCK) as is_left:
                if is_left and root.lstat().st_uid == os.getuid():
                    _remove(root)


def _remove(root: Path) -> None:
    shutil.rmtree(root / _FILES, ignore_errors=True)
    # A program that a killed worker had started may still be writing there: then the lock stays for the next run.
    if not (root / _FILES).exists():
        shutil.rmtree(root, ignore_errors=True)
