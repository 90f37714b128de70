"""Who is in the bank of a `BanditSVM`, by name, and what each counts in its vote."""

from typing import Any

from onebit.learners import BanditSVM, Learner


def kernel_weights(learner: Learner) -> list[tuple[str, float]]:
    """Return the kernels and their weights, which add up to 1, the most trusted first; nothing for other learners."""
    if not isinstance(learner, BanditSVM) or not learner._started:
        return []
    trust = getattr(learner._memory.arrays, "trust", None)
    if trust is None:  # one linear space, and no vote
        return []
    shares = (trust / trust.sum()).tolist()
    named = [(kernel_name(kernel), share) for kernel, share in zip(learner.bank_, shares, strict=True)]
    return sorted(named, key=lambda each: -each[1])


def kernel_name(kernel: Any) -> str:
    """Return a kernel as people call it; that all rows are divided by their length goes without saying.

    >>> from onebit.kernels import Gaussian, Laplace, Linear
    >>> [kernel_name(kernel) for kernel in (Linear(normalize=True), Gaussian(0.5, normalize=True), Laplace())]
    ['linear', 'Gaussian, width 0.5', 'Laplace']
    """
    if kernel is None:
        return "linear"
    name, width = type(kernel).__name__, getattr(kernel, "width", None)
    name = "linear" if name == "Linear" else name
    return f"{name}, width {width:g}" if name == "Gaussian" and width is not None else name
