"""How far a log was acknowledged, in a small file beside it.

SQLite reads a journal that was cut, damaged or deleted as if the events behind the damage had never been written. So
the number of the last acknowledged event is kept here too, with its checksum: a log that ends before it has lost some.

The file is not synced with every event: it outlives the process as it is, and after a loss of power it may be behind
the log, never ahead of it. It has two slots that are written in turn, so that a torn write leaves the other one.
"""

import errno
import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from onebit.decider.events import checksum
from onebit.files import NO_LINK, is_in_place, replace_file

SUFFIX = ".last"
_SLOT = 512  # bytes: one sector of a disk, which is written whole or not at all
_MOST_BYTES = 2 * _SLOT


class Mark(NamedTuple):
    """The last event that was acknowledged."""

    seq: int
    checksum: bytes
    """Of that event, as the log has it."""


class MarkFile:
    """The file of a log's mark.

    Parameters
    ----------
    log : Path
        The log's file.
    """

    def __init__(self, log: Path) -> None:
        self.path = log.with_name(log.name + SUFFIX)
        self._file: FileIO | None = None
        self._n_written, self._is_there = 0, False

    def read(self) -> Mark | None:
        """Return the mark, or None if there is none; raises ValueError if it holds none, OSError for a link or pipe."""
        try:
            with open(self.path, "rb", opener=_open_plain) as file:
                content = file.read(_MOST_BYTES)
        except FileNotFoundError:
            return None
        found = [_parsed(content[start : start + _SLOT]) for start in (0, _SLOT)]
        whole = [each for each in found if each is not None]
        if not whole:
            raise ValueError("it is damaged")
        (self._n_written, mark), self._is_there = max(whole), True
        return mark

    def write(self, mark: Mark) -> None:
        """Move the mark."""
        self._n_written += 1
        line = _line(self._n_written, mark)
        if self._file is not None and not is_in_place(self._file.fileno(), self.path):
            self.close()
            self._is_there = False
        if self._file is None:
            if not self._is_there:  # or cannot be read
                replace_file(self.path, line.ljust(_MOST_BYTES, b"\n"), mode=0o600)
                self._is_there = True
            self._file = open(self.path, "r+b", buffering=0, opener=_open_plain)  # noqa: SIM115 -- `close` closes it
        self._file.seek(_SLOT * (self._n_written % 2))
        self._file.write(line)

    def close(self) -> None:
        """Let the mark survive a loss of power, and let go."""
        if self._file is not None:
            with suppress(OSError):  # an older mark does no harm
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def _open_plain(path: str, flags: int) -> int:
    opened = os.open(path, flags | NO_LINK | getattr(os, "O_NONBLOCK", 0))  # a pipe would keep us waiting
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "is no plain file")
    return opened


def _line(n_written: int, mark: Mark) -> bytes:
    said = f"{n_written:020d} {mark.seq:020d} {mark.checksum.hex()}"
    return f"{said} {checksum((said,), b'').hex()}\n".encode()


def _parsed(slot: bytes) -> tuple[int, Mark] | None:
    """Return how many marks were written up to that of a slot, and the mark; None for a slot that is not whole."""
    try:
        n_written, seq, event, _ = slot.split(b"\n")[0].decode().split(" ")
        found = int(n_written), Mark(int(seq), bytes.fromhex(event))
    except ValueError:
        return None
    return found if slot.startswith(_line(*found)) else None
