"""Threads that play streams with learners of their own do not wait for each other."""

import threading
import time

import numpy as np
import pytest

import onebit
from onebit.learners.run import play_stream


def test_a_compiled_stream_lets_other_threads_run(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = onebit.BanditPerceptron(classes=3)
    X, y = onebit.streams.paper_strong(2_000_000, seed=1)
    play_stream(learner, X[:10], y[:10])
    run, span = learner._state.run, [0.0, 0.0]

    def timed(*arguments: object) -> None:
        span[0] = time.perf_counter()
        run(*arguments)  # type: ignore[arg-type]
        span[1] = time.perf_counter()

    monkeypatch.setattr(learner._state, "run", timed)
    for _ in range(20):  # on a busy machine this thread may get no turn in so short a time
        worker = threading.Thread(target=play_stream, args=(learner, X, y), kwargs={"fresh": False})
        worker.start()
        ticks = []
        while worker.is_alive():
            ticks.append(time.perf_counter())
            time.sleep(0)
        first, last = span
        inside = np.array(ticks)[(np.array(ticks) > first) & (np.array(ticks) < last)]
        # Where the lock is held, nobody ticks between the beginning and the end of the call.
        if len(inside) and inside[-1] - inside[0] > 0.2 * (last - first):
            return
    raise AssertionError("no other thread ran while a stream was played")
