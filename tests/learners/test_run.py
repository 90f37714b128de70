"""How a run begins, plays and is restored."""

import copy
from typing import Any

import pytest

import onebit
from onebit.checks.problems import noisy_problem, snapshot

PROBLEM = noisy_problem(120)


def test_one_row_is_counted_although_ctrl_c_comes_right_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = onebit.BanditPerceptron(classes=4).fit(PROBLEM.X[:50], PROBLEM.y[:50])
    twin = copy.deepcopy(learner).partial_fit(PROBLEM.X[50:51], PROBLEM.y[50:51])
    run = learner._state.run

    def interrupted(*arguments: Any) -> None:
        run(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(learner._state, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.partial_fit(PROBLEM.X[50:51], PROBLEM.y[50:51])
    assert snapshot(learner) == snapshot(twin)


def test_known_labels_are_guessed_among_without_copying_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = onebit.BanditPerceptron(classes="grow")
    learner.guess([1.0, 2.0], among=["a", "b"])
    monkeypatch.setattr(type(learner._state), "bookmark", None)
    assert learner.guess([1.0, 2.0], among=iter(["b"])).label == "b"
    with pytest.raises(TypeError):
        learner.guess([1.0, 2.0], among=["c"])
    assert learner.classes_.tolist() == ["a", "b"]
