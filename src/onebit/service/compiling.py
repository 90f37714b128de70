"""What the first guess of a decider needs is compiled before the service is ready, and left when the service stops."""

import contextvars
import logging
import threading
import time

from onebit.decider.decider import Decider

_LOG = logging.getLogger("onebit.serve")


class Compiling:
    """Compiles for one decider, in a thread of its own: the compiler cannot be stopped, only left.

    Parameters
    ----------
    title : str
        The decider's namespace and name.
    is_wanted : bool
        Whether to compile in advance at all.
    """

    def __init__(self, title: str, is_wanted: bool) -> None:
        self._title = title
        self.is_done = not is_wanted
        self._may_go_on = threading.Event()
        self._thread: threading.Thread | None = None

    def wait(self, decider: Decider) -> None:
        """Compile what the first guess needs, and return when that is done, or the service stops."""
        if self.is_done or self._may_go_on.is_set():
            return
        within_budget = contextvars.copy_context().run
        name = f"onebit {self._title} compiler"
        self._thread = threading.Thread(target=within_budget, args=(self._compile, decider), name=name, daemon=True)
        self._thread.start()
        self._may_go_on.wait()

    def leave(self) -> None:
        """Wait for it no longer."""
        self._may_go_on.set()

    @property
    def is_alive(self) -> bool:
        """Whether the thread is still there, waited for or not."""
        return self._thread is not None and self._thread.is_alive()

    def _compile(self, decider: Decider) -> None:
        said, began = {"decider": self._title}, time.monotonic()
        _LOG.info("compiling what its first guess needs", extra=said)
        try:
            decider.warm_up()
            _LOG.info("is ready: compiled in %.1f seconds", time.monotonic() - began, extra=said)
        except Exception as error:  # it may guess all the same; else the first caller is told what is wrong
            _LOG.warning("cannot be compiled in advance: %s", error, extra=said)
        self.is_done = True
        self._may_go_on.set()
