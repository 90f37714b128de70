"""The linear space: one weight vector per class, kept feature by feature (d × K), for dense and for sparse rows.

Rules only compare scores with each other and with zero. So a row whose scores overflow or underflow is scored again,
divided by a power of two, which gives the same guess as exact scores. Where even those overflow (weights near the
largest float) the row is refused.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.engine.algorithm import READY, Algorithm, ready_if_finite
from onebit.engine.jit import jit, jit_inline, jit_internal, jit_no_refcount
from onebit.engine.scaling import are_safe, power_of_two_below
from onebit.inputs import Floats, Rows, SparseRows, unlocked
from onebit.spaces.rule import Numbers, Rule, Space, rule_algorithm

# With few features one accumulator per class stays in a register; with many, going through the weights row by row reads
# them in memory order. Both add up in the order of the features, so the results are identical.
_FEW_FEATURES = 8


class _Weights(NamedTuple):
    """The arrays of a linear learner."""

    weights: Floats  # one row per feature, one column per class


class LinearSpace(Space):
    """One weight per class and feature: K × d numbers, whatever the number of rounds."""

    axes: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("", "class")}
    takes_sparse = True

    def __init__(self, rule: Rule, settings: tuple[float, ...], n_features: int, n_classes: int) -> None:
        self.rule = rule
        super().__init__(_Weights(np.zeros((n_features, n_classes))), Numbers(settings, ()), n_classes)

    def algorithm(self, is_sparse: bool, rule: Rule | None = None) -> Algorithm:
        functions = (_score_sparse, step_sparse) if is_sparse else (_score_dense, step_dense)
        return rule_algorithm(rule or self.rule, *functions)

    def score_rows(self, rows: Rows) -> Floats:
        if not isinstance(rows, SparseRows):
            with np.errstate(over="ignore", invalid="ignore"):
                products: Floats = rows @ self.arrays.weights
            _mend_rows(self.arrays, unlocked(rows), products)
            return products
        out = np.empty((len(rows), self.n_classes))
        _score_sparse_rows(self.arrays, unlocked(rows), out)
        return out

    def learned(self) -> dict[str, Floats]:
        return {"weights": self.arrays.weights.T.copy()}


@jit_inline
def sum_up_dense(state: Any, X: Floats, t: int, out: Floats) -> None:
    """Write ⟨wᵢ, X[t]⟩ for every class i."""
    weights = state.weights
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


@jit_inline
def _score_dense(state: _Weights, X: Floats, t: int, _kernel: Any, out: Floats) -> int:
    """Write the scores of row t, or where they are too large or too small those of the row divided by a number."""
    sum_up_dense(state, X, t, out)
    return READY if are_safe(out) else _score_dense_scaled(state, X, t, out)


@jit_no_refcount
def _score_dense_scaled(state: _Weights, X: Floats, t: int, out: Floats) -> int:
    """Write the scores of row t divided by the power of two just below its largest entry."""
    largest, off, weights = 0.0, 0.0, state.weights
    for j in range(X.shape[1]):
        largest = max(largest, abs(X[t, j]))
        off += X[t, j] - X[t, j]
    for i in range(out.shape[0]):
        out[i] = off  # NaN, if an entry is NaN or infinite
    if off == 0.0 and largest > 0.0:
        unit = power_of_two_below(largest)
        for j in range(X.shape[1]):
            for i in range(out.shape[0]):
                out[i] += X[t, j] / unit * weights[j, i]
    return ready_if_finite(out)


@jit_inline
def step_dense(state: Any, X: Floats, t: int, gains: Floats) -> None:
    """Add gains[i]·X[t] to the weights of every class i."""
    weights = state.weights
    for j in range(X.shape[1]):
        for i in range(gains.shape[0]):
            weights[j, i] += X[t, j] * gains[i]


@jit_inline
def sum_up_sparse(state: Any, X: SparseRows, t: int, out: Floats) -> None:
    """Write ⟨wᵢ, X[t]⟩ for every class i, added up in the same order as for dense rows: the scores are identical."""
    weights = state.weights
    for i in range(out.shape[0]):
        out[i] = 0.0
    for entry in range(X.starts[t], X.starts[t + 1]):
        for i in range(out.shape[0]):
            out[i] += X.values[entry] * weights[X.columns[entry], i]


@jit_inline
def _score_sparse(state: Any, X: SparseRows, t: int, _kernel: Any, out: Floats) -> int:
    sum_up_sparse(state, X, t, out)
    return READY if are_safe(out) else _score_sparse_scaled(state, X, t, out)


@jit_internal
def _score_sparse_scaled(state: Any, X: SparseRows, t: int, out: Floats) -> int:
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
def step_sparse(state: Any, X: SparseRows, t: int, gains: Floats) -> None:
    """Add gains[i]·X[t] to the weights of every class i."""
    weights = state.weights
    for entry in range(X.starts[t], X.starts[t + 1]):
        for i in range(gains.shape[0]):
            weights[X.columns[entry], i] += X.values[entry] * gains[i]


@jit
def _mend_rows(state: _Weights, rows: Floats, out: Floats) -> None:
    for t in range(out.shape[0]):
        if not are_safe(out[t]):
            _score_dense_scaled(state, rows, t, out[t])


@jit
def _score_sparse_rows(state: _Weights, rows: SparseRows, out: Floats) -> None:
    for t in range(out.shape[0]):
        _score_sparse(state, rows, t, (), out[t])
