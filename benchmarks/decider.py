"""What a decider's log costs: ``python benchmarks/decider.py`` prints a table.

guess + tell, one at a time and from several threads, beside the learner alone and the same learner with a pickle of all
of it after every answer (what keeping it safe costs without a log); then opening with a snapshot, and a whole replay.
"""

import argparse
import pickle
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import onebit
from onebit.reporting.text import grouped

CLASSES, FEATURES = 26, 16


def problem(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose label is the nearest of 26 directions."""
    generator = np.random.default_rng(0)
    X, W = generator.normal(size=(rounds, FEATURES)), generator.normal(size=(CLASSES, FEATURES))
    return X, np.argmax(X @ W.T, axis=1)


def learner() -> onebit.Learner:
    """Return who plays: a linear learner, so that the log is what is measured."""
    return onebit.BanditSVM(None)


def timed(play: Callable[[np.ndarray, int], None], rounds: int) -> list[float]:
    """Return the seconds of every round after the first hundred."""
    X, y = problem(rounds + 100)
    seconds = []
    for x, label in zip(X, y, strict=True):
        begin = time.perf_counter()
        play(x, int(label))
        seconds.append(time.perf_counter() - begin)
    return seconds[100:]


def with_decider(desk: onebit.Decider) -> Callable[[np.ndarray, int], None]:
    """Return a round with a decider."""

    def play(x: np.ndarray, label: int) -> None:
        ticket = desk.guess(x)
        desk.tell(ticket.id, ticket.label == label)

    return play


def alone(keeps: bool) -> Callable[[np.ndarray, int], None]:
    """Return a round without one."""
    player = learner().set_params(classes=CLASSES)

    def play(x: np.ndarray, label: int) -> None:
        guess = player.guess(x)
        player.tell(guess, bool(guess.label == label))
        if keeps:
            pickle.dumps(player)

    return play


def from_threads(desk: onebit.Decider, rounds: int, n_threads: int) -> float:
    """Return the rounds per second of threads that share a decider, and its commits."""
    play = with_decider(desk)
    X, y = problem(rounds)

    def work(part: int) -> None:
        for t in range(part, rounds, n_threads):
            play(X[t], int(y[t]))

    threads = [threading.Thread(target=work, args=(part,)) for part in range(n_threads)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rounds / (time.perf_counter() - begin)


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=2_000)
    options.add_argument("--replayed", type=int, default=50_000, help="rounds of the log that is replayed")
    chosen, console = options.parse_args(), Console()
    table = Table("guess + tell", "median µs", "99 % µs", title=f"{grouped(chosen.rounds)} rounds, d = 16, K = 26")

    def add(name: str, seconds: list[float]) -> None:
        table.add_row(name, grouped(statistics.median(seconds) * 1e6), grouped(np.quantile(seconds, 0.99) * 1e6))

    with tempfile.TemporaryDirectory() as folder:
        add("the learner alone", timed(alone(keeps=False), chosen.rounds))
        add("the learner, pickled after every answer", timed(alone(keeps=True), chosen.rounds // 10))
        for durability in ("full", "batch"):
            with onebit.Decider.open(
                Path(folder, durability), classes=CLASSES, learner=learner(), durability=durability
            ) as desk:
                add(f'a decider, durability="{durability}"', timed(with_decider(desk), chosen.rounds))
        console.print(table)
        with onebit.Decider.open(Path(folder, "full")) as desk:
            for n_threads in (1, 8):
                speed = from_threads(desk, chosen.rounds, n_threads)
                console.print(f"{n_threads} threads that share it: {grouped(speed)} rounds a second, all durable")
        path = Path(folder, "long")
        with onebit.Decider.open(path, classes=CLASSES, learner=learner(), durability="batch") as desk:
            timed(with_decider(desk), chosen.replayed)
        begin = time.perf_counter()
        with onebit.Decider.open(path) as desk:
            console.print(f"opened with a snapshot in {time.perf_counter() - begin:.2f} s")
            begin = time.perf_counter()
            desk._history.replay(from_snapshot=False)
            speed = desk.status().events / (time.perf_counter() - begin)
            console.print(f"replayed from the beginning: {grouped(speed)} events a second")


if __name__ == "__main__":
    main()
