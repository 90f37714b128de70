"""Learners that remember how often each direction was tried, in one matrix over all classes and features.

`joint` is the memory that they share, `full` its matrix with the inverse at hand, `diagonal` the diagonal alone;
`secular` finds the nearest point of a ball. `soba` and `p_newtron` are the learners.
"""

from onebit.learners.second_order.p_newtron import PNewtron
from onebit.learners.second_order.soba import SOBA

__all__ = ["SOBA", "PNewtron"]
