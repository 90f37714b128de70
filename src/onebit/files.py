"""Files written whole or not at all, a lock on a folder; npz read with care."""

import errno
import math
import os
import secrets
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numpy.lib import format as npy

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_UNFINISHED = ".onebit-{}.part"
_LEFT_SECONDS = 3600.0  # no write takes as long: an unfinished file is what a killed process has left


def replace_file(path: Path, content: bytes | memoryview, *, mode: int | None = None) -> None:
    """Write a file whole or not at all, in a folder that exists, so that it survives a loss of power.

    What killed processes have left half-written in this folder is cleared away after an hour. Permissions are `mode`,
    or those that the process gives to new files.
    """
    # In the same folder, since only there a rename is atomic; by chance, since two may write at once.
    unfinished = path.with_name(_UNFINISHED.format(secrets.token_hex(8)))
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # A rename would put a file in the place of a device or a pipe.
            raise OSError(errno.EINVAL, "is a device or a pipe, not a file")
        for left in path.parent.glob(_UNFINISHED.format("*")):
            with suppress(FileNotFoundError):  # another may be clearing up, too
                if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                    left.unlink()
        with unfinished.open("wb") as file:
            if mode is not None:
                os.chmod(unfinished, mode)
            file.write(content)
            file.flush()
            # Before the rename: the other way round a loss of power would leave a new file with nothing in it.
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        _sync_folder(path.parent)
    except OSError as error:
        # A failed write does not know its file, and the user knows no other than this.
        raise OSError(error.errno, f"cannot be written ({error.strerror or error})", str(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, so that they survive a loss of power."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in new:
        _sync_folder(each.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a loss of power."""
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
def locked_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time do what is inside; where a file system has no locks, any number."""
    opened = None if fcntl is None else os.open(folder, os.O_RDONLY)
    try:
        if opened is not None:
            with suppress(OSError):
                fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        if opened is not None:
            os.close(opened)


def read_npz(
    archive: zipfile.ZipFile, parts: Iterable[str], check_bytes: Callable[[int], object] | None = None
) -> dict[str, Any]:
    """Return arrays by name; a damaged file can raise anything: NumPy reads headers as code.

    Nothing is unpacked before all headers are read, and `check_bytes` has allowed the memory that they ask for.
    """
    sizes = {part: _bytes_of(archive, part) for part in parts}
    if check_bytes is not None:
        check_bytes(sum(sizes.values()))
    arrays = {}
    for part in sizes:
        with archive.open(f"{part}.npy") as file:
            arrays[part] = npy.read_array(file, allow_pickle=False)
    return arrays


def _bytes_of(archive: zipfile.ZipFile, part: str) -> int:
    """Return how much memory an array will take, by its header, or raise if the file is shorter than that."""
    info = archive.getinfo(f"{part}.npy")
    # Before anything is unpacked: other packings take the memory that a damaged file asks for.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{part} is packed in a way that NumPy never writes")
    with archive.open(info) as file:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{part} has a header of version {version}")
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(file)
        n_bytes, there = math.prod(shape) * dtype.itemsize, info.file_size - file.tell()
    if dtype.hasobject:
        raise ValueError(f"{part} holds Python objects, which are never loaded")
    if there != n_bytes:
        raise ValueError(f"{part} has {there} bytes where its shape {shape} needs {n_bytes}")
    return n_bytes
