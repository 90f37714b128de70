"""The full form: the whole matrix A and its inverse, so that a step takes O((Kd)²).

The inverse follows by the formula of Sherman and Morrison, (A + zzᵀ)⁻¹ = A⁻¹ − hhᵀ/(1 + zᵀh) with h = A⁻¹z; it is kept
exactly symmetric. Where z is nonzero in two of the K classes, h needs only two blocks of A⁻¹, and A changes in four.
Rounding errors accumulate, so A and θ are summed separately, and the inverse is recomputed from A by Cholesky
factorisation every so many steps, or when a step was so steep that digits were lost. Where the factorisation fails, or
succeeds by rounding alone, eigenvalues below the floor, from which A started, are set to the floor.

With a ball, the stored inverse is H = (A + λ₀I)⁻¹ for a λ₀ near the λ of the weights, and c = Hθ. The weights solve (I
+ δH)w = c with δ = λ − λ₀. Each step of the iteration w ← c − δHw, with the δ for which the new w has the ball's
radius, makes the error smaller by about |δ|/(floor + λ₀), of which no more than a tenth is allowed: beyond it, A's
eigenvectors are found, λ with them (see `multiplier`), and λ₀ becomes that λ. That δ is the smaller root of ‖c‖² −
2δ·cᵀHw + δ²‖Hw‖² = D². As λ changes by about its t-th part in round t, this happens ever more seldom.
"""

import math
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh

from onebit.engine.jit import jit_inline, jit_internal
from onebit.inputs import Floats, Integers
from onebit.learners.ridge import check_symmetric
from onebit.learners.second_order import (
    LAMBDA,
    SHIFT,
    TALLIES,
    TOLERANCE,
    Form,
    JointScratch,
    JointSettings,
    JointState,
    multiplier,
    renew_after,
)
from onebit.machine_memory import check_memory

STALE = 1 << 40
"""More steps than any inverse is used for."""
_STEEP = 1e8  # a step with a larger zᵀA⁻¹z costs more than half of the digits
_WINDOW = 0.1
_SLACK = 1e-6
_MOST_STEPS = 30
# Of an inverse. Observed over many streams, with rows of 1e-22 to 1e22 and duplicate columns: below 2e-8 and 6e-9.
_ROUNDING, _BELOW_ZERO = 1e-5, 1e-6
_COPIES = 6  # A and its inverse, both again in a bookmark, and the work space of Cholesky and eigenvectors


class Full(NamedTuple):
    """What is learned; class i's feature j is entry i·d + j."""

    weights: Floats
    target: Floats
    """θ."""
    center: Floats
    """The inverse times θ: the weights, where there is no ball."""
    matrix: Floats
    """A."""
    inverse: Floats
    """(A + λ₀I)⁻¹; λ₀ is 0 where there is no ball."""
    tallies: Floats
    worn: Integers
    """Steps since the inverse was recomputed."""


@jit_inline
def _reach(state: Full, X: Floats, t: int, scratch: JointScratch) -> float:
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
def _absorb(
    state: Full,
    X: Floats,
    t: int,
    scratch: JointScratch,
    reach: float,
    weight: float,
    pull: float,
    settings: JointSettings,
) -> None:
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
        state.worn[0] = STALE


@jit_internal
def _follows(state: Full, solved: Floats, reach: float, weight: float, pull: float, settings: JointSettings) -> bool:
    """Update inverse, center and weights for a step; return whether they are still accurate."""
    grows, square, n = 1.0 + weight * reach, 0.0, solved.shape[0]
    for k in range(n):
        square += solved[k] * solved[k]
    # No eigenvalue of the inverse is above that of the start: ‖Hz‖² ≤ zᵀHz/floor, unless rounding has spoiled it.
    if not square * (settings.floor + state.tallies[SHIFT]) <= reach * (1.0 + _SLACK):
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
def _project(state: Full, seen: Floats, radius: float, floor: float) -> bool:
    """Set the weights; return whether the iteration converged. `seen` is scratch."""
    weights, center, inverse, n = state.weights, state.center, state.inverse, state.weights.shape[0]
    shift, square = state.tallies[SHIFT], 0.0
    for k in range(n):
        square += center[k] * center[k]
    if shift == 0.0 and not square > radius * radius:
        for k in range(n):
            weights[k] = center[k]
        state.tallies[LAMBDA] = 0.0
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
        if change <= (TOLERANCE * radius) * (TOLERANCE * radius):
            state.tallies[LAMBDA] = shift + by
            return True
    return False


_FULL = Form("full", _reach, _absorb)


class FullState(JointState):
    """The full form: 2(Kd)² numbers."""

    arrays: Full
    form = _FULL

    def new_arrays(self, n: int) -> Full:
        """Return initial arrays for n weights; raises ValueError if they do not fit in memory."""
        try:
            check_memory(_COPIES * 8 * n * n)
        except MemoryError as error:
            raise ValueError(
                f"diagonal=False keeps a matrix of {n} × {n} numbers for {self.n_features} features and "
                f"{n // self.n_features} classes: {error}. Use diagonal=True, or fewer features"
            ) from error
        weights, target, center = np.zeros((3, n))
        matrix, inverse = self.settings.floor * np.eye(n), np.eye(n) / self.settings.floor
        return Full(weights, target, center, matrix, inverse, np.zeros(TALLIES), np.zeros(1, dtype=np.int64))

    def check_arrays(self, arrays: Full) -> None:
        """Raise unless the inverse is valid, or marked to be recomputed before it is used."""
        super().check_arrays(arrays)
        if arrays.worn[0] < renew_after(len(arrays.weights)):
            check_inverse(arrays.matrix + arrays.tallies[SHIFT] * np.eye(len(arrays.weights)), arrays.inverse)

    def scratch_size(self) -> int:
        """Return one number for every weight."""
        return len(self.arrays.weights)

    def add_class(self) -> None:
        """Add a block to the matrix; in the inverse its eigenvalues are shifted like the others."""
        n_before = len(self.arrays.weights)
        super().add_class()
        new = np.arange(n_before, len(self.arrays.weights))
        self.arrays.inverse[new, new] = 1.0 / (self.settings.floor + self.arrays.tallies[SHIFT])

    def renew_inverse(self) -> None:
        """Recompute the inverse, λ and the weights from A and θ."""
        now = self.arrays
        inverse, center, shift = _solved(now.matrix, now.target, self.settings, now.tallies[LAMBDA])
        now.inverse[:], now.center[:], now.weights[:] = inverse, center, center
        now.tallies[LAMBDA] = now.tallies[SHIFT] = shift
        now.worn[0] = 0


def _solved(matrix: Floats, target: Floats, settings: JointSettings, start: float) -> tuple[Floats, Floats, float]:
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
    shift = 0.0 if settings.radius == math.inf else multiplier(values, turned, settings.radius, start)
    inverse = (vectors / (values + shift)) @ vectors.T
    return (inverse + inverse.T) / 2.0, vectors @ (turned / (values + shift)), shift


def check_inverse(matrix: Floats, inverse: Floats) -> None:
    """Raise ValueError unless a matrix from a file is symmetric and the other is its positive definite inverse.

    Up to rounding: the product is compared with the identity relative to the product of the norms.
    """
    check_symmetric(matrix, inverse)
    with np.errstate(over="ignore", invalid="ignore"):
        allowed = _ROUNDING * np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1)
        off = np.abs(matrix @ inverse - np.eye(len(matrix))).max()
    if not off <= allowed < np.inf:
        raise ValueError("the inverse of a matrix that it has learned is another matrix's")
    try:
        cholesky(inverse + _BELOW_ZERO * np.abs(inverse).max() * np.eye(len(inverse)), check_finite=False)
    except LinAlgError as error:
        raise ValueError("the inverse of a matrix that it has learned is not positive definite") from error
