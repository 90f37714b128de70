"""Logistic regression told the label, against a plain program and its promise."""

import math

import numpy as np

import onebit
from onebit.checks.problems import guesses_of, noisy_problem
from plain_programs import softmax

LN2 = math.log(2.0)


def test_full_information_logistic_against_a_plain_program() -> None:
    problem, B = noisy_problem(400), 1.2
    X, K = 2.0 * problem.X, problem.n_classes
    W, guesses, squares, edge = np.zeros((K, X.shape[1])), [], 0.0, 0
    for x, label in zip(X, problem.y, strict=True):
        guesses.append(int(np.argmax(W @ x)))
        G = np.outer(softmax(W @ x) - np.eye(K)[label], x)
        squares += (G**2).sum()
        W -= 2 * B / math.sqrt(2 * squares) * G
        if (length := np.linalg.norm(W)) > B:
            W *= B / length
            edge += 1
    learner = onebit.FullInformationLogistic(B)
    assert guesses_of(learner, X, problem.y).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, W, rtol=1e-9)
    assert 0 < edge < 400


def test_full_information_logistic_keeps_its_promise() -> None:
    """Losses on the way are within a√L of those of any weights in the ball, here of the best ones in hindsight."""
    problem, B = noisy_problem(400), 2.0
    learner, losses = onebit.FullInformationLogistic(B, classes=problem.n_classes), []
    for x, label in zip(problem.X, problem.y, strict=True):
        guess = learner.guess(x)
        losses.append(-math.log2(softmax(guess.scores)[label]))
        assert losses[-1] >= 1.0 or guess.label == label
        learner.tell(guess, guess.label == label, label=label)
    scores = problem.X @ learner.weights_.T
    fixed = (np.log2(np.exp(scores).sum(axis=1)) - scores[np.arange(400), problem.y] / LN2).sum()
    a = 4 * B * np.linalg.norm(problem.X, axis=1).max() / math.sqrt(LN2)
    assert sum(losses) <= fixed + a * math.sqrt(sum(losses))
    assert learner.n_mistakes_ <= fixed + a * math.sqrt(fixed) + a * a
