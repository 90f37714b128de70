"""The recorder of a decider: it keeps the state consistent with the event log."""

import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar

import numpy as np

from onebit.decider.log import Batch, EventLog, Snapshot, as_rows
from onebit.decider.settings import LATEST_TIME, check_time
from onebit.decider.state import RECENT, Decided, Feedback, State
from onebit.decider.tickets import (
    Event,
    Kind,
    LogWriteError,
    ReplayWarning,
    Shadow,
    Ticket,
    TicketConflictError,
    UnknownTicketError,
    index_of,
    indices_of,
)
from onebit.encoding import record_to_json
from onebit.inputs import brief
from onebit.labels import check_classes
from onebit.typed_json import describe

_LONGEST_KEY = 200
_SECRET_BYTES = 8  # random bytes in a ticket's id
_EVENTS_PER_SNAPSHOT = 50_000
_BYTES_PER_SNAPSHOT = 256 << 20
_WORTH_A_SNAPSHOT = 1_000  # events at closing: fewer are replayed quickly
_BYTES_WORTH_A_SNAPSHOT = 16 << 20

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


def id_of(ticket: str | Ticket) -> str:
    """Return the id of a ticket, or raise ValueError for other objects."""
    name = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(name, str):
        raise ValueError(f"ticket must be a ticket or its id; got {brief(ticket)}")
    return name


def check_feedback(correct: Any) -> bool:
    """Return feedback as a bool, or raise ValueError."""
    if not isinstance(correct, (bool, np.bool_)):
        raise ValueError(f"correct must be True or False; got {brief(correct)}")
    return bool(correct)


class Recorder:
    """The log and the state of a decider, kept consistent.

    Every change is an event, which is applied to the state and appended to the log. If either fails, the state is
    stale, and is rebuilt from the log before the next call returns. Callers of all methods hold `lock`, taken by a
    plain ``with``: in a custom context manager Ctrl-C could leave it locked.
    """

    def __init__(self, log: EventLog, rebuild: Callable[[Snapshot | None], State], clock: Callable[[], float]) -> None:
        self.log, self._rebuild, self._clock = log, rebuild, clock
        self.lock = threading.RLock()
        self.is_stale = self._is_closed = False
        # The log's last time and the monotonic time when the clock was first found behind the log.
        self._set_back: tuple[float, float] | None = None
        self._kept: Snapshot | None = None  # in memory, after a failed write: the next failure needs no full replay
        self._snapshot_seq = self._snapshot_bytes = 0  # the event of the latest, and the log's `n_appended` then
        self._secrets: list[str] = []  # random parts of the next tickets' ids
        self.state = self._replayed()

    def run(self, operation: Callable[_P, _Result], *args: _P.args, **kwargs: _P.kwargs) -> tuple[_Result, Batch]:
        """Return the result of an operation that records events, and the batch to wait for."""
        self.make_ready()
        return operation(*args, **kwargs), self.log.latest

    def make_ready(self, check_owned: bool = False) -> None:
        """Rebuild the state from the log if it is stale, and close tickets past their deadline."""
        log = self.log
        if self._is_closed:
            raise ValueError("the decider is closed; open it again: Decider.open(path)")
        if check_owned:
            log.check_owned()
        if self.is_stale or log.is_behind:
            failed, self.is_stale = log.is_behind, True  # until the replay is complete
            with suppress(LogWriteError):  # raised to the callers that wait for it
                log.flush()
            log.discard_pending()
            self.state = self._replayed()
            self.is_stale = False
            if failed and (self._kept is None or self._kept.seq != self.state.seq):
                self._kept = Snapshot(self.state.seq, self.state.to_bytes())
        elif self._kept is not None and log.last_seq > self._kept.seq + _WORTH_A_SNAPSHOT:
            self._kept = None
        self.snapshot_if_long(_EVENTS_PER_SNAPSHOT, _BYTES_PER_SNAPSHOT)
        if log.unreported is not None:
            log.raise_unreported()
        if (deadline := self.state.settings.deadline) is not None:
            now = self._now()
            while (oldest := next(iter(self.state.open.values()), None)) and oldest.time + deadline <= now:
                self.close_oldest(len(self.state.open) - 1)

    def _replayed(self) -> State:
        kept = self._kept
        if kept is not None and not self.log.compacted <= kept.seq <= self.log.last_seq:
            kept = None  # the log was compacted beyond it, or lost events that it contains
        state = self._rebuild(kept)
        if kept is None:
            n_bytes = self.log.n_appended - self.log.bytes_after(state.restored)
            self._snapshot_seq, self._snapshot_bytes = state.restored, n_bytes
        if state.differences:
            warnings.warn(
                f"this onebit would have guessed otherwise in {state.differences} rounds (first in event "
                f"{state.first_difference}): it, or what it computes with, is not what wrote the log. The guesses and "
                "answers of the log stand",
                ReplayWarning,
                stacklevel=4,
            )
        return state

    def _now(self) -> float:
        """Return the time, never before the last event's; a monotonic clock advances it while the clock is behind."""
        now, last = self._clock(), self.log.last_time
        if type(now) is not float or not 0.0 <= now <= LATEST_TIME:
            now = check_time(now)
        if now >= last:
            self._set_back = None
            return now
        at, since = self._set_back = self._set_back or (last, time.monotonic())
        return max(last, at + time.monotonic() - since)

    def record(
        self, kind: Kind, ticket: str | None, body: dict[str, Any], key: str | None = None, by: Decided | None = None
    ) -> Event:
        """Apply an event to the state and append it to the log."""
        row = None if by is None else by[0].row
        event = Event(self.log.last_seq + 1, self._now(), kind, ticket, body, row, key)
        self.is_stale = True  # until the event is applied and appended: Ctrl-C may come at any moment
        try:
            self.state.apply(event, decided=by)  # first: one that cannot be applied must not be in the log
        except ValueError:
            self.is_stale = kind != Kind.SHADOW  # whose refusal by the learner changes nothing
            raise
        self.log.append(event)
        self.is_stale = kind == Kind.CORRECTED  # which is replayed in the place of the mistaken feedback
        return event

    def guess(self, record: Any, among: Any, key: str | None) -> Ticket:
        """Guess a label for a record; a refused record changes nothing."""
        if key is not None and (before := self._earlier(key, Ticket)) is not None:
            return before
        allowed = None if among is None else indices_of(self.state.indices, among)
        stored = record_to_json(record)
        self.is_stale = True
        try:
            body, decided = self.state.decide(record, stored, allowed)
        except ValueError:
            self.is_stale = False
            raise
        if not self._secrets:  # drawn in blocks, since each system call releases the GIL
            drawn = secrets.token_hex(_SECRET_BYTES * 256)
            self._secrets = [drawn[i : i + 2 * _SECRET_BYTES] for i in range(0, len(drawn), 2 * _SECRET_BYTES)]
        event = self.record(Kind.GUESSED, f"{self.log.last_seq + 1}-{self._secrets.pop()}", body, key, decided)
        self.close_oldest(self.state.settings.max_open)
        return self.state.result_of(event)  # type: ignore[no-any-return]

    def guess_many(self, records: Iterable[Any], among: Any) -> list[Ticket]:
        """Guess a label for each record; if one is refused, close the tickets of the others."""
        tickets: list[Ticket] = []
        try:
            tickets.extend(self.guess(record, among, None) for record in records)
        except ValueError:
            self.close_unanswered(ticket.id for ticket in tickets)
            raise
        return tickets

    def tell(self, ticket: str | Ticket, correct: bool) -> bool:
        """Record feedback; return whether it is new."""
        name, correct = id_of(ticket), check_feedback(correct)
        if name in self.state.open:
            self.record(Kind.FEEDBACK, name, {"correct": correct})
            return True
        if (before := self._feedback_of(name)[0]) != correct:
            was = f"told {before} before, and {correct} now; if {before} was a mistake, say so"
            if before is None:
                was = f"withdrawn, and is closed; if {correct} is known now, say so"
            raise TicketConflictError(f"ticket {name!r} was {was}", "correct", id=name, correct=correct)
        return False

    def label(self, ticket: str | Ticket, label: Any) -> bool:
        """Record the right label as feedback; return whether it is new."""
        name, index = id_of(ticket), index_of(self.state.indices, label)
        if name in self.state.open:
            self.record(Kind.FEEDBACK, name, {"correct": index == self.state.open[name].label, "label": index})
            return True
        correct, known = self._feedback_of(name)
        if known is None and correct:
            known = self._guessed(name)
        if known == index:
            return False
        was = "withdrawn" if correct is None else "told that its label is wrong, and not which is right"
        was = was if known is None else f"told the label {brief(self.state.classes[known])} before"
        raise TicketConflictError(
            f"ticket {name!r} was {was}; to replace that, say so", "correct", id=name, label=label
        )

    def _guessed(self, name: str) -> int:
        """Return the index of the label that was guessed in a closed ticket."""
        return next(int(event.body["label"]) for event in self.log.about_ticket(name) if event.kind == Kind.GUESSED)

    def correct(self, ticket: str | Ticket, correct: bool | None, label: Any = None) -> None:
        """Replace feedback by another bit or by the right label, or withdraw it."""
        name, index = id_of(ticket), None if label is None else index_of(self.state.indices, label)
        if name in self.state.open:
            raise TicketConflictError(f"ticket {name!r} has no answer yet that could be a mistake; use tell")
        before = self._feedback_of(name)
        if index is not None:
            correct = index == self._guessed(name)
        corrects = [event.seq for event in self.log.about_ticket(name) if event.kind == Kind.FEEDBACK]
        if not corrects or corrects[0] <= self.log.compacted:
            raise TicketConflictError(
                f"ticket {name!r}: its answer was compacted into a snapshot, and cannot be corrected"
            )
        if before != (correct, index):
            self.record(Kind.CORRECTED, name, {"correct": correct, "label": index, "corrects": corrects[0]})
            self.log.flush()

    def shadow(self, record: Any, label: Any, feedback: dict[str, Any], key: str | None) -> Shadow:
        """Learn from a decision of the application; a refusal by the learner changes nothing."""
        if key is not None and (before := self._earlier(key, Shadow)) is not None:
            return before
        index = index_of(self.state.indices, label)
        encoded = self.state.encoder.look(record)
        would = int(np.argmax(self.state.learner.probabilities(as_rows(encoded.row))[0]))
        body = {"record": record_to_json(record), "label": index, "would": would, "additions": encoded.additions}
        event = self.record(Kind.SHADOW, None, body | feedback, key, (encoded, ""))
        return self.state.result_of(event)  # type: ignore[no-any-return]

    def close_oldest(self, most: int) -> None:
        """Close the oldest tickets until at most `most` are open."""
        while len(self.state.open) > most:
            correct = False if self.state.settings.silence == "wrong" else None
            self.record(Kind.CLOSED, next(iter(self.state.open)), {"correct": correct})

    def close_unanswered(self, names: Iterable[str]) -> None:
        """Close tickets without feedback, which counts as nothing whatever the settings say."""
        for name in names:
            if name in self.state.open:
                self.record(Kind.CLOSED, name, {"correct": None})

    def add_class(self, label: Any) -> None:
        """Add a label to the classes."""
        check_classes([*self.state.classes, label])
        self.record(Kind.CLASS_ADDED, None, {"label": describe(label)})

    def change(self, settings: dict[str, Any]) -> None:
        """Change settings from now on."""
        others = self.state.settings.changed(settings).changeable()
        self.record(Kind.CHANGED, None, {name: others[name] for name in settings})
        self.close_oldest(self.state.settings.max_open)

    def compact(self) -> int:
        """Remove all events covered by a new snapshot but those of open tickets; return how many."""
        self.snapshot()
        return self.log.compact(self.state.open)

    def forget(self, names: set[str], find: Callable[[Iterable[Event]], Iterable[Event]] | None) -> int:
        """Erase the events of tickets by name, and of those that a function finds; return how many."""
        alone = []  # shadow decisions have no ticket
        for event in () if find is None else find(self.log.events()):
            names.update([] if event.ticket is None else [event.ticket])
            alone += [event.seq] if event.ticket is None else []
        self.close_unanswered(name for name in list(self.state.open) if name in names)
        self.snapshot()
        gone = alone + [event.seq for name in sorted(names) for event in self.log.about_ticket(name)]
        self.state.requests.clear()  # the remaining ones are found in the log
        self.state.feedback.clear()
        self.log.erase(gone)
        return len(gone)

    def _earlier(self, key: str, wanted: type[_Result]) -> _Result | None:
        """Return the result of an earlier request with that key, if there is one."""
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
            raise ValueError(f"key must be a text of at most {_LONGEST_KEY} characters; got {brief(key)}")
        before: Any = self.state.requests.get(key)
        if before is None:
            if len(self.log.latest.lines) >= RECENT:  # it may be pending, and forgotten
                self.log.flush()
            event = self.log.with_key(key)
            before = None if event is None else self.state.result_of(event)
        if before is None or isinstance(before, wanted):
            return before
        raise ValueError(
            f"key {key!r} names a request of another kind, a {type(before).__name__.lower()}; choose another"
        )

    def _feedback_of(self, name: str) -> Feedback:
        """Return the latest feedback of a closed ticket; raises ValueError if there is none."""
        if name in self.state.feedback:
            return self.state.feedback[name]
        events = self.log.about_ticket(name)
        given = [event.body for event in events if event.kind in (Kind.FEEDBACK, Kind.CORRECTED)]
        if given:
            return given[-1]["correct"], given[-1].get("label")
        if events and events[-1].kind == Kind.CLOSED:
            closed = datetime.fromtimestamp(events[-1].time, UTC)
            raise TicketConflictError(f"ticket {name!r} was closed without an answer at {closed}: too late")
        raise UnknownTicketError(f"ticket {name!r:.80} is none of this decider's, or was compacted away")

    def close(self) -> None:
        """Close the log, after writing a snapshot if a replay would be long."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if not self.is_stale and not self.log.is_behind:
                self.log.flush()  # here, so that a failure is raised
                self.snapshot_if_long(_WORTH_A_SNAPSHOT, _BYTES_WORTH_A_SNAPSHOT)
        finally:
            self.log.close()

    def snapshot(self) -> None:
        """Write a snapshot of the state."""
        self.log.save_snapshot(Snapshot(self.state.seq, self.state.to_bytes()))
        self._snapshot_seq, self._snapshot_bytes = self.state.seq, self.log.n_appended

    def snapshot_if_long(self, n_events: int, n_bytes: int) -> None:
        """Write a snapshot if a replay would read so many events or bytes; a failure only warns."""
        log = self.log
        if log.last_seq - self._snapshot_seq < n_events and log.n_appended - self._snapshot_bytes < n_bytes:
            return
        try:
            self.snapshot()
        except LogWriteError:
            pass  # raised to the callers that wait for those events
        except Exception as error:
            warnings.warn(
                f"no snapshot could be written ({error!r:.200}): events are safe, and opening replays them",
                RuntimeWarning,
                stacklevel=4,
            )
        # Also after a failure: the next is tried after the usual interval.
        self._snapshot_seq, self._snapshot_bytes = self.state.seq, log.n_appended
