"""The guesses of a decider, as `onebit evaluate` reads a log."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse

from onebit.evaluate.logged_rounds import LoggedRounds, logged_rounds
from onebit.inputs import Rows, SparseRows
from onebit.live.events import Event, Kind
from onebit.live.log import LogError, LogReader
from onebit.live.logs import is_database, open_to_read
from onebit.live.settings import settings_of
from onebit.live.sqlite import APPLICATION_ID
from onebit.live.state import State
from onebit.typed_json import Trusted, restore

_HEADER = 100  # bytes of a SQLite file; its application is in it
_APPLICATION = slice(68, 72)


def is_decider(path: str) -> bool:
    """Say whether a file is a decider's, or the path the URL of a database of them."""
    if is_database(path):
        return True
    try:
        with Path(path).open("rb") as file:
            header = file.read(_HEADER)
    except OSError:
        return False
    return header.startswith(b"SQLite format 3\0") and int.from_bytes(header[_APPLICATION]) == APPLICATION_ID


def read_decider(path: str, listed: Sequence[str] | None = None, name: str | None = None) -> LoggedRounds:
    """Return the guesses of a decider in their order, with the answers as they were last told.

    A file must not be open elsewhere: a copy made after `close` will do. A decider in a database may be. In rounds from
    before a class joined, the others were allowed.

    Parameters
    ----------
    path : str
        The decider's file, or the URL of a database.
    listed : sequence of str, optional
        All labels that there are: the decider's, which are then known to hold the right one always. Without it another
        one may be right, as it is before a class joins.
    name : str, optional
        Which decider of the database.
    """
    with closing(open_to_read(path, name)) as log:
        called, events = log.path, list(log.events())
        classes = _classes(log, events)
    if listed is not None and sorted(listed) != sorted(map(str, classes)):
        raise ValueError(f"--classes must list the decider's, {classes!r:.200}, or be left out; got {listed!r:.200}")
    guesses = [event for event in events if event.kind == Kind.GUESSED]
    told = {event.ticket: event.body["correct"] for event in events if event.kind in (Kind.TOLD, Kind.CORRECTED)}
    if not guesses:
        raise LogError(
            f"{called}: the decider has made no guesses yet, or all were compacted; there is nothing to evaluate"
        )
    log_of_guesses = logged_rounds(
        _stacked(guesses),
        [classes[event.body["label"]] for event in guesses],
        [told.get(event.ticket) for event in guesses],
        np.array([event.body["propensity"] for event in guesses]),
        among=_allowed(guesses, events, classes),
        classes=classes,
        name=Path(path).name if name is None else name,
    )
    return replace(log_of_guesses, is_complete=listed is not None)


def _classes(log: LogReader, events: list[Event]) -> list[object]:
    """Return all labels, in the order in which they joined."""
    about, known_at = log.about(), 0
    classes: list[object] = restore(about["classes"], Trusted())
    if log.compacted:  # and with it the events of classes that joined
        classes, known_at = _compacted_classes(log)
    later = [event for event in events if event.kind == Kind.JOINED and event.seq > known_at]
    return classes + [restore(event.body["label"], Trusted()) for event in later]


def _compacted_classes(log: LogReader) -> tuple[list[object], int]:
    """Return the labels that the latest snapshot knew, and after which event."""
    settings = settings_of(log.about())
    for snapshot in log.snapshots():
        with suppress(ValueError):  # another may be sound
            return State.of_bytes(settings, snapshot.content).classes, snapshot.seq
    raise LogError(f"{log.path}: has events in a snapshot, which cannot be read; put a backup in its place")


def _allowed(guesses: list[Event], events: list[Event], classes: list[object]) -> list[list[object] | None]:
    """Return which labels each guess could have been; None for all there are now."""
    joined = [event.seq for event in events if event.kind == Kind.JOINED]
    found: list[list[object] | None] = []
    for event in guesses:
        among, n_later = event.body["among"], sum(seq > event.seq for seq in joined)
        if among is not None:
            found.append([classes[i] for i in among])
        else:
            found.append(classes[: len(classes) - n_later] if n_later else None)
    return found


def _stacked(guesses: list[Event]) -> object:
    """Return the rows that were seen, as one matrix."""
    rows: list[Rows] = [event.row for event in guesses if event.row is not None]
    if not any(isinstance(row, SparseRows) for row in rows):
        return np.stack(rows)  # type: ignore[arg-type]
    made = [
        scipy.sparse.csr_array((row.values, row.columns, row.starts), shape=(1, row.n_columns))
        if isinstance(row, SparseRows)
        else scipy.sparse.csr_array(row[None])
        for row in rows
    ]
    return scipy.sparse.vstack(made, format="csr")
