"""Compile a decider's learner before the service is ready; abandoned when the service stops."""

import contextvars
import logging
import threading
import time

from onebit.decider.decider import Decider

_LOG = logging.getLogger("onebit.serve")


class Compiling:
    """Compiles for one decider in its own thread, since compilation cannot be interrupted.

    Parameters
    ----------
    title : str
        The decider's namespace and name.
    is_wanted : bool
        Whether to compile in advance.
    """

    def __init__(self, title: str, is_wanted: bool) -> None:
        self._title = title
        self.is_done = not is_wanted
        self._may_go_on = threading.Event()
        self._thread: threading.Thread | None = None

    def wait(self, decider: Decider) -> None:
        """Compile, and return when done or when the service stops."""
        if self.is_done or self._may_go_on.is_set():
            return
        within_budget = contextvars.copy_context().run
        name = f"onebit {self._title} compiler"
        self._thread = threading.Thread(target=within_budget, args=(self._compile, decider), name=name, daemon=True)
        self._thread.start()
        self._may_go_on.wait()

    def leave(self) -> None:
        """Stop waiting for the compilation."""
        self._may_go_on.set()

    @property
    def is_alive(self) -> bool:
        """Whether the thread is still running."""
        return self._thread is not None and self._thread.is_alive()

    def _compile(self, decider: Decider) -> None:
        extra, began = {"decider": self._title}, time.monotonic()
        _LOG.info("compiling what its first guess needs", extra=extra)
        try:
            decider.warm_up()
            _LOG.info("is ready: compiled in %.1f seconds", time.monotonic() - began, extra=extra)
        except Exception as error:  # guesses may still work; otherwise the first caller gets the error
            _LOG.warning("cannot be compiled in advance: %s", error, extra=extra)
        self.is_done = True
        self._may_go_on.set()
