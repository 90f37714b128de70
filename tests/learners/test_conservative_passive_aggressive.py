"""The conservative passive-aggressive learner against a plain program."""

import math

import numpy as np
import pytest

import onebit
from onebit.checks.problems import guesses_of, noisy_problem, separable_problem


def test_conservative_passive_aggressive_against_a_plain_program() -> None:
    problem, C = noisy_problem(400), 0.7
    W, guesses = np.zeros((problem.n_classes, problem.X.shape[1])), []
    for x, label in zip(problem.X, problem.y, strict=True):
        guess = int(np.argmax(W @ x))
        sign = 1.0 if guess == label else -1.0
        W[guess] += sign * min(C, max(0.0, 1.0 - sign * W[guess] @ x) / (x @ x)) * x
        guesses.append(guess)
    learner = onebit.ConservativePassiveAggressive(C)
    assert guesses_of(learner, problem.X, problem.y).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, W, rtol=1e-9)


@pytest.mark.parametrize("C", [0.5, 1.0, math.inf])
def test_conservative_mistakes_at_scores_above_zero_are_few(C: float) -> None:
    for seed in range(3):
        problem = separable_problem(1000, 3, 4, 0.2, seed)
        learner = onebit.ConservativePassiveAggressive(C, classes=3)
        mistakes = 0
        for x, label in zip(problem.X, problem.y, strict=True):
            guess = learner.guess(x)
            mistakes += guess.label != label and guess.scores.max() >= 0.0
            learner.tell(guess, guess.label == label)
        assert 0 < mistakes <= 4.0 * max(1.0, 1.0 / C) / 0.2**2
