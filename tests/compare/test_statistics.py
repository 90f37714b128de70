import numpy as np
import pytest
from scipy import stats

from onebit.arena.grid import Spec
from onebit.compare.comparison import Outcome
from onebit.compare.entries import Entry
from onebit.compare.statistics import compare, holm, paired_p, tally
from onebit.inputs import Integers


def outcome(dataset: str, title: str, final: list[int], hears_label: bool = False) -> Outcome:
    mistakes = np.array([[0, mistakes] for mistakes in final])
    return Outcome(dataset, Entry(title, Spec(title), hears_label), np.array([1, 100]), mistakes, np.ones(len(final)))


def differences(seed: int, shift: float, n_runs: int) -> tuple[Integers, Integers]:
    generator = np.random.default_rng(seed)
    common = generator.normal(500, 50, n_runs)
    return tuple(np.rint(common + generator.normal(s, 5, n_runs)).astype(int) for s in (shift, 0.0))  # type: ignore[return-value]


def test_paired_test_is_scipys_and_uses_the_pairing() -> None:
    first, second = differences(1, 30.0, 5)
    p = paired_p(first, second)
    assert p == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert p is not None
    assert p < 0.01
    assert stats.ttest_ind(first, second).pvalue > 0.05, "without the pairs the shuffles' own spread hides it"


def test_paired_test_keeps_its_level() -> None:
    """Under no difference at most about 5 % of the tests may say there is one (400 tests: 20 ± 4.4)."""
    ps = [paired_p(*differences(seed, 0.0, 5)) for seed in range(400)]
    assert sum(p is not None and p < 0.05 for p in ps) <= 20 + 3 * 4.4


def test_paired_test_at_its_edges() -> None:
    same = np.array([4, 9, 2])
    assert paired_p(same, same) == 1.0
    assert paired_p(same + 1, same) == 0.25, "always one more: the sign test"
    assert paired_p(np.arange(10) + 1, np.arange(10)) == pytest.approx(2 / 2**10)
    assert paired_p(np.array([5]), np.array([3])) is None


def test_holm_is_the_step_down_method() -> None:
    assert holm([]) == []
    assert holm([0.2]) == [0.2]
    assert holm([0.04, 0.001, 0.03]) == pytest.approx([0.06, 0.003, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_rows_and_verdicts() -> None:
    outcomes = [
        outcome("a", "Base", [100, 104, 98, 101, 99]),
        outcome("a", "Better", [50, 55, 48, 50, 51]),
        outcome("a", "Worse", [150, 155, 149, 150, 149]),
        outcome("a", "Same", [101, 102, 99, 100, 98]),
        outcome("a", "Told", [20, 21, 19, 20, 20], hears_label=True),
    ]
    rows = compare(outcomes, "Base")
    assert [row.verdict for row in rows] == ["", "win", "loss", "tie", ""]
    assert [row.p is None for row in rows] == [True, False, False, False, True]
    assert rows[0].ratio == pytest.approx(100.4 / 20.0)
    assert rows[4].ratio == 1.0
    raw = [row.p for row in rows[1:4] if row.p is not None]
    assert [row.p_adjusted for row in rows[1:4]] == holm(raw)
    counted = {row.title: (row.wins, row.ties, row.losses, row.p) for row in tally(rows, "Base")}
    assert counted == {"Better": (1, 0, 0, None), "Worse": (0, 0, 1, None), "Same": (0, 1, 0, None)}


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
    told = compare([outcome("a", "Base", [3, 4]), outcome("a", "Told", [0, 0], hears_label=True)], "Base")
    assert told[0].ratio is None, "nothing can be told as a multiple of zero mistakes"
    with pytest.raises(ValueError, match="'Nobody' does not play; those who do: Base"):
        compare([outcome("a", "Base", [1, 2])], "Nobody")
