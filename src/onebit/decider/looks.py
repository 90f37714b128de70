"""Read-only operations of a decider."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from onebit.decider.bank import kernel_weights
from onebit.decider.course import Moment
from onebit.decider.events import Event
from onebit.decider.keeper import DeciderCore
from onebit.decider.tickets import Status, Ticket, moment, name_of, number_of

AT_LEAST = 8 << 20
"""Memory of an open decider without learner and tickets, in bytes: log cache, thread, encoder."""
OF_A_CLASS = 1_000
"""Memory of one class, in bytes."""


class DeciderQueries(DeciderCore):
    """Read-only operations of a decider."""

    @property
    def classes(self) -> list[Any]:
        """The labels that can be guessed."""
        with self._lock:
            self._make_sure()
            return list(self._state.classes)

    def columns(self) -> list[Any]:
        """Return how each column of the records is encoded."""
        with self._lock:
            self._make_sure()
            return self._state.encoder.columns()

    def status(self) -> Status:
        """Return counts of guesses, feedback and tickets, and the settings."""
        with self._lock:
            self._make_ready()
            state, counts = self._state, self._state.counts
            oldest = next(iter(state.open.values()), None)
            return Status(
                path=str(getattr(self._log, "path", "")),
                learner=repr(state.learner),
                classes=list(state.classes),
                guesses=counts.guessed.total(),
                right=counts.right.total(),
                wrong=counts.wrong.total(),
                open=len(state.open),
                silent=counts.silent,
                watched=counts.watched,
                columns=len(state.encoder.columns()),
                events=self._log.last_seq,
                oldest_open=None if oldest is None else moment(oldest.time),
                differences=state.differences,
                since=moment(self._log.about()["began"]),
            )

    def status_within(self, seconds: float) -> Status | None:
        """Return the status, or None if it takes longer than `seconds`: a correction may be replayed for minutes."""
        if not self._lock.acquire(timeout=seconds):
            return None
        try:
            return None if self._is_stale or self._log.is_behind else self.status()
        finally:
            self._lock.release()

    def n_bytes(self) -> int:
        """Return the approximate memory use in bytes: classes, learner, open tickets, and a constant."""
        state = self._state
        return AT_LEAST + OF_A_CLASS * len(state.classes) + state.learner.n_bytes() + state.row_bytes

    def ticket_bytes(self) -> int:
        """Return the approximate memory of one more open ticket in bytes, estimated by the latest."""
        return self._state.ticket_bytes

    def by_class(self) -> dict[Any, tuple[int, int, int]]:
        """Return for each label how often it was guessed, right, and wrong."""
        with self._lock:
            self._make_sure()
            counts = self._state.counts
            return {
                label: (counts.guessed[i], counts.right[i], counts.wrong[i])
                for i, label in enumerate(self._state.classes)
            }

    def course(self) -> list[Moment]:
        """Return the learning curve: up to 512 points, evenly spaced by feedback, and the current one."""
        with self._lock:
            self._make_sure()
            course, guesses = self._state.course, self._state.counts.guessed.total()
            return [*course.moments, Moment(self._log.last_time, guesses, course.answered, course.wrong)]

    def kernel_weights(self) -> list[tuple[str, float]]:
        """Return the weights of a `BanditSVM`'s kernels, largest first; empty for other learners."""
        with self._lock:
            self._make_sure()
            return kernel_weights(self._state.learner)

    def open_tickets(self, older_than: str | None = None, limit: int = 100) -> list[Ticket]:
        """Return tickets without feedback, newest first.

        Parameters
        ----------
        older_than : str
            Return only tickets before the one with this id, which may be closed.
        limit : int
            Maximum number of tickets.
        """
        end = math.inf if older_than is None else number_of(older_than)
        with self._lock:
            self._make_sure()
            classes, waiting = self._state.classes, self._state.open
            older = (name for name in reversed(waiting) if waiting[name].seq < end)
            return [
                Ticket(name, classes[each.label], each.propensity, moment(each.time))
                for name in islice(older, limit)
                for each in (waiting[name],)
            ]

    def look_up(self, ticket: "str | Ticket") -> list[Event]:
        """Return all events of a ticket in the log, by its id or the key of its request."""
        name = name_of(ticket)
        with self._lock:
            self._make_ready()
        found = self._log.about_ticket(name)
        if not found and (asked := self._log.with_key(name)) is not None and asked.ticket is not None:
            found = self._log.about_ticket(asked.ticket)
        return found

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events in the log with numbers above `after`, in order."""
        with self._lock:
            self._make_ready()
        yield from self._log.events(after)
