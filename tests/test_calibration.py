"""Calibration: against scikit-learn and scipy, and in coverage over fixed seeds."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve

from onebit.asking import Asking
from onebit.calibration import (
    anytime_interval,
    calibration_error,
    cost_of_limits,
    reliability,
    risk_by_coverage,
    wilson,
)


def rounds(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    confidence = draw.beta(4.0, 1.0, n)
    return confidence, draw.random(n) < confidence


def test_reliability_is_that_of_scikit_learn() -> None:
    confidence, right = rounds(1000, seed=1)
    shares, means = calibration_curve(right, confidence, n_bins=10, strategy="quantile")
    bins = reliability(confidence, right)
    np.testing.assert_allclose([each.right for each in bins], shares)
    np.testing.assert_allclose([each.confidence for each in bins], means)


def test_wilson_is_that_of_scipy() -> None:
    for count, of in [(0, 10), (1, 10), (10, 10), (37, 500)]:
        expected = binomtest(count, of).proportion_ci(method="wilson")
        np.testing.assert_allclose(wilson(count / of, of), (expected.low, expected.high), atol=1e-12)


def test_true_probabilities_have_no_calibration_error() -> None:
    confidence, right = rounds(200_000, seed=2)
    assert calibration_error(confidence, right) < 0.005
    assert calibration_error(np.full(200_000, 0.99), right) > 0.15
    assert math.isnan(calibration_error(np.full(3, np.nan), np.ones(3, np.bool_)))


def test_risk_grows_with_coverage_where_confidence_ranks() -> None:
    confidence, right = np.array([0.9, np.nan, 0.7, 0.8]), np.array([True, False, False, True])
    coverage, risk = risk_by_coverage(confidence, right)
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    np.testing.assert_allclose(risk, [0.0, 0.0, 1 / 3, 0.5])  # a round without a confidence is the least sure


def test_the_cost_of_a_limit_is_what_the_rule_asks() -> None:
    confidence, right = rounds(3000, seed=3)
    costs = cost_of_limits(confidence, right, (0.02, 0.1))
    asking, asked = Asking(wrong_at_most=0.1), []
    for sure, is_right in zip(confidence.tolist(), right.tolist(), strict=True):
        decision = asking.decide(sure)
        asking.answer(decision, is_right)
        asked.append(decision.ask)
    assert costs[1].asked == np.mean(asked[1000:])
    assert costs[0].asked > costs[1].asked > 0.1, "a lower limit costs more"
    for cost in costs:
        alone = 2000 * (1.0 - cost.asked)
        assert cost.low <= cost.asked <= cost.high
        assert cost.wrong * alone <= cost.wrong_at_most * alone + 10.0 + asking.debt, "part 4 of the theorem"
    assert cost_of_limits(confidence[:100], right[:100]) == []


def test_the_interval_of_a_cost_covers_what_comes_next() -> None:
    """The share asked in the next rounds lies in the interval, made wider by their own, in at least 16 of 20 games."""
    inside = 0
    for seed in range(20):
        confidence, right = rounds(8000, seed)
        (seen,) = cost_of_limits(confidence[:4000], right[:4000], (0.05,))
        (next_,) = cost_of_limits(confidence[2666:], right[2666:], (0.05,))
        beside = math.hypot(seen.high - seen.asked, next_.high - next_.asked)
        inside += abs(seen.asked - next_.asked) <= beside
    assert inside >= 16


@pytest.mark.parametrize("kind", ["steady", "falling", "after mistakes"])
def test_an_anytime_interval_holds_at_all_times(kind: str) -> None:
    """Of 200 runs at most 5 % may ever leave it; that often is 5 runs of 200 in each kind, and the seeds are fixed."""
    draw, n, left = np.random.default_rng(4), 1000, 0
    for _ in range(120):
        p, x = np.empty(n), np.empty(n)
        for t in range(n):
            p[t] = {"steady": 0.05, "falling": 0.3 if t < 150 else 0.02}.get(kind, 0.04 + 0.3 * (t > 0 and x[t - 1]))
            x[t] = draw.random() < p[t]
        counts, means = np.cumsum(x), np.cumsum(p) / np.arange(1, n + 1)
        for t in np.unique(np.geomspace(5, n, 9).astype(int)):
            low, high = anytime_interval(int(counts[t - 1]), int(t))
            if not low <= means[t - 1] <= high:
                left += 1
                break
    assert left <= 6


def test_an_anytime_interval_narrows_and_is_wider_than_wilsons() -> None:
    before = (0.0, 1.0)
    for of in (10, 100, 1000, 10_000, 100_000):
        low, high = anytime_interval(of // 50, of)
        assert before[0] <= low <= 0.02 <= high <= before[1]
        assert low <= wilson(0.02, of)[0] + 1e-9 or of < 50
        before = low, high
    assert before[1] - before[0] < 0.005
    assert anytime_interval(0, 0) == (0.0, 1.0)
    assert anytime_interval(5, 5)[1] == 1.0
    assert anytime_interval(0, 5)[0] == 0.0
