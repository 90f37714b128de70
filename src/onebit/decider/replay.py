"""Replay of a decider's log: which snapshot to start from, and which events to play at once."""

from collections.abc import Container, Iterable, Iterator
from copy import copy
from itertools import chain, islice
from typing import Any

import numpy as np

from onebit.asking import Decision
from onebit.decider.log import EventLog, Snapshot
from onebit.decider.settings import Settings
from onebit.decider.state import State
from onebit.decider.tickets import Event, Kind, LogError
from onebit.learners.run import can_play_again, play_again
from onebit.learners.saving import learned_arrays, to_bytes
from onebit.machine_memory import MemoryBudgetError

_FEWEST = 16  # rounds in a run: the learner's state is copied before each
_FEWEST_AT_FIRST = 256  # rounds in the first run, which may compile the loop for seconds
_BYTES_A_ROUND = 1 << 18  # that can be copied in the time that one round of a run saves
_MOST_ROUNDS = 2_000  # in a run
_MOST_BYTES = 16 << 20  # of a run's rows
_PLAIN_ADDITIONS = {"at", "met"}, {"at", "met", "numbers"}  # of a record with nothing new to the encoder


def replay(
    log: EventLog, settings: Settings, trusted: Any = (), kept: Snapshot | None = None, *, from_snapshot: bool = True
) -> State:
    """Return the state of a decider after all events of its log, from the latest valid snapshot or the beginning.

    Corrected feedback is applied at its original position: the learner's state is the one it would have without the
    mistake, for the recorded guesses. So a snapshot is valid only if it was taken before the feedback it corrects.
    `kept` is a snapshot in memory, later than those in the log.
    """
    corrections = log.of_kind(Kind.CORRECTED)
    corrected = {str(event.ticket): (event.body["correct"], event.body.get("label")) for event in corrections}
    noted = {event.seq for event in corrections}
    state = None
    for snapshot in chain([kept] if kept else [], log.snapshots()) if from_snapshot else ():
        if all(event.body["corrects"] > snapshot.seq for event in corrections if event.seq > snapshot.seq):
            try:
                state = State.of_bytes(settings, snapshot.content, trusted)
                break
            except MemoryBudgetError:
                raise
            except ValueError:
                continue  # fall back to an older snapshot or the events
    if state is None:
        if log.compacted:
            raise LogError(
                f"events up to {log.compacted} were compacted into a snapshot, which cannot be read, or is not to be "
                "used; put a backup in its place"
            )
        state = State(settings, trusted)
    fewest = _FEWEST_AT_FIRST
    try:
        for part in in_runs(log.events(state.seq), corrected):
            if isinstance(part, Run) and len(part.rows) >= fewest:
                fewest = _FEWEST
                if part.play(state):
                    continue
            for event in part.events() if isinstance(part, Run) else (part,):
                if event.kind == Kind.CORRECTED and event.seq not in noted:
                    raise LogError(
                        f"event {event.seq} is not where corrections are looked up; put a backup in its place"
                    )
                state.apply(event, corrected)
    except (LogError, MemoryBudgetError):
        raise
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise LogError(
            f"event {state.seq + 1} cannot be replayed: {error!r}. Was it written by a newer onebit?"
        ) from error
    if state.seq != log.last_seq:
        raise LogError(f"the log ends with event {log.last_seq}, and event {state.seq} was known; put a backup there")
    return state


class Run:
    """Plain guesses, each directly followed by its feedback.

    Kept as lists: so many Event objects would slow down the garbage collector.
    """

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._additions: list[dict[str, Any]] = []
        self._values: list[Any] = []  # eleven a round: seven of the guess event, four of the feedback

    def add(self, guess: Event, feedback: Event) -> None:
        """Add a round."""
        body = guess.body
        self.rows.append(guess.row)
        self._additions.append(body["additions"])
        self._values += guess.seq, guess.time, guess.ticket, body["label"], body["propensity"]
        self._values += {"confidence": body["confidence"], "ranking": body["ranking"]}, body.get("decision")
        self._values += feedback.seq, feedback.time, feedback.ticket, feedback.body["correct"]

    def events(self) -> Iterator[Event]:
        """Yield the events, with all that the state needs."""
        values = iter(self._values)
        for row, additions in zip(self.rows, self._additions, strict=True):
            seq, time, ticket, label, propensity, known, decision, *feedback, correct = islice(values, 11)
            body = {"label": label, "wanted": label, "propensity": propensity, "among": None, "additions": additions}
            body |= known if decision is None else known | {"decision": decision}
            yield Event(seq, time, Kind.GUESSED, ticket, body, row)
            seq, time, ticket = feedback
            yield Event(seq, time, Kind.FEEDBACK, ticket, {"correct": correct})

    def play(self, state: State) -> bool:
        """Apply the run and return True; or nothing and False, if that cannot be, or does not save time.

        It cannot if the learner would make other guesses, or feedback was corrected before: then it is another one.
        """
        n_bytes = sum(array.nbytes for array in state.learner._state.arrays)
        is_worth_it = len(self.rows) * _BYTES_A_ROUND >= n_bytes  # as the learner's state is copied
        if state.is_altered or not is_worth_it or not can_play_again(state.learner, self.rows[0]):
            return False
        rows, labels, correct = np.array(self.rows), self._values[3::11], self._values[10::11]
        if not play_again(state.learner, rows, np.array(labels), np.array(correct)):
            return False
        state.encoder.take_many(rows, self._additions)
        times, decisions = self._values[8::11], self._values[6::11]
        for label, is_right, time, given in zip(labels, correct, times, decisions, strict=True):
            decision = None if given is None else Decision(*given)
            ask = decision is not None and decision.ask
            state.counts[label][0] += 1
            state.n_guesses += 1
            state.n_asked += ask
            state.count_feedback(label, is_right, time, ask)
            if decision is not None and state.asking is not None:
                state.asking.open(decision)
                state.asking.answer(decision, is_right)
        state.seq = self._values[-4]
        return True


def in_runs(events: Iterable[Event], corrected: Container[str | None]) -> Iterator[Event | Run]:
    """Yield events in order, those of plain rounds in runs, which a compiled loop plays several times as fast."""
    run, guess = Run(), None
    for event in events:
        if guess is not None and _is_feedback(event, guess) and event.ticket not in corrected:
            run.add(guess, event)
            guess = None
            if len(run.rows) == _MOST_ROUNDS or len(run.rows) * run.rows[0].nbytes >= _MOST_BYTES:
                yield run
                run = Run()
            continue
        is_plain = _is_plain_guess(event)
        if run.rows and (guess is not None or not is_plain):
            yield run
            run = Run()
        if guess is not None:
            yield guess
        guess = event if is_plain else None
        if guess is None:
            yield event
    if run.rows:
        yield run
    if guess is not None:
        yield guess


def _is_plain_guess(event: Event) -> bool:
    """Return whether it is the learner's own guess, from all labels, for a dense record with nothing new."""
    body = event.body
    additions = body.get("additions")
    return (
        event.kind == Kind.GUESSED
        and body.get("among") is None
        and type(body.get("label")) is int
        and body["label"] == body.get("wanted")
        and type(additions) is dict
        and additions.keys() in _PLAIN_ADDITIONS
        and type(event.row) is np.ndarray
    )


def _is_feedback(event: Event, guess: Event) -> bool:
    """Return whether it is feedback on a guess that teaches no more than the bit."""
    if event.kind != Kind.FEEDBACK or event.ticket != guess.ticket:
        return False
    correct, label = event.body.get("correct"), event.body.get("label")
    return type(correct) is bool and (label is None or correct)


def verify(log: EventLog, settings: Settings, trusted: Any, state: State) -> bool:
    """Return whether a replay of the whole log gives the state to the last bit; raises LogError for a damaged file."""
    if log.compacted:
        raise ValueError(f"events up to {log.compacted} were compacted: the log has no beginning any more")
    log.check()
    return same_state(replay(log, settings, trusted, from_snapshot=False), state)


def same_state(one: State, other: State) -> bool:
    """Return whether two states are equal to the last bit, except for the ids of the learner's tickets."""
    if one.encoder.state() != other.encoder.state() or one.counts != other.counts or one.settings != other.settings:
        return False
    if list(one.open) != list(other.open) or one.classes != other.classes:
        return False
    mine, theirs = (None if each.asking is None else each.asking.state() for each in (one, other))
    if mine != theirs:
        return False
    if not one.learner._started or not other.learner._started:
        return one.learner._started == other.learner._started
    if one.learner._state.plays_by_hand:  # its state is opaque: compare the serialized copies, which have no tickets
        return bytes(to_bytes(copy(one.learner))) == bytes(to_bytes(copy(other.learner)))
    # Without spare capacity, which is smaller after loading a snapshot.
    mine, theirs = (learned_arrays(each.learner) for each in (one, other))
    return mine.keys() == theirs.keys() and all(
        np.array_equal(array, theirs[name], equal_nan=True) for name, array in mine.items()
    )
