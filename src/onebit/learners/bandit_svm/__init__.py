"""BanditSVM.

`separators` is what answers prove, and separators consistent with it; `regressions` propose labels beside them; `vote`
has the arrays, and how members and guard make one guess; `store` is what happens to stored examples; `rounds` scores a
row and learns from an answer; `playing` calls it, and plays quiet rounds in blocks; `bank` is what Python does with the
arrays; `bandit_svm` is the learner.
"""

from onebit.learners.bandit_svm.bandit_svm import BanditSVM

__all__ = ["BanditSVM"]
