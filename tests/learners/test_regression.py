"""Learners on regressions, against plain NumPy with explicit inverses, closed forms, and SciPy's integrals."""

from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import guesses_of
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.inputs import Floats
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


# Its inverse stays right, whatever the rows.


def test_a_row_of_zeros_has_no_widths() -> None:
    learner = onebit.ThompsonSampling(classes=3)
    assert learner.probabilities(np.zeros(2)).tolist() == [1.0, 0.0, 0.0]
    learner.tell(learner.guess(np.zeros(2)), correct=False)
    assert np.isfinite(learner.probabilities([1e-170, 0.0])).all()


def check_inverse(learner: onebit.Learner) -> None:
    """A⁻¹ is symmetric, positive definite, and the inverse of A; A w = b; as exactly as the condition of A allows."""
    arrays = learner._state.arrays
    for A, inverse, b, w in zip(arrays.grams, arrays.inverses, arrays.responses, arrays.weights, strict=True):
        assert np.array_equal(inverse, inverse.T)
        assert np.linalg.eigvalsh(inverse).min() > 0.0
        rounding = 3.0 * np.finfo(float).eps  # by Sherman and Morrison alone it is 3 to 1 000 times the condition
        assert np.linalg.norm(inverse @ A - np.eye(len(A))) <= rounding * np.linalg.cond(A)
        assert np.linalg.norm(A @ w - b) <= rounding * np.linalg.cond(A) * np.linalg.norm(A) * np.linalg.norm(w)


def many_rounds(n: int) -> tuple[Floats, Any]:
    """Return rows of five features, two of them all but the same, with lengths from about 0.001 to 1 000."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(n, 5)) * 10.0 ** generator.uniform(-3, 3, size=(n, 1))
    X[:, 4] = X[:, 3] * (1.0 + 1e-6 * generator.normal(size=n))
    return X, generator.integers(3, size=n)


def test_rounding_does_not_add_up() -> None:
    X, y = many_rounds(10_000)
    for learner in (onebit.LinUCB(), onebit.EpsilonGreedy(0.3)):
        onebit.play(learner, X, y)
        check_inverse(learner)


@pytest.mark.slow
def test_rounding_does_not_add_up_in_a_million_rounds() -> None:
    X, y = many_rounds(1_000_000)
    for learner in (onebit.LinUCB(), onebit.EpsilonGreedy(0.3), onebit.SquareCB(), onebit.Confidit()):
        onebit.play(learner, X, y)
        check_inverse(learner)


@pytest.mark.parametrize("size", [1e4, 1e12, 1e30])
def test_steep_rows_leave_it_positive_definite(size: float) -> None:
    generator = np.random.default_rng(2)
    X = size * generator.normal(size=(500, 6))
    X[:, 5] = X[:, 4]  # A has an eigenvalue of λ beside those of some size²
    learner = onebit.LinUCB(classes=3)
    onebit.play(learner, X, generator.integers(3, size=500))
    for inverse in learner.learned()["inverses"]:
        assert np.array_equal(inverse, inverse.T)
        assert np.linalg.eigvalsh(inverse).min() > -1e-15 * np.abs(inverse).max()
    assert np.isfinite(learner.probabilities(X[0])).all()


def test_an_inverse_that_rounding_has_spoiled_is_made_anew() -> None:
    """Rows along one line: a few roundings make an eigenvalue negative, which then grew without end."""
    for seed in (1, 14):
        generator = np.random.default_rng(seed)
        line = generator.normal(size=3)
        line[2] = line[1]
        X = line * 10.0 ** generator.uniform(-6, 6, size=(400, 1))
        learner = onebit.SquareCB(regularization=1e-6, classes=3)
        onebit.play(learner, X, generator.integers(3, size=400))
        for inverse in learner.learned()["inverses"]:
            assert np.linalg.eigvalsh(inverse).min() > -1e-14 * np.abs(inverse).max()


def test_directions_that_rounding_has_swallowed_do_not_grow() -> None:
    """Fewer long rows than features: what is left of A then is rounding, and was divided by itself row by row."""
    generator = np.random.default_rng(3)
    learner = onebit.LinUCB(classes=3)
    onebit.play(learner, 1e8 * generator.normal(size=(60, 40)), generator.integers(3, size=60))
    for inverse in learner.learned()["inverses"]:
        assert -1e-14 < np.linalg.eigvalsh(inverse).min() <= np.diagonal(inverse).max() < 1.00001


def test_rows_too_large_are_refused_and_change_nothing() -> None:
    learner = onebit.LinUCB(classes=2)
    learner.tell(learner.guess([1.0, 2.0]), correct=True)
    known = learner.learned()
    for bad in ([1e60, 0.0], [1e200, 1.0]):
        with pytest.raises(ValueError, match="too large"):
            learner.guess(bad)
    assert all(np.array_equal(learner.learned()[name], known[name]) for name in known)
