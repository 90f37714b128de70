"""Kill a process that saves, again and again, at random moments: ``python tests/kill_saving.py 100 FOLDER``.

After each death there must be a whole file, one of the two that are saved in turn. Prints how often that was so.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import onebit
from onebit import files


def main() -> None:
    n, path = int(sys.argv[1]), Path(sys.argv[2]) / "model.onebit"
    chance = random.Random(0)
    learners = []
    for rounds in (1, 2):
        learner = onebit.BanditPerceptron(classes=4)
        for _ in range(rounds):
            learner.guess(np.ones(20_000))
        learners.append(learner)
    start = time.perf_counter()
    learners[0].save(path)
    takes = time.perf_counter() - start
    seen = []
    for _ in range(n):
        child = os.fork()
        if child == 0:
            while True:
                for learner in learners:
                    learner.save(path)
        time.sleep(chance.uniform(0.0, 5 * takes))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        seen.append(onebit.load(path).n_rounds_)
    files._LEFT_SECONDS = -1.0  # else what is left stays for an hour
    learners[0].save(path)
    left = [each.name for each in path.parent.iterdir()]
    assert set(seen) <= {1, 2}, seen
    assert left == [path.name], f"left behind: {left}"
    print("whole files:", len(seen))


if __name__ == "__main__":
    main()
