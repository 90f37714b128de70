"""Where scores live: linear weights, dense or sparse, and a support set with a kernel."""

from onebit.spaces.base import Space
from onebit.spaces.linear_space import LinearSpace
from onebit.spaces.support_set import SupportSet

__all__ = ["LinearSpace", "Space", "SupportSet"]
