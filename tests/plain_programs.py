"""Pieces of the plain programs that learners are compared with."""

from typing import Any

import numpy as np


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
