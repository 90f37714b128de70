"""How the process of a service is set up."""

import gc
import sys

_SWITCH_SECONDS = 0.001  # threads of deciders must not keep the one that reads requests waiting
_OBJECTS = (50_000, 20, 50)  # new ones between two collections, and collections between two larger ones


def set_up_process() -> None:
    """Let threads take turns quickly, and the collector not look at all that was imported over and over again.

    Each of its whole rounds takes a tenth of a second, in which nobody is answered.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_OBJECTS)
