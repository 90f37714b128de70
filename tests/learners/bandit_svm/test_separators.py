"""Separators: the solver against scikit-learn, exponentials, and what makes room in a full store."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import onebit
from onebit.checks.problems import noisy_problem
from onebit.engine.jit import in_python, jit
from onebit.kernels import Gaussian, Laplace, Linear, Polynomial, Rational
from onebit.learners.bandit_svm import bank, rounds, separators
from onebit.learners.bandit_svm.bank import BankArrays, BankScratch, Settings
from onebit.learners.bandit_svm.state import BankState


def guarded(kernel: Any = "auto", **settings: Any) -> onebit.BanditSVM:
    """Return the learner on rows as they are."""
    return onebit.BanditSVM(kernel, **{"scale": None, **settings})


def state_of(learner: onebit.BanditSVM) -> Any:
    return learner._state


@jit
def store_row(state: BankArrays, scratch: BankScratch, settings: Settings) -> int:
    return separators._store_row(state, scratch, settings)


def test_the_linear_kernel_forgets_nothing() -> None:
    """What is removed from the store stays in its weights: its opinion does not change."""
    problem = noisy_problem(300)
    learner = guarded([None, Gaussian(0.5, normalize=True)], budget=20)
    onebit.play(learner, problem.X, problem.y)
    played: Any = learner._state
    x = problem.X[0]

    def opinions() -> dict[Any, Any]:
        return {opinion.kernel: opinion.scores for opinion in learner.opinions(x)}

    before = opinions()
    played.scratch.targets[:] = 0.0
    store_row(played.arrays, played.scratch, played.settings)
    after = opinions()
    linear, other = learner.bank_
    assert after[linear] == pytest.approx(before[linear], abs=1e-9)
    assert np.abs(after[other] - before[other]).max() > 1e-6


@jit
def _place_to_free(state: BankArrays, scratch: BankScratch, settings: Settings) -> int:
    return separators._place_to_free(state, scratch, settings)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.5), Polynomial(2), [Gaussian(2.0), Gaussian(0.5), Laplace()], [None, Rational(normalize=True)]],
)
def test_the_example_makes_room_whose_projection_loses_least(kernel: Any) -> None:
    """The norm of what is lost is computed anew from coefficients and kernel values, for every example."""
    problem = noisy_problem(300)
    learner = guarded(kernel, budget=20)
    onebit.play(learner, problem.X, problem.y)
    played: Any = learner._state
    arrays, plan, trust = played.arrays, played.settings.plan, played.trust
    assert arrays.counts[bank.REMOVED] > 50
    if plan[np.argmax(trust), bank.IS_LINEAR]:
        assert _place_to_free(arrays, played.scratch, played.settings) == arrays.counts[bank.REMOVED] % 20
        trust = arrays.members[:, bank.TRUST] = [0.5, 1.0]
    is_kernel = plan[:, bank.IS_LINEAR] == 0
    lost = np.zeros(20)
    for k in np.flatnonzero(is_kernel):
        gram = arrays.grams[plan[k, bank.BASE]] ** (2.0 ** plan[k, bank.SQUARINGS])
        others = np.where(np.eye(20, dtype=bool), -np.inf, gram)
        nearest = others.argmax(axis=1)
        norms = (arrays.coefficients[k] ** 2).sum(axis=1)
        assert arrays.importance[k] == pytest.approx(norms, rel=1e-9, abs=1e-12)
        rest = np.diag(gram) - others.max(axis=1) ** 2 / np.diag(gram)[nearest]
        lost += trust[k] / np.max(np.asarray(trust)[is_kernel]) * norms * rest
    assert lost[_place_to_free(arrays, played.scratch, played.settings)] == pytest.approx(
        lost.min(), rel=1e-6, abs=1e-12
    )


def test_what_makes_room_does_not_depend_on_when_it_was_looked_for() -> None:
    """Whole rows have equal kernel values; a learner that is pickled in every round finds the nearest ones anew."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(-2, 3, size=(150, 3)).astype(float), rng.integers(3, size=150)
        whole, pickled = (guarded(Polynomial(2), budget=8, classes=3) for _ in range(2))
        onebit.play(whole, X, y)
        for x, label in zip(X, y, strict=True):
            guess = pickled.guess(x)
            pickled.tell(guess, bool(guess.label == label))
            pickled = pickle.loads(pickle.dumps(pickled))
        assert np.array_equal(whole.support_, pickled.support_), seed


def test_the_importance_of_an_example_is_a_number_where_squares_overflow(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = 1e-140 * rng.normal(size=(300, 3)), rng.integers(3, size=300)
    learner = guarded(Linear(), C=math.inf, budget=8, classes=3)
    onebit.play(learner, X, y)
    played: Any = learner._state
    assert np.abs(played.arrays.coefficients).max() > 1e154
    assert np.isfinite(played.arrays.importance).all()
    learner.save(tmp_path / "large.onebit")
    onebit.load(tmp_path / "large.onebit")


@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        (Polynomial(1024, normalize=True), 1.0),  # of a unit row with itself: 2¹⁰²⁴
        ([None, Polynomial(2000, normalize=True)], 1.0),
        (Gaussian(), 1e154),  # ‖x‖² is a float, ‖x‖² + ‖x'‖² is none
        ([None, Gaussian()], 1e200),
    ],
    ids=str,
)
def test_values_that_are_no_numbers_are_refused(kernel: Any, size: float) -> None:
    problem = noisy_problem(50)
    rows = size * (problem.X / np.linalg.norm(problem.X, axis=1, keepdims=True))
    with pytest.raises(ValueError, match="NaN or infinite"):
        onebit.play(guarded(kernel), rows, problem.y)


def test_a_polynomial_just_below_overflow_plays() -> None:
    problem = noisy_problem(50)
    learner = guarded([None, Polynomial(1023, normalize=True)])
    onebit.play(learner, problem.X, problem.y)
    assert all(np.isfinite(opinion.scores).all() for opinion in learner.opinions(problem.X[0]))


def test_a_subclass_keeps_its_own_formula() -> None:
    """It is no power of the Gaussian that it descends from, and no inner product."""

    class Halved(Gaussian):
        def matrix(self, X: Any, Y: Any) -> Any:
            return 0.5 * super().matrix(X, Y)

    class Doubled(Linear):
        def matrix(self, X: Any, Y: Any) -> Any:
            return 2.0 * super().matrix(X, Y)

    problem = noisy_problem(60)
    x = problem.X[:1]
    for first, second in [
        (Gaussian(1.0, normalize=True), Halved(0.5, normalize=True)),
        (Linear(normalize=True), Doubled(normalize=True)),
    ]:
        learner = guarded([first, second])
        onebit.play(learner, problem.X, problem.y)
        scores = {opinion.kernel: opinion.scores for opinion in learner.opinions(x[0])}
        expected = (second(x, learner.support_) @ learner.coefficients_[1])[0]
        assert scores[second] == pytest.approx(expected, abs=1e-9)


SOFTNESS, TOLERANCE = 0.5 / 3.0, 1e-10


EXACT = Settings(
    softness=SOFTNESS,
    replays=100_000,
    budget=500,
    guarded=False,
    mix=0.0,
    scales=False,
    is_closed=True,
    full_information=False,
    exclusive=True,
    finds_out=False,
)


def unit_rows(n: int, d: int, seed: int) -> Any:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def facts_of(X: Any, seed: int) -> Any:
    """Return signs of a problem that is not separable."""
    signs = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1, -1).astype(np.int8)
    signs[np.random.default_rng(seed).random(len(X)) < 0.1] *= -1
    return signs


@jit
def replay_bank(state: BankArrays, scratch: BankScratch, settings: Settings, tolerance: float) -> None:
    """Replay the only class of the only member."""
    separators._replay(state, scratch, settings, 0, 0, -1, settings.replays, tolerance)


def solved(kernel: Any, X: Any, signs: Any, softness: float = SOFTNESS, tolerance: float = TOLERANCE) -> BankArrays:
    """Return the arrays of a bank of one, with one class, that knows these facts and has replayed them."""
    n, d = X.shape
    solver = BankState((kernel,), EXACT._replace(budget=n, softness=softness), d, 1, False)
    solver.arrays = state = bank.new_arrays(solver._sizes(n, d))
    state.columns[:], state.examples[bank.N_ENTRIES], state.examples[bank.LENGTH] = np.arange(d), d, 1.0
    state.targets[0], state.counts[bank.SIZE] = signs, n
    if len(state.units):
        state.units[:] = X.T
    else:
        state.values[:] = X
    solver.rebuild(state)
    replay_bank(state, solver.new_scratch(), solver.settings, tolerance)
    return state


@jit
def powers(values: Any) -> Any:
    found = np.empty_like(values)
    separators.write_powers(values, len(values), 3, found)
    return found


@jit
def exponentials(values: Any) -> Any:
    found = values.copy()
    bank.exponentiate(found, len(found), np.empty_like(found))
    return found


def test_exponentials() -> None:
    x = -np.concatenate([np.random.default_rng(0).uniform(0.0, top, 10_000) for top in (1.0, 30.0, 708.0)])
    found, exact = exponentials(x), np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(found - exact) / np.spacing(found)) < 1.2
    assert exponentials(np.array([0.0, -0.0, -1e-320, -709.0, -1e300, -math.inf])).tolist() == [1.0, 1.0, 1.0, 0, 0, 0]
    assert np.isnan(exponentials(np.array([math.nan])))


def test_python_cannot_call_what_only_compiled_code_may() -> None:
    with pytest.raises(TypeError, match="write_powers is compiled for compiled code only"):
        separators.write_powers(np.zeros(1), 1, 1, np.zeros(1))
    assert powers(np.array([2.0, 0.5])).tolist() == [256.0, 0.5**8]


def svc(X: Any, signs: Any) -> Any:
    """Return scikit-learn's separator."""
    reference = LinearSVC(C=3.0, loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    return reference.fit(X, signs).coef_[0]


@pytest.mark.parametrize("seed", range(3))
def test_linear_solver_finds_the_largest_margin(seed: int) -> None:
    X = unit_rows(120, 5, seed)
    signs = facts_of(X, seed)
    found = solved(Linear(normalize=True), X, signs)
    assert found.units.size == 0, "all is linear: entries, and no columns of a store"
    assert np.allclose(found.weights[:, 0], svc(X, signs), atol=1e-6)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.5)], ids=repr)
def test_kernel_solver_meets_the_optimality_conditions(kernel: Any) -> None:
    X = unit_rows(100, 4, 7)
    signs, gram = facts_of(X, 7), kernel(X)
    found = solved(kernel, X, signs)
    assert np.allclose(found.grams[0], gram, atol=1e-12)
    alphas = found.alphas[0, 0]
    slopes = 1.0 - signs * (gram @ (signs * alphas)) - alphas * SOFTNESS
    assert np.all(alphas >= 0.0)
    assert np.all(slopes <= 1e-8)
    assert np.all(np.abs(slopes[alphas > 0]) <= 1e-8)
    if isinstance(kernel, Linear):
        assert np.allclose((signs * alphas) @ X, svc(X, signs), atol=1e-6)


@pytest.mark.parametrize(
    ("label", "correct", "truth", "exclusive", "proved"),
    [
        (2, True, -1, True, [-0.5, -0.5, 1, -0.5]),
        (2, False, -1, True, [0, 0, -1, 0]),
        (2, False, 0, True, [1, -0.5, -1, -0.5]),
        (1, False, -1, True, [1, -1]),
        (2, True, -1, False, [0, 0, 1, 0]),
        (2, False, -1, False, [0, 0, -1, 0]),
        (2, False, 0, False, [1, 0, -1, 0]),
        (1, False, -1, False, [0, -1]),
    ],
)
def test_what_answers_prove(label: int, correct: bool, truth: int, exclusive: bool, proved: list[float]) -> None:
    targets = np.empty(len(proved))
    known = in_python(rounds._prove)(label, correct, truth, True, exclusive, targets)
    assert known == (proved.index(1) if 1 in proved else -1)
    assert targets.tolist() == proved


def test_a_new_fact_on_the_wrong_side_always_takes_its_step() -> None:
    for C in (1e-200, 1e-6, 5e-4, 0.1, 100.0, math.inf):
        learner = onebit.FullInformationSVM(None, C=C, classes=3)
        learner.tell(learner.guess([3.0, 4.0]), False, label=2)
        assert np.all(state_of(learner).arrays.alphas[0, :, 0] > 0.0)


def test_linear_solver_finds_the_largest_margin_where_it_is_very_soft() -> None:
    X = unit_rows(60, 3, 1)
    signs = facts_of(X, 1)
    softness = 0.5 / 1e-5
    found = solved(Linear(normalize=True), X, signs, softness, 1e-6)
    weights, alphas = found.weights[:, 0], found.alphas[0, 0]
    slopes = 1.0 - signs * (X @ weights) - alphas * softness
    assert np.all(np.abs(slopes) <= 3e-6)
    assert np.allclose(weights, (signs * alphas) @ X, rtol=1e-12)
