"""The command line as a user meets it."""

import errno
import os
import re
import shlex
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from in_process import onebit
from onebit import __version__
from onebit.cli import main
from onebit.experiments.entries import kernel_names
from onebit.learners import all_learners
from onebit.streams.sources import known_names

Capture = pytest.CaptureFixture[str]

SMALL = ("--rounds", "3000", "--runs", "3", "--seed", "5")
TABLES = ("summary.csv", "mistakes.csv")


def run_here(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Call `onebit` in this process, as its script does, and return the exit code."""
    monkeypatch.setattr(sys, "argv", ["onebit", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def raising(error: Exception) -> Callable[..., NoReturn]:
    def fail(*_: object) -> NoReturn:
        raise error

    return fail


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    run = onebit("reproduce", *SMALL, "--out", str(folder))
    assert run.returncode == 0, run.stderr
    return folder


def test_help_names_the_options() -> None:
    run = onebit("reproduce", "--help")
    assert run.returncode == 0
    for option in ("--rounds", "--runs", "--seed", "--jobs", "--out", "--quick"):
        assert option in run.stdout


def test_reproduce_writes_everything(finished: Path) -> None:
    assert (finished / "report.html").stat().st_size > 100_000
    curves = ("figure_4a", "figure_4b", "figure_5a", "figure_5b")
    for name in ("figure_1", "figure_3", *curves, "figure_6", "figure_7", "figure_8"):
        for kind in ("png", "svg"):
            assert (finished / "figures" / f"{name}.{kind}").stat().st_size > 5_000
    assert len((finished / "summary.csv").read_text().splitlines()) == 25


@pytest.mark.slow
def test_a_second_run_plays_nothing_and_writes_the_same(finished: Path) -> None:
    before = {name: (finished / name).read_bytes() for name in TABLES}
    store = (finished / "arena.sqlite").stat().st_mtime_ns
    run = onebit("reproduce", *SMALL, "--out", str(finished))
    assert run.returncode == 0, run.stderr
    assert {name: (finished / name).read_bytes() for name in TABLES} == before
    assert (finished / "arena.sqlite").stat().st_mtime_ns == store


def count_cells(store: Path) -> int:
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM results").fetchone()[0])
    except sqlite3.Error:
        return 0


@pytest.mark.slow  # tests/arena does it on a store of its own
def test_kill_9_in_the_middle_then_the_same_tables(finished: Path, tmp_path: Path) -> None:
    # One worker: two of them finish what is left before a poll has come round.
    command = [sys.executable, "-m", "onebit", "reproduce", *SMALL, "--jobs", "1", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while count_cells(tmp_path / "arena.sqlite") < 3 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = count_cells(tmp_path / "arena.sqlite")
    assert 3 <= kept < 66, "the run was killed too early or too late to show anything"
    assert not (tmp_path / "summary.csv").exists()
    run = onebit("reproduce", *SMALL, "--out", str(tmp_path))
    assert run.returncode == 0, run.stderr
    for name in TABLES:
        assert (tmp_path / name).read_bytes() == (finished / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--jobs", "0"), ["jobs", "0"]),
        (("--rounds", "0"), ["rounds", "0"]),
        (("--runs", "-1"), ["runs", "-1"]),
        (("--seed", "-4"), ["seed", "-4"]),
    ],
)
def test_bad_numbers_are_one_line_errors(arguments: tuple[str, str], words: list[str], tmp_path: Path) -> None:
    run = onebit("reproduce", *arguments, "--out", str(tmp_path / "new"))
    assert run.returncode != 0
    assert "Traceback" not in run.stderr
    for word in words:
        assert word in run.stderr
    assert not (tmp_path / "new" / "arena.sqlite").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "--quick", "true"), "--quick takes no value: give it or leave it out; got 'true'"),
        (("compare", "iris", "--unit-length", "no"), "--unit-length takes no value"),
        (("compare", "iris", "--no-grid", "true"), "--no-grid takes no value"),
        (("margin", "iris", "--json", "1"), "--json takes no value"),
        (("compare", "iris", "--jobs", "0"), "--jobs must be at least 1; got 0"),
        (("compare", "iris", "--jobs", "1000000"), "--jobs must be at most .* cores; got 1000000"),
        (("reproduce", "--quick", "--jobs", "1000000"), "--jobs must be at most .* cores; got 1000000"),
        (("compare", "iris", "--runs", "9223372036854775808"), "runs must be between 1 and 100000"),
        (("compare", "iris", "--seed", "9223372036854775806"), "seed + runs must be"),
        (("adversary", "--runs", "9223372036854775808"), "--runs must be between 2 and"),
        (("compare", "iris", "--learners", "Banditon:exploration"), "no module 'Banditon'; .*Did you mean Banditron?"),
        (("compare", "iris", "--learners", "bandit_svm"), "no learner 'bandit_svm'.*Did you mean BanditSVM?"),
        (("compare", "iris", "--learners", "Banditron:kernel=ratoinal"), "Did you mean rational?"),
        (("compare", "paper_weka"), "Did you mean paper_weak?"),
        (("margin", "."), ".: is a folder; name one file in it"),
    ],
)
def test_slips_are_named(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_here(monkeypatch, *arguments) == (2 if "takes no value" in words else 1)
    said = capfd.readouterr().err
    assert re.search(words.replace("?", r"\?").replace("+", r"\+"), said), said
    assert said.startswith("error: ")
    assert not list(tmp_path.iterdir())


def test_version_and_help(monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    assert run_here(monkeypatch, "--version") == 0
    assert capfd.readouterr().out == f"onebit {__version__}\n"
    monkeypatch.setenv("COLUMNS", "300")
    assert run_here(monkeypatch, "compare", "--help") == 0
    said = capfd.readouterr().out
    for name in (*known_names(), *(cls.__name__ for cls in all_learners()), "mypackage.mine:Mine", ".streams:mine"):
        assert name in said
    assert run_here(monkeypatch, "margin", "--help") == 0
    said = capfd.readouterr().out
    for name in (*known_names(), *kernel_names(), "mypackage.kernels:Mine"):
        assert name in said


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOSPC, "whatever"), 1, "error: No space left on device; make room and give the same command"),
        (
            PermissionError(errno.EACCES, "whatever", "a/b.csv"),
            1,
            "error: a/b.csv: Permission denied; ask for the right",
        ),
        (OSError("it is broken"), 1, "error: it is broken; mend it"),
        (MemoryError(), 1, "error: there is not enough memory; use fewer --rounds"),
        (MemoryError("Unable to allocate 5 TiB"), 1, "not enough memory (Unable to allocate 5 TiB)"),
        (ValueError("two\nlines\x1b[2J"), 1, "error: two\nlines\\x1b[2J\n"),
    ],
)
def test_what_a_user_can_mend_is_no_traceback(
    error: Exception, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setattr("onebit.commands.bound.bound_command", raising(error))
    assert run_here(monkeypatch, "bound") == code
    said = capfd.readouterr().err
    assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("y"), AssertionError("z"), ZeroDivisionError()])
def test_a_bug_is_shown_and_asks_to_be_reported(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.commands.bound.bound_command", raising(error))
    monkeypatch.setattr(sys, "argv", ["onebit", "bound"])
    with pytest.raises(type(error)) as caught:
        main()
    assert "please report it" in "".join(traceback.format_exception(caught.value))


@pytest.mark.ci
def test_a_disk_that_fills_up_while_figures_are_drawn(tmp_path: Path) -> None:
    """A limit on the size of files stands for the end of the disk: what is played fits, the pictures do not."""
    (tmp_path / "a.csv").write_text("x,class\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(9)))
    command = "ulimit -f 32; exec " + shlex.join(
        [sys.executable, "-m", "onebit", "compare", "a.csv", "--learners", "UniformGuess", "--runs", "1", "--jobs", "1"]
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert run.returncode == 1
    assert "File too large; make room and give the same command again" in run.stderr
    assert not list(tmp_path.rglob("*.part"))


def test_out_that_cannot_be_written(tmp_path: Path) -> None:
    in_the_way = tmp_path / "a file"
    in_the_way.write_text("keep me")
    for out in (in_the_way, in_the_way / "below"):
        run = onebit("reproduce", *SMALL, "--out", str(out))
        assert run.returncode == 1
        assert "cannot be written" in run.stderr
        assert "choose another folder" in run.stderr
    assert in_the_way.read_text() == "keep me"
    if os.geteuid() != 0:  # root may write anywhere
        locked = tmp_path / "locked"
        locked.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
        assert "cannot be written" in onebit("reproduce", *SMALL, "--out", str(locked)).stderr


def test_a_foreign_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "arena.sqlite").write_bytes(b"not a database at all" * 100)
    run = onebit("reproduce", *SMALL, "--out", str(tmp_path))
    assert run.returncode == 1
    assert "arena.sqlite" in run.stderr
    assert "Traceback" not in run.stderr
    assert (tmp_path / "arena.sqlite").read_bytes() == b"not a database at all" * 100


@pytest.mark.slow
@pytest.mark.filterwarnings("always::onebit.experiments.store.DamageWarning")
def test_what_a_truncated_store_still_holds_is_kept(finished: Path, tmp_path: Path) -> None:
    whole = (finished / "arena.sqlite").read_bytes()
    (tmp_path / "arena.sqlite").write_bytes(whole[: len(whole) // 2])
    run = onebit("reproduce", *SMALL, "--out", str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert "arena.sqlite.damaged-1" in run.stdout
    assert (tmp_path / "arena.sqlite.damaged-1").stat().st_size == len(whole) // 2
    for name in TABLES:
        assert (tmp_path / name).read_bytes() == (finished / name).read_bytes()
