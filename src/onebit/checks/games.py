"""Contract checks: every engine plays the same game, in pieces, with late feedback, and saved in between."""

import pickle
import tempfile
from pathlib import Path
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
    tell,
    twins,
)
from onebit.inputs import Floats, Integers
from onebit.learners import Learner, all_learners, load
from onebit.learners.saving import pack_state
from onebit.playing import play
from onebit.streams import paper_weak

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


def check_engines_agree(learner: Learner) -> None:
    """Round for round the same guesses and the same state: over blocks, in few and many dimensions, and on ties."""
    blocks, wide, generator = noisy_problem(900), noisy_problem(700, 5, 60), np.random.default_rng(0)
    points, picks = generator.integers(-1, 2, size=(7, 3)) / 2.0, generator.integers(7, size=600)
    for X, y in (
        (blocks.X, blocks.y),  # blocks have 256 rows: several of them, the last one short
        paper_weak(rounds=2500, seed=3),  # three features: the rational kernel has a screen here
        (points[picks], generator.integers(3, size=600)),  # sums of halves are exact: ties stay ties
        (wide.X, wide.y),  # a block is scored by a matrix product
    ):
        _same_game(learner, X, y)


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


def check_feedback_may_come_late_or_never(learner: Learner) -> None:
    """Answers may come in any order, or not at all; nothing breaks and what comes counts."""
    problem = noisy_problem(60)
    player = fresh(learner, classes=problem.n_classes)
    tickets = [player.guess(x) for x in problem.X]
    order = np.random.default_rng(0).permutation(60)  # the last twenty get no feedback
    for t in order[:40]:
        tell(player, tickets[t], problem.y[t])
    wrong = sum(tickets[t].label != problem.y[t] for t in order[:40])
    assert player.n_rounds_ == 60
    assert player.n_mistakes_ == wrong


def check_a_saved_learner_plays_on(learner: Learner) -> None:
    """A learner that is pickled, or saved and loaded, with tickets open, plays on exactly as the original."""
    problem = noisy_problem(160)
    rows: list[Any] = [*problem.X[:120], *(scipy.sparse.csr_array(x[None]) for x in problem.X[120:])]
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:80], problem.y[:80], seed=4)
    for t in (80, 81, 120, 121):
        tell(player, player.guess(rows[t]), problem.y[t])
    opened = [(player.guess(rows[t]), problem.y[t]) for t in (82, 122, 83)]
    for through in (_through_pickle, _through_a_file, _through_a_file):  # each time what came back is saved
        loaded = through(player)
        assert _all_of(loaded) == _all_of(player), "a loaded learner knows something else (by hand it needs _keep)"
        for k, (ticket, label) in enumerate(opened):
            answer = (ticket.label == label, label) if loaded.full_information else (ticket.label == label,)
            assert raises_value_error(tell, loaded, ticket._replace(token=bytes(8)), label), "honoured a forged ticket"
            loaded.tell(ticket.id, *answer)
            assert raises_value_error(loaded.tell, ticket.id, *answer), "told twice"
            tell(player, ticket, label)
            assert _all_of(loaded) == _all_of(player), f"open ticket {k} taught a loaded learner something else"
        for each in (player, loaded):
            for t in (*range(84, 100), *range(123, 140)):
                tell(each, each.guess(rows[t]), problem.y[t])
            play(each, problem.X[140:], problem.y[140:], fresh=False)
        assert _all_of(loaded) == _all_of(player), "a loaded learner played on differently"
        player, opened = loaded, [(loaded.guess(rows[t]), problem.y[t]) for t in (101, 102)]
    blank = fresh(learner, classes=3)
    assert repr(_through_a_file(blank)) == repr(blank), "settings alone are not saved"


def _all_of(learner: Learner) -> Any:
    packed = {name: (array.shape, array.tobytes()) for name, array in pack_state(learner._state).items()}
    return snapshot(learner), packed


def _through_pickle(learner: Learner) -> Learner:
    copied: Learner = pickle.loads(pickle.dumps(learner))
    return copied


def _through_a_file(learner: Learner) -> Learner:
    settings = [value for value in learner.get_params(deep=False).values() if callable(value)]
    trusted = [type(learner), *(getattr(each, "function", each) for each in settings)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.onebit"
        try:
            learner.save(path)
        except ValueError as error:
            if type(learner) in all_learners():
                raise
            raise SkipTest(f"it cannot be saved: {error}") from error
        return load(path, trusted=[each for each in trusted if hasattr(each, "__qualname__")])
