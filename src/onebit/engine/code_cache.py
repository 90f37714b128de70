"""Compiled code, kept on disk, so that a second process does not compile again.

Numba's own cache knows a function by its file and line. It cannot tell apart the loops that one factory makes for many
games, and does not notice a change in another file that was inlined. Here a function is known by everything it is made
of: its code as loaded, the functions, constants and defaults that it closes over or finds in its module, or in another
of ours that it names there, and theirs; the types it is called with, the machine, and the versions of Python, NumPy and
Numba. A change elsewhere in onebit leaves it valid. A function that has anything of another package in it is not kept:
those sources are not ours to watch.

Files are in Numba's place for them (``__pycache__``, or ``NUMBA_CACHE_DIR``), in a folder per user that only this user
can read. Loading compiled code runs it. So a file is loaded only if this user owns it and its folder, nobody else may
write to either, and its digest agrees. Whatever goes wrong, a full disk or a damaged file, costs only the time to
compile. Entries that were not used for a month are removed. A folder that cannot be written to, as in a container whose
file system is read-only, is still read.
"""

import hashlib
import inspect
import os
import pickle
import shutil
import stat
import sys
import time
import types
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import (
    CompileResultCacheImpl,
    InTreeCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
)
from numba.core.compiler import CompileResult
from numba.core.registry import CPUDispatcher

from onebit.files import replace_file

_PACKAGE = __name__.partition(".")[0]
_FOLDER = "onebit-"
_BUILT_IN = ("builtins", "math", "typing")
_KNOWN_BY_VERSION = ("math", "numpy")  # what compiled code does with these is Numba's
_DIGEST_BYTES = hashlib.sha256().digest_size
_SECONDS_KEPT = 30 * 86_400.0
_SECONDS_BETWEEN_TOUCHES = 86_400.0


class _StrangerError(Exception):
    """Something in a function is not ours, or cannot be named."""


def identity(thing: Any) -> str | None:
    """Return a hash of all that a function is made of, or None if something in it is not ours or cannot be named."""
    try:
        return hashlib.sha256("\n".join(_parts(thing, {})).encode()).hexdigest()
    except _StrangerError:
        return None


def is_ours(thing: Any) -> bool:
    """Say whether a function, and all that it closes over or calls, is onebit's own."""
    return identity(thing) is not None


def _parts(thing: Any, seen: dict[int, int]) -> Iterable[str]:
    is_plain = isinstance(thing, types.FunctionType)
    if isinstance(thing, CPUDispatcher):
        yield repr(sorted(thing.targetoptions.items()))
        thing = thing.py_func
    if isinstance(thing, types.FunctionType):
        is_new = id(thing) not in seen  # functions may call each other in a circle
        # By its number too: a factory makes many functions of one name.
        yield f"{_name(thing)} {seen.setdefault(id(thing), len(seen))}"
        if is_new:
            yield from _parts_of_code(thing.__code__)
            values = tuple(cell.cell_contents for cell in thing.__closure__ or ())
            for value in (values, thing.__defaults__, *(thing.__kwdefaults__ or {}).items(), *_found_by(thing)):
                yield from _parts(value, seen)
            if is_plain:
                yield from _parts_of_overloads(thing.__module__)
    elif isinstance(thing, type):
        yield f"{_name(thing)}{getattr(thing, '_fields', '')}"
        # Of a named tuple compiled code sees the fields. What it sees of another class of ours cannot be told.
        if not hasattr(thing, "_fields") and thing.__module__ not in _BUILT_IN:
            raise _StrangerError
    elif isinstance(thing, types.ModuleType):
        yield thing.__name__
        if thing.__name__ not in _KNOWN_BY_VERSION:  # what is used of another cannot be told
            raise _StrangerError
    elif isinstance(thing, tuple):
        yield f"{len(thing)} items"
        if hasattr(thing, "_fields"):
            yield from _parts(type(thing), seen)
        for item in thing:
            yield from _parts(item, seen)
    elif thing is None or isinstance(thing, (bool, int, float, str)):
        yield repr(thing)
    else:
        raise _StrangerError


def _found_by(function: types.FunctionType) -> list[tuple[str, Any]]:
    """Return what a function names in its module and, by their names there, in other modules of ours."""
    names = _names_in(function.__code__)
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, module in list(found.items()):
        if isinstance(module, types.ModuleType) and module.__name__.startswith(f"{_PACKAGE}."):
            within = {f"{name}.{each}": getattr(module, each) for each in names if hasattr(module, each)}
            used = {each: value for each, value in within.items() if not isinstance(value, types.ModuleType)}
            found = {each: value for each, value in found.items() if each != name or not used} | used
    return list(found.items())


def _parts_of_code(code: types.CodeType) -> Iterable[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts_of_code(constant)
        else:
            yield repr(constant)


def _parts_of_overloads(module: str) -> Iterable[str]:
    """Describe all code of a module.

    Compiled code that calls a plain function runs an overload of it. Nothing leads from the one to the other, but
    overloads and intrinsics stand in the module of their function.
    """
    for name, value in sorted(vars(sys.modules[module]).items() if module in sys.modules else ()):
        function = getattr(value, "_defn", value)  # of an intrinsic
        if isinstance(function, types.FunctionType) and function.__module__ == module:
            yield name
            yield from _parts_of_code(function.__code__)
        elif isinstance(value, (bool, int, float)):
            yield f"{name} = {value!r}"


def _names_in(code: types.CodeType) -> list[str]:
    """Return the names that a function looks up, those of its comprehensions and inner functions too."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return sorted({*code.co_names, *(name for each in inner for name in _names_in(each))})


def _name(thing: Any) -> str:
    module = getattr(thing, "__module__", None) or ""
    if module.partition(".")[0] != _PACKAGE and module not in _BUILT_IN:
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


_make_numba_cache: Any = CompileResultCacheImpl
_rebuild: Any = CompileResult._rebuild
NOT_KEPT: dict[str, str] = {}
"""The functions that this process compiled and could not keep, and why."""


class CodeCache(NullCache):
    """The compiled forms of one function; a drop-in for Numba's cache of a dispatcher."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @cached_property
    def _numba(self) -> Any:
        """Numba's own part in it: where files go, and how compiled code is taken apart; RuntimeError if nowhere."""
        return _make_numba_cache(self._dispatcher.py_func)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form for a signature, or None if there is none that may be loaded."""
        target_context.refresh()
        # A damaged or foreign file must never be worse than no file.
        with suppress(Exception):
            # Looked up before compiling: what the function is made of now is what Numba would compile.
            key = self._key(sig, target_context.codegen())
            for folder in self._folders():
                content = _read_trusted(folder, key)
                if content is not None:
                    return _rebuild(target_context, *pickle.loads(content))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form, whole or not at all."""
        # A full disk, no place to write to, or a function with something of another package in it.
        try:
            if self._numba.check_cachable(data):
                key = self._key(sig, data.codegen)
                folder = _folder_in(self._numba.locator)
                _prepare(folder)
                content = pickle.dumps(self._numba.reduce(data))
                replace_file(folder / _file_name(key), _digest(key, content) + content, mode=0o600)
        except (OSError, RuntimeError, _StrangerError) as error:
            NOT_KEPT[self._dispatcher.py_func.__qualname__] = str(error)

    @property
    def is_kept(self) -> bool:
        """Whether there is a folder that can be written to, to keep it in."""
        try:
            return self._numba is not None
        except RuntimeError:
            return False

    def _folders(self) -> list[Path]:
        """Return where this user's code may be: the place for it, also if only to read, and where it is written."""
        function, settings = self._dispatcher.py_func, cast(Any, config)
        locate: Any = UserProvidedCacheLocator if settings.CACHE_DIR else InTreeCacheLocator
        first = _folder_in(locate(function, inspect.getfile(function)))
        return [first, _folder_in(self._numba.locator)] if self.is_kept else [first]

    def _key(self, sig: Any, codegen: Any) -> str:
        made_of = "\n".join(_parts(self._dispatcher, {}))
        called_with = "\n".join(_types_in(getattr(sig, "args", sig)))
        settings: Any = config
        passes = getattr(self._dispatcher._compiler.pipeline_class, "left_out", ())
        flags = settings.BOUNDSCHECK, settings.OPT, settings.DEBUGINFO_DEFAULT, passes
        versions = sys.version, numba.__version__, llvmlite.__version__, np.__version__, flags
        return repr((made_of, called_with, codegen.magic_tuple(), versions))


def place() -> Path:
    """Return the folder in whose folders compiled code is kept; raise RuntimeError if none can be written to."""
    path = Path(_make_numba_cache(place).locator.get_cache_path())
    return path.parent


def _folder_in(locator: Any) -> Path:
    """Return this user's folder in one of Numba's places."""
    return Path(locator.get_cache_path()) / f"{_FOLDER}{_user()}"


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key.encode()).digest() + content).digest()


def _file_name(key: str) -> str:
    return f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.nbc"


def _is_trusted(status: os.stat_result) -> bool:
    """Say whether only this user can have written a file or folder."""
    if not hasattr(os, "geteuid"):  # Windows: folders of a user are that user's
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read_trusted(folder: Path, key: str) -> bytes | None:
    """Return what was kept under a key, or None if it is missing, damaged, or may be another user's."""
    path = folder / _file_name(key)
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
        found, content = file.read(_DIGEST_BYTES), file.read()
    if found != _digest(key, content):
        return None
    if time.time() - status.st_mtime > _SECONDS_BETWEEN_TOUCHES:
        with suppress(OSError):
            os.utime(path)
    return content


def _prepare(folder: Path) -> None:
    """Make the folder, for this user only; remove what was not used for long. Raise OSError if it is another user's."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not (stat.S_ISDIR(status.st_mode) and _is_trusted(status)):
        raise PermissionError(f"{folder} can be written to by others")
    _remove_unused(folder)


@cache  # once for each folder and process
def _remove_unused(folder: Path) -> None:
    for old in folder.parent.glob(_FOLDER + 16 * "[0-9a-f]"):  # as it was before entries were kept by age
        shutil.rmtree(old, ignore_errors=True)
    now = time.time()
    for path in folder.glob("*.nbc"):
        with suppress(OSError):
            if now - path.stat().st_mtime > _SECONDS_KEPT:
                path.unlink()


def keep_on_disk(function: Any) -> Any:
    """Let a compiled function keep its code on disk, if all of it is ours; return it."""
    if isinstance(function, CPUDispatcher):  # not so with the compiler switched off
        dispatcher: Any = function
        dispatcher._cache = CodeCache(dispatcher)
    return function
