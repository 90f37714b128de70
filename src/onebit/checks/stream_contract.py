"""Contract checks: streams."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

Stream = Callable[..., tuple[Any, Any]]


def _dense(X: Any) -> Any:
    return X.toarray() if scipy.sparse.issparse(X) else X


def check_rows_and_labels(stream: Stream) -> None:
    """X is finite with one row per round, y one label per round, counted from 0."""
    X, y = stream(rounds=500, seed=1)
    assert not scipy.sparse.issparse(X) or X.format == "csr", "sparse rows are CSR"
    assert X.shape[0] == y.shape[0] == 500
    assert X.dtype == np.float64
    assert np.all(np.isfinite(_dense(X)))
    assert y.dtype == np.int64
    assert y.min() >= 0


def check_seed_names_the_stream(stream: Stream) -> None:
    """The same seed gives the same rounds, another seed gives others."""
    X, y = stream(rounds=300, seed=1)
    same_X, same_y = stream(rounds=300, seed=1)
    assert np.array_equal(_dense(X), _dense(same_X))
    assert np.array_equal(y, same_y)
    assert not np.array_equal(_dense(X), _dense(stream(rounds=300, seed=2)[0]))


def check_shorter_is_a_beginning(stream: Stream) -> None:
    """A shorter stream is the beginning of a longer one."""
    X, y = stream(rounds=400, seed=3)
    short_X, short_y = stream(rounds=123, seed=3)
    assert np.array_equal(_dense(X[:123]), _dense(short_X))
    assert np.array_equal(y[:123], short_y)
