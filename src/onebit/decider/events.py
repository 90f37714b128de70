"""Events of a decider, and how they are stored.

Events are immutable. The state follows from the events in order, so each event holds all that a replay cannot compute:
time, random draws, and input of the application.
"""

from enum import StrEnum
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from onebit.decider.quick_json import of_json, to_json
from onebit.inputs import Rows, SparseRows

CHECKSUM = 8
"""Bytes of an event's checksum: damage is missed with probability 10⁻¹⁹."""


class Kind(StrEnum):
    """Kinds of events."""

    OPENED = "opened"
    """A process opened the decider; holds versions and platform."""
    GUESSED = "guessed"
    TOLD = "told"
    SILENT = "silent"
    """A ticket was closed without feedback: its deadline passed, or too many tickets were open."""
    CORRECTED = "corrected"
    """Feedback was reversed or withdrawn."""
    CHANGED = "changed"
    """Some settings were changed."""
    JOINED = "joined"
    """A class was added."""
    WATCHED = "watched"
    """Shadow mode: a decision of the application, with its feedback."""


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


def packed(event: Event) -> tuple[Any, ...]:
    """Return an event as a row of the log: body as text, row as bytes, and a checksum."""
    seq, time, kind, ticket, body, row, key = event
    kind, text, data = str(kind), to_json(body), None if row is None else row_to_bytes(row)
    return seq, time, kind, ticket, text.decode(), data, key, checksum((seq, time, kind, ticket, key), text, data)


def unpacked(line: tuple[Any, ...]) -> Event:
    """Rebuild an event from a row of the log, or raise ValueError if it is damaged."""
    seq, time, kind, ticket, text, data, key, check = line
    if checksum((seq, time, kind, ticket, key), text.encode(), data) != check:
        raise ValueError(f"event {seq} is damaged: its checksum does not fit")
    return Event(seq, time, kind, ticket, of_json(text), None if data is None else row_of_bytes(data), key)


def row_to_bytes(row: Rows) -> bytes:
    """Return one row as bytes: dense as values; sparse as width, values and columns."""
    if not isinstance(row, SparseRows):
        return b"D" + row.astype("<f8", copy=False).tobytes()
    width = int(row.n_columns).to_bytes(8, "little")
    return b"S" + width + row.values.astype("<f8", copy=False).tobytes() + row.columns.astype("<i8").tobytes()


def row_of_bytes(data: bytes) -> Rows:
    """Rebuild a row from the result of `row_to_bytes`."""
    if data[:1] == b"D":
        return np.frombuffer(data, "<f8", offset=1)
    n = (len(data) - 9) // 16
    columns = np.frombuffer(data, "<i8", offset=9 + 8 * n)
    return SparseRows(np.frombuffer(data, "<f8", n, 9), columns, np.array([0, n]), int.from_bytes(data[1:9], "little"))


def checksum(values: tuple[Any, ...], content: bytes, more: bytes | None = None) -> bytes:
    """Return a checksum of plain values and one or two byte strings."""
    head = repr((values, len(content), None if more is None else len(more))).encode()
    digest = blake2b(head, digest_size=CHECKSUM)
    digest.update(content)
    if more:
        digest.update(more)
    return digest.digest()
