"""Polynomials of several variables with exact coefficients, and Lemma 9: each is a vector in a kernel's space.

A kernel k(x,x') = Σⱼ aⱼ⟨x,x'⟩ʲ with aⱼ > 0 has one
coordinate per monomial,

    φ_α(x) = x^α · sqrt(a_|α| · multinomial(α)),        so that ⟨φ(x), φ(x')⟩ = k(x,x').

Every polynomial p is ⟨c, φ(·)⟩ with c_α = p_α / sqrt(a_|α| · multinomial(α)). See docs/theory/feature-map.md.

References
----------
Beygelzimer et al. (2019). ICML. Section 5, equation for φ, Lemma 9.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.bounds.claims import log2
from onebit.inputs import Floats, check_integer
from onebit.kernels import Multinomial, Polynomial, Rational
from onebit.theory import exact
from onebit.theory.exact import Number, check_point, whole_multiple

_MAX_FEATURES = 1_000_000  # the most coordinates a feature map will list: eight megabytes for a single row

_Exponents = tuple[int, ...]


def _exponents_of_degree(n_variables: int, degree: int) -> Iterator[_Exponents]:
    """Yield every α with |α| = degree, the first variable's power falling."""
    # Each letter of a monomial's sorted word is a variable.
    for word in combinations_with_replacement(range(n_variables), degree):
        yield tuple(word.count(variable) for variable in range(n_variables))


def _multinomial(alpha: _Exponents) -> int:
    """Return |α|!/(α₁!⋯α_d!), the number of orders in which the monomial's letters can be written."""
    return math.factorial(sum(alpha)) // math.prod(map(math.factorial, alpha))


def _to_float(coefficient: Fraction) -> float:
    if (size := log2(abs(coefficient))) >= 1024.0:
        raise OverflowError(f"a coefficient is about 2^{size:.0f}, too large for a float; use the exact functions")
    return float(coefficient)


class MultivariatePolynomial:
    """A polynomial in d variables: exponents (α₁,…,α_d) → coefficient, a fraction.

    It never changes, and is added, multiplied and raised to a power with the usual signs. Evaluate one point exactly
    with `evaluate`, many in floating point by calling it. Its norm is the Euclidean norm of the coefficients.

    Parameters
    ----------
    n_variables : int
        d, at least 1.
    coefficients : mapping
        Exponents to numbers. Floats are taken at their exact binary value; zeros are dropped.

    Examples
    --------
    >>> x, y = MultivariatePolynomial.variables(2)
    >>> p = (x - 2 * y) ** 2 + 1
    >>> print(p)
    1 + x1^2 - 4 x1 x2 + 4 x2^2
    >>> p.degree, p.squared_norm, p.evaluate([Fraction(1, 3), 1])
    (2, Fraction(34, 1), Fraction(34, 9))
    """

    def __init__(self, n_variables: int, coefficients: Mapping[_Exponents, Number]) -> None:
        self._n_variables = check_integer("n_variables", n_variables, low=1)
        self._coefficients: dict[_Exponents, Fraction] = {}
        for exponents, value in coefficients.items():
            if not isinstance(exponents, tuple) or len(exponents) != n_variables:
                raise ValueError(f"coefficients must be keyed by {n_variables} exponents each; got {exponents!r}")
            powers = tuple(check_integer(f"coefficients: an exponent of {exponents!r}", a, low=0) for a in exponents)
            if number := exact.check_fraction(f"coefficients[{exponents!r}]", value):
                self._coefficients[powers] = number

    @classmethod
    def _of(cls, n_variables: int, coefficients: Mapping[_Exponents, Fraction]) -> "MultivariatePolynomial":
        """Build from parts known to be sound."""
        polynomial = cls(n_variables, {})
        polynomial._coefficients = {powers: value for powers, value in coefficients.items() if value}
        return polynomial

    @classmethod
    def variables(cls, n_variables: int) -> tuple["MultivariatePolynomial", ...]:
        """Return x₁,…,x_d as polynomials to calculate with."""
        d = check_integer("n_variables", n_variables, low=1)
        return tuple(cls(d, {tuple(int(i == j) for j in range(d)): 1}) for i in range(d))

    @classmethod
    def ridge(cls, coefficients: Sequence[Number], direction: Sequence[Number]) -> "MultivariatePolynomial":
        """Return Σ gⱼ⟨v,x⟩ʲ for coefficients g₀,g₁,… and a direction v, by the multinomial theorem."""
        # ⟨v,x⟩ʲ = Σ_{|α|=j} multinomial(α)·v^α·x^α: no products of polynomials are needed.
        g, v = check_point("coefficients", coefficients), check_point("direction", direction)
        terms = {
            alpha: value * _multinomial(alpha) * math.prod(v**alpha)
            for degree, value in enumerate(g)
            if value
            for alpha in _exponents_of_degree(len(v), degree)
        }
        return cls._of(len(v), terms)

    @property
    def n_variables(self) -> int:
        """The number of variables, d."""
        return self._n_variables

    @property
    def coefficients(self) -> dict[_Exponents, Fraction]:
        """A copy of the non-zero coefficients."""
        return dict(self._coefficients)

    @property
    def degree(self) -> int:
        """The largest |α| with a non-zero coefficient; 0 for the zero polynomial."""
        return max(map(sum, self._coefficients), default=0)

    @property
    def squared_norm(self) -> Fraction:
        """‖p‖², exactly."""
        return Fraction(sum(value**2 for value in self._coefficients.values()))

    @property
    def log2_norm(self) -> float:
        """log₂‖p‖, for norms beyond the range of a float; −∞ for the zero polynomial."""
        return log2(self.squared_norm) / 2.0

    def evaluate(self, x: Sequence[Number]) -> Fraction:
        """Return p(x), exactly."""
        point = check_point("x", x, self.n_variables)
        return Fraction(sum(value * math.prod(point**alpha) for alpha, value in self._coefficients.items()))

    def __call__(self, X: Any) -> Floats:
        """Return p for every row in floating point; terms of mixed sign may cancel, so prefer `evaluate` for proofs."""
        rows = exact.check_dense_rows(X, self.n_variables)
        values = np.zeros(len(rows))
        for alpha, value in self._coefficients.items():
            values += _to_float(value) * np.prod(rows ** np.array(alpha, dtype=np.float64), axis=1)
        return values

    def __add__(self, other: "MultivariatePolynomial | Number") -> "MultivariatePolynomial":
        mine, others = self._coefficients, self._like(other)._coefficients
        total = {alpha: mine.get(alpha, Fraction(0)) + others.get(alpha, Fraction(0)) for alpha in {**mine, **others}}
        return self._of(self.n_variables, total)

    def __neg__(self) -> "MultivariatePolynomial":
        return -1 * self

    def __sub__(self, other: "MultivariatePolynomial | Number") -> "MultivariatePolynomial":
        return self + -1 * self._like(other)

    def __rsub__(self, other: Number) -> "MultivariatePolynomial":
        return -self + other

    def __mul__(self, other: "MultivariatePolynomial | Number") -> "MultivariatePolynomial":
        # Over one denominator the inner loop works on integers, which is ten times faster than on fractions.
        mine, others = self._coefficients, self._like(other)._coefficients
        (left, shared_left), (right, shared_right) = whole_multiple(mine.values()), whole_multiple(others.values())
        product: dict[_Exponents, int] = {}
        for alpha, a in zip(mine, left, strict=True):
            for beta, b in zip(others, right, strict=True):
                powers = tuple(i + j for i, j in zip(alpha, beta, strict=True))
                product[powers] = product.get(powers, 0) + a * b
        shared = shared_left * shared_right
        return self._of(self.n_variables, {powers: Fraction(value, shared) for powers, value in product.items()})

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, n: int) -> "MultivariatePolynomial":
        # Not by squaring: two large polynomials cost more to multiply than a large and a small one, n times.
        return math.prod([self] * check_integer("n", n, low=0), start=self._like(1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MultivariatePolynomial):
            return NotImplemented
        return self.n_variables == other.n_variables and self._coefficients == other._coefficients

    def __hash__(self) -> int:
        return hash((self.n_variables, frozenset(self._coefficients.items())))

    def __str__(self) -> str:
        # By degree, then with the first variable's power falling.
        order = sorted(self._coefficients, key=lambda alpha: (sum(alpha), *(-a for a in alpha)))
        terms = [_term(self._coefficients[alpha], alpha) for alpha in order]
        return (" + ".join(terms) or "0").replace("+ -", "- ")

    def __repr__(self) -> str:
        return f"MultivariatePolynomial({self.n_variables}, {self._coefficients!r})"

    def _like(self, other: "MultivariatePolynomial | Number") -> "MultivariatePolynomial":
        if not isinstance(other, MultivariatePolynomial):
            return MultivariatePolynomial(self.n_variables, {(0,) * self.n_variables: other})
        if other.n_variables != self.n_variables:
            raise ValueError(
                f"polynomials must have the same variables; got {self.n_variables} and {other.n_variables}. "
                "Build both with the same n_variables"
            )
        return other


def _term(value: Fraction, alpha: _Exponents) -> str:
    letters = " ".join(f"x{i}" + (f"^{a}" if a > 1 else "") for i, a in enumerate(alpha, start=1) if a)
    if not letters:
        return str(value)
    return ("-" if value == -1 else "" if value == 1 else f"{value} ") + letters


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
    def exponents(self) -> tuple[_Exponents, ...]:
        """The exponents α of every coordinate: by degree, then with the first variable's power falling."""
        degrees = range(self.last_degree + 1)
        return tuple(alpha for degree in degrees for alpha in _exponents_of_degree(self.n_variables, degree))

    @cached_property
    def squared_scales(self) -> tuple[Fraction, ...]:
        """a_|α|·multinomial(α) of every coordinate, exactly."""
        return tuple(self.weight(sum(alpha)) * _multinomial(alpha) for alpha in self.exponents)

    @cached_property
    def _scales(self) -> Floats:
        return np.array([math.sqrt(square) for square in self.squared_scales])

    def __call__(self, X: Any) -> Floats:
        """Return φ of every row, in floating point."""
        rows = self.kernel.prepare(exact.check_dense_rows(X, self.n_variables))
        features: Floats = np.tile(self._scales, (len(rows), 1))
        for entries, powers in zip(rows.T, np.array(self.exponents).T, strict=True):
            features *= entries[:, None] ** powers
        return features

    def inner_product(self, x: Sequence[Number], other: Sequence[Number]) -> Fraction:
        """Return ⟨φ(x), φ(x')⟩, exactly, one coordinate at a time; ``normalize`` is not applied."""
        left, right = check_point("x", x, self.n_variables), check_point("other", other, self.n_variables)
        # x^α·x'^α = (xx')^α, entry by entry, so that powers are taken once.
        products, terms = left * right, zip(self.squared_scales, self.exponents, strict=True)
        return Fraction(sum(square * math.prod(products**alpha) for square, alpha in terms))

    def vector(self, polynomial: MultivariatePolynomial) -> Floats:
        """Return Lemma 9's c, with p(x) = ⟨c, φ(x)⟩."""
        coefficients = self._coefficients(polynomial)
        return np.array([_to_float(coefficients.get(alpha, Fraction(0))) for alpha in self.exponents]) / self._scales

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
        return Fraction(sum(p**2 / (self.weight(sum(alpha)) * _multinomial(alpha)) for alpha, p in terms))

    def _coefficients(self, polynomial: MultivariatePolynomial) -> dict[_Exponents, Fraction]:
        if polynomial.n_variables != self.n_variables:
            raise ValueError(f"polynomial must have {self.n_variables} variables; got {polynomial.n_variables}")
        if polynomial.degree > self.last_degree:
            raise ValueError(
                f"polynomial has degree {polynomial.degree}, but the feature map ends at {self.last_degree}; "
                f"use a feature map of degree {polynomial.degree} or more"
            )
        return polynomial.coefficients
