"""SOBA and PNewtron against plain programs."""

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
from onebit.learners.second_order import MARGINS, _multiplier

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


def plain_newtron(
    problem: Problem, rate: float, settings: tuple[float, float, float], seed: int, diagonal: bool
) -> tuple[list[int], Floats]:
    K, d, (alpha, beta, D) = problem.n_classes, problem.X.shape[1], settings
    A, b, guesses = np.eye(K * d) / D, np.zeros(K * d), []
    W: Floats = np.zeros((K, d))
    for t, (x, label) in enumerate(zip(problem.X, problem.y, strict=True)):
        p = scipy.special.softmax(alpha * W @ x)
        q, u = (1 - rate) * p + rate / K, uniform(Draw(seed, t))
        played = int(u / rate * K) if u < rate else int(np.searchsorted(np.cumsum(p), (u - rate) / (1 - rate), "right"))
        guesses.append(played)
        right = played == label
        e = np.eye(K)[played]
        part = (1 - p[played]) / q[played] * (1 / K - e) if right else p[played] / q[played] * (e - 1 / K)
        gradient, kappa = np.kron(part, x), q[played] if right else 1.0
        A += kappa * beta * (np.diag(gradient**2) if diagonal else np.outer(gradient, gradient))
        b += (1 - kappa * beta * gradient @ W.ravel()) * gradient
        W = in_ball(A, -b, D).reshape(K, d)
    return guesses, W


@BOTH
@pytest.mark.parametrize("settings", [(10.0, 0.01, 1.0), (3.0, 50.0, 1e4)], ids=["on the ball", "within"])
def test_newtron_against_a_plain_program(diagonal: bool, settings: tuple[float, float, float]) -> None:
    problem = Problem(3.0 * PROBLEM.X[:300], PROBLEM.y[:300], 4)
    guesses, weights = plain_newtron(problem, 0.2, settings, 5, diagonal)
    learner = onebit.PNewtron(0.2, *settings, diagonal=diagonal)
    assert guesses_of(learner, problem.X, problem.y, seed=5).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, weights, rtol=1e-6, atol=1e-8)
    is_on_the_ball = np.linalg.norm(learner.weights_) > 0.999 * settings[2]
    assert is_on_the_ball == (settings[2] == 1.0), "the problem does not test what it is for"


@pytest.mark.parametrize("truth", [0, 2])
def test_newtrons_gradient_is_right_on_average(truth: int) -> None:
    """Averaged over its own draws, what θ loses is the gradient of the logistic loss."""
    x, K, rate, alpha = np.array([1.0, -2.0]), 3, 0.3, 2.0
    taught = onebit.PNewtron(rate, alpha, 1e-20, 5.0, classes=K)
    taught.learn_labels([[1.0, 0.0], [0.0, 1.0]], [1, 2])
    propensities, before = taught.probabilities(x), taught._state.arrays.target.copy()
    p = scipy.special.softmax(alpha * taught.weights_ @ x)
    average = np.zeros(2 * K)
    bookmark = taught._state.bookmark()
    for played in range(K):
        taught._state.restore(type(bookmark)(*(array.copy() for array in bookmark)))
        taught.learn_from([x], [played], played == truth, propensities[played])
        average += propensities[played] * (taught._state.arrays.target - before)
    np.testing.assert_allclose(-average, np.kron(p - np.eye(K)[truth], x), atol=1e-12)


@pytest.mark.parametrize("start", [0.0, 1e-9, 1.0, 1e9])
def test_the_way_to_the_ball(start: float) -> None:
    generator = np.random.default_rng(3)
    values, target = np.exp(generator.normal(size=40) * 3.0), generator.normal(size=40)
    for radius in (1e-6, 0.1, 1.0, 1e6):
        shift = _multiplier(values, target, radius, start)
        length = np.linalg.norm(target / (values + shift))
        assert length <= radius * (1 + 1e-11)
        assert shift == 0.0 or length >= radius * (1 - 1e-11)
    assert _multiplier(values, 0.0 * target, 1.0, start) == 0.0
