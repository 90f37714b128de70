import math

import numpy as np
import pytest

import onebit
from onebit.inputs import Floats
from ridge_programs import PROBLEM, D, K, Ridge, check_same, drawn, play_in_numpy


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
