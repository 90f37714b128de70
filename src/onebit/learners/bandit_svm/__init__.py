"""BanditSVM, room by room.

`facts` is what answers prove and the step on one fact; `kernel_facts` and `linear_facts` are the two memories of facts,
with a kernel and with explicit weights; `drift` notices that facts have gone out of date; `bandit_svm` is the learner.
"""

from onebit.learners.bandit_svm.bandit_svm import BanditSVM

__all__ = ["BanditSVM"]
