"""Whether confidence holds what it says, and what a limit on wrong decisions costs, from rounds whose outcome is known.

Rounds are given by the confidence in each guess and whether it was right, in the order of their answers. Rounds without
a confidence (NaN) count as the least sure.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import t as student

from onebit.asking import Asking
from onebit.inputs import Floats

Bits = npt.NDArray[np.bool_]

LIMITS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
_BLOCKS = 10  # that the uncertainty of a share of asked rounds is estimated from
_LEAST_ROUNDS = 200  # for an estimate of what a limit costs
_TILTS = np.geomspace(0.02, 8.0, 25)  # of the mixture behind `anytime_interval`


class Bin(NamedTuple):
    """Rounds of similar confidence: their mean confidence, the share right, and a 95 % interval for it."""

    confidence: float
    right: float
    low: float
    high: float
    rounds: int


class Cost(NamedTuple):
    """What a limit costs: the share asked, a 95 % interval for it, and the share wrong among the rest."""

    wrong_at_most: float
    asked: float
    low: float
    high: float
    wrong: float


def reliability(confidence: Floats, right: Bits, n_bins: int = 10) -> list[Bin]:
    """Return rounds in bins of equal size, the least confident first; rounds without a confidence are left out.

    >>> confidence, right = np.repeat([0.5, 0.9], 100), np.repeat([True, False, True], [45, 55, 100])
    >>> [(round(bin.confidence, 2), bin.right, bin.rounds) for bin in reliability(confidence, right, 2)]
    [(0.5, 0.45, 100), (0.9, 1.0, 100)]
    """
    known = ~np.isnan(confidence)
    confidence, right = confidence[known], right[known]
    bins = []
    for part in np.array_split(np.argsort(confidence, kind="stable"), n_bins):
        if len(part):
            share = float(right[part].mean())
            bins.append(Bin(float(confidence[part].mean()), share, *wilson(share, len(part)), len(part)))
    return bins


def calibration_error(confidence: Floats, right: Bits, n_bins: int = 10) -> float:
    """Return the expected calibration error: the mean distance of confidence and share right over `reliability`."""
    bins = reliability(confidence, right, n_bins)
    total = sum(each.rounds for each in bins)
    return sum(each.rounds * abs(each.confidence - each.right) for each in bins) / total if total else math.nan


def risk_by_coverage(confidence: Floats, right: Bits) -> tuple[Floats, Floats]:
    """Return the share wrong among the most confident rounds, by what share of all rounds these are.

    The risk-coverage curve of selective classification: coverage from 1/n to 1, and the risk at each.
    """
    order = np.argsort(-np.nan_to_num(confidence, nan=-1.0), kind="stable")
    counts = np.arange(1, len(order) + 1)
    return counts / max(1, len(order)), np.cumsum(~right[order]) / counts


def cost_of_limits(confidence: Floats, right: Bits, limits: Sequence[float] = LIMITS) -> list[Cost]:
    """Return what limits on wrong decisions would have cost: the rule of `Asking`, played on recorded rounds.

    The first third of the rounds fills the rule's ledger, and is not counted. What labels would have taught is left
    out, so that a learner that is asked does better than this. There is none below 200 rounds.
    """
    n = len(right)
    if n < _LEAST_ROUNDS:
        return []
    costs = []
    for limit in limits:
        asking, asked = Asking(wrong_at_most=limit), np.zeros(n, np.bool_)
        for t, (sure, is_right) in enumerate(zip(confidence.tolist(), right.tolist(), strict=True)):
            decision = asking.decide(None if sure != sure else sure)
            asking.answer(decision, is_right)
            asked[t] = decision.ask
        counted, outcomes = asked[n // 3 :], right[n // 3 :]
        # Rounds near each other are alike: blocks of them are nearly independent.
        shares = [block.mean() for block in np.array_split(counted, _BLOCKS)]
        half = float(student.ppf(0.975, _BLOCKS - 1) * np.std(shares, ddof=1) / math.sqrt(_BLOCKS))
        share, alone = float(counted.mean()), ~counted
        wrong = float((~outcomes[alone]).mean()) if alone.any() else 0.0
        costs.append(Cost(limit, share, max(0.0, share - half), min(1.0, share + half), wrong))
    return costs


def wilson(share: float, n: int, deviations: float = 1.959963984540054) -> tuple[float, float]:
    """Return Wilson's interval for a probability, 95 % by default.

    >>> [round(end, 4) for end in wilson(0.1, 10)]
    [0.0179, 0.4042]
    """
    squared = deviations**2
    middle, half = share * n + squared / 2, deviations * math.sqrt(n * share * (1.0 - share) + squared / 4)
    return (
        (middle - half) / (n + squared) if share > 0.0 else 0.0,
        (middle + half) / (n + squared) if share < 1.0 else 1.0,
    )


def anytime_interval(count: int, of: int, level: float = 0.05) -> tuple[float, float]:
    """Return an interval for a mean probability that holds at all times at once, however often it is looked at.

    The probability of each event may depend on everything before it. Let p be the mean of these probabilities over the
    rounds so far. With probability 1 − `level` the intervals of all rounds contain p.

    For a tilt λ, exp(λ·count) / ∏(1 − pₜ + pₜe^λ) is a martingale. The logarithm of 1 − p + pe^λ is concave in p, so
    the product is at most (1 − p + pe^λ)^of at the mean. A mixture of tilts exceeds 2/level with probability at most
    level/2 (Ville's inequality), for λ above 0 and below.

    >>> low, high = anytime_interval(20, 1000)
    >>> round(low, 3), round(high, 3)
    (0.008, 0.039)
    """
    if not of:
        return 0.0, 1.0

    def excess(p: float, sign: float) -> float:
        """Return the logarithm of the mixture, over what it stays below."""
        tilts = sign * _TILTS
        logs = tilts * count - of * np.log1p(p * np.expm1(tilts))
        return float(logsumexp(logs)) - math.log(len(tilts)) - math.log(2.0 / level)

    mean = count / of
    low = brentq(excess, 0.0, mean, args=(1.0,)) if count and excess(0.0, 1.0) > 0.0 else 0.0
    high = brentq(excess, mean, 1.0, args=(-1.0,)) if count < of and excess(1.0, -1.0) > 0.0 else 1.0
    return float(low), float(high)
