"""The guesses of a decider, as `onebit evaluate` reads a log."""

from contextlib import closing
from pathlib import Path

import numpy as np
import scipy.sparse

from onebit.evaluate.logged_rounds import LoggedRounds, logged_rounds
from onebit.inputs import Rows, SparseRows
from onebit.live.events import Event, Kind
from onebit.live.log import LogError
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


def read_decider(path: str) -> LoggedRounds:
    """Return the guesses of a decider in their order, with the answers as they were last told.

    The file must not be open elsewhere: a copy made after `close` will do.
    """
    with closing(SQLiteLog(path)) as log:
        classes = settings_of(log.about()).classes
        events = list(log.events())
    guesses = [event for event in events if event.kind == Kind.GUESSED]
    classes = classes + [restore(event.body["label"], Trusted()) for event in events if event.kind == Kind.JOINED]
    told = {event.ticket: event.body["correct"] for event in events if event.kind in (Kind.TOLD, Kind.CORRECTED)}
    if not guesses:
        raise LogError(
            f"{path}: the decider has made no guesses yet, or all were compacted; there is nothing to evaluate"
        )
    return logged_rounds(
        _stacked(guesses),
        [classes[event.body["label"]] for event in guesses],
        [told.get(event.ticket) for event in guesses],
        np.array([event.body["probability"] for event in guesses]),
        among=[_labels(event.body["among"], classes) for event in guesses],
        classes=classes,
        name=Path(path).name,
    )


def _labels(among: list[int] | None, classes: list[object]) -> list[object] | None:
    return None if among is None else [classes[i] for i in among]


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
