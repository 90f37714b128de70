"""BanditSVM, room by room.

`facts` is what answers prove, the step on one fact, and how guesses are guarded; `bank` and `linear_facts` are the two
memories of facts, with kernels and with explicit weights; `rows` is a row as they see it, scaled; `drift` notices that
facts have gone out of date; `bandit_svm` is the learner.
"""

from onebit.learners.bandit_svm.bandit_svm import BanditSVM

__all__ = ["BanditSVM"]
