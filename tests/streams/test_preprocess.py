from typing import Any

import numpy as np
import pytest
import scipy.sparse

from onebit.inputs import Floats
from onebit.streams.preprocess import METHODS, describe_preprocessing, preprocess


@pytest.fixture
def rows() -> Floats:
    X = np.random.default_rng(3).normal(size=(60, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0] + [0.0, 100.0, 0.0, 0.0, 0.0]
    X[:, 3] = 0.1
    return X


def test_standardize(rows: Floats) -> None:
    before = rows.copy()
    ready = preprocess(rows, "standardize")
    assert ready.shape == (60, 5), "the constant column is dropped, ones are appended"
    np.testing.assert_allclose(ready[:, :4].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(ready[:, :4].std(axis=0), 1.0)
    assert (ready[:, 4] == 1.0).all()
    assert np.array_equal(rows, before)


def test_online_is_standardizing_the_rows_so_far(rows: Floats) -> None:
    ready = preprocess(rows, "online")
    assert ready.shape == (60, 6)
    assert (ready[:, 5] == 1.0).all()
    assert (ready[:, 3] == 0.0).all(), "a constant column has nothing to say"
    assert (ready[0, :5] == 0.0).all()
    varying = [0, 1, 2, 4]
    for t in (1, 2, 30, 59):
        so_far = rows[: t + 1, varying]
        expected = (so_far[-1] - so_far.mean(axis=0)) / so_far.std(axis=0)
        np.testing.assert_allclose(ready[t, varying], expected, rtol=1e-9)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("unit_length", [False, True])
def test_online_never_looks_ahead(rows: Floats, is_sparse: bool, unit_length: bool) -> None:
    def online(X: Floats) -> Any:
        ready = preprocess(scipy.sparse.csr_array(X) if is_sparse else X, "online", unit_length)
        return ready.toarray() if is_sparse else ready

    rows[np.abs(rows) < 0.3] = 0.0
    changed = rows.copy()
    changed[40:] = 1e6
    assert np.array_equal(online(rows)[:40], online(changed)[:40])
    assert np.array_equal(online(rows)[:40], online(rows[:40]))


@pytest.mark.parametrize("method", ["standardize", "online"])
def test_sparse_rows_stay_sparse_and_are_only_scaled(rows: Floats, method: str) -> None:
    rows[np.abs(rows) < 0.5] = 0.0
    X = scipy.sparse.csr_array(rows)
    before = X.toarray()
    ready = preprocess(X, method)
    assert scipy.sparse.issparse(ready)
    assert np.array_equal(X.toarray(), before)
    dense = ready.toarray()
    assert (dense[:, -1] == 1.0).all()
    used = np.flatnonzero(before.any(axis=0)) if method == "standardize" else np.arange(before.shape[1])
    assert np.array_equal(dense[:, :-1] != 0, before[:, used] != 0)
    last = np.sqrt((before[:, used] ** 2).mean(axis=0))
    np.testing.assert_allclose(dense[-1, :-1] * last, before[-1, used])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_unit_length(rows: Floats, method: str, is_sparse: bool) -> None:
    rows[5] = 0.0
    ready = preprocess(scipy.sparse.csr_array(rows) if is_sparse else rows, method, unit_length=True)
    lengths = np.linalg.norm(ready.toarray() if is_sparse else ready, axis=1)
    np.testing.assert_allclose(np.delete(lengths, 5), 1.0)
    assert lengths[5] == pytest.approx(0.0 if method == "none" else 1.0)


def test_none_changes_nothing(rows: Floats) -> None:
    assert preprocess(rows, "none") is rows


def test_unknown_method(rows: Floats) -> None:
    with pytest.raises(ValueError, match="preprocessing must be one of 'standardize', 'online', 'none'; got 'pca'"):
        preprocess(rows, "pca")


def test_words_say_what_was_done() -> None:
    assert "all rows played" in describe_preprocessing("standardize", False, False)
    assert "rows so far" in describe_preprocessing("online", False, False)
    assert "not centred" in describe_preprocessing("online", False, True)
    assert describe_preprocessing("none", True, False) == "rows as they are, then rows divided by their length"


@pytest.mark.parametrize("power", [-1000, -565, 532, 1000])
@pytest.mark.parametrize("unit_length", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_scale_does_not_matter(rows: Floats, method: str, is_sparse: bool, unit_length: bool, power: int) -> None:
    def ready(X: Floats) -> Floats:
        done = preprocess(scipy.sparse.csr_array(X) if is_sparse else X, method, unit_length)
        dense: Floats = done.toarray() if is_sparse else done
        return dense

    rows[7] = 0.0
    scaled = np.ldexp(rows, power)
    if method == "none" and not unit_length:
        assert np.array_equal(ready(scaled), scaled)
    else:
        assert np.array_equal(ready(scaled), ready(rows))


@pytest.mark.parametrize("is_sparse", [False, True])
def test_online_from_the_smallest_to_the_largest_scale(is_sparse: bool) -> None:
    column = np.array([[0.0], [3e-310], [1e-200], [-2e-200], [5.0], [7.0], [1e200], [-3e200], [1.7e308]])
    done = preprocess(scipy.sparse.csr_array(column) if is_sparse else column, "online")
    ready = (done.toarray() if is_sparse else done)[:, 0]
    for t in range(1, len(column)):
        so_far = column[: t + 1, 0] / np.abs(column[: t + 1]).max()
        mean, size = (0.0, np.sqrt(np.mean(so_far**2))) if is_sparse else (so_far.mean(), so_far.std())
        assert ready[t] == pytest.approx((so_far[-1] - mean) / size, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_damaged_rows_are_refused(method: str) -> None:
    damaged = scipy.sparse.csr_array(([1.0, 1.0], [0, 10**8], [0, 1, 2]), shape=(2, 4))
    with pytest.raises(ValueError, match="columns must lie between 0 and 3"):
        preprocess(damaged, method)
