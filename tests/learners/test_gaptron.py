"""Gaptron against a plain program, and the steps of its proof."""

import copy
import math
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform
from plain_programs import drawn, softmax

LN2 = math.log(2.0)


@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.3}, {"longest": 2.0}], ids=str)
def test_gaptron_against_a_plain_program(settings: dict[str, Any]) -> None:
    problem, g, seed = noisy_problem(500), 0.2, 6
    X, K = 4.0 * problem.X, problem.n_classes
    W, guesses, longest = np.zeros((K, X.shape[1])), [], 0.0
    for t, (x, label) in enumerate(zip(X, problem.y, strict=True)):
        soft = softmax(W @ x)
        greedy, top = int(np.argmax(W @ x)), soft.max()
        share = max(1.0 - top if top >= 0.5 else 1.0, g)
        guess = drawn([(share, np.full(K, 1.0 / K)), (1.0, np.eye(K)[greedy])], uniform(Draw(seed, t)))
        if guess == label:
            chance = share / K + (1.0 - share) * (guess == greedy)
            longest = max(longest, float(np.linalg.norm(x)))
            radius = settings.get("longest", longest)
            rate = settings.get("learning_rate", g * LN2**2 / (2 * K**2 * radius**2))
            W -= rate / (chance * LN2) * np.outer(soft - np.eye(K)[label], x)
        guesses.append(guess)
    learner = onebit.Gaptron(g, **settings)
    assert guesses_of(learner, X, problem.y, seed=seed).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, W, rtol=1e-9)


def test_gaptrons_step_is_unbiased() -> None:
    """Averaged over its own draws, a step goes along the gradient of the logistic loss."""
    x, truth, K = np.array([1.0, -2.0]), 2, 3
    begun = onebit.Gaptron(learning_rate=0.5, classes=K).learn_labels([[1.0, 0.5], [0.3, -1.0]], [0, 1])
    gradient = np.outer(softmax(begun.score_classes([x])[0]) - np.eye(K)[truth], x) / LN2
    step, propensities = np.zeros((K, 2)), begun.probabilities(x)
    for label in range(K):
        while (guess := (learner := copy.copy(begun)).guess(x)).label != label:
            begun.guess(x)
        learner.tell(guess, label == truth)
        step += propensities[label] * (learner.weights_ - begun.weights_)
    np.testing.assert_allclose(step, -0.5 * gradient, rtol=1e-9)


def chance_of_a_mistake(share: float, highest_is_right: bool, K: int) -> float:
    return (1.0 - share) * (not highest_is_right) + share * (K - 1) / K


@pytest.mark.parametrize("K", [2, 3, 10])
def test_the_gap_pays_for_the_variance(K: int) -> None:
    """The inequality that Gaptron's guarantee rests on, for many softmaxes and every right label."""
    rng = np.random.default_rng(K)
    for g in (0.01, 0.3, 1.0):
        rate = g * LN2**2 / (2 * K**2)
        for scores in rng.normal(size=(300, K)) * rng.choice([0.1, 1.0, 4.0, 20.0], size=(300, 1)):
            soft, greedy = softmax(scores), int(np.argmax(scores))
            gap = 1.0 - soft.max() if soft.max() >= 0.5 else 1.0
            share = max(gap, g)
            for label in range(K):
                loss = -math.log2(max(soft[label], 1e-300))
                square = ((soft - np.eye(K)[label]) ** 2).sum() / LN2**2
                chance = share / K + (1 - share) * (label == greedy)
                spare = loss - chance_of_a_mistake(gap, label == greedy, K)
                assert rate / 2 * square / chance <= spare + 1e-12
                without = chance_of_a_mistake(gap, label == greedy, K)
                assert chance_of_a_mistake(share, label == greedy, K) <= without + g
