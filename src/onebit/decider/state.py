"""What a decider knows. It changes by events alone, the same live and in a replay."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from copy import copy
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from onebit.decider.advice import no_class_error
from onebit.decider.course import Course
from onebit.decider.events import Event, Kind, row_of_bytes, row_to_bytes
from onebit.decider.settings import WRONG, Settings
from onebit.encoding.encoder import Encoder, Looked
from onebit.engine.randomness import decider_number, uniform_label
from onebit.inputs import Rows, brief
from onebit.learners.loading import from_bytes
from onebit.learners.packing import filled_arrays
from onebit.learners.saving import to_bytes
from onebit.learners.tickets import TICKET_BYTES
from onebit.typed_json import Trusted, describe, parse, restore

_HEAD = 8  # bytes that say how long the header of a snapshot is
_MOST_SHOWN = 100  # labels: of more than 200 letters in all


class Open(NamedTuple):
    """A ticket that waits for its answer."""

    seq: int
    """The event of its guess."""
    time: float
    label: int
    """The position of the guessed label among the classes."""
    own: str | None
    """The learner's own ticket; None where the label is not the learner's."""
    propensity: float
    row: Rows | None
    """What was seen, where the label is not the learner's."""


class Decision(NamedTuple):
    """A guess before it is an event."""

    label: int
    propensity: float
    wanted: int
    """What the learner would have guessed: another label where chance decided, for an exploration floor."""
    own: str
    looked: Looked


class Counts:
    """How guesses went, by label."""

    def __init__(self) -> None:
        self.guessed: Counter[int] = Counter()
        self.right: Counter[int] = Counter()
        self.wrong: Counter[int] = Counter()
        self.silent = 0
        self.watched = 0

    def state(self) -> list[Any]:
        """Return them as JSON can write them."""
        return [[sorted(each.items()) for each in (self.guessed, self.right, self.wrong)], self.silent, self.watched]

    @classmethod
    def of_state(cls, state: list[Any]) -> "Counts":
        """Return what `state` returned."""
        counts = cls()
        by_label, counts.silent, counts.watched = state
        counts.guessed, counts.right, counts.wrong = (Counter({int(i): int(n) for i, n in each}) for each in by_label)
        return counts


class State:
    """The encoder, the learner, the open tickets and the counts.

    Parameters
    ----------
    settings : Settings
        How the decider decides.
    trusted : list
        What the learner's file may name, as for `onebit.load`.
    """

    def __init__(self, settings: Settings, trusted: Any = ()) -> None:
        self.settings = settings
        """Those in force."""
        self._trusted = trusted
        self.learner = settings.new_learner(trusted)
        self.learner.max_open_tickets = settings.max_open + 1
        # A learner that scales columns itself sees them as they come.
        self.encoder = Encoder(settings.kinds, scale="scale" not in self.learner.get_params(deep=False))
        self.open: dict[str, Open] = {}
        self.row_bytes = 0
        """Bytes of open tickets whose labels are not the learner's; those of the others the learner counts."""
        self.ticket_bytes = TICKET_BYTES
        """Bytes of the latest ticket, about."""
        self.counts = Counts()
        self.course = Course()
        self.classes: list[Any] = list(settings.classes)
        self.places: dict[Any, int] = places_of(self.classes)
        """The position of each class."""
        self.seq = 0
        """The last event that is in it."""
        self.is_altered = False
        """Whether an answer was corrected: since then the learner is not the one that guessed."""
        self.differences = 0
        """How many guesses of the log this onebit would have made otherwise."""
        self.restored = 0
        """The event after which it was written down, if it comes from a snapshot."""
        self.first_difference: int | None = None

    # What an application asks; nothing but the learner's round is changed.

    def decide(self, record: Any, allowed: list[int] | None) -> Decision:
        """Guess a label for a record, among some positions or all; `take_guess` makes it part of what is known."""
        looked = self.encoder.look(record)
        among = None if allowed is None else [self.classes[i] for i in allowed]
        row: Any = looked.row
        floor = self.settings.exploration_floor
        chances = self.learner.probabilities(as_rows(row), among)[0] if floor > 0.0 else None
        guess = self.learner.guess(row, among)
        if chances is None:
            return Decision(guess.index, guess.propensity, guess.index, guess.id, looked)
        places = range(len(self.classes)) if allowed is None else allowed
        number, label = decider_number(self.settings.seed, guess.round), guess.index
        if number < floor:
            label = int(places[uniform_label(number / floor, len(places))])
        propensity = (1.0 - floor) * float(chances[label]) + floor / len(places)
        return Decision(label, propensity, guess.index, guess.id, looked)

    def would_guess(self, record: Any) -> tuple[Looked, int]:
        """Return what is seen of a record, and the likeliest guess; nothing is changed."""
        looked = self.encoder.look(record)
        return looked, int(np.argmax(self.learner.probabilities(as_rows(looked.row))[0]))

    # Events.

    def take_guess(self, event: Event, decision: Decision) -> None:
        """Let a guess that was decided now be known."""
        label, propensity, wanted, own, looked = decision
        self.encoder.take(looked)
        self._open(event, label, own if label == wanted else None, propensity, looked.row)
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
        """Let an event be known that is in the log.

        Parameters
        ----------
        event : Event
            The event after the last one.
        corrected : dict
            Answers that were mistakes, by ticket: what they should have been, None for none at all.
        """
        _TAKERS[event.kind](self, event, corrected or {})
        self.seq = event.seq

    def _take_nothing(self, event: Event, corrected: dict[str, bool | None]) -> None:
        """Let an event be known that says nothing to the learner."""

    def _take_old_guess(self, event: Event, _corrected: dict[str, bool | None]) -> None:
        """Let a guess of the log be known: the learner guesses again, and it is seen whether it guesses the same."""
        assert event.row is not None
        said = event.body
        row: Any = event.row
        self.encoder.take(Looked(row, said["additions"]))
        among = None if said["among"] is None else [self.classes[i] for i in said["among"]]
        guess = self.learner.guess(row, among)
        is_same = guess.index == said["wanted"]
        if not is_same and not self.is_altered:
            self.differences += 1
            self.first_difference = self.first_difference or event.seq
        own = guess.id if is_same and said["label"] == said["wanted"] else None
        self._open(event, said["label"], own, said["propensity"], row)
        if own is None:
            self.learner.drop(guess)

    def _take_answer(self, event: Event, corrected: dict[str, bool | None]) -> None:
        assert event.ticket is not None
        correct: bool | None = event.body["correct"]
        if event.ticket in corrected:
            correct, self.is_altered = corrected[event.ticket], True
        self._hear(event, correct)

    def _take_silence(self, event: Event, _corrected: dict[str, bool | None]) -> None:
        assert event.ticket is not None
        self.counts.silent += 1
        self._hear(event, silence_answer(event, self.settings.silence))

    def _hear(self, event: Event, correct: bool | None) -> None:
        """Close a ticket: right, wrong, or without an answer."""
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
        said = event.body
        if said["correct"] is not None:  # first: what the learner refuses must change nothing
            label, chance = self.classes[said["label"]], said["propensity"]
            self.learner.learn_from(as_rows(event.row), [label], said["correct"], chance)
        self.encoder.take(Looked(event.row, said["additions"]))
        self.counts.watched += 1

    # Snapshots.

    def to_bytes(self) -> bytes:
        """Return all of it."""
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
        """Return what `to_bytes` returned; raises ValueError for what it could not have."""
        end = _HEAD + int.from_bytes(content[:_HEAD], "little")
        state, header = cls(settings, trusted), parse(content[_HEAD:end])
        try:
            state.settings = settings.changed(header.get("settings", {}))  # a snapshot from before had none
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
            before = [counts.right.total() + wrong, wrong, 1, []]  # of a snapshot without one
            state.course = Course.of_state(header.get("course", before))
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
    """Return what a ticket that was closed by silence counts as: False for wrong, or None for no answer.

    Parameters
    ----------
    event : Event
        Of the kind `SILENT`.
    silence : str
        The setting in force at that event, for logs whose silences do not say what they mean.
    """
    return False if event.body.get("says", silence) == WRONG else None


def _bytes_of(ticket: Open) -> int:
    """Return how much memory an open ticket takes that is not the learner's."""
    return 0 if ticket.row is None else TICKET_BYTES + ticket.row.nbytes


def as_rows(row: Any) -> Any:
    """Return one row as learners take many."""
    return row[None] if isinstance(row, np.ndarray) and row.ndim == 1 else row


def places_of(classes: list[Any]) -> dict[Any, int]:
    """Return the position of each class."""
    return {label: place for place, label in enumerate(classes)}


def place_of(places: dict[Any, int], label: Any) -> int | None:
    """Return the position of a label among the classes, None for what is no class."""
    try:
        return places.get(label)
    except TypeError:  # it cannot be hashed
        return None


def some_of(classes: Iterable[Any]) -> str:
    """Return classes as an error shows them; not all are looked at, since there may be many."""
    return f"{list(islice(classes, _MOST_SHOWN))!r:.200}"


def named_among(places: dict[Any, int], among: Any) -> list[int] | None:
    """Return the positions of allowed labels, in order and once each; raises ValueError if one is no class."""
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
    """Return whether two states are the same to the last bit, but for the names of the learner's own tickets."""
    if one.encoder.state() != other.encoder.state() or one.counts.state() != other.counts.state():
        return False
    if list(one.open) != list(other.open) or one.classes != other.classes or one.settings != other.settings:
        return False
    if not one.learner._started or not other.learner._started:
        return one.learner._started == other.learner._started
    if one.learner._state.plays_by_hand:  # what it keeps only its file says; copies have no tickets
        return bytes(to_bytes(copy(one.learner))) == bytes(to_bytes(copy(other.learner)))
    # Without their room: there is less of it after a snapshot.
    mine, theirs = (filled_arrays(each.learner._state) for each in (one, other))
    return all(np.array_equal(array, theirs[name], equal_nan=True) for name, array in mine.items())
