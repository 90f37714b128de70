"""Contract checks: tickets."""

import copy
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from onebit.checks.problems import fresh, noisy_problem, raises_value_error, snapshot, tell
from onebit.game import Guess
from onebit.inputs import SparseRows, dense
from onebit.learners import Learner
from onebit.playing import play


def check_a_guess_is_told_once(learner: Learner) -> None:
    """`tell` raises, and changes nothing, for a closed ticket, another learner's ticket, or anything else."""
    problem = noisy_problem(30)
    player, stranger = (fresh(learner, classes=problem.n_classes) for _ in range(2))
    for x, label in zip(problem.X, problem.y, strict=True):
        guess = player.guess(x)
        tell(player, guess, label)
    foreign = stranger.guess(problem.X[0])
    known = snapshot(player)
    assert raises_value_error(tell, player, guess, problem.y[-1]), "a guess was told twice"
    assert raises_value_error(tell, player, foreign, 0), "a foreign guess was accepted"
    assert raises_value_error(player.tell, "refund", True), "something that is no guess was accepted"
    open_guess = player.guess(problem.X[0])
    assert raises_value_error(player.tell, open_guess, "yes"), "correct='yes' was accepted"
    assert snapshot(player)["counts"][1:3] == known["counts"][1:3]
    assert {k: v for k, v in snapshot(player).items() if k != "counts"} == {
        k: v for k, v in known.items() if k != "counts"
    }, "a refused tell changed the learner"
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
    unbroken = fresh(learner, classes=problem.n_classes)
    play(unbroken, problem.X, problem.y, seed=4)
    saved = fresh(learner, classes=problem.n_classes)
    play(saved, problem.X[:90], problem.y[:90], seed=4)
    ticket = saved.guess(problem.X[90])
    reloaded, ticket = pickle.loads(pickle.dumps((saved, ticket)))
    tell(reloaded, ticket, problem.y[90])
    play(reloaded, problem.X[91:], problem.y[91:], fresh=False)
    assert snapshot(reloaded) == snapshot(unbroken)


def check_an_equal_ticket_is_as_good(learner: Learner) -> None:
    """A ticket that was saved and loaded, or was JSON, is accepted once, at once or late, for dense and sparse rows."""
    problem = noisy_problem(40)
    player, twin = (fresh(learner, classes=problem.n_classes) for _ in range(2))
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


def check_the_arrays_of_a_ticket_are_its_holders(learner: Learner) -> None:
    """Writing into a ticket's arrays never reaches the learner: at once it has no effect, late it is refused."""
    problem = noisy_problem(20)
    player, twin = (fresh(learner, classes=problem.n_classes) for _ in range(2))
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


def _edits(guess: Guess, closed: Guess) -> Iterator[tuple[str, Any]]:
    """Yield fields and what to write into them: garbage, the nearly right, and what belongs to another ticket."""
    garbage: tuple[Any, ...] = (None, "0", [], 10**30, math.nan)
    for field in Guess._fields:
        if field != "label":
            yield from ((field, value) for value in garbage)
    yield from (("round", value) for value in (closed.round, guess.round + 50, -1 - guess.round, 10**12))
    yield from (("label", value) for value in ((guess.index + 1) % 4, "nobody", None, [guess.label], 10**8))
    yield from (("propensity", value) for value in (guess.propensity / 2 + 0.01, -1.0, math.inf))
    yield from (("explored", value) for value in (not guess.explored, int(guess.explored)))
    yield from (("index", value) for value in ((guess.index + 1) % 4, 10**8, -(10**8), guess.index - 4, 0.5))
    yield from (("version", value) for value in (guess.version + 1, -1))
    yield from (("token", value) for value in (closed.token, guess.token[:-1], guess.token + b"0", bytes(8)))
    yield from (("learner", value) for value in ("", "0" * 32, 5))
    scores = guess.scores
    yield from (("scores", value) for value in (np.append(scores, 0.0), scores[None], scores.astype(np.float32)))
    if len(scores):
        yield from (("scores", value) for value in (scores + 1.0, scores[:-1], scores * np.nan))
    if isinstance(guess.row, SparseRows):
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
        for change in changes:
            yield "row", SparseRows(**{**guess.row._asdict(), **change})
        yield from (("row", value) for value in (np.ones((1, n_columns)), tuple(guess.row), list(guess.row)))
    else:
        row = guess.row
        wide, tall = np.append(row, row, axis=1), np.append(row, row, axis=0)
        # The last two have the same bytes.
        for value in (row + 1.0, row * np.nan, wide, tall, row[:, :-1], row[0], row.astype(int), row.T, row.view(int)):
            yield "row", value


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
            if each in copies:
                assert raises_value_error(tell, each, ticket, 0), "a copy honoured a ticket of the original"
            else:
                tell(each, ticket, 0)
                assert raises_value_error(tell, each, ticket, 0), "a ticket was told twice"
    again = pickle.loads(saved)
    again.begin(problem.X.shape[1], fresh=True)
    again.guess(problem.X[0])
    assert raises_value_error(tell, again, opened, 0), "a fresh start left an old ticket open"
