"""The guesses of a decider, as `onebit evaluate` reads a log."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from onebit.decider.replay import History
from onebit.decider.settings import open_log
from onebit.decider.state import State
from onebit.decider.tickets import Event, Kind, LogError
from onebit.experiments.evaluate.log import LoggedRounds, logged_rounds
from onebit.inputs import SparseRows
from onebit.reporting.text import grouped
from onebit.typed_json import Trusted, restore

_Answers = dict[str | None, bool | None]  # by ticket


def read_decider(path: str, listed: Sequence[str] | None = None, name: str | None = None) -> LoggedRounds:
    """Return the guesses of a decider in their order, each with the answer that counts for the decider.

    An answer that was corrected is what it was corrected to, one that was withdrawn is none, and silence is wrong where
    the decider takes it so. Where a person was asked, the guess is the suggestion, and silence says nothing. Guesses
    that were compacted or forgotten are not in the log any more, and shadow mode makes no guesses; the log's `about`
    says how many there were.

    A file must not be open elsewhere: a copy made after `close` will do. A decider in a database may be. In rounds from
    before a class joined, the others were allowed. With `listed`, all of the decider's labels, the right one is known
    to be always among them; without it another may be right, as it is before a class joins.
    """
    with closing(open_log(path, name, read_only=True)) as log:
        called, about, events = log.path, log.about(), list(log.events())
        snapshot = History(log).latest_snapshot() if log.compacted else None
    # Events of classes that joined may be compacted, too.
    known_at = 0 if snapshot is None else snapshot.seq
    classes = restore(about["classes"], Trusted()) if snapshot is None else snapshot.classes
    added = [event for event in events if event.kind == Kind.CLASS_ADDED and event.seq > known_at]
    classes = [*classes, *(restore(event.body["label"], Trusted()) for event in added)]
    if listed is not None and sorted(listed) != sorted(map(str, classes)):
        raise ValueError(f"--classes must list the decider's, {classes!r:.200}, or be left out; got {listed!r:.200}")
    guesses = [event for event in events if event.kind == Kind.GUESSED]
    if not guesses:
        none = "the decider has made no guesses yet, or all were compacted"
        raise LogError(f"{called}: {none}; there is nothing to evaluate")
    asked = {event.ticket for event in guesses if event.body.get("decision", (False,))[0]}
    answers: _Answers = {}
    named: dict[str | None, int | None] = {}
    for event in events:
        if event.kind in (Kind.FEEDBACK, Kind.CORRECTED) or (event.kind == Kind.CLOSED and event.ticket not in asked):
            answers[event.ticket], named[event.ticket] = event.body["correct"], event.body.get("label")
    rounds = logged_rounds(
        _stacked(guesses),
        [classes[event.body["label"]] for event in guesses],
        [answers.get(event.ticket) for event in guesses],
        np.array([event.body["propensity"] for event in guesses]),
        among=[_allowed(event.body, classes) for event in guesses],
        classes=classes,
        name=Path(path).name if name is None else name,
    )
    labels = np.array([-1 if (label := named.get(event.ticket)) is None else label for event in guesses])
    notes = _account(events, answers, snapshot)
    if asked:
        n_named = sum(named.get(ticket) is not None and answers[ticket] is False for ticket in asked)
        notes += (("asked", _account_of_asking(guesses, asked, answers, n_named)),)
    return replace(rounds, is_complete=listed is not None, named=labels, about=notes)


def _allowed(body: dict[str, Any], classes: list[object]) -> list[object] | None:
    """Return which labels a guess could have been; None for all there are now."""
    if body["among"] is not None:
        return [classes[i] for i in body["among"]]
    return classes[: body["n_classes"]] if body["n_classes"] < len(classes) else None


def _account(events: list[Event], answers: _Answers, snapshot: State | None) -> tuple[tuple[str, str], ...]:
    """Return what counts as wrong without having been told, and what of the decider's history is not evaluated."""
    n_silent = sum(event.kind == Kind.CLOSED and answers.get(event.ticket) is False for event in events)
    known_at, n_gone, n_watched = 0, 0, 0
    if snapshot is not None:
        known_at, n_watched = snapshot.seq, snapshot.n_shadows
        n_gone = snapshot.n_guesses - sum(event.kind == Kind.GUESSED and event.seq <= known_at for event in events)
    n_watched += sum(event.kind == Kind.SHADOW and event.seq > known_at for event in events)
    left_out = [f"{grouped(n_gone)} guesses that were compacted or forgotten"] if n_gone else []
    left_out += [f"{grouped(n_watched)} rounds of shadow mode, which learners do not hear"] if n_watched else []
    silence = f"{grouped(n_silent)} of the wrong: no answer came in time, and this decider counts that as wrong"
    notes = [("silence", f"{silence}. What is sure rests on it")] if n_silent else []
    return (*notes, *([("left out", "; ".join(left_out))] if left_out else []))


def _account_of_asking(guesses: list[Event], asked: set[str | None], answers: _Answers, n_named: int) -> str:
    """Return in how many rounds a person decided, and what that means for the log."""
    found = Counter((event.ticket in asked, answers.get(event.ticket)) for event in guesses)
    return (
        f"{grouped(len(asked))} rounds, in which a person decided; the suggestion counts as the guess, and was "
        f"right in {grouped(found[True, True])}, wrong in {grouped(found[True, False])}, and in {grouped(n_named)} of "
        f"these the right label is known. Of the decisions made alone {grouped(found[False, True])} were right and "
        f"{grouped(found[False, False])} wrong"
    )


def _stacked(guesses: list[Event]) -> object:
    """Return the rows that were seen, as one matrix."""
    rows: list[Any] = [event.row for event in guesses]
    if not isinstance(rows[0], SparseRows):
        return np.stack(rows)
    columns, lengths = np.concatenate([row.columns for row in rows]), [len(row.columns) for row in rows]
    starts = np.cumsum([0, *lengths])
    held = np.concatenate([row.values for row in rows]), columns, starts
    return scipy.sparse.csr_array(held, shape=(len(rows), rows[0].n_columns))
