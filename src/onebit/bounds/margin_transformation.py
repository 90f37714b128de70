"""Theorem 5: how large a strong margin the rational kernel makes of a weak margin γ, by proof.

Let examples in the unit ball, with labels from K ≥ 2 classes, be weakly separable with margin γ. Mapped by the feature
map of k(x, x') = 1/(1 − ½⟨x, x'⟩) they are strongly separable with margin γ' = max(γ₁, γ₂), and k(x, x) ≤ 2. With

    L = ⌈log₂(2K−2)⌉,  S = ⌈√(2/γ)⌉,  r = 2⌈¼ log₂(4K−3)⌉ + 1,  s = ⌈log₂(2/γ)⌉,

    γ₁ = (376·L·S)^(−LS/2) / (2√K)                                             (Chebyshev polynomials, Theorem 7)
    γ₂ = (2^(s+1)·r·(K−1)·(4s+2))^(−(s+½)r(K−1)) / (4√K·(4K−5)·2^(K−1))         (rational functions, Theorem 8)

γ₁² and γ₂² are one over a whole number, which is kept here as a power; so nothing underflows and logarithms are exact.

References
----------
Beygelzimer et al. (2019). ICML. Theorem 5, Theorem 7 and their proofs.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

from onebit.bounds.claims import Bound, bound, check_decimal, weak_ratio


class InversePower(NamedTuple):
    """The number 1/√(factor · base^exponent · 2^twos), for whole numbers too large for a float or even for memory."""

    factor: int
    base: int
    exponent: int
    twos: int = 0

    @property
    def log2(self) -> float:
        """Its logarithm."""
        return -0.5 * (math.log2(self.factor) + self.exponent * math.log2(self.base) + self.twos)

    @property
    def inverse_square(self) -> int:
        """1/x², exactly."""
        return int(self.factor * self.base**self.exponent) << self.twos

    def value(self, _bound: Bound[Any], /) -> float:
        """Return it as a float; 0 where it is below the smallest."""
        return float(2.0**self.log2)


class TransformedMargin(NamedTuple):
    """What Theorem 5 promises: γ' is the larger of γ₁ (Chebyshev) and γ₂ (rational functions)."""

    chebyshev: InversePower
    rational: InversePower

    @property
    def larger(self) -> InversePower:
        """γ' = max(γ₁, γ₂)."""
        return max(self, key=lambda margin: margin.log2)

    @property
    def log2(self) -> float:
        """log₂ γ'."""
        return self.larger.log2


def transformed_margin(n_classes: int, margin: float | Fraction) -> TransformedMargin:
    """Return γ₁ and γ₂ as Theorem 5 states them.

    Parameters
    ----------
    n_classes : int
        K, at least 2.
    margin : number
        γ, the weak margin in the unit ball: above 0, at most √(K/(K−1)). For examples of length up to R divide
        them by their lengths (``Rational(normalize=True)``) and give γ/R.

    Examples
    --------
    >>> round(transformed_margin(3, 0.1).log2, 2)
    -61.18
    """
    K, gamma = _check(n_classes, margin)
    ceiling = math.ceil(2 / gamma)
    # The factors are the statement's denominators, squared: (2√K)² and (4√K·(4K−5)·2^(K−1))².
    return _both(K, _root_up(ceiling), _log2_up(ceiling), constant=376, factors=(4, 16))


def sharper_margin(n_classes: int, margin: float | Fraction) -> TransformedMargin:
    """Return the margins that the proof of Theorem 5 yields with its constants tightened, of the same numbers."""
    K, gamma = _check(n_classes, margin)
    ceiling = _root_up(math.ceil(2 / gamma**2))  # ⌈√2/γ⌉
    # Theorems 7 and 8 want a margin below 1: at γ = √2 itself the values just below it count.
    return _both(K, max(_root_up(ceiling), 2), max(_log2_up(ceiling), 1), constant=188, factors=(1, 1))


@bound("5", "lower", "strong margin", binds="Rational()")
def rational_kernel_margin(n_classes: int, margin: float) -> InversePower:
    """Return γ' = max(γ₁, γ₂): the strong margin in the rational kernel's space of weakly separable examples.

    Zero where it is below the smallest float; `transformed_margin` has both exactly.
    """
    return transformed_margin(n_classes, margin).larger


def _check(n_classes: Any, margin: Any) -> tuple[int, Fraction]:
    weak_ratio(n_classes, 1, margin, remedy="For rows of length up to R give margin/R")
    return int(n_classes), check_decimal("margin", margin)


def _both(K: int, S: int, s: int, constant: int, factors: tuple[int, int]) -> TransformedMargin:
    L, r = _log2_up(2 * K - 2), 2 * math.ceil(Fraction(_log2_up(4 * K - 3), 4)) + 1
    base = 2 ** (s + 1) * r * (K - 1) * (4 * s + 2)
    return TransformedMargin(
        InversePower(factors[0] * K, constant * L * S, L * S),
        InversePower(factors[1] * K * (4 * K - 5) ** 2, base, (2 * s + 1) * r * (K - 1), 2 * (K - 1)),
    )


# ⌈√x⌉ and ⌈log₂ x⌉ depend on ⌈x⌉ alone, so whole numbers suffice.


def _root_up(number: int) -> int:
    """Return ⌈√number⌉."""
    return math.isqrt(number - 1) + 1


def _log2_up(number: int) -> int:
    """Return ⌈log₂ number⌉."""
    return (number - 1).bit_length()
