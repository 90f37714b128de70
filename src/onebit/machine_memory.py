"""How much memory there is: a small file may ask for more, and several learners may share it."""

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

_ALLOWED: ContextVar[float] = ContextVar("allowed", default=math.inf)


class MemoryBudgetError(ValueError):
    """More memory is asked for than is left of a budget; the message has how much, and what to do."""


class Budget:
    """So many bytes that several take together, each by its name; `remedy` is what to do when they do not suffice."""

    def __init__(self, n_bytes: float, remedy: str) -> None:
        self.n_bytes, self._remedy = n_bytes, remedy
        self._taken: dict[str, float] = {}
        self._lock = threading.Lock()

    def shared_by(self, name: str, beside: float = 0.0) -> AbstractContextManager[None]:
        """Count what is claimed inside under a name, which takes some bytes beside."""
        return _while_set(SHARE, (self, name, beside))

    def claim(self, name: str, n_bytes: float, *, more: bool = False) -> None:
        """Reserve so much in all, or so much more, under a name; raises MemoryBudgetError if that is not left."""
        with self._lock:
            taken = self._taken.get(name, 0.0)
            needed = taken + n_bytes if more else n_bytes
            left = self.n_bytes - (sum(self._taken.values()) - taken)
            if needed > left:
                raise MemoryBudgetError(
                    f"{name} needs {_shown(needed, math.ceil)} of memory, and {_shown(max(left, 0.0), math.floor)} of "
                    f"{_shown(self.n_bytes)} are left; {self._remedy}"
                )
            self._taken[name] = max(needed, taken)

    def settle(self, name: str, n_bytes: float) -> None:
        """Note what one takes in fact, which may have grown beyond what was claimed."""
        with self._lock:
            self._taken[name] = n_bytes
            if not n_bytes:  # names of what was refused must not pile up
                del self._taken[name]


SHARE: ContextVar[tuple[Budget, str, float] | None] = ContextVar("share", default=None)
"""The budget that is shared here, under which name, and the bytes taken beside."""


def claim_memory(n_bytes: float, *, more: bool = False) -> None:
    """Claim memory of the budget that is shared here, as `Budget.claim` does; without a budget do nothing."""
    if (share := SHARE.get()) is not None:
        budget, name, beside = share
        budget.claim(name, n_bytes if more else beside + n_bytes, more=more)


def no_more_than(n_bytes: float) -> AbstractContextManager[None]:
    """Limit what is allocated inside, for a file whose size bounds what it describes."""
    return _while_set(_ALLOWED, min(n_bytes, _ALLOWED.get()))


@contextmanager
def _while_set(variable: ContextVar[Any], value: object) -> Iterator[None]:
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def memory() -> float:
    """Return how many bytes this process may take: what the machine has, or what its container or shell allows."""
    limits = [_ALLOWED.get()]
    with suppress(ImportError, AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        import resource  # neither is on Windows

        allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
        limits += [allowed] if allowed != resource.RLIM_INFINITY else []
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))  # a word where there is no limit
    return min(limits)


def check_memory(needed: float) -> None:
    """Raise a MemoryError before it is too late, or a MemoryBudgetError where the memory is shared."""
    if needed > memory():
        raise MemoryError(f"it asks for {needed / 2**30:.3g} GiB, and {memory() / 2**30:.3g} GiB are allowed")
    claim_memory(needed)


def _shown(n_bytes: float, rounded: Callable[[float], int] = round) -> str:
    """Return bytes to a thousandth of a GiB; rounded away from each other, what is needed is more than what is left."""
    return f"{rounded(1_000 * n_bytes / 2**30) / 1_000:g} GiB"
