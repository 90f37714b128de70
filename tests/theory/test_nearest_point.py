"""The nearest point of a hull."""

import numpy as np
import pytest
from scipy.optimize import nnls

from onebit.theory.nearest_point import GAP, Hull, nearest_point


@pytest.mark.parametrize("factor", [1.0, 2.0**-20])
def test_the_point_is_that_of_least_squares_on_all_vertices(factor: float) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((600, 6)) / 10.0
    signs = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] = factor * (X[:, 0] + 0.01 * signs)
    gaps: list[float] = []
    point = nearest_point(Hull("strong", X, (signs < 0.0).astype(np.int64), np.array([0])), gaps.append)
    assert gaps[-1] == point.gap <= GAP
    Z = signs[:, None] * X
    length = np.linalg.norm(point.weights @ Z[point.vertices]) / point.weights.sum()
    weights, _ = nnls(np.vstack([Z.T / 1e-3, np.ones(600)]), np.append(np.zeros(6), 1.0))
    assert length == pytest.approx(np.linalg.norm(weights @ Z) / weights.sum(), rel=1e-7)
    assert (Z @ point.direction).min() / np.linalg.norm(point.direction) == pytest.approx(length, rel=1e-8)
