"""Proofs of both sides of a margin, and checks of them that are independent of the solver.

Definition 1 asks that a number be at least γ (weak) or γ/2 (strong) for every example t and class i:

    weak:    ⟨w_y − w_i, x⟩ for i ≠ y = y_t;
    strong:  ⟨w_i, x⟩ for i = y_t, and −⟨w_i, x⟩ for i ≠ y_t.

A separator is vectors that do it. A certificate is a weighted mean of the conditions' vectors of length ε: the weak
margin is at most ε, the strong margin at most 2ε, and ε = 0 proves that there is none (Farkas). In R^d both checks are
exact; in a kernel's space what adding up its values may lose counts against the proof.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Integers, check_rows, dense
from onebit.kernels import Kernel, as_kernel
from onebit.labels import check_labels, classes_and_codes
from onebit.theory.exact import Objects, whole_multiple

Kind = Literal["weak", "strong"]

_LARGEST = Fraction(sys.float_info.max)
_BLOCK = 4096  # rows whose products are formed at a time
_EPSILON = 2.0**-53
# What underflows in sums of products of numbers up to 1, or in scaling them to 1, is far below this.
_UNDERFLOW = 2.0**-900


@dataclass(frozen=True)
class Certificate:
    """Weights over the conditions of Definition 1 that prove how large a margin can be at most."""

    kind: Kind
    examples: Integers
    """The row t of each condition."""
    classes: npt.NDArray[Any]
    """The label i of each condition."""
    weights: npt.NDArray[Any]
    """Non-negative, in proportion: floats, whole numbers or fractions. Their sum stands for 1."""
    length: float
    """ε: the combination is no longer. Only 0.0 proves that there is no margin."""

    @property
    def limit(self) -> float:
        """What no margin of this kind exceeds."""
        return self.length if self.kind == "weak" else 2.0 * self.length


@dataclass(frozen=True)
class Separator:
    """Vectors that prove how large a margin is at least."""

    kind: Kind
    classes: npt.NDArray[Any]
    """The label of each vector."""
    vectors: Floats
    """One row per class; in a kernel's space its coefficients over the examples. Their length stands for 1."""
    margin: float
    """γ: every number that Definition 1 asks for is at least this (weak) or its half (strong)."""


def verify_certificate(certificate: Certificate, X: Any, y: Any, kernel: Any = None, *, classes: Any = None) -> bool:
    """Return whether a certificate proves its limit, from the data alone.

    The data are given as to `margin`. A condition on a label that is none of the classes proves nothing.

    Examples
    --------
    >>> twins = Certificate("weak", np.array([0, 1]), np.array(["b", "a"]), np.array([0.5, 0.5]), 0.0)
    >>> verify_certificate(twins, [[1.0, 2.0], [1.0, 2.0]], ["a", "b"])
    True
    >>> verify_certificate(twins, [[1.0, 2.0], [1.0, 2.000001]], ["a", "b"])
    False
    """
    rows, kernel = dense(check_rows(X)), as_kernel(kernel)
    labels = check_labels(y, len(rows))
    names, codes = classes_and_codes(labels, classes)
    examples, numbers = np.asarray(certificate.examples), _fractions(np.asarray(certificate.weights))
    asked = _positions(np.asarray(certificate.classes), names)
    if certificate.kind not in get_args(Kind) or asked is None or numbers is None:
        return False
    if examples.ndim != 1 or examples.dtype.kind not in "iu" or not 0 < len(numbers) == len(examples) == len(asked):
        return False
    if examples.min() < 0 or examples.max() >= len(rows) or min(numbers) < 0 or sum(numbers) <= 0:
        return False
    own = codes[examples]
    # the own class has no place in a weak certificate.
    if certificate.kind == "weak" and (own == asked).any():
        return False
    data = Examples.of(rows, codes, kernel)
    return data.combined_length(certificate.kind, numbers, examples, asked) <= certificate.length


def verify_separator(separator: Separator, X: Any, y: Any, kernel: Any = None) -> bool:
    """Return whether vectors have a separator's margin, on all the data.

    It must have one vector for each of its classes, every label among these, and a margin above 0.

    Examples
    --------
    >>> plain = Separator("strong", np.array(["a", "b"]), np.array([[1.0, 0.0], [-1.0, 0.0]]), 1.414)
    >>> verify_separator(plain, [[1.0, 5.0], [-1.0, 3.0]], ["a", "b"])
    True
    >>> verify_separator(plain, [[1.0, 5.0], [-0.9, 3.0]], ["a", "b"])
    False
    """
    rows, kernel = dense(check_rows(X)), as_kernel(kernel)
    names, vectors = np.asarray(separator.classes), np.asarray(separator.vectors)
    codes = _positions(check_labels(y, len(rows)), names)
    if separator.kind not in get_args(Kind) or codes is None or not 0.0 < separator.margin < math.inf:
        return False
    if vectors.dtype.kind not in "fiu" or vectors.shape != (len(names), rows.shape[1] if kernel is None else len(rows)):
        return False
    return Examples.of(rows, codes, kernel).attained(separator.kind, vectors.astype(float)) >= separator.margin


def _positions(labels: npt.NDArray[Any], names: npt.NDArray[Any]) -> Integers | None:
    """Return where each label is among names that do not repeat; None if that is not so."""
    if labels.ndim != 1 or names.ndim != 1:
        return None
    places = {name: place for place, name in enumerate(names.tolist())}
    found = [places.get(label, -1) for label in labels.tolist()]
    return None if len(places) < len(names) or -1 in found else np.array(found, dtype=np.int64)


def _fractions(weights: npt.NDArray[Any]) -> list[Fraction] | None:
    """Return weights as fractions; None if some are no finite numbers."""
    try:
        return [Fraction(weight) for weight in weights.tolist()] if weights.ndim == 1 else None
    except (TypeError, ValueError, OverflowError):
        return None


class Examples(NamedTuple):
    """Labelled examples, and what is computed from them on the safe side."""

    rows: Floats  # prepared for the kernel
    codes: Integers  # the class of each; −1 if none of the vectors in question is its own
    kernel: Kernel | None

    @classmethod
    def of(cls, rows: Floats, codes: Integers, kernel: Kernel | None) -> "Examples":
        """Return examples as a kernel sees them: one that normalizes works on rows of length 1."""
        return cls(rows if kernel is None else kernel.prepare(rows), codes, kernel)

    def attained(self, kind: Kind, vectors: Floats) -> float:
        """Return the margin of vectors that are divided by their length, rounded down; 0.0 if that shows none.

        There is one vector for each class; with a kernel, its coefficients over the examples.
        """
        if not np.isfinite(vectors).all() or not vectors.any():
            return 0.0
        rows, codes, kernel = self
        factor, unit, unit_rows = 1 if kind == "weak" else 2, _to_unit(vectors), _to_unit(rows)
        if kernel is not None:
            support = np.flatnonzero(vectors.any(axis=0))
            points, unit = rows[support], unit[:, support]
        least, errors = np.empty(len(rows)), np.empty(len(rows))
        for block in _blocks(rows):
            values = unit_rows[block] if kernel is None else kernel.matrix(rows[block], points)
            least[block] = least_conditions(kind, values @ unit.T, codes[block])
            # What a sum loses is a share of its terms' sizes; a condition has up to two sums.
            sizes = (np.abs(values) @ np.abs(unit).T).max(axis=1)
            errors[block] = 2 * ((unit.shape[1] + 8) * _EPSILON * sizes + _UNDERFLOW)
        if kernel is not None:
            square = _quadratic_form(unit, kernel.matrix(points, points))
            return max(0.0, factor * float((least - errors).min()) / math.sqrt(square)) if square > 0.0 else 0.0
        highest = (least + errors).min()
        if highest <= 0.0:
            return 0.0
        found = np.flatnonzero(least - errors <= highest)  # any of these may be the least
        exact = min(_exact_least(kind, vectors, rows[found[block]], codes[found[block]]) for block in _blocks(found))
        return _root_down((factor * exact) ** 2 / _largest_square(vectors.reshape(1, -1))) if exact > 0 else 0.0

    def combined_length(self, kind: Kind, weights: Iterable[Fraction], examples: Integers, asked: Integers) -> float:
        """Return the length of a weighted mean of vectors of conditions, on examples and classes, rounded up."""
        points, own, kernel = self.rows[examples], self.codes[examples], self.kernel
        numbers, _ = whole_multiple(weights)
        total, blocks = int(numbers.sum()), np.unique(np.concatenate([own, asked]))
        shares = numbers * condition_signs(kind, own, asked, blocks).T.astype(object)
        if kernel is None:
            rows, power = whole(points)
            combination = shares @ rows
            return root_up(Fraction(int((combination * combination).sum()), total**2) * Fraction(4) ** power)
        # Equal examples are one point: what they cancel is gone exactly, whatever the kernel.
        distinct, places = np.unique(points, axis=0, return_inverse=True)
        merged = np.zeros((len(distinct), len(shares)), dtype=object)
        np.add.at(merged, places.ravel(), shares.T)
        if not merged.any():
            return 0.0
        exact: Floats = np.array([[float(Fraction(value, total)) for value in row] for row in merged.T.tolist()])
        return math.sqrt(_quadratic_form(exact, kernel.matrix(distinct, distinct)))

    def conflicting_pair(self) -> tuple[int, int] | None:
        """Return two equal examples with different labels, or None if there are none."""
        _, first, group = np.unique(self.rows, axis=0, return_index=True, return_inverse=True)
        differing = np.flatnonzero(self.codes != self.codes[first[group]])
        return (int(first[group[differing[0]]]), int(differing[0])) if len(differing) else None


def _blocks(rows: npt.NDArray[Any]) -> list[slice]:
    """Return slices of as many rows as are worked on at a time."""
    return [slice(start, start + _BLOCK) for start in range(0, len(rows), _BLOCK)]


def _to_unit(values: Floats) -> Floats:
    """Return numbers up to 1 in size, by a power of two: exact, but for underflow."""
    return np.ldexp(values, -int(np.frexp(np.abs(values).max(initial=0.0))[1]))


def whole(values: Any) -> tuple[Objects, int]:
    """Return floats as whole numbers times 2 to one common exponent."""
    mantissas, exponents = np.frexp(np.asarray(values, dtype=float))
    digits = np.ldexp(mantissas, 53).astype(np.int64)
    nonzero = digits != 0
    if not nonzero.any():
        return digits.astype(object), 0
    least = int(exponents[nonzero].min())
    shifts = np.where(nonzero, exponents - least, 0)
    # the zeros at the end of every number are no digits.
    trailing = int((np.log2(digits[nonzero] & -digits[nonzero]) + shifts[nonzero]).min())
    return digits.astype(object) << shifts.astype(object) >> trailing, least - 53 + trailing


def _largest_square(rows: Floats) -> Fraction:
    """Return the squared length of the longest row, exactly."""
    numbers, power = whole(rows)
    return Fraction(int((numbers * numbers).sum(axis=1).max())) * Fraction(4) ** power


def root_up(square: Fraction) -> float:
    """Return the smallest float that is no less than the square root; infinity beyond the largest."""
    if square > _LARGEST**2:
        return math.inf
    # Enough digits for a float, whatever the size.
    shift = max(0, 64 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    root = float(Fraction(math.isqrt((square.numerator << 2 * shift) // square.denominator), 1 << shift))
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    below = math.nextafter(root, 0.0)
    return below if Fraction(below) ** 2 >= square else root


def _root_down(square: Fraction) -> float:
    """Return the largest float that is no more than the square root."""
    root = root_up(square)
    return root if root < math.inf and Fraction(root) ** 2 == square else math.nextafter(root, 0.0)


def longest(rows: Floats) -> float:
    """Return the length of the longest row, rounded up."""
    unit = _to_unit(rows)
    squares = np.einsum("ij,ij->i", unit, unit)
    doubtful = rows[squares >= squares.max() * (1.0 - (rows.shape[1] + 8) * 2.0**-52)]
    return root_up(max(_largest_square(doubtful[block]) for block in _blocks(doubtful)))


def least_conditions(kind: Kind, scores: npt.NDArray[Any], codes: Integers) -> npt.NDArray[Any]:
    """Return the least of each example's conditions from its scores: floats, whole numbers or fractions."""
    own = np.where(codes >= 0, scores[np.arange(len(codes)), codes], np.inf)
    rival = np.where(codes[:, None] == np.arange(scores.shape[1]), -np.inf, scores).max(axis=1)
    least: npt.NDArray[Any] = own - rival if kind == "weak" else np.minimum(own, -rival)
    return least


def _exact_least(kind: Kind, vectors: Floats, rows: Floats, codes: Integers) -> Fraction:
    (weights, power), (points, other) = whole(vectors), whole(rows)
    return Fraction(least_conditions(kind, points @ weights.T, codes).min()) * Fraction(2) ** (power + other)


def condition_signs(kind: Kind, own: Integers, asked: Integers, classes: Integers) -> Integers:
    """Return the sign with which x is in each class's block of a condition's vector, one row for each condition."""
    is_own = (own == asked)[:, None]
    gains = (own[:, None] == classes) & (is_own | (kind == "weak"))
    losses = (asked[:, None] == classes) & ~is_own
    signs: Integers = gains.astype(np.int64) - losses
    return signs


def _quadratic_form(vectors: Floats, gram: Floats) -> float:
    """Return the sum of vᵀ·gram·v, rounded up: what adding it up may lose is added."""
    sizes = np.abs(vectors).sum(axis=1)
    lost = (2 * len(gram) + 8) * _EPSILON * float(np.abs(np.diagonal(gram)).max()) * float(sizes @ sizes)
    return max(float(np.einsum("ij,ij->", vectors @ gram, vectors)), 0.0) + lost
