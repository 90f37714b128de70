"""Polynomials that are positive on an intersection of halfspaces and negative outside it: Theorems 7 and 8.

For directions v₁,…,v_m of length at most 1 and a margin γ in (0, 1), within the unit ball:

    R⁺ = {x : ⟨vᵢ,x⟩ ≥ γ for every i}        R⁻ = {x : ⟨vᵢ,x⟩ ≤ −γ for some i}

Both theorems build a polynomial p with p ≥ ½ on R⁺ and p ≤ −½ on R⁻. Why they work, and the paper's errata, are in
docs/theory/polynomials.md.

References
----------
Beygelzimer et al. (2019). ICML. Theorems 7 and 8, Proposition 15, Lemmas 16 to 18.
Beigel, Reingold, Spielman (1995). PP is closed under intersection. JCSS.
Klivans, Servedio (2008). Learning intersections of halfspaces with a margin. JCSS.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial

from onebit.inputs import Floats, Integers, check_integer
from onebit.theory.exact import Number, check_dense_rows, check_fraction, check_point, check_points
from onebit.theory.multivariate import MultivariatePolynomial

# What normalizing in floats adds to a squared length, with much to spare.
UNIT_BALL_SLACK = Fraction(1, 10**9)
_IDENTITY = Polynomial(np.array([0, 1], dtype=object))  # z itself, with Python's numbers as coefficients


def check_unit_ball(rows: npt.NDArray[Any]) -> None:
    """Raise a ValueError if a row of floats or fractions is longer than 1."""
    squares = np.einsum("ij,ij->i", rows, rows)
    row = int(np.argmax(squares))
    if squares[row] > 1 + UNIT_BALL_SLACK:
        raise ValueError(
            f"X must lie within the unit ball; row {row} has length {math.sqrt(squares[row]):.6g}. Scale the rows"
        )


class Halfspaces:
    """The halfspaces ⟨vᵢ,x⟩ ≥ 0 with a margin on either side.

    Parameters
    ----------
    directions : sequence of sequences of numbers
        v₁,…,v_m, each of length at most 1 (a billionth more is forgiven, for rows that were normalized in floats).
    margin : number
        γ, strictly between 0 and 1. A float is taken at its exact binary value: write ``Fraction(1, 9)`` for a ninth.

    Examples
    --------
    >>> quadrant = Halfspaces(directions=[[1, 0], [0, 1]], margin=0.25)
    >>> quadrant.sides([[0.5, 0.5], [0.5, -0.5], [0.5, 0.1]]).tolist()
    [1, -1, 0]
    """

    def __init__(self, directions: Any, margin: Number) -> None:
        self.directions = check_points("directions", directions)
        self.n_halfspaces, self.n_variables = len(self.directions), len(self.directions[0])
        self.matrix: Floats = self.directions.astype(float)
        self.margin = check_fraction("margin", margin)
        if not 0 < self.margin < 1:
            raise ValueError(f"margin must lie strictly between 0 and 1; got {margin!r}")
        for i, v in enumerate(self.directions):
            if v @ v > 1 + UNIT_BALL_SLACK:
                raise ValueError(
                    f"directions must have length at most 1; directions[{i}] has length {math.sqrt(v @ v):.6g}. "
                    "Divide the directions and the margin by the largest length"
                )

    def scores(self, x: Sequence[Number]) -> list[Fraction]:
        """Return ⟨v₁,x⟩,…,⟨v_m,x⟩, exactly."""
        return list(self.directions @ check_point("x", x, self.n_variables))

    def side(self, x: Sequence[Number]) -> int:
        """Return 1 if x is in R⁺, −1 if it is in R⁻, 0 if it is in neither; exactly."""
        point, lowest = check_point("x", x, self.n_variables), min(self.scores(x))
        # Both regions are parts of the unit ball.
        if point @ point > 1:
            return 0
        return -1 if lowest <= -self.margin else int(lowest >= self.margin)

    def sides(self, X: Any) -> Integers:
        """Return the side of every row, in floating point."""
        rows = check_dense_rows(X, self.n_variables)
        lowest = (rows @ self.matrix.T).min(axis=1) / float(self.margin)
        sides = (lowest >= 1.0).astype(np.int64) - (lowest <= -1.0)
        return np.where(np.einsum("ij,ij->i", rows, rows) <= 1.0, sides, 0)

    def __repr__(self) -> str:
        return f"Halfspaces(directions={self.matrix.tolist()}, margin={float(self.margin)})"


class HalfspacePolynomial(ABC):
    """A polynomial that is at least ½ on R⁺ and at most −½ on R⁻, kept in the form it was built in.

    `evaluate` is exact at any degree, calling it on rows is fast, and neither needs the coefficients. `expand`
    multiplies them out, which is feasible while `n_coefficients` is in the thousands.

    Parameters
    ----------
    halfspaces : Halfspaces
        The directions vᵢ and the margin γ.
    """

    degree_bound: int
    """The theorem's bound on the degree."""
    log2_norm_bound: float
    """log₂ of the theorem's bound on the norm."""

    def __init__(self, halfspaces: Halfspaces) -> None:
        if not isinstance(halfspaces, Halfspaces):
            raise ValueError(f"halfspaces must be a Halfspaces(directions, margin); got {halfspaces!r}")
        self.halfspaces = halfspaces

    @abstractmethod
    def _parts(self, z: Any) -> tuple[Any, ...]:
        """Return what one halfspace gives to p, for z = ⟨vᵢ,x⟩, a number or a polynomial of one variable."""

    @abstractmethod
    def _assembled(self, parts: Sequence[Sequence[Any]]) -> Any:
        """Return p from the parts of every halfspace, which are numbers or polynomials."""

    @abstractmethod
    def _in_floats(self, scores: Floats) -> Floats:
        """Return p for rows of ⟨v₁,x⟩,…,⟨v_m,x⟩, in floating point."""

    def evaluate(self, x: Sequence[Number]) -> Fraction:
        """Return p(x), exactly."""
        return Fraction(self._assembled([self._parts(score) for score in self.halfspaces.scores(x)]))

    def expand(self) -> MultivariatePolynomial:
        """Return the polynomial with its coefficients multiplied out, exactly."""
        # The parts in one variable first: most products of polynomials then are of such.
        parts, ridge = self._parts(_IDENTITY), MultivariatePolynomial.ridge
        of_each = [[ridge(part.coef, v) for part in parts] for v in self.halfspaces.directions]
        expanded: MultivariatePolynomial = self._assembled(of_each)
        return expanded

    @property
    def n_coefficients(self) -> int:
        """The most coefficients that the expansion can have: one per monomial of degree at most `degree_bound`."""
        return math.comb(self.degree_bound + self.halfspaces.n_variables, self.halfspaces.n_variables)

    def __call__(self, X: Any) -> Floats:
        """Return p for every row within the unit ball, in floating point; ±∞ where it does not fit."""
        rows = check_dense_rows(X, self.halfspaces.n_variables)
        # Beyond the ball the theorems promise nothing, and infinities may meet.
        check_unit_ball(rows)
        with np.errstate(over="ignore"):
            return self._in_floats(rows @ self.halfspaces.matrix.T)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.halfspaces!r})"


def chebyshev(n: int, z: Number | Polynomial) -> Any:
    """Return Tₙ(z), exactly: a fraction, or a polynomial of one variable for a polynomial of Python's numbers.

    By Proposition 15, Tₙ(cos θ) = cos nθ and Tₙ(cosh θ) = cosh nθ, so |Tₙ| ≤ 1 on [−1, 1], and
    Tₙ(z) ≥ 1 + n²(z−1) for z ≥ 1. It has degree n, leading coefficient 2ⁿ⁻¹ (n ≥ 1) and norm at most (1+√2)ⁿ.
    """
    high = _exact(z)
    low, z = 1 + 0 * high, high
    # T₂ₖ = 2Tₖ² − 1 and T₂ₖ₊₁ = 2TₖTₖ₊₁ − z.
    for bit in f"{check_integer('n', n, low=0):b}":
        middle = 2 * low * high - z
        low, high = (2 * low**2 - 1, middle) if bit == "0" else (middle, 2 * high**2 - 1)
    return low


def _exact(z: Number | Polynomial) -> Any:
    return z if isinstance(z, Polynomial) else check_fraction("z", z)


class ChebyshevConstruction(HalfspacePolynomial):
    """Theorem 7's polynomial: p(x) = m + ½ − Σᵢ Tₛ(1 − ⟨vᵢ,x⟩)ʳ.

    Examples
    --------
    >>> p = ChebyshevConstruction(Halfspaces([[1, 0], [0, 1]], margin=0.25))
    >>> p.r, p.s, p.degree_bound, p.expand().degree
    (2, 2, 4, 4)
    >>> float(p.evaluate([0.5, 0.5])), float(p.evaluate([0.5, -0.25]))
    (2.0, -2.265625)
    """

    def __init__(self, halfspaces: Halfspaces) -> None:
        super().__init__(halfspaces)
        # ⌈log₂ n⌉ is the bit length of n − 1.
        self.r = (2 * halfspaces.n_halfspaces - 1).bit_length()
        self.s = math.isqrt(math.ceil(1 / halfspaces.margin) - 1) + 1
        self.degree_bound = self.r * self.s
        # (188·rs)^(rs/2); the same proof gives 94 in place of 188, and 47 is valid too.
        self.log2_norm_bound = self.degree_bound / 2.0 * math.log2(188 * self.degree_bound)

    def _parts(self, z: Any) -> tuple[Any, ...]:
        return (chebyshev(self.s, 1 - z) ** self.r,)

    def _assembled(self, parts: Sequence[Sequence[Any]]) -> Any:
        return len(parts) + Fraction(1, 2) - sum(power for (power,) in parts)

    def _in_floats(self, scores: Floats) -> Floats:
        # Tₙ is cos(n·arccos z) within [−1, 1], and cosh(n·arccosh z) beyond.
        inner = np.cos(self.s * np.arccos(np.clip(1.0 - scores, -1.0, 1.0)))
        outer = np.cosh(self.s * np.arccosh(np.maximum(1.0 - scores, 1.0)))
        values: Floats = scores.shape[1] + 0.5 - (np.where(scores < 0.0, outer, inner) ** self.r).sum(axis=1)
        return values


def stairs(n: int, z: Number | Polynomial) -> Any:
    """Return P_n(z) = (z−1)·∏_{i=1..n}(z−2ⁱ)², exactly, of a number or a polynomial as `chebyshev`.

    Lemma 16: P_n(−z) ≤ P_n(z) ≤ 0 on [0, 1]; 0 ≤ 4·P_n(z) ≤ −P_n(−z) on [1, 2ⁿ]; −P_n(−z) ≥ 2^(n(n+1)) for z ≥ 0.
    """
    point, steps = _exact(z), range(1, check_integer("n", n, low=0) + 1)
    return math.prod(((point - 2**i) ** 2 for i in steps), start=point - 1)


def numerator_and_denominator(n: int, k: int, z: Number | Polynomial) -> tuple[Any, Any]:
    """Return A(z) = P_n(z)ᵏ − P_n(−z)ᵏ and B(z) = −P_n(z)ᵏ − P_n(−z)ᵏ, exactly; S = A/B imitates the sign of z.

    Lemma 17, for k = r and m halfspaces: 1 ≤ S ≤ 1 + 1/(2m) on [1, 2ⁿ], S is odd, |S| ≤ 1 on [−1, 1], and
    B ≥ (1 − 1/(4m+1))·2^(n(n+1)r) on [−2ⁿ, 2ⁿ].
    """
    power = check_integer("k", k, low=0)
    right, left = stairs(n, z) ** power, stairs(n, -_exact(z)) ** power
    return right - left, -right - left


class RationalConstruction(HalfspacePolynomial):
    """Theorem 8's polynomial, from a rational approximation S = A/B of the sign function.

    p = 2^(1 − s(s+1)rm)·q with q(x) = Σᵢ A(zᵢ)·∏_{j≠i} B(zⱼ) − (m−½)·∏ⱼ B(zⱼ) and zᵢ = ⟨vᵢ,x⟩/γ; A and B are those of
    `numerator_and_denominator`.

    Examples
    --------
    >>> p = RationalConstruction(Halfspaces([[1, 0], [0, 1]], margin=0.25))
    >>> p.r, p.s, p.degree_bound
    (3, 2, 30)
    >>> p.evaluate([0.5, 0.5]) >= 0.5, p.evaluate([0.5, -0.25]) <= -0.5
    (True, True)
    """

    def __init__(self, halfspaces: Halfspaces) -> None:
        super().__init__(halfspaces)
        m = halfspaces.n_halfspaces
        # ⌈log₂(4m+1)⌉ is the bit length of 4m, and −(−a // 4) rounds a/4 up.
        self.r = r = 2 * -(-(4 * m).bit_length() // 4) + 1
        self.s = s = (math.ceil(1 / halfspaces.margin) - 1).bit_length()
        self.degree_bound = (2 * s + 1) * r * m
        self.log2_norm_bound = math.log2(4 * m - 1) + m + (s + 0.5) * r * m * (s + math.log2(r * m * (4 * s + 2)))
        self.log2_scale = 1 - s * (s + 1) * r * m  # the power of 2 between p and q

    def quotient(self, x: Sequence[Number]) -> Fraction:
        """Return Lemma 18's Q(x) = Σᵢ S(zᵢ) − (m−½), the rational function that p is without its denominators; exactly.

        Q ≥ ½ on R⁺ and Q ≤ −½ on R⁻, and p(x) = 2^(1 − s(s+1)rm)·Q(x)·∏ⱼ B(zⱼ). Beyond |zⱼ| ≤ 2ˢ, which the unit ball
        is within, B may be 0.
        """
        scores = self.halfspaces.scores(x)
        if max(map(abs, scores)) > 2**self.s * self.halfspaces.margin * (1 + UNIT_BALL_SLACK):
            raise ValueError(f"x must lie within the unit ball, where Lemma 18 holds; got {x!r}. Scale it")
        return sum((a / b for a, b in map(self._parts, scores)), Fraction(1, 2) - len(scores))

    def _parts(self, z: Any) -> tuple[Any, ...]:
        return numerator_and_denominator(self.s, self.r, z * (1 / self.halfspaces.margin))

    def _assembled(self, parts: Sequence[Sequence[Any]]) -> Any:
        total, product = 0, 1
        for a, b in parts:
            total, product = total * b + product * a, product * b
        return Fraction(2) ** self.log2_scale * (total - (len(parts) - Fraction(1, 2)) * product)

    def _in_floats(self, scores: Floats) -> Floats:
        # With u = |z|, c = (P(u)/−P(−u))ʳ: S = ±(1+c)/(1−c) and B = (−P(−u))ʳ·(1−c), here over 2^(s(s+1)r).
        u = np.abs(scores) / float(self.halfspaces.margin)
        ratio, size = (u - 1.0) / (u + 1.0), u + 1.0
        for step in 2.0 ** np.arange(1, self.s + 1):
            ratio *= ((u - step) / (u + step)) ** 2
            size *= (u / step + 1.0) ** 2
        c = ratio**self.r
        # At u = 0, c = −1 and S = 0, whatever the sign.
        quotients = (np.sign(scores) * (1.0 + c) / (1.0 - c)).sum(axis=1) - (scores.shape[1] - 0.5)
        values: Floats = 2.0 * quotients * (size**self.r * (1.0 - c)).prod(axis=1)
        return values
