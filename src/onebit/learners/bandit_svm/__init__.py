"""BanditSVM.

`separators` is what answers prove, and separators consistent with it; `regressions` propose labels beside them; `vote`
has the arrays, and how members and guard make one guess; `rounds` scores a row and learns from an answer; `quiet` plays
rounds in blocks where nothing is learned; `bank` is what Python does with the arrays; `bandit_svm` is the learner.
"""

from onebit.learners.bandit_svm.bandit_svm import BanditSVM

__all__ = ["BanditSVM"]
