"""Polynomials that are positive on an intersection of halfspaces and negative outside it: Theorems 7 and 8."""

from onebit.theory.polynomials.chebyshev import (
    PRINTED_CONSTANT,
    SHARPER_CONSTANT,
    ChebyshevConstruction,
    chebyshev,
    chebyshev_coefficients,
    chebyshev_log2_norm_bound,
)
from onebit.theory.polynomials.halfspaces import HalfspacePolynomial, Halfspaces
from onebit.theory.polynomials.monomials import exponents_of_degree, multinomial
from onebit.theory.polynomials.multivariate import MultivariatePolynomial
from onebit.theory.polynomials.norm_bounds import (
    binomial_bound,
    squared_norm_bound_of_power,
    squared_norm_bound_of_product,
    squared_norm_bound_of_sum,
    squared_sum_bound,
)
from onebit.theory.polynomials.rational import RationalConstruction, numerator_and_denominator, stairs

__all__ = [
    "PRINTED_CONSTANT",
    "SHARPER_CONSTANT",
    "ChebyshevConstruction",
    "HalfspacePolynomial",
    "Halfspaces",
    "MultivariatePolynomial",
    "RationalConstruction",
    "binomial_bound",
    "chebyshev",
    "chebyshev_coefficients",
    "chebyshev_log2_norm_bound",
    "exponents_of_degree",
    "multinomial",
    "numerator_and_denominator",
    "squared_norm_bound_of_power",
    "squared_norm_bound_of_product",
    "squared_norm_bound_of_sum",
    "squared_sum_bound",
    "stairs",
]
