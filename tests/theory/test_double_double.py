"""Pairs of floats, against fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.inputs import Floats
from onebit.theory import double_double

property_test = settings(max_examples=60, derandomize=True, deadline=None)
# Far from where floats under- or overflow.
numbers = st.floats(-1.0, 1.0).filter(lambda value: value == 0.0 or abs(value) > 1e-100)


def as_fraction(pair: Floats) -> Fraction:
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def pairs(rng: np.random.Generator, *shape: int) -> Floats:
    high = rng.standard_normal(shape)
    return np.stack([high, high * 2.0**-54 * rng.uniform(-1.0, 1.0, shape)], axis=-1)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
@property_test
def test_products_have_twice_the_digits(terms: list[tuple[float, float]]) -> None:
    row, vector = np.array([[a for a, _ in terms]]), np.array([[[b, 0.0] for _, b in terms]])
    out = np.empty((1, 1, 2))
    double_double.products(row, vector, out)
    exact = sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(0))
    size = sum((abs(Fraction(a) * Fraction(b)) for a, b in terms), Fraction(0))
    assert abs(as_fraction(out[0, 0]) - exact) <= len(terms) * size / 2**102


def test_a_triangle_of_pairs_is_solved_and_kept_by_rotations() -> None:
    rng = np.random.default_rng(0)
    q, r = np.zeros((4, 6, 2)), np.zeros((4, 4, 2))
    columns = pairs(rng, 4, 6)
    for count, column in enumerate(columns):
        rest, products, length = column.copy(), np.zeros((count, 2)), np.empty(2)
        for _ in range(2):
            double_double.project_out(rest, q, count, products)
        double_double.normalize(rest, length)
        q[count], r[:count, count], r[count, count] = rest, products, length
    for kept in ([0, 1, 2, 3], [0, 2, 3]):
        if len(kept) == 3:
            double_double.delete_column(q, r, 1, 3)
        for j, column in enumerate(kept):
            for k in range(6):
                made = sum((as_fraction(q[i, k]) * as_fraction(r[i, j]) for i in range(j + 1)), Fraction(0))
                assert abs(made - as_fraction(columns[column, k])) < Fraction(1, 2**95)
    right, solution = pairs(rng, 3), np.empty((3, 2))
    double_double.back_substitute(r, right, solution)
    for i in range(3):
        left = sum((as_fraction(r[i, j]) * as_fraction(solution[j]) for j in range(i, 3)), Fraction(0))
        assert abs(left - as_fraction(right[i])) < Fraction(1, 2**90)
