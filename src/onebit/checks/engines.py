"""Contract checks: every engine, scale, format and layout plays the same game; invalid input has no side effects."""

from collections.abc import Iterator
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from onebit.checks.problems import (
    fresh,
    guesses_of,
    noisy_problem,
    raises_value_error,
    scales_rows,
    snapshot,
    twins,
)
from onebit.inputs import Floats, Integers
from onebit.learners import Learner
from onebit.playing import play
from onebit.streams import paper_weak

SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
# About 1e-300, 1e-170, 1e160 and 1e300. Multiplying by a power of two rounds nothing.
_EXTREME_POWERS = (-996, -565, 532, 996)


def _same_game(learner: Learner, X: Any, y: Integers, *, rows: Any = None) -> None:
    whole, by_round = twins(learner, classes=None)
    first = guesses_of(whole, X if rows is None else rows, y, seed=8)
    second = guesses_of(by_round, X, y, seed=8, engine="rounds")
    if not np.array_equal(first, second):
        at = int(np.argmax(first != second))
        raise AssertionError(f"the engines part in round {at}: {first[at]} and {second[at]}")
    assert snapshot(whole) == snapshot(by_round), "the engines learned different things"


def check_engines_agree_on_noisy_data(learner: Learner) -> None:
    """Round for round the same guesses and the same state, over several blocks."""
    problem = noisy_problem(900)  # blocks have 256 rows: several of them, the last one short
    _same_game(learner, problem.X, problem.y)


def check_engines_agree_in_few_dimensions(learner: Learner) -> None:
    """The same where a polynomial may approximate a support set."""
    _same_game(learner, *paper_weak(rounds=2500, seed=3))  # three features: the rational kernel has a screen here


def check_engines_agree_on_ties(learner: Learner) -> None:
    """The same on a handful of repeated points, where scores cancel and tie exactly."""
    generator = np.random.default_rng(0)
    points = generator.integers(-1, 2, size=(7, 3)) / 2.0  # sums of halves are exact: ties stay ties
    picks = generator.integers(7, size=600)
    _same_game(learner, points[picks], generator.integers(3, size=600))


def check_engines_agree_on_many_features(learner: Learner) -> None:
    """The same where a block is scored by a matrix product."""
    problem = noisy_problem(700, n_classes=5, n_features=60)
    _same_game(learner, problem.X, problem.y)


def check_sparse_rows_are_the_same_game(learner: Learner) -> None:
    """Sparse and dense rows of the same numbers give the same game, unless they are scaled, each in its own way."""
    problem = noisy_problem(300, n_features=12)
    X = np.where(np.abs(problem.X) > 0.1, problem.X, 0.0)  # some entries missing, no row empty
    rows = scipy.sparse.csr_array(X)
    others: Any = rows if scales_rows(learner) else X
    _same_game(learner, others, problem.y, rows=rows)
    one, two = twins(learner, classes=None)
    trace = play(one, rows, problem.y, seed=8, engine="rounds")
    assert trace.mistakes == play(two, others, problem.y, seed=8).mistakes


def check_playing_in_pieces_is_the_same_game(learner: Learner) -> None:
    """Several calls with ``fresh=False`` equal one call."""
    problem = noisy_problem(400)
    whole, pieces = twins(learner)
    play(whole, problem.X, problem.y, seed=9)
    play(pieces, problem.X[:150], problem.y[:150], seed=9)
    play(pieces, problem.X[150:160], problem.y[150:160], fresh=False, engine="rounds")
    pieces.partial_fit(problem.X[160:], problem.y[160:])
    assert snapshot(whole) == snapshot(pieces)


def check_engines_agree_at_extreme_scale(learner: Learner) -> None:
    """The same where squares of features overflow or vanish: the same game, or the same kind of error."""
    problem = noisy_problem(300)
    for power in _EXTREME_POWERS:
        X = np.ldexp(problem.X, power)
        whole, by_round = (_outcome(learner, X, problem.y, engine) for engine in ("stream", "rounds"))
        assert whole == by_round, f"the engines part on features times 2**{power}: {whole[0]} and {by_round[0]}"


def _outcome(learner: Learner, X: Floats, y: Integers, engine: str) -> tuple[Any, ...]:
    """Return the guesses and what was learned, or that the features were refused."""
    player = fresh(learner)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # a user's kernel may compute with such values
            guesses = guesses_of(player, X, y, seed=8, engine=engine)
    except ValueError as error:
        has_kernel = "kernel" in learner.get_params(deep=False)
        assert has_kernel or "kernel" not in str(error), f"it has no kernel to speak of: {error}"
        return ("refused", bool(str(error)))
    return guesses.tolist(), snapshot(player)


def check_scale_does_not_matter(learner: Learner) -> None:
    """Features times a power of two give the same guesses to learners that are blind to scale, however large or small.

    These are learners with a kernel that divides rows by their length, and without a kernel: rules only compare.
    """
    settings = learner.get_params(deep=False)
    kernel = settings.get("kernel")
    is_blind = kernel is None or scales_rows(learner) or getattr(kernel, "normalize", False)
    if "kernel" not in settings or not is_blind:
        raise SkipTest("scale may matter to it")
    problem = noisy_problem(300)
    expected = guesses_of(fresh(learner), problem.X, problem.y, seed=8)
    for power in _EXTREME_POWERS:
        with np.errstate(over="ignore", invalid="ignore"):  # without compilation NumPy warns
            guesses = guesses_of(fresh(learner), np.ldexp(problem.X, power), problem.y, seed=8)
        assert np.array_equal(guesses, expected), (
            f"features times 2**{power} gave other guesses: without a kernel a rule may only compare scores, with each "
            "other and with 0 (see `onebit.spaces.Rule`); one that uses their size is a `State` of its own"
        )


def _layouts(X: Floats) -> Iterator[tuple[str, Any]]:
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
    # Every number in two entries, from right to left, in a matrix that claims to be canonical.
    n_rows, n_columns = X.shape
    columns = np.tile(np.repeat(np.arange(n_columns)[::-1], 2), n_rows)
    values = np.repeat(X[:, ::-1] / 2.0, 2, axis=1).ravel()
    matrix = scipy.sparse.csr_array((values, columns, 2 * n_columns * np.arange(n_rows + 1)), shape=X.shape)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    yield "csr_array with entries in halves and out of order", matrix


def _label_layouts(y: Integers) -> Iterator[tuple[str, Any]]:
    """Yield the same labels in every accepted format."""
    for kind in (">i8", ">i2", np.int8, np.uint64, ">u4", np.float32, ">f8", object):
        yield f"of type {np.dtype(kind)}", y.astype(kind)
    yield "every second", np.repeat(y, 2)[::2]
    yield "backwards", y[::-1].copy()[::-1]
    yield "a list", y.tolist()
    yield "with a mask that hides nothing", np.ma.MaskedArray(y, mask=np.zeros(y.shape, dtype=bool))


def _small_problem() -> tuple[Floats, Integers]:
    problem = noisy_problem(24)
    # Whole eighths are the same numbers in every precision; cutting off leaves rows within the unit ball. Adding 0
    # turns −0 into 0: a sparse matrix has no −0.
    return np.trunc(8.0 * problem.X) / 8.0 + 0.0, problem.y


def check_every_layout_is_the_same_game(learner: Learner) -> None:
    """Dense or sparse, in any type, order and format: the same numbers and labels are the same game."""
    X, y = _small_problem()

    def outcome(rows: Any, labels: Any) -> tuple[Learner, Any]:
        player = fresh(learner, classes=4)
        guesses = guesses_of(player, rows, labels, seed=3).tolist()
        return player, (guesses, snapshot(player))

    plain, expected = outcome(X, y)
    same = {False: expected, True: outcome(scipy.sparse.csr_array(X), y)[1] if scales_rows(learner) else expected}
    cases = [(name, rows, y) for name, rows in _layouts(X)] + [(name, X, labels) for name, labels in _label_layouts(y)]
    for name, rows, labels in cases:
        (guesses, learned), known = outcome(rows, labels)[1], same[scipy.sparse.issparse(rows)]
        assert guesses == known[0], f"{name}: other guesses"
        assert learned == known[1], f"{name}: learned other things"
    chances = {False: plain.probabilities(X[0]), True: plain.probabilities(scipy.sparse.csr_array(X[:1]))}
    for name, row in (*_layouts(X[:1]), ("a vector", scipy.sparse.coo_array(X[0]))):
        is_sparse = scipy.sparse.issparse(row)
        found = plain.probabilities(row if is_sparse else row[0])
        assert np.array_equal(np.ravel(found), np.ravel(chances[is_sparse])), f"{name}: other probabilities"
    agree = np.array_equal(chances[False], np.ravel(chances[True]))
    assert scales_rows(learner) or agree, "sparse features: other probabilities"
    assert snapshot(plain) == expected[1]


def _malformed(X: Floats) -> Iterator[tuple[str, Any]]:
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


def _malformed_labels(y: Integers) -> Iterator[tuple[str, Any]]:
    """Yield invalid versions of y."""
    is_second = np.arange(len(y)) == 1
    yield "a masked label", np.ma.MaskedArray(y, mask=is_second)
    yield "one too few", y[1:]
    yield "two columns", np.stack([y, y], axis=1)
    yield "one number", np.int64(1)
    yield "nothing", None
    yield "a label beyond 2⁶³", np.where(is_second, np.uint64(2**64 - 1), y.astype(np.uint64))
    yield "lists of two", [[label, label] for label in y.tolist()]
    for bad in (99, -1, np.nan, np.inf, 0.5, 1e300):
        yield f"the label {bad}", np.where(is_second, bad, y)
    for kind in (complex, "V8", "M8[s]", str):
        yield f"of type {np.dtype(kind)}", y.astype(kind)
    for thing in [2**70, "one", None, float("nan"), {}]:
        yield f"{thing} among labels", [thing, *y.tolist()[1:]]


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
            assert str(error), f"{name}: the error has no message"
        else:
            raise AssertionError(f"{name}: {action.__name__} accepted it")
        assert snapshot(player) == known, f"{name}: {action.__name__} refused it, and changed the learner"

    for name, rows in _malformed(X):
        refuses(name, player.decision_function, rows)
    streams = [(name, rows, y) for name, rows in _malformed(X)]
    for name, rows, labels in (*streams, *((name, X, labels) for name, labels in _malformed_labels(y))):
        for engine in ("stream", "rounds"):
            refuses(name, play, player, rows, labels, fresh=False, engine=engine)
    for name, row in _malformed(X[:1]):
        if scipy.sparse.issparse(row):
            refuses(name, player.guess, row)
            refuses(name, player.probabilities, row)
    for points in ([0], [-1], [25], [10**8], [2**70], [2.5], ["1"], [True], [None], 3, [[3]]):
        refuses(f"checkpoints={points}", play, player, X, y, fresh=False, checkpoints=points)
    for seed in (-1, 2**63, 2**64, 1.0, True, "1"):
        refuses(f"seed={seed}", play, player, X, y, seed=seed)


def check_a_refused_first_guess_begins_nothing(learner: Learner) -> None:
    """A first guess that is refused, for its row or for the labels allowed, leaves a learner that has not begun."""
    player = fresh(learner, classes=4)
    for features, among in (([np.nan, 1.0], None), ([1.0, np.inf], [0, 1]), ([1.0, 1.0], ["no label"]), (1.0, None)):
        assert raises_value_error(player.guess, features, among), f"guess({features}, {among}) was accepted"
        assert not hasattr(player, "n_features_in_"), f"guess({features}, {among}) was refused, and began a run"
    assert player.guess([0.25, 0.5, 0.125]).round == 0
