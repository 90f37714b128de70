"""Numbers without rounding: inputs as fractions, floats as whole numbers, roots on a chosen side, exact zeros.

`check_fraction` takes a float's binary value: what is built from data is then exact. (`onebit.bounds` reads the radius
and the margin of a theorem as the decimals they are written as.) A float is a whole number times a power of two, so
rows of floats are rows of Python's integers with one common power, and their sums of products are exact.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.bounds.claims import log2
from onebit.inputs import Floats, Integers, check_rows, dense

Number = int | float | Fraction
Point = tuple[Fraction, ...]
Objects = npt.NDArray[np.object_]  # arrays of Python integers, of any size

# The largest prime of 31 digits: products of two remainders fit into 62 of a whole number's 63.
_PRIME = 2**31 - 1
# Digits that are multiplied at a time: 20 + 31 leave 12 for sums of up to 4 096 products.
_PIECE = 20
_LARGEST = Fraction(sys.float_info.max)
# An exact solution takes time that grows with the cube of the equations, and seconds for so many.
_MOST_EQUATIONS = 200


def check_fraction(name: str, value: Any) -> Fraction:
    """Return a real number as a fraction, exactly, or raise a ValueError that names it."""
    # To Python True is an integer; here it is an error.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, Fraction, np.integer, np.floating)):
        raise ValueError(f"{name} must be an int, a float or a Fraction; got {value!r}")
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite; got {value!r}. Remove or replace such values")
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def check_point(name: str, values: Any, length: int | None = None) -> Point:
    """Return one vector as fractions, exactly, or raise a ValueError that names it."""
    if isinstance(values, (str, bytes, dict)) or not isinstance(values, (Sequence, np.ndarray)):
        raise ValueError(f"{name} must be a list of numbers; got {values!r}")
    if len(values) == 0 or (length is not None and len(values) != length):
        wanted = "at least one number" if length is None else f"{length} numbers"
        raise ValueError(f"{name} must hold {wanted}; got {len(values)}")
    return tuple(check_fraction(f"{name}[{i}]", value) for i, value in enumerate(values))


def check_points(name: str, rows: Any) -> tuple[Point, ...]:
    """Return vectors of one length as fractions, exactly, or raise a ValueError that names them."""
    if isinstance(rows, (str, bytes, dict)) or not isinstance(rows, (Sequence, np.ndarray)) or len(rows) == 0:
        raise ValueError(f"{name} must list at least one vector; got {rows!r}")
    first = check_point(f"{name}[0]", rows[0])
    return first, *(check_point(f"{name}[{i}]", row, len(first)) for i, row in enumerate(rows[1:], start=1))


def check_dense_rows(name: str, X: Any, n_columns: int) -> Floats:
    """Return float rows with the given number of columns, or raise a ValueError that names them."""
    rows = dense(check_rows(X, name))
    if rows.shape[1] != n_columns:
        raise ValueError(f"{name} must have {n_columns} columns, one per variable; got {rows.shape[1]}")
    return rows


def to_float(name: str, value: Fraction) -> float:
    """Return the nearest float, or raise an OverflowError that names the number and its size."""
    try:
        return float(value)
    except OverflowError:
        size = log2(abs(value))
        raise OverflowError(f"{name} is about 2^{size:.0f}, too large for a float; use the exact functions") from None


def dot(left: Iterable[Fraction], right: Iterable[Fraction]) -> Fraction:
    """Return the inner product."""
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def whole_multiple(values: Sequence[Fraction]) -> list[int]:
    """Return the values times their least common denominator."""
    shared = math.lcm(*(value.denominator for value in values))
    return [value.numerator * (shared // value.denominator) for value in values]


def whole(values: Any) -> tuple[Objects, int]:
    """Return floats as whole numbers times 2 to one common exponent.

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
    # the zeros at the end of every number are no digits.
    trailing = int((np.log2(digits[nonzero] & -digits[nonzero]) + shifts[nonzero]).min())
    return digits.astype(object) << shifts.astype(object) >> trailing, least - 53 + trailing


def squared_length(values: Any) -> Fraction:
    """Return the sum of all squares of floats, exactly."""
    numbers, power = whole(values)
    return Fraction(int((numbers * numbers).sum())) * Fraction(4) ** power


def largest_square(rows: Floats) -> Fraction:
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


def root_down(square: Fraction) -> float:
    """Return the largest float that is no more than the square root."""
    root = root_up(square)
    return root if root < math.inf and Fraction(root) ** 2 == square else math.nextafter(root, 0.0)


def vanishing_weights(rows: Objects) -> list[int] | None:
    """Return whole numbers ≥ 0, not all 0, for which Σ weight·row = 0 exactly; None if there are none, or many.

    The answer is found when it is unique up to scale, which it is for the vertices that an active-set method keeps. The
    equations are solved digit by digit to the base of a prime, and fractions are read off the digits.

    References
    ----------
    Dixon (1982). Exact solution of linear equations using p-adic expansions. Numerische Mathematik.
    """
    if len(rows) > _MOST_EQUATIONS + 1:
        return None
    equations = rows.T[(rows != 0).any(axis=0)]
    remainders = (equations % _PRIME).astype(np.int64).reshape(-1, len(rows))
    chosen, pivots, _ = _eliminated(remainders)
    free = sorted(set(range(len(rows))) - set(pivots))
    # Columns that are independent by their remainders are independent, so that no more than one must be free.
    if len(free) != 1:
        return None
    weights = np.ones(len(rows), dtype=object)
    if pivots:
        square = remainders[np.ix_(chosen, pivots)]
        inverse = _eliminated(np.hstack([square, np.eye(len(square), dtype=np.int64)]))[2][:, len(square) :]
        solution = _solve(equations[np.ix_(chosen, pivots)], -equations[chosen, free[0]], inverse)
        weights[pivots], weights[free] = solution
    if min(weights) < 0 or (equations @ weights).any():
        return None
    return [int(weight) for weight in weights]


def _eliminated(matrix: Integers) -> tuple[list[int], list[int], Integers]:
    """Return independent rows and columns modulo the prime, and the matrix with its pivot columns made unit vectors."""
    matrix, order, pivots = matrix.copy(), np.arange(len(matrix)), list[int]()
    for column in range(matrix.shape[1]):
        rank = len(pivots)
        below = np.flatnonzero(matrix[rank:, column])
        if not len(below):
            continue
        swap = [rank, rank + int(below[0])]
        matrix[swap], order[swap] = matrix[swap[::-1]], order[swap[::-1]]
        matrix[rank] = matrix[rank] * pow(int(matrix[rank, column]), -1, _PRIME) % _PRIME
        factors = matrix[:, column].copy()
        factors[rank] = 0
        busy = np.flatnonzero(factors)
        matrix[busy] = (matrix[busy] - factors[busy, None] * matrix[rank] % _PRIME) % _PRIME
        pivots.append(column)
    return order[: len(pivots)].tolist(), pivots, matrix


def _solve(matrix: Objects, right: Objects, inverse: Integers) -> tuple[list[int], int]:
    """Return the solution of matrix·x = right as numerators and their common denominator."""
    # Hadamard: no determinant, and so no numerator or denominator, has more digits than this.
    augmented = np.column_stack([matrix, right])
    digits = 2 + min(
        sum((int(sum(row * row)).bit_length() + 1) // 2 for row in rows) for rows in (augmented, augmented.T)
    )
    # In pieces of few digits, whose sums of products machine numbers hold.
    signs, sizes = np.where(matrix < 0, -1, 1).astype(np.int64), np.abs(matrix)
    shifts = range(0, int(sizes.max()).bit_length(), _PIECE)
    pieces = [signs * (sizes >> shift & (1 << _PIECE) - 1).astype(np.int64) for shift in shifts]
    expansion: list[Integers] = []
    while len(expansion) * _PRIME.bit_length() <= 2 * digits + len(expansion):
        low = (right % _PRIME).astype(np.int64)
        digit = ((inverse @ (low >> 16) % _PRIME << 16) + inverse @ (low & 0xFFFF)) % _PRIME
        product = sum((piece @ digit).astype(object) << shift for shift, piece in zip(shifts, pieces, strict=True))
        right = (right - product) // _PRIME
        expansion.append(digit)
    solution = np.zeros(len(right), dtype=object)
    for digit in reversed(expansion):
        solution = solution * _PRIME + digit.astype(object)
    return _as_fractions(solution.tolist(), _PRIME ** len(expansion))


def _as_fractions(values: list[int], modulus: int) -> tuple[list[int], int]:
    """Return numerators and a common denominator that have these remainders (Wang's reconstruction)."""
    limit, shared = math.isqrt(modulus // 2), 1
    for value in values:
        # the denominators so far often are all of this one's.
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
