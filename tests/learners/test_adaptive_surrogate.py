"""The adaptive surrogate learner against a plain program."""

import math
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform
from plain_programs import drawn, softmax


@pytest.mark.parametrize("horizon", [None, 2000])
def test_adaptive_surrogate_against_a_plain_program(horizon: int | None) -> None:
    problem, B, seed = noisy_problem(500), 1.2, 9
    X, K = 2.0 * problem.X, problem.n_classes
    W, guesses, squares, edge = np.zeros((K, X.shape[1])), [], 0.0, 0
    for t, (x, label) in enumerate(zip(X, problem.y, strict=True)):
        soft, greedy = softmax(W @ x), int(np.argmax(W @ x))
        q, m = min(1.0, 2 * B * math.sqrt(K / (horizon or t + 1))), min(1.0, 2.0 * (1.0 - soft.max()))
        ways: list[tuple[float, Any]] = [(q, np.full(K, 1.0 / K)), (m, soft), (1.0, np.eye(K)[greedy])]
        guess = drawn(ways, uniform(Draw(seed, t)))
        if guess == label:
            chance = q / K + (1 - q) * (m * soft[guess] + (1 - m) * (guess == greedy))
            G = np.outer(soft - np.eye(K)[label], x) / chance
            squares += (G**2).sum()
            W -= 2 * B / math.sqrt(2 * squares) * G
            if (length := np.linalg.norm(W)) > B:
                W *= B / length
                edge += 1
        guesses.append(guess)
    learner = onebit.AdaptiveSurrogate(B, horizon)
    assert guesses_of(learner, X, problem.y, seed=seed).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, W, rtol=1e-9)
    assert 0 < edge < 300


def test_a_decoded_label_is_seldom_wrong() -> None:
    """The chance of a mistake is at most the natural logistic loss: what AdaptiveSurrogate's guarantee rests on."""
    rng = np.random.default_rng(1)
    for scores in rng.normal(size=(500, 5)) * rng.choice([0.1, 1.0, 4.0, 20.0], size=(500, 1)):
        soft = softmax(scores)
        m = min(1.0, 2.0 * (1.0 - soft.max()))
        right = m * soft + (1.0 - m) * (np.arange(5) == np.argmax(scores))
        assert np.all(1.0 - right <= -np.log(soft) + 1e-12)
