"""Exact polynomials and Lemmas 12 to 14."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.theory.multivariate import MultivariatePolynomial, _exponents_of_degree, _multinomial
from onebit.theory.polynomials import numerator_and_denominator

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
