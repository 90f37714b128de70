"""Replay of a decider's log, and what else is read from its state and events: status, open tickets, records, export."""

import io
import math
import platform
from collections.abc import Callable, Mapping
from copy import copy
from datetime import UTC, datetime
from heapq import nsmallest
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from onebit.decider.log import EventLog, Snapshot
from onebit.decider.settings import Settings
from onebit.decider.state import State
from onebit.decider.tickets import Event, Kind, LogError, Status, Ticket
from onebit.encoding import record_from_json, record_to_json
from onebit.encoding.fields import named_parts
from onebit.extras import require_extra
from onebit.files import replace_file
from onebit.inputs import brief, check_choice
from onebit.kernels import kernel_name
from onebit.learners.bandit_svm import BanditSVM
from onebit.learners.base import Learner
from onebit.learners.saving import learned_arrays, to_bytes
from onebit.machine_memory import MemoryBudgetError
from onebit.typed_json import write


class History:
    """The log of a decider as a whole: replays of it, and what is looked up in all of it.

    `settings` are those that the decider began with; the classes in `trusted` may be loaded from the log.
    """

    def __init__(self, log: EventLog, trusted: Any = ()) -> None:
        about = log.about()
        self._log, self._began, self.settings = log, about["began"], Settings.of(about, trusted)

    def replay(self, kept: Snapshot | None = None, *, from_snapshot: bool = True) -> State:
        """Return the state of a decider after all events of its log, from the latest valid snapshot or the beginning.

        Corrected feedback is applied at its original position: the learner's state is the one it would have without the
        mistake, for the recorded guesses. So a snapshot is valid only if it was taken before the feedback it corrects.
        `kept` is a snapshot in memory, later than those in the log.
        """
        log, settings = self._log, self.settings
        corrections = log.find(kind=Kind.CORRECTED)
        corrected = {str(event.ticket): (event.body["correct"], event.body.get("label")) for event in corrections}
        noted = {event.seq for event in corrections}
        state = None
        for snapshot in chain([kept] if kept else [], log.snapshots()) if from_snapshot else ():
            if all(event.body["corrects"] > snapshot.seq for event in corrections if event.seq > snapshot.seq):
                try:
                    state = State.of_bytes(settings, snapshot.content)
                    break
                except MemoryBudgetError:
                    raise
                except ValueError:
                    continue  # fall back to an older snapshot or the events
        if state is None and log.compacted:
            lost = f"events up to {log.compacted} were compacted into a snapshot, which cannot be used"
            raise LogError(f"{lost}; put a backup in its place")
        state = state or State(settings)
        try:
            for event in log.events(state.seq):
                if event.kind == Kind.CORRECTED and event.seq not in noted:
                    raise LogError(
                        f"event {event.seq} is not where corrections are looked up; put a backup in its place"
                    )
                state.apply(event, corrected)
        except (LogError, MemoryBudgetError):
            raise
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            why = f"cannot be replayed: {error!r}. Was it written by a newer onebit?"
            raise LogError(f"event {state.seq + 1} {why}") from error
        if state.seq != log.last_seq:
            raise LogError(
                f"the log ends with event {log.last_seq}, and event {state.seq} was known; put a backup there"
            )
        return state

    def verify(self, state: State) -> bool:
        """Return whether a replay of the log gives the state to the last bit; LogError is raised if it is damaged."""
        if up_to := self._log.compacted:
            raise ValueError(f"events up to {up_to} were compacted: the log has no beginning any more")
        self._log.check()
        return _same_state(self.replay(from_snapshot=False), state)

    def status(self, state: State) -> Status:
        """Return the status of a decider."""
        oldest = next(iter(state.open.values()), None)
        return Status(
            path=str(self._log.path),
            learner=repr(state.learner),
            classes=list(state.classes),
            guesses=state.n_guesses,
            right=state.n_answered - state.n_wrong,
            wrong=state.n_wrong,
            asked=state.n_asked,
            asked_answered=state.n_asked_answered,
            suggestions_right=state.n_suggestions_right,
            open=len(state.open),
            silent=state.n_closed,
            watched=state.n_shadows,
            columns=len(state.encoder.columns()),
            events=self._log.last_seq,
            oldest_open=None if oldest is None else _moment(oldest.time),
            differences=state.differences,
            since=_moment(self._began),
            last=_moment(self._log.last_time),
        )

    def write_guesses(self, path: Path, classes: list[Any]) -> int:
        """Write every guess to a CSV or Parquet file, one row each, with its latest feedback; return how many."""
        require_extra("writing tables needs", "files")
        if path.suffix not in (".csv", ".parquet"):
            raise ValueError(f"path must end in .csv or .parquet; got {str(path)!r}")
        import polars

        time = polars.Datetime("us", "UTC")
        types: dict[str, Any] = {"ticket": str, "time": time, "label": str, "propensity": float, "correct": bool}
        types |= {"answered": time, "record": str}
        lines: dict[str | None, list[Any]] = {}
        for event in self._log.events():
            body, at = event.body, _moment(event.time)
            if event.kind == Kind.GUESSED:
                label = str(classes[body["label"]])
                lines[event.ticket] = [event.ticket, at, label, body["propensity"], None, None, write(body["record"])]
            elif event.kind in (Kind.FEEDBACK, Kind.CORRECTED) and event.ticket in lines:
                lines[event.ticket][4:6] = body["correct"], at
        frame, content = polars.DataFrame(list(lines.values()), schema=types, orient="row"), io.BytesIO()
        write_frame = frame.write_csv if path.suffix == ".csv" else frame.write_parquet
        write_frame(content)
        replace_file(path, content.getvalue())
        return len(lines)


def _same_state(one: State, other: State) -> bool:
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


# What is looked up in the state.


def surroundings() -> dict[str, Any]:
    """Return versions and platform, which may influence guesses."""
    versions = {name: version(name) for name in ("onebit", "numpy", "numba")}
    return versions | {"python": platform.python_version(), "machine": platform.machine()}


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def open_tickets(
    state: State, older_than: str | None, limit: int, asked: bool | None = None, order: str = "newest"
) -> list[Ticket]:
    """Return tickets without feedback in an order; only those before one with a certain id, if given."""
    check_choice("order", order, ("newest", "oldest", "doubt"))
    end = math.inf
    if older_than is not None:
        number = older_than.partition("-")[0] if isinstance(older_than, str) else ""  # of its guess event
        if not (number.isascii() and number.isdigit() and len(number) < 20):
            raise ValueError(f"ticket {older_than!r:.80} is no ticket's id")
        end = int(number)
    wanted = (True, False) if asked is None else (asked,)
    opened = reversed(state.open.items()) if order == "newest" else state.open.items()
    found = ((name, each) for name, each in opened if each.seq < end and each.ask in wanted)
    if order == "doubt":  # without a confidence, labels are needed most
        first = nsmallest(limit, found, key=lambda item: item[1].body["confidence"] or 0.0)
    else:
        first = list(islice(found, limit))
    return [state.ticket_of(name, each.time, each.body, each.ask) for name, each in first]


def kernel_weights(learner: Learner) -> list[tuple[str, float]]:
    """Return kernel names and their weights, which sum to 1, largest first; empty for other learners."""
    if not isinstance(learner, BanditSVM) or not learner._started:
        return []
    if (trust := getattr(learner._state, "trust", None)) is None:  # a single linear space has no weights
        return []
    shares = (trust / trust.sum()).tolist()
    named = [(kernel_name(kernel), share) for kernel, share in zip(learner.bank_, shares, strict=True)]
    return sorted(named, key=lambda each: -each[1])


def matcher(where: Any) -> Callable[[Event], bool] | None:
    """Return what tells whether the record of an event has certain values, given by column name; None without any."""
    if where is None:
        return None
    if not isinstance(where, Mapping):
        raise ValueError(f'where must be a mapping such as {{"customer.id": 17}}; got {brief(where)}')
    stored = record_to_json(where)  # as the log has it
    if any(name.endswith("$unreadable") for name in named_parts(stored)):
        raise ValueError(f"where must have values that records have; got {brief(where)}")
    parts = named_parts(record_from_json(stored))
    wanted = {name: value for name, value in parts.items() if not isinstance(value, Mapping)}

    def matches(event: Event) -> bool:
        found = named_parts(record_from_json(event.body.get("record")))
        return all(name in found and found[name] == value for name, value in wanted.items())

    return matches if wanted else None
