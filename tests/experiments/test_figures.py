from dataclasses import replace
from pathlib import Path

import numpy as np

from drawn import draw_files
from onebit.experiments.comparison import Outcome
from onebit.experiments.duels import DuelRow
from onebit.experiments.entries import enter
from onebit.experiments.figures import _pareto, _side_by_side, comparison_drawings, draw_duel, draw_growth
from onebit.reporting.looks import looks_of


def test_example_of_draw_duel() -> None:
    from onebit.streams.adversaries import one_example_sequence

    row = DuelRow(one_example_sequence(5, 0.5).challenge, "UniformGuess()", 20, 4.0, 0.3, 2.0, 2.0, None)
    assert draw_duel([row]).axes[0].get_title() == "Remark:\nbandit\nlearners\nK = 5\nd = 1\nR/γ = 2\n5 rounds"


def test_example_of_draw_growth() -> None:
    from onebit.streams.adversaries import IgnorantAdversary, pack_directions

    challenge = IgnorantAdversary(pack_directions(0.001, 8)).challenge
    row = DuelRow(challenge, "UniformGuess()", 20, 122.0, 1.1, challenge.stated.value, challenge.forced.value, None)
    assert draw_growth([row]).axes[0].get_yscale() == "log"


def test_example_of_side_by_side() -> None:
    assert _side_by_side([(0, 3), (1, 5), (4, 6), (6, 8)]) == [0, 1, 0, 1]


def test_example_of_pareto() -> None:
    assert _pareto([(2.0, 1.0), (1.0, 3.0), (3.0, 1.5), (1.5, 3.0)]) == [(1.0, 3.0), (2.0, 1.0)]


def outcome(dataset: str, title: str, n_runs: int, n_rounds: int) -> Outcome:
    mistakes = np.cumsum(np.ones((n_runs, n_rounds), dtype=np.int64), axis=1) // 2
    entry = replace(enter("MulticlassPerceptron" if title == "told" else "BanditPerceptron"), title=title, key=title)
    return Outcome(dataset, entry, np.arange(1, n_rounds + 1), mistakes, np.ones(n_runs))


def test_figures_of_many_sets_many_learners_one_run(tmp_path: Path) -> None:
    outcomes = [outcome(f"set {s}", t, 1, 20) for s in range(5) for t in (*"abcdefghij", "told")]
    drawn = draw_files(comparison_drawings(outcomes), tmp_path / "figures")
    assert [figure.name for figure in drawn] == ["overview", "curves_1", "curves_2"]
    assert all(figure.png.read_bytes().startswith(b"\x89PNG") for figure in drawn)
    assert "a single run" in drawn[1].caption
    again = draw_files(comparison_drawings(outcomes), tmp_path / "again")
    assert [a.svg.read_bytes() == b.svg.read_bytes() for a, b in zip(drawn, again, strict=True)] == [True] * 3
    found = looks_of(outcome.entry for outcome in outcomes)
    assert len({(look.color, look.dashes) for look in found.values()}) == 11, "everyone can be told apart"


def test_figures_of_the_shortest_game(tmp_path: Path) -> None:
    assert draw_files(comparison_drawings([outcome("one", "a", 2, 1)]), tmp_path)[0].png.stat().st_size > 1000
