"""Spaces turn features into scores: linear weights, for dense and sparse rows, and a support set with a kernel."""

from typing import Any

from onebit.kernels import as_kernel
from onebit.spaces.linear import LinearSpace
from onebit.spaces.rule import Rule, Space
from onebit.spaces.support_set import SupportSet

__all__ = ["LinearSpace", "Rule", "SupportSet", "space_for"]


def space_for(kernel: Any, rule: Rule, settings: tuple[float, ...], n_features: int, n_classes: int) -> Space:
    """Return the empty space of a learner's `kernel` setting; `settings` are the numbers that the rule needs."""
    if kernel is None:  # weights, not examples: time and memory do not grow with the rounds
        return LinearSpace(rule, settings, n_features, n_classes)
    return SupportSet(as_kernel(kernel), rule, settings, n_features, n_classes)
