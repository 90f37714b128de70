"""Numbers without rounding: inputs as fractions, floats as whole numbers, roots on a chosen side, exact zeros.

`check_fraction` takes a float's binary value (`onebit.bounds` reads it as the decimal it is written as). Rows of floats
are rows of Python's integers with one common power of two, and their sums of products are exact.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.bounds.claims import log2
from onebit.inputs import Floats, check_rows, dense

Number = int | float | Fraction
Point = tuple[Fraction, ...]
Objects = npt.NDArray[np.object_]  # arrays of Python integers, of any size

_LARGEST = Fraction(sys.float_info.max)
# An exact solution takes time that grows with the cube of the equations, and seconds for so many.
_MOST_EQUATIONS = 200
# An inverse in decimals of so many digits is good for steps of fewer, whatever the equations.
_DIGITS, _STEP, _ZERO = 120, 10**60, Decimal("1e-40")


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

    The answer is found when it is unique up to scale, which it is for the vertices that an active-set method keeps.
    """
    equations = rows.T[(rows != 0).any(axis=0)]
    count = len(rows)
    if count - 1 > min(len(equations), _MOST_EQUATIONS):
        return None
    with localcontext(Context(prec=_DIGITS)):
        sizes = np.array([Decimal(max(map(abs, row))) for row in equations.tolist()], dtype=object)[:, None]
        # After exchange steps the table has the inverse of the chosen equations in the chosen weights' columns.
        table, chosen = equations * Decimal(1) / sizes, dict[int, int]()
        for column in range(count):
            left = np.abs(table[:, column])
            left[list(chosen.values())] = 0
            if len(left) and left.max() > _ZERO:
                chosen[column] = int(np.argmax(left))
                _exchange(table, chosen[column], column)
        columns, used = list(chosen), list(chosen.values())
        if len(columns) != count - 1:
            return None
        free = min(set(range(count)) - set(columns))
        inverse = table[np.ix_(used, columns)] / sizes[used].T
        weights = np.ones(count, dtype=object)
        weights[columns], weights[free] = _solution(equations[np.ix_(used, columns)], -equations[used, free], inverse)
    return None if min(weights) < 0 or (equations @ weights).any() else [int(weight) for weight in weights]


def _exchange(table: Objects, row: int, column: int) -> None:
    """Solve one row's equation for one column's unknown, and put it into all the others."""
    pivot, entries = table[row, column], table[:, column].copy()
    solved = table[row] / -pivot
    solved[column] = 1 / pivot
    table[:, column] = 0
    table += np.outer(entries, solved)
    table[row] = solved


def _solution(matrix: Objects, right: Objects, inverse: Objects) -> tuple[list[int], int]:
    """Return the solution of matrix·x = right as numerators and their common denominator, if the inverse is good.

    Each step adds digits, and what they leave of the right hand side is known exactly.

    References
    ----------
    Wan (2006). An algorithm to solve integer linear systems exactly using numerical methods. J. Symbolic Computation.
    """
    # Hadamard: no determinant, and so no numerator or denominator, has more binary digits than this.
    bits = sum((int(row @ row + b * b).bit_length() + 1) // 2 for row, b in zip(matrix, right, strict=True))
    numerators, scale, shared = np.zeros(len(right), dtype=object), 1, 1
    while scale <= 4 << 2 * bits:
        step = np.array([round(value * _STEP) for value in inverse @ right], dtype=object)
        numerators, right, scale = numerators * _STEP + step, right * _STEP - matrix @ step, scale * _STEP
    for value in numerators:
        # the denominators so far often are all of this one's.
        shared *= Fraction(value * shared, scale).limit_denominator(max(1, (1 << bits) // shared)).denominator
    return [round(Fraction(value * shared, scale)) for value in numerators], shared
