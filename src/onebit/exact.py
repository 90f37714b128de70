"""Numbers without rounding: what comes in is turned into fractions, what is too large for a float goes out as log₂.

A float can be read in two ways. `check_fraction` takes its binary value, for data and constructions: what is built from
them is then exact. `check_decimal` takes the decimal that it is written as, for the radius and the margin of a theorem:
0.1 means one tenth, and a floor must not see the difference.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, check_number, check_rows, dense

Number = int | float | Fraction
Point = tuple[Fraction, ...]
Objects = npt.NDArray[np.object_]
"""Arrays of Python integers, of any size."""


def check_fraction(name: str, value: Any) -> Fraction:
    """Return a real number as a fraction, exactly, or raise a ValueError that names it."""
    # To Python True is an integer; here it is an error.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, Fraction, np.integer, np.floating)):
        raise ValueError(f"{name} must be an int, a float or a Fraction; got {value!r}")
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite; got {value!r}. Remove or replace such values")
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def check_decimal(name: str, value: Any) -> Fraction:
    """Return a positive number as the fraction it is written as: 0.1 is 1/10, not the float nearest to it."""
    if isinstance(value, Fraction) and value > 0:
        return value
    number = check_number(name, value, above=0.0)
    # Beyond 2⁵³ a whole number's float has other digits than it has itself.
    return Fraction(int(value)) if isinstance(value, (int, np.integer)) else Fraction(repr(number))


def squared_ratio(radius: Any, margin: Any) -> Fraction:
    """Return (R/γ)², which every mistake bound is made of, with both numbers taken as they are written.

    Examples
    --------
    >>> squared_ratio(0.3, 0.1)
    Fraction(9, 1)
    """
    return (check_decimal("radius", radius) / check_decimal("margin", margin)) ** 2


def check_fraction_between(name: str, value: Any, low: int, high: int) -> Fraction:
    """Return a fraction strictly between two whole numbers, or raise a ValueError that names it."""
    number = check_fraction(name, value)
    if not low < number < high:
        raise ValueError(f"{name} must lie strictly between {low} and {high}; got {value!r}")
    return number


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


def dot(left: Iterable[Fraction], right: Iterable[Fraction]) -> Fraction:
    """Return the inner product."""
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def whole_multiple(values: Sequence[Fraction]) -> list[int]:
    """Return the values times their least common denominator.

    Examples
    --------
    >>> whole_multiple([Fraction(1, 2), Fraction(-2, 3)])
    [3, -4]
    """
    shared = math.lcm(*(value.denominator for value in values))
    return [value.numerator * (shared // value.denominator) for value in values]


def log2(value: Fraction) -> float:
    """Return log₂ of a fraction of any size; −∞ for 0.

    Examples
    --------
    >>> log2(Fraction(1, 2**5000))
    -5000.0
    """
    if value < 0:
        raise ValueError(f"value must not be negative; got {value}")
    # Near 1 the difference of two logarithms would keep few of its digits.
    if Fraction(1, 2) < value < 2:
        return math.log1p(value - 1) / math.log(2.0)
    # Python takes logarithms of whole numbers of any size, of floats only below 2^1024.
    return math.log2(value.numerator) - math.log2(value.denominator) if value else -math.inf


def to_float(name: str, value: Fraction) -> float:
    """Return the nearest float, or raise an OverflowError that names the number and says how large it is."""
    try:
        return float(value)
    except OverflowError:
        size = log2(abs(value))
        raise OverflowError(f"{name} is about 2^{size:.0f}, too large for a float; use the exact functions") from None
