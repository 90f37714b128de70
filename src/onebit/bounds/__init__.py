"""What the theorems say, as functions: numbers in, number out, exactly.

`BOUNDS` lists them by theorem number, and ``BOUNDS["2"].claim(n_classes=3, radius=1, margin=0.1)`` makes a `Claim`.
Whole-number bounds are Python integers. A float argument counts as the decimal it is written as (0.1 is one tenth), and
quotients are formed exactly, so that ⌊4(0.7/0.07)²⌋ is 400, where floats give 399. Where a bound outgrows a float there
is ``nearest_neighbor_mistakes.log2(…)``; beyond the largest float, upper bounds are infinite and lower bounds raise an
OverflowError. Constants that can be improved keep the paper's value; the better ones have names ending in ``_sharp``.

Symbols: K = n_classes; R = radius; γ = margin, strong or weak as each bound says; d = dimension; r = reach;
T = directions; p = exploration; m = n_kernels; 1/(2C) = softness. ``BOUNDS["BanditSVM"].parameters`` says what each is.

Examples
--------
>>> claim = BOUNDS["3"].claim(n_classes=3, radius=1, margin=0.1)
>>> claim.side, claim.value, claim.subject
('lower', 25.0, 'expected mistakes of bandit learners')
>>> perceptron_mistakes(n_classes=3, radius=1, margin=0.1), rational_kernel_mistakes(n_classes=2, margin=1.0)
(800, 36192256)
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from onebit.bounds.claims import BOUNDS as BOUNDS
from onebit.bounds.claims import MOST_EXACT_EXPONENT, Size, bound, log2
from onebit.bounds.claims import Bound as Bound
from onebit.bounds.claims import Claim as Claim
from onebit.bounds.claims import at_most as at_most
from onebit.inputs import check_integer, check_number

# A margin that was measured may be too large by its rounding: it may exceed the largest possible one by so much, and at
# √2·γ itself a reach is not safe.
_SLACK = Fraction(1, 10**9)
_SAME_UNITS = "Check that margin and radius are in the same units"
# Theorem 24's proof, case τ < T/2 + 1: (1−q₀)/q₀·(1−(1−q₀)^(T/2)) is at least this times √T, for T ≥ 2 and q₀ = 1/√T.
_IGNORANT_SLOPE = (1.0 - math.sqrt(0.5)) * (1.0 - math.exp(-0.5))
_ROUNDED_LOG2 = 60.0  # from here on rounding N down changes log₂ N by less than a float's last digit


def _check_decimal(name: str, value: Any) -> Fraction:
    """Return a positive number as the fraction it is written as: 0.1 is 1/10, not the float nearest to it."""
    if isinstance(value, Fraction) and value > 0:
        return value
    number = check_number(name, value, above=0.0)
    # Beyond 2⁵³ a whole number's float has other digits than it has itself.
    return Fraction(int(value)) if isinstance(value, (int, np.integer)) else Fraction(repr(number))


def squared_ratio(radius: Any, margin: Any) -> Fraction:
    """Return (R/γ)², which every mistake bound is made of, with both numbers read as decimals."""
    return (_check_decimal("radius", radius) / _check_decimal("margin", margin)) ** 2


def _ratio(kind: str, n_classes: Any, radius: Any, margin: Any, remedy: str = _SAME_UNITS) -> tuple[int, Fraction]:
    """Return K and (R/γ)², having checked that a margin can be that large: strong γ ≤ 2R/√K, weak γ² ≤ R²·K/(K−1)."""
    K = check_integer("n_classes", n_classes, low=1 if kind == "strong" else 2)
    least, formula = Fraction(K, 4), "2·radius/√n_classes"
    if kind == "weak":
        least, formula = Fraction(K - 1, K), "radius·√(K/(K−1))"
    ratio = squared_ratio(radius, margin)
    if ratio * (1 + _SLACK) < least:
        raise ValueError(
            f"margin must be at most {formula} = {float(radius) / math.sqrt(least):.6g}, the largest {kind} margin of "
            f"{K} classes within radius {radius!r}; got {margin!r}. {remedy}"
        )
    # A margin rounded past its limit counts as the limit.
    return K, max(ratio, least)


# Theorem 5: the rational kernel makes a strong margin of a weak one.


class _InversePower(Size):
    """The number 1/√(factor · base^exponent · 2^twos), of whole numbers."""

    @property
    def log2(self) -> float:
        """Its logarithm."""
        return -0.5 * super().log2

    @property
    def inverse_square(self) -> int:
        """1/x², exactly."""
        return int(self.factor * self.base**self.exponent) << self.twos

    def value(self, _bound: Bound[Any], /) -> float:
        """Return it as a float; 0 where it is below the smallest."""
        return float(2.0**self.log2)


class TransformedMargin(NamedTuple):
    """What Theorem 5 promises: γ' is the larger of γ₁ (Chebyshev) and γ₂ (rational functions)."""

    chebyshev: _InversePower
    rational: _InversePower

    @property
    def larger(self) -> _InversePower:
        """γ' = max(γ₁, γ₂)."""
        return max(self, key=lambda each: each.log2)

    @property
    def log2(self) -> float:
        """log₂ γ'."""
        return self.larger.log2


def transformed_margin(n_classes: int, margin: float | Fraction) -> TransformedMargin:
    """Return γ₁ and γ₂ as Theorem 5 states them.

    Let examples in the unit ball, with labels from K ≥ 2 classes, be weakly separable with margin γ. Mapped by the
    feature map of k(x, x') = 1/(1 − ½⟨x, x'⟩) they are strongly separable with margin γ' = max(γ₁, γ₂), and
    k(x, x) ≤ 2. With L = ⌈log₂(2K−2)⌉, S = ⌈√(2/γ)⌉, r = 2⌈¼ log₂(4K−3)⌉ + 1 and s = ⌈log₂(2/γ)⌉,

        γ₁ = (376·L·S)^(−LS/2) / (2√K)                                         (Chebyshev polynomials, Theorem 7)
        γ₂ = (2^(s+1)·r·(K−1)·(4s+2))^(−(s+½)r(K−1)) / (4√K·(4K−5)·2^(K−1))     (rational functions, Theorem 8)

    γ₁² and γ₂² are one over a whole number, which is kept as a power; so nothing underflows and logarithms are exact.

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
    K, gamma = _unit_margin(n_classes, margin)
    ceiling = math.ceil(2 / gamma)
    # The factors are the statement's denominators, squared: (2√K)² and (4√K·(4K−5)·2^(K−1))².
    return _both_margins(K, _root_up(ceiling), _log2_up(ceiling), constant=376, factors=(4, 16))


def sharper_margin(n_classes: int, margin: float | Fraction) -> TransformedMargin:
    """Return the margins that the proof of Theorem 5 yields with its constants tightened, of the same numbers."""
    K, gamma = _unit_margin(n_classes, margin)
    ceiling = _root_up(math.ceil(2 / gamma**2))  # ⌈√2/γ⌉
    # Theorems 7 and 8 want a margin below 1: at γ = √2 itself the values just below it count.
    return _both_margins(K, max(_root_up(ceiling), 2), max(_log2_up(ceiling), 1), constant=188, factors=(1, 1))


def _unit_margin(n_classes: Any, margin: Any) -> tuple[int, Fraction]:
    K, _ = _ratio("weak", n_classes, 1, margin, "For rows of length up to R give margin/R")
    return K, _check_decimal("margin", margin)


def _both_margins(K: int, S: int, s: int, constant: int, factors: tuple[int, int]) -> TransformedMargin:
    L, r = _log2_up(2 * K - 2), 2 * math.ceil(Fraction(_log2_up(4 * K - 3), 4)) + 1
    base = 2 ** (s + 1) * r * (K - 1) * (4 * s + 2)
    return TransformedMargin(
        _InversePower(factors[0] * K, constant * L * S, L * S),
        _InversePower(factors[1] * K * (4 * K - 5) ** 2, base, (2 * s + 1) * r * (K - 1), 2 * (K - 1)),
    )


def _root_up(number: int) -> int:
    """Return ⌈√number⌉; ⌈√x⌉ and ⌈log₂ x⌉ depend on ⌈x⌉ alone, so whole numbers suffice."""
    return math.isqrt(number - 1) + 1


def _log2_up(number: int) -> int:
    """Return ⌈log₂ number⌉."""
    return (number - 1).bit_length()


@bound("5", "lower", "strong margin", binds="Rational()")
def rational_kernel_margin(n_classes: int, margin: float) -> _InversePower:
    """Return γ' = max(γ₁, γ₂): the strong margin in the rational kernel's space of weakly separable examples.

    Zero where it is below the smallest float; `transformed_margin` has both exactly.
    """
    return transformed_margin(n_classes, margin).larger


# Upper bounds: Theorems 2, 4, 10 and 21, Corollary 6, BanditSVM's and halving's.


def _updates(n_classes: int, radius: float, margin: float) -> tuple[int, int]:
    """Return K and ⌊4(R/γ)²⌋."""
    K, ratio = _ratio("strong", n_classes, radius, margin)
    return K, math.floor(4 * ratio)


@bound("2", "upper", binds="Algorithm 1")
def perceptron_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return (K−1)⌊4(R/γ)²⌋: the expected mistakes of Algorithm 1 on strongly separable examples."""
    # The proof's E[B] = (K−1)E[C]: each update after a uniform guess costs K−1 misses on average.
    K, updates = _updates(n_classes, radius, margin)
    return (K - 1) * updates


@bound("2-updates", "upper", "updates", binds="Algorithm 1")
def perceptron_updates(n_classes: int, radius: float, margin: float) -> int:
    """Return ⌊4(R/γ)²⌋: the updates of Algorithm 1, in every run (from the proof of Theorem 2)."""
    return _updates(n_classes, radius, margin)[1]


@bound("4", "upper", binds="Algorithm 2 with this kernel")
def kernel_perceptron_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return (K−1)⌊4(R/γ)²⌋: the expected mistakes of Algorithm 2, with margin and radius in the kernel's space."""
    K, updates = _updates(n_classes, radius, margin)
    return (K - 1) * updates


def _rational_mistakes(n_classes: int, margin: _InversePower) -> Size:
    """Return (K−1)·8/γ'²: k(x, x) ≤ 2 makes 4(R/γ')² = 8/γ'². 1/γ'² is whole, so the floor does nothing."""
    return Size((int(n_classes) - 1) * 8 * margin.factor, margin.base, margin.exponent, margin.twos)


@bound("6", "upper", binds="Algorithm 2 with Rational()")
def rational_kernel_mistakes(n_classes: int, margin: float) -> Size:
    """Return (K−1)⌊8/γ'²⌋: the expected mistakes of Algorithm 2 with the rational kernel on weakly separable examples.

    They lie in the unit ball; for examples of length up to R the margin is γ/R, with ``Rational(normalize=True)``.
    """
    return _rational_mistakes(n_classes, transformed_margin(n_classes, margin).larger)


@bound("6-sharp", "upper", binds="Algorithm 2 with Rational()")
def rational_kernel_mistakes_sharp(n_classes: int, margin: float) -> Size:
    """Return (K−1)⌊8/γ'²⌋ with the γ' that the proof of Theorem 5 yields (`sharper_margin`)."""
    return _rational_mistakes(n_classes, sharper_margin(n_classes, margin).larger)


@bound("10", "upper", "mistakes", binds="the Multiclass Perceptron, told every label")
def multiclass_perceptron_mistakes(radius: float, margin: float) -> int:
    """Return ⌊2(R/γ)²⌋: the mistakes of the Multiclass Perceptron, told every label, on weakly separable examples."""
    # The bound has no K; of all numbers of classes two have the largest weak margin.
    return math.floor(2 * _ratio("weak", 2, radius, margin)[1])


@bound("FullInformationSVM", "upper", "mistakes", binds="FullInformationSVM with a hard margin")
def full_information_svm_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return ⌊4(R/γ)²⌋: the mistakes of BanditSVM's twin that is told every label, in every run.

    With a hard margin, without a kernel, on rows that are not scaled; or in the space of one kernel, until its budget
    is full.
    """
    # Both count facts on the wrong side, of which there are as many as Algorithm 1 has updates.
    return _updates(n_classes, radius, margin)[1]


@bound("BanditSVM", "upper", binds="BanditSVM with a hard margin")
def bandit_svm_mistakes(n_classes: int, radius: float, margin: float, exploration: float) -> Size:
    """Return max(1, K/p−1)·⌊4(R/γ)²⌋: the expected mistakes of BanditSVM, with a hard margin and nothing forgotten.

    Without a kernel, on rows that are not scaled; or in the space of one kernel, until its budget is full.
    """
    check_number("exploration", exploration, above=0.0, at_most=1.0)
    K, updates = _updates(n_classes, radius, margin)
    # A mistake where a class claims x counts once; where none does, K/p−1 are made on average for each right guess.
    return Size(max(Fraction(1), K / _check_decimal("exploration", exploration) - 1) * updates)


@bound("BanditSVM-guarded", "upper", binds="guarded BanditSVM")
def guarded_svm_mistakes(n_classes: int, radius: float, margin: float, n_kernels: int, softness: float) -> int:
    """Return 11 + 31(K−1)(mB + m − 1), B = ⌊16(1 + 1/(2C))(R/γ)²⌋: the expected mistakes of guarded BanditSVM."""
    kernels = check_integer("n_kernels", n_kernels, low=1)
    slack = Fraction(0) if not isinstance(softness, bool) and softness == 0 else _check_decimal("softness", softness)
    K, ratio = _ratio("strong", n_classes, radius, margin)
    productive = math.floor(16 * (1 + slack) * ratio)
    # Ten disputed mistakes are waited for, and thirty more for each one that is made by following the reference.
    return 11 + 31 * max(1, K - 1) * (kernels * productive + kernels - 1)


@bound("halving", "upper", "mistakes", binds="BanditHalving, if a hypothesis is never wrong")
def bandit_halving_mistakes(n_classes: int, n_hypotheses: int) -> int:
    """Return ⌊K·ln H⌋: the mistakes of BanditHalving, always, if one of its hypotheses is never wrong."""
    K, H = check_integer("n_classes", n_classes, low=1), check_integer("n_hypotheses", n_hypotheses, low=1)
    # K·ln H is a whole number for H = 1 only; where a float cannot tell, the larger one is a bound all the same.
    return 0 if min(K, H) == 1 else math.floor(K * math.log(H) * (1.0 + 2.0**-50))


def is_safe_reach(reach: float, margin: float) -> bool:
    """Return whether a reach is below √2·γ, by more than rounding, so that nothing within it has another label.

    This is Lemma 19, which has γ in place of every number below √2·γ.
    """
    # In squares √2 need not be rounded.
    return _check_decimal("reach", reach) ** 2 < 2 * _check_decimal("margin", margin) ** 2 * (1 - _SLACK)


def packing_bound(radius: float | Fraction, distance: float | Fraction, dimension: int) -> Fraction:
    """Return Lemma 20's (2R/r+1)^d, exactly: the most points in a ball of radius R, any two more than r apart."""
    base = 2 * _check_decimal("radius", radius) / _check_decimal("distance", distance) + 1
    return Fraction(base ** check_integer("dimension", dimension, low=1))


def _neighbors(n_classes: int, radius: float, reach: float, dimension: int) -> Size:
    """Return (K−1)(2R/r+1)^d."""
    K, d = check_integer("n_classes", n_classes, low=1), check_integer("dimension", dimension, low=1)
    return Size(Fraction(K - 1), packing_bound(radius, _check_decimal("reach", reach), 1), Fraction(d))


@bound("21-reach", "upper", binds="nearest neighbour within a safe reach")
def nearest_neighbor_mistakes_within(n_classes: int, radius: float, reach: float, dimension: int) -> Size:
    """Return (K−1)(2R/r+1)^d: the expected mistakes of nearest neighbour within r, which must be a safe reach."""
    return _neighbors(n_classes, radius, reach, dimension)


@bound("21-memory", "upper", "updates", binds="nearest neighbour within a reach")
def nearest_neighbor_memory(radius: float, reach: float, dimension: int) -> Size:
    """Return (2R/r+1)^d: the examples that nearest neighbour within r remembers."""
    # One mistake on average for each example remembered, where there are two classes.
    return _neighbors(2, radius, reach, dimension)


@bound("21", "upper", binds="nearest neighbour within the weak margin")
def nearest_neighbor_mistakes(n_classes: int, radius: float, margin: float, dimension: int) -> Size:
    """Return (K−1)(2R/γ+1)^d: the expected mistakes of nearest neighbour within γ on weakly separable examples."""
    _ratio("weak", n_classes, radius, margin)
    return _neighbors(n_classes, radius, margin, dimension)


@bound("21-sharp", "upper", binds="nearest neighbour just within √2 times the weak margin")
def nearest_neighbor_mistakes_sharp(n_classes: int, radius: float, margin: float, dimension: int) -> Size:
    """Return (K−1)(√2·R/γ+1)^d: nearest neighbour within a radius just below √2·γ instead of γ."""
    K, ratio = _ratio("weak", n_classes, radius, margin)
    square, d = 2 * ratio, Fraction(check_integer("dimension", dimension, low=1))
    # √2·R/γ is the only root; where it is beyond a float the 1 does not matter.
    base, exponent = (Fraction(math.sqrt(square) + 1.0), d) if square < 2**1000 else (square, d / 2)
    return Size(Fraction(K - 1), base, exponent)


# Lower bounds: Theorems 3, 11 and 24.


def most_directions(margin: float, n_features: int) -> int:
    """Return ⌊N⌋, N = (1/(160γ))^((d−2)/2), the directions that Lemma 25 has for γ < 1/160 and d ≥ 2; exactly."""
    d, gamma = check_integer("n_features", n_features, low=2), _check_decimal("margin", margin)
    if 160 * gamma >= 1:
        raise ValueError(
            f"margin must be below 1/160 = {1 / 160} for Lemma 25; got {margin!r}. Use a smaller margin: for larger "
            "ones Theorem 24 says nothing that one example does not"
        )
    # ⌊√⌊x⌋⌋ = ⌊√x⌋: the floor inside lets the root be taken in whole numbers.
    return math.isqrt(math.floor((1 / (160 * gamma)) ** (d - 2)))


@bound("3", "lower", binds="bandit learners")
def bandit_lower_bound(n_classes: int, radius: float, margin: float) -> Size:
    """Return ½(K−1)⌊¼(R/γ)²⌋: expected mistakes that some strongly separable sequence forces on any bandit learner.

    There are at most (R/γ)² classes.
    """
    K, ratio = _ratio("strong", n_classes, radius, margin)
    if ratio < K:
        raise ValueError(
            f"n_classes must be at most (radius/margin)² = {float(ratio):.6g} for Theorem 3; got {n_classes!r}. "
            "Use a smaller margin; the Remark (one_example_…) allows four times as many"
        )
    # With K−1 questions, finding one label by trying costs 0, 1, …, K−1 mistakes with equal chance.
    return Size(Fraction((K - 1) * math.floor(ratio / 4), 2))


@bound("3-remark", "lower", binds="bandit learners")
def one_example_lower_bound(n_classes: int, radius: float, margin: float) -> Size:
    """Return ½(K−1): the expected mistakes of any bandit learner on one example of random label, shown K times.

    The paper's remark asks for γ ≤ R; needed is γ ≤ 2R/√K, without which no strongly separable example exists.
    """
    K, _ = _ratio("strong", n_classes, radius, margin)
    return Size(Fraction(K - 1, 2))


@bound("11", "lower", binds="every learner")
def full_information_lower_bound(n_classes: int, radius: float, margin: float) -> Size:
    """Return ½⌊(R/γ)²⌋: expected mistakes that some weakly separable sequence forces on any learner told all labels."""
    _, ratio = _ratio("weak", n_classes, radius, margin)
    # Nothing can be known of a label that was drawn: among K ≥ 2 it is guessed wrong with a chance of ½ or more.
    return Size(Fraction(math.floor(ratio), 2))


@bound("11-sharp", "lower", binds="every learner")
def full_information_lower_bound_sharp(n_classes: int, radius: float, margin: float) -> Size:
    """Return ⌊(R/γ)²⌋(1−1/K): what Theorem 11's construction forces; on average no learner errs more often there."""
    K, ratio = _ratio("weak", n_classes, radius, margin)
    return Size(math.floor(ratio) * (1 - Fraction(1, K)))


@bound("24", "lower", binds="ignorant learners")
def ignorant_lower_bound(margin: float, dimension: int) -> Size:
    """Return (1/10)·(1/(160γ))^((d−2)/4): expected mistakes forced on learners that never learn from a mistake.

    Strongly separable examples, two classes, radius 1. The proof is for γ < 1/160 and d ≥ 2; elsewhere the number is
    below ½, which one example of the less likely label forces.
    """
    return Size(Fraction(1, 10), *_ignorant_power(margin, dimension))


def _ignorant_power(margin: float, dimension: int) -> tuple[Fraction, Fraction]:
    """Return 1/(160γ) and (d−2)/4."""
    gamma, d = _check_decimal("margin", margin), check_integer("dimension", dimension, low=1)
    if gamma >= 1:
        raise ValueError(f"margin must be below 1 for Theorem 24; got {margin!r}. Divide it by the radius")
    return 1 / (160 * gamma), Fraction(d - 2, 4)


@bound("24-sharp", "lower", binds="ignorant learners")
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


@bound("24-directions", "lower", binds="ignorant learners")
def ignorant_lower_bound_with(directions: int) -> Size:
    """Return √T/10: Theorem 24 with T of Lemma 25's directions instead of all of them."""
    return Size(Fraction(1, 10), Fraction(check_integer("directions", directions, low=1)), Fraction(1, 2))


@bound("24-directions-sharp", "lower", binds="ignorant learners")
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
