"""SquareCB against NumPy."""

import math

import numpy as np

import onebit
from onebit.inputs import Floats
from ridge_programs import K, Ridge, check_same, drawn, play_in_numpy


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
