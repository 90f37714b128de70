"""The linear space for sparse rows: the same weights, read only where a row has entries.

Features are added up in the same order as for dense rows and a missing entry adds exactly nothing, so a sparse row and
its dense equivalent have identical scores.
"""

from typing import Any

from onebit.engine.jit import jit_inline, jit_internal
from onebit.engine.lengths import are_safe, power_of_two_below
from onebit.engine.loop import READY, ready_if_finite
from onebit.inputs import Floats, SparseRows


@jit_inline
def score(state: Any, X: SparseRows, t: int, _kernel: Any, out: Floats) -> int:
    """Write ⟨wᵢ, X[t]⟩ for every class i."""
    weights = state.weights
    for i in range(out.shape[0]):
        out[i] = 0.0
    for entry in range(X.starts[t], X.starts[t + 1]):
        for i in range(out.shape[0]):
            out[i] += X.values[entry] * weights[X.columns[entry], i]
    return READY if are_safe(out) else score_scaled(state, X, t, out)


@jit_internal
def score_scaled(state: Any, X: SparseRows, t: int, out: Floats) -> int:
    """Write the scores of row t divided by the power of two just below its largest entry."""
    largest, off, weights = 0.0, 0.0, state.weights
    for entry in range(X.starts[t], X.starts[t + 1]):
        largest = max(largest, abs(X.values[entry]))
        off += X.values[entry] - X.values[entry]
    for i in range(out.shape[0]):
        out[i] = off  # NaN, if an entry is NaN or infinite
    if off == 0.0 and largest > 0.0:
        unit = power_of_two_below(largest)
        for entry in range(X.starts[t], X.starts[t + 1]):
            for i in range(out.shape[0]):
                out[i] += X.values[entry] / unit * weights[X.columns[entry], i]
    return ready_if_finite(out)


@jit_inline
def step(state: Any, X: SparseRows, t: int, gains: Floats) -> None:
    """Add gains[i]·X[t] to the weights of every class i."""
    weights = state.weights
    for entry in range(X.starts[t], X.starts[t + 1]):
        for i in range(gains.shape[0]):
            weights[X.columns[entry], i] += X.values[entry] * gains[i]
