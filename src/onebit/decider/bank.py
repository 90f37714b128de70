"""Names and weights of the kernels of a `BanditSVM`."""

from typing import Any

from onebit.kernels import Linear
from onebit.learners import BanditSVM, Learner

_SHOWN_SETTINGS = ("width", "degree", "sharpness")


def kernel_weights(learner: Learner) -> list[tuple[str, float]]:
    """Return kernel names and their weights, which sum to 1, largest first; empty for other learners."""
    if not isinstance(learner, BanditSVM) or not learner._started:
        return []
    trust = getattr(learner._state, "trust", None)
    if trust is None:  # a single linear space has no weights
        return []
    shares = (trust / trust.sum()).tolist()
    named = [(kernel_name(kernel), share) for kernel, share in zip(learner.bank_, shares, strict=True)]
    return sorted(named, key=lambda each: -each[1])


def kernel_name(kernel: Any) -> str:
    """Return the display name of a kernel, without its `normalize` setting.

    >>> from onebit.kernels import Gaussian, Laplace, Linear, Polynomial
    >>> [kernel_name(kernel) for kernel in (Linear(), Gaussian(0.5, normalize=True), Polynomial(3), Laplace())]
    ['linear', 'Gaussian, width 0.5', 'Polynomial, degree 3', 'Laplace, sharpness 3']
    """
    if kernel is None or isinstance(kernel, Linear):
        return "linear"
    name = type(kernel).__name__
    # The settings distinguish kernels of the same class.
    settings = [f", {setting} {getattr(kernel, setting):g}" for setting in _SHOWN_SETTINGS if hasattr(kernel, setting)]
    return "".join([name, *settings])
