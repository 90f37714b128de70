"""Arithmetic with twice a float's digits: a number is a pair (high, low) whose unrounded sum it is.

Badly scaled data need it: a margin of 1 on rows of length 10⁹ is lost when products are rounded to 16 digits, but not
when they are rounded to 32. Arrays of such numbers have a last axis of two. What is rounded is at most a few units of
2⁻¹⁰⁴, as long as nothing under- or overflows; callers keep their numbers within a few units of 1.

References
----------
Dekker (1971). A floating-point technique for extending the available precision. Numerische Mathematik.
"""

import math

from onebit.engine.jit import jit
from onebit.inputs import Floats

# 2²⁷ + 1 cuts the 53 binary digits of a float in two halves whose products are exact.
_SPLITTER = 134217729.0


@jit
def _add(a: float, low_a: float, b: float, low_b: float) -> tuple[float, float]:
    """Return the sum of two pairs."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    low = low_a + low_b
    part = low - low_a
    last = (low_a - (low - part)) + (low_b - part)
    error += low
    high = total + error
    error -= high - total
    error += last
    return high + error, error - ((high + error) - high)


@jit
def _times(a: float, low_a: float, b: float, low_b: float) -> tuple[float, float]:
    """Return the product of two pairs."""
    product = a * b
    wide_a, wide_b = _SPLITTER * a, _SPLITTER * b
    head_a, head_b = wide_a - (wide_a - a), wide_b - (wide_b - b)
    tail_a, tail_b = a - head_a, b - head_b
    error = ((head_a * head_b - product) + head_a * tail_b + tail_a * head_b) + tail_a * tail_b
    error += a * low_b + low_a * b
    high = product + error
    return high, error - (high - product)


@jit
def _over(a: float, low_a: float, b: float, low_b: float) -> tuple[float, float]:
    """Return the quotient of two pairs: long division, three digits of a float's size."""
    first = a / b
    high, low = _times(first, 0.0, b, low_b)
    rest, low_rest = _add(a, low_a, -high, -low)
    second = rest / b
    high, low = _times(second, 0.0, b, low_b)
    rest, low_rest = _add(rest, low_rest, -high, -low)
    high, low = _add(first, 0.0, second, 0.0)
    return _add(high, low, rest / b, 0.0)


@jit
def _root(a: float, low_a: float) -> tuple[float, float]:
    """Return the square root of a pair: one step of Newton's method from the float's."""
    first = math.sqrt(a)
    high, low = _times(first, 0.0, first, 0.0)
    rest, _ = _add(a, low_a, -high, -low)
    return _add(first, 0.0, rest / (2.0 * first), 0.0) if first > 0.0 else (0.0, 0.0)


@jit
def products(rows: Floats, vectors: Floats, out: Floats) -> None:
    """Write the product of each row of floats (n, d) with each vector of pairs (k, d, 2), as pairs (n, k, 2)."""
    for t in range(rows.shape[0]):
        for i in range(vectors.shape[0]):
            high, low = 0.0, 0.0
            for k in range(rows.shape[1]):
                a, b = _times(rows[t, k], 0.0, vectors[i, k, 0], vectors[i, k, 1])
                high, low = _add(high, low, a, b)
            out[t, i, 0], out[t, i, 1] = high, low


@jit
def project_out(vector: Floats, q: Floats, count: int, coefficients: Floats) -> None:
    """Subtract from a vector its parts along orthonormal rows, and add the parts to the coefficients; all pairs."""
    for j in range(count):
        high, low = 0.0, 0.0
        for k in range(vector.shape[0]):
            a, b = _times(q[j, k, 0], q[j, k, 1], vector[k, 0], vector[k, 1])
            high, low = _add(high, low, a, b)
        coefficients[j, 0], coefficients[j, 1] = _add(coefficients[j, 0], coefficients[j, 1], high, low)
        for k in range(vector.shape[0]):
            a, b = _times(q[j, k, 0], q[j, k, 1], -high, -low)
            vector[k, 0], vector[k, 1] = _add(vector[k, 0], vector[k, 1], a, b)


@jit
def normalize(vector: Floats, length: Floats) -> None:
    """Divide a vector of pairs by its length, and write the length."""
    high, low = 0.0, 0.0
    for k in range(vector.shape[0]):
        a, b = _times(vector[k, 0], vector[k, 1], vector[k, 0], vector[k, 1])
        high, low = _add(high, low, a, b)
    high, low = _root(high, low)
    length[0], length[1] = high, low
    if high > 0.0:
        for k in range(vector.shape[0]):
            vector[k, 0], vector[k, 1] = _over(vector[k, 0], vector[k, 1], high, low)


@jit
def back_substitute(r: Floats, right: Floats, solution: Floats) -> None:
    """Solve r·solution = right for the leading upper triangle of r; all pairs."""
    for i in range(solution.shape[0] - 1, -1, -1):
        high, low = right[i, 0], right[i, 1]
        for j in range(i + 1, solution.shape[0]):
            a, b = _times(r[i, j, 0], r[i, j, 1], -solution[j, 0], -solution[j, 1])
            high, low = _add(high, low, a, b)
        solution[i, 0], solution[i, 1] = _over(high, low, r[i, i, 0], r[i, i, 1])


@jit
def delete_column(q: Floats, r: Floats, at: int, count: int) -> None:
    """Remove a column from QR factors of pairs and restore the triangle by rotations; `count` columns remain."""
    for i in range(count + 1):
        for j in range(at, count):
            r[i, j, 0], r[i, j, 1] = r[i, j + 1, 0], r[i, j + 1, 1]
        r[i, count, 0], r[i, count, 1] = 0.0, 0.0
    for j in range(at, count):
        a, b = _times(r[j, j, 0], r[j, j, 1], r[j, j, 0], r[j, j, 1])
        c, d = _times(r[j + 1, j, 0], r[j + 1, j, 1], r[j + 1, j, 0], r[j + 1, j, 1])
        a, b = _add(a, b, c, d)
        length, low = _root(a, b)
        cosine, low_cosine = _over(r[j, j, 0], r[j, j, 1], length, low)
        sine, low_sine = _over(r[j + 1, j, 0], r[j + 1, j, 1], length, low)
        for k in range(j, count):
            _rotate(r, j, k, cosine, low_cosine, sine, low_sine)
        r[j + 1, j, 0], r[j + 1, j, 1] = 0.0, 0.0
        for k in range(q.shape[1]):
            _rotate(q, j, k, cosine, low_cosine, sine, low_sine)


@jit
def _rotate(matrix: Floats, j: int, k: int, cosine: float, low_cosine: float, sine: float, low_sine: float) -> None:
    upper, low_upper = matrix[j, k, 0], matrix[j, k, 1]
    lower, low_lower = matrix[j + 1, k, 0], matrix[j + 1, k, 1]
    a, b = _times(upper, low_upper, cosine, low_cosine)
    c, d = _times(lower, low_lower, sine, low_sine)
    matrix[j, k, 0], matrix[j, k, 1] = _add(a, b, c, d)
    a, b = _times(lower, low_lower, cosine, low_cosine)
    c, d = _times(upper, low_upper, -sine, -low_sine)
    matrix[j + 1, k, 0], matrix[j + 1, k, 1] = _add(a, b, c, d)
