"""What a cluster costs: two Dask workers on this machine beside two local processes, the same cells, as a ratio.

The two take turns, and each play is into an empty store. Starting the scheduler and the Dask workers is not counted,
since a cluster is there already; starting the local processes is.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import distributed
from rich.console import Console

from onebit.experiments import Executor, LocalProcesses
from onebit.experiments.comparison import Comparison, run_comparison
from onebit.experiments.dask_cluster import DaskCluster
from onebit.experiments.entries import DEFAULT_ENTRIES, enter
from onebit.streams.sources import find_sources

GOAL = 1.15


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Start a scheduler and two workers of one thread each; give the file that names the scheduler."""
    where = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    file = ["--scheduler-file", str(where)]
    options = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
    with (folder / "dask.log").open("wb") as log:
        started = [
            subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
            for words in (
                [*dask, "scheduler", "--port", "0", "--dashboard-address", ":0", *file],
                *([*dask, "worker", *file, *options, "--name", name] for name in ("one", "two")),
            )
        ]
        try:
            while not where.exists():
                time.sleep(0.1)
            yield str(where)
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def seconds(comparison: Comparison, place: AbstractContextManager[Executor]) -> float:
    """Return how long the whole comparison takes."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with place as executor:
            run_comparison(comparison, Path(folder), executor=executor)
        return time.perf_counter() - start


def wait_for_two(address: str) -> None:
    connect: Any = distributed.Client
    with connect(scheduler_file=address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["paper_strong", "paper_weak", "digits"], help="as for compare")
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    wanted = parser.parse_args()
    entries = tuple(enter(text) for text in DEFAULT_ENTRIES)
    comparison = Comparison(tuple(find_sources(wanted.data)), entries, rounds=wanted.rounds, runs=wanted.runs)
    console = Console(highlight=False, soft_wrap=True)
    n_cells = len(comparison.cells())
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as address:
        wait_for_two(address)
        # Compiles what is not on the disk yet.
        seconds(comparison, LocalProcesses(2))
        there, here = [], []
        for _ in range(wanted.repeats):
            here.append(seconds(comparison, LocalProcesses(2)))
            there.append(seconds(comparison, DaskCluster(address, show=lambda _: None)))
            console.print(f"2 local processes {here[-1]:.1f} s, 2 Dask workers {there[-1]:.1f} s")
    ratio = statistics.median(there) / statistics.median(here)
    console.print(
        f"{n_cells} cells, medians of {wanted.repeats}: {ratio:.2f}× on {os.cpu_count()} cores, a load of "
        f"{os.getloadavg()[0]:.1f}; goal ≤ {GOAL}×: {'met' if ratio <= GOAL else 'missed'}"
    )


if __name__ == "__main__":
    main()
