"""One line, once in a process, when compiling onebit's functions has taken a second: the program does not hang.

A person at a terminal reads it on standard error, above a progress bar if there is one. Otherwise it is logged, by the
logger ``onebit`` at level INFO. Numba reports when it compiles: calls of compiled functions cost nothing more.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba.core import event

_KEPT = "compiling its code for this machine, which can take a minute; it is kept on disk, so this happens once"
_NOT_KEPT = (
    "compiling its code for this machine, which can take a minute, each time: no folder can be written to keep it in; "
    "let the variable NUMBA_CACHE_DIR name one"
)


class CompileNotice(event.Listener):
    """Counts what is compiled of onebit's functions, and reports once when that has taken so many seconds in all."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.n_compiled = 0
        """How many functions were compiled, and not found on disk."""
        self.is_command = False
        """Whether this process runs a command, whose user may be at a terminal."""
        self.show: Callable[[str], None] = self._show
        self._left = seconds
        self._n_begun = 0
        """Functions that are being compiled now, each for the one before; only the thread with Numba's lock counts."""
        self._began = 0.0
        self._timer: threading.Timer | None = None
        self._shown = threading.Lock()  # held for good once it is reported

    def on_start(self, event: Any) -> None:
        """Note that a function is being compiled; a timer goes off if it takes too long."""
        cache = event.data["dispatcher"]._cache
        if not _is_ours(cache):
            return
        self.n_compiled += 1
        self._n_begun += 1
        if self._n_begun == 1 and not self._shown.locked():
            self._began = time.monotonic()
            self._timer = threading.Timer(self._left, lambda: self.print_once(_KEPT if cache.is_kept else _NOT_KEPT))
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Note that a function is compiled, or could not be."""
        if not _is_ours(event.data["dispatcher"]._cache):
            return
        self._n_begun -= 1
        if self._n_begun == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left = max(0.0, self._left - (time.monotonic() - self._began))

    def print_once(self, text: str) -> None:
        """Report it, unless it was reported before."""
        if self._shown.acquire(blocking=False):
            with suppress(OSError, ValueError):  # standard error may be closed, a pipe broken
                self.show(text)

    def keep_quiet(self) -> None:
        """Report nothing from now on: the command has its own message."""
        self._shown.acquire(blocking=False)

    def _show(self, text: str) -> None:
        # While a progress bar is shown, sys.stderr is rich's, which prints above it.
        is_watched = self.is_command and sys.stderr is not None and sys.stderr.isatty()
        if is_watched or hasattr(sys, "ps1"):  # Python's prompt, IPython or a notebook
            print(f"onebit: {text}", file=sys.stderr, flush=True)
        else:
            logging.getLogger("onebit").info("%s", text)


def _is_ours(cache: Any) -> bool:
    return hasattr(type(cache), "is_kept")  # `onebit.engine.code_cache.CodeCache`


NOTICE = CompileNotice()
"""Of this process; `onebit.engine.jit` lets Numba tell it."""
