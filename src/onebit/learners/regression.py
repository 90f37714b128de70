"""Learners that regress "right" or "wrong" on the features, one regression for every class.

Ridge regression of class i keeps Aᵢ = λI + Σxxᵀ and bᵢ = Σ(target)x. A round changes the guessed class alone (every
class, with full information): Aᵢ⁻¹ by Sherman and Morrison's formula, and wᵢ = Aᵢ⁻¹bᵢ with it, in O(d²). Rounding
errors accumulate, so Aᵢ is factorised again by Cholesky after every `2d` steps (64 at least), and after a step so steep
that half the digits are lost. A pivot that rounding makes smaller than λ is set to λ: Aᵢ⁻¹ stays positive definite.

The diagonal form keeps the diagonal of Aᵢ alone and takes the same step with it, in O(d). The logistic form is of first
order: its steps are divided by the root of the summed squares of the gradients (AdaGrad).
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.engine.algorithm import UNSCORED, Algorithm, clear, highest, ready_if_finite
from onebit.engine.jit import jit_inline, jit_internal, jit_no_refcount
from onebit.engine.randomness import Draw, uniform
from onebit.engine.scaling import LEAST, MOST
from onebit.engine.state import State, check_finite
from onebit.game import Answer
from onebit.inputs import Floats, Integers, Rows, check_choice, check_number, check_switch, dense
from onebit.learners.base import Learner
from onebit.learners.exploring import fill_propensities
from onebit.machine_memory import check_memory

_FULL, _DIAGONAL, _LOGISTIC = range(3)
_STEEP = 1e8  # a step with xᵀA⁻¹x above this loses half the digits of A⁻¹ along x
_FEWEST_STEPS = 64
_SLACK = 1e-6  # tolerance for rounding in a bound
_NOISE = 1e-14  # a pivot this small beside what it was before the elimination is rounding


class _Regressions(NamedTuple):
    """The state of K regressions on d features; `grams` and `inverses` end in an axis of 1 in all but the full form."""

    weights: Floats  # wᵢ (K × d)
    grams: Floats  # Aᵢ, or its diagonal, or the summed squares of the gradients (K × d × d, or K × d × 1)
    inverses: Floats  # Aᵢ⁻¹ (as `grams`)
    responses: Floats  # bᵢ (K × d)
    steps: Integers  # steps of each class since it was factorised
    answers: Integers  # the number of answers so far; one entry


class Scratch(NamedTuple):
    """What is known about one round."""

    scores: Floats  # the prediction of each class's regression; higher is better
    projected: Floats  # the same, projected to [low, high]
    widths: Floats  # √(xᵀAᵢ⁻¹x); 0 where it is not needed
    square: Floats  # ‖x‖², the only entry
    answers: Integers  # the number of answers so far; one entry
    image: Floats  # work space: one number per feature
    below: Floats  # work space: one number per class
    propensities: Floats


class Settings(NamedTuple):
    """The numbers that the compiled functions need."""

    own: Any  # A tuple: what the learner's way to explore needs
    right: float = 1.0  # the target of a right guess
    wrong: float = 0.0
    low: float = -math.inf  # predictions are projected to [low, high]
    high: float = math.inf
    regularization: float = 0.0  # λ
    drops_products: bool = False  # whether the diagonal form drops products of different features, as Confidit's does
    has_widths: bool = False  # whether `score` computes widths, its most expensive part in the full form
    kind: int = _FULL
    learning_rate: float = 1.0  # of the logistic form
    most_square: float = 0.0  # the largest ‖x‖² that is accepted
    full_information: bool = False  # whether the feedback is the label: then every class learns from every round


@jit_inline
def _mostly_highest(scratch: Scratch, settings: Settings) -> None:
    fill_propensities(scratch.scores, settings.own, scratch.propensities)


class RegressionLearner(Learner):
    """Guesses the highest prediction, or any label with probability ``own[0]``, if a subclass does not otherwise."""

    diagonal: bool
    _write_propensities: ClassVar[Callable[..., None]] = staticmethod(_mostly_highest)
    """``(scratch, settings)``: writes the propensity of each label, all 0 before."""
    _draw_label: ClassVar[Callable[..., int] | None] = None
    """``(scratch, draw, settings)`` → label, for a learner that draws otherwise than from the propensities."""

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        is_full = not self.diagonal and getattr(self, "scores", "ridge") == "ridge"
        return float(rounds) * n_classes * n_features**2 if is_full else 0.0


class RegressionState(State):
    """One regression per class; it checks the settings that several learners have."""

    arrays: _Regressions
    settings: Settings
    learn_from_log = State.learn_as_played  # the choice of rows does not bias a regression
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys(("weights", "responses"), ("class", "")),
        **dict.fromkeys(("grams", "inverses"), ("class", "", "")),
        "steps": ("class",),
    }
    per_class: ClassVar[tuple[str, ...]] = "scores", "projected", "widths", "propensities"

    def __init__(self, learner: RegressionLearner, settings: Settings) -> None:
        given, n_features, n_classes = learner.get_params(deep=False), learner.n_features_in_, len(learner.classes_)
        rate = check_number("learning_rate", given.get("learning_rate", 1.0), above=0.0, at_most=MOST)
        is_logistic = check_choice("scores", given.get("scores", "ridge"), ("ridge", "logistic")) == "logistic"
        is_diagonal = check_switch("diagonal", learner.diagonal)
        kind = _LOGISTIC if is_logistic else _DIAGONAL if is_diagonal else _FULL
        start = given.get("regularization", settings.regularization)
        start = check_number("regularization", start, above=LEAST, at_most=MOST)
        self._kind = type(learner)
        settings = settings._replace(
            kind=kind,
            regularization=start,
            learning_rate=rate,
            drops_products=settings.drops_products and kind == _DIAGONAL,
            most_square=MOST * min(1.0, start),  # then A⁻¹b and xᵀA⁻¹x do not overflow
            full_information=learner.full_information,
        )
        squares, rows = (n_classes, n_features, n_features if kind == _FULL else 1), (n_classes, n_features)
        check_memory(16 * math.prod(squares), f"diagonal must be True for {n_features} features")
        steps, answers = np.zeros(n_classes, dtype=np.int64), np.zeros(1, dtype=np.int64)
        arrays = _Regressions(np.zeros(rows), np.zeros(squares), np.zeros(squares), np.zeros(rows), steps, answers)
        super().__init__(arrays, settings, n_classes)
        for label in range(n_classes):
            self._start(label)

    def _start(self, label: int) -> None:
        """Set a class's A to λI."""
        start = self.settings.regularization
        for squares, value in ((self.arrays.grams, start), (self.arrays.inverses, 1.0 / start)):
            if self.settings.kind == _FULL:
                np.fill_diagonal(squares[label], value)
            else:
                squares[label] = value

    def add_class(self) -> None:
        super().add_class()
        self._start(self.n_classes - 1)

    def new_scratch(self) -> Scratch:
        n, n_features = self.arrays.weights.shape
        scores, projected, widths, below, propensities = np.empty((5, n))
        square, answers, image = np.empty(1), np.empty(1, np.int64), np.empty(n_features)
        return Scratch(scores, projected, widths, square, answers, image, below, propensities)

    def algorithm(self, is_sparse: bool) -> Algorithm:
        return _algorithm(self._kind._write_propensities, self._kind._draw_label, self.settings.full_information)

    def check_arrays(self, arrays: _Regressions) -> None:
        check_finite(arrays.weights, arrays.grams, arrays.inverses, arrays.responses)
        is_full = self.settings.kind == _FULL
        diagonals = np.diagonal(arrays.grams, axis1=1, axis2=2) if is_full else arrays.grams
        if not (diagonals >= self.settings.regularization).all():
            raise ValueError("a regression's matrix is less than at the start")

    def score_rows(self, rows: Rows) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(dense(rows) @ self.arrays.weights.T)

    def learned(self) -> dict[str, Floats]:
        now, is_logistic = self.arrays, self.settings.kind == _LOGISTIC
        name, squares = ("squares", now.grams) if is_logistic else ("inverses", now.inverses)
        shown = squares if self.settings.kind == _FULL else squares[:, :, 0]
        return {"weights": now.weights.copy(), name: shown.copy(), "heard": now.answers.astype(float)}


# A round.


@jit_inline
def _product(x: Floats, other: Floats) -> float:
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * other[j]
    return total


@jit_internal
def _score(state: _Regressions, X: Floats, t: int, scratch: Scratch, settings: Settings) -> int:
    x, square = X[t], _product(X[t], X[t])
    if not square < settings.most_square:  # nor NaN
        return UNSCORED
    scratch.square[0], scratch.answers[0] = square, state.answers[0]
    for i in range(scratch.scores.shape[0]):
        score, width = _product(x, state.weights[i]), 0.0
        if settings.has_widths:
            width = _squared_width(state, i, x, square, scratch.image, settings) ** 0.5
        scratch.scores[i], scratch.widths[i] = score, width
        scratch.projected[i] = min(max(score, settings.low), settings.high)
    return ready_if_finite(scratch.scores)


@jit_inline
def _update(state: _Regressions, X: Floats, t: int, scratch: Scratch, answer: Answer, settings: Settings) -> bool:
    state.answers[0] += 1
    if settings.full_information:
        for i in range(scratch.scores.shape[0]):
            _absorb(state, i, X[t], scratch.square[0], i == answer.truth, scratch.image, settings)
    else:
        _absorb(state, answer.label, X[t], scratch.square[0], answer.correct, scratch.image, settings)
    return True


@cache
def _algorithm(write_own: Any, draw_label: Any, full_information: bool) -> Algorithm:
    def write(scratch: Scratch, settings: Settings) -> None:
        clear(scratch.propensities)
        write_own(scratch, settings)

    write = jit_no_refcount(write)

    def draw_by_propensity(scratch: Scratch, draw: Draw, settings: Settings) -> int:
        write(scratch, settings)
        number, total, last = uniform(draw), 0.0, 0
        for i in range(scratch.propensities.shape[0]):
            if scratch.propensities[i] > 0.0:
                total, last = total + scratch.propensities[i], i
                if number < total:
                    return i
        return last  # rounding: the propensities add up to a little less than 1

    chosen = jit_inline(draw_by_propensity) if draw_label is None else draw_label

    def choose(scratch: Scratch, draw: Draw, settings: Settings) -> tuple[int, bool]:
        label = chosen(scratch, draw, settings)
        return label, label != highest(scratch.scores)

    return Algorithm(_score, jit_no_refcount(choose), write, _update, full_information=full_information)


# The regression of one class.


@jit_inline
def _squared_width(
    state: _Regressions, label: int, x: Floats, square: float, image: Floats, settings: Settings
) -> float:
    """Return xᵀA⁻¹x and write A⁻¹x to `image`; `square` is ‖x‖²."""
    inverses = state.inverses
    if settings.kind == _FULL:
        clear(image)
        for j in range(x.shape[0]):
            if x[j] != 0.0:
                for k in range(image.shape[0]):
                    image[k] += x[j] * inverses[label, j, k]
    else:
        for j in range(x.shape[0]):
            image[j] = x[j] * inverses[label, j, 0]
    total = _product(x, image)
    if total > 0.0 or square == 0.0:
        return min(total, square / settings.regularization)
    # Against rounding: xᵀA⁻¹x is at least ‖x‖² over the largest eigenvalue of A, which is below the trace.
    trace = 0.0
    for j in range(x.shape[0]):
        trace += state.grams[label, j, j if settings.kind == _FULL else 0]
    return square / trace


@jit_internal
def _absorb(
    state: _Regressions, label: int, x: Floats, square: float, correct: bool, image: Floats, settings: Settings
) -> None:
    """Update a class's regression with one round."""
    if square == 0.0:
        return
    target, score = settings.right if correct else settings.wrong, _product(x, state.weights[label])
    if settings.kind == _LOGISTIC:
        _logistic_step(state, label, x, score, target, settings)
        return
    width = _squared_width(state, label, x, square, image, settings)
    if width == 0.0:
        return  # the square of the row underflows
    projected = min(max(score, settings.low), settings.high)
    back = (projected - score) / width  # w + back·A⁻¹x is the nearest to w, as A measures it, that predicts it
    gain = (target - projected) / (1.0 + width) + back
    for j in range(x.shape[0]):
        if settings.drops_products:  # w ← A_new⁻¹(A_old·w′ + target·x), where w′ is w projected
            gram = state.grams[label, j, 0]
            response = gram * (state.weights[label, j] + back * image[j]) + target * x[j]
            state.weights[label, j] = response / (gram + x[j] * x[j])
        else:
            state.weights[label, j] += gain * image[j]
            state.responses[label, j] += (target + back) * x[j]
    if settings.kind == _DIAGONAL:
        for j in range(x.shape[0]):
            state.grams[label, j, 0] += x[j] * x[j]
            state.inverses[label, j, 0] = 1.0 / state.grams[label, j, 0]
        return
    # All eigenvalues of A⁻¹ lie between 0 and 1/λ, so ‖A⁻¹x‖² ≤ xᵀA⁻¹x/λ, unless rounding has spoiled it.
    is_sound = _product(image, image) * settings.regularization <= _product(x, image) * (1.0 + _SLACK)
    shrinkage = 1.0 / math.sqrt(1.0 + width)
    for j in range(x.shape[0]):
        image[j] *= shrinkage
    for j in range(x.shape[0]):
        for k in range(x.shape[0]):
            state.grams[label, j, k] += x[j] * x[k]
            state.inverses[label, j, k] -= image[j] * image[k]
    state.steps[label] += 1
    # An inverse with a negative eigenvalue would diverge: each step along it multiplies the error.
    if not is_sound or width > _STEEP or state.steps[label] >= max(_FEWEST_STEPS, 2 * x.shape[0]):
        _factorise(state, label, image, settings.regularization)


@jit_inline
def _logistic_step(state: _Regressions, label: int, x: Floats, score: float, target: float, settings: Settings) -> None:
    power = math.exp(-abs(score))  # never overflows
    chance = 1.0 / (1.0 + power) if score >= 0.0 else power / (1.0 + power)
    for j in range(x.shape[0]):
        slope = (chance - target) * x[j]
        state.grams[label, j, 0] += slope * slope
        state.weights[label, j] -= settings.learning_rate * slope / math.sqrt(state.grams[label, j, 0])


@jit_internal
def _factorise(state: _Regressions, label: int, scratch: Floats, regularization: float) -> None:
    """Recompute a class's A⁻¹ and A⁻¹b."""
    noise = _NOISE
    # No eigenvalue of A⁻¹ is above 1/λ: where one seems to be, it comes from a pivot of mere rounding.
    while not _invert(state, label, scratch, regularization, noise) and noise < 1.0:
        noise *= 100.0
    for i in range(scratch.shape[0]):
        state.weights[label, i] = _product(state.inverses[label, i], state.responses[label])
    state.steps[label] = 0


@jit_internal
def _invert(state: _Regressions, label: int, scratch: Floats, least_pivot: float, noise: float) -> bool:
    """Compute A = UᵀU, V = U⁻¹ and A⁻¹ = VVᵀ in place; return whether the result is plausible."""
    d, gram, out = scratch.shape[0], state.grams, state.inverses
    for i in range(d):
        for j in range(i, d):
            out[label, i, j] = gram[label, i, j]
    for i in range(d):
        pivot = max(out[label, i, i], least_pivot, noise * gram[label, i, i])
        is_lost, root = out[label, i, i] < pivot, math.sqrt(pivot)
        out[label, i, i] = root
        for j in range(i + 1, d):
            # No entry is larger than the pivots of its row and column allow; beside a lost pivot all are rounding.
            # Kept, they would grow with every row that follows.
            most = pivot * max(out[label, j, j], least_pivot, noise * gram[label, j, j])
            if out[label, i, j] ** 2 > (1.0 + _SLACK) * most or (is_lost and abs(out[label, i, j]) > 1e-3 * pivot):
                out[label, i, j] = 0.0
            out[label, i, j] /= root
        for k in range(i + 1, d):
            for j in range(k, d):
                out[label, k, j] -= out[label, i, k] * out[label, i, j]
    for i in range(d - 1, -1, -1):
        for j in range(i, d):
            scratch[j] = 0.0
        for k in range(i + 1, d):
            for j in range(k, d):
                scratch[j] += out[label, i, k] * out[label, k, j]
        out[label, i, i] = 1.0 / out[label, i, i]
        for j in range(i + 1, d):
            out[label, i, j] = -scratch[j] * out[label, i, i]
    largest = 0.0
    for i in range(d):
        for j in range(i, d):
            total = 0.0
            for k in range(j, d):
                total += out[label, i, k] * out[label, j, k]
            out[label, i, j] = total
        for j in range(i):
            out[label, i, j] = out[label, j, i]
        largest = max(largest, out[label, i, i])
    return largest * least_pivot <= 1.0 + _SLACK
