"""What is known of guesses on a log, and what is estimated of them, against the truth."""

from dataclasses import replace

import numpy as np
import pytest

import onebit
from onebit.cli.evaluate import _describe_answers
from onebit.experiments.evaluate import (
    Candidate,
    Evaluation,
    LoggedRounds,
    answer_rates,
    evaluate,
    logged_rounds,
    play_with_floor,
)
from onebit.experiments.evaluate.estimates import _UNEVEN, METHODS, _Expected, estimate, expect, known
from onebit.experiments.figures import evaluation_drawings

K = 3


def drawn_log(chances: np.ndarray, truths: np.ndarray, seed: int, *, complete: bool = True) -> LoggedRounds:
    """Return a log in which the labels of a round have those chances."""
    random = np.random.default_rng(seed)
    guesses = (random.random((len(truths), 1)) < np.cumsum(chances, axis=1)).argmax(axis=1)
    propensities = chances[np.arange(len(truths)), guesses]
    rows = random.normal(size=(len(truths), 2))
    log = logged_rounds(rows, guesses, guesses == truths, propensities, classes=K if complete else None)
    assert len(log.classes) == K
    return log


def constant(log: LoggedRounds, guesses: np.ndarray, chance: float = 1.0 / K) -> _Expected:
    """Return what one expects who expects the same of every label."""
    same = np.full(log.n_rounds, chance)
    return _Expected(guesses, same, same, np.full(log.n_rounds, K * chance**2))


def test_what_is_known_by_hand() -> None:
    X = np.zeros((5, 1))
    log = logged_rounds(X, [0, 0, 0, 0, 1], [True, True, False, False, None], classes=3)
    #                    same and right, other: wrong, same and wrong, other: unknown, unanswered
    facts = known(log, np.array([0, 1, 0, 2, 1]))
    assert tuple(facts) == (1, 2, 1)
    assert (facts.rounds, facts.low, facts.high) == (4, 0.5, 0.75)
    # A label that the log does not know is another one.
    assert tuple(known(log, np.array([-1, -1, -1, -1, -1]))) == (0, 2, 2)


def test_of_two_classes_all_is_known() -> None:
    log = logged_rounds(np.zeros((4, 1)), [0, 0, 1, 1], [True, False, True, False], classes=2)
    assert tuple(known(log, np.array([0, 1, 0, 1]))) == (2, 2, 0)
    # If others may be right, "not the one" proves nothing.
    log = logged_rounds(np.zeros((4, 1)), [0, 0, 1, 1], [True, False, True, False])
    assert tuple(known(log, np.array([0, 1, 0, 1]))) == (1, 2, 1)


def test_estimates_are_right_on_average() -> None:
    """Over many logs of the same rounds: means are about right, as far as the cut lets them, and intervals cover."""
    random = np.random.default_rng(0)
    n = 120
    truths, guesses = random.integers(K, size=(2, n))
    guesses[:40] = truths[:40]
    chances = random.dirichlet([3.0] * K, size=n)
    rate = float(np.mean(guesses != truths))
    found: dict[str, list[tuple[float, bool]]] = {}
    for seed in range(200):
        log = drawn_log(chances, truths, seed)
        facts = known(log, guesses)
        assert facts.low <= rate <= facts.high
        for method, each in estimate(log, constant(log, guesses)).found.items():
            found.setdefault(method, []).append((each.rate, each.low <= rate <= each.high))
    assert tuple(found) == METHODS
    for method, runs in found.items():
        rates, covered = np.array(runs).T
        error = rates.std() / np.sqrt(len(rates))
        assert abs(rates.mean() - rate) < 4.0 * error + (0.02 if method == "SNIPS" else 0.005), method
        assert covered.mean() > 0.9, method
    # What "right" tells makes DR+ the steadiest.
    spreads = {method: float(np.std([value for value, _ in runs])) for method, runs in found.items()}
    assert spreads["DR+"] < spreads["DR"] < spreads["IPS"]


def test_what_dr_plus_needs_is_asked_for() -> None:
    chances = np.full((200, K), 1.0 / K)
    truths = np.random.default_rng(1).integers(K, size=200)
    log = drawn_log(chances, truths, 2, complete=False)
    found = estimate(log, constant(log, truths))
    assert set(found.found) == {"IPS", "SNIPS", "DR"}
    assert found.notes == (
        "DR+ is not offered: the right label need not be one of the log's (--classes lists all that there are)",
    )
    assert found.warnings == ()


def log_among(truths: np.ndarray, share: float, seed: int) -> tuple[LoggedRounds, np.ndarray]:
    """Return a log that guessed uniformly, in a share of the rounds between two labels of three, and other guesses."""
    random, n = np.random.default_rng(seed), len(truths)
    is_restricted = np.arange(n) < share * n
    left_out = random.integers(K, size=n)
    # In the restricted rounds the labels are counted from the one that is left out.
    guesses = np.where(is_restricted, left_out + 1 + random.integers(2, size=n), random.integers(K, size=n)) % K
    others = np.where(is_restricted, left_out + 1 + random.integers(2, size=n), random.integers(K, size=n)) % K
    among = [
        sorted({0, 1, 2} - {out}) if restricted else None
        for out, restricted in zip(left_out.tolist(), is_restricted.tolist(), strict=True)
    ]
    propensities = np.where(is_restricted, 1 / 2, 1 / 3)
    rows = np.zeros((n, 1))
    return logged_rounds(rows, guesses, guesses == truths, propensities, among=among, classes=K), others


def test_dr_plus_is_not_offered_where_the_right_label_may_not_have_been_allowed() -> None:
    truths = np.random.default_rng(1).integers(K, size=200)
    log, others = log_among(truths, 1.0, 2)
    found = estimate(log, constant(log, others))
    assert set(found.found) == {"IPS", "SNIPS", "DR"}
    assert "no round allowed all labels, and the right one may be among those left out" in found.notes[0]
    # Nor if all that was heard is "right", so that it was there: the draw must not decide what is counted.
    guessed = logged_rounds(log.X, log.guesses, [True] * 200, log.propensities, among=log.among, classes=K)
    assert "DR+" not in estimate(guessed, constant(log, others)).found


def test_dr_plus_is_right_on_average_where_some_rounds_do_not_allow_all_labels() -> None:
    truths = np.random.default_rng(1).integers(K, size=150)
    errors, covered = [], []
    for seed in range(200):
        log, others = log_among(truths, 0.5, seed)
        same = 1.0 / log.n_allowed  # of every label that was allowed
        found = estimate(log, _Expected(others, same, same, same))
        assert found.notes == ("in 75 of 150 rounds not all labels were allowed: there DR+ is as DR",)
        rate, each = float(np.mean(others != truths)), found.found["DR+"]
        errors.append(each.rate - rate)
        covered.append(each.low <= rate <= each.high)
    assert abs(np.mean(errors)) < 4.0 * np.std(errors) / np.sqrt(200)
    assert np.mean(covered) > 0.9


def test_dr_plus_is_not_offered_where_a_label_had_no_chance() -> None:
    random = np.random.default_rng(5)
    truths, guesses, others = (random.integers(k, size=600) for k in (K, 2, 2))
    log = logged_rounds(np.zeros((600, 1)), guesses, guesses == truths, 0.5, classes=K)
    found = estimate(log, constant(log, others))
    assert "DR+" not in found.found
    assert "some labels had no chance, or hardly any" in found.notes[0]


def silenced(log: LoggedRounds, is_missing: np.ndarray) -> LoggedRounds:
    return replace(log, answers=np.where(is_missing, -1, log.answers))


def test_wrong_answers_that_are_missing_show_in_how_often_the_others_are_right() -> None:
    """All labels alike, all propensities alike: only that exactly one label is right tells."""
    random, n = np.random.default_rng(3), 600
    truths, others = random.integers(K, size=(2, n))
    log = drawn_log(np.full((n, K), 1.0 / K), truths, 4)
    half = random.random(n) < 0.5

    def warnings(is_missing: np.ndarray) -> str:
        return "; ".join(estimate(silenced(log, is_missing), constant(log, others)).warnings)

    assert "wrong guesses were answered less often than right ones" in warnings(half & (log.answers == 0))
    assert "right guesses were answered less often than wrong ones" in warnings(half & (log.answers == 1))
    # What rows are answered does not matter, nor how many.
    assert warnings(half & (truths == 0)) == ""
    assert warnings(half) == ""


@pytest.mark.ci
def test_a_verdict_by_an_estimate_needs_answers_that_come_equally_often() -> None:
    X, y = onebit.streams.paper_strong(rounds=600, seed=1)
    log = play_with_floor(onebit.BanditPerceptron(classes=9), X, y, floor=0.5, seed=2)
    saved = onebit.BanditPerceptron(classes=9).learn_labels(X, y)
    rows = (_, row) = evaluate(log, [Candidate("saved", saved, is_frozen=True)])
    assert (row.verdict, row.verdict_by) == ("fewer", "DR+")
    (legend,) = evaluation_drawings(rows)[0].draw().legends
    assert legend.get_title().get_text().split() == row.estimates.assumption.split()
    assert row.estimates.assumption.startswith("estimates assume that whether an answer came did not depend on")
    is_missing = (log.answers == 0) & (np.random.default_rng(1).random(600) < 0.6)
    (logged, row) = evaluate(silenced(log, is_missing), [Candidate("saved", saved, is_frozen=True)])
    assert any("answers do not come equally often for every propensity" in text for text in row.estimates.warnings)
    assert (row.verdict, row.verdict_by) == ("open", "")
    assert logged.estimates.assumption == ""


def test_what_is_sure_rests_on_bounds() -> None:
    log = logged_rounds(np.zeros((3, 1)), [0, 1, 1], [True, False, False], classes=2)
    guesses = np.array([0, 0, 0])
    row = Evaluation("sure", guesses, known(log, guesses), estimate(log, constant(log, guesses)), 2)
    assert (row.verdict, row.verdict_by) == ("surely fewer", "bounds")


def test_intervals_do_not_vanish_where_no_unlikely_label_was_tried() -> None:
    """The draws that fell show no variance then; the chances do."""
    n = 400
    truths = np.random.default_rng(3).integers(K, size=n)
    logged = np.where(np.arange(n) % 4 == 0, (truths + 1) % K, truths)
    log = logged_rounds(np.zeros((n, 1)), logged, logged == truths, 0.996, classes=K)
    others = np.where(np.arange(n) % 4 == 0, (truths + 2) % K, truths)
    found = estimate(log, constant(log, others))
    facts = known(log, others)
    assert facts.unknown == 100
    for method, each in found.found.items():
        assert each.high - each.low > 0.5 * (facts.high - facts.low), method
    assert any("too few for the estimates" in text for text in found.warnings)


def test_no_probabilities_no_estimates() -> None:
    log = logged_rounds(np.zeros((3, 1)), [0, 1, 2], [True, False, False])
    found = estimate(log, constant(log, np.array([0, 0, 0])))
    assert found.found == {}
    assert found.warnings == ("the log has no propensities, so there are bounds and no estimates",)


def test_a_log_that_was_certain_and_wrong_allows_no_estimate() -> None:
    log = logged_rounds(np.zeros((3, 1)), [0, 1, 2], [True, False, False], 1.0)
    found = estimate(log, constant(log, np.array([0, 0, 2])))
    assert found.found == {}
    assert "in 1 rounds the logged label was certain (propensity 1), was wrong" in found.warnings[0]


def test_a_log_that_was_certain_and_decides_all_is_exact() -> None:
    log = logged_rounds(np.zeros((3, 1)), [0, 1, 2], [True, True, False], 1.0)
    found = estimate(log, constant(log, np.array([0, 0, 2])))
    for each in found.found.values():
        assert tuple(each) == pytest.approx((2 / 3, 2 / 3, 2 / 3))


def test_labels_that_are_never_tried_are_noticed() -> None:
    n = 3000
    random = np.random.default_rng(5)
    truths = random.integers(K, size=n)
    # The third label is never tried.
    guesses = random.integers(2, size=n)
    log = logged_rounds(random.normal(size=(n, 2)), guesses, guesses == truths, 0.5, classes=K)
    found = estimate(log, constant(log, np.full(n, 2)))
    assert any("weights average 0.00, not 1" in text for text in found.warnings)


def test_a_log_that_tosses_a_coin_is_not_said_to_tell_too_little() -> None:
    """Two labels with an even chance each, neither of which need be right."""
    n, random = 200, np.random.default_rng(5)
    guesses, truths = random.integers(2, size=n), random.integers(3, size=n)
    log = logged_rounds(random.normal(size=(n, 2)), guesses, guesses == truths, 0.5)
    found = estimate(log, constant(log, np.zeros(n, dtype=np.int64)))
    assert found.warnings == ()
    assert found.telling is not None
    assert found.telling > n / 3


def test_rounds_without_a_probability_are_said() -> None:
    n = 100
    truths = np.random.default_rng(7).integers(K, size=n)
    log = drawn_log(np.full((n, K), 1.0 / K), truths, 8)
    log.propensities[:10] = np.nan
    found = estimate(log, constant(log, truths))
    assert any("10 answered rounds have no propensity" in text for text in found.warnings)


def test_expectations_know_only_the_past() -> None:
    random = np.random.default_rng(9)
    n = 300
    X, truths = random.normal(size=(n, 2)), random.integers(K, size=n)
    guesses = random.integers(K, size=n)
    log = logged_rounds(X, guesses, guesses == truths, 1.0 / K, classes=K)
    (before,) = expect(log, [truths])
    assert np.all((before.of_guess > 0.0) & (before.of_guess < 1.0))
    flipped = log.answers.copy()
    flipped[200:] = 1 - flipped[200:]
    changed = LoggedRounds("other", log.X, log.classes, log.guesses, flipped, log.propensities, is_complete=True)
    (after,) = expect(changed, [truths])
    np.testing.assert_array_equal(before.of_guess[:200], after.of_guess[:200])
    assert not np.array_equal(before.of_guess, after.of_guess)


def test_a_floor_logs_the_chances() -> None:
    X, y = onebit.streams.paper_strong(rounds=300, seed=1)
    with pytest.raises(ValueError, match="floor must be"):
        play_with_floor(onebit.UniformGuess(classes=9), X, y, floor=1.5)
    log = play_with_floor(onebit.BanditPerceptron(classes=9), X, y, floor=0.18, seed=2)
    assert log.is_complete
    assert log.propensities.min() == pytest.approx(0.02)
    # The chances are those of the draws: the inverse ones average to the number of labels that had one.
    uniform = play_with_floor(onebit.UniformGuess(classes=9), X, y, floor=0.5)
    np.testing.assert_allclose(uniform.propensities, 1.0 / 9.0)


def test_a_whole_evaluation_against_the_truth() -> None:
    X, y = onebit.streams.paper_strong(rounds=600, seed=1)
    log = play_with_floor(onebit.BanditPerceptron(classes=9), X, y, floor=0.2, seed=2)
    told: list[tuple[int, int]] = []
    saved = onebit.BanditPerceptron(classes=9).learn_labels(X[:100], y[:100])
    others = [Candidate("learns", onebit.BanditPerceptron()), Candidate("saved", saved, is_frozen=True)]
    rows = evaluate(log, others, on_progress=lambda done, total: told.append((done, total)))
    assert [row.title for row in rows] == ["the log itself", "learns", "saved"]
    assert tuple(rows[0].known) == (int((log.answers == 1).sum()), int((log.answers == 0).sum()), 0)
    assert rows[0].verdict == ""
    assert told[-1] == (1200, 1200)
    for row in rows[1:]:
        wrong = int(np.sum(row.guesses != y))
        assert row.known.wrong <= wrong <= row.known.wrong + row.known.unknown
        assert row.best == row.estimates.found["DR+"]
        assert row.verdict in ("surely fewer", "fewer", "open")
    with pytest.raises(ValueError, match="candidates must have at least one learner"):
        evaluate(log, [])


N_ROUNDS, N_LABELS = 400, 4


def uneven_answers(log: LoggedRounds) -> list[str]:
    return [rates.warning for rates in answer_rates(log) if rates.is_uneven]


def explored(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]:
    """Return guesses of a good learner with a floor, whether they are right, and their propensities."""
    random = np.random.default_rng(seed)
    truths = random.integers(N_LABELS, size=N_ROUNDS)
    best = np.where(random.random(N_ROUNDS) < 0.8, truths, random.integers(N_LABELS, size=N_ROUNDS))
    guesses = np.where(random.random(N_ROUNDS) < 0.2, random.integers(N_LABELS, size=N_ROUNDS), best)
    return guesses, guesses == truths, np.where(guesses == best, 0.85, 0.05), random


def log_of(guesses: np.ndarray, right: np.ndarray, propensities: object, is_missing: np.ndarray) -> LoggedRounds:
    answers = [None if missing else bool(correct) for correct, missing in zip(right, is_missing, strict=True)]
    return logged_rounds(np.zeros((len(guesses), 1)), guesses, answers, propensities, classes=N_LABELS)


def test_false_alarms_are_as_rare_as_they_say() -> None:
    """With 300 logs a share of 5 % is known to ± 2.5 points (two standard errors)."""
    fired = []
    for seed in range(300):
        guesses, right, propensities, random = explored(seed)
        fired.append(bool(uneven_answers(log_of(guesses, right, propensities, random.random(N_ROUNDS) < 0.3))))
    assert _UNEVEN - 0.025 < np.mean(fired) < _UNEVEN + 0.025


def test_wrong_answers_that_are_missing_are_seen() -> None:
    fired = []
    for seed in range(100):
        guesses, right, propensities, random = explored(seed)
        fired.append(uneven_answers(log_of(guesses, right, propensities, ~right & (random.random(N_ROUNDS) < 0.5))))
    assert np.mean([len(each) > 0 for each in fired]) > 0.9
    assert "for every propensity: " in "".join(fired[0])
    assert "% (below 0.1) to " in "".join(fired[0])


def test_answers_that_are_yet_to_come_are_no_cause_for_alarm() -> None:
    """The labels of the last rounds are others than before, and none of them is answered."""
    guesses = np.where(np.arange(N_ROUNDS) < 300, np.arange(N_ROUNDS) % 2, 2 + np.arange(N_ROUNDS) % 2)
    log = log_of(guesses, np.ones(N_ROUNDS, bool), 0.5, np.arange(N_ROUNDS) >= 300)
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
    is_missing = np.arange(N_ROUNDS) % 5 == 0
    assert _describe_answers(
        log_of(np.arange(N_ROUNDS) % N_LABELS, np.full(N_ROUNDS, is_right), 0.25, is_missing)
    ).endswith(said)
    mixed = _describe_answers(log_of(np.arange(N_ROUNDS) % N_LABELS, np.arange(N_ROUNDS) % 3 == 0, 0.25, is_missing))
    assert "favours" not in mixed


def test_a_label_that_is_answered_less_often_is_named() -> None:
    random = np.random.default_rng(1)
    guesses = random.integers(N_LABELS, size=N_ROUNDS)
    log = log_of(guesses, np.ones(N_ROUNDS, bool), 1 / N_LABELS, (guesses == 2) & (random.random(N_ROUNDS) < 0.4))
    (said,) = uneven_answers(log)
    assert said.startswith("answers do not come equally often for every label: ")
    assert "% (2) to 100 % (0), p = " in said
    assert said.endswith("the estimates do not hold; the bounds do")


@pytest.mark.parametrize("propensities", [None, 1.0])
def test_where_nothing_is_estimated_by_chance_nothing_is_assumed(propensities: float | None) -> None:
    guesses = np.arange(N_ROUNDS) % N_LABELS
    assert answer_rates(log_of(guesses, np.ones(N_ROUNDS, bool), propensities, guesses == 2)) == []


def test_a_few_rounds_prove_nothing() -> None:
    log = logged_rounds(np.zeros((6, 1)), [0, 0, 0, 1, 1, 1], [True, True, True, None, None, None], 0.5)
    (rates,) = answer_rates(log)
    assert (rates.p_value, rates.is_uneven) == (None, False)


def test_all_answered() -> None:
    log = log_of(np.arange(N_ROUNDS) % N_LABELS, np.ones(N_ROUNDS, bool), 0.25, np.zeros(N_ROUNDS, bool))
    assert answer_rates(log) == []
    assert _describe_answers(log).startswith("all rounds; if others were left out")
