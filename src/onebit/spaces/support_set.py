"""The space of a kernel: examples that were learned from, and how much of each every class has gained.

One store is shared by all classes: row s holds an example, ``coefficients[s, i]`` what class i gained of it, and class
i's score is Σₛ coefficients[s, i]·k(xₛ, x). The same example may be stored many times (the paper's sets J are
multisets). The store doubles when it is full.
"""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any, Self

import numpy as np

from onebit.compiled import compiled
from onebit.inputs import Floats, Integers, Rows, SparseRows, check_finite, densify
from onebit.kernels import Custom, Kernel, Value
from onebit.rounds import Record, Rule
from onebit.spaces.base import Space
from onebit.spaces.blocks import play_in_blocks

_FIRST_CAPACITY = 16
_ENTRIES_AT_ONCE = 1 << 22


class SupportSet(Space):
    """Examples with a coefficient per class, seen through a kernel."""

    def __init__(self, kernel: Kernel, n_features: int, n_classes: int) -> None:
        self.kernel, self.n_features, self.n_classes = kernel, n_features, n_classes
        self.size = 0
        self.total = np.zeros(n_classes)
        """Σₛ |coefficients[s, i]| for every class i: what rounding errors are measured against."""
        self.radius = 0.0
        """The length of the longest stored example."""
        self._points = np.empty((_FIRST_CAPACITY, n_features))
        self._squares = np.empty(_FIRST_CAPACITY)
        self._coefficients = np.empty((_FIRST_CAPACITY, n_classes))

    @property
    def points(self) -> Floats:
        """The stored examples, oldest first."""
        return self._points[: self.size]

    @property
    def squares(self) -> Floats:
        """Their squared lengths."""
        return self._squares[: self.size]

    @property
    def coefficients(self) -> Floats:
        """What each class gained of each."""
        return self._coefficients[: self.size]

    def prepare(self, rows: Rows) -> Floats:
        """Return dense rows that the kernel accepts."""
        dense = densify(rows, 0, len(rows)) if isinstance(rows, SparseRows) else rows
        check_finite(dense, "features")
        return self.kernel.prepare(dense)

    def scores(self, row: Rows) -> Floats:
        """Return Σₛ coefficients[s, i]·k(xₛ, x), added up in the order of the store."""
        assert not isinstance(row, SparseRows)
        out = np.zeros(self.n_classes)
        if isinstance(self.kernel, Custom):
            if self.size:
                _weigh(self.kernel.matrix(row, self.points)[0], self._coefficients, out)
        else:
            add_up = _exact_scores(type(self.kernel).value)
            add_up(self._points, self._squares, self._coefficients, self.size, row, self.kernel.parameters, out)
        return out

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores by matrix products."""
        assert not isinstance(rows, SparseRows)
        out = np.zeros((len(rows), self.n_classes))
        chunk = max(1, _ENTRIES_AT_ONCE // max(1, self.size))
        with np.errstate(invalid="ignore", over="ignore"):  # whoever asked looks for scores that are not finite
            for start in range(0, len(rows) if self.size else 0, chunk):
                out[start : start + chunk] = self.kernel_with_points(rows[start : start + chunk]) @ self.coefficients
        return out

    def kernel_with_points(self, rows: Floats) -> Floats:
        """Return k(row, example) for every row and stored example."""
        if isinstance(self.kernel, Custom):
            return self.kernel.matrix(rows, self.points)
        return self.kernel.of_products(rows @ self.points.T, np.einsum("ij,ij->i", rows, rows), self.squares)

    def add(self, row: Rows, gains: Floats) -> None:
        """Store the row with its gains."""
        assert not isinstance(row, SparseRows)
        if self.size == len(self._points):
            self._points = _doubled(self._points)
            self._squares = _doubled(self._squares)
            self._coefficients = _doubled(self._coefficients)
        square = float(row[0] @ row[0])
        self._points[self.size] = row[0]
        self._squares[self.size] = square
        self._coefficients[self.size] = gains
        self.size += 1
        self.total += np.abs(gains)
        self.radius = max(self.radius, square**0.5)

    def play(
        self, rule: Rule, settings: Any, X: Rows, y: Integers, seed: int, first_round: int, record: Record
    ) -> None:
        """Play a whole stream in blocks of rows that are scored together."""
        play_in_blocks(self, rule, settings, X, y, seed, first_round, record)

    def bookmark(self) -> Self:
        """Return a copy that shares the store: examples are only ever added behind the ones it counts."""
        twin = copy.copy(self)
        twin.total = self.total.copy()
        return twin

    def arrays(self) -> dict[str, Floats]:
        """Return the examples and their coefficients, one column per class."""
        return {"support": self.points.copy(), "coefficients": self.coefficients.copy()}


def _doubled(array: Floats) -> Floats:
    larger = np.empty((2 * len(array), *array.shape[1:]))
    larger[: len(array)] = array
    return larger


@compiled
def _weigh(values: Floats, coefficients: Floats, out: Floats) -> None:
    for s in range(values.shape[0]):
        for i in range(out.shape[0]):
            out[i] += values[s] * coefficients[s, i]


@cache
def _exact_scores(value: Value) -> Callable[..., None]:
    """Return the compiled sum over the store for one kernel."""

    @compiled
    def add_up(
        points: Floats, squares: Floats, coefficients: Floats, size: int, row: Floats, parameters: Any, out: Floats
    ) -> None:
        square = 0.0
        for j in range(row.shape[1]):
            square += row[0, j] * row[0, j]
        for s in range(size):
            dot = 0.0
            for j in range(row.shape[1]):
                dot += row[0, j] * points[s, j]
            k = value(dot, square, squares[s], parameters)
            for i in range(out.shape[0]):
                out[i] += k * coefficients[s, i]

    return add_up
