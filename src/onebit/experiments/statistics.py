"""Which differences are real: tests on one data set and across data sets, and standings of many learners.

On one data set the *sign test* asks which learner makes fewer mistakes in more of the runs, which are paired: all play
the same shuffles. Its p is exact whatever the distribution; it speaks of other shuffles of the same rows. Holm's method
keeps the probability of any false verdict in a whole table below the level. Across data sets it is Wilcoxon's
signed-rank test on the logarithms of the ratios, as Demšar advises. docs/compare.md has the reasons.

*Standings* rank learners on every data set by their mean mistakes. One that did not finish a set shares its last places
with all such: leaving the set out would reward failing on hard sets. Friedman's test (the p that decides is from
permutations), Nemenyi's critical difference and pairs of learners are explained in docs/league.md.

References
----------
J. Demšar (2006). Statistical comparisons of classifiers over multiple data sets. JMLR 7.
S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.
R. Iman, J. Davenport (1980). Approximations of the critical region of the Friedman statistic. Communications in
Statistics, Theory and Methods 9.
A. Benavoli, G. Corani, F. Mangili (2016). Should we really use post-hoc tests based on mean-ranks? JMLR 17.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from onebit.experiments.comparison import Outcome
from onebit.experiments.entries import Entry
from onebit.inputs import Floats, Integers

LEVEL = 0.05  # customary; Holm's method keeps it for the whole table
WIN, TIE, LOSS = "win", "tie", "loss"
TOO_FEW_RUNS = "too few runs"  # the verdict where no outcome of so many runs could be significant
_EXACT = 200  # data sets: the exact distribution takes milliseconds
_PERMUTATIONS = 9999  # the smallest p is 0.0001: far below any usual level
_AT_ONCE = 1_000_000  # ranks permuted at a time: some megabytes

# scipy.stats is imported in functions: it takes half a second, and is seldom needed.


def paired_ps(first: Integers, second: Integers) -> Floats:
    """Return the two-sided p of the sign test for every row of mistakes, run by run; equal runs are left out."""
    from scipy.stats import binom

    fewer, more = (first < second).sum(axis=1), (first > second).sum(axis=1)
    ps: Floats = np.minimum(1.0, 2.0 * binom.cdf(np.minimum(fewer, more), fewer + more, 0.5))
    return ps


def signs_to_decide(n_tests: int, level: float = LEVEL) -> int:
    """Return how many runs, or data sets, a significant result needs among so many pairs, if one learner wins all."""
    # n signs are all the same with probability 2·2⁻ⁿ, and Holm's method multiplies the smallest p by the tests.
    return next(n for n in range(1, 1000) if 2.0 * 0.5**n * n_tests < level)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted by Holm's method, those below the level stand together; None is no test."""
    tested = sorted((p, at) for at, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank_of_p, (p, at) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank_of_p) * p))
        adjusted[at] = highest
    return adjusted


def signed_rank_p(differences: Sequence[float]) -> float | None:
    """Return the two-sided p of Wilcoxon's signed-rank test across data sets, or None for a single one.

    Sets without a difference are left out, equal differences share the mean of their ranks. Up to 200 sets the p is
    exact, with ties too: SciPy's is so without ties only, and what it does with them depends on its version.
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


def verdict_of(first: Integers, second: Integers, p: float | None, needed: int = 0) -> str:
    """Return "win" if the first makes fewer mistakes than the second in significantly more of the runs, and on average.

    It is "loss" the other way round, and "tie" if the difference is not significant, or the number of runs won and the
    mean disagree; "too few runs" where there are fewer than needed, and empty without a p.
    """
    if p is None:
        return ""
    if len(first) < needed:
        return TOO_FEW_RUNS
    runs_won, mistakes_saved = int(np.sign(second - first).sum()), int((second - first).sum())
    if p >= LEVEL or runs_won * mistakes_saved <= 0:
        return TIE
    return WIN if runs_won > 0 else LOSS


@dataclass(frozen=True)
class ComparisonRow:
    """One entry on one data set."""

    outcome: Outcome
    ratio: float | None  # its mean mistakes over those of the full-information learner, if one played
    p: float | None
    """p of the paired test against the baseline; None for the baseline, with full information, or for a single run."""
    p_adjusted: float | None  # after Holm's correction over the whole table
    verdict: str  # for this entry against the baseline, as of `verdict_of`


def compare(outcomes: Sequence[Outcome], baseline: str) -> list[ComparisonRow]:
    """Return one row per outcome, in their order; all are compared with the entry of that title."""
    of_baseline = {outcome.dataset: outcome for outcome in outcomes if outcome.entry.title == baseline}
    if not of_baseline:
        titles = list(dict.fromkeys(outcome.entry.title for outcome in outcomes))
        raise ValueError(f"the baseline {baseline!r} does not play; those that do: {', '.join(titles)}")
    floors: dict[str, float] = {}
    for outcome in outcomes:
        if outcome.entry.full_information:
            floors.setdefault(outcome.dataset, outcome.mean)
    ps = [_p(outcome, of_baseline[outcome.dataset]) for outcome in outcomes]
    needed = signs_to_decide(sum(p is not None for p in ps))
    rows = []
    for outcome, p, p_adjusted in zip(outcomes, ps, holm(ps), strict=True):
        floor = floors.get(outcome.dataset)
        verdict = verdict_of(outcome.final, of_baseline[outcome.dataset].final, p_adjusted, needed)
        rows.append(ComparisonRow(outcome, outcome.mean / floor if floor else None, p, p_adjusted, verdict))
    return rows


def _p(outcome: Outcome, baseline: Outcome) -> float | None:
    has_label = outcome.entry.full_information or baseline.entry.full_information
    if outcome is baseline or has_label or len(outcome.final) < 2:
        return None
    return float(paired_ps(outcome.final[None], baseline.final[None])[0])


@dataclass(frozen=True)
class Tally:
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
    adjusted = holm([signed_rank_p(each) for each in logs])
    return [
        _tallied(title, [row.verdict for row in mine], differences, p)
        for (title, mine), differences, p in zip(compared.items(), logs, adjusted, strict=True)
    ]


def _tallied(title: str, verdicts: Sequence[str], logs: Sequence[float], p: float | None) -> Tally:
    wins, ties, losses = (verdicts.count(verdict) for verdict in (WIN, TIE, LOSS))
    return Tally(title, wins, ties, losses, _geometric_mean(logs), p)


def _log_ratio(first: float, second: float) -> float:
    """Return the logarithm of a ratio of mistakes, each plus a half: finite for perfect games."""
    ratio = (first + 0.5) / (second + 0.5)
    return math.log(ratio) if ratio else -math.inf


def _geometric_mean(logs: Iterable[float]) -> float:
    """Return the geometric mean of numbers whose logarithms are given; NaN of none."""
    listed = list(logs)
    return math.exp(float(np.mean(listed))) if listed else math.nan


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of the ranks of k learners on n sets."""

    chi2: float
    p_chi2: float
    f: float  # Iman and Davenport's F, with k − 1 and (k − 1)(n − 1) degrees of freedom
    p_f: float
    p: float  # by permutations: the one that decides


def rank(means: Floats) -> Floats:
    """Return the rank of every learner (column) on every set (row); infinity is last, and equal ones share."""
    from scipy.stats import rankdata

    ranks: Floats = rankdata(means, axis=1)
    return ranks


def friedman(ranks: Floats) -> Friedman:
    """Return Friedman's test of ranks: a row per set, a column per learner, two or more of each."""
    from scipy.stats import chi2, f

    n, k = ranks.shape
    # With ties the ranks of a set spread less than 1 … k do, and sums are measured by the spread there is.
    spread = float(((ranks - (k + 1) / 2) ** 2).sum()) / (n * (k - 1))
    away = float(((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    if spread == 0.0:
        return Friedman(0.0, 1.0, 0.0, 1.0, 1.0)
    statistic = away / (n * spread)
    rest = n * (k - 1) - statistic
    ratio = (n - 1) * statistic / rest if rest > 1e-9 else math.inf
    p_f = float(f.sf(ratio, k - 1, (k - 1) * (n - 1)))
    return Friedman(statistic, float(chi2.sf(statistic, k - 1)), ratio, p_f, _permutation_p(ranks, away))


def _permutation_p(ranks: Floats, away: float) -> float:
    """Return how often permuted ranks are as far from even; always with the same seed."""
    generator = np.random.default_rng(0)
    n, k = ranks.shape
    as_far, left = 1, _PERMUTATIONS
    while left:
        some = min(left, max(1, _AT_ONCE // ranks.size))
        dealt = generator.permuted(np.broadcast_to(ranks, (some, n, k)), axis=2).sum(axis=1)
        # Ranks are halves of whole numbers: no rounding below the 1e-9.
        as_far += int(np.count_nonzero(((dealt - n * (k + 1) / 2) ** 2).sum(axis=1) >= away - 1e-9))
        left -= some
    return as_far / (_PERMUTATIONS + 1)


def critical_difference(n_learners: int, n_sets: int, level: float = LEVEL) -> float:
    """Return Nemenyi's: mean ranks of any two that are at least so far apart differ."""
    from scipy.stats import studentized_range

    q = float(studentized_range.isf(level, n_learners, math.inf)) / math.sqrt(2.0)
    return q * math.sqrt(n_learners * (n_learners + 1) / (6.0 * n_sets))


def groups_within(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
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

    entry: Entry
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
    finished: frozenset[tuple[str, str]]  # which learners finished each data set, as above; ranked or not
    pairs: Mapping[tuple[str, str], Tally]  # the first of two titles against the second, both ways
    friedman: Friedman | None  # None where there are fewer than two sets or two learners
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


def standings(outcomes: Sequence[Outcome]) -> Standings:
    """Return the standings of all learners; no outcome on a set: not finished there."""
    of = {(outcome.dataset, outcome.entry.title): outcome for outcome in outcomes}
    entries = list({outcome.entry.title: outcome.entry for outcome in reversed(outcomes)}.values())[::-1]
    datasets = tuple(dict.fromkeys(outcome.dataset for outcome in outcomes))
    playing = [entry for entry in entries if entry.is_ranked]
    others = sorted((entry for entry in entries if not entry.is_ranked), key=lambda entry: entry.full_information)
    finals = {pair: outcome.mean for pair, outcome in of.items()}
    means = np.array([[finals.get((name, entry.title), math.inf) for entry in playing] for name in datasets])
    n_sets, k = means.shape
    ranks = rank(means) if k else means
    common, best = np.isfinite(means).all(axis=1), means.min(axis=1, initial=math.inf)
    pairs = _pairs(of, datasets, {entry.title: means[:, i].tolist() for i, entry in enumerate(playing)})

    def standing(entry: Entry) -> Standing:
        mine = [
            (of[name, entry.title], least)
            for name, least in zip(datasets, best, strict=True)
            if (name, entry.title) in of
        ]
        return Standing(
            entry,
            relative=_geometric_mean(_log_ratio(outcome.mean, least) for outcome, least in mine),
            explored=float(np.mean([outcome.exploration for outcome, _ in mine])),
            microseconds=_geometric_mean(math.log(outcome.microseconds_per_round) for outcome, _ in mine),
            finished=len(mine),
        )

    def with_ranks(i: int, entry: Entry) -> Standing:
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
    test = friedman(ranks) if min(n_sets, k) > 1 else None
    difference = math.nan if test is None else critical_difference(k, n_sets)
    differ = test is not None and test.p < LEVEL
    return Standings(
        datasets,
        ranked,
        tuple(map(standing, others)),
        {(name, entry.title): ranks[s, i] for s, name in enumerate(datasets) for i, entry in enumerate(playing)},
        frozenset(of),
        pairs,
        test,
        difference,
        tuple(groups_within([row.mean_rank for row in ranked], difference if differ else math.inf)),
        len(outcomes[0].final),
        # Pairs of ranked learners that have both finished a set, all sets together.
        sum(math.comb(int(n), 2) for n in np.isfinite(means).sum(axis=1)),
    )


def _pairs(
    of: Mapping[tuple[str, str], Outcome], datasets: Sequence[str], means: Mapping[str, Sequence[float]]
) -> dict[tuple[str, str], Tally]:
    """Return every pair of learners that are ranked, with their mean mistakes set by set, both ways."""
    verdicts = _verdicts(of, datasets, list(means))
    logs = {pair: list(map(_log_ratio, means[pair[0]], means[pair[1]])) for pair in verdicts}
    adjusted = holm([signed_rank_p(_differences(each)) for each in logs.values()])
    found: dict[tuple[str, str], Tally] = {}
    for ((first, second), listed), p in zip(logs.items(), adjusted, strict=True):
        pair = _tallied(first, verdicts[first, second], [each for each in listed if math.isfinite(each)], p)
        found[first, second] = pair
        found[second, first] = Tally(second, pair.losses, pair.ties, pair.wins, 1.0 / pair.ratio, p)
    return found


def _differences(logs: Sequence[float]) -> list[float]:
    """Return differences for a test: a set that only one finished counts most, one that none finished not at all."""
    beyond = 1.0 + max((abs(each) for each in logs if math.isfinite(each)), default=0.0)
    return [0.0 if math.isnan(each) else min(max(each, -beyond), beyond) for each in logs]


def _verdicts(
    of: Mapping[tuple[str, str], Outcome], datasets: Sequence[str], titles: Sequence[str]
) -> dict[tuple[str, str], list[str]]:
    """Return the verdict on the first of every pair, set by set; tests are corrected over all pairs on all sets."""
    found: dict[tuple[str, str], list[str]] = {pair: [] for pair in combinations(titles, 2)}
    tested: list[tuple[str, tuple[str, str]]] = []
    ps: list[float] = []
    for name in datasets:
        played = [title for title in titles if (name, title) in of]
        both = list(combinations(played, 2))
        if both:
            firsts, seconds = (np.stack([of[name, pair[side]].final for pair in both]) for side in (0, 1))
            ps += paired_ps(firsts, seconds).tolist()
            tested += [(name, pair) for pair in both]
        for first, second in found.keys() - set(both):
            given = {(True, False): WIN, (False, True): LOSS, (False, False): TIE}
            found[first, second].append(given[first in played, second in played])
    needed = signs_to_decide(len(tested))
    for (name, (first, second)), p in zip(tested, holm(ps), strict=True):
        found[first, second].append(verdict_of(of[name, first].final, of[name, second].final, p, needed))
    return found
