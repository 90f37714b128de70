"""Compiled code, kept on disk, so that a second process does not compile again.

Numba's own cache knows a function by its file and line. It cannot tell apart the loops that one factory makes for many
games, and does not notice a change in another file that was inlined. Here a function is known by everything it is made
of (`_made_of`), the types it is called with, the machine, and the versions of Python, NumPy and Numba. A change
elsewhere in onebit leaves it valid. A function that has anything of another package in it is not kept: those sources
are not ours to watch.

Files are in Numba's place for them (``__pycache__``, or ``NUMBA_CACHE_DIR``), in a folder per user. Loading compiled
code runs it. So a file is loaded only if this user owns it and its folder, no other may write to either, neither is a
link, and its digest agrees. Whatever goes wrong, a full disk or a damaged file, costs only the time to compile. Entries
that were not used for a month are removed. A folder that cannot be written to, as in a container whose file system is
read-only, is still read.
"""

import inspect
import os
import pickle
import stat
import sys
import time
import types
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching, config
from numba.core.compiler import CompileResult
from numba.core.registry import CPUDispatcher
from numba.extending import _Intrinsic

from onebit.files import replace_file

_SUFFIX = ".nbc"
_DIGEST_BYTES = sha256().digest_size
_SECONDS_KEPT = 30 * 86_400.0
_SECONDS_BETWEEN_TOUCHES = 86_400.0
_BUILT_IN = ("builtins", "math", "typing")
_KNOWN_BY_VERSION = ("math", "numpy")  # what compiled code does with these is Numba's

NOT_KEPT: dict[str, str] = {}
"""The functions that this process compiled and could not keep, and why."""


class CodeCache(caching.NullCache):
    """The compiled forms of one function; a drop-in for Numba's cache of a dispatcher."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @cached_property
    def _numba(self) -> Any:
        return _numba_cache(self._dispatcher.py_func)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form for a signature, or None if there is none that may be loaded."""
        target_context.refresh()
        with suppress(Exception):  # a damaged or foreign file must never be worse than no file
            # Looked up before compiling: what the function is made of now is what Numba would compile.
            key, function = self._key(sig, target_context.codegen()), self._dispatcher.py_func
            # The place for it is read even if it cannot be written to.
            first = caching.UserProvidedCacheLocator if config.CACHE_DIR else caching.InTreeCacheLocator
            locators = [first(function, inspect.getfile(function)), *([self._numba.locator] if self.is_kept else [])]
            for locator in locators:
                content = _read_trusted(_folder_of(locator), key)
                if content is not None:
                    return CompileResult._rebuild(target_context, *pickle.loads(content))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form, whole or not at all."""
        try:
            if self._numba.check_cachable(data):
                content = pickle.dumps(self._numba.reduce(data))
                _keep(_folder_of(self._numba.locator), self._key(sig, data.codegen), content)
        except (OSError, RuntimeError) as error:  # a full disk, say, or code of another package in it
            NOT_KEPT[self._dispatcher.py_func.__qualname__] = str(error)

    @property
    def is_kept(self) -> bool:
        """Whether there is a folder that can be written to, to keep it in."""
        with suppress(RuntimeError):
            return self._numba is not None
        return False

    def _key(self, sig: Any, codegen: Any) -> str:
        called_with = "\n".join(_types_in(getattr(sig, "args", sig)))
        flags = config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT
        versions = sys.version, numba.__version__, llvmlite.__version__, np.__version__, flags
        return repr((_made_of(self._dispatcher), called_with, codegen.magic_tuple(), versions))


def _numba_cache(function: Any) -> Any:
    """Return Numba's cache of a function: where files go, and compiled code as parts; RuntimeError if it has none."""
    if not hasattr(caching, "CompileResultCacheImpl"):
        raise RuntimeError("this version of Numba keeps compiled code in another way")
    return caching.CompileResultCacheImpl(function)


def place() -> Path:
    """Return the folder in whose folders compiled code is kept; raise RuntimeError if none can be written to."""
    return Path(_numba_cache(place).locator.get_cache_path()).parent


def _types_in(signature: Any) -> Iterator[str]:
    """Describe the types of a call; Numba's own names of named tuples leave out where they come from."""
    for kind in signature:
        of_tuple = getattr(kind, "instance_class", None)
        if of_tuple is not None:
            yield f"{_name_of(of_tuple)}{of_tuple._fields}"
        yield str(kind)
        if of_tuple is not None or isinstance(kind, numba.types.BaseTuple):
            yield from _types_in(getattr(kind, "types", ()))


# Files.


def _user() -> int | None:
    """Return who runs this now; None on Windows, where folders of a user are that user's."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def _folder_of(locator: Any) -> Path:
    return Path(locator.get_cache_path()) / f"onebit-{_user() or 0}"


def _path(folder: Path, key: str) -> Path:
    return folder / f"{sha256(key.encode()).hexdigest()[:32]}{_SUFFIX}"


def _digest(key: str, content: bytes) -> bytes:
    return sha256(sha256(key.encode()).digest() + content).digest()


def _is_trusted(status: os.stat_result) -> bool:
    """Return whether only this user can have written a file or folder."""
    user = _user()
    return user is None or (status.st_uid == user and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _read_trusted(folder: Path, key: str) -> bytes | None:
    """Return what was kept under a key, or None if it is missing, damaged, or another user may have written it."""
    path = _path(folder, key)
    try:
        within = folder.lstat()
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    with open(opened, "rb") as file:
        status = os.fstat(file.fileno())
        is_plain = stat.S_ISDIR(within.st_mode) and stat.S_ISREG(status.st_mode)
        if not (is_plain and _is_trusted(within) and _is_trusted(status)):
            return None
        digest, content = file.read(_DIGEST_BYTES), file.read()
    if digest != _digest(key, content):
        return None
    if time.time() - status.st_mtime > _SECONDS_BETWEEN_TOUCHES:
        with suppress(OSError):
            os.utime(path)
    return content


def _keep(folder: Path, key: str, content: bytes) -> None:
    """Write a file that only this user may read and write, in a folder of this user's; raise OSError if it is not."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not (stat.S_ISDIR(status.st_mode) and _is_trusted(status)):
        raise PermissionError(f"{folder} can be written to by others")
    _remove_unused(folder)
    replace_file(_path(folder, key), _digest(key, content) + content, mode=0o600)


@cache  # once for each folder and process
def _remove_unused(folder: Path) -> None:
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _SECONDS_KEPT:
                path.unlink()


# What a function is made of: its code as loaded, what it closes over or finds in its module, and all of theirs.


class _ForeignCodeError(RuntimeError):
    """Something in a function is not onebit's, or cannot be named."""


def is_ours(function: Any) -> bool:
    """Return whether a function, and all that it closes over or calls, is onebit's own."""
    try:
        return bool(_made_of(function))
    except _ForeignCodeError:
        return False


def _made_of(function: Any) -> str:
    """Return a text of all that a function is made of; raise _ForeignCodeError if not all of it is onebit's."""
    return "\n".join(_parts(function, {}))


def _parts(thing: Any, seen: dict[int, int]) -> Iterator[str]:
    is_compiled = isinstance(thing, CPUDispatcher)
    if is_compiled:
        yield repr(sorted(thing.targetoptions.items()))
        thing = thing.py_func
    if isinstance(thing, types.FunctionType):
        is_new = id(thing) not in seen  # functions may call each other in a circle
        # By its number too: a factory makes many functions of one name.
        yield f"{_name_of(thing)} {seen.setdefault(id(thing), len(seen))}"
        if is_new:
            yield from _parts_of_code(thing.__code__)
            values = tuple(cell.cell_contents for cell in thing.__closure__ or ())
            for value in (values, thing.__defaults__, *(thing.__kwdefaults__ or {}).items(), *_found_by(thing)):
                yield from _parts(value, seen)
            if not is_compiled and thing.__module__ in sys.modules:
                # Compiled code runs something else in place of a plain function: it stands in the same module.
                yield inspect.getsource(sys.modules[thing.__module__])
    elif isinstance(thing, type):
        yield f"{_name_of(thing)}{getattr(thing, '_fields', '')}"
        # Of a named tuple compiled code sees the fields. What it sees of another class of ours is not known.
        if not hasattr(thing, "_fields") and thing.__module__ not in _BUILT_IN:
            raise _ForeignCodeError
    elif isinstance(thing, tuple):
        yield f"{len(thing)} items"
        for part in (type(thing), *thing) if hasattr(thing, "_fields") else thing:
            yield from _parts(part, seen)
    elif isinstance(thing, _Intrinsic):
        yield from _parts_of_code(thing._defn.__code__)
    elif isinstance(thing, types.ModuleType) and thing.__name__ in _KNOWN_BY_VERSION:
        yield thing.__name__
    elif thing is None or isinstance(thing, (bool, int, float, str)):
        yield repr(thing)
    else:
        raise _ForeignCodeError


def _parts_of_code(code: types.CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts_of_code(constant)
        else:
            yield repr(constant)


def _found_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function names in its module and, by their names there, in other modules of onebit."""
    names = _names_in(function.__code__)
    for name in sorted(names & function.__globals__.keys()):
        thing, used = function.__globals__[name], []
        if isinstance(thing, types.ModuleType) and thing.__name__.startswith("onebit."):
            within = [(each, getattr(thing, each)) for each in sorted(names) if hasattr(thing, each)]
            used = [(f"{name}.{each}", value) for each, value in within if not isinstance(value, types.ModuleType)]
        yield from used or [(name, thing)]


def _names_in(code: types.CodeType) -> set[str]:
    """Return the names that a function looks up, those of its comprehensions and inner functions too."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _name_of(thing: Any) -> str:
    """Return where a function or class is defined; raise _ForeignCodeError if it is not onebit's or Python's."""
    module = getattr(thing, "__module__", None) or ""
    if module.partition(".")[0] != "onebit" and module not in _BUILT_IN:
        raise _ForeignCodeError
    return f"{module}.{thing.__qualname__}"
