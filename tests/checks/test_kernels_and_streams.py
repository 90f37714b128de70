"""The checks of kernels and streams as a user calls them, on things of their own."""

import numpy as np
import pytest

from onebit.checks import check_kernel, check_stream
from onebit.inputs import Floats, Integers


def own_kernel(X: Floats, Y: Floats) -> Floats:
    values: Floats = np.exp(-np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2))
    return values


def own_stream(rounds: int, seed: int) -> tuple[Floats, Integers]:
    X = np.random.default_rng(seed).normal(size=(rounds, 3))
    return X, (X[:, 0] > 0).astype(np.int64)


def test_a_kernel_function_as_documented() -> None:
    assert "check_sensitivity_bounds_the_kernel" in check_kernel(own_kernel)
    with pytest.raises(AssertionError, match="positive semidefinite"):
        check_kernel(lambda X, Y: -own_kernel(X, Y))
    with pytest.raises(ValueError, match="kernel must be"):
        check_kernel("rational")  # type: ignore[arg-type]


def test_a_stream_of_ones_own_as_documented() -> None:
    assert check_stream(own_stream) == {}
    with pytest.raises(AssertionError):
        check_stream(lambda rounds, seed: own_stream(rounds, 0))
