"""Reading npz files (a zip of NumPy arrays) that may come from a stranger: nothing is run, sizes are known before."""

import math
import os
import struct
import tokenize
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.lib import format as npy

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    EOFError,
    RuntimeError,
    struct.error,
    OverflowError,
    SyntaxError,
    TypeError,
    tokenize.TokenError,
)
"""What comes of a damaged npz: encrypted parts and versions of zip from the future are RuntimeErrors, and NumPy reads a
header as Python code (literals only)."""


def read_array(archive: zipfile.ZipFile, part: str) -> Any:
    """Return the array of that name; ask `n_bytes` first."""
    with archive.open(f"{part}.npy") as file:
        return npy.read_array(file, allow_pickle=False)


def n_bytes(archive: zipfile.ZipFile, part: str) -> int:
    """Return how much memory an array will take, by its header, or raise if the file is not as long as that says."""
    with archive.open(f"{part}.npy") as file:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{part} has a header of version {version}")
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(file)
        n_bytes = math.prod(shape) * dtype.itemsize
        there = archive.getinfo(f"{part}.npy").file_size - file.tell()
    if dtype.hasobject:
        raise ValueError(f"{part} holds Python objects, which are never loaded")
    if there != n_bytes:
        raise ValueError(f"{part} has {there} bytes where its shape {shape} needs {n_bytes}")
    return n_bytes


def check_fits(needed: int) -> None:
    """Raise MemoryError if so many bytes are more than this process may take."""
    there = _memory()
    if needed > there:
        raise MemoryError(f"it asks for {needed / 2**30:.3g} GiB, there are {there / 2**30:.3g}")


def _memory() -> float:
    """Return how many bytes this process may take: what the machine has, or what its container or shell allows."""
    limits = [math.inf]
    with suppress(ImportError, AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        import resource  # neither is on Windows

        allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
        limits += [allowed] if allowed != resource.RLIM_INFINITY else []
        # A word instead of a number means that there is no limit.
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)
