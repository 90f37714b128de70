"""What can happen to a decider, as it is written down.

An event is never changed. Everything a decider knows follows from its events in their order, so each holds whatever
cannot be computed again: the clock, chance, and what an application said.
"""

from enum import StrEnum
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from onebit.decider.quick_json import of_json, to_json
from onebit.inputs import Rows, SparseRows

CHECKSUM = 8
"""Bytes of an event's checksum: a damaged one passes in a case of 10¹⁹."""


class Kind(StrEnum):
    """What happened."""

    OPENED = "opened"
    """A process took the decider over: which onebit, on what."""
    GUESSED = "guessed"
    TOLD = "told"
    SILENT = "silent"
    """No answer came in time, or too many tickets were open."""
    CORRECTED = "corrected"
    """An answer was a mistake: it was the other way round, or nothing at all."""
    CHANGED = "changed"
    """Settings were changed, those that are named."""
    JOINED = "joined"
    """A class joined."""
    WATCHED = "watched"
    """Shadow mode: the application decided, and says what and whether it was right."""


class Event(NamedTuple):
    """One line of the log."""

    seq: int
    """Its number; they follow each other without a gap."""
    time: float
    """Seconds since 1970; never less than the event's before."""
    kind: str
    ticket: str | None
    """Which guess it is about."""
    body: dict[str, Any]
    row: Rows | None = None
    """What the learner saw, in a guess."""
    key: str | None = None
    """What the caller calls the request, so that a second try is not a second guess."""


def packed(event: Event) -> tuple[Any, ...]:
    """Return an event as a log keeps it: with its body as text, its row as bytes, and a checksum of all that."""
    seq, time, kind, ticket, body, row, key = event
    kind, text, data = str(kind), to_json(body), None if row is None else row_to_bytes(row)
    return seq, time, kind, ticket, text.decode(), data, key, checksum((seq, time, kind, ticket, key), text, data)


def unpacked(line: tuple[Any, ...]) -> Event:
    """Return an event as it was, or raise ValueError if its line was damaged."""
    seq, time, kind, ticket, text, data, key, check = line
    if checksum((seq, time, kind, ticket, key), text.encode(), data) != check:
        raise ValueError(f"event {seq} is damaged: its checksum does not fit")
    return Event(seq, time, kind, ticket, of_json(text), None if data is None else row_of_bytes(data), key)


def row_to_bytes(row: Rows) -> bytes:
    """Return one row: a dense one as it is; a sparse one with its width before it, and its columns behind."""
    if not isinstance(row, SparseRows):
        return b"D" + row.astype("<f8", copy=False).tobytes()
    width = int(row.n_columns).to_bytes(8, "little")
    return b"S" + width + row.values.astype("<f8", copy=False).tobytes() + row.columns.astype("<i8").tobytes()


def row_of_bytes(data: bytes) -> Rows:
    """Return the row of which `row_to_bytes` returned the bytes."""
    if data[:1] == b"D":
        return np.frombuffer(data, "<f8", offset=1)
    n = (len(data) - 9) // 16
    columns = np.frombuffer(data, "<i8", offset=9 + 8 * n)
    return SparseRows(np.frombuffer(data, "<f8", n, 9), columns, np.array([0, n]), int.from_bytes(data[1:9], "little"))


def checksum(said: tuple[Any, ...], content: bytes, more: bytes | None = None) -> bytes:
    """Return what tells a damaged line from a whole one: plain values, and one or two contents."""
    head = repr((said, len(content), None if more is None else len(more))).encode()
    digest = blake2b(head, digest_size=CHECKSUM)
    digest.update(content)
    if more:
        digest.update(more)
    return digest.digest()
