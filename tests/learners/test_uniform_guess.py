"""Uniform guesses."""

import math

import onebit
from onebit.checks.problems import noisy_problem


def test_uniform_guess_is_wrong_as_often_as_it_should() -> None:
    problem = noisy_problem(20_000, n_classes=5)
    trace = onebit.play(onebit.UniformGuess(), problem.X, problem.y, seed=3)
    expected, deviation = 20_000 * 4 / 5, math.sqrt(20_000 * 4 / 25)
    assert abs(trace.mistakes - expected) <= 4 * deviation
    assert trace.updates == 0
    assert trace.uniform_guesses == 20_000
