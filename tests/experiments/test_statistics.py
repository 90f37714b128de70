from inspect import signature

import numpy as np
import pytest
from scipy import stats

from onebit import cli
from onebit.experiments.comparison import RUNS, Outcome
from onebit.experiments.entries import Entry
from onebit.experiments.grid import Spec
from onebit.experiments.league import RUNS as LEAGUE_RUNS
from onebit.experiments.statistics import compare, holm, paired_p, paired_ps, signs_to_decide, tally, verdict_of
from onebit.inputs import Integers


def outcome(dataset: str, title: str, final: list[int], full_information: bool = False) -> Outcome:
    mistakes = np.array([[0, mistakes] for mistakes in final])
    return Outcome(
        dataset, Entry(title, Spec(title), full_information), np.array([1, 100]), mistakes, np.ones(len(final))
    )


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
        ps = paired_ps(1000 + np.rint(1e6 * found).astype(int), np.full(shape, 1000))
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
    assert paired_ps(first, second).min() == 2 / 2**5, "which no table of verdicts calls significant"


def test_paired_test_at_its_edges() -> None:
    same = np.array([4, 9, 2])
    assert paired_p(same, same) == 1.0
    assert paired_p(same + 1, same) == 0.25
    assert paired_p(np.arange(10) + 1, np.arange(10)) == pytest.approx(2 / 2**10)
    assert paired_p(np.array([5]), np.array([3])) is None


def test_more_runs_won_with_more_mistakes_is_no_win() -> None:
    """Nineteen runs are won by one mistake, the twentieth is lost by many: the runs do not tell who is better."""
    other = np.full(20, 10)
    mixed = np.array([9] * 19 + [500])
    p = paired_p(mixed, other)
    assert p is not None
    assert p < 0.001
    assert (verdict_of(mixed, other, p), verdict_of(other, mixed, p)) == ("tie", "tie")
    assert (verdict_of(other - 1, other, p), verdict_of(other, other - 1, p)) == ("win", "loss")
    assert verdict_of(other - 1, other, 0.05) == "tie"


def test_holm_is_the_step_down_method() -> None:
    assert holm([]) == []
    assert holm([0.2]) == [0.2]
    assert holm([0.04, 0.001, 0.03]) == pytest.approx([0.06, 0.003, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


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
    assert [row.p_adjusted for row in rows[1:4]] == holm(raw)
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
    commands = {cli.compare: RUNS, cli.league: LEAGUE_RUNS}
    assert {command: signature(command).parameters["runs"].default for command in commands} == commands


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
    with pytest.raises(ValueError, match="'Nobody' does not play; those who do: Base"):
        compare([outcome("a", "Base", [1, 2])], "Nobody")
