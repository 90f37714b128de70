"""Compiled code, kept on disk, so that a second process does not compile again.

Numba's own cache knows a function by its file and line. It cannot tell apart the loops that one factory makes for many
games, and does not notice a change in another file that was inlined. Here a function is known by everything it is made
of (`onebit.code_version.made_of`), the types it is called with, the machine, and the versions of Python, NumPy and
Numba. A change elsewhere in onebit leaves it valid. A function that has anything of another package in it is not kept:
those sources are not ours to watch.

Files are in Numba's place for them (``__pycache__``, or ``NUMBA_CACHE_DIR``), in a folder per user that only this user
can read. Loading compiled code runs it. So a file is loaded only if this user owns it and its folder, no other may
write to either, and its digest agrees. Whatever goes wrong, a full disk or a damaged file, costs only the time to
compile. Entries that were not used for a month are removed. A folder that cannot be written to, as in a container whose
file system is read-only, is still read.
"""

import hashlib
import inspect
import os
import pickle
import stat
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import InTreeCacheLocator, NullCache, UserProvidedCacheLocator

from onebit.code_version import ForeignCodeError, made_of, name_of
from onebit.engine.numba_private import numba_cache, rebuilt
from onebit.files import replace_file

_FOLDER = "onebit-"
_DIGEST_BYTES = hashlib.sha256().digest_size
_SECONDS_KEPT = 30 * 86_400.0
_SECONDS_BETWEEN_TOUCHES = 86_400.0


def _types_in(signature: Any) -> Iterable[str]:
    """Describe the types of a call; Numba's own names of named tuples leave out where they come from."""
    for kind in signature:
        of_tuple = getattr(kind, "instance_class", None)
        if of_tuple is not None:
            yield f"{name_of(of_tuple)}{of_tuple._fields}"
        yield str(kind)
        if of_tuple is not None or isinstance(kind, numba.types.BaseTuple):
            yield from _types_in(getattr(kind, "types", ()))


NOT_KEPT: dict[str, str] = {}
"""The functions that this process compiled and could not keep, and why."""


class CodeCache(NullCache):
    """The compiled forms of one function; a drop-in for Numba's cache of a dispatcher."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @cached_property
    def _numba(self) -> Any:
        """Numba's own part in it: where files go, and how compiled code is taken apart; RuntimeError if nowhere."""
        return numba_cache(self._dispatcher.py_func)

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
                    return rebuilt(target_context, pickle.loads(content))
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
        except (OSError, RuntimeError, ForeignCodeError) as error:
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
        called_with = "\n".join(_types_in(getattr(sig, "args", sig)))
        settings: Any = config
        passes = getattr(self._dispatcher._compiler.pipeline_class, "left_out", ())
        flags = settings.BOUNDSCHECK, settings.OPT, settings.DEBUGINFO_DEFAULT, passes
        versions = sys.version, numba.__version__, llvmlite.__version__, np.__version__, flags
        return repr((made_of(self._dispatcher), called_with, codegen.magic_tuple(), versions))


def place() -> Path:
    """Return the folder in whose folders compiled code is kept; raise RuntimeError if none can be written to."""
    path = Path(numba_cache(place).locator.get_cache_path())
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
    """Return whether only this user can have written a file or folder."""
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
    now = time.time()
    for path in folder.glob("*.nbc"):
        with suppress(OSError):
            if now - path.stat().st_mtime > _SECONDS_KEPT:
                path.unlink()


def keep_on_disk(function: Any) -> Any:
    """Return a compiled function that keeps its code on disk, if all of it is ours."""
    function._cache = CodeCache(function)
    return function
