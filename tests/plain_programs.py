"""Pieces of the plain programs that learners are compared with."""

from typing import Any

import numpy as np

from onebit.theory.weak_labeling import SetSplitting


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def drawn(propensities: list[tuple[float, Any]], number: float) -> int:
    """Return the label that a number names: first which of several ways to draw, then, stretched, the label."""
    for chance, labels in propensities:
        if number < chance:
            return int(np.searchsorted(np.cumsum(labels), number / chance, side="right"))
        number = (number - chance) / (1.0 - chance)
    raise AssertionError("the last way has a chance of 1")


def split_by_enumeration(problem: SetSplitting) -> frozenset[int] | None:
    """Return a first part that solves the problem, or None, after trying all 2^(N−1) splits."""
    # A split and its mirror image are one, so the last element may stay in the second part.
    masks = range(2 ** (problem.n_elements - 1))
    splits = (frozenset(i for i in range(problem.n_elements) if mask >> i & 1) for mask in masks)
    return next((first for first in splits if problem.is_solved_by(first)), None)
