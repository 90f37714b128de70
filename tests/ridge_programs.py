"""Ridge regression in plain NumPy, which learners are compared with."""

import math
from collections.abc import Callable

import numpy as np

import onebit
from onebit.checks.problems import guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform
from onebit.inputs import Floats

K, D, SEED = 4, 5, 6


PROBLEM = noisy_problem(300, K, D)


class Ridge:
    """Ridge regression of every class, with a system of equations solved each time."""

    def __init__(self, is_diagonal: bool = False, start: float = 1.0) -> None:
        self.A, self.b = start * np.stack([np.eye(D)] * K), np.zeros((K, D))
        self.is_diagonal, self.weights = is_diagonal, np.zeros((K, D))

    def widths(self, x: Floats) -> Floats:
        return np.array([math.sqrt(x @ np.linalg.solve(A, x)) for A in self.A])

    def learn(self, label: int, x: Floats, target: float) -> None:
        if self.is_diagonal:
            image = np.linalg.solve(self.A[label], x)
            self.weights[label] += image * (target - self.weights[label] @ x) / (1.0 + x @ image)
            self.A[label] += np.diag(x * x)
        else:
            self.A[label] += np.outer(x, x)
            self.b[label] += target * x
            self.weights[label] = np.linalg.solve(self.A[label], self.b[label])


def play_in_numpy(
    choose: Callable[[Floats, int], int], learn: Callable[[int, Floats, bool], None], rounds: int = 300
) -> list[int]:
    guesses = []
    for t, (x, y) in enumerate(zip(PROBLEM.X[:rounds], PROBLEM.y[:rounds], strict=True)):
        guesses.append(int(choose(x, t)))
        learn(guesses[-1], x, bool(guesses[-1] == y))
    return guesses


def check_same(learner: onebit.Learner, guesses: list[int], weights: Floats) -> None:
    assert guesses_of(learner, PROBLEM.X, PROBLEM.y, seed=SEED).tolist() == guesses
    assert np.allclose(learner.learned()["weights"], weights, rtol=1e-9, atol=1e-12)


def drawn(propensities: Floats, t: int) -> int:
    return int(np.searchsorted(np.cumsum(propensities), uniform(Draw(SEED, t)), side="right"))
