from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from onebit.checks import STREAM_CHECKS
from onebit.streams import (
    bundled,
    paper_weak,
    syn_sep,
    with_drift,
    with_imbalance,
    with_label_noise,
    with_several_right,
)
from onebit.streams.sources import find_source

NO_STREAM: Any = np.eye(3)
CHANGED: dict[str, Callable[..., Any]] = {
    "noise": lambda rounds, seed: with_label_noise(paper_weak(rounds, seed), 0.3, seed),
    "sudden": lambda rounds, seed: with_drift(paper_weak(rounds, seed), "sudden", at=100, seed=seed),
    "gradual": lambda rounds, seed: with_drift(syn_sep(rounds, seed), "gradual", at=100, seed=seed, width=50),
    "several": lambda rounds, seed: with_several_right(paper_weak(rounds, seed), 2, seed, rule="next"),
    "features": lambda rounds, seed: with_drift(syn_sep(rounds, seed), at=100, seed=seed, what="features"),
}


@pytest.mark.parametrize("check", STREAM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("stream", CHANGED.values(), ids=CHANGED)
def test_changed_streams_keep_the_contract(stream: Any, check: Callable[[Any], None]) -> None:
    check(stream)


def test_noise_takes_every_other_label_alike() -> None:
    y = np.repeat([0, 1, 2, 3], 10_000)
    X = np.zeros((len(y), 1))
    same_X, noisy = with_label_noise((X, y), 0.3, seed=5)
    assert np.array_equal(same_X, X)
    shares = np.array([[np.mean(noisy[y == label] == other) for other in range(4)] for label in range(4)])
    assert np.abs(shares - (0.1 * np.ones((4, 4)) + 0.6 * np.eye(4))).max() < 0.015
    assert not np.array_equal(noisy, with_label_noise((X, y), 0.3, seed=6)[1])
    half = with_label_noise((X, y), 0.15, seed=5)[1]
    assert np.all(noisy[half != y] != y[half != y]), "more noise keeps the wrong labels of less"


def test_labels_of_any_kind_and_data_sets() -> None:
    words = np.array(["cat", "dog", "emu"])[np.arange(30) % 3]
    _, noisy = with_label_noise((np.eye(30), words), 1.0)
    assert set(noisy) <= {"cat", "dog", "emu"}
    assert np.all(noisy != words)
    iris = bundled("iris")
    before = iris.content
    drifted = with_label_noise(with_drift(iris, at=0.5, seed=1), 0.1, seed=1)
    assert (drifted.label_names, drifted.name) == (iris.label_names, "iris")
    assert [name for name, _ in drifted.about] == ["changed", "changed"]
    assert iris.content == before


@pytest.mark.parametrize("seed", range(6))
def test_sudden_drift_moves_every_class(seed: int) -> None:
    y = np.tile(np.arange(5), 40)
    _, new = with_drift((np.zeros((200, 2)), y), "sudden", at=60, seed=seed)
    assert np.array_equal(new[:60], y[:60])
    after = [set(new[60:][y[60:] == label].tolist()) for label in range(5)]
    assert all(len(each) == 1 for each in after)
    assert set.union(*after) == set(range(5))
    assert np.all(new[60:] != y[60:])
    assert np.array_equal(new, with_drift((np.zeros((200, 2)), y), "sudden", at=0.3, seed=seed)[1])


def test_gradual_drift_grows_linearly() -> None:
    y = np.tile(np.arange(3), 10_000)
    _, new = with_drift((np.zeros((30_000, 1)), y), "gradual", at=0.2, width=0.5, seed=1)
    is_new = (new != y).reshape(10, -1).mean(axis=1)
    assert np.abs(is_new - [0, 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1, 1, 1]).max() < 0.03


def test_rotated_rows_are_the_same_dense_and_sparse() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 12)) * (generator.random((50, 12)) < 0.5) + 0.0
    y = np.arange(50) % 2
    turned, same_y = with_drift((X, y), at=20, seed=3, what="features")
    assert np.array_equal(same_y, y)
    assert np.array_equal(turned[:20], X[:20])
    assert not np.allclose(turned[20:], X[20:])
    assert np.allclose(turned[20:] @ turned[20:].T, X[20:] @ X[20:].T), "lengths and angles stay"
    assert not np.signbit(turned[turned == 0]).any()
    sparse = with_drift((scipy.sparse.csr_array(X), y), at=20, seed=3, what="features")[0]
    assert sparse.has_canonical_format
    assert np.array_equal(sparse.toarray(), turned)


def test_imbalance_thins_in_geometric_steps() -> None:
    y = np.repeat(np.arange(4), 20_000)
    X, left = with_imbalance((np.arange(80_000.0)[:, None], y), 64.0, seed=3)
    assert np.array_equal(y[X[:, 0].astype(int)], left), "rows keep their labels"
    assert np.all(np.diff(X[:, 0]) > 0), "and their order"
    shares = np.sort(np.bincount(left) / 20_000)
    assert shares == pytest.approx([1 / 64, 1 / 16, 1 / 4, 1], rel=0.1)
    orders = {tuple(np.argsort(np.bincount(with_imbalance((X, left), 9.0, seed=s)[1]))) for s in range(5)}
    assert len(orders) > 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: with_label_noise(NO_STREAM, 0.1), r"stream must be a pair \(X, y\), or a DataSet; got ndarray"),
        (lambda: with_label_noise((np.eye(3), [0, 0, 0]), 0.1), "at least two labels; got 1"),
        (lambda: with_label_noise((np.eye(3), [0, 1, 0]), 0.1, seed=-1), "seed"),
        (lambda: with_label_noise((np.eye(3), [0, 1]), 0.1), "y must hold one label"),
        (lambda: with_drift((np.eye(3), [0, 1, 0]), at=3), r"one after; got 3, which is round 3"),
        (lambda: with_drift((np.eye(3), [0, 1, 0]), at=0.1), r"one of the 3 rounds before the drift"),
        (lambda: with_drift((np.eye(3), [0, 1, 0]), what="rows"), "what must be one of 'labels', 'features'"),
    ],
)
def test_bad_arguments(change: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        change()


@pytest.mark.parametrize("stream", [bundled("digits"), syn_sep(500, 1)], ids=["dense", "sparse"])
def test_several_labels_are_right_by_a_linear_rule(stream: Any) -> None:
    X, right = with_several_right(stream, 3, seed=4)
    assert X.shape[0] == len(right)
    assert set(right.sum(axis=1).tolist()) == {3}
    assert right.any(axis=0).sum() > 5, "the rule uses most labels"
    assert not np.array_equal(right, with_several_right(stream, 3, seed=5)[1])


def test_several_right_labels_come_last() -> None:
    words = np.array(["cat", "dog", "emu"])[np.arange(30) % 3]
    _, right = with_several_right((np.eye(30), words), 2, rule="next")
    assert right[:3].astype(int).tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    with pytest.raises(ValueError, match="n_right must be below the number of labels, 3; got 3"):
        with_several_right((np.eye(30), words), 3)
    with pytest.raises(ValueError, match="rule must be"):
        with_several_right((np.eye(30), words), 2, rule="some")
    source = find_source("noise:0.1:several:2:iris")
    with pytest.raises(ValueError, match=r"several comes last, as in several:3:noise"):
        source.changed(bundled("iris").X, bundled("iris").y, 3, 0)
    assert source.has_several_right
    assert find_source("several_right").has_several_right
    with pytest.raises(ValueError, match="several labels may be right in a round"):
        find_source("several_right").as_data_set(10)
