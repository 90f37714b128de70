"""Second-order learners: one matrix over all classes and features records the directions tried.

`joint` is the state that they share, `full` keeps the matrix and its inverse, `diagonal` the diagonal alone; `secular`
projects onto a ball. `soba` and `p_newtron` are the learners.
"""

from onebit.learners.second_order.p_newtron import PNewtron
from onebit.learners.second_order.soba import SOBA

__all__ = ["SOBA", "PNewtron"]
