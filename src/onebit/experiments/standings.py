"""Standings: ranks on every data set, tests over all of them, and wins, ties and losses of every pair.

**Ranks.** On a data set learners are ranked by their mean mistakes; equal ones share the mean of their places. A
learner that failed there, or would have taken too long, shares the last places with all that did not finish: leaving
the set out for it would reward failing on hard sets. Blocks stay complete, as Friedman's test needs, and the order of
the others among themselves does not change. Learners with full information, and settings chosen in hindsight, have an
easier task and are not ranked.

**Friedman's test** asks whether the mean ranks differ at all. The p that decides is from permutations of the ranks
within every set, which is right for any number of sets and learners and with ties; the usual approximations (χ², and
Iman and Davenport's F) are given beside it.

**Nemenyi's critical difference**, if Friedman's test finds something: mean ranks that are at least so far apart differ,
for all pairs at once. It is what a critical-difference diagram shows. Its verdict on two learners depends on the
mistakes of all others (Benavoli et al.), hence the third, in which only the correction does:

**Pairs.** On each set the sign test over the runs, Holm-corrected over all pairs on all sets, gives wins, ties and
losses, where there are enough runs for it; a set that only one of two has finished is its win. Across sets Wilcoxon's
signed-rank test on the logarithms of the ratios of mistakes, Holm-corrected over all pairs; a set that only one has
finished counts as its largest difference. What the two assume is in `onebit.experiments.statistics`.

References
----------
J. Demšar (2006). Statistical comparisons of classifiers over multiple data sets. JMLR 7.
R. Iman, J. Davenport (1980). Approximations of the critical region of the Friedman statistic. Communications in
Statistics, Theory and Methods 9.
A. Benavoli, G. Corani, F. Mangili (2016). Should we really use post-hoc tests based on mean-ranks? JMLR 17.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from onebit.experiments.comparison import Outcome
from onebit.experiments.entries import Entry
from onebit.experiments.statistics import (
    LEVEL,
    LOSS,
    TIE,
    TOO_FEW_RUNS,
    WIN,
    holm,
    paired_ps,
    signed_rank_p,
    signs_to_decide,
    verdict_of,
)
from onebit.inputs import Floats

_PERMUTATIONS = 9999  # the smallest p is 0.0001: far below any usual level
_AT_ONCE = 1_000_000  # ranks permuted at a time: some megabytes


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of the ranks of k learners on n sets."""

    chi2: float
    p_chi2: float
    f: float
    """Iman and Davenport's F, with k − 1 and (k − 1)(n − 1) degrees of freedom."""
    p_f: float
    p: float
    """By permutations: the one that decides."""


@dataclass(frozen=True)
class Standing:
    """One learner over all sets."""

    entry: Entry
    number: int | None
    """Its place; None if it is not ranked."""
    mean_rank: float
    mean_rank_of_common: float
    """Over the sets that all ranked learners have finished; NaN if there is none."""
    firsts: int
    """Sets on which no other learner makes fewer mistakes."""
    relative: float
    """Mistakes over those of the best that is ranked: geometric mean over the sets it finished."""
    wins: int
    ties: int
    losses: int
    explored: float
    """Share of guesses drawn to explore, mean over the sets it finished; NaN if not known."""
    microseconds: float
    """Per round, geometric mean over the sets it finished; NaN if not known."""
    finished: int
    """How many sets."""

    @property
    def title(self) -> str:
        """What it is called."""
        return self.entry.title


@dataclass(frozen=True)
class Pair:
    """One learner against another over all sets; those with too few runs for a verdict are not counted."""

    wins: int
    ties: int
    losses: int
    ratio: float
    """Its mistakes over the other's: geometric mean over the sets that both finished; NaN if there is none."""
    p: float | None
    """Across the sets, corrected; None for a single set."""

    def mirrored(self) -> "Pair":
        """Return the same of the other against this one."""
        return Pair(self.losses, self.ties, self.wins, 1.0 / self.ratio, self.p)


@dataclass(frozen=True)
class Standings:
    """All learners over all sets."""

    datasets: tuple[str, ...]
    ranked: tuple[Standing, ...]
    """By place."""
    unranked: tuple[Standing, ...]
    """Settings chosen in hindsight, then learners with full information."""
    ranks: Mapping[tuple[str, str], float]
    """By data set and title."""
    finished: frozenset[tuple[str, str]]
    """Which learners finished each data set, as above; ranked or not."""
    pairs: Mapping[tuple[str, str], Pair]
    """By the titles of the two, both ways."""
    friedman: Friedman | None
    """None where there are fewer than two sets or two learners."""
    critical_difference: float
    """Nemenyi's; NaN where there is no Friedman test."""
    groups: tuple[tuple[int, int], ...]
    """Groups of learners without significant differences: first and last place of each, of two or more."""
    n_runs: int
    """How many runs every learner has on a set."""
    n_tests: int
    """How many pairs were tested on single sets, all sets together."""

    @property
    def runs_to_decide(self) -> int:
        """How many runs a significant difference of one of these pairs on its set needs."""
        return signs_to_decide(self.n_tests)


def rank(means: Floats) -> Floats:
    """Return the rank of every learner (column) on every set (row); infinity is last, and equal ones share.

    >>> rank(np.array([[3.0, 1.0, 3.0, np.inf]]))
    array([[2.5, 1. , 2.5, 4. ]])
    """
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
    """Return Nemenyi's: mean ranks of any two that are at least so far apart differ.

    >>> round(critical_difference(4, 14), 2)  # Demšar's example
    1.25
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.isf(level, n_learners, math.inf)) / math.sqrt(2.0)
    return q * math.sqrt(n_learners * (n_learners + 1) / (6.0 * n_sets))


def groups_within(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return the largest groups of increasing mean ranks that are nearer than the difference: first and last place.

    >>> groups_within([1.0, 1.5, 2.2, 5.0], 1.0)
    [(0, 1), (1, 2)]
    """
    found: list[tuple[int, int]] = []
    for first, low in enumerate(mean_ranks):
        last = max(at for at in range(first, len(mean_ranks)) if at == first or mean_ranks[at] - low < difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def standings(outcomes: Sequence[Outcome]) -> Standings:
    """Return the standings of all learners that finished a set; one without an outcome on a set has not finished it.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of two runs or more, as many of each.
    """
    table = _Table(outcomes)
    means = table.means
    n_sets, k = means.shape
    ranks = rank(means) if k else means
    common = np.isfinite(means).all(axis=1)
    pairs = _pairs(table)
    unplaced = []
    for i, entry in enumerate(table.ranked):
        against = [pair for (title, _), pair in pairs.items() if title == entry.title]
        unplaced.append(
            table.standing(
                entry,
                mean_rank=float(ranks[:, i].mean()),
                mean_rank_of_common=float(ranks[common, i].mean()) if common.any() else math.nan,
                firsts=int(np.count_nonzero(means[:, i] == means.min(axis=1))),
                wins=sum(pair.wins for pair in against),
                ties=sum(pair.ties for pair in against),
                losses=sum(pair.losses for pair in against),
            )
        )
    placed = sorted(unplaced, key=lambda row: (row.mean_rank, row.relative))
    ranked = tuple(replace(row, number=place) for place, row in enumerate(placed, start=1))
    test = friedman(ranks) if min(n_sets, k) > 1 else None
    difference = math.nan if test is None else critical_difference(k, n_sets)
    differ = test is not None and test.p < LEVEL
    return Standings(
        table.datasets,
        ranked,
        tuple(table.standing(entry) for entry in table.unranked),
        {
            (name, entry.title): ranks[s, i]
            for s, name in enumerate(table.datasets)
            for i, entry in enumerate(table.ranked)
        },
        frozenset(table.of),
        pairs,
        test,
        difference,
        tuple(groups_within([row.mean_rank for row in ranked], difference if differ else math.inf)),
        len(outcomes[0].final),
        table.n_tests,
    )


class _Table:
    """Outcomes by data set and learner."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.of = {(outcome.dataset, outcome.entry.title): outcome for outcome in outcomes}
        entries = {outcome.entry.title: outcome.entry for outcome in reversed(outcomes)}
        self.datasets = tuple(dict.fromkeys(outcome.dataset for outcome in outcomes))
        self.ranked = [entry for entry in reversed(entries.values()) if entry.is_ranked]
        others = [entry for entry in reversed(entries.values()) if not entry.is_ranked]
        self.unranked = sorted(others, key=lambda entry: entry.full_information)
        self.means = np.array([[self.mean(name, entry.title) for entry in self.ranked] for name in self.datasets])

    @property
    def n_tests(self) -> int:
        """How many pairs of ranked learners have both finished a set, all sets together."""
        return sum(math.comb(int(n), 2) for n in np.isfinite(self.means).sum(axis=1))

    def mean(self, dataset: str, title: str) -> float:
        """Return mean mistakes; infinity for learners that have not finished."""
        outcome = self.of.get((dataset, title))
        return math.inf if outcome is None else outcome.mean

    def standing(
        self,
        entry: Entry,
        mean_rank: float = math.nan,
        mean_rank_of_common: float = math.nan,
        firsts: int = 0,
        wins: int = 0,
        ties: int = 0,
        losses: int = 0,
    ) -> Standing:
        """Return the standing of a learner, without its place."""
        mine = [self.of[name, entry.title] for name in self.datasets if (name, entry.title) in self.of]
        best = dict(zip(self.datasets, self.means.min(axis=1, initial=math.inf).tolist(), strict=True))
        logs = [_log_ratio(outcome.mean, best[outcome.dataset]) for outcome in mine]
        times = [outcome.microseconds_per_round for outcome in mine]
        return Standing(
            entry,
            None,
            mean_rank,
            mean_rank_of_common,
            firsts,
            math.exp(float(np.mean(logs))),
            wins,
            ties,
            losses,
            float(np.mean([outcome.exploration for outcome in mine])),
            math.exp(float(np.mean(np.log(times)))),
            len(mine),
        )


def _log_ratio(first: float, second: float) -> float:
    # As in a comparison's tally: half a mistake on both sides keeps the logarithm of a perfect game finite.
    return math.log((first + 0.5) / (second + 0.5))


def _pairs(table: _Table) -> dict[tuple[str, str], Pair]:
    """Return every pair of learners that are ranked, both ways."""
    titles = [entry.title for entry in table.ranked]
    verdicts = _verdicts(table, titles)
    ps = {pair: signed_rank_p(_differences(table, *pair)) for pair in combinations(titles, 2)}
    adjusted = iter(holm([p for p in ps.values() if p is not None]))
    found: dict[tuple[str, str], Pair] = {}
    for (first, second), p in ps.items():
        wins, ties, losses = (verdicts[first, second].count(kind) for kind in (WIN, TIE, LOSS))
        both = [name for name in table.datasets if (name, first) in table.of and (name, second) in table.of]
        logs = [_log_ratio(table.mean(name, first), table.mean(name, second)) for name in both]
        ratio = math.exp(float(np.mean(logs))) if logs else math.nan
        pair = Pair(wins, ties, losses, ratio, None if p is None else next(adjusted))
        found[first, second], found[second, first] = pair, pair.mirrored()
    return found


def _verdicts(table: _Table, titles: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Return the verdict on the first of every pair, set by set; tests are corrected over all pairs on all sets."""
    found: dict[tuple[str, str], list[str]] = {pair: [] for pair in combinations(titles, 2)}
    tested: list[tuple[str, tuple[str, str]]] = []
    ps: list[float] = []
    for name in table.datasets:
        played = [title for title in titles if (name, title) in table.of]
        both = list(combinations(played, 2))
        if both:
            finals = [np.stack([table.of[name, pair[side]].final for pair in both]) for side in (0, 1)]
            ps += paired_ps(*finals).tolist()
            tested += [(name, pair) for pair in both]
        for first, second in found.keys() - set(both):
            given = {(True, False): WIN, (False, True): LOSS, (False, False): TIE}
            found[first, second].append(given[first in played, second in played])
    needed = signs_to_decide(len(tested))
    for (name, pair), p in zip(tested, holm(ps), strict=True):
        first_runs, second_runs = (table.of[name, title].final for title in pair)
        has_enough_runs = len(first_runs) >= needed
        found[pair].append(verdict_of(first_runs, second_runs, p) if has_enough_runs else TOO_FEW_RUNS)
    return found


def _differences(table: _Table, first: str, second: str) -> list[float]:
    """Return how much more the first has on every set, as logarithms; a set that only one finished counts most."""
    means = [(table.mean(name, first), table.mean(name, second)) for name in table.datasets]
    finite = [_log_ratio(*pair) for pair in means if math.isfinite(sum(pair))]
    beyond = 1.0 + max((abs(each) for each in finite), default=0.0)
    return [
        _log_ratio(*pair) if math.isfinite(sum(pair)) else beyond * (math.isinf(pair[0]) - math.isinf(pair[1]))
        for pair in means
    ]
