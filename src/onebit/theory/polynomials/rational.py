"""Theorem 8: an intersection of m halfspaces with margin γ by a polynomial of degree about m·log(m)·log(1/γ).

With s = ⌈log₂(1/γ)⌉, r = 2⌈¼·log₂(4m+1)⌉ + 1 and zᵢ = ⟨vᵢ,x⟩/γ,

    P(z) = (z−1)·∏_{i=1..s}(z−2ⁱ)²      A(z) = P(z)ʳ − P(−z)ʳ      B(z) = −P(z)ʳ − P(−z)ʳ
    q(x) = Σᵢ A(zᵢ)·∏_{j≠i} B(zⱼ) − (m−½)·∏ⱼ B(zⱼ)
    p(x) = 2^(1 − s(s+1)rm) · q(x)

is at least ½ on R⁺, at most −½ on R⁻, has degree at most (2s+1)rm and norm at most
(4m−1)·2ᵐ·(2ˢ·rm·(4s+2))^((s+½)rm). S = A/B is a rational function close to the sign of z on 1 ≤ |z| ≤ 2ˢ, and B is
positive there, so that multiplying Σᵢ S(zᵢ) − (m−½) by ∏ⱼ B(zⱼ) clears the denominators and keeps the sign.

Corrections. In Lemma 16(1)'s proof the fractions stand upside down: P(z)/P(−z) = (1−z)/(1+z)·∏((z−2ⁱ)/(z+2ⁱ))², and
with that each factor is at most 1 as claimed. The step that finishes parts 1 and 2 should say |p| ≥ ½. The degree is at
most (2s+1)rm − m + 1: A is odd and B is even, so B lacks the top power.

References
----------
Beygelzimer et al. (2019). ICML. Theorem 8, Lemmas 16 to 18. Beigel, Reingold, Spielman (1995). PP is closed under
intersection. JCSS. Klivans, Servedio (2008). Learning intersections of halfspaces with a margin. JCSS.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from onebit.inputs import Floats, check_integer
from onebit.theory.exact import Number, check_fraction
from onebit.theory.polynomials.halfspaces import UNIT_BALL_SLACK, HalfspacePolynomial
from onebit.theory.polynomials.multivariate import MultivariatePolynomial


def stairs(n: int, z: Number) -> Fraction:
    """Return P_n(z) = (z−1)·∏_{i=1..n}(z−2ⁱ)², exactly.

    Lemma 16: P_n(−z) ≤ P_n(z) ≤ 0 on [0, 1]; 0 ≤ 4·P_n(z) ≤ −P_n(−z) on [1, 2ⁿ]; −P_n(−z) ≥ 2^(n(n+1)) for z ≥ 0.

    Examples
    --------
    >>> stairs(2, 3), stairs(2, -3)
    (Fraction(2, 1), Fraction(-4900, 1))
    """
    check_integer("n", n, low=0)
    point = check_fraction("z", z)
    return math.prod(((point - 2**i) ** 2 for i in range(1, n + 1)), start=point - 1)


def numerator_and_denominator(n: int, k: int, z: Number) -> tuple[Fraction, Fraction]:
    """Return A(z) = P_n(z)ᵏ − P_n(−z)ᵏ and B(z) = −P_n(z)ᵏ − P_n(−z)ᵏ, exactly; S = A/B imitates the sign of z.

    Lemma 17, for k = r and m halfspaces: 1 ≤ S ≤ 1 + 1/(2m) on [1, 2ⁿ], S is odd, |S| ≤ 1 on [−1, 1], and
    B ≥ (1 − 1/(4m+1))·2^(n(n+1)r) on [−2ⁿ, 2ⁿ].

    Examples
    --------
    >>> a, b = numerator_and_denominator(2, 3, 3)
    >>> float(a / b - 1) < 2e-10
    True
    """
    power = check_integer("k", k, low=0)
    right, left = stairs(n, z) ** power, stairs(n, -check_fraction("z", z)) ** power
    return right - left, -right - left


class RationalConstruction(HalfspacePolynomial):
    """Theorem 8's polynomial, from a rational approximation of the sign function.

    Parameters
    ----------
    halfspaces : Halfspaces
        The directions vᵢ and the margin γ.

    Examples
    --------
    >>> from onebit.theory.polynomials import Halfspaces
    >>> p = RationalConstruction(Halfspaces([[1, 0], [0, 1]], margin=0.25))
    >>> p.r, p.s, p.degree_bound
    (3, 2, 30)
    >>> p.evaluate([0.5, 0.5]) >= 0.5, p.evaluate([0.5, -0.25]) <= -0.5
    (True, True)
    """

    @property
    def r(self) -> int:
        """2⌈¼·log₂(4m+1)⌉ + 1, the power; always odd."""
        # ⌈log₂(4m+1)⌉ is the bit length of 4m, and −(−a // 4) rounds a/4 up.
        return 2 * -(-(4 * self.halfspaces.n_halfspaces).bit_length() // 4) + 1

    @property
    def s(self) -> int:
        """⌈log₂(1/γ)⌉, the number of stairs."""
        return (math.ceil(1 / self.halfspaces.margin) - 1).bit_length()

    @property
    def degree_bound(self) -> int:
        """(2s+1)·r·m."""
        return (2 * self.s + 1) * self.r * self.halfspaces.n_halfspaces

    @property
    def log2_norm_bound(self) -> float:
        """log₂ of (4m−1)·2ᵐ·(2ˢ·rm·(4s+2))^((s+½)rm)."""
        m, r, s = self.halfspaces.n_halfspaces, self.r, self.s
        return math.log2(4 * m - 1) + m + (s + 0.5) * r * m * (s + math.log2(r * m * (4 * s + 2)))

    @property
    def log2_scale(self) -> int:
        """1 − s(s+1)rm, the power of 2 between p and q."""
        return 1 - self.s * (self.s + 1) * self.r * self.halfspaces.n_halfspaces

    def quotient(self, x: Sequence[Number]) -> Fraction:
        """Return Lemma 18's Q(x) = Σᵢ S(zᵢ) − (m−½), the rational function that p is without its denominators; exactly.

        Q ≥ ½ on R⁺ and Q ≤ −½ on R⁻, and p(x) = 2^(1 − s(s+1)rm)·Q(x)·∏ⱼ B(zⱼ). Beyond |zⱼ| ≤ 2ˢ, which the unit ball
        is within, B may be 0.

        Examples
        --------
        >>> from onebit.theory.polynomials import Halfspaces
        >>> p = RationalConstruction(Halfspaces([[1, 0], [0, 1]], margin=0.25))
        >>> p.quotient([0.5, 0.5]), round(float(p.quotient([0.5, -0.25])), 6)
        (Fraction(1, 2), -1.5)
        """
        scores = self.halfspaces.scores(x)
        if max(map(abs, scores)) > 2**self.s * self.halfspaces.margin * (1 + UNIT_BALL_SLACK):
            raise ValueError(f"x must lie within the unit ball, where Lemma 18 holds; got {x!r}. Scale it")
        return sum((a / b for a, b in self._pairs(scores)), Fraction(1, 2) - len(scores))

    def of_scores(self, scores: Sequence[Fraction]) -> Fraction:
        """Return p at a point with the given ⟨v₁,x⟩,…,⟨v_m,x⟩, exactly."""
        total, product = Fraction(0), Fraction(1)
        for a, b in self._pairs(scores):
            total, product = total * b + product * a, product * b
        return Fraction(2) ** self.log2_scale * (total - (len(scores) - Fraction(1, 2)) * product)

    def _pairs(self, scores: Sequence[Fraction]) -> list[tuple[Fraction, Fraction]]:
        """Return A(zᵢ) and B(zᵢ) for every halfspace."""
        return [numerator_and_denominator(self.s, self.r, score / self.halfspaces.margin) for score in scores]

    def signs_and_log2_of_scores(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return sign p and log₂|p| for rows of ⟨v₁,x⟩,…,⟨v_m,x⟩, in floating point."""
        # With u = |z|, c = (P(u)/−P(−u))ʳ: S = ±(1+c)/(1−c) and B = (−P(−u))ʳ·(1−c), each free of overflow.
        u = np.abs(scores) / float(self.halfspaces.margin)
        ratio, size = (u - 1.0) / (u + 1.0), np.log2(u + 1.0)
        for i in range(1, self.s + 1):
            ratio *= ((u - 2.0**i) / (u + 2.0**i)) ** 2
            size += 2.0 * np.log2(u * 2.0**-i + 1.0)
        c = ratio**self.r
        # At u = 0, c = −1 and S = 0, whatever the sign.
        values = (np.sign(scores) * (1.0 + c) / (1.0 - c)).sum(axis=1) - (scores.shape[1] - 0.5)
        sizes = 1.0 + (self.r * size + np.log2(1.0 - c)).sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.sign(values), np.log2(np.abs(values)) + sizes

    def expand(self) -> MultivariatePolynomial:
        """Return the polynomial with its coefficients multiplied out, exactly."""
        (z,) = MultivariatePolynomial.variables(1)
        right = math.prod(((z - 2**i) ** 2 for i in range(1, self.s + 1)), start=z - 1) ** self.r
        powers = {j: value for (j,), value in right.coefficients.items()}
        # P(−z) differs from P(z) in the odd powers alone: A keeps those, B the even ones.
        scale = [powers.get(j, Fraction(0)) / self.halfspaces.margin**j for j in range(max(powers) + 1)]
        odd = [2 * value if j % 2 else Fraction(0) for j, value in enumerate(scale)]
        even = [Fraction(0) if j % 2 else -2 * value for j, value in enumerate(scale)]
        total = MultivariatePolynomial.constant(self.halfspaces.n_variables, 0)
        product = MultivariatePolynomial.constant(self.halfspaces.n_variables, 1)
        for v in self.halfspaces.directions:
            a, b = MultivariatePolynomial.ridge(odd, v), MultivariatePolynomial.ridge(even, v)
            total, product = total * b + product * a, product * b
        q = total - (self.halfspaces.n_halfspaces - Fraction(1, 2)) * product
        return Fraction(2) ** self.log2_scale * q
