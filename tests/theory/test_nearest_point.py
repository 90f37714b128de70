"""The nearest point of a hull, in floats and in decimals."""

import numpy as np
import pytest

from onebit.theory.nearest_point import Hull, as_decimals, nearest_point


@pytest.mark.parametrize("factor", [1.0, 2.0**-40])
def test_decimals_find_what_floats_do(factor: float) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 6))
    signs = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += 0.1 * signs
    X *= [factor, 1.0, 1.0, 1.0, 1.0, 1.0]
    X /= 10.0
    hull = Hull(X, (signs < 0.0).astype(np.int64), n_classes=2, strong_class=0)
    floats, decimals = nearest_point(hull), nearest_point(hull.at(as_decimals(X)))
    assert decimals.gap <= 1e-9
    assert decimals.upper <= floats.upper * (1.0 + 1e-12)
    assert decimals.lower >= floats.lower * (1.0 - 1e-12)
    if factor == 1.0:
        assert sorted(decimals.vertices) == sorted(floats.vertices)
    else:
        assert decimals.lower > 0.01 * factor
