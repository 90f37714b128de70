"""Contract checks: kernels."""

import pickle
from unittest import SkipTest

import numpy as np

from onebit.inputs import Floats
from onebit.kernels import Custom, Kernel
from onebit.learners import BanditPerceptron


def _points(n: int, d: int, seed: int = 0) -> Floats:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    # Uniform in the ball, so that its rim, where kernels are steepest, is well covered.
    X *= generator.random((n, 1)) ** (1.0 / d) / np.linalg.norm(X, axis=1, keepdims=True)
    return X


def check_symmetric_and_positive_semidefinite(kernel: Kernel) -> None:
    """The matrix of any points is symmetric and has no negative eigenvalue beyond rounding."""
    for n, d in ((30, 2), (25, 7)):
        matrix = kernel(_points(n, d))
        assert np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12)
        # Rounding moves eigenvalues by about n·2⁻⁵³ times the largest entry.
        assert np.linalg.eigvalsh(matrix).min() >= -1e-9 * np.abs(matrix).max(), (
            "the matrix is not positive semidefinite"
        )


def check_matrix_of_pairs(kernel: Kernel) -> None:
    """k(X, Y) has a row per row of X, a column per row of Y, and matches single pairs."""
    X, Y = _points(6, 4, seed=1), _points(5, 4, seed=2)
    matrix = kernel(X, Y)
    assert matrix.shape == (6, 5)
    assert np.allclose(matrix, kernel(Y, X).T, rtol=1e-12, atol=1e-14)
    for i in range(6):
        for j in range(5):
            assert np.isclose(matrix[i, j], kernel(X[i : i + 1], Y[j : j + 1])[0, 0], rtol=1e-12, atol=1e-14)


def check_series_is_as_close_as_it_says(kernel: Kernel) -> None:
    """The polynomial in ⟨x,x'⟩, if there is one, is within its stated error on the unit ball."""
    series = kernel.series(3)
    if series is None:
        raise SkipTest("it has no polynomial")
    X, Y = _points(60, 3, seed=3), _points(60, 3, seed=4)
    rows_x, rows_y = kernel.prepare(X), kernel.prepare(Y)
    polynomial = np.polynomial.polynomial.polyval(rows_x @ rows_y.T, series.coefficients)
    assert np.max(np.abs(polynomial - kernel(X, Y))) <= series.error + 1e-12


def check_sensitivity_bounds_the_kernel(kernel: Kernel) -> None:
    """`sensitivity` is at least the largest value, and at least the change a relative rounding makes."""
    if type(kernel).value is None:
        raise SkipTest("it is computed from rows, and never in blocks of products")
    X, Y = kernel.prepare(_points(40, 3, seed=5)), kernel.prepare(_points(40, 3, seed=6))
    products, rounding = X @ Y.T, 1e-9  # far above 2⁻⁵³, so that the check's own rounding drowns
    squares = [np.einsum("ij,ij->i", Z, Z) for Z in (X, Y)]
    value = kernel.of_products(products.copy(), *squares)
    moved = kernel.of_products(
        products * (1.0 + rounding), squares[0] * (1.0 - rounding), squares[1] * (1.0 - rounding)
    )
    limit = kernel.sensitivity(1.0)
    assert np.abs(value).max() <= limit
    assert np.abs(moved - value).max() <= rounding * limit * 1.001 + 1e-15


def check_normalize_divides_by_the_length(kernel: Kernel) -> None:
    """With `normalize` set, scaling a row changes nothing."""
    if not kernel.normalize:
        raise SkipTest("it takes rows as they are")
    X = _points(8, 3, seed=7)
    assert np.allclose(kernel(X), kernel(5.0 * X), rtol=1e-12)


def check_settings_survive_print_and_pickle(kernel: Kernel) -> None:
    """A kernel equals its pickled copy and prints its settings."""
    assert repr(kernel).startswith(type(kernel).__name__ + "(")
    if not isinstance(kernel, Custom):
        assert pickle.loads(pickle.dumps(kernel)) == kernel
        assert hash(pickle.loads(pickle.dumps(kernel))) == hash(kernel)


def check_learners_take_it(kernel: Kernel) -> None:
    """A learner given the kernel learns with it."""
    X = _points(50, 4, seed=8)
    learner = BanditPerceptron(kernel).fit(X, (X[:, 0] > 0).astype(int))
    assert learner.support_.shape == (learner.n_updates_, 4)
    assert np.all(np.isfinite(learner.decision_function(X)))
