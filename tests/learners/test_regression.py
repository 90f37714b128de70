"""Learners on regressions, against plain NumPy with explicit inverses, closed forms, and SciPy's integrals."""

from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import guesses_of
from onebit.engine.randomness import Draw, uniform, uniform_label
from ridge_programs import PROBLEM, SEED, K


def test_uniform_draws_are_those_of_everyone() -> None:
    learner = onebit.ExploreFirst(1000)
    expected = [uniform_label(uniform(Draw(SEED, t)), K) for t in range(300)]
    assert guesses_of(learner, PROBLEM.X, PROBLEM.y, seed=SEED).tolist() == expected


def test_known_rounds_are_as_good_as_ones_own() -> None:
    X, y = PROBLEM.X[:100], PROBLEM.y[:100]
    player = onebit.LinUCB(classes=K)
    guesses = guesses_of(player, X, y)
    taught = onebit.LinUCB(classes=K).learn_from(X, guesses, guesses == y)
    assert np.array_equal(taught.weights_, player.weights_)


@pytest.mark.parametrize(
    ("cls", "settings", "named"),
    [
        ("LinUCB", {"alpha": -1.0}, "alpha must be at least 0"),
        ("LinUCB", {"diagonal": 1}, "diagonal must be True or False"),
        ("LinUCB", {"regularization": 0.0}, "regularization"),
        ("LinUCB", {"alpha": 1e308}, "alpha"),
        ("ThompsonSampling", {"spread": 0}, "spread"),
        ("ThompsonSampling", {"spread": 1e-300}, "spread"),
        ("ThompsonSampling", {"spread": 1e308}, "spread"),
        ("SquareCB", {"gamma_scale": 1e308}, "gamma_scale"),
        ("RegCB", {"mellowness": 1e308}, "mellowness"),
        ("EpsilonGreedy", {"learning_rate": 1e308}, "learning_rate"),
        ("Confidit", {"alpha": -1.0}, "alpha"),
        ("Confidit", {"eta": -0.1}, "eta"),
        ("EpsilonGreedy", {"exploration": 1.1}, "exploration must be at least 0 and at most 1"),
        ("EpsilonGreedy", {"scores": "probit"}, "scores must be one of"),
        ("EpsilonGreedy", {"learning_rate": 0.0}, "learning_rate"),
        ("ExploreFirst", {"n_first": 2.5}, "n_first"),
        ("SquareCB", {"gamma_scale": 0.0}, "gamma_scale"),
        ("RegCB", {"mellowness": -1}, "mellowness"),
        ("RegCB", {"variant": "both"}, "variant"),
        ("RegCB", {"variant": np.ones(2)}, "variant"),
    ],
)
def test_bad_settings_are_named(cls: str, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        getattr(onebit, cls)(classes=2, **settings).guess([1.0])


def test_too_many_features_for_the_full_form_are_refused() -> None:
    with pytest.raises(ValueError, match="diagonal must be True for 50000000 features"):
        onebit.LinUCB(classes=2).begin(50_000_000)
