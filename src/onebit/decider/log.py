"""The event log of a decider: how events are stored, and the base class of logs in databases.

Appending only queues an event. The first thread that waits writes all pending events in one transaction, so that many
threads share one commit. When `EventLog.wait` returns, the batch is on disk and survives crashes and power failures.
"""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from onebit.decider import tickets
from onebit.decider.tickets import Event, Feedback, Kind, LogError, LogWriteError
from onebit.inputs import Rows, SparseRows
from onebit.typed_json import parse, write

_AT_ONCE = 1000  # events read at once
_BYTES_AT_ONCE = 4 << 20  # of events read at once, unless a single event is larger
_CHECKSUM_BYTES = 8  # damage is missed with probability 10⁻¹⁹
_SNAPSHOTS = 2  # kept: the latest may be damaged
_PART = 1 << 26  # maximum bytes of a snapshot in one row: databases allow at most a gigabyte
_BACKGROUND_SECONDS = 0.02
_TAKEN = "another process had the decider meanwhile; nothing of this happened. The decider goes on from what is there"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def to_json(value: Any) -> bytes:
    """Return the JSON of a value without NaN and infinity (they would become null); numbers are kept exactly."""
    try:
        return _encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can encode but UTF-8 cannot
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _of_json(text: str | bytes) -> Any:
    """Parse JSON, or raise ValueError."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return parse(text)  # it accepts lone surrogates, and its errors give the position


def _checksum(values: tuple[Any, ...], content: bytes | memoryview, more: bytes | None = None) -> bytes:
    """Return a checksum of plain values and one or two byte strings."""
    head = repr((values, len(content), None if more is None else len(more))).encode()
    digest = blake2b(head, digest_size=_CHECKSUM_BYTES)
    digest.update(content)
    digest.update(more or b"")
    return digest.digest()


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


class Snapshot(NamedTuple):
    """The serialized state of a decider, which only shortens the replay."""

    seq: int  # the last event that it includes
    content: bytes


@dataclass(eq=False)
class Batch:
    """Events written in one transaction; `EventLog.wait` waits for it."""

    lines: list[tuple[Any, ...]] = field(default_factory=list)
    is_done: bool = False
    error: LogWriteError | None = None


class EventLog(ABC):
    """A log in the tables of a database; `path` is its name in messages.

    In a database with several logs, `own` is a condition that selects the rows of this one. Statements have a question
    mark for each value.
    """

    FORMAT_VERSION = 1
    SCHEMA = """
CREATE TABLE {schema}about ({own} name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY ({key} name));
CREATE TABLE {schema}events (
    {own} seq {integer} NOT NULL, time DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, ticket TEXT, body TEXT NOT NULL,
    row {blob}, key TEXT, checksum {blob} NOT NULL, PRIMARY KEY ({key} seq)
);
CREATE INDEX events_of_ticket ON {schema}events ({key} ticket) WHERE ticket IS NOT NULL;
CREATE INDEX events_corrected ON {schema}events ({key} kind) WHERE kind = 'corrected';
CREATE UNIQUE INDEX events_by_key ON {schema}events ({key} key) WHERE key IS NOT NULL;
CREATE TABLE {schema}snapshots (
    {own} seq {integer} NOT NULL, part INTEGER NOT NULL, content {blob} NOT NULL, checksum {blob} NOT NULL,
    PRIMARY KEY ({key} seq, part)
)"""
    COLUMNS = "seq, time, kind, ticket, body, row, key, checksum"
    errors: ClassVar[type[Exception]]  # the base class of the database driver's errors
    event_bytes: ClassVar[str]  # SQL expression for the bytes of an event
    remedy: ClassVar[str]  # advice in the error message when writing fails
    schema = ""  # with a dot, before the names of tables
    own = "TRUE"

    def __init__(self, path: Any) -> None:
        self.path = path
        self.last_seq = 0  # of the last event, pending ones included
        self.last_time = 0.0  # of the last event
        self.compacted = 0  # events up to this number were removed by compaction
        self.n_appended = 0  # approximate bytes of all events appended by this process
        self.is_behind = False  # whether the log may differ from what was appended here, and must be read again
        self.refusal: LogError | None = None  # why this process lost the log, if so; it may be regained
        self.lost: dict[str, int] | None = None  # numbers of the last "acknowledged" and the last "found" event
        self.latest = Batch(is_done=True)  # that of the last appended event; when it is on disk, all are
        self.unreported: LogWriteError | None = None  # of a write in the background, whose calls have returned
        self._access = threading.RLock()  # protects the connection
        self._queueing = threading.Lock()  # protects the pending batch
        self._pending = Batch()
        self._broken: LogWriteError | None = None  # why nothing can be appended until the log is read again
        self._held = threading.local()
        self._background: threading.Thread | None = None
        self._is_closing = threading.Event()

    @abstractmethod
    def _fetch(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        """Return the rows that a statement finds."""

    @abstractmethod
    def _change(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        """Execute a statement for each of several values, within a `_transaction`."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Return a context whose changes happen together or not at all."""

    @abstractmethod
    def _commit(self, lines: list[tuple[Any, ...]]) -> None:
        """Write events, all or none."""

    @abstractmethod
    def _wipe(self) -> None:
        """Remove deleted data from the disk."""

    @abstractmethod
    def _release(self) -> None:
        """Close the connection and give up ownership of the log."""

    @abstractmethod
    def check_owned(self) -> None:
        """Raise LogError if the log is lost or unreachable; set `is_behind` if others have written."""

    def check(self) -> None:
        """Raise LogError if a page or an index is damaged."""

    def _holds(self, batch: Batch) -> bool:
        """Return whether a batch is certainly on disk: Ctrl-C may have come just after the commit."""
        return False

    # Reading.

    def _select(self, columns: str, table: str, where: str = "TRUE", *values: Any) -> list[Any]:
        """Select rows of a table; `where` may contain ORDER BY and LIMIT."""
        try:
            with self._access:
                return self._fetch(f"SELECT {columns} FROM {self.schema}{table} WHERE {self.own} AND {where}", values)
        except self.errors as error:
            raise self._damaged(f"cannot be read ({error})") from error

    def _damaged(self, what: str) -> LogError:
        return LogError(f"{self.path}: {what}; put a backup in its place")

    def _check_version(self, version: int) -> None:
        if version != (ours := self.FORMAT_VERSION):
            remedy = "update onebit" if version > ours else "begin another decider"
            raise LogError(f"{self.path}: has format {version}, and this onebit reads format {ours}: {remedy}")

    @staticmethod
    def about_rows(about: dict[str, Any]) -> list[tuple[str, str]]:
        """Return the rows of a new log's table `about`."""
        text = write(about)
        return [("settings", text), ("checksum", _checksum((), text.encode()).hex())]

    def about(self) -> dict[str, Any]:
        """Return the settings of the decider, and the time when it began."""
        texts = dict(self._select("name, value", "about"))
        try:
            found: dict[str, Any] = parse(texts["settings"])
            is_damaged = dict(self.about_rows(found))["checksum"] != texts["checksum"]
        except (ValueError, TypeError, KeyError) as error:
            raise self._damaged(f"its settings cannot be read ({error!r})") from error
        if is_damaged:
            raise self._damaged("its settings are damaged")
        return found

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events with numbers above `after`, in order; pending ones are written first."""
        self.flush()
        last = max(after, self.compacted)
        while lines := self._lines_after(after):
            for line in lines:
                event = self._unpacked(line)
                after = event.seq
                if after > self.compacted:
                    if after != last + 1:
                        raise self._damaged(f"event {last + 1} is missing")
                    last = after
                yield event

    def _lines_after(self, after: int) -> list[Any]:
        """Return the next stored events; their sizes are queried first, to limit memory."""
        sizes = self._select(f"seq, {self.event_bytes}", "events", "seq > ? ORDER BY seq LIMIT ?", after, _AT_ONCE)
        totals = accumulate(size for _, size in sizes)
        n = max(1, sum(total <= _BYTES_AT_ONCE for total in totals))
        up_to = sizes[:n][-1][0] if sizes else after
        return self._select(self.COLUMNS, "events", "seq > ? AND seq <= ? ORDER BY seq", after, up_to)

    def bytes_after(self, after: int) -> int:
        """Return the bytes of all written events with numbers above `after`."""
        ((n_bytes,),) = self._select(f"coalesce(sum({self.event_bytes}), 0)", "events", "seq > ?", after)
        return int(n_bytes)

    def find(self, **wanted: Any) -> list[Event]:
        """Return the events with a ticket, a kind, or a key, in order; those with a key only if they are written."""
        ((column, value),) = wanted.items()
        if column != "key":
            self.flush()
        return [*map(self._unpacked, self._select(self.COLUMNS, "events", f"{column} = ? ORDER BY seq", value))]

    def guessed(self, ticket: str) -> int:
        """Return the index of the label that was guessed; raises TicketConflictError if that was compacted away."""
        for event in self.find(ticket=ticket):
            if event.kind == Kind.GUESSED:
                return int(event.body["label"])
        raise tickets.TicketConflictError(f"ticket {ticket!r}: its guess was compacted away, and is not known any more")

    def feedback_of(self, ticket: str) -> Feedback:
        """Return the latest feedback of a closed ticket; raises ValueError if there is none."""
        events = self.find(ticket=ticket)
        given = [event.body for event in events if event.kind in (Kind.FEEDBACK, Kind.CORRECTED)]
        if given:
            return given[-1]["correct"], given[-1].get("label")
        if events and events[-1].kind == Kind.CLOSED:
            closed = datetime.fromtimestamp(events[-1].time, UTC)
            raise tickets.TicketConflictError(f"ticket {ticket!r} was closed without an answer at {closed}: too late")
        raise tickets.UnknownTicketError(f"ticket {ticket!r:.80} is none of this decider's, or was compacted away")

    def _unpacked(self, line: tuple[Any, ...]) -> Event:
        """Rebuild an event from a row of the table."""
        seq, time, kind, ticket, text, data, key, check = line
        try:
            if _checksum((seq, time, kind, ticket, key), text.encode(), data) != check:
                raise ValueError(f"event {seq} is damaged: its checksum does not fit")
            return Event(seq, time, kind, ticket, _of_json(text), None if data is None else row_of_bytes(data), key)
        except (ValueError, TypeError, AttributeError) as error:
            raise self._damaged(str(error)) from error

    # Writing.

    def append(self, event: Event) -> None:
        """Queue an event; it is not on disk yet."""
        # Packed at once: a bad event must not affect the rest of the batch.
        seq, time, kind, ticket, body, row, key = event
        kind, text, data = str(kind), to_json(body), None if row is None else row_to_bytes(row)
        check = _checksum((seq, time, kind, ticket, key), text, data)
        line = seq, time, kind, ticket, text.decode(), data, key, check
        with self._queueing:
            if self._broken is not None:
                raise self._broken
            if seq != self.last_seq + 1:
                raise ValueError(f"event {seq} cannot follow event {self.last_seq}")
            self._pending.lines.append(line)
            self.latest = self._pending
            self.n_appended += len(text) + len(data or b"")
            self.last_seq, self.last_time = seq, time

    def settle(self, batch: Batch) -> None:
        """Wait until a batch is on disk: now, at the end of a `batch` block, or not at all if written in background."""
        held = getattr(self._held, "batches", None)
        if held is not None:
            held += [batch] if batch not in held[-1:] else []
        elif self._background is None:
            self.wait(batch)

    def wait(self, batch: Batch) -> None:
        """Wait until a batch and all before it are on disk; raises `LogWriteError` on failure."""
        if not batch.is_done:
            try:
                with self._access:
                    if not batch.is_done:  # another thread may have written it meanwhile
                        self._write_pending()
            except BaseException:
                self.is_behind = True
                raise
        if batch.error is not None:
            raise batch.error

    def flush(self) -> None:
        """Write all pending events."""
        self.wait(self.latest)

    @contextmanager
    def batch(self) -> Iterator[list[Batch]]:
        """Context in which this thread's calls share one wait for the disk, as `Decider.batch` describes."""
        held: list[Batch] = []
        self._held.batches = held
        try:
            yield held
        finally:
            self._held.batches = None
            failed = None
            for batch in held:
                try:
                    self.settle(batch)
                except LogWriteError as error:
                    failed = failed or error
            if failed is not None:
                raise failed

    def write_in_background(self) -> None:
        """Let calls return before their events are on disk; they are written within some 20 milliseconds."""

        def flush_in_turn() -> None:
            while not self._is_closing.wait(_BACKGROUND_SECONDS):
                try:
                    self.flush()
                except LogWriteError as error:
                    self.unreported = error

        self._background = threading.Thread(target=flush_in_turn, name="onebit log", daemon=True)
        self._background.start()

    def raise_unreported(self) -> None:
        """Raise the error of a write in the background, once."""
        error, self.unreported = self.unreported, None
        if error is not None:
            raise error

    def _write_pending(self) -> None:
        batch = self._pending
        try:  # before the swap: if Ctrl-C comes first, the batch fails and later ones must not be written
            with self._queueing:
                self._pending, batch.error = Batch(), self._broken
            if batch.error is None and batch.lines:
                self._commit(batch.lines)
        except BaseException as error:  # also Ctrl-C: the batch must not count as written
            is_known = isinstance(error, (self.errors, LogWriteError))
            if is_known or not self._holds(batch):
                batch.error = self._unwritten(error)
                self._fall_behind(batch.error)
            if not is_known:
                raise
        finally:
            batch.is_done = True

    def _unwritten(self, error: BaseException) -> LogWriteError:
        """Return the error for events that could not be written."""
        if isinstance(error, LogWriteError):
            return error
        return LogWriteError(f"{self.path}: cannot be written ({error!r}); nothing of this happened. {self.remedy}")

    def _fall_behind(self, error: LogWriteError | None = None) -> None:
        """Refuse further appends until the log is read again: a write failed, or another process has written."""
        with self._queueing:
            self.is_behind = True
            self._broken = self._broken or error or LogWriteError(f"{self.path}: {_TAKEN}")

    def discard_pending(self) -> None:
        """Discard events that could not be written, and continue from the last event on disk."""
        with self._access:
            ((last, time),) = self._select("seq, time", "events", "TRUE ORDER BY seq DESC LIMIT 1") or [(0, 0.0)]
            ((self.compacted,),) = self._select("CAST(value AS BIGINT)", "about", "name = 'compacted'") or [(0,)]
            with self._queueing:
                self._pending.error = self._broken or LogWriteError(f"{self.path}: the event was discarded")
                self._pending.is_done = True
                self._pending, self.latest = Batch(), Batch(is_done=True)
                self._broken, self.is_behind = None, False
                self.last_seq, self.last_time = max(last, self.compacted), time

    def close(self) -> None:
        """Write pending events and close the log."""
        self._is_closing.set()
        try:
            if self._broken is None:
                self.flush()
        finally:
            with self._access:
                self._release()
        if self._background is not None:
            self._background.join()
        self.raise_unreported()

    # Snapshots and removal of events.

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the undamaged snapshots, latest first."""
        for seq, n_parts in self._select("seq, count(*)", "snapshots", "TRUE GROUP BY seq ORDER BY seq DESC"):
            try:
                parts = []
                for part in range(n_parts):
                    where = "seq = ? AND part = ?"
                    ((piece, check),) = self._select("content, checksum", "snapshots", where, seq, part)
                    parts += [piece] if _checksum((seq, part, n_parts), piece) == check else []
            except (tickets.UnreachableError, tickets.OwnedError):
                raise
            except (ValueError, TypeError):  # damaged
                continue
            if len(parts) == n_parts:
                yield Snapshot(seq, b"".join(parts))

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Save a snapshot; keep the one before, in case this is damaged, and the one that compacted events are in."""
        seq, content = snapshot
        self.flush()
        parts = [memoryview(content)[start : start + _PART] for start in range(0, max(len(content), 1), _PART)]
        rows = [(seq, part, piece, _checksum((seq, part, len(parts)), piece)) for part, piece in enumerate(parts)]
        try:
            with self._transaction():
                self._delete("snapshots", "seq = ?", [(seq,)])
                self._insert("snapshots", "seq, part, content, checksum", rows)
                kept = self._select("DISTINCT seq", "snapshots", "TRUE ORDER BY seq DESC LIMIT ?", _SNAPSHOTS)
                self._delete("snapshots", "seq < ? AND seq <> ?", [(*kept[-1], self.compacted)])
        except self.errors as error:
            raise LogWriteError(f"{self.path}: the snapshot cannot be written ({error}); events are safe") from error

    def compact(self, keep: Container[str]) -> int:
        """Remove all events up to the latest snapshot, except those of tickets in `keep`; return how many."""
        found = self._select("seq, ticket", "events", "seq <= ?", self._latest_snapshot())
        gone = [seq for seq, ticket in found if ticket is None or ticket not in keep]
        self.erase(gone)
        return len(gone)

    def erase(self, seqs: list[int]) -> None:
        """Remove events, all up to the latest snapshot, by their numbers: the log then has no beginning any more."""
        up_to = self._latest_snapshot()
        try:
            if seqs:
                with self._transaction():
                    self._delete("events", "seq = ?", [(seq,) for seq in seqs])
                    self._delete("snapshots", "seq < ?", [(up_to,)])  # cannot be replayed from
                    self._delete("about", "name = ?", [("compacted",)])
                    self._insert("about", "name, value", [("compacted", str(up_to))])
                self.compacted = up_to
            with self._access:
                self._wipe()
        except self.errors as error:
            raise LogWriteError(f"{self.path}: cannot be compacted ({error}); try again when there is room") from error

    def _insert(self, table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(rows[0]))
        self._change(f"INSERT INTO {self.schema}{table} ({columns}) VALUES ({marks})", rows)

    def _delete(self, table: str, where: str, rows: list[tuple[Any, ...]]) -> None:
        self._change(f"DELETE FROM {self.schema}{table} WHERE {self.own} AND {where}", rows)

    def _latest_snapshot(self) -> int:
        ((up_to,),) = self._select("coalesce(max(seq), 0)", "snapshots")
        return int(up_to)
