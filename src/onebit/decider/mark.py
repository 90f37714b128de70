"""The number of the last acknowledged event, in a small file beside a SQLite log.

If SQLite's journal is truncated, damaged or deleted, SQLite silently drops the events after the damage. Comparing the
end of the log with this file, which also holds the event's checksum, detects the loss.

The file is not synced with every event: it survives a crash of the process, and after a power failure it may be behind
the log, never ahead of it. Its two slots are written alternately, so that a torn write leaves one intact.
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
    """The last acknowledged event."""

    seq: int
    checksum: bytes
    """Checksum of that event in the log."""


class MarkFile:
    """The file with a log's mark.

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
        """Return the mark, None if there is no file; raises ValueError if damaged, OSError for a link or pipe."""
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
        """Write a new mark."""
        self._n_written += 1
        line = _line(self._n_written, mark)
        if self._file is not None and not is_in_place(self._file.fileno(), self.path):
            self.close()
            self._is_there = False
        if self._file is None:
            if not self._is_there:  # or was unreadable
                replace_file(self.path, line.ljust(_MOST_BYTES, b"\n"), mode=0o600)
                self._is_there = True
            self._file = open(self.path, "r+b", buffering=0, opener=_open_plain)  # noqa: SIM115 -- `close` closes it
        self._file.seek(_SLOT * (self._n_written % 2))
        self._file.write(line)

    def close(self) -> None:
        """Sync and close the file."""
        if self._file is not None:
            with suppress(OSError):  # an older mark is harmless
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def _open_plain(path: str, flags: int) -> int:
    opened = os.open(path, flags | NO_LINK | getattr(os, "O_NONBLOCK", 0))  # opening a pipe would block
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "is no plain file")
    return opened


def _line(n_written: int, mark: Mark) -> bytes:
    text = f"{n_written:020d} {mark.seq:020d} {mark.checksum.hex()}"
    return f"{text} {checksum((text,), b'').hex()}\n".encode()


def _parsed(slot: bytes) -> tuple[int, Mark] | None:
    """Return the write count and mark of a slot, or None if it is damaged."""
    try:
        n_written, seq, event, _ = slot.split(b"\n")[0].decode().split(" ")
        found = int(n_written), Mark(int(seq), bytes.fromhex(event))
    except ValueError:
        return None
    return found if slot.startswith(_line(*found)) else None
