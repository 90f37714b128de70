"""Algorithm 4 against SciPy's tree."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.spatial import KDTree

import onebit
from onebit.checks.problems import guesses_of, noisy_problem, separable_problem
from onebit.engine.randomness import Draw, uniform


def test_nearest_neighbor_against_scipys_tree() -> None:
    problem, radius, seed = noisy_problem(500, n_features=2), 0.12, 2
    points: list[Any] = []
    labels: list[int] = []
    guesses = []
    for t, (x, label) in enumerate(zip(problem.X, problem.y, strict=True)):
        distance, place = KDTree(np.array(points)).query(x) if points else (math.inf, -1)
        explored = distance > radius
        guess = int(uniform(Draw(seed, t)) * problem.n_classes) if explored else labels[place]
        if explored and guess == label:
            points.append(x)
            labels.append(guess)
        guesses.append(guess)
    learner = onebit.NearestNeighbor(radius)
    assert guesses_of(learner, problem.X, problem.y, seed=seed).tolist() == guesses
    assert np.array_equal(learner.support_, np.array(points))
    assert learner.labels_.tolist() == labels


def test_nearest_neighbor_remembers_a_packing() -> None:
    problem = separable_problem(2000, 3, 3, 0.2)
    learner = onebit.NearestNeighbor(0.2)
    trace = onebit.play(learner, problem.X, problem.y)
    assert trace.mistakes == trace.uniform_guesses - trace.updates
    distances = np.linalg.norm(learner.support_[:, None] - learner.support_[None], axis=2)
    assert distances[~np.eye(len(distances), dtype=bool)].min() > 0.2


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_bad_radius(radius: float) -> None:
    with pytest.raises(ValueError, match="radius must be"):
        onebit.NearestNeighbor(radius, classes=2).guess([1.0])


@pytest.mark.parametrize("power", [-1050, -565, 532, 1000])
def test_nearest_neighbours_at_any_scale(power: int) -> None:
    X = np.random.default_rng(3).integers(-9, 10, size=(200, 3)).astype(float)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 3)
    near = onebit.NearestNeighbor(radius=4.0)
    far = onebit.NearestNeighbor(radius=math.ldexp(4.0, power))
    expected = guesses_of(near, X, y, seed=1)
    guesses = guesses_of(far, np.ldexp(X, power), y, seed=1)
    assert np.array_equal(guesses, expected)
    scores = np.ldexp(near.decision_function(X), power)
    np.testing.assert_allclose(far.decision_function(np.ldexp(X, power)), scores, rtol=1e-7)
