import gc
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numba.core import event

from onebit import BanditPerceptron, BanditSVM, Learner, NearestNeighbor, play, streams
from onebit.bounds.claims import check_decimal
from onebit.engine.state import unlocked
from onebit.inputs import SparseRows, check_choice, check_integer, check_number, check_rows, densify
from onebit.kernels import Rational
from onebit.labels import encode_labels


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1.0, np.nan]], ["X[0, 1]", "nan"]),
        ([[1.0], [np.inf]], ["X[1, 0]", "inf"]),
        ([1.0, 2.0], ["two dimensions", "(2,)"]),
        (np.empty((0, 3)), ["empty", "(0, 3)"]),
        (np.empty((3, 0)), ["empty", "(3, 0)"]),
        ([["a"]], ["real numbers", "<U1"]),
        ([[1 + 2j]], ["real numbers", "complex"]),
        (scipy.sparse.csr_array(np.array([[0.0, np.nan]])), ["X.data", "nan"]),
        (scipy.sparse.csr_array((0, 3)), ["empty"]),
        (scipy.sparse.csr_array(([1.0], [10**8], [0, 1]), shape=(1, 4)), ["indices", "between 0 and 3", "100000000"]),
        (scipy.sparse.csc_matrix(([1.0], [-1], [0, 1]), shape=(4, 1)), ["rows", "between 0 and 3", "-1"]),
        (np.ma.MaskedArray([[1.0, 2.0]], mask=[[False, True]]), ["masked", "filled"]),
        ([[1.0], [1.0, 2.0]], ["lists of one length"]),
        (np.array([[1.0, None]], dtype=object), ["X[0, 1]", "None"]),
    ],
)
def test_bad_rows_are_named(X: object, words: list[str]) -> None:
    with pytest.raises(ValueError, match="X") as error:
        check_rows(X)
    for word in words:
        assert word in str(error.value)


def test_a_sum_that_overflows_is_not_an_error() -> None:
    X = np.full((2, 2), 1e308)
    assert np.array_equal(np.asarray(check_rows(X)), X)


def test_rows_of_any_real_kind_become_float64() -> None:
    for kind in (np.float32, np.int8, np.uint16, np.bool_, object):
        rows = check_rows(np.ones((3, 2), dtype=kind))
        assert not isinstance(rows, SparseRows)
        assert rows.dtype == np.float64
        assert rows.flags.c_contiguous
    assert np.array_equal(np.asarray(check_rows(np.asfortranarray(np.eye(3)))), np.eye(3))


def test_sparse_rows_keep_their_numbers() -> None:
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    for matrix in (scipy.sparse.csr_array(dense), scipy.sparse.coo_array(dense), scipy.sparse.csc_matrix(dense)):
        rows = check_rows(matrix)
        assert isinstance(rows, SparseRows)
        assert rows.shape == (3, 3)
        assert np.array_equal(densify(rows, 0, 3), dense)
        assert np.array_equal(densify(rows, 1, 3), dense[1:])


def test_duplicate_entries_are_added_up_without_touching_the_caller() -> None:
    matrix = scipy.sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    rows = check_rows(matrix)
    assert isinstance(rows, SparseRows)
    assert np.array_equal(densify(rows, 0, 1), [[0.0, 3.0, 0.0]])
    assert matrix.nnz == 2


@pytest.mark.parametrize("kind", ["?", "i1", "f4"])
def test_repeated_entries_add_up_as_in_the_dense_matrix(kind: str) -> None:
    """In the matrix's own type, in the order in which they are stored, whatever it says about that order."""
    generator = np.random.default_rng(0)
    values = (100 * generator.normal(size=400)).astype(kind)
    matrix = scipy.sparse.coo_array((values, generator.integers(3, size=(2, 400))), shape=(3, 3))
    compressed = scipy.sparse.csr_array((values, generator.integers(3, size=400), [0, 100, 250, 400]), shape=(3, 3))
    compressed.has_sorted_indices = compressed.has_canonical_format = True
    for given in (matrix, compressed):
        rows = check_rows(given)
        assert isinstance(rows, SparseRows)
        assert len(rows.values) == 9
        assert np.array_equal(densify(rows, 0, 3), given.toarray())


def test_a_matrix_that_changes_later_is_not_what_was_checked() -> None:
    matrix = scipy.sparse.csr_array(np.eye(3))
    rows, y = check_rows(matrix), np.array([0, 1, 2])
    codes = encode_labels(y, np.arange(3))
    matrix.indices[:], matrix.indptr[:], y[:] = 10**8, 10**8, 10**8
    assert isinstance(rows, SparseRows)
    assert np.array_equal(densify(rows, 0, 3), np.eye(3))
    assert codes.tolist() == [0, 1, 2]


def test_rows_of_ones_own_making_are_checked_too() -> None:
    with pytest.raises(ValueError, match="indices must lie between 0 and 3; got 7"):
        check_rows(SparseRows(np.ones(1), np.array([7]), np.array([0, 1]), 4))
    with pytest.raises(ValueError, match="X is no whole sparse matrix"):
        check_rows(SparseRows(np.ones(1), np.array([7]), np.array([]), 4))


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", None])
def test_integers_below_the_limit(value: object) -> None:
    with pytest.raises(ValueError, match="jobs must be"):
        check_integer("jobs", value, low=1)


@pytest.mark.parametrize("value", [0.0, -0.1, 1.0001, np.nan, np.inf, "a", True])
def test_numbers_outside_their_range(value: object) -> None:
    with pytest.raises(ValueError, match="exploration must be"):
        check_number("exploration", value, above=0.0, at_most=1.0)


def test_choices_are_listed() -> None:
    with pytest.raises(ValueError, match="'highest', 'first'; got 'best'"):
        check_choice("ties", "best", ("highest", "first"))


def test_rows_without_their_lock_share_memory_and_keep_it_alive() -> None:
    X = np.arange(6.0).reshape(2, 3)
    X.flags.writeable = False
    lent = unlocked(X)
    assert isinstance(lent, np.ndarray)
    assert lent.flags.writeable
    assert np.shares_memory(lent, X)
    del X
    gc.collect()
    assert lent.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert unlocked(lent) is lent


@pytest.mark.parametrize(
    "learner",
    [BanditPerceptron(), BanditPerceptron(Rational()), BanditSVM(None), NearestNeighbor(0.2)],
    ids=["linear", "blocks", "facts", "neighbours"],
)
def test_read_only_rows_are_played_by_the_code_that_is_there(learner: Learner) -> None:
    X, y = streams.paper_weak(rounds=300, seed=1)
    X = X[np.arange(300) % 7]  # the same points with other labels: updates and ties, which blocks score again
    sparse = scipy.sparse.csr_array(X)

    def play_all() -> None:
        for rows in (X, sparse):
            play(learner, rows, y)
            learner.predict(rows)
        streams.preprocess(X, "online")

    play_all()
    compilations: Any = event.RecordingListener()  # type: ignore[no-untyped-call]
    for array in (X, y, sparse.data, sparse.indices, sparse.indptr):
        array.flags.writeable = False
    with event.install_listener("numba:compile", compilations):
        play_all()
    assert not compilations.buffer


def test_numbers_that_are_no_floats_are_refused() -> None:
    for bad in (10**400, math.inf, math.nan, np.longdouble("1e4000"), np.longdouble("1e-4000")):
        with pytest.raises(ValueError, match="size must be greater than 0"):
            check_number("size", bad, above=0.0)
    assert check_decimal("size", np.int64(2**60 + 1)) == check_decimal("size", 2**60 + 1) == 2**60 + 1


def test_diagonals_beyond_the_whole_numbers_are_refused() -> None:
    damaged = scipy.sparse.dia_array((np.ones((1, 3)), [1]), shape=(3, 3))
    damaged.offsets = np.array([2**64 - 1], dtype=np.uint64)  # as a signed number, −1
    with pytest.raises(ValueError, match="offsets must be below 2⁶³"):
        check_rows(damaged)


def test_lists_among_the_numbers_of_a_list_of_lists_are_refused() -> None:
    damaged = scipy.sparse.lil_array(np.eye(1, 3))
    damaged.data = np.empty((1, 1), dtype=object)
    damaged.data[0, 0] = [True]
    with pytest.raises(ValueError, match="data must hold numbers"):
        check_rows(damaged)
