"""Some labels only, labels that join, known rounds: where one of them meets something else."""

import sys
from typing import Any

import numpy as np
import pytest

import onebit
from onebit.checks.problems import noisy_problem
from onebit.kernels import Polynomial
from onebit.learners.saving import pack_state

PROBLEM = noisy_problem(80)


def test_looking_at_some_labels_leaves_the_open_round_alone() -> None:
    remembered = []
    for looks in (False, True):
        learner = onebit.NearestNeighbor(0.5, classes=2, seed=1)
        learner.tell(learner.guess([0.0, 0.0]), True)
        guess = learner.guess([5.0, 5.0])
        if looks:
            learner.probabilities([0.0, 0.0], among=[0, 1])
        learner.tell(guess, True)
        remembered.append(len(learner.support_))
    assert remembered == [2, 2]


def test_looking_before_a_class_joins_changes_nothing() -> None:
    """A scale may be due when a class joins: whoever looks first puts it in force, and must not matter."""
    packed = []
    for looks in (False, True):
        learner = onebit.BanditSVM(classes=4)
        for x, label in zip(PROBLEM.X[:64], PROBLEM.y[:64], strict=True):
            guess = learner.guess(x)
            learner.tell(guess, bool(guess.label == label))
        if looks:
            learner.probabilities(PROBLEM.X[0])
        learner.add_class("new")
        learner.probabilities(PROBLEM.X[0])
        packed.append({name: array.tobytes() for name, array in pack_state(learner._state).items()})
    assert packed[0] == packed[1]


def test_a_chance_whose_inverse_is_no_float_is_refused() -> None:
    learner = onebit.Banditron(classes=2)
    with pytest.raises(ValueError, match="propensities must be above 0"):
        learner.learn_from([[1.0, 2.0]], [1], True, 5e-324)
    with pytest.raises(ValueError, match=r"at most 1; got 1\.5$"):
        learner.learn_from([[1.0, 2.0]], [1], True, 1.5)


def test_a_refused_round_brings_no_label() -> None:
    learner = onebit.BanditPerceptron(Polynomial(9), classes="grow")
    learner.partial_fit([[1.0]], ["a"])
    with pytest.raises(ValueError, match="scores of"):
        learner.partial_fit([[1e200]], ["b"])
    assert learner.classes_.tolist() == ["a"]


def test_a_first_guess_can_be_broken_off_anywhere() -> None:
    reached = 0

    def break_off(frame: Any, event: str, _: Any) -> Any:
        nonlocal reached
        if "onebit" not in frame.f_code.co_filename:
            return None
        reached += event == "line"
        if reached == at:
            reached += 1
            sys.settrace(before)
            raise KeyboardInterrupt
        return break_off

    at, before = 0, sys.gettrace()
    while reached >= at:
        at, reached = at + 1, 0
        learner = onebit.UniformGuess(classes=3)
        try:
            sys.settrace(break_off)
            learner.guess(np.ones(2))
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        learner.tell(learner.guess(np.ones(2)), True)
    assert at > 50
