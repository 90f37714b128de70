"""Weights that agree with all that the feedback proved: NP-complete to find (Appendix H), found exactly here."""

from onebit.theory.weak_labeling.hardness import SolvingRow, measure_solving
from onebit.theory.weak_labeling.instance import Fact, WeakLabeling, it_is, it_is_not
from onebit.theory.weak_labeling.set_splitting import SetSplitting, random_set_splitting
from onebit.theory.weak_labeling.solver import Answer, agreeing_weights, solve

__all__ = [
    "Answer",
    "Fact",
    "SetSplitting",
    "SolvingRow",
    "WeakLabeling",
    "agreeing_weights",
    "it_is",
    "it_is_not",
    "measure_solving",
    "random_set_splitting",
    "solve",
]
