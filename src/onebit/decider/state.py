"""The state of a decider. It changes only by events, identically live and in a replay."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from copy import copy
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from onebit.decider.advice import no_class_error
from onebit.decider.course import LearningCurve
from onebit.decider.events import Event, Kind, row_of_bytes, row_to_bytes
from onebit.decider.settings import WRONG, Settings
from onebit.encoding import Encoded, Encoder
from onebit.engine.randomness import decider_number, uniform_label
from onebit.inputs import Rows, brief
from onebit.learners.saving import filled_arrays, from_bytes, to_bytes
from onebit.learners.tickets import TICKET_BYTES
from onebit.typed_json import Trusted, describe, parse, restore

_HEAD = 8  # bytes for the length of a snapshot's header
_MOST_SHOWN = 100  # labels in an error message, which is cut to 200 characters


class Open(NamedTuple):
    """An open ticket."""

    seq: int
    """The number of its guess event."""
    time: float
    label: int
    """Index of the guessed label."""
    own: str | None
    """The learner's ticket; None if the label was not chosen by the learner."""
    propensity: float
    row: Rows | None
    """The encoded record, if the label was not chosen by the learner."""


class Decision(NamedTuple):
    """A guess, before it becomes an event."""

    label: int
    propensity: float
    wanted: int
    """The learner's own guess; differs from `label` when the exploration floor drew another."""
    own: str
    encoded: Encoded


class Counts:
    """Counts of guesses and feedback by label."""

    def __init__(self) -> None:
        self.guessed: Counter[int] = Counter()
        self.right: Counter[int] = Counter()
        self.wrong: Counter[int] = Counter()
        self.silent = 0
        self.watched = 0

    def state(self) -> list[Any]:
        """Return the counts as plain JSON values."""
        return [[sorted(each.items()) for each in (self.guessed, self.right, self.wrong)], self.silent, self.watched]

    @classmethod
    def of_state(cls, state: list[Any]) -> "Counts":
        """Rebuild counts from the result of `state`."""
        counts = cls()
        by_label, counts.silent, counts.watched = state
        counts.guessed, counts.right, counts.wrong = (Counter({int(i): int(n) for i, n in each}) for each in by_label)
        return counts


class State:
    """Encoder, learner, open tickets and counts of a decider.

    Parameters
    ----------
    settings : Settings
        The initial settings.
    trusted : list
        Classes that may be loaded, as in `onebit.load`.
    """

    def __init__(self, settings: Settings, trusted: Any = ()) -> None:
        self.settings = settings
        """The settings in force."""
        self._trusted = trusted
        self.learner = settings.new_learner(trusted)
        self.learner.max_open_tickets = settings.max_open + 1
        # Learners with a `scale` parameter scale columns themselves.
        self.encoder = Encoder(settings.kinds, scale="scale" not in self.learner.get_params(deep=False))
        self.open: dict[str, Open] = {}
        self.row_bytes = 0
        """Bytes of open tickets whose rows are kept here; the learner counts the others."""
        self.ticket_bytes = TICKET_BYTES
        """Approximate bytes of the latest ticket."""
        self.counts = Counts()
        self.course = LearningCurve()
        self.classes: list[Any] = list(settings.classes)
        self.places: dict[Any, int] = places_of(self.classes)
        """Index of each class."""
        self.seq = 0
        """The number of the last applied event."""
        self.is_altered = False
        """Whether feedback was corrected: since then the learner differs from the one that guessed."""
        self.differences = 0
        """Number of guesses in the log that the replay made differently."""
        self.restored = 0
        """The last event of the snapshot it was loaded from; 0 without snapshot."""
        self.first_difference: int | None = None

    # Guesses; only the learner's round counter and tickets change.

    def decide(self, record: Any, allowed: list[int] | None) -> Decision:
        """Guess a label for a record, from some indices or all; `take_guess` applies the guess."""
        encoded = self.encoder.look(record)
        among = None if allowed is None else [self.classes[i] for i in allowed]
        row: Any = encoded.row
        floor = self.settings.exploration_floor
        chances = self.learner.probabilities(as_rows(row), among)[0] if floor > 0.0 else None
        guess = self.learner.guess(row, among)
        if chances is None:
            return Decision(guess.index, guess.propensity, guess.index, guess.id, encoded)
        places = range(len(self.classes)) if allowed is None else allowed
        number, label = decider_number(self.settings.seed, guess.round), guess.index
        if number < floor:
            label = int(places[uniform_label(number / floor, len(places))])
        propensity = (1.0 - floor) * float(chances[label]) + floor / len(places)
        return Decision(label, propensity, guess.index, guess.id, encoded)

    def would_guess(self, record: Any) -> tuple[Encoded, int]:
        """Return the encoded record and the most probable guess, without changing the state."""
        encoded = self.encoder.look(record)
        return encoded, int(np.argmax(self.learner.probabilities(as_rows(encoded.row))[0]))

    # Events.

    def take_guess(self, event: Event, decision: Decision) -> None:
        """Apply a new guess to the state."""
        label, propensity, wanted, own, encoded = decision
        self.encoder.take(encoded)
        self._open(event, label, own if label == wanted else None, propensity, encoded.row)
        if label != wanted:
            self.learner.drop(own)
        self.seq = event.seq

    def _open(self, event: Event, label: int, own: str | None, propensity: float, row: Rows) -> None:
        assert event.ticket is not None
        self.open[event.ticket] = Open(event.seq, event.time, label, own, propensity, row if own is None else None)
        self.row_bytes += _bytes_of(self.open[event.ticket])
        self.ticket_bytes = TICKET_BYTES + row.nbytes + 8 * len(self.classes)  # with a score for each class
        self.counts.guessed[label] += 1

    def apply(self, event: Event, corrected: dict[str, bool | None] | None = None) -> None:
        """Apply an event to the state.

        Parameters
        ----------
        event : Event
            The event after the last applied one.
        corrected : dict
            Corrected feedback by ticket; None if withdrawn.
        """
        _TAKERS[event.kind](self, event, corrected or {})
        self.seq = event.seq

    def _take_nothing(self, event: Event, corrected: dict[str, bool | None]) -> None:
        """Apply an event that does not change the state."""

    def _take_old_guess(self, event: Event, _corrected: dict[str, bool | None]) -> None:
        """Apply a guess of the log: the learner guesses again, and differences are counted."""
        assert event.row is not None
        body = event.body
        row: Any = event.row
        self.encoder.take(Encoded(row, body["additions"]))
        among = None if body["among"] is None else [self.classes[i] for i in body["among"]]
        guess = self.learner.guess(row, among)
        is_same = guess.index == body["wanted"]
        if not is_same and not self.is_altered:
            self.differences += 1
            self.first_difference = self.first_difference or event.seq
        own = guess.id if is_same and body["label"] == body["wanted"] else None
        self._open(event, body["label"], own, body["propensity"], row)
        if own is None:
            self.learner.drop(guess)

    def _take_answer(self, event: Event, corrected: dict[str, bool | None]) -> None:
        assert event.ticket is not None
        correct: bool | None = event.body["correct"]
        if event.ticket in corrected:
            correct, self.is_altered = corrected[event.ticket], True
        self._close_ticket(event, correct)

    def _take_silence(self, event: Event, _corrected: dict[str, bool | None]) -> None:
        assert event.ticket is not None
        self.counts.silent += 1
        self._close_ticket(event, silence_answer(event, self.settings.silence))

    def _close_ticket(self, event: Event, correct: bool | None) -> None:
        """Close a ticket: right, wrong, or without feedback."""
        closed = self.open.pop(str(event.ticket))
        _, _, label, own, propensity, row = closed
        self.row_bytes -= _bytes_of(closed)
        if correct is None:
            if own is not None:
                self.learner.drop(own)
            return
        (self.counts.right if correct else self.counts.wrong)[label] += 1
        self.course.add(correct, event.time, self.counts.guessed)
        if own is not None:
            self.learner.tell(own, correct)
        else:
            self.learner.learn_from(as_rows(row), [self.classes[label]], correct, propensity)

    def _take_class(self, event: Event, _corrected: dict[str, bool | None]) -> None:
        label = restore(event.body["label"], Trusted(self._trusted))
        self.classes.append(label)
        self.places[label] = len(self.classes) - 1
        if self.learner._started:
            self.learner.add_class(label)
        else:
            self.learner.set_params(classes=list(self.classes))

    def _take_change(self, event: Event, _corrected: dict[str, bool | None]) -> None:
        self.settings = self.settings.changed(event.body)
        self.learner.max_open_tickets = self.settings.max_open + 1

    def _take_watched(self, event: Event, _corrected: dict[str, bool | None]) -> None:
        assert event.row is not None
        body = event.body
        if body["correct"] is not None:  # first: a refusal by the learner must change nothing
            label, chance = self.classes[body["label"]], body["propensity"]
            self.learner.learn_from(as_rows(event.row), [label], body["correct"], chance)
        self.encoder.take(Encoded(event.row, body["additions"]))
        self.counts.watched += 1

    # Snapshots.

    def to_bytes(self) -> bytes:
        """Serialize the state."""
        waiting = [
            [ticket, *each[:5], None if each.row is None else row_to_bytes(each.row).hex()]
            for ticket, each in self.open.items()
        ]
        header = {
            "seq": self.seq,
            "settings": self.settings.changeable(),
            "encoder": self.encoder.state(),
            "classes": describe(self.classes),
            "open": waiting,
            "counts": self.counts.state(),
            "course": self.course.state(),
            "is_altered": self.is_altered,
            "differences": [self.differences, self.first_difference],
        }
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
        return b"".join((len(text).to_bytes(_HEAD, "little"), text, to_bytes(self.learner)))

    @classmethod
    def of_bytes(cls, settings: Settings, content: bytes, trusted: Any = ()) -> "State":
        """Rebuild a state from the result of `to_bytes`; raises ValueError for other bytes."""
        end = _HEAD + int.from_bytes(content[:_HEAD], "little")
        state, header = cls(settings, trusted), parse(content[_HEAD:end])
        try:
            state.settings = settings.changed(header.get("settings", {}))  # absent in old snapshots
            state.learner = from_bytes(content[end:], "the snapshot's learner", trusted)
            state.encoder = Encoder.from_state(header["encoder"])
            state.classes = restore(header["classes"], Trusted(trusted))
            state.places = places_of(state.classes)
            for ticket, seq, time, label, own, propensity, row in header["open"]:
                seen = None if row is None else row_of_bytes(bytes.fromhex(row))
                state.open[ticket] = Open(seq, time, label, own, propensity, seen)
            state.row_bytes = sum(map(_bytes_of, state.open.values()))
            state.counts = counts = Counts.of_state(header["counts"])
            wrong = counts.wrong.total()
            before = [counts.right.total() + wrong, wrong, 1, []]  # absent in old snapshots
            state.course = LearningCurve.of_state(header.get("course", before))
            state.seq, state.is_altered = header["seq"], header["is_altered"]
            state.differences, state.first_difference = header["differences"]
            state.restored = state.seq
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the snapshot is none ({error!r})") from error
        return state


_TAKERS: dict[str, Callable[[State, Event, dict[str, bool | None]], None]] = {
    Kind.OPENED: State._take_nothing,
    Kind.GUESSED: State._take_old_guess,
    Kind.TOLD: State._take_answer,
    Kind.SILENT: State._take_silence,
    Kind.CORRECTED: State._take_nothing,
    Kind.CHANGED: State._take_change,
    Kind.JOINED: State._take_class,
    Kind.WATCHED: State._take_watched,
}


def silence_answer(event: Event, silence: str) -> bool | None:
    """Return how a ticket closed without feedback counts: False for wrong, None for not at all.

    Parameters
    ----------
    event : Event
        An event of kind `SILENT`.
    silence : str
        The setting in force at that event, for old logs whose events do not hold it.
    """
    return False if event.body.get("says", silence) == WRONG else None


def _bytes_of(ticket: Open) -> int:
    """Return the bytes of an open ticket beyond those that the learner counts."""
    return 0 if ticket.row is None else TICKET_BYTES + ticket.row.nbytes


def as_rows(row: Any) -> Any:
    """Return one row as a matrix of one row."""
    return row[None] if isinstance(row, np.ndarray) and row.ndim == 1 else row


def places_of(classes: list[Any]) -> dict[Any, int]:
    """Return the index of each class."""
    return {label: place for place, label in enumerate(classes)}


def place_of(places: dict[Any, int], label: Any) -> int | None:
    """Return the index of a label among the classes, None for unknown labels."""
    try:
        return places.get(label)
    except TypeError:  # not hashable
        return None


def some_of(classes: Iterable[Any]) -> str:
    """Format classes for an error message; only the first ones, since there may be many."""
    return f"{list(islice(classes, _MOST_SHOWN))!r:.200}"


def named_among(places: dict[Any, int], among: Any) -> list[int] | None:
    """Return the sorted indices of allowed labels; raises ValueError for unknown labels."""
    if among is None:
        return None
    if isinstance(among, (str, bytes)) or not isinstance(among, Collection):
        raise ValueError(f"among must be a list of labels; got {brief(among)}")
    if len(among) > len(places):
        raise ValueError(
            f"among must list some of the {len(places)} classes; got {len(among)} labels. Name each label once"
        )
    found = {place_of(places, label) for label in among}
    if None in found or not found:
        problem = f"among must list some of the classes, {some_of(places)}; got {brief(among)}"
        raise no_class_error(problem, next((label for label in among if place_of(places, label) is None), None))
    return sorted(place for place in found if place is not None)


def same_state(one: State, other: State) -> bool:
    """Return whether two states are equal to the last bit, except for the ids of the learner's tickets."""
    if one.encoder.state() != other.encoder.state() or one.counts.state() != other.counts.state():
        return False
    if list(one.open) != list(other.open) or one.classes != other.classes or one.settings != other.settings:
        return False
    if not one.learner._started or not other.learner._started:
        return one.learner._started == other.learner._started
    if one.learner._state.plays_by_hand:  # its state is opaque: compare the serialized copies, which have no tickets
        return bytes(to_bytes(copy(one.learner))) == bytes(to_bytes(copy(other.learner)))
    # Without spare capacity, which is smaller after loading a snapshot.
    mine, theirs = (filled_arrays(each.learner._state) for each in (one, other))
    return all(np.array_equal(array, theirs[name], equal_nan=True) for name, array in mine.items())
