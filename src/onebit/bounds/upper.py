"""How many mistakes learners make at most: Theorems 2, 4, 10 and 21, Corollary 6, BanditSVM's and halving's.

Nearest neighbour (Lemmas 19 and 20, Theorem 21) remembers an example only if none that it remembers is within its reach
r, so any two of them are more than r apart: balls of radius r/2 around them are disjoint and lie in one of radius
R + r/2, which leaves room for (2R/r+1)^d of them. Each is found by guessing among K labels, which costs K−1 mistakes on
average. The theorem takes r = γ, within which all examples have one label; but examples of different classes are at
least √2·γ apart, because ‖wᵢ − wⱼ‖ ≤ √2, so every r below that is as safe. At r = √2·γ itself it is not: x = ±1 have
γ = √2 and distance 2.

Halving: the label that most of the n survivors give is given by n/K of them or more, and a mistake drops those. After M
mistakes H(1 − 1/K)^M ≥ 1 are left, so M ≤ ln H/−ln(1 − 1/K) ≤ K·ln H.

BanditSVM's proof is in docs/theory/bandit-svm.md. Functions that return floats return infinity beyond the largest one.
"""

import math
from fractions import Fraction

from onebit.bounds.claims import Size, bound, check_decimal, log2_of, sized_bound, strong_ratio, weak_ratio
from onebit.bounds.margin_transformation import InversePower, sharper_margin, transformed_margin
from onebit.inputs import check_integer, check_number

# Half a megabyte for one number: larger ones take seconds to multiply out, and say no more than their logarithm.
_MOST_BITS = 2**22
# A margin that was measured may be too large by its rounding, and at √2·γ itself the reach is not safe.
_SLACK = Fraction(1, 10**9)


@bound("2", "upper", binds="Algorithm 1")
def perceptron_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return (K−1)⌊4(R/γ)²⌋: the expected mistakes of Algorithm 1 on strongly separable examples."""
    # The proof's E[B] = (K−1)E[C]: each update after a uniform guess costs K−1 misses on average.
    updates = perceptron_updates(n_classes, radius, margin)
    return (int(n_classes) - 1) * updates


@bound("2-updates", "upper", "updates", binds="Algorithm 1")
def perceptron_updates(n_classes: int, radius: float, margin: float) -> int:
    """Return ⌊4(R/γ)²⌋: the updates of Algorithm 1, in every run (from the proof of Theorem 2)."""
    return math.floor(4 * strong_ratio(n_classes, radius, margin))


@bound("4", "upper", binds="Algorithm 2 with this kernel")
def kernel_perceptron_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return (K−1)⌊4(R/γ)²⌋: the expected mistakes of Algorithm 2, with margin and radius in the kernel's space."""
    return perceptron_mistakes(n_classes, radius, margin)


def log2_rational_kernel_mistakes(n_classes: int, margin: float) -> float:
    """Return the base-2 logarithm of `rational_kernel_mistakes`."""
    return 3.0 - 2.0 * transformed_margin(n_classes, margin).log2 + math.log2(n_classes - 1)


@bound("6", "upper", binds="Algorithm 2 with Rational()", log2=log2_rational_kernel_mistakes)
def rational_kernel_mistakes(n_classes: int, margin: float) -> int:
    """Return (K−1)⌊8/γ'²⌋: the expected mistakes of Algorithm 2 with the rational kernel on weakly separable examples.

    They lie in the unit ball; for examples of length up to R the margin is γ/R, with ``Rational(normalize=True)``.
    """
    return _rational_mistakes(n_classes, transformed_margin(n_classes, margin).larger)


def log2_rational_kernel_mistakes_sharp(n_classes: int, margin: float) -> float:
    """Return the base-2 logarithm of `rational_kernel_mistakes_sharp`."""
    return 3.0 - 2.0 * sharper_margin(n_classes, margin).log2 + math.log2(n_classes - 1)


@bound("6-sharp", "upper", binds="Algorithm 2 with Rational()", log2=log2_rational_kernel_mistakes_sharp)
def rational_kernel_mistakes_sharp(n_classes: int, margin: float) -> int:
    """Return (K−1)⌊8/γ'²⌋ with the γ' that the proof of Theorem 5 yields (`sharper_margin`)."""
    return _rational_mistakes(n_classes, sharper_margin(n_classes, margin).larger)


def _rational_mistakes(K: int, margin: InversePower) -> int:
    if -2.0 * margin.log2 > _MOST_BITS:
        raise OverflowError(f"the bound is about 2^{-2.0 * margin.log2:.3g}; use the function whose name begins log2_")
    # k(x, x) ≤ 2 makes 4(R/γ')² = 8/γ'², and 1/γ'² is a whole number: the floor does nothing.
    return (int(K) - 1) * 8 * margin.inverse_square


@bound("10", "upper", "mistakes", binds="the Multiclass Perceptron, told every label")
def multiclass_perceptron_mistakes(radius: float, margin: float) -> int:
    """Return ⌊2(R/γ)²⌋: the mistakes of the Multiclass Perceptron, told every label, on weakly separable examples."""
    # The bound has no K; of all numbers of classes two have the largest weak margin.
    return math.floor(2 * weak_ratio(2, radius, margin))


@bound("FullInformationSVM", "upper", "mistakes", binds="FullInformationSVM with a hard margin")
def full_information_svm_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return ⌊4(R/γ)²⌋: the mistakes of BanditSVM's twin that is told every label, in every run.

    With a hard margin, without a kernel, on rows that are not scaled; or in the space of one kernel, until its budget
    is full.
    """
    # Both count facts on the wrong side, of which there are as many as Algorithm 1 has updates.
    return perceptron_updates(n_classes, radius, margin)


@sized_bound("BanditSVM", "upper", binds="BanditSVM with a hard margin")
def bandit_svm_mistakes(n_classes: int, radius: float, margin: float, exploration: float) -> Size:
    """Return max(1, K/p−1)·⌊4(R/γ)²⌋: the expected mistakes of BanditSVM, with a hard margin and nothing forgotten.

    Without a kernel, on rows that are not scaled; or in the space of one kernel, until its budget is full.
    """
    check_number("exploration", exploration, above=0.0, at_most=1.0)
    # A mistake where a class claims x counts once; where none does, K/p−1 are made on average for each right guess.
    K = check_integer("n_classes", n_classes, low=1)
    factor = max(Fraction(1), K / check_decimal("exploration", exploration) - 1)
    return Size(factor * full_information_svm_mistakes(n_classes, radius, margin))


@bound("BanditSVM-guarded", "upper", binds="guarded BanditSVM")
def guarded_svm_mistakes(n_classes: int, radius: float, margin: float, n_kernels: int, softness: float) -> int:
    """Return 11 + 31(K−1)(mB + m − 1), B = ⌊16(1 + 1/(2C))(R/γ)²⌋: the expected mistakes of guarded BanditSVM."""
    kernels = check_integer("n_kernels", n_kernels, low=1)
    slack = Fraction(0) if not isinstance(softness, bool) and softness == 0 else check_decimal("softness", softness)
    productive = math.floor(16 * (1 + slack) * strong_ratio(n_classes, radius, margin))
    # Ten disputed mistakes are waited for, and thirty more for each one that is made by following the reference.
    return 11 + 31 * max(1, int(n_classes) - 1) * (kernels * productive + kernels - 1)


@bound("halving", "upper", "mistakes", binds="BanditHalving, if a hypothesis is never wrong")
def bandit_halving_mistakes(n_classes: int, n_hypotheses: int) -> int:
    """Return ⌊K·ln H⌋: the mistakes of BanditHalving, always, if one of its hypotheses is never wrong."""
    K, H = check_integer("n_classes", n_classes, low=1), check_integer("n_hypotheses", n_hypotheses, low=1)
    # K·ln H is a whole number for H = 1 only; where a float cannot tell, the larger one is a bound all the same.
    return 0 if min(K, H) == 1 else math.floor(K * math.log(H) * (1.0 + 2.0**-50))


def is_safe_reach(reach: float, margin: float) -> bool:
    """Return whether a reach is below √2·γ, by more than rounding, so that nothing within it has another label.

    This is Lemma 19, which has γ in place of every number below √2·γ.

    Examples
    --------
    >>> is_safe_reach(0.14, margin=0.1), is_safe_reach(0.15, margin=0.1), is_safe_reach(2, margin=math.sqrt(2))
    (True, False, False)
    """
    # In squares √2 need not be rounded.
    return check_decimal("reach", reach) ** 2 < 2 * check_decimal("margin", margin) ** 2 * (1 - _SLACK)


def packing_bound(radius: float | Fraction, distance: float | Fraction, dimension: int) -> Fraction:
    """Return Lemma 20's (2R/r+1)^d, exactly: the most points in a ball of radius R, any two more than r apart.

    Examples
    --------
    >>> packing_bound(radius=1, distance=0.1, dimension=2)
    Fraction(441, 1)
    """
    base = 2 * check_decimal("radius", radius) / check_decimal("distance", distance) + 1
    return Fraction(base ** check_integer("dimension", dimension, low=1))


def _neighbors(n_classes: int, radius: float, reach: float, dimension: int) -> Size:
    """Return (K−1)(2R/r+1)^d."""
    K, d = check_integer("n_classes", n_classes, low=1), check_integer("dimension", dimension, low=1)
    return Size(Fraction(K - 1), packing_bound(radius, check_decimal("reach", reach), 1), Fraction(d))


@sized_bound("21-reach", "upper", binds="nearest neighbour within a safe reach")
def nearest_neighbor_mistakes_within(n_classes: int, radius: float, reach: float, dimension: int) -> Size:
    """Return (K−1)(2R/r+1)^d: the expected mistakes of nearest neighbour within r, which must be a safe reach."""
    return _neighbors(n_classes, radius, reach, dimension)


@sized_bound("21-memory", "upper", "updates", binds="nearest neighbour within a reach")
def nearest_neighbor_memory(radius: float, reach: float, dimension: int) -> Size:
    """Return (2R/r+1)^d: the examples that nearest neighbour within r remembers."""
    # One mistake on average for each example remembered, where there are two classes.
    return _neighbors(2, radius, reach, dimension)


@sized_bound("21", "upper", binds="nearest neighbour within the weak margin")
def nearest_neighbor_mistakes(n_classes: int, radius: float, margin: float, dimension: int) -> Size:
    """Return (K−1)(2R/γ+1)^d: the expected mistakes of nearest neighbour within γ on weakly separable examples."""
    weak_ratio(n_classes, radius, margin)
    return _neighbors(n_classes, radius, margin, dimension)


@sized_bound("21-sharp", "upper", binds="nearest neighbour just within √2 times the weak margin")
def nearest_neighbor_mistakes_sharp(n_classes: int, radius: float, margin: float, dimension: int) -> Size:
    """Return (K−1)(√2·R/γ+1)^d: nearest neighbour within a radius just below √2·γ instead of γ."""
    square = 2 * weak_ratio(n_classes, radius, margin)
    K, d = int(n_classes), Fraction(check_integer("dimension", dimension, low=1))
    # √2·R/γ is the only root; where it is beyond a float the 1 does not matter.
    base, exponent = (Fraction(math.sqrt(square) + 1.0), d) if square < 2**1000 else (square, d / 2)
    return Size(Fraction(K - 1), base, exponent)


log2_bandit_svm_mistakes = log2_of("BanditSVM")
"""The base-2 logarithm of `bandit_svm_mistakes`."""
log2_nearest_neighbor_mistakes_within = log2_of("21-reach")
"""The base-2 logarithm of `nearest_neighbor_mistakes_within`."""
log2_nearest_neighbor_mistakes = log2_of("21")
"""The base-2 logarithm of `nearest_neighbor_mistakes`."""
log2_nearest_neighbor_mistakes_sharp = log2_of("21-sharp")
"""The base-2 logarithm of `nearest_neighbor_mistakes_sharp`."""
