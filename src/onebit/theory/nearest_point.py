"""The point of a convex hull nearest to the origin: every margin in this package is such a distance.

For vectors z₁…z_N of length at most 1 the largest margin of a unit vector, max_w min_j ⟨w, z_j⟩, equals the distance δ
from the origin to their convex hull. It is found as a non-negative least squares problem,

    minimize ‖Σ uⱼzⱼ‖² + c²(1/c − Σ uⱼ)²  over u ≥ 0,

by an active-set method that keeps the few vertices with uⱼ > 0: in floats, with the QR factors of their matrix, or in
decimals of many digits, where the inverse of its Gram matrix is accurate enough.

References
----------
Lawson, Hanson (1974). Solving Least Squares Problems. Prentice-Hall. Chapter 23.
Wolfe (1976). Finding the nearest point in a polytope. Mathematical Programming.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, qr, qr_delete, qr_insert, solve_triangular

from onebit.inputs import Floats, Integers
from onebit.theory.certificates import Kind, condition_signs

_Numbers = npt.NDArray[Any]  # floats, or decimals as objects

_POOL = 256  # vertices worked through between two passes over all of them: the worst stay among the worst for a while
# A pool is done when the worst of it is ten times less violated than at first: then a pass over all pays.
_POOL_SHARE = 0.1
GAP = 1e-9  # the relative distance of the two sides that is asked for: three digits beyond the six that are printed
_STALLED_PASSES = 3  # one pass can be held up by rounding; three in a row mean that no further step is possible
_DIGITS = 100  # of a decimal


class Hull:
    """The hull of the conditions of Definition 1: all weak ones, or the strong ones on one class's vector.

    A vertex is the vector that a condition has x or −x in the blocks of, and is named by a whole number: the example
    times K plus the rival, or the example alone. Points are about 1 in length, and floats or decimals.
    """

    def __init__(self, points: _Numbers, codes: Integers, n_classes: int, strong_class: int | None = None) -> None:
        self.points, self.codes, self._strong_class = points, codes, strong_class
        self.kind: Kind = "weak" if strong_class is None else "strong"
        self.classes = np.arange(n_classes) if strong_class is None else np.array([strong_class])
        self.dimension = points.shape[1] * len(self.classes)

    def at(self, points: _Numbers) -> "Hull":
        """Return the hull of the same conditions on examples at other points."""
        return Hull(points, self.codes, len(self.classes), self._strong_class)

    def conditions(self, vertices: Integers) -> tuple[Integers, Integers]:
        """Return the example and the class of each vertex's condition."""
        if self._strong_class is not None:
            return vertices, np.full(len(vertices), self._strong_class)
        return vertices // len(self.classes), vertices % len(self.classes)

    def signs(self, vertices: Integers) -> Integers:
        """Return the sign of x in every block, one row for each vertex."""
        examples, asked = self.conditions(vertices)
        return condition_signs(self.kind, self.codes[examples], asked, self.classes)

    def rows(self, vertices: Integers) -> _Numbers:
        """Return vertices, one in each row."""
        points = self.points[self.conditions(vertices)[0]]
        blocks: _Numbers = self.signs(vertices)[:, :, None] * points[:, None, :]
        return blocks.reshape(len(vertices), self.dimension)

    def cancelling(self, a: int, b: int) -> Integers | None:
        """Return the vertices of two equal examples with different labels if they cancel each other."""
        if self._strong_class is None:
            return np.array([a, b]) * len(self.classes) + self.codes[[b, a]]
        return np.array([a, b]) if self._strong_class in self.codes[[a, b]] else None

    def price(self, direction: _Numbers) -> tuple[_Numbers, Integers]:
        """Return each example's least product with a direction, and the vertex that has it."""
        scores, each = self.points @ direction.reshape(len(self.classes), -1).T, np.arange(len(self.points))
        if self._strong_class is not None:
            return np.where(self.codes == self._strong_class, 1, -1) * scores[:, 0], each
        leads = scores[each, self.codes][:, None] - scores
        leads[each, self.codes] = np.inf
        rivals = leads.argmin(axis=1)
        return leads[each, rivals], each * len(self.classes) + rivals


def as_decimals(points: Floats) -> _Numbers:
    """Return floats as decimals, exactly."""
    return np.array([[Decimal(entry) for entry in row] for row in points.tolist()])


class _NearestPoint(NamedTuple):
    """Both sides of the answer: `lower` ≤ δ ≤ `upper`."""

    direction: Floats  # any positive multiple of the best vector w
    vertices: Integers
    weights: _Numbers  # non-negative: the nearest point is Σ weights·vertices / Σ weights
    lower: float
    """The worst product of the unit direction with a vertex; not positive if the direction does not separate."""
    upper: float  # the length of the combination

    @property
    def gap(self) -> float:
        """How far apart the two sides are, relative to the upper one."""
        return 1.0 - self.lower / self.upper if self.upper > 0.0 else 0.0


def nearest_point(
    hull: Hull, on_pass: Callable[[float], None] | None = None, first: Integers | None = None
) -> _NearestPoint:
    """Return the hull's nearest point to the origin, beginning with vertices that may be near it.

    It ends when the relative gap is at most `GAP`, when the combination's length is zero to rounding, or when rounding
    allows no further step. `on_pass` is called with the gap after every pass over all vertices.
    """
    with localcontext(Context(prec=_DIGITS)):
        active = (_DecimalActiveSet if hull.points.dtype == object else _ActiveSet)(hull.dimension)
        _work_through(active, hull, hull.price(active.direction)[1][:_POOL] if first is None else first)
        stalled = 0
        while True:
            values, vertices = hull.price(active.direction)
            chosen, direction = np.array(active.vertices), active.direction.astype(float)
            combination = (active.weights @ hull.rows(chosen)).astype(float)
            # The sum and the length may be rounded: neither is a difference of larger numbers.
            upper = float(np.linalg.norm(combination)) / float(active.weights.sum())
            lower = float(values.min()) / (float(np.linalg.norm(direction)) or math.inf)
            point = _NearestPoint(direction, chosen, active.weights, lower, upper)
            if on_pass is not None:
                on_pass(point.gap)
            if point.gap <= GAP or point.upper <= active.zero or stalled >= _STALLED_PASSES:
                return point
            worst = np.argpartition(values, _POOL)[:_POOL] if len(values) > _POOL else np.arange(len(values))
            before = active.level
            _work_through(active, hull, vertices[worst])
            stalled = stalled + 1 if before <= 0 or float(active.level / before) >= 1.0 - 1e-13 else 0


def _work_through(active: "_ActiveSet", hull: Hull, pool: Integers) -> None:
    """Bring vertices of the pool in, the most violated first, until those left are much less violated."""
    rows, open_, first = hull.rows(pool), ~np.isin(pool, active.vertices), None
    while open_.any() and active.level > 0:
        violations = np.where(open_, (1 - rows @ active.direction / active.level).astype(float), -np.inf)
        worst = int(np.argmax(violations))
        first = violations[worst] if first is None else first
        if violations[worst] <= max(0.1 * GAP, _POOL_SHARE * first):
            return
        open_[worst] = False
        before = active.level
        gone = active.bring_in(rows[worst], int(pool[worst]))
        # Vertices come back only while the distance falls; otherwise rounding could let them take turns for ever.
        if active.level < before:
            open_ |= np.isin(pool, gone) & (pool != pool[worst])


class _ActiveSet:
    """The vertices of positive weight, with the QR factors of the matrix whose columns are (z, c)."""

    zero = 1e-12  # vertices have length about 1, so a combination as short as this is zero but for rounding
    _last = 1e-3
    """c, the last coordinate of every vertex: distances well below it still show in the residual, about (δ/c)²."""
    _dependent: Any = 1e-13
    """A vertex so near to the span of the active ones, relative to its length, would make the triangle singular."""

    def __init__(self, dimension: int) -> None:
        self.vertices: list[int] = []
        self.weights: _Numbers = np.empty(0)
        self._q, self._r = np.empty((dimension + 1, 0)), np.empty((0, 0))
        self._project()

    def bring_in(self, row: _Numbers, vertex: int) -> list[int]:
        """Add a vertex, go to the best weights, and return the vertices that this drove out."""
        if not self._append(row):
            return [vertex]
        self.vertices.append(vertex)
        weights, gone = np.append(self.weights.astype(float), 0.0), list[int]()
        while self.vertices:
            self.weights = self._best_weights()
            target = self.weights.astype(float)
            # Lawson and Hanson's inner loop: towards the target only as far as no weight falls below zero.
            falling = np.flatnonzero(target <= 0.0)
            if not len(falling):
                break
            falls = weights[falling] - target[falling]
            steps = np.divide(weights[falling], falls, out=np.zeros(len(falling)), where=falls > 0.0)
            weights += float(steps.min()) * (target - weights)
            for at in falling[steps <= steps.min()][::-1].tolist():
                gone.append(self.vertices.pop(at))
                weights = np.delete(weights, at)
                self._delete(at)
            weights = np.maximum(weights, 0.0)
        self._project()
        return gone

    def _project(self) -> None:
        """Set the residual of (0, …, 0, 1): its negative head is the direction, its end the products' common level."""
        residual = -self._q @ self._q[-1]
        residual[-1] += 1.0
        # Twice: where little is left, the first subtraction leaves mostly rounding.
        residual -= self._q @ (residual @ self._q)
        self.direction: _Numbers = -residual[:-1]
        self.level: Any = float(residual[-1]) * self._last

    def _best_weights(self) -> _Numbers:
        """Return the weights of the point nearest to the origin in the active vertices' span."""
        best: Floats = solve_triangular(self._r, self._q[-1], check_finite=False)
        return best

    def _append(self, row: _Numbers) -> bool:
        """Add a vertex to the factors, or return False if it is in the others' span, but for rounding."""
        count, column = len(self.vertices), np.append(row, self._last)
        if not count:
            self._q, self._r = qr(column[:, None], mode="economic", check_finite=False)
            return True
        # As many columns as there are coordinates span all others.
        if count == len(column):
            return False
        try:
            factors = qr_insert(self._q, self._r, column, count, "col", self._dependent, check_finite=False)
        except LinAlgError:
            return False
        self._q, self._r = factors
        return True

    def _delete(self, at: int) -> None:
        """Remove a vertex from the factors; it is gone from the list already."""
        q, r = qr_delete(self._q, self._r, at, which="col", check_finite=False)
        # A square Q stays one.
        self._q, self._r = q[:, : len(self.vertices)], r[: len(self.vertices)]


class _DecimalActiveSet(_ActiveSet):
    """The same in decimals, with c = 1 and the inverse of the Gram matrix of the vectors (z, 1)."""

    zero, _dependent = 1e-30, Decimal("1e-60")

    def __init__(self, dimension: int) -> None:
        self.vertices, self.weights = [], np.empty(0, dtype=object)
        self._rows, self._inverse = np.empty((0, dimension), dtype=object), np.empty((0, 0), dtype=object)
        self.direction, self.level = np.full(dimension, Decimal(0)), Decimal(1)

    def _project(self) -> None:
        self.direction, self.level = self.weights @ self._rows, 1 - self.weights.sum()

    def _best_weights(self) -> _Numbers:
        best: _Numbers = self._inverse.sum(axis=1)
        return best

    def _append(self, row: _Numbers) -> bool:
        products, square = self._rows @ row + 1, row @ row + 1
        shares = self._inverse @ products
        rest = square - products @ shares
        if rest <= self._dependent * square:
            return False
        border = np.array([*-shares, Decimal(1)])
        self._rows, self._inverse = np.vstack([self._rows, row]), np.pad(self._inverse, (0, 1))
        self._inverse += np.outer(border, border / rest)
        return True

    def _delete(self, at: int) -> None:
        column = self._inverse[at]
        inverse = self._inverse - np.outer(column, column / column[at])
        self._rows, self._inverse = np.delete(self._rows, at, 0), np.delete(np.delete(inverse, at, 0), at, 1)
