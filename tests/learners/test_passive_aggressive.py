import math

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

import onebit
from onebit.checks.problems import guesses_of, noisy_problem, separable_problem


def test_conservative_passive_aggressive_against_a_plain_program() -> None:
    problem, C = noisy_problem(400), 0.7
    W, guesses = np.zeros((problem.n_classes, problem.X.shape[1])), []
    for x, label in zip(problem.X, problem.y, strict=True):
        guess = int(np.argmax(W @ x))
        sign = 1.0 if guess == label else -1.0
        W[guess] += sign * min(C, max(0.0, 1.0 - sign * W[guess] @ x) / (x @ x)) * x
        guesses.append(guess)
    learner = onebit.ConservativePassiveAggressive(C)
    assert guesses_of(learner, problem.X, problem.y).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, W, rtol=1e-9)


@pytest.mark.parametrize("C", [0.5, 1.0, math.inf])
def test_conservative_mistakes_at_scores_above_zero_are_few(C: float) -> None:
    for seed in range(3):
        problem = separable_problem(1000, 3, 4, 0.2, seed)
        learner = onebit.ConservativePassiveAggressive(C, classes=3)
        mistakes = 0
        for x, label in zip(problem.X, problem.y, strict=True):
            guess = learner.guess(x)
            mistakes += guess.label != label and guess.scores.max() >= 0.0
            learner.tell(guess, guess.label == label)
        assert 0 < mistakes <= 4.0 * max(1.0, 1.0 / C) / 0.2**2


@pytest.mark.parametrize("C", [0.1, 1.0, math.inf])
def test_full_information_passive_aggressive_against_its_definition(C: float) -> None:
    """The step is the nearest weights with a margin of 1 (or C's compromise), from the conditions of Lagrange."""
    problem = noisy_problem(300)
    K, W, guesses = problem.n_classes, np.zeros((problem.n_classes, problem.X.shape[1])), []
    for x, label in zip(problem.X, problem.y, strict=True):
        scores = W @ x
        guesses.append(int(np.argmax(scores)))
        rival = int(np.argmax(np.where(np.arange(K) == label, -np.inf, scores)))
        direction = np.outer(np.eye(K)[label] - np.eye(K)[rival], x)
        loss = max(0.0, 1.0 - (W * direction).sum())
        W += min(C, loss / (direction**2).sum()) * direction
    learner = onebit.FullInformationPassiveAggressive(C)
    assert guesses_of(learner, problem.X, problem.y).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, W, rtol=1e-9, atol=1e-12)


def test_full_information_passive_aggressive_of_two_classes_is_scikit_learns() -> None:
    """The difference of two classes takes steps of twice the size: so scikit-learn's C is twice as large."""
    problem = noisy_problem(200, n_classes=2)
    theirs = SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=0.6, fit_intercept=False)
    learner = onebit.FullInformationPassiveAggressive(0.3, classes=2)
    for x, label in zip(problem.X, problem.y, strict=True):
        theirs.partial_fit([x], [label], classes=[0, 1])
        learner.tell(guess := learner.guess(x), guess.label == label, label=label)
    np.testing.assert_allclose(learner.weights_[1] - learner.weights_[0], theirs.coef_[0], rtol=1e-9)


@pytest.mark.parametrize("C", [0.1, 0.5, math.inf])
def test_full_information_passive_aggressive_keeps_its_promise(C: float) -> None:
    for seed in range(3):
        problem = separable_problem(1000, 3, 4, 0.2, seed)
        mistakes = onebit.play(onebit.FullInformationPassiveAggressive(C), problem.X, problem.y).mistakes
        assert 0 < mistakes <= max(2.0, 1.0 / C) / 0.2**2
    learner = onebit.FullInformationPassiveAggressive(C)
    assert bool(learner.promise(n_classes=3, n_features=4, radius=1.0, margin=0.2)) == (C >= 0.5)
