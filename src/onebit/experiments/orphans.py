"""Processes that end with their parent, however that ends."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1
# Looked up now: a program that is being started may not load libraries any more.
_PRCTL: Any = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """End this worker when its parent is killed, even in the middle of a game."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    # A thread must wait for the GIL, which a long compiled call holds; the kernel need not.
    if not ask_kernel():
        threading.Thread(target=exit_after, args=(parent.join,), daemon=True).start()
    elif os.getppid() != parent.pid:  # the parent died before the request to the kernel
        os._exit(1)


def ask_kernel() -> bool:
    """Ask the kernel to kill this process when its parent ends (Linux only); return whether it will."""
    return _PRCTL is not None and bool(_PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0)


def exit_after(wait_for_parent: Callable[[], object]) -> None:
    """End this process when a call that lasts as long as the parent returns."""
    wait_for_parent()
    os._exit(1)
