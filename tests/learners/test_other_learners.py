import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial import KDTree
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onebit
from onebit.checks.problems import guesses_of, noisy_problem, separable_problem
from onebit.engine.randomness import Draw, uniform


def test_banditron_against_a_plain_program() -> None:
    problem, rate, seed = noisy_problem(600), 0.2, 5
    K = problem.n_classes
    W, guesses = np.zeros((K, problem.X.shape[1])), []
    for t, (x, label) in enumerate(zip(problem.X, problem.y, strict=True)):
        greedy = int(np.argmax(W @ x))
        u = uniform(Draw(seed, t))
        played = int(u / rate * K) if u < rate else greedy
        chance = rate / K + (1 - rate) * (played == greedy)
        W[greedy] -= x
        if played == label:
            W[played] += x / chance
        guesses.append(played)
    learner = onebit.Banditron(rate)
    assert guesses_of(learner, problem.X, problem.y, seed=seed).tolist() == guesses
    assert np.allclose(learner.weights_, W, rtol=1e-9)


def test_banditrons_step_is_unbiased() -> None:
    """Averaged over its own draws, the step is the Multiclass Perceptron's."""
    x, truth, K, rate = np.array([1.0, -2.0]), 2, 3, 0.3
    steps = []
    for seed in range(6000):
        learner = onebit.Banditron(rate, classes=K, seed=seed)
        guess = learner.guess(x)
        learner.tell(guess, guess.label == truth)
        steps.append(learner.weights_)
    expected = np.zeros((K, 2))
    expected[truth] += x
    expected[0] -= x
    spread = np.std(steps, axis=0) / math.sqrt(len(steps))
    assert np.all(np.abs(np.mean(steps, axis=0) - expected) <= 5 * spread + 1e-12)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.2, math.nan, "much"])
def test_exploration_outside_its_range(rate: Any) -> None:
    with pytest.raises(ValueError, match="exploration must be"):
        onebit.Banditron(rate, classes=2).guess([1.0])


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


def test_full_information_needs_the_label_and_bandits_refuse_it() -> None:
    told = onebit.MulticlassPerceptron(classes=["a", "b"])
    guess = told.guess([1.0])
    with pytest.raises(ValueError, match="full information"):
        told.tell(guess, False)
    with pytest.raises(ValueError, match="contradicts"):
        told.tell(guess, True, label="b")
    with pytest.raises(ValueError, match="not among the 2 classes"):
        told.tell(guess, False, label="c")
    told.tell(guess, False, label="b")
    bandit = onebit.BanditPerceptron(classes=["a", "b"])
    with pytest.raises(ValueError, match="takes only right or wrong"):
        bandit.tell(bandit.guess([1.0]), False, label="b")


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


def test_uniform_guess_is_wrong_as_often_as_it_should() -> None:
    problem = noisy_problem(20_000, n_classes=5)
    trace = onebit.play(onebit.UniformGuess(), problem.X, problem.y, seed=3)
    expected, deviation = 20_000 * 4 / 5, math.sqrt(20_000 * 4 / 25)
    assert abs(trace.mistakes - expected) <= 4 * deviation
    assert trace.updates == 0
    assert trace.uniform_guesses == 20_000


def test_scikit_learns_tools_take_a_learner() -> None:
    problem = separable_problem(400, 3, 4, 0.2)
    learner = onebit.BanditPerceptron(seed=4)
    assert is_classifier(learner)
    assert clone(learner).get_params() == learner.get_params()
    scores = cross_val_score(make_pipeline(StandardScaler(), learner), problem.X, problem.y, cv=3)
    assert scores.min() > 0.6
    # A radius that covers everything makes one label of all; only a search that really plays can tell.
    search = GridSearchCV(onebit.NearestNeighbor(), {"radius": [9.0, 0.3]}, cv=2).fit(problem.X, problem.y)
    assert search.best_params_ == {"radius": 0.3}
    with pytest.raises(NotFittedError, match="has not played yet"):
        onebit.BanditPerceptron().predict(problem.X)
    with pytest.raises(ValueError, match="Invalid parameter 'rate'"):
        learner.set_params(rate=1)


def test_what_was_learned_is_named() -> None:
    learner = onebit.BanditPerceptron(classes=2)
    with pytest.raises(AttributeError, match="weights_ is there once"):
        _ = learner.weights_
    learner.guess([1.0, 2.0])
    assert learner.weights_.shape == (2, 2)
    with pytest.raises(AttributeError, match="a kernel"):
        _ = learner.support_


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


@pytest.mark.parametrize("power", [-1000, -565, 532, 1000])
def test_linear_learners_score_what_floats_cannot_hold(power: int) -> None:
    problem = noisy_problem(200, n_features=12)
    X = np.ldexp(problem.X, power)
    learner = onebit.MulticlassPerceptron().fit(problem.X, problem.y)
    scaled = onebit.MulticlassPerceptron().fit(X, problem.y)
    sparse = onebit.MulticlassPerceptron().fit(scipy.sparse.csr_array(X), problem.y)
    assert np.array_equal(scaled.predict(X), learner.predict(problem.X))
    assert np.array_equal(sparse.predict(scipy.sparse.csr_array(X)), learner.predict(problem.X))
    assert np.array_equal(sparse.weights_, scaled.weights_)
