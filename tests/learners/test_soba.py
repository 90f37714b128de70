"""SOBA against a plain program."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import onebit
from onebit.checks.problems import Problem, guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform
from onebit.inputs import Floats
from onebit.learners.second_order import MARGINS

PROBLEM = noisy_problem(500)


# Each form of each learner is compiled on its own, which takes seconds: the diagonal, the simpler one, waits.
BOTH = pytest.mark.parametrize("diagonal", [False, pytest.param(True, marks=pytest.mark.slow)])


def plain_soba(problem: Problem, rate: float, a: float, seed: int, diagonal: bool) -> tuple[list[int], Floats]:
    K, d = problem.n_classes, problem.X.shape[1]
    A: Floats = a * np.eye(K * d)
    theta, guesses, margins = np.zeros(K * d), [], 0.0
    W: Floats = np.zeros((K, d))
    for t, (x, label) in enumerate(zip(problem.X, problem.y, strict=True)):
        scores = W @ x
        greedy, u = int(np.argmax(scores)), uniform(Draw(seed, t))
        played = int(u / rate * K) if u < rate else greedy
        guesses.append(played)
        if played != label:
            continue
        p = rate / K + (1 - rate) * (played == greedy)
        other = int(np.argmax(np.where(np.arange(K) == label, -np.inf, scores)))
        g = np.kron(np.eye(K)[other] - np.eye(K)[label], x) / p
        z, w = math.sqrt(p) * g, W.ravel()
        far: Floats = np.linalg.inv(A) @ z
        m = float(((w @ z) ** 2 + 2 * w @ g) / (1 + z @ far))
        if margins + m >= 0:
            margins += m
            A += np.diag(z**2) if diagonal else np.outer(z, z)
            theta -= g
            W = in_ball(A, theta, math.inf).reshape(K, d)
    return guesses, W


def in_ball(A: Floats, theta: Floats, radius: float) -> Floats:
    """Return the smallest of ½wᵀAw − θᵀw in the ball, by bisection."""

    def solved(shift: float) -> Floats:
        w: Floats = np.linalg.inv(A + shift * np.eye(len(A))) @ theta
        return w

    def excess(shift: float) -> float:
        return float(np.linalg.norm(solved(shift))) - radius

    if excess(0.0) <= 0.0:
        return solved(0.0)
    return solved(scipy.optimize.brentq(excess, 0.0, np.linalg.norm(theta) / radius, xtol=1e-15, rtol=1e-14))


@BOTH
def test_soba_against_a_plain_program(diagonal: bool) -> None:
    guesses, weights = plain_soba(PROBLEM, 0.3, 0.5, 5, diagonal)
    learner = onebit.SOBA(0.3, 0.5, diagonal=diagonal)
    assert guesses_of(learner, PROBLEM.X, PROBLEM.y, seed=5).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, weights, rtol=1e-9, atol=1e-12)
    assert learner.n_updates_ > 20


def test_sobas_sum_is_that_of_the_steps_taken() -> None:
    """Σm + θᵀA⁻¹θ = Σ(1/p)·r/(1 + r) over the steps: what the proof of its guarantee begins with."""
    generator, total = np.random.default_rng(2), 0.0
    learner: Any = onebit.SOBA(regularization=0.5, classes=4)
    learner.begin(PROBLEM.X.shape[1])
    for x, label in zip(PROBLEM.X[:200], PROBLEM.y[:200], strict=True):
        scores, p, A = learner.score_classes([x])[0], generator.uniform(0.2, 1.0), learner._state.arrays.matrix.copy()
        other = int(np.argmax(np.where(np.arange(4) == label, -np.inf, scores)))
        z = np.kron(np.eye(4)[other] - np.eye(4)[label], x) / math.sqrt(p)
        before = learner.n_updates_
        learner.learn_from([x], [label], True, p)
        if learner.n_updates_ > before:
            r = float(z @ np.linalg.solve(A, z))
            total += r / (1.0 + r) / p
        else:
            assert scores[other] < scores[label], "a step was left out although the other label was not behind"
    now = learner._state.arrays
    assert now.tallies[MARGINS] + now.target @ now.weights == pytest.approx(total, rel=1e-9)
    assert 20 < learner.n_updates_ < 200
