"""Cells on a real cluster: a Dask scheduler and workers, each a process of its own that can be killed."""

import importlib
import io
import os
import pickle
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from in_process import onebit
from onebit.experiments import Cell, CellError, Spec, Store, WorkerWarning, dask_cluster, grid, run
from onebit.experiments.comparison import Comparison
from onebit.experiments.dask_cluster import DaskCluster, _Call, _Pickler
from onebit.experiments.entries import enter
from onebit.experiments.players import play_cell
from onebit.experiments.run import _needs_of
from onebit.streams.sources import find_sources

FOLDER = Path(__file__).parent
STREAMS = [Spec("paper_weak", {"rounds": 10}), Spec("paper_strong")]
GOOD = [Spec("Banditron", {"exploration": 0.02}), Spec("BanditPerceptron")]
CELLS = grid(STREAMS, GOOD, [1, 2], "test")
PATIENCE = 90.0  # seconds; machines that test are busy


@pytest.fixture
def players(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("arena_players")


def rows(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM results ORDER BY key").fetchall()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Cluster:
    """A scheduler and workers, each in a process and a process group of its own."""

    def __init__(self, folder: Path, address: str = "") -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = address or f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.said: list[str] = []

    def start(self, name: str, *words: str, first: str = "", environment: dict[str, str] | None = None) -> None:
        """Start a program of Dask's; it finds modules in the first folder before all others."""
        paths = [first, str(FOLDER), *sys.path]
        # Where this is, a worker finds nothing that it was not told of.
        away = self.folder / name
        away.mkdir(exist_ok=True)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                stdout=log,
                stderr=log,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | (environment or {}),
                cwd=away,
                start_new_session=True,
            )

    def start_scheduler(self) -> None:
        port = self.address.rpartition(":")[2]
        self.start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", port, "--dashboard-address", ":0")

    def start_worker(self, name: str, *, has_nanny: bool = False, **more: Any) -> None:
        nanny = "--nanny" if has_nanny else "--no-nanny"
        words = ("worker", self.address, "--nthreads", "1", "--name", name, nanny, "--no-dashboard")
        self.start(name, *words, "--local-directory", str(self.folder / name), **more)

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def run(self, cells: list[Cell], path: Path, play: Any, **more: Any) -> DaskCluster:
        with DaskCluster(self.address, self.said.append) as executor:
            run(cells, path, play, executor=executor, **more)
        return executor


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'onebit[dask]'")
    started = Cluster(tmp_path / "cluster")
    started.folder.mkdir()
    try:
        started.start_scheduler()
        yield started
    finally:
        for process in started.processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def log(tmp_path: Path, players: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The keys of all cells whose play has begun, on any worker that is started from now on."""
    path = tmp_path / "played.txt"
    monkeypatch.setenv(players.LOG_VARIABLE, str(path))
    return lambda: path.read_text().split() if path.exists() else []


@contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Do something in a thread, and have its errors here."""
    errors: list[BaseException] = []

    def act() -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()
    if errors:
        raise errors[0]


def assert_as_on_one_machine(path: Path, cells: list[Cell], play: Any) -> None:
    alone = path.with_name("alone.sqlite")
    run(cells, alone, play, jobs=1)
    assert rows(path) == rows(alone)


@pytest.mark.slow
def test_a_cluster_gives_the_rows_of_one_machine(
    tmp_path: Path, players: Any, cluster: Cluster, log: Callable[[], list[str]]
) -> None:
    cluster.start_worker("one")
    table = tmp_path / "table.csv"
    table.write_bytes(os.urandom(40_000))
    play = partial(players.play_reading, table)
    calls: list[tuple[int, int]] = []
    cells = grid(STREAMS[:1], GOOD, [1, 2], "test")
    cluster.run(cells, tmp_path / "there.sqlite", play, on_progress=lambda *done: calls.append(done))

    assert sorted(log()) == sorted(cell.key for cell in cells), "each once"
    assert calls == [(done, len(cells)) for done in range(len(cells) + 1)]
    assert_as_on_one_machine(tmp_path / "there.sqlite", cells, play)
    assert f"Dask scheduler {cluster.address}: " in cluster.said[0]
    assert "dashboard is at http://127.0.0.1:" in cluster.said[0]


@pytest.mark.slow
def test_data_travels_once_to_each_worker_and_other_files_not_at_all(
    tmp_path: Path, players: Any, cluster: Cluster
) -> None:
    for name in ("one", "two"):
        cluster.start_worker(name)
    table = tmp_path / "table.csv"
    table.write_text("x,y,label\n" + "".join(f"{k % 7}.5,{k % 5},{'abc'[k % 3]}\n" for k in range(100_000)))
    with counted(cluster) as (address, n_bytes):
        learners = ("--learners", "BanditPerceptron", "--learners", "Banditron:exploration=0.1")
        size = ("--rounds", "300", "--runs", "6")
        there = onebit("compare", str(table), *learners, *size, "--dask", address, "--out", str(tmp_path / "there"))
        assert there.returncode == 0, there.stderr
    here = onebit("compare", str(table), *learners, *size, "--jobs", "1", "--out", str(tmp_path / "here"))
    assert here.returncode == 0, here.stderr
    for name in ("comparison.csv", "curves.csv", "runs.csv", "tally.csv"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name
    assert rows(tmp_path / "there/arena.sqlite") == rows(tmp_path / "here/arena.sqlite")
    size_of_table = table.stat().st_size
    # Six batches; all else takes some tens of kilobytes. From worker to worker it goes without us.
    assert size_of_table < n_bytes() < 1.5 * size_of_table, "once"


@contextmanager
def counted(cluster: Cluster) -> Iterator[tuple[str, Callable[[], int]]]:
    """Give another address of the scheduler, and count what is sent there."""
    host, port = cluster.address.removeprefix("tcp://").split(":")
    total = [0]
    opened: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while part := source.recv(2**16):
                total[0] += len(part) * counts
                target.sendall(part)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection((host, int(port)))
                opened.extend((near, far))
                for arguments in ((near, far, True), (far, near, False)):
                    threading.Thread(target=pump, args=arguments, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{listener.getsockname()[1]}", lambda: total[0]
        finally:
            for end in opened:
                end.close()


@pytest.mark.slow
def test_the_cells_of_a_worker_that_is_killed_go_to_another(
    tmp_path: Path, players: Any, cluster: Cluster, log: Callable[[], list[str]]
) -> None:
    cluster.start_worker("stuck", environment={players.STUCK_VARIABLE: "0"})

    def disturb() -> None:
        wait_until(lambda: len(log()) == 1)
        cluster.kill("stuck")
        cluster.start_worker("sound")

    warned = pytest.warns(WorkerWarning, match=r"worker stuck \(tcp://.* is gone\); .* is played again")
    with meanwhile(disturb), warned:
        cluster.run(CELLS, tmp_path / "there.sqlite", players.play)
    assert_as_on_one_machine(tmp_path / "there.sqlite", CELLS, players.play)
    begun = log()[: len(CELLS) + 1]
    assert sorted(set(begun)) == sorted(cell.key for cell in CELLS)
    assert begun.count(begun[0]) == 2, "lost once, then played"


@pytest.mark.slow
def test_a_run_whose_scheduler_is_killed_is_resumed(
    tmp_path: Path, players: Any, cluster: Cluster, log: Callable[[], list[str]]
) -> None:
    cluster.start_worker("first", environment={players.STUCK_VARIABLE: "2"})
    path = tmp_path / "there.sqlite"
    cells = grid(STREAMS, GOOD, [1], "test") + grid(STREAMS, GOOD, [2], "test")

    def disturb() -> None:
        wait_until(lambda: len(log()) == 5)  # both batches of seed 1, and stuck in one of seed 2
        cluster.kill("scheduler")

    unreachable = pytest.raises(match=r"no Dask scheduler answers at .* What was finished is kept")
    with meanwhile(disturb), unreachable:
        cluster.run(cells, path, players.play)
    assert len(rows(path)) == 4
    cluster.kill("first")
    cluster.start_scheduler()
    cluster.start_worker("second")
    cluster.run(cells, path, players.play)
    assert_as_on_one_machine(path, cells, players.play)
    begun = log()[:9]
    assert begun.count(begun[4]) == 2, "lost once, then played"
    assert len(set(begun)) == len(cells)


@contextmanager
def client(path: Path, cluster: Cluster) -> Iterator[subprocess.Popen[bytes]]:
    """Play the cells of the script on the cluster, in a process of its own."""
    # Imported: workers could not import what is in a script.
    program = "import arena_players; arena_players.main()"
    command = [sys.executable, "-c", program, str(path), "play_with_files", cluster.address]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(FOLDER), *filter(None, sys.path)])}
    with subprocess.Popen(command, start_new_session=True, env=environment) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_client_that_is_stopped_is_resumed(
    tmp_path: Path, players: Any, cluster: Cluster, log: Callable[[], list[str]], number: signal.Signals
) -> None:
    for name in ("stuck", "stuck too"):
        cluster.start_worker(name, environment={players.STUCK_VARIABLE: "3"})
    path, cells = tmp_path / "there.sqlite", players.cells_of_script()
    with client(path, cluster) as process:
        wait_until(lambda: len(log()) == 12)  # two batches of five, and the first cells of the two others
        wait_until(lambda: len(rows(path)) == 10)
        process.send_signal(number)
        status = process.wait(PATIENCE)
    assert status == {signal.SIGKILL: -9, signal.SIGINT: 77, signal.SIGTERM: -15}[number]
    assert cluster.processes["stuck"].poll() is None, "the worker itself is somebody else's"

    kept = {row[0] for row in rows(path)}
    cluster.kill("stuck")
    cluster.kill("stuck too")
    cluster.start_worker("sound")
    cluster.run(cells, path, players.play_with_files)
    assert sorted(log()[12:]) == sorted({cell.key for cell in cells} - kept)
    assert_as_on_one_machine(path, cells, players.play)


OTHER_NUMPY = """
import importlib.metadata
usual = importlib.metadata.version
importlib.metadata.version = lambda name: "0.9" if name == "numpy" else usual(name)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Mismatched versions found")  # Dask sees it too
def test_a_worker_that_differs_is_refused_and_its_cells_go_to_others(
    tmp_path: Path, players: Any, cluster: Cluster, log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    differing = {"code": "arena_players.py", "numpy": "sitecustomize.py", "nothing": "onebit.py"}
    source = (FOLDER / "arena_players.py").read_text().replace("generator.integers(1000)", "generator.integers(2000)")
    texts = {"code": source, "numpy": OTHER_NUMPY, "nothing": "raise ImportError('not here')\n"}
    for name, file in differing.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(texts[name])
        cluster.start_worker(name, first=str(tmp_path / name))

    def help_out() -> None:
        wait_until(lambda: sum("is refused" in line for line in cluster.said) == 3)
        assert log() == []
        cluster.start_worker("same")

    monkeypatch.setattr(dask_cluster, "_HOPING", PATIENCE)
    with meanwhile(help_out):
        cluster.run(CELLS, tmp_path / "there.sqlite", players.play)
    assert sorted(log()) == sorted(cell.key for cell in CELLS)
    assert_as_on_one_machine(tmp_path / "there.sqlite", CELLS, players.play)
    said = {name: next(line for line in cluster.said if f"Worker {name} (tcp://" in line) for name in differing}
    assert "it has code " in said["code"]
    assert "it has numpy 0.9, this run needs numpy " in said["numpy"]
    assert "ImportError: not here" in said["nothing"]
    assert all(line.endswith("Install there what is installed here, and start it again.") for line in said.values())

    cluster.kill("same")
    monkeypatch.setattr(dask_cluster, "_HOPING", 1.0)
    with pytest.raises(match=r"no worker of tcp.* may play\. Worker \w+ \(tcp"):
        cluster.run(CELLS, tmp_path / "other.sqlite", players.play)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::onebit.experiments.run.WorkerWarning")
def test_cells_that_fail_or_kill_are_named(tmp_path: Path, players: Any, cluster: Cluster) -> None:
    cluster.start_worker("one", has_nanny=True)
    path = tmp_path / "there.sqlite"
    with pytest.raises(CellError, match="Broken, seed 1 failed with ZeroDivisionError: no rounds") as caught:
        cluster.run(grid(STREAMS[:1], [GOOD[0], Spec("Broken")], [1], "test"), path, players.play)
    assert "in act" in "".join(traceback.format_exception(caught.value))
    cells = grid(STREAMS[:1], [GOOD[1], Spec("Crash")], [1], "test")
    with pytest.raises(CellError, match=r"Crash, seed 1 was given up: 3 workers died"):
        cluster.run(cells, path, players.play)
    with Store(path) as store:
        wanted = grid(STREAMS[:1], GOOD, [1], "test")
        assert store.finished(cell.key for cell in wanted) == {cell.key for cell in wanted}
    with pytest.raises(CellError, match=r"Banditron.*failed with TypeError: it stays here"):
        cluster.run(CELLS[:1], tmp_path / "other.sqlite", players.play_for_nobody)


def test_nobody_at_the_address(tmp_path: Path, players: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'onebit[dask]'")
    monkeypatch.setattr(dask_cluster, "_CONNECTING", 0.2)
    with pytest.raises(match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 .* `dask scheduler`"):
        Cluster(tmp_path, "tcp://127.0.0.1:1").run(CELLS, tmp_path / "there.sqlite", players.play)


@pytest.mark.parametrize("given", ["bogus://x", "tcp://127.0.0.1:port", "cluster.json", "broken.json", "localhost"])
def test_what_is_no_address_is_said(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'onebit[dask]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dask_cluster, "_CONNECTING", 0.2)
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(match=f"^no Dask scheduler answers at {given} .*such as tcp://10.0.0.1:8786, or"):
        DaskCluster(given).__enter__()


def packed(*call: Any) -> tuple[bytes, list[Path]]:
    """A call as it is sent, and the files that go with it."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(_Call(*call))
    return buffer.getvalue(), [path for _, path in pickler.files]


def test_what_a_cell_needs_travels_with_it(tmp_path: Path, players: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'onebit[dask]'")
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(local_directory=str(tmp_path / "there")))
    (tmp_path / "there").mkdir()
    table = tmp_path / "table.csv"
    table.write_text("1,2\n")
    call, files = packed(partial(players.play_reading, table), CELLS[0])
    assert files == [table]
    table.unlink()
    for _ in range(2):
        assert pickle.loads(call, buffers=[b"1,2\n"]).result.numbers == {"bytes": 4, "path ends in csv": 1}
    assert len(list((tmp_path / "there").glob("*/table.csv"))) == 1


def test_only_the_data_set_of_a_cell_travels_with_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"x,label\n{ord(name)},yes\n2,no\n")
    comparison = Comparison(tuple(find_sources([str(tmp_path)])), (enter("Banditron"),), runs=2)
    todo, play = comparison.cells(), partial(play_cell, False, 60.0)
    travelling = [[path.name for path in packed(play, cell)[1]] for cell in todo]
    assert travelling == [["a.csv"], ["a.csv"], ["b.csv"], ["b.csv"]]
    assert _needs_of(play, todo).modules == ("onebit.experiments.players",)


def test_without_dask_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"need distributed, which is not installed: pip install 'onebit\[dask\]'"):
        DaskCluster("tcp://127.0.0.1:1")


def test_one_place_to_play(tmp_path: Path) -> None:
    said = onebit("compare", "iris", "--jobs", "2", "--dask", "tcp://10.0.0.1:8786", cwd=tmp_path)
    assert (said.returncode, list(tmp_path.iterdir())) == (1, [])
    assert "--jobs 2 is for this machine, and --dask tcp://10.0.0.1:8786 for others" in said.stderr
