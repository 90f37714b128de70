"""Polynomials of several variables with exact coefficients. Their norm is the Euclidean norm of the coefficients."""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from onebit.bounds.claims import log2
from onebit.inputs import Floats, check_integer
from onebit.theory.exact import Number, check_dense_rows, check_fraction, check_point, to_float, whole_multiple

Exponents = tuple[int, ...]


def exponents_of_degree(n_variables: int, degree: int) -> Iterator[Exponents]:
    """Yield every α with |α| = degree, the first variable's power falling."""
    # Each letter of a monomial's sorted word is a variable.
    for word in combinations_with_replacement(range(n_variables), degree):
        yield tuple(word.count(variable) for variable in range(n_variables))


def multinomial(alpha: Exponents) -> int:
    """Return |α|!/(α₁!⋯α_d!), the number of orders in which the monomial's letters can be written."""
    return math.factorial(sum(alpha)) // math.prod(map(math.factorial, alpha))


def monomial(x: Sequence[Fraction], alpha: Exponents) -> Fraction:
    """Return x^α, exactly."""
    return math.prod((entry**a for entry, a in zip(x, alpha, strict=True)), start=Fraction(1))


class MultivariatePolynomial:
    """A polynomial in d variables: exponents (α₁,…,α_d) → coefficient, a fraction.

    It never changes. Add, subtract, multiply and raise to a power with the usual signs. Evaluate one point exactly with
    `evaluate`, many in floating point by calling it.

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

    __slots__ = ("_coefficients", "_n_variables")

    def __init__(self, n_variables: int, coefficients: Mapping[Exponents, Number]) -> None:
        self._n_variables = check_integer("n_variables", n_variables, low=1)
        self._coefficients: dict[Exponents, Fraction] = {}
        for exponents, value in coefficients.items():
            if not isinstance(exponents, tuple) or len(exponents) != n_variables:
                raise ValueError(f"coefficients must be keyed by {n_variables} exponents each; got {exponents!r}")
            powers = tuple(check_integer(f"coefficients: an exponent of {exponents!r}", a, low=0) for a in exponents)
            if number := check_fraction(f"coefficients[{exponents!r}]", value):
                self._coefficients[powers] = number

    @classmethod
    def _of(cls, n_variables: int, coefficients: Mapping[Exponents, Fraction]) -> "MultivariatePolynomial":
        """Build from parts known to be sound."""
        polynomial = cls(n_variables, {})
        polynomial._coefficients = {powers: value for powers, value in coefficients.items() if value}
        return polynomial

    @classmethod
    def constant(cls, n_variables: int, value: Number) -> "MultivariatePolynomial":
        """Return the polynomial that is the same everywhere."""
        return cls(n_variables, {(0,) * check_integer("n_variables", n_variables, low=1): value})

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
            alpha: value * multinomial(alpha) * monomial(v, alpha)
            for degree, value in enumerate(g)
            if value
            for alpha in exponents_of_degree(len(v), degree)
        }
        return cls._of(len(v), terms)

    @property
    def n_variables(self) -> int:
        """The number of variables, d."""
        return self._n_variables

    @property
    def coefficients(self) -> dict[Exponents, Fraction]:
        """A copy of the non-zero coefficients."""
        return dict(self._coefficients)

    @property
    def degree(self) -> int:
        """The largest |α| with a non-zero coefficient; 0 for the zero polynomial."""
        return max(map(sum, self._coefficients), default=0)

    @property
    def squared_norm(self) -> Fraction:
        """‖p‖², exactly."""
        return sum((value**2 for value in self._coefficients.values()), Fraction(0))

    @property
    def log2_norm(self) -> float:
        """log₂‖p‖, for norms beyond the range of a float; −∞ for the zero polynomial."""
        return log2(self.squared_norm) / 2.0

    def evaluate(self, x: Sequence[Number]) -> Fraction:
        """Return p(x), exactly."""
        point = check_point("x", x, self.n_variables)
        return sum((value * monomial(point, alpha) for alpha, value in self._coefficients.items()), Fraction(0))

    def __call__(self, X: Any) -> Floats:
        """Return p for every row in floating point; terms of mixed sign may cancel, so prefer `evaluate` for proofs."""
        rows = check_dense_rows("X", X, self.n_variables)
        values = np.zeros(len(rows))
        for alpha, value in self._coefficients.items():
            values += to_float("a coefficient", value) * np.prod(rows ** np.array(alpha, dtype=np.float64), axis=1)
        return values

    def __add__(self, other: "MultivariatePolynomial | Number") -> "MultivariatePolynomial":
        total = self.coefficients
        for alpha, value in self._like(other)._coefficients.items():
            total[alpha] = total.get(alpha, Fraction(0)) + value
        return self._of(self.n_variables, total)

    def __neg__(self) -> "MultivariatePolynomial":
        return self._of(self.n_variables, {alpha: -value for alpha, value in self._coefficients.items()})

    def __sub__(self, other: "MultivariatePolynomial | Number") -> "MultivariatePolynomial":
        return self + -self._like(other)

    def __rsub__(self, other: Number) -> "MultivariatePolynomial":
        return self._like(other) - self

    def __mul__(self, other: "MultivariatePolynomial | Number") -> "MultivariatePolynomial":
        # Over one denominator the inner loop works on integers, which is ten times faster than on fractions.
        (shared, left), (shared_right, right) = self._whole_terms(), self._like(other)._whole_terms()
        product: dict[Exponents, int] = {}
        for alpha, a in left.items():
            for beta, b in right.items():
                powers = tuple(i + j for i, j in zip(alpha, beta, strict=True))
                product[powers] = product.get(powers, 0) + a * b
        shared *= shared_right
        return self._of(self.n_variables, {powers: Fraction(value, shared) for powers, value in product.items()})

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, n: int) -> "MultivariatePolynomial":
        # Not by squaring: two large polynomials cost more to multiply than a large and a small one, n times.
        return math.prod([self] * check_integer("n", n, low=0), start=self.constant(self.n_variables, 1))

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
            return self.constant(self.n_variables, other)
        if other.n_variables != self.n_variables:
            raise ValueError(
                f"polynomials must have the same variables; got {self.n_variables} and {other.n_variables}. "
                "Build both with the same n_variables"
            )
        return other

    def _whole_terms(self) -> tuple[int, dict[Exponents, int]]:
        """Return the coefficients' common denominator, and their multiples by it."""
        values = [*self._coefficients.values()]
        shared = math.lcm(*(value.denominator for value in values))
        return shared, dict(zip(self._coefficients, whole_multiple(values), strict=True))


def _term(value: Fraction, alpha: Exponents) -> str:
    letters = " ".join(f"x{i}" + (f"^{a}" if a > 1 else "") for i, a in enumerate(alpha, start=1) if a)
    if not letters:
        return str(value)
    return ("-" if value == -1 else "" if value == 1 else f"{value} ") + letters
