"""How many mistakes cannot be avoided: Theorems 3, 11 and 24."""

import math
from fractions import Fraction
from typing import Any

from onebit.bounds.margin_transformation import exactly
from onebit.bounds.registry import bound, log2_fraction, strong_ratio, weak_ratio
from onebit.inputs import check_integer

_LARGEST_LOG2 = 1023.0
_IGNORANT_SLOPE = (1.0 - math.sqrt(0.5)) * (1.0 - math.exp(-0.5))


@bound("3", "lower")
def bandit_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return ½(K−1)⌊¼(R/γ)²⌋: expected mistakes that some strongly separable sequence forces on any learner.

    Parameters
    ----------
    n_classes : int
        K, the number of classes; the theorem needs K ≤ (R/γ)².
    radius : float
        R, which no example's length exceeds.
    margin : float
        γ, the strong margin.

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
    return float(Fraction((n_classes - 1) * math.floor(ratio / 4), 2))


@bound("3-remark", "lower")
def one_example_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return ½(K−1): the expected mistakes of any learner on one example of random label, shown K times.

    The paper's remark asks for γ ≤ R; needed is γ ≤ 2R/√K, without which no strongly separable example exists.

    Parameters
    ----------
    n_classes : int
        K, the number of classes.
    radius : float
        R, which no example's length exceeds.
    margin : float
        γ, the strong margin; at most 2R/√K.

    Examples
    --------
    >>> one_example_lower_bound(n_classes=3, radius=1, margin=0.1)
    1.0
    """
    strong_ratio(n_classes, radius, margin)
    return (n_classes - 1) / 2


@bound("11", "lower")
def full_information_lower_bound(n_classes: int, radius: float, margin: float) -> float:
    """Return ½⌊(R/γ)²⌋: expected mistakes that some weakly separable sequence forces on any learner told every label.

    Parameters
    ----------
    n_classes : int
        K, the number of classes; at least 2 (with one class nobody errs).
    radius : float
        R, which no example's length exceeds.
    margin : float
        γ, the weak margin.

    Examples
    --------
    >>> full_information_lower_bound(n_classes=2, radius=1, margin=0.1)
    50.0
    """
    return float(Fraction(math.floor(weak_ratio(n_classes, radius, margin)), 2))


@bound("24", "lower")
def ignorant_lower_bound(margin: float, dimension: int) -> float:
    """Return (1/10)·(1/(160γ))^((d−2)/4): expected mistakes forced on learners that never learn from a mistake.

    Strongly separable examples, two classes, radius 1. The proof is for γ < 1/160 and d ≥ 2; elsewhere the number is
    below ½, which one example of the less likely label forces. See `log2_ignorant_lower_bound` beyond a float.

    Parameters
    ----------
    margin : float
        γ, the strong margin; below 1.
    dimension : int
        d, the number of features.

    Examples
    --------
    >>> round(ignorant_lower_bound(margin=1e-5, dimension=10), 6)
    39062.5
    """
    size = log2_ignorant_lower_bound(margin, dimension)
    if size >= _LARGEST_LOG2:
        raise OverflowError(f"the bound is about 2^{size:.0f}; use log2_ignorant_lower_bound instead")
    return math.pow(1 / (160 * exactly("margin", margin)), (dimension - 2) / 4) / 10.0


def log2_ignorant_lower_bound(margin: float, dimension: int) -> float:
    """Return the base-2 logarithm of `ignorant_lower_bound`.

    Parameters
    ----------
    margin : float
        γ, the strong margin; below 1.
    dimension : int
        d, the number of features.

    Examples
    --------
    >>> round(log2_ignorant_lower_bound(margin=1e-5, dimension=1000), 1)
    2314.0
    """
    gamma, d = _check_ignorant(margin, dimension)
    return (d - 2) / 4 * log2_fraction(1 / (160 * gamma)) - math.log2(10.0)


@bound("24-sharp", "lower")
def ignorant_lower_bound_sharp(margin: float, dimension: int) -> float:
    """Return max(½, (1−1/√2)(1−1/√e)·√N): what the proof of Theorem 24 gives, with its number of vectors rounded down.

    N = ⌊(160γ)^(−(d−2)/2)⌋ directions exist for γ < 1/160 and d ≥ 2, and the two constants come to 0.115. Rounding N
    costs nothing of the stated 1/10: up to N = 25 the ½ covers it, beyond it 0.115·√⌊N⌋ does.

    Parameters
    ----------
    margin : float
        γ, the strong margin; below 1.
    dimension : int
        d, the number of features.

    Examples
    --------
    >>> round(ignorant_lower_bound_sharp(margin=1e-5, dimension=10), 1)
    45017.4
    """
    gamma, d = _check_ignorant(margin, dimension)
    if log2_ignorant_lower_bound(margin, dimension) >= _LARGEST_LOG2:
        raise OverflowError("the bound exceeds the largest float; log2_ignorant_lower_bound has the stated one")
    if d < 2 or 160 * gamma >= 1:
        return 0.5
    N = math.isqrt(math.floor((1 / (160 * gamma)) ** (d - 2)))
    root = math.sqrt(N) if N < 2**1000 else float(math.isqrt(N))
    return max(0.5, _IGNORANT_SLOPE * root) if N >= 2 else 0.5


def _check_ignorant(margin: Any, dimension: Any) -> tuple[Fraction, int]:
    gamma, d = exactly("margin", margin), check_integer("dimension", dimension, low=1)
    if gamma >= 1:
        raise ValueError(f"margin must be below 1 for Theorem 24; got {margin!r}. Divide it by the radius")
    return gamma, d
