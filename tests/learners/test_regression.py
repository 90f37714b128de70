"""Learners on regressions, against plain NumPy with explicit inverses, closed forms, and SciPy's integrals."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import onebit
from onebit.checks.problems import guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.inputs import Floats
from onebit.learners import thompson_sampling as winning

K, D, SEED = 4, 5, 6
PROBLEM = noisy_problem(300, K, D)


class Ridge:
    """Ridge regression of every class, with a system of equations solved each time."""

    def __init__(self, is_diagonal: bool = False, start: float = 1.0) -> None:
        self.A, self.b = start * np.stack([np.eye(D)] * K), np.zeros((K, D))
        self.is_diagonal, self.weights = is_diagonal, np.zeros((K, D))

    def widths(self, x: Floats) -> Floats:
        return np.array([math.sqrt(x @ np.linalg.solve(A, x)) for A in self.A])

    def learn(self, label: int, x: Floats, target: float) -> None:
        if self.is_diagonal:
            image = np.linalg.solve(self.A[label], x)
            self.weights[label] += image * (target - self.weights[label] @ x) / (1.0 + x @ image)
            self.A[label] += np.diag(x * x)
        else:
            self.A[label] += np.outer(x, x)
            self.b[label] += target * x
            self.weights[label] = np.linalg.solve(self.A[label], self.b[label])


def play_in_numpy(
    choose: Callable[[Floats, int], int], learn: Callable[[int, Floats, bool], None], rounds: int = 300
) -> list[int]:
    guesses = []
    for t, (x, y) in enumerate(zip(PROBLEM.X[:rounds], PROBLEM.y[:rounds], strict=True)):
        guesses.append(int(choose(x, t)))
        learn(guesses[-1], x, bool(guesses[-1] == y))
    return guesses


def check_same(learner: onebit.Learner, guesses: list[int], weights: Floats) -> None:
    assert guesses_of(learner, PROBLEM.X, PROBLEM.y, seed=SEED).tolist() == guesses
    assert np.allclose(learner.learned()["weights"], weights, rtol=1e-9, atol=1e-12)


def drawn(propensities: Floats, t: int) -> int:
    return int(np.searchsorted(np.cumsum(propensities), uniform(Draw(SEED, t)), side="right"))


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


def test_uniform_draws_are_those_of_everyone() -> None:
    learner = onebit.ExploreFirst(1000)
    expected = [uniform_label(uniform(Draw(SEED, t)), K) for t in range(300)]
    assert guesses_of(learner, PROBLEM.X, PROBLEM.y, seed=SEED).tolist() == expected


# Thompson sampling.


def test_thompson_sampling_draws_from_the_posterior() -> None:
    ridge = Ridge()

    def choose(x: Floats, t: int) -> int:
        # NumPy raises the counter before it draws.
        words = np.random.Philox(key=[SEED, 3], counter=(t - 1) % 2**256).random_raw(4)
        numbers = (words >> np.uint64(11)) * 2.0**-53
        lengths, angles = np.sqrt(-2.0 * np.log(1.0 - numbers[::2])), 2.0 * np.pi * numbers[1::2]
        normals = np.column_stack([lengths * np.cos(angles), lengths * np.sin(angles)]).ravel()
        return int(np.argmax(ridge.weights @ x + 0.4 * ridge.widths(x) * normals))

    guesses = play_in_numpy(choose, lambda label, x, correct: ridge.learn(label, x, float(correct)))
    check_same(onebit.ThompsonSampling(0.4), guesses, ridge.weights)


def test_normals_are_normal() -> None:
    pick = winning.drawn_winner
    # One label has a deviation, another one a constant to be compared with; the others never win.
    bars = np.array([-1.5, -0.5, 0.0, 1.0])
    for place in (0, 3, 4):
        means, deviations = np.full(5, -1e9), np.zeros(5)
        means[place], deviations[place], rival = 0.0, 1.0, (place + 1) % 5
        for bar in bars:
            means[rival] = bar
            share = np.mean([pick(means, deviations, 1.0, Draw(3, t)) == place for t in range(1500)])
            chance = scipy.stats.norm.sf(bar)
            assert abs(share - chance) < 4.5 * math.sqrt(chance * (1 - chance) / 1500)


def winning_by_scipy(means: Floats, deviations: Floats) -> Floats:
    def density(z: float, i: int) -> float:
        others = np.delete(np.arange(len(means)), i)
        below = scipy.stats.norm.cdf(z, means[others], deviations[others])
        return float(scipy.stats.norm.pdf(z, means[i], deviations[i]) * below.prod())

    low, high = (means - 9 * deviations).min(), (means + 9 * deviations).max()
    points = np.sort(np.concatenate([means + c * deviations for c in (-8, -5, -3, -1, 0, 1, 3, 5, 8)]))
    panels = np.concatenate([[low], points, [high]])
    return np.array(
        [
            sum(
                scipy.integrate.quad(density, a, b, args=(i,), epsabs=1e-14, epsrel=1e-12)[0]
                for a, b in itertools.pairwise(panels)
            )
            for i in range(len(means))
        ]
    )


@pytest.mark.parametrize(
    ("means", "deviations"),
    [
        ([0.1, 0.0, -0.2], [1.0, 0.3, 0.5]),
        ([0.0, 0.0, 1e-3], [1.0, 1e-3, 1e-6]),
        ([0.3, 0.0], [0.2, 0.5]),
    ],
)
def test_winning_chances_are_exact(means: list[float], deviations: list[float]) -> None:
    mu, sigma, out = np.array(means), np.array(deviations), np.empty(len(means))
    winning.winning_chances(mu, sigma / 0.25, 0.25, np.empty(len(mu)), out)
    assert np.allclose(out, winning_by_scipy(mu, sigma), rtol=0, atol=1e-10)
    assert out.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("n", [2, 3])
def test_the_highest_mean_wins_where_no_deviation_can_be_added(n: int) -> None:
    out, means = np.empty(n), np.arange(n, dtype=float)
    winning.winning_chances(means, np.full(n, 1e-200), 1e-10, np.empty(n), out)
    assert out.tolist() == np.eye(n)[-1].tolist()


def test_equal_labels_have_equal_chances_however_many() -> None:
    for n in (2, 3, 10, 40):
        out = np.empty(n)
        winning.winning_chances(np.zeros(n), np.ones(n), 1.0, np.empty(n), out)
        assert np.allclose(out, 1.0 / n, rtol=1e-11)


def test_a_row_of_zeros_has_no_widths() -> None:
    learner = onebit.ThompsonSampling(classes=3)
    assert learner.probabilities(np.zeros(2)).tolist() == [1.0, 0.0, 0.0]
    learner.tell(learner.guess(np.zeros(2)), correct=False)
    assert np.isfinite(learner.probabilities([1e-170, 0.0])).all()


# Told the label.


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


# The memory.


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
