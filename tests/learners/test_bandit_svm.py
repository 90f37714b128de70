"""BanditSVM: the solver against scikit-learn, the guarantee as an oracle, budgets, drift, bad settings."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import onebit
from onebit.bounds import at_most
from onebit.checks.problems import noisy_problem, separable_problem
from onebit.engine.jit import jit
from onebit.engine.state import in_python
from onebit.kernels import Gaussian, Linear, Rational
from onebit.learners.bandit_svm import separators
from onebit.learners.bandit_svm.bandit_svm import plan_members
from onebit.learners.bandit_svm.bank import BankState
from onebit.learners.bandit_svm.separators import exponentiate, prove
from onebit.learners.bandit_svm.vote import ROUNDS, BankArrays, BankScratch, Settings, is_outdated, new_watch

SOFTNESS, TOLERANCE = 0.5 / 3.0, 1e-10
EXACT = Settings(
    plan=np.array([[0, 0, 1]]),
    softness=SOFTNESS,
    bases=np.zeros((1, 3)),
    replays=100_000,
    budget=500,
    guarded=False,
    mix=0.0,
    scales=False,
    is_closed=True,
    is_bounded=True,
    full_information=False,
)


def state_of(learner: onebit.BanditSVM) -> Any:
    return learner._state


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
    separators.replay(
        0,
        -1,
        settings.replays,
        state.counts[0],
        0,
        settings.softness,
        tolerance,
        state.grams[0],
        state.targets[0],
        state.alphas[0, 0],
        state.scores[0, 0],
        state.coefficients[0],
        state.sums[0],
        state.importance[0],
        state.examples,
        state.columns,
        state.values,
        state.units,
        state.weights,
        scratch.lines,
    )


def solved(kernel: Any, X: Any, signs: Any, softness: float = SOFTNESS, tolerance: float = TOLERANCE) -> BankArrays:
    """Return the arrays of a bank of one, with one class, that knows these facts and has replayed them."""
    n, d = X.shape
    bases, settings = plan_members((kernel,), EXACT._replace(budget=n, softness=softness), d)
    bank = BankState((kernel,), bases, settings, d, 1)
    bank.make_room(X, 0)
    while bank.arrays.examples.shape[1] < n:
        bank.arrays.counts[0] = bank.arrays.examples.shape[1]
        bank.make_room(X, 0)
    state = bank.arrays
    state.columns[:], state.examples[separators.N_ENTRIES], state.examples[separators.LENGTH] = np.arange(d), d, 1.0
    state.targets[0], state.counts[0] = signs, n
    if len(state.units):
        state.units[:] = X.T
    else:
        state.values[:] = X
    bank.rebuild(state)
    replay_bank(state, bank.new_scratch(), settings, tolerance)
    return state


@jit
def powers(values: Any) -> Any:
    found = np.empty_like(values)
    separators.write_powers(values, len(values), 3, found)
    return found


@jit
def exponentials(values: Any) -> Any:
    found = values.copy()
    exponentiate(found, len(found), np.empty_like(found))
    return found


def test_exponentials() -> None:
    x = -np.concatenate([np.random.default_rng(0).uniform(0.0, top, 10_000) for top in (1.0, 30.0, 708.0)])
    found, exact = exponentials(x), np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(found - exact) / np.spacing(found)) < 1.2
    assert exponentials(np.array([0.0, -0.0, -1e-320, -709.0, -1e300, -math.inf])).tolist() == [1.0, 1.0, 1.0, 0, 0, 0]
    assert np.isnan(exponentials(np.array([math.nan])))


def test_python_is_told_what_only_compiled_code_may_call() -> None:
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
    ("label", "correct", "truth", "proved"),
    [
        (2, True, -1, [-0.5, -0.5, 1, -0.5]),
        (2, False, -1, [0, 0, -1, 0]),
        (2, False, 0, [1, -0.5, -1, -0.5]),
        (1, False, -1, [1, -1]),
    ],
)
def test_what_answers_prove(label: int, correct: bool, truth: int, proved: list[float]) -> None:
    targets = np.empty(len(proved))
    known = in_python(prove)(label, correct, truth, True, targets)
    assert known == (proved.index(1) if 1 in proved else -1)
    assert targets.tolist() == proved


def theorem_3_sequence(n_vectors: int, n_classes: int, seed: int) -> tuple[Any, Any, float]:
    """Return the paper's hard sequence within the unit ball, and its margin, checked on a separator."""
    labels = np.random.default_rng(seed).integers(n_classes, size=n_vectors)
    X = np.hstack([np.eye(n_vectors), np.ones((n_vectors, 1))]) / math.sqrt(2.0)
    size = math.sqrt(4 * n_vectors + n_classes)
    W = np.hstack([2.0 * (labels == np.arange(n_classes)[:, None]), -np.ones((n_classes, 1))]) / size
    signs = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
    margin = math.sqrt(2.0) / size
    assert np.sum(W**2) <= 1.0 + 1e-12
    assert np.all(signs * (X @ W.T) >= margin / 2.0 - 1e-12)
    return np.repeat(X, n_classes - 1, axis=0), np.repeat(labels, n_classes - 1), margin


@pytest.mark.parametrize("replays", [0, 10])
@pytest.mark.parametrize("chance", ["uniform", 0.5])
@pytest.mark.parametrize("kernel", [None, Linear()], ids=repr)
def test_the_guarantee_on_theorem_3s_sequence(kernel: Any, replays: int, chance: Any) -> None:
    n, K, mistakes = 15, 4, []
    for seed in range(40):
        X, y, margin = theorem_3_sequence(n, K, seed)
        learner = onebit.BanditSVM(kernel, C=math.inf, exploration=chance, scale=None, replays=replays, classes=K)
        mistakes.append(onebit.play(learner, X, y, seed=seed).mistakes)
    linear = onebit.BanditSVM(None, C=math.inf, exploration=chance, scale=None)
    promise = linear.promise(n_classes=K, n_features=n + 1, radius=1.0, margin=margin * (1.0 - 1e-12))
    factor = K - 1.0 if chance == "uniform" else K / 0.5 - 1.0
    assert at_most(promise, "expected mistakes") == factor * 2 * (4 * n + K)
    assert np.mean(mistakes) <= at_most(promise, "expected mistakes")
    assert np.mean(mistakes) >= 0.95 * n * (K - 1) / 2  # Theorem 3: no learner makes fewer on average


@pytest.mark.parametrize("settings", [{}, {"scale": None}, {"kernel": None, "C": math.inf, "scale": None}], ids=str)
def test_the_defaults_guarantee_on_theorem_3s_sequence(settings: dict[str, Any]) -> None:
    n, K, mistakes = 15, 4, []
    for seed in range(40):
        X, y, margin = theorem_3_sequence(n, K, seed)
        learner = onebit.BanditSVM(classes=K, **settings)
        mistakes.append(onebit.play(learner, X, y, seed=seed).mistakes)
    promise = learner.promise(n_classes=K, n_features=n + 1, radius=1.0, margin=margin * (1.0 - 1e-12))
    assert np.mean(mistakes) <= at_most(promise, "expected mistakes") < math.inf
    assert np.mean(mistakes) >= 0.95 * n * (K - 1) / 2  # Theorem 3: no learner makes fewer on average


@pytest.mark.parametrize("margin", [0.3, 0.1])
def test_wrong_side_facts_are_counted_by_the_bound_in_every_run(margin: float) -> None:
    problem = separable_problem(3000, 3, 5, margin)
    limit = math.floor(4.0 / margin**2)
    for seed in range(20):
        learner = onebit.BanditSVM(None, C=math.inf, exploration="uniform", scale=None, classes=3, replays=seed % 3)
        trace = onebit.play(learner, problem.X, problem.y, seed=seed, engine="stream")
        claimed_mistakes = trace.mistakes - trace.uniform_guesses
        assert claimed_mistakes <= limit
        twin = onebit.FullInformationSVM(None, C=math.inf, scale=None, classes=3, replays=seed % 3)
        assert onebit.play(twin, problem.X, problem.y, seed=seed).mistakes <= limit


def test_the_twins_bound_needs_rows_as_they_come() -> None:
    """On ±1 it keeps its 2 mistakes; scaled columns are other rows while the scale changes, and promise nothing."""
    y = np.array([0] * 16 + [1, 0] * 50)
    X = np.where(y == 0, 1.0, -1.0)[:, None]
    numbers: dict[str, Any] = {"n_classes": 2, "n_features": 1, "radius": 1.0, "margin": math.sqrt(2.0)}
    plain, scaled = (onebit.FullInformationSVM(None, C=math.inf, scale=scale) for scale in (None, "online"))
    (claim,) = plain.promise(**numbers)
    assert claim.value == 2
    assert onebit.play(plain, X, y).mistakes <= 2
    assert scaled.promise(**numbers) == ()
    assert onebit.play(scaled, X, y).mistakes > 2


def test_a_budget_keeps_the_linear_guarantee() -> None:
    problem = separable_problem(3000, 3, 5, 0.2)
    learner = onebit.BanditSVM(None, C=math.inf, exploration="uniform", scale=None, budget=3)
    mistakes = [onebit.play(learner, problem.X, problem.y, seed=seed).mistakes for seed in range(20)]
    assert np.mean(mistakes) <= 2 * math.floor(4.0 / 0.2**2)


@pytest.mark.parametrize(
    ("stream", "kernel", "most"),
    [
        (onebit.streams.paper_strong, "auto", 12),
        (onebit.streams.paper_weak, "auto", 16),
        (onebit.streams.paper_strong, None, 14),
        (onebit.streams.paper_weak, Rational(), 14),
    ],
)
def test_few_mistakes_on_the_papers_sets(stream: Any, kernel: Any, most: int) -> None:
    mistakes = []
    for seed in range(6):
        X, y = stream(rounds=50_000, seed=seed)
        learner = onebit.BanditSVM(kernel, scale=None)
        mistakes.append(onebit.play(learner, X, y, seed=seed).mistakes)
        assert state_of(learner).size < 500
    assert np.mean(mistakes) <= most


@pytest.mark.parametrize("kernel", ["auto", None, Rational(normalize=True)], ids=repr)
def test_the_budget_bounds_the_memory(kernel: Any) -> None:
    problem = noisy_problem(3000)
    learner = onebit.BanditSVM(kernel, scale=None, budget=50)
    onebit.play(learner, problem.X, problem.y)
    state = state_of(learner)
    assert state.size == 50
    assert all(array.size <= 50 * 200 for array in state.arrays)
    if kernel is not None:
        assert learner.support_.shape == (50, 5)
        for k, used in enumerate(learner.bank_):
            coefficients = state.arrays.coefficients[k, :50]
            rebuilt = used(learner.support_) @ coefficients
            if used == Linear(normalize=True):  # what was removed is still in its weights
                rebuilt = used.prepare(learner.support_) @ state.arrays.weights
            assert np.allclose(rebuilt, state.arrays.scores[k, :, :50].T, atol=1e-8)


@pytest.mark.parametrize("kernel", ["auto", None], ids=repr)
def test_it_recovers_when_labels_are_swapped(kernel: Any) -> None:
    problem = noisy_problem(8000, n_classes=4, n_features=6, seed=3)
    y = problem.y.copy()
    y[4000:] = (y[4000:] + 1) % 4
    learner = onebit.BanditSVM(kernel, classes=4)
    before = onebit.play(learner, problem.X[:4000], y[:4000])
    after = onebit.play(learner, problem.X[4000:], y[4000:], fresh=False)
    assert state_of(learner).arrays.watch[ROUNDS] < 4000, "it did not notice"
    assert after.mistakes <= 1.5 * before.mistakes + 100


@pytest.mark.parametrize("n_classes", [3, 8])
def test_it_recovers_in_a_short_stream(n_classes: int) -> None:
    """A few hundred rounds, many of them from when all was new: a hundred after the change it knows the new labels."""
    for seed in range(5):
        generator = np.random.default_rng(seed)
        centres = generator.normal(size=(n_classes, 6))
        y = generator.integers(n_classes, size=700)
        X = centres[y] + 0.4 * generator.normal(size=(700, 6))
        y[450:] = (y[450:] + 1) % n_classes
        trace = onebit.play(onebit.BanditSVM(classes=n_classes), X, y, seed=seed, checkpoints=[550])
        assert trace.mistakes - trace.curve.mistakes[0] < 40


@pytest.mark.parametrize(("n_classes", "rate"), [(2, 0.05), (2, 0.3), (3, 0.4), (10, 0.1), (10, 0.8)])
def test_a_steady_rate_of_mistakes_is_no_change(n_classes: int, rate: float) -> None:
    answers = np.random.default_rng(n_classes).random(200_000) >= rate
    assert not _alarms(new_watch(), answers, n_classes)


@jit
def _alarms(watch: Any, answers: Any, n_classes: int) -> int:
    found = 0
    for t in range(len(answers)):
        found += is_outdated(watch, answers[t], n_classes, 0.005)
    return found


def test_it_does_not_forget_when_nothing_changes() -> None:
    for seed in range(5):
        problem = noisy_problem(5000, seed=seed)
        learner = onebit.BanditSVM(budget=100)
        onebit.play(learner, problem.X, problem.y, seed=seed)
        assert state_of(learner).arrays.watch[ROUNDS] == 5000


def test_rows_may_have_any_length_and_be_zero() -> None:
    X = np.array([[1e200, 1e200], [0.0, 0.0], [1e-200, -1e-200], [3.0, 4.0]] * 20)
    y = np.array([0, 1, 1, 0] * 20)
    for kernel in ("auto", None):
        learner = onebit.BanditSVM(kernel, C=math.inf, scale=None)
        trace = onebit.play(learner, X, y)
        assert trace.mistakes < 40
        assert all(np.isfinite(array).all() for array in learner.learned().values())


@pytest.mark.parametrize("kernel", ["auto", None], ids=repr)
@pytest.mark.parametrize("C", [1e-200, 1e-6, 1e-4, 5e-4])
def test_a_soft_margin_still_learns(kernel: Any, C: float) -> None:
    problem = separable_problem(1500)
    learner = onebit.BanditSVM(kernel, C=C, classes=3)
    assert onebit.play(learner, problem.X, problem.y, seed=1).mistakes < 60


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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"C": 0}, ["C", "0"]),
        ({"C": -math.inf}, ["C", "-inf"]),
        ({"C": 5e-324}, ["C", "5e-324"]),
        ({"C": "hard"}, ["C", "hard"]),
        ({"exploration": "always"}, ["exploration", "always", "greedy"]),
        ({"exploration": 1.5}, ["exploration", "1.5"]),
        ({"budget": 0}, ["budget", "0"]),
        ({"budget": 2**63}, ["budget", "2147483648"]),
        ({"replays": 2**60}, ["replays", "2147483648"]),
        ({"replays": -1}, ["replays", "-1"]),
        ({"kernel": "rbf"}, ["kernel", "rbf", "auto"]),
    ],
    ids=str,
)
def test_bad_settings_are_named(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        onebit.BanditSVM(classes=2, **settings).guess([1.0])
    assert all(word in str(caught.value) for word in words)


def test_learned_arrays_say_when_they_are_there() -> None:
    with pytest.raises(AttributeError, match="weights_"):
        _ = onebit.BanditSVM(classes=2).fit(np.eye(2), [0, 1]).weights_
    with pytest.raises(AttributeError, match="support_"):
        _ = onebit.BanditSVM(None, classes=2).fit(np.eye(2), [0, 1]).support_


def test_one_row_is_learned_without_copying_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = noisy_problem(200)
    learner = onebit.BanditSVM(classes=4).fit(problem.X[:150], problem.y[:150])

    def refuse() -> None:
        raise AssertionError("the memory was copied")

    monkeypatch.setattr(state_of(learner), "bookmark", refuse)
    learner.partial_fit(problem.X[150:151], problem.y[150:151])
    with pytest.raises(AssertionError, match="copied"):
        learner.partial_fit(problem.X[150:152], problem.y[150:152])


def test_an_answer_at_once_needs_no_second_look() -> None:
    problem = noisy_problem(60)
    learner = onebit.BanditSVM(classes=4).fit(problem.X[:50], problem.y[:50])
    looks: list[Any] = []
    state = state_of(learner)
    score = state.score

    def counted(*rows: Any) -> None:
        looks.append(rows)
        score(*rows)

    state.score = counted
    first = learner.guess(problem.X[50])
    learner.tell(first, False)
    assert not looks
    second, third = learner.guess(problem.X[51]), learner.guess(problem.X[52])
    learner.tell(second, True)
    learner.tell(third, True)
    assert len(looks) == 2
