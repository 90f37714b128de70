"""How much one caller may ask for: requests in a list, requests in a second."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_CLASSES = 100_000
MOST_DECIDERS = 200
"""Each has a thread and a file of its own."""
MOST_WAITING = 10_000
"""Requests in line for one decider."""
MOST_BYTES_WAITING = 64 << 20
"""Bytes of all requests in line; read, they take several times as much."""
MOST_BYTES_FOR_ONE = 16 << 20
"""Of them those for one decider: while it replays, the others are still asked."""
MOST_BYTES_HELD = 128 << 20
"""Bytes of all large requests that arrive, are in line or are answered: whoever sends them slowly keeps them here."""
MOST_READERS = 4
"""Reports and pages of the log that are made at once for one decider."""
MOST_THREADS = 64
"""Threads that read: they wait for deciders that are busy, and others must not wait for them."""
MOST_BYTES_A_PAGE = 4 << 20
"""Of the log, unless one event alone has more."""
FAILURES_PER_SECOND = 20.0
"""Wrong tokens from one address."""
_MOST_CALLERS = 10_000


class Allowance:
    """So many a second for every caller, and a burst of as many.

    Parameters
    ----------
    per_second : float
        How many; 0 for any number.
    clock : callable
        Seconds, which never run backwards.

    Examples
    --------
    >>> allowance = Allowance(2.0, clock=lambda: 0.0)
    >>> allowance.take("shop"), allowance.take("shop"), allowance.take("shop")
    (0.0, 0.0, 0.5)
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = float(per_second), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str, cost: int = 1) -> float:
        """Return 0 if the caller may go on, otherwise after how many seconds; something larger than a burst may too."""
        if not self._rate:
            return 0.0
        with self._lock:
            now = self._clock()
            left, since = self._left.pop(caller, (self._burst, now))
            left = min(self._burst, left + (now - since) * self._rate)
            needed = min(float(cost), self._burst)
            is_allowed = left >= needed
            self._left[caller] = (left - (cost if is_allowed else 0.0), now)
            if len(self._left) > _MOST_CALLERS:
                self._left.popitem(last=False)
            return 0.0 if is_allowed else (needed - left) / self._rate

    @property
    def _burst(self) -> float:
        return max(1.0, math.ceil(self._rate))
