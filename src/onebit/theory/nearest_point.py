"""The point of a convex hull nearest to the origin: every margin in this package is such a distance.

For vectors z₁…z_N of length at most 1 the largest margin of a unit vector, max_w min_j ⟨w, z_j⟩, equals the distance δ
from the origin to their convex hull. It is found as a non-negative least squares problem,

    minimize ‖Σ uⱼzⱼ‖² + c²(1/c − Σ uⱼ)²  over u ≥ 0,

by an active-set method that keeps the few vertices with uⱼ > 0 and the QR factors of their matrix. (scipy's `nnls`
starts each time from nothing, which takes ten times as long.)

References
----------
Lawson, Hanson (1974). Solving Least Squares Problems. Prentice-Hall. Chapter 23.
Wolfe (1976). Finding the nearest point in a polytope. Mathematical Programming.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, qr, qr_delete, qr_insert, solve_triangular

from onebit.inputs import Floats, Integers
from onebit.theory.certificates import Kind, condition_signs

_POOL = 256  # vertices worked through between two passes over all of them: the worst stay among the worst for a while
# A pool is done when the worst of it is ten times less violated than at first: then a pass over all pays.
_POOL_SHARE = 0.1
GAP = 1e-9  # the relative distance of the two sides that is asked for: three digits beyond the six that are printed
_STALLED_PASSES = 3  # one pass can be held up by rounding; three in a row mean that no further step is possible
_ZERO = 1e-12  # vertices have length about 1, so a combination as short as this is zero but for rounding
_LAST = 1e-3  # c, the last coordinate of every vertex: distances well below it still show in the residual, about (δ/c)²
_DEPENDENT = 1e-13  # a vertex so near to the span of the active ones, relative to its length, is not added to them


class Hull(NamedTuple):
    """The hull of the conditions of Definition 1: all weak ones, or the strong ones on one class's vector.

    A vertex is the vector that a condition has x or −x in the blocks of, and is named by a whole number: the example
    times K plus the rival, or the example alone. Points are about 1 in length.
    """

    kind: Kind
    points: Floats
    codes: Integers
    classes: Integers  # whose vectors are looked for: of all K classes, or of one

    def conditions(self, vertices: Integers) -> tuple[Integers, Integers]:
        """Return the example and the class of each vertex's condition."""
        if self.kind == "strong":
            return vertices, np.full(len(vertices), self.classes[0])
        return vertices // len(self.classes), vertices % len(self.classes)

    def signs(self, vertices: Integers) -> Integers:
        """Return the sign of x in every block, one row for each vertex."""
        examples, asked = self.conditions(vertices)
        return condition_signs(self.kind, self.codes[examples], asked, self.classes)

    def rows(self, vertices: Integers) -> Floats:
        """Return vertices, one in each row."""
        points = self.points[self.conditions(vertices)[0]]
        return (self.signs(vertices)[:, :, None] * points[:, None, :]).reshape(len(vertices), -1)

    def cancelling(self, a: int, b: int) -> Integers | None:
        """Return the vertices of two equal examples with different labels if they cancel each other."""
        if self.kind == "weak":
            return np.array([a, b]) * len(self.classes) + self.codes[[b, a]]
        return np.array([a, b]) if self.classes[0] in self.codes[[a, b]] else None

    def price(self, direction: Floats) -> tuple[Floats, Integers]:
        """Return each example's least product with a direction, and the vertex that has it."""
        scores, each = self.points @ direction.reshape(len(self.classes), -1).T, np.arange(len(self.points))
        if self.kind == "strong":
            return np.where(self.codes == self.classes[0], 1, -1) * scores[:, 0], each
        leads = scores[each, self.codes][:, None] - scores
        leads[each, self.codes] = np.inf
        rivals = leads.argmin(axis=1)
        return leads[each, rivals], each * len(self.classes) + rivals


class _NearestPoint(NamedTuple):
    """The best vector w, up to a positive factor, and the nearest point: Σ weights·vertices / Σ weights."""

    direction: Floats
    vertices: Integers
    weights: Floats
    gap: float  # how far apart w's worst product and the point's length are, relative to the length


def nearest_point(hull: Hull, on_pass: Callable[[float], None], first: Integers | None = None) -> _NearestPoint:
    """Return the hull's nearest point to the origin, beginning with vertices that may be near it.

    It ends when the relative gap is at most `GAP`, when the combination's length is zero to rounding, or when rounding
    allows no further step. `on_pass` is called with the gap after every pass over all vertices.
    """
    active = _ActiveSet(hull.points.shape[1] * len(hull.classes))
    _work_through(active, hull, hull.price(active.direction)[1][:_POOL] if first is None else first)
    stalled = 0
    while True:
        values, vertices = hull.price(active.direction)
        chosen = np.array(active.vertices)
        # The sum and the length may be rounded: neither is a difference of larger numbers.
        upper = float(np.linalg.norm(active.weights @ hull.rows(chosen))) / float(active.weights.sum())
        lower = float(values.min()) / (float(np.linalg.norm(active.direction)) or math.inf)
        gap = 1.0 - lower / upper if upper > 0.0 else 0.0
        on_pass(gap)
        if gap <= GAP or upper <= _ZERO or stalled >= _STALLED_PASSES:
            return _NearestPoint(active.direction, chosen, active.weights, gap)
        worst = np.argpartition(values, _POOL)[:_POOL] if len(values) > _POOL else np.arange(len(values))
        before = active.level
        _work_through(active, hull, vertices[worst])
        stalled = stalled + 1 if before <= 0.0 or active.level / before >= 1.0 - 1e-13 else 0


def _work_through(active: "_ActiveSet", hull: Hull, pool: Integers) -> None:
    """Bring vertices of the pool in, the most violated first, until those left are much less violated."""
    rows, open_, first = hull.rows(pool), ~np.isin(pool, active.vertices), None
    while open_.any() and active.level > 0.0:
        violations = np.where(open_, 1.0 - rows @ active.direction / active.level, -np.inf)
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

    def __init__(self, dimension: int) -> None:
        self.vertices: list[int] = []
        self.weights: Floats = np.empty(0)
        self._q, self._r = np.empty((dimension + 1, 0)), np.empty((0, 0))
        self._project()

    def bring_in(self, row: Floats, vertex: int) -> list[int]:
        """Add a vertex, go to the best weights, and return the vertices that this drove out."""
        if not self._append(np.append(row, _LAST)):
            return [vertex]
        self.vertices.append(vertex)
        weights, gone = np.append(self.weights, 0.0), list[int]()
        while self.vertices:
            # The weights of the point nearest to the origin in the active vertices' span.
            target = self.weights = solve_triangular(self._r, self._q[-1], check_finite=False)
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
                q, r = qr_delete(self._q, self._r, at, which="col", check_finite=False)
                # A square Q stays one.
                self._q, self._r = q[:, : len(weights)], r[: len(weights)]
            weights = np.maximum(weights, 0.0)
        self._project()
        return gone

    def _project(self) -> None:
        """Set the residual of (0, …, 0, 1): its negative head is the direction, its end the products' common level."""
        residual = -self._q @ self._q[-1]
        residual[-1] += 1.0
        # Twice: where little is left, the first subtraction leaves mostly rounding.
        residual -= self._q @ (residual @ self._q)
        self.direction: Floats = -residual[:-1]
        self.level = float(residual[-1]) * _LAST

    def _append(self, column: Floats) -> bool:
        """Add a column to the factors, or return False if it is in the others' span, but for rounding."""
        count = len(self.vertices)
        if not count:
            self._q, self._r = qr(column[:, None], mode="economic", check_finite=False)
            return True
        # As many columns as there are coordinates span all others.
        if count == len(column):
            return False
        try:
            self._q, self._r = qr_insert(self._q, self._r, column, count, "col", _DEPENDENT, check_finite=False)
        except LinAlgError:
            return False
        return True
