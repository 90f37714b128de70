"""Explore, then commit: the simplest way to learn from a regression."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from onebit.engine.jit import jit_inline
from onebit.inputs import check_integer
from onebit.learners.exploring import write_chances
from onebit.learners.regression import RegressionLearner, RegressionState, Scratch, Settings


@dataclass(eq=False, repr=False)
class ExploreFirst(RegressionLearner):
    """Draws labels uniformly for the first `n_first` answers, then guesses the label with the highest prediction.

    It goes on learning after that, as `EpsilonGreedy` does.

    Parameters
    ----------
    n_first : int
        The number of answers after which it stops exploring; 0 or more.
    scores, diagonal, regularization, learning_rate
        As for `EpsilonGreedy`.

    Notes
    -----
    Guarantee: (K−1)/K mistakes per round while it explores, if there is always one right label. With `n_first` of order
    T^(2/3), a probability of each label that is linear in x and rows that are drawn independently, Õ(T^(2/3)) more
    mistakes than the best labels would make (Langford and Zhang). A class that is added later is hardly ever tried.

    Examples
    --------
    >>> learner = ExploreFirst(n_first=2, classes=["no", "yes"], seed=1)
    >>> learner.probabilities([1.0, 0.0])
    array([0.5, 0.5])
    >>> learner.learn_labels([[1.0, 0.0], [0.0, 1.0]], ["yes", "no"]).probabilities([1.0, 0.0])
    array([0., 1.])

    References
    ----------
    Langford, Zhang (2008). The epoch-greedy algorithm for contextual multi-armed bandits. NIPS 20.
    """

    n_first: int = 300
    scores: str = "ridge"
    diagonal: bool = False
    regularization: float = 1.0
    learning_rate: float = 0.5

    def _new_state(self) -> RegressionState:
        n_first = check_integer("n_first", self.n_first, low=0, high=2**53)
        return _State(self, (float(n_first),))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_first=40)


@jit_inline
def _uniform_at_first(scratch: Scratch, settings: Settings) -> None:
    rate = 1.0 if scratch.answers[0] < settings.own[0] else 0.0
    write_chances(scratch.scores, (rate,), scratch.propensities)


class _State(RegressionState):
    write_propensities = staticmethod(_uniform_at_first)
