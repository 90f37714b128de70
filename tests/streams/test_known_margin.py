import numpy as np
import pytest

from onebit.streams import weak_margin
from onebit.streams.adversaries import proved_margin
from onebit.streams.synthetic import directions
from onebit.theory import margin as largest_margin


@pytest.mark.parametrize(("n_classes", "margin", "n_features"), [(2, 0.1, 2), (4, 0.02, 3), (12, 0.01, 5)])
def test_the_directions_prove_the_margin(n_classes: int, margin: float, n_features: int) -> None:
    X, y = weak_margin(3000, 3, n_classes=n_classes, margin=margin, n_features=n_features)
    W = directions(n_classes, n_features, 3)
    assert np.isclose((W**2).sum(), 1.0)
    assert np.allclose(np.linalg.norm(X, axis=1), 1.0)
    assert margin * (1 - 1e-9) <= proved_margin(X, y, W, "weak") <= 1.1 * margin
    assert set(y) == set(range(n_classes))


def test_no_other_directions_prove_much_more() -> None:
    X, y = weak_margin(400, 0, n_classes=3, margin=0.05)
    assert 0.05 <= largest_margin(X, y).weak <= 0.08


def test_a_shorter_stream_is_the_beginning_of_a_longer_one() -> None:
    X, y = weak_margin(9000, 1)
    few, labels = weak_margin(100, 1)
    assert np.array_equal(few, X[:100])
    assert np.array_equal(labels, y[:100])


def test_a_margin_that_leaves_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="margin must be smaller for n_classes=16 in n_features=3"):
        weak_margin(10, 0, n_classes=16, margin=0.3)
