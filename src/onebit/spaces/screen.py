"""A polynomial that approximates a support set when few features vary: its cost does not grow with the set."""

import math
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from onebit.engine.jit import jit
from onebit.inputs import Floats, Integers, Rows, SparseRows, unlocked
from onebit.kernels import Kernel, Series

_MOST_TERMS = 512  # with more terms, a few hundred examples are scored faster directly
_TILE = 128  # rows at once: terms × 128 numbers stay in the second-level cache


class Screen:
    """The polynomials of all classes.

    A kernel close to Σⱼ aⱼ⟨x,x'⟩ʲ makes a class's score close to a polynomial in x, whose coefficient of the monomial
    x^α is a_{|α|}·multinomial(α)·Σₛ cₛ·xₛ^α. In three dimensions degree 8 has 165 monomials, and the error for the
    rational kernel is 2·10⁻⁵ for each unit of coefficient: enough to decide nearly every round without the examples.

    Features that are the same in every row, such as a column of ones, need no monomials: with each example xₛ they add
    the same bₛ to ⟨x,xₛ⟩, and Σⱼ aⱼ(z + bₛ)ʲ is a polynomial in the product z of the other features.
    """

    def __init__(self, series: Series, row: Floats, varies: npt.NDArray[np.bool_], n_classes: int) -> None:
        exponents = [
            powers
            for degree in range(len(series.coefficients))
            for powers in combinations_with_replacement(range(np.count_nonzero(varies)), degree)
        ]
        place = {powers: m for m, powers in enumerate(exponents)}
        self.n_terms = len(exponents)
        self._series, self._row, self._varies = series, row.copy(), varies
        # Monomials in order of degree: each is one made before, times one more variable.
        self._parents = np.array([place[powers[:-1]] if powers else 0 for powers in exponents])
        self._variables = np.array([powers[-1] if powers else 0 for powers in exponents])
        self._degrees = np.array([len(powers) for powers in exponents])
        self._scale = np.array([float(_orderings(powers)) for powers in exponents])
        self._weights = np.zeros((self.n_terms, n_classes))
        self._n_points = 0

    @classmethod
    def for_kernel(cls, kernel: Kernel, rows: Rows, n_classes: int) -> "Screen | None":
        """Return an empty screen for a stream, or None if the kernel has no short polynomial in features that vary."""
        n = rows.shape[1]
        if kernel.series(n) is None:
            return None
        if isinstance(rows, SparseRows):
            row, varies = np.zeros(n), np.isin(np.arange(n), rows.columns)
        else:
            # Divided by their lengths, rows that have a feature in common have it no more, unless it is 0.
            row = np.zeros(n) if kernel.normalize else rows[0]
            varies = np.array([bool((rows[:, j] != row[j]).any()) for j in range(n)])
        n_varying = int(np.count_nonzero(varies))
        series = kernel.series(n_varying)
        if series is None or math.comb(len(series.coefficients) - 1 + n_varying, n_varying) > _MOST_TERMS:
            return None
        return cls(series, row, varies, n_classes)

    def catch_up(self, points: Floats, coefficients: Floats) -> None:
        """Add the examples that were stored since the last call."""
        for start in range(self._n_points, len(points), _TILE):
            some = points[start : start + _TILE]
            terms = np.empty((self.n_terms, len(some)))
            _monomials(np.ascontiguousarray(some[:, self._varies].T), self._parents, self._variables, terms)
            same = some[:, ~self._varies] @ self._row[~self._varies]
            terms *= _moved(self._series.coefficients, same)[self._degrees]
            self._weights += (terms * self._scale[:, None]) @ coefficients[start : start + _TILE]
        self._n_points = len(points)

    def score_rows(self, rows: Floats) -> Floats:
        """Return every row's score for every class, within `error` times the class's total coefficient."""
        scores = np.empty((len(rows), self._weights.shape[1]))
        columns = np.flatnonzero(self._varies)
        _score_tiles(unlocked(rows), columns, self._parents, self._variables, self._weights, scores)
        return scores

    def error(self, radius: float, rounding: float) -> float:
        """Return the largest error of a score for each unit of coefficient, on a ball of that radius."""
        powers = radius ** (2.0 * np.arange(len(self._series.coefficients)))
        size = float(np.abs(self._series.coefficients) @ powers)
        # The product of the constant features enters every power; 64 is an allowance, as in blocks.
        n_fixed = len(powers) * np.count_nonzero(~self._varies)
        return self._series.error + rounding * float(self.n_terms + self._n_points + n_fixed + 64) * size


def _moved(coefficients: Floats, by: Floats) -> Floats:
    """Return the coefficients of Σⱼ aⱼ(z + b)ʲ as a polynomial in z, one column for each b.

    >>> _moved(np.array([0.0, 0.0, 1.0]), np.array([3.0])).ravel().tolist()
    [9.0, 6.0, 1.0]
    """
    n = len(coefficients)
    moved = np.zeros((n, len(by)))
    for i in range(n):
        for j in range(i, n):
            moved[i] += coefficients[j] * math.comb(j, i) * by ** (j - i)
    return moved


def _orderings(powers: tuple[int, ...]) -> int:
    """Return how many sequences of variables make the same monomial (a multinomial coefficient).

    >>> _orderings((0, 0, 1))
    3
    """
    counts = [powers.count(variable) for variable in set(powers)]
    return math.factorial(len(powers)) // math.prod(math.factorial(count) for count in counts)


@jit
def _monomials(columns: Floats, parents: Integers, variables: Integers, terms: Floats) -> None:
    """Write every monomial of every column; a monomial is its parent times one more variable."""
    for r in range(terms.shape[1]):
        terms[0, r] = 1.0
    for m in range(1, terms.shape[0]):
        parent, variable = parents[m], variables[m]
        for r in range(terms.shape[1]):
            terms[m, r] = terms[parent, r] * columns[variable, r]


@jit
def _score_tiles(
    rows: Floats, features: Integers, parents: Integers, variables: Integers, weights: Floats, scores: Floats
) -> None:
    n_terms, n_classes = weights.shape
    columns = np.zeros((features.shape[0], _TILE))
    terms = np.empty((n_terms, _TILE))
    totals = np.empty((n_classes, _TILE))
    for start in range(0, rows.shape[0], _TILE):
        n = min(_TILE, rows.shape[0] - start)
        for r in range(n):
            for j in range(features.shape[0]):
                columns[j, r] = rows[start + r, features[j]]
        _monomials(columns, parents, variables, terms)
        totals[:] = 0.0
        for m in range(n_terms):
            for i in range(n_classes):
                weight = weights[m, i]
                for r in range(_TILE):
                    totals[i, r] += weight * terms[m, r]
        for r in range(n):
            for i in range(n_classes):
                scores[start + r, i] = totals[i, r]
