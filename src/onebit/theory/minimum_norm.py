"""The point of a convex hull nearest to the origin: every margin in this package is such a distance.

For signed examples z₁…z_N of length at most 1 the largest margin of a unit vector, max_w min_j ⟨w, z_j⟩, equals the
distance δ from the origin to their convex hull. It is found as a non-negative least squares problem,

    minimize ‖Σ uⱼzⱼ‖² + c²(1/c − Σ uⱼ)²  over u ≥ 0,

whose solution is the nearest point's weights up to scale, by the active-set method of Lawson and Hanson (1974, Chapter
23; the reduction is their "least distance programming"). The method keeps the few vertices with uⱼ > 0 and the QR
factors of their matrix. All N vertices are priced only now and then; between two such passes the worst of them are
worked through. Every pass gives both sides of the answer: a direction, whose worst product over *all* vertices bounds δ
from below, and a convex combination, whose length bounds it from above.

The arithmetic is that of floats, or of pairs of floats (`onebit.theory.double_double`), which see distances down to
10⁻²⁰ and cost some twenty times as much.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from onebit.engine.jit import jit
from onebit.inputs import Floats, Integers
from onebit.theory import double_double

# The last coordinate c of every vertex. Distances well below it still show in the residual, which is about (δ/c)².
_LAST = 1e-3
_LAST_OF_PAIRS = 1e-10
# Vertices worked through between two passes over all of them: the worst stay among the worst for a while.
_POOL = 256
# A pool is done when the worst of it is ten times less violated than at first: then a pass over all pays.
_POOL_SHARE = 0.1
# A vertex so near to the span of the active ones, relative to its length, would make the triangle singular.
_DEPENDENT = 1e-13
_DEPENDENT_PAIRS = 1e-28
# Vertices have length about 1, so a combination as short as this is zero but for rounding.
_ZERO = 1e-12
_ZERO_OF_PAIRS = 1e-26
# One pass can be held up by rounding; three in a row mean that no further step is possible.
_STALLED_PASSES = 3


class Vertices(Protocol):
    """The points of a hull, named by whole numbers (codes); none is longer than a small multiple of 1."""

    dimension: int

    def shortest(self) -> int:
        """Return the code of a vertex of least length."""
        ...

    def price(self, direction: Floats) -> tuple[Floats, Integers]:
        """Return, in groups that cover all vertices, the smallest product with the direction and its vertex's code."""
        ...

    def price_pairs(self, direction: Floats) -> tuple[Floats, Integers]:
        """Return the same for a direction of pairs."""
        ...

    def rows(self, codes: Integers) -> Floats:
        """Return the vertices with these codes, one per row."""
        ...


class NearestPoint(NamedTuple):
    """Both sides of the answer: `lower` ≤ δ ≤ `upper`."""

    direction: Floats
    """Any positive multiple of the best vector w."""
    codes: Integers
    weights: Floats
    """Non-negative: the nearest point is Σ weights·vertices / Σ weights. Pairs have a last axis of two."""
    lower: float
    """The worst product of the unit direction with a vertex; not positive if the direction does not separate."""
    upper: float
    """The length of the combination."""

    @property
    def gap(self) -> float:
        """How far apart the two sides are, relative to the upper one."""
        return 1.0 - self.lower / self.upper if self.upper > 0.0 else 0.0


def nearest_point(
    vertices: Vertices,
    *,
    gap: float = 1e-9,
    on_pass: Callable[[float], None] | None = None,
    pairs: bool = False,
    first: Integers | None = None,
) -> NearestPoint:
    """Return the hull's nearest point to the origin.

    It ends when the relative gap is at most `gap`, when the combination's length is zero to rounding, or when rounding
    allows no further step; the caller reads from the result which of them it was.

    Parameters
    ----------
    vertices : Vertices
        The hull's points, of length about 1 at most.
    gap : float
        The relative gap at which the answer is good enough.
    on_pass : callable, optional
        Called with the relative gap after every pass over all the vertices.
    pairs : bool
        Whether to calculate with pairs of floats.
    first : array, optional
        Codes of vertices to begin with.

    References
    ----------
    Lawson, Hanson (1974). Solving Least Squares Problems. Prentice-Hall. Chapter 23.
    Wolfe (1976). Finding the nearest point in a polytope. Mathematical Programming.
    """
    active = _PairedActiveSet(vertices.dimension) if pairs else _ActiveSet(vertices.dimension)
    first = np.array([vertices.shortest()]) if first is None else first
    _work_through(active, vertices.rows(first), first, gap)
    stalled = 0
    while True:
        values, codes = active.price(vertices)
        point = active.both_sides(vertices, float(values.min()))
        if on_pass is not None:
            on_pass(point.gap)
        if point.gap <= gap or point.upper <= active.zero or stalled >= _STALLED_PASSES:
            return point
        worst = np.argpartition(values, _POOL)[:_POOL] if len(values) > _POOL else np.arange(len(values))
        before = active.level
        _work_through(active, vertices.rows(codes[worst]), codes[worst], gap)
        stalled = stalled + 1 if active.level >= before * (1.0 - 1e-13) else 0


def _work_through(active: "_ActiveSet", rows: Floats, codes: Integers, gap: float) -> None:
    """Bring vertices of the pool in, the most violated first, until those left are much less violated."""
    open_ = ~np.isin(codes, active.codes)
    first = None
    while open_.any() and active.level > 0.0:
        violations = np.where(open_, 1.0 - active.products(rows) / active.level, -np.inf)
        worst = int(np.argmax(violations))
        first = violations[worst] if first is None else first
        if violations[worst] <= max(0.1 * gap, _POOL_SHARE * first):
            return
        open_[worst] = False
        before = active.level
        gone = active.bring_in(rows[worst], int(codes[worst]))
        # Vertices come back only while the distance falls; otherwise rounding could let them take turns for ever.
        if active.level < before:
            open_ |= np.isin(codes, gone) & (codes != codes[worst])


class _ActiveSet:
    """The vertices of positive weight, with the QR factors of the matrix whose columns are (z, c)."""

    zero = _ZERO
    _last = _LAST
    _dependent = _DEPENDENT
    _shape: tuple[int, ...] = ()
    """What follows the axes of an array: nothing for floats, 2 for pairs."""

    def __init__(self, dimension: int) -> None:
        # Doubled when full; few problems end with more active vertices.
        size = min(dimension + 1, 64)
        self.codes: list[int] = []
        self.weights = np.empty(0)
        self._q = np.zeros((size, dimension + 1, *self._shape))  # row j is the j-th orthonormal vector
        self._r = np.zeros((size, size, *self._shape))
        self._project()

    def price(self, vertices: Vertices) -> tuple[Floats, Integers]:
        """Return what `Vertices.price` says of the direction."""
        return vertices.price(self.direction)

    def products(self, rows: Floats) -> Floats:
        """Return the products of vertices with the direction."""
        return rows @ self.direction

    def both_sides(self, vertices: Vertices, worst: float) -> NearestPoint:
        """Return the direction and the combination; `worst` is the direction's least product."""
        codes, weights = np.array(self.codes), self.weights / self.weights.sum()
        upper = float(np.linalg.norm(weights @ vertices.rows(codes)))
        length = float(np.linalg.norm(self.direction))
        return NearestPoint(self.direction, codes, weights, worst / length if length > 0.0 else 0.0, upper)

    def _project(self) -> None:
        """Set the residual of (0, …, 0, 1): its negative head is the direction, its end the products' common level."""
        q = self._q[: len(self.codes)]
        residual = -q[:, -1] @ q
        residual[-1] += 1.0
        # Twice: where little is left, the first subtraction leaves mostly rounding.
        residual -= (q @ residual) @ q
        self.direction = -residual[:-1]
        self.level = float(residual[-1]) * self._last

    def bring_in(self, row: Floats, code: int) -> list[int]:
        """Add a vertex, go to the best weights, and return the codes of the vertices this drove out."""
        if not self._append(np.append(row, self._last)):
            return [code]
        self.codes.append(code)
        self.weights = np.append(self.weights, 0.0)
        gone: list[int] = []
        while self.codes:
            target = self._best_weights()
            # Lawson and Hanson's inner loop: towards the target only as far as no weight falls below zero.
            falling = np.flatnonzero(target <= 0.0)
            if not len(falling):
                self.weights = target
                break
            falls = self.weights[falling] - target[falling]
            steps = np.divide(self.weights[falling], falls, out=np.zeros(len(falling)), where=falls > 0.0)
            step = float(steps.min())
            self.weights += step * (target - self.weights)
            for at in falling[steps <= step][::-1]:
                gone.append(self.codes.pop(int(at)))
                self.weights = np.delete(self.weights, at)
                self._delete(int(at))
            self.weights = np.maximum(self.weights, 0.0)
        self._project()
        return gone

    def _best_weights(self) -> Floats:
        """Return the weights of the point nearest to the origin in the active vertices' span."""
        count = len(self.codes)
        target = np.empty(count)
        _back_substitute(self._r, self._q[:count, -1].copy(), target)
        return target

    def _delete(self, at: int) -> None:
        """Remove one column from the factors; its code is gone already."""
        _delete_column(self._q, self._r, at, len(self.codes))

    def _append(self, column: Floats) -> bool:
        """Add a column to the factors, or return False if it depends on the others."""
        count = len(self.codes)
        if count == len(self._q):
            self._grow()
        q = self._q[:count]
        products = q @ column
        rest = column - products @ q
        # Twice, as in `_project`: a column that is nearly dependent must not pass because of rounding.
        again = q @ rest
        rest -= again @ q
        length = float(np.linalg.norm(rest))
        if length <= self._dependent * float(np.linalg.norm(column)):
            return False
        self._r[:count, count] = products + again
        self._r[count, count] = length
        self._q[count] = rest / length
        return True

    def _grow(self) -> None:
        count, width = self._q.shape[:2]
        size = min(2 * count, width)
        q, r = np.zeros((size, *self._q.shape[1:])), np.zeros((size, size, *self._shape))
        q[:count], r[:count, :count] = self._q, self._r
        self._q, self._r = q, r


class _PairedActiveSet(_ActiveSet):
    """The same with twice the digits: the factors, the direction and the best weights are pairs."""

    zero = _ZERO_OF_PAIRS
    _last = _LAST_OF_PAIRS
    _dependent = _DEPENDENT_PAIRS
    _shape = (2,)

    def __init__(self, dimension: int) -> None:
        self._pairs = np.empty((0, 2))
        super().__init__(dimension)

    def price(self, vertices: Vertices) -> tuple[Floats, Integers]:
        return vertices.price_pairs(self._direction)

    def products(self, rows: Floats) -> Floats:
        products = np.empty((len(rows), 2))
        double_double.products_with(rows, self._direction, products)
        return products[:, 0]

    def both_sides(self, vertices: Vertices, worst: float) -> NearestPoint:
        codes = np.array(self.codes)
        combination = np.empty((vertices.dimension, 2))
        double_double.products_with(np.ascontiguousarray(vertices.rows(codes).T), self._pairs, combination)
        # The sum and the length may be rounded: neither is a difference of larger numbers.
        upper = float(np.linalg.norm(combination[:, 0])) / float(self._pairs[:, 0].sum())
        length = float(np.linalg.norm(self.direction))
        return NearestPoint(self.direction, codes, self._pairs, worst / length if length > 0.0 else 0.0, upper)

    def _project(self) -> None:
        count = len(self.codes)
        residual = np.zeros((self._q.shape[1], 2))
        residual[-1, 0] = 1.0
        for _ in range(2):
            double_double.project_out(residual, self._q, count, np.zeros((count, 2)))
        self._direction, self.direction = -residual[:-1], -residual[:-1, 0]
        self.level = float(residual[-1, 0]) * self._last

    def _best_weights(self) -> Floats:
        count = len(self.codes)
        self._pairs = np.empty((count, 2))
        double_double.back_substitute(self._r, self._q[:count, -1].copy(), self._pairs)
        return self._pairs[:, 0].copy()

    def _delete(self, at: int) -> None:
        double_double.delete_column(self._q, self._r, at, len(self.codes))

    def _append(self, column: Floats) -> bool:
        count = len(self.codes)
        if count == len(self._q):
            self._grow()
        rest, products, length = np.column_stack([column, np.zeros(len(column))]), np.zeros((count, 2)), np.empty(2)
        for _ in range(2):
            double_double.project_out(rest, self._q, count, products)
        double_double.normalize(rest, length)
        if length[0] <= self._dependent * float(np.linalg.norm(column)):
            return False
        self._r[:count, count], self._r[count, count], self._q[count] = products, length, rest
        return True


@jit
def _back_substitute(r: Floats, right: Floats, solution: Floats) -> None:
    """Solve r·solution = right for the leading upper triangle of r."""
    for i in range(solution.shape[0] - 1, -1, -1):
        value = right[i]
        for j in range(i + 1, solution.shape[0]):
            value -= r[i, j] * solution[j]
        solution[i] = value / r[i, i]


@jit
def _delete_column(q: Floats, r: Floats, at: int, count: int) -> None:
    """Remove a column from QR factors and restore the triangle by rotations; `count` columns remain."""
    for i in range(count + 1):
        for j in range(at, count):
            r[i, j] = r[i, j + 1]
        r[i, count] = 0.0
    for j in range(at, count):
        length = np.hypot(r[j, j], r[j + 1, j])
        cosine, sine = r[j, j] / length, r[j + 1, j] / length
        for k in range(j, count):
            upper, lower = r[j, k], r[j + 1, k]
            r[j, k] = cosine * upper + sine * lower
            r[j + 1, k] = cosine * lower - sine * upper
        r[j + 1, j] = 0.0
        for k in range(q.shape[1]):
            upper, lower = q[j, k], q[j + 1, k]
            q[j, k] = cosine * upper + sine * lower
            q[j + 1, k] = cosine * lower - sine * upper
