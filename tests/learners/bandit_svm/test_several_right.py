"""Several right labels: what is proved then, the theorems as oracles, and whether the learner finds out."""

import copy
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.bounds import at_most
from onebit.checks.problems import noisy_problem
from onebit.kernels import Gaussian, Linear
from onebit.learners.bandit_svm import bank
from onebit.streams import several_right, with_several_right


def state_of(learner: onebit.BanditSVM) -> Any:
    return learner._state


def signs(rounds: int, seed: int) -> tuple[Any, Any]:
    """Return corners of a cube, where label i is right if coordinate i is positive: the margin is 2/3 in radius 1."""
    corners = np.array([each for each in itertools.product((-1.0, 1.0), repeat=3) if max(each) > 0.0]) / math.sqrt(3.0)
    X = corners[np.random.default_rng(seed).integers(len(corners), size=rounds)]
    return X, X > 0.0


MARGIN, MOST_UPDATES = 2.0 / 3.0, 9  # ⌊4(R/γ)²⌋
HARD: dict[str, Any] = {"C": math.inf, "exploration": "uniform", "scale": None, "exclusive": False}


@pytest.mark.parametrize("learner", [onebit.BanditPerceptron(), onebit.BanditSVM(None, **HARD)], ids=repr)
def test_the_theorems_count_facts_about_guessed_labels_only(learner: onebit.Learner) -> None:
    mistakes = []
    for seed in range(60):
        X, right = signs(150, seed)
        trace = onebit.play(learner, X, right, seed=seed)
        mistakes.append(trace.mistakes)
        if isinstance(learner, onebit.BanditPerceptron):
            assert trace.updates <= MOST_UPDATES
    claims = learner.promise(n_classes=3, n_features=3, radius=1.0, margin=MARGIN)
    assert np.mean(mistakes) <= at_most(claims, "expected mistakes") == 2 * MOST_UPDATES


@pytest.mark.parametrize("settings", [{}, {"scale": None}, {"budget": 5}], ids=str)
def test_the_guarded_bank_keeps_its_bound(settings: dict[str, Any]) -> None:
    learner = onebit.BanditSVM(exclusive=False, **settings)
    claims = learner.promise(n_classes=3, n_features=3, radius=1.0, margin=MARGIN)
    bound = at_most(claims, "expected mistakes")
    for seed in range(5):
        X, right = signs(300, seed)
        assert onebit.play(learner, X, right, seed=seed).mistakes <= min(bound, 40)
        guard = state_of(learner).arrays.members[:, bank.PRODUCED]
        assert guard[-1 if "scale" not in settings else 0] <= 16 * (1 + 1 / 20) / MARGIN**2


def test_a_right_label_proves_nothing_of_a_class_that_joins() -> None:
    for exclusive, proved in ((True, [1, -1, -1]), (False, [1, 0, 0])):
        learner = onebit.BanditSVM(classes=["a", "b"], exclusive=exclusive)
        learner.learn_from([[1.0, 2.0]], ["a"], True)
        learner.add_class("c")
        assert learner.proved_.tolist() == [proved]


def test_of_two_labels_both_may_be_right() -> None:
    learner = onebit.BanditSVM(classes=2, exclusive=False)
    learner.learn_from([[1.0, 2.0], [1.0, -2.0]], [1, 1], [False, True])
    assert learner.proved_.tolist() == [[0, -1], [0, 1]]
    with pytest.raises(ValueError, match="exclusive must be True, False or"):
        onebit.BanditSVM(exclusive="perhaps").begin(2, 2)


def test_while_nothing_is_found_out_the_game_is_the_same() -> None:
    problem = noisy_problem(600)
    games = [onebit.BanditSVM(exclusive=each) for each in (True, "auto")]
    traces = [onebit.play(each, problem.X, problem.y, keep_guesses=True) for each in games]
    assert np.array_equal(np.asarray(traces[0].guesses), np.asarray(traces[1].guesses))
    assert np.array_equal(games[0].coefficients_, games[1].coefficients_)
    assert games[1].exclusive_
    assert state_of(games[0]).arrays.counts[bank.TIES] == 0 < state_of(games[1]).arrays.counts[bank.TIES]


@pytest.fixture(scope="module")
def easy() -> tuple[Any, Any]:
    """Rows of which two of four labels are right by a linear rule."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(1500, 4))
    return with_several_right((X, generator.integers(4, size=1500)), 2, seed=1)


@pytest.mark.parametrize("settings", [{}, {"kernel": [Linear(normalize=True), Gaussian()], "scale": None}], ids=str)
def test_it_finds_out(easy: tuple[Any, Any], settings: dict[str, Any], tmp_path: Path) -> None:
    X, right = easy
    learner = onebit.BanditSVM(exclusive="auto", **settings)
    trace = onebit.play(learner, X, right, seed=2, keep_guesses=True)
    assert not learner.exclusive_
    now, n = state_of(learner).arrays, state_of(learner).size
    assert not (now.targets[:, :n] == bank.IT_IS_ANOTHER).any()
    assert np.count_nonzero(now.targets[:, :n], axis=0).max() == 1
    assert trace.mistakes < onebit.play(onebit.BanditSVM(exclusive=True, **settings), X, right, seed=2).mistakes
    # By hand, with a copy and a file at every hundredth round: the same to the last bit.
    other = onebit.BanditSVM(exclusive="auto", classes=4, **settings)
    other.begin(4, 4, seed=2)
    guesses = []
    for t in range(len(X)):
        guess = other.guess(X[t])
        guesses.append(guess.index)
        other.tell(guess, bool(right[t, guess.index]))
        if t % 100 == 99:
            other.save(tmp_path / "played.onebit")
            other = onebit.load(tmp_path / "played.onebit") if t % 200 == 99 else copy.deepcopy(other)  # type: ignore[assignment]
    assert guesses == np.asarray(trace.guesses).tolist()
    assert np.array_equal(other.coefficients_, learner.coefficients_)


def test_what_is_taken_back_leaves_separators_of_what_remains(easy: tuple[Any, Any]) -> None:
    X, right = easy
    learner = onebit.BanditSVM([Linear(normalize=True), Gaussian(normalize=True)], classes=4)
    onebit.play(learner, X[:200], right[:200])
    bank_state = state_of(learner)
    bank_state.do_what_is_due()
    bank_state.arrays.counts[bank.DUE] = bank.TO_SHARE
    bank_state.do_what_is_due()
    now, n = bank_state.arrays, bank_state.size
    signed = np.sign(now.targets[:, :n]) * now.alphas[:, :, :n]
    assert np.allclose(now.coefficients[:, :n], signed.transpose(0, 2, 1), atol=1e-9)
    assert np.allclose(now.sums[:, bank.TOTAL], now.alphas[:, :, :n].sum(axis=2), atol=1e-9)
    assert np.allclose(now.sums[:, bank.SUPPORT], (now.alphas[:, :, :n] > 0).sum(axis=2))
    assert np.allclose(now.importance[:, :n], (now.coefficients[:, :n] ** 2).sum(axis=2))
    assert np.allclose(now.weights, now.units[:, :n] @ now.coefficients[0, :n], atol=1e-9)
    gram = now.grams[1, :n, :n]
    assert np.allclose(now.scores[1, :, :n], (gram @ now.coefficients[1, :n]).T, atol=1e-9)


def test_ties_that_others_decided_are_no_evidence(easy: tuple[Any, Any]) -> None:
    X, right = easy
    learner = onebit.BanditSVM(exclusive="auto", classes=4)
    learner.learn_from(X[:300], right[:300].argmax(axis=1), True)
    assert state_of(learner).arrays.counts[bank.TIES] == 0
    assert learner.exclusive_


def test_rounds_without_a_right_label_are_not_quiet() -> None:
    generator = np.random.default_rng(0)
    X = np.repeat([[3.0, 0.0], [0.0, 3.0]], 1500, axis=0)[generator.permutation(3000)]
    right = np.column_stack([X > 1.0, np.zeros(3000, dtype=bool)])
    X, right = np.vstack([X, np.full((60, 2), -3.0)]), np.vstack([right, np.zeros((60, 3), dtype=bool)])
    traces = [onebit.play(onebit.BanditSVM(scale=None), X, right, engine=engine) for engine in ("stream", "rounds")]
    assert [trace.mistakes for trace in traces] == [traces[0].mistakes] * 2
    assert traces[0].mistakes >= 60


def test_a_stream_of_its_own() -> None:
    X, right = several_right(1500, seed=2)
    by_setting = {each: onebit.play(onebit.BanditSVM(exclusive=each), X, right).mistakes for each in (True, False)}
    assert by_setting[False] <= 60
    assert onebit.play(onebit.UniformGuess(), X, right).mistakes > 10 * by_setting[False]
