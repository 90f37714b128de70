"""Rounds of BanditSVM: who is asked, rows at the ends of a float's range, and quiet rounds in blocks."""

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sklearn.base

import onebit
from onebit.checks.problems import noisy_problem, separable_problem
from onebit.engine.algorithm import Record
from onebit.engine.jit import in_python
from onebit.kernels import Gaussian, Laplace, Linear, Rational
from onebit.learners.bandit_svm import bank, rounds, state


def guarded(kernel: Any = "auto", **settings: Any) -> onebit.BanditSVM:
    """Return the learner on rows as they are."""
    return onebit.BanditSVM(kernel, **{"scale": None, **settings})


@pytest.mark.parametrize("kernel", ["auto", None, Laplace()], ids=str)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("scale", [None, "online"])
def test_features_that_are_no_numbers_are_refused(kernel: Any, bad: float, scale: str | None) -> None:
    with pytest.raises(ValueError, match="features"):
        guarded(kernel, scale=scale, classes=2).guess([bad, 1.0])


def test_a_productive_fact_counts_whatever_its_example_displaces() -> None:
    """Making room changes opinions; what was productive by those the guess was made from must be counted."""
    generator = np.random.default_rng(0)
    learner = guarded(Gaussian(width=0.5, normalize=True), budget=3, classes=3)
    for _ in range(300):
        guess = learner.guess(generator.normal(size=2))
        played: Any = learner._state
        opinion, before = played.scratch.opinions[0].copy(), played.arrays.members[0, bank.PRODUCED]
        learner.tell(guess, False)
        assert played.arrays.members[0, bank.PRODUCED] - before == (opinion[guess.index] > -0.5)


def test_scores_are_those_a_guess_is_made_from() -> None:
    problem = noisy_problem(50)
    learner = guarded(None)
    onebit.play(learner, problem.X, problem.y)
    guess = learner.guess(problem.X[0])
    assert learner.decision_function(problem.X[:1])[0] == pytest.approx(guess.scores, abs=1e-12)


def test_a_sure_leader_guesses_alone() -> None:
    """In rounds that teach nothing one kernel is asked; the others are, as soon as the guess was wrong."""
    problem = separable_problem(400, margin=0.3)
    learner = guarded(classes=3)
    onebit.play(learner, problem.X, problem.y)
    played: Any = learner._state
    alone = 0

    def asked() -> Any:
        return played.scratch.flags[bank.ASKED : bank.ASKED + len(learner.bank_)]

    for x, label in zip(problem.X[:50], problem.y[:50], strict=True):
        guess = learner.guess(x)
        n_asked = int(asked().sum())
        if n_asked == 1:
            alone += 1
            members = played.arrays.members.copy()
            learner.tell(guess, True)
            assert np.array_equal(played.arrays.members, members), "no other member was asked, so none can be judged"
            other = copy.deepcopy(learner)
            other.tell(other.guess(x), False)
            assert other._state.scratch.flags[bank.ASKED : bank.ASKED + len(learner.bank_)].all()
        else:
            assert n_asked == len(learner.bank_)
            learner.tell(guess, bool(guess.label == label))
    assert alone > 10
    for opinion in learner.opinions(problem.X[0]):
        assert np.isfinite(opinion.scores).all()


def _count_quiet(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the length of every quiet stretch is appended; they are looked for early."""
    stretches: list[int] = []
    play_quiet = state.BankState._play_quiet

    def count(*given: Any) -> int:
        stretches.append(play_quiet(*given))
        return stretches[-1]

    monkeypatch.setattr(state, "_CALM", 64)
    monkeypatch.setattr(state, "_AT_ONCE", 1000)
    monkeypatch.setattr(state.BankState, "_play_quiet", count)
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
    one_by_one, in_blocks, in_pieces, by_round = (sklearn.base.clone(learner) for _ in range(4))
    monkeypatch.setattr(state, "_CALM", len(y))
    expected = onebit.play(one_by_one, X, y, **options)
    stretches = _count_quiet(monkeypatch)
    found = onebit.play(in_blocks, X, y, **options)
    assert (sum(stretches) > 1500) != is_sparse, "sparse rows go one by one"
    for first, stop in itertools.pairwise([0, 2345, 4100, 6000]):
        onebit.play(in_pieces, X[first:stop], y[first:stop], fresh=first == 0)
    onebit.play(by_round, X, y, engine="rounds")
    by_round._state.do_what_is_due()
    for other in (in_blocks, in_pieces, by_round):
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
    play_quiet = state.BankState._play_quiet

    def break_off(*given: Any) -> int:
        if play_quiet(*given):
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr(state, "_CALM", 64)
    monkeypatch.setattr(state.BankState, "_play_quiet", break_off)
    with pytest.raises(KeyboardInterrupt):
        onebit.play(learner, X[2000:], y[2000:], fresh=False)
    assert learner.n_rounds_ == 2000
    for old, new in zip(before, learner._state.arrays, strict=True):
        np.testing.assert_array_equal(old, new)


def test_rounds_pass_their_checkpoints() -> None:
    counts, guesses = np.array([3, 0, 0, 0]), np.full(8, -1, dtype=np.int32)
    noted = Record(counts, np.array([2, 4, 8]), np.zeros(3, dtype=np.int64), guesses)
    for t, label in enumerate([0, 1, 2], start=1):
        in_python(rounds._write_down)(noted, t, label)
    assert noted.cumulative.tolist() == [3, 3, 0]
    assert noted.counts.tolist() == [3, 0, 0, 2]
    assert noted.guesses.tolist() == [-1, 0, 1, 2, -1, -1, -1, -1]
    for t in (4, 5, 6):
        in_python(rounds._write_down)(noted, t, 1)
    assert noted.counts[3] == 2, "the last checkpoint is a round away"


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


def test_rows_may_have_any_length_and_be_zero() -> None:
    X = np.array([[1e200, 1e200], [0.0, 0.0], [1e-200, -1e-200], [3.0, 4.0]] * 20)
    y = np.array([0, 1, 1, 0] * 20)
    for kernel in ("auto", None):
        learner = onebit.BanditSVM(kernel, C=math.inf, scale=None)
        trace = onebit.play(learner, X, y)
        assert trace.mistakes < 40
        assert all(np.isfinite(array).all() for array in learner.learned().values())


def test_landmarks_are_the_first_examples_that_are_stored() -> None:
    problem = noisy_problem(700, n_features=3)
    learner = onebit.BanditSVM(scale=None, budget=40)
    onebit.play(learner, problem.X[:100], problem.y[:100])
    state: Any = learner._state
    assert state.arrays.counts[bank.LANDMARKS] == 40, "as many as there is room for"
    before = state.arrays.landmarks.copy()
    onebit.play(learner, problem.X[100:], problem.y[100:])
    assert np.array_equal(state.arrays.landmarks, before)
    for column in before.T:
        assert (np.abs(problem.X[:100] - column).max(axis=1) < 1e-12).any()
