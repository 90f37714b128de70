from onebit.reporting.figures import spread


def test_example_of_spread() -> None:
    assert spread([0.0, 0.0, 0.5, 1.0, 1.0], 0.1) == [0.0, 0.1, 0.5, 0.9, 1.0]
