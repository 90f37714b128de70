"""How many mistakes cannot be avoided: Theorems 3, 11 and 24."""

import math
from fractions import Fraction
from typing import Any

from onebit.bounds.registry import LARGEST_LOG2, MOST_EXACT_DIMENSIONS, bound, strong_ratio, weak_ratio
from onebit.exact import check_decimal, log2, squared_ratio
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


def log2_bandit_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return the base-2 logarithm of `bandit_lower_bound`, which says what the parameters mean; −∞ for 0."""
    return log2(_bandit_mistakes(n_classes, radius, margin))


@bound("3", "lower", binds="bandit learners", log2=log2_bandit_lower_bound)
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
    return _as_float(_bandit_mistakes(n_classes, radius, margin), "log2_bandit_lower_bound")


def _bandit_mistakes(n_classes: int, radius: float, margin: float) -> Fraction:
    ratio = strong_ratio(n_classes, radius, margin)
    if n_classes > ratio:
        raise ValueError(
            f"n_classes must be at most (radius/margin)² = {float(ratio):.6g} for Theorem 3; got {n_classes!r}. "
            "one_example_lower_bound has no such condition"
        )
    # With K−1 questions, finding one label by trying costs 0, 1, …, K−1 mistakes with equal chance.
    return Fraction((int(n_classes) - 1) * bandit_examples(radius, margin), 2)


def log2_one_example_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return the base-2 logarithm of `one_example_lower_bound`, which says what the parameters mean; −∞ for 0."""
    strong_ratio(n_classes, radius, margin)
    return log2(Fraction(int(n_classes) - 1, 2))


@bound("3-remark", "lower", binds="bandit learners", log2=log2_one_example_lower_bound)
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
    return _as_float(Fraction(int(n_classes) - 1, 2), "log2_one_example_lower_bound")


def log2_full_information_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return the base-2 logarithm of `full_information_lower_bound`, which says what the parameters mean; −∞ for 0."""
    weak_ratio(n_classes, radius, margin)
    return log2(Fraction(full_information_examples(radius, margin), 2))


@bound("11", "lower", binds="every learner", log2=log2_full_information_lower_bound)
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
    return _as_float(Fraction(full_information_examples(radius, margin), 2), "log2_full_information_lower_bound")


def log2_full_information_lower_bound_sharp(n_classes: int, radius: float, margin: float) -> float:
    """Return the base-2 logarithm of `full_information_lower_bound_sharp`, which has the parameters; −∞ for 0."""
    weak_ratio(n_classes, radius, margin)
    return log2(Fraction(full_information_examples(radius, margin) * (int(n_classes) - 1), int(n_classes)))


@bound("11-sharp", "lower", binds="every learner", log2=log2_full_information_lower_bound_sharp)
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
    mistakes = Fraction(full_information_examples(radius, margin) * (int(n_classes) - 1), int(n_classes))
    return _as_float(mistakes, "log2_full_information_lower_bound_sharp")


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
    base = 1 / (160 * check_decimal("margin", margin))
    # A margin near the smallest float has a base beyond the largest one.
    return math.pow(base, (dimension - 2) / 4) / 10.0 if base < 2**1000 else 2.0**size


def log2_ignorant_lower_bound_sharp(margin: float, dimension: int) -> float:
    """Return the base-2 logarithm of `ignorant_lower_bound_sharp`, which says what the parameters mean."""
    gamma, d = _check_ignorant(margin, dimension)
    # Outside the lemma's range only one example of the less likely label is left.
    if d < 2 or 160 * gamma >= 1:
        return -1.0
    size = (d - 2) / 2 * log2(1 / (160 * gamma))
    # Rounding N down changes its logarithm only while N is small.
    if size < _ROUNDED_LOG2:
        is_exact = d <= MOST_EXACT_DIMENSIONS
        size = math.log2(most_directions(margin, d) if is_exact else max(1, math.floor(2.0**size * (1.0 - 1e-9))))
    return max(-1.0, math.log2(_IGNORANT_SLOPE) + size / 2)


@bound("24-sharp", "lower", binds="ignorant learners", log2=log2_ignorant_lower_bound_sharp)
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
    size = log2_ignorant_lower_bound_sharp(margin, dimension)
    if size >= LARGEST_LOG2:
        raise OverflowError(f"the bound is about 2^{size:.0f}; use log2_ignorant_lower_bound_sharp instead")
    if size == -1.0 or dimension > MOST_EXACT_DIMENSIONS:
        return float(2.0**size)
    N = most_directions(margin, dimension)
    return max(0.5, _IGNORANT_SLOPE * _root(N, "log2_ignorant_lower_bound_sharp"))


def log2_ignorant_lower_bound_with(directions: int) -> float:
    """Return the base-2 logarithm of `ignorant_lower_bound_with`, which says what the parameters mean."""
    return math.log2(check_integer("directions", directions, low=1)) / 2.0 - math.log2(10.0)


@bound("24-directions", "lower", binds="ignorant learners", log2=log2_ignorant_lower_bound_with)
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
    return _root(check_integer("directions", directions, low=1), "log2_ignorant_lower_bound_with") / 10.0


def log2_ignorant_lower_bound_with_sharp(directions: int) -> float:
    """Return the base-2 logarithm of `ignorant_lower_bound_with_sharp`, which says what the parameters mean."""
    T = check_integer("directions", directions, low=1)
    # Beyond these the bound is √T − 1, and the 1 does not matter.
    return math.log2(ignorant_lower_bound_with_sharp(T)) if T < 2**1000 else math.log2(T) / 2.0


@bound("24-directions-sharp", "lower", binds="ignorant learners", log2=log2_ignorant_lower_bound_with_sharp)
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
    root = _root(T, "log2_ignorant_lower_bound_with_sharp")
    # (1−1/√T)^T is about e^(−√T): nothing beside 1 from here on, and T need not be a float.
    missed = (1.0 - 1.0 / root) ** T if T < 2**60 else 0.0
    return (root - 1.0) * (1.0 - missed) if T > 1 else 0.5


def _root(number: int, twin: str) -> float:
    """Return √number, which may still be a float where the number is not one."""
    return math.sqrt(number) if number < 2**1000 else _as_float(Fraction(math.isqrt(number)), twin)


def _as_float(bound: Fraction, twin: str) -> float:
    """Return the nearest float, or raise an OverflowError that names the function which has its logarithm."""
    try:
        return float(bound)
    except OverflowError:
        raise OverflowError(f"the bound is about 2^{log2(bound):.0f}; use {twin} instead") from None


def _check_ignorant(margin: Any, dimension: Any) -> tuple[Fraction, int]:
    gamma, d = check_decimal("margin", margin), check_integer("dimension", dimension, low=1)
    if gamma >= 1:
        raise ValueError(f"margin must be below 1 for Theorem 24; got {margin!r}. Divide it by the radius")
    return gamma, d
