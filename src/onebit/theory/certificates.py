"""Proofs of both sides of a margin, and checks of them that know nothing of the solver.

Definition 1 asks that a number be at least γ (weak) or γ/2 (strong) for every example t and class i:

    weak:    ⟨w_y − w_i, x⟩ for i ≠ y = y_t;
    strong:  ⟨w_i, x⟩ for i = y_t, and −⟨w_i, x⟩ for i ≠ y_t.

A *separator* is vectors that do it, and proves that the margin is no less. Each number is the inner product of
(w₁, …, w_K) with a vector made from x. If non-negative weights that sum to 1 combine such vectors to one of length ε,
then for any w₁…w_K with Σ‖wᵢ‖² ≤ 1 the numbers' weighted mean is at most ε, so one of them is: the weak margin is at
most ε, and the strong margin at most 2ε. This is a *certificate*: it proves that the margin is no more, and for ε = 0
that there is none (Farkas). In R^d both checks are exact.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Integers, check_rows, dense
from onebit.kernels import as_kernel
from onebit.labels import check_classes, check_labels, encode_labels, infer_classes
from onebit.theory.evidence import Kind, combined_length, has_margin


@dataclass(frozen=True)
class Certificate:
    """Weights over the conditions of Definition 1 that prove how large a margin can be at most."""

    kind: Kind
    """Either "weak" or "strong"."""
    examples: Integers
    """The row t of each condition."""
    classes: npt.NDArray[Any]
    """The label i of each condition."""
    weights: npt.NDArray[Any]
    """Non-negative, in proportion: floats, whole numbers or fractions. Their sum stands for 1."""
    length: float
    """ε: the combination is no longer. Only 0.0 proves that there is no margin."""

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def limit(self) -> float:
        """What no margin of this kind exceeds."""
        return self.length if self.kind == "weak" else 2.0 * self.length


@dataclass(frozen=True)
class Separator:
    """Vectors that prove how large a margin is at least."""

    kind: Kind
    """Either "weak" or "strong"."""
    classes: npt.NDArray[Any]
    """The label of each vector."""
    vectors: Floats
    """One row per class; in a kernel's space its coefficients over the examples. Their length stands for 1."""
    margin: float
    """γ: every number that Definition 1 asks for is at least this (weak) or its half (strong)."""


def verify_certificate(certificate: Certificate, X: Any, y: Any, kernel: Any = None, *, classes: Any = None) -> bool:
    """Return whether a certificate proves what it says, from the data alone.

    In R^d the combination is added up in whole numbers and nothing is rounded. In a kernel's space the kernel's values
    are taken as they are computed, and what adding them up may lose counts against the certificate.

    Parameters
    ----------
    certificate : Certificate
        From `margin`, or anyone else.
    X, y : arrays
        The examples and their labels.
    kernel : None, Kernel or callable
        The space the certificate is about.
    classes : None, int or list
        All labels, or how many, if some have no example, as for `margin`. A condition on any other label proves
        nothing.

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
    names = check_classes(classes) if classes is not None else infer_classes(labels)
    codes = encode_labels(labels, names)
    examples, weights = np.asarray(certificate.examples), np.asarray(certificate.weights)
    asked, numbers = _positions(np.asarray(certificate.classes), names), _fractions(weights)
    if certificate.kind not in get_args(Kind) or asked is None or numbers is None:
        return False
    if examples.ndim != 1 or examples.dtype.kind not in "iu" or not 0 < len(numbers) == len(examples) == len(asked):
        return False
    if examples.min() < 0 or examples.max() >= len(rows) or min(numbers) < 0 or sum(numbers) <= 0:
        return False
    own = codes[examples]
    # The own class has no place in a weak certificate.
    if certificate.kind == "weak" and (own == asked).any():
        return False
    points = rows[examples] if kernel is None else kernel.prepare(rows)[examples]
    return combined_length(certificate.kind, weights, points, own, asked, kernel) <= certificate.length


def verify_separator(separator: Separator, X: Any, y: Any, kernel: Any = None) -> bool:
    """Return whether vectors have the margin that a separator says, on all the data.

    In R^d nothing is rounded. In a kernel's space the kernel's values are taken as they are computed, and what adding
    them up may lose counts against the separator.

    Parameters
    ----------
    separator : Separator
        From `margin`, or anyone else. It must have one vector for each of its classes, every label among these, and a
        margin above 0.
    X, y : arrays
        The examples and their labels.
    kernel : None, Kernel or callable
        The space the separator is about.

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
    # What is compiled reads memory as far as these shapes say.
    if vectors.dtype.kind not in "fiu" or vectors.shape != (len(names), rows.shape[1] if kernel is None else len(rows)):
        return False
    rows = rows if kernel is None else kernel.prepare(rows)
    return has_margin(separator.kind, vectors.astype(float), rows, codes, separator.margin, kernel)


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


def conflicting_pair(X: Floats, codes: Integers) -> tuple[int, int] | None:
    """Return two equal rows with different labels, or None if there are none."""
    order, is_same = _equal_neighbors(X)
    conflicts = np.flatnonzero(is_same & (codes[order[1:]] != codes[order[:-1]]))
    return (int(order[conflicts[0]]), int(order[conflicts[0] + 1])) if len(conflicts) else None


def _equal_neighbors(X: Floats) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return an order that puts equal rows side by side, and which rows equal the one before; by hashing, exact."""
    words = (X + 0.0).view(np.uint64)  # adding 0 turns −0 into 0, so that equal numbers have equal bits
    keys = np.zeros(len(X), dtype=np.uint64)
    for column in words.T:
        # An odd multiplier carries every bit upwards, the shift brings them down again.
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_same = ordered[1:] == ordered[:-1]
    places = np.flatnonzero(is_same)
    # Equal keys are only a suspicion: the rows themselves decide.
    is_same[places] = (X[order[places]] == X[order[places + 1]]).all(axis=1)
    return order, is_same
