"""Replay of a decider's log, from a snapshot or the beginning, and whether it gives the same state."""

from copy import copy
from itertools import chain
from typing import Any

import numpy as np

from onebit.decider.log import EventLog, Snapshot
from onebit.decider.settings import Settings
from onebit.decider.state import State
from onebit.decider.tickets import Kind, LogError
from onebit.learners.saving import learned_arrays, to_bytes
from onebit.machine_memory import MemoryBudgetError


def replay(
    log: EventLog, settings: Settings, trusted: Any = (), kept: Snapshot | None = None, *, from_snapshot: bool = True
) -> State:
    """Return the state of a decider after all events of its log, from the latest valid snapshot or the beginning.

    Corrected feedback is applied at its original position: the learner's state is the one it would have without the
    mistake, for the recorded guesses. So a snapshot is valid only if it was taken before the feedback it corrects.
    `kept` is a snapshot in memory, later than those in the log.
    """
    corrections = log.find(kind=Kind.CORRECTED)
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
    if state is None and log.compacted:
        lost = f"events up to {log.compacted} were compacted into a snapshot, which cannot be used"
        raise LogError(f"{lost}; put a backup in its place")
    state = state or State(settings, trusted)
    try:
        for event in log.events(state.seq):
            if event.kind == Kind.CORRECTED and event.seq not in noted:
                raise LogError(f"event {event.seq} is not where corrections are looked up; put a backup in its place")
            state.apply(event, corrected)
    except (LogError, MemoryBudgetError):
        raise
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        why = f"cannot be replayed: {error!r}. Was it written by a newer onebit?"
        raise LogError(f"event {state.seq + 1} {why}") from error
    if state.seq != log.last_seq:
        raise LogError(f"the log ends with event {log.last_seq}, and event {state.seq} was known; put a backup there")
    return state


def verify(log: EventLog, settings: Settings, trusted: Any, state: State) -> bool:
    """Return whether a replay of the whole log gives the state to the last bit; raises LogError for a damaged file."""
    if log.compacted:
        raise ValueError(f"events up to {log.compacted} were compacted: the log has no beginning any more")
    log.check()
    return same_state(replay(log, settings, trusted, from_snapshot=False), state)


def same_state(one: State, other: State) -> bool:
    """Return whether two states are equal to the last bit, except for the ids of the learner's tickets."""
    if _plain_parts(one) != _plain_parts(other):
        return False
    if not one.learner._started:
        return True
    if one.learner._state.plays_by_hand:  # its state is opaque: compare the serialized copies, which have no tickets
        return bytes(to_bytes(copy(one.learner))) == bytes(to_bytes(copy(other.learner)))
    # Without spare capacity, which is smaller after loading a snapshot.
    mine, theirs = (learned_arrays(each.learner) for each in (one, other))
    return mine.keys() == theirs.keys() and all(
        np.array_equal(array, theirs[name], equal_nan=True) for name, array in mine.items()
    )


def _plain_parts(state: State) -> tuple[Any, ...]:
    asking = None if state.asking is None else state.asking.state()
    about = state.settings, state.classes, state.counts, list(state.open)
    return *about, state.encoder.state(), asking, state.learner._started
