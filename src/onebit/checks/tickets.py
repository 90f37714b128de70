"""Contract checks: tickets, saved learners, and threads that share a learner."""

import copy
import math
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from onebit.bounds import at_most
from onebit.checks.problems import (
    fresh,
    noisy_problem,
    play_by_hand,
    raises_value_error,
    separable_problem,
    snapshot,
    tell,
    twins,
)
from onebit.game import Guess
from onebit.inputs import SparseRows, dense
from onebit.learners import Learner, all_learners, load
from onebit.learners.base import in_linear_space
from onebit.learners.saving import pack_state
from onebit.playing import play

# Seconds after which a thread must let another run: as often as Python can, so that few rounds show what many would.
_SWITCH_INTERVAL = 1e-6


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
    """A learner that is pickled in the middle of a stream plays on exactly as one that is not."""
    problem = noisy_problem(200)
    unbroken, saved = twins(learner)
    play(unbroken, problem.X, problem.y, seed=4)
    play(saved, problem.X[:90], problem.y[:90], seed=4)
    ticket = saved.guess(problem.X[90])
    reloaded, ticket = pickle.loads(pickle.dumps((saved, ticket)))
    tell(reloaded, ticket, problem.y[90])
    play(reloaded, problem.X[91:], problem.y[91:], fresh=False)
    assert snapshot(reloaded) == snapshot(unbroken)


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
        "token": (closed.token, guess.token[:-1], guess.token + b"0", bytes(8)),
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


def check_a_learner_from_a_file_plays_on(learner: Learner) -> None:
    """A learner that is saved and loaded, with tickets open, plays on exactly as the original."""
    problem = noisy_problem(160)
    rows: list[Any] = [*problem.X[:120], *(scipy.sparse.csr_array(x[None]) for x in problem.X[120:])]
    player = fresh(learner, classes=problem.n_classes)
    play(player, problem.X[:80], problem.y[:80], seed=4)
    for t in (80, 81, 120, 121):
        tell(player, player.guess(rows[t]), problem.y[t])
    opened = [(player.guess(rows[t]), problem.y[t]) for t in (82, 122, 83)]
    for _ in range(2):  # the second time the loaded learner is saved
        loaded = _through_a_file(player)
        assert _all_of(loaded) == _all_of(player), (
            "a loaded learner knows something else (one of ours by hand needs _keep)"
        )
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


def check_a_learner_that_has_not_played_can_be_saved(learner: Learner) -> None:
    """Settings alone are saved too."""
    player = fresh(learner, classes=3)
    loaded = _through_a_file(player)
    assert repr(loaded) == repr(player), f"{player!r} came back as {loaded!r}"
    assert [each.guess([0.5, 0.1]).label for each in (player, loaded)]


def _all_of(learner: Learner) -> Any:
    packed = {name: (array.shape, array.tobytes()) for name, array in pack_state(learner._state).items()}
    return snapshot(learner), packed


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

    def work(number: int) -> None:
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
    _at_once(work, threads)
    played = len(tickets) + sum(streamed)
    assert len(set(tickets)) == len(y), "a round was issued twice"
    assert player.n_rounds_ == start + played, f"{played} rounds were played, {player.n_rounds_ - start} counted"
    assert player.n_mistakes_ == start_mistakes + sum(mistakes), "mistakes were lost, or counted twice"
    promise = learner.promise(n_classes=3, n_features=4, radius=1.0, margin=0.2) if in_linear_space(learner) else ()
    assert player.n_updates_ <= at_most(promise, "updates"), "threads broke its promise"


def _at_once(work: Callable[[int], None], threads: int) -> None:
    """Run work in threads that all begin at once; raise the first error."""
    together = threading.Barrier(threads)

    def begin(number: int) -> None:
        together.wait()
        work(number)

    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        with ThreadPoolExecutor(threads) as pool:
            failures = [future.exception() for future in [pool.submit(begin, number) for number in range(threads)]]
    finally:
        sys.setswitchinterval(before)
    failure = next((each for each in failures if each is not None), None)
    if failure is not None:
        raise AssertionError(f"a thread failed: {failure!r}") from failure
