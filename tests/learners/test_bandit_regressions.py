"""The regressions in BanditSVM's bank: against scikit-learn, and what they are there for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import onebit
from lock_ups import lock_up_problem
from onebit.checks.problems import noisy_problem
from onebit.engine.jit import jit
from onebit.engine.state import in_python
from onebit.learners.bandit_svm import regressions
from onebit.learners.bandit_svm.vote import LANDMARKS

estimate, learn, propose = (
    jit(in_python(function)) for function in (regressions.estimate, regressions.learn, regressions.propose)
)


class Played:
    """Regressions on random rows with random guesses, and all that they were told."""

    def __init__(self, n_rounds: int, width: int = 4, n_classes: int = 3, n_landmarks: int = 5) -> None:
        generator = np.random.default_rng(0)
        self.arrays = regressions.new_arrays(width, n_classes, n_landmarks, take_part=True)
        self.arrays["landmarks"][:] = generator.normal(size=(width, n_landmarks))
        self.rows = generator.normal(size=(n_rounds, width))
        self.labels = generator.integers(n_classes, size=n_rounds)
        self.truths = np.argmax(self.rows[:, :n_classes] + generator.normal(size=(n_rounds, n_classes)), axis=1)
        self.features = np.zeros((2, width + n_landmarks))
        self.estimates, self.room, self.seen = np.zeros((4, n_classes)), np.zeros((3, 7)), []
        for row, label, truth in zip(self.rows, self.labels, self.truths, strict=True):
            self.guess(row)
            self.seen.append(self.features[0].copy())
            known = truth if label == truth else -1
            changed = [self.arrays[name] for name in list(self.arrays)[1:]]
            learn(label, label == truth, known, False, len(self.features[0]), *changed, *self.rest())

    def rest(self) -> tuple[Any, ...]:
        return self.features[0], self.features[1], self.estimates, self.room

    def guess(self, row: Any) -> None:
        weights = (self.arrays[name] for name in ("landmark_weights", "row_changes", "row_weights"))
        length = float(np.linalg.norm(row))
        estimate(row / length, length, self.arrays["landmarks"], 5, *weights, *self.rest()[:3])


def test_a_class_regresses_on_the_rounds_in_which_it_was_guessed() -> None:
    played = Played(400)
    for i in range(3):
        own = played.labels == i
        model = Ridge(alpha=1.0, fit_intercept=False).fit(played.rows[own], played.truths[own] == i)
        assert played.arrays["row_weights"][:, i] == pytest.approx(model.coef_, abs=1e-9)


def test_the_width_is_that_of_the_inverse() -> None:
    played = Played(200)
    row = np.array([0.5, -1.0, 2.0, 0.1])
    played.guess(row)
    for i in range(3):
        own = played.rows[played.labels == i]
        inverse = np.linalg.inv(np.eye(4) + own.T @ own)
        assert played.estimates[regressions.WIDTHS, i] == pytest.approx(np.sqrt(row @ inverse @ row), rel=1e-9)


def test_landmarks_share_an_inverse_and_learn_what_is_proved() -> None:
    """Recursive least squares by NumPy, in which a class that nothing is proved of keeps its weights."""
    played = Played(300)
    gram, weights = np.eye(9) / 10.0, np.zeros((9, 3))
    for x, label, truth in zip(played.seen, played.labels, played.truths, strict=True):
        gram += np.outer(x, x)
        for i in range(3):
            if label == truth or i == label:
                weights[:, i] += np.linalg.solve(gram, x) * (float(i == truth == label) - x @ weights[:, i])
    assert played.arrays["landmark_weights"] == pytest.approx(weights, abs=1e-8)
    changes = played.arrays["landmark_changes"]
    assert 10.0 * np.eye(9) - changes == pytest.approx(np.linalg.inv(gram), abs=1e-9)


def test_similarities_are_those_of_the_laplace_kernel() -> None:
    played = Played(1)
    row = np.array([0.3, 0.2, -0.7, 1.5])
    played.guess(row)
    expected = onebit.kernels.Laplace()(row[None], played.arrays["landmarks"].T)[0]
    assert played.features[0, 4:] == pytest.approx(expected, abs=1e-12)


def test_a_row_that_is_far_too_long_is_shortened() -> None:
    played = Played(1)
    played.guess(np.array([1e150, 0.0, 0.0, 0.0]))
    assert played.features[0, :4].tolist() == [20.0, 0.0, 0.0, 0.0]
    assert np.isfinite(played.estimates).all()


def test_the_mixture_moves_to_whoever_is_right() -> None:
    """The vote is right half of the time, the first regression always: the vote's label is tried, and given up."""
    generator, mixture, guesses = np.random.default_rng(0), regressions.new_mixture(), np.full((2, 2), 100)
    arrays = regressions.new_arrays(1, 2, 1, take_part=True) | {"mixture": mixture}
    changed = [arrays[name] for name in list(arrays)[1:]]
    followed = []
    for _ in range(600):
        truth, voted = generator.integers(2, size=2)
        estimates, scores = np.zeros((4, 2)), np.zeros(2)
        estimates[regressions.LINEAR, truth] = 1.0
        estimates[regressions.VOTE, voted] = scores[voted] = 1.0
        propose(estimates, guesses, mixture, np.zeros((3, 7)), scores)
        label = int(np.argmax(scores))
        followed.append(label == truth)
        learn(
            label,
            label == truth,
            truth if label == truth else -1,
            False,
            0,
            *changed,
            *np.zeros((2, 2)),
            estimates,
            np.zeros((3, 7)),
        )
    assert np.mean(followed[:20]) < 0.8
    assert all(followed[-300:])


def test_a_label_that_was_passed_over_is_not_proposed() -> None:
    mixture, guesses = regressions.new_mixture(), np.full((2, 2), 1000)
    mixture[regressions.WEIGHTS] = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    estimates, scores = np.zeros((4, 2)), np.array([-0.6, -9.0])
    estimates[regressions.LINEAR, 1] = 1.0
    estimates[regressions.VOTE] = -0.6
    propose(estimates, guesses, mixture, np.zeros((3, 7)), scores)
    assert scores.tolist() == [-0.6, -9.0]
    scores[1] = -0.7
    propose(estimates, guesses, mixture, np.zeros((3, 7)), scores)
    assert scores[1] > scores[0] == -0.6


def linear_stream(rounds: int, noise: float, seed: int) -> tuple[Any, Any]:
    """Return the label with the largest of six random linear scores; with noise some labels are drawn at random."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rounds, 8))
    y = np.argmax(X @ generator.normal(size=(8, 6)), axis=1)
    is_noise = generator.random(rounds) < noise
    y[is_noise] = generator.integers(6, size=is_noise.sum())
    return X, y


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_linear_stream_is_learned_as_well_as_by_linucb(noise: float) -> None:
    """Over two seeds, in the last third of 6 000 rounds, and 10 % for chance; separators alone make far more."""
    late = dict.fromkeys(("bank", "kernels", "LinUCB"), 0)
    for seed in range(2):
        X, y = linear_stream(6000, noise, seed)
        with_constant = np.column_stack([X, np.ones(len(X))])
        kernels = [onebit.kernels.Linear(normalize=True), onebit.kernels.Laplace()]
        for name, learner, rows in (
            ("bank", onebit.BanditSVM(), X),
            ("kernels", onebit.BanditSVM(kernels), X),
            ("LinUCB", onebit.learners.LinUCB(), with_constant),
        ):
            trace = onebit.play(learner, rows, y, checkpoints=[4000])
            late[name] += trace.mistakes - int(trace.curve.mistakes[0])
    assert late["bank"] <= 1.1 * late["LinUCB"]
    assert late["kernels"] > 1.3 * late["LinUCB"]


def test_only_the_default_bank_has_regressions() -> None:
    problem = noisy_problem(60)
    for kernel, take_part in (("auto", True), ([None], False), (onebit.kernels.Laplace(), False)):
        learner = onebit.BanditSVM(kernel)
        onebit.play(learner, problem.X, problem.y)
        assert bool(len(learner._state.arrays.mixture)) == take_part
        assert (learner.mixture_ is not None) == take_part


def test_landmarks_are_the_first_examples_that_are_stored() -> None:
    problem = noisy_problem(700, n_features=3)
    learner = onebit.BanditSVM(scale=None, budget=40)
    onebit.play(learner, problem.X[:100], problem.y[:100])
    state: Any = learner._state
    assert state.arrays.counts[LANDMARKS] == 40, "as many as there is room for"
    before = state.arrays.landmarks.copy()
    onebit.play(learner, problem.X[100:], problem.y[100:])
    assert np.array_equal(state.arrays.landmarks, before)
    for column in before.T:
        assert (np.abs(problem.X[:100] - column).max(axis=1) < 1e-12).any()


@pytest.mark.parametrize(("d", "n_classes"), [(10, 10), (100, 25), (100, 500), (199, 6), (10, 5000), (10_000, 3)])
def test_memory_of_the_regressions_is_what_the_docstring_says(d: int, n_classes: int) -> None:
    arrays = regressions.new_arrays(d + 1, n_classes, 2000, take_part=True)
    assert sum(array.nbytes for array in arrays.values()) <= 4.2e6 + 2400 * d + 4000 * n_classes
    assert "4.2 MB + 2 400·d + 4 000·K bytes" in str(onebit.BanditSVM.__doc__)


def test_the_mixture_names_what_its_weights_multiply() -> None:
    assert regressions.MIXED[1:] == tuple(
        name
        for source in ("vote", "regression on rows", "regression on landmarks")
        for name in (source, f"lead in the {source}")
    )


def test_wide_rows_have_landmarks_alone() -> None:
    arrays = regressions.new_arrays(300, 5, 16, take_part=True)
    assert arrays["row_changes"].size == 0
    assert arrays["landmark_changes"].shape == (17, 17), "a constant is beside them"
    assert regressions.new_arrays(100, 100, 16, take_part=True)["row_changes"].size == 0, "classes × features²"


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


@pytest.mark.parametrize(("classes", "taught"), [([0, 1], [True, True]), ("grow", [True, False])])
def test_of_two_classes_a_right_guess_teaches_both_unless_more_may_join(classes: Any, taught: list[bool]) -> None:
    """Where more may join a wrong guess does not prove the other: taught by right ones alone, it would seem rare."""
    learner = onebit.BanditSVM(classes=classes)
    learner.guess([1.0, 2.0], among=[0, 1])
    learner.learn_from([[1.0, 2.0]] * 2, [0, 0], True)
    assert learner._state.arrays.row_changes.any(axis=(1, 2)).tolist() == taught


def test_drift_makes_them_forget() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(3000, 5))
    first, second = generator.normal(size=(2, 5, 4))
    y = np.where(np.arange(3000) < 2000, np.argmax(X @ first, axis=1), np.argmax(X @ second, axis=1))
    learner = onebit.BanditSVM()
    onebit.play(learner, X[:2000], y[:2000])
    before = learner._state.arrays.mixture[regressions.NUMBERS, regressions.HEARD]
    onebit.play(learner, X[2000:], y[2000:])
    now = learner._state.arrays.mixture[regressions.NUMBERS, regressions.HEARD]
    assert before > 500
    assert now < 1000, "more answers than there were since the drift"


def test_what_is_allowed_is_proposed_among() -> None:
    """With some labels only, the regressions propose among those."""
    X, y = linear_stream(3000, 0.2, 0)
    learner = onebit.BanditSVM()
    onebit.play(learner, X, y)
    lists = [np.delete(np.arange(6), label) for label in (0, 3)]
    for x in X[:50]:
        scores = learner.decision_function(x[None])[0]
        for among in lists:
            guess = learner.guess(x, among=among)
            assert guess.index in among
            if np.argmax(scores) in among:
                assert guess.index == np.argmax(scores)


def test_decision_function_is_what_guesses_are_made_from() -> None:
    X, y = linear_stream(2000, 0.2, 1)
    learner = onebit.BanditSVM()
    onebit.play(learner, X, y)
    scores = learner.decision_function(X[:200])
    lifted = 0
    for x, expected in zip(X[:200], scores, strict=True):
        assert learner.guess(x).scores == pytest.approx(expected, abs=1e-9)
        lifted += int(np.argmax(learner.opinions(x)[0].scores) != np.argmax(expected))
    assert lifted > 0, "nothing was proposed, so nothing was compared"


@pytest.mark.parametrize("name", ["three directions", "ten levels", "two ratings", "rows in turn"])
def test_greedy_guessing_with_regressions_does_not_lock_up_here(name: str) -> None:
    """Nothing is proved of greedy guessing; on these streams the regressions find the way out."""
    problem = lock_up_problem(name, 3000, 0)
    learner = onebit.BanditSVM(exploration="greedy", scale=None, classes=problem.n_classes)
    trace = onebit.play(learner, problem.X, problem.y, checkpoints=[1500])
    assert trace.mistakes - trace.curve.mistakes[0] < 30


@pytest.mark.ci
def test_a_rare_class_that_appears_late_is_found() -> None:
    """One round in a hundred of the second half, among five classes of which a fifth of the labels are random."""
    generator, rounds, d = np.random.default_rng(0), 20_000, 20
    X = generator.normal(size=(rounds, d))
    y = np.argmax(X @ generator.normal(size=(d, 5)), axis=1)
    y = np.where(generator.random(rounds) < 0.2, generator.integers(5, size=rounds), y)
    late = (np.arange(rounds) >= rounds // 2) & (generator.random(rounds) < 0.01)
    centre = generator.normal(size=d)
    centre *= np.sqrt(d) / np.linalg.norm(centre)
    X[late], y[late] = centre + 0.5 * generator.normal(size=(int(late.sum()), d)), 5
    guesses = onebit.play(onebit.BanditSVM(), X, y, seed=0, keep_guesses=True).guesses
    assert guesses is not None
    found = guesses[late] == 5
    assert found.any()
    assert np.argmax(found) <= 60
    assert found[len(found) // 2 :].mean() > 0.5
