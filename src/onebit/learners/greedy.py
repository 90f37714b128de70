"""Learners that guess what a regression predicts to be most likely right, and explore apart from it, or not at all."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from onebit.engine.jit import jit_inline
from onebit.engine.state import State
from onebit.inputs import check_integer, check_number
from onebit.learners.exploring import write_chances
from onebit.learners.regression import RegressionLearner, RegressionState, Scratch, Settings


@dataclass(eq=False, repr=False)
class EpsilonGreedy(RegressionLearner):
    """Guesses the label that a regression predicts to be most likely right, and now and then any label.

    Class i regresses 1 for right and 0 for wrong on the rounds in which it was guessed. There is no intercept: give
    rows a column of ones.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: in [0, 1]. With 0 it is plain greedy.
    scores : "ridge" or "logistic"
        Ridge regression, or logistic regression of first order with adaptive steps (AdaGrad), in O(d).
    diagonal : bool
        Of ridge: whether to keep only the diagonal of each Aᵢ, O(d) instead of O(d²) for the guessed class.
    regularization : float
        Of ridge: λ in Aᵢ = λI + Σxxᵀ. Of logistic: where the summed squares of the gradients start. Greater than 0.
    learning_rate : float
        Of logistic: what gradients are multiplied by before they are divided by the root of those sums; up to 1e100.

    Notes
    -----
    Guarantee: `exploration`·(K−1)/K mistakes per round from exploring, at least, if there is always one right label.
    With a rate of order (K/T)^(1/3), a probability of each label that is linear in x and rows that are drawn
    independently, Õ(T^(2/3)) more mistakes than the best labels would make (Langford and Zhang, for a relative that
    explores in epochs).

    Examples
    --------
    >>> learner = EpsilonGreedy(exploration=0.3, classes=3)
    >>> learner.probabilities([1.0, 0.0]).round(3)
    array([0.8, 0.1, 0.1])

    References
    ----------
    Langford, Zhang (2008). The epoch-greedy algorithm for contextual multi-armed bandits. NIPS 20.
    Duchi, Hazan, Singer (2011). Adaptive subgradient methods for online learning and stochastic optimization. JMLR 12.
    """

    exploration: float = 0.05
    scores: str = "ridge"
    diagonal: bool = False
    regularization: float = 1.0
    learning_rate: float = 0.5

    def _new_state(self) -> State:
        rate = check_number("exploration", self.exploration, at_least=0.0, at_most=1.0)
        return RegressionState(self, (rate,))


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

    def _new_state(self) -> State:
        n_first = check_integer("n_first", self.n_first, low=0, high=2**53)
        return _ExploreFirstState(self, (float(n_first),))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_first=40)


@jit_inline
def _uniform_at_first(scratch: Scratch, settings: Settings) -> None:
    rate = 1.0 if scratch.answers[0] < settings.own[0] else 0.0
    write_chances(scratch.scores, (rate,), scratch.propensities)


class _ExploreFirstState(RegressionState):
    write_propensities = staticmethod(_uniform_at_first)


@dataclass(eq=False, repr=False)
class FullInformationRidge(RegressionLearner):
    """The floor under `LinUCB`, `SquareCB` and their kin: every class learns in every round, and nothing is explored.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. Class i regresses 1 on the rounds whose label
    it is, and 0 on all others. The highest prediction is guessed. There is no intercept: give rows a column of ones.

    Parameters
    ----------
    diagonal, regularization
        As for `LinUCB`.

    Notes
    -----
    Guarantee: For any weights U and rows no longer than R, M ≤ 2(1 + R²/λ)·(λ‖U‖² + Σ‖Ux − e‖²), always, where e marks
    the right label. With late answers it bounds those that find the right label not ahead. The diagonal form has no
    guarantee.

    Examples
    --------
    >>> learner = FullInformationRidge(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False, label="right")
    >>> learner.weights_.tolist()
    [[0.0, 0.0], [0.5, 0.0]]

    References
    ----------
    Zhdanov, Kalnishkan (2010). An identity for kernel ridge regression. ALT.
    """

    full_information: ClassVar[bool] = True

    diagonal: bool = False
    regularization: float = 1.0

    def _new_state(self) -> State:
        return RegressionState(self, (0.0,))
