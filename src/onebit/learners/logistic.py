"""Gradient descent on the multinomial logistic loss, in base 2: three learners that explore in three ways."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from onebit.engine.jit import jit_inline, jit_internal
from onebit.engine.state import LARGEST_SQUARE
from onebit.game import Answer
from onebit.inputs import check_integer, check_number
from onebit.learners.base import Learner
from onebit.learners.exploring import write_softmax
from onebit.learners.gradient import (
    COUNT,
    LENGTH,
    LONGEST,
    PROPENSITY,
    SQUARE,
    SQUARES,
    GradientState,
    Scratch,
    Weights,
)

_LN2 = math.log(2.0)


class _Settings(NamedTuple):
    exploration: float = 0.0
    learning_rate: float = 0.0  # 0 for the theorem's
    longest: float = 0.0  # 0 if unknown
    horizon: float = 0.0  # 0 if unknown
    norm_bound: float = math.inf


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
        return _GaptronState(self, _Settings(exploration=least, learning_rate=rate, longest=longest))


@jit_inline
def _mix_by_the_gap(scratch: Scratch, settings: _Settings) -> tuple[int, float, float]:
    greedy = write_softmax(scratch.scores, 1.0, scratch.soft)
    top = scratch.soft[greedy]
    return greedy, max(1.0 - top if top >= 0.5 else 1.0, settings.exploration), 0.0


@jit_internal
def _learn_at_a_rate(state: Weights, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    if not answer.correct:
        return False
    length = _write_gradient(answer.label, scratch, scratch.known[PROPENSITY])
    if length < 0.0:
        return False
    state.sums[LONGEST] = max(state.sums[LONGEST], scratch.known[SQUARE])
    longest = settings.longest * settings.longest if settings.longest > 0.0 else state.sums[LONGEST]
    rate, n_classes = settings.learning_rate, scratch.gains.shape[0]
    if rate == 0.0:
        rate = settings.exploration * _LN2 * _LN2 / (2.0 * n_classes * n_classes * longest)
    return _take_step(state, scratch, rate, length)


class _GaptronState(GradientState):
    mix, learn = staticmethod(_mix_by_the_gap), staticmethod(_learn_at_a_rate)
    divides, longest_square = True, LARGEST_SQUARE


@dataclass(eq=False, repr=False)
class AdaptiveSurrogate(Learner):
    """Draws from the softmax where that is unsure, from all labels now and then, and takes steps of its own size.

    Let p be the largest entry of softmax(Wx). With probability q = 2B√(K/T) a label is drawn uniformly. Otherwise the
    label with the highest score is guessed, or with probability min(1, 2(1 − p)) one drawn from the softmax. A right
    guess leads to a step along −G, G = (softmax(Wx) − e)xᵀ/P, where e marks the label and P is its propensity:
    2B/√(2Σ‖G‖²) times G, the sum over all G so far. Weights outside the ball ‖W‖ ≤ B are projected onto it. A wrong
    guess leads to no step.

    Parameters
    ----------
    norm_bound : float
        B: the weights that it is to compete with are no longer (all classes together); from 1e-30 to 1e100. The
        diameter of that ball, 2B, stands for the authors' B.
    horizon : int, optional
        T, the number of rounds. By default it is not known: round t explores with the q of T = t, where t counts the
        answers so far. No doubling is needed: that q falls, and adds up to no more than twice what a known T gives.

    Notes
    -----
    Guarantee: For any weights U in the ball and rows no longer than R, E[M] ≤ Σ ℓ(U) + Σ qₜ + 19·B²R²K/q in T rounds
    fixed beforehand, where ℓ is the logistic loss in base 2 and q the last qₜ: with R = 1, at most (2 + 9.5)·B√(KT)
    above Σ ℓ(U) for a known T, and (4 + 9.5)·B√(KT) without.

    Examples
    --------
    >>> learner = AdaptiveSurrogate(norm_bound=5.0, horizon=10_000, classes=4, seed=3)
    >>> learner.probabilities([1.0, 0.0]).tolist()
    [0.25, 0.25, 0.25, 0.25]

    References
    ----------
    Shibukawa, Tsuchiya, Sakaue, Yamanishi (2025). Bandit and delayed feedback in online structured prediction. NeurIPS.
    """

    norm_bound: float = 5.0
    horizon: int | None = None
    # In the 300 rows of scikit-learn's check nearly every guess is uniform.
    _poor_score: ClassVar[bool] = True

    def _new_state(self) -> GradientState:
        bound = check_number("norm_bound", self.norm_bound, at_least=1e-30, at_most=1e100)
        rounds = 0 if self.horizon is None else check_integer("horizon", self.horizon, low=1, high=2**53)
        return _AdaptiveState(self, _Settings(horizon=float(rounds), norm_bound=bound))


@jit_inline
def _mix_two_ways(scratch: Scratch, settings: _Settings) -> tuple[int, float, float]:
    greedy = write_softmax(scratch.scores, 1.0, scratch.soft)
    rounds = settings.horizon if settings.horizon > 0.0 else scratch.known[COUNT] + 1.0
    uniformly = min(1.0, 2.0 * settings.norm_bound * math.sqrt(scratch.soft.shape[0] / rounds))
    return greedy, uniformly, min(1.0, 2.0 * (1.0 - scratch.soft[greedy]))


@jit_internal
def _learn_adaptively(state: Weights, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    """Take a step along −G, if the right label is known; its length follows from the sum of all ‖G‖² so far."""
    is_told = answer.truth >= 0
    if not (is_told or answer.correct):
        return False
    propensity = 1.0 if is_told else scratch.known[PROPENSITY]
    length = _write_gradient(answer.truth if is_told else answer.label, scratch, propensity)
    if length < 0.0:
        return False
    state.sums[SQUARES] += length * scratch.known[SQUARE]
    # Any two weights in the ball are within twice the norm bound of each other.
    rate = 2.0 * settings.norm_bound / math.sqrt(2.0 * state.sums[SQUARES]) if state.sums[SQUARES] > 0.0 else 0.0
    return _take_step(state, scratch, rate, length)


class _AdaptiveState(GradientState):
    mix, learn = staticmethod(_mix_two_ways), staticmethod(_learn_adaptively)
    divides, longest_square, projects = True, LARGEST_SQUARE, True


@dataclass(eq=False, repr=False)
class FullInformationLogistic(Learner):
    """The floor under `AdaptiveSurrogate` and `Gaptron`: their gradient in every round, and nothing to explore.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. The highest score is guessed. Every answer
    leads to a step along −G, G = (softmax(Wx) − e)xᵀ/ln 2, where e marks the right label: 2B/√(2Σ‖G‖²) times G, the sum
    over all G so far, as in `AdaptiveSurrogate`. Weights outside the ball ‖W‖ ≤ B are projected onto it.

    Parameters
    ----------
    norm_bound : float
        B: the weights that it is to compete with are no longer (all classes together); from 1e-30 to 1e100.

    Notes
    -----
    Guarantee: For any weights U in the ball and rows no longer than R, M ≤ S + a√S + a², always, where S = Σ ℓ(U), ℓ is
    the logistic loss in base 2 and a = 4BR/√(ln 2). With late answers it bounds those that find the right label not
    ahead.

    Examples
    --------
    >>> learner = FullInformationLogistic(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False, label="right")
    >>> learner.guess([1.0, 0.0]).label
    'right'

    References
    ----------
    Streeter, McMahan (2010). Less regret via online conditioning. arXiv:1002.4862 (the size of the steps).
    """

    full_information: ClassVar[bool] = True

    norm_bound: float = 5.0

    def _new_state(self) -> GradientState:
        bound = check_number("norm_bound", self.norm_bound, at_least=1e-30, at_most=1e100)
        return _FullInformationState(self, _Settings(norm_bound=bound))


@jit_inline
def _mix_nothing(scratch: Scratch, _settings: _Settings) -> tuple[int, float, float]:
    return write_softmax(scratch.scores, 1.0, scratch.soft), 0.0, 0.0


class _FullInformationState(GradientState):
    mix, learn = staticmethod(_mix_nothing), staticmethod(_learn_adaptively)
    full_information, longest_square, projects = True, LARGEST_SQUARE, True


# Steps.


@jit_inline
def _write_gradient(label: int, scratch: Scratch, propensity: float) -> float:
    """Write minus the gradient G of the base-2 logistic loss, in units of x, divided by a propensity.

    Return ‖G‖², in units of ‖x‖²; or −1 if there is nothing to learn from it.
    """
    gains, soft, square, length = scratch.gains, scratch.soft, scratch.known[SQUARE], 0.0
    for i in range(gains.shape[0]):
        gains[i] = (1.0 - soft[i] if i == label else -soft[i]) / (propensity * _LN2)
        length += gains[i] * gains[i]
    return length if square > 0.0 and length * square < math.inf else -1.0  # a forged ticket may have any propensity


@jit_inline
def _take_step(state: Weights, scratch: Scratch, rate: float, length: float) -> bool:
    """Multiply the gains by a learning rate and keep ‖W‖² up to date; return whether the rate is a number."""
    if not rate < math.inf:
        return False
    product = 0.0
    for i in range(scratch.gains.shape[0]):
        scratch.gains[i] *= rate
        product += scratch.gains[i] * scratch.scores[i]
    state.sums[LENGTH] += 2.0 * product + rate * rate * length * scratch.known[SQUARE]
    return True
