"""Polynomials of several variables with exact coefficients."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from onebit.bounds.claims import log2
from onebit.inputs import Floats, check_integer
from onebit.theory.exact import Number, check_dense_rows, check_fraction, check_point, to_float
from onebit.theory.polynomials.monomials import Exponents, exponents_of_degree, multinomial


class MultivariatePolynomial:
    """A polynomial in d variables: exponents (α₁,…,α_d) → coefficient, a fraction.

    It never changes. Add, subtract, multiply and raise to a power with the usual signs; plain numbers count as
    constants. Evaluate one point exactly with `evaluate`, many in floating point by calling it.

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
        checked = {}
        for exponents, value in coefficients.items():
            if not isinstance(exponents, tuple) or len(exponents) != n_variables:
                raise ValueError(f"coefficients must be keyed by {n_variables} exponents each; got {exponents!r}")
            powers = tuple(check_integer(f"coefficients: an exponent of {exponents!r}", a, low=0) for a in exponents)
            checked[powers] = check_fraction(f"coefficients[{exponents!r}]", value)
        self._coefficients = {powers: value for powers, value in checked.items() if value}

    @classmethod
    def _of(cls, n_variables: int, coefficients: dict[Exponents, Fraction]) -> "MultivariatePolynomial":
        """Build from parts known to be sound."""
        polynomial = cls.__new__(cls)
        polynomial._n_variables = n_variables
        polynomial._coefficients = {powers: value for powers, value in coefficients.items() if value}
        return polynomial

    @classmethod
    def constant(cls, n_variables: int, value: Number) -> "MultivariatePolynomial":
        """Return the polynomial that is the same everywhere."""
        check_integer("n_variables", n_variables, low=1)
        return cls(n_variables, {(0,) * n_variables: value})

    @classmethod
    def variables(cls, n_variables: int) -> tuple["MultivariatePolynomial", ...]:
        """Return x₁,…,x_d as polynomials to calculate with."""
        d = check_integer("n_variables", n_variables, low=1)
        return tuple(cls(d, {tuple(int(i == j) for j in range(d)): 1}) for i in range(d))

    @classmethod
    def ridge(cls, coefficients: Sequence[Number], direction: Sequence[Number]) -> "MultivariatePolynomial":
        """Return Σ gⱼ⟨v,x⟩ʲ for coefficients g₀,g₁,… and a direction v, by the multinomial theorem.

        Examples
        --------
        >>> print(MultivariatePolynomial.ridge([1, 0, 3], direction=[1, -1]))
        1 + 3 x1^2 - 6 x1 x2 + 3 x2^2
        """
        # ⟨v,x⟩ʲ = Σ_{|α|=j} multinomial(α)·v^α·x^α: no products of polynomials are needed.
        g = check_point("coefficients", coefficients)
        v = check_point("direction", direction)
        powers = [[Fraction(1)] for _ in v]
        for entry, row in zip(v, powers, strict=True):
            for _ in g[1:]:
                row.append(row[-1] * entry)
        terms = {}
        for degree, value in enumerate(g):
            if value:
                for alpha in exponents_of_degree(len(v), degree):
                    monomial = math.prod((row[a] for row, a in zip(powers, alpha, strict=True)), start=Fraction(1))
                    terms[alpha] = value * multinomial(alpha) * monomial
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
        shared, whole = self._over_one_denominator()
        return Fraction(sum(value * value for value in whole.values()), shared**2)

    @property
    def log2_norm(self) -> float:
        """log₂‖p‖, for norms beyond the range of a float; −∞ for the zero polynomial."""
        return log2(self.squared_norm) / 2.0

    def evaluate(self, x: Sequence[Number]) -> Fraction:
        """Return p(x), exactly."""
        point = check_point("x", x, self.n_variables)
        return sum(
            (
                value * math.prod((entry**a for entry, a in zip(point, alpha, strict=True)), start=Fraction(1))
                for alpha, value in self._coefficients.items()
            ),
            Fraction(0),
        )

    def __call__(self, X: Any) -> Floats:
        """Return p for every row in floating point; terms of mixed sign may cancel, so prefer `evaluate` for proofs."""
        rows = check_dense_rows("X", X, self.n_variables)
        values = np.zeros(len(rows))
        for alpha, value in self._coefficients.items():
            values += to_float("a coefficient", value) * np.prod(rows ** np.array(alpha, dtype=np.float64), axis=1)
        return values

    def __add__(self, other: "MultivariatePolynomial | Number") -> "MultivariatePolynomial":
        second = self._like(other)
        total = dict(self._coefficients)
        for alpha, value in second._coefficients.items():
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
        shared_left, left = self._over_one_denominator()
        shared_right, right = self._like(other)._over_one_denominator()
        product: dict[Exponents, int] = {}
        for alpha, a in left.items():
            for beta, b in right.items():
                powers = tuple(i + j for i, j in zip(alpha, beta, strict=True))
                product[powers] = product.get(powers, 0) + a * b
        shared = shared_left * shared_right
        return self._of(self.n_variables, {powers: Fraction(value, shared) for powers, value in product.items()})

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, n: int) -> "MultivariatePolynomial":
        # Not by squaring: two large polynomials cost more to multiply than a large and a small one, n times.
        result = self.constant(self.n_variables, 1)
        for _ in range(check_integer("n", n, low=0)):
            result = result * self
        return result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MultivariatePolynomial):
            return NotImplemented
        return self.n_variables == other.n_variables and self._coefficients == other._coefficients

    def __hash__(self) -> int:
        return hash((self.n_variables, frozenset(self._coefficients.items())))

    def __str__(self) -> str:
        terms = [_term(self._coefficients[alpha], alpha) for alpha in sorted(self._coefficients, key=_reading_order)]
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

    def _over_one_denominator(self) -> tuple[int, dict[Exponents, int]]:
        shared = math.lcm(*(value.denominator for value in self._coefficients.values()))
        return shared, {
            alpha: value.numerator * (shared // value.denominator) for alpha, value in self._coefficients.items()
        }


def _reading_order(alpha: Exponents) -> tuple[int, Exponents]:
    return sum(alpha), tuple(-a for a in alpha)


def _term(value: Fraction, alpha: Exponents) -> str:
    letters = " ".join(f"x{i}" + (f"^{a}" if a > 1 else "") for i, a in enumerate(alpha, start=1) if a)
    if not letters:
        return str(value)
    return ("-" if value == -1 else "" if value == 1 else f"{value} ") + letters
