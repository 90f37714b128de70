"""Whether answers come equally often, for every label and every propensity."""

import numpy as np
import pytest

from onebit.cli.evaluate import _describe_answers
from onebit.experiments.evaluate import LoggedRounds, answer_rates, logged_rounds
from onebit.experiments.evaluate.estimates import _UNEVEN

N, K = 400, 4


def uneven_answers(log: LoggedRounds) -> list[str]:
    return [rates.warning for rates in answer_rates(log) if rates.is_uneven]


def explored(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]:
    """Return guesses of a good learner with a floor, whether they are right, and their propensities."""
    random = np.random.default_rng(seed)
    truths = random.integers(K, size=N)
    best = np.where(random.random(N) < 0.8, truths, random.integers(K, size=N))
    guesses = np.where(random.random(N) < 0.2, random.integers(K, size=N), best)
    return guesses, guesses == truths, np.where(guesses == best, 0.85, 0.05), random


def log_of(guesses: np.ndarray, right: np.ndarray, propensities: object, is_missing: np.ndarray) -> LoggedRounds:
    answers = [None if missing else bool(correct) for correct, missing in zip(right, is_missing, strict=True)]
    return logged_rounds(np.zeros((len(guesses), 1)), guesses, answers, propensities, classes=K)


def test_false_alarms_are_as_rare_as_they_say() -> None:
    """With 300 logs a share of 5 % is known to ± 2.5 points (two standard errors)."""
    fired = []
    for seed in range(300):
        guesses, right, propensities, random = explored(seed)
        fired.append(bool(uneven_answers(log_of(guesses, right, propensities, random.random(N) < 0.3))))
    assert _UNEVEN - 0.025 < np.mean(fired) < _UNEVEN + 0.025


def test_wrong_answers_that_are_missing_are_seen() -> None:
    fired = []
    for seed in range(100):
        guesses, right, propensities, random = explored(seed)
        fired.append(uneven_answers(log_of(guesses, right, propensities, ~right & (random.random(N) < 0.5))))
    assert np.mean([len(each) > 0 for each in fired]) > 0.9
    assert "for every propensity: " in "".join(fired[0])
    assert "% (below 0.1) to " in "".join(fired[0])


def test_answers_that_are_yet_to_come_are_no_cause_for_alarm() -> None:
    """The labels of the last rounds are others than before, and none of them is answered."""
    guesses = np.where(np.arange(N) < 300, np.arange(N) % 2, 2 + np.arange(N) % 2)
    log = log_of(guesses, np.ones(N, bool), 0.5, np.arange(N) >= 300)
    (rates,) = answer_rates(log)
    assert rates.by == "label"
    assert rates.n_answered == [150, 150, 0, 0]
    assert rates.p_value is None
    assert _describe_answers(log).startswith(
        "300 of 400 rounds; by label 0 % (2) to 100 % (0), too few to test; all of"
    )


@pytest.mark.parametrize(("is_right", "said"), [(True, "favours the log"), (False, "favours the others")])
def test_answers_that_are_all_the_same_are_said(is_right: bool, said: str) -> None:
    """Users who say nothing about wrong guesses leave rounds in which nobody can be better than the log."""
    is_missing = np.arange(N) % 5 == 0
    assert _describe_answers(log_of(np.arange(N) % K, np.full(N, is_right), 0.25, is_missing)).endswith(said)
    mixed = _describe_answers(log_of(np.arange(N) % K, np.arange(N) % 3 == 0, 0.25, is_missing))
    assert "favours" not in mixed


def test_a_label_that_is_answered_less_often_is_named() -> None:
    random = np.random.default_rng(1)
    guesses = random.integers(K, size=N)
    log = log_of(guesses, np.ones(N, bool), 1 / K, (guesses == 2) & (random.random(N) < 0.4))
    (said,) = uneven_answers(log)
    assert said.startswith("answers do not come equally often for every label: ")
    assert "% (2) to 100 % (0), p = " in said
    assert said.endswith("the estimates do not hold; the bounds do")


@pytest.mark.parametrize("propensities", [None, 1.0])
def test_where_nothing_is_estimated_by_chance_nothing_is_assumed(propensities: float | None) -> None:
    guesses = np.arange(N) % K
    assert answer_rates(log_of(guesses, np.ones(N, bool), propensities, guesses == 2)) == []


def test_a_few_rounds_prove_nothing() -> None:
    log = logged_rounds(np.zeros((6, 1)), [0, 0, 0, 1, 1, 1], [True, True, True, None, None, None], 0.5)
    (rates,) = answer_rates(log)
    assert (rates.p_value, rates.is_uneven) == (None, False)


def test_all_answered() -> None:
    log = log_of(np.arange(N) % K, np.ones(N, bool), 0.25, np.zeros(N, bool))
    assert answer_rates(log) == []
    assert _describe_answers(log).startswith("all rounds; if others were left out")
