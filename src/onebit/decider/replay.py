"""Rebuild a decider's state from its event log."""

from functools import partial
from itertools import chain
from typing import Any

from onebit.decider.events import Event, Kind
from onebit.decider.log import Log, Snapshot
from onebit.decider.log_errors import LogError
from onebit.decider.runs import ReplayBatcher
from onebit.decider.settings import Settings
from onebit.decider.state import State
from onebit.machine_memory import MemoryBudgetError


def replay(
    log: Log, settings: Settings, trusted: Any = (), *, from_snapshot: bool = True, kept: Snapshot | None = None
) -> State:
    """Return the state of a decider after all events of its log.

    Corrected feedback is applied at its original position: the learner's state is the one it would have without the
    mistake, for the recorded guesses. So a snapshot is valid only if it was taken before the feedback it corrects.

    Parameters
    ----------
    log : Log
        The log.
    settings : Settings
        The settings with which the decider was created.
    trusted : list
        Classes that may be loaded, as in `onebit.load`.
    from_snapshot : bool
        Whether to start from the latest valid snapshot.
    kept : Snapshot
        A snapshot in memory, later than those in the log.
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
    batcher = ReplayBatcher(state, corrected, partial(state.apply, corrected=corrected))
    try:
        for event in log.events(state.seq):
            if event.kind == Kind.CORRECTED and event.seq not in noted:
                raise LogError(f"event {event.seq} is not where corrections are looked up; put a backup in its place")
            batcher.take(event)
        batcher.finish()
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
    """Return the state of the latest snapshot not invalidated by a later correction, if there is one."""
    for snapshot in chain([] if kept is None else [kept], log.snapshots()):
        later = [event for event in corrections if event.seq > snapshot.seq]
        if all(event.body["answered"] > snapshot.seq for event in later):
            try:
                return State.of_bytes(settings, snapshot.content, trusted)
            except MemoryBudgetError:
                raise
            except ValueError:
                continue  # fall back to an older snapshot or the events
    return None
