"""Learners that keep one weight vector per class, and need to know how large scores are, not only their order.

`weights.py` has the memory and the one game that all of them share, so that it is compiled once: what differs is how a
guess is drawn from scores (`_mix`) and which step an answer is worth (`_learn`). Each learner has a file of its own.
"""
