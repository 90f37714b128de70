"""One regression per class, on the rounds whose answers concern it.

Ridge regression of class i keeps Aᵢ = λI + Σxxᵀ and bᵢ = Σ(target)x. A round changes the guessed class alone (every
class, with full information): Aᵢ⁻¹ by Sherman and Morrison's formula, and wᵢ = Aᵢ⁻¹bᵢ with it, in O(d²). Rounding
errors accumulate, so Aᵢ is factorised again by Cholesky after every `2d` steps (64 at least), at an amortised O(d²),
and after a step so steep that half the digits are lost. No pivot of Aᵢ is below λ: where rounding makes one smaller it
is set to λ (or to the size of the rounding, if that is larger), so Aᵢ⁻¹ stays positive definite.

The diagonal form keeps the diagonal of Aᵢ alone and takes the same step with it, in O(d). The logistic form is of first
order: its steps are divided by the root of the summed squares of the gradients (AdaGrad).
"""

import math
from typing import NamedTuple

import numpy as np

from onebit.engine.jit import jit_inline, jit_internal
from onebit.inputs import Floats, Integers

FULL_RIDGE, DIAGONAL_RIDGE, LOGISTIC = range(3)
"""The kinds of regression."""
# A step with xᵀA⁻¹x above this loses half the digits of A⁻¹ along x.
_STEEP = 1e8
_FEWEST_STEPS = 64
SLACK = 1e-6
"""Tolerance for rounding in a bound."""
# A pivot this small beside what it was before the elimination is rounding.
_NOISE = 1e-14


class Regressions(NamedTuple):
    """The state of K regressions on d features; `grams` and `inverses` end in an axis of 1 in all but the full form."""

    weights: Floats
    """wᵢ (K × d)."""
    grams: Floats
    """Aᵢ, or its diagonal, or the summed squares of the gradients (K × d × d, or K × d × 1)."""
    inverses: Floats
    """Aᵢ⁻¹ (as `grams`)."""
    responses: Floats
    """bᵢ (K × d)."""
    steps: Integers
    """Steps of each class since it was factorised."""
    answers: Integers
    """The number of answers so far; one entry."""


class Regression(NamedTuple):
    """The numbers of a regression."""

    kind: int
    regularization: float
    """λ."""
    right: float
    """The target of a right guess."""
    wrong: float
    low: float
    """Predictions are projected to [low, high]; −∞ and ∞ for no projection."""
    high: float
    learning_rate: float
    """Of the logistic form."""
    drops_products: bool
    """Whether the diagonal form drops products of different features altogether, as Confidit's does."""


@jit_inline
def predicted(state: Regressions, label: int, x: Floats) -> float:
    """Return ⟨w, x⟩."""
    total = 0.0
    for j in range(x.shape[0]):
        total += state.weights[label, j] * x[j]
    return total


@jit_inline
def squared_width(
    state: Regressions, label: int, x: Floats, square: float, image: Floats, numbers: Regression
) -> float:
    """Return xᵀA⁻¹x and write A⁻¹x to `image`; `square` is ‖x‖²."""
    inverses = state.inverses
    if numbers.kind == FULL_RIDGE:
        for k in range(image.shape[0]):
            image[k] = 0.0
        for j in range(x.shape[0]):
            if x[j] != 0.0:
                for k in range(image.shape[0]):
                    image[k] += x[j] * inverses[label, j, k]
    else:
        for j in range(x.shape[0]):
            image[j] = x[j] * inverses[label, j, 0]
    total = _product(x, image)
    if total > 0.0 or square == 0.0:
        return min(total, square / numbers.regularization)
    # Against rounding: xᵀA⁻¹x is at least ‖x‖² over the largest eigenvalue of A, which is below the trace.
    trace = 0.0
    for j in range(x.shape[0]):
        trace += state.grams[label, j, j if numbers.kind == FULL_RIDGE else 0]
    return square / trace


@jit_inline
def _product(x: Floats, image: Floats) -> float:
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * image[j]
    return total


@jit_inline
def _is_sound(x: Floats, image: Floats, numbers: Regression) -> bool:
    """Return whether A⁻¹x is plausible: all eigenvalues of A⁻¹ lie between 0 and 1/λ, so ‖A⁻¹x‖² ≤ xᵀA⁻¹x/λ."""
    return _product(image, image) * numbers.regularization <= _product(x, image) * (1.0 + SLACK)


@jit_internal
def absorb(
    state: Regressions, label: int, x: Floats, square: float, correct: bool, image: Floats, numbers: Regression
) -> None:
    """Update a class's regression with one round."""
    if square == 0.0:
        return
    target, score = numbers.right if correct else numbers.wrong, predicted(state, label, x)
    if numbers.kind == LOGISTIC:
        _logistic_step(state, label, x, score, target, numbers)
        return
    width = squared_width(state, label, x, square, image, numbers)
    if width == 0.0:
        return  # the square of the row underflows
    projected = min(max(score, numbers.low), numbers.high)
    back = (projected - score) / width  # w + back·A⁻¹x is the nearest to w, as A measures it, that predicts it
    if numbers.drops_products and numbers.kind == DIAGONAL_RIDGE:
        _separate_step(state, label, x, target, back, image)
        return
    gain = (target - projected) / (1.0 + width) + back
    for j in range(x.shape[0]):
        state.weights[label, j] += gain * image[j]
        state.responses[label, j] += (target + back) * x[j]
    if numbers.kind == DIAGONAL_RIDGE:
        _add_squares(state, label, x)
        return
    is_sound = _is_sound(x, image, numbers)
    _add_products(state, label, x, width, image)
    state.steps[label] += 1
    # An inverse with a negative eigenvalue would diverge: each step along it multiplies the error.
    if not is_sound or width > _STEEP or state.steps[label] >= max(_FEWEST_STEPS, 2 * x.shape[0]):
        _factorise(state, label, image, numbers.regularization)


@jit_inline
def _logistic_step(state: Regressions, label: int, x: Floats, score: float, target: float, numbers: Regression) -> None:
    power = math.exp(-abs(score))  # never overflows
    chance = 1.0 / (1.0 + power) if score >= 0.0 else power / (1.0 + power)
    for j in range(x.shape[0]):
        slope = (chance - target) * x[j]
        state.grams[label, j, 0] += slope * slope
        state.weights[label, j] -= numbers.learning_rate * slope / math.sqrt(state.grams[label, j, 0])


@jit_inline
def _add_squares(state: Regressions, label: int, x: Floats) -> None:
    for j in range(x.shape[0]):
        state.grams[label, j, 0] += x[j] * x[j]
        state.inverses[label, j, 0] = 1.0 / state.grams[label, j, 0]


@jit_inline
def _separate_step(state: Regressions, label: int, x: Floats, target: float, back: float, image: Floats) -> None:
    """Set w to A_new⁻¹(A_old·w′ + target·x) with diagonal matrices; w′ is w projected."""
    for j in range(x.shape[0]):
        response = state.grams[label, j, 0] * (state.weights[label, j] + back * image[j]) + target * x[j]
        state.weights[label, j] = response / (state.grams[label, j, 0] + x[j] * x[j])
    _add_squares(state, label, x)


@jit_inline
def _add_products(state: Regressions, label: int, x: Floats, width: float, image: Floats) -> None:
    """Add xxᵀ to A, and take Sherman and Morrison's step with its inverse."""
    shrinkage = 1.0 / math.sqrt(1.0 + width)
    for j in range(x.shape[0]):
        image[j] *= shrinkage
    for j in range(x.shape[0]):
        for k in range(x.shape[0]):
            state.grams[label, j, k] += x[j] * x[k]
            state.inverses[label, j, k] -= image[j] * image[k]


@jit_internal
def _factorise(state: Regressions, label: int, scratch: Floats, regularization: float) -> None:
    """Recompute a class's A⁻¹ and A⁻¹b."""
    noise = _NOISE
    # No eigenvalue of A⁻¹ is above 1/λ: where one seems to be, it comes from a pivot of mere rounding.
    while not _invert(state, label, scratch, regularization, noise) and noise < 1.0:
        noise *= 100.0
    for i in range(scratch.shape[0]):
        total = 0.0
        for j in range(scratch.shape[0]):
            total += state.inverses[label, i, j] * state.responses[label, j]
        state.weights[label, i] = total
    state.steps[label] = 0


@jit_internal
def _invert(state: Regressions, label: int, scratch: Floats, least_pivot: float, noise: float) -> bool:
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
            if out[label, i, j] ** 2 > (1.0 + SLACK) * most or (is_lost and abs(out[label, i, j]) > 1e-3 * pivot):
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
    return largest * least_pivot <= 1.0 + SLACK


def check_symmetric(matrix: Floats, inverse: Floats) -> None:
    """Raise ValueError unless a matrix from a file and its inverse are symmetric."""
    if not (np.array_equal(matrix, matrix.T) and np.array_equal(inverse, inverse.T)):
        raise ValueError("a matrix that it has learned, or its inverse, is not symmetric")
