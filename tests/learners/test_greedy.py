import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.inputs import Floats
from ridge_programs import PROBLEM, D, K, Ridge, check_same, drawn, play_in_numpy


@pytest.mark.parametrize("scores", ["ridge", "logistic"])
def test_epsilon_greedy_and_explore_first_follow_their_regression(scores: str) -> None:
    for learner, rate_at in (
        (onebit.EpsilonGreedy(0.2, scores, learning_rate=0.7), lambda t: 0.2),
        (onebit.ExploreFirst(50, scores, learning_rate=0.7), lambda t: float(t < 50)),
    ):
        ridge, w, squares = Ridge(), np.zeros((K, D)), np.ones((K, D))

        def learn(
            label: int, x: Floats, correct: bool, ridge: Ridge = ridge, w: Any = w, squares: Any = squares
        ) -> None:
            if scores == "ridge":
                ridge.learn(label, x, float(correct))
                w[:] = ridge.weights
                return
            slope = (1.0 / (1.0 + math.exp(-w[label] @ x)) - correct) * x
            squares[label] += slope**2
            w[label] -= 0.7 * slope / np.sqrt(squares[label])

        def choose(x: Floats, t: int, w: Floats = w, rate_at: Callable[[int], float] = rate_at) -> int:
            propensities = np.full(K, rate_at(t) / K)
            propensities[np.argmax(w @ x)] += 1.0 - rate_at(t)
            return drawn(propensities, t)

        check_same(learner, play_in_numpy(choose, learn), w)


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
