from onebit.settings_syntax import read_value


def test_example_of_read_value() -> None:
    assert (read_value("true"), read_value("3"), read_value("3.0"), read_value("auto")) == (True, 3, 3.0, "auto")
