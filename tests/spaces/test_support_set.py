"""Blocks and screens change no guess, whatever the block's size, and never hide a bad kernel."""

import math
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import fresh, guesses_of, noisy_problem, snapshot
from onebit.inputs import Floats
from onebit.kernels import Gaussian, Linear, Polynomial, Rational, Series
from onebit.learners.baselines import _UNIFORM
from onebit.spaces import support_set
from onebit.spaces.screen import Screen
from onebit.spaces.support_set import SupportSet


def scores_of(space: SupportSet, row: Floats) -> Floats:
    space.score(row, row)
    scores: Floats = space.scratch.current.copy()
    return scores


@pytest.mark.parametrize("rows_at_once", [1, 7, 64, 1000])
def test_the_size_of_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch, rows_at_once: int) -> None:
    problem = noisy_problem(500, n_features=30)
    learner = onebit.BanditPerceptron(Rational(), update="authors")
    expected, known = guesses_of(learner, problem.X, problem.y, engine="rounds"), snapshot(learner)
    monkeypatch.setattr(support_set, "_ROWS", rows_at_once)
    assert np.array_equal(guesses_of(fresh(learner), problem.X, problem.y), expected)
    learner.fit(problem.X, problem.y)
    assert snapshot(learner) == known


def test_rows_in_doubt_are_scored_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With margins made huge every row is in doubt, and the game is still the same."""
    X, y = onebit.streams.paper_weak(1500, seed=2)
    expected = guesses_of(onebit.BanditPerceptron(Rational()), X, y)
    monkeypatch.setattr(support_set, "_ROUNDING", 1e6)
    assert np.array_equal(guesses_of(onebit.BanditPerceptron(Rational()), X, y), expected)


def test_margins_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coarse screen that is believed blindly does change guesses: the margins are not decoration."""
    X, y = onebit.streams.paper_weak(6_000, seed=2)
    expected = guesses_of(onebit.BanditPerceptron(Rational()), X, y)
    coarse = Series(np.array([1.0, 0.5, 0.25, 0.2]), error=0.3)
    monkeypatch.setattr(Rational, "series", lambda self, n_features: coarse)
    assert np.array_equal(guesses_of(onebit.BanditPerceptron(Rational()), X, y), expected)
    monkeypatch.setattr(Screen, "error", lambda self, radius, rounding: 0.0)
    monkeypatch.setattr(support_set, "_ROUNDING", 0.0)
    assert not np.array_equal(guesses_of(onebit.BanditPerceptron(Rational()), X, y), expected)


@pytest.mark.parametrize("engine", ["stream", "rounds"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_kernel_that_turns_bad_is_an_error_and_loses_nothing(engine: str, bad: float) -> None:
    problem = noisy_problem(400)

    def kernel(X: Floats, Y: Floats) -> Floats:
        values: Floats = X @ Y.T
        values[np.ix_((X[:, 0] > 0.2), np.arange(len(Y)))] = bad
        return values

    learner = onebit.BanditPerceptron(kernel, classes=4)
    calm = problem.X[:, 0] <= 0.2
    onebit.play(learner, problem.X[calm][:50], problem.y[calm][:50])
    known = snapshot(learner)
    for fresh_start in (True, False):
        with pytest.raises(ValueError, match="NaN"):
            onebit.play(learner, problem.X, problem.y, engine=engine, fresh=fresh_start)
        assert snapshot(learner) == known
    with pytest.raises(ValueError, match="NaN"):
        learner.guess([0.9, 0.0, 0.0, 0.0, 0.0])
    assert snapshot(learner) == known


def test_a_row_outside_the_unit_ball_loses_nothing() -> None:
    problem = noisy_problem(3000)
    learner = onebit.BanditPerceptron(Rational())
    onebit.play(learner, problem.X, problem.y)
    known = snapshot(learner)
    spoiled = problem.X.copy()
    spoiled[2900] *= 10 / np.linalg.norm(spoiled[2900])
    with pytest.raises(ValueError, match="unit ball"):
        onebit.play(learner, spoiled, problem.y, fresh=False)
    assert snapshot(learner) == known


def test_the_store_doubles_and_keeps_its_order() -> None:
    space = SupportSet(Linear(), _UNIFORM, (1.0,), 2, 1)
    for i in range(100):
        space.add(np.array([[float(i), 1.0]]), np.array([1.0]))
    assert space.points[:, 0].tolist() == list(range(100))
    assert scores_of(space, np.array([[1.0, 0.0]])).tolist() == [4950.0]
    marked = space.bookmark()
    space.add(np.array([[5.0, 5.0]]), np.array([-2.0]))
    assert space.size == 101
    space.restore(marked)
    assert space.size == 100
    assert space.arrays.totals.tolist() == [100.0]


@pytest.mark.parametrize("kernel", [Polynomial(2), Polynomial(3), Linear(), Gaussian(1.0)], ids=repr)
@pytest.mark.parametrize("size", [1e52, 1e100, 1e160])
def test_blocks_play_very_long_rows_as_single_rounds_do(kernel: Any, size: float) -> None:
    X = np.array([[size, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 1.0]])
    said = []
    for engine in ("stream", "rounds"):
        with np.errstate(all="ignore"):
            try:
                trace = onebit.play(onebit.BanditPerceptron(kernel), X, [0, 1, 1, 0], engine=engine, keep_guesses=True)
                said.append(str(trace.guesses))
            except ValueError as error:
                said.append(str(error)[:10])
    assert said[0] == said[1]
