"""Banditron against a plain program."""

import math
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform


def test_banditron_against_a_plain_program() -> None:
    problem, rate, seed = noisy_problem(600), 0.2, 5
    K = problem.n_classes
    W, guesses = np.zeros((K, problem.X.shape[1])), []
    for t, (x, label) in enumerate(zip(problem.X, problem.y, strict=True)):
        greedy = int(np.argmax(W @ x))
        u = uniform(Draw(seed, t))
        played = int(u / rate * K) if u < rate else greedy
        chance = rate / K + (1 - rate) * (played == greedy)
        W[greedy] -= x
        if played == label:
            W[played] += x / chance
        guesses.append(played)
    learner = onebit.Banditron(rate)
    assert guesses_of(learner, problem.X, problem.y, seed=seed).tolist() == guesses
    assert np.allclose(learner.weights_, W, rtol=1e-9)


def test_banditrons_step_is_unbiased() -> None:
    """Averaged over its own draws, the step is the Multiclass Perceptron's."""
    x, truth, K, rate = np.array([1.0, -2.0]), 2, 3, 0.3
    steps = []
    for seed in range(6000):
        learner = onebit.Banditron(rate, classes=K, seed=seed)
        guess = learner.guess(x)
        learner.tell(guess, guess.label == truth)
        steps.append(learner.weights_)
    expected = np.zeros((K, 2))
    expected[truth] += x
    expected[0] -= x
    spread = np.std(steps, axis=0) / math.sqrt(len(steps))
    assert np.all(np.abs(np.mean(steps, axis=0) - expected) <= 5 * spread + 1e-12)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.2, math.nan, "much"])
def test_exploration_outside_its_range(rate: Any) -> None:
    with pytest.raises(ValueError, match="exploration must be"):
        onebit.Banditron(rate, classes=2).guess([1.0])
