import numpy as np
import pytest

from onebit.streams import several_right, syn_non_sep, syn_sep, weak_margin
from onebit.streams.adversaries import proved_margin
from onebit.streams.synthetic import _codes, _several_right_separators, directions
from onebit.theory import margin as largest_margin


@pytest.mark.parametrize("seed", [0, 7])
def test_documents_are_codes_without_five_words_and_twenty_others(seed: int) -> None:
    X, y = syn_sep(3000, seed)
    bits = X.toarray()
    assert set(X.data.tolist()) == {1.0}
    assert X.has_canonical_format
    assert np.all(bits[:, 120:].sum(axis=1) == 20)
    codes, sizes = _codes(seed)
    assert 20 <= sizes.min() <= sizes.max() <= 40
    for label in range(9):
        seen = bits[y == label][:, :120]
        code = np.flatnonzero(seen.any(axis=0))
        assert code.tolist() == codes[label, : sizes[label]].tolist()
        assert np.all(seen.sum(axis=1) == len(code) - 5)
        # Every word of the code is missing as often: 5 of its size.
        missing = 1 - seen[:, code].mean(axis=0)
        assert np.abs(missing - 5 / len(code)).max() < 0.09
    assert np.abs(bits[:, 120:].mean(axis=0) - 20 / 280).max() < 0.025
    assert np.abs(np.bincount(y) / 3000 - 1 / 9).max() < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_one_class_against_the_rest_by_the_words_of_its_code(seed: int) -> None:
    """Strong separability by the vectors that the docstring names, the twenty other words as the constant."""
    X, y = syn_sep(1000, seed)
    codes, sizes = _codes(seed)
    for label in range(9):
        w = np.zeros(400)
        w[codes[label, : sizes[label]]] = 1.0
        w[120:] = -(sizes[label] - 5.5) / 20
        assert np.array_equal(X @ w > 0, y == label)


def test_the_other_set_has_wrong_labels() -> None:
    (X, y), (same_X, right) = syn_non_sep(20_000, 1), syn_sep(20_000, 1)
    assert (same_X != X).nnz == 0
    assert abs(np.mean(y != right) - 0.05) < 0.005
    moved = (y - right)[y != right] % 9
    assert np.abs(np.bincount(moved, minlength=9)[1:] / len(moved) - 1 / 8).max() < 0.04


def test_seeds_draw_codes_of_their_own() -> None:
    assert not np.array_equal(_codes(0)[0], _codes(1)[0])


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


def test_several_right_labels_have_a_margin() -> None:
    X, right = several_right(rounds=1000, seed=1)
    sides = np.where(right, 1.0, -1.0) * (X @ _several_right_separators(seed=1).T)
    assert round(2.0 * float(sides.min()), 3) == 0.028
