"""The linear space for sparse rows: the same weights, read only where a row has entries.

Features are added up in the same order as for dense rows and a missing entry adds exactly nothing, so a sparse row and
its dense twin have the same scores to the last bit.
"""

from typing import Any

from onebit.compiled import inlined
from onebit.inputs import Floats, SparseRows
from onebit.loop import ready_if_finite


@inlined
def score(memory: Any, X: SparseRows, t: int, _kernel: Any, out: Floats) -> int:
    """Write ⟨wᵢ, X[t]⟩ for every class i."""
    weights = memory.weights
    for i in range(out.shape[0]):
        out[i] = 0.0
    for entry in range(X.starts[t], X.starts[t + 1]):
        for i in range(out.shape[0]):
            out[i] += X.values[entry] * weights[X.columns[entry], i]
    return ready_if_finite(out)


@inlined
def step(memory: Any, X: SparseRows, t: int, gains: Floats) -> None:
    """Add gains[i]·X[t] to the weights of every class i."""
    weights = memory.weights
    for entry in range(X.starts[t], X.starts[t + 1]):
        for i in range(gains.shape[0]):
            weights[X.columns[entry], i] += X.values[entry] * gains[i]
