"""The linear space for dense rows: one weight vector per class, kept feature by feature (d × K)."""

from typing import NamedTuple

from onebit.compiled import inlined
from onebit.inputs import Floats

_FEW_FEATURES = 8


class Weights(NamedTuple):
    """The memory of a linear learner."""

    weights: Floats
    """One row per feature, one column per class."""


@inlined
def scores(memory: Weights, X: Floats, t: int, out: Floats) -> None:
    """Write ⟨wᵢ, X[t]⟩ for every class i."""
    weights = memory.weights
    if X.shape[1] <= _FEW_FEATURES:
        for i in range(out.shape[0]):
            total = 0.0
            for j in range(X.shape[1]):
                total += X[t, j] * weights[j, i]
            out[i] = total
    else:
        for i in range(out.shape[0]):
            out[i] = 0.0
        for j in range(X.shape[1]):
            for i in range(out.shape[0]):
                out[i] += X[t, j] * weights[j, i]


@inlined
def step(memory: Weights, X: Floats, t: int, gains: Floats) -> None:
    """Add gains[i]·X[t] to the weights of every class i."""
    weights = memory.weights
    for j in range(X.shape[1]):
        for i in range(gains.shape[0]):
            weights[j, i] += X[t, j] * gains[i]
