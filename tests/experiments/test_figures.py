from onebit.experiments.duels import DuelRow
from onebit.experiments.figures import draw_duel, draw_growth


def test_example_of_draw_duel() -> None:
    from onebit.streams.adversaries import one_example_sequence

    row = DuelRow(one_example_sequence(5, 0.5).challenge, "UniformGuess()", 20, 4.0, 0.3, 2.0, 2.0, None)
    assert draw_duel([row]).axes[0].get_title() == "Remark:\nbandit\nlearners\nK = 5\nd = 1\nR/γ = 2\n5 rounds"


def test_example_of_draw_growth() -> None:
    from onebit.streams.adversaries import IgnorantAdversary, pack_directions

    challenge = IgnorantAdversary(pack_directions(0.001, 8)).challenge
    row = DuelRow(challenge, "UniformGuess()", 20, 122.0, 1.1, challenge.stated.value, challenge.forced.value, None)
    assert draw_growth([row]).axes[0].get_yscale() == "log"
