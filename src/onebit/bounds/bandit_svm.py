"""How many mistakes BanditSVM and its full-information twin make at most; the proof is in docs/theory/bandit-svm.md."""

import math
from fractions import Fraction

from onebit.bounds.registry import LARGEST_LOG2, bound, strong_ratio
from onebit.bounds.upper import perceptron_updates
from onebit.exact import check_decimal, log2
from onebit.inputs import check_integer, check_number


def log2_bandit_svm_mistakes(n_classes: int, radius: float, margin: float, exploration: float) -> float:
    """Return the base-2 logarithm of `bandit_svm_mistakes`, which says what the parameters mean."""
    return log2(_mistakes(n_classes, radius, margin, exploration))


@bound("BanditSVM", "upper", binds="BanditSVM with a hard margin", log2=log2_bandit_svm_mistakes)
def bandit_svm_mistakes(n_classes: int, radius: float, margin: float, exploration: float) -> float:
    """Return max(1, K/p−1)·⌊4(R/γ)²⌋: the expected mistakes of BanditSVM, with a hard margin and nothing forgotten.

    Without a kernel, on rows that are not scaled; or in the space of one kernel, until its budget is full.

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
    mistakes = _mistakes(n_classes, radius, margin, exploration)
    return float(mistakes) if log2(mistakes) < LARGEST_LOG2 else math.inf


@bound("BanditSVM-guarded", "upper", binds="guarded BanditSVM")
def guarded_svm_mistakes(n_classes: int, radius: float, margin: float, n_kernels: int, softness: float) -> int:
    """Return 11 + 31(K−1)(mB + m − 1), B = ⌊16(1 + 1/(2C))(R/γ)²⌋: the expected mistakes of guarded BanditSVM.

    Parameters
    ----------
    n_classes, radius, margin, n_kernels, softness : int, float, float, int, float
        K classes; no example is longer than R; γ, the strong margin; m members, a linear one with this softness among
        them (or the guard, where columns are scaled); 1/(2C), 0 for a hard margin.

    Examples
    --------
    >>> guarded_svm_mistakes(n_classes=3, radius=1, margin=0.1, n_kernels=1, softness=0)
    99211
    """
    kernels = check_integer("n_kernels", n_kernels, low=1)
    slack = Fraction(0) if not isinstance(softness, bool) and softness == 0 else check_decimal("softness", softness)
    productive = math.floor(16 * (1 + slack) * strong_ratio(n_classes, radius, margin))
    taught = kernels * productive + kernels - 1
    # Ten disputed mistakes are waited for, and thirty more for each one that is made by following the reference.
    return 11 + 31 * max(1, int(n_classes) - 1) * taught


@bound("FullInformationSVM", "upper", "mistakes", binds="FullInformationSVM with a hard margin")
def full_information_svm_mistakes(n_classes: int, radius: float, margin: float) -> int:
    """Return ⌊4(R/γ)²⌋: the mistakes of BanditSVM's twin that is told every label, in every run.

    With a hard margin, without a kernel, on rows that are not scaled; or in the space of one kernel, until its budget
    is full.

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


def _mistakes(n_classes: int, radius: float, margin: float, exploration: float) -> Fraction:
    check_number("exploration", exploration, above=0.0, at_most=1.0)
    # A mistake where a class claims x counts once; where none does, K/p−1 are made on average for each right guess.
    K = check_integer("n_classes", n_classes, low=1)
    factor = max(Fraction(1), K / check_decimal("exploration", exploration) - 1)
    return factor * full_information_svm_mistakes(n_classes, radius, margin)
