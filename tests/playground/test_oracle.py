"""A person as oracle."""

import json

import pytest

from onebit.playground.oracle import MOST_ANSWERS, Oracle, StaleError
from onebit.playground.session import FINISHED


def test_the_oracle_hears_only_its_person() -> None:
    oracle = Oracle(["even", "odd"], "perceptron", seed=5)
    first = oracle.frame()
    assert first["sorted_as"] is None
    assert first["guess"] in ("even", "odd")
    assert oracle.frame() == first  # looking changes nothing
    oracle.answer(1, correct=False)
    with pytest.raises(StaleError, match="round must be 2"):
        oracle.answer(1, correct=True)
    second = oracle.frame()
    assert (second["round"], second["right"], second["answered"]) == (2, 0, 1)
    assert second["answers"] == [{"image": first["image"], "guess": first["guess"], "correct": False}]
    assert len(second["sorted_as"]) == len(second["shelf"]) == 40
    json.dumps(second, allow_nan=False)


def test_the_oracle_is_caught_on_to() -> None:
    """Always "yes" to a: after some answers a is all it says."""
    oracle = Oracle(["a", "b", "<script>"], "perceptron", seed=5)
    for round in range(1, 60):
        oracle.answer(round, correct=oracle.frame()["guess"] == "a")
    assert sum(oracle.frame()["lately"]) >= 9
    oracle._round = MOST_ANSWERS + 1
    assert oracle.frame()["state"] == FINISHED
    with pytest.raises(ValueError, match="at most"):
        oracle.answer(MOST_ANSWERS + 1, correct=True)


@pytest.mark.parametrize("names", [["one"], ["a", "a"], ["a", " "], ["a", "b" * 41], [str(i) for i in range(11)]])
def test_the_names_of_an_oracle_are_checked(names: list[str]) -> None:
    with pytest.raises(ValueError, match="classes must be"):
        Oracle(names, "perceptron", seed=0)


def test_the_oracle_needs_a_learner_that_is_not_told_labels() -> None:
    with pytest.raises(ValueError, match="right or wrong only"):
        Oracle(["a", "b"], "told", seed=0)
