"""From nearest points to margins: the one hull of weak separability, and the K hulls of strong separability.

Everything here is in units of the radius. See `onebit.theory.separability` for the definitions.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Integers
from onebit.theory.certificates import KERNEL_TOLERANCE, TOLERANCE, Certificate
from onebit.theory.coordinates import Coordinates
from onebit.theory.minimum_norm import NearestPoint, Vertices, nearest_point
from onebit.theory.signed_examples import AgainstRest, AgainstRivals

# Three digits beyond the six that are printed.
_GAP = 1e-9


class Progress(NamedTuple):
    """Where a computation stands, for a progress bar."""

    share: float
    """How much is done, from 0 to 1; it never falls."""
    problem: str
    """What is being solved: "weak", or "strong" and the class."""
    gap: float
    """The problem's relative gap so far."""


class Task(NamedTuple):
    """One data set, and whom to tell about progress."""

    coordinates: Coordinates
    codes: Integers
    classes: npt.NDArray[Any]
    conflict: tuple[int, int] | None
    """Two equal examples with different labels."""
    on_progress: Callable[[Progress], None]

    def solve(self, hull: Vertices, problem: str, start: float, share: float) -> NearestPoint:
        """Return the hull's nearest point; this problem is `share` of the whole, and `start` of it was done before."""
        furthest = 0.0

        def report(gap: float) -> None:
            nonlocal furthest
            # The gap falls by factors, so its logarithm advances evenly.
            furthest = max(furthest, math.log(min(max(gap, _GAP), 1.0)) / math.log(_GAP))
            self.on_progress(Progress(round(start + share * furthest, 9), problem, gap))

        return nearest_point(hull, gap=_GAP, on_pass=report)

    def length(self, point: NearestPoint, coefficients: Floats) -> float:
        """Return the nearest point's length, which no margin exceeds; in a kernel's space by the kernel itself."""
        # The points stand for the examples up to rounding; in a kernel's space the kernel decides.
        if self.coordinates.in_kernel_space and self.coordinates.radius > 0.0:
            return math.sqrt(float(self.coordinates.squares(coefficients).sum())) / self.coordinates.radius
        return point.upper

    def counts_as_zero(self, length: float) -> bool:
        """Return whether a combination is so short that it proves that there is no margin."""
        return length <= (KERNEL_TOLERANCE if self.coordinates.in_kernel_space else TOLERANCE)


class Side(NamedTuple):
    """One of the two margins, or the proofs that there is none."""

    margin: float
    vectors: Floats | None
    certificates: tuple[Certificate, ...]
    gap: float


class _ClassVector(NamedTuple):
    """One class's vector for strong separability, its worst signed product, and bounds on the distance."""

    vector: Floats
    worst: float
    lower: float
    upper: float


def largest_weak(task: Task) -> Side:
    """Return the largest weak margin: the distance of one hull."""
    K, coordinates = len(task.classes), task.coordinates
    # Two equal examples with different labels refute every margin, and no hull need be looked at.
    if task.conflict is not None:
        pair = np.array(task.conflict)
        rivals = task.classes[task.codes[pair[::-1]]]
        return Side(0.0, None, (Certificate("weak", pair, rivals, np.full(2, 0.5), 0.0),), 0.0)
    hull = AgainstRivals(coordinates.points, task.codes, K)
    # The weak problem is one half of the progress bar, the K strong ones are the other.
    point = task.solve(hull, "weak", 0.0, 0.5)
    examples, rivals = hull.conditions(point.codes)
    coefficients = np.zeros((K, len(task.codes)))
    np.add.at(coefficients, (task.codes[examples], examples), point.weights)
    np.add.at(coefficients, (rivals, examples), -point.weights)
    upper = task.length(point, coefficients)
    if task.counts_as_zero(upper):
        residual = upper * coordinates.radius
        return Side(0.0, None, (Certificate("weak", examples, task.classes[rivals], point.weights, residual),), 0.0)
    vectors = coordinates.vectors(point.direction.reshape(K, -1), coefficients)
    # Judged on all the data: the margin that is returned is attained, whatever the solver believed.
    worst = float(hull.leads(coordinates.scores(vectors))[0].min())
    length = math.sqrt(float(coordinates.squares(vectors).sum()))
    attained = _check_attained(worst / length, upper, "weak")
    return Side(attained, vectors / length, (), max(0.0, 1.0 - attained / upper))


def largest_strong(task: Task) -> Side:
    """Return the largest strong margin: each class's shortest vector with signed products of at least ½."""
    found = [_one_class(task, i) for i in range(len(task.classes))]
    certificates = tuple(each for each in found if isinstance(each, Certificate))
    if certificates:
        return Side(0.0, None, certificates, 0.0)
    solved = [each for each in found if isinstance(each, _ClassVector)]
    # The shortest wᵢ with products of at least ½ has length 1/(2δᵢ); all are then scaled to Σ‖wᵢ‖² = 1.
    attained = 2.0 / math.sqrt(sum(each.lower**-2 for each in solved))
    bound = 2.0 / math.sqrt(sum(each.upper**-2 for each in solved))
    vectors = attained * np.array([each.vector / (2.0 * each.worst) for each in solved])
    return Side(attained, vectors, (), max(0.0, 1.0 - attained / bound))


def _one_class(task: Task, i: int) -> _ClassVector | Certificate:
    """Return the best vector that tells one class from the rest, or the proof that there is none."""
    K, coordinates, label = len(task.classes), task.coordinates, task.classes[i]
    signs = np.where(task.codes == i, 1.0, -1.0)
    if task.conflict is not None and signs[task.conflict[0]] != signs[task.conflict[1]]:
        return Certificate("strong", np.array(task.conflict), np.array([label] * 2), np.full(2, 0.5), 0.0)
    problem = f"strong, class {label}"
    point = task.solve(AgainstRest(coordinates.points, signs), problem, 0.5 + 0.5 * i / K, 0.5 / K)
    coefficients = np.zeros((1, len(signs)))
    coefficients[0, point.codes] = point.weights * signs[point.codes]
    upper = task.length(point, coefficients)
    if task.counts_as_zero(upper):
        labels = np.array([label] * len(point.codes))
        return Certificate("strong", point.codes, labels, point.weights, upper * coordinates.radius)
    vector = coordinates.vectors(point.direction[None], coefficients)
    worst = float((signs * coordinates.scores(vector)[:, 0]).min())
    length = math.sqrt(float(coordinates.squares(vector)[0]))
    return _ClassVector(vector[0], worst, _check_attained(worst / length, upper, problem), upper)


def _check_attained(attained: float, upper: float, problem: str) -> float:
    if not attained > 0.0:
        raise ArithmeticError(
            f"the {problem} problem is too badly conditioned to decide: the margin is at most {upper:.3g} of the "
            "radius, but no vector with a positive one was found. Rescale the features to similar sizes, or remove "
            "near-duplicates"
        )
    return attained
