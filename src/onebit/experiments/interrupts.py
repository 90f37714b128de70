"""Defers Ctrl-C and SIGTERM during set-up and clean-up, so that nothing is left behind."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STOPPED = 128  # shells add the number of the signal
_UNWINDING = 1.0  # upper bound on the seconds from an interrupt to the start of clean-up


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


def _is_ours_to_hold() -> bool:
    """Python delivers signals to its main thread only."""
    return threading.current_thread() is threading.main_thread() and _State.before is not None


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
    if not _is_ours_to_hold():
        yield
        return
    _State.n_holds -= 1
    try:
        _raise_pending()
        yield
    finally:
        _State.n_holds += 1


@contextmanager
def held() -> Iterator[None]:
    """Hold the signals back within `allowed`."""
    if not _is_ours_to_hold():
        yield
        return
    _State.n_holds += 1
    try:
        yield
    finally:
        _State.n_holds -= 1
        _raise_pending()
