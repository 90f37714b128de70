"""What vectors attain, and how long combinations of conditions are: the two measurements that every claim rests on.

In R^d floats are taken as the rational numbers that they are, and what is returned is on the safe side of the exact
value: a margin is rounded down, a length up. Products are first bounded with twice a float's digits; the few rows that
this leaves in doubt are multiplied as whole numbers. In a kernel's space the kernel's values are taken as they are
computed, and what their sums may have lost to rounding is allowed for.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from onebit.exact import Objects, whole_multiple
from onebit.inputs import Floats, Integers
from onebit.kernels import Kernel
from onebit.theory import double_double
from onebit.theory.whole_numbers import root_down, root_up, whole

Kind = Literal["weak", "strong"]

# Rows whose kernel values are formed at a time.
_BLOCK = 4096
_EPSILON = 2.0**-53


def to_unit(values: Floats) -> tuple[Floats, int]:
    """Return numbers up to 1 in size, and the power of two that they were divided by: exact, but for underflow.

    Examples
    --------
    >>> to_unit(np.array([3.0, -1.0]))
    (array([ 0.75, -0.25]), 2)
    """
    exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    return np.ldexp(values, -exponent), exponent


def longest(rows: Floats) -> float:
    """Return the length of the longest row, rounded up; which row that is, is told by twice a float's digits."""
    unit, _ = to_unit(rows)
    squares = np.empty((len(rows), 2))
    double_double.squared_lengths(unit, squares)
    ties = np.flatnonzero(squares[:, 0] == squares[:, 0].max())
    return root_up(_squared_length(rows[ties[np.argmax(squares[ties, 1])]]))


def attained(kind: Kind, vectors: Floats, rows: Floats, codes: Integers, kernel: Kernel | None) -> float:
    """Return a margin that vectors certainly have once they are divided by their length; 0.0 if that shows none.

    Parameters
    ----------
    kind : "weak" or "strong"
        Which of Definition 1's two margins.
    vectors : array of shape (K, d)
        One for each class; with a kernel its coefficients over the rows.
    rows : array of shape (n, d)
        The examples, prepared for the kernel.
    codes : array of shape (n,)
        Which vector is each example's own; −1 if none is.
    kernel : None or Kernel
        The space.
    """
    if not np.isfinite(vectors).all() or not vectors.any():
        return 0.0
    if kernel is not None:
        return _attained_in_kernel_space(kind, to_unit(vectors)[0], rows, codes, kernel)
    lower, power = _lower_bounds(kind, vectors, rows, codes)
    doubtful = np.flatnonzero(lower <= 0.0)
    # The lowest come first: if any is negative it is most likely the first, and the others need not be seen.
    doubtful = doubtful[np.argsort(lower[doubtful])]
    found = [Fraction(float(lower[lower > 0.0].min())) * Fraction(2) ** power] if len(doubtful) < len(rows) else []
    for each in _exact_conditions(kind, vectors, rows[doubtful], codes[doubtful]):
        if each <= 0:
            return 0.0
        found.append(each)
    return root_down(((1 if kind == "weak" else 2) * min(found)) ** 2 / _squared_length(vectors))


def has_margin(
    kind: Kind, vectors: Floats, rows: Floats, codes: Integers, margin: float, kernel: Kernel | None
) -> bool:
    """Return whether vectors have a margin once they are divided by their length; exactly, in R^d."""
    if not np.isfinite(vectors).all() or not vectors.any():
        return False
    if kernel is not None:
        return attained(kind, vectors, rows, codes, kernel) >= margin
    lower, power = _lower_bounds(kind, vectors, rows, codes)
    square = (Fraction(margin) / (1 if kind == "weak" else 2)) ** 2 * _squared_length(vectors)
    doubtful = np.flatnonzero(lower < root_up(square / Fraction(4) ** power))
    found = _exact_conditions(kind, vectors, rows[doubtful], codes[doubtful])
    return all(each >= 0 and each**2 >= square for each in found)


def _lower_bounds(kind: Kind, vectors: Floats, rows: Floats, codes: Integers) -> tuple[Floats, int]:
    """Return numbers below each example's least condition, and the power of two that they were divided by."""
    # What underflows here is allowed for below; the exact numbers are made from what was given.
    (unit_rows, power), (unit_vectors, other) = to_unit(rows), to_unit(vectors)
    lower = np.empty(len(rows))
    double_double.least_conditions(unit_rows, codes, unit_vectors, kind == "weak", lower)
    return lower, power + other


def _exact_conditions(kind: Kind, vectors: Floats, rows: Floats, codes: Integers) -> Iterator[Fraction]:
    """Yield the least of each example's conditions, exactly."""
    weights, other = whole(vectors)
    for own, x in zip(codes.tolist(), rows, strict=True):
        point, power = whole(x)
        row = (weights @ point).tolist()
        rivals = [value for i, value in enumerate(row) if i != own]
        ahead = row[own] if own >= 0 else math.inf
        least = ahead - max(rivals) if kind == "weak" else min([ahead, *(-value for value in rivals)])
        yield least * Fraction(2) ** (power + other)


def _squared_length(vectors: Floats) -> Fraction:
    """Return the sum of all squares, exactly."""
    numbers, power = whole(vectors)
    return Fraction(int((numbers * numbers).sum())) * Fraction(4) ** power


def _attained_in_kernel_space(kind: Kind, vectors: Floats, rows: Floats, codes: Integers, kernel: Kernel) -> float:
    support = np.flatnonzero(vectors.any(axis=0))
    points, some = rows[support], vectors[:, support]
    lost = (len(support) + 4) * _EPSILON
    own, rivals = np.empty(len(rows)), np.empty(len(rows))
    # In blocks, so that the kernel's values of all rows with the support need not fit in memory.
    for start in range(0, len(rows), _BLOCK):
        values, code = kernel.matrix(rows[start : start + _BLOCK], points), codes[start : start + _BLOCK]
        # What a sum loses is a share of its terms' sizes: long rows have large ones, though the support may be short.
        scores, errors = values @ some.T, lost * (np.abs(values) @ np.abs(some).T)
        each, has_own = np.arange(len(code)), code >= 0
        own[start : start + _BLOCK] = np.where(has_own, (scores - errors)[each, code], np.inf)
        above = scores + errors
        above[has_own, code[has_own]] = -np.inf
        rivals[start : start + _BLOCK] = above.max(axis=1)
    least = float((own - rivals).min()) if kind == "weak" else 2.0 * min(float(own.min()), -float(rivals.max()))
    gram, sizes = kernel.matrix(points, points), np.abs(some).sum(axis=1)
    largest = float(np.abs(np.diagonal(gram)).max())
    square = float(np.einsum("ij,ij->", some @ gram, some)) + 2.0 * lost * largest * float(sizes @ sizes)
    return max(0.0, least / math.sqrt(square)) if square > 0.0 else 0.0


def combined_length(
    kind: Kind,
    weights: npt.NDArray[Any],
    points: Floats,
    own: Integers,
    asked: Integers,
    kernel: Kernel | None,
) -> float:
    """Return the length of a weighted mean of conditions' vectors, rounded up.

    Parameters
    ----------
    kind : "weak" or "strong"
        Whose conditions.
    weights : array of shape (m,)
        Floats, whole numbers or fractions, none negative, some positive.
    points : array of shape (m, d)
        The conditions' examples, prepared for the kernel.
    own, asked : arrays of shape (m,)
        Their classes, and the classes i of the conditions, by position.
    kernel : None or Kernel
        The space.
    """
    numbers = _whole_weights(weights)
    total = int(numbers.sum())
    shares = np.array(list(_shares(kind, numbers, own, asked)), dtype=object)
    if kernel is None:
        rows, power = whole(points)
        combination = shares @ rows
        return root_up(Fraction(int((combination * combination).sum()), total**2) * Fraction(4) ** power)
    # Equal examples are one point: what they cancel is gone exactly, whatever the kernel.
    distinct, places = np.unique(points, axis=0, return_inverse=True)
    merged = np.zeros((len(shares), len(distinct)), dtype=object)
    for at, place in enumerate(places.ravel()):
        merged[:, place] += shares[:, at]
    if not merged.any():
        return 0.0
    exact: Floats = np.array([[float(Fraction(value, total)) for value in row] for row in merged.tolist()])
    gram = kernel.matrix(distinct, distinct)
    sizes = np.abs(exact).sum(axis=1)
    lost = (2 * len(distinct) + 8) * _EPSILON * float(np.abs(np.diagonal(gram)).max()) * float(sizes @ sizes)
    return math.sqrt(max(float(np.einsum("ij,ij->", exact @ gram, exact)), 0.0) + lost)


def _shares(kind: Kind, weights: Objects, own: Integers, asked: Integers) -> Iterator[Objects]:
    """Yield, for each class, what its block of the combination has of every condition's example."""
    is_own = own == asked
    for each in np.unique(np.concatenate([own, asked])):
        gains = (own == each) & (is_own | (kind == "weak"))
        losses = (asked == each) & ~is_own
        yield weights * (gains.astype(int) - losses.astype(int)).astype(object)


def _whole_weights(weights: npt.NDArray[Any]) -> Objects:
    if weights.dtype.kind == "f":
        return whole(weights)[0]
    return np.array(whole_multiple([Fraction(weight) for weight in weights.tolist()]), dtype=object)
