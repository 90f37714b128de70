"""Second-order learners: weights w over all classes and features, and a matrix A over the same.

Every step has a direction z = v ⊗ x, an outer product of a vector v over the classes with the features x. A gains
weight·zzᵀ, the target θ loses pull·z, and the weights become the point of the ball ‖w‖ ≤ D (the whole space, if D is
infinite) where ½wᵀAw − θᵀw is smallest. A starts as a multiple of the identity, the *floor*, and only grows.

The diagonal form keeps only the diagonal of A: a step takes O(Kd). The full form keeps A and its inverse, in O((Kd)²) a
step (Sherman and Morrison). The inverse is computed anew from A every so many steps, or when a step was so steep that
digits were lost.

With a ball, the full form stores H = (A + λ₀I)⁻¹ for a λ₀ near the λ of the weights, and c = Hθ. The weights solve
(I + δH)w = c with δ = λ − λ₀, by the iteration w ← c − δHw, with the δ for which the new w has the ball's radius: the
smaller root of ‖c‖² − 2δ·cᵀHw + δ²‖Hw‖² = D². It makes the error smaller by about |δ|/(floor + λ₀). Beyond a tenth, A's
eigenvectors are found, λ with them (see `_multiplier`), and λ₀ becomes that λ.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from onebit.engine.algorithm import FULL, UNSCORED, Algorithm, Record, ready_if_finite
from onebit.engine.jit import jit_inline, jit_internal, jit_no_refcount
from onebit.engine.state import State, check_finite
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Integers, Rows, check_switch, dense
from onebit.learners.base import Learner
from onebit.learners.exploring import LARGEST_SQUARE, divisible_propensity
from onebit.machine_memory import check_memory

_LAMBDA, _SHIFT, MARGINS = range(3)
"""In `tallies`: the λ of the weights, the λ₀ of the stored inverse, and a sum for the learner's own use."""
_RENEW_EVERY = 1000  # steps after which the inverse is computed anew; or the number of weights, if larger
_STALE = 1 << 40  # more steps than any inverse is used for
_TOLERANCE = 1e-12  # how far, relatively, the length of the weights may be from the radius
_MOST_NEWTON_STEPS = 100
_STEEP = 1e8  # a step with a larger zᵀA⁻¹z costs more than half of the digits
_WINDOW = 0.1
_SLACK = 1e-6
_MOST_STEPS = 30
_Step = tuple[float, float, float]  # weight, pull, zᵀA⁻¹z
_COPIES = 6  # A and its inverse, both again in a bookmark, and the work space of Cholesky and eigenvectors


class Settings(NamedTuple):
    """The numbers that the compiled functions need."""

    exploration: float  # how often a label is drawn uniformly
    floor: float
    radius: float = math.inf
    sharpness: float = 1.0  # this and the next: PNewtron's
    curvature: float = 1.0


class Scratch(NamedTuple):
    """Scratch arrays of one round."""

    scores: Floats
    current: Floats
    propensities: Floats
    shares: Floats  # v: each class's share in the step's direction
    solved: Floats  # A⁻¹z; empty in the diagonal form


class _Diagonal(NamedTuple):
    """What the diagonal form learns; class i's feature j is entry i·d + j."""

    weights: Floats
    target: Floats  # θ: without a ball the weights are A⁻¹θ
    matrix: Floats  # the diagonal of A
    tallies: Floats
    worn: Integers  # always 0: a diagonal needs no inverse


class _Full(NamedTuple):
    """What the full form learns; class i's feature j is entry i·d + j."""

    weights: Floats
    target: Floats  # θ
    center: Floats  # the inverse times θ: the weights, where there is no ball
    matrix: Floats  # A
    inverse: Floats  # (A + λ₀I)⁻¹; λ₀ is 0 where there is no ball
    tallies: Floats
    worn: Integers  # steps since the inverse was computed


@jit_inline
def _always(_state: Any, _scratch: Scratch, _weight: float, _reach: float) -> bool:
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class SecondOrderLearner(Learner):
    """A learner with one matrix over all classes, or its diagonal; `_new_state` returns a `SecondOrderState`."""

    diagonal: bool = False
    _choose: ClassVar[Callable[..., tuple[int, bool]]]
    """This and the next: the `choose` and `probabilities` of an `Algorithm`; `choose` writes the label's propensity."""
    _write_propensities: ClassVar[Callable[..., None]]
    _plan: ClassVar[Callable[..., tuple[float, float]]]
    """``(scratch, answer, settings)``: writes ``scratch.shares`` and returns the step's weight and pull; a weight of 0
    means that there is nothing to learn."""
    _accept: ClassVar[Callable[..., bool]] = staticmethod(_always)
    """``(state, scratch, weight, reach)``: whether the step is taken, given zᵀA⁻¹z."""

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        return 0.0 if self.diagonal else float(rounds) * (n_classes * n_features) ** 2


class SecondOrderState(State):
    """Both forms."""

    arrays: Any
    per_class: ClassVar[tuple[str, ...]] = "scores", "current", "propensities", "shares"

    def __init__(self, learner: SecondOrderLearner, settings: Settings) -> None:
        self.is_diagonal = check_switch("diagonal", learner.diagonal)
        self._kind: Any = type(learner)
        self.settings, self.n_features, n_classes = settings, learner.n_features_in_, len(learner.classes_)
        super().__init__(self._blank(n_classes), settings, n_classes)

    def _blank(self, n_classes: int) -> _Diagonal | _Full:
        n, floor = self.n_features * n_classes, self.settings.floor
        tallies, worn = np.zeros(3), np.zeros(1, dtype=np.int64)
        if self.is_diagonal:
            return _Diagonal(np.zeros(n), np.zeros(n), np.full(n, floor), tallies, worn)
        what = f"{n} × {n} numbers for {self.n_features} features and {n_classes} classes"
        check_memory(_COPIES * 8 * n * n, f"diagonal=False keeps a matrix of {what}. Use diagonal=True")
        weights, target, center = np.zeros((3, n))
        return _Full(weights, target, center, floor * np.eye(n), np.eye(n) / floor, tallies, worn)

    def new_scratch(self) -> Scratch:
        scores, propensities, shares = np.empty((3, self.n_classes))
        solved = np.empty(0 if self.is_diagonal else len(self.arrays.weights))
        return Scratch(scores, scores, propensities, shares, solved)

    def algorithm(self, is_sparse: bool) -> Algorithm:
        return _algorithm(self._kind, self.is_diagonal)

    def add_class(self) -> None:
        # The matrix gains a multiple of the identity; in the inverse it is shifted like the other eigenvalues.
        blank, n = self._blank(self.n_classes + 1), len(self.arrays.weights)
        for name, array in self.arrays._asdict().items():
            getattr(blank, name)[tuple(slice(size) for size in array.shape)] = array
        if isinstance(blank, _Full):
            new = np.arange(n, len(blank.weights))
            blank.inverse[new, new] = 1.0 / (self.settings.floor + blank.tallies[_SHIFT])
        self.n_classes += 1
        self.arrays = blank
        self.renew()

    def update(self, guess: Guess, correct: bool, truth: int) -> bool:
        changed = super().update(guess, correct, truth)
        self._tidy()
        return changed

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, record: Record, first: int = 0) -> None:
        super().play(X, y, seed, first_round, record, first)
        self._tidy()

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        propensity = divisible_propensity(propensity, row)
        try:
            return self.learn_as_played(row, label, correct, truth, propensity)
        finally:
            self._tidy()

    def _tidy(self) -> None:
        if self.arrays.worn[0] >= _renew_after(len(self.arrays.weights)):
            self.renew_inverse()
            self.renew()

    def make_room(self, rows: Rows, t: int) -> None:
        self.renew_inverse()

    def renew_inverse(self) -> None:
        """Compute the inverse, λ and the weights of the full form from A and θ."""
        now = self.arrays
        inverse, center, shift = _solved(now.matrix, now.target, self.settings, now.tallies[_LAMBDA])
        now.inverse[:], now.center[:], now.weights[:] = inverse, center, center
        now.tallies[_LAMBDA] = now.tallies[_SHIFT] = shift
        now.worn[0] = 0

    def score_rows(self, rows: Rows) -> Floats:
        return np.asarray(dense(rows) @ self.learned()["weights"].T)

    def learned(self) -> dict[str, Floats]:
        return {"weights": self.arrays.weights.reshape(self.n_classes, self.n_features).copy()}

    def check_arrays(self, arrays: Any) -> None:
        check_finite(*(array for array in arrays if array.dtype.kind == "f"))
        # A worn diagonal would stop the loop for ever.
        diagonal = arrays.matrix if self.is_diagonal else arrays.matrix.diagonal()
        is_worn = self.is_diagonal and arrays.worn[0] != 0
        if is_worn or not (diagonal >= self.settings.floor).all() or not (arrays.tallies >= 0.0).all():
            raise ValueError("its matrix is less than at the start, or a sum is below 0, or a diagonal is worn")


# Compiled.


@jit_inline
def _renew_after(n_weights: int) -> int:
    return max(_RENEW_EVERY, n_weights)


@cache
def _algorithm(kind: Any, is_diagonal: bool) -> Algorithm:
    plan, accept, is_choosy = kind._plan, kind._accept, kind._accept is not _always or not is_diagonal
    reach_of, absorb = (_reach_of_diagonal, _absorb_diagonal) if is_diagonal else (_reach_of_full, _absorb_full)

    def update(state: Any, X: Floats, t: int, scratch: Scratch, answer: Answer, settings: Any) -> bool:
        if not answer.propensity * LARGEST_SQUARE >= 1.0:
            return False  # a forged ticket may have any propensity
        weight, pull = plan(scratch, answer, settings)
        if weight == 0.0:
            return False
        reach = reach_of(state, X, t, scratch) if is_choosy else 0.0
        if not accept(state, scratch, weight, reach):
            return False
        absorb(state, X, t, scratch, (weight, pull, reach), settings)
        return True

    return Algorithm(_score, kind._choose, kind._write_propensities, jit_internal(update))


@jit_inline
def _score(state: Any, X: Floats, t: int, scratch: Scratch, settings: Settings) -> int:
    n, n_classes, square = X.shape[1], scratch.current.shape[0], 0.0
    if state.worn[0] >= _renew_after(state.weights.shape[0]):
        return FULL
    for j in range(n):
        square += X[t, j] * X[t, j]
    if not square * n_classes <= LARGEST_SQUARE * settings.exploration:  # nor is NaN
        return UNSCORED
    for i in range(n_classes):
        total = 0.0
        for j in range(n):
            total += X[t, j] * state.weights[i * n + j]
        scratch.current[i] = total
    return ready_if_finite(scratch.current)


@jit_no_refcount
def _multiplier(values: Floats, target: Floats, radius: float, start: float) -> float:
    """Return the λ ≥ 0 with which w = (A + λI)⁻¹θ has the smallest ½wᵀAw − θᵀw in the ball ‖w‖ ≤ D.

    `values` are the eigenvalues of A, all above 0, `target` is θ in its eigenvectors, `start` the last λ, or 0. Where
    A⁻¹θ is longer than D it solves ‖w(λ)‖ = D, by Newton's method for 1/‖w(λ)‖ = 1/D, whose left side is nearly a line
    (Moré and Sorensen, 1983). With v = w(λ) the step is ‖v‖²/(vᵀ(A + λI)⁻¹v)·(‖v‖/D − 1).
    """
    shift = start
    for _ in range(_MOST_NEWTON_STEPS):
        square, slope = 0.0, 0.0
        for i in range(values.shape[0]):
            part = target[i] / (values[i] + shift)
            square += part * part
            slope += part * part / (values[i] + shift)
        length = math.sqrt(square)
        is_within = length <= radius * (1.0 + _TOLERANCE)
        if is_within and (shift == 0.0 or length >= radius * (1.0 - _TOLERANCE)):
            return shift
        following = max(0.0, shift + square / slope * (length / radius - 1.0)) if slope > 0.0 else 0.0
        if following == shift:
            return shift
        shift = following
    return shift


# The diagonal form.


@jit_inline
def _reach_of_diagonal(state: _Diagonal, X: Floats, t: int, scratch: Scratch) -> float:
    n, total = X.shape[1], 0.0
    for i in range(scratch.shares.shape[0]):
        if scratch.shares[i] != 0.0:
            for j in range(n):
                z = scratch.shares[i] * X[t, j]
                total += z * z / state.matrix[i * n + j]
    return total


@jit_inline
def _absorb_diagonal(state: _Diagonal, X: Floats, t: int, scratch: Scratch, step: _Step, settings: Settings) -> None:
    weight, pull, _ = step
    n, weights, target, matrix = X.shape[1], state.weights, state.target, state.matrix
    for i in range(scratch.shares.shape[0]):
        if scratch.shares[i] != 0.0:
            for j in range(n):
                z, at = scratch.shares[i] * X[t, j], i * n + j
                matrix[at] += weight * z * z
                target[at] -= pull * z
                weights[at] = target[at] / matrix[at]
    if settings.radius < math.inf:
        shift = _multiplier(matrix, target, settings.radius, state.tallies[_LAMBDA])
        state.tallies[_LAMBDA] = shift
        for at in range(weights.shape[0]):
            weights[at] = target[at] / (matrix[at] + shift)


# The full form.


@jit_inline
def _reach_of_full(state: _Full, X: Floats, t: int, scratch: Scratch) -> float:
    n, inverse, solved, total = X.shape[1], state.inverse, scratch.solved, 0.0
    for k in range(solved.shape[0]):
        solved[k] = 0.0
    for i in range(scratch.shares.shape[0]):
        if scratch.shares[i] != 0.0:
            for j in range(n):
                z = scratch.shares[i] * X[t, j]
                if z != 0.0:
                    # Rows, not columns: the inverse is symmetric, and sums along a row cannot be vectorised.
                    for k in range(solved.shape[0]):
                        solved[k] += z * inverse[i * n + j, k]
    for i in range(scratch.shares.shape[0]):
        for j in range(n):
            total += scratch.shares[i] * X[t, j] * solved[i * n + j]
    return max(total, 0.0)


@jit_inline
def _absorb_full(state: _Full, X: Floats, t: int, scratch: Scratch, step: _Step, settings: Settings) -> None:
    weight, pull, reach = step
    n, shares, solved, along = X.shape[1], scratch.shares, scratch.solved, 0.0
    for i in range(shares.shape[0]):
        for j in range(n):
            along += shares[i] * X[t, j] * state.center[i * n + j]
            state.target[i * n + j] -= pull * (shares[i] * X[t, j])
    for i in range(shares.shape[0]):
        for k in range(shares.shape[0]):
            both = shares[i] * shares[k] * weight
            if both != 0.0:
                for j in range(n):
                    for m in range(n):
                        state.matrix[i * n + j, k * n + m] += both * (X[t, j] * X[t, m])
    state.worn[0] += 1
    if not _follows(state, solved, reach, weight, pull + weight * along, settings):
        state.worn[0] = _STALE


@jit_internal
def _follows(state: _Full, solved: Floats, reach: float, weight: float, pull: float, settings: Settings) -> bool:
    """Update inverse, center and weights for a step; return whether they are still accurate."""
    grows, square, n = 1.0 + weight * reach, 0.0, solved.shape[0]
    for k in range(n):
        square += solved[k] * solved[k]
    # No eigenvalue of the inverse is above that of the start: ‖Hz‖² ≤ zᵀHz/floor, unless rounding has spoiled it.
    if not square * (settings.floor + state.tallies[_SHIFT]) <= reach * (1.0 + _SLACK):
        return False
    move, root = pull / grows, math.sqrt(weight / grows)
    for k in range(n):
        state.center[k] -= move * solved[k]
        solved[k] *= root
    for i in range(n):
        if solved[i] != 0.0:
            for k in range(n):
                state.inverse[i, k] -= solved[i] * solved[k]
    return grows < _STEEP and _project(state, solved, settings.radius, settings.floor)


@jit_internal
def _project(state: _Full, seen: Floats, radius: float, floor: float) -> bool:
    """Set the weights; return whether the iteration converged. `seen` is scratch."""
    weights, center, inverse, n = state.weights, state.center, state.inverse, state.weights.shape[0]
    shift, square = state.tallies[_SHIFT], 0.0
    for k in range(n):
        square += center[k] * center[k]
    if shift == 0.0 and not square > radius * radius:
        for k in range(n):
            weights[k] = center[k]
        state.tallies[_LAMBDA] = 0.0
        return True
    for _ in range(_MOST_STEPS):
        for k in range(n):
            seen[k] = 0.0
        for i in range(n):
            if weights[i] != 0.0:
                for k in range(n):
                    seen[k] += weights[i] * inverse[i, k]
        both, seen_square = 0.0, 0.0
        for k in range(n):
            both += center[k] * seen[k]
            seen_square += seen[k] * seen[k]
        under = both * both - seen_square * (square - radius * radius)
        if not (under >= 0.0 and both > 0.0):
            return False
        by = max(-shift, (square - radius * radius) / (both + math.sqrt(under)))
        if not abs(by) <= _WINDOW * (floor + shift):
            return False
        change = 0.0
        for k in range(n):
            new = center[k] - by * seen[k]
            change += (new - weights[k]) * (new - weights[k])
            weights[k] = new
        if change <= (_TOLERANCE * radius) * (_TOLERANCE * radius):
            state.tallies[_LAMBDA] = shift + by
            return True
    return False


def _solved(matrix: Floats, target: Floats, settings: Settings, start: float) -> tuple[Floats, Floats, float]:
    """Return (A + λI)⁻¹, that times θ, and λ."""
    if settings.radius == math.inf:
        with suppress(LinAlgError):
            factors = cho_factor(matrix, lower=True)
            inverse = cho_solve(factors, np.eye(len(target)))
            # No eigenvalue of A is below the floor; where one seems to be, it is a pivot of mere rounding.
            if inverse.diagonal().max() <= (1.0 + _SLACK) / settings.floor:
                return (inverse + inverse.T) / 2.0, cho_solve(factors, target), 0.0
    values, vectors = eigh(matrix)
    values = np.maximum(values, settings.floor)
    turned = vectors.T @ target
    shift = 0.0 if settings.radius == math.inf else _multiplier(values, turned, settings.radius, start)
    inverse = (vectors / (values + shift)) @ vectors.T
    return (inverse + inverse.T) / 2.0, vectors @ (turned / (values + shift)), shift
