"""Process-wide settings of a service."""

import gc
import sys
from contextlib import suppress

_MOST_FILES = 65_536
_SWITCH_SECONDS = 0.001  # the event loop must not wait long for worker threads
_OBJECTS = (50_000, 20, 50)  # thresholds of the garbage collector


def raise_file_limit() -> int:
    """Raise the limit on open files as far as allowed, within reason; return the limit."""
    try:
        import resource
    except ImportError:  # Windows, where sockets are not files
        return _MOST_FILES
    now, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if allowed == resource.RLIM_INFINITY else min(allowed, _MOST_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than the hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, allowed))
            now = wanted
    return _MOST_FILES if now == resource.RLIM_INFINITY else now


def set_up_process() -> None:
    """Shorten the thread switch interval, and exclude imported modules from garbage collection.

    A full collection would block all requests for a tenth of a second.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_OBJECTS)
