"""What the classes beneath every learner promise: rows and labels in any format, refused input, tickets that hold.

These checks have the form of `onebit.checks`, and every learner of ours is held to them. They are no part of the public
contract: a learner of a user's own inherits what they are about.
"""

import copy
import math
import pickle
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse

from onebit.bounds import at_most
from onebit.checks.problems import (
    fresh,
    guesses_of,
    noisy_problem,
    play_by_hand,
    raises_value_error,
    scales_rows,
    separable_problem,
    snapshot,
    tell,
    twins,
)
from onebit.checks.protocol import _joined
from onebit.game import Guess
from onebit.inputs import Floats, Integers, SparseRows, dense
from onebit.learners import Learner
from onebit.learners.base import in_linear_space
from onebit.playing import play

SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


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
            message = str(error)
        else:
            raise AssertionError(f"{name}: {action.__name__} accepted it")
        assert message, f"{name}: the error has no message"
        assert snapshot(player) == known, f"{name}: {action.__name__} refused it, and changed the learner"

    for name, rows in _malformed(X):
        refuses(name, player.decision_function, rows)
    streams = [(name, rows, y) for name, rows in _malformed(X)]
    for name, rows, labels in (*streams, *((name, X, labels) for name, labels in _malformed_labels(y))):
        for engine in ("stream", "rounds"):
            refuses(name, play, player, rows, labels, fresh=False, engine=engine)
    bad_rows = [np.where(np.arange(len(X[0])) == 2, bad, X[0]) for bad in (np.nan, np.inf, -np.inf)]
    for row in (*bad_rows, X[0, :-1], X[0].astype(complex), np.array(["a"] * len(X[0])), []):
        refuses(repr(row), player.guess, row)
        refuses(repr(row), player.probabilities, row)
    refuses("two rows", player.guess, X[:2])
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


def _begun(learner: Learner, rounds: int = 60) -> Learner:
    problem = noisy_problem(rounds)
    return play_by_hand(fresh(learner, classes=problem.n_classes), problem.X, problem.y)


def check_labels_may_be_anything(learner: Learner) -> None:
    """Labels may be strings; without classes interactive use is an error with a clear message."""
    problem = noisy_problem(120)
    names = np.array(["delta", "alpha", "gamma", "beta"])[problem.y]
    player = fresh(learner)
    guesses = guesses_of(player, problem.X, names, seed=6)
    assert set(guesses.tolist()) <= set(names.tolist())
    assert player.n_mistakes_ == int(np.sum(guesses != names))
    assert player.guess(problem.X[0]).label in names.tolist()
    assert set(player.predict(problem.X).tolist()) <= set(names.tolist())
    for bad in (None, 0, -3, [], ["a", "a"], "abc"):
        assert raises_value_error(fresh(learner, classes=bad).guess, problem.X[0]), f"accepted classes={bad!r}"
    assert fresh(learner, classes=["just one"]).guess(problem.X[0]).label == "just one"


def check_many_rows_are_as_many_guesses(learner: Learner) -> None:
    """`guess_many` and `probabilities` of many rows equal one call for each row."""
    rows = noisy_problem(70).X[60:]
    one_by_one, at_once = _begun(learner), _begun(learner)
    chances = np.stack([one_by_one.probabilities(x) for x in rows])
    assert np.array_equal(at_once.probabilities(rows), chances)
    assert np.array_equal(at_once.probabilities(rows[:1]), chances[:1])
    singly = [one_by_one.guess(x) for x in rows]
    together = at_once.guess_many(rows)
    assert [guess[:5] for guess in together] == [guess[:5] for guess in singly]
    known = snapshot(at_once)
    assert raises_value_error(at_once.guess_many, np.vstack([rows, rows[:1] * np.nan]))
    assert snapshot(at_once) == known, "a refused batch changed the learner"
    for player, tickets in ((one_by_one, singly), (at_once, together)):
        for guess in reversed(tickets):
            tell(player, guess, 0)
    assert snapshot(at_once) == snapshot(one_by_one)


def check_estimator_face(learner: Learner) -> None:
    """`fit`, `predict`, `decision_function` and `score` are consistent, and `fit` resets the learner."""
    problem = noisy_problem(200)
    player = fresh(learner).fit(problem.X, problem.y)
    known = snapshot(player)
    scores = player.decision_function(problem.X)
    assert scores.shape == (200, problem.n_classes)
    assert np.array_equal(player.predict(problem.X), player.classes_[np.argmax(scores, axis=1)])
    assert 0.0 <= player.score(problem.X, problem.y) <= 1.0
    assert snapshot(player) == known, "predicting changed the learner"
    assert snapshot(player.fit(problem.X, problem.y)) == known, "fit did not start afresh"
    assert player.n_features_in_ == problem.X.shape[1]


def check_classes_may_grow(learner: Learner) -> None:
    """With classes="grow" labels are added when the application proposes them or gives them as feedback."""
    problem = noisy_problem(30)
    player = fresh(learner, classes="grow")
    assert raises_value_error(player.guess, problem.X[0]), "guessed without knowing any label"
    guess = player.guess(problem.X[0], among=["a"])
    assert (guess.label, player.classes_.tolist()) == ("a", ["a"])
    tell(player, guess, "a")
    _joined(player, "b")
    assert player.guess(problem.X[1], among=iter(["c", "b"])).label in ("b", "c")
    assert player.classes_.tolist() == ["a", "b", "c"]
    known = snapshot(player)
    assert raises_value_error(player.guess, problem.X[1] * np.nan, among=["d"])
    assert player.classes_.tolist() == ["a", "b", "c"], "a refused round brought a label"
    assert snapshot(player) == known
    play(player, problem.X, np.array(list("abcde"))[np.arange(30) % 5], fresh=False)
    assert player.classes_.tolist() == list("abcde")


def check_a_guess_is_told_once(learner: Learner) -> None:
    """`tell` raises, and changes nothing, for a closed ticket, another learner's ticket, or anything else."""
    problem = noisy_problem(30)
    player, other = twins(learner)
    play_by_hand(player, problem.X[:-1], problem.y[:-1])
    guess = player.guess(problem.X[-1])
    tell(player, guess, problem.y[-1])
    known = snapshot(player)
    assert raises_value_error(tell, player, guess, problem.y[-1]), "a guess was told twice"
    assert raises_value_error(tell, player, other.guess(problem.X[0]), 0), "a foreign guess was accepted"
    assert raises_value_error(player.tell, "refund", True), "something that is no guess was accepted"
    open_guess = player.guess(problem.X[0])
    assert raises_value_error(player.tell, open_guess, "yes"), "correct='yes' was accepted"
    # The open guess counts as a round, and perhaps as a uniform guess.
    counts = (player.n_rounds_, *known["counts"][1:3], player.n_uniform_guesses_)
    assert snapshot(player) == {**known, "counts": counts}, "a refused tell changed the learner"
    tell(player, open_guess, 0)


def check_an_equal_ticket_is_as_good(learner: Learner) -> None:
    """A ticket that was saved and loaded, or was JSON, is accepted once, at once or late, for dense and sparse rows."""
    problem = noisy_problem(40)
    player, twin = twins(learner)
    for start, rows in ((0, problem.X[:20]), (20, [scipy.sparse.csr_array(x[None]) for x in problem.X[20:]])):
        pairs = [(player.guess(x), twin.guess(x)) for x in rows]
        for t in reversed(range(len(pairs))):  # the latest first
            (ticket, same), label = pairs[t], problem.y[start + t]
            copies = copy.deepcopy(ticket), pickle.loads(pickle.dumps(ticket)), Guess.from_json(ticket.to_json())
            tell(player, copies[t % 3], label)
            tell(twin, same, label)
            assert raises_value_error(tell, player, ticket, label), "a ticket and its copy were both honoured"
    assert snapshot(player) == snapshot(twin), "a copied ticket taught something else"


def check_an_edited_ticket_is_refused(learner: Learner) -> None:
    """`tell` refuses a ticket with any field edited, learns nothing, and leaves the ticket open."""
    problem = noisy_problem(30)
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:20], problem.y[:20], seed=1)
    for is_late in (False, True):
        for features in (problem.X[20], scipy.sparse.csr_array(problem.X[20:21])):
            closed, guess = player.guess(features), player.guess(features)
            tell(player, closed, 0)
            if is_late:
                player.guess(problem.X[21])
            known = snapshot(player)
            for field, value in _edits(guess, closed):
                edited = guess._replace(**{field: value})
                assert raises_value_error(player.tell, edited, True), f"accepted a ticket with {field}={value!r}"
            assert snapshot(player) == known, "a refused ticket changed the learner"
            tell(player, guess, 0)


def _edits(guess: Guess, closed: Guess) -> Iterator[tuple[str, Any]]:
    """Yield fields and what to write into them: garbage, the nearly right, and what belongs to another ticket."""
    scores, label = guess.scores, (guess.index + 1) % 4
    edits: dict[str, tuple[Any, ...]] = {
        "round": (closed.round, guess.round + 50, -1 - guess.round, 10**12),
        "label": (label, "no label", None, [guess.label], 10**8),
        "propensity": (guess.propensity / 2 + 0.01, -1.0, math.inf),
        "explored": (not guess.explored, int(guess.explored)),
        "index": (label, 10**8, -(10**8), guess.index - 4, 0.5),
        "version": (guess.version + 1, -1),
        "confidence": (0.5, -1.0, math.inf, "no number"),
        "evidence": (np.append(guess.evidence, 0.0), guess.evidence[None], guess.evidence.astype(np.float32)),
        "id": (closed.id, guess.id[:-1], guess.id + "0", f"{guess.round}-{bytes(8).hex()}"),
        "scores": (np.append(scores, 0.0), scores[None], scores.astype(np.float32)),
        "row": (*_edited_rows(guess),),
    }
    if len(scores):
        edits["scores"] += (scores + 1.0, scores[:-1], scores * np.nan)
    for field in Guess._fields:
        garbage: tuple[Any, ...] = (None, "0", [], 10**30, math.nan) if field != "label" else ()
        for value in (*garbage, *edits.get(field, ())):
            is_the_same = field == "confidence" and value is guess.confidence
            if field != "labels" and not is_the_same:  # `tell` makes no use of the labels
                yield field, value


def _edited_rows(guess: Guess) -> Iterator[Any]:
    if not isinstance(guess.row, SparseRows):
        row = guess.row
        wide, tall = np.append(row, row, axis=1), np.append(row, row, axis=0)
        yield from (row + 1.0, row * np.nan, wide, tall, row[:, :-1], row[0], row.astype(int))
        yield from (row.T, row.view(int))  # these have the same bytes
        return
    values, columns, starts, n_columns = guess.row
    changes: tuple[dict[str, Any], ...] = (
        {"columns": columns + 10**8},
        {"columns": columns[::-1]},
        {"columns": columns.astype(np.int32)},
        {"values": values * 2.0},
        {"values": values * np.nan},
        {"starts": starts * 1000},
        {"n_columns": n_columns + 1},
        {"values": None},
        {"columns": columns[:, None]},
        {"starts": starts[None]},
        {"columns": np.append(columns, starts[0]), "starts": starts[1:]},  # the same bytes, read beyond their end
    )
    yield from (SparseRows(**{**guess.row._asdict(), **change}) for change in changes)
    yield from (np.ones((1, n_columns)), tuple(guess.row), list(guess.row))


def check_the_arrays_of_a_ticket_are_its_holders(learner: Learner) -> None:
    """Writing into a ticket's arrays never reaches the learner: at once it has no effect, late it is refused."""
    problem = noisy_problem(20)
    player, twin = twins(learner)
    for x, label in zip(problem.X, problem.y, strict=True):
        guess, same = player.guess(x), twin.guess(x)
        dense(guess.row)[:], guess.scores[:] = np.nan, np.nan
        tell(player, guess, label)
        tell(twin, same, label)
    assert snapshot(player) == snapshot(twin), "writing into a ticket changed what was learned from it"
    late = player.guess(problem.X[0])
    player.guess(problem.X[1])
    dense(late.row)[:] = 1.0
    assert raises_value_error(tell, player, late, 0), "accepted a ticket whose features were overwritten"


def check_tickets_belong_to_one_learner(learner: Learner) -> None:
    """A restored learner accepts tickets that were open when it was saved; none accepts another learner's."""
    problem = noisy_problem(40)
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:30], problem.y[:30], seed=1)
    closed, opened, at_hand = (player.guess(x) for x in problem.X[30:33])
    tell(player, closed, 0)
    saved = pickle.dumps(player)
    restored = [pickle.loads(saved), pickle.loads(pickle.dumps(pickle.loads(saved)))]
    copies = [copy.deepcopy(player), copy.copy(player)]
    everyone = [player, *restored, *copies]
    issued = [each.guess(problem.X[33]) for each in everyone]
    for i, each in enumerate(everyone):
        for j, ticket in enumerate(issued):
            assert i == j or raises_value_error(tell, each, ticket, 0), "honoured a ticket that another learner issued"
        assert raises_value_error(tell, each, closed, 0), "a ticket was told again, to a restored learner or a copy"
        tell(each, issued[i], 0)
        for ticket in (opened, at_hand):
            if each not in copies:
                tell(each, ticket, 0)
            assert raises_value_error(tell, each, ticket, 0), "honoured a ticket twice, or one of the original's"
    again = pickle.loads(saved)
    again.begin(problem.X.shape[1], fresh=True)
    again.guess(problem.X[0])
    assert raises_value_error(tell, again, opened, 0), "a fresh start left an old ticket open"


def check_threads_may_share_it(learner: Learner, threads: int = 4, rounds: int = 24) -> None:
    """With many threads each round is played once and counted once, and the promise is kept.

    Some threads guess and tell, at once or late; others read, predict, play streams, save and copy it meanwhile.
    """
    problem = separable_problem(threads * rounds, 3, 4, 0.2)
    X, y = problem.X, problem.y.tolist()
    player = fresh(learner, classes=problem.n_classes)
    play(player, X[:3], y[:3], seed=1)
    tickets: list[int] = []
    streamed: list[int] = []
    mistakes: list[int] = []

    def answer(waiting: list[tuple[Guess, int]]) -> None:
        for ticket, truth in reversed(waiting):
            tell(player, ticket, truth)
            mistakes.append(ticket.label != truth)
        waiting.clear()

    together = threading.Barrier(threads)

    def work(number: int) -> None:
        together.wait()  # all begin at once
        waiting: list[tuple[Guess, int]] = []
        for t in range(number, len(y), threads):
            guess, turn = player.guess(X[t]), t // threads % 6
            waiting.append((guess, y[t]))
            tickets.append(guess.round)
            if turn == 0:
                player.probabilities(X[t])
                player.predict(X[:5])
            elif turn == 1:
                trace = play(player, X[t : t + 3], y[t : t + 3], fresh=False)
                streamed.append(trace.rounds)
                mistakes.append(trace.mistakes)
            elif turn == 2:
                twin = pickle.loads(pickle.dumps(player))
                tell(twin, guess, y[t])
                plays_on(twin)
            elif turn == 3:
                plays_on(copy.deepcopy(player))
            if turn != 4:  # then the answer comes a round late
                answer(waiting)
        answer(waiting)

    def plays_on(twin: Learner) -> None:
        before = twin.n_rounds_
        play(twin, X[:4], y[:4], fresh=False)
        assert twin.n_rounds_ == before + 4

    start, start_mistakes = player.n_rounds_, player.n_mistakes_
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # as often as Python can, so that few rounds show what many would
    try:
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(work, number) for number in range(threads)]:
                done.result()
    except Exception as error:
        raise AssertionError(f"a thread failed: {error!r}") from error
    finally:
        sys.setswitchinterval(before)
    played = len(tickets) + sum(streamed)
    assert len(set(tickets)) == len(y), "a round was issued twice"
    assert player.n_rounds_ == start + played, f"{played} rounds were played, {player.n_rounds_ - start} counted"
    assert player.n_mistakes_ == start_mistakes + sum(mistakes), "mistakes were lost, or counted twice"
    promise = learner.promise(n_classes=3, n_features=4, radius=1.0, margin=0.2) if in_linear_space(learner) else ()
    assert player.n_updates_ <= at_most(promise, "updates"), "threads broke its promise"


FOUNDATION_CHECKS = [
    check_estimator_face,
    check_classes_may_grow,
    check_a_guess_is_told_once,
    check_threads_may_share_it,
    check_every_layout_is_the_same_game,
    check_malformed_inputs_change_nothing,
    check_a_refused_first_guess_begins_nothing,
    check_labels_may_be_anything,
    check_many_rows_are_as_many_guesses,
    check_an_equal_ticket_is_as_good,
    check_an_edited_ticket_is_refused,
    check_the_arrays_of_a_ticket_are_its_holders,
    check_tickets_belong_to_one_learner,
]
