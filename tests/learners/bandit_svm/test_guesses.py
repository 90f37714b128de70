"""Guesses: no lock-up, the regressions against scikit-learn and what they are there for, drift."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import onebit
from lock_ups import lock_up_problem
from onebit.checks.problems import noisy_problem, separable_problem
from onebit.engine.jit import in_python, jit
from onebit.engine.scaling import unit_rows
from onebit.kernels import Polynomial
from onebit.learners import bandit_svm
from onebit.learners.bandit_svm import bank, guesses
from onebit.learners.bandit_svm.bank import BankArrays, BankScratch
from onebit.theory import margin as margin_of


def new_bank(n_features: int, n_classes: int, capacity: int) -> tuple[BankArrays, BankScratch]:
    """Return the arrays of a default bank that has learned nothing."""
    learner = onebit.BanditSVM(classes=n_classes, scale=None)
    learner.begin(n_features)
    sizes: dict[str, int] = learner._state._sizes(capacity, 1)  # type: ignore[attr-defined]
    return bank.new_arrays(sizes), bank.zeros(BankScratch, sizes)


def guarded(kernel: Any = "auto", **settings: Any) -> onebit.BanditSVM:
    """Return the learner on rows as they are."""
    return onebit.BanditSVM(kernel, **{"scale": None, **settings})


def state_of(learner: onebit.BanditSVM) -> Any:
    return learner._state


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


def test_the_guard_cannot_be_fooled_by_the_scale() -> None:
    """Its weights are those of rows as they came, whatever the scale, the budget and the drift alarms did meanwhile."""
    problem = separable_problem(500, margin=0.1)
    X = problem.X.copy()
    X[250:] *= np.ldexp(1.0, 40)  # every column changes its scale half-way
    learner = onebit.BanditSVM(budget=5)
    onebit.play(learner, X, problem.y)
    played: Any = learner._state
    learner.opinions(X[7])
    expected = unit_rows(X[7:8])[0] @ played.arrays.guard
    assert played.scratch.opinions[-1] == pytest.approx(expected, abs=1e-12)
    margin = margin_of(problem.X, problem.y)
    productive = math.floor(16 * 1.05 * (margin.radius / margin.strong) ** 2)
    assert 0 < played.arrays.members[-1, bank.PRODUCED] <= productive


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
def test_it_recovers_when_labels_are_swapped(kernel: Any) -> None:
    problem = noisy_problem(8000, n_classes=4, n_features=6, seed=3)
    y = problem.y.copy()
    y[4000:] = (y[4000:] + 1) % 4
    learner = onebit.BanditSVM(kernel, classes=4)
    before = onebit.play(learner, problem.X[:4000], y[:4000])
    after = onebit.play(learner, problem.X[4000:], y[4000:], fresh=False)
    assert state_of(learner).arrays.watch[bank.ROUNDS] < 4000, "it did not notice"
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
    assert not _alarms(np.array([0.0, 0.0, 0.0, math.inf]), answers, n_classes)


@jit
def _alarms(watch: Any, answers: Any, n_classes: int) -> int:
    found = 0
    for t in range(len(answers)):
        found += guesses.is_outdated(watch, answers[t], n_classes, 0.005)
    return found


def test_it_does_not_forget_when_nothing_changes() -> None:
    for seed in range(5):
        problem = noisy_problem(5000, seed=seed)
        learner = onebit.BanditSVM(budget=100)
        onebit.play(learner, problem.X, problem.y, seed=seed)
        assert state_of(learner).arrays.watch[bank.ROUNDS] == 5000


estimate, learn, propose = (jit(in_python(function)) for function in (guesses.estimate, guesses.learn, guesses.propose))


class Played:
    """Regressions on random rows with random guesses, and all that they learned from."""

    def __init__(self, n_rounds: int, width: int = 4, n_classes: int = 3, n_landmarks: int = 5) -> None:
        generator = np.random.default_rng(0)
        self.arrays, self.scratch = new_bank(width, n_classes, n_landmarks)
        self.arrays.landmarks[:] = generator.normal(size=(width, n_landmarks))
        self.arrays.counts[bank.LANDMARKS] = n_landmarks
        self.rows = generator.normal(size=(n_rounds, width))
        self.labels = generator.integers(n_classes, size=n_rounds)
        self.truths = np.argmax(self.rows[:, :n_classes] + generator.normal(size=(n_rounds, n_classes)), axis=1)
        self.features, self.estimates, self.seen = self.scratch.features, self.scratch.estimates, []
        for row, label, truth in zip(self.rows, self.labels, self.truths, strict=True):
            self.guess(row)
            self.seen.append(self.features[0].copy())
            learn(self.arrays, self.scratch, label, label == truth, truth if label == truth else -1, False, True)

    def guess(self, row: Any) -> None:
        length = float(np.linalg.norm(row))
        self.scratch.unit[:], self.scratch.numbers[bank.ROW_LENGTH] = row / length, length
        estimate(self.arrays, self.scratch)


def test_a_class_regresses_on_the_rounds_in_which_it_was_guessed() -> None:
    played = Played(400)
    for i in range(3):
        own = played.labels == i
        model = Ridge(alpha=1.0, fit_intercept=False).fit(played.rows[own], played.truths[own] == i)
        assert played.arrays.row_weights[:, i] == pytest.approx(model.coef_, abs=1e-9)


def test_the_width_is_that_of_the_inverse() -> None:
    played = Played(200)
    row = np.array([0.5, -1.0, 2.0, 0.1])
    played.guess(row)
    for i in range(3):
        own = played.rows[played.labels == i]
        inverse = np.linalg.inv(np.eye(4) + own.T @ own)
        assert played.estimates[bank.WIDTHS, i] == pytest.approx(np.sqrt(row @ inverse @ row), rel=1e-9)


def test_landmarks_share_an_inverse_and_learn_what_is_proved() -> None:
    """Recursive least squares by NumPy, in which a class that nothing is proved of keeps its weights."""
    played = Played(300)
    gram, weights = np.eye(9) / 10.0, np.zeros((9, 3))
    for x, label, truth in zip(played.seen, played.labels, played.truths, strict=True):
        gram += np.outer(x, x)
        for i in range(3):
            if label == truth or i == label:
                weights[:, i] += np.linalg.solve(gram, x) * (float(i == truth == label) - x @ weights[:, i])
    assert played.arrays.landmark_weights == pytest.approx(weights, abs=1e-8)
    changes = played.arrays.landmark_changes
    assert 10.0 * np.eye(9) - changes == pytest.approx(np.linalg.inv(gram), abs=1e-9)


def test_similarities_are_those_of_the_laplace_kernel() -> None:
    played = Played(1)
    row = np.array([0.3, 0.2, -0.7, 1.5])
    played.guess(row)
    expected = onebit.kernels.Laplace()(row[None], played.arrays.landmarks.T)[0]
    assert played.features[0, 4:] == pytest.approx(expected, abs=1e-12)


def test_a_row_that_is_far_too_long_is_shortened() -> None:
    played = Played(1)
    played.guess(np.array([1e150, 0.0, 0.0, 0.0]))
    assert played.features[0, :4].tolist() == [20.0, 0.0, 0.0, 0.0]
    assert np.isfinite(played.estimates).all()


def test_the_mixture_moves_to_what_is_right() -> None:
    """The vote is right half of the time, the first regression always: the vote's label is tried, and given up."""
    generator, (arrays, scratch) = np.random.default_rng(0), new_bank(1, 2, 1)
    arrays.guesses[:] = 100
    followed = []
    for _ in range(600):
        truth, voted = generator.integers(2, size=2)
        scratch.estimates[:], scratch.scores[:] = 0.0, 0.0
        scratch.estimates[bank.LINEAR, truth] = 1.0
        scratch.estimates[bank.VOTE, voted] = scratch.scores[voted] = 1.0
        propose(arrays, scratch)
        label = int(np.argmax(scratch.scores))
        followed.append(label == truth)
        learn(arrays, scratch, label, label == truth, truth if label == truth else -1, False, True)
    assert np.mean(followed[:20]) < 0.8
    assert all(followed[-300:])


def test_a_label_that_was_passed_over_is_not_proposed() -> None:
    arrays, scratch = new_bank(1, 2, 1)
    arrays.guesses[:], arrays.mixture[bank.WEIGHTS] = 1000, [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    scratch.estimates[bank.LINEAR, 1], scratch.estimates[bank.VOTE] = 1.0, -0.6
    scratch.scores[:] = [-0.6, -9.0]
    propose(arrays, scratch)
    assert scratch.scores.tolist() == [-0.6, -9.0]
    scratch.scores[1] = -0.7
    propose(arrays, scratch)
    assert scratch.scores[1] > scratch.scores[0] == -0.6


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
    before = learner._state.arrays.mixture[bank.NUMBERS, bank.ANSWERS]
    onebit.play(learner, X[2000:], y[2000:])
    now = learner._state.arrays.mixture[bank.NUMBERS, bank.ANSWERS]
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
