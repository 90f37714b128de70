"""Where players keep files while they play: one folder per run, which the parent owns and removes.

A run holds the lock of its folder. The folder of a killed parent is not locked, and the next run removes it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from onebit.experiments.interrupts import held
from onebit.files import abandoned, claimed

_PREFIX = "onebit-run-"
_LOCK, _FILES = "lock", "files"
_FOLDER: ContextVar[Path | None] = ContextVar("scratch folder", default=None)


@contextmanager
def run_folder() -> Iterator[None]:
    """Own a folder that `batch_folder` makes its folders in, and remove it with all that is in it."""
    remove_abandoned()
    with ExitStack() as lock:
        root = _new_root(lock)
        try:
            (root / _FILES).mkdir()
            before = _FOLDER.set(root / _FILES)
            try:
                yield
            finally:
                _FOLDER.reset(before)
        finally:
            _remove(root)


def _new_root(lock: ExitStack) -> Path:
    while True:
        root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            lock.enter_context(claimed(root / _LOCK))
            return root
        except FileNotFoundError:  # another run removed it as abandoned before it was locked
            continue
        except BaseException:
            shutil.rmtree(root, ignore_errors=True)
            raise


def current_folder() -> Path | None:
    """Return the folder of the run that this is called in, for its workers; None outside of one."""
    return _FOLDER.get()


def enter_folder(folder: Path | None) -> None:
    """Make a worker keep all its temporary files in the folder of its run, and those of programs that it starts."""
    if folder is not None:
        tempfile.tempdir = str(folder)
        os.environ["TMPDIR"] = str(folder)


@contextmanager
def batch_folder() -> Iterator[Path]:
    """Give a folder for the files of one batch; it goes at the end of the ``with``, or with the run."""
    with held():
        folder = tempfile.mkdtemp(prefix="batch-", dir=_FOLDER.get())
    try:
        yield Path(folder)
    finally:
        with held():
            shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned() -> None:
    """Remove the folders of runs that were killed."""
    with suppress(OSError):
        for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError), abandoned(root / _LOCK) as is_left:
                if is_left and root.lstat().st_uid == os.getuid():
                    _remove(root)


def _remove(root: Path) -> None:
    shutil.rmtree(root / _FILES, ignore_errors=True)
    # A program that a killed worker had started may still be writing there: then the lock stays for the next run.
    if not (root / _FILES).exists():
        shutil.rmtree(root, ignore_errors=True)
