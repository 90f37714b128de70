"""What can be asked of a decider without changing anything."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from onebit.decider.bank import kernel_weights
from onebit.decider.course import Moment
from onebit.decider.events import Event
from onebit.decider.keeper import Keeper
from onebit.decider.tickets import Status, Ticket, moment, name_of, number_of

AT_LEAST = 8 << 20
"""Bytes of memory that an open decider takes: its log's cache, its thread, what it met of columns and words."""
OF_A_CLASS = 1_000
"""Bytes of memory that each label takes."""


class Looks(Keeper):
    """A keeper that shows what it knows."""

    @property
    def classes(self) -> list[Any]:
        """The labels it may guess."""
        with self._lock:
            self._make_sure()
            return list(self._state.classes)

    def columns(self) -> list[Any]:
        """Return what each column of the records became."""
        with self._lock:
            self._make_sure()
            return self._state.encoder.columns()

    def status(self) -> Status:
        """Return how it fares."""
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
        """Return how it fares, or None if that is not known so soon: a correction may be replayed for minutes."""
        if not self._lock.acquire(timeout=seconds):
            return None
        try:
            return None if self._is_stale or self._log.is_behind else self.status()
        finally:
            self._lock.release()

    def n_bytes(self) -> int:
        """Return roughly how much memory it takes: labels, what was learned, open tickets, and some for the rest."""
        state = self._state
        return AT_LEAST + OF_A_CLASS * len(state.classes) + state.learner.n_bytes() + state.row_bytes

    def ticket_bytes(self) -> int:
        """Return roughly how much memory one more open ticket takes: as much as the latest."""
        return self._state.ticket_bytes

    def by_class(self) -> dict[Any, tuple[int, int, int]]:
        """Return how often each label was guessed, right and wrong."""
        with self._lock:
            self._make_sure()
            counts = self._state.counts
            return {
                label: (counts.guessed[i], counts.right[i], counts.wrong[i])
                for i, label in enumerate(self._state.classes)
            }

    def course(self) -> list[Moment]:
        """Return how mistakes went since it began: some hundred moments, evenly spaced by answers, and now."""
        with self._lock:
            self._make_sure()
            course, guesses = self._state.course, self._state.counts.guessed.total()
            return [*course.moments, Moment(self._log.last_time, guesses, course.answered, course.wrong)]

    def kernel_weights(self) -> list[tuple[str, float]]:
        """Return what each kernel counts in the vote of a `BanditSVM`, the most trusted first; none for others."""
        with self._lock:
            self._make_sure()
            return kernel_weights(self._state.learner)

    def open_tickets(self, older_than: str | None = None, limit: int = 100) -> list[Ticket]:
        """Return tickets that wait for an answer, the newest first.

        Parameters
        ----------
        older_than : str
            The id of a ticket, which need not be open any more: only those of before.
        limit : int
            How many at most.
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
        """Return all events about a ticket that are still in the log, by its id or by the key of its request."""
        name = name_of(ticket)
        with self._lock:
            self._make_ready()
        found = self._log.about_ticket(name)
        if not found and (asked := self._log.with_key(name)) is not None and asked.ticket is not None:
            found = self._log.about_ticket(asked.ticket)
        return found

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after that one which are still in the log, in order."""
        with self._lock:
            self._make_ready()
        yield from self._log.events(after)
