"""How many mistakes the perceptrons make at most: Theorems 2, 4, 10 and Corollary 6."""

import math

from onebit.bounds.margin_transformation import InversePower, sharper_margin, transformed_margin
from onebit.bounds.registry import bound, strong_ratio, weak_ratio

# Half a megabyte for one number: larger ones take seconds to multiply out and nobody reads them.
_MOST_BITS = 2**22


@bound("2", "upper", binds="Algorithm 1")
def perceptron_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return (K−1)⌊4(R/γ)²⌋: the expected mistakes of Algorithm 1 on strongly separable examples.

    Parameters
    ----------
    n_classes, radius, margin : int, float, float
        K classes; no example is longer than R; γ, the strong margin.

    Examples
    --------
    >>> perceptron_mistakes(n_classes=3, radius=1, margin=0.1)
    800
    """
    # The proof's E[B] = (K−1)E[C]: each update after a uniform guess costs K−1 misses on average.
    updates = perceptron_updates(n_classes, radius, margin)
    return (int(n_classes) - 1) * updates


@bound("2-updates", "upper", "updates", binds="Algorithm 1")
def perceptron_updates(n_classes: int, radius: float, margin: float) -> int:
    """Return ⌊4(R/γ)²⌋: the updates of Algorithm 1, in every run (from the proof of Theorem 2).

    Parameters
    ----------
    n_classes, radius, margin : int, float, float
        K classes, which only limit how large the margin can be; no example is longer than R; γ, the strong margin.

    Examples
    --------
    >>> perceptron_updates(n_classes=3, radius=1, margin=0.1)
    400
    """
    return math.floor(4 * strong_ratio(n_classes, radius, margin))


@bound("4", "upper", binds="Algorithm 2 with this kernel")
def kernel_perceptron_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return (K−1)⌊4(R/γ)²⌋: the expected mistakes of Algorithm 2, with margin and radius in the kernel's space.

    Parameters
    ----------
    n_classes, radius, margin : int, float, float
        K classes; R, the square root of the largest k(x, x); γ, the strong margin in the kernel's space.

    Examples
    --------
    >>> kernel_perceptron_mistakes(n_classes=3, radius=1, margin=0.1)
    800
    """
    return perceptron_mistakes(n_classes, radius, margin)


def log2_rational_kernel_mistakes(n_classes: int, margin: float) -> float:
    """Return the base-2 logarithm of `rational_kernel_mistakes`, which says what the parameters mean.

    Examples
    --------
    >>> round(log2_rational_kernel_mistakes(n_classes=3, margin=0.01), 1)
    411.4
    """
    return 3.0 - 2.0 * transformed_margin(n_classes, margin).log2 + math.log2(n_classes - 1)


@bound("6", "upper", binds="Algorithm 2 with Rational()", log2=log2_rational_kernel_mistakes)
def rational_kernel_mistakes(n_classes: int, margin: float) -> int:
    """Return (K−1)⌊8/γ'²⌋: the expected mistakes of Algorithm 2 with the rational kernel on weakly separable examples.

    Parameters
    ----------
    n_classes, margin : int, float
        K classes, at least 2; γ, the weak margin of examples in the unit ball. For examples of length up to R it is
        γ/R, with ``Rational(normalize=True)``.

    Examples
    --------
    >>> rational_kernel_mistakes(n_classes=2, margin=1.0)
    36192256
    """
    return _rational_mistakes(n_classes, transformed_margin(n_classes, margin).larger)


def log2_rational_kernel_mistakes_sharp(n_classes: int, margin: float) -> float:
    """Return the base-2 logarithm of `rational_kernel_mistakes_sharp`, which says what the parameters mean.

    Examples
    --------
    >>> round(log2_rational_kernel_mistakes_sharp(n_classes=3, margin=0.01), 1)
    296.9
    """
    return 3.0 - 2.0 * sharper_margin(n_classes, margin).log2 + math.log2(n_classes - 1)


@bound("6-sharp", "upper", binds="Algorithm 2 with Rational()", log2=log2_rational_kernel_mistakes_sharp)
def rational_kernel_mistakes_sharp(n_classes: int, margin: float) -> int:
    """Return (K−1)⌊8/γ'²⌋ with the γ' that the proof of Theorem 5 yields (`sharper_margin`).

    Parameters
    ----------
    n_classes, margin : int, float
        K classes, at least 2; γ, the weak margin of examples in the unit ball.

    Examples
    --------
    >>> rational_kernel_mistakes_sharp(n_classes=2, margin=1.0)
    2262016
    """
    return _rational_mistakes(n_classes, sharper_margin(n_classes, margin).larger)


def _rational_mistakes(K: int, margin: InversePower) -> int:
    if -2.0 * margin.log2 > _MOST_BITS:
        raise OverflowError(f"the bound is about 2^{-2.0 * margin.log2:.3g}; use the function whose name begins log2_")
    # k(x, x) ≤ 2 makes 4(R/γ')² = 8/γ'², and 1/γ'² is a whole number: the floor does nothing.
    return (int(K) - 1) * 8 * margin.inverse_square


@bound("10", "upper", "mistakes", binds="the Multiclass Perceptron, told every label")
def multiclass_perceptron_mistakes(radius: float, margin: float) -> int:
    """Return ⌊2(R/γ)²⌋: the mistakes of the Multiclass Perceptron, told every label, on weakly separable examples.

    Parameters
    ----------
    radius, margin : float
        No example is longer than R; γ, the weak margin.

    Examples
    --------
    >>> multiclass_perceptron_mistakes(radius=1, margin=0.1)
    200
    """
    # The bound has no K; of all numbers of classes two have the largest weak margin.
    return math.floor(2 * weak_ratio(2, radius, margin))
