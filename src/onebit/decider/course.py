"""The learning curve of a decider, in at most 512 points."""

from collections import Counter
from typing import Any, NamedTuple

_MOST = 512
"""Maximum number of points; beyond it every second one is dropped and the stride doubles."""


class Moment(NamedTuple):
    """One point of the learning curve: the counts after some feedback."""

    time: float
    """Seconds since 1970."""
    guesses: int
    answered: int
    wrong: int


class LearningCurve:
    """Points of a learning curve, evenly spaced by feedback.

    Parameters
    ----------
    answered, wrong : int
        Initial counts, for which there are no points.

    Examples
    --------
    >>> course = LearningCurve()
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
        """Count feedback; `guessed` holds the number of guesses of each label."""
        self.answered += 1
        self.wrong += not correct
        if self.answered % self._stride:
            return
        self.moments.append(Moment(time, guessed.total(), self.answered, self.wrong))
        if len(self.moments) > _MOST:
            self._stride *= 2
            self.moments = [each for each in self.moments if each.answered % self._stride == 0]

    def state(self) -> list[Any]:
        """Return the curve as plain JSON values."""
        return [self.answered, self.wrong, self._stride, [list(each) for each in self.moments]]

    @classmethod
    def of_state(cls, state: list[Any]) -> "LearningCurve":
        """Rebuild a curve from the result of `state`."""
        answered, wrong, stride, moments = state
        course = cls(int(answered), int(wrong))
        course._stride = max(int(stride), 1)
        course.moments = [Moment(float(time), *map(int, counts)) for time, *counts in moments]
        return course
