"""φ against the kernels it belongs to, and Lemma 9 both ways."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.kernels import Gaussian, Multinomial, Polynomial, Rational
from onebit.theory.multivariate import FeatureMap, MultivariatePolynomial
from onebit.theory.polynomials import ChebyshevConstruction, Halfspaces

exactly = settings(derandomize=True, deadline=None, max_examples=40)
small = st.fractions(min_value=Fraction(-1, 2), max_value=Fraction(1, 2), max_denominator=20)
points = st.tuples(small, small, small)
terms = st.dictionaries(st.tuples(*[st.integers(0, 2)] * 3), st.fractions(-5, 5, max_denominator=9), max_size=8)


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
@given(points, points, st.integers(0, 6))
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
@given(terms, points)
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
@given(terms)
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


def test_bad_input_is_named() -> None:
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
