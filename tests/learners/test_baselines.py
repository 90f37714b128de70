import math

import numpy as np

import onebit
from onebit.checks.problems import guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform


def test_uniform_guess_is_wrong_as_often_as_it_should() -> None:
    problem = noisy_problem(20_000, n_classes=5)
    trace = onebit.play(onebit.UniformGuess(), problem.X, problem.y, seed=3)
    expected, deviation = 20_000 * 4 / 5, math.sqrt(20_000 * 4 / 25)
    assert abs(trace.mistakes - expected) <= 4 * deviation
    assert trace.updates == 0
    assert trace.uniform_guesses == 20_000


def test_majority_against_counting() -> None:
    rng, rate, seed = np.random.default_rng(4), 0.1, 3
    y = rng.choice(4, p=[0.2, 0.1, 0.6, 0.1], size=600)
    tried, right, guesses = np.zeros(4), np.zeros(4), []
    for t, label in enumerate(y):
        u = uniform(Draw(seed, t))
        guess = int(u / rate * 4) if u < rate else int(np.argmax((right + 1) / (tried + 1)))
        tried[guess] += 1
        right[guess] += guess == label
        guesses.append(guess)
    learner = onebit.Majority(rate)
    assert guesses_of(learner, rng.normal(size=(600, 2)), y, seed=seed).tolist() == guesses
    assert (learner.tried_.tolist(), learner.right_.tolist()) == (tried.tolist(), right.tolist())
    assert learner.predict([[0.0, 0.0]]).tolist() == [2]


def test_majority_tries_every_label_before_it_settles() -> None:
    learner = onebit.Majority(exploration=0.0, classes=5)
    assert guesses_of(learner, np.ones((9, 1)), [3] * 9).tolist() == [0, 1, 2, 3, 3, 3, 3, 3, 3]
