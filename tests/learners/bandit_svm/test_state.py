"""A bank's state: columns of any scale, what is rare and may be interrupted, files, memory."""

import copy
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

import onebit
from onebit.checks.problems import noisy_problem, separable_problem
from onebit.engine.scaling import unit_rows
from onebit.kernels import Gaussian, Laplace, Linear, Polynomial, Rational
from onebit.learners import saving
from onebit.learners.bandit_svm import bank, state
from onebit.learners.bandit_svm.bank import BankArrays


def guarded(kernel: Any = "auto", **settings: Any) -> onebit.BanditSVM:
    """Return the learner on rows as they are."""
    return onebit.BanditSVM(kernel, **{"scale": None, **settings})


def state_of(learner: onebit.BanditSVM) -> Any:
    return learner._state


def test_guesses_do_not_depend_on_the_number_of_threads() -> None:
    problem = noisy_problem(1_100, 10, 20)
    played = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            learner = onebit.BanditSVM()
            onebit.play(learner, problem.X, problem.y)
            played.append(learner.coefficients_)
    assert np.array_equal(played[0], played[1])


@pytest.mark.parametrize("kernel", ["auto", None])
def test_columns_may_have_any_scale_and_offset(kernel: Any) -> None:
    problem = noisy_problem(400)
    powers = np.ldexp(1.0, np.array([-300, 0, 20, 300, 5, -7])[: problem.X.shape[1]])
    expected = onebit.play(guarded(kernel, scale="online"), problem.X, problem.y, keep_guesses=True)
    scaled = onebit.play(guarded(kernel, scale="online"), problem.X * powers, problem.y, keep_guesses=True)
    if kernel is None:
        assert np.array_equal(expected.guesses, scaled.guesses)  # type: ignore[arg-type]
    else:  # the guard sees rows as they come, and counts where the vote goes wrong too often
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
    played: Any = whole._state
    stored = (played.arrays.units * played.arrays.examples[bank.LENGTH])[:, : played.size].T
    assert played.arrays.grams[0][: played.size, : played.size] == pytest.approx(shifted(stored, stored))


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
    played: Any = learner._state
    assert np.abs(played.arrays.weights).max() < 100.0


def test_sparse_rows_are_not_made_dense_all_at_once() -> None:
    X = scipy.sparse.random_array((4000, 5000), density=1e-4, rng=np.random.default_rng(0), format="csr")
    learner = guarded(classes=2, budget=10)
    learner.guess(X[[0]])
    tracemalloc.start()
    onebit.play(learner, X, np.arange(4000) % 2, fresh=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * 4000 * 5000 * 8


@pytest.mark.parametrize("kernel", ["auto", None], ids=repr)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_what_is_stored_is_scaled_anew(kernel: Any, is_sparse: bool) -> None:
    """After each change of the scale all that is kept of the examples is what it would be had they come just now."""
    problem = noisy_problem(128)
    X: Any = np.where(problem.X > -0.1, 3.0 + 10.0 * problem.X, 0.0)
    rows = scipy.sparse.csr_array(X) if is_sparse else X
    learner = guarded(kernel, scale="online")
    onebit.play(learner, rows, problem.y)
    played: Any = learner._state
    assert played.arrays.counts[bank.SEEN + is_sparse] == 128, "the scale has just changed"
    spread = np.sqrt((X**2).mean(axis=0)) if is_sparse else X.std(axis=0)
    centre = 0.0 if is_sparse else X.mean(axis=0)

    def seen(raw: Any) -> Any:
        return unit_rows(np.column_stack([(raw - centre) / spread, np.ones(len(raw))]))

    if kernel is None:
        for s in range(played.size):
            n = int(played.arrays.examples[bank.N_ENTRIES, s])
            raw = np.zeros((1, 5))
            raw[0, played.arrays.columns[s, : n - 1]] = played.arrays.raws[s, : n - 1]
            found = np.zeros(6)
            found[played.arrays.columns[s, :n]] = played.arrays.values[s, :n]
            assert found == pytest.approx(seen(raw)[0], abs=1e-9)
    else:
        stored = seen(learner.support_)
        assert pytest.approx(stored, abs=1e-9) == played.arrays.units[:, : played.size].T
        for k, used in enumerate(learner.bank_):
            if isinstance(used, Gaussian):
                expected = used(stored) @ played.arrays.coefficients[k, : played.size]
                assert pytest.approx(expected, abs=1e-8) == played.arrays.scores[k, :, : played.size].T


def test_looking_changes_nothing_where_a_kernel_of_ones_own_is_scaled() -> None:
    """After a change of the scale Python compares the stored examples anew, whichever call comes first."""

    def shifted(X: Any, Y: Any) -> Any:
        return (1.0 + X @ Y.T) ** 2

    problem = noisy_problem(64)
    learner = guarded([shifted, None], scale="online", replays=0)
    onebit.play(learner, problem.X, problem.y)
    assert learner._state.arrays.counts[bank.SEEN] == 64, "the scale has just changed"
    before = learner.learned()
    scores = learner.decision_function(problem.X[:5])
    learner.probabilities(problem.X[0])
    after = learner.learned()
    assert np.array_equal(before["coefficients"], after["coefficients"])
    assert learner.decision_function(problem.X[:5]) == pytest.approx(scores)
    assert learner.guess(problem.X[0]).scores == pytest.approx(scores[0], abs=1e-9)


def test_a_new_scale_takes_scratch_arrays_of_its_own() -> None:
    """Ctrl-C between new arrays and their scratch arrays: those may be too small, and compiled code does not look."""
    problem = noisy_problem(64)
    learner = guarded(scale="online", classes=problem.n_classes)
    for x, label in zip(problem.X, problem.y, strict=True):
        learner.tell(guess := learner.guess(x), guess.index == label)
    whole = copy.deepcopy(learner)
    played: Any = learner._state
    assert played.arrays.counts[bank.DUE], "no scale is due"
    small = bank.new_arrays(played._sizes(16, 1))
    played.scratch = played.new_scratch(small)
    assert np.array_equal(learner.decision_function(problem.X), whole.decision_function(problem.X))
    capacity = played.arrays.examples.shape[1]
    assert played.scratch.lines.shape[1] == capacity > small.examples.shape[1]


def test_an_answer_counts_once_though_a_new_scale_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while stored examples are scaled anew: the answer is in, its ticket is crossed off, the scale is due."""

    def break_off(*_: Any) -> None:
        raise KeyboardInterrupt

    problem = noisy_problem(16)
    broken, whole = (guarded(scale="online", classes=problem.n_classes) for _ in range(2))
    for t, (x, label) in enumerate(zip(problem.X, problem.y, strict=True)):
        guess = broken.guess(x)
        with monkeypatch.context() as patched:
            if t == 7:  # the eighth row brings a new scale
                patched.setattr(state.BankState, "_compare_in_python", break_off)
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
    played: Any = broken._state
    assert played.arrays.counts[bank.SEEN :].tolist() == [16, 0]


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
    played: Any = learner._state
    assert played.arrays.counts[bank.SEEN :].tolist() == [40, 0]
    assert np.abs(played._stored(played.arrays)).max() <= 1.5


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
    assert learner._state.arrays.counts[bank.REMOVED] > 50
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
    new_scratch, left = state.BankState.new_scratch, [n_calls]

    def break_off(bank_state: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise KeyboardInterrupt
        return new_scratch(bank_state)

    monkeypatch.setattr(state.BankState, "new_scratch", break_off)
    X = np.random.default_rng(0).normal(size=(5, 50))
    with pytest.raises(KeyboardInterrupt):
        onebit.play(learner, X, np.arange(5) % 3, fresh=False)
    left[0] = 0
    for t in range(3):
        learner.tell(learner.guess(X[t]), False)
        learner.tell(learner.guess(one_hot(t)), False)
    played: Any = learner._state
    arrays, size = played.arrays, played.size
    assert (arrays.targets[:, :size] != 0.0).any(axis=0).all(), "an example of which nothing is known"
    assert arrays.columns.shape[1] >= arrays.examples[bank.N_ENTRIES, :size].max() == 50


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


def test_one_row_is_learned_without_copying_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = noisy_problem(200)
    learner = onebit.BanditSVM(classes=4).fit(problem.X[:150], problem.y[:150])

    def refuse() -> None:
        raise AssertionError("the state was copied")

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


def test_the_regression_on_rows_is_given_up_where_too_many_classes_join(tmp_path: Path) -> None:
    """As if all had been there from the start: a round costs no more, and a file can be loaded."""
    x, labels = np.random.default_rng(0).normal(size=150), list(range(12))
    learner = onebit.BanditSVM(classes="grow")
    learner.tell(learner.guess(x, among=labels[:11]), correct=False)
    assert learner._state.arrays.row_changes.shape == (11, 151, 151)
    learner.tell(learner.guess(x, among=labels), correct=False)
    assert learner._state.arrays.row_changes.size == 0
    learner.save(tmp_path / "grown")
    loaded = onebit.load(tmp_path / "grown")
    assert loaded.guess(x).scores.tolist() == learner.guess(x).scores.tolist()


@pytest.mark.parametrize("kernel", ["auto", None, Gaussian(1.0), [Linear(), Laplace(2.0)], lambda a, b: a @ b.T])
def test_what_speaks_for_a_label_is_read_without_changing_the_game(kernel: Any) -> None:
    problem = noisy_problem(300)
    plain, read = onebit.BanditSVM(kernel, classes=5), onebit.BanditSVM(kernel, classes=5)
    for x, y in zip(problem.X, problem.y.tolist(), strict=True):
        guess, other = plain.guess(x), read.guess(x)
        for label in range(5):
            extra = state_of(read).extra(label)
            assert extra.shape == (state_of(read).n_extra,)
            assert np.isfinite(extra).all()
        assert guess.index == other.index
        plain.tell(guess, correct=guess.index == y)
        read.tell(other, correct=guess.index == y)
    assert all(np.array_equal(a, b) for a, b in zip(state_of(plain).arrays, state_of(read).arrays, strict=True))


@pytest.mark.parametrize("is_noisy", [True, False])
def test_what_speaks_for_a_label(is_noisy: bool) -> None:
    problem, alone, together = noisy_problem(600) if is_noisy else separable_problem(600), 0, 0
    learner = onebit.BanditSVM(classes=int(problem.y.max()) + 1)
    for x, y in zip(problem.X, problem.y.tolist(), strict=True):
        guess = learner.guess(x)
        bank_state, label = state_of(learner), guess.index
        odds, agreeing, fact, similarity, near = bank_state.extra(label).tolist()
        scratch, arrays, m = bank_state.scratch, bank_state.arrays, len(bank_state.kernels)
        if scratch.flags[bank.ASKED : bank.ASKED + m].all():
            together += 1
            assert agreeing == pytest.approx(np.mean(np.argmax(scratch.opinions[:m], axis=1) == label))
            assert near == np.clip(scratch.estimates[bank.NEAR, label], 0.0, 1.0)
            assert abs(odds) < 3.1
            values = scratch.lines[-1, : bank_state.size]
            if len(values):
                assert similarity == values.max()
                assert fact == 0.5 * arrays.targets[label, np.argmax(values)]
        else:
            alone += 1
            assert (odds, agreeing, fact, similarity, near) == (3.0, 1.0, 0.0, 0.0, 0.0)
        learner.tell(guess, correct=label == y)
    assert (together if is_noisy else alone) > 100


def test_the_confidence_in_a_row_is_that_of_a_guess_of_it() -> None:
    problem, learner = noisy_problem(160), onebit.BanditSVM(classes=5)
    for x, y in zip(problem.X[:150], problem.y[:150].tolist(), strict=True):
        guess = learner.guess(x)
        learner.tell(guess, correct=guess.index == y)
    expected = learner.confidence(problem.X[150:])
    found = [learner.guess(x) for x in problem.X[150:]]
    assert not any(guess.explored for guess in found)
    assert [guess.confidence for guess in found] == pytest.approx(expected.tolist(), abs=1e-9)
