import copy
import math
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import guesses_of, noisy_problem
from onebit.engine.randomness import Draw, uniform
from plain_programs import drawn, softmax

LN2 = math.log(2.0)


@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.3}, {"longest": 2.0}], ids=str)
def test_gaptron_against_a_plain_program(settings: dict[str, Any]) -> None:
    problem, g, seed = noisy_problem(500), 0.2, 6
    X, K = 4.0 * problem.X, problem.n_classes
    W, guesses, longest = np.zeros((K, X.shape[1])), [], 0.0
    for t, (x, label) in enumerate(zip(X, problem.y, strict=True)):
        soft = softmax(W @ x)
        greedy, top = int(np.argmax(W @ x)), soft.max()
        share = max(1.0 - top if top >= 0.5 else 1.0, g)
        guess = drawn([(share, np.full(K, 1.0 / K)), (1.0, np.eye(K)[greedy])], uniform(Draw(seed, t)))
        if guess == label:
            chance = share / K + (1.0 - share) * (guess == greedy)
            longest = max(longest, float(np.linalg.norm(x)))
            radius = settings.get("longest", longest)
            rate = settings.get("learning_rate", g * LN2**2 / (2 * K**2 * radius**2))
            W -= rate / (chance * LN2) * np.outer(soft - np.eye(K)[label], x)
        guesses.append(guess)
    learner = onebit.Gaptron(g, **settings)
    assert guesses_of(learner, X, problem.y, seed=seed).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, W, rtol=1e-9)


def test_gaptrons_step_is_unbiased() -> None:
    """Averaged over its own draws, a step goes along the gradient of the logistic loss."""
    x, truth, K = np.array([1.0, -2.0]), 2, 3
    begun = onebit.Gaptron(learning_rate=0.5, classes=K).learn_labels([[1.0, 0.5], [0.3, -1.0]], [0, 1])
    gradient = np.outer(softmax(begun.score_classes([x])[0]) - np.eye(K)[truth], x) / LN2
    step, propensities = np.zeros((K, 2)), begun.probabilities(x)
    for label in range(K):
        while (guess := (learner := copy.copy(begun)).guess(x)).label != label:
            begun.guess(x)
        learner.tell(guess, label == truth)
        step += propensities[label] * (learner.weights_ - begun.weights_)
    np.testing.assert_allclose(step, -0.5 * gradient, rtol=1e-9)


def chance_of_a_mistake(share: float, highest_is_right: bool, K: int) -> float:
    return (1.0 - share) * (not highest_is_right) + share * (K - 1) / K


@pytest.mark.parametrize("K", [2, 3, 10])
def test_the_gap_pays_for_the_variance(K: int) -> None:
    """The inequality that Gaptron's guarantee rests on, for many softmaxes and every right label."""
    rng = np.random.default_rng(K)
    for g in (0.01, 0.3, 1.0):
        rate = g * LN2**2 / (2 * K**2)
        for scores in rng.normal(size=(300, K)) * rng.choice([0.1, 1.0, 4.0, 20.0], size=(300, 1)):
            soft, greedy = softmax(scores), int(np.argmax(scores))
            gap = 1.0 - soft.max() if soft.max() >= 0.5 else 1.0
            share = max(gap, g)
            for label in range(K):
                loss = -math.log2(max(soft[label], 1e-300))
                square = ((soft - np.eye(K)[label]) ** 2).sum() / LN2**2
                chance = share / K + (1 - share) * (label == greedy)
                spare = loss - chance_of_a_mistake(gap, label == greedy, K)
                assert rate / 2 * square / chance <= spare + 1e-12
                without = chance_of_a_mistake(gap, label == greedy, K)
                assert chance_of_a_mistake(share, label == greedy, K) <= without + g


@pytest.mark.parametrize("horizon", [None, 2000])
def test_adaptive_surrogate_against_a_plain_program(horizon: int | None) -> None:
    problem, B, seed = noisy_problem(500), 1.2, 9
    X, K = 2.0 * problem.X, problem.n_classes
    W, guesses, squares, edge = np.zeros((K, X.shape[1])), [], 0.0, 0
    for t, (x, label) in enumerate(zip(X, problem.y, strict=True)):
        soft, greedy = softmax(W @ x), int(np.argmax(W @ x))
        q, m = min(1.0, 2 * B * math.sqrt(K / (horizon or t + 1))), min(1.0, 2.0 * (1.0 - soft.max()))
        ways: list[tuple[float, Any]] = [(q, np.full(K, 1.0 / K)), (m, soft), (1.0, np.eye(K)[greedy])]
        guess = drawn(ways, uniform(Draw(seed, t)))
        if guess == label:
            chance = q / K + (1 - q) * (m * soft[guess] + (1 - m) * (guess == greedy))
            G = np.outer(soft - np.eye(K)[label], x) / chance
            squares += (G**2).sum()
            W -= 2 * B / math.sqrt(2 * squares) * G
            if (length := np.linalg.norm(W)) > B:
                W *= B / length
                edge += 1
        guesses.append(guess)
    learner = onebit.AdaptiveSurrogate(B, horizon)
    assert guesses_of(learner, X, problem.y, seed=seed).tolist() == guesses
    np.testing.assert_allclose(learner.weights_, W, rtol=1e-9)
    assert 0 < edge < 300


def test_a_decoded_label_is_seldom_wrong() -> None:
    """The chance of a mistake is at most the natural logistic loss: what AdaptiveSurrogate's guarantee rests on."""
    rng = np.random.default_rng(1)
    for scores in rng.normal(size=(500, 5)) * rng.choice([0.1, 1.0, 4.0, 20.0], size=(500, 1)):
        soft = softmax(scores)
        m = min(1.0, 2.0 * (1.0 - soft.max()))
        right = m * soft + (1.0 - m) * (np.arange(5) == np.argmax(scores))
        assert np.all(1.0 - right <= -np.log(soft) + 1e-12)


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
