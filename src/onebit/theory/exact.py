"""Numbers without rounding: inputs as fractions, and combinations of whole numbers that are zero.

A float is taken at its binary value (`onebit.bounds` reads it as the decimal it is written as). Arrays of fractions and
of Python's integers have exact sums of products.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, Integers, check_rows, dense

Number = int | float | Fraction
Objects = npt.NDArray[np.object_]  # arrays of fractions, or of Python's integers of any size

_MOST_EQUATIONS = 200  # an exact solution takes time that grows with the cube of the equations, and seconds for so many
_PRIME = 2_971_215_073  # products of two numbers below it fit 64 bits; no number that data are likely to hold


def check_fraction(name: str, value: Any) -> Fraction:
    """Return a real number as a fraction, exactly, or raise a ValueError that names it."""
    # To Python True is an integer; here it is an error.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, Fraction, np.integer, np.floating)):
        raise ValueError(f"{name} must be an int, a float or a Fraction; got {value!r}")
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite; got {value!r}. Remove or replace such values")
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def check_point(name: str, values: Any, length: int | None = None) -> Objects:
    """Return one vector as fractions, exactly, or raise a ValueError that names it."""
    if isinstance(values, (str, bytes, dict)) or not isinstance(values, (Sequence, np.ndarray)):
        raise ValueError(f"{name} must be a list of numbers; got {values!r}")
    if len(values) == 0 or (length is not None and len(values) != length):
        wanted = "at least one number" if length is None else f"{length} numbers"
        raise ValueError(f"{name} must hold {wanted}; got {len(values)}")
    return np.array([check_fraction(f"{name}[{i}]", value) for i, value in enumerate(values)])


def check_points(name: str, rows: Any) -> Objects:
    """Return vectors of one length as rows of fractions, exactly, or raise a ValueError that names them."""
    if isinstance(rows, (str, bytes, dict)) or not isinstance(rows, (Sequence, np.ndarray)) or len(rows) == 0:
        raise ValueError(f"{name} must list at least one vector; got {rows!r}")
    length = len(check_point(f"{name}[0]", rows[0]))
    return np.array([check_point(f"{name}[{i}]", row, length) for i, row in enumerate(rows)])


def check_dense_rows(X: Any, n_columns: int) -> Floats:
    """Return float rows with the given number of columns, or raise a ValueError."""
    rows = dense(check_rows(X))
    if rows.shape[1] != n_columns:
        raise ValueError(f"X must have {n_columns} columns, one per variable; got {rows.shape[1]}")
    return rows


def whole_multiple(values: Iterable[Fraction]) -> tuple[Objects, int]:
    """Return the values times their least common denominator, and that."""
    values = list(values)
    shared = math.lcm(*(value.denominator for value in values))
    return np.array([value.numerator * (shared // value.denominator) for value in values], dtype=object), shared


def vanishing_weights(rows: Objects) -> list[int] | None:
    """Return whole numbers ≥ 0, not all 0, for which Σ weight·row = 0 exactly; None if there are none, or many.

    The answer is found when it is unique up to scale, which it is for the vertices that an active-set method keeps.
    """
    equations = rows.T[(rows != 0).any(axis=0)]
    count = len(rows)
    if count - 1 > min(len(equations), _MOST_EQUATIONS):
        return None
    # After these steps the table has the inverse of the chosen equations in the chosen weights' columns.
    table, chosen = (equations % _PRIME).astype(np.int64), dict[int, int]()
    for column in range(count):
        is_free = table[:, column] != 0
        is_free[list(chosen.values())] = False
        if is_free.any():
            # Solve that row's equation for this column's unknown, and put it into all the others.
            row = chosen[column] = int(np.argmax(is_free))
            inverse = pow(int(table[row, column]), -1, _PRIME)
            solved = -table[row] * inverse % _PRIME
            solved[column] = inverse
            entries = table[:, column, None].copy()
            table[:, column] = 0
            table = (table + entries * solved) % _PRIME
            table[row] = solved
    columns, used = list(chosen), list(chosen.values())
    if len(columns) != count - 1:
        return None
    free = min(set(range(count)) - set(columns))
    chosen_equations, weights = equations[used], np.ones(count, dtype=object)
    weights[columns], weights[free] = _solution(
        chosen_equations[:, columns], -chosen_equations[:, free], table[np.ix_(used, columns)]
    )
    return None if min(weights) < 0 or (equations @ weights).any() else [int(weight) for weight in weights]


def _solution(matrix: Objects, right: Objects, inverse: Integers) -> tuple[list[int], int]:
    """Return the solution of matrix·x = right as numerators and their common denominator, from the inverse modulo p.

    Each step adds a digit to the base p, and what they leave of the right hand side is known exactly.

    References
    ----------
    Dixon (1982). Exact solution of linear equations using p-adic expansions. Numerische Mathematik.
    """
    # Hadamard: no determinant, and so no numerator or denominator, has more binary digits than this.
    bits = sum((int(row @ row + b * b).bit_length() + 1) // 2 for row, b in zip(matrix, right, strict=True))
    values, modulus, shared = np.zeros(len(right), dtype=object), 1, 1
    while modulus <= 4 << 2 * bits:
        digits = (inverse * (right % _PRIME).astype(np.int64) % _PRIME).sum(axis=1) % _PRIME
        digits = digits.astype(object)
        values, right, modulus = values + digits * modulus, (right - matrix @ digits) // _PRIME, modulus * _PRIME
    for value in values:
        # v ≡ n/d modulo M makes v/M near to a fraction over d. The denominators so far often are all of this one's.
        shared *= Fraction(value * shared % modulus, modulus).limit_denominator(1 << bits).denominator
    half = modulus // 2
    return [(value * shared + half) % modulus - half for value in values], shared
