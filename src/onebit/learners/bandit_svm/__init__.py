"""BanditSVM.

`separators` is what answers prove, and separators consistent with it; `vote` is how members guess and learn; `bank` has
the arrays of several members, `linear` those of the form with explicit weights; `bandit_svm` is the learner.
"""

from onebit.learners.bandit_svm.bandit_svm import BanditSVM

__all__ = ["BanditSVM"]
