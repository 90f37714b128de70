"""The examples as points of a Euclidean space, whatever the kernel.

With a kernel the points are the rows of L in a pivoted Cholesky factorization L·Lᵀ of the Gram matrix, whose columns
are computed as they are needed. It stops when what is left of k(x, x) is rounding: smooth kernels on few features need
a hundred columns or so, however many examples there are. Solutions come back as coefficients over the examples and are
judged by the kernel itself (`onebit.theory.evidence`), never by L.
"""

import math
from typing import Protocol

import numpy as np
import scipy.linalg

from onebit.inputs import Floats
from onebit.kernels import Kernel
from onebit.theory.evidence import longest

# A share of the largest k(x, x) that is a few units of a float's last place: what is left then is rounding.
_ROUNDING = 1e-15
# How far L·Lᵀ may miss the kernel: far more than rounding does, far less than a kernel that is not positive definite.
_NEGATIVE = 1e-8
# So many examples are compared with the kernel itself; all of them would cost n² kernel values.
_BLOCK = 256
# Rows whose Gram matrix is formed at a time, when only its diagonal is wanted.
_DIAGONAL_BLOCK = 128


class Coordinates(Protocol):
    """Points that stand for the examples, and the way back."""

    points: Floats
    """One row per example, none longer than about 1."""
    radius: float
    """The length of the longest example."""

    def vectors(self, directions: Floats, coefficients: Floats) -> Floats:
        """Return vectors as the user gets them, one row per class, from either form of a solution."""
        ...

    def squares(self, vectors: Floats) -> Floats:
        """Return ‖w_i‖²."""
        ...


class LinearCoordinates:
    """R^d itself, or the span of the examples where they are fewer than d."""

    def __init__(self, X: Floats) -> None:
        self.radius = longest(X)
        points = np.ldexp(X, -math.frexp(self.radius)[1])
        self._basis = None
        # The vectors of a solution lie in the span of the examples, which has fewer coordinates then.
        if X.shape[1] > X.shape[0]:
            basis, triangle = scipy.linalg.qr(points.T, mode="economic")
            points, self._basis = np.ascontiguousarray(triangle.T), basis.T
        self.points = points

    def vectors(self, directions: Floats, coefficients: Floats) -> Floats:
        """Return the directions in R^d."""
        return directions if self._basis is None else directions @ self._basis

    def squares(self, vectors: Floats) -> Floats:
        """Return the sums of squares."""
        squares: Floats = np.einsum("ij,ij->i", vectors, vectors)
        return squares


class KernelCoordinates:
    """The span of the examples in a kernel's space."""

    def __init__(self, X: Floats, kernel: Kernel) -> None:
        self._X, self._kernel = X, kernel
        blocks = np.split(X, range(_DIAGONAL_BLOCK, len(X), _DIAGONAL_BLOCK))
        diagonal = np.concatenate([np.diagonal(kernel(block)) for block in blocks])
        if not np.isfinite(diagonal).all() or diagonal.min() < 0.0:
            raise ValueError(f"kernel must have finite k(x, x) ≥ 0; {kernel!r} gives {diagonal.min()!r}")
        self.radius = math.sqrt(float(diagonal.max()))
        factor = self._factor(diagonal)
        self._check(factor)
        self.points = factor / (self.radius or 1.0)

    def _factor(self, diagonal: Floats) -> Floats:
        """Return L, as many columns as rounding leaves meaningful."""
        left, columns = diagonal.copy(), np.empty((len(diagonal), 16))
        count = 0
        while count < len(left):
            pivot = int(np.argmax(left))
            if left[pivot] <= _ROUNDING * self.radius**2:
                break
            # Doubled when full: how many columns there will be depends on the kernel and is not known before.
            if count == columns.shape[1]:
                columns = np.concatenate([columns, np.empty_like(columns)], axis=1)
            column = self._kernel.matrix(self._X, self._X[pivot : pivot + 1])[:, 0]
            column -= columns[:, :count] @ columns[pivot, :count]
            columns[:, count] = column / math.sqrt(left[pivot])
            left -= columns[:, count] ** 2
            # It is used up, whatever rounding leaves of it, and must not be chosen again.
            left[pivot] = 0.0
            count += 1
        return np.ascontiguousarray(columns[:, : max(count, 1)]) if count else np.zeros((len(left), 1))

    def _check(self, factor: Floats) -> None:
        """Raise if L·Lᵀ misses the kernel on some of the examples, which positive definite values rule out."""
        some = np.unique(np.linspace(0, len(factor) - 1, _BLOCK).astype(int))
        error = np.abs(self._kernel.matrix(self._X[some], self._X[some]) - factor[some] @ factor[some].T).max()
        if not error <= _NEGATIVE * self.radius**2:
            # Which of the two it is cannot be seen: Gaussian(1) of rows of length 10⁷ errs as much.
            raise ValueError(
                f"kernel must be positive definite; {self._kernel!r} as computed is not, by {error:.3g}, on these "
                "rows. Where it is in theory, its values have lost their digits: scale or centre X"
            )

    def vectors(self, directions: Floats, coefficients: Floats) -> Floats:
        """Return the coefficients over the examples."""
        return coefficients

    def squares(self, vectors: Floats) -> Floats:
        """Return the quadratic forms of the Gram matrix."""
        support = np.flatnonzero(vectors.any(axis=0))
        rows, some = self._X[support], vectors[:, support]
        squares: Floats = np.einsum("ij,ij->i", some @ self._kernel.matrix(rows, rows), some)
        # Rounding can make the form of a short vector negative.
        return np.maximum(squares, 0.0)
