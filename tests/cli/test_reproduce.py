"""``onebit reproduce`` as a user meets it."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from in_process import onebit

SMALL = ("--rounds", "3000", "--runs", "3", "--seed", "5")
TABLES = ("summary.csv", "mistakes.csv")


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
def test_a_truncated_store_is_left_alone(finished: Path, tmp_path: Path) -> None:
    half = (finished / "arena.sqlite").read_bytes()
    half = half[: len(half) // 2]
    (tmp_path / "arena.sqlite").write_bytes(half)
    run = onebit("reproduce", *SMALL, "--out", str(tmp_path))
    assert run.returncode == 1
    assert "damaged" in run.stderr
    assert "Move it away or choose another --out." in run.stderr
    assert (tmp_path / "arena.sqlite").read_bytes() == half
