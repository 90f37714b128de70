"""The learners on regressions, against the same in plain NumPy."""

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


def test_square_cb_guesses_by_the_gaps() -> None:
    costs = Ridge()

    def choose(x: Floats, t: int) -> int:
        f = costs.weights @ x
        best, f = int(np.argmin(f)), np.clip(f, 0.0, 1.0)
        propensities = 1.0 / (K + 30.0 * math.sqrt(t + 1) * (f - f[best]))
        propensities[best] = 0.0
        propensities[best] = 1.0 - propensities.sum()
        return drawn(propensities, t)

    guesses = play_in_numpy(choose, lambda label, x, correct: costs.learn(label, x, float(not correct)))
    check_same(onebit.SquareCB(30.0), guesses, -costs.weights)


@pytest.mark.parametrize("variant", ["optimistic", "elimination"])
def test_reg_cb_guesses_by_its_bounds(variant: str) -> None:
    costs = Ridge()

    def choose(x: Floats, t: int) -> int:
        f, widths = costs.weights @ x, math.sqrt(0.02 * math.log(K * (t + 1))) * costs.widths(x)
        low, high = np.clip(f - widths, 0.0, 1.0), np.clip(f + widths, 0.0, 1.0)
        plausible = low <= (low.min() if variant == "optimistic" else high.min())
        return drawn(plausible / plausible.sum(), t)

    guesses = play_in_numpy(choose, lambda label, x, correct: costs.learn(label, x, float(not correct)))
    check_same(onebit.RegCB(0.02, variant), guesses, -costs.weights)


def test_the_bounds_of_reg_cb_are_those_of_all_weights_that_fit() -> None:
    """At the closed form's bound the penalised error exceeds the least by β; beyond it nothing within β is found."""
    X, costs = PROBLEM.X[:40], (PROBLEM.y[:40] != 1).astype(float)
    learner = onebit.RegCB(classes=K).learn_from(X, np.ones(40, np.int64), costs == 0.0)
    w, inverse, x, beta = -learner.weights_[1], learner.learned()["inverses"][1], PROBLEM.X[50], 0.3

    def excess(v: Floats) -> float:
        return float(((X @ v - costs) ** 2).sum() + v @ v - ((X @ w - costs) ** 2).sum() - w @ w)

    width = math.sqrt(beta * x @ inverse @ x)
    edge = w + beta / width * (inverse @ x)
    assert excess(edge) == pytest.approx(beta)
    assert x @ (edge - w) == pytest.approx(width)
    steps = np.linalg.cholesky(inverse) @ np.random.default_rng(0).normal(size=(D, 2000))
    on_edge = w[:, None] + steps * math.sqrt(beta) / np.sqrt([excess(w + step) for step in steps.T])
    assert np.max(x @ on_edge - w @ x) == pytest.approx(width, rel=0.03)
    assert np.max(x @ on_edge - w @ x) <= width * (1 + 1e-9)
