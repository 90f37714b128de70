"""Contract checks: kernels and streams. A check of a kernel has a parameter `kernel`, one of a stream `stream`."""

import pickle
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from onebit.inputs import Floats
from onebit.kernels import Custom, Kernel
from onebit.learners import BanditPerceptron

_Stream = Callable[..., tuple[Any, Any]]


def _points(n: int, d: int, seed: int = 0) -> Floats:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    # Uniform in the ball, so that its rim, where kernels are steepest, is well covered.
    X *= generator.random((n, 1)) ** (1.0 / d) / np.linalg.norm(X, axis=1, keepdims=True)
    return X


def _check_symmetric_and_positive_semidefinite(kernel: Kernel) -> None:
    """The matrix of any points is symmetric and has no negative eigenvalue beyond rounding."""
    for n, d in ((30, 2), (25, 7)):
        matrix = kernel(_points(n, d))
        assert np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12)
        # Rounding moves eigenvalues by about n·2⁻⁵³ times the largest entry.
        least = -1e-9 * np.abs(matrix).max()
        assert np.linalg.eigvalsh(matrix).min() >= least, "the matrix is not positive semidefinite"


def _check_matrix_of_pairs(kernel: Kernel) -> None:
    """k(X, Y) has a row per row of X, a column per row of Y, and matches single pairs."""
    X, Y = _points(6, 4, seed=1), _points(5, 4, seed=2)
    matrix = kernel(X, Y)
    assert matrix.shape == (6, 5)
    assert np.allclose(matrix, kernel(Y, X).T, rtol=1e-12, atol=1e-14)
    single = [[kernel(x[None], y[None])[0, 0] for y in Y] for x in X]
    assert np.allclose(matrix, single, rtol=1e-12, atol=1e-14)


def _check_series_is_as_close_as_it_says(kernel: Kernel) -> None:
    """The polynomial in ⟨x,x'⟩, if there is one, is within its stated error on the unit ball."""
    series = kernel.series(3)
    if series is None:
        raise SkipTest("it has no polynomial")
    X, Y = _points(60, 3, seed=3), _points(60, 3, seed=4)
    products = kernel.prepare(X) @ kernel.prepare(Y).T
    polynomial = np.polynomial.polynomial.polyval(products, series.coefficients)
    assert np.max(np.abs(polynomial - kernel(X, Y))) <= series.error + 1e-12


def _check_sensitivity_bounds_the_kernel(kernel: Kernel) -> None:
    """`sensitivity` is at least the largest value, and at least the change a relative rounding makes."""
    if type(kernel).value is None:
        raise SkipTest("it is computed from rows, and never in blocks of products")
    X, Y = kernel.prepare(_points(40, 3, seed=5)), kernel.prepare(_points(40, 3, seed=6))
    products, rounding = X @ Y.T, 1e-9  # far above 2⁻⁵³, so that the check's own rounding drowns
    squares = [np.einsum("ij,ij->i", Z, Z) for Z in (X, Y)]
    value = kernel.of_products(products.copy(), *squares)
    moved = kernel.of_products(products * (1.0 + rounding), *(square * (1.0 - rounding) for square in squares))
    limit = kernel.sensitivity(1.0)
    assert np.abs(value).max() <= limit
    assert np.abs(moved - value).max() <= rounding * limit * 1.001 + 1e-15


def _check_normalize_divides_by_the_length(kernel: Kernel) -> None:
    """With `normalize` set, scaling a row changes nothing."""
    if not kernel.normalize:
        raise SkipTest("it takes rows as they are")
    X = _points(8, 3, seed=7)
    assert np.allclose(kernel(X), kernel(5.0 * X), rtol=1e-12)


def _check_settings_survive_print_and_pickle(kernel: Kernel) -> None:
    """A kernel equals its pickled copy and prints its settings."""
    assert repr(kernel).startswith(type(kernel).__name__ + "(")
    if not isinstance(kernel, Custom):
        assert pickle.loads(pickle.dumps(kernel)) == kernel
        assert hash(pickle.loads(pickle.dumps(kernel))) == hash(kernel)


def _check_learners_take_it(kernel: Kernel) -> None:
    """A learner given the kernel learns with it."""
    X = _points(50, 4, seed=8)
    learner = BanditPerceptron(kernel).fit(X, (X[:, 0] > 0).astype(int))
    assert learner.support_.shape == (learner.n_updates_, 4)
    assert np.all(np.isfinite(learner.decision_function(X)))


def _dense(X: Any) -> Any:
    return X.toarray() if scipy.sparse.issparse(X) else X


def _check_rows_and_labels(stream: _Stream) -> None:
    """X is finite with one row per round, y one label per round, counted from 0, or of each label if it is right."""
    X, y = stream(rounds=500, seed=1)
    assert not scipy.sparse.issparse(X) or X.format == "csr", "sparse rows are CSR"
    assert X.shape[0] == y.shape[0] == 500
    assert X.dtype == np.float64
    assert np.all(np.isfinite(_dense(X)))
    if y.ndim == 2:
        assert y.dtype == np.bool_
        assert y.any(axis=1).all(), "in every round one label is right, or several"
    else:
        assert y.dtype == np.int64
        assert y.min() >= 0


def _check_seed_names_the_stream(stream: _Stream) -> None:
    """The same seed gives the same rounds, another seed gives others."""
    (X, y), (same_X, same_y) = stream(rounds=300, seed=1), stream(rounds=300, seed=1)
    assert np.array_equal(_dense(X), _dense(same_X))
    assert np.array_equal(y, same_y)
    assert not np.array_equal(_dense(X), _dense(stream(rounds=300, seed=2)[0]))


def _check_shorter_is_a_beginning(stream: _Stream) -> None:
    """A shorter stream is the beginning of a longer one."""
    (X, y), (short_X, short_y) = stream(rounds=400, seed=3), stream(rounds=123, seed=3)
    assert np.array_equal(_dense(X[:123]), _dense(short_X))
    assert np.array_equal(y[:123], short_y)
