"""Limits on requests: sizes, queues and rates."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_CLASSES = 100_000
MOST_DECIDERS = 200
"""Maximum number of deciders; each has a thread and a file."""
MOST_WAITING = 10_000
"""Maximum number of queued requests for one decider."""
MOST_BYTES_WAITING = 64 << 20
"""Maximum bytes of all queued requests; parsed, they take several times as much."""
MOST_BYTES_FOR_ONE = 16 << 20
"""Maximum bytes of requests queued for one decider, so that one that replays does not block others."""
MOST_BYTES_HELD = 128 << 20
"""Maximum bytes of all large requests in progress, including those still arriving slowly."""
MOST_READERS = 4
"""Maximum number of concurrent reads of one decider."""
MOST_THREADS = 64
"""Number of threads for reads, which may wait for busy deciders."""
MOST_BYTES_A_PAGE = 4 << 20
"""Maximum bytes of a page of the log, unless a single event is larger."""
FAILURES_PER_SECOND = 20.0
"""Maximum rate of wrong tokens from one address."""
_MOST_CALLERS = 10_000


class Allowance:
    """Rate limit for each caller, with a burst of one second.

    Parameters
    ----------
    per_second : float
        Rate; 0 for no limit.
    clock : callable
        Monotonic time in seconds.

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
        """Return 0 if the request is allowed, else the seconds to wait; a cost above the burst is allowed when idle."""
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
