"""Proofs that a data set is not separable, and a check of them that knows nothing of the solver.

Definition 1 asks that a number be positive for every example t and class i:

    weak:    ⟨w_y − w_i, x⟩ for i ≠ y = y_t;
    strong:  ⟨w_i, x⟩ for i = y_t, and −⟨w_i, x⟩ for i ≠ y_t.

Each of them is the inner product of (w₁, …, w_K) with a vector made from x. If non-negative weights that sum to 1
combine such vectors to one of length ε, then for any w₁…w_K with Σ‖wᵢ‖² ≤ 1 the numbers' weighted mean is at most ε, so
one of them is: the weak margin is at most ε, and the strong margin at most 2ε. For ε = 0 there is no margin at all
(Farkas).
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Integers, check_rows, dense
from onebit.kernels import Kernel, as_kernel

TOLERANCE = 1e-7
"""In R^d a combination shorter than this share of the radius counts as zero: smaller margins are not told from none."""
KERNEL_TOLERANCE = 1e-6
"""The same in a kernel's space, where a length is the square root of a rounded number."""

# Rows whose Gram matrix is formed at a time, when only its diagonal is wanted.
_BLOCK = 128


@dataclass(frozen=True)
class Certificate:
    """Weights over the conditions of Definition 1 that prove that no vectors satisfy them all."""

    kind: Literal["weak", "strong"]
    examples: Integers
    """The row t of each condition."""
    classes: npt.NDArray[Any]
    """The label i of each condition."""
    weights: Floats
    """Non-negative, sum 1."""
    residual: float
    """ε, the length of the combination; zero but for rounding."""

    def __len__(self) -> int:
        return len(self.weights)


def verify_certificate(
    certificate: Certificate, X: Any, y: Any, kernel: Any = None, *, tolerance: float | None = None
) -> bool:
    """Return whether a certificate proves what it says, from the data alone.

    Parameters
    ----------
    certificate : Certificate
        From `margin`, or anyone else.
    X, y : arrays
        The examples and their labels.
    kernel : None, Kernel or callable
        The space the certificate is about.
    tolerance : float, optional
        How long the combination may be, as a share of the longest example; by default `TOLERANCE`, or
        `KERNEL_TOLERANCE` with a kernel.

    Examples
    --------
    >>> twins = Certificate("weak", np.array([0, 1]), np.array(["b", "a"]), np.array([0.5, 0.5]), 0.0)
    >>> verify_certificate(twins, [[1.0, 2.0], [1.0, 2.0]], ["a", "b"])
    True
    """
    rows, kernel, weights = dense(check_rows(X)), as_kernel(kernel), certificate.weights
    # Squares of very large or small numbers would leave the float's range; without a kernel only proportions count.
    rows = rows / (float(np.abs(rows).max()) or 1.0) if kernel is None else rows
    points, own, asked = rows[certificate.examples], np.asarray(y)[certificate.examples], certificate.classes
    is_own = own == asked
    # 10⁻⁹ forgives the rounding of a sum; the own class has no place in a weak certificate.
    if (weights < 0.0).any() or abs(weights.sum() - 1.0) > 1e-9 or (certificate.kind == "weak" and is_own.any()):
        return False
    # The combination has one block for each class, and its squared length is the sum of theirs.
    square = 0.0
    for label in np.unique(np.concatenate([own, asked])):
        gains = (own == label) & (is_own | (certificate.kind == "weak"))
        shares = weights * (gains.astype(float) - ((asked == label) & ~is_own))
        square += float(shares @ kernel(points) @ shares) if kernel else float(np.sum((shares @ points) ** 2))
    longest = math.sqrt(float(squared_lengths(rows, kernel).max()))
    allowed = tolerance if tolerance is not None else (KERNEL_TOLERANCE if kernel else TOLERANCE)
    return math.sqrt(max(square, 0.0)) <= allowed * longest


def squared_lengths(X: Floats, kernel: Kernel | None) -> Floats:
    """Return k(x, x) of every row, or ‖x‖² without a kernel."""
    if kernel is None:
        squares: Floats = np.einsum("ij,ij->i", X, X)
        return squares
    return np.concatenate([np.diagonal(kernel(block)) for block in np.split(X, range(_BLOCK, len(X), _BLOCK))])


def conflicting_pair(X: Floats, codes: Integers) -> tuple[int, int] | None:
    """Return two equal rows with different labels, or None if there are none."""
    order, is_same = _equal_neighbors(X)
    conflicts = np.flatnonzero(is_same & (codes[order[1:]] != codes[order[:-1]]))
    return (int(order[conflicts[0]]), int(order[conflicts[0] + 1])) if len(conflicts) else None


def _equal_neighbors(X: Floats) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return an order that puts equal rows side by side, and which rows equal the one before; by hashing, exact."""
    words = (X + 0.0).view(np.uint64)  # adding 0 turns −0 into 0, so that equal numbers have equal bits
    keys = np.zeros(len(X), dtype=np.uint64)
    for column in words.T:
        # An odd multiplier carries every bit upwards, the shift brings them down again.
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_same = ordered[1:] == ordered[:-1]
    places = np.flatnonzero(is_same)
    # Equal keys are only a suspicion: the rows themselves decide.
    is_same[places] = (X[order[places]] == X[order[places + 1]]).all(axis=1)
    return order, is_same
