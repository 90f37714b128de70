"""Maintenance of a decider: snapshots, compaction, erasure, export, verification."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from onebit.decider.events import Kind
from onebit.decider.export import check_table, write_guesses
from onebit.decider.looks import DeciderQueries
from onebit.decider.replay import replay
from onebit.decider.settings import NOTHING
from onebit.decider.state import same_state
from onebit.decider.tickets import Ticket, name_of
from onebit.encoding import named_parts, record_from_json, record_to_json
from onebit.inputs import brief


class DeciderMaintenance(DeciderQueries):
    """Maintenance operations of a decider."""

    def warm_up(self) -> None:
        """Compile the learner's code before the first guess; takes about ten seconds for `BanditSVM`, once.

        A new learner with the same settings plays two rounds, with dense and sparse rows before the first record. The
        state does not change.
        """
        for row in self._state.encoder.example_rows():
            twin = self._settings.new_learner(self._trusted)
            for correct in (False, True):
                twin.tell(twin.guess(row), correct)  # type: ignore[arg-type]

    def snapshot(self) -> None:
        """Write a snapshot of the state, so that opening needs no replay; also done automatically."""
        with self._lock:
            self._make_ready()
            self._snapshot()

    def compact(self) -> int:
        """Remove all events covered by a new snapshot, with their records; return how many.

        Kept are the learner's state (`BanditSVM` stores up to `budget` rows), the encoder's (names of columns and
        categories), the counts, and the events of open tickets. Earlier feedback can no longer be corrected, and the
        log can no longer be replayed from its beginning.
        """
        with self._lock:
            self._make_ready()
            self._snapshot()
            return self._log.compact(set(self._state.open))

    def forget(self, tickets: "Iterable[str | Ticket]" = (), where: Mapping[str, Any] | None = None) -> int:
        """Erase the events of some guesses, such as those of one person; return how many.

        Open tickets among them are closed without feedback. The events are overwritten on disk. The learner's state is
        kept (`BanditSVM` stores up to `budget` rows), and so are the names of columns and categories. As after
        `compact`, earlier events can no longer be corrected or replayed.

        Parameters
        ----------
        tickets : list of str or Ticket
            The guesses.
        where : mapping
            Also all guesses and shadow decisions whose records have these values: ``{"customer": "c-17"}``. A dot
            selects from a mapping or list, as in names of columns: ``{"customer.id": 17}``, ``{"tags.0": "late"}``.
        """
        if isinstance(tickets, (str, Ticket)):
            raise ValueError(f"tickets must be a list of tickets or their ids; got {brief(tickets)}")
        names = {name_of(ticket) for ticket in tickets}
        wanted = _wanted(where)
        with self._lock:
            self._make_ready()
            alone = []
            for event in self._log.events() if wanted else ():
                found = named_parts(record_from_json(event.body.get("record")))
                if all(name in found and found[name] == value for name, value in wanted.items()):
                    names |= {event.ticket} if event.ticket is not None else set()
                    alone += [event.seq] if event.ticket is None else []
            for name in [name for name in self._state.open if name in names]:
                self._add(Kind.SILENT, name, {"says": NOTHING})
            self._snapshot()
            gone = alone + [event.seq for name in sorted(names) for event in self._log.about_ticket(name)]
            for name in names:
                self._answers.pop(name, None)
            self._requests.clear()  # the remaining ones are found in the log
            self._log.erase(gone)
            return len(gone)

    def export(self, path: "str | os.PathLike[str]") -> int:
        """Write every guess in the log to a CSV or Parquet file, one row each; return how many.

        Columns: ticket, time, label, propensity, correct (empty without feedback), answered, and the record as JSON.
        """
        place = check_table(path)
        with self._lock:
            self._make_ready()
            return write_guesses(place, self._log.events(), list(self._state.classes))

    def verify(self) -> bool:
        """Replay the whole log; return whether the result equals the current state to the last bit.

        Raises LogError if any part of the file is damaged.
        """
        with self._lock:
            self._make_ready()
            if self._log.compacted:
                raise ValueError(
                    f"events up to {self._log.compacted} were compacted: the log has no beginning any more"
                )
            self._log.check()
            anew = replay(self._log, self._settings, self._trusted, from_snapshot=False)
            return same_state(anew, self._state)


def _wanted(where: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of `where` by column name, as they are stored in the log."""
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise ValueError(f'where must be a mapping such as {{"customer.id": 17}}; got {brief(where)}')
    written = record_to_json(where)
    if any(name.endswith("$unreadable") for name in named_parts(written)):
        raise ValueError(f"where must have values that records have; got {brief(where)}")
    parts = named_parts(record_from_json(written))
    return {name: value for name, value in parts.items() if not isinstance(value, Mapping)}
