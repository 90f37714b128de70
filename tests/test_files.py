"""Files are written whole or not at all, whatever fails and whenever the process is killed."""

import errno
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from onebit import files
from onebit.files import replace_file

OLD, NEW = b"old" * 1000, b"new" * 5000
CALLS = ("open", "fsync", "replace", "close", "unlink", "stat", "fstat", "scandir")


@pytest.fixture(autouse=True)
def leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear away what is left at once, without waiting for an hour."""
    monkeypatch.setattr(files, "_LEFT_SECONDS", -1.0)


class Faults:
    """Counts the calls to the operating system and lets one of them go wrong."""

    def __init__(self, at: int | None, go_wrong: Callable[[], None]) -> None:
        self.at, self.go_wrong, self.n_calls, self.names = at, go_wrong, 0, set[str]()

    def called(self, name: str) -> None:
        self.names.add(name)
        self.n_calls += 1
        if self.n_calls == self.at:
            self.go_wrong()

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.called(name)
            return function(*args, **options)

        return call

    def opened(self, *args: Any, **options: Any) -> Any:
        self.called("open file")
        file = io.FileIO(args[0], "w")
        faults = self

        class Faulty(io.BufferedWriter):
            def write(self, content: Any) -> int:
                # Half of it may be on the disk when the rest fails.
                n_written = super().write(content[: len(content) // 2])
                self.flush()
                faults.called("write")
                return n_written + super().write(content[len(content) // 2 :])

        return Faulty(file)

    @contextmanager
    def injected(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, self.wrapped(name, getattr(os, name)))
            patch.setattr(io, "open", self.opened)
            yield


def fail_with(number: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def interrupt() -> None:
    raise KeyboardInterrupt


def count_calls(folder: Path) -> int:
    (folder / "page.html").write_bytes(OLD)
    faults = Faults(None, interrupt)
    with faults.injected():
        replace_file(folder / "page.html", NEW)
    assert faults.names >= {"open", "open file", "write", "fsync", "replace", "close"}
    return faults.n_calls


@pytest.mark.parametrize(
    "go_wrong", [fail_with(errno.EIO), fail_with(errno.ENOSPC), interrupt], ids=["EIO", "ENOSPC", "^C"]
)
def test_a_fault_at_any_call_leaves_the_old_file_or_the_new(tmp_path: Path, go_wrong: Callable[[], None]) -> None:
    path = tmp_path / "page.html"
    raised: list[BaseException] = []
    for at in range(1, count_calls(tmp_path) + 1):
        path.write_bytes(OLD)
        try:
            with Faults(at, go_wrong).injected():
                replace_file(path, NEW)
        except (OSError, KeyboardInterrupt) as caught:
            raised.append(caught)
        assert path.read_bytes() in (OLD, NEW)
        replace_file(path, NEW)
        assert path.read_bytes() == NEW
        assert list(tmp_path.iterdir()) == [path], "what was left is cleared away by the next who writes"
    assert len(raised) > 5
    for error in raised:
        assert isinstance(error, KeyboardInterrupt) or (f"{path}" in f"{error}" and "cannot be written" in f"{error}")


def test_a_kill_at_any_call_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    folder = str(Path(__file__).parent)
    script = f"import sys; sys.path.insert(0, {folder!r}); import test_files as it; it.kill_at_every_call()"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 5


def kill_at_every_call() -> None:
    """Run in a process of its own, which has one thread and can be forked."""
    files._LEFT_SECONDS = -1.0
    folder, n_killed = Path(sys.argv[1]), 0
    path = folder / "page.html"
    for at in range(1, count_calls(folder) + 1):
        path.write_bytes(OLD)
        child = os.fork()
        if child == 0:
            with Faults(at, lambda: os._exit(9)).injected():
                replace_file(path, NEW)
            os._exit(0)
        n_killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert path.read_bytes() in (OLD, NEW)
        replace_file(path, NEW)
        assert list(folder.iterdir()) == [path]
    print(n_killed)


def test_the_file_and_its_folder_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    kinds = {True: "folder", False: "file"}
    fsync, replace = os.fsync, os.replace

    def note_sync(opened: int) -> None:
        done.append(kinds[os.path.isdir(f"/dev/fd/{opened}")])
        fsync(opened)

    def note_rename(*names: Any) -> None:
        done.append("rename")
        replace(*names)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    replace_file(tmp_path / "page.html", NEW)
    assert done == ["file", "rename", "folder"]


def test_what_somebody_is_writing_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    theirs, old = tmp_path / ".onebit-0123.part", tmp_path / ".onebit-4567.part"
    for path in (theirs, old):
        path.write_bytes(b"half")
    os.utime(old, (0.0, time.time() - 3700.0))
    replace_file(tmp_path / "page.html", NEW)
    assert (theirs.read_bytes(), old.exists()) == (b"half", False)


def test_what_another_user_has_left_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    theirs = tmp_path / ".onebit-0123.part"
    theirs.mkdir()  # cannot be removed, as another user's file in /tmp
    os.utime(theirs, (0.0, 0.0))
    replace_file(tmp_path / "page.html", NEW)
    assert (tmp_path / "page.html").read_bytes() == NEW


def test_the_new_file_has_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(NEW)
    replace_file(tmp_path / "page.html", NEW)
    assert (tmp_path / "page.html").stat().st_mode == (tmp_path / "usual").stat().st_mode
