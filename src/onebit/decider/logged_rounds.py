"""The guesses of a decider, as `onebit evaluate` reads a log."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from onebit.decider.log import EventLog
from onebit.decider.settings import Settings, is_database, open_log
from onebit.decider.sqlite import SQLiteLog
from onebit.decider.state import State
from onebit.decider.tickets import Event, Kind, LogError
from onebit.experiments.evaluate.log import LoggedRounds, logged_rounds
from onebit.inputs import SparseRows
from onebit.reporting.text import grouped
from onebit.typed_json import Trusted, restore


def is_decider(path: str) -> bool:
    """Return whether a file is a decider's, or the path the URL of a database of them."""
    return is_database(path) or SQLiteLog.is_at(path)


def read_decider(path: str, listed: Sequence[str] | None = None, name: str | None = None) -> LoggedRounds:
    """Return the guesses of a decider in their order, each with the answer that counts for the decider.

    An answer that was corrected is what it was corrected to, one that was withdrawn is none, and silence is wrong where
    the decider takes it so. Guesses that were compacted or forgotten are not in the log any more, and shadow mode makes
    no guesses; the log's `about` says how many there were.

    A file must not be open elsewhere: a copy made after `close` will do. A decider in a database may be. In rounds from
    before a class joined, the others were allowed. With `listed`, all of the decider's labels, the right one is known
    to be always among them; without it another may be right, as it is before a class joins.
    """
    with closing(open_log(path, name, read_only=True)) as log:
        called, about, events = log.path, log.about(), list(log.events())
        snapshot = _latest_state(log) if log.compacted else None
    # Events of classes that joined may be compacted, too.
    first, known_at = (
        (restore(about["classes"], Trusted()), 0) if snapshot is None else (snapshot.classes, snapshot.seq)
    )
    added = [event for event in events if event.kind == Kind.CLASS_ADDED and event.seq > known_at]
    classes = [*first, *(restore(event.body["label"], Trusted()) for event in added)]
    if listed is not None and sorted(listed) != sorted(map(str, classes)):
        raise ValueError(f"--classes must list the decider's, {classes!r:.200}, or be left out; got {listed!r:.200}")
    guesses = [event for event in events if event.kind == Kind.GUESSED]
    if not guesses:
        none = "the decider has made no guesses yet, or all were compacted"
        raise LogError(f"{called}: {none}; there is nothing to evaluate")
    closing_kinds = (Kind.FEEDBACK, Kind.CLOSED, Kind.CORRECTED)
    answers = {event.ticket: event.body["correct"] for event in events if event.kind in closing_kinds}
    log_of_guesses = logged_rounds(
        _stacked(guesses),
        [classes[event.body["label"]] for event in guesses],
        [answers.get(event.ticket) for event in guesses],
        np.array([event.body["propensity"] for event in guesses]),
        among=[_allowed(event.body, classes) for event in guesses],
        classes=classes,
        name=Path(path).name if name is None else name,
    )
    return replace(log_of_guesses, is_complete=listed is not None, about=_account(events, answers, snapshot))


def _latest_state(log: EventLog) -> State:
    """Return what the decider knew at its latest snapshot that can be read."""
    settings = Settings.of(log.about())
    for snapshot in log.snapshots():
        with suppress(ValueError):  # another may be sound
            return State.of_bytes(settings, snapshot.content)
    raise LogError(f"{log.path}: has events in a snapshot, which cannot be read; put a backup in its place")


def _allowed(body: dict[str, Any], classes: list[object]) -> list[object] | None:
    """Return which labels a guess could have been; None for all there are now."""
    if body["among"] is not None:
        return [classes[i] for i in body["among"]]
    return classes[: body["n_classes"]] if body["n_classes"] < len(classes) else None


def _account(
    events: list[Event], answers: dict[str | None, bool | None], snapshot: State | None
) -> tuple[tuple[str, str], ...]:
    """Return what counts as wrong without having been told, and what of the decider's history is not evaluated."""
    n_silent = sum(event.kind == Kind.CLOSED and answers[event.ticket] is False for event in events)
    known_at, n_gone, n_watched = 0, 0, 0
    if snapshot is not None:
        known_at, n_watched = snapshot.seq, snapshot.n_shadows
        n_gone = snapshot.n_guesses - sum(event.kind == Kind.GUESSED and event.seq <= known_at for event in events)
    n_watched += sum(event.kind == Kind.SHADOW and event.seq > known_at for event in events)
    left_out = [f"{grouped(n_gone)} guesses that were compacted or forgotten"] if n_gone else []
    left_out += [f"{grouped(n_watched)} rounds of shadow mode, which learners do not hear"] if n_watched else []
    silence = f"{grouped(n_silent)} of the wrong: no answer came in time, and this decider counts that as wrong"
    return (
        *([("silence", f"{silence}. What is sure rests on it")] if n_silent else []),
        *([("left out", "; ".join(left_out))] if left_out else []),
    )


def _stacked(guesses: list[Event]) -> object:
    """Return the rows that were seen, as one matrix."""
    rows: list[Any] = [event.row for event in guesses]
    if not any(isinstance(row, SparseRows) for row in rows):
        return np.stack(rows)
    made = [
        scipy.sparse.csr_array((row.values, row.columns, row.starts), shape=(1, row.n_columns))
        if isinstance(row, SparseRows)
        else scipy.sparse.csr_array(row[None])
        for row in rows
    ]
    return scipy.sparse.vstack(made, format="csr")
