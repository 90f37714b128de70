"""Who is in the bank of a `BanditSVM`, by name, and what each counts in its vote."""

from typing import Any

from onebit.kernels import Linear
from onebit.learners import BanditSVM, Learner

_TOLD = ("width", "degree", "sharpness")


def kernel_weights(learner: Learner) -> list[tuple[str, float]]:
    """Return the kernels and their weights, which add up to 1, the most trusted first; nothing for other learners."""
    if not isinstance(learner, BanditSVM) or not learner._started:
        return []
    trust = getattr(learner._state, "trust", None)
    if trust is None:  # one linear space, and no vote
        return []
    shares = (trust / trust.sum()).tolist()
    named = [(kernel_name(kernel), share) for kernel, share in zip(learner.bank_, shares, strict=True)]
    return sorted(named, key=lambda each: -each[1])


def kernel_name(kernel: Any) -> str:
    """Return a kernel as people call it; that all rows are divided by their length goes without saying.

    >>> from onebit.kernels import Gaussian, Laplace, Linear, Polynomial
    >>> [kernel_name(kernel) for kernel in (Linear(), Gaussian(0.5, normalize=True), Polynomial(3), Laplace())]
    ['linear', 'Gaussian, width 0.5', 'Polynomial, degree 3', 'Laplace, sharpness 3']
    """
    if kernel is None or isinstance(kernel, Linear):
        return "linear"
    name = type(kernel).__name__
    # Two of a kind must be told apart.
    told = [f", {setting} {getattr(kernel, setting):g}" for setting in _TOLD if hasattr(kernel, setting)]
    return "".join([name, *told])
