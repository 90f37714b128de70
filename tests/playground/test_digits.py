"""Digits of the playground: a person who answers every guess, and one who is asked about the unsure ones."""

import json

import pytest

from onebit.asking import Asking
from onebit.playground import digits
from onebit.playground.digits import _MOST_ANSWERS, Asker, Oracle, _shuffled
from onebit.playground.session import FINISHED, READY, new_learner
from onebit.service.gate import Problem

# A person as oracle.


def test_the_oracle_hears_only_its_person() -> None:
    oracle = Oracle(["even", "odd"], "perceptron", seed=5)
    first = oracle.frame()
    assert first["sorted_as"] is None
    assert first["guess"] in ("even", "odd")
    assert oracle.frame() == first  # looking changes nothing
    oracle.answer(1, correct=False)
    with pytest.raises(Problem, match="round must be 2"):
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
    oracle._round = _MOST_ANSWERS + 1
    assert oracle.frame()["state"] == FINISHED
    with pytest.raises(ValueError, match="at most"):
        oracle.answer(_MOST_ANSWERS + 1, correct=True)


@pytest.mark.parametrize("names", [["one"], ["a", "a"], ["a", " "], ["a", "b" * 41], [str(i) for i in range(11)]])
def test_the_names_of_an_oracle_are_checked(names: list[str]) -> None:
    with pytest.raises(ValueError, match="classes must be"):
        Oracle(names, "perceptron", seed=0)


def test_the_oracle_needs_a_learner_that_is_not_told_labels() -> None:
    with pytest.raises(ValueError, match="right or wrong only"):
        Oracle(["a", "b"], "told", seed=0)


# A person who is asked.


def test_the_asker_decides_alone_where_it_may_and_asks_a_person_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The game is that of the learner and the rule, whoever looks in between."""
    monkeypatch.setattr(digits, "_SECONDS", 0.05)
    asker, rule, learner = Asker(0.1, seed=2), Asking(wrong_at_most=0.1), new_learner("svm", list("0123456789"), 2)
    images, truths = _shuffled(2)
    asked = []
    while (frame := asker.frame())["round"] <= 130:
        if frame["image"] is None:
            asker.go_on()
        else:
            assert frame["image"] == images[frame["round"] - 1].tolist()
            asker.label(frame["round"], str(truths[frame["round"] - 1]))
    for image, truth in zip(images[: frame["round"] - 1], truths, strict=False):
        guess = learner.guess(image)
        decision = rule.decide(guess.confidence)
        rule.answer(decision, guess.label == str(truth))
        learner.label(guess, str(truth)) if decision.ask else learner.tell(guess, guess.label == str(truth))
        asked.append(decision.ask)
    assert (frame["asked"], frame["alone"], frame["wrong"]) == (sum(asked), rule.n_alone, rule.n_wrong)
    assert frame["lately"] < frame["parts"][0] == 25, "it asks less with time"
    assert frame["wrong"] <= frame["allowed"]
    assert sum(frame["parts"]) == frame["asked"]
    json.dumps(frame, allow_nan=False)


def test_the_asker_takes_a_label_once_and_only_where_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asker = Asker(seed=1)
    first = asker.frame()
    assert (first["state"], first["round"], first["confidence"], first["is_blocked"]) == (READY, 1, None, False)
    asker.go_on()
    assert asker.frame() == first  # it waits for the person
    with pytest.raises(ValueError, match="label must be one of 0, 1"):
        asker.label(1, "ten")
    asker.label(1, "3")
    with pytest.raises(Problem, match="round must be 2"):
        asker.label(1, "3")
    assert asker.frame()["latest"][0]["asked"]
    asker._decision = asker._decision._replace(ask=False)
    with pytest.raises(Problem, match="round 2 is not asked about"):
        asker.label(2, "3")
    asker._truths = asker._truths[:2]
    asker.go_on()
    over = asker.frame()
    assert (over["state"], over["asked"], over["alone"], over["image"]) == (FINISHED, 1, 1, None)
    with pytest.raises(Problem, match="not asked about"):
        asker.label(3, "3")
