"""The decider: a learner that an application can hold for a year.

``guess(record)`` names a label and hands out a ticket, ``tell(ticket.id, correct)`` says whether it was right, whenever
that is known. Both are in the log before the call returns, and everything else follows from the log.
"""

import math
import os
import platform
import secrets
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

import numba
import numpy as np

from onebit.inputs import check_choice, check_number
from onebit.labels import check_classes
from onebit.learners import Learner
from onebit.live.bank import kernel_weights
from onebit.live.course import Moment
from onebit.live.events import Event, Kind
from onebit.live.export import check_table, write_guesses
from onebit.live.log import Batch, Log, LogError, LogWriteError, Snapshot
from onebit.live.logs import open_log
from onebit.live.record_json import record_from_json, record_to_json
from onebit.live.records import Looked
from onebit.live.replay import replay
from onebit.live.settings import NOTHING, Settings, check_same, new_settings, settings_of
from onebit.live.state import State, named_among, same_state
from onebit.live.tickets import Shadow, Status, Ticket, check_answer, moment, name_of, number_of
from onebit.typed_json import describe

_EVENTS_PER_SNAPSHOT = 50_000
_WORTH_A_SNAPSHOT = 1_000  # when it is closed: fewer are replayed in no time
_FLUSH_SECONDS = 0.02
_RECENT = 10_000  # requests and answers that are known without asking the log
_LONGEST_KEY = 200
_SECRET = 8  # bytes of a ticket's name that nobody can guess
_SECRETS_AT_ONCE = 256

_Said = TypeVar("_Said", Ticket, Shadow)


class ReplayWarning(UserWarning):
    """Guesses of the log that this onebit would have made otherwise; the message says how many."""


class Decider:
    """A learner with a log; `Decider.open` makes one or goes on with one.

    Any number of threads may share it. One process owns its log at a time.

    Examples
    --------
    >>> import os, tempfile
    >>> import onebit
    >>> path = os.path.join(tempfile.mkdtemp(), "routing.onebit")
    >>> with Decider.open(path, classes=["billing", "refund"], learner=onebit.BanditPerceptron()) as desk:
    ...     ticket = desk.guess({"channel": "mail", "length": 212})
    ...     is_news = desk.tell(ticket.id, correct=True)
    >>> with Decider.open(path) as desk:  # tomorrow
    ...     desk.status().right
    1
    """

    def __init__(self, log: Log, settings: Settings, durability: str, trusted: Any, clock: Callable[[], float]) -> None:
        self._log, self._settings, self._trusted, self._clock = log, settings, trusted, clock
        self._lock = threading.RLock()
        self._is_durable = check_choice("durability", durability, ("full", "batch")) == "full"
        self._is_stale, self._is_closed = False, False
        self._lost: LogWriteError | None = None
        self._pid = os.getpid()
        _deciders.add(self)
        self._secrets: list[str] = []
        self._held = threading.local()
        self._requests: OrderedDict[str, Ticket | Shadow] = OrderedDict()
        self._answers: OrderedDict[str, bool | None] = OrderedDict()
        self._last_snapshot = 0
        self._state = self._replayed()
        self._flusher: threading.Thread | None = None
        with self._lock:
            self._make_ready()
            self._add(Kind.OPENED, None, _surroundings())
            self._log.wait(self._log.pending())
        if not self._is_durable:
            self._stop = threading.Event()
            self._flusher = threading.Thread(target=self._flush_in_turn, name="onebit log", daemon=True)
            self._flusher.start()

    @classmethod
    def open(
        cls,
        path: "str | os.PathLike[str]",
        classes: Any = None,
        learner: Learner | None = None,
        *,
        name: str | None = None,
        kinds: dict[str, str] | None = None,
        durability: str = "full",
        deadline: float | None = None,
        silence: str = "nothing",
        exploration_floor: float = 0.0,
        max_open: int = 100_000,
        seed: int = 0,
        trusted: Any = (),
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Begin a decider in a new file, or go on with the one that is there.

        Parameters
        ----------
        path : str or path-like
            One SQLite file; while it is open two more lie beside it. Or the URL of a PostgreSQL database, which keeps
            many deciders: ``"postgresql://user@host/database"``.
        classes : int or list
            The labels. Needed to begin one; later it may be left out, and must else be what it was.
        learner : Learner
            Who decides; `BanditSVM` if not given. Later it may be left out, and must else be the same.
        name : str
            Which decider of the database.
        kinds : dict
            What columns are, where it is not plain: ``{"zip": "category", "subject": "text"}``.
        durability : "full" or "batch"
            "full": every event is on the disk before its call returns. "batch": it will be 20 milliseconds later, and
            a crash of the process loses what came since; a replay knows nothing of it, and its tickets are unknown.
        deadline : float
            Seconds after which a ticket without an answer is closed; never, if not given.
        silence : "nothing" or "wrong"
            What that means.
        exploration_floor : float
            The share of guesses that are drawn evenly among the labels. It costs mistakes, and lets `onebit evaluate`
            say what another learner would have done.
        max_open : int
            How many tickets may be open; the oldest is closed when there are more, as if its deadline had come.
        seed : int
            Names the draws of the exploration floor. The learner has its own.
        trusted : list
            Classes of learners, kernels and labels of one's own that the file may name, as for `onebit.load`.
        clock : callable
            Seconds since 1970.

        Raises
        ------
        OwnedError
            If another process has it open.
        UnreachableError
            If the database cannot be reached.
        LogError
            If the file is something else, damaged, or newer than this onebit.
        """
        told: dict[str, Any] = {
            "kinds": kinds,
            "deadline": deadline,
            "silence": silence,
            "exploration_floor": exploration_floor,
            "max_open": max_open,
            "seed": seed,
        }
        begun = None if classes is None else new_settings(classes, learner, **told)
        log = open_log(path, name, None if begun is None else begun.described() | {"began": float(clock())})
        try:
            settings = settings_of(log.about(), trusted)
            check_same(log.path, settings, {"classes": classes, "learner": learner} | told, trusted)
            return cls(log, settings, durability, trusted, clock)
        except BaseException:
            log.close()
            raise

    # The two verbs.

    def guess(self, record: Any, among: Any = None, *, key: str | None = None) -> Ticket:
        """Name a label for a record, and hand out a ticket for `tell`.

        Parameters
        ----------
        record : mapping, row of a frame, or array
            Named values: numbers, words, texts, dates, lists of tags, missing ones. Columns may be new.
        among : list of labels
            Which are allowed this time.
        key : str
            Names the request: a second one with the same key is the first one's ticket again, and no second guess.
        """
        with self._lock:
            self._make_ready()
            ticket, last = self._guess(record, among, key), self._log.pending()
        self._wait(last)
        return ticket

    def _guess(self, record: Any, among: Any, key: str | None) -> Ticket:
        """Put a guess in line."""
        if key is not None and (before := self._of_request(key, Ticket)) is not None:
            return before
        state = self._state
        allowed, written = named_among(state.classes, among), record_to_json(record)
        self._is_stale = True  # until all of it is known: Ctrl-C may come at any moment
        try:
            decision = state.decide(record, None if among is None else list(among))
        except ValueError:  # a record that is refused changes nothing
            self._is_stale = False
            raise
        body = {
            "record": written,
            "label": decision.label,
            "wanted": decision.wanted,
            "probability": decision.probability,
            "among": allowed,
            "additions": decision.looked.additions,
        }
        name = f"{self._log.last_seq + 1}-{self._next_secret()}"
        event = self._event(Kind.GUESSED, name, body, decision.looked.row, key)
        state.take_guess(event, decision)
        self._log.append(event)
        self._close_beyond(self._settings.max_open)
        ticket = Ticket(name, state.classes[decision.label], decision.probability, moment(event.time))
        if key is not None:
            _remember(self._requests, key, ticket)
        self._is_stale = False
        return ticket

    def tell(self, ticket: "str | Ticket", correct: bool) -> bool:
        """Say whether a guess was right: now, tomorrow, from another process.

        Saying the same again is fine, and counted once; so an answer may be sent until it is heard.

        Parameters
        ----------
        ticket : str or Ticket
            The ticket, or its id.
        correct : bool
            Whether the guessed label was right.

        Returns
        -------
        bool
            Whether it was news.

        Raises
        ------
        ValueError
            If there is no such ticket, it was closed, or the opposite was said before: `correct_answer` changes that.
        """
        with self._lock:
            self._make_ready()
            is_news, last = self._tell(ticket, correct), self._log.pending()
        self._wait(last)
        return is_news

    def _tell(self, ticket: "str | Ticket", correct: bool) -> bool:
        """Put an answer in line, unless it is known already."""
        name, said = name_of(ticket), check_answer(correct)
        if name in self._state.open:
            self._add(Kind.TOLD, name, {"correct": said})
            _remember(self._answers, name, said)
            return True
        if (before := self._answer_of(name)) != said:
            raise ValueError(
                f"ticket {name!r} was told {before} before, and {said} now; if {before} was a mistake, say so: "
                f"correct_answer({name!r}, {said})"
            )
        return False

    def guess_many(self, records: Iterable[Any], among: Any = None) -> list[Ticket]:
        """Name a label for each of many records; they are waited for together.

        If one is refused there are no tickets: those of the records before are closed without an answer.
        """
        tickets: list[Ticket] = []
        with self._lock:
            self._make_ready()
            try:
                tickets.extend(self._guess(record, among, None) for record in records)
            except ValueError:
                for ticket in tickets:  # nobody will hear of them: not even their silence says anything
                    if ticket.id in self._state.open:
                        self._add(Kind.SILENT, ticket.id, {"says": NOTHING})
                raise
            last = self._log.pending()
        self._wait(last)
        return tickets

    def tell_many(self, answers: "Iterable[tuple[str | Ticket, bool]]") -> list[bool]:
        """Say whether guesses were right, by pairs of a ticket and an answer; they are waited for together."""
        with self._lock:
            self._make_ready()
            news, last = [self._tell(ticket, correct) for ticket, correct in answers], self._log.pending()
        self._wait(last)
        return news

    @contextmanager
    def together(self) -> Iterator[list[Batch]]:
        """Let what this thread calls in the block wait for the disk once, at its end: nothing is certain before.

        Yields the batches in which the events are written; after the block each says whether it was. `LogWriteError` is
        raised if one was not.
        """
        held: list[Batch] = []
        self._held.batches = held
        try:
            yield held
        finally:
            self._held.batches = None
            failed = None
            for batch in held:
                try:
                    self._wait(batch)
                except LogWriteError as error:
                    failed = failed or error
            if failed is not None:
                raise failed

    # What else can happen.

    def correct_answer(self, ticket: "str | Ticket", correct: bool) -> None:
        """Say that an answer was a mistake, and what it should have been.

        The learner becomes what it would be had that been said at once. That takes a replay of all events since then.
        """
        self._correct(ticket, check_answer(correct))

    def withdraw(self, ticket: "str | Ticket") -> None:
        """Say that an answer was a mistake, and that nothing is known instead; the ticket stays closed."""
        self._correct(ticket, None)

    def _correct(self, ticket: "str | Ticket", correct: bool | None) -> None:
        name = name_of(ticket)
        with self._lock:
            self._make_ready()
            if name in self._state.open:
                raise ValueError(f"ticket {name!r} has no answer yet that could be a mistake; tell it")
            before = self._answer_of(name)
            told = [event.seq for event in self._log.about_ticket(name) if event.kind == Kind.TOLD]
            if not told or told[0] <= self._log.compacted:
                raise ValueError(f"ticket {name!r}: its answer was compacted into a snapshot, and cannot be corrected")
            if before == correct:
                return
            self._is_stale = True  # before it is written: if it cannot be, what is known is not what the log says
            self._add(Kind.CORRECTED, name, {"correct": correct, "answered": told[0]})
            self._log.wait(self._log.pending())

    def shadow(
        self,
        record: Any,
        label: Any,
        correct: bool | None,
        *,
        probability: float | None = None,
        key: str | None = None,
    ) -> Shadow:
        """Learn from what the application decided itself, and say what the decider would have done.

        Parameters
        ----------
        record : mapping, row of a frame, or array
            As for `guess`.
        label : object
            What the application did: one of the classes.
        correct : bool or None
            Whether it was right; None if nobody knows.
        probability : float
            The chance with which the application did that; learners that weigh by it need it.
        key : str
            Names the request: a second one with the same key is answered as the first was, and learned from once.
        """
        said = None if correct is None else check_answer(correct)
        if probability is not None:
            probability = check_number("probability", probability, above=0.0, at_most=1.0)
        with self._lock:
            self._make_ready()
            shadow = None if key is None else self._of_request(key, Shadow)
            if shadow is None:
                shadow = self._shadow(record, label, {"correct": said, "probability": probability}, key)
            last = self._log.pending()
        self._wait(last)
        return shadow

    def _shadow(self, record: Any, label: Any, said: dict[str, Any], key: str | None) -> Shadow:
        """Put what the application did in line."""
        state = self._state
        if label not in state.classes:
            raise ValueError(f"label must be one of {state.classes!r:.200}; got {label!r:.80}. add_class adds one")
        looked, would = state.would_guess(record)
        body = {
            "record": record_to_json(record),
            "label": state.classes.index(label),
            **said,
            "would": would,
            "additions": looked.additions,
        }
        self._add(Kind.WATCHED, None, body, looked, key)
        shadow = _shadow_of(body, state.classes)
        if key is not None:
            _remember(self._requests, key, shadow)
        return shadow

    def add_class(self, label: Any) -> None:
        """Let a label join the classes; it may be guessed from the next record on."""
        with self._lock:
            self._make_ready()
            check_classes([*self._state.classes, label])
            self._add(Kind.JOINED, None, {"label": describe(label)})
            last = self._log.pending()
        self._wait(last)

    # Looking.

    @property
    def classes(self) -> list[Any]:
        """The labels it may guess."""
        with self._lock:
            self._make_ready()
            return list(self._state.classes)

    def columns(self) -> list[Any]:
        """Return what each column of the records became."""
        with self._lock:
            self._make_ready()
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

    def by_class(self) -> dict[Any, tuple[int, int, int]]:
        """Return how often each label was guessed, right and wrong."""
        with self._lock:
            self._make_ready()
            counts = self._state.counts
            return {
                label: (counts.guessed[i], counts.right[i], counts.wrong[i])
                for i, label in enumerate(self._state.classes)
            }

    def course(self) -> list[Moment]:
        """Return how mistakes went since it began: some hundred moments, evenly spaced by answers, and now."""
        with self._lock:
            self._make_ready()
            course, guesses = self._state.course, self._state.counts.guessed.total()
            return [*course.moments, Moment(self._log.last_time, guesses, course.answered, course.wrong)]

    def kernel_weights(self) -> list[tuple[str, float]]:
        """Return what each kernel counts in the vote of a `BanditSVM`, the most trusted first; none for others."""
        with self._lock:
            self._make_ready()
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
            self._make_ready()
            classes, waiting = self._state.classes, self._state.open
            older = (name for name in reversed(waiting) if waiting[name].seq < end)
            return [
                Ticket(name, classes[each.label], each.probability, moment(each.time))
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

    @property
    def refusal(self) -> LogError | None:
        """Why its log is not this process's any more, if it is not: another took it over, or it cannot be reached."""
        return self._log.refusal

    @property
    def settings(self) -> Settings:
        """What it was told when it was begun."""
        return self._settings

    # Keeping house.

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
            And all whose records, and those of shadow mode, have these values: ``{"customer": "c-17"}``.
        """
        if isinstance(tickets, (str, Ticket)):
            raise ValueError(f"tickets must be a list of tickets or their ids; got {tickets!r:.80}")
        names = {name_of(ticket) for ticket in tickets}
        with self._lock:
            self._make_ready()
            alone = []
            for event in self._log.events() if where else ():
                record = record_from_json(event.body.get("record"))
                if isinstance(record, Mapping) and where and where.items() <= record.items():
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

        Columns: ticket, time, label, probability, correct (empty where nobody said), answered, and the record as JSON.
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

    def close(self) -> None:
        """Write a snapshot if it is worth it, and let go of the file."""
        if os.getpid() != self._pid:  # a fork's: not to be touched, nor its lock
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._flusher is not None:
                self._stop.set()
            try:
                if not self._is_stale and self._log.last_seq - self._last_snapshot >= _WORTH_A_SNAPSHOT:
                    self._log.wait(self._log.pending())
                    self._snapshot_if_possible()
            finally:
                self._log.close()
        if self._flusher is not None:
            self._flusher.join()
        if self._lost is not None:
            raise self._lost

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: Any, _trace: TracebackType | None) -> None:
        self.close()

    # What is underneath.

    def _make_ready(self) -> None:
        """Let what is known be what the log says, and keep deadlines; whoever calls has the lock.

        The lock is taken by a plain ``with``: Ctrl-C may come at the first line of any context of our own, which would
        then keep it for ever.
        """
        if os.getpid() != self._pid:
            raise ValueError("the decider belongs to the process that opened it, of which this is a fork")
        if self._is_closed:
            raise ValueError("the decider is closed; open it again: Decider.open(path)")
        if self._is_stale:
            with suppress(LogWriteError):  # whoever waits for it is told
                self._log.wait(self._log.pending())
            self._log.forget_line()
            self._requests.clear()  # what was not written did not happen
            self._answers.clear()
            self._state = self._replayed()
            self._is_stale = False
        if self._log.last_seq - self._last_snapshot >= _EVENTS_PER_SNAPSHOT:
            self._snapshot_if_possible()
        if self._lost is not None:
            lost, self._lost = self._lost, None
            raise lost
        deadline = self._settings.deadline
        if deadline is not None:
            now = self._now()
            while (oldest := next(iter(self._state.open.values()), None)) and oldest.time + deadline <= now:
                self._close_beyond(len(self._state.open) - 1)

    def _replayed(self) -> State:
        state = replay(self._log, self._settings, self._trusted)
        if state.differences:
            warnings.warn(
                f"this onebit would have guessed otherwise in {state.differences} rounds (first in event "
                f"{state.first_difference}): it, or what it computes with, is not what wrote the log. The guesses and "
                "answers of the log stand",
                ReplayWarning,
                stacklevel=3,
            )
        return state

    def _now(self) -> float:
        """Return the time, which never runs backwards: a clock that is set back must not reopen a deadline."""
        return max(float(self._clock()), self._log.last_time)

    def _event(
        self, kind: Kind, ticket: str | None, body: dict[str, Any], row: Any = None, key: str | None = None
    ) -> Event:
        return Event(self._log.last_seq + 1, self._now(), kind, ticket, body, row, key)

    def _add(
        self, kind: Kind, ticket: str | None, body: dict[str, Any], looked: Looked | None = None, key: str | None = None
    ) -> None:
        """Write an event down, and let it be known."""
        event = self._event(kind, ticket, body, None if looked is None else looked.row, key)
        with self._stale_if_it_fails():
            self._state.apply(event)  # first: what cannot be learned must not be in the log
            self._log.append(event)

    def _stale_if_it_fails(self) -> "_StaleIfItFails":
        """Return a context that lets the state be made anew from the log if something fails half-way."""
        return _StaleIfItFails(self)

    def _next_secret(self) -> str:
        """Return what nobody can guess; asking the system each time would let other threads in between."""
        if not self._secrets:
            drawn = secrets.token_hex(_SECRET * _SECRETS_AT_ONCE)
            self._secrets = [drawn[i : i + 2 * _SECRET] for i in range(0, len(drawn), 2 * _SECRET)]
        return self._secrets.pop()

    def _close_beyond(self, most: int) -> None:
        """Close the oldest tickets until so many are open."""
        while len(self._state.open) > most:
            self._add(Kind.SILENT, next(iter(self._state.open)), {})

    def _wait(self, batch: Batch) -> None:
        """Return when events are on the disk, if that is promised."""
        held = getattr(self._held, "batches", None)
        if held is not None:
            held += [batch] if batch not in held[-1:] else []
        elif self._is_durable:
            try:
                self._log.wait(batch)
            except BaseException:
                with self._lock:
                    self._is_stale = True
                raise

    def _flush_in_turn(self) -> None:
        while not self._stop.wait(_FLUSH_SECONDS):
            try:
                self._log.wait(self._log.pending())
            except LogWriteError as error:
                with self._lock:
                    # Whoever called has gone on: the next one is told.
                    self._is_stale, self._lost = True, error

    def _of_request(self, key: str, wanted: type[_Said]) -> _Said | None:
        """Return what an earlier request with that key was answered."""
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
            raise ValueError(f"key must be a text of at most {_LONGEST_KEY} characters; got {key!r:.80}")
        before: Ticket | Shadow | None = self._requests.get(key)
        if before is None:
            if len((line := self._log.pending()).lines) >= _RECENT:  # it may be in line, and not remembered any more
                self._log.wait(line)
            event = self._log.with_key(key)
            before = None if event is None else _said_before(event, self._state.classes)
        if before is None or isinstance(before, wanted):
            return before
        raise ValueError(
            f"key {key!r} names a request of another kind, a {type(before).__name__.lower()}; choose another"
        )

    def _answer_of(self, name: str) -> bool | None:
        """Return what a closed ticket was told, or raise ValueError if there is none."""
        if name in self._answers:
            return self._answers[name]
        events = self._log.about_ticket(name)
        told = [event.body["correct"] for event in events if event.kind in (Kind.TOLD, Kind.CORRECTED)]
        if told:
            return bool(told[-1]) if told[-1] is not None else None
        if events and events[-1].kind == Kind.SILENT:
            raise ValueError(f"ticket {name!r} was closed without an answer at {moment(events[-1].time)}: too late")
        raise ValueError(f"ticket {name!r:.80} is none of this decider's, or was compacted away")

    def _snapshot_if_possible(self) -> None:
        """Write a snapshot that nobody asked for: whoever happened to call must not hear that it could not be."""
        with suppress(LogWriteError):  # events that could not be written are told to those who wait for them
            self._snapshot()
        self._last_snapshot = self._state.seq  # the next is due as late as if it had been

    def _snapshot(self) -> None:
        self._log.save_snapshot(Snapshot(self._state.seq, self._state.to_bytes()))
        self._last_snapshot = self._state.seq


def _said_before(event: Event, classes: list[Any]) -> Ticket | Shadow:
    """Return what a request was answered, by its event."""
    if event.ticket is None:
        return _shadow_of(event.body, classes)
    return Ticket(event.ticket, classes[event.body["label"]], event.body["probability"], moment(event.time))


def _shadow_of(body: Mapping[str, Any], classes: list[Any]) -> Shadow:
    return Shadow(classes[body["would"]], bool(body["would"] == body["label"]))


class _StaleIfItFails:
    """What a decider knows is made anew if something fails in the block."""

    __slots__ = ("_desk",)

    def __init__(self, desk: Decider) -> None:
        self._desk = desk

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, _error: Any, _trace: TracebackType | None) -> None:
        if kind is not None:
            self._desk._is_stale = True


_deciders: "weakref.WeakSet[Decider]" = weakref.WeakSet()


def _renew_locks() -> None:
    """In a fork, let nobody wait for a thread that is not there: the decider refuses by itself."""
    for desk in list(_deciders):
        desk._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _surroundings() -> dict[str, Any]:
    """Return what guesses may depend on beside the log."""
    return {
        "onebit": version("onebit"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": platform.machine(),
    }


def _remember(recent: "OrderedDict[str, Any]", name: str, value: Any) -> None:
    recent[name] = value
    if len(recent) > _RECENT:
        recent.popitem(last=False)
