"""Tests of differences: a paired test on every data set, corrected for their number, and one across data sets.

All entries play the same shuffles, so runs are compared in pairs. On one data set the *sign test* asks who makes fewer
mistakes in more of the runs. It is the paired permutation test in which the two of each run change places, with the
number of runs won as its statistic. Runs are independent, because every shuffle is drawn by itself, and that is all it
needs: the p is exact for the hypothesis that fewer mistakes are as likely as more, whatever the distribution. A t-test
is not: one bad run in ten makes its p as small as one likes. The verdict speaks of this data set: of other shuffles of
its rows, and the learner's own draws, not of new rows. It speaks of most shuffles and not of the mean, which bad runs
may change that were too rare to be seen. n runs give no p below 2/2ⁿ, so a table with many comparisons needs more runs.

Holm's step-down method keeps the probability of any false verdict in the whole table below the level. Across data sets,
which differ in kind, it is Wilcoxon's signed-rank test, as Demšar advises, on the logarithms of the ratios: exact if
the data sets are independent and, where there is no difference, a ratio is as likely as its inverse.

References
----------
J. Demšar (2006). Statistical comparisons of classifiers over multiple data sets. JMLR 7.
S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onebit.experiments.comparison import Outcome
from onebit.inputs import Floats, Integers

LEVEL = 0.05  # customary; Holm's method keeps it for the whole table
_EXACT = 200  # data sets: the exact distribution takes milliseconds
WIN, TIE, LOSS = "win", "tie", "loss"
TOO_FEW_RUNS = "too few runs"
"""The verdict where no outcome of so many runs could be significant."""


@dataclass(frozen=True)
class ComparisonRow:
    """One entry on one data set."""

    outcome: Outcome
    ratio: float | None
    """Its mean mistakes over those of the full-information learner, if one played."""
    p: float | None
    """p of the paired test against the baseline; None for the baseline, with full information, or for a single run."""
    p_adjusted: float | None
    """After Holm's correction over the whole table."""
    verdict: str
    """For this entry against the baseline, as of `verdict_of`, or "too few runs". Empty where p is None."""


@dataclass(frozen=True)
class Tally:
    """One entry against the baseline over all data sets; those with too few runs for a verdict are not counted."""

    title: str
    wins: int
    ties: int
    losses: int
    ratio: float
    """Geometric mean, over the data sets, of its mistakes over the baseline's."""
    p: float | None
    """Of the signed-rank test across the data sets, after Holm's correction; None for a single data set."""


def paired_p(first: Integers, second: Integers) -> float | None:
    """Return the two-sided p of the sign test over the runs, or None for a single run.

    Parameters
    ----------
    first, second : arrays of int
        Mistakes of two learners, run by run. Runs in which both make as many are left out.

    Examples
    --------
    >>> paired_p(np.array([30, 35, 31, 33, 32]), np.array([20, 22, 21, 20, 22]))
    0.0625
    """
    return None if len(first) < 2 else float(paired_ps(first[None], second[None])[0])


def paired_ps(first: Integers, second: Integers) -> Floats:
    """Return `paired_p` of many pairs at once: a row of runs each."""
    # Imported here: it takes half a second, and is seldom needed.
    from scipy.stats import binom

    fewer, more = (first < second).sum(axis=1), (first > second).sum(axis=1)
    ps: Floats = np.minimum(1.0, 2.0 * binom.cdf(np.minimum(fewer, more), fewer + more, 0.5))
    return ps


def signs_to_decide(n_tests: int, level: float = LEVEL) -> int:
    """Return how many runs, or data sets, a significant result needs among so many pairs, if one learner wins all.

    >>> signs_to_decide(1), signs_to_decide(10), signs_to_decide(378)
    (6, 9, 14)
    """
    # n signs are all the same with probability 2·2⁻ⁿ, and Holm's method multiplies the smallest p by the tests.
    return next(n for n in range(1, 1000) if 2.0 * 0.5**n * n_tests < level)


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method: those below the level stand together.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[at]))
        adjusted[at] = highest
    return adjusted


def compare(outcomes: Sequence[Outcome], baseline: str) -> list[ComparisonRow]:
    """Return one row per outcome, in their order.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Every entry on every data set.
    baseline : str
        The title of the entry that all others are compared with.
    """
    of_baseline = {outcome.dataset: outcome for outcome in outcomes if outcome.entry.title == baseline}
    if not of_baseline:
        titles = list(dict.fromkeys(outcome.entry.title for outcome in outcomes))
        raise ValueError(f"the baseline {baseline!r} does not play; those who do: {', '.join(titles)}")
    floors: dict[str, float] = {}
    for outcome in outcomes:
        if outcome.entry.full_information:
            floors.setdefault(outcome.dataset, outcome.mean)
    ps = [_p(outcome, of_baseline[outcome.dataset]) for outcome in outcomes]
    tested = [p for p in ps if p is not None]
    adjusted = iter(holm(tested))
    needed = signs_to_decide(len(tested))
    rows = []
    for outcome, p in zip(outcomes, ps, strict=True):
        p_adjusted = None if p is None else next(adjusted)
        floor = floors.get(outcome.dataset)
        ratio = outcome.mean / floor if floor else None
        verdict = ""
        if p_adjusted is not None:
            final = outcome.final
            enough = len(final) >= needed
            verdict = verdict_of(final, of_baseline[outcome.dataset].final, p_adjusted) if enough else TOO_FEW_RUNS
        rows.append(ComparisonRow(outcome, ratio, p, p_adjusted, verdict))
    return rows


def _p(outcome: Outcome, baseline: Outcome) -> float | None:
    if outcome is baseline or outcome.entry.full_information or baseline.entry.full_information:
        return None
    return paired_p(outcome.final, baseline.final)


def verdict_of(first: Integers, second: Integers, p: float) -> str:
    """Return "win" if the first makes fewer mistakes than the second in significantly more of the runs, and on average.

    It is "loss" the other way round, and "tie" if the difference is not significant, or the number of runs won and the
    mean disagree.

    >>> first = np.array([9] * 19 + [500])
    >>> second = np.full(20, 10)
    >>> verdict_of(first, second, p=0.001), verdict_of(first[:19], second[:19], p=0.001)
    ('tie', 'win')
    """
    runs_won, mistakes_saved = int(np.sign(second - first).sum()), int((second - first).sum())
    if p >= LEVEL or runs_won * mistakes_saved <= 0:
        return TIE
    return WIN if runs_won > 0 else LOSS


def tally(rows: Sequence[ComparisonRow], baseline: str) -> list[Tally]:
    """Return wins, ties and losses of every entry against the baseline.

    Parameters
    ----------
    rows : sequence of ComparisonRow
        From `compare`.
    baseline : str
        The one compared with.
    """
    means = {row.outcome.dataset: row.outcome.mean for row in rows if row.outcome.entry.title == baseline}
    grouped: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        if row.verdict:
            grouped.setdefault(row.outcome.entry.title, []).append(row)
    # Half a mistake on both sides keeps the logarithm of a perfect game finite.
    logs = {
        title: np.log([(row.outcome.mean + 0.5) / (means[row.outcome.dataset] + 0.5) for row in mine])
        for title, mine in grouped.items()
    }
    ps = [signed_rank_p(differences.tolist()) for differences in logs.values()]
    adjusted = iter(holm([p for p in ps if p is not None]))
    return [
        Tally(
            title,
            wins=_count(grouped[title], WIN),
            ties=_count(grouped[title], TIE),
            losses=_count(grouped[title], LOSS),
            ratio=math.exp(float(differences.mean())),
            p=None if p is None else next(adjusted),
        )
        for (title, differences), p in zip(logs.items(), ps, strict=True)
    ]


def _count(rows: Sequence[ComparisonRow], verdict: str) -> int:
    return sum(row.verdict == verdict for row in rows)


def signed_rank_p(differences: Sequence[float]) -> float | None:
    """Return the two-sided p of Wilcoxon's signed-rank test across data sets, or None for a single one.

    Sets without a difference are left out, equal differences share the mean of their ranks. Up to 200 sets the p is
    exact, with ties too: SciPy's is so without ties only, and what it does with them depends on its version.

    >>> signed_rank_p([0.3, 0.1, 0.2, 0.5, 0.4, 0.6])
    0.03125
    """
    if len(differences) < 2:
        return None
    from scipy.stats import rankdata, wilcoxon

    moved = np.array([each for each in differences if each != 0.0])
    if len(moved) > _EXACT:
        return float(wilcoxon(moved, method="approx").pvalue)
    # Twice the ranks: whole numbers, also of ties. Sizes that differ in rounding alone are the same.
    ranks = np.rint(2.0 * rankdata(np.round(np.abs(moved), 12))).astype(np.int64)
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for each in ranks.tolist():
        # Half of all signs add this rank to the sum.
        chances[each:] = chances[each:] + chances[: len(chances) - each]
        chances /= 2.0
    gained = int(ranks[moved > 0].sum())
    return min(1.0, 2.0 * float(chances[: min(gained, len(chances) - 1 - gained) + 1].sum()))
