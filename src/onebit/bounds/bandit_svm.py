"""How many mistakes BanditSVM and its full-information twin make at most; the proof is in docs/theory/bandit-svm.md."""

import math
from fractions import Fraction

from onebit.bounds.registry import bound
from onebit.bounds.upper import perceptron_updates
from onebit.exact import check_decimal
from onebit.inputs import check_number


@bound("BanditSVM", "upper", binds="BanditSVM with a hard margin")
def bandit_svm_mistakes(n_classes: int, radius: float, margin: float, exploration: float) -> float:
    """Return max(1, K/p−1)·⌊4(R/γ)²⌋: the expected mistakes of BanditSVM, with a hard margin and nothing forgotten.

    Parameters
    ----------
    n_classes, radius, margin, exploration : int, float, float, float
        K classes; no example is longer than R; γ, the strong margin; p, the chance of a uniform guess where no class
        claims the example, above 0 and at most 1.

    Examples
    --------
    >>> bandit_svm_mistakes(n_classes=3, radius=1, margin=0.1, exploration=0.5)
    2000.0
    """
    check_number("exploration", exploration, above=0.0, at_most=1.0)
    # A mistake where a class claims x counts once; where none does, K/p−1 are made on average for each right guess.
    factor = max(Fraction(1), n_classes / check_decimal("exploration", exploration) - 1)
    try:
        return float(factor * full_information_svm_mistakes(n_classes, radius, margin))
    except OverflowError:
        return math.inf


@bound("FullInformationSVM", "upper", "mistakes", binds="FullInformationSVM with a hard margin")
def full_information_svm_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return ⌊4(R/γ)²⌋: the mistakes of BanditSVM's twin that is told every label, in every run.

    Parameters
    ----------
    n_classes, radius, margin : int, float, float
        K classes, which only limit how large the margin can be; no example is longer than R; γ, the strong margin.

    Examples
    --------
    >>> full_information_svm_mistakes(n_classes=3, radius=1, margin=0.1)
    400
    """
    # Both count facts on the wrong side, of which there are as many as Algorithm 1 has updates.
    return perceptron_updates(n_classes, radius, margin)
