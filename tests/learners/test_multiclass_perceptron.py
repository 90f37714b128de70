"""The perceptron told the label against a plain program."""

import numpy as np

import onebit
from onebit.checks.problems import guesses_of, noisy_problem


def test_multiclass_perceptron_against_a_plain_program() -> None:
    problem = noisy_problem(500)
    W, guesses = np.zeros((problem.n_classes, problem.X.shape[1])), []
    for x, label in zip(problem.X, problem.y, strict=True):
        guess = int(np.argmax(W @ x))
        guesses.append(guess)
        if guess != label:
            W[label] += x
            W[guess] -= x
    assert guesses_of(onebit.MulticlassPerceptron(), problem.X, problem.y).tolist() == guesses
