"""Ranks and tests against scipy, and against the worked example of Demšar (2006)."""

import itertools
import math
from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from scipy import stats

from onebit.cli.compare import command as play_comparison
from onebit.cli.league import _RUNS as LEAGUE_RUNS
from onebit.cli.league import _verdict_in_words
from onebit.cli.league import command as play_league
from onebit.experiments.comparison import RUNS, Outcome
from onebit.experiments.entries import Entry
from onebit.experiments.figures import _pareto, _spots
from onebit.experiments.statistics import (
    _critical_difference,
    _friedman,
    _groups_within,
    _holm,
    _paired_ps,
    _signed_rank_p,
    _verdict_of,
    compare,
    signs_to_decide,
    standings,
    tally,
)
from onebit.experiments.store import Spec
from onebit.inputs import Integers


def outcome(dataset: str, title: str, final: list[int], full_information: bool = False) -> Outcome:
    mistakes = np.array([[0, mistakes] for mistakes in final])
    return Outcome(
        dataset, Entry(title, Spec(title), full_information), np.array([1, 100]), mistakes, np.ones(len(final))
    )


def paired_p(first: Integers, second: Integers) -> float:
    return float(_paired_ps(first[None], second[None])[0])


def differences(seed: int, shift: float, n_runs: int) -> tuple[Integers, Integers]:
    generator = np.random.default_rng(seed)
    common = generator.normal(500, 50, n_runs)
    return tuple(np.rint(common + generator.normal(s, 5, n_runs)).astype(int) for s in (shift, 0.0))  # type: ignore[return-value]


def test_paired_test_is_scipys_and_uses_the_pairing() -> None:
    first, second = differences(1, 30.0, 9)
    first[0], second[1] = second[0] - 1, first[1]
    p = paired_p(first, second)
    assert p == pytest.approx(stats.binomtest(1, 8).pvalue), "one run of eight lost, one left out"
    assert stats.ttest_ind(*differences(1, 30.0, 5)).pvalue > 0.05, "without the pairs the shuffles' spread hides it"


def test_paired_test_is_the_permutation_test_of_runs_won() -> None:
    """By all 2ⁿ ways in which the two of each run can change places."""
    generator = np.random.default_rng(4)
    for _ in range(20):
        first, second = generator.integers(0, 9, (2, 7))
        found = stats.permutation_test(
            (first, second),
            lambda x, y, axis: np.abs(np.sign(x - y).sum(axis=axis)),
            permutation_type="samples",
            alternative="greater",
            vectorized=True,
            n_resamples=np.inf,
        )
        assert paired_p(first, second) == pytest.approx(found.pvalue)


@pytest.mark.parametrize("n_runs", [5, 12, 20])
def test_paired_test_keeps_its_level_whatever_the_distribution(n_runs: int) -> None:
    """Where fewer mistakes are as likely as more, p < 0.05 in at most 5 % of 20 000 tests (± 0.15 %)."""
    generator = np.random.default_rng(n_runs)
    shape = 20_000, n_runs
    normal = generator.normal(0.0, 5.0, shape)
    either_has_bad_runs = 100.0 * ((generator.random(shape) < 0.1) - 1.0 * (generator.random(shape) < 0.1))
    # In half of the runs one more, in four of ten one fewer, in one of ten far fewer: the mean is not 0, the median is.
    skewed = generator.choice([1.0, -1.0, -400.0], p=[0.5, 0.4, 0.1], size=shape)
    for found in (normal, normal + either_has_bad_runs, skewed):
        ps = _paired_ps(1000 + np.rint(1e6 * found).astype(int), np.full(shape, 1000))
        for level in (0.05, 0.01, 0.001):
            allowed = level + 4.0 * np.sqrt(level / len(ps))
            assert np.mean(ps < level) <= allowed


def test_one_bad_run_in_ten_makes_no_false_win() -> None:
    """Means are the same, but five runs mostly miss the bad ones: the t-test is sure of a difference, by its own p."""
    generator = np.random.default_rng(1)
    shape = 4000, 5
    spread = np.rint(generator.normal(0, 2000, shape)).astype(int)
    first, second = np.where(generator.random(shape) < 0.1, 190_000, 90_000) + spread, np.full(shape, 100_000)
    corrected = 0.05 / 15_312  # as many pairs as 33 learners have on 29 sets
    assert np.mean(stats.ttest_rel(first, second, axis=1).pvalue < corrected) > 0.005
    assert _paired_ps(first, second).min() == 2 / 2**5, "which no table of verdicts calls significant"


def test_paired_test_at_its_edges() -> None:
    same = np.array([4, 9, 2])
    assert paired_p(same, same) == 1.0
    assert paired_p(same + 1, same) == 0.25
    assert paired_p(np.arange(10) + 1, np.arange(10)) == pytest.approx(2 / 2**10)
    alone = compare([outcome("a", "one", [5]), outcome("a", "two", [3])], "one")
    assert [row.p for row in alone] == [None, None]


def test_more_runs_won_with_more_mistakes_is_no_win() -> None:
    """Nineteen runs are won by one mistake, the twentieth is lost by many: the runs do not tell who is better."""
    other = np.full(20, 10)
    mixed = np.array([9] * 19 + [500])
    p = paired_p(mixed, other)
    assert p is not None
    assert p < 0.001
    assert (_verdict_of(mixed, other, p), _verdict_of(other, mixed, p)) == ("tie", "tie")
    assert (_verdict_of(other - 1, other, p), _verdict_of(other, other - 1, p)) == ("win", "loss")
    assert _verdict_of(other - 1, other, 0.05) == "tie"


def test_holm_is_the_step_down_method() -> None:
    assert _holm([]) == []
    assert _holm([0.2]) == [0.2]
    assert _holm([0.04, 0.001, 0.03]) == pytest.approx([0.06, 0.003, 0.06])
    assert _holm([0.9, 0.8]) == [1.0, 1.0]


def comparison(n_runs: int) -> list[Outcome]:
    return [
        outcome("a", "Base", [100, 104, 98, 101, 99, 100, 103, 99][:n_runs]),
        outcome("a", "Better", [50, 55, 48, 50, 51, 52, 50, 49][:n_runs]),
        outcome("a", "Worse", [150, 155, 149, 150, 149, 151, 150, 152][:n_runs]),
        outcome("a", "Same", [101, 102, 99, 100, 98, 101, 103, 98][:n_runs]),
        outcome("a", "Told", [20] * n_runs, full_information=True),
    ]


def test_rows_and_verdicts() -> None:
    rows = compare(comparison(8), "Base")
    assert [row.verdict for row in rows] == ["", "win", "loss", "tie", ""]
    assert [row.p is None for row in rows] == [True, False, False, False, True]
    assert rows[0].ratio == pytest.approx(100.5 / 20.0)
    assert rows[4].ratio == 1.0
    raw = [row.p for row in rows[1:4] if row.p is not None]
    assert [row.p_adjusted for row in rows[1:4]] == _holm(raw)
    counted = {row.title: (row.wins, row.ties, row.losses, row.p) for row in tally(rows, "Base")}
    assert counted == {"Better": (1, 0, 0, None), "Worse": (0, 0, 1, None), "Same": (0, 1, 0, None)}


def test_too_few_runs_are_neither_a_win_nor_a_tie() -> None:
    """Three comparisons take seven runs: with six not even a learner that is better in all of them could win."""
    assert signs_to_decide(3) == 7
    rows = compare(comparison(6), "Base")
    assert [row.verdict for row in rows] == ["", *["too few runs"] * 3, ""]
    assert min(row.p_adjusted for row in rows if row.p_adjusted is not None) >= 0.05
    assert {(row.wins, row.ties, row.losses) for row in tally(rows, "Base")} == {(0, 0, 0)}
    assert [row.verdict for row in compare(comparison(7), "Base")][1:3] == ["win", "loss"]


def test_default_runs_can_tell_a_table_apart() -> None:
    assert signs_to_decide(100) <= RUNS
    assert signs_to_decide(26_000) <= LEAGUE_RUNS
    assert signature(play_comparison).parameters["runs"].default == RUNS
    assert signature(play_league).parameters["runs"].default == LEAGUE_RUNS


def test_one_run_gives_no_verdict() -> None:
    rows = compare([outcome("a", "Base", [10]), outcome("a", "Other", [20])], "Base")
    assert [(row.p, row.verdict, row.ratio) for row in rows] == [(None, "", None)] * 2
    assert tally(rows, "Base") == []


def test_correction_counts_the_whole_table() -> None:
    def table(n_sets: int) -> float | None:
        outcomes = [
            played
            for s in range(n_sets)
            for played in (outcome(str(s), "Base", [10, 12, 11]), outcome(str(s), "Other", [13, 14, 15]))
        ]
        return compare(outcomes, "Base")[1].p_adjusted

    one, ten = table(1), table(10)
    assert one is not None
    assert ten == pytest.approx(min(1.0, 10 * one))


def test_tally_across_sets_is_a_signed_rank_test() -> None:
    outcomes = [
        played
        for s in range(8)
        for played in (
            outcome(str(s), "Base", [100, 110, 105]),
            outcome(str(s), "Half", [50 + s, 55, 52 + 2 * s]),
            outcome(str(s), "Equal", [100, 110, 105]),
        )
    ]
    half, equal = tally(compare(outcomes, "Base"), "Base")
    assert half.ratio == pytest.approx(0.53, abs=0.02)
    assert half.p == pytest.approx(2 * 2 / 2**8), "all eight of one sign, times two for Holm"
    assert equal.p == 1.0
    assert equal.ratio == 1.0


def test_a_perfect_game_and_an_unknown_baseline() -> None:
    rows = compare([outcome("a", "Base", [0, 0]), outcome("b", "Base", [0, 1])], "Base")
    assert [row.outcome.mean for row in rows] == [0.0, 0.5]
    told = compare([outcome("a", "Base", [3, 4]), outcome("a", "Told", [0, 0], full_information=True)], "Base")
    assert told[0].ratio is None, "nothing can be told as a multiple of zero mistakes"
    with pytest.raises(ValueError, match="'Nobody' does not play; those that do: Base"):
        compare([outcome("a", "Base", [1, 2])], "Nobody")


# Table 6 of the paper: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 sets. On the last but one the paper ranks two
# that print alike by their further digits.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_demsars_example() -> None:
    ranks = stats.rankdata(-DEMSAR, axis=1)
    assert ranks.mean(axis=0) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    # By F(3, 39) = 3.69, without a correction for ties.
    assert _friedman(ranks) == pytest.approx(stats.f.sf(3.69, 3, 39), abs=0.01)
    assert _critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert _critical_difference(4, 14, level=0.10) == pytest.approx(1.12, abs=0.005)


def test_critical_values_are_demsars() -> None:
    """Its Table 5: q at 0.05 for two to ten classifiers."""
    printed = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, q in enumerate(printed, start=2):
        assert _critical_difference(k, 1) / math.sqrt(k * (k + 1) / 6) == pytest.approx(q, abs=1.5e-3)


def test_friedman_is_near_scipys_with_and_without_ties() -> None:
    generator = np.random.default_rng(3)
    for means in (generator.random((9, 5)), generator.integers(4, size=(12, 6)).astype(float)):
        found, scipys = _friedman(stats.rankdata(means, axis=1)), stats.friedmanchisquare(*means.T)
        assert found == pytest.approx(scipys.pvalue, abs=0.05), "of so many sets the approximation is close"


def test_friedman_of_few_sets_is_exact() -> None:
    """Two sets that agree on three learners: one of six orders."""
    found = _friedman(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    assert found == pytest.approx(1 / 6, abs=0.012)
    assert _friedman(np.full((3, 4), 2.5)) == 1.0


def test_friedman_keeps_its_level() -> None:
    """Under no difference 5 % of the tests find one (200 tests: 10 ± 3.1)."""
    generator = np.random.default_rng(1)
    ps = [_friedman(stats.rankdata(generator.random((4, 3)), axis=1)) for _ in range(200)]
    assert sum(p < 0.05 for p in ps) <= 10 + 3 * 3.1


def test_signed_rank_test_is_exact_with_ties() -> None:
    generator = np.random.default_rng(2)
    for n in (2, 6, 25):
        differences = generator.normal(0.4, 1.0, n)
        assert _signed_rank_p(differences.tolist()) == pytest.approx(stats.wilcoxon(differences).pvalue)
    tied = [1.0, 1.0, -2.0, 2.0, 3.0, -1.0, 0.0, 5.0, 5.0]
    moved = np.array([each for each in tied if each])
    ranks = stats.rankdata(np.abs(moved))
    sums = [np.dot(ranks, signs) for signs in itertools.product([0, 1], repeat=len(ranks))]
    low = min(ranks[moved > 0].sum(), ranks[moved < 0].sum())
    assert _signed_rank_p(tied) == pytest.approx(2 * np.mean([total <= low for total in sums]))
    assert _signed_rank_p([0.0, 0.0]) == 1.0
    assert _signed_rank_p([1.0]) is None
    many = generator.normal(0.1, 1.0, 300)
    assert _signed_rank_p(many.tolist()) == pytest.approx(stats.wilcoxon(many, method="approx").pvalue)


def league_outcome(dataset: str, title: str, level: float, *, full_information: bool = False) -> Outcome:
    generator = np.random.default_rng(len(dataset) * 100 + len(title))
    finals = np.rint(level + generator.normal(0, 1, 10)).astype(int)
    mistakes = np.column_stack([finals // 2, finals])
    entry = Entry(title, Spec(title), full_information)
    return Outcome(dataset, entry, np.array([50, 100]), mistakes, np.full(10, 2e-4), explored=np.full(10, 0.05))


SETS = ("a", "bb", "ccc", "dddd", "eeeee", "ffffff")
GONE = ("a", "worst")


def league() -> list[Outcome]:
    levels = {"best": 10.0, "middle": 20.0, "worst": 40.0}
    outcomes = [league_outcome(name, title, level) for name in SETS for title, level in levels.items()]
    return outcomes + [league_outcome(name, "told", 5.0, full_information=True) for name in SETS]


def test_standings_of_a_clear_league() -> None:
    found = standings(league())
    assert [(row.number, row.title, row.mean_rank, row.firsts) for row in found.ranked] == [
        (1, "best", 1.0, 6),
        (2, "middle", 2.0, 0),
        (3, "worst", 3.0, 0),
    ]
    best, middle, worst = found.ranked
    assert (best.wins, best.ties, best.losses) == (12, 0, 0)
    assert (middle.wins, middle.ties, middle.losses) == (6, 0, 6)
    assert best.relative == 1.0
    assert worst.relative == pytest.approx(40.5 / 10.5, rel=0.05)
    assert best.microseconds == pytest.approx(2.0)
    assert best.explored == pytest.approx(0.05)
    (told,) = found.unranked
    assert told.number is None
    assert told.relative < 1.0
    assert found.pairs["best", "worst"].p == pytest.approx(3 * 2 / 2**6), "three pairs, six sets of one sign"
    assert found.pairs["worst", "best"].ratio == pytest.approx(1 / found.pairs["best", "worst"].ratio)
    assert found.friedman is not None
    assert found.friedman < 0.01
    assert found.critical_difference == pytest.approx(_critical_difference(3, 6))
    assert found.groups == ((0, 1), (1, 2)), "mean ranks one apart, where 1.35 would differ"


def test_too_few_runs_are_counted_as_nothing_and_said() -> None:
    few = [replace(each, mistakes=each.mistakes[:8]) for each in league() if (each.dataset, each.entry.title) != GONE]
    found = standings(few)
    assert (found.n_runs, found.n_tests, found.runs_to_decide) == (8, 16, 10)
    assert {row.title: (row.wins, row.ties, row.losses) for row in found.ranked} == {
        "best": (1, 0, 0),
        "middle": (1, 0, 0),
        "worst": (0, 0, 2),
    }
    said = _verdict_in_words(found)
    assert said.endswith(
        "8 runs are too few for 16 tests, which take 10 (--runs 10). Wins and losses are sets that only one of two has "
        "finished."
    )
    assert "too few" not in _verdict_in_words(standings(league()))


def test_who_did_not_finish_shares_the_last_ranks() -> None:
    outcomes = [each for each in league() if (each.dataset, each.entry.title) not in {("a", "best"), ("a", "middle")}]
    found = standings(outcomes)
    assert [found.ranks["a", title] for title in ("best", "middle", "worst")] == [2.5, 2.5, 1.0]
    rows = {row.title: row for row in found.ranked}
    assert rows["best"].mean_rank == pytest.approx((2.5 + 5 * 1.0) / 6)
    assert rows["best"].mean_rank_of_common == 1.0
    assert rows["best"].finished == 5
    assert rows["best"].relative == 1.0, "of the sets that it finished"
    pair = found.pairs["best", "worst"]
    assert (pair.wins, pair.ties, pair.losses) == (5, 0, 1)
    assert pair.p == pytest.approx(holm_of_three(found, _signed_rank_p([-1, -1.1, -1.2, -1.3, -1.4, 2.4])))
    both = found.pairs["best", "middle"]
    assert (both.wins, both.ties, both.losses) == (5, 1, 0)


def holm_of_three(found: object, p: float | None) -> float:
    # The largest difference is the lost set's: _rank 6 of 21 against it. All three pairs have a p of the same family.
    assert p is not None
    ps = sorted([p, p, 2 / 2**5])
    adjusted, highest = {}, 0.0
    for at, each in enumerate(ps):
        highest = max(highest, min(1.0, (3 - at) * each))
        adjusted[each] = highest
    return adjusted[p]


def test_who_finished_nothing_is_not_ranked_and_one_set_is_no_sample() -> None:
    one = [each for each in league() if each.dataset == "a"]
    found = standings(one)
    assert found.friedman is None
    assert math.isnan(found.critical_difference)
    assert found.pairs["best", "worst"].p is None
    alone = standings([each for each in one if each.entry.title in ("best", "told")])
    assert [row.title for row in alone.ranked] == ["best"]
    assert not alone.pairs


def test_equal_learners_are_one_group() -> None:
    outcomes = league()
    twins = [replace(each, entry=Entry("twin", Spec("twin"))) for each in outcomes if each.entry.title == "best"]
    found = standings([each for each in outcomes if each.entry.title == "best"] + twins)
    assert [row.mean_rank for row in found.ranked] == [1.5, 1.5]
    assert found.friedman is not None
    assert found.friedman == 1.0
    assert found.groups == ((0, 1),)
    pair = found.pairs["best", "twin"]
    assert (pair.wins, pair.ties, pair.losses, pair.ratio, pair.p) == (0, 6, 0, 1.0, 1.0)


def test_groups_are_those_nearer_than_the_difference() -> None:
    assert _groups_within([1.0, 2.0, 3.0, 4.0], 1.0) == [], "at least the difference apart: they differ"
    assert _groups_within([1.0, 2.0, 3.0, 4.0], 2.5) == [(0, 2), (1, 3)]
    assert _groups_within([1.0, 1.2, 1.4], math.inf) == [(0, 2)]
    assert _groups_within([], 1.0) == []


def test_numbers_beside_marks_do_not_cover_each_other() -> None:
    places = np.array([[1.0, 1.0], [1.02, 1.01], [1.05, 0.98], [3.0, 2.0]])
    found = _spots(places, ["1", "2", "3", "14"])
    apart = np.abs(found[:, None] - found[None])[np.triu_indices(4, 1)]
    assert np.all((apart[:, 0] > 0.1) | (apart[:, 1] > 0.1))
    assert np.hypot(*(found - places).T).max() <= 0.51
    assert _pareto([]) == []


def test_example_of_paired_ps() -> None:
    assert repr(_paired_ps(np.array([[30, 35, 31, 33, 32]]), np.array([[20, 22, 21, 20, 22]]))) == "array([0.0625])"


def test_example_of_signs_to_decide() -> None:
    assert (signs_to_decide(1), signs_to_decide(10), signs_to_decide(378)) == (6, 9, 14)


def test_example_of_holm() -> None:
    assert [round(p, 3) for p in _holm([0.01, 0.04, 0.03]) if p is not None] == [0.03, 0.06, 0.06]


def test_example_of_signed_rank_p() -> None:
    assert _signed_rank_p([0.3, 0.1, 0.2, 0.5, 0.4, 0.6]) == 0.03125


def test_example_of_verdict_of() -> None:
    first = np.array([9] * 19 + [500])
    second = np.full(20, 10)
    assert (_verdict_of(first, second, p=0.001), _verdict_of(first[:19], second[:19], p=0.001)) == ("tie", "win")


def test_example_of_critical_difference() -> None:
    assert round(_critical_difference(4, 14), 2) == 1.25


def test_example_of_groups_within() -> None:
    assert _groups_within([1.0, 1.5, 2.2, 5.0], 1.0) == [(0, 1), (1, 2)]
