"""How the process of a service is set up."""

import gc
import sys
from contextlib import suppress

_MOST_FILES = 65_536
_SWITCH_SECONDS = 0.001  # threads of deciders must not keep the one that reads requests waiting
_OBJECTS = (50_000, 20, 50)  # new ones between two collections, and collections between two larger ones


def raise_file_limit() -> int:
    """Let this process open as many files as it is allowed to, within reason, and return how many those are."""
    try:
        import resource
    except ImportError:  # Windows, where connections are no files
        return _MOST_FILES
    now, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if allowed == resource.RLIM_INFINITY else min(allowed, _MOST_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, allowed))
            now = wanted
    return _MOST_FILES if now == resource.RLIM_INFINITY else now


def set_up_process() -> None:
    """Let threads take turns quickly, and the collector not look at all that was imported over and over again.

    Each of its whole rounds takes a tenth of a second, in which nobody is answered.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_OBJECTS)
