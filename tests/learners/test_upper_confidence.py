import math

import numpy as np
import pytest

import onebit
from onebit.inputs import Floats
from ridge_programs import D, K, Ridge, check_same, play_in_numpy


@pytest.mark.parametrize("diagonal", [False, True])
def test_lin_ucb_is_what_the_textbook_says(diagonal: bool) -> None:
    ridge = Ridge(diagonal, 0.5)
    guesses = play_in_numpy(
        lambda x, _: int(np.argmax(ridge.weights @ x + 0.7 * ridge.widths(x))),
        lambda label, x, correct: ridge.learn(label, x, float(correct)),
    )
    check_same(onebit.LinUCB(0.7, diagonal, 0.5), guesses, ridge.weights)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 0.2, -0.3])
def test_confidit_projects_and_solves(diagonal: bool, alpha: float) -> None:
    A, w = (1 + alpha) ** 2 * np.stack([np.eye(D)] * K), np.zeros((K, D))

    def projected(label: int, x: Floats) -> Floats:
        """The nearest to w, in the metric of A, with ⟨w, x⟩ in [−α, 1], from the conditions of Lagrange."""
        wanted = min(max(float(w[label] @ x), -alpha), 1.0)
        system = np.block([[A[label], x[:, None]], [x[None], np.zeros((1, 1))]])
        solution: Floats = np.linalg.solve(system, np.append(A[label] @ w[label], wanted))[:D]
        return solution

    def hope(label: int, x: Floats) -> float:
        return float(projected(label, x) @ x) + math.sqrt(0.05 * x @ np.linalg.solve(A[label], x))

    def learn(label: int, x: Floats, correct: bool) -> None:
        new = A[label] + (np.diag(x * x) if diagonal else np.outer(x, x))
        w[label] = np.linalg.solve(new, A[label] @ projected(label, x) + (1.0 if correct else -alpha) * x)
        A[label] = new

    guesses = play_in_numpy(lambda x, _: int(np.argmax([hope(i, x) for i in range(K)])), learn)
    check_same(onebit.Confidit(alpha, 0.05, diagonal), guesses, w)
