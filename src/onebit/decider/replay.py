"""A decider's state from its log."""

from functools import partial
from itertools import chain
from typing import Any

from onebit.decider.events import Event, Kind
from onebit.decider.log import Log, Snapshot
from onebit.decider.log_errors import LogError
from onebit.decider.runs import Runs
from onebit.decider.settings import Settings
from onebit.decider.state import State
from onebit.machine_memory import MemoryBudgetError


def replay(
    log: Log, settings: Settings, trusted: Any = (), *, from_snapshot: bool = True, kept: Snapshot | None = None
) -> State:
    """Return what a decider knows after all events of its log.

    A corrected answer is taken for what it should have been from the moment it was given: the learner is what it would
    be had nobody erred, with the guesses that were made. So only a snapshot from before that answer still holds.

    Parameters
    ----------
    log : Log
        The log.
    settings : Settings
        The decider's.
    trusted : list
        What the learner's file may name.
    from_snapshot : bool
        Whether to go on from the latest snapshot that still holds.
    kept : Snapshot
        One that is in memory, and later than those of the log.
    """
    corrections = log.of_kind(Kind.CORRECTED)
    corrected = {str(event.ticket): event.body["correct"] for event in corrections}
    state = _latest(log, settings, trusted, corrections, kept) if from_snapshot else None
    if state is None:
        if log.compacted:
            raise LogError(
                f"events up to {log.compacted} were compacted into a snapshot, which cannot be read, or is not to be "
                "used; put a backup in its place"
            )
        state = State(settings, trusted)
    noted = {event.seq for event in corrections}
    runs = Runs(state, corrected, partial(state.apply, corrected=corrected))
    try:
        for event in log.events(state.seq):
            if event.kind == Kind.CORRECTED and event.seq not in noted:
                raise LogError(f"event {event.seq} is not where corrections are looked up; put a backup in its place")
            runs.take(event)
        runs.finish()
    except (LogError, MemoryBudgetError):
        raise
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise LogError(
            f"event {state.seq + 1} cannot be replayed: {error!r}. Was it written by a newer onebit?"
        ) from error
    if state.seq != log.last_seq:
        raise LogError(f"the log ends with event {log.last_seq}, and event {state.seq} was known; put a backup there")
    return state


def _latest(
    log: Log, settings: Settings, trusted: Any, corrections: list[Event], kept: Snapshot | None
) -> State | None:
    """Return the state of the latest snapshot that no later correction reaches behind."""
    for snapshot in chain([] if kept is None else [kept], log.snapshots()):
        later = [event for event in corrections if event.seq > snapshot.seq]
        if all(event.body["answered"] > snapshot.seq for event in later):
            try:
                return State.of_bytes(settings, snapshot.content, trusted)
            except MemoryBudgetError:
                raise
            except ValueError:
                continue  # events are the truth
    return None
