"""Contract checks: inputs of every format and layout are accepted; invalid ones are refused without side effects."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from onebit.checks.problems import fresh, guesses_of, noisy_problem, scales_rows, snapshot
from onebit.inputs import Floats, Integers
from onebit.learners import Learner
from onebit.playing import play

SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def layouts(X: Floats) -> Iterator[tuple[str, Any]]:
    """Yield the same numbers in every accepted format; they must be multiples of 1/8."""
    yield "big-endian", X.astype(">f8")
    yield "single precision", X.astype(np.float32)
    yield "half precision, big-endian", X.astype(">f2")
    yield "in Fortran's order", np.asfortranarray(X)
    yield "every second column", np.repeat(X, 2, axis=1)[:, ::2]
    yield "backwards", X[::-1, ::-1].copy()[::-1, ::-1]
    yield "unaligned", np.frombuffer(b"\0" + X.tobytes(), dtype=X.dtype, offset=1).reshape(X.shape)
    yield "lists", X.tolist()
    yield "Python's numbers", X.astype(object)
    yield "with a mask that hides nothing", np.ma.MaskedArray(X, mask=np.zeros(X.shape, dtype=bool))
    for format in SPARSE_FORMATS:
        for kind in ("array", "matrix"):
            yield f"{format}_{kind}", getattr(scipy.sparse, f"{format}_{kind}")(X)
    for index in (np.int32, np.int64, ">i8", np.uint16):
        matrix = scipy.sparse.csr_array(X)
        matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
        yield f"csr_array with indices of type {np.dtype(index)}", matrix
    yield "csr_array with entries in halves and out of order", in_halves(X)


def in_halves(X: Floats) -> Any:
    """Return a matrix with every number in two entries, from right to left, that claims to be canonical."""
    n_rows, n_columns = X.shape
    columns = np.tile(np.repeat(np.arange(n_columns)[::-1], 2), n_rows)
    values = np.repeat(X[:, ::-1] / 2.0, 2, axis=1).ravel()
    matrix = scipy.sparse.csr_array((values, columns, 2 * n_columns * np.arange(n_rows + 1)), shape=X.shape)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


def label_layouts(y: Integers) -> Iterator[tuple[str, Any]]:
    """Yield the same labels in every accepted format."""
    for kind in (">i8", ">i2", np.int8, np.uint64, ">u4", np.float32, ">f8", object):
        yield f"of type {np.dtype(kind)}", y.astype(kind)
    yield "every second", np.repeat(y, 2)[::2]
    yield "backwards", y[::-1].copy()[::-1]
    yield "a list", y.tolist()
    yield "with a mask that hides nothing", np.ma.MaskedArray(y, mask=np.zeros(y.shape, dtype=bool))


def malformed(X: Floats) -> Iterator[tuple[str, Any]]:
    """Yield invalid versions of X."""
    n_rows, n_columns = X.shape
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[-1, 0] = True
    yield "a masked entry", np.ma.MaskedArray(X, mask=hidden)
    yield "rows with a masked entry", list(np.ma.MaskedArray(X, mask=hidden))
    yield "one number", np.float64(1.0)
    yield "one row", X[0]
    yield "three dimensions", X[None]
    yield "no rows", X[:0]
    yield "no columns", X[:, :0]
    yield "one column too few", X[:, 1:]
    yield "rows of different lengths", [row[: 1 + t % 2] for t, row in enumerate(X.tolist())]
    yield "nothing", None
    for bad in (np.nan, np.inf, -np.inf):
        yield f"{bad} at the end", np.where(hidden, bad, X)
        yield f"{bad} at the end, sparse", scipy.sparse.csr_array(np.where(hidden, bad, X))
    strange: tuple[Any, ...] = (None, "1", [1], {}, 1j, 10**400)
    for thing in strange:
        spoiled = X.astype(object)
        spoiled[-1, 0] = thing
        yield f"{thing!r:.9} among numbers", spoiled
    for kind in (complex, str, "V8", "M8[s]"):
        yield f"of type {np.dtype(kind)}", X.astype(np.int64).astype(kind)
    for wrong in (-1, n_rows + n_columns, 10**8):
        for format in ("csr", "csc", "coo", "bsr", "lil", "dok"):
            yield f"{format} with a place {wrong}", _with_place(format, X, wrong)
    for starts in ([0] * n_rows, [1] * (n_rows + 1), [0, 2, 1, *[3] * (n_rows - 2)], [0] * n_rows + [10**8]):
        matrix = scipy.sparse.csr_array(X)
        matrix.indptr = np.array(starts)
        yield f"csr with starts {starts}", matrix
    for part in ("data", "indices"):
        matrix = scipy.sparse.csc_array(X)
        setattr(matrix, part, getattr(matrix, part)[:-1])
        yield f"csc without its last {part}", matrix
    matrix = scipy.sparse.dia_array(X)
    matrix.data = matrix.data[:-1]
    yield "dia without its last diagonal", matrix


def _with_place(format: str, X: Floats, wrong: int) -> Any:
    """Return a sparse matrix whose first entry lies outside."""
    matrix = getattr(scipy.sparse, f"{format}_array")(X)
    if format == "lil":
        matrix.rows[0][0] = wrong
    elif format == "dok":
        matrix._dict = {(0, wrong): 1.0}
    elif format == "coo":
        matrix.coords = (matrix.coords[0], np.append(wrong, matrix.coords[1][1:]))
    else:
        matrix.indices = np.append(wrong, matrix.indices[1:])
    return matrix


def malformed_labels(y: Integers) -> Iterator[tuple[str, Any]]:
    """Yield invalid versions of y."""
    yield "a masked label", np.ma.MaskedArray(y, mask=np.arange(len(y)) == 1)
    yield "one too few", y[1:]
    yield "two columns", np.stack([y, y], axis=1)
    yield "one number", np.int64(1)
    yield "nothing", None
    yield "an unknown label", np.where(np.arange(len(y)) == 1, 99, y)
    yield "a negative label", np.where(np.arange(len(y)) == 1, -1, y)
    yield "a label beyond 2⁶³", np.where(np.arange(len(y)) == 1, np.uint64(2**64 - 1), y.astype(np.uint64))
    yield "a label beyond 2⁶⁴", [2**70, *y.tolist()[1:]]
    yield "labels of two kinds", ["one", *y.tolist()[1:]]
    for bad in (np.nan, np.inf, 0.5, 1e300):
        yield f"{bad}", np.where(np.arange(len(y)) == 1, bad, y)
    for kind in (complex, "V8", "M8[s]", str):
        yield f"of type {np.dtype(kind)}", y.astype(kind)
    yield "lists of two", [[label, label] for label in y.tolist()]
    nothing: tuple[Any, ...] = (None, float("nan"), {})
    for thing in nothing:
        yield f"{thing} among labels", [thing, *y.tolist()[1:]]


def _small_problem() -> tuple[Floats, Integers]:
    problem = noisy_problem(24)
    # Whole eighths are the same numbers in every precision; cutting off leaves rows within the unit ball. Adding 0
    # turns −0 into 0: a sparse matrix has no −0.
    return np.trunc(8.0 * problem.X) / 8.0 + 0.0, problem.y


def check_every_layout_is_the_same_game(learner: Learner) -> None:
    """Dense or sparse, in any type, order and format: the same numbers and labels are the same game."""
    X, y = _small_problem()
    plain = fresh(learner, classes=4)
    expected = guesses_of(plain, X, y, seed=3).tolist()
    known = snapshot(plain)
    same = {False: (expected, known), True: (expected, known)}
    if scales_rows(learner):
        sparse = fresh(learner, classes=4)
        same[True] = guesses_of(sparse, scipy.sparse.csr_array(X), y, seed=3).tolist(), snapshot(sparse)

    def plays_the_same(name: str, rows: Any, labels: Any) -> None:
        player = fresh(learner, classes=4)
        guesses = guesses_of(player, rows, labels, seed=3).tolist()
        assert guesses == same[scipy.sparse.issparse(rows)][0], f"{name}: other guesses"
        assert snapshot(player) == same[scipy.sparse.issparse(rows)][1], f"{name}: learned other things"

    for name, rows in layouts(X):
        plays_the_same(name, rows, y)
    for name, labels in label_layouts(y):
        plays_the_same(name, X, labels)
    interactive = [*layouts(X[:1]), ("a vector", scipy.sparse.coo_array(X[0]))]
    chances = {False: plain.probabilities(X[0]), True: plain.probabilities(scipy.sparse.csr_array(X[:1]))}
    for name, row in interactive:
        is_sparse = scipy.sparse.issparse(row)
        found = plain.probabilities(row if is_sparse else row[0])
        assert np.array_equal(np.ravel(found), np.ravel(chances[is_sparse])), f"{name}: other probabilities"
    assert scales_rows(learner) or np.array_equal(chances[False], np.ravel(chances[True])), (
        "sparse features: other probabilities"
    )
    assert snapshot(plain) == known


def check_a_refused_first_guess_begins_nothing(learner: Learner) -> None:
    """A first guess that is refused, for its row or for the labels allowed, leaves a learner that has not begun."""
    player = fresh(learner, classes=4)
    for features, among in (([np.nan, 1.0], None), ([1.0, np.inf], [0, 1]), ([1.0, 1.0], ["no label"]), (1.0, None)):
        try:
            player.guess(features, among)
        except ValueError:
            assert not hasattr(player, "n_features_in_"), f"guess({features}, {among}) was refused, and began a run"
        else:
            raise AssertionError(f"guess({features}, {among}) was accepted")
    assert player.guess([0.25, 0.5, 0.125]).round == 0


def check_malformed_inputs_change_nothing(learner: Learner) -> None:
    """Invalid streams, damaged sparse matrices and masked entries are refused without side effects."""
    X, y = _small_problem()
    player = fresh(learner, classes=4)
    play(player, X, y, seed=3)
    known = snapshot(player)

    def refuses(name: str, action: Any, *arguments: Any, **named: Any) -> None:
        try:
            action(*arguments, **named)
        except (ValueError, TypeError) as error:
            assert str(error), f"{name}: the error says nothing"
        else:
            raise AssertionError(f"{name}: {action.__name__} accepted it")
        assert snapshot(player) == known, f"{name}: {action.__name__} refused it, and changed the learner"

    for name, rows in malformed(X):
        refuses(name, play, player, rows, y, fresh=False)
        refuses(name, play, player, rows, y, fresh=False, engine="rounds")
        refuses(name, player.decision_function, rows)
    for name, row in malformed(X[:1]):
        if scipy.sparse.issparse(row):
            refuses(name, player.guess, row)
            refuses(name, player.probabilities, row)
    for name, labels in malformed_labels(y):
        refuses(name, play, player, X, labels, fresh=False)
        refuses(name, play, player, X, labels, fresh=False, engine="rounds")
    for points in ([0], [-1], [25], [10**8], [2**70], [2.5], ["1"], [True], [None], 3, [[3]]):
        refuses(f"checkpoints={points}", play, player, X, y, fresh=False, checkpoints=points)
    for seed in (-1, 2**63, 2**64, 1.0, True, "1"):
        refuses(f"seed={seed}", play, player, X, y, seed=seed)
