"""The state of a decider, which follows from the events of its log, and the recorder of events."""

import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from onebit.asking import Decision
from onebit.decider import tickets
from onebit.decider.log import Batch, EventLog, Snapshot
from onebit.decider.settings import LATEST_TIME, Settings
from onebit.decider.tickets import Event, Feedback, Kind, LogError, LogWriteError, Moment, Shadow, Ticket
from onebit.encoding import Encoded, Encoder, record_to_json
from onebit.engine.randomness import DECIDER, random_numbers, uniform_label
from onebit.game import TICKET_BYTES
from onebit.inputs import brief
from onebit.typed_json import Trusted, restore

if TYPE_CHECKING:
    from onebit.decider.replay import History

_MOST_MOMENTS = 512  # of the learning curve; beyond it every second one is dropped and the stride doubles
_MOST_RANKED = 20  # labels in a ticket's ranking
_RECENT = 10_000  # requests and feedback kept in memory, so that the log need not be queried
_MOST_SHOWN = 100  # labels in an error message, which is cut to 200 characters
_LONGEST_KEY = _LONGEST_LABEL = 200
_EVENTS_PER_SNAPSHOT = 50_000
_BYTES_PER_SNAPSHOT = 256 << 20
_WORTH_A_SNAPSHOT = 1_000  # events at closing: fewer are replayed quickly
_BYTES_WORTH_A_SNAPSHOT = 16 << 20

_KEPT = ("label", "propensity", "confidence", "ranking")  # of the event of an open ticket

_Result = TypeVar("_Result")
_Corrected = dict[str, Feedback]  # by ticket, what replaces the recorded feedback
_Decided = tuple[Encoded, str]  # an encoded record, and the learner's ticket of the guess for it


class _Open(NamedTuple):
    """An open ticket: its guess event's number, time, and `_KEPT` of its body."""

    seq: int
    time: float
    body: dict[str, Any]
    ask: bool
    decision: Decision | None  # what the rule of asking must know when the answer comes
    own: str | None  # the learner's ticket; None if the label was not chosen by the learner
    row: Any = None  # the encoded record, if the label was not chosen by the learner


class State:
    """Encoder, learner, open tickets and counts of a decider. It changes only by events, identically in a replay."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings  # those in force
        self.learner = settings.new_learner()
        self.learner.max_open_tickets = settings.max_open + 1
        # Learners with a `scale` parameter scale columns themselves.
        self.encoder = Encoder(settings.kinds, scale="scale" not in self.learner.get_params(deep=False))
        self.open: OrderedDict[str, _Open] = OrderedDict()  # a dict would look long for its oldest
        self.row_bytes = 0  # of open tickets whose rows are kept here; the learner counts the others
        self.latest_row: Any = None  # of the latest ticket
        self.classes: list[Any] = list(settings.classes)
        self.indices: dict[Any, int] = {label: i for i, label in enumerate(self.classes)}
        self.counts = [[0, 0, 0] for _ in self.classes]  # of each class: guessed, right, wrong
        self.n_guesses = self.n_closed = self.n_shadows = 0
        self.n_answered = self.n_wrong = 0  # without those that were asked about
        self.n_asked = self.n_asked_answered = self.n_suggestions_right = 0
        self.asking = settings.new_asking()
        self.curve: list[Moment] = []  # evenly spaced by feedback
        self.stride = 1
        self.seq = 0  # of the last applied event
        self.restored = 0  # the last event of the snapshot it was loaded from
        self.is_altered = False  # by corrected feedback: since then the learner differs from the one that guessed
        self.differences = self.first_difference = 0  # guesses in the log that the replay made differently
        self.requests: OrderedDict[str, Ticket | Shadow] = OrderedDict()  # the latest results by key
        self.feedback: OrderedDict[str, Feedback] = OrderedDict()  # the latest by ticket

    def index_of(self, label: Any) -> int:
        """Return the index of a label among the classes; raises ValueError for unknown ones."""
        if (index := self._find(label)) is None:
            raise self._unknown_label_error("label must be one of", label, label)
        return index

    def indices_of(self, among: Any) -> list[int]:
        """Return the sorted indices of allowed labels; raises ValueError for unknown ones."""
        if isinstance(among, (str, bytes)) or not isinstance(among, Collection):
            raise ValueError(f"among must be a list of labels; got {brief(among)}")
        if len(among) > (n := len(self.classes)):
            raise ValueError(f"among must list some of the {n} classes; got {len(among)} labels. Name each label once")
        found = {self._find(label): label for label in among}
        if None in found or not found:
            raise self._unknown_label_error("among must list some of the classes,", among, found.get(None))
        return sorted(index for index in found if index is not None)

    def _find(self, label: Any) -> int | None:
        with suppress(TypeError):  # not hashable
            return self.indices.get(label)
        return None

    def _unknown_label_error(self, wanted: str, got: Any, label: Any) -> tickets.AdvisedError:
        """Return the error for an unknown label; the remedy is to add it, if it is a short text or number."""
        problem = f"{wanted} {self.classes[:_MOST_SHOWN]!r:.200}; got {brief(got)}"
        if not isinstance(label, (str, int)) or len(str(label)) > _LONGEST_LABEL:
            return tickets.AdvisedError(problem)
        return tickets.AdvisedError(f"{problem}. A new label can join", "add_class", label=label)

    def decide(self, record: Any, allowed: list[int] | None) -> tuple[dict[str, Any], _Decided]:
        """Guess a label for a record, from some indices or all; return the event's body and what applies it."""
        stored, encoded = record_to_json(record), self.encoder.look(record)
        row: Any = encoded.row
        among = None if allowed is None else [self.classes[i] for i in allowed]
        floor = self.settings.exploration_floor
        probabilities = self.learner.probabilities(_as_rows(row), among)[0] if floor > 0.0 else None
        guess = self.learner.guess(row, among)
        label, propensity = guess.index, guess.propensity
        if probabilities is not None:
            indices = range(len(self.classes)) if allowed is None else allowed
            number = float(random_numbers(self.settings.seed, DECIDER, guess.round).random())
            if number < floor:
                label = int(indices[uniform_label(number / floor, len(indices))])
            propensity = (1.0 - floor) * float(probabilities[label]) + floor / len(indices)
        # The confidence is that of the learner's own guess: a label drawn in its place has none.
        confidence = guess.confidence if label == guess.index else None
        best = np.argsort(-guess.scores, kind="stable")[:_MOST_RANKED].tolist()
        body = {"record": stored, "label": label, "wanted": guess.index, "propensity": propensity}
        body |= {"among": allowed, "n_classes": len(self.classes), "additions": encoded.additions}
        body |= {"confidence": confidence, "ranking": [i for i in best if guess.scores[i] > -np.inf]}
        if self.asking is not None:
            body["decision"] = self.asking.propose(confidence)
        return body, (encoded, guess.id)

    def apply(self, event: Event, corrected: _Corrected | None = None, decided: _Decided | None = None) -> None:
        """Apply an event; `decided` comes from `decide` for a new guess, and is computed again for one of the log."""
        body, row = event.body, event.row
        if event.kind == Kind.GUESSED:
            self._open_ticket(event, decided)
        elif event.kind in (Kind.FEEDBACK, Kind.CLOSED):
            self._close_ticket(event, corrected or {})
        elif event.kind == Kind.SHADOW:
            if body["correct"] is not None:  # first: a refusal by the learner must change nothing
                label = self.classes[body["label"]]
                self.learner.learn_from(_as_rows(row), [label], body["correct"], body["propensity"])
            self.encoder.take(Encoded(row, body["additions"]))  # type: ignore[arg-type]
            self.n_shadows += 1
        elif event.kind == Kind.CLASS_ADDED:
            self._add_class(body["label"])
        elif event.kind == Kind.CHANGED:
            self._change_settings(body)
        elif event.kind not in (Kind.OPENED, Kind.CORRECTED):
            raise ValueError(f"{event.kind!r:.80} is no kind of event")
        if event.key is not None:
            _remember(self.requests, event.key, self.result_of(event))
        self.seq = event.seq

    def _open_ticket(self, event: Event, decided: _Decided | None) -> None:
        """Open the ticket of a guess; the learner keeps the row if the label is its own guess."""
        row: Any = event.row
        body, label = event.body, event.body["label"]
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
        if not is_own:
            self.row_bytes += TICKET_BYTES + row.nbytes
            self.learner.drop(own)
        decision = Decision(*body["decision"]) if "decision" in body else None
        if decision is not None and self.asking is not None:
            self.asking.open(decision)
        ask, kept = decision is not None and decision.ask, {name: body[name] for name in _KEPT}
        held = (own,) if is_own else (None, row)
        self.open[str(event.ticket)] = _Open(event.seq, event.time, kept, ask, decision, *held)
        self.latest_row = row
        self.counts[label][0] += 1
        self.n_guesses += 1
        self.n_asked += ask

    def reopen(self, name: str, values: list[Any], row: Any) -> None:
        """Add a ticket that was open in a snapshot."""
        opened = _Open(*values)
        decision = None if opened.decision is None else Decision(*opened.decision)
        self.open[name] = opened._replace(row=row, decision=decision)
        self.row_bytes += 0 if row is None else TICKET_BYTES + row.nbytes

    def _change_settings(self, changes: dict[str, Any]) -> None:
        """Change settings; with another limit on asking its count begins anew, without the tickets open now."""
        before, self.settings = self.settings, self.settings.changed(changes)
        self.learner.max_open_tickets = self.settings.max_open + 1
        limits = self.settings.wrong_at_most, self.settings.ask_at_most
        if limits != (before.wrong_at_most, before.ask_at_most):
            self.asking = self.settings.new_asking()
            self.open = OrderedDict((name, each._replace(decision=None)) for name, each in self.open.items())

    def _close_ticket(self, event: Event, corrected: _Corrected) -> None:
        ticket, correct, truth = str(event.ticket), event.body["correct"], event.body.get("label")
        if event.kind == Kind.CLOSED:
            self.n_closed += 1
        else:
            if ticket in corrected:
                (correct, truth), self.is_altered = corrected[ticket], True
            _remember(self.feedback, ticket, (correct, truth))
        closed = self.open.pop(ticket)
        label, own, row, decision = closed.body["label"], closed.own, closed.row, closed.decision
        if event.kind == Kind.CLOSED and closed.ask:
            correct = None  # the label was not decided on: silence says nothing about it
        if row is not None:
            self.row_bytes -= TICKET_BYTES + row.nbytes
        if correct is not None:
            self._count_feedback(label, correct, event.time, closed.ask)
        if self.asking is not None and decision is not None:
            self.asking.drop(decision) if correct is None else self.asking.answer(decision, correct)
        if own is not None and correct is None:
            self.learner.drop(own)
        elif own is not None and truth is not None:
            self.learner.label(own, self.classes[truth])
        elif own is not None:
            self.learner.tell(own, correct)
        elif correct is not None:
            self.learner.learn_from(_as_rows(row), [self.classes[label]], correct, closed.body["propensity"])
            if truth is not None and not correct and self.learner._state.learns_from_logs():
                self.learner.learn_labels(_as_rows(row), [self.classes[truth]])

    def _count_feedback(self, label: int, correct: bool, time: float, ask: bool) -> None:
        """Count feedback, for the totals and the learning curve; on a suggestion it is counted apart."""
        if ask:
            self.n_asked_answered += 1
            self.n_suggestions_right += correct
        else:
            self.counts[label][1 if correct else 2] += 1
            self.n_answered += 1
            self.n_wrong += not correct
        if (self.n_answered + self.n_asked_answered) % self.stride == 0:
            self.curve.append(self.moment(time))
            if len(self.curve) > _MOST_MOMENTS:
                self.stride *= 2
                self.curve = self.curve[1::2]  # each is one stride after the one before

    def moment(self, time: float) -> Moment:
        """Return the counts as a point of the learning curve."""
        return Moment(time, self.n_guesses, self.n_answered, self.n_wrong, self.n_asked)

    def _add_class(self, described: Any) -> None:
        label = restore(described, Trusted(self.settings.trusted))
        self.indices[label] = len(self.classes)
        self.classes.append(label)
        self.counts.append([0, 0, 0])
        if self.learner._started:
            self.learner.add_class(label)
        else:
            self.learner.set_params(classes=list(self.classes))

    def result_of(self, event: Event) -> Any:
        """Return what the call of a guess or shadow event returns."""
        if event.ticket is None:
            return Shadow(self.classes[event.body["would"]], bool(event.body["would"] == event.body["label"]))
        ask = bool(event.body["decision"][0]) if "decision" in event.body else False
        return self.ticket_of(event.ticket, event.time, event.body, ask)

    def ticket_of(self, name: str, time: float, body: dict[str, Any], ask: bool) -> Ticket:
        """Return a ticket as callers get it."""
        at, ranking = datetime.fromtimestamp(time, UTC), tuple(self.classes[i] for i in body["ranking"])
        return Ticket(name, self.classes[body["label"]], body["propensity"], at, body["confidence"], ask, ranking)


def _as_rows(row: Any) -> Any:
    """Return one encoded record as a matrix of one row."""
    return row[None] if isinstance(row, np.ndarray) and row.ndim == 1 else row


def _remember(recent: "OrderedDict[str, Any]", name: str, value: Any) -> None:
    recent[name] = value
    if len(recent) > _RECENT:
        recent.popitem(last=False)


class Recorder:
    """Applies events to the state of a decider, and appends them to its log. Callers hold the decider's lock.

    If either fails the state is stale, and is rebuilt from the log before the next call.
    """

    def __init__(self, log: EventLog, history: "History", clock: Callable[[], float]) -> None:
        self.log, self._history, self._clock = log, history, clock
        self._behind: tuple[float, float] | None = None  # the log's and a monotonic time when the clock fell behind
        self._is_stale = False
        self._kept: Snapshot | None = None  # in memory, after a failed write: the next failure needs no full replay
        self._snapshot_seq = self._snapshot_bytes = 0  # the event of the latest, and the log's `n_appended` then
        self.state = self._replayed()

    @property
    def is_stale(self) -> bool:
        """Whether the state may not be what the log says."""
        return self._is_stale or self.log.is_behind

    def run(self, operation: Callable[..., _Result], *args: Any) -> tuple[_Result, Batch]:
        """Return the result of an operation that records events, and the batch to wait for."""
        self.make_ready()
        return operation(*args), self.log.latest

    def make_ready(self) -> None:
        """Rebuild the state from the log if it is stale, and close tickets past their deadline."""
        if self.is_stale:
            failed, self._is_stale = self.log.is_behind, True  # until the replay is complete
            with suppress(LogWriteError):  # raised to the callers that wait for it
                self.log.flush()
            self.log.discard_pending()
            self.state = self._replayed()
            self._is_stale = False
            if failed and (self._kept is None or self._kept.seq != self.state.seq):
                self._kept = Snapshot(self.state.seq, self._history.to_bytes(self.state))
        self._snapshot_if_long(_EVENTS_PER_SNAPSHOT, _BYTES_PER_SNAPSHOT)
        if self.log.unreported is not None:
            self.log.raise_unreported()
        if (deadline := self.state.settings.deadline) is not None:
            now = self._now()
            while (oldest := next(iter(self.state.open.values()), None)) and oldest.time + deadline <= now:
                self.close_oldest(len(self.state.open) - 1)

    def _replayed(self) -> State:
        kept = None if self._kept is None or self._kept.seq < self.log.compacted else self._kept
        state = self._history.replay(kept)
        if kept is None:
            n_bytes = self.log.n_appended - self.log.bytes_after(state.restored)
            self._snapshot_seq, self._snapshot_bytes = state.restored, n_bytes
        if state.differences:
            message = "this onebit, or what it computes with, would have guessed otherwise in "
            message += f"{state.differences} rounds (first in event {state.first_difference})"
            warnings.warn(f"{message}. The guesses and answers of the log stand", tickets.ReplayWarning, stacklevel=4)
        return state

    def snapshot(self) -> None:
        """Write a snapshot of the state."""
        # First, so that after a failure the next is tried after the usual interval.
        self._snapshot_seq, self._snapshot_bytes = self.state.seq, self.log.n_appended
        self.log.save_snapshot(Snapshot(self.state.seq, self._history.to_bytes(self.state)))
        self._kept = None

    def finish(self) -> None:
        """Write what is pending, and a snapshot if a replay would be long."""
        if not self.is_stale:
            self.log.flush()  # here, so that a failure is raised
            self._snapshot_if_long(_WORTH_A_SNAPSHOT, _BYTES_WORTH_A_SNAPSHOT)

    def _snapshot_if_long(self, n_events: int, n_bytes: int) -> None:
        """Write a snapshot if a replay would read so many events or bytes; a failure only warns."""
        log = self.log
        if log.last_seq - self._snapshot_seq < n_events and log.n_appended - self._snapshot_bytes < n_bytes:
            return
        try:
            self.snapshot()
        except LogWriteError:
            pass  # raised to the callers that wait for those events
        except Exception as error:
            message = f"no snapshot could be written ({error!r:.200}): events are safe, and opening replays them"
            warnings.warn(message, RuntimeWarning, stacklevel=4)

    def _now(self) -> float:
        """Return the time, never before the last event's; a monotonic clock advances it while the clock is behind."""
        now, last = self._clock(), self.log.last_time
        if type(now) is not float or not 0.0 <= now <= LATEST_TIME:
            now = Settings.check_time(now)
        if now >= last:
            self._behind = None
            return now
        at, since = self._behind = self._behind or (last, time.monotonic())
        return max(last, at + time.monotonic() - since)

    def record(
        self, kind: Kind, ticket: str | None, body: dict[str, Any], key: str | None = None, by: _Decided | None = None
    ) -> Event:
        """Apply an event to the state and append it to the log."""
        row = None if by is None else by[0].row
        event = Event(self.log.last_seq + 1, self._now(), kind, ticket, body, row, key)
        self._is_stale = True  # until the event is applied and appended: Ctrl-C may come at any moment
        try:
            self.state.apply(event, decided=by)  # first: one that cannot be applied must not be in the log
        except ValueError:
            self._is_stale = kind != Kind.SHADOW  # whose refusal by the learner changes nothing
            raise
        self.log.append(event)
        self._is_stale = kind == Kind.CORRECTED  # which is replayed in the place of the mistaken feedback
        return event

    def guess(self, record: Any, among: Any, key: str | None) -> Ticket:
        """Guess a label for a record; a refused record changes nothing."""
        if key is not None and (before := self._earlier(key, Ticket)) is not None:
            return before  # type: ignore[no-any-return]
        allowed = None if among is None else self.state.indices_of(among)
        self._is_stale = True
        try:
            body, decided = self.state.decide(record, allowed)
        except ValueError:
            self._is_stale = False
            raise
        token = decided[1].partition("-")[2]  # drawn at random by the learner: no ticket's id can be guessed
        event = self.record(Kind.GUESSED, f"{self.log.last_seq + 1}-{token}", body, key, decided)
        self.close_oldest(self.state.settings.max_open)
        return self.state.result_of(event)  # type: ignore[no-any-return]

    def answer(self, name: str, correct: bool | None, index: int | None = None) -> bool:
        """Record whether a guess was right, or the index of its right label; return whether that is new."""
        if (known := self.state.open.get(name)) is not None:
            body = {"correct": correct} if index is None else {"correct": index == known.body["label"], "label": index}
            self.record(Kind.FEEDBACK, name, body)
            return True
        before, label = self._feedback_of(name)
        if index is not None and label is None and before:
            label = self.log.guessed(name)
        if (before == correct) if index is None else (label == index):
            return False
        now: dict[str, Any] = {"correct": correct} if index is None else {"label": self.state.classes[index]}
        was = "told that its label is wrong, and not which is right; to replace that, say so"
        if before is None:
            was = f"withdrawn, and is closed; if {brief(*now.values())} is known now, say so"
        elif index is None:
            was = f"told {before} before, and {correct} now; if {before} was a mistake, say so"
        elif label is not None:
            was = f"told the label {brief(self.state.classes[label])} before; to replace that, say so"
        raise tickets.TicketConflictError(f"ticket {name!r} was {was}", "correct", id=name, **now)

    def correct(self, name: str, correct: bool | None, index: int | None = None) -> None:
        """Replace feedback by another bit or by the right label, or withdraw it."""
        if name in self.state.open:
            raise tickets.TicketConflictError(f"ticket {name!r} has no answer yet that could be a mistake; use tell")
        before = self._feedback_of(name)
        corrects = next((event.seq for event in self.log.find(ticket=name) if event.kind == Kind.FEEDBACK), 0)
        if corrects <= self.log.compacted:
            raise tickets.TicketConflictError(
                f"ticket {name!r}: its answer was compacted away, and cannot be corrected"
            )
        if self.log.compacted:
            try:  # first: a correction that cannot be replayed must not be in the log
                self._history.latest_snapshot(before=corrects)
            except LogError as error:
                why = f"its answer cannot be corrected: {error}"
                raise tickets.TicketConflictError(f"ticket {name!r}: {why}") from error
        correct = correct if index is None else index == self.log.guessed(name)
        if before != (correct, index):
            self.record(Kind.CORRECTED, name, {"correct": correct, "label": index, "corrects": corrects})
            self.log.flush()

    def shadow(self, record: Any, label: Any, feedback: dict[str, Any], key: str | None) -> Shadow:
        """Learn from a decision of the application; a refusal by the learner changes nothing."""
        if key is not None and (before := self._earlier(key, Shadow)) is not None:
            return before  # type: ignore[no-any-return]
        index = self.state.index_of(label)
        encoded = self.state.encoder.look(record)
        would = int(np.argmax(self.state.learner.probabilities(_as_rows(encoded.row))[0]))
        body = {"record": record_to_json(record), "label": index, "would": would, "additions": encoded.additions}
        event = self.record(Kind.SHADOW, None, body | feedback, key, (encoded, ""))
        return self.state.result_of(event)  # type: ignore[no-any-return]

    def _feedback_of(self, name: str) -> Feedback:
        return self.state.feedback.get(name) or self.log.feedback_of(name)

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

    def _earlier(self, key: str, wanted: type) -> Any:
        """Return the result of an earlier request with that key, if there is one."""
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
            raise ValueError(f"key must be a text of at most {_LONGEST_KEY} characters; got {brief(key)}")
        before: Any = self.state.requests.get(key)
        if before is None:
            if len(self.log.latest.lines) >= _RECENT:  # it may be pending, and forgotten
                self.log.flush()
            before = next((self.state.result_of(event) for event in self.log.find(key=key)), None)
        if before is None or isinstance(before, wanted):
            return before
        other = type(before).__name__.lower()
        raise ValueError(f"key {key!r} names a request of another kind, a {other}; choose another")
