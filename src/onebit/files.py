"""Files that are written whole or not at all, and a lock that tells what a killed process has left behind."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: what is left behind stays
    fcntl = None  # type: ignore[assignment]

_UNFINISHED = ".onebit-{}.part"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""For `os.open`: a symbolic link is an error: a user who may write in the folder could point it to another file."""


def replace_file(path: Path, content: bytes | memoryview, *, mode: int | None = None) -> None:
    """Write a file whole or not at all, so that it survives a loss of power.

    A reader finds the old content or the new, never half of it. What a killed process has left half-written in this
    folder is cleared away.

    Parameters
    ----------
    path : Path
        The file; its folder must exist.
    content : bytes
        All that will be in it.
    mode : int, optional
        Its permissions; otherwise what the process gives to new files.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # A rename would put a file in the place of a device or a pipe.
            raise OSError(errno.EINVAL, "is a device or a pipe, not a file")
        for left in path.parent.glob(_UNFINISHED.format("*")):
            with abandoned(left) as is_left:
                if is_left:
                    left.unlink(missing_ok=True)
        _write_and_rename(path, content, mode)
    except OSError as error:
        # A failed write does not know its file, and the user knows no other than this.
        raise OSError(error.errno, f"cannot be written ({error.strerror or error})", str(path)) from error


def _write_and_rename(path: Path, content: bytes | memoryview, mode: int | None) -> None:
    # In the same folder, since only there a rename is atomic; by chance, since two may write at once.
    unfinished = path.with_name(_UNFINISHED.format(secrets.token_hex(8)))
    try:
        with claimed(unfinished):
            with unfinished.open("wb") as file:
                if mode is not None:
                    os.chmod(unfinished, mode)
                file.write(content)
                file.flush()
                # Before the rename: the other way round a loss of power would leave a new file with nothing in it.
                os.fsync(file.fileno())
            os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    _sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, so that they survive a loss of power."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in new:
        _sync_folder(each.parent)


def make_private(path: Path, *, create: bool = False) -> None:
    """Let only its owner read and write a file; create an empty one if asked to and there is none."""
    if create:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    # By its name: closing another descriptor of a file would let go of the locks that this process has on it.
    with suppress(FileNotFoundError, PermissionError):  # a stranger's file is the stranger's to close
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            os.chmod(path, mode & 0o700)


def is_in_place(opened: int, path: Path) -> bool:
    """Say whether a file that is open still lies where it was: it may have been removed, or replaced."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(opened))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Let a rename in the folder survive a loss of power."""
    if os.name != "posix":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network folders cannot
            raise
    finally:
        os.close(opened)


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Hold a lock file, made if it is missing; the lock goes with this process, however that ends."""
    opened = _open_locked(path) if fcntl is not None else None
    try:
        yield
    finally:
        if opened is not None:
            os.close(opened)


def _open_locked(path: Path) -> int:
    while True:
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # On a file system without locks nothing is known to be abandoned, and everything is kept.
            with suppress(OSError):
                fcntl.flock(opened, fcntl.LOCK_EX)
            # Another process may have removed it before it was locked.
            if is_in_place(opened, path):
                return opened
        except BaseException:
            os.close(opened)
            raise
        os.close(opened)


@contextmanager
def abandoned(path: Path) -> Iterator[bool]:
    """Say whether the process that claimed a file is gone; no other process can claim it within the ``with``."""
    opened = None
    try:
        with suppress(OSError):
            opened = os.open(path, os.O_RDWR) if fcntl is not None else None
        is_free = False
        if opened is not None:
            with suppress(OSError):
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_free = True
        yield is_free
    finally:
        if opened is not None:
            os.close(opened)
