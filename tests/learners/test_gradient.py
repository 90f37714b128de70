"""What the learners that take gradient steps share."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import onebit
from onebit.checks.problems import separable_problem
from plain_programs import softmax

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
