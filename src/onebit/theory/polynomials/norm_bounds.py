"""Lemmas 12 to 14: the norm of a product, of a power and of a sum of polynomials.

The norm of a polynomial is the Euclidean norm of its coefficients. It is not submultiplicative; Lemma 14 says by how
much at most (deg: the degrees of the factors, n: their number):

    1. ‖p₁p₂⋯pₙ‖² ≤ n^(Σ deg pⱼ) · ∏‖pⱼ‖²
    2. ‖qⁿ‖²      ≤ n^(n·deg q) · ‖q‖²ⁿ
    3. ‖p₁+⋯+pₙ‖  ≤ Σ‖pⱼ‖, and therefore ‖p₁+⋯+pₙ‖² ≤ n·Σ‖pⱼ‖²

A coefficient of the product is a sum over the ways to split its monomial among the factors. Lemma 12 bounds the square
of such a sum by the number of its terms, Lemma 13 that number: ∏ᵢ (αᵢ+n−1 choose αᵢ) ≤ n^|α|.

The functions return the right hand sides as fractions, so that a comparison with
`MultivariatePolynomial.squared_norm` involves no rounding.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from onebit.inputs import check_integer
from onebit.theory.exact import Number, check_point
from onebit.theory.polynomials.multivariate import MultivariatePolynomial


def squared_sum_bound(numbers: Sequence[Number]) -> Fraction:
    """Return Lemma 12's bound on (b₁+⋯+bₙ)²: n·Σbᵢ², exactly.

    Examples
    --------
    >>> squared_sum_bound([1, 2, Fraction(1, 2)])
    Fraction(63, 4)
    """
    values = check_point("numbers", numbers)
    return len(values) * sum((value**2 for value in values), Fraction(0))


def binomial_bound(n: int, k: int) -> int:
    """Return Lemma 13's bound on the binomial coefficient (n choose k), for n ≥ k ≥ 0: (n−k+1)ᵏ.

    Examples
    --------
    >>> math.comb(6, 2), binomial_bound(6, 2)
    (15, 25)
    """
    chosen = check_integer("k", k, low=0)
    return int((check_integer("n", n, low=chosen) - chosen + 1) ** chosen)


def squared_norm_bound_of_product(factors: Sequence[MultivariatePolynomial]) -> Fraction:
    """Return Lemma 14(1)'s bound on the squared norm of a product: n^(Σ deg pⱼ)·∏‖pⱼ‖².

    Examples
    --------
    >>> x, y = MultivariatePolynomial.variables(2)
    >>> ((x + y) * (x - y)).squared_norm, squared_norm_bound_of_product([x + y, x - y])
    (Fraction(2, 1), Fraction(16, 1))
    """
    _check_some("factors", factors)
    degrees = sum(factor.degree for factor in factors)
    return math.prod((factor.squared_norm for factor in factors), start=Fraction(len(factors) ** degrees))


def squared_norm_bound_of_power(base: MultivariatePolynomial, n: int) -> Fraction:
    """Return Lemma 14(2)'s bound on the squared norm of baseⁿ: n^(n·deg)·‖base‖²ⁿ."""
    count = check_integer("n", n, low=1)
    return Fraction(count ** (count * base.degree)) * base.squared_norm**count


def squared_norm_bound_of_sum(terms: Sequence[MultivariatePolynomial]) -> Fraction:
    """Return Lemma 14(3)'s bound on the squared norm of a sum: n·Σ‖pⱼ‖²."""
    _check_some("terms", terms)
    # (Σ‖pⱼ‖)² ≤ n·Σ‖pⱼ‖², by Cauchy and Schwarz; the squares are fractions, the norms are not.
    return len(terms) * sum((term.squared_norm for term in terms), Fraction(0))


def _check_some(name: str, polynomials: Sequence[MultivariatePolynomial]) -> None:
    if not polynomials:
        raise ValueError(f"{name} must hold at least one polynomial; got {polynomials!r}")
