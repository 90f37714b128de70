"""Spaces turn features into scores: linear weights, for dense and sparse rows, and a support set with a kernel."""

from onebit.spaces.linear import LinearSpace, space_for
from onebit.spaces.rule import Rule
from onebit.spaces.support_set import SupportSet

__all__ = ["LinearSpace", "Rule", "SupportSet", "space_for"]
