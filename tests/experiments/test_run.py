import importlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onebit.engine.compile_notice import CompileNotice
from onebit.experiments import (
    Cell,
    CellError,
    DamageWarning,
    LocalProcesses,
    Spec,
    Store,
    StoreError,
    WorkerWarning,
    grid,
    run,
    vowpal_wabbit,
)
from onebit.experiments.players import play_cell
from onebit.experiments.run import _check_environment, _end_with_parent, _needs_of

run_module = importlib.import_module("onebit.experiments.run")
FOLDER = Path(__file__).parent
STREAMS = [Spec("paper_weak", {"rounds": 10}), Spec("paper_strong")]
GOOD = [Spec("Banditron", {"exploration": 0.02}), Spec("BanditPerceptron")]
CELLS = grid(STREAMS, GOOD, [1, 2], "test")


@pytest.fixture
def players(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of play functions, under a name that spawned workers can import too."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("arena_players")


@pytest.fixture
def played(tmp_path: Path, players: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The keys of all cells whose play has begun since the last call."""
    log = tmp_path / "played.txt"
    monkeypatch.setenv(players.LOG_VARIABLE, str(log))

    def read_and_forget() -> list[str]:
        keys = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return keys

    return read_and_forget


def rows(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM results ORDER BY key").fetchall()


def keys(cells: list[Cell]) -> list[str]:
    return [cell.key for cell in cells]


def test_workers_and_this_process_give_the_same_rows(
    tmp_path: Path, players: Any, played: Callable[[], list[str]]
) -> None:
    here, there = tmp_path / "here.sqlite", tmp_path / "there.sqlite"
    calls: list[tuple[int, int]] = []
    environment = dict(os.environ)

    run(CELLS, here, players.play, jobs=1)
    assert sorted(played()) == sorted(keys(CELLS))
    run(
        iter([*CELLS, CELLS[0]]),
        there,
        players.play,
        jobs=2,
        on_progress=lambda done, total: calls.append((done, total)),
    )
    assert sorted(played()) == sorted(keys(CELLS))

    assert rows(here) == rows(there)
    assert len(rows(here)) == len(CELLS)
    assert calls[0] == (0, len(CELLS))
    assert calls[-1] == (len(CELLS), len(CELLS))
    assert calls == sorted(set(calls))
    with Store(there) as store:
        assert {store.get(cell).numbers["n_threads"] for cell in CELLS} == {1}
    assert dict(os.environ) == environment


def test_only_missing_cells_are_played(tmp_path: Path, players: Any, played: Callable[[], list[str]]) -> None:
    path = tmp_path / "arena.sqlite"
    calls: list[tuple[int, int]] = []
    some = [CELLS[0], CELLS[3], CELLS[6]]
    run(some, path, players.play, jobs=1)
    assert played() == keys(some)

    run(CELLS, path, players.play, jobs=1, on_progress=lambda done, total: calls.append((done, total)))
    assert played() == [cell.key for cell in CELLS if cell not in some]
    assert calls == [(done, len(CELLS)) for done in range(3, len(CELLS) + 1)]

    calls.clear()
    run(CELLS, path, players.play, jobs=2, on_progress=lambda done, total: calls.append((done, total)))
    assert played() == []
    assert calls == [(len(CELLS), len(CELLS))]

    changed = grid(STREAMS, [Spec("Banditron", {"exploration": 0.03})], [1], "test")
    run(changed, path, players.play, jobs=1)
    assert played() == keys(changed)


def test_nothing_to_play(tmp_path: Path, players: Any) -> None:
    calls: list[tuple[int, int]] = []
    run([], tmp_path / "arena.sqlite", players.play, on_progress=lambda done, total: calls.append((done, total)))
    assert calls == [(0, 0)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_cell_is_named(tmp_path: Path, players: Any, jobs: int) -> None:
    path = tmp_path / "arena.sqlite"
    environment = dict(os.environ)
    cells = grid(STREAMS, [*GOOD, Spec("Broken", {"rounds": 0}), Spec("Never")], [1], "test")
    with pytest.raises(CellError) as caught:
        run(cells, path, players.play, jobs=jobs)
    assert str(caught.value).endswith(
        " × Broken(rounds=0), seed 1 failed with ZeroDivisionError: no rounds to divide by"
    )
    assert dict(os.environ) == environment
    assert "in act" in "".join(traceback.format_exception(caught.value))
    stream = next(cell.stream for cell in cells if str(caught.value).startswith(cell.label))
    with Store(path) as store:
        finished = store.finished(keys(cells))
    assert finished >= {cell.key for cell in cells if cell.stream == stream and cell.player in GOOD}
    assert not finished & {cell.key for cell in cells if cell.player not in GOOD}


def test_a_run_goes_on_after_a_failure_if_somebody_is_told(tmp_path: Path, players: Any) -> None:
    path = tmp_path / "arena.sqlite"
    cells = grid(STREAMS, [GOOD[0], Spec("Broken"), *GOOD[1:]], [1, 2], "test")
    broken = [cell for cell in cells if cell.player.name == "Broken"]
    told: list[tuple[Cell, str]] = []
    steps: list[tuple[int, int]] = []
    for _ in range(2):
        told.clear()
        run(
            cells,
            path,
            players.play,
            jobs=1,
            on_progress=lambda *done: steps.append(done),
            on_failure=lambda *failure: told.append(failure),
        )
        assert told == [(cell, "ZeroDivisionError: no rounds to divide by") for cell in broken]
        assert steps[-1] == (len(cells), len(cells))
        with Store(path) as store:
            assert store.finished(keys(cells)) == set(keys(cells)) - set(keys(broken)), "failures are tried again"
    run([cell for cell in cells if cell not in broken], tmp_path / "alone.sqlite", players.play, jobs=1)
    assert rows(path) == rows(tmp_path / "alone.sqlite"), "the others played as if it had not been there"
    with pytest.raises(CellError, match="Broken"):
        run(cells, path, players.play, jobs=1)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::onebit.experiments.run.WorkerWarning")
def test_a_cell_that_ends_every_worker_is_named_and_given_up(tmp_path: Path, players: Any) -> None:
    path = tmp_path / "arena.sqlite"
    cells = grid(STREAMS[:1], [GOOD[0], Spec("Crash"), GOOD[1]], [1], "test")
    with pytest.raises(CellError, match=r"paper_weak\(rounds=10\) × Crash, seed 1 was given up: 3 workers died"):
        run(cells, path, players.play, jobs=2)
    with Store(path) as store:
        assert store.finished(keys(cells)) == {cells[0].key}


def test_what_a_killed_worker_was_playing_is_played_again(
    tmp_path: Path, players: Any, played: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(players.CRASH_VARIABLE, str(tmp_path / "has crashed"))
    cells = grid(STREAMS, [GOOD[0], Spec("Crash once"), GOOD[1]], [1], "test")
    with pytest.warns(WorkerWarning, match=r"a worker died .*; paper_.* is played again"):
        run(cells, tmp_path / "there.sqlite", players.play, jobs=2)
    assert set(played()) == set(keys(cells))
    run(cells, tmp_path / "here.sqlite", players.play, jobs=1)
    assert rows(tmp_path / "there.sqlite") == rows(tmp_path / "here.sqlite")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("play_another", r"Banditron\(.*\), seed 1: the play function answered with something else: Played\("),
        ("play_nothing", r"Banditron\(.*\), seed 1: the play function answered with something else: '"),
        ("refuse", r"Banditron\(.*\), seed 1 failed with OSError: no such stream: paper_weak"),
    ],
)
def test_play_functions_must_return_the_result_of_their_cell(
    tmp_path: Path, players: Any, name: str, message: str
) -> None:
    with pytest.raises(CellError, match=message):
        run(grid(STREAMS[:1], GOOD, [1], "test"), tmp_path / "arena.sqlite", getattr(players, name), jobs=1)


@pytest.mark.parametrize("jobs", [10**4, 2**63])
def test_a_machine_can_only_run_so_many_workers(tmp_path: Path, players: Any, jobs: int) -> None:
    with pytest.raises(ValueError, match=rf"jobs must be at most \d+ on this machine, .* got {jobs}"):
        run(CELLS, tmp_path / "arena.sqlite", players.play, jobs=jobs)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True, "2"])
def test_jobs_must_be_a_whole_number(tmp_path: Path, players: Any, jobs: Any) -> None:
    with pytest.raises(ValueError, match=f"jobs must be (a whole number )?at least 1; got {jobs!r}"):
        run(CELLS, tmp_path / "arena.sqlite", players.play, jobs=jobs)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_store_stops_the_run_before_anything_is_played(tmp_path: Path, played: Callable[[], list[str]]) -> None:
    (tmp_path / "arena.sqlite").write_text("mine")
    with pytest.raises(StoreError, match="not a"):
        run(CELLS, tmp_path / "arena.sqlite", importlib.import_module("arena_players").play)
    assert played() == []


def _hear_interrupts() -> None:
    """Undo what a shell does to its background jobs, which ignore Ctrl-C: the tests may run in one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def stuck_run(path: Path, players: Any, seed: int, play: str = "play") -> Iterator[subprocess.Popen[bytes]]:
    """Play with two workers, in a process group of their own, that never finish a cell from this seed on."""
    command = [sys.executable, str(FOLDER / "arena_players.py"), str(path), play]
    environment = os.environ | {players.STUCK_VARIABLE: str(seed)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment, start_new_session=True, preexec_fn=_hear_interrupts
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for_rows(path: Path, n_rows: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size == 0 or len(rows(path)) < n_rows:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.ci
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_kill_in_the_middle_and_resume(
    tmp_path: Path, players: Any, played: Callable[[], list[str]], number: signal.Signals
) -> None:
    broken, unbroken = tmp_path / "broken.sqlite", tmp_path / "unbroken.sqlite"
    cells = players.cells_of_script()
    with stuck_run(broken, players, seed=3) as process:
        wait_for_rows(broken, 3, process)
        process.send_signal(number)
        # Workers hold the other end of this pipe: it closes when the last of them is gone.
        process.communicate(timeout=20)

    kept = {row[0] for row in rows(broken)}
    assert 3 <= len(kept) < len(cells)
    played()
    run(cells, broken, players.play, jobs=2)
    assert sorted(played()) == sorted(set(keys(cells)) - kept)
    run(cells, unbroken, players.play, jobs=1)
    assert rows(broken) == rows(unbroken)


@pytest.mark.slow
def test_interrupt_stops_at_once_and_keeps_what_is_done(tmp_path: Path, players: Any) -> None:
    path = tmp_path / "arena.sqlite"
    quick = [cell.key for cell in players.cells_of_script() if cell.seed < 3]
    with stuck_run(path, players, seed=3) as process:
        wait_for_rows(path, len(quick), process)
        # A terminal's Ctrl-C goes to the workers as well.
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 77
    assert sorted(quick) == [row[0] for row in rows(path)]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go, here and in what is started here."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.mark.slow
def test_a_run_leaves_no_folder_behind(tmp_path: Path, players: Any, temporary: Path) -> None:
    cells = grid(STREAMS, GOOD, [1], "test")
    run(cells, tmp_path / "arena.sqlite", players.play_with_files, jobs=2)
    assert list(temporary.iterdir()) == []
    with pytest.raises(CellError):
        run(grid(STREAMS, [Spec("Broken")], [1], "test"), tmp_path / "arena.sqlite", players.play_with_files, jobs=2)
    assert list(temporary.iterdir()) == []


@pytest.mark.ci
def test_a_run_that_is_interrupted_leaves_no_folder_behind(tmp_path: Path, players: Any, temporary: Path) -> None:
    with stuck_run(tmp_path / "arena.sqlite", players, 3, "play_with_files") as process:
        wait_for_rows(tmp_path / "arena.sqlite", 10, process)
        assert list(temporary.glob("onebit-run-*/left-by-a-player-*"))
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 77
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_damaged_results_alone_are_played_again(
    tmp_path: Path, players: Any, played: Callable[[], list[str]], jobs: int
) -> None:
    path = tmp_path / "arena.sqlite"
    run(CELLS, path, players.play, jobs=1)
    played()
    before = rows(path)
    some = [CELLS[1], CELLS[6]]
    with closing(sqlite3.connect(path)) as connection, connection:
        for cell in some:
            connection.execute("UPDATE results SET numbers = replace(numbers, ':', ': ') WHERE key = ?", (cell.key,))
    calls: list[tuple[int, int]] = []
    said = r"arena\.sqlite: 2 of 8 stored results are damaged .* played again"
    with pytest.warns(DamageWarning, match=said):
        run(CELLS, path, players.play, jobs=jobs, on_progress=lambda done, total: calls.append((done, total)))
    assert sorted(played()) == sorted(keys(some))
    assert rows(path) == before
    assert calls == [(6, 8), (7, 8), (8, 8)]


def test_a_run_in_a_thread_of_its_own(tmp_path: Path, players: Any) -> None:
    thread = threading.Thread(target=run, args=(CELLS, tmp_path / "arena.sqlite", players.play, 1))
    thread.start()
    thread.join()
    assert len(rows(tmp_path / "arena.sqlite")) == len(CELLS)


@pytest.mark.parametrize(
    "make", [partial(ThreadPoolExecutor, 1), partial(ProcessPoolExecutor, 2, mp_context=get_context("spawn"))]
)
def test_any_executor_will_do(tmp_path: Path, players: Any, make: Any) -> None:
    here, there = tmp_path / "here.sqlite", tmp_path / "there.sqlite"
    calls: list[tuple[int, int]] = []
    run(CELLS, here, players.play, jobs=1)
    with make() as elsewhere:
        run(CELLS, there, players.play, executor=elsewhere, on_progress=lambda done, total: calls.append((done, total)))
        assert rows(here) == rows(there)
        assert calls == [(done, len(CELLS)) for done in range(len(CELLS) + 1)]
        broken = grid(STREAMS, [GOOD[0], Spec("Broken")], [1], "test")
        with pytest.raises(CellError, match="Broken, seed 1 failed with ZeroDivisionError"):
            run(broken, there, players.play, executor=elsewhere)
        assert elsewhere.submit(abs, -1).result() == 1, "it is not shut down"


def test_a_worker_with_other_code_is_an_error(
    tmp_path: Path, players: Any, played: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = run_module._needs_of
    monkeypatch.setattr(run_module, "_needs_of", lambda *given: usual(*given)._replace(described=("code 0",) * 6))
    with ThreadPoolExecutor(1) as elsewhere, pytest.raises(CellError, match=r"it has code .*, this run needs code 0"):
        run(CELLS, tmp_path / "there.sqlite", players.play, executor=elsewhere)
    assert played() == []


@pytest.mark.slow
def test_local_processes_can_be_used_again(tmp_path: Path, players: Any, temporary: Path) -> None:
    path = tmp_path / "arena.sqlite"
    with LocalProcesses(2) as executor:
        run(CELLS[:1], path, players.play_with_files, executor=executor)
        run(CELLS, path, players.play_with_files, executor=executor)
    assert len(rows(path)) == len(CELLS)
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_thread_that_a_player_leaves_behind_does_not_hold_everyone_up(tmp_path: Path, players: Any) -> None:
    start = time.monotonic()
    run(CELLS, tmp_path / "arena.sqlite", players.play_with_a_thread, jobs=2)
    assert time.monotonic() - start < 60
    assert len(rows(tmp_path / "arena.sqlite")) == len(CELLS)


@pytest.mark.ci
def test_workers_that_compile_say_so_once_through_the_process_that_has_the_bar(
    tmp_path: Path, players: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, said = CompileNotice(), list[str]()
    here.show = said.append
    monkeypatch.setattr(run_module, "NOTICE", here)
    run(CELLS, tmp_path / "arena.sqlite", players.play_and_compile, jobs=2)
    assert said == ["compiling in a worker"]
    assert len(rows(tmp_path / "arena.sqlite")) == len(CELLS)


@pytest.mark.ci
def test_what_cannot_be_sent_back_is_named(tmp_path: Path, players: Any) -> None:
    with pytest.raises(CellError, match=r"Banditron.*failed with TypeError: it stays here"):
        run(CELLS, tmp_path / "arena.sqlite", players.play_for_nobody, jobs=2)


# Worker processes.

PROGRAM = """
import sys
from onebit.experiments.run import run_program
run_program(["sh", "-c", 'exec > "$1"; echo begun; exec sleep 60', "sh", sys.argv[1]], "it", 60.0, "")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels cannot")
def test_a_program_ends_with_the_killed_worker_that_started_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "pipe")]
    with subprocess.Popen(command, start_new_session=True) as process, (tmp_path / "pipe").open() as output:
        assert output.readline() == "begun\n"
        process.kill()
        start = time.monotonic()
        try:
            # The program holds the other end.
            assert output.read() == ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert time.monotonic() - start < 10


def test_a_worker_ends_when_its_parent_does(monkeypatch: pytest.MonkeyPatch) -> None:
    died, ended = threading.Event(), threading.Event()

    class Parent:
        join = died.wait

    monkeypatch.setattr("multiprocessing.parent_process", Parent)
    monkeypatch.setattr(os, "_exit", lambda status: ended.set())
    thread = threading.Thread(target=_end_with_parent)
    thread.start()
    assert not ended.wait(0.1)
    died.set()
    assert ended.wait(10)
    thread.join()


def test_a_process_that_has_imported_what_has_changed_since_is_a_mismatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for text in ("RATE = 0.1", "RATE = 0.25"):
        (tmp_path / "mine_that_changes.py").write_text(f"{text}\n\n\ndef play(rate):\n    return rate\n")
        needs = _needs_of(importlib.import_module("mine_that_changes").play, [])
        if "25" in text:
            with pytest.raises(CellError, match="imported mine_that_changes before a change"):
                _check_environment(needs)
        else:
            _check_environment(needs)


def test_a_worker_needs_the_code_that_plays_and_that_users_name() -> None:
    strange = Cell(Spec("a", {"kernel": {"function": "fractions:Fraction"}}), Spec("json:loads"), 1, "test")
    needs = _needs_of(partial(play_cell), [strange])
    assert needs.modules == ("fractions", "json", "onebit.experiments.players")
    assert f"python {sys.version_info.major}.{sys.version_info.minor}" in needs.described
    assert f"numpy {np.__version__}" in needs.described
    _check_environment(needs)
    other = needs._replace(described=(*needs.described[:-1], "scikit-learn 0.9"))
    with pytest.raises(CellError, match=r"^it has scikit-learn .*, this run needs scikit-learn 0.9$"):
        _check_environment(other)


def test_a_worker_needs_the_version_of_a_rival_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "9.11")
    rival = vowpal_wabbit.VowpalWabbit(vowpal_wabbit._DEFAULT)
    needs = _needs_of(play_cell, [Cell(STREAMS[0], rival.spec, 1, "test")])
    assert needs.described[-1].endswith("VowpalWabbit 9.11")
    monkeypatch.setattr(vowpal_wabbit, "require", lambda: "9.12")
    with pytest.raises(CellError, match=r"VowpalWabbit 9\.12, this run needs"):
        _check_environment(needs)


def test_code_that_is_not_there_is_a_mismatch() -> None:
    needs = _needs_of(play_cell, [Cell(STREAMS[0], Spec("Banditron"), 1, "test")])
    with pytest.raises(CellError, match="ModuleNotFoundError: No module named 'nowhere'"):
        _check_environment(needs._replace(modules=("nowhere",)))


def test_a_worker_that_dies_while_it_is_idle_is_replaced() -> None:
    with LocalProcesses(1) as executor:
        first = executor.submit(os.getpid).result(60)
        os.kill(first, signal.SIGKILL)
        time.sleep(1.0)  # until the pool has noticed
        second = executor.submit(os.getpid).result(60)
        assert second != first
        assert executor.submit(os.getpid).result(60) == second


def test_what_follows_goes_to_the_worker_that_was_last_done() -> None:
    with LocalProcesses(2) as executor:
        both = [executor.submit(time.sleep, 0.2), executor.submit(time.sleep, 0.2)]
        wait(both)
        workers = [executor.submit(os.getpid).result(60) for _ in range(3)]
        assert len(set(workers)) == 1
