"""SOBA and PNewtron against plain programs that invert their matrices anew in every round."""

import math
import re
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import onebit
from onebit.checks.problems import Problem, guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform
from onebit.inputs import Floats
from onebit.learners import second_order_full as full
from onebit.learners.second_order import LAMBDA, MARGINS, RENEW_EVERY, SHIFT, multiplier

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


@BOTH
@pytest.mark.parametrize("settings", [(10.0, 0.01, 1.0), (3.0, 50.0, 1e4)], ids=["on the ball", "within"])
def test_newtron_against_a_plain_program(diagonal: bool, settings: tuple[float, float, float]) -> None:
    problem = Problem(3.0 * PROBLEM.X[:300], PROBLEM.y[:300], 4, 3.0, 0.0)
    guesses, weights = plain_newtron(problem, 0.2, settings, 5, diagonal)
    learner = onebit.PNewtron(0.2, *settings, diagonal=diagonal)
    assert guesses_of(learner, problem.X, problem.y, seed=5).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, weights, rtol=1e-6, atol=1e-8)
    is_on_the_ball = np.linalg.norm(learner.weights_) > 0.999 * settings[2]
    assert is_on_the_ball == (settings[2] == 1.0), "the problem does not test what it is for"


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
        shift = multiplier(values, target, radius, start)
        length = np.linalg.norm(target / (values + shift))
        assert length <= radius * (1 + 1e-11)
        assert shift == 0.0 or length >= radius * (1 - 1e-11)
    assert multiplier(values, 0.0 * target, 1.0, start) == 0.0


# The inverse.


def check_inverse(learner: Any, tolerance: float) -> None:
    now, floor = learner._state.arrays, learner._state.settings.floor
    n = len(now.weights)
    A = now.matrix + now.tallies[SHIFT] * np.eye(n)
    assert np.array_equal(now.inverse, now.inverse.T)
    assert np.linalg.eigvalsh(now.matrix)[0] >= 0.999 * floor
    assert np.linalg.eigvalsh(now.inverse)[0] > 0.0, "the inverse is not positive definite"
    assert np.abs(now.inverse @ A - np.eye(n)).max() <= tolerance
    weights = np.linalg.solve(now.matrix + now.tallies[LAMBDA] * np.eye(n), now.target)
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
    play_on(learner, Problem(X, problem.y, 4, 10.0, 0.0), rounds, 1e-7)
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
    made, solved = [], full._solved

    def counted(*given: Any) -> Any:
        made.append(given)
        return solved(*given)

    monkeypatch.setattr(full, "_solved", counted)
    problem = noisy_problem(9000)
    learner = onebit.SOBA(1.0)
    onebit.play(learner, problem.X, problem.y)
    assert len(made) == learner.n_updates_ // RENEW_EVERY > 0


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
