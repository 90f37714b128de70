"""One weight vector per class, for learners that use the size of scores, not only their order.

Here are those that follow the gradient of the multinomial logistic loss, in base 2, and explore in three ways.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from onebit.engine.algorithm import UNSCORED, Algorithm, highest, ready_if_finite
from onebit.engine.jit import jit_inline, jit_internal, jit_no_refcount
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.engine.state import State, check_finite
from onebit.game import Answer
from onebit.inputs import Floats, Rows, SparseRows, check_integer, check_number
from onebit.learners.base import Learner
from onebit.learners.exploring import LARGEST_SQUARE, divisible_propensity, write_softmax
from onebit.spaces.linear import step_dense, step_sparse, sum_up_dense, sum_up_sparse

_ANSWERS, _SQUARES, _LONGEST, _LENGTH = range(4)
"""Positions in `_Weights.sums`: answers so far, Σ‖G‖² of the steps, the largest ‖x‖² learned from, ‖W‖²."""
_LN2 = math.log(2.0)


class _Weights(NamedTuple):
    """What was learned."""

    weights: Floats  # one row per feature, one column per class
    sums: Floats


class Scratch(NamedTuple):
    """What is known about one round."""

    scores: Floats
    soft: Floats  # their softmax
    gains: Floats  # how much of x each class gains
    propensities: Floats
    square: Floats  # ‖x‖², the only entry
    answers: Floats  # the number of answers so far; one entry


@jit_inline
def _guess_highest(scratch: Scratch, _settings: Any) -> tuple[int, float, float]:
    return highest(scratch.scores), 0.0, 0.0


class GradientLearner(Learner):
    """A learner whose `_new_state` returns a `GradientState`."""

    _mix: ClassVar[Callable[..., tuple[int, float, float]]] = staticmethod(_guess_highest)
    """``(scratch, settings)`` → the label with the highest score, and how a guess is drawn: uniformly with the first
    probability; otherwise from ``soft`` with the second; otherwise the highest."""
    _learn: ClassVar[Callable[..., bool]]
    """``(state, answer, scratch, settings)``: writes to ``gains`` how much of x each class gains; returns whether any
    does."""
    _divides: ClassVar[bool] = False
    """Whether a step is divided by the label's propensity."""
    _longest_square: ClassVar[float] = float(np.finfo(float).max)
    """Rows with a larger ‖x‖² are refused."""
    _projects: ClassVar[bool] = False
    """Whether weights are projected onto the ball of radius ``settings.norm_bound``."""


class GradientState(State):
    """Weights, and a few sums; `settings` is a named tuple of numbers."""

    arrays: _Weights
    takes_sparse = True
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("", "class")}
    per_class = "scores", "soft", "gains", "propensities"

    def __init__(self, learner: GradientLearner, settings: Any) -> None:
        self._kind: Any = type(learner)
        n_classes = len(learner.classes_)
        super().__init__(_Weights(np.zeros((learner.n_features_in_, n_classes)), np.zeros(4)), settings, n_classes)

    def new_scratch(self) -> Scratch:
        scores, soft, gains, propensities = np.zeros((4, self.n_classes))
        return Scratch(scores, soft, gains, propensities, np.zeros(1), np.zeros(1))

    def algorithm(self, is_sparse: bool) -> Algorithm:
        return _algorithm(self._kind, is_sparse)

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn as if the label had been guessed with that propensity."""
        propensity = divisible_propensity(propensity, row) if self._kind._divides else 1.0
        n_answers = self.arrays.sums[_ANSWERS]
        try:
            return self.learn_as_played(row, label, correct, truth, propensity)
        finally:
            self.arrays.sums[_ANSWERS] = n_answers  # exploration decays with rounds played, not with known ones

    def check_arrays(self, arrays: _Weights) -> None:
        check_finite(arrays.weights, arrays.sums[:_LENGTH])
        if (arrays.sums[:_LENGTH] < 0.0).any():
            raise ValueError("a count, or a sum of squares, is below 0")

    def score_rows(self, rows: Rows) -> Floats:
        matrix: Any = rows
        if isinstance(rows, SparseRows):
            matrix = scipy.sparse.csr_array((rows.values, rows.columns, rows.starts), shape=rows.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.nan_to_num(matrix @ self.arrays.weights))

    def learned(self) -> dict[str, Floats]:
        return {"weights": self.arrays.weights.T.copy(), "sums": self.arrays.sums.copy()}


@cache
def _algorithm(kind: Any, is_sparse: bool) -> Algorithm:
    mix, learn, longest_square, projects = kind._mix, kind._learn, kind._longest_square, kind._projects
    sum_up: Any = sum_up_sparse if is_sparse else sum_up_dense
    square_of: Any = _square_sparse if is_sparse else _square_dense
    step: Any = step_sparse if is_sparse else step_dense

    def score(state: _Weights, X: Rows, t: int, scratch: Scratch, _settings: Any) -> int:
        square = square_of(X, t)
        if not square <= longest_square:  # nor is NaN
            return UNSCORED
        sum_up(state, X, t, scratch.scores)
        scratch.square[0], scratch.answers[0] = square, state.sums[_ANSWERS]
        return ready_if_finite(scratch.scores)

    def choose(scratch: Scratch, draw: Draw, settings: Any) -> tuple[int, bool]:
        greedy, u, m = mix(scratch, settings)
        label, explored = greedy, False
        if u > 0.0 or m > 0.0:
            number = uniform(draw)
            # One number serves all choices: on either side of a threshold it is uniform again after rescaling.
            if number < u:
                label, explored = uniform_label(number / u, scratch.scores.shape[0]), True
            elif m > 0.0:
                number = (number - u) / (1.0 - u)
                if number < m:
                    number /= m
                    for i in range(scratch.scores.shape[0]):
                        number -= scratch.soft[i]
                        if number < 0.0:
                            label = i
                            break
        scratch.propensities[label] = _propensity(label, greedy, u, m, scratch)
        return label, explored

    def probabilities(scratch: Scratch, settings: Any) -> None:
        greedy, u, m = mix(scratch, settings)
        for i in range(scratch.propensities.shape[0]):
            scratch.propensities[i] = _propensity(i, greedy, u, m, scratch)

    def update(state: _Weights, X: Rows, t: int, scratch: Scratch, answer: Answer, settings: Any) -> Any:
        state.sums[_ANSWERS] += 1.0
        changed = learn(state, answer, scratch, settings)
        if changed:
            step(state, X, t, scratch.gains)
            if projects:
                _project(state, settings.norm_bound)
        return changed

    functions = jit_inline(score), jit_no_refcount(choose), jit_no_refcount(probabilities), jit_inline(update)
    return Algorithm(*functions, full_information=kind.full_information)


@jit_inline
def _square_dense(X: Floats, t: int) -> float:
    square = 0.0
    for j in range(X.shape[1]):
        square += X[t, j] * X[t, j]
    return square


@jit_inline
def _square_sparse(X: SparseRows, t: int) -> float:
    square = 0.0
    for entry in range(X.starts[t], X.starts[t + 1]):
        square += X.values[entry] * X.values[entry]
    return square


@jit_inline
def _propensity(label: int, greedy: int, u: float, m: float, scratch: Scratch) -> Any:
    drawn = m * scratch.soft[label] if m > 0.0 else 0.0
    return u / scratch.scores.shape[0] + (1.0 - u) * (drawn + (1.0 - m if label == greedy else 0.0))


@jit_internal
def _project(state: _Weights, bound: float) -> None:
    """Project the weights onto the ball; their norm is updated incrementally and recomputed only at its edge."""
    weights, sums = state.weights, state.sums
    if sums[_LENGTH] <= bound * bound:
        return
    length = 0.0
    for j in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            length += weights[j, i] * weights[j, i]
    if length > bound * bound:
        shrink = bound / math.sqrt(length)
        for j in range(weights.shape[0]):
            for i in range(weights.shape[1]):
                weights[j, i] *= shrink
        length = bound * bound
    sums[_LENGTH] = length


# Gradient steps on the logistic loss.


class _Settings(NamedTuple):
    exploration: float = 0.0
    learning_rate: float = 0.0  # 0 for the theorem's
    longest: float = 0.0  # 0 if unknown
    horizon: float = 0.0  # 0 if unknown
    norm_bound: float = math.inf


@jit_inline
def _write_gradient(label: int, scratch: Scratch, propensity: float) -> float:
    """Write minus the gradient G of the loss over a propensity, in units of x; return ‖G‖², or −1 for no step."""
    gains, soft, square, length = scratch.gains, scratch.soft, scratch.square[0], 0.0
    for i in range(gains.shape[0]):
        gains[i] = (1.0 - soft[i] if i == label else -soft[i]) / (propensity * _LN2)
        length += gains[i] * gains[i]
    return length if square > 0.0 and length * square < math.inf else -1.0  # a forged ticket may have any propensity


@jit_inline
def _take_step(state: _Weights, scratch: Scratch, rate: float, length: float) -> bool:
    """Multiply the gains by a learning rate and keep ‖W‖² up to date; return whether the rate is a number."""
    if not rate < math.inf:
        return False
    product = 0.0
    for i in range(scratch.gains.shape[0]):
        scratch.gains[i] *= rate
        product += scratch.gains[i] * scratch.scores[i]
    state.sums[_LENGTH] += 2.0 * product + rate * rate * length * scratch.square[0]
    return True


@jit_inline
def _mix_by_the_gap(scratch: Scratch, settings: _Settings) -> tuple[int, float, float]:
    greedy = write_softmax(scratch.scores, 1.0, scratch.soft)
    top = scratch.soft[greedy]
    return greedy, max(1.0 - top if top >= 0.5 else 1.0, settings.exploration), 0.0


@jit_internal
def _learn_at_a_rate(state: _Weights, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    if not answer.correct:
        return False
    length = _write_gradient(answer.label, scratch, answer.propensity)
    if length < 0.0:
        return False
    state.sums[_LONGEST] = max(state.sums[_LONGEST], scratch.square[0])
    longest = settings.longest * settings.longest if settings.longest > 0.0 else state.sums[_LONGEST]
    rate, n_classes = settings.learning_rate, scratch.gains.shape[0]
    if rate == 0.0:
        rate = settings.exploration * _LN2 * _LN2 / (2.0 * n_classes * n_classes * longest)
    return _take_step(state, scratch, rate, length)


@dataclass(eq=False, repr=False)
class Gaptron(GradientLearner):
    """Gradient descent on the logistic loss (in base 2), exploring by the gap between it and a mistake.

    Let p be the largest entry of softmax(Wx). The label with the highest score is guessed, but with probability max(a,
    g) a label is drawn uniformly instead: g is `exploration`, and a, the gap map of the logistic loss, is 1 − p where p
    ≥ ½, else 1. A right guess leads to the step −η(softmax(Wx) − e)xᵀ/(ln 2 · P), where e marks the label and P is its
    propensity; a wrong guess to none.

    Guarantee: With the default learning rate and a true `longest`, for any weights U, E[M] ≤ Σ ℓ(U) + K²R²‖U‖²/(g·(ln
    2)²) + gT in T rounds fixed beforehand, where ℓ is the logistic loss in base 2: O(K√T) above Σ ℓ(U) if g is K/√T.

    Parameters
    ----------
    exploration : float
        The least probability of a uniform draw, g: from 1e-50 to 1.
    learning_rate : float, optional
        η, up to 1e30. By default the theorem's, g·(ln 2)²/(2K²R²).
    longest : float, optional
        R, the length of the longest row, from 1e-50 to 1e50. By default that of the longest one learned from so far.

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

    _mix, _learn = staticmethod(_mix_by_the_gap), staticmethod(_learn_at_a_rate)
    _divides, _longest_square = True, LARGEST_SQUARE

    def _new_state(self) -> GradientState:
        least = check_number("exploration", self.exploration, at_least=1e-50, at_most=1.0)
        rate, longest = self.learning_rate, self.longest
        rate = 0.0 if rate is None else check_number("learning_rate", rate, above=0.0, at_most=1e30)
        longest = 0.0 if longest is None else check_number("longest", longest, at_least=1e-50, at_most=1e50)
        return GradientState(self, _Settings(exploration=least, learning_rate=rate, longest=longest))


@jit_inline
def _mix_two_ways(scratch: Scratch, settings: _Settings) -> tuple[int, float, float]:
    greedy = write_softmax(scratch.scores, 1.0, scratch.soft)
    rounds = settings.horizon if settings.horizon > 0.0 else scratch.answers[0] + 1.0
    uniformly = min(1.0, 2.0 * settings.norm_bound * math.sqrt(scratch.soft.shape[0] / rounds))
    return greedy, uniformly, min(1.0, 2.0 * (1.0 - scratch.soft[greedy]))


@jit_internal
def _learn_adaptively(state: _Weights, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    """Take a step along −G, if the right label is known; its length follows from the sum of all ‖G‖² so far."""
    is_known = answer.truth >= 0
    if not (is_known or answer.correct):
        return False
    propensity = 1.0 if is_known else answer.propensity
    length = _write_gradient(answer.truth if is_known else answer.label, scratch, propensity)
    if length < 0.0:
        return False
    state.sums[_SQUARES] += length * scratch.square[0]
    # Any two weights in the ball are within twice the norm bound of each other.
    rate = 2.0 * settings.norm_bound / math.sqrt(2.0 * state.sums[_SQUARES]) if state.sums[_SQUARES] > 0.0 else 0.0
    return _take_step(state, scratch, rate, length)


@dataclass(eq=False, repr=False)
class AdaptiveSurrogate(GradientLearner):
    """Draws from the softmax where that is unsure, from all labels now and then, and takes steps of its own size.

    Let p be the largest entry of softmax(Wx). With probability q = 2B√(K/T) a label is drawn uniformly. Otherwise the
    label with the highest score is guessed, or with probability min(1, 2(1 − p)) one drawn from the softmax. A right
    guess leads to a step along −G, G = (softmax(Wx) − e)xᵀ/P, where e marks the label and P is its propensity:
    2B/√(2Σ‖G‖²) times G, the sum over all G so far. Weights outside the ball ‖W‖ ≤ B are projected onto it. A wrong
    guess leads to no step.

    Guarantee: For any weights U in the ball and rows no longer than R, E[M] ≤ Σ ℓ(U) + Σ qₜ + 19·B²R²K/q in T rounds
    fixed beforehand, where ℓ is the logistic loss in base 2 and q the last qₜ: with R = 1, at most (2 + 9.5)·B√(KT)
    above Σ ℓ(U) for a known T, and (4 + 9.5)·B√(KT) without.

    Parameters
    ----------
    norm_bound : float
        B: the weights that it is to compete with are no longer (all classes together); from 1e-30 to 1e100. The
        diameter of that ball, 2B, stands for the authors' B.
    horizon : int, optional
        T, the number of rounds. By default it is not known: round t explores with the q of T = t, where t counts the
        answers so far. All in all that is no more than twice what a known T gives.

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

    _mix, _learn = staticmethod(_mix_two_ways), staticmethod(_learn_adaptively)
    _divides, _longest_square, _projects = True, LARGEST_SQUARE, True

    def _new_state(self) -> GradientState:
        bound = check_number("norm_bound", self.norm_bound, at_least=1e-30, at_most=1e100)
        rounds = 0 if self.horizon is None else check_integer("horizon", self.horizon, low=1, high=2**53)
        return GradientState(self, _Settings(horizon=float(rounds), norm_bound=bound))


@jit_inline
def _mix_nothing(scratch: Scratch, _settings: _Settings) -> tuple[int, float, float]:
    return write_softmax(scratch.scores, 1.0, scratch.soft), 0.0, 0.0


@dataclass(eq=False, repr=False)
class FullInformationLogistic(GradientLearner):
    """The floor under `AdaptiveSurrogate` and `Gaptron`: their gradient in every round, and nothing to explore.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. The highest score is guessed. Every answer
    leads to a step as in `AdaptiveSurrogate`, along −G, G = (softmax(Wx) − e)xᵀ/ln 2, where e marks the right label.

    Guarantee: For any weights U in the ball and rows no longer than R, M ≤ S + a√S + a², always, where S = Σ ℓ(U), ℓ is
    the logistic loss in base 2 and a = 4BR/√(ln 2). With late answers it bounds those that find the right label not
    ahead.

    Parameters
    ----------
    norm_bound : float
        B: the weights that it is to compete with are no longer (all classes together); from 1e-30 to 1e100.

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

    _mix, _learn = staticmethod(_mix_nothing), staticmethod(_learn_adaptively)
    _longest_square, _projects = LARGEST_SQUARE, True

    def _new_state(self) -> GradientState:
        bound = check_number("norm_bound", self.norm_bound, at_least=1e-30, at_most=1e100)
        return GradientState(self, _Settings(norm_bound=bound))
