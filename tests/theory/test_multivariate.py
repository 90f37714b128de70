"""Exact polynomials and Lemmas 12 to 14."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.kernels import Gaussian, Multinomial, Polynomial, Rational
from onebit.theory.multivariate import FeatureMap, MultivariatePolynomial, _exponents_of_degree, _multinomial
from onebit.theory.polynomials import ChebyshevConstruction, Halfspaces, numerator_and_denominator

exactly = settings(derandomize=True, deadline=None, max_examples=60)
fractions = st.fractions(min_value=-5, max_value=5, max_denominator=12)


def polynomials(n_variables: int = 2, degree: int = 3) -> st.SearchStrategy[MultivariatePolynomial]:
    exponents = st.tuples(*[st.integers(0, degree)] * n_variables)
    terms = st.dictionaries(exponents, fractions, max_size=6)
    return terms.map(lambda coefficients: MultivariatePolynomial(n_variables, coefficients))


points = st.tuples(fractions, fractions)


@exactly
@given(polynomials(), polynomials(), points)
def test_arithmetic_is_that_of_the_values(
    p: MultivariatePolynomial, q: MultivariatePolynomial, x: tuple[Fraction]
) -> None:
    a, b = p.evaluate(x), q.evaluate(x)
    assert (p + q).evaluate(x) == a + b
    assert (p - q).evaluate(x) == a - b
    assert (p * q).evaluate(x) == a * b
    assert (p**3).evaluate(x) == a**3
    assert (2 - 3 * p + 1).evaluate(x) == 3 - 3 * a


@exactly
@given(polynomials(), polynomials())
def test_ring_laws_equality_and_hash(p: MultivariatePolynomial, q: MultivariatePolynomial) -> None:
    assert p * q == q * p
    assert hash(p + q) == hash(q + p)
    assert p - p == 0 * q
    assert (p + q) ** 2 == p**2 + 2 * p * q + q**2
    assert (p * q).degree <= p.degree + q.degree


@exactly
@given(polynomials(), st.tuples(st.floats(-1, 1), st.floats(-1, 1)))
def test_rows_agree_with_the_exact_value(p: MultivariatePolynomial, x: tuple[float, float]) -> None:
    assert p(np.array([x]))[0] == pytest.approx(float(p.evaluate(x)), abs=1e-12)


@exactly
@given(st.lists(fractions, min_size=1, max_size=6), points)
def test_a_ridge_is_a_polynomial_of_one_inner_product(g: list[Fraction], v: tuple[Fraction, Fraction]) -> None:
    x = (Fraction(1, 3), Fraction(-2, 5))
    z = v[0] * x[0] + v[1] * x[1]
    assert MultivariatePolynomial.ridge(g, v).evaluate(x) == sum(value * z**j for j, value in enumerate(g))


@settings(derandomize=True, max_examples=100)
@given(st.lists(st.fractions(-100, 100, max_denominator=1000), min_size=1, max_size=30))
def test_lemma_12(numbers: list[Fraction]) -> None:
    assert sum(numbers) ** 2 <= len(numbers) * sum(b**2 for b in numbers)


def test_lemma_13_for_every_binomial_coefficient_up_to_200() -> None:
    for n in range(201):
        for k in range(n + 1):
            assert math.comb(n, k) <= (n - k + 1) ** k


@exactly
@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(1, 6))
def test_lemma_13_counts_the_ways_to_split_a_monomial(alpha: list[int], n: int) -> None:
    """What Lemma 14 needs it for: M_α ≤ n^|α|."""
    ways = math.prod(math.comb(a + n - 1, a) for a in alpha)
    assert ways <= n ** sum(alpha)


@exactly
@given(st.lists(polynomials(), min_size=1, max_size=4))
def test_lemma_14_product_and_sum(factors: list[MultivariatePolynomial]) -> None:
    product = math.prod(factors[1:], start=factors[0])
    total = sum(factors[1:], start=factors[0])
    n, squares = len(factors), [factor.squared_norm for factor in factors]
    assert product.squared_norm <= n ** sum(factor.degree for factor in factors) * math.prod(squares)
    assert total.squared_norm <= n * sum(squares)
    assert math.sqrt(total.squared_norm) <= sum(math.sqrt(f.squared_norm) for f in factors) * (1 + 1e-12)


@exactly
@given(polynomials(degree=2), st.integers(1, 4))
def test_lemma_14_power(q: MultivariatePolynomial, n: int) -> None:
    assert (q**n).squared_norm <= n ** (n * q.degree) * q.squared_norm**n


def test_norm_is_not_submultiplicative() -> None:
    x, y = MultivariatePolynomial.variables(2)
    q = 1 + x + y
    assert (q**2).squared_norm > q.squared_norm**2


def test_norms_beyond_floats() -> None:
    x, _ = MultivariatePolynomial.variables(2)
    p = 2**3000 * x
    assert p.log2_norm == 3000.0
    assert (0 * x).log2_norm == -math.inf
    assert (0 * x).degree == 0
    with pytest.raises(OverflowError, match=r"a coefficient is about 2\^3000"):
        p([[1.0, 0.0]])


@pytest.mark.parametrize("n_variables", [1, 2, 4])
def test_multinomials_count_words(n_variables: int) -> None:
    alphas = list(_exponents_of_degree(n_variables, 5))
    assert len(set(alphas)) == len(alphas) == math.comb(5 + n_variables - 1, 5)
    assert sum(map(_multinomial, alphas)) == n_variables**5


def test_printing() -> None:
    x, y = MultivariatePolynomial.variables(2)
    assert str(0 * x) == "0"
    assert str(-x + Fraction(1, 2) * y**2 - 1) == "-1 - x1 + 1/2 x2^2"
    assert eval(repr(x * y), {"MultivariatePolynomial": MultivariatePolynomial, "Fraction": Fraction}) == x * y


def test_nothing_changes_a_polynomial() -> None:
    x, _ = MultivariatePolynomial.variables(2)
    x.coefficients[1, 0] = Fraction(7)
    assert x.coefficients == {(1, 0): 1}
    with pytest.raises(AttributeError):
        x.n_variables = 3  # type: ignore[misc]


def test_bad_input_is_named() -> None:
    x, _ = MultivariatePolynomial.variables(2)
    (z,) = MultivariatePolynomial.variables(1)
    with pytest.raises(ValueError, match="keyed by 2 exponents each"):
        MultivariatePolynomial(2, {(1,): 1})
    with pytest.raises(ValueError, match="exponent"):
        MultivariatePolynomial(1, {(-1,): 1})
    with pytest.raises(ValueError, match="must be finite"):
        MultivariatePolynomial(1, {(1,): math.nan})
    with pytest.raises(ValueError, match="same variables; got 2 and 1"):
        x + z
    with pytest.raises(ValueError, match="x must hold 2 numbers"):
        x.evaluate([1])
    with pytest.raises(ValueError, match="X must have 2 columns"):
        x([[1.0]])
    assert x != 1


def _numpys(number: int) -> Any:
    return np.int64(number)


def test_numpys_whole_numbers_do_not_overflow() -> None:
    assert numerator_and_denominator(9, _numpys(9), 7) == numerator_and_denominator(9, 9, 7)


halves = st.fractions(min_value=Fraction(-1, 2), max_value=Fraction(1, 2), max_denominator=20)
short_points = st.tuples(halves, halves, halves)
few_terms = st.dictionaries(st.tuples(*[st.integers(0, 2)] * 3), st.fractions(-5, 5, max_denominator=9), max_size=8)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    X = np.random.default_rng(seed).normal(size=(n, d))
    scaled: np.ndarray[tuple[int, int], np.dtype[np.float64]] = X / np.linalg.norm(X, axis=1).max()
    return scaled


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("n", [0, 1, 5, 12])
def test_rational_kernel_up_to_the_tail(d: int, n: int) -> None:
    X = rows(30, d)
    phi = FeatureMap(Rational(), d, n)
    gap = np.abs(phi(X) @ phi(X).T - Rational()(X))
    assert phi(X).shape == (30, phi.n_features) == (30, len(phi.exponents))
    assert phi.tail_bound == 2.0**-n
    assert gap.max() <= phi.tail_bound + 1e-15
    assert gap.max() > 0.9 * phi.tail_bound


@pytest.mark.parametrize("kernel", [Polynomial(1), Polynomial(4), Multinomial(1), Multinomial(5)])
def test_finite_kernels_are_met_exactly(kernel: Polynomial | Multinomial) -> None:
    X = 2.0 * rows(20, 3)
    phi = FeatureMap(kernel, 3)
    assert phi.tail_bound == 0.0
    np.testing.assert_allclose(phi(X) @ phi(X).T, kernel(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [Rational(normalize=True), Polynomial(3, normalize=True)])
def test_normalize_is_respected(kernel: Rational | Polynomial) -> None:
    X = 5.0 * rows(10, 2)
    phi = FeatureMap(kernel, 2, 40 if isinstance(kernel, Rational) else None)
    np.testing.assert_allclose(phi(X) @ phi(X).T, kernel(X), rtol=1e-10, atol=1e-12)


@exactly
@given(short_points, short_points, st.integers(0, 6))
def test_inner_products_are_exact(x: tuple[Fraction, ...], other: tuple[Fraction, ...], n: int) -> None:
    z = sum((a * b for a, b in zip(x, other, strict=True)), Fraction(0))
    rational = FeatureMap(Rational(), 3, n)
    tail = (z / 2) ** (n + 1) / (1 - z / 2)
    assert rational.inner_product(x, other) == 1 / (1 - z / 2) - tail
    assert abs(tail) <= Fraction(1, 2**n)
    if n:
        assert FeatureMap(Polynomial(n), 3).inner_product(x, other) == (1 + z) ** n
        assert FeatureMap(Multinomial(n), 3).inner_product(x, other) == sum(z**j for j in range(n + 1))


@exactly
@given(few_terms, short_points)
def test_lemma_9_there_and_back(coefficients: dict[tuple[int, ...], Fraction], x: tuple[Fraction, ...]) -> None:
    p = MultivariatePolynomial(3, coefficients)
    for phi in (FeatureMap(Rational(), 3, 6), FeatureMap(Polynomial(6), 3), FeatureMap(Multinomial(7), 3)):
        c = phi.vector(p)
        row = np.array([[float(entry) for entry in x]])
        assert float((phi(row) @ c)[0]) == pytest.approx(float(p.evaluate(x)), abs=1e-9)
        assert float(c @ c) == pytest.approx(float(phi.squared_vector_norm(p)), rel=1e-9)
        back = phi.polynomial(c)
        assert float((back - p).squared_norm) <= 1e-24 * float(p.squared_norm)


@exactly
@given(few_terms)
def test_lemma_9_norm_bound(coefficients: dict[tuple[int, ...], Fraction]) -> None:
    p = MultivariatePolynomial(3, coefficients)
    assert FeatureMap(Rational(), 3, 6).squared_vector_norm(p) <= 2**p.degree * p.squared_norm


def test_lemma_9_norm_bound_is_met_by_pure_powers() -> None:
    x, _, _ = MultivariatePolynomial.variables(3)
    assert FeatureMap(Rational(), 3, 6).squared_vector_norm(x**6) == 2**6


def test_theorem_7_as_a_vector_separates() -> None:
    """The polynomial of an intersection of halfspaces, as a linear function of φ."""
    halfspaces = Halfspaces([[0.6, 0.8], [0.8, -0.6]], 0.2)
    p = ChebyshevConstruction(halfspaces)
    phi = FeatureMap(Rational(), 2, p.degree_bound)
    X = np.random.default_rng(1).uniform(-1.0, 1.0, size=(4000, 2))
    X = X[np.linalg.norm(X, axis=1) <= 1.0]
    sides = halfspaces.sides(X)
    scores = phi(X) @ phi.vector(p.expand())
    assert (sides == 1).sum() > 100
    assert scores[sides == 1].min() >= 0.5
    assert scores[sides == -1].max() <= -0.5
    np.testing.assert_allclose(scores, p(X), rtol=1e-6, atol=1e-8)


def test_bad_input_of_a_feature_map_is_named() -> None:
    x, y = MultivariatePolynomial.variables(2)
    phi = FeatureMap(Rational(), 2, 2)
    with pytest.raises(ValueError, match="degree must be given"):
        FeatureMap(Rational(), 2)
    with pytest.raises(ValueError, match="degree must be left out"):
        FeatureMap(Polynomial(3), 2, 2)
    with pytest.raises(ValueError, match=r"kernel must be Rational\(\)"):
        FeatureMap(Gaussian(), 2, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lower the degree"):
        FeatureMap(Rational(), 50, 50)
    with pytest.raises(ValueError, match="polynomial has degree 3, but the feature map ends at 2"):
        phi.vector(x**3)
    with pytest.raises(ValueError, match="polynomial must have 2 variables"):
        phi.vector(MultivariatePolynomial.variables(3)[0])
    with pytest.raises(ValueError, match="vector must hold 6 finite numbers"):
        phi.polynomial([1.0])
    with pytest.raises(ValueError, match="unit ball"):
        phi([[1.0, 1.0]])
    with pytest.raises(OverflowError, match="too large for a float"):
        phi.vector(2**2000 * x * y)
