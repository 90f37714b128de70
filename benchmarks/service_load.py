"""What durability costs a service: requests a second and their delay, with the log on the disk and with none.

    python benchmarks/service_load.py [--learner BanditSVM] [--seconds 5] [--clients 16] [--batch 200]

Two services run in processes of their own, one after the other in turns, with the same decider (d = 16, K = 26) and the
same load: `clients` threads of another process, each with one request at a time. One has SQLite's log, every event on
the disk before its answer; the other a log that keeps nothing. On a busy machine only the ratios say something.
"""

import argparse
import json
import multiprocessing
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onebit.live.client import Client
from onebit.live.decider import Decider
from onebit.live.events import Event
from onebit.live.log import Batch, Snapshot
from onebit.live.settings import new_settings

DIMENSION, CLASSES = 16, 26
NAME = "bench/load"


class NoLog:
    """A log that keeps nothing."""

    def __init__(self, about: dict[str, Any]) -> None:
        self._about, self._batch = about, Batch()
        self._batch.is_done = True
        self.last_seq = self.compacted = 0
        self.last_time = 0.0
        self.refusal = None

    def about(self) -> dict[str, Any]:
        """Return the settings."""
        return self._about

    def append(self, event: Event) -> None:
        """Forget an event."""
        self.last_seq, self.last_time = event.seq, event.time

    def pending(self) -> Batch:
        """Return what is done already."""
        return self._batch

    def wait(self, batch: Batch) -> None:
        """Return at once."""

    def forget_line(self) -> None:
        """Do nothing."""

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield nothing."""
        return iter(())

    def about_ticket(self, ticket: str) -> list[Event]:
        """Return nothing."""
        return []

    def of_kind(self, kind: str) -> list[Event]:
        """Return nothing."""
        return []

    def with_key(self, key: str) -> Event | None:
        """Return nothing."""
        return None

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Do nothing."""

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield nothing."""
        return iter(())

    def compact(self, keep: set[str]) -> int:
        """Do nothing."""
        return 0

    def erase(self, seqs: list[int]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def open_without_log(_path: Path, classes: Any = None, learner: Any = None, **told: Any) -> Decider:
    settings = new_settings(classes, learner, **told)
    log: Any = NoLog(settings.described() | {"began": time.time()})
    return Decider(log, settings, "full", (), time.time)


def serve(folder: str, port: int, is_kept: bool) -> None:
    import uvicorn

    from onebit.live.service.app import create_app

    sys.setswitchinterval(0.001)
    app = create_app(Path(folder), rate=0.0, opener=Decider.open if is_kept else open_without_log)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


def load(url: str, clients: int, batch: int, seconds: float, results: Any) -> None:
    """Play rounds, and put how many, and how long requests took, into a queue."""
    centres = np.random.default_rng(0).normal(size=(CLASSES, DIMENSION))
    taken: list[float] = []
    rounds = 0

    def work(seed: int) -> None:
        nonlocal rounds
        generator = np.random.default_rng(seed)
        with Client(url, timeout=60.0) as client:
            desk = client.decider(NAME)
            while time.perf_counter() < end:
                truths = generator.integers(CLASSES, size=batch)
                rows = (centres[truths] + 0.3 * generator.normal(size=(batch, DIMENSION))).tolist()
                began = time.perf_counter()
                tickets = [desk.guess(rows[0])] if batch == 1 else desk.guess_many(rows)
                between = time.perf_counter()
                answers = [(t, bool(t.label == y)) for t, y in zip(tickets, truths, strict=True)]
                _ = desk.tell(*answers[0]) if batch == 1 else desk.tell_many(answers)
                taken.extend([between - began, time.perf_counter() - between])
                rounds += batch

    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put((rounds / seconds, [float(each) for each in np.quantile(taken, [0.5, 0.99])]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learner", default="BanditSVM:kernel=none")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--turns", type=int, default=2)
    asked = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    found: dict[tuple[int, bool], list[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        services = []
        for is_kept in (True, False):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            process = context.Process(target=serve, args=(f"{folder}/{is_kept}", port, is_kept))
            process.start()
            services.append((is_kept, f"http://127.0.0.1:{port}", process))
        for _, url, _ in services:
            with Client(url, timeout=300.0, retries=100) as client:
                desk = client.create(NAME, CLASSES, asked.learner)
                desk.tell(desk.guess([0.0] * DIMENSION), correct=False)
        for turn in range(asked.turns):
            for batch, clients in ((1, asked.clients), (asked.batch, 2)):
                for is_kept, url, _ in services if turn % 2 == 0 else services[::-1]:
                    results = context.Queue()
                    player = context.Process(target=load, args=(url, clients, batch, asked.seconds, results))
                    player.start()
                    found.setdefault((batch, is_kept), []).append(results.get())
                    player.join()
        for _, _, process in services:
            process.terminate()
            process.join()
    for batch in (1, asked.batch):
        kept, none = (
            {
                "rounds_per_second": max(r for r, _ in found[batch, is_kept]),
                "p50_p99_ms": [round(1000 * min(q[i] for _, q in found[batch, is_kept]), 2) for i in (0, 1)],
            }
            for is_kept in (True, False)
        )
        ratio = kept["rounds_per_second"] / none["rounds_per_second"]
        print(json.dumps({"batch": batch, "on_disk": kept, "nothing_kept": none, "share_of_speed": round(ratio, 3)}))


if __name__ == "__main__":
    main()
