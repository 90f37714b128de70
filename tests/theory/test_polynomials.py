"""Theorems 7 and 8, Proposition 15, Lemmas 16 to 18: exact, on random halfspaces and points."""

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

from onebit.theory.polynomials import (
    ChebyshevConstruction,
    HalfspacePolynomial,
    Halfspaces,
    RationalConstruction,
    chebyshev,
    numerator_and_denominator,
    stairs,
)

CONSTRUCTIONS: list[type[HalfspacePolynomial]] = [ChebyshevConstruction, RationalConstruction]
HALF = Fraction(1, 2)
SHARPEST_CONSTANT = 47

Vector = tuple[Fraction, ...]


def dot(left: Any, right: Any) -> Any:
    """The inner product, exactly."""
    return sum(map(operator.mul, left, right))


def exactly(max_examples: int) -> settings:
    return settings(derandomize=True, deadline=None, max_examples=max_examples)


def in_ball(entries: list[int]) -> Vector:
    length = math.isqrt(sum(entry**2 for entry in entries) - 1) + 1
    return tuple(Fraction(entry, length) for entry in entries)


def vectors(d: int) -> st.SearchStrategy[Vector]:
    return st.lists(st.integers(-9, 9), min_size=d, max_size=d).filter(any).map(in_ball)


@st.composite
def placed_points(draw: st.DrawFn, side: int) -> tuple[Halfspaces, Vector]:
    """Halfspaces and a point in R⁺ (side 1) or R⁻ (side −1), now and then on the very border."""
    d, m = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    x = draw(vectors(d))
    directions = [draw(vectors(d)) for _ in range(m)]
    directions = [tuple(-e for e in v) if dot(v, x) < 0 else v for v in directions]
    if side < 0:
        directions[0] = tuple(-e for e in directions[0])
    deciding = directions if side > 0 else directions[:1]
    margin = min(abs(dot(v, x)) for v in deciding) * draw(
        st.sampled_from([Fraction(1), Fraction(3, 4), Fraction(1, 7)])
    )
    assume(0 < margin < 1)
    return Halfspaces(directions, margin), x


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@exactly(150)
@given(placed=placed_points(side=1))
def test_at_least_a_half_inside(construction: type[HalfspacePolynomial], placed: tuple[Halfspaces, Vector]) -> None:
    halfspaces, x = placed
    assert halfspaces.side(x) == 1
    assert construction(halfspaces).evaluate(x) >= HALF


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@exactly(150)
@given(placed=placed_points(side=-1))
def test_at_most_minus_a_half_outside(
    construction: type[HalfspacePolynomial], placed: tuple[Halfspaces, Vector]
) -> None:
    halfspaces, x = placed
    assert halfspaces.side(x) == -1
    assert construction(halfspaces).evaluate(x) <= -HALF


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@exactly(100)
@given(placed=st.sampled_from([1, -1]).flatmap(placed_points))
def test_rows_agree_with_the_exact_value(
    construction: type[HalfspacePolynomial], placed: tuple[Halfspaces, Vector]
) -> None:
    halfspaces, x = placed
    p = construction(halfspaces)
    exact = p.evaluate(x)
    row = [[float(entry) for entry in x]]
    assume(sum(entry**2 for entry in row[0]) <= 1)
    size = math.log2(abs(exact.numerator)) - math.log2(exact.denominator)
    value = float(p(row)[0])
    assert (value > 0.0) == (exact > 0)
    assert (math.log2(abs(value)) == pytest.approx(size, abs=1e-6)) if size < 1023 else abs(value) > 1e307


@st.composite
def small_halfspaces(draw: st.DrawFn, max_m: int, smallest: int, max_d: int) -> Halfspaces:
    d, m = draw(st.integers(1, max_d)), draw(st.integers(1, max_m))
    margin = Fraction(1, draw(st.integers(2, smallest)))
    return Halfspaces([draw(vectors(d)) for _ in range(m)], margin)


@exactly(40)
@given(small_halfspaces(max_m=5, smallest=30, max_d=3))
def test_theorem_7_degree_and_norm(halfspaces: Halfspaces) -> None:
    p = ChebyshevConstruction(halfspaces)
    expanded = p.expand()
    assert expanded.degree <= p.degree_bound
    for constant in (188, 94, SHARPEST_CONSTANT):
        # (constant·rs)^(rs), the bound squared, is a whole number: no rounding in the comparison.
        assert expanded.squared_norm <= (constant * p.degree_bound) ** p.degree_bound
    assert p.log2_norm_bound == p.degree_bound / 2.0 * math.log2(188 * p.degree_bound) >= expanded.log2_norm


@exactly(25)
@given(small_halfspaces(max_m=2, smallest=8, max_d=2))
def test_theorem_8_degree_and_norm(halfspaces: Halfspaces) -> None:
    p = RationalConstruction(halfspaces)
    expanded = p.expand()
    assert expanded.degree <= p.degree_bound - halfspaces.n_halfspaces + 1
    assert expanded.log2_norm <= p.log2_norm_bound


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@exactly(25)
@given(halfspaces=small_halfspaces(max_m=2, smallest=8, max_d=2), data=st.data())
def test_expanded_equals_structured(
    construction: type[HalfspacePolynomial], halfspaces: Halfspaces, data: st.DataObject
) -> None:
    p, x = construction(halfspaces), data.draw(vectors(halfspaces.n_variables))
    expanded = p.expand()
    assert expanded.evaluate(x) == p.evaluate(x)
    assert len(expanded.coefficients) <= p.n_coefficients


def test_theorem_8_expands_with_three_halfspaces() -> None:
    halfspaces = Halfspaces([[1, 0], [0, 1], [Fraction(-3, 5), Fraction(4, 5)]], Fraction(1, 4))
    p = RationalConstruction(halfspaces)
    x = (Fraction(1, 3), Fraction(-1, 2))
    expanded = p.expand()
    assert (p.r, p.s, p.degree_bound) == (3, 2, 45)
    assert expanded.evaluate(x) == p.evaluate(x)
    assert expanded.log2_norm <= p.log2_norm_bound


def test_the_degree_can_be_smaller_than_printed() -> None:
    """With v and −v and an odd degree the leading terms cancel."""
    p = ChebyshevConstruction(Halfspaces([[1], [-1], [0], [0], [0]], Fraction(1, 9)))
    assert (p.r, p.s) == (4, 3)
    assert ChebyshevConstruction(Halfspaces([[0]], 0.25)).expand().degree == 0
    odd = ChebyshevConstruction(Halfspaces([[1], [-1], [1], [-1]], Fraction(1, 9)))
    assert odd.degree_bound == 9
    assert odd.expand().degree == 8


@pytest.mark.parametrize(
    ("m", "margin", "chebyshev_rs", "rational_rs"),
    [
        (1, Fraction(1, 4), (1, 2), (3, 2)),
        (2, Fraction(1, 9), (2, 3), (3, 4)),
        (3, Fraction(1, 10), (3, 4), (3, 4)),
        (4, Fraction(99, 100), (3, 2), (5, 1)),
        (64, Fraction(1, 1024), (7, 32), (7, 10)),
        (3, Fraction(1, 1025), (3, 33), (3, 11)),
    ],
)
def test_parameters(m: int, margin: Fraction, chebyshev_rs: tuple[int, int], rational_rs: tuple[int, int]) -> None:
    halfspaces = Halfspaces([[1]] * m, margin)
    first, second = ChebyshevConstruction(halfspaces), RationalConstruction(halfspaces)
    assert (first.r, first.s) == chebyshev_rs
    assert (second.r, second.s) == rational_rs
    assert second.r == 2 * math.ceil(math.log2(4 * m + 1) / 4) + 1
    assert first.r == math.ceil(math.log2(2 * m))


def test_values_beyond_floats_keep_their_sign() -> None:
    angles = np.linspace(0.0, 2.0, 6)
    halfspaces = Halfspaces(np.column_stack([np.cos(angles), np.sin(angles)]).tolist(), 1e-6)
    X = np.array([[0.5, 0.5], [-0.5, -0.5], [0.9, 0.01]])
    for construction in CONSTRUCTIONS:
        values = construction(halfspaces)(X)
        assert np.sign(values).tolist() == [1.0, -1.0, -1.0]
        assert (np.abs(values) >= 0.5).all()
        assert np.isinf(values[1])
    assert halfspaces.sides(X).tolist() == [1, -1, -1]


# Proposition 15


def coefficients_of(n: int) -> list[int]:
    """The coefficients of Tₙ, the constant first."""
    coefficients: list[int] = chebyshev(n, Polynomial(np.array([0, 1], dtype=object))).coef.tolist()
    return coefficients


@pytest.mark.parametrize("n", range(41))
def test_proposition_15_degree_leading_coefficient_and_norm(n: int) -> None:
    coefficients = coefficients_of(n)
    assert len(coefficients) == n + 1
    assert coefficients[-1] == (2 ** (n - 1) if n else 1)
    squared = sum(c * c for c in coefficients)
    # (1+√2)²ⁿ = a + b√2 with whole a, b and 0 < a − b√2 ≤ 1, so its whole part is 2a − 1 (n ≥ 1).
    a, b = 1, 0
    for _ in range(n):
        a, b = 3 * a + 4 * b, 2 * a + 3 * b
    assert squared <= max(2 * a - 1, 1)


@exactly(60)
@given(st.integers(0, 30), st.fractions(-3, 3, max_denominator=50))
def test_proposition_15_values(n: int, z: Fraction) -> None:
    value = chebyshev(n, z)
    assert value == sum(c * z**j for j, c in enumerate(coefficients_of(n)))
    if abs(z) <= 1:
        assert abs(value) <= 1
    if z >= 1:
        assert value >= 1 + n**2 * (z - 1)


@pytest.mark.parametrize("theta", [0.0, 0.3, 1.2, 3.0])
def test_proposition_15_cosines(theta: float) -> None:
    for n in range(12):
        assert float(chebyshev(n, math.cos(theta))) == pytest.approx(math.cos(n * theta), abs=1e-11)
        assert float(chebyshev(n, math.cosh(theta))) == pytest.approx(math.cosh(n * theta), rel=1e-11)


# Lemmas 16 and 17


@exactly(150)
@given(st.integers(0, 6), st.fractions(0, 1, max_denominator=64), st.integers(1, 40))
def test_lemmas_16_and_17(n: int, fraction: Fraction, m: int) -> None:
    r = RationalConstruction(Halfspaces([[1]] * m, HALF)).r
    floor = (1 - Fraction(1, 4 * m + 1)) * 2 ** (n * (n + 1) * r)
    near, far = fraction, 1 + fraction * (2**n - 1)
    assert stairs(n, -near) <= stairs(n, near) <= 0
    if n:
        assert 0 <= 4 * stairs(n, far) <= -stairs(n, -far)
    for z in (near, far):
        a, b = numerator_and_denominator(n, r, z)
        mirrored = numerator_and_denominator(n, r, -z)
        assert -stairs(n, -z) >= 2 ** (n * (n + 1))
        assert mirrored == (-a, b)
        assert b >= floor
        assert (abs(a / b) <= 1) if z <= 1 else (1 <= a / b <= 1 + Fraction(1, 2 * m))


@exactly(150)
@given(placed=st.sampled_from([1, -1]).flatmap(placed_points))
def test_lemma_18(placed: tuple[Halfspaces, Vector]) -> None:
    halfspaces, x = placed
    p = RationalConstruction(halfspaces)
    quotient = p.quotient(x)
    assert (quotient >= HALF) if halfspaces.side(x) == 1 else (quotient <= -HALF)
    pairs = [numerator_and_denominator(p.s, p.r, score / halfspaces.margin) for score in halfspaces.scores(x)]
    assert p.evaluate(x) == Fraction(2) ** p.log2_scale * quotient * math.prod(b for _, b in pairs)
    # The end of the proof of Theorem 8: the denominators only add to the size.
    assert abs(p.evaluate(x)) >= abs(quotient)


def test_lemma_18_asks_for_the_unit_ball() -> None:
    p = RationalConstruction(Halfspaces([[1, 0], [0.6, 0.8]], 0.25))
    assert p.quotient([1, 0]) >= HALF
    with pytest.raises(ValueError, match="x must lie within the unit ball"):
        p.quotient([1.5, 0])


def test_lemma_16_fraction_as_printed_is_upside_down() -> None:
    z, n = HALF, 2
    right = (1 - z) / (1 + z) * math.prod(((z - 2**i) / (z + 2**i)) ** 2 for i in (1, 2))
    printed = (1 - z) / (1 + z) * math.prod(((z + 2**i) / (z - 2**i)) ** 2 for i in (1, 2))
    assert stairs(n, z) / stairs(n, -z) == right <= 1 < printed


# Regions and bad input


def test_sides() -> None:
    halfspaces = Halfspaces([[1, 0], [0, 1]], Fraction(1, 4))
    points = [[0.25, 0.25], [-0.25, 1.0], [0.5, 0.0], [0.9, 0.9], [0.25, -0.25], [0.1, 0.2]]
    assert [halfspaces.side(x) for x in points] == [1, 0, 0, 0, -1, 0]
    assert halfspaces.sides(points).tolist() == [1, 0, 0, 0, -1, 0]


def test_normalized_floats_are_accepted() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    assert Halfspaces(rows, 0.1).n_halfspaces == 50


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"directions\[1\] has length 1.41421.*Divide"):
        Halfspaces([[1, 0], [1, 1]], 0.1)
    with pytest.raises(ValueError, match="margin must lie strictly between 0 and 1; got 1"):
        Halfspaces([[1, 0]], 1)
    with pytest.raises(ValueError, match=r"directions\[1\] must hold 2 numbers; got 1"):
        Halfspaces([[1, 0], [1]], 0.1)
    with pytest.raises(ValueError, match="directions must list at least one vector"):
        Halfspaces([], 0.1)
    with pytest.raises(ValueError, match=r"directions\[0\]\[1\] must be an int"):
        Halfspaces([[1, "a"]], 0.1)
    with pytest.raises(ValueError, match="halfspaces must be a Halfspaces"):
        ChebyshevConstruction([[1, 0]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="row 1 has length 2"):
        ChebyshevConstruction(Halfspaces([[1, 0]], 0.1))([[0.0, 0.0], [2.0, 0.0]])
    with pytest.raises(ValueError, match="n must be at least 0; got -1"):
        chebyshev(-1, 0.5)
