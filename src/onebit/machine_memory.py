"""How much memory there is: a small file may ask for more."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

_ALLOWED: ContextVar[float] = ContextVar("allowed", default=math.inf)


@contextmanager
def no_more_than(n_bytes: float) -> Iterator[None]:
    """Let what is made inside take no more: a file that is as large as what it speaks of says how much that is."""
    before = _ALLOWED.set(min(n_bytes, _ALLOWED.get()))
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def memory() -> float:
    """Return how many bytes this process may take: what the machine has, or what its container or shell allows."""
    limits = [_ALLOWED.get()]
    with suppress(ImportError, AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        import resource  # neither is on Windows

        allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
        limits += [allowed] if allowed != resource.RLIM_INFINITY else []
        # A word instead of a number means that there is no limit.
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def check_memory(needed: float) -> None:
    """Raise a MemoryError before it is too late."""
    if needed > memory():
        raise MemoryError(f"it asks for {needed / 2**30:.3g} GiB, and {memory() / 2**30:.3g} GiB are allowed")
