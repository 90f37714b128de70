"""How many mistakes cannot be avoided: Theorems 3, 11 and 24.

The functions return floats, and raise an OverflowError beyond the largest one.
"""

import math
from fractions import Fraction

from onebit.bounds.claims import (
    MOST_EXACT_EXPONENT,
    Size,
    check_decimal,
    log2,
    log2_of,
    sized_bound,
    squared_ratio,
    strong_ratio,
    weak_ratio,
)
from onebit.inputs import check_integer

# Theorem 24's proof, case τ < T/2 + 1: (1−q₀)/q₀·(1−(1−q₀)^(T/2)) is at least this times √T, for T ≥ 2 and q₀ = 1/√T.
_IGNORANT_SLOPE = (1.0 - math.sqrt(0.5)) * (1.0 - math.exp(-0.5))
# From here on rounding N down changes log₂ N by less than a float's last digit.
_ROUNDED_LOG2 = 60.0


def bandit_examples(radius: float, margin: float) -> int:
    """Return M = ⌊¼(R/γ)²⌋, the number of vectors in Theorem 3's construction."""
    return math.floor(squared_ratio(radius, margin) / 4)


def full_information_examples(radius: float, margin: float) -> int:
    """Return T = ⌊(R/γ)²⌋, the number of vectors in Theorem 11's construction."""
    return math.floor(squared_ratio(radius, margin))


def most_directions(margin: float, n_features: int) -> int:
    """Return ⌊N⌋ with N = (1/(160γ))^((d−2)/2), the number of directions that Lemma 25 has; exact at any size.

    Parameters
    ----------
    margin, n_features : float, int
        γ, below 1/160; d features, at least 2.

    Examples
    --------
    >>> [most_directions(0.001, d) for d in (2, 4, 8, 12, 20)]
    [1, 6, 244, 9536, 14551915]
    """
    d, gamma = check_integer("n_features", n_features, low=2), check_decimal("margin", margin)
    if 160 * gamma >= 1:
        raise ValueError(
            f"margin must be below 1/160 = {1 / 160} for Lemma 25; got {margin!r}. Use a smaller margin: for larger "
            "ones Theorem 24 says nothing that one example does not"
        )
    # ⌊√⌊x⌋⌋ = ⌊√x⌋: the floor inside lets the root be taken in whole numbers.
    return math.isqrt(math.floor((1 / (160 * gamma)) ** (d - 2)))


@sized_bound("3", "lower", binds="bandit learners")
def bandit_lower_bound(n_classes: int, radius: float, margin: float) -> Size:
    """Return ½(K−1)⌊¼(R/γ)²⌋: expected mistakes that some strongly separable sequence forces on any bandit learner.

    There are at most (R/γ)² classes.
    """
    ratio = strong_ratio(n_classes, radius, margin)
    if n_classes > ratio:
        raise ValueError(
            f"n_classes must be at most (radius/margin)² = {float(ratio):.6g} for Theorem 3; got {n_classes!r}. "
            "one_example_lower_bound has no such condition"
        )
    # With K−1 questions, finding one label by trying costs 0, 1, …, K−1 mistakes with equal chance.
    return Size(Fraction((int(n_classes) - 1) * bandit_examples(radius, margin), 2))


@sized_bound("3-remark", "lower", binds="bandit learners")
def one_example_lower_bound(n_classes: int, radius: float, margin: float) -> Size:
    """Return ½(K−1): the expected mistakes of any bandit learner on one example of random label, shown K times.

    The paper's remark asks for γ ≤ R; needed is γ ≤ 2R/√K, without which no strongly separable example exists.
    """
    strong_ratio(n_classes, radius, margin)
    return Size(Fraction(int(n_classes) - 1, 2))


@sized_bound("11", "lower", binds="every learner")
def full_information_lower_bound(n_classes: int, radius: float, margin: float) -> Size:
    """Return ½⌊(R/γ)²⌋: expected mistakes that some weakly separable sequence forces on any learner told all labels."""
    weak_ratio(n_classes, radius, margin)
    # Nothing can be known of a label that was drawn: among K ≥ 2 it is guessed wrong with a chance of ½ or more.
    return Size(Fraction(full_information_examples(radius, margin), 2))


@sized_bound("11-sharp", "lower", binds="every learner")
def full_information_lower_bound_sharp(n_classes: int, radius: float, margin: float) -> Size:
    """Return ⌊(R/γ)²⌋(1−1/K): what Theorem 11's construction forces; on average no learner errs more often there."""
    weak_ratio(n_classes, radius, margin)
    return Size(full_information_examples(radius, margin) * (1 - Fraction(1, int(n_classes))))


@sized_bound("24", "lower", binds="ignorant learners")
def ignorant_lower_bound(margin: float, dimension: int) -> Size:
    """Return (1/10)·(1/(160γ))^((d−2)/4): expected mistakes forced on learners that never learn from a mistake.

    Strongly separable examples, two classes, radius 1. The proof is for γ < 1/160 and d ≥ 2; elsewhere the number is
    below ½, which one example of the less likely label forces.
    """
    return Size(Fraction(1, 10), *_ignorant_power(margin, dimension))


def _ignorant_power(margin: float, dimension: int) -> tuple[Fraction, Fraction]:
    """Return 1/(160γ) and (d−2)/4."""
    gamma, d = check_decimal("margin", margin), check_integer("dimension", dimension, low=1)
    if gamma >= 1:
        raise ValueError(f"margin must be below 1 for Theorem 24; got {margin!r}. Divide it by the radius")
    return 1 / (160 * gamma), Fraction(d - 2, 4)


@sized_bound("24-sharp", "lower", binds="ignorant learners")
def ignorant_lower_bound_sharp(margin: float, dimension: int) -> Size:
    """Return max(½, (1−1/√2)(1−1/√e)·√N): what the proof of Theorem 24 gives, with its number of vectors rounded down.

    N = ⌊(160γ)^(−(d−2)/2)⌋ directions exist for γ < 1/160 and d ≥ 2, and the two constants come to 0.115. Rounding N
    costs nothing of the stated 1/10: up to N = 25 the ½ covers it, beyond it 0.115·√⌊N⌋ does.
    """
    base, exponent = _ignorant_power(margin, dimension)
    # Outside the lemma's range only one example of the less likely label is left.
    if dimension < 2 or base <= 1:
        return Size(Fraction(1, 2))
    size = 2 * float(exponent) * log2(base)
    # Rounding N down changes its logarithm only while N is small.
    if size < _ROUNDED_LOG2:
        is_exact = dimension <= MOST_EXACT_EXPONENT
        N = most_directions(margin, dimension) if is_exact else max(1, math.floor(2.0**size * (1.0 - 1e-9)))
        base, exponent = Fraction(N), Fraction(1, 2)
    return max(Size(Fraction(1, 2)), Size(Fraction(_IGNORANT_SLOPE), base, exponent), key=lambda size: size.log2)


@sized_bound("24-directions", "lower", binds="ignorant learners")
def ignorant_lower_bound_with(directions: int) -> Size:
    """Return √T/10: Theorem 24 with T of Lemma 25's directions instead of all of them."""
    return Size(Fraction(1, 10), Fraction(check_integer("directions", directions, low=1)), Fraction(1, 2))


@sized_bound("24-directions-sharp", "lower", binds="ignorant learners")
def ignorant_lower_bound_with_sharp(directions: int) -> Size:
    """Return (√T−1)(1−(1−1/√T)^T), for T = 1 one half: what Algorithm 5 forces with T directions.

    What the proof of Theorem 24 sums up is concave in the round in which phase 2 starts, so it is smallest for the
    first or the last; this is the first. Some ignorant learner makes no more mistakes.
    """
    T = check_integer("directions", directions, low=1)
    if T == 1:
        return Size(Fraction(1, 2))
    # Beside a root beyond the floats the 1 does not matter.
    if T >= 2**1000:
        return Size(Fraction(1), Fraction(T), Fraction(1, 2))
    root = math.sqrt(T)
    # (1−1/√T)^T is about e^(−√T): nothing beside 1 from here on.
    missed = (1.0 - 1.0 / root) ** T if T < 2**60 else 0.0
    return Size(Fraction((root - 1.0) * (1.0 - missed)))


log2_bandit_lower_bound = log2_of("3")
"""The base-2 logarithm of `bandit_lower_bound`."""
log2_one_example_lower_bound = log2_of("3-remark")
"""The base-2 logarithm of `one_example_lower_bound`."""
log2_full_information_lower_bound = log2_of("11")
"""The base-2 logarithm of `full_information_lower_bound`."""
log2_full_information_lower_bound_sharp = log2_of("11-sharp")
"""The base-2 logarithm of `full_information_lower_bound_sharp`."""
log2_ignorant_lower_bound = log2_of("24")
"""The base-2 logarithm of `ignorant_lower_bound`."""
log2_ignorant_lower_bound_sharp = log2_of("24-sharp")
"""The base-2 logarithm of `ignorant_lower_bound_sharp`."""
log2_ignorant_lower_bound_with = log2_of("24-directions")
"""The base-2 logarithm of `ignorant_lower_bound_with`."""
log2_ignorant_lower_bound_with_sharp = log2_of("24-directions-sharp")
"""The base-2 logarithm of `ignorant_lower_bound_with_sharp`."""
