"""The diagonal form: only the diagonal of the matrix is kept, so that a step takes O(Kd)."""

import math
from typing import NamedTuple

import numpy as np

from onebit.engine.jit import jit_inline
from onebit.inputs import Floats, Integers
from onebit.learners.second_order.joint import LAMBDA, TALLIES, Form, JointScratch, JointSettings, JointState
from onebit.learners.second_order.secular import multiplier


class Diagonal(NamedTuple):
    """What is learned; class i's feature j is entry i·d + j."""

    weights: Floats
    target: Floats
    """θ: without a ball the weights are A⁻¹θ."""
    matrix: Floats
    """The diagonal of A."""
    tallies: Floats
    worn: Integers
    """Always 0: a diagonal needs no inverse."""


@jit_inline
def _reach(state: Diagonal, X: Floats, t: int, scratch: JointScratch) -> float:
    n, total = X.shape[1], 0.0
    for i in range(scratch.shares.shape[0]):
        if scratch.shares[i] != 0.0:
            for j in range(n):
                z = scratch.shares[i] * X[t, j]
                total += z * z / state.matrix[i * n + j]
    return total


@jit_inline
def _absorb(
    state: Diagonal,
    X: Floats,
    t: int,
    scratch: JointScratch,
    _reach: float,
    weight: float,
    pull: float,
    settings: JointSettings,
) -> None:
    n, weights, target, matrix = X.shape[1], state.weights, state.target, state.matrix
    for i in range(scratch.shares.shape[0]):
        if scratch.shares[i] != 0.0:
            for j in range(n):
                z, at = scratch.shares[i] * X[t, j], i * n + j
                matrix[at] += weight * z * z
                target[at] -= pull * z
                weights[at] = target[at] / matrix[at]
    if settings.radius < math.inf:
        shift = multiplier(matrix, target, settings.radius, state.tallies[LAMBDA])
        state.tallies[LAMBDA] = shift
        for at in range(weights.shape[0]):
            weights[at] = target[at] / (matrix[at] + shift)


FORM = Form("diagonal", _reach, _absorb)


class DiagonalState(JointState):
    """The diagonal form: three numbers for every class and feature."""

    arrays: Diagonal
    form = FORM

    def new_arrays(self, n: int) -> Diagonal:
        """Return initial arrays for n weights."""
        diagonal = np.full(n, self.settings.floor)
        return Diagonal(np.zeros(n), np.zeros(n), diagonal, np.zeros(TALLIES), np.zeros(1, dtype=np.int64))

    def check_arrays(self, arrays: Diagonal) -> None:
        """Raise if `worn` is not 0, which would stop the loop forever."""
        super().check_arrays(arrays)
        if arrays.worn[0] != 0:
            raise ValueError("a diagonal is never worn")

    def scratch_size(self) -> int:
        """Return 0: a step needs no scratch vectors."""
        return 0
