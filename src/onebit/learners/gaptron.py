"""Gaptron: explores as much as the gap between the logistic loss and the probability of a mistake allows."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from onebit.engine.jit import jit_inline, jit_internal
from onebit.engine.state import LARGEST_SQUARE
from onebit.game import Answer
from onebit.inputs import check_number
from onebit.learners.base import Learner
from onebit.learners.gradient import (
    LN2,
    LONGEST,
    PROPENSITY,
    SQUARE,
    GradientState,
    Scratch,
    Weights,
    take_step,
    write_gradient,
    write_softmax,
)


@dataclass(eq=False, repr=False)
class Gaptron(Learner):
    """Gradient descent on the logistic loss (in base 2), exploring by the gap between it and a mistake.

    Let p be the largest entry of softmax(Wx). The label with the highest score is guessed, but with probability max(a,
    g) a label is drawn uniformly instead: g is `exploration`, and a, the gap map of the logistic loss, is 1 − p where p
    ≥ ½, else 1. A right guess leads to the step −η(softmax(Wx) − e)xᵀ/(ln 2 · P), where e marks the label and P is its
    propensity; a wrong guess to none.

    Parameters
    ----------
    exploration : float
        The least probability of a uniform draw, g: from 1e-50 to 1.
    learning_rate : float, optional
        η, up to 1e30. By default the theorem's, g·(ln 2)²/(2K²R²).
    longest : float, optional
        R, the length of the longest row, from 1e-50 to 1e50. By default that of the longest one learned from so far.

    Notes
    -----
    Guarantee: With the default learning rate and a true `longest`, for any weights U, E[M] ≤ Σ ℓ(U) + K²R²‖U‖²/(g·(ln
    2)²) + gT in T rounds fixed beforehand, where ℓ is the logistic loss in base 2; with g of order K/√T that is O(K√T)
    above Σ ℓ(U). The paper's variant with the hinge loss is not offered.

    Examples
    --------
    >>> learner = Gaptron(exploration=0.1, classes=3)
    >>> learner.probabilities([1.0, 0.0]).round(3)
    array([0.333, 0.333, 0.333])

    References
    ----------
    van der Hoeven (2020). Exploiting the surrogate gap in online multiclass classification. NeurIPS.
    """

    exploration: float = 0.05
    learning_rate: float | None = None
    longest: float | None = None
    # The theorem's steps are small: scikit-learn's 300 rows are too few for its 83 %.
    _poor_score: ClassVar[bool] = True

    def _new_state(self) -> GradientState:
        least = check_number("exploration", self.exploration, at_least=1e-50, at_most=1.0)
        rate, longest = self.learning_rate, self.longest
        rate = 0.0 if rate is None else check_number("learning_rate", rate, above=0.0, at_most=1e30)
        longest = 0.0 if longest is None else check_number("longest", longest, at_least=1e-50, at_most=1e50)
        return _State(_Settings(least, rate, longest), self.n_features_in_, len(self.classes_))


class _Settings(NamedTuple):
    exploration: float
    learning_rate: float  # 0 for the theorem's
    longest: float  # 0 if unknown


@jit_inline
def _mix(scratch: Scratch, settings: _Settings) -> tuple[int, float, float]:
    greedy = write_softmax(scratch)
    top = scratch.soft[greedy]
    return greedy, max(1.0 - top if top >= 0.5 else 1.0, settings.exploration), 0.0


@jit_internal
def _learn(state: Weights, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    if not answer.correct:
        return False
    length = write_gradient(answer.label, scratch, scratch.known[PROPENSITY])
    if length < 0.0:
        return False
    state.sums[LONGEST] = max(state.sums[LONGEST], scratch.known[SQUARE])
    longest = settings.longest * settings.longest if settings.longest > 0.0 else state.sums[LONGEST]
    rate, n_classes = settings.learning_rate, scratch.gains.shape[0]
    if rate == 0.0:
        rate = settings.exploration * LN2 * LN2 / (2.0 * n_classes * n_classes * longest)
    return take_step(state, scratch, rate, length)


class _State(GradientState):
    mix, learn = staticmethod(_mix), staticmethod(_learn)
    divides, longest_square = True, LARGEST_SQUARE
