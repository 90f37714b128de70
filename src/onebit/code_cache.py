"""Compiled code, kept on disk, so that a second process does not compile again.

Numba's own cache knows a function by its file and line. It cannot tell apart the loops that one factory makes for many
games, and does not notice a change in another file that was inlined. Here a function is known by everything it is made
of: the whole source of onebit, the functions and constants it closes over, the types it is called with, the machine.
A function that has anything of a stranger's in it is not kept: its sources are not ours to watch.

Files are in Numba's place for them (``__pycache__``, or ``NUMBA_CACHE_DIR``), in one folder per source. Whatever goes
wrong there, a full disk or a torn file, costs only the time to compile.
"""

import hashlib
import os
import pickle
import shutil
import sys
import types
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.registry import CPUDispatcher

_PACKAGE = __name__.partition(".")[0]
_FOLDER = "onebit-"


@cache
def source_hash() -> str:
    """Return a hash of the package's whole source."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def identity(thing: Any) -> str | None:
    """Return what a function or constant is made of, or None if something in it is not ours or has no name."""
    if isinstance(thing, CPUDispatcher):
        inner = identity(thing.py_func)
        return None if inner is None else f"{inner}{sorted(thing.targetoptions.items())}"
    if isinstance(thing, types.FunctionType):
        parts = [identity(cell.cell_contents) for cell in thing.__closure__ or ()]
        if not _is_ours(thing.__module__) or None in parts:
            return None
        return f"{thing.__module__}.{thing.__qualname__}({', '.join(map(str, parts))})"
    if isinstance(thing, type):
        return f"{thing.__module__}.{thing.__qualname__}" if _is_ours(thing.__module__) or thing is tuple else None
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return repr(thing)
    return None


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == _PACKAGE


class CodeCache(NullCache):
    """The compiled forms of one function; a drop-in for Numba's cache of a dispatcher."""

    def __init__(self, dispatcher: Any, name: str) -> None:
        self._name = f"{name}{sorted(dispatcher.targetoptions.items())}"
        self._function = dispatcher.py_func

    @cached_property
    def _numba(self) -> Any:
        """Numba's own part in it: where files go, and how compiled code is taken apart and put together."""
        make: Any = CompileResultCacheImpl
        return make(self._function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form for a signature, or None if there is none that can be read."""
        target_context.refresh()
        # A torn or foreign file must never be worse than no file.
        with suppress(Exception):
            payload = pickle.loads(self._path(sig, target_context.codegen()).read_bytes())
            return self._numba.rebuild(target_context, payload)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form, whole or not at all."""
        with suppress(OSError, RuntimeError):  # a full disk, or no place to write to
            if self._numba.check_cachable(data):
                path = self._path(sig, data.codegen)
                _prepare(path.parent)
                unfinished = path.with_suffix(f".{os.getpid()}")
                unfinished.write_bytes(pickle.dumps(self._numba.reduce(data)))
                os.replace(unfinished, path)

    def _path(self, sig: Any, codegen: Any) -> Path:
        settings: Any = config
        versions = sys.version, numba.__version__, llvmlite.__version__, settings.BOUNDSCHECK, settings.OPT
        key = repr((self._name, str(sig), codegen.magic_tuple(), versions))
        folder = Path(self._numba.locator.get_cache_path()) / f"{_FOLDER}{source_hash()}"
        return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.nbc"


@cache
def _prepare(folder: Path) -> None:
    """Make the folder, once, and remove those of other sources: a process that still uses one compiles again."""
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.glob(f"{_FOLDER}*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def keep_on_disk(function: Any) -> Any:
    """Let a compiled function keep its code on disk, if all of it is ours; return it."""
    if isinstance(function, CPUDispatcher):  # not so with the compiler switched off
        dispatcher: Any = function
        name = identity(dispatcher.py_func)
        if name is not None:
            dispatcher._cache = CodeCache(dispatcher, name)
    return function
