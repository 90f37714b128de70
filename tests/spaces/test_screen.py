"""Approximate scores: as close as promised, and never a different guess."""

import math

import numpy as np
import pytest

import onebit
from onebit.checks.problems import fresh, guesses_of
from onebit.inputs import Floats
from onebit.kernels import Gaussian, Kernel, Linear, Multinomial, Polynomial, Rational
from onebit.learners.baselines import _UNIFORM
from onebit.spaces.screen import Screen
from onebit.spaces.support_set import SupportSet


def scores_of(space: SupportSet, row: Floats) -> Floats:
    space.score(row, row)
    scores: Floats = space.scratch.current.copy()
    return scores


@pytest.mark.parametrize("kernel", [Rational(), Polynomial(4), Multinomial(6), Linear()])
@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("n_fixed", [0, 1, 2])
def test_a_screen_is_as_close_as_it_says(kernel: Kernel, n_features: int, n_fixed: int) -> None:
    generator = np.random.default_rng(n_features)
    space = SupportSet(kernel, _UNIFORM, (1.0,), n_features, 3)
    for _ in range(150):
        point = generator.uniform(-1, 1, (1, n_features)) / math.sqrt(n_features)
        space.add(point, generator.integers(-1, 2, size=3).astype(float))
    rows = generator.uniform(-1, 1, (200, n_features)) / math.sqrt(n_features)
    rows[:, :n_fixed] = rows[0, :n_fixed]
    screen = Screen.for_kernel(kernel, rows, 3)
    assert screen is not None
    screen.catch_up(space.points[:40], space.coefficients[:40])
    screen.catch_up(space.points, space.coefficients)
    exact = np.array([scores_of(space, row[None]) for row in rows])
    allowed = screen.error(1.0, 2.0**-51) * space.arrays.totals
    assert np.all(np.abs(screen.score_rows(rows) - exact) <= allowed + 1e-15)


def test_no_screen_where_there_would_be_too_many_terms() -> None:
    rows = np.random.default_rng(1).uniform(size=(5, 40))
    assert Screen.for_kernel(Rational(), rows, 3) is None
    assert Screen.for_kernel(Gaussian(1.0), rows[:, :2], 3) is None


@pytest.mark.parametrize("n_fixed", [300, 4_500, 9_000])
def test_a_feature_that_varies_only_later_changes_nothing(n_fixed: int) -> None:
    X, y = onebit.streams.paper_weak(9_000, seed=3)
    X[n_fixed:, 2] *= np.random.default_rng(1).uniform(size=len(X) - n_fixed)
    X[6_000:, 0] = 0.0  # one that no longer varies
    learner = onebit.BanditPerceptron(Rational())
    expected = guesses_of(learner, X, y, engine="rounds")
    assert np.array_equal(guesses_of(fresh(learner), X, y), expected)
