"""Reading npz files (a zip of NumPy arrays) that may come from a stranger: nothing is run, sizes are known before."""

import math
import struct
import tokenize
import zipfile
import zlib
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
    # Before anything is unpacked: other packings take the memory that a damaged file asks for.
    if archive.getinfo(f"{part}.npy").compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{part} is packed in a way that NumPy never writes")
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
