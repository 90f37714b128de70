"""The largest weak and strong margin of a labelled data set (Definition 1), or proof that there is none.

Both margins are distances from the origin to convex hulls: one of vectors in R^(Kd) that hold x in block y and −x in
block i (weak), or one for each class, of the examples with those of other classes negated (strong). A solver only
proposes; what its vectors attain and how long its combinations are is measured afterwards, on all the data and on the
safe side. So "not separable" means that a combination is exactly zero. See docs/theory/separability.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from onebit.bounds import BOUNDS, Claim
from onebit.inputs import Floats, Integers, check_rows, dense
from onebit.kernels import Kernel, as_kernel
from onebit.labels import check_labels, classes_and_codes
from onebit.theory import certificates
from onebit.theory.certificates import Certificate, Examples, Kind, Separator
from onebit.theory.exact import vanishing_weights
from onebit.theory.nearest_point import GAP, Hull, nearest_point

_LONGEST = 1e307  # lengths of a few such rows together are floats still
_UNIT_BALL_SLACK = 1e-10  # what normalizing rows in floats adds to their length, with much to spare
_SETTLED = 1e-8  # two sides as near as this need no second attempt
# A share of the largest k(x, x) that is a few units of a float's last place: what is left then is rounding.
_ROUNDING = 1e-15
# How far L·Lᵀ may miss the kernel: far more than rounding does, far less than a kernel that is not positive definite.
_NEGATIVE = 1e-8
_BLOCK = 128  # rows that are worked on at a time, where each takes much memory
_COMPARED = 256  # so many examples are compared with the kernel itself; all of them would cost n² kernel values


class Progress(NamedTuple):
    """Where a computation stands: the share that is done, the problem in work, and its relative gap so far."""

    share: float
    problem: str
    gap: float


@dataclass(frozen=True)
class Margin:
    """The largest margins of a data set, each with the proofs of its two sides.

    Vectors are scaled to Σ‖wᵢ‖² = 1, one row per class in the order of `classes`. In a kernel's space row i holds the
    coefficients of wᵢ over the examples.
    """

    weak: float
    strong: float
    """The largest margins that were found; the vectors have them. 0.0 if none was."""
    weak_limit: float
    strong_limit: float
    """No weak, or strong, margin is larger. 0.0: the set is proved not to be weakly, or strongly, separable."""
    weak_vectors: Floats | None
    strong_vectors: Floats | None
    weak_certificate: Certificate
    """Why no weak margin is larger than `weak_limit`."""
    strong_certificates: tuple[Certificate, ...]
    """How near each class comes to the rest, in the order of `classes`; length 0.0: it is one of `mixed_classes`."""
    radius: float
    """The length of the longest example, in the kernel's space if there is one."""
    classes: npt.NDArray[Any]
    n_features: int
    kernel: Kernel | None

    @property
    def weak_gap(self) -> float:
        """The relative distance between `weak` and `weak_limit`; 0.0 also if there is provably no margin."""
        return _gap(self.weak, self.weak_limit)

    @property
    def strong_gap(self) -> float:
        """The same for the strong margin."""
        return _gap(self.strong, self.strong_limit)

    @property
    def weak_separator(self) -> Separator | None:
        """Why the weak margin is at least `weak`; None if none was found."""
        return self._separator("weak", self.weak_vectors, self.weak)

    @property
    def strong_separator(self) -> Separator | None:
        """Why the strong margin is at least `strong`; None if none was found."""
        return self._separator("strong", self.strong_vectors, self.strong)

    def _separator(self, kind: Kind, vectors: Floats | None, margin: float) -> Separator | None:
        return None if vectors is None else Separator(kind, self.classes, vectors, margin)

    @property
    def mixed_classes(self) -> list[Any]:
        """The classes that provably no hyperplane through the origin tells from all the rest."""
        lengths = [certificate.length for certificate in self.strong_certificates]
        return list(self.classes[np.equal(lengths, 0.0)].tolist())

    @property
    def promises(self) -> list[Claim]:
        """What Theorems 2, 4, 5, 10, 21 and Corollary 6 say about these data."""
        not_weak, not_strong = _why_silent("weak", self.weak_limit), _why_silent("strong", self.strong_limit)
        # Theorems read a float as the decimal that it is written as, which is within the next one.
        weak, strong = math.nextafter(self.weak, 0.0), math.nextafter(self.strong, 0.0)
        radius, K = math.nextafter(self.radius, math.inf), len(self.classes)
        theorem = "2" if self.kernel is None else "4"
        perceptron = _claim(theorem, not_strong, strong, n_classes=K, radius=radius)
        full_information = _claim("10", not_weak, weak, radius=radius)
        if self.kernel is not None:
            return [perceptron, full_information]
        # Theorem 5 is about the unit ball: dividing each row by its length gets there, at the price of a factor R in γ.
        is_inside = radius <= 1.0 + _UNIT_BALL_SLACK
        kernel, inside = ("Rational()", weak) if is_inside else ("Rational(normalize=True)", weak / radius)
        return [
            perceptron,
            _claim("5", not_weak, inside, kernel, n_classes=K),
            _claim("6", not_weak, inside, f"Algorithm 2 with {kernel}", n_classes=K),
            full_information,
            _claim("21", not_weak, weak, n_classes=K, radius=radius, dimension=self.n_features),
        ]


def _claim(theorem: str, silence: str, margin: float, binds: str | None = None, **numbers: Any) -> Claim:
    entry = BOUNDS[theorem]
    return entry.claim(binds, margin=margin, **numbers) if margin > 0.0 else entry.silence(silence, binds)


def _why_silent(kind: str, limit: float) -> str:
    if limit > 0.0:
        return f"no {kind} margin was found; it is at most {limit:.3g}"
    return f"the data are not {kind}ly separable"


def margin(
    X: Any,
    y: Any,
    kernel: Any = None,
    *,
    classes: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Margin:
    """Return the largest weak and strong margin of a labelled data set, in R^d or in a kernel's space.

    The cost depends on the number of conditions that hold with equality at the end, at most K·d, far more than on the
    number of examples. With a kernel, d is the numerical rank of the Gram matrix. Columns may have any units; when
    floats do not settle the matter, it is tried again with columns of similar size, and then in whole numbers.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The examples; sparse rows are made dense.
    y : array of shape (n,)
        Their labels, of at least two classes.
    kernel : None, Kernel or callable
        The space; None is R^d itself.
    classes : None, int or list
        All labels, or how many, if some have no example: such a class must still lose to (or reject) every example.
    on_progress : callable, optional
        Called with a `Progress` now and then.

    Examples
    --------
    >>> result = margin([[1, 0, 0], [0, 1, 0], [0, 0, 1]], ["red", "green", "blue"])
    >>> round(result.weak, 6), round(result.strong, 6)
    (0.707107, 0.666667)
    """
    kernel = as_kernel(kernel)
    rows = dense(check_rows(X))
    labels = check_labels(y, len(rows))
    names, codes = classes_and_codes(labels, classes)
    if len(names) < 2:
        raise ValueError(
            f"y must hold at least two classes to have a margin; got only {names.tolist()!r}. Pass classes= if some "
            "classes have no example"
        )
    largest = float(np.abs(rows).max())
    if kernel is None and largest * math.sqrt(rows.shape[1]) > _LONGEST:
        raise ValueError(f"X must have rows no longer than {_LONGEST:g}; it holds {largest!r}. Divide all of X by 1e10")
    report = on_progress or (lambda _progress: None)
    search = _Search(Examples.of(rows, codes, kernel), names, report)
    weak, strong = search.two_classes() if len(names) == 2 else search.many_classes()
    report(Progress(1.0, "done", max(_gap(weak.margin, weak.limit), _gap(strong.margin, strong.limit))))
    return Margin(
        weak=weak.margin,
        strong=strong.margin,
        weak_limit=weak.limit,
        strong_limit=strong.limit,
        # Vectors are shown if they attain something.
        weak_vectors=weak.vectors if weak.margin > 0.0 else None,
        strong_vectors=strong.vectors if strong.margin > 0.0 else None,
        weak_certificate=weak.certificates[0],
        strong_certificates=strong.certificates,
        radius=search.radius,
        classes=names,
        n_features=rows.shape[1],
        kernel=kernel,
    )


def _gap(margin: float, limit: float) -> float:
    return max(0.0, 1.0 - margin / limit) if limit > 0.0 else 0.0


class _Side(NamedTuple):
    """One of the two margins, or one hull: at least `margin`, by the vectors, at most `limit`, by the certificates."""

    margin: float
    limit: float
    vectors: Floats
    certificates: tuple[Certificate, ...]


@dataclass
class _Search:
    """One data set, its examples as points of a Euclidean space, and the search for its margins."""

    _examples: Examples
    _classes: npt.NDArray[Any]
    _on_progress: Callable[[Progress], None]

    def __post_init__(self) -> None:
        self._rows, self._codes, self._kernel = rows, _, _ = self._examples
        # Equal rows are found by comparing bits: a solver cannot tell such a pair from a tiny margin.
        self._conflict = self._examples.conflicting_pair()
        self._basis: Floats | None = None
        if self._kernel is not None:
            self.radius, self._points = _kernel_points(rows, self._kernel)
            return
        self.radius = certificates.longest(rows)
        self._points = np.ldexp(rows, -math.frexp(self.radius)[1])
        # The vectors of a solution lie in the span of the examples, which has fewer coordinates then.
        if rows.shape[1] > rows.shape[0]:
            basis, triangle = scipy.linalg.qr(self._points.T, mode="economic")
            self._points, self._basis = np.ascontiguousarray(triangle.T), basis.T

    def many_classes(self) -> tuple[_Side, _Side]:
        """Return the largest weak and strong margin of three classes or more."""
        K = len(self._classes)
        # the weak problem is one half of the progress bar, the K strong ones are the other.
        weak = self._solve(None, "weak", 0.0, 0.5)
        each = [self._solve(i, f"strong, class {self._classes[i]}", 0.5 + 0.5 * i / K, 0.5 / K) for i in range(K)]
        # Where a class's distance is δᵢ, the shortest wᵢ has length 1/(2δᵢ).
        lengths, limit = [Fraction(one.limit) for one in each], 0.0
        if all(lengths):
            limit = certificates.root_up(Fraction(4 / sum(1 / length**2 for length in lengths)))
        strong = _Side(0.0, limit, each[0].vectors, tuple(one.certificates[0] for one in each))
        least = min(one.margin for one in each)
        if least > 0.0:
            vectors = self._unit(np.concatenate([one.vectors * (least / one.margin) for one in each]))
            strong = strong._replace(margin=self._examples.attained("strong", vectors), vectors=vectors)
        if strong.margin > weak.margin:
            weak = weak._replace(margin=self._examples.attained("weak", strong.vectors), vectors=strong.vectors)
        # What separates strongly separates weakly with the same margin: neither side of the one may exceed the other's.
        return weak, strong._replace(margin=min(strong.margin, weak.margin), limit=min(strong.limit, weak.limit))

    def two_classes(self) -> tuple[_Side, _Side]:
        """Return both margins of two classes, which are one number: the vectors are w and −w."""
        found = self._solve(0, "weak and strong", 0.0, 1.0)
        examples, weights = found.certificates[0].examples, found.certificates[0].weights
        weak_certificate = self._certificate("weak", examples, 1 - self._codes[examples], weights)
        other = self._certificate("strong", examples, np.full(len(examples), 1), weights)
        vectors, margin = self._unit(np.concatenate([found.vectors, -found.vectors])), 0.0
        if found.margin > 0.0:
            margin = min(self._examples.attained("weak", vectors), self._examples.attained("strong", vectors))
        weak = _Side(margin, weak_certificate.length, vectors, (weak_certificate,))
        return weak, weak._replace(certificates=(*found.certificates, other))

    def _certificate(self, kind: Kind, examples: Integers, asked: Integers, weights: npt.NDArray[Any]) -> Certificate:
        length = self._examples.combined_length(kind, map(Fraction, weights.tolist()), examples, asked)
        return Certificate(kind, examples, self._classes[asked], weights, length)

    def _unit(self, vectors: Floats) -> Floats:
        """Return vectors divided by their length, all together."""
        vectors = vectors / (float(np.abs(vectors).max(initial=0.0)) or 1.0)
        support = np.flatnonzero(vectors.any(axis=0))
        some, products = vectors[:, support], vectors[:, support]
        if self._kernel is not None:
            products = some @ self._kernel.matrix(self._rows[support], self._rows[support])
        # Rounding can make the form of a short vector negative.
        length = math.sqrt(max(float(np.einsum("ij,ij->", products, some)), 0.0))
        return vectors / (length or 1.0)

    def _solve(self, strong_class: int | None, name: str, start: float, share: float) -> _Side:
        """Return the best of as many attempts as it takes for a hull's sides to meet, `share` of the whole search."""
        furthest = 0.0

        def report(gap: float) -> None:
            nonlocal furthest
            # the gap falls by factors, so its logarithm advances evenly.
            furthest = max(furthest, math.log(min(max(gap, GAP), 1.0)) / math.log(GAP))
            self._on_progress(Progress(round(start + share * furthest, 9), name, gap))

        codes, classes = self._codes, np.arange(len(self._classes))
        hull, own, factor = Hull("weak", self._points, codes, classes), codes, 1.0
        if strong_class is not None:
            hull = Hull("strong", self._points, codes, classes[strong_class : strong_class + 1])
            # A strong margin is twice what one class's products are at least.
            own, factor = np.where(codes == strong_class, 0, -1), 0.5
        examples = self._examples._replace(codes=own)
        tried: list[_Side] = []
        for vectors, vertices, weights in self._attempts(hull, report):
            unit, certificate = self._unit(vectors), self._certificate(hull.kind, *hull.conditions(vertices), weights)
            tried.append(_Side(examples.attained(hull.kind, unit) * factor, certificate.length, unit, (certificate,)))
            best, shortest = max(tried, key=lambda each: each.margin), min(tried, key=lambda each: each.limit)
            if best.margin >= (1.0 - _SETTLED) * shortest.limit:
                break
            zero = self._exact_zero(hull, vertices) if best.margin <= 0.0 else None
            if zero is not None:
                return best._replace(limit=0.0, certificates=(zero,))
        return best._replace(limit=shortest.limit, certificates=shortest.certificates)

    def _attempts(
        self, hull: Hull, report: Callable[[float], None]
    ) -> Iterator[tuple[Floats, Integers, npt.NDArray[Any]]]:
        """Yield vectors, vertices and their weights: of the points, then of columns of similar size."""
        # Two equal examples with different labels refute every margin, and no search is needed.
        conflict = hull.cancelling(*self._conflict) if self._conflict is not None else None
        if conflict is not None:
            yield np.zeros((1, self._rows.shape[1])), conflict, np.array([1, 1], dtype=object)
            return
        K = len(hull.classes)
        direction, vertices, weights, _ = nearest_point(hull, report)
        if self._kernel is not None:
            coefficients = np.zeros((len(self._rows), K))
            np.add.at(coefficients, hull.conditions(vertices)[0], hull.signs(vertices) * weights[:, None])
            yield coefficients.T, vertices, weights
            return
        vectors = direction.reshape(K, -1)
        yield vectors if self._basis is None else vectors @ self._basis, vertices, weights
        # Separability, unlike the margin, does not depend on the columns' units.
        exponents = np.frexp(np.abs(self._rows).max(axis=0))[1]
        similar = hull._replace(points=np.ldexp(self._rows, -exponents))
        direction, vertices, weights, _ = nearest_point(similar, report, vertices)
        yield np.ldexp(direction.reshape(K, -1), exponents.min() - exponents), vertices, weights

    def _exact_zero(self, hull: Hull, vertices: Integers) -> Certificate | None:
        """Return the certificate of length 0 over these vertices, if there is one."""
        if self._kernel is not None:
            return None
        # Every column in its own units, so that the whole numbers stay short.
        columns = [certificates.whole(column)[0] for column in hull._replace(points=self._rows).rows(vertices).T]
        weights = vanishing_weights(np.array(columns, dtype=object).T)
        if weights is None:
            return None
        certificate = self._certificate(hull.kind, *hull.conditions(vertices), np.array(weights, dtype=object))
        return certificate if certificate.length == 0.0 else None


def _kernel_points(rows: Floats, kernel: Kernel) -> tuple[float, Floats]:
    """Return the root of the largest k(x, x), and points no longer than 1 whose products are the kernel's over it."""
    left = np.concatenate([np.diagonal(kernel(part)) for part in np.split(rows, range(_BLOCK, len(rows), _BLOCK))])
    if not np.isfinite(left).all() or left.min() < 0.0:
        raise ValueError(f"kernel must have finite k(x, x) ≥ 0; {kernel!r} gives {left.min()!r}")
    largest, factor, count = float(left.max()), np.zeros((len(rows), 16)), 0
    # Pivoted Cholesky: as many columns as it takes until no more than rounding is left of k(x, x).
    while count < len(rows) and left.max() > _ROUNDING * largest:
        pivot = int(np.argmax(left))
        # Doubled when full: how many columns there will be depends on the kernel and is not known before.
        if count == factor.shape[1]:
            factor = np.concatenate([factor, np.zeros_like(factor)], axis=1)
        column = kernel.matrix(rows, rows[pivot : pivot + 1])[:, 0] - factor[:, :count] @ factor[pivot, :count]
        factor[:, count] = column / math.sqrt(left[pivot])
        left -= factor[:, count] ** 2
        # It is used up, whatever rounding leaves of it, and must not be chosen again.
        left[pivot] = 0.0
        count += 1
    factor = np.ascontiguousarray(factor[:, : max(count, 1)])
    some = np.unique(np.linspace(0, len(rows) - 1, _COMPARED).astype(int))
    error = np.abs(kernel.matrix(rows[some], rows[some]) - factor[some] @ factor[some].T).max()
    if not error <= _NEGATIVE * largest:
        # Which of the two it is cannot be seen: Gaussian(1) of rows of length 10⁷ errs as much.
        raise ValueError(
            f"kernel must be positive definite; {kernel!r} as computed is not, by {error:.3g}, on these rows. Where it "
            "is in theory, its values have lost their digits: scale or centre X"
        )
    return math.sqrt(largest), factor / (math.sqrt(largest) or 1.0)
