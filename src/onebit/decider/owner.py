"""The process that has a log open, and the lock on a log file."""

import json
import os
import socket
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from onebit.decider.log_errors import LogError, OwnedError
from onebit.files import NO_LINK, is_in_place

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock is all there is
    fcntl = None  # type: ignore[assignment]

_LONGEST = 1000  # bytes of the owner file


class Owner(NamedTuple):
    """A process that has a log open."""

    pid: int
    host: str
    since: str

    @classmethod
    def here(cls) -> "Owner":
        """Return this process, as owner from now on."""
        return cls(os.getpid(), socket.gethostname(), datetime.now(UTC).isoformat(timespec="seconds"))

    def __str__(self) -> str:
        is_here = (self.pid, self.host) == (os.getpid(), socket.gethostname())
        who = "this process" if is_here else f"process {self.pid}"
        return f"{who} on {self.host} since {self.since}"


class OwnerFile:
    """The lock on a log file: a locked file beside it that names the owner; released when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".owner")
        self._file: int | None = None
        self.was_left = self._path.exists()
        """Whether the last owner did not close the log."""
        if fcntl is not None:
            try:
                self._file = self._claim(path)
            except OSError as error:
                is_link = self._path.is_symlink()
                remedy = f"{self._path.name} is a link: remove it" if is_link else "is its folder there, may you write?"
                raise LogError(f"{path}: cannot be locked ({error}); {remedy}") from error

    def _claim(self, path: Path) -> int:
        while True:
            opened = os.open(self._path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The last owner may have removed it between our opening and locking it.
                if is_in_place(opened, self._path):
                    self._write(opened)
                    return opened
            except BlockingIOError:
                named = self._named(opened)
                os.close(opened)
                raise OwnedError(f"{path}: is open in {named}; one process at a time", named) from None
            except BaseException:
                os.close(opened)
                raise
            os.close(opened)

    def _write(self, opened: int) -> None:
        """Write this process into the owner file; raise LogError if the file is another program's."""
        found = os.fstat(opened)
        is_empty = not os.pread(opened, _LONGEST, 0).strip(b"\0")
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or not (is_empty or _owner_in(opened)):
            raise LogError(f"{self._path}: is no file of a decider's; move it away")
        os.fchmod(opened, 0o600)
        os.ftruncate(opened, 0)
        os.pwrite(opened, json.dumps(Owner.here()._asdict()).encode(), 0)

    @staticmethod
    def _named(opened: int) -> str:
        return str(_owner_in(opened) or "another process")

    def let_go(self) -> None:
        """Release the lock."""
        if self._file is not None:
            if is_in_place(self._file, self._path):  # it may have been removed, and replaced by another process
                self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


def _owner_in(opened: int) -> Owner | None:
    """Return the owner named in an owner file, or None if it has another format."""
    with suppress(ValueError, TypeError):
        return Owner(**json.loads(os.pread(opened, _LONGEST, 0)))
    return None
