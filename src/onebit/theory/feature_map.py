"""The space behind a kernel, coordinate by coordinate, and Lemma 9: a polynomial is a vector in it.

A kernel k(x,x') = Σⱼ aⱼ⟨x,x'⟩ʲ with aⱼ > 0 has one coordinate per monomial,

    φ_α(x) = x^α · sqrt(a_|α| · multinomial(α)),        so that ⟨φ(x), φ(x')⟩ = k(x,x').

Every polynomial p is ⟨c, φ(·)⟩ with c_α = p_α / sqrt(a_|α| · multinomial(α)). See docs/theory/feature-map.md.

References
----------
Beygelzimer et al. (2019). ICML. Section 5, equation for φ, Lemma 9.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.inputs import Floats, check_integer
from onebit.kernels import Multinomial, Polynomial, Rational
from onebit.theory.exact import Number, check_dense_rows, check_point, dot, to_float
from onebit.theory.multivariate import Exponents, MultivariatePolynomial, exponents_of_degree, monomial, multinomial

_MAX_FEATURES = 1_000_000  # the most coordinates a feature map will list: eight megabytes for a single row


@dataclass(frozen=True)
class FeatureMap:
    """φ of a kernel, up to a degree.

    Parameters
    ----------
    kernel : Rational, Polynomial or Multinomial
        The kernel of `onebit.kernels`. Its ``normalize`` is respected.
    n_variables : int
        d, the number of entries of x.
    degree : int, optional
        n, where the rational kernel is cut off. The other two end at their own degree and take none.

    Guarantee
    ---------
    |⟨φ(x), φ(x')⟩ − k(x,x')| ≤ `tail_bound` on the unit ball: 2⁻ⁿ for the rational kernel, 0 for the others.

    Examples
    --------
    >>> phi = FeatureMap(Rational(), n_variables=2, degree=30)
    >>> X = np.array([[0.6, 0.8], [0.5, -0.1]])
    >>> phi.n_features, bool(np.abs(phi(X) @ phi(X).T - Rational()(X)).max() < 1e-9)
    (496, True)
    """

    kernel: Rational | Polynomial | Multinomial
    n_variables: int
    degree: int | None = None

    def __post_init__(self) -> None:
        check_integer("n_variables", self.n_variables, low=1)
        if not isinstance(self.kernel, (Rational, Polynomial, Multinomial)):
            raise ValueError(f"kernel must be Rational(), Polynomial(n) or Multinomial(n); got {self.kernel!r}")
        if isinstance(self.kernel, Rational):
            if self.degree is None:
                raise ValueError("degree must be given: the rational kernel's features do not end; try degree=30")
            check_integer("degree", self.degree, low=0)
        elif self.degree is not None and self.degree != self.kernel.degree:
            raise ValueError(f"degree must be left out for {self.kernel!r}, which ends by itself; got {self.degree!r}")
        if self.n_features > _MAX_FEATURES:
            raise ValueError(
                f"degree {self.last_degree} in n_variables={self.n_variables} makes {self.n_features} features, more "
                f"than {_MAX_FEATURES}; lower the degree"
            )

    @property
    def last_degree(self) -> int:
        """The highest degree that is listed."""
        return int(self.degree or 0) if isinstance(self.kernel, Rational) else self.kernel.degree

    @property
    def n_features(self) -> int:
        """The number of monomials of degree at most n in d variables."""
        return math.comb(self.last_degree + self.n_variables, self.n_variables)

    @property
    def tail_bound(self) -> float:
        """The most that cutting off changes the kernel on the unit ball."""
        return 2.0**-self.last_degree if isinstance(self.kernel, Rational) else 0.0

    def weight(self, degree: int) -> Fraction:
        """Return aⱼ, the weight of ⟨x,x'⟩ʲ in the kernel, exactly."""
        check_integer("degree", degree, low=0)
        if isinstance(self.kernel, Rational):
            return Fraction(1, 2**degree)
        if isinstance(self.kernel, Polynomial):
            return Fraction(math.comb(self.kernel.degree, degree))
        return Fraction(int(degree <= self.kernel.degree))

    @cached_property
    def exponents(self) -> tuple[Exponents, ...]:
        """The exponents α of every coordinate: by degree, then with the first variable's power falling."""
        degrees = range(self.last_degree + 1)
        return tuple(alpha for degree in degrees for alpha in exponents_of_degree(self.n_variables, degree))

    @cached_property
    def squared_scales(self) -> tuple[Fraction, ...]:
        """a_|α|·multinomial(α) of every coordinate, exactly."""
        return tuple(self.weight(sum(alpha)) * multinomial(alpha) for alpha in self.exponents)

    @cached_property
    def _scales(self) -> Floats:
        return np.array([math.sqrt(square) for square in self.squared_scales])

    def __call__(self, X: Any) -> Floats:
        """Return φ of every row, in floating point."""
        rows = self.kernel.prepare(check_dense_rows("X", X, self.n_variables))
        features: Floats = np.tile(self._scales, (len(rows), 1))
        for entries, powers in zip(rows.T, np.array(self.exponents).T, strict=True):
            features *= entries[:, None] ** powers
        return features

    def inner_product(self, x: Sequence[Number], other: Sequence[Number]) -> Fraction:
        """Return ⟨φ(x), φ(x')⟩, exactly, one coordinate at a time; ``normalize`` is not applied."""
        left, right = check_point("x", x, self.n_variables), check_point("other", other, self.n_variables)
        # x^α·x'^α = (xx')^α, entry by entry, so that powers are taken once.
        products = [a * b for a, b in zip(left, right, strict=True)]
        return dot(self.squared_scales, [monomial(products, alpha) for alpha in self.exponents])

    def vector(self, polynomial: MultivariatePolynomial) -> Floats:
        """Return Lemma 9's c, with p(x) = ⟨c, φ(x)⟩."""
        coefficients = self._coefficients(polynomial)
        values = [to_float("a coefficient", coefficients.get(alpha, Fraction(0))) for alpha in self.exponents]
        return np.array(values) / self._scales

    def polynomial(self, vector: npt.ArrayLike) -> MultivariatePolynomial:
        """Return the polynomial ⟨c, φ(·)⟩ of a vector c: the way back of `vector`, up to rounding."""
        c = np.asarray(vector)
        if c.shape != (self.n_features,) or c.dtype.kind not in "fiu" or not np.isfinite(c).all():
            raise ValueError(
                f"vector must hold {self.n_features} finite numbers, one per feature; got {c.dtype} of shape {c.shape}"
            )
        values = (c * self._scales).tolist()
        return MultivariatePolynomial(self.n_variables, dict(zip(self.exponents, values, strict=True)))

    def squared_vector_norm(self, polynomial: MultivariatePolynomial) -> Fraction:
        """Return ‖c‖² = Σ p_α² / (a_|α|·multinomial(α)) of Lemma 9's c, exactly."""
        terms = self._coefficients(polynomial).items()
        squares = (value**2 / (self.weight(sum(alpha)) * multinomial(alpha)) for alpha, value in terms)
        return sum(squares, Fraction(0))

    def _coefficients(self, polynomial: MultivariatePolynomial) -> dict[Exponents, Fraction]:
        if polynomial.n_variables != self.n_variables:
            raise ValueError(f"polynomial must have {self.n_variables} variables; got {polynomial.n_variables}")
        if polynomial.degree > self.last_degree:
            raise ValueError(
                f"polynomial has degree {polynomial.degree}, but the feature map ends at {self.last_degree}; "
                f"use a feature map of degree {polynomial.degree} or more"
            )
        return polynomial.coefficients
