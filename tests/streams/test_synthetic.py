import numpy as np
import pytest

from onebit.streams import syn_non_sep, syn_sep
from onebit.streams.synthetic import _codes


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
