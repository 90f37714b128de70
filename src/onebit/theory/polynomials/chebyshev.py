"""Theorem 7: an intersection of m halfspaces with margin γ by a polynomial of degree about log(m)·√(1/γ).

With r = ⌈log₂ 2m⌉, s = ⌈√(1/γ)⌉ and Tₛ the Chebyshev polynomial of the first kind,

    p(x) = m + ½ − Σᵢ Tₛ(1 − ⟨vᵢ,x⟩)ʳ

is at least ½ on R⁺, at most −½ on R⁻, has degree at most rs and norm at most (188·rs)^(rs/2). Tₛ stays within ±1 on
[−1, 1] and has outgrown 2 at 1 + γ; the power r makes one halfspace missed outweigh m − 1 met.

Corrections. The degree is *at most* rs: leading terms of different directions may cancel. The constant 188 can be 94,
because ‖f‖² ≤ 2 gives ‖fʲ‖² ≤ jʲ·2ʲ where the printed proof has jʲ·2²ʲ. It can even be 47: γ < 1 makes s at least 2, so
that 2ʳ ≤ 2^(rs/2) where the proof is content with 4^(rs/2).

References
----------
Beygelzimer et al. (2019). ICML. Theorem 7, Proposition 15. Klivans, Servedio (2008). Learning intersections of
halfspaces with a margin. JCSS.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from onebit.inputs import Floats, check_integer
from onebit.theory.exact import Number, check_fraction
from onebit.theory.polynomials.halfspaces import HalfspacePolynomial
from onebit.theory.polynomials.multivariate import MultivariatePolynomial

PRINTED_CONSTANT = 188
"""The constant of the norm bound as printed."""
SHARPER_CONSTANT = 94
"""The constant that the same proof gives without its slack."""


def chebyshev_coefficients(n: int) -> tuple[int, ...]:
    """Return the coefficients of Tₙ, the constant first.

    By Proposition 15, Tₙ has degree n, leading coefficient 2ⁿ⁻¹ (n ≥ 1) and norm at most (1+√2)ⁿ.

    Examples
    --------
    >>> chebyshev_coefficients(4)
    (1, 0, -8, 0, 8)
    """
    check_integer("n", n, low=0)
    # T₋₁ = T₁ makes the recurrence Tₙ₊₁ = 2z·Tₙ − Tₙ₋₁ good from the start.
    before, current = [0, 1] + [0] * n, [1] + [0] * (n + 1)
    for _ in range(n):
        before, current = current, [2 * a - b for a, b in zip([0, *current[:-1]], before, strict=True)]
    return tuple(current[: n + 1])


def chebyshev(n: int, z: Number) -> Fraction:
    """Return Tₙ(z), exactly, by doubling: T₂ₖ = 2Tₖ² − 1 and T₂ₖ₊₁ = 2TₖTₖ₊₁ − z.

    By Proposition 15, Tₙ(cos θ) = cos nθ and Tₙ(cosh θ) = cosh nθ, so |Tₙ| ≤ 1 on [−1, 1], and
    Tₙ(z) ≥ 1 + n²(z−1) for z ≥ 1.

    Examples
    --------
    >>> chebyshev(4, Fraction(1, 2))
    Fraction(-1, 2)
    """
    check_integer("n", n, low=0)
    a, b = check_fraction("z", z).as_integer_ratio()
    # On whole numbers bᵏ·Tₖ, with one division at the end: reducing fractions on the way takes most of the time.
    low, high, scale = 1, a, 1
    for bit in f"{n:b}":
        middle = 2 * low * high - a * scale**2
        if bit == "0":
            low, high, scale = 2 * low**2 - scale**2, middle, scale**2
        else:
            low, high, scale = middle, 2 * high**2 - (scale * b) ** 2, scale**2 * b
    return Fraction(low, scale)


def chebyshev_log2_norm_bound(n: int) -> float:
    """Return log₂ of Proposition 15(7)'s bound on ‖Tₙ‖: (1+√2)ⁿ."""
    return check_integer("n", n, low=0) * math.log2(1.0 + math.sqrt(2.0))


class ChebyshevConstruction(HalfspacePolynomial):
    """Theorem 7's polynomial: p(x) = m + ½ − Σᵢ Tₛ(1 − ⟨vᵢ,x⟩)ʳ.

    Parameters
    ----------
    halfspaces : Halfspaces
        The directions vᵢ and the margin γ.

    Examples
    --------
    >>> from onebit.theory.polynomials import Halfspaces
    >>> p = ChebyshevConstruction(Halfspaces([[1, 0], [0, 1]], margin=0.25))
    >>> p.r, p.s, p.degree_bound, p.expand().degree
    (2, 2, 4, 4)
    >>> float(p.evaluate([0.5, 0.5])), float(p.evaluate([0.5, -0.25]))
    (2.0, -2.265625)
    """

    @property
    def r(self) -> int:
        """⌈log₂ 2m⌉, the power."""
        # ⌈log₂ n⌉ is the bit length of n − 1.
        return (2 * self.halfspaces.n_halfspaces - 1).bit_length()

    @property
    def s(self) -> int:
        """⌈√(1/γ)⌉, the degree of the Chebyshev polynomial."""
        return math.isqrt(math.ceil(1 / self.halfspaces.margin) - 1) + 1

    @property
    def degree_bound(self) -> int:
        """r·s."""
        return self.r * self.s

    @property
    def log2_norm_bound(self) -> float:
        """log₂ of (188·rs)^(rs/2), as printed."""
        return self.log2_norm_bound_with(PRINTED_CONSTANT)

    def log2_norm_bound_with(self, constant: float) -> float:
        """Return log₂ of (constant·rs)^(rs/2); the constants 94 and 47 are valid too."""
        return self.degree_bound / 2.0 * math.log2(constant * self.degree_bound)

    def of_scores(self, scores: Sequence[Fraction]) -> Fraction:
        """Return p at a point with the given ⟨v₁,x⟩,…,⟨v_m,x⟩, exactly."""
        return len(scores) + Fraction(1, 2) - sum(chebyshev(self.s, 1 - score) ** self.r for score in scores)

    def signs_and_log2_of_scores(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return sign p and log₂|p| for rows of ⟨v₁,x⟩,…,⟨v_m,x⟩, in floating point."""
        signs, sizes = _signs_and_log2_of_chebyshev(self.s, 1.0 - scores)
        sizes = self.r * sizes
        # The powers outgrow a float, so all terms are taken relative to the largest.
        scale = np.maximum(sizes.max(axis=1), 0.0)
        powers = (signs**self.r * np.exp2(sizes - scale[:, None])).sum(axis=1)
        values = (scores.shape[1] + 0.5) * np.exp2(-scale) - powers
        with np.errstate(divide="ignore"):
            return np.sign(values), np.log2(np.abs(values)) + scale

    def expand(self) -> MultivariatePolynomial:
        """Return the polynomial with its coefficients multiplied out, exactly."""
        (z,) = MultivariatePolynomial.variables(1)
        power = MultivariatePolynomial.ridge(chebyshev_coefficients(self.s), [1]) ** self.r
        shifted = sum((value * (1 - z) ** j for (j,), value in power.coefficients.items()), 0 * z).coefficients
        # Tₛ(1 − z)ʳ in one variable first: each direction then needs no product of polynomials.
        ridge = [shifted.get((j,), Fraction(0)) for j in range(self.degree_bound + 1)]
        p = MultivariatePolynomial.constant(self.halfspaces.n_variables, self.halfspaces.n_halfspaces + Fraction(1, 2))
        for v in self.halfspaces.directions:
            p = p - MultivariatePolynomial.ridge(ridge, v)
        return p


def _signs_and_log2_of_chebyshev(n: int, z: Floats) -> tuple[Floats, Floats]:
    """Return sign Tₙ and log₂|Tₙ|: cos(n·arccos z) within [−1, 1], and cosh(n·arccosh z) in logarithms beyond."""
    inner = np.cos(n * np.arccos(np.clip(z, -1.0, 1.0)))
    # log₂ cosh t = (t + log(1 + e^(−2t)))/log 2 − 1, which overflows nowhere.
    grown = n * np.arccosh(np.maximum(z, 1.0))
    outer = (grown + np.log1p(np.exp(-2.0 * grown))) / math.log(2.0) - 1.0
    with np.errstate(divide="ignore"):
        return np.where(z > 1.0, 1.0, np.sign(inner)), np.where(z > 1.0, outer, np.log2(np.abs(inner)))
