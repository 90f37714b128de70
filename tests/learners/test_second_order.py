"""What SOBA and PNewtron share: settings, steps that are refused, and a full matrix whose inverse stays right."""

import math
import re
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import Problem, noisy_problem
from onebit.learners import second_order
from onebit.learners.second_order import _LAMBDA, _RENEW_EVERY, _SHIFT


@pytest.mark.parametrize(
    "named",
    [
        {"exploration": 0.0},
        {"exploration": 1.5},
        {"diagonal": "no"},
        {"diagonal": 1},
        {"regularization": 0.0},
        {"regularization": math.inf},
        {"sharpness": -1.0},
        {"curvature": 0},
        {"radius": math.nan},
        {"radius": 1e20},
    ],
    ids=str,
)
def test_bad_settings(named: dict[str, Any]) -> None:
    cls = onebit.SOBA if "regularization" in named else onebit.PNewtron
    with pytest.raises(ValueError, match=re.escape(next(iter(named)))):
        cls(**named, classes=3).guess([1.0, 2.0])


def test_steps_divided_by_next_to_nothing_are_refused() -> None:
    learner = onebit.SOBA(classes=3)
    learner.learn_from([[1.0, 2.0]], [1], True, 0.5)
    before = learner.weights_
    with pytest.raises(ValueError, match="propensities must not be so small"):
        learner.learn_from([[1.0, 2.0]], [1], True, 1e-200)
    with pytest.raises(ValueError, match="propensities are needed"):
        learner.learn_from([[1.0, 2.0]], [1], True)
    assert np.array_equal(learner.weights_, before)


def test_a_chance_whose_square_is_nothing_is_refused_even_for_a_row_of_zeros() -> None:
    learner = onebit.PNewtron(classes=2)
    with pytest.raises(ValueError, match="must not be so small"):
        learner.learn_from([[0.0]], [0], False, 1e-200)
    with pytest.raises(ValueError, match="exploration must be"):
        onebit.PNewtron(1e-300, classes=2).begin(1)


# The full form.


def check_inverse(learner: Any, tolerance: float) -> None:
    now, floor = learner._state.arrays, learner._state.settings.floor
    n = len(now.weights)
    A = now.matrix + now.tallies[_SHIFT] * np.eye(n)
    assert np.array_equal(now.inverse, now.inverse.T)
    assert np.linalg.eigvalsh(now.matrix)[0] >= 0.999 * floor
    assert np.linalg.eigvalsh(now.inverse)[0] > 0.0, "the inverse is not positive definite"
    assert np.abs(now.inverse @ A - np.eye(n)).max() <= tolerance
    weights = np.linalg.solve(now.matrix + now.tallies[_LAMBDA] * np.eye(n), now.target)
    np.testing.assert_allclose(now.weights, weights, rtol=tolerance, atol=tolerance)
    assert np.linalg.norm(now.weights) <= learner._state.settings.radius * (1 + 1e-10)


def play_on(learner: Any, problem: Problem, rounds: int, tolerance: float) -> None:
    learner.begin(problem.X.shape[1])
    for _ in range(rounds // len(problem.y)):
        onebit.play(learner, problem.X, problem.y, fresh=False)
        check_inverse(learner, tolerance)
    assert learner.n_rounds_ == rounds


@pytest.mark.parametrize("rounds", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["SOBA", "PNewtron"])
def test_the_inverse_stays_right(name: str, rounds: int) -> None:
    """Rows of lengths from a thousandth to 10, and two columns that are nearly the same."""
    problem = noisy_problem(rounds // 10, n_features=6)
    generator = np.random.default_rng(1)
    X = problem.X * 10.0 ** generator.uniform(-3, 1, (rounds // 10, 1))
    X[:, 5] = X[:, 4] + 1e-3 * X[:, 5]
    learner = onebit.SOBA(0.05, classes=4) if name == "SOBA" else onebit.PNewtron(0.05, classes=4)
    play_on(learner, Problem(X, problem.y, 4), rounds, 1e-7)
    assert learner.n_updates_ > rounds / 20


@pytest.mark.parametrize("scale", [1e4, 1e9])
def test_where_rounding_breaks_cholesky_the_floor_is_put_back(scale: float) -> None:
    problem = noisy_problem(300)
    learner: Any = onebit.SOBA(0.3, classes=4)
    onebit.play(learner, scale * problem.X, problem.y)
    learner._state.renew_inverse()
    now = learner._state.arrays
    assert np.isfinite(learner.weights_).all()
    assert np.linalg.eigvalsh(now.inverse)[0] > -1e-15
    assert learner.n_updates_ > 10


def test_the_inverse_is_made_anew_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    made, solved = [], second_order._solved

    def counted(*given: Any) -> Any:
        made.append(given)
        return solved(*given)

    monkeypatch.setattr(second_order, "_solved", counted)
    problem = noisy_problem(9000)
    learner = onebit.SOBA(1.0)
    onebit.play(learner, problem.X, problem.y)
    assert len(made) == learner.n_updates_ // _RENEW_EVERY > 0


def test_a_matrix_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match=r"diagonal=False .* 10000000 × 10000000 .*Use diagonal=True"):
        onebit.SOBA(classes=1000).begin(10_000)
    onebit.SOBA(classes=1000, diagonal=True).begin(10_000)


def test_a_class_that_would_need_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = onebit.SOBA(classes=3)
    learner.begin(5)
    before = learner._state.arrays
    monkeypatch.setattr("onebit.machine_memory.memory", lambda: 10_000.0)
    with pytest.raises(ValueError, match="20 × 20 numbers for 5 features and 4 classes"):
        learner.add_class("one more")
    assert learner.classes_.tolist() == [0, 1, 2]
    assert all(np.array_equal(*pair) for pair in zip(before, learner._state.arrays, strict=True))
