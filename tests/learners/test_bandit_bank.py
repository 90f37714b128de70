"""The bank of BanditSVM: no lock-up, the guarantee as an oracle, raw columns, and what each kernel says."""

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import onebit
from onebit.bounds import at_most
from onebit.checks.problems import noisy_problem, separable_problem
from onebit.inputs import check_rows
from onebit.kernels import Gaussian, Laplace, Linear, Rational
from onebit.learners.bandit_svm import bank_facts
from onebit.learners.bandit_svm.bank_plan import new_bank
from onebit.theory import margin as margin_of

Stream = Callable[[int, np.random.Generator], tuple[Any, Any]]


def guarded(kernel: Any = "auto", **settings: Any) -> onebit.BanditSVM:
    """Return the learner on rows as they are."""
    return onebit.BanditSVM(kernel, **{"scale": None, **settings})


def three_directions(n: int, generator: np.random.Generator) -> tuple[Any, Any]:
    angles = np.radians([-13.0, 13.0, 0.0])
    y = generator.integers(3, size=n)
    return np.column_stack([np.cos(angles), np.sin(angles)])[y], y


def ten_levels(n: int, generator: np.random.Generator) -> tuple[Any, Any]:
    y = generator.integers(10, size=n)
    return np.column_stack([(y - 4.5) / np.std(np.arange(10)), np.ones(n)]), y


def two_ratings(n: int, generator: np.random.Generator) -> tuple[Any, Any]:
    labels, (i, j) = generator.integers(5, size=(5, 5)), generator.integers(5, size=(2, n))
    spread = np.std(np.arange(5))
    return np.column_stack([(i - 2) / spread, (j - 2) / spread, np.ones(n)]), labels[i, j]


def in_turn(n: int, _generator: np.random.Generator) -> tuple[Any, Any]:
    y = np.arange(n) % 3
    return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [3**-0.5, 3**-0.5, 3**-0.5]])[y], y


@pytest.mark.parametrize(
    ("stream", "most"), [(three_directions, 10), (ten_levels, 60), (two_ratings, 120), (in_turn, 5)]
)
def test_no_lock_up(stream: Stream, most: int) -> None:
    """Right guesses on neighbours prove "not y" where y is right; greedy guessing repeats a mistake there for ever."""
    mistakes = []
    for seed in range(10):
        X, y = stream(8000, np.random.default_rng(seed))
        trace = onebit.play(guarded(classes=int(y.max()) + 1), X, y, seed=seed, checkpoints=[4000])
        mistakes.append(trace.mistakes)
        assert trace.curve.mistakes[0] == trace.mistakes, "mistakes went on in the second half"
    assert np.mean(mistakes) <= most


def test_greedy_guessing_does_lock_up() -> None:
    X, y = in_turn(3000, np.random.default_rng(0))
    assert onebit.play(onebit.BanditSVM(None, C=math.inf, exploration="greedy", scale=None), X, y).mistakes >= 900
    assert onebit.play(guarded(None, C=math.inf), X, y).mistakes < 100


@pytest.mark.parametrize("settings", [{}, {"budget": 8}, {"C": math.inf}, {"C": 0.5}, {"kernel": [None]}], ids=str)
def test_guarantee(settings: dict[str, Any]) -> None:
    """On rows the linear kernel separates, whatever budget and softness; the mean of ten seeds, without room."""
    problem = separable_problem(600)
    margin = margin_of(problem.X, problem.y)
    numbers = {"n_classes": problem.n_classes, "n_features": problem.X.shape[1]}
    claims = guarded(**settings).promise(**numbers, radius=margin.radius, margin=margin.strong)
    promised = at_most(claims, "expected mistakes")
    runs = [onebit.play(guarded(**settings), problem.X, problem.y, seed=seed).mistakes for seed in range(10)]
    assert np.mean(runs) <= promised < math.inf


def test_what_is_promised() -> None:
    numbers: dict[str, Any] = {"n_classes": 3, "n_features": 2, "radius": 1.0, "margin": 0.1}
    productive = 16 * 100
    assert guarded([None], C=math.inf).promise(**numbers)[0].value == 11 + 22 * productive
    assert guarded(C=math.inf).promise(**numbers)[0].value == 11 + 22 * (5 * productive + 4)
    assert guarded(C=100.0).promise(**numbers)[0].value == 11 + 22 * (5 * 1608 + 4)
    assert guarded(scale="online").promise(**numbers) == (), "the margin is not that of the scaled rows"
    assert guarded(Rational(normalize=True)).promise(**numbers) == (), "no linear kernel"
    assert guarded(None).promise(**numbers) == (), "a soft margin without a kernel may forget"


def test_powers_are_had_by_squaring() -> None:
    gaussians = (Gaussian(width, normalize=True) for width in (1.0, 0.5, 0.25))
    kernels = (*gaussians, Laplace(), Linear(normalize=True))
    bank = new_bank(kernels, 5)
    assert bank.bases == (kernels[0], kernels[3], kernels[4])
    assert bank.numbers.plan[:3].tolist() == [[0, 0, 0], [0, 2, 0], [0, 4, 0]]
    problem = noisy_problem(200)
    learner = guarded(list(kernels))
    onebit.play(learner, problem.X, problem.y)
    x = problem.X[:1]
    by_kernel = {opinion.kernel: opinion.scores for opinion in learner.opinions(x[0])}
    for kernel, coefficients in zip(kernels, learner.coefficients_, strict=True):
        expected = (kernel(x, learner.support_) @ coefficients)[0]
        assert by_kernel[kernel] == pytest.approx(expected, abs=1e-9)


def test_opinions() -> None:
    problem = noisy_problem(300, n_classes=4)
    learner = guarded(classes=["a", "b", "c", "d"])
    onebit.play(learner, problem.X, np.array(list("abcd"))[problem.y])
    opinions = learner.opinions(problem.X[0])
    assert {opinion.kernel for opinion in opinions} == set(learner.bank_)
    assert sum(opinion.weight for opinion in opinions) == pytest.approx(1.0)
    assert [opinion.weight for opinion in opinions] == sorted((o.weight for o in opinions), reverse=True)
    for opinion in opinions:
        assert opinion.label == learner.classes_[np.argmax(opinion.scores)]
    votes = sum(opinion.weight * np.clip(opinion.scores, -2.0, 2.0) for opinion in opinions)
    scores = learner.decision_function(problem.X[:1])[0]
    assert np.all((scores - votes > 0.0) & (scores - votes <= 0.05)), "beside the vote, a preference for what is new"


def test_the_linear_kernel_forgets_nothing() -> None:
    """What is removed from the store stays in its weights: its opinion does not change."""
    problem = noisy_problem(300)
    learner = guarded([None, Gaussian(0.5, normalize=True)], budget=20)
    onebit.play(learner, problem.X, problem.y)
    memory: Any = learner._memory
    x = problem.X[0]

    def opinions() -> dict[Any, Any]:
        return {opinion.kernel: opinion.scores for opinion in learner.opinions(x)}

    before = opinions()
    memory.arrays.weight[:] = np.arange(20) + 1.0
    memory.arrays.counts[bank_facts.REMOVED] = 1
    bank_facts.make_place(memory.arrays, memory.bank.numbers.plan, memory.sight)
    after = opinions()
    linear, other = learner.bank_
    assert after[linear] == pytest.approx(before[linear], abs=1e-9)
    assert np.abs(after[other] - before[other]).max() > 1e-6


@pytest.mark.parametrize("kernel", ["auto", None])
def test_columns_may_have_any_scale_and_offset(kernel: Any) -> None:
    problem = noisy_problem(400)
    powers = np.ldexp(1.0, np.array([-300, 0, 20, 300, 5, -7])[: problem.X.shape[1]])
    expected = onebit.play(guarded(kernel, scale="online"), problem.X, problem.y, keep_guesses=True)
    scaled = onebit.play(guarded(kernel, scale="online"), problem.X * powers, problem.y, keep_guesses=True)
    assert np.array_equal(expected.guesses, scaled.guesses)  # type: ignore[arg-type]
    raw = 1e4 + 1e-2 * problem.X
    shifted = onebit.play(guarded(kernel, scale="online"), raw, problem.y).mistakes
    as_they_are = onebit.play(guarded(kernel), raw, problem.y).mistakes
    assert shifted <= 1.2 * expected.mistakes + 5 < as_they_are


def test_a_kernel_of_ones_own_is_scaled_too() -> None:
    def shifted(X: Any, Y: Any) -> Any:
        return (1.0 + X @ Y.T) ** 2

    problem = noisy_problem(120)
    whole, by_round = (guarded([shifted, None], scale="online", budget=40) for _ in range(2))
    first = onebit.play(whole, problem.X, problem.y, keep_guesses=True).guesses
    second = onebit.play(by_round, problem.X, problem.y, keep_guesses=True, engine="rounds").guesses
    assert np.array_equal(first, second)  # type: ignore[arg-type]
    memory: Any = whole._memory
    stored = memory.arrays.features[:, : memory.size].T
    assert memory.arrays.grams[0][: memory.size, : memory.size] == pytest.approx(shifted(stored, stored))


def test_many_features_are_left_to_the_linear_space() -> None:
    X = scipy.sparse.random_array((50, 2**20), density=1e-5, rng=np.random.default_rng(0), format="csr")
    learner = guarded(scale="online", classes=2)
    onebit.play(learner, X, np.arange(50) % 2)
    assert learner.bank_ == (None,)
    assert learner.weights_.shape == (2, 2**20 + 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": []}, "kernel .*empty"),
        ({"kernel": "rbf"}, "kernel .*auto.*rbf"),
        ({"scale": "standard"}, "scale .*online.*standard"),
        ({"exploration": "never"}, "exploration .*guarded.*never"),
    ],
    ids=str,
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        onebit.BanditSVM(classes=2, **settings).guess([1.0])


@pytest.mark.parametrize("kernel", ["auto", None, Laplace()], ids=str)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("scale", [None, "online"])
def test_features_that_are_no_numbers_are_refused(kernel: Any, bad: float, scale: str | None) -> None:
    with pytest.raises(ValueError, match="features"):
        guarded(kernel, scale=scale, classes=2).guess([bad, 1.0])


@pytest.mark.parametrize("kernel", ["auto", None])
@pytest.mark.parametrize("size", [2.0**-1060, 2.0**1023])
def test_columns_may_be_as_small_or_as_large_as_floats(kernel: Any, size: float) -> None:
    X = np.random.default_rng(0).integers(-1000, 1000, size=(100, 3)) / 1024.0
    y = (X[:, 0] > 0.0).astype(int)
    expected = onebit.play(guarded(kernel, scale="online"), X, y, keep_guesses=True).guesses
    guesses = onebit.play(guarded(kernel, scale="online"), X * size, y, keep_guesses=True).guesses
    assert np.array_equal(expected, guesses)  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", ["auto", None])
def test_columns_may_grow_beyond_all_measure(kernel: Any) -> None:
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(300, 3))
    y = (X[:, 0] > 0.0).astype(int)
    X[:40] *= 1e-300
    X[40:] *= 1e300
    assert onebit.play(guarded(kernel, scale="online"), X, y).mistakes < 100


def test_a_list_names_each_kernel_once() -> None:
    """Two linear kernels would keep what was removed in the same weights."""
    with pytest.raises(ValueError, match="once"):
        guarded([None, Linear(normalize=True)], classes=2).guess([1.0])


def test_rows_that_are_scaled_may_be_longer_than_1() -> None:
    with pytest.raises(ValueError, match="normalize=True"):
        guarded(Rational(), scale="online", classes=2).guess([1.0])


def test_opinions_are_those_of_the_bank_that_plays() -> None:
    learner = guarded(classes=2)
    with pytest.raises(ValueError, match="has not played"):
        learner.opinions([1.0, 2.0])
    learner.tell(learner.guess([1.0, 2.0]), False)
    learner.set_params(kernel=[None])
    assert len(learner.opinions([1.0, 2.0])) == len(learner.bank_) == 5


def test_a_productive_fact_counts_whatever_its_example_displaces() -> None:
    """Making room changes opinions; what was productive by those the guess was made from must be counted."""
    generator = np.random.default_rng(0)
    learner = guarded(Gaussian(width=0.5, normalize=True), budget=3, classes=3)
    for _ in range(300):
        guess = learner.guess(generator.normal(size=2))
        memory: Any = learner._memory
        opinion, before = memory.sight.opinions[0].copy(), memory.arrays.productive[0]
        learner.tell(guess, False)
        assert memory.arrays.productive[0] - before == (opinion[guess.index] > -0.5)


def test_scores_are_those_a_guess_is_made_from() -> None:
    problem = noisy_problem(50)
    learner = guarded(None)
    onebit.play(learner, problem.X, problem.y)
    guess = learner.guess(problem.X[0])
    assert learner.decision_function(problem.X[:1])[0] == pytest.approx(guess.scores, abs=1e-12)


def test_sparse_rows_are_not_made_dense_all_at_once() -> None:
    X = scipy.sparse.random_array((2000, 5000), density=1e-4, rng=np.random.default_rng(0), format="csr")
    learner = guarded(classes=2)
    learner.guess(X[[0]])
    tracemalloc.start()
    learner._memory.prepare(check_rows(X))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
