"""EpsilonGreedy and ExploreFirst against their regression."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.inputs import Floats
from ridge_programs import D, K, Ridge, check_same, drawn, play_in_numpy


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
