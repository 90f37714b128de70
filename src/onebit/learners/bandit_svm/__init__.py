"""BanditSVM.

`separators` is what answers prove, and separators consistent with it; `guesses` is how a label is chosen from scores;
`vote` is how the members of a bank guess and learn, `bank` has their arrays; `regressions` propose labels beside them;
`quiet` plays rounds in blocks where nothing is learned; `linear` is the form with weights; `bandit_svm` is the learner.
"""

from onebit.learners.bandit_svm.bandit_svm import BanditSVM

__all__ = ["BanditSVM"]
