"""Checks of matrices and inverses from a file, which compiled code does not check."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from onebit.inputs import Floats

# Observed over many streams, with rows of 1e-22 to 1e22 and duplicate columns: below 2e-8 and 6e-9.
_ROUNDING = 1e-5
_BELOW_ZERO = 1e-6


def check_symmetric(matrix: Floats, inverse: Floats) -> None:
    """Raise ValueError unless a matrix from a file and its inverse are symmetric."""
    if not (np.array_equal(matrix, matrix.T) and np.array_equal(inverse, inverse.T)):
        raise ValueError("a matrix that it has learned, or its inverse, is not symmetric")


def check_inverse(matrix: Floats, inverse: Floats) -> None:
    """Raise ValueError unless a matrix from a file is symmetric and the other is its positive definite inverse.

    Up to rounding: the product is compared with the identity relative to the product of the norms.
    """
    check_symmetric(matrix, inverse)
    with np.errstate(over="ignore", invalid="ignore"):
        allowed = _ROUNDING * np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1)
        off = np.abs(matrix @ inverse - np.eye(len(matrix))).max()
    if not off <= allowed < np.inf:
        raise ValueError("the inverse of a matrix that it has learned is another matrix's")
    try:
        cholesky(inverse + _BELOW_ZERO * np.abs(inverse).max() * np.eye(len(inverse)), check_finite=False)
    except LinAlgError as error:
        raise ValueError("the inverse of a matrix that it has learned is not positive definite") from error
