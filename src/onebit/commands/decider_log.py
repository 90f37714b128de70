"""The guesses of a decider, as `onebit evaluate` reads a log."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse

from onebit.evaluate.logged_rounds import LoggedRounds, logged_rounds
from onebit.inputs import Rows, SparseRows
from onebit.live.events import Event, Kind
from onebit.live.log import LogError
from onebit.live.replay import replay as replayed
from onebit.live.settings import settings_of
from onebit.live.sqlite import APPLICATION_ID, SQLiteLog
from onebit.typed_json import Trusted, restore

_HEADER = 100  # bytes of a SQLite file; its application is in it
_APPLICATION = slice(68, 72)


def is_decider(path: str) -> bool:
    """Say whether a file is a decider's."""
    try:
        with Path(path).open("rb") as file:
            header = file.read(_HEADER)
    except OSError:
        return False
    return header.startswith(b"SQLite format 3\0") and int.from_bytes(header[_APPLICATION]) == APPLICATION_ID


def read_decider(path: str, listed: Sequence[str] | None = None) -> LoggedRounds:
    """Return the guesses of a decider in their order, with the answers as they were last told.

    The file must not be open elsewhere: a copy made after `close` will do. In rounds from before a class joined, the
    others were allowed.

    Parameters
    ----------
    path : str
        The decider's file.
    listed : sequence of str, optional
        All labels that there are: the decider's, which are then known to hold the right one always. Without it another
        one may be right, as it is before a class joins.
    """
    with closing(SQLiteLog(path)) as log:
        events = list(log.events())
        if log.compacted:  # and with it the events of classes that joined
            classes = replayed(log, settings_of(log.about())).classes
        else:
            classes = restore(log.about()["classes"], Trusted())
            classes += [restore(event.body["label"], Trusted()) for event in events if event.kind == Kind.JOINED]
    if listed is not None and sorted(listed) != sorted(map(str, classes)):
        raise ValueError(f"--classes must list the decider's, {classes!r:.200}, or be left out; got {listed!r:.200}")
    guesses = [event for event in events if event.kind == Kind.GUESSED]
    told = {event.ticket: event.body["correct"] for event in events if event.kind in (Kind.TOLD, Kind.CORRECTED)}
    if not guesses:
        raise LogError(
            f"{path}: the decider has made no guesses yet, or all were compacted; there is nothing to evaluate"
        )
    log_of_guesses = logged_rounds(
        _stacked(guesses),
        [classes[event.body["label"]] for event in guesses],
        [told.get(event.ticket) for event in guesses],
        np.array([event.body["probability"] for event in guesses]),
        among=_allowed(guesses, events, classes),
        classes=classes,
        name=Path(path).name,
    )
    return replace(log_of_guesses, is_complete=listed is not None)


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
