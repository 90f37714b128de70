"""How a decider's mistakes went since it began, in a few hundred moments, however many answers there were."""

from collections import Counter
from typing import Any, NamedTuple

_MOST = 512
"""Moments that are kept; beyond, every second one goes, and new ones are taken half as often."""


class Moment(NamedTuple):
    """What was known when an answer had come."""

    time: float
    """Seconds since 1970."""
    guesses: int
    answered: int
    wrong: int


class Course:
    """The moments, evenly spaced by answers.

    Parameters
    ----------
    answered, wrong : int
        What is known already, of which there are no moments.

    Examples
    --------
    >>> course = Course()
    >>> for second in range(1000):
    ...     course.add(second % 4 > 0, float(second), Counter(a=second + 1))
    >>> len(course.moments), course.moments[-1]
    (500, Moment(time=999.0, guesses=1000, answered=1000, wrong=250))
    """

    def __init__(self, answered: int = 0, wrong: int = 0) -> None:
        self.answered, self.wrong = answered, wrong
        self.moments: list[Moment] = []
        self._stride = 1

    def add(self, correct: bool, time: float, guessed: "Counter[Any]") -> None:
        """Count an answer; `guessed` says how many guesses there were of each label."""
        self.answered += 1
        self.wrong += not correct
        if self.answered % self._stride:
            return
        self.moments.append(Moment(time, guessed.total(), self.answered, self.wrong))
        if len(self.moments) > _MOST:
            self._stride *= 2
            self.moments = [each for each in self.moments if each.answered % self._stride == 0]

    def state(self) -> list[Any]:
        """Return it as JSON can write it."""
        return [self.answered, self.wrong, self._stride, [list(each) for each in self.moments]]

    @classmethod
    def of_state(cls, state: list[Any]) -> "Course":
        """Return what `state` returned."""
        answered, wrong, stride, moments = state
        course = cls(int(answered), int(wrong))
        course._stride = max(int(stride), 1)
        course.moments = [Moment(float(time), *map(int, counts)) for time, *counts in moments]
        return course
