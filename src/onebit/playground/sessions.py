"""The sessions of a server, limited in number and idle time."""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Kept = TypeVar("_Kept")


class NoSuchSessionError(LookupError):
    """There is no session with this id, or it is over."""


class Sessions(Generic[_Kept]):
    """Stores objects under random ids; the least recently used is dropped when full.

    Parameters
    ----------
    most : int
        Maximum number of objects.
    idle_seconds : float
        Idle time after which an object is dropped.
    clock : callable
        Returns seconds.
    let_go : callable
        Called with each dropped object.

    Examples
    --------
    >>> sessions = Sessions(most=1, idle_seconds=60.0)
    >>> first, second = sessions.add("a"), sessions.add("b")
    >>> sessions.get(second), len(sessions)
    ('b', 1)
    """

    def __init__(
        self,
        most: int,
        idle_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        let_go: Callable[[_Kept], None] = lambda _thing: None,
    ) -> None:
        self._most, self._idle_seconds, self._clock, self._let_go = most, idle_seconds, clock, let_go
        self._kept: OrderedDict[str, tuple[_Kept, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            self._drop_old()
            return len(self._kept)

    def add(self, thing: _Kept) -> str:
        """Store an object and return its id."""
        name = secrets.token_urlsafe(16)
        with self._lock:
            self._drop_old()
            while len(self._kept) >= self._most:
                self._forget(next(iter(self._kept)))
            self._kept[name] = thing, self._clock()
        return name

    def get(self, name: str) -> _Kept:
        """Return the object with an id, and mark it as used."""
        with self._lock:
            self._drop_old()
            if name not in self._kept:
                raise NoSuchSessionError("there is no such session: it was left alone too long; start a new one")
            thing, _ = self._kept.pop(name)
            self._kept[name] = thing, self._clock()
            return thing

    def drop(self, name: str) -> None:
        """Drop the object with an id, if there is one."""
        with self._lock:
            self._forget(name)

    def _drop_old(self) -> None:
        # In order of use: the first is the oldest.
        now = self._clock()
        while self._kept:
            name, (_, asked) = next(iter(self._kept.items()))
            if now - asked <= self._idle_seconds:
                return
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self._kept:
            self._let_go(self._kept.pop(name)[0])
