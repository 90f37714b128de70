"""Two threads that play two learners, beside one thread that plays both: ``python benchmarks/threads.py``.

The stream's compiled loop gives the interpreter up while it runs, so two threads should take about half the time. Each
number is the median of ratios measured side by side, because other programs may be running.
"""

import argparse
import statistics
import threading
import time
from collections.abc import Callable

import onebit
from onebit.learners.run import play_stream


def seconds(actions: list[Callable[[], object]], *, together: bool) -> float:
    start = time.perf_counter()
    if together:
        workers = [threading.Thread(target=action) for action in actions]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    else:
        for action in actions:
            action()
    return time.perf_counter() - start


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3_000_000)
    options.add_argument("--repeats", type=int, default=15)
    chosen = options.parse_args()
    X, y = onebit.streams.paper_strong(chosen.rounds, seed=1)
    for make, rounds in (
        (onebit.BanditPerceptron, chosen.rounds),
        (onebit.Banditron, chosen.rounds),
        (onebit.NearestNeighbor, chosen.rounds // 10),
        (onebit.BanditSVM, chosen.rounds // 100),
    ):
        players = [make(), make()]

        def play(player: onebit.Learner, rounds: int = rounds) -> None:
            play_stream(player, X[:rounds], y[:rounds])

        actions: list[Callable[[], object]] = [lambda player=player: play(player) for player in players]  # type: ignore[misc]
        seconds(actions, together=False)  # compiles
        pairs = [(seconds(actions, together=True), seconds(actions, together=False)) for _ in range(chosen.repeats)]
        ratio = statistics.median(two / one for two, one in pairs)
        print(f"{make.__name__:17} two threads take {ratio:.2f} of the time that one takes for both")


if __name__ == "__main__":
    main()
