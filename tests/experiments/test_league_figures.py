from onebit.experiments.league_figures import _pareto, _side_by_side


def test_example_of_side_by_side() -> None:
    assert _side_by_side([(0, 3), (1, 5), (4, 6), (6, 8)]) == [0, 1, 0, 1]


def test_example_of_pareto() -> None:
    assert _pareto([(2.0, 1.0), (1.0, 3.0), (3.0, 1.5), (1.5, 3.0)]) == [(1.0, 3.0), (2.0, 1.0)]
