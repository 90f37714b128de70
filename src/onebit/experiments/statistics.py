"""Which differences are real: tests on one data set and across data sets, and standings of many learners.

On one data set it is the exact sign test over the runs, which are paired, with Holm's correction over the table; across
data sets Wilcoxon's signed-rank test on the logarithms of the ratios. *Standings* rank learners on every data set by
their mean mistakes; Friedman's test by permutations and Nemenyi's critical difference say what the ranks mean. One that
did not finish a set shares its last places with all such: leaving the set out would reward failing on hard sets.
docs/compare.md and docs/league.md have the reasons and the references.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from onebit.inputs import Floats, Integers

if TYPE_CHECKING:
    from onebit.experiments.comparison import Outcome
    from onebit.experiments.entries import Entry

LEVEL = 0.05  # customary; Holm's method keeps it for the whole table
TOO_FEW_RUNS = "too few runs"  # the verdict where no outcome of so many runs could be significant
_EXACT = 200  # data sets: the exact distribution takes milliseconds
_PERMUTATIONS = 9999  # the smallest p is 0.0001: far below any usual level
_AT_ONCE = 1_000_000  # ranks permuted at a time: some megabytes


def _paired_ps(first: Integers, second: Integers) -> Floats:
    """Return the two-sided p of the sign test for every row of mistakes, run by run; equal runs are left out."""
    fewer, more = (first < second).sum(axis=1), (first > second).sum(axis=1)
    ps: Floats = np.minimum(1.0, 2.0 * stats.binom.cdf(np.minimum(fewer, more), fewer + more, 0.5))
    return ps


def signs_to_decide(n_tests: int) -> int:
    """Return how many runs, or data sets, a significant result needs among so many pairs, if one learner wins all."""
    # n signs are all the same with probability 2·2⁻ⁿ, and Holm's method multiplies the smallest p by the tests.
    return next(n for n in range(1, 1000) if 2.0 * 0.5**n * n_tests < LEVEL)


def _holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted by Holm's method, those below the level stand together; None is no test."""
    tested = sorted((p, at) for at, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for n_left, (p, at) in zip(range(len(tested), 0, -1), tested, strict=True):
        adjusted[at] = highest = max(highest, min(1.0, n_left * p))
    return adjusted


def _signed_rank_p(differences: Sequence[float]) -> float | None:
    """Return the two-sided p of Wilcoxon's signed-rank test across data sets, or None for a single one.

    Sets without a difference are left out, equal differences share the mean of their ranks. Up to 200 sets the p is
    exact, with ties too: SciPy's is so without ties only, and what it does with them depends on its version.
    """
    if len(differences) < 2:
        return None
    moved = np.array([each for each in differences if each != 0.0])
    if len(moved) > _EXACT:
        return float(stats.wilcoxon(moved, method="approx").pvalue)
    # Twice the ranks: whole numbers, also of ties. Sizes that differ in rounding alone are the same.
    ranks = np.rint(2.0 * stats.rankdata(np.round(np.abs(moved), 12))).astype(np.int64)
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for each in ranks.tolist():
        # Half of all signs add this rank to the sum.
        chances[each:] = chances[each:] + chances[: len(chances) - each]
        chances /= 2.0
    gained = int(ranks[moved > 0].sum())
    return min(1.0, 2.0 * float(chances[: min(gained, len(chances) - 1 - gained) + 1].sum()))


def _verdict_of(first: Integers, second: Integers, p: float | None, needed: int = 0) -> str:
    """Return "win" if the first makes fewer mistakes than the second in significantly more of the runs, and on average.

    It is "loss" the other way round, and "tie" if the difference is not significant, or the number of runs won and the
    mean disagree; "too few runs" where there are fewer than needed, and empty without a p.
    """
    if p is None or len(first) < needed:
        return "" if p is None else TOO_FEW_RUNS
    runs_won, mistakes_saved = int(np.sign(second - first).sum()), int((second - first).sum())
    if p >= LEVEL or runs_won * mistakes_saved <= 0:
        return "tie"
    return "win" if runs_won > 0 else "loss"


class ComparisonRow(NamedTuple):
    """One entry on one data set."""

    outcome: "Outcome"
    ratio: float | None  # its mean mistakes over those of the full-information learner, if one played
    p: float | None
    """p of the paired test against the baseline; None for it, where either is told labels, or for a single run."""
    p_adjusted: float | None  # after Holm's correction over the whole table
    verdict: str  # for this entry against the baseline, as of `_verdict_of`


def compare(outcomes: "Sequence[Outcome]", baseline: str) -> list[ComparisonRow]:
    """Return one row per outcome, in their order; all are compared with the entry of that title."""
    of_baseline = {outcome.dataset: outcome for outcome in outcomes if outcome.entry.title == baseline}
    if not of_baseline:
        titles = list(dict.fromkeys(outcome.entry.title for outcome in outcomes))
        raise ValueError(f"the baseline {baseline!r} does not play; those that do: {', '.join(titles)}")
    floors: dict[str, float] = {}
    pairs: dict[int, tuple[Outcome, Outcome]] = {}
    for at, outcome in enumerate(outcomes):
        if outcome.entry.full_information and not outcome.entry.asks:
            floors.setdefault(outcome.dataset, outcome.mean)
        other = of_baseline[outcome.dataset]
        has_label = any(each.entry.full_information or each.entry.asks for each in (outcome, other))
        if outcome is not other and not has_label and len(outcome.final) > 1:
            pairs[at] = outcome, other
    tested = dict(zip(pairs, _tested(list(pairs.values())), strict=True))
    ratios = [
        each.mean / floors[each.dataset] if floors.get(each.dataset) and not each.entry.asks else None
        for each in outcomes
    ]
    untested = None, None, ""
    return [ComparisonRow(outcomes[at], ratio, *tested.get(at, untested)) for at, ratio in enumerate(ratios)]


def _tested(pairs: "Sequence[tuple[Outcome, Outcome]]") -> list[tuple[float, float | None, str]]:
    """Return p of the paired test of every pair, p after Holm's correction over all, and the verdict on the first."""
    if not pairs:
        return []
    firsts, seconds = (np.stack([pair[side].final for pair in pairs]) for side in (0, 1))
    ps, needed = _paired_ps(firsts, seconds).tolist(), signs_to_decide(len(pairs))
    found = []
    for first, second, p, adjusted in zip(firsts, seconds, ps, _holm(ps), strict=True):
        found.append((p, adjusted, _verdict_of(first, second, adjusted, needed)))
    return found


class Tally(NamedTuple):
    """One learner against another over all data sets; those with too few runs for a verdict are not counted."""

    title: str
    wins: int
    ties: int
    losses: int
    ratio: float
    """Geometric mean, over the data sets that both finished, of its mistakes over the other's; NaN if there is none."""
    p: float | None  # of the signed-rank test across the data sets, after Holm's correction; None for a single data set


def tally(rows: Sequence[ComparisonRow], baseline: str) -> list[Tally]:
    """Return wins, ties and losses of every entry against the baseline."""
    means = {row.outcome.dataset: row.outcome.mean for row in rows if row.outcome.entry.title == baseline}
    compared: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        if row.verdict:
            compared.setdefault(row.outcome.entry.title, []).append(row)
    logs = [[_log_ratio(row.outcome.mean, means[row.outcome.dataset]) for row in mine] for mine in compared.values()]
    adjusted = _holm([_signed_rank_p(each) for each in logs])
    return [
        Tally(title, *_counts([row.verdict for row in mine]), _geometric_mean(differences), p)
        for (title, mine), differences, p in zip(compared.items(), logs, adjusted, strict=True)
    ]


def _counts(verdicts: Sequence[str]) -> tuple[int, int, int]:
    return verdicts.count("win"), verdicts.count("tie"), verdicts.count("loss")


def _log_ratio(first: float, second: float) -> float:
    """Return the logarithm of a ratio of mistakes, each plus a half: finite for perfect games."""
    ratio = (first + 0.5) / (second + 0.5)
    return math.log(ratio) if ratio else -math.inf


def _geometric_mean(logs: Sequence[float]) -> float:
    """Return the geometric mean of numbers whose logarithms are given; NaN of none."""
    return math.exp(float(np.mean(logs))) if logs else math.nan


def _friedman(ranks: Floats) -> float:
    """Return p of Friedman's test by permutations, of two or more learners' (columns) ranks on as many sets (rows)."""
    n, k = ranks.shape
    middle = n * (k + 1) / 2
    away = float(((ranks.sum(axis=0) - middle) ** 2).sum())
    # How often permuted ranks are as far from even; always with the same seed.
    generator, as_far, left = np.random.default_rng(0), 1, _PERMUTATIONS
    while left:
        some = min(left, max(1, _AT_ONCE // ranks.size))
        dealt = generator.permuted(np.broadcast_to(ranks, (some, n, k)), axis=2).sum(axis=1)
        # Ranks are halves of whole numbers: no rounding below the 1e-9.
        as_far += int(np.count_nonzero(((dealt - middle) ** 2).sum(axis=1) >= away - 1e-9))
        left -= some
    return as_far / (_PERMUTATIONS + 1)


def _critical_difference(n_learners: int, n_sets: int, level: float = LEVEL) -> float:
    """Return Nemenyi's: mean ranks of any two that are at least so far apart differ."""
    q = float(stats.studentized_range.isf(level, n_learners, math.inf)) / math.sqrt(2.0)
    return q * math.sqrt(n_learners * (n_learners + 1) / (6.0 * n_sets))


def _groups_within(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return the largest groups of increasing mean ranks that are nearer than the difference: first and last place."""
    found: list[tuple[int, int]] = []
    for first, low in enumerate(mean_ranks):
        last = max(at for at in range(first, len(mean_ranks)) if at == first or mean_ranks[at] - low < difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


@dataclass(frozen=True)
class Standing:
    """One learner over all sets."""

    entry: "Entry"
    relative: float  # mistakes over those of the best that is ranked: geometric mean over the sets it finished
    explored: float  # share of guesses drawn to explore, mean over the sets it finished; NaN if not known
    microseconds: float  # per round, geometric mean over the sets it finished; NaN if not known
    finished: int  # how many sets
    number: int | None = None  # its place; None if it is not ranked, and then the rest is not known either
    mean_rank: float = math.nan
    mean_rank_of_common: float = math.nan  # over the sets that all ranked learners have finished; NaN if there is none
    firsts: int = 0  # sets on which no other learner makes fewer mistakes
    wins: int = 0
    ties: int = 0
    losses: int = 0

    @property
    def title(self) -> str:
        """What it is called."""
        return self.entry.title


@dataclass(frozen=True)
class Standings:
    """All learners over all sets."""

    datasets: tuple[str, ...]
    ranked: tuple[Standing, ...]  # by place
    unranked: tuple[Standing, ...]  # settings chosen in hindsight, then learners with full information
    ranks: Mapping[tuple[str, str], float]  # by data set and title
    pairs: Mapping[tuple[str, str], Tally]  # the first of two titles against the second, both ways
    friedman: float | None  # p of Friedman's test; None where there are fewer than two sets or two learners
    critical_difference: float  # Nemenyi's; NaN where there is no Friedman test
    groups: tuple[tuple[int, int], ...]
    """Groups of learners without significant differences: first and last place of each, of two or more."""
    n_runs: int  # how many runs every learner has on a set
    n_tests: int  # how many pairs were tested on single sets, all sets together

    @property
    def everyone(self) -> tuple[Standing, ...]:
        """Those that are ranked, then the others."""
        return (*self.ranked, *self.unranked)

    @property
    def runs_to_decide(self) -> int:
        """How many runs a significant difference of one of these pairs on its set needs."""
        return signs_to_decide(self.n_tests)


def standings(outcomes: "Sequence[Outcome]") -> Standings:
    """Return the standings of all learners; no outcome on a set: not finished there."""
    of = {(outcome.dataset, outcome.entry.title): outcome for outcome in outcomes}
    entries = list({outcome.entry.title: outcome.entry for outcome in reversed(outcomes)}.values())[::-1]
    datasets = tuple(dict.fromkeys(outcome.dataset for outcome in outcomes))
    playing = [entry for entry in entries if entry.is_ranked]
    others = sorted((entry for entry in entries if not entry.is_ranked), key=lambda entry: entry.full_information)
    finals = {pair: outcome.mean for pair, outcome in of.items()}
    means = np.array([[finals.get((name, entry.title), math.inf) for entry in playing] for name in datasets])
    n_sets, k = means.shape
    # Of every learner (column) on every set (row); infinity is last, and equal ones share.
    ranks: Floats = stats.rankdata(means, axis=1) if k else means
    common, best = np.isfinite(means).all(axis=1), means.min(axis=1, initial=math.inf)
    pairs = _pairs(of, datasets, {entry.title: means[:, i].tolist() for i, entry in enumerate(playing)})

    least = dict(zip(datasets, best.tolist(), strict=True))

    def standing(entry: "Entry") -> Standing:
        mine = [outcome for (_, title), outcome in of.items() if title == entry.title]
        return Standing(
            entry,
            relative=_geometric_mean([_log_ratio(outcome.mean, least[outcome.dataset]) for outcome in mine]),
            explored=float(np.mean([outcome.exploration for outcome in mine])),
            microseconds=_geometric_mean([math.log(outcome.microseconds_per_round) for outcome in mine]),
            finished=len(mine),
        )

    def with_ranks(i: int, entry: "Entry") -> Standing:
        against = [pair for (title, _), pair in pairs.items() if title == entry.title]
        return replace(
            standing(entry),
            mean_rank=float(ranks[:, i].mean()),
            mean_rank_of_common=float(ranks[common, i].mean()) if common.any() else math.nan,
            firsts=int(np.count_nonzero(means[:, i] == best)),
            wins=sum(pair.wins for pair in against),
            ties=sum(pair.ties for pair in against),
            losses=sum(pair.losses for pair in against),
        )

    placed = sorted(map(with_ranks, range(k), playing), key=lambda row: (row.mean_rank, row.relative))
    ranked = tuple(replace(row, number=place) for place, row in enumerate(placed, start=1))
    test = _friedman(ranks) if min(n_sets, k) > 1 else None
    difference = math.nan if test is None else _critical_difference(k, n_sets)
    differ = test is not None and test < LEVEL
    return Standings(
        datasets,
        ranked,
        tuple(map(standing, others)),
        {(name, entry.title): ranks[s, i] for s, name in enumerate(datasets) for i, entry in enumerate(playing)},
        pairs,
        test,
        difference,
        tuple(_groups_within([row.mean_rank for row in ranked], difference if differ else math.inf)),
        len(outcomes[0].final),
        # Pairs of ranked learners that have both finished a set, all sets together.
        sum(math.comb(int(n), 2) for n in np.isfinite(means).sum(axis=1)),
    )


def _pairs(
    of: "Mapping[tuple[str, str], Outcome]", datasets: Sequence[str], means: Mapping[str, Sequence[float]]
) -> dict[tuple[str, str], Tally]:
    """Return every pair of learners that are ranked, with their mean mistakes set by set, both ways.

    The tests on single sets are corrected over all pairs on all sets.
    """
    verdicts: dict[tuple[str, str], list[str]] = {pair: [] for pair in combinations(means, 2)}
    both: list[tuple[Outcome, Outcome]] = []
    for name in datasets:
        for first, second in verdicts:
            one, other = of.get((name, first)), of.get((name, second))
            if one is not None and other is not None:
                both.append((one, other))
            else:
                verdicts[first, second].append("tie" if one is other else "loss" if one is None else "win")
    for (one, other), (_, _, verdict) in zip(both, _tested(both), strict=True):
        verdicts[one.entry.title, other.entry.title].append(verdict)
    logs = {pair: list(map(_log_ratio, means[pair[0]], means[pair[1]])) for pair in verdicts}
    across = []
    for listed in logs.values():
        # A set that only one finished counts most, one that none finished not at all.
        beyond = 1.0 + max((abs(each) for each in listed if math.isfinite(each)), default=0.0)
        across.append(_signed_rank_p([0.0 if math.isnan(each) else min(max(each, -beyond), beyond) for each in listed]))
    found: dict[tuple[str, str], Tally] = {}
    for ((first, second), listed), p in zip(logs.items(), _holm(across), strict=True):
        wins, ties, losses = _counts(verdicts[first, second])
        ratio = _geometric_mean([each for each in listed if math.isfinite(each)])
        found[first, second] = Tally(first, wins, ties, losses, ratio, p)
        found[second, first] = Tally(second, losses, ties, wins, 1.0 / ratio, p)
    return found
