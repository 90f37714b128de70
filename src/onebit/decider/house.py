"""What keeps a decider in order: snapshots, compacting, forgetting, exporting, checking."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from onebit.decider.events import Kind
from onebit.decider.export import check_table, write_guesses
from onebit.decider.looks import Looks
from onebit.decider.replay import replay
from onebit.decider.settings import NOTHING
from onebit.decider.state import same_state
from onebit.decider.tickets import Ticket, name_of
from onebit.encoding.record_json import named_parts, record_from_json, record_to_json
from onebit.inputs import brief


class House(Looks):
    """A keeper that is kept in order."""

    def warm_up(self) -> None:
        """Compile what the first guess and answer would wait for: some ten seconds for `BanditSVM`, once.

        Another learner with the same settings plays two rounds, with dense and with sparse rows if it is not known yet
        what records become; of this one nothing is changed.
        """
        for row in self._state.encoder.example_rows():
            twin = self._settings.new_learner(self._trusted)
            for correct in (False, True):
                twin.tell(twin.guess(row), correct)  # type: ignore[arg-type]

    def snapshot(self) -> None:
        """Write down what is known, so that opening takes no replay; it happens by itself from time to time."""
        with self._lock:
            self._make_ready()
            self._snapshot()

    def compact(self) -> int:
        """Remove the events that a snapshot makes needless, with the records in them; return how many.

        What stays is what the learner knows (numbers: `BanditSVM` keeps up to `budget` rows as it saw them), what the
        columns became (names of columns and categories), the counts, and the events of open tickets. Answers from
        before cannot be corrected any more, nor the learner replayed from its beginning.
        """
        with self._lock:
            self._make_ready()
            self._snapshot()
            return self._log.compact(set(self._state.open))

    def forget(self, tickets: "Iterable[str | Ticket]" = (), where: Mapping[str, Any] | None = None) -> int:
        """Erase what was recorded of some guesses, a person's for instance; return how many events are gone.

        Their open tickets are closed without an answer. The events are erased from the file, not only marked. What the
        learner made of them stays in its numbers (`BanditSVM` keeps up to `budget` rows as it saw them), and so do the
        names of columns and categories. As after `compact`, nothing from before can be corrected or replayed.

        Parameters
        ----------
        tickets : list of str or Ticket
            Which guesses.
        where : mapping
            And all whose records, and those of shadow mode, have these values: ``{"customer": "c-17"}``. A dot leads
            into a mapping or a list, as in the names of columns: ``{"customer.id": 17}``, ``{"tags.0": "late"}``.
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
            self._requests.clear()  # the log knows those that are left
            self._log.erase(gone)
            return len(gone)

    def export(self, path: "str | os.PathLike[str]") -> int:
        """Write every guess that is still in the log to a CSV or Parquet file, one line each; return how many.

        Columns: ticket, time, label, propensity, correct (empty where nobody said), answered, and the record as JSON.
        """
        place = check_table(path)
        with self._lock:
            self._make_ready()
            return write_guesses(place, self._log.events(), list(self._state.classes))

    def verify(self) -> bool:
        """Replay the whole log, and return whether that gives what is known now, to the last bit.

        Raises LogError if the file is damaged, also where no guess depends on it.
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
    """Return the values by which records are found, by their names, as the log keeps them."""
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise ValueError(f'where must be a mapping such as {{"customer.id": 17}}; got {brief(where)}')
    written = record_to_json(where)
    if any(name.endswith("$unreadable") for name in named_parts(written)):
        raise ValueError(f"where must have values that records have; got {brief(where)}")
    parts = named_parts(record_from_json(written))
    return {name: value for name, value in parts.items() if not isinstance(value, Mapping)}
