"""The state of a decider: encoder, learner, open tickets and counts. It follows from the events of the log."""

from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from onebit.asking import Asking, Decision
from onebit.decider.log import as_rows, row_of_bytes, row_to_bytes
from onebit.decider.settings import Settings
from onebit.decider.tickets import (
    Event,
    Kind,
    Moment,
    Open,
    Shadow,
    Ticket,
)
from onebit.encoding import Encoded, Encoder
from onebit.engine.randomness import decider_number, uniform_label
from onebit.inputs import Floats
from onebit.learners.saving import from_bytes, to_bytes
from onebit.learners.tickets import TICKET_BYTES
from onebit.typed_json import Trusted, describe, parse, restore, write

_HEAD = 8  # bytes for the length of a snapshot's header
_MOST_MOMENTS = 512  # of the learning curve; beyond it every second one is dropped and the stride doubles
RECENT = 10_000  # requests and feedback kept in memory, so that the log need not be queried

Feedback = tuple[bool | None, int | None]  # whether the guess was right, None if withdrawn; the right label, if given
Corrected = dict[str, Feedback]  # by ticket, what replaces the recorded feedback
Decided = tuple[Encoded, str]  # an encoded record, and the learner's ticket of the guess for it

# What a snapshot holds as it is.
_PLAIN = "counts n_guesses n_answered n_wrong n_closed n_shadows n_asked n_asked_answered n_suggestions_right "
_PLAIN += "stride seq is_altered differences first_difference"
_MOST_RANKED = 20  # labels in a ticket's ranking


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
        # The confidence is that of the learner's own guess: a label drawn in its place has none.
        body["confidence"] = confidence = guess.confidence if label == guess.index else None
        body["ranking"] = _ranking(guess.scores)
        if self.asking is not None:
            body["decision"] = self.asking.propose(confidence)
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
            self._change_settings(event.body)
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
        opened = self._opened(event, own if is_own else None)
        if not is_own:
            opened = opened._replace(row=row)
            self.row_bytes += TICKET_BYTES + row.nbytes
            self.learner.drop(own)
        self.open[ticket] = opened
        self.latest_row = row
        self.counts[label][0] += 1
        self.n_guesses += 1

    def _opened(self, event: Event, own: str | None) -> Open:
        """Return the open ticket of a guess, which counts for the rule of asking from now on."""
        body, decision = event.body, event.body.get("decision")
        decision = None if decision is None else Decision(*decision)
        ask = decision is not None and decision.ask
        if decision is not None and self.asking is not None:
            self.asking.open(decision)
        self.n_asked += ask
        known = body["confidence"], tuple(body["ranking"]), ask, decision
        return Open(event.seq, event.time, body["label"], own, body["propensity"], None, *known)

    def _change_settings(self, changes: dict[str, Any]) -> None:
        """Change settings; with another limit on asking its count begins anew, without the tickets open now."""
        before, self.settings = self.settings, self.settings.changed(changes)
        limits = self.settings.wrong_at_most, self.settings.ask_at_most
        if limits != (before.wrong_at_most, before.ask_at_most):
            self.asking = self.settings.new_asking()
            self.open = {name: each._replace(decision=None) for name, each in self.open.items()}

    def _close_ticket(self, event: Event, corrected: Corrected) -> None:
        ticket, correct, truth = str(event.ticket), event.body["correct"], event.body.get("label")
        if event.kind == Kind.CLOSED:
            self.n_closed += 1
        else:
            if ticket in corrected:
                (correct, truth), self.is_altered = corrected[ticket], True
            _remember(self.feedback, ticket, (correct, truth))
        closed = self.open.pop(ticket)
        label, own, row, decision = closed.label, closed.own, closed.row, closed.decision
        if event.kind == Kind.CLOSED and closed.ask:
            correct = None  # the label was not decided on: silence says nothing about it
        if row is not None:
            self.row_bytes -= TICKET_BYTES + row.nbytes
        if correct is not None:
            self.count_feedback(label, correct, event.time, closed.ask)
        if self.asking is not None and decision is not None:
            self.asking.drop(decision) if correct is None else self.asking.answer(decision, correct)
        if own is not None and correct is None:
            self.learner.drop(own)
        elif own is not None and truth is not None:
            self.learner.label(own, self.classes[truth])
        elif own is not None:
            self.learner.tell(own, correct)
        elif correct is not None:
            self.learner.learn_from(as_rows(row), [self.classes[label]], correct, closed.propensity)
            if truth is not None and not correct and self.learner._state.learns_from_logs():
                self.learner.learn_labels(as_rows(row), [self.classes[truth]])

    def count_feedback(self, label: int, correct: bool, time: float, ask: bool = False) -> None:
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
        ask = "decision" in body and bool(body["decision"][0])
        known = body["confidence"], body["ranking"], ask
        opened = Open(event.seq, event.time, body["label"], None, body["propensity"], None, *known)
        return self.ticket_of(event.ticket, opened)

    def ticket_of(self, name: str, opened: Open) -> Ticket:
        """Return a ticket as callers get it."""
        time, ranking = datetime.fromtimestamp(opened.time, UTC), tuple(self.classes[i] for i in opened.ranking)
        label, known = self.classes[opened.label], (opened.confidence, opened.ask, ranking)
        return Ticket(name, label, opened.propensity, time, *known)

    def to_bytes(self) -> bytes:
        """Serialize the state."""
        header = {name: getattr(self, name) for name in _PLAIN.split()} | {
            "settings": self.settings.changeable(),
            "encoder": self.encoder.state(),
            "classes": describe(self.classes),
            "open": [
                [ticket, *each._replace(row=None if each.row is None else row_to_bytes(each.row).hex())]  # type: ignore[arg-type]
                for ticket, each in self.open.items()
            ],
            "asking": None if self.asking is None else self.asking.state(),
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
            asking = header["asking"]
            state.asking = None if asking is None else Asking.from_state(asking)
            for ticket, *values in header["open"]:
                stored = Open(*values)
                row: Any = None if stored.row is None else row_of_bytes(bytes.fromhex(stored.row))  # type: ignore[arg-type]
                decision = None if stored.decision is None else Decision(*stored.decision)
                state.open[ticket] = stored._replace(row=row, decision=decision, ranking=tuple(stored.ranking))
                state.row_bytes += 0 if row is None else TICKET_BYTES + row.nbytes
            state.curve = [Moment(*each) for each in header["curve"]]
            state.restored = state.seq
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the snapshot is none ({error!r})") from error
        return state


def _ranking(scores: Floats) -> list[int]:
    """Return the positions of the highest scores, the highest first."""
    best = np.argsort(-scores, kind="stable")[:_MOST_RANKED].tolist()
    return [i for i in best if scores[i] > -np.inf]


def _remember(recent: "OrderedDict[str, Any]", name: str, value: Any) -> None:
    recent[name] = value
    if len(recent) > RECENT:
        recent.popitem(last=False)
