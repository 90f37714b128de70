"""Floats as whole numbers, so that sums of products are exact; roots rounded to a chosen side; exact zero combinations.

A float is a whole number times a power of two. Rows of floats are therefore rows of Python's integers with one common
power for each column, and whether a weighted sum of rows is zero does not depend on the powers.
"""

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np

from onebit.exact import Objects
from onebit.inputs import Integers

# The largest prime of 31 digits: products of two remainders fit into 62 of a whole number's 63.
_PRIME = 2**31 - 1
# Digits of a number that are multiplied at a time: 20 + 31 leave 12 for sums of up to 4 096 products.
_LIMB = 20
_LARGEST = Fraction(sys.float_info.max)
# An exact solution takes time that grows with the cube of the equations, and two seconds for so many.
_MOST_EQUATIONS = 200


def whole(values: Any) -> tuple[Objects, int]:
    """Return floats as whole numbers times 2 to one common exponent.

    Examples
    --------
    >>> numbers, exponent = whole([0.5, -3.0])
    >>> numbers.tolist(), exponent
    ([1, -6], -1)
    """
    mantissas, exponents = np.frexp(np.asarray(values, dtype=float))
    digits = np.ldexp(mantissas, 53).astype(np.int64)
    nonzero = digits != 0
    if not nonzero.any():
        return digits.astype(object), 0
    least = int(exponents[nonzero].min())
    shifts = np.where(nonzero, exponents - least, 0)
    # The zeros at the end of every number are no digits.
    trailing = int((np.log2(digits[nonzero] & -digits[nonzero]) + shifts[nonzero]).min())
    return digits.astype(object) << shifts.astype(object) >> trailing, least - 53 + trailing


def root_up(square: Fraction) -> float:
    """Return the smallest float that is no less than the square root; infinity beyond the largest.

    Examples
    --------
    >>> root_up(Fraction(4)), root_up(Fraction(2)) > math.sqrt(2) - 1e-15
    (2.0, True)
    """
    if square > _LARGEST**2:
        return math.inf
    root = _near_root(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    below = math.nextafter(root, 0.0)
    return below if Fraction(below) ** 2 >= square else root


def root_down(square: Fraction) -> float:
    """Return the largest float that is no more than the square root."""
    root = root_up(square)
    return root if root < math.inf and Fraction(root) ** 2 == square else math.nextafter(root, 0.0)


def _near_root(square: Fraction) -> float:
    # Enough digits for a float, whatever the size.
    shift = max(0, 64 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    return float(Fraction(math.isqrt((square.numerator << 2 * shift) // square.denominator), 1 << shift))


def vanishing_weights(rows: Objects) -> list[int] | None:
    """Return whole numbers ≥ 0, not all 0, for which Σ weight·row = 0 exactly; None if there are none, or many.

    The answer is found when it is unique up to scale, which it is for the vertices that an active-set method keeps.

    Parameters
    ----------
    rows : array of shape (m, d) of Python's integers
        The rows to combine.

    References
    ----------
    Dixon (1982). Exact solution of linear equations using p-adic expansions. Numerische Mathematik.
    """
    if len(rows) > _MOST_EQUATIONS + 1:
        return None
    equations = rows.T[(rows != 0).any(axis=0)]
    remainders = (equations % _PRIME).astype(np.int64) if equations.size else np.zeros((0, len(rows)), dtype=np.int64)
    chosen, pivots = _independent(remainders)
    free = sorted(set(range(len(rows))) - set(pivots))
    # Columns that are independent by their remainders are independent, so that no more than one must be free.
    if len(free) != 1:
        return None
    weights: list[int] = [0] * len(rows)
    if pivots:
        square, right = equations[np.ix_(chosen, pivots)], -equations[chosen, free[0]]
        numerators, denominator = _solve(square, right, _inverse(remainders[np.ix_(chosen, pivots)]))
        for at, numerator in zip(pivots, numerators, strict=True):
            weights[at] = numerator
    else:
        denominator = 1
    weights[free[0]] = denominator
    if min(weights) < 0 or (equations @ np.array(weights, dtype=object)).any():
        return None
    return weights


def _independent(matrix: Integers) -> tuple[list[int], list[int]]:
    """Return as many rows and columns as are independent modulo the prime, by elimination."""
    matrix, order = matrix.copy(), np.arange(len(matrix))
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        rank = len(pivots)
        below = np.flatnonzero(matrix[rank:, column])
        if not len(below):
            continue
        swap = [rank, rank + int(below[0])]
        matrix[swap], order[swap] = matrix[swap[::-1]], order[swap[::-1]]
        factors = matrix[rank + 1 :, column] * pow(int(matrix[rank, column]), -1, _PRIME) % _PRIME
        busy = np.flatnonzero(factors)
        matrix[rank + 1 + busy, column:] -= factors[busy, None] * matrix[rank, column:] % _PRIME
        matrix[rank + 1 + busy, column:] %= _PRIME
        pivots.append(column)
    return order[: len(pivots)].tolist(), pivots


def _inverse(matrix: Integers) -> Integers:
    """Return the inverse modulo the prime of a matrix that has one."""
    size = len(matrix)
    both = np.concatenate([matrix, np.eye(size, dtype=np.int64)], axis=1)
    for i in range(size):
        at = i + int(np.flatnonzero(both[i:, i])[0])
        both[[i, at]] = both[[at, i]]
        both[i] = both[i] * pow(int(both[i, i]), -1, _PRIME) % _PRIME
        factors = both[:, i].copy()
        factors[i] = 0
        both = (both - factors[:, None] * both[i] % _PRIME) % _PRIME
    return np.ascontiguousarray(both[:, size:])


def _solve(matrix: Objects, right: Objects, inverse: Integers) -> tuple[list[int], int]:
    """Return the solution of matrix·x = right as numerators and their common denominator, digit by digit."""
    # Hadamard: no determinant, and so no numerator or denominator, has more digits than this.
    augmented = np.concatenate([matrix, right[:, None]], axis=1)
    digits = min(_hadamard(augmented), _hadamard(augmented.T)) + 2
    limbs = _limbs(matrix)
    modulus, solution = 1, np.zeros(len(right), dtype=object)
    powers: list[Integers] = []
    while modulus.bit_length() <= 2 * digits:
        low = (right % _PRIME).astype(np.int64)
        digit = ((inverse @ (low >> 16) % _PRIME << 16) + inverse @ (low & 0xFFFF)) % _PRIME
        product = sum((limb @ digit).astype(object) << _LIMB * k for k, limb in enumerate(limbs))
        right = (right - product) // _PRIME
        powers.append(digit)
        modulus *= _PRIME
    for digit in reversed(powers):
        solution = solution * _PRIME + digit.astype(object)
    return _as_fractions(solution.tolist(), modulus)


def _hadamard(matrix: Objects) -> int:
    """Return how many digits a determinant of the matrix's columns can have."""
    # The shortest may be left out; to count it in is safe.
    return sum((int(sum(row * row)).bit_length() + 1) // 2 for row in matrix.T)


def _limbs(matrix: Objects) -> list[Integers]:
    """Return matrices of short whole numbers whose sum, shifted, is the matrix."""
    signs, sizes = np.where(matrix < 0, -1, 1).astype(np.int64), np.abs(matrix)
    limbs = []
    while sizes.any():
        limbs.append(signs * (sizes & (1 << _LIMB) - 1).astype(np.int64))
        sizes = sizes >> _LIMB
    return limbs


def _as_fractions(values: list[int], modulus: int) -> tuple[list[int], int]:
    """Return numerators and a common denominator that have these remainders (Wang's reconstruction)."""
    limit, shared = math.isqrt(modulus // 2), 1
    for value in values:
        # The denominators so far often are all of this one's.
        last, remainder = modulus, value * shared % modulus
        if min(remainder, modulus - remainder) <= limit:
            continue
        before, factor = 0, 1
        while remainder > limit:
            quotient = last // remainder
            last, remainder = remainder, last - quotient * remainder
            before, factor = factor, before - quotient * factor
        shared *= abs(factor)
    numerators = [value * shared % modulus for value in values]
    return [each if each <= modulus // 2 else each - modulus for each in numerators], shared
