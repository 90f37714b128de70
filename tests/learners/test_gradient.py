"""What the learners that take gradient steps share, and those on the logistic loss against plain programs."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import onebit
from onebit.checks.problems import guesses_of, noisy_problem, separable_problem
from onebit.engine.randomness import Draw, uniform
from plain_programs import drawn, softmax

LN2 = math.log(2.0)


@pytest.mark.parametrize(
    "learner", [onebit.FullInformationLogistic(), onebit.FullInformationPassiveAggressive()], ids=str
)
def test_a_label_is_learned_however_it_comes(learner: Any) -> None:
    """Told, known beforehand, or late: the same step from the same weights; a wrong try without the label is none."""
    x, other = [1.0, 0.5], [-1.0, 2.0]
    known = copy.copy(learner).set_params(classes=3).learn_labels([other, x], [2, 1])
    late = copy.copy(learner).set_params(classes=3)
    tickets = late.guess_many([x, other])
    for ticket, label in zip(reversed(tickets), (2, 1), strict=True):
        late.tell(ticket, ticket.label == label, label=label)
    assert np.array_equal(late.weights_, known.weights_)
    assert late.weights_.any()
    known.learn_from([x], [0], False, 0.5)
    assert np.array_equal(late.weights_, known.weights_)


@pytest.mark.parametrize(
    ("learner", "beyond"),
    [
        (onebit.Gaptron(0.2, longest=1.0), lambda K, T, U: K**2 * (U**2).sum() / (0.2 * LN2**2) + 0.2 * T),
        (onebit.AdaptiveSurrogate(3.0), lambda K, T, U: 13.5 * 3.0 * math.sqrt(K * T)),
    ],
    ids=["Gaptron", "AdaptiveSurrogate"],
)
def test_mistakes_stay_below_the_guarantee(learner: Any, beyond: Any) -> None:
    problem = separable_problem(1500, 3, 4, 0.2)
    U = 3.0 / math.sqrt(3.0) * np.eye(3, 4)
    scores = problem.X @ U.T
    loss = np.log2(np.exp(scores).sum(axis=1)) - scores[np.arange(1500), problem.y] / LN2
    runs = [onebit.play(learner, problem.X, problem.y, seed=seed).mistakes for seed in range(8)]
    assert np.mean(runs) <= loss.sum() + beyond(3, 1500, U)
    assert np.mean(runs) < 0.6 * 1500


def test_late_answers_are_steps_with_the_chance_of_then() -> None:
    x, other = np.array([1.0, 0.5]), np.array([-1.0, 2.0])
    learner = onebit.Gaptron(0.3, learning_rate=0.5, classes=2, seed=1)
    late = learner.guess(x)
    for _ in range(20):
        guess = learner.guess(other)
        learner.tell(guess, guess.label == 1)
    before = learner.weights_
    learner.tell(late, correct=True)
    e = np.eye(2)[late.index]
    expected = -0.5 / (LN2 * late.propensity) * np.outer(softmax(before @ x) - e, x)
    np.testing.assert_allclose(learner.weights_ - before, expected, rtol=1e-9)


def test_rows_of_zeros_teach_nothing_and_break_nothing() -> None:
    for learner in (
        onebit.ConservativePassiveAggressive(math.inf),
        onebit.Gaptron(),
        onebit.AdaptiveSurrogate(),
        onebit.FullInformationPassiveAggressive(math.inf),
        onebit.FullInformationLogistic(),
    ):
        learner.set_params(classes=2)
        for rows in (np.zeros((20, 3)), scipy.sparse.csr_array((20, 3)), np.full((20, 3), 1e-170)):
            onebit.play(learner, rows, [0, 1] * 10)
            assert np.isfinite(learner.weights_).all()
        with pytest.raises(ValueError, match="too large or too small"):
            learner.guess([1e200, 0.0, 0.0])


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (onebit.ConservativePassiveAggressive(0.0), "C must be"),
        (onebit.ConservativePassiveAggressive(np.ones(2)), "C must be"),  # type: ignore[arg-type]
        (onebit.Majority(1.5), "exploration must be"),
        (onebit.Majority(np.ones(2)), "exploration must be"),  # type: ignore[arg-type]
        (onebit.Gaptron(0.0), "exploration must be"),
        (onebit.Gaptron(learning_rate=-1.0), "learning_rate must be"),
        (onebit.Gaptron(learning_rate=1e308), "learning_rate must be"),
        (onebit.Gaptron(longest=0.0), "longest must be"),
        (onebit.Gaptron(longest=1e-200), "longest must be"),
        (onebit.AdaptiveSurrogate(0.0), "norm_bound must be"),
        (onebit.FullInformationPassiveAggressive(-1.0), "C must be"),
        (onebit.FullInformationLogistic(math.inf), "norm_bound must be"),
        (onebit.AdaptiveSurrogate(horizon=0), "horizon must be"),
        pytest.param(onebit.AdaptiveSurrogate(horizon=10**400), "horizon must be", id="beyond floats"),
    ],
    ids=str,
)
def test_bad_settings(learner: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learner.set_params(classes=2).guess([1.0])


@pytest.mark.parametrize("learner", [onebit.Gaptron(classes=2), onebit.AdaptiveSurrogate(classes=2)], ids=str)
def test_known_rounds_need_their_chances(learner: Any) -> None:
    with pytest.raises(ValueError, match="propensities are needed"):
        learner.learn_from([[1.0]], [0], True)
    with pytest.raises(ValueError, match="must not be so small"):
        learner.learn_from([[1.0]], [0], True, 1e-200)
    with pytest.raises(ValueError, match="too large"):  # its steps would have no square
        learner.guess([1e153])


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
