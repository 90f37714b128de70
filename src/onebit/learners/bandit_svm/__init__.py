"""BanditSVM, room by room.

`facts` is what answers prove, the step on one fact, and how guesses are guarded. There are two memories of facts:
`linear_facts` keeps explicit weights; `bank` keeps several kernels that vote, with `bank_facts` (the arrays),
`bank_plan` (how kernels' values are computed), `bank_vote` (what they say), `bank_learning` (what an answer changes)
and `bank_steps` (how). `rows` is a row as both see it, scaled; `drift` notices that facts have gone out of date;
`bandit_svm` is the learner.
"""

from onebit.learners.bandit_svm.bandit_svm import BanditSVM

__all__ = ["BanditSVM"]
