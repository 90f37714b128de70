"""The state of a decider, and the recorder that keeps it consistent with the event log."""

import secrets
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar

import numpy as np

from onebit.decider.log import Batch, EventLog, Snapshot, as_rows, row_of_bytes, row_to_bytes
from onebit.decider.settings import LATEST_TIME, Settings, check_time
from onebit.decider.tickets import (
    Event,
    Kind,
    LogWriteError,
    Moment,
    Open,
    ReplayWarning,
    Shadow,
    Ticket,
    TicketConflictError,
    UnknownTicketError,
    index_of,
    indices_of,
)
from onebit.encoding import Encoded, Encoder, record_to_json
from onebit.engine.randomness import decider_number, uniform_label
from onebit.inputs import brief
from onebit.learners.saving import from_bytes, to_bytes
from onebit.learners.tickets import TICKET_BYTES
from onebit.typed_json import Trusted, describe, parse, restore, write

_HEAD = 8  # bytes for the length of a snapshot's header
_LONGEST_KEY = 200
_MOST_MOMENTS = 512  # of the learning curve; beyond it every second one is dropped and the stride doubles
_SECRET_BYTES = 8  # random bytes in a ticket's id
_RECENT = 10_000  # requests and feedback kept in memory, so that the log need not be queried
_EVENTS_PER_SNAPSHOT = 50_000
_BYTES_PER_SNAPSHOT = 256 << 20
_WORTH_A_SNAPSHOT = 1_000  # events at closing: fewer are replayed quickly
_BYTES_WORTH_A_SNAPSHOT = 16 << 20

_P = ParamSpec("_P")
_Result = TypeVar("_Result")
Corrected = dict[str, bool | None]  # feedback by ticket that replaces the recorded one; None if withdrawn
Decided = tuple[Encoded, str]  # an encoded record, and the learner's ticket of the guess for it

# What a snapshot holds as it is.
_PLAIN = "counts n_guesses n_answered n_wrong n_closed n_shadows stride seq is_altered differences first_difference"


class State:
    """Encoder, learner, open tickets and counts of a decider. It changes only by events, identically in a replay."""

    def __init__(self, settings: Settings, trusted: Any = ()) -> None:
        self.settings = settings  # those in force
        self._trusted = trusted
        self.learner = settings.new_learner(trusted)
        self.learner.max_open_tickets = settings.max_open + 1
        # Learners with a `scale` parameter scale columns themselves.
        self.encoder = Encoder(settings.kinds, scale="scale" not in self.learner.get_params(deep=False))
        self.open: dict[str, Open] = {}
        self.row_bytes = 0  # of open tickets whose rows are kept here; the learner counts the others
        self.latest_row: Any = None  # of the latest ticket
        self.classes: list[Any] = list(settings.classes)
        self.indices: dict[Any, int] = {label: i for i, label in enumerate(self.classes)}
        self.counts = [[0, 0, 0] for _ in self.classes]  # of each class: guessed, right, wrong
        self.n_guesses = self.n_answered = self.n_wrong = self.n_closed = self.n_shadows = 0
        self.curve: list[Moment] = []  # evenly spaced by feedback
        self.stride = 1
        self.seq = 0  # of the last applied event
        self.restored = 0  # the last event of the snapshot it was loaded from
        self.is_altered = False  # by corrected feedback: since then the learner differs from the one that guessed
        self.differences = self.first_difference = 0  # guesses in the log that the replay made differently
        self.requests: OrderedDict[str, Ticket | Shadow] = OrderedDict()  # the latest results by key
        self.feedback: OrderedDict[str, bool | None] = OrderedDict()  # the latest by ticket

    def decide(self, record: Any, stored: Any, allowed: list[int] | None) -> tuple[dict[str, Any], Decided]:
        """Guess a label for a record, from some indices or all; return the event's body and what applies it."""
        encoded = self.encoder.look(record)
        row: Any = encoded.row
        among = None if allowed is None else [self.classes[i] for i in allowed]
        floor = self.settings.exploration_floor
        probabilities = self.learner.probabilities(as_rows(row), among)[0] if floor > 0.0 else None
        guess = self.learner.guess(row, among)
        label, propensity = guess.index, guess.propensity
        if probabilities is not None:
            indices = range(len(self.classes)) if allowed is None else allowed
            number = decider_number(self.settings.seed, guess.round)
            if number < floor:
                label = int(indices[uniform_label(number / floor, len(indices))])
            propensity = (1.0 - floor) * float(probabilities[label]) + floor / len(indices)
        body = {"record": stored, "label": label, "wanted": guess.index, "propensity": propensity, "among": allowed}
        body["additions"] = encoded.additions
        return body, (encoded, guess.id)

    def apply(self, event: Event, corrected: Corrected | None = None, decided: Decided | None = None) -> None:
        """Apply an event; `decided` comes from `decide` for a new guess, and is computed again for one of the log."""
        if event.kind == Kind.GUESSED:
            self._open_ticket(event, decided)
        elif event.kind in (Kind.FEEDBACK, Kind.CLOSED):
            self._close_ticket(event, corrected or {})
        elif event.kind == Kind.SHADOW:
            self._learn_from_shadow(event)
        elif event.kind == Kind.CLASS_ADDED:
            self._add_class(restore(event.body["label"], Trusted(self._trusted)))
        elif event.kind == Kind.CHANGED:
            self.settings = self.settings.changed(event.body)
            self.learner.max_open_tickets = self.settings.max_open + 1
        elif event.kind not in (Kind.OPENED, Kind.CORRECTED):
            raise ValueError(f"{event.kind!r:.80} is no kind of event")
        if event.key is not None:
            _remember(self.requests, event.key, self.result_of(event))
        self.seq = event.seq

    def _open_ticket(self, event: Event, decided: Decided | None) -> None:
        """Open the ticket of a guess; the learner keeps the row if the label is its own guess."""
        row: Any = event.row
        body, ticket, label = event.body, str(event.ticket), event.body["label"]
        is_own = label == body["wanted"]
        if decided is None:  # a guess of the log: the learner guesses again
            guess = self.learner.guess(row, None if body["among"] is None else [self.classes[i] for i in body["among"]])
            decided = Encoded(row, body["additions"]), guess.id
            is_same = guess.index == body["wanted"]
            is_own = is_own and is_same
            if not is_same and not self.is_altered:
                self.differences += 1
                self.first_difference = self.first_difference or event.seq
        encoded, own = decided
        self.encoder.take(encoded)
        if is_own:
            self.open[ticket] = Open(event.seq, event.time, label, own, body["propensity"], None)
        else:
            self.open[ticket] = Open(event.seq, event.time, label, None, body["propensity"], row)
            self.row_bytes += TICKET_BYTES + row.nbytes
            self.learner.drop(own)
        self.latest_row = row
        self.counts[label][0] += 1
        self.n_guesses += 1

    def _close_ticket(self, event: Event, corrected: Corrected) -> None:
        ticket, correct = str(event.ticket), event.body["correct"]
        if event.kind == Kind.CLOSED:
            self.n_closed += 1
        else:
            if ticket in corrected:
                correct, self.is_altered = corrected[ticket], True
            _remember(self.feedback, ticket, correct)
        _, _, label, own, propensity, row = self.open.pop(ticket)
        if row is not None:
            self.row_bytes -= TICKET_BYTES + row.nbytes
        if correct is not None:
            self.count_feedback(label, correct, event.time)
        if own is not None and correct is None:
            self.learner.drop(own)
        elif own is not None:
            self.learner.tell(own, correct)
        elif correct is not None:
            self.learner.learn_from(as_rows(row), [self.classes[label]], correct, propensity)

    def count_feedback(self, label: int, correct: bool, time: float) -> None:
        """Count feedback, for the totals and the learning curve."""
        self.counts[label][1 if correct else 2] += 1
        self.n_answered += 1
        self.n_wrong += not correct
        if self.n_answered % self.stride == 0:
            self.curve.append(Moment(time, self.n_guesses, self.n_answered, self.n_wrong))
            if len(self.curve) > _MOST_MOMENTS:
                self.stride *= 2
                self.curve = [each for each in self.curve if each.answered % self.stride == 0]

    def _learn_from_shadow(self, event: Event) -> None:
        row: Any = event.row
        body = event.body
        if body["correct"] is not None:  # first: a refusal by the learner must change nothing
            label = self.classes[body["label"]]
            self.learner.learn_from(as_rows(row), [label], body["correct"], body["propensity"])
        self.encoder.take(Encoded(row, body["additions"]))
        self.n_shadows += 1

    def _add_class(self, label: Any) -> None:
        self.indices[label] = len(self.classes)
        self.classes.append(label)
        self.counts.append([0, 0, 0])
        if self.learner._started:
            self.learner.add_class(label)
        else:
            self.learner.set_params(classes=list(self.classes))

    def result_of(self, event: Event) -> Any:
        """Return what the call of a guess or shadow event returns."""
        body = event.body
        if event.ticket is None:
            return Shadow(self.classes[body["would"]], bool(body["would"] == body["label"]))
        time = datetime.fromtimestamp(event.time, UTC)
        return Ticket(event.ticket, self.classes[body["label"]], body["propensity"], time)

    def to_bytes(self) -> bytes:
        """Serialize the state."""
        header = {name: getattr(self, name) for name in _PLAIN.split()} | {
            "settings": self.settings.changeable(),
            "encoder": self.encoder.state(),
            "classes": describe(self.classes),
            "open": [
                [ticket, *each[:5], None if each.row is None else row_to_bytes(each.row).hex()]
                for ticket, each in self.open.items()
            ],
            "curve": self.curve,
        }
        text = write(header).encode()
        return b"".join((len(text).to_bytes(_HEAD, "little"), text, to_bytes(self.learner)))

    @classmethod
    def of_bytes(cls, settings: Settings, content: bytes, trusted: Any = ()) -> "State":
        """Rebuild a state from the result of `to_bytes`; raises ValueError for other bytes."""
        end = _HEAD + int.from_bytes(content[:_HEAD], "little")
        state, header = cls(settings, trusted), parse(content[_HEAD:end])
        try:
            vars(state).update({name: header[name] for name in _PLAIN.split()})
            state.settings = settings.changed(header["settings"])
            state.learner = from_bytes(content[end:], "the snapshot's learner", trusted)
            state.encoder = Encoder.from_state(header["encoder"])
            state.classes = restore(header["classes"], Trusted(trusted))
            state.indices = {label: i for i, label in enumerate(state.classes)}
            for ticket, seq, time, label, own, propensity, data in header["open"]:
                row = None if data is None else row_of_bytes(bytes.fromhex(data))
                state.open[ticket] = Open(seq, time, label, own, propensity, row)
                state.row_bytes += 0 if row is None else TICKET_BYTES + row.nbytes
            state.curve = [Moment(*each) for each in header["curve"]]
            state.restored = state.seq
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the snapshot is none ({error!r})") from error
        return state


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


def _remember(recent: "OrderedDict[str, Any]", name: str, value: Any) -> None:
    recent[name] = value
    if len(recent) > _RECENT:
        recent.popitem(last=False)


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
        if (before := self._feedback_of(name)) != correct:
            was = f"told {before} before, and {correct} now; if {before} was a mistake, say so"
            if before is None:
                was = f"withdrawn, and is closed; if {correct} is known now, say so"
            raise TicketConflictError(f"ticket {name!r} was {was}", "correct", id=name, correct=correct)
        return False

    def correct(self, ticket: str | Ticket, correct: bool | None) -> None:
        """Replace feedback, or withdraw it."""
        name = id_of(ticket)
        if name in self.state.open:
            raise TicketConflictError(f"ticket {name!r} has no answer yet that could be a mistake; use tell")
        before = self._feedback_of(name)
        corrects = [event.seq for event in self.log.about_ticket(name) if event.kind == Kind.FEEDBACK]
        if not corrects or corrects[0] <= self.log.compacted:
            raise TicketConflictError(
                f"ticket {name!r}: its answer was compacted into a snapshot, and cannot be corrected"
            )
        if before != correct:
            self.record(Kind.CORRECTED, name, {"correct": correct, "corrects": corrects[0]})
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

    def _earlier(self, key: str, wanted: type[_Result]) -> _Result | None:
        """Return the result of an earlier request with that key, if there is one."""
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
            raise ValueError(f"key must be a text of at most {_LONGEST_KEY} characters; got {brief(key)}")
        before: Any = self.state.requests.get(key)
        if before is None:
            if len(self.log.latest.lines) >= _RECENT:  # it may be pending, and forgotten
                self.log.flush()
            event = self.log.with_key(key)
            before = None if event is None else self.state.result_of(event)
        if before is None or isinstance(before, wanted):
            return before
        raise ValueError(
            f"key {key!r} names a request of another kind, a {type(before).__name__.lower()}; choose another"
        )

    def _feedback_of(self, name: str) -> bool | None:
        """Return the feedback of a closed ticket, None if withdrawn; raises ValueError if there is none."""
        if name in self.state.feedback:
            return self.state.feedback[name]
        events = self.log.about_ticket(name)
        given = [event.body["correct"] for event in events if event.kind in (Kind.FEEDBACK, Kind.CORRECTED)]
        if given:
            return given[-1]  # type: ignore[no-any-return]
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
