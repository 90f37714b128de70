from onebit.experiments.duels import DuelRow
from onebit.experiments.figures import _pareto, _side_by_side, draw_duel, draw_growth


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
