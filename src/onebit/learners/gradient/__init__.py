"""Learners with one weight vector per class that use the size of scores, not only their order.

`weights.py` has the state and the one algorithm that all of them share, so that it is compiled once: they differ in how
a guess is drawn from scores (`_mix`) and in the step an answer leads to (`_learn`). Each learner has its own file.
"""
