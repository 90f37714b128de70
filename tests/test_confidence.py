import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onebit.confidence import _ANSWERS, _LATELY, _MIXTURE, _SCALE, _SPREAD, Confidence, _ConfidenceArrays
from onebit.inputs import Floats

ENOUGH = 30
"""Answers before there is a confidence."""


def sigmoid(odds: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-odds))


def gap_of(scores: Floats) -> float:
    return float(scores.max() - np.partition(scores, -2)[-2])


def logistic(scores: Floats, _round: int) -> float:
    return float(sigmoid(3.0 * gap_of(scores) - 1.0))


def play(
    confidence: Confidence,
    rounds: int,
    chance: Callable[[Floats, int], float] = logistic,
    *,
    seed: int = 1,
    n_classes: int = 5,
    draw: str = "standard_normal",
    factor: float = 1.0,
) -> tuple[Floats, Floats, Any]:
    """Return confidence, true probability and outcome of every round."""
    generator = np.random.default_rng(seed)
    estimates, truths, outcomes = np.empty(rounds), np.empty(rounds), np.empty(rounds, bool)
    for t in range(rounds):
        scores = getattr(generator, draw)(n_classes)
        label, truths[t] = int(np.argmax(scores)), chance(scores, t)
        evidence, estimates[t] = confidence.observe(factor * scores, label)
        outcomes[t] = generator.random() < truths[t]
        confidence.learn(evidence, label, bool(outcomes[t]))
    return estimates, truths, outcomes


def same(a: _ConfidenceArrays, b: _ConfidenceArrays) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def calibration_error(estimates: Floats, outcomes: Any, bins: int = 10) -> float:
    """Return the mean distance of confidence and share right, over bins with equally many rounds."""
    parts = np.array_split(np.argsort(estimates, kind="stable"), bins)
    return float(sum(abs(np.sum(estimates[part] - outcomes[part])) for part in parts) / len(estimates))


# Calibration.


@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy"])
def test_the_confidence_is_the_probability_where_it_is_known(draw: str) -> None:
    def chance(scores: Floats, _round: int) -> float:
        return 0.3 + 0.7 * gap_of(scores) / (1.0 + gap_of(scores))

    estimates, truths, outcomes = play(Confidence(), 8000, chance, draw=draw)
    assert np.abs(estimates - truths)[1000:].mean() < 0.05  # 0.03 when written
    assert calibration_error(estimates[1000:], outcomes[1000:]) < 0.02  # 0.009 would be by chance
    assert np.corrcoef(estimates[1000:], truths[1000:])[0, 1] > 0.9


def test_a_class_that_is_often_wrong_gets_less_confidence() -> None:
    confidence, generator = Confidence(), np.random.default_rng(2)
    estimates: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for _ in range(3000):
        scores = generator.normal(size=3)
        label = int(np.argmax(scores))
        evidence, estimate = confidence.observe(scores, label)
        estimates[label].append(estimate)
        confidence.learn(evidence, label, bool(generator.random() < (0.9, 0.9, 0.3)[label]))
    means = [np.mean(estimates[label][-500:]) for label in range(3)]
    assert means == pytest.approx([0.9, 0.9, 0.3], abs=0.07)


def test_what_the_learner_offers_is_used() -> None:
    confidence, generator, off = Confidence(n_extra=2), np.random.default_rng(3), []
    for _ in range(3000):
        scores, extra = generator.normal(size=2), generator.uniform(-2.0, 2.0, size=2)
        truth = sigmoid(-2.0 * extra[1])
        evidence, estimate = confidence.observe(scores, 0, extra)
        off.append(abs(estimate - truth))
        confidence.learn(evidence, 0, bool(generator.random() < truth))
    assert np.mean(off[-1000:]) < 0.05


def test_it_forgets_when_all_is_turned_round() -> None:
    def flipped(scores: Floats, t: int) -> float:
        return logistic(scores, t) if t < 4000 else 1.0 - logistic(scores, t)

    estimates, truths, _ = play(Confidence(), 6000, flipped)
    off = np.abs(estimates - truths)
    assert off[4000:4050].mean() > 0.2  # it could not know
    assert off[4500:5000].mean() < 0.1
    assert off[5000:].mean() < 0.06


@pytest.mark.parametrize("n_classes", [1, 2, 1000])
@pytest.mark.parametrize("correct", [True, False])
def test_always_right_and_always_wrong(n_classes: int, correct: bool) -> None:
    confidence, generator = Confidence(), np.random.default_rng(4)
    for _ in range(600):
        scores = generator.normal(size=n_classes)
        evidence, estimate = confidence.observe(scores, 0)
        confidence.learn(evidence, 0, correct)
    assert 0.0 < estimate < 1.0
    assert abs(estimate - correct) < 0.03


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [1e300, 1e300, 1e300], [-5.0, -5.0, -5.0], []])
def test_scores_that_tell_nothing_leave_the_rate(scores: list[float]) -> None:
    confidence, generator, estimates = Confidence(), np.random.default_rng(5), []
    for _ in range(3000):
        evidence, estimate = confidence.observe(np.array(scores), 1)
        estimates.append(estimate)
        confidence.learn(evidence, 1, bool(generator.random() < 0.7))
    assert np.mean(estimates[1000:]) == pytest.approx(0.7, abs=0.03)
    assert np.std(estimates[1000:]) < 0.1


def test_it_takes_to_another_scale() -> None:
    confidence = Confidence()
    play(confidence, 1000)
    play(confidence, 1000, factor=1e9, seed=2)
    estimates, truths, _ = play(confidence, 2000, factor=1e9, seed=3)
    assert np.abs(estimates - truths).mean() < 0.06


@pytest.mark.parametrize("factor", [1e-200, 1e-6, 1e6, 1e200])
def test_the_scale_of_the_scores_does_not_matter(factor: float) -> None:
    expected, _, _ = play(Confidence(), 300)
    estimates, _, _ = play(Confidence(), 300, factor=factor)
    assert estimates[ENOUGH:] == pytest.approx(expected[ENOUGH:], abs=1e-6)


# The protocol.


def test_there_is_no_confidence_before_there_is_feedback() -> None:
    estimates, _, _ = play(Confidence(), 100)
    assert np.isnan(estimates[:ENOUGH]).all()
    assert np.isfinite(estimates[ENOUGH:]).all()


def test_the_same_feedback_gives_the_same_estimates_and_arrays() -> None:
    one, other = Confidence(), Confidence()
    assert np.array_equal(play(one, 500)[0], play(other, 500)[0], equal_nan=True)
    assert same(one.arrays, other.arrays)


def test_observing_changes_nothing() -> None:
    confidence = Confidence()
    play(confidence, 100)
    before = copy.deepcopy(confidence)
    for seed in range(20):
        confidence.observe(np.random.default_rng(seed).normal(size=5), 2)
    confidence.estimate_rows(np.random.default_rng(0).normal(size=(20, 5)), np.zeros(20, int))
    assert same(confidence.arrays, before.arrays)


def test_feedback_may_come_late_in_any_order_or_never() -> None:
    confidence, generator, open_guesses = Confidence(), np.random.default_rng(6), []
    errors = []
    for t in range(6000):
        scores = generator.normal(size=5)
        label, truth = int(np.argmax(scores)), logistic(scores, t)
        evidence, estimate = confidence.observe(scores, label)
        errors.append(abs(estimate - truth))
        if generator.random() < 0.8:
            open_guesses.append((evidence, label, bool(generator.random() < truth)))
        if len(open_guesses) > 200:
            confidence.learn(*open_guesses.pop(int(generator.integers(len(open_guesses)))))
    assert np.mean(errors[2000:]) < 0.06
    confidence.put_back(confidence.arrays._asdict())


def test_only_the_order_of_the_feedback_matters() -> None:
    source, generator, answers = Confidence(), np.random.default_rng(7), []
    for t in range(200):
        scores = generator.normal(size=5)
        evidence, _ = source.observe(scores, t % 5)
        answers.append((evidence, t % 5, bool(t % 3)))
        source.learn(*answers[-1])
    again = Confidence()
    for answer in answers:
        again.learn(*answer)
    assert same(again.arrays, source.arrays)


@pytest.mark.parametrize("how", ["arrays", "copy", "pickle"])
def test_what_was_learned_can_be_copied_and_restored(how: str) -> None:
    confidence = Confidence()
    play(confidence, 200)
    if how == "arrays":
        other = Confidence()
        other.put_back(confidence.arrays._asdict())
    else:
        other = copy.deepcopy(confidence) if how == "copy" else pickle.loads(pickle.dumps(confidence))
    kept = copy.deepcopy(confidence).arrays
    assert np.array_equal(play(confidence, 200, seed=2)[0], play(other, 200, seed=2)[0])
    assert same(confidence.arrays, other.arrays)
    assert not same(confidence.arrays, kept)


def test_a_class_can_join() -> None:
    confidence, generator = Confidence(), np.random.default_rng(8)
    play(confidence, 500, n_classes=2)
    early, _ = confidence.observe(np.array([0.4, 0.1]), 0)
    confidence.learn(early, 0, correct=True)
    for _ in range(500):
        scores = generator.normal(size=3)
        evidence, estimate = confidence.observe(scores, 2)
        assert 0.0 < estimate < 1.0
        confidence.learn(evidence, 2, correct=False)
    assert confidence.observe(scores, 2)[1] < 0.1
    confidence.put_back(confidence.arrays._asdict())


def test_many_rows_at_once_are_estimated_as_one_by_one() -> None:
    confidence, generator = Confidence(n_extra=2), np.random.default_rng(9)
    scores, extra, labels = generator.normal(size=(300, 4)), generator.normal(size=(300, 2)), np.arange(300) % 4
    assert np.isnan(confidence.estimate_rows(scores, labels, extra)).all()
    for row, label, beside in zip(scores, labels.tolist(), extra, strict=True):
        confidence.learn(confidence.observe(row, label, beside)[0], label, bool(label))
    one_by_one = [confidence.observe(*guess)[1] for guess in zip(scores, labels.tolist(), extra, strict=True)]
    assert confidence.estimate_rows(scores, labels, extra).tolist() == one_by_one
    without = [confidence.observe(row, label)[1] for row, label in zip(scores, labels.tolist(), strict=True)]
    assert confidence.estimate_rows(scores, labels).tolist() == without


def test_its_memory_is_bounded() -> None:
    small, large = Confidence(), Confidence(n_extra=16)
    assert sum(array.nbytes for array in large.arrays) < 50_000
    assert sum(array.nbytes for array in small.arrays) < 20_000


# Hostile input.

_HOSTILE: list[list[float]] = [
    [1e300, -1e300, 0.0],
    [-1e308, 1e308, 1e308],
    [1.7e308, 1.7e308, -1.7e308],
    [5e-324, 0.0, -5e-324],
    [0.3, -np.inf, -np.inf],
    [-np.inf, 0.3, -np.inf],
    [np.inf, np.nan, 0.0],
    [0.0, 0.0, 0.0],
]


@pytest.mark.parametrize("seed", range(5))
def test_any_scores_give_finite_evidence(seed: int) -> None:
    confidence, generator = Confidence(n_extra=2), np.random.default_rng(seed)
    for t in range(2000):
        choice = int(generator.integers(2 * len(_HOSTILE)))
        scores = np.array(_HOSTILE[choice]) if choice < len(_HOSTILE) else generator.normal(size=3)
        extra = generator.choice([0.0, 1.0, np.nan, np.inf, -1e300], size=2)
        label = int(generator.integers(3))
        evidence, estimate = confidence.observe(scores, label, extra)
        assert np.isfinite(evidence).all()
        assert 0.0 < estimate < 1.0 or (t < ENOUGH and np.isnan(estimate))
        confidence.learn(evidence, label, bool(generator.random() < 0.5))
    confidence.put_back(confidence.arrays._asdict())


@pytest.mark.parametrize("seed", range(3))
def test_it_recovers_from_hostile_scores(seed: int) -> None:
    confidence = Confidence()
    for scores in _HOSTILE * 5:
        confidence.learn(confidence.observe(np.array(scores), 0)[0], 0, correct=True)
    _, truths, outcomes = play(confidence, 6000, n_classes=3, seed=seed)
    again, truths, outcomes = play(confidence, 4000, n_classes=3, seed=seed + 100)
    assert calibration_error(again, outcomes) < 0.03
    assert np.abs(again - truths).mean() < 0.1


def test_the_variances_stay_variances() -> None:
    confidence = Confidence()
    play(confidence, 30_000)
    for regression in confidence.arrays.regressions:
        assert regression[1:] == pytest.approx(regression[1:].T, abs=1e-9)
        assert np.linalg.eigvalsh(regression[1:]).min() > 0.0


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("regressions", (0, 0, 0), np.nan),
        ("regressions", (0, 0, 0), 1e9),
        ("regressions", (1, 3, 2), -1.0),
        ("regressions", (1, 1, 0), -0.1),
        ("classes", (0, 3), -1.0),
        ("classes", (1, 3), np.inf),
        ("classes", (1, 3), 1e6),
        ("nodes", (2, 3), -1.0),
        ("nodes", (0, 3), 1e6),
        ("nodes", (2, 3), 1e9),
        ("numbers", _ANSWERS, -1.0),
        ("numbers", _ANSWERS, 1.5),
        ("numbers", _SCALE, 1e4),
        ("numbers", _SPREAD, -1.0),
        ("numbers", _LATELY, 2.0),
        ("numbers", _MIXTURE, 0.0),
        ("numbers", _MIXTURE, 7.0),
    ],
)
def test_damaged_arrays_are_refused(name: str, place: Any, value: float) -> None:
    confidence = Confidence()
    play(confidence, 100)
    confidence.put_back(confidence.arrays._asdict())
    damaged = copy.deepcopy(confidence).arrays
    getattr(damaged, name)[place] = value
    with pytest.raises(ValueError, match="confidence: "):
        confidence.put_back(damaged._asdict())


def test_arrays_of_another_shape_are_refused() -> None:
    confidence = Confidence()
    with pytest.raises(ValueError, match=r"regressions must be float64 of shape \(2, 10, 9\)"):
        confidence.put_back(Confidence(n_extra=2).arrays._asdict())
    with pytest.raises(ValueError, match="classes must be float64"):
        confidence.put_back({**confidence.arrays._asdict(), "classes": np.zeros((2, 1024), np.float32)})
