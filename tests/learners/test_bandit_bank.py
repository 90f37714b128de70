"""The bank of BanditSVM: no lock-up, the guarantee as an oracle, raw columns, and what each kernel says."""

import copy
import itertools
import math
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sklearn.base
from threadpoolctl import threadpool_limits

import onebit
from lock_ups import lock_up_problem
from onebit.bounds import at_most
from onebit.checks.problems import noisy_problem, separable_problem
from onebit.engine.jit import jit
from onebit.engine.lengths import unit_rows
from onebit.kernels import Gaussian, Laplace, Linear, Polynomial, Rational
from onebit.learners import saving
from onebit.learners.bandit_svm import bandit_svm, bank, playing, store, vote
from onebit.learners.bandit_svm.bandit_svm import plan_members
from onebit.learners.bandit_svm.separators import LENGTH, N_ENTRIES, OF_UNITS
from onebit.learners.bandit_svm.vote import (
    ASKED,
    BASE,
    DUE,
    IS_LINEAR,
    REMOVED,
    SEEN,
    SQUARINGS,
    TRUST,
    BankArrays,
    BankScratch,
    Settings,
)
from onebit.learners.base import in_linear_space
from onebit.theory import margin as margin_of


def guarded(kernel: Any = "auto", **settings: Any) -> onebit.BanditSVM:
    """Return the learner on rows as they are."""
    return onebit.BanditSVM(kernel, **{"scale": None, **settings})


@pytest.mark.parametrize(
    ("name", "most"), [("three directions", 10), ("ten levels", 60), ("two ratings", 120), ("rows in turn", 5)]
)
@pytest.mark.parametrize("scale", [None, "online"])
def test_no_lock_up(name: str, most: int, scale: str | None) -> None:
    """Right guesses on neighbours prove "not y" where y is right; greedy guessing repeats a mistake there for ever."""
    mistakes = []
    for seed in range(10):
        problem = lock_up_problem(name, 8000, seed)
        learner = guarded(scale=scale, classes=problem.n_classes)
        trace = onebit.play(learner, problem.X, problem.y, seed=seed, checkpoints=[4000])
        mistakes.append(trace.mistakes)
        assert trace.curve.mistakes[0] == trace.mistakes, "mistakes went on in the second half"
    assert np.mean(mistakes) <= most


def test_greedy_guessing_does_lock_up() -> None:
    stuck = []
    for seed in range(5):
        X, y, n_classes, *_ = lock_up_problem("ten levels", 3000, seed)
        settings: dict[str, Any] = {"scale": None, "classes": n_classes, "C": 100.0}
        stuck.append(
            onebit.play(
                onebit.BanditSVM(list(bandit_svm._DEFAULT_BANK), exploration="greedy", **settings), X, y, seed=seed
            ).mistakes
        )
        assert onebit.play(onebit.BanditSVM(**settings), X, y, seed=seed).mistakes < 150
    assert max(stuck) > 600


@pytest.mark.parametrize(
    "settings",
    [{}, {"budget": 8}, {"C": math.inf}, {"C": 0.5}, {"kernel": [None]}, {"scale": "online"}],
    ids=str,
)
def test_guarantee(settings: dict[str, Any]) -> None:
    """On rows the linear kernel separates, whatever budget and softness; the mean of ten seeds, without room."""
    problem = separable_problem(600)
    margin = margin_of(problem.X, problem.y)
    numbers = {"n_classes": problem.n_classes, "n_features": problem.X.shape[1]}
    claims = guarded(**settings).promise(**numbers, radius=margin.radius, margin=margin.strong)
    promised = at_most(claims, "expected mistakes")
    runs = [onebit.play(guarded(**settings), problem.X, problem.y, seed=seed).mistakes for seed in range(10)]
    assert np.mean(runs) <= promised < math.inf


def test_the_guard_cannot_be_fooled_by_the_scale() -> None:
    """Its weights are those of rows as they came, whatever the scale, the budget and the drift alarms did meanwhile."""
    problem = separable_problem(500, margin=0.1)
    X = problem.X.copy()
    X[250:] *= np.ldexp(1.0, 40)  # every column changes its scale half-way
    learner = onebit.BanditSVM(budget=5)
    onebit.play(learner, X, problem.y)
    state: Any = learner._state
    learner.opinions(X[7])
    expected = unit_rows(X[7:8])[0] @ state.arrays.guard
    assert state.scratch.opinions[-1] == pytest.approx(expected, abs=1e-12)
    margin = margin_of(problem.X, problem.y)
    productive = math.floor(16 * 1.05 * (margin.radius / margin.strong) ** 2)
    assert 0 < state.arrays.members[-1, vote.PRODUCED] <= productive


def test_what_is_promised() -> None:
    numbers: dict[str, Any] = {"n_classes": 3, "n_features": 2, "radius": 1.0, "margin": 0.1}
    productive = 16 * 100
    assert guarded([None], C=math.inf).promise(**numbers)[0].value == 11 + 62 * productive
    m = len(bandit_svm._DEFAULT_BANK)
    assert guarded(C=math.inf).promise(**numbers)[0].value == 11 + 62 * (m * productive + m - 1)
    assert guarded(C=100.0).promise(**numbers)[0].value == 11 + 62 * (m * 1608 + m - 1)
    by_default = onebit.BanditSVM().promise(**numbers)[0].value
    assert by_default == 11 + 62 * ((m + 1) * 1680 + m), "the guard is one more"
    assert onebit.BanditSVM(Rational(normalize=True)).promise(**numbers)[0].value == 11 + 62 * (2 * 1680 + 1)
    assert onebit.BanditSVM(exploration="greedy").promise(**numbers) == ()
    assert guarded(Rational(normalize=True)).promise(**numbers) == (), "no linear kernel"
    soft = guarded(None).promise(**numbers)[0].value
    assert soft == 11 + 62 * 1680, "weights are kept when old facts are forgotten"
    assert onebit.BanditSVM(None).promise(**numbers) == (), "scaled columns are other rows, and there is no guard"
    uniform = guarded(None, C=math.inf, exploration="uniform").promise(**numbers)[0].value
    assert uniform == 2 * 400
    assert guarded(None, exploration="uniform").promise(**numbers) == (), "a soft margin"


def test_a_banks_promise_is_checked() -> None:
    """It is about rows as they are, so contract checks and duels may ask for it; a kernel's is about its space."""
    assert in_linear_space(guarded())
    assert in_linear_space(guarded([Gaussian(), None]))
    assert not in_linear_space(guarded(Gaussian()))


def planned(*kernels: Any) -> tuple[Any, Settings]:
    """Return the kernels with values of their own, and what compiled code is told about a bank of these."""
    return plan_members(kernels, onebit.BanditSVM()._checked_settings(), 5)


def test_powers_are_had_by_squaring() -> None:
    gaussians = (Gaussian(width, normalize=True) for width in (1.0, 0.5, 0.25))
    kernels = (*gaussians, Laplace(), Linear(normalize=True))
    assert Laplace(12.0) not in kernels
    bases, settings = planned(*kernels, Laplace(12.0))
    assert bases == (kernels[0], kernels[3], kernels[4])
    assert settings.plan[:3].tolist() == [[0, 0, 0], [0, 2, 0], [0, 4, 0]]
    assert settings.plan[5].tolist() == [1, 2, 0]
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
    leader = opinions[0].scores
    others = np.delete(leader, np.argmax(leader))
    if leader.max() >= 0.5 and others.max() <= 0.0:  # it is sure, and guesses alone
        opinions = [opinions[0]._replace(weight=1.0)]
    votes = np.sum([opinion.weight * np.clip(opinion.scores, -2.0, 2.0) for opinion in opinions], axis=0)
    scores = learner.decision_function(problem.X[:1])[0]
    most = 0.1 if votes.max() >= 0.0 else 0.4
    assert np.all((scores - votes > 0.0) & (scores - votes <= most)), "beside the vote, a preference for what is new"


def test_what_is_proved_of_the_stored_examples_is_so() -> None:
    X, y = onebit.streams.paper_weak(rounds=300, seed=1)
    learner = onebit.BanditSVM()
    with pytest.raises(AttributeError, match="has played"):
        _ = learner.proved_
    onebit.play(learner, X, y, seed=1)
    support, proved = learner.support_, learner.proved_
    assert proved.shape == (len(support), 3)
    for row, facts in zip(support, proved.tolist(), strict=True):
        (at,) = np.flatnonzero((row == X).all(axis=1))
        if 1 in facts:
            assert facts == [1 if label == y[at] else -1 for label in range(3)]
        else:
            assert -1 in facts
            assert facts[y[at]] == 0


def test_guesses_do_not_depend_on_the_number_of_threads() -> None:
    problem = noisy_problem(1_100, 10, 20)
    played = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            learner = onebit.BanditSVM()
            onebit.play(learner, problem.X, problem.y)
            played.append(learner.coefficients_)
    assert np.array_equal(played[0], played[1])


@jit
def store_row(state: BankArrays, scratch: BankScratch, settings: Settings) -> int:
    return store.store_row(state, scratch, settings)


def test_the_linear_kernel_forgets_nothing() -> None:
    """What is removed from the store stays in its weights: its opinion does not change."""
    problem = noisy_problem(300)
    learner = guarded([None, Gaussian(0.5, normalize=True)], budget=20)
    onebit.play(learner, problem.X, problem.y)
    state: Any = learner._state
    x = problem.X[0]

    def opinions() -> dict[Any, Any]:
        return {opinion.kernel: opinion.scores for opinion in learner.opinions(x)}

    before = opinions()
    state.scratch.targets[:] = 0.0
    store_row(state.arrays, state.scratch, state.settings)
    after = opinions()
    linear, other = learner.bank_
    assert after[linear] == pytest.approx(before[linear], abs=1e-9)
    assert np.abs(after[other] - before[other]).max() > 1e-6


@jit
def place_to_free(state: BankArrays, scratch: BankScratch, settings: Settings) -> int:
    return store.place_to_free(state, scratch, settings)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.5), Polynomial(2), [Gaussian(2.0), Gaussian(0.5), Laplace()], [None, Rational(normalize=True)]],
)
def test_the_example_makes_room_whose_projection_loses_least(kernel: Any) -> None:
    """The norm of what is lost is computed anew from coefficients and kernel values, for every example."""
    problem = noisy_problem(300)
    learner = guarded(kernel, budget=20)
    onebit.play(learner, problem.X, problem.y)
    state: Any = learner._state
    arrays, plan, trust = state.arrays, state.settings.plan, state.trust
    assert arrays.counts[REMOVED] > 50
    if plan[np.argmax(trust), IS_LINEAR]:
        assert place_to_free(arrays, state.scratch, state.settings) == arrays.counts[REMOVED] % 20
        trust = arrays.members[:, TRUST] = [0.5, 1.0]
    is_kernel = plan[:, IS_LINEAR] == 0
    lost = np.zeros(20)
    for k in np.flatnonzero(is_kernel):
        gram = arrays.grams[plan[k, BASE]] ** (2.0 ** plan[k, SQUARINGS])
        others = np.where(np.eye(20, dtype=bool), -np.inf, gram)
        nearest = others.argmax(axis=1)
        norms = (arrays.coefficients[k] ** 2).sum(axis=1)
        assert arrays.importance[k] == pytest.approx(norms, rel=1e-9, abs=1e-12)
        rest = np.diag(gram) - others.max(axis=1) ** 2 / np.diag(gram)[nearest]
        lost += trust[k] / np.max(np.asarray(trust)[is_kernel]) * norms * rest
    assert lost[place_to_free(arrays, state.scratch, state.settings)] == pytest.approx(lost.min(), rel=1e-6, abs=1e-12)


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
    state: Any = learner._state
    assert np.abs(state.arrays.coefficients).max() > 1e154
    assert np.isfinite(state.arrays.importance).all()
    learner.save(tmp_path / "large.onebit")
    onebit.load(tmp_path / "large.onebit")


@pytest.mark.parametrize("kernel", ["auto", None])
def test_columns_may_have_any_scale_and_offset(kernel: Any) -> None:
    problem = noisy_problem(400)
    powers = np.ldexp(1.0, np.array([-300, 0, 20, 300, 5, -7])[: problem.X.shape[1]])
    expected = onebit.play(guarded(kernel, scale="online"), problem.X, problem.y, keep_guesses=True)
    scaled = onebit.play(guarded(kernel, scale="online"), problem.X * powers, problem.y, keep_guesses=True)
    if kernel is None:
        assert np.array_equal(expected.guesses, scaled.guesses)  # type: ignore[arg-type]
    else:  # the guard sees rows as they come, and has a say where the vote goes wrong too often
        assert scaled.mistakes <= 1.2 * expected.mistakes
    separable = separable_problem(400)
    raw = 1e4 + 1e-2 * separable.X
    shifted = onebit.play(guarded(kernel, scale="online"), raw, separable.y).mistakes
    as_they_are = onebit.play(guarded(kernel), raw, separable.y).mistakes
    assert 2 * shifted < as_they_are


def test_a_kernel_of_ones_own_is_scaled_too() -> None:
    def shifted(X: Any, Y: Any) -> Any:
        return (1.0 + X @ Y.T) ** 2

    problem = noisy_problem(120)
    whole, by_round = (guarded([shifted, None], scale="online", budget=40) for _ in range(2))
    first = onebit.play(whole, problem.X, problem.y, keep_guesses=True).guesses
    second = onebit.play(by_round, problem.X, problem.y, keep_guesses=True, engine="rounds").guesses
    assert np.array_equal(first, second)  # type: ignore[arg-type]
    state: Any = whole._state
    stored = (state.arrays.units * state.arrays.examples[LENGTH])[:, : state.size].T
    assert state.arrays.grams[0][: state.size, : state.size] == pytest.approx(shifted(stored, stored))


@pytest.mark.slow
def test_many_features_are_left_to_the_linear_space() -> None:
    X = scipy.sparse.random_array((50, 2**20), density=1e-5, rng=np.random.default_rng(0), format="csr")
    learner = guarded(scale="online", classes=2)
    onebit.play(learner, X, np.arange(50) % 2)
    assert learner.bank_ == (Linear(normalize=True),)
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


@pytest.mark.parametrize(("kernel", "budget"), [(None, 50), (None, 2000), ([None], 50)], ids=str)
@pytest.mark.parametrize("power", [20, 60])
def test_weights_do_not_grow_with_the_columns(kernel: Any, budget: int, power: int) -> None:
    """What forgotten examples left, and even its rounding errors, would drown what is learned on the new scale."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(3000, 4))
    y = np.argmax(X @ generator.normal(size=(4, 3)), axis=1)
    X[600:] *= np.ldexp(1.0, power)
    learner = guarded(kernel, scale="online", budget=budget)
    onebit.play(learner, X, y)
    state: Any = learner._state
    assert np.abs(state.arrays.weights).max() < 100.0


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
    assert len(learner.opinions([1.0, 2.0])) == len(learner.bank_) == len(bandit_svm._DEFAULT_BANK)


def test_a_productive_fact_counts_whatever_its_example_displaces() -> None:
    """Making room changes opinions; what was productive by those the guess was made from must be counted."""
    generator = np.random.default_rng(0)
    learner = guarded(Gaussian(width=0.5, normalize=True), budget=3, classes=3)
    for _ in range(300):
        guess = learner.guess(generator.normal(size=2))
        state: Any = learner._state
        opinion, before = state.scratch.opinions[0].copy(), state.arrays.members[0, vote.PRODUCED]
        learner.tell(guess, False)
        assert state.arrays.members[0, vote.PRODUCED] - before == (opinion[guess.index] > -0.5)


def test_scores_are_those_a_guess_is_made_from() -> None:
    problem = noisy_problem(50)
    learner = guarded(None)
    onebit.play(learner, problem.X, problem.y)
    guess = learner.guess(problem.X[0])
    assert learner.decision_function(problem.X[:1])[0] == pytest.approx(guess.scores, abs=1e-12)


def test_sparse_rows_are_not_made_dense_all_at_once() -> None:
    X = scipy.sparse.random_array((4000, 5000), density=1e-4, rng=np.random.default_rng(0), format="csr")
    learner = guarded(classes=2, budget=10)
    learner.guess(X[[0]])
    tracemalloc.start()
    onebit.play(learner, X, np.arange(4000) % 2, fresh=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * 4000 * 5000 * 8


def test_a_sure_leader_guesses_alone() -> None:
    """In rounds that teach nothing one kernel is asked; the others are, as soon as the guess was wrong."""
    problem = separable_problem(400, margin=0.3)
    learner = guarded(classes=3)
    onebit.play(learner, problem.X, problem.y)
    state: Any = learner._state
    alone = 0

    def asked() -> Any:
        return state.scratch.flags[ASKED : ASKED + len(learner.bank_)]

    for x, label in zip(problem.X[:50], problem.y[:50], strict=True):
        guess = learner.guess(x)
        n_asked = int(asked().sum())
        if n_asked == 1:
            alone += 1
            members = state.arrays.members.copy()
            learner.tell(guess, True)
            assert np.array_equal(state.arrays.members, members), "nobody else was asked, so nobody can be judged"
            other = copy.deepcopy(learner)
            other.tell(other.guess(x), False)
            assert other._state.scratch.flags[ASKED : ASKED + len(learner.bank_)].all()
        else:
            assert n_asked == len(learner.bank_)
            learner.tell(guess, bool(guess.label == label))
    assert alone > 10
    for opinion in learner.opinions(problem.X[0]):
        assert np.isfinite(opinion.scores).all()


def test_no_mistake_on_a_row_is_repeated_where_all_labels_are_denied() -> None:
    learner = guarded(classes=6)
    x, tried = [0.3, -0.7], []
    for _ in range(5):
        guess = learner.guess(x)
        tried.append(guess.label)
        learner.tell(guess, False)
    assert len(set(tried)) == 5
    last = learner.guess(x).label
    assert last not in tried
    assert learner.predict([x])[0] == last


def test_labels_are_passed_over_however_far_scores_are_apart() -> None:
    """One kernel's scores are not clipped: on long rows they differ by thousands."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(12, 2)) * generator.choice([0.1, 1.0, 10.0, 100.0], size=(12, 1))
    labels, drawn = generator.integers(6, size=12), generator.integers(12, size=3000)
    learner = guarded(Polynomial(3), C=100.0, classes=6)
    assert onebit.play(learner, rows[drawn], labels[drawn], seed=0).mistakes < 12 * 6
    guess = learner.guess(rows[0])
    assert learner.decision_function(rows[:1])[0] == pytest.approx(guess.scores, rel=1e-6)


@pytest.mark.parametrize("kernel", ["auto", None], ids=repr)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_what_is_stored_is_scaled_anew(kernel: Any, is_sparse: bool) -> None:
    """After each change of the scale all that is kept of the examples is what it would be had they come just now."""
    problem = noisy_problem(128)
    X: Any = np.where(problem.X > -0.1, 3.0 + 10.0 * problem.X, 0.0)
    rows = scipy.sparse.csr_array(X) if is_sparse else X
    learner = guarded(kernel, scale="online")
    onebit.play(learner, rows, problem.y)
    state: Any = learner._state
    assert state.arrays.counts[SEEN + is_sparse] == 128, "the scale has just changed"
    spread = np.sqrt((X**2).mean(axis=0)) if is_sparse else X.std(axis=0)
    centre = 0.0 if is_sparse else X.mean(axis=0)

    def seen(raw: Any) -> Any:
        return unit_rows(np.column_stack([(raw - centre) / spread, np.ones(len(raw))]))

    if kernel is None:
        for s in range(state.size):
            n = int(state.arrays.examples[N_ENTRIES, s])
            raw = np.zeros((1, 5))
            raw[0, state.arrays.columns[s, : n - 1]] = state.arrays.raws[s, : n - 1]
            found = np.zeros(6)
            found[state.arrays.columns[s, :n]] = state.arrays.values[s, :n]
            assert found == pytest.approx(seen(raw)[0], abs=1e-9)
    else:
        stored = seen(learner.support_)
        assert pytest.approx(stored, abs=1e-9) == state.arrays.units[:, : state.size].T
        for k, used in enumerate(learner.bank_):
            if isinstance(used, Gaussian):
                expected = used(stored) @ state.arrays.coefficients[k, : state.size]
                assert pytest.approx(expected, abs=1e-8) == state.arrays.scores[k, :, : state.size].T


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
    with pytest.raises(ValueError, match="NaN or infinite"):
        onebit.play(guarded(kernel), unit_rows(problem.X) * size, problem.y)


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


def test_looking_changes_nothing_where_a_kernel_of_ones_own_is_scaled() -> None:
    """After a change of the scale Python compares the stored examples anew, whoever asks first."""

    def shifted(X: Any, Y: Any) -> Any:
        return (1.0 + X @ Y.T) ** 2

    problem = noisy_problem(64)
    learner = guarded([shifted, None], scale="online", replays=0)
    onebit.play(learner, problem.X, problem.y)
    assert learner._state.arrays.counts[SEEN] == 64, "the scale has just changed"
    before = learner.learned()
    scores = learner.decision_function(problem.X[:5])
    learner.probabilities(problem.X[0])
    after = learner.learned()
    assert np.array_equal(before["coefficients"], after["coefficients"])
    assert learner.decision_function(problem.X[:5]) == pytest.approx(scores)
    assert learner.guess(problem.X[0]).scores == pytest.approx(scores[0], abs=1e-9)


def test_a_new_scale_takes_paper_of_its_own() -> None:
    """Ctrl-C between new arrays and their paper: what is there may be too small, and compiled code does not look."""
    problem = noisy_problem(64)
    learner = guarded(scale="online", classes=problem.n_classes)
    for x, label in zip(problem.X, problem.y, strict=True):
        learner.tell(guess := learner.guess(x), guess.index == label)
    whole = copy.deepcopy(learner)
    state: Any = learner._state
    assert state.arrays.counts[DUE], "no scale is due"
    small = state._new_state(problem.X.shape[1], has_regressions=True)
    state.scratch = state._scratch_for(small)
    assert np.array_equal(learner.decision_function(problem.X), whole.decision_function(problem.X))
    capacity = state.arrays.examples.shape[1]
    assert state.scratch.lines.shape[1] == capacity > small.examples.shape[1]


def test_an_answer_is_heard_once_though_a_new_scale_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while stored examples are scaled anew: the answer is in, its ticket is crossed off, the scale is due."""

    def break_off(*_: Any, **_named: Any) -> None:
        raise KeyboardInterrupt

    problem = noisy_problem(16)
    broken, whole = (guarded(scale="online", classes=problem.n_classes) for _ in range(2))
    for t, (x, label) in enumerate(zip(problem.X, problem.y, strict=True)):
        guess = broken.guess(x)
        with monkeypatch.context() as patched:
            if t == 7:  # the eighth row brings a new scale
                patched.setattr(bank.BankState, "_refit", break_off)
            broken.tell(guess, guess.index == label)
            if t == 7:
                with pytest.raises(KeyboardInterrupt):
                    broken.decision_function(problem.X[:1])
                with pytest.raises(KeyboardInterrupt):
                    broken.guess(problem.X[t + 1])
        with pytest.raises(ValueError, match="told once"):
            broken.tell(guess, True)
        expected = whole.guess(x)
        whole.tell(expected, expected.index == label)
        assert broken.decision_function(problem.X) == pytest.approx(whole.decision_function(problem.X), abs=0.0)
    state: Any = broken._state
    assert state.arrays.counts[SEEN:].tolist() == [16, 0]


def test_a_kernel_that_refuses_a_new_scale_keeps_the_old_one() -> None:
    def narrow(X: Any, Y: Any) -> Any:
        if len(Y) > 1 and np.abs(Y).max() > 1.5:
            raise ValueError("too far out")
        return 1.0 + X @ Y.T

    problem = noisy_problem(40)
    learner = guarded([narrow, None], scale="online", classes=problem.n_classes)
    for x, label in zip(problem.X, problem.y, strict=True):
        guess = learner.guess(x)
        learner.tell(guess, guess.index == label)
    state: Any = learner._state
    assert state.arrays.counts[SEEN:].tolist() == [40, 0]
    assert np.abs(state._stored(state.arrays)).max() <= 1.5


@pytest.mark.parametrize(
    ("kernel", "is_left_out"),
    [
        ("auto", True),
        ([Laplace(), Polynomial(3, normalize=True)], True),
        (Gaussian(0.7), False),  # its values depend on which of two rows came first, in their last bits
    ],
)
def test_a_file_leaves_out_what_follows_from_the_rest(tmp_path: Path, kernel: Any, is_left_out: bool) -> None:
    problem = noisy_problem(400, 4, 5)
    learner = onebit.BanditSVM(kernel, budget=40)  # so that examples go, and others take their places
    onebit.play(learner, problem.X, problem.y)
    assert learner._state.arrays.counts[REMOVED] > 50
    learner.save(tmp_path / "bank.onebit")
    with zipfile.ZipFile(tmp_path / "bank.onebit") as archive:
        assert ("state/grams.npy" not in archive.namelist()) == is_left_out
    loaded = onebit.load(tmp_path / "bank.onebit")
    for name, mine, theirs in zip(BankArrays._fields, loaded._state.arrays, learner._state.arrays, strict=True):
        assert np.array_equal(mine, theirs), name


def test_a_file_leaves_out_no_more_than_a_file_may_ask_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = noisy_problem(100, 4, 5)
    learner = onebit.BanditSVM(budget=40)
    onebit.play(learner, problem.X, problem.y)
    learner.save(tmp_path / "small.onebit")
    monkeypatch.setattr(saving, "_MOST_REBUILT", 1_000)
    learner.save(tmp_path / "large.onebit")
    assert onebit.load(tmp_path / "large.onebit").n_rounds_ == 100
    with pytest.raises(ValueError, match="it leaves out grams"):
        onebit.load(tmp_path / "small.onebit")


def test_what_is_taken_for_true_is_true_for_all() -> None:
    nearly: Any = 0.5
    (base,) = planned(Gaussian(0.7, normalize=nearly))[1].bases
    assert base[OF_UNITS]  # as for the kernel itself, and for what a file leaves out


def _count_quiet(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the length of every quiet stretch is appended; they are looked for early."""
    stretches: list[int] = []
    try_quiet = playing._try_quiet

    def count(state: Any, rows: Any, y: Any) -> int:
        stretches.append(try_quiet(state, rows, y))
        return stretches[-1]

    monkeypatch.setattr(playing, "_CALM", 64)
    monkeypatch.setattr(playing, "_AT_ONCE", 1000)
    monkeypatch.setattr(playing, "_try_quiet", count)
    return stretches


def _calm_stream(stream: Any, is_sparse: bool) -> tuple[Any, Any]:
    """Return an easy stream in which a few rows are none of theirs, some at the ends of a float's range."""
    X, y = stream(6000, 3)
    X = X.copy()
    X[3000] = 0.0
    X[3500] *= 1e-200
    X[4000:4020] = X[4000:4020] * 1e120
    X[4500] = -X[4500]  # a mistake, or something to store
    return (scipy.sparse.csr_array(X) if is_sparse else X), y


@pytest.mark.parametrize(
    ("learner", "is_sparse"),
    [
        (onebit.BanditSVM(scale=None), False),
        (onebit.BanditSVM(), False),
        (onebit.BanditSVM(), True),
        (onebit.BanditSVM(scale=None, budget=60, exploration="uniform"), True),
        (onebit.BanditSVM([Linear(normalize=True), Rational(normalize=True)], scale=None), False),
        (onebit.FullInformationSVM(), False),
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [onebit.streams.paper_strong, onebit.streams.paper_weak])
def test_quiet_rounds_are_played_in_blocks_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch, stream: Any, learner: Any, is_sparse: bool
) -> None:
    """Every array, guess and curve is the same to the last bit; also if play is broken off, and goes on."""
    X, y = _calm_stream(stream, is_sparse)
    options: dict[str, Any] = {"checkpoints": [1, 64, 65, 2500, 2501, 5999], "keep_guesses": True}
    one_by_one, in_blocks, in_pieces = (sklearn.base.clone(learner) for _ in range(3))
    monkeypatch.setattr(playing, "_CALM", len(y))
    expected = onebit.play(one_by_one, X, y, **options)
    stretches = _count_quiet(monkeypatch)
    found = onebit.play(in_blocks, X, y, **options)
    assert (sum(stretches) > 1500) != is_sparse, "sparse rows go one by one"
    for first, stop in itertools.pairwise([0, 2345, 4100, 6000]):
        onebit.play(in_pieces, X[first:stop], y[first:stop], fresh=first == 0)
    for other in (in_blocks, in_pieces):
        for name, array in one_by_one._state.arrays._asdict().items():
            np.testing.assert_array_equal(getattr(other._state.arrays, name), array, err_msg=name)
    assert found.guesses is not None
    assert expected.guesses is not None
    np.testing.assert_array_equal(found.guesses, expected.guesses)
    np.testing.assert_array_equal(found.curve.rounds, expected.curve.rounds)
    np.testing.assert_array_equal(found.curve.mistakes, expected.curve.mistakes)
    for name in ("rounds", "mistakes", "updates", "uniform_guesses"):
        assert getattr(found, name) == getattr(expected, name)


def test_a_stream_that_is_not_quiet_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stretches = _count_quiet(monkeypatch)
    problem = noisy_problem(2000)
    onebit.play(guarded(), problem.X, problem.y)
    assert len(stretches) < 20


def test_a_quiet_stretch_broken_off_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = onebit.streams.paper_strong(6000, 3)
    learner = guarded()
    onebit.play(learner, X[:2000], y[:2000])
    before = [array.copy() for array in learner._state.arrays]
    try_quiet = playing._try_quiet

    def break_off(state: Any, rows: Any, y: Any) -> int:
        if try_quiet(state, rows, y):
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr(playing, "_CALM", 64)
    monkeypatch.setattr(playing, "_try_quiet", break_off)
    with pytest.raises(KeyboardInterrupt):
        onebit.play(learner, X[2000:], y[2000:], fresh=False)
    assert learner.n_rounds_ == 2000
    for old, new in zip(before, learner._state.arrays, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("kernel", [Linear(), "auto", None], ids=str)
def test_a_sparse_row_of_zeros_is_a_row(kernel: Any) -> None:
    """Also behind a longer one, of which nothing must be left."""
    X = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0], [0.0, 1.0]] * 5)
    y = np.array([0, 1, 0, 1] * 5)
    dense, sparse = (
        onebit.play(guarded(kernel, classes=2), rows, y, keep_guesses=True).guesses
        for rows in (X, scipy.sparse.csr_array(X))
    )
    assert np.array_equal(dense, sparse)  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", ["auto", None], ids=str)
def test_how_long_later_rows_are_changes_nothing(kernel: Any) -> None:
    """Sparse rows that become longer: a stream as a whole, which is prepared for the longest, or row by row."""
    generator = np.random.default_rng(3)
    X = np.abs(generator.normal(size=(200, 40)))
    X[generator.random(X.shape) > np.linspace(0.05, 0.9, 200)[:, None]] = 0.0
    X[:, 0] = 1.0
    rows, y = scipy.sparse.csr_array(X), (X @ generator.normal(size=(40, 3))).argmax(axis=1)
    whole, by_row = (onebit.BanditSVM(kernel, classes=3) for _ in range(2))
    onebit.play(whole, rows, y, seed=3)
    for t in range(len(y)):
        onebit.play(by_row, rows[[t]], y[t : t + 1], fresh=t == 0, seed=3 if t == 0 else None)
    assert np.array_equal(whole._state.arrays.weights, by_row._state.arrays.weights)


@pytest.mark.parametrize("n_calls", [1, 2])
def test_nothing_is_lost_when_room_is_made_and_broken_off(monkeypatch: pytest.MonkeyPatch, n_calls: int) -> None:
    """Ctrl-C between new arrays and the scratch arrays that go with them; also once more while play is given back."""

    def one_hot(t: int) -> Any:
        return scipy.sparse.csr_array((np.ones(1), ([0], [t % 50])), shape=(1, 50))

    learner = guarded(None, classes=3, budget=64)
    for t in range(20):
        learner.tell(learner.guess(one_hot(t)), False)
    new_scratch, left = bank.BankState.new_scratch, [n_calls]

    def break_off(state: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise KeyboardInterrupt
        return new_scratch(state)

    monkeypatch.setattr(bank.BankState, "new_scratch", break_off)
    X = np.random.default_rng(0).normal(size=(5, 50))
    with pytest.raises(KeyboardInterrupt):
        onebit.play(learner, X, np.arange(5) % 3, fresh=False)
    left[0] = 0
    for t in range(3):
        learner.tell(learner.guess(X[t]), False)
        learner.tell(learner.guess(one_hot(t)), False)
    state: Any = learner._state
    arrays, size = state.arrays, state.size
    assert (arrays.targets[:, :size] != 0.0).any(axis=0).all(), "an example of which nothing is known"
    assert arrays.columns.shape[1] >= arrays.examples[N_ENTRIES, :size].max() == 50
