"""Compiled code, kept on disk, so that a second process does not compile again.

Numba's own cache knows a function by its file and line. It cannot tell apart the loops that one factory makes for many
games, and does not notice a change in another file that was inlined. Here a function is known by everything it is made
of: its code as loaded, the functions and constants that it closes over or finds in its module, and theirs; the types it
is called with; the whole source of onebit, and the machine. A function that has anything of a stranger's in it is not
kept: its sources are not ours to watch.

Files are in Numba's place for them (``__pycache__``, or ``NUMBA_CACHE_DIR``), in one folder per source. Whatever goes
wrong there, a full disk or a torn file, costs only the time to compile.
"""

import hashlib
import pickle
import shutil
import sys
import types
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.registry import CPUDispatcher

from onebit.files import replace_file

_PACKAGE = __name__.partition(".")[0]
_FOLDER = "onebit-"


def _hash_of_source() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


# Now, not at the first compilation: a file that is edited later is not the one that was imported.
_SOURCE = _hash_of_source()


class _StrangerError(Exception):
    """Something in a function is not ours, or cannot be named."""


def identity(thing: Any) -> str | None:
    """Return a hash of all that a function is made of, or None if something in it is not ours or cannot be named."""
    try:
        return hashlib.sha256("\n".join(_parts(thing, set())).encode()).hexdigest()
    except _StrangerError:
        return None


def is_ours(thing: Any) -> bool:
    """Say whether a function, and all that it closes over or calls, is onebit's own."""
    return identity(thing) is not None


def _parts(thing: Any, seen: set[int]) -> Iterable[str]:
    if isinstance(thing, CPUDispatcher):
        yield repr(sorted(thing.targetoptions.items()))
        thing = thing.py_func
    if isinstance(thing, types.FunctionType):
        yield _name(thing)
        if id(thing) not in seen:  # functions may call each other in a circle
            seen.add(id(thing))
            yield from _parts_of_code(thing.__code__)
            values = [cell.cell_contents for cell in thing.__closure__ or ()]
            values += [thing.__globals__[name] for name in thing.__code__.co_names if name in thing.__globals__]
            for value in values:
                yield from _parts(value, seen)
    elif isinstance(thing, type):
        yield f"{_name(thing)}{getattr(thing, '_fields', '')}"
    elif isinstance(thing, types.ModuleType):
        yield thing.__name__
    elif isinstance(thing, tuple):
        for item in thing:
            yield from _parts(item, seen)
    elif thing is None or isinstance(thing, (bool, int, float, str)):
        yield repr(thing)
    else:
        raise _StrangerError


def _parts_of_code(code: types.CodeType) -> Iterable[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts_of_code(constant)
        else:
            yield repr(constant)


def _name(thing: Any) -> str:
    module = getattr(thing, "__module__", None) or ""
    if module.partition(".")[0] != _PACKAGE and module not in ("builtins", "math", "typing"):
        raise _StrangerError
    return f"{module}.{thing.__qualname__}"


def _types_in(signature: Any) -> Iterable[str]:
    """Describe the types of a call; Numba's own names of named tuples leave out where they come from."""
    for kind in signature:
        of_tuple = getattr(kind, "instance_class", None)
        if of_tuple is not None:
            yield f"{_name(of_tuple)}{of_tuple._fields}"
        yield str(kind)
        if of_tuple is not None or isinstance(kind, numba.types.BaseTuple):
            yield from _types_in(getattr(kind, "types", ()))


class CodeCache(NullCache):
    """The compiled forms of one function; a drop-in for Numba's cache of a dispatcher."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @cached_property
    def _numba(self) -> Any:
        """Numba's own part in it: where files go, and how compiled code is taken apart and put together."""
        make: Any = CompileResultCacheImpl
        return make(self._dispatcher.py_func)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form for a signature, or None if there is none that can be read."""
        target_context.refresh()
        # A torn or foreign file must never be worse than no file.
        with suppress(Exception):
            # Looked up before compiling: what the function is made of now is what Numba would compile.
            payload = pickle.loads(self._path(sig, target_context.codegen()).read_bytes())
            return self._numba.rebuild(target_context, payload)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form, whole or not at all."""
        # A full disk, no place to write to, or a stranger's function.
        with suppress(OSError, RuntimeError, _StrangerError):
            if self._numba.check_cachable(data):
                path = self._path(sig, data.codegen)
                _prepare(path.parent)
                replace_file(path, pickle.dumps(self._numba.reduce(data)))

    def _path(self, sig: Any, codegen: Any) -> Path:
        made_of = "\n".join(_parts(self._dispatcher, set()))
        called_with = "\n".join(_types_in(getattr(sig, "args", sig)))
        settings: Any = config
        flags = settings.BOUNDSCHECK, settings.OPT, settings.DEBUGINFO_DEFAULT
        versions = sys.version, numba.__version__, llvmlite.__version__, flags
        key = repr((made_of, called_with, codegen.magic_tuple(), versions))
        folder = Path(self._numba.locator.get_cache_path()) / f"{_FOLDER}{_SOURCE}"
        return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.nbc"


def _prepare(folder: Path) -> None:
    """Make the folder and remove those of other sources: a process that still uses one compiles again."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for other in folder.parent.glob(f"{_FOLDER}*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)


def keep_on_disk(function: Any) -> Any:
    """Let a compiled function keep its code on disk, if all of it is ours; return it."""
    if isinstance(function, CPUDispatcher):  # not so with the compiler switched off
        dispatcher: Any = function
        dispatcher._cache = CodeCache(dispatcher)
    return function
