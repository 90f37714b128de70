"""Events of a decider.

Events are immutable. The state follows from the events in order, so each event holds all that a replay cannot compute:
time, random draws, and input of the application.
"""

from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from onebit.inputs import Rows, SparseRows


class Kind(StrEnum):
    """Kinds of events."""

    OPENED = "opened"
    """A process opened the decider; holds versions and platform."""
    GUESSED = "guessed"
    FEEDBACK = "feedback"
    CLOSED = "closed"
    """A ticket was closed without feedback; `correct` is False if that counts as wrong, None if not at all."""
    CORRECTED = "corrected"
    """Feedback was reversed or withdrawn; holds the number of the event it corrects."""
    CHANGED = "changed"
    """Some settings were changed."""
    CLASS_ADDED = "class_added"
    SHADOW = "shadow"
    """A decision of the application, with its feedback."""


class Event(NamedTuple):
    """One event of the log."""

    seq: int
    """The event's number; consecutive, from 1."""
    time: float
    """Seconds since 1970; never decreases."""
    kind: str
    ticket: str | None
    """The ticket id of the guess that it belongs to."""
    body: dict[str, Any]
    row: Rows | None = None
    """The encoded record of a guess or shadow decision."""
    key: str | None = None
    """The idempotency key of the request."""


def row_to_bytes(row: Rows) -> bytes:
    """Return an encoded record as bytes: dense as values; sparse as width, values and columns."""
    if not isinstance(row, SparseRows):
        return b"D" + row.astype("<f8", copy=False).tobytes()
    width = int(row.n_columns).to_bytes(8, "little")
    return b"S" + width + row.values.astype("<f8", copy=False).tobytes() + row.columns.astype("<i8").tobytes()


def row_of_bytes(data: bytes) -> Rows:
    """Rebuild an encoded record from the result of `row_to_bytes`."""
    if data[:1] == b"D":
        return np.frombuffer(data, "<f8", offset=1)
    n = (len(data) - 9) // 16
    columns = np.frombuffer(data, "<i8", offset=9 + 8 * n)
    return SparseRows(np.frombuffer(data, "<f8", n, 9), columns, np.array([0, n]), int.from_bytes(data[1:9], "little"))


def as_rows(row: Any) -> Any:
    """Return one encoded record as a matrix of one row."""
    return row[None] if isinstance(row, np.ndarray) and row.ndim == 1 else row
