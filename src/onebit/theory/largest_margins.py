"""From nearest points to margins: the one hull of weak separability, and the K hulls of strong separability.

A solver only proposes. What vectors attain and how long combinations are is measured afterwards, on all the data and on
the safe side (`onebit.theory.evidence`). When the two sides do not meet, R^d is tried again with more effort: is the
combination exactly zero? What is found with columns of similar size, and what with twice the digits?
See `onebit.theory.separability` for the definitions.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Integers
from onebit.kernels import Kernel
from onebit.theory.certificates import Certificate
from onebit.theory.coordinates import Coordinates, KernelCoordinates
from onebit.theory.evidence import Kind, attained, combined_length
from onebit.theory.minimum_norm import NearestPoint, Vertices, nearest_point
from onebit.theory.signed_examples import AgainstRest, AgainstRivals, rivalries, rivalry_codes
from onebit.theory.whole_numbers import root_up, vanishing_weights, whole

# Three digits beyond the six that are printed.
_GAP = 1e-9
# Two sides as near as this need no second attempt.
_SETTLED = 1e-8
# A combination longer than this share of the radius is not zero, where shares and lengths are floats of full precision.
_PERHAPS_ZERO = 1e-6
_ANY_LENGTH = 2.0**-1000
# Coordinates times active vertices, squared, beyond which twice the digits would take more than some seconds.
_MOST_WORK = 1e7


class Progress(NamedTuple):
    """Where a computation stands, for a progress bar."""

    share: float
    """How much is done, from 0 to 1; it never falls."""
    problem: str
    """What is being solved: "weak", or "strong" and the class; with two classes both are one problem."""
    gap: float
    """The problem's relative gap so far."""


class Task(NamedTuple):
    """One data set, and whom to tell about progress."""

    rows: Floats
    codes: Integers
    classes: npt.NDArray[Any]
    kernel: Kernel | None
    coordinates: Coordinates
    conflict: tuple[int, int] | None
    """Two equal examples with different labels."""
    on_progress: Callable[[Progress], None]

    def attained(self, kind: Kind, vectors: Floats) -> float:
        """Return the margin that vectors certainly have, one for each class."""
        return attained(kind, vectors, self.rows, self.codes, self.kernel)

    def certificate(self, kind: Kind, examples: Integers, asked: Integers, weights: npt.NDArray[Any]) -> Certificate:
        """Return the certificate that these weights make, with its length."""
        own = self.codes[examples]
        length = combined_length(kind, weights, self.rows[examples], own, asked, self.kernel)
        return Certificate(kind, examples, self.classes[asked], weights, length)

    def unit(self, vectors: Floats) -> Floats:
        """Return vectors divided by their length, all together."""
        largest = float(np.abs(vectors).max(initial=0.0))
        vectors = vectors / largest if largest > 0.0 else vectors
        length = math.sqrt(float(self.coordinates.squares(vectors).sum()))
        return vectors / length if length > 0.0 else vectors


class Side(NamedTuple):
    """One of the two margins: no less than `margin`, by the vectors, and no more than `limit`, by the certificates."""

    margin: float
    limit: float
    vectors: Floats | None
    certificates: tuple[Certificate, ...]


class _Solved(NamedTuple):
    """The best vectors and the shortest combination of one hull."""

    vectors: Floats
    attained: float
    certificate: Certificate


class _Problem(Protocol):
    """One hull: which conditions are its vertices, and what vectors of it attain."""

    name: str

    def hull(self, points: Floats) -> Vertices:
        """Return the hull of examples at these points."""
        ...

    def conditions(self, codes: Integers) -> tuple[Integers, Integers]:
        """Return the example and the class of vertices."""
        ...

    def pair(self, a: int, b: int) -> Integers | None:
        """Return the vertices of two equal examples with different labels if they cancel each other."""
        ...

    def coefficients(self, codes: Integers, weights: Floats) -> Floats:
        """Return a combination's coefficients over the examples, one row for each vector."""
        ...

    def certificate(self, codes: Integers, weights: npt.NDArray[Any]) -> Certificate:
        """Return the certificate of a combination."""
        ...

    def attained(self, vectors: Floats) -> float:
        """Return what vectors of length 1 attain: the hull is no nearer."""
        ...


class _Weak:
    """All conditions of weak separability."""

    name = "weak"

    def __init__(self, task: Task) -> None:
        self._task = task

    def hull(self, points: Floats) -> Vertices:
        return AgainstRivals(points, self._task.codes, len(self._task.classes))

    def conditions(self, codes: Integers) -> tuple[Integers, Integers]:
        return rivalries(codes, len(self._task.classes))

    def pair(self, a: int, b: int) -> Integers | None:
        examples = np.array([a, b])
        return rivalry_codes(examples, self._task.codes[examples[::-1]], len(self._task.classes))

    def coefficients(self, codes: Integers, weights: Floats) -> Floats:
        examples, rivals = self.conditions(codes)
        coefficients = np.zeros((len(self._task.classes), len(self._task.codes)))
        np.add.at(coefficients, (self._task.codes[examples], examples), weights)
        np.add.at(coefficients, (rivals, examples), -weights)
        return coefficients

    def certificate(self, codes: Integers, weights: npt.NDArray[Any]) -> Certificate:
        return self._task.certificate("weak", *self.conditions(codes), weights)

    def attained(self, vectors: Floats) -> float:
        return self._task.attained("weak", vectors)


class _OneClass:
    """The conditions of strong separability on one class's vector."""

    def __init__(self, task: Task, i: int) -> None:
        self._task, self._class = task, i
        self._is_own = task.codes == i
        self.name = "weak and strong" if len(task.classes) == 2 else f"strong, class {task.classes[i]}"

    def hull(self, points: Floats) -> Vertices:
        return AgainstRest(points, np.where(self._is_own, 1.0, -1.0))

    def conditions(self, codes: Integers) -> tuple[Integers, Integers]:
        return codes, np.full(len(codes), self._class)

    def pair(self, a: int, b: int) -> Integers | None:
        return np.array([a, b]) if self._is_own[a] != self._is_own[b] else None

    def coefficients(self, codes: Integers, weights: Floats) -> Floats:
        coefficients = np.zeros((1, len(self._is_own)))
        coefficients[0, codes] = np.where(self._is_own[codes], weights, -weights)
        return coefficients

    def certificate(self, codes: Integers, weights: npt.NDArray[Any]) -> Certificate:
        return self._task.certificate("strong", *self.conditions(codes), weights)

    def attained(self, vectors: Floats) -> float:
        own = np.where(self._is_own, 0, -1)
        # A margin is twice what one class's products are at least.
        return 0.5 * attained("strong", vectors, self._task.rows, own, self._task.kernel)


def largest_margins(task: Task) -> tuple[Side, Side]:
    """Return the largest weak and the largest strong margin."""
    K = len(task.classes)
    if K == 2:
        return _two_classes(task)
    # The weak problem is one half of the progress bar, the K strong ones are the other.
    found = _solve(task, _Weak(task), 0.0, 0.5)
    weak = Side(found.attained, found.certificate.length, found.vectors, (found.certificate,))
    classes = [_solve(task, _OneClass(task, i), 0.5 + 0.5 * i / K, 0.5 / K) for i in range(K)]
    strong = _strong(task, classes)
    if strong.vectors is not None and strong.margin > weak.margin:
        weak = weak._replace(margin=task.attained("weak", strong.vectors), vectors=strong.vectors)
    # What separates strongly separates weakly with the same margin, so neither side of the one may exceed the other's.
    strong = strong._replace(margin=min(strong.margin, weak.margin), limit=min(strong.limit, weak.limit))
    return _without_idle_vectors(weak), _without_idle_vectors(strong)


def _two_classes(task: Task) -> tuple[Side, Side]:
    """Return both margins of two classes, which are one number: the vectors are w and −w."""
    found = _solve(task, _OneClass(task, 0), 0.0, 1.0)
    examples, weights = found.certificate.examples, found.certificate.weights
    weak_certificate = task.certificate("weak", examples, 1 - task.codes[examples], weights)
    other = task.certificate("strong", examples, np.full(len(examples), 1), weights)
    vectors = task.unit(np.concatenate([found.vectors, -found.vectors]))
    margin = min(task.attained("weak", vectors), task.attained("strong", vectors)) if found.attained > 0.0 else 0.0
    weak = Side(margin, weak_certificate.length, vectors, (weak_certificate,))
    strong = weak._replace(certificates=(found.certificate, other))
    return _without_idle_vectors(weak), _without_idle_vectors(strong)


def _strong(task: Task, classes: list[_Solved]) -> Side:
    """Return the strong margin from each class's distance δᵢ: the shortest wᵢ has length 1/(2δᵢ)."""
    certificates = tuple(each.certificate for each in classes)
    lengths = [Fraction(certificate.length) for certificate in certificates]
    limit = root_up(4 / sum((1 / length**2 for length in lengths), Fraction(0))) if all(lengths) else 0.0
    if min(each.attained for each in classes) <= 0.0:
        return Side(0.0, limit, None, certificates)
    least = min(each.attained for each in classes)
    vectors = task.unit(np.concatenate([each.vectors * (least / each.attained) for each in classes]))
    return Side(task.attained("strong", vectors), limit, vectors, certificates)


def _without_idle_vectors(side: Side) -> Side:
    """Return a side whose vectors are those that attain something."""
    return side if side.margin > 0.0 else side._replace(vectors=None)


def _solve(task: Task, problem: _Problem, start: float, share: float) -> _Solved:
    """Return the best of as many attempts as it takes for the two sides to meet."""
    best: _Solved | None = None
    for vectors, codes, weights in _attempts(task, problem, start, share):
        unit = task.unit(vectors)
        found = _Solved(unit, problem.attained(unit), problem.certificate(codes, weights))
        best = found if best is None else _better(best, found)
        if best.attained >= (1.0 - _SETTLED) * best.certificate.length:
            break
        if best.attained <= 0.0 and found.certificate.length <= max(
            _PERHAPS_ZERO * task.coordinates.radius, _ANY_LENGTH
        ):
            zero = _exact_zero(task, problem, codes)
            if zero is not None:
                return best._replace(certificate=zero)
    assert best is not None  # there is always a first attempt
    return best


def _better(one: _Solved, other: _Solved) -> _Solved:
    vectors = max(one, other, key=lambda each: each.attained)
    return vectors._replace(certificate=min(one.certificate, other.certificate, key=lambda each: each.length))


def _attempts(
    task: Task, problem: _Problem, start: float, share: float
) -> Iterator[tuple[Floats, Integers, npt.NDArray[Any]]]:
    """Yield vectors, vertices and their weights, each time from more work.

    The problem is `share` of the whole task, and `start` of it was done before.
    """
    furthest = 0.0

    def report(gap: float) -> None:
        nonlocal furthest
        # The gap falls by factors, so its logarithm advances evenly.
        furthest = max(furthest, math.log(min(max(gap, _GAP), 1.0)) / math.log(_GAP))
        task.on_progress(Progress(round(start + share * furthest, 9), problem.name, gap))

    # Two equal examples with different labels refute every margin, and no hull need be looked at.
    conflict = problem.pair(*task.conflict) if task.conflict is not None else None
    if conflict is not None:
        yield np.zeros((1, task.rows.shape[1])), conflict, np.array([1, 1], dtype=object)
        return
    coordinates = task.coordinates
    hull = problem.hull(coordinates.points)
    point = nearest_point(hull, gap=_GAP, on_pass=report)
    coefficients = problem.coefficients(point.codes, point.weights)
    yield coordinates.vectors(_by_class(point, coordinates.points), coefficients), point.codes, point.weights
    if isinstance(coordinates, KernelCoordinates):
        return
    # Separability, unlike the margin, does not depend on the columns' units.
    own, similar = np.full(task.rows.shape[1], math.frexp(coordinates.radius)[1]), _column_sizes(task.rows)
    is_small = hull.dimension * len(point.codes) ** 2 <= _MOST_WORK
    for exponents, pairs in ((similar, False), (own, True), (similar, True)) if is_small else ((similar, False),):
        points = np.ldexp(task.rows, -exponents)
        point = nearest_point(problem.hull(points), gap=_GAP, on_pass=report, pairs=pairs, first=point.codes)
        weights = _as_fractions(point.weights) if pairs else point.weights
        yield np.ldexp(_by_class(point, points), exponents.min() - exponents), point.codes, weights


def _as_fractions(pairs: Floats) -> npt.NDArray[np.object_]:
    return np.array([Fraction(high) + Fraction(low) for high, low in pairs.tolist()], dtype=object)


def _column_sizes(rows: Floats) -> npt.NDArray[np.intc]:
    """Return the powers of two that columns are divided by to hold numbers up to 1, exactly."""
    sizes: npt.NDArray[np.intc] = np.frexp(np.abs(rows).max(axis=0))[1]
    return sizes


def _by_class(point: NearestPoint, points: Floats) -> Floats:
    return point.direction.reshape(-1, points.shape[1])


def _exact_zero(task: Task, problem: _Problem, codes: Integers) -> Certificate | None:
    """Return the certificate of length 0 over these vertices, if there is one."""
    if task.kernel is not None:
        return None
    vertices = problem.hull(np.ldexp(task.rows, -_column_sizes(task.rows))).rows(codes)
    # Every column in its own units, so that the whole numbers stay short.
    weights = vanishing_weights(np.array([whole(column)[0] for column in vertices.T], dtype=object).T)
    if weights is None:
        return None
    certificate = problem.certificate(codes, np.array(weights, dtype=object))
    return certificate if certificate.length == 0.0 else None
