"""The payload of a batch: the batch itself in a few bytes, and the files it reads, each identified by its content."""

import io
import pickle
from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

from onebit.experiments.grid import Batch
from onebit.experiments.run import PlayBatch

_DIGITS = 32  # 128 bits: no two files of a run have the same


class Luggage(NamedTuple):
    """A pickled batch and its player function."""

    job: bytes
    files: dict[str, Path]
    """The files that it reads, by the name under which the other side finds them."""


def pack(play_batch: PlayBatch, batch: Batch) -> Luggage:
    """Return what another machine needs to play a batch.

    Every path of a file in the arguments of `play_batch` becomes the path of a copy there.

    Parameters
    ----------
    play_batch : callable
        If it has a method ``only_for(batch)``, that returns the function for this one batch, without other files.
    batch : Batch
        What is played.
    """
    buffer = io.BytesIO()
    packer = _Packer(buffer)
    packer.dump((only_for(play_batch, batch), batch))
    return Luggage(buffer.getvalue(), packer.files)


def only_for(play_batch: PlayBatch, batch: Batch) -> PlayBatch:
    """Return the function that plays one batch, without data that it does not need."""
    narrowed: Callable[[Batch], PlayBatch] | None = getattr(play_batch, "only_for", None)
    if narrowed is not None:
        return narrowed(batch)
    if isinstance(play_batch, partial):
        arguments = (only_for(part, batch) if callable(part) else part for part in play_batch.args)
        return partial(play_batch.func, *arguments, **play_batch.keywords)
    return play_batch


def unpack(job: bytes, folder: Path) -> tuple[PlayBatch, Batch]:
    """Return the function and the batch, with the paths of the copies.

    Parameters
    ----------
    job : bytes
        From `pack`.
    folder : Path
        Where the copies are.
    """
    found: tuple[PlayBatch, Batch] = _Unpacker(io.BytesIO(job), folder).load()
    return found


def travelling_name(path: Path) -> str:
    """Return the name of a file's copy: its content, then its own name, since that tells how to read it."""
    stamp = path.stat()
    return f"{_digest(path, stamp.st_mtime_ns, stamp.st_size)}/{path.name}"


@lru_cache
def _digest(path: Path, _mtime: int, _size: int) -> str:
    """Read a file once for every state of it."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:_DIGITS]


class _Packer(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer)
        self.files: dict[str, Path] = {}

    def persistent_id(self, thing: Any) -> str | None:
        if not isinstance(thing, Path) or not thing.is_file():
            return None
        name = travelling_name(thing)
        self.files[name] = thing
        return name


class _Unpacker(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, folder: Path) -> None:
        super().__init__(buffer)
        self._folder = folder

    def persistent_load(self, name: Any) -> Path:
        return self._folder / str(name)
