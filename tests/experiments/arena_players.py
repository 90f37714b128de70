"""Play functions that spawned workers can import, and a script that plays with them (run, kill it, run it again)."""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from onebit.engine.compile_notice import NOTICE
from onebit.experiments import Cell, Played, Result, Spec, grid, run
from onebit.experiments.dask_cluster import DaskCluster

LOG_VARIABLE = "ARENA_TEST_LOG"
STUCK_VARIABLE = "ARENA_TEST_STUCK_FROM_SEED"
CRASH_VARIABLE = "ARENA_TEST_HAS_CRASHED"


def play(cell: Cell) -> Played:
    """What a cell gives depends on the cell alone; who is played is appended to a log."""
    log(cell)
    act(cell)
    generator = np.random.Generator(np.random.Philox(int(cell.key[:8], 16)))
    n_threads = max((library["num_threads"] for library in threadpool_info()), default=1)
    numbers: dict[str, int | float] = {"mistakes": int(generator.integers(1000)), "n_threads": n_threads}
    return Played(cell, Result(numbers, {"curve": generator.random(5)}), seconds=time.monotonic())


def act(cell: Cell) -> None:
    if cell.seed >= int(os.environ.get(STUCK_VARIABLE, "1000")):
        time.sleep(300)
    elif cell.player.name == "Broken":
        raise ZeroDivisionError("no rounds to divide by")
    elif cell.player.name == "Crash":
        os._exit(3)
    elif cell.player.name == "Crash once" and not (marker := Path(os.environ[CRASH_VARIABLE])).exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def play_with_a_thread(cell: Cell) -> Played:
    """Leave a thread behind that would keep the process alive."""
    threading.Thread(target=time.sleep, args=(300,)).start()
    return play(cell)


def play_and_compile(cell: Cell) -> Played:
    """Compile for long, as every worker may have to."""
    NOTICE.print_once(f"compiling in {'this process' if multiprocessing.parent_process() is None else 'a worker'}")
    return play(cell)


def play_for_nobody(cell: Cell) -> Played:
    """Return what cannot be sent to another process."""
    return Played(cell, Unsendable({"mistakes": 1}))


class Unsendable(Result):
    def __reduce__(self) -> Any:
        raise TypeError("it stays here")


def play_another(cell: Cell) -> Played:
    """Return the result of another cell."""
    return Played(Cell(cell.stream, cell.player, cell.seed + 1, cell.version), Result())


def play_nothing(cell: Cell) -> str:
    return f"{cell.label} is played"


def refuse(cell: Cell) -> Played:
    raise OSError(f"no such stream: {cell.stream.name}")


def log(cell: Cell) -> None:
    if LOG_VARIABLE in os.environ:
        # One short write in append mode: lines of several processes never mix.
        with Path(os.environ[LOG_VARIABLE]).open("a") as file:
            file.write(f"{cell.key}\n")


def cells_of_script() -> list[Cell]:
    learners = [Spec("Banditron", {"exploration": tenths / 10}) for tenths in range(5)]
    return grid([Spec("paper_weak", {"rounds": 10})], learners, [1, 2, 3, 4], "test")


def play_with_files(cell: Cell) -> Played:
    """Leave something where temporary files go."""
    (Path(tempfile.mkdtemp(prefix="left-by-a-player-")) / "rounds.txt").write_text("1 2 3")
    return play(cell)


def play_reading(path: Path, cell: Cell) -> Played:
    """What a cell gives depends on a file too."""
    log(cell)
    return Played(cell, Result({"bytes": path.stat().st_size, "path ends in csv": int(path.suffix == ".csv")}))


def main() -> None:
    """Play into the store given on the command line, here or on a cluster whose address is given."""
    chosen = globals()[sys.argv[2]] if len(sys.argv) > 2 else play
    place: AbstractContextManager[Any] = DaskCluster(sys.argv[3]) if len(sys.argv) > 3 else nullcontext(None)
    try:
        with place as executor:
            run(cells_of_script(), sys.argv[1], chosen, jobs=2, executor=executor)
    except KeyboardInterrupt:
        sys.exit(77)


if __name__ == "__main__":
    main()
