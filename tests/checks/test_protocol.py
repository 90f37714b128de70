"""The checks of learners as a user calls them, on things of their own; and each finds what it is there to find."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest

import onebit
from foundation_checks import check_an_edited_ticket_is_refused, check_threads_may_share_it
from onebit.bounds import Claim
from onebit.checks import check_learner, protocol
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Rows


class LuckyLabel(onebit.Learner):
    """The guide's learner by hand: repeats the last label that was right."""

    def __init__(self, *, classes: Any = None, seed: int = 0) -> None:
        self.classes, self.seed = classes, seed

    def _start(self) -> None:
        self._chances = np.full(len(self.classes_), 1 / len(self.classes_))

    def _probabilities(self, row: Rows) -> Floats:
        return self._chances.copy()

    def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
        index = int(np.searchsorted(self._chances.cumsum(), self._draw(round), side="right"))
        return index, True, float(self._chances[index])

    def _update(self, guess: Guess, answer: Answer) -> bool:
        if answer.correct:
            self._chances = np.eye(len(self._chances))[answer.label]
        return answer.correct


def test_a_learner_by_hand_as_documented() -> None:
    left_out = check_learner(LuckyLabel(classes=3))
    assert set(left_out) == {
        "check_promises_that_hold_always",
        "check_promises_that_hold_late",
        "check_promises_that_hold_on_average",
        "check_scale_does_not_matter",
        "check_a_class_may_join",
        "check_known_rounds_teach",
    }
    assert "promises nothing" in left_out["check_promises_that_hold_always"]


@pytest.mark.parametrize("classes", [None, 2, ["yes", "no", "perhaps"]])
def test_the_classes_of_a_checked_learner_do_not_matter(classes: Any) -> None:
    assert len(check_learner(LuckyLabel(classes=classes))) == 6


class Boastful(onebit.BanditPerceptron):
    """Promises half of what is true."""

    def promise(self, **numbers: Any) -> tuple[Claim, ...]:
        return tuple(replace(claim, value=(claim.value or 0.0) / 40) for claim in super().promise(**numbers))


@pytest.mark.parametrize(
    "check", [protocol._check_promises_that_hold_always, protocol._check_promises_that_hold_on_average]
)
def test_a_promise_can_be_broken(check: Callable[[Any], None]) -> None:
    check(onebit.BanditPerceptron())
    with pytest.raises(AssertionError, match="promised"):
        check(Boastful())


def test_a_promise_can_be_broken_by_late_answers() -> None:
    class Hasty(onebit.MulticlassPerceptron):
        """Learns from what was wrong then, whatever it has learned since."""

        def _new_state(self) -> Any:
            memory = super()._new_state()
            memory.late_scratch = lambda scores: memory.scratch._replace(scores=scores, current=scores)  # type: ignore[method-assign]
            return memory

    protocol._check_promises_that_hold_late(onebit.MulticlassPerceptron())
    with pytest.raises(AssertionError, match="promised"):
        protocol._check_promises_that_hold_late(Hasty())


def test_what_is_not_promised_is_said_not_passed() -> None:
    for check in (protocol._check_promises_that_hold_always, protocol._check_promises_that_hold_on_average):
        with pytest.raises(SkipTest, match="promises nothing"):
            check(onebit.UniformGuess())


class Unlocked(LuckyLabel):
    """Has a lock that keeps nobody out."""

    class _Open:
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    def __new__(cls, *_settings: Any, **_named: Any) -> "Unlocked":
        learner = super().__new__(cls)
        learner._lock = cls._Open()  # type: ignore[assignment]
        return learner


def test_threads_without_a_lock_are_noticed() -> None:
    def try_often() -> None:
        for _ in range(20):
            check_threads_may_share_it(Unlocked())

    with pytest.raises(AssertionError):
        try_often()


class Trusting(LuckyLabel):
    """Takes tickets as they come."""

    def tell(self, guess: Guess | str, correct: bool, label: Any = None) -> None:
        issued = self._tickets
        if isinstance(guess, Guess) and issued is not None and issued._kept:
            guess = next(reversed(issued._kept.values())).id
        super().tell(guess, correct)


def test_edited_tickets_are_noticed() -> None:
    with pytest.raises((AssertionError, ValueError)):
        check_an_edited_ticket_is_refused(Trusting())
