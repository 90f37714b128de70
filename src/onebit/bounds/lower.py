"""How many mistakes cannot be avoided: Theorems 3, 11 and 24."""

import math
from fractions import Fraction
from typing import Any

from onebit.bounds.registry import LARGEST_LOG2, bound, strong_ratio, weak_ratio
from onebit.exact import check_decimal, log2, squared_ratio
from onebit.inputs import check_integer

# Theorem 24's proof, case τ < T/2 + 1: (1−q₀)/q₀·(1−(1−q₀)^(T/2)) is at least this times √T, for T ≥ 2 and q₀ = 1/√T.
_IGNORANT_SLOPE = (1.0 - math.sqrt(0.5)) * (1.0 - math.exp(-0.5))


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


@bound("3", "lower", binds="bandit learners")
def bandit_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return ½(K−1)⌊¼(R/γ)²⌋: expected mistakes that some strongly separable sequence forces on any bandit learner.

    Parameters
    ----------
    n_classes, radius, margin : int, float, float
        K classes, at most (R/γ)² of them; no example is longer than R; γ, the strong margin.

    Examples
    --------
    >>> bandit_lower_bound(n_classes=3, radius=1, margin=0.1)
    25.0
    """
    ratio = strong_ratio(n_classes, radius, margin)
    if n_classes > ratio:
        raise ValueError(
            f"n_classes must be at most (radius/margin)² = {float(ratio):.6g} for Theorem 3; got {n_classes!r}. "
            "one_example_lower_bound has no such condition"
        )
    # With K−1 questions, finding one label by trying costs 0, 1, …, K−1 mistakes with equal chance.
    return float(Fraction((n_classes - 1) * bandit_examples(radius, margin), 2))


@bound("3-remark", "lower", binds="bandit learners")
def one_example_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return ½(K−1): the expected mistakes of any bandit learner on one example of random label, shown K times.

    The paper's remark asks for γ ≤ R; needed is γ ≤ 2R/√K, without which no strongly separable example exists.

    Parameters
    ----------
    n_classes, radius, margin : int, float, float
        K classes; no example is longer than R; γ, the strong margin, at most 2R/√K.

    Examples
    --------
    >>> one_example_lower_bound(n_classes=3, radius=1, margin=0.1)
    1.0
    """
    strong_ratio(n_classes, radius, margin)
    return (n_classes - 1) / 2


@bound("11", "lower", binds="every learner")
def full_information_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return ½⌊(R/γ)²⌋: expected mistakes that some weakly separable sequence forces on any learner told every label.

    Parameters
    ----------
    n_classes, radius, margin : int, float, float
        K classes, at least 2 (with one nobody errs); no example is longer than R; γ, the weak margin.

    Examples
    --------
    >>> full_information_lower_bound(n_classes=2, radius=1, margin=0.1)
    50.0
    """
    weak_ratio(n_classes, radius, margin)
    # Nothing can be known of a label that was drawn: among K ≥ 2 it is guessed wrong with a chance of ½ or more.
    return full_information_examples(radius, margin) / 2


@bound("11-sharp", "lower", binds="every learner")
def full_information_lower_bound_sharp(n_classes: int, radius: float, margin: float) -> float:
    """Return ⌊(R/γ)²⌋(1−1/K): what the construction of Theorem 11 forces; nobody makes more mistakes on average there.

    Parameters
    ----------
    n_classes, radius, margin : int, float, float
        K classes, at least 2; no example is longer than R; γ, the weak margin.

    Examples
    --------
    >>> full_information_lower_bound_sharp(n_classes=4, radius=1, margin=0.1)
    75.0
    """
    weak_ratio(n_classes, radius, margin)
    return float(Fraction(full_information_examples(radius, margin) * (n_classes - 1), n_classes))


def log2_ignorant_lower_bound(margin: float, dimension: int) -> float:
    """Return the base-2 logarithm of `ignorant_lower_bound`, which says what the parameters mean.

    Examples
    --------
    >>> round(log2_ignorant_lower_bound(margin=1e-5, dimension=1000), 1)
    2314.0
    """
    gamma, d = _check_ignorant(margin, dimension)
    return (d - 2) / 4 * log2(1 / (160 * gamma)) - math.log2(10.0)


@bound("24", "lower", binds="ignorant learners", log2=log2_ignorant_lower_bound)
def ignorant_lower_bound(margin: float, dimension: int) -> float:
    """Return (1/10)·(1/(160γ))^((d−2)/4): expected mistakes forced on learners that never learn from a mistake.

    Strongly separable examples, two classes, radius 1. The proof is for γ < 1/160 and d ≥ 2; elsewhere the number is
    below ½, which one example of the less likely label forces. See `log2_ignorant_lower_bound` beyond a float.

    Parameters
    ----------
    margin, dimension : float, int
        γ, the strong margin, below 1; d features.

    Examples
    --------
    >>> round(ignorant_lower_bound(margin=1e-5, dimension=10), 6)
    39062.5
    """
    size = log2_ignorant_lower_bound(margin, dimension)
    if size >= LARGEST_LOG2:
        raise OverflowError(f"the bound is about 2^{size:.0f}; use log2_ignorant_lower_bound instead")
    return math.pow(1 / (160 * check_decimal("margin", margin)), (dimension - 2) / 4) / 10.0


@bound("24-sharp", "lower", binds="ignorant learners")
def ignorant_lower_bound_sharp(margin: float, dimension: int) -> float:
    """Return max(½, (1−1/√2)(1−1/√e)·√N): what the proof of Theorem 24 gives, with its number of vectors rounded down.

    N = ⌊(160γ)^(−(d−2)/2)⌋ directions exist for γ < 1/160 and d ≥ 2, and the two constants come to 0.115. Rounding N
    costs nothing of the stated 1/10: up to N = 25 the ½ covers it, beyond it 0.115·√⌊N⌋ does.

    Parameters
    ----------
    margin, dimension : float, int
        γ, the strong margin, below 1; d features.

    Examples
    --------
    >>> round(ignorant_lower_bound_sharp(margin=1e-5, dimension=10), 1)
    45017.4
    """
    gamma, d = _check_ignorant(margin, dimension)
    if log2_ignorant_lower_bound(margin, dimension) >= LARGEST_LOG2:
        raise OverflowError("the bound exceeds the largest float; log2_ignorant_lower_bound has the stated one")
    # Outside the lemma's range only one example of the less likely label is left.
    if d < 2 or 160 * gamma >= 1:
        return 0.5
    N = most_directions(margin, d)
    # Near the end of the floats' range √N still is one where N is not.
    root = math.sqrt(N) if N < 2**1000 else float(math.isqrt(N))
    return max(0.5, _IGNORANT_SLOPE * root) if N >= 2 else 0.5


@bound("24-directions", "lower", binds="ignorant learners")
def ignorant_lower_bound_with(directions: int) -> float:
    """Return √T/10: Theorem 24 with T of Lemma 25's directions instead of all of them.

    Parameters
    ----------
    directions : int
        T, at least 1.

    Examples
    --------
    >>> ignorant_lower_bound_with(directions=400)
    2.0
    """
    return math.sqrt(check_integer("directions", directions, low=1)) / 10.0


@bound("24-directions-sharp", "lower", binds="ignorant learners")
def ignorant_lower_bound_with_sharp(directions: int) -> float:
    """Return (√T−1)(1−(1−1/√T)^T), for T = 1 one half: what Algorithm 5 forces with T directions.

    What the proof of Theorem 24 sums up is concave in the round in which phase 2 starts, so it is smallest for the
    first or the last; this is the first. Some ignorant learner makes no more mistakes.

    Parameters
    ----------
    directions : int
        T, at least 1.

    Examples
    --------
    >>> round(ignorant_lower_bound_with_sharp(directions=400), 6)
    19.0
    """
    T = check_integer("directions", directions, low=1)
    root = math.sqrt(T)
    return (root - 1.0) * (1.0 - (1.0 - 1.0 / root) ** T) if T > 1 else 0.5


def _check_ignorant(margin: Any, dimension: Any) -> tuple[Fraction, int]:
    gamma, d = check_decimal("margin", margin), check_integer("dimension", dimension, low=1)
    if gamma >= 1:
        raise ValueError(f"margin must be below 1 for Theorem 24; got {margin!r}. Divide it by the radius")
    return gamma, d
