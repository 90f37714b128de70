import datetime
import gc
import math
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numba.core import event

import onebit
from onebit import BanditPerceptron, BanditSVM, Learner, NearestNeighbor, play, streams
from onebit.bounds import _check_decimal
from onebit.checks.problems import snapshot
from onebit.inputs import (
    SparseRows,
    check_choice,
    check_integer,
    check_number,
    check_rows,
    check_sparse,
    take,
    unlocked,
)
from onebit.inputs import dense as as_dense
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
        (scipy.sparse.csr_array(([1.0], [10**8], [0, 1]), shape=(1, 4)), ["columns", "between 0 and 3", "100000000"]),
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


def test_rows_of_nothing_but_nan_are_named_at_once() -> None:
    X = np.full((500, 500), np.nan)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"X\[0, 0\] is nan"):
        check_rows(X)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < X.nbytes, "a list of all of them would take twice as much"


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
        assert np.array_equal(as_dense(rows), dense)
        assert np.array_equal(as_dense(take(rows, 1, 3)), dense[1:])


def test_duplicate_entries_are_added_up_without_touching_the_caller() -> None:
    matrix = scipy.sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    rows = check_rows(matrix)
    assert isinstance(rows, SparseRows)
    assert np.array_equal(as_dense(rows), [[0.0, 3.0, 0.0]])
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
        assert np.array_equal(as_dense(rows), given.toarray())


def test_a_matrix_that_changes_later_is_not_what_was_checked() -> None:
    matrix = scipy.sparse.csr_array(np.eye(3))
    rows, y = check_rows(matrix), np.array([0, 1, 2])
    codes = encode_labels(y, np.arange(3))
    matrix.indices[:], matrix.indptr[:], y[:] = 10**8, 10**8, 10**8
    assert isinstance(rows, SparseRows)
    assert np.array_equal(as_dense(rows), np.eye(3))
    assert codes.tolist() == [0, 1, 2]


def test_rows_of_ones_own_making_are_checked_too() -> None:
    with pytest.raises(ValueError, match="columns must lie between 0 and 3; got 7"):
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
    assert _check_decimal("size", np.int64(2**60 + 1)) == _check_decimal("size", 2**60 + 1) == 2**60 + 1


COLUMNS = {"age": [1, 2, 3], "paid": [True, False, True], "size": [0.5, 0.25, 1.0]}


VALUES = np.array([[1.0, 1.0, 0.5], [2.0, 0.0, 0.25], [3.0, 1.0, 1.0]])


WORDS = ["a", "b", "a"]


BOTH = pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def frames() -> dict[str, Any]:
    plain = pd.DataFrame(COLUMNS)
    return {
        "pandas": plain,
        "nullable": plain.astype({"age": "Int64", "paid": "boolean", "size": "Float32"}),
        "objects": plain.astype(object),
        "one column of objects": plain.assign(size=[Decimal("0.5"), 0.25, 1]),
        "without names": plain.set_axis([2, 1, 0], axis=1),
        "other index": plain.set_axis(["x", "y", "z"], axis=0),
        "polars": pl.DataFrame(COLUMNS),
        "small numbers": pl.DataFrame(COLUMNS, schema_overrides={"age": pl.UInt8, "size": pl.Float32}),
        "polars decimals": pl.DataFrame(COLUMNS).with_columns(pl.col("size").cast(pl.Decimal(10, 2))),
    }


@pytest.mark.parametrize("kind", frames())
def test_a_frame_is_its_numbers(kind: str) -> None:
    frame = frames()[kind]
    rows = check_rows(frame)
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == np.float64
    assert np.array_equal(rows, VALUES)
    learner, plain = onebit.BanditPerceptron(classes=["a", "b"]), onebit.BanditPerceptron(classes=["a", "b"])
    assert snapshot(learner.fit(frame, pd.Series(WORDS))) == snapshot(plain.fit(VALUES, WORDS))
    assert learner.predict(frame).tolist() == plain.predict(VALUES).tolist()
    assert hasattr(learner, "feature_names_in_") == (kind != "without names")


@BOTH
def test_one_row_for_guess_however_it_comes(make: Any) -> None:
    frame = make(COLUMNS)
    learner, plain = onebit.BanditPerceptron(classes=["a", "b"]), onebit.BanditPerceptron(classes=["a", "b"])
    for t in range(3):
        ways = [frame[t : t + 1], VALUES[t : t + 1], VALUES[t : t + 1].tolist(), VALUES[t]]
        for row in [*ways, *([frame.iloc[t]] if make is pd.DataFrame else [])]:
            assert np.array_equal(np.ravel(learner.probabilities(row)), plain.probabilities(VALUES[t]))
            guess, other = learner.guess(row), plain.guess(VALUES[t])
            assert guess.label == other.label
            learner.tell(guess, guess.label == WORDS[t])
            plain.tell(other, guess.label == WORDS[t])
    assert snapshot(learner) == snapshot(plain)
    assert learner.feature_names_in_.tolist() == list(COLUMNS)
    for two in (frame[:2], VALUES[:2], VALUES[:, :1]):
        with pytest.raises(ValueError, match="one round's"):
            learner.guess(two)


@BOTH
def test_the_order_of_columns_is_checked_everywhere(make: Any) -> None:
    frame = make(COLUMNS)
    learner = onebit.BanditPerceptron(classes=["a", "b"]).fit(frame, WORDS)
    known = snapshot(learner)
    shuffled, other = frame[["size", "paid", "age"]], make({**COLUMNS, "new": [1, 2, 3]})[["age", "paid", "new"]]
    for wrong in (shuffled, other):
        actions: list[Callable[[Any], Any]] = [
            learner.predict,
            learner.decision_function,
            lambda X: learner.partial_fit(X, WORDS),
            lambda X: learner.partial_fit(X[:1], WORDS[:1]),
            lambda X: onebit.play(learner, X, WORDS, fresh=False),
            lambda X: onebit.play(learner, X, WORDS, fresh=False, engine="rounds"),
            lambda X: learner.guess(X[:1]),
            lambda X: learner.probabilities(X[:1]),
            learner.probabilities,
            learner.guess_many,
            lambda X: learner.learn_labels(X, WORDS),
            lambda X: learner.learn_from(X, WORDS, True),
            *([lambda X: learner.guess(X.iloc[0])] if make is pd.DataFrame else []),
        ]
        for action in actions:
            with pytest.raises(ValueError, match=r"(?s)X has other columns.*X\[\['age', 'paid', 'size'\]\]"):
                action(wrong)
        assert snapshot(learner) == known
    learner.fit(shuffled, WORDS)
    assert learner.feature_names_in_.tolist() == ["size", "paid", "age"]
    learner.fit(VALUES, WORDS)
    assert not hasattr(learner, "feature_names_in_")
    with pytest.warns(UserWarning, match="fitted without feature names"):
        learner.predict(frame)


@BOTH
def test_whatever_comes_first_brings_the_names(make: Any) -> None:
    frame = make(COLUMNS)
    for begin in (
        lambda learner: learner.guess(frame[:1], among=["a"]),
        lambda learner: learner.guess_many(frame),
        lambda learner: learner.learn_labels(frame, WORDS),
        lambda learner: learner.learn_from(frame, WORDS, True),
        lambda learner: onebit.play(learner, frame, WORDS, engine="rounds"),
        lambda learner: learner.partial_fit(frame, WORDS),
    ):
        learner = onebit.BanditPerceptron(classes=["a", "b"])
        begin(learner)
        assert learner.feature_names_in_.tolist() == list(COLUMNS)
    grown = onebit.BanditPerceptron(classes="grow")
    grown.guess(frame[:1], among=["a", 1])
    assert grown.feature_names_in_.tolist() == list(COLUMNS)
    assert grown.classes_.tolist() == ["a", 1]


@BOTH
def test_a_bad_setting_leaves_the_names_as_they_were(make: Any) -> None:
    frame = make(COLUMNS)
    learner = onebit.Banditron(classes=["a", "b"]).fit(frame, WORDS)
    learner.exploration = 7.0
    with pytest.raises(ValueError, match="exploration"):
        learner.fit(frame[["size", "paid", "age"]], WORDS)
    assert learner.feature_names_in_.tolist() == list(COLUMNS)


@BOTH
def test_what_is_no_number_is_named_by_its_column(make: Any) -> None:
    for bad, words in (
        ({**COLUMNS, "age": [1, None, 3]}, "column 'age' has no number in row 1"),
        ({**COLUMNS, "size": [0.5, 1.0, float("nan")]}, "column 'size' has no number in row 2"),
        ({**COLUMNS, "city": ["Rome", "Oslo", "Bonn"]}, "column 'city' holds String.*OneHotEncoder"),
    ):
        with pytest.raises(ValueError, match=words):
            check_rows(make(bad))
    days = make({"day": [datetime.datetime(2024, 1, day) for day in (1, 2, 3)]})
    with pytest.raises(ValueError, match=r"column 'day' holds Datetime.*for example as days"):
        check_rows(days)


def test_a_dictionary_is_not_a_row() -> None:
    learner = onebit.BanditPerceptron(classes=WORDS[:2])
    with pytest.raises(ValueError, match=r"features must be numbers in order; got a dictionary.*DataFrame"):
        learner.guess({"age": 1.0})  # type: ignore[arg-type]


def test_other_frames_that_cannot_be_read() -> None:
    frame = pd.DataFrame(COLUMNS)
    with pytest.raises(ValueError, match="column 'age' has no number in row 1"):
        check_rows(frame.assign(age=pd.array([1, None, 3], dtype="Int64")))
    with pytest.raises(ValueError, match=r"X\['age'\]\[1\] is None"):
        check_rows(frame.assign(age=np.array([1, None, 3], dtype=object)))
    with pytest.raises(TypeError, match=r"X\['age'\]\[1\] is 'two'"):
        check_rows(frame.assign(age=np.array([1, "two", 3], dtype=object)))
    with pytest.raises(ValueError, match="Categorical"):
        check_rows(frame.assign(age=pd.Categorical([1, 2, 1])))
    with pytest.raises(ValueError, match="no frame that can be read"):
        check_rows(frame.set_axis(["a", "a", "b"], axis=1))
    with pytest.raises(ValueError, match=r"X is lazy and not read yet; give X.collect\(\)"):
        check_rows(pl.DataFrame(COLUMNS).lazy())
    with pytest.raises(ValueError, match="X is empty"):
        check_rows(frame[:0])


def test_more_rows_than_fit_in_memory_are_refused() -> None:
    with pytest.raises(ValueError, match="Unable to allocate"):
        check_rows(scipy.sparse.coo_array(([1.0], ([0], [0])), shape=(10**14, 3)))


def test_diagonals_beyond_the_whole_numbers_are_refused() -> None:
    damaged = scipy.sparse.dia_array((np.ones((1, 3)), [1]), shape=(3, 3))
    damaged.offsets = np.array([2**64 - 1], dtype=np.uint64)  # as a signed number, −1
    with pytest.raises(ValueError, match="offsets must be below 2⁶³"):
        check_rows(damaged)


@pytest.mark.parametrize(
    ("part", "lists"),
    [("data", [[1.0] * 10**6, [1.0]]), ("rows", [[0] * 10**6, [1]]), ("rows", [[0], [1], [2]]), ("rows", [[0, 1], []])],
)
def test_damaged_lists_of_lists_are_refused(part: str, lists: Any) -> None:
    """Scipy's compiled code would read or write beyond its arrays."""
    damaged = scipy.sparse.lil_array(np.eye(2))
    setattr(damaged, part, np.array([*lists, None], dtype=object)[:-1])
    with pytest.raises(ValueError, match="a list for each row"):
        check_rows(damaged)


def test_lists_among_the_numbers_of_a_list_of_lists_are_refused() -> None:
    damaged = scipy.sparse.lil_array(np.eye(1, 3))
    damaged.data = np.empty((1, 1), dtype=object)
    damaged.data[0, 0] = [True]
    with pytest.raises(ValueError, match="numbers"):
        check_rows(damaged)


def test_one_sparse_row_is_a_copy() -> None:
    matrix = scipy.sparse.csr_array(np.array([[0.0, 2.0]]))
    row = check_sparse(matrix, "features", one_round=True)
    matrix.data[:] = 7.0
    assert row.values.tolist() == [2.0]


def test_differences_of_starts_do_not_overflow() -> None:
    matrix = scipy.sparse.csr_array(np.eye(3))
    matrix.indptr = np.array([0, 1, 2, -(2**63)])
    with pytest.raises(ValueError, match="indptr must rise from 0 to at most 3"):
        check_rows(matrix)
