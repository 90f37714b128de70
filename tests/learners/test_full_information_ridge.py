"""Ridge regression told the label."""

import numpy as np
import pytest

import onebit
from ridge_programs import PROBLEM, D, K, Ridge, check_same


@pytest.mark.parametrize("diagonal", [False, True])
def test_full_information_ridge_solves_every_class(diagonal: bool) -> None:
    ridge, guesses = Ridge(diagonal, 0.5), []
    for x, y in zip(PROBLEM.X, PROBLEM.y, strict=True):
        guesses.append(int(np.argmax(ridge.weights @ x)))
        for label in range(K):
            ridge.learn(label, x, float(label == y))
    check_same(onebit.FullInformationRidge(diagonal, 0.5), guesses, ridge.weights)


def test_full_information_ridge_keeps_its_promise() -> None:
    """The identity behind it: squared errors, each over 1 + xᵀA⁻¹x, add up to the least penalised error."""
    learner, A, total, penalty = onebit.FullInformationRidge(False, 0.5, classes=K), 0.5 * np.eye(D), 0.0, 0.5
    for x, y in zip(PROBLEM.X, PROBLEM.y, strict=True):
        guess = learner.guess(x)
        error = ((guess.scores - np.eye(K)[y]) ** 2).sum()
        assert error >= 0.5 or guess.label == y
        total += error / (1.0 + x @ np.linalg.solve(A, x))
        A += np.outer(x, x)
        learner.tell(guess, guess.label == y, label=y)
    best = learner.weights_
    least = penalty * (best**2).sum() + ((PROBLEM.X @ best.T - np.eye(K)[PROBLEM.y]) ** 2).sum()
    assert total == pytest.approx(least, rel=1e-9)
    longest = (PROBLEM.X**2).sum(axis=1).max()
    assert learner.n_mistakes_ <= 2 * (1 + longest / penalty) * least
    assert learner.learned()["heard"] == len(PROBLEM.y)
    before = learner.weights_
    assert np.array_equal(learner.learn_from(PROBLEM.X[:1], [0], False).weights_, before)
