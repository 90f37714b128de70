"""The log of a decider as a whole: its replay, and what is looked up in all of it."""

import io
import math
from collections.abc import Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from onebit.asking import Asking
from onebit.decider.log import EventLog, Snapshot, row_of_bytes, row_to_bytes
from onebit.decider.settings import Settings
from onebit.decider.state import State
from onebit.decider.tickets import Event, Kind, LogError, Moment, Status
from onebit.encoding import Encoder, record_from_json, record_to_json
from onebit.encoding.fields import named_parts
from onebit.extras import require_extra
from onebit.files import replace_file
from onebit.inputs import brief
from onebit.learners.saving import from_bytes, learned_arrays, to_bytes
from onebit.machine_memory import MemoryBudgetError
from onebit.typed_json import Trusted, describe, parse, restore, write

_HEAD = 8  # bytes for the length of a snapshot's header
# What a snapshot holds as it is.
_PLAIN = ["counts", "n_guesses", "n_answered", "n_wrong", "n_closed", "n_shadows", "n_asked", "n_asked_answered"]
_PLAIN += ["n_suggestions_right", "stride", "seq", "is_altered", "differences", "first_difference"]


class History:
    """A decider's log, with the settings that it began with; the classes in `trusted` may be loaded from it."""

    def __init__(self, log: EventLog, trusted: Any = ()) -> None:
        about = log.about()
        self._log, self._began, self.settings = log, about["began"], Settings.of(about, trusted)

    def latest_snapshot(self, kept: Snapshot | None = None, *, before: float = math.inf) -> State | None:
        """Return the state at the latest valid snapshot: `kept` in memory, or one of the log; None if there is none.

        It is one before the event with the number `before`. Raises LogError if there is none and events were compacted.
        """
        corrections = self._log.find(kind=Kind.CORRECTED)
        for snapshot in chain([kept] if kept else [], self._log.snapshots()):
            later = [event.body["corrects"] for event in corrections if event.seq > snapshot.seq]
            if snapshot.seq < min([before, *later]):
                try:
                    return self.of_bytes(snapshot.content)
                except MemoryBudgetError:
                    raise
                except ValueError:
                    continue  # fall back to an older snapshot or the events
        if up_to := self._log.compacted:
            lost = f"events up to {up_to} were compacted into a snapshot, which cannot be used"
            raise LogError(f"{lost}; put a backup in its place")
        return None

    def replay(self, kept: Snapshot | None = None, *, from_snapshot: bool = True) -> State:
        """Return the state of a decider after all events of its log, from the latest valid snapshot or the beginning.

        Corrected feedback is applied at its original position: the learner's state is the one it would have without the
        mistake, for the recorded guesses. So a snapshot is valid only if it was taken before the feedback it corrects.
        """
        log, state = self._log, self.latest_snapshot(kept) if from_snapshot else None
        corrections = {event.seq: event for event in log.find(kind=Kind.CORRECTED)}
        corrected = {str(each.ticket): (each.body["correct"], each.body.get("label")) for each in corrections.values()}
        state = state or State(self.settings)
        try:
            for event in log.events(state.seq):
                if event.kind == Kind.CORRECTED and event.seq not in corrections:
                    raise LogError(f"event {event.seq} is not where corrections are looked up; put a backup there")
                state.apply(event, corrected)
        except (LogError, MemoryBudgetError):
            raise
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            why = f"cannot be replayed: {error!r}. Was it written by a newer onebit?"
            raise LogError(f"event {state.seq + 1} {why}") from error
        if (last := log.last_seq) != state.seq:
            raise LogError(f"the log ends with event {last}, and event {state.seq} was known; put a backup there")
        return state

    @staticmethod
    def to_bytes(state: State) -> bytes:
        """Serialize a state, for a snapshot."""
        header = {name: getattr(state, name) for name in _PLAIN} | {
            "settings": state.settings.changeable(),
            "encoder": state.encoder.state(),
            "classes": describe(state.classes),
            "open": [
                [ticket, None if each.row is None else row_to_bytes(each.row).hex(), *each._replace(row=None)]
                for ticket, each in state.open.items()
            ],
            "asking": None if state.asking is None else state.asking.state(),
            "curve": state.curve,
        }
        text = write(header).encode()
        return b"".join((len(text).to_bytes(_HEAD, "little"), text, to_bytes(state.learner)))

    def of_bytes(self, content: bytes) -> State:
        """Rebuild a state from the result of `to_bytes`; raises ValueError for other bytes."""
        end = _HEAD + int.from_bytes(content[:_HEAD], "little")
        state, header = State(self.settings), parse(content[_HEAD:end])
        trusted = self.settings.trusted
        try:
            vars(state).update({name: header[name] for name in _PLAIN})
            state.settings = self.settings.changed(header["settings"])
            state.learner = from_bytes(content[end:], "the snapshot's learner", trusted)
            state.encoder = Encoder.from_state(header["encoder"])
            state.classes = restore(header["classes"], Trusted(trusted))
            state.indices = {label: i for i, label in enumerate(state.classes)}
            state.asking = None if header["asking"] is None else Asking.from_state(header["asking"])
            for ticket, hexed, *values in header["open"]:
                state.reopen(ticket, values, None if hexed is None else row_of_bytes(bytes.fromhex(hexed)))
            state.curve = [Moment(*each) for each in header["curve"]]
            state.restored = state.seq
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the snapshot is none ({error!r})") from error
        return state

    def verify(self, state: State) -> bool:
        """Return whether a replay of the log gives the state to the last bit; LogError is raised if it is damaged."""
        if up_to := self._log.compacted:
            raise ValueError(f"events up to {up_to} were compacted: the log has no beginning any more")
        self._log.check()
        return _same_state(self.replay(from_snapshot=False), state)

    def matching(self, where: Any) -> Iterator[Event]:
        """Yield the events whose records have certain values, given by column name; none without any."""
        if where is None:
            return
        if not isinstance(where, Mapping):
            raise ValueError(f'where must be a mapping such as {{"customer.id": 17}}; got {brief(where)}')
        stored = record_to_json(where)  # as the log has it
        if any(name.endswith("$unreadable") for name in named_parts(stored)):
            raise ValueError(f"where must have values that records have; got {brief(where)}")
        parts = named_parts(record_from_json(stored))
        wanted = {name: value for name, value in parts.items() if not isinstance(value, Mapping)}
        for event in self._log.events() if wanted else ():
            found = named_parts(record_from_json(event.body.get("record")))
            if all(name in found and found[name] == value for name, value in wanted.items()):
                yield event

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
        frame.write_csv(content) if path.suffix == ".csv" else frame.write_parquet(content)
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


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
