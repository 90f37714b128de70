"""The decider: a learner plus an event log, for long-running applications.

``guess(record)`` returns a ticket with a label; ``tell(ticket.id, correct)`` records feedback, at any later time. Both
are written to the event log before the call returns, and the state can be rebuilt from the log.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

from onebit.decider.advice import no_class_error
from onebit.decider.events import Event, Kind
from onebit.decider.house import DeciderMaintenance
from onebit.decider.logs import open_log
from onebit.decider.settings import CHANGEABLE, NOTHING, check_same, new_settings, settings_of
from onebit.decider.state import State, named_among, place_of, some_of
from onebit.decider.tickets import (
    Shadow,
    Ticket,
    TicketConflictError,
    UnknownTicketError,
    check_answer,
    check_time,
    moment,
    name_of,
)
from onebit.encoding import record_to_json
from onebit.inputs import brief, check_number, check_switch
from onebit.labels import check_classes
from onebit.learners import Learner
from onebit.typed_json import describe

_RECENT = 10_000  # requests and feedback kept in memory, so that the log need not be queried
_LONGEST_KEY = 200

_Reply = TypeVar("_Reply", Ticket, Shadow)


class Decider(DeciderMaintenance):
    """A learner with an event log; `Decider.open` creates or reopens one.

    Thread-safe. Only one process can have the log open at a time.

    Examples
    --------
    >>> import os, tempfile
    >>> import onebit
    >>> path = os.path.join(tempfile.mkdtemp(), "routing.onebit")
    >>> with Decider.open(path, classes=["billing", "refund"], learner=onebit.BanditPerceptron()) as decider:
    ...     ticket = decider.guess({"channel": "mail", "length": 212})
    ...     is_news = decider.tell(ticket.id, correct=True)
    >>> with Decider.open(path) as decider:  # tomorrow
    ...     decider.status().right
    1
    """

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
        accept_loss: bool = False,
    ) -> Self:
        """Create a decider in a new file, or reopen an existing one.

        Parameters
        ----------
        path : str or path-like
            A SQLite file, readable by its owner only; a small file beside it holds the number of the last acknowledged
            event, and three more files exist while it is open. Or the URL of a PostgreSQL database, which can hold
            many deciders: ``"postgresql://user@host/database"``.
        classes : int or list
            The labels. Required for a new decider. On reopening, optional; must match the initial or the current ones.
        learner : Learner
            The learner, `BanditSVM` by default. On reopening, optional; must be the same.
        name : str
            Name of the decider in the database.
        kinds : dict
            Kinds of columns that would be inferred wrongly: ``{"zip": "category", "subject": "text"}``.
        durability : "full" or "batch"
            "full": every event is on disk before its call returns. "batch": within 20 milliseconds; a crash of the
            process loses the events since the last write, and their tickets become unknown.
        deadline : float
            Seconds after which a ticket without feedback is closed; never by default.
        silence : "nothing" or "wrong"
            How a ticket closed without feedback counts: not at all, or as a wrong guess.
        exploration_floor : float
            Share of guesses drawn uniformly from the labels. Costs mistakes, but allows `onebit evaluate` to estimate
            the performance of other learners.
        max_open : int
            Maximum number of open tickets; beyond it the oldest is closed, as at its deadline.
        seed : int
            Seed of the exploration floor's draws. The learner has its own seed.
        trusted : list
            User-defined classes of learners, kernels and labels that may be loaded from the file, as in `onebit.load`.
        clock : callable
            Returns the time in seconds since 1970.
        accept_loss : bool
            Open the file even if acknowledged events are missing. The loss is recorded in the log.

        Raises
        ------
        LostEventsError
            If acknowledged events are missing from the file: its journal was damaged, or it is an old backup.
        OwnedError
            If another process has it open.
        UnreachableError
            If the database cannot be reached.
        LogError
            If the file is not a decider's log, is damaged, or was written by a newer onebit.
        """
        options: dict[str, Any] = {
            "kinds": kinds,
            "deadline": deadline,
            "silence": silence,
            "exploration_floor": exploration_floor,
            "max_open": max_open,
            "seed": seed,
        }
        begun = None if classes is None else new_settings(classes, learner, **options)
        about = None if begun is None else begun.described() | {"began": check_time(clock())}
        log = open_log(path, name, about, check_switch("accept_loss", accept_loss))

        def check(state: State) -> None:
            others = {"classes": classes} | {name: options[name] for name in CHANGEABLE}
            check_same(log.path, state.settings, others, trusted, state.classes)

        try:
            settings = settings_of(log.about(), trusted)
            check_same(log.path, settings, {"learner": learner, "kinds": kinds, "seed": seed}, trusted)
            return cls(log, settings, durability, trusted, clock, check)
        except BaseException:
            log.close()
            raise

    # Guess and tell.

    def guess(self, record: Any, among: Any = None, *, key: str | None = None) -> Ticket:
        """Guess a label for a record; return a ticket for `tell`.

        Parameters
        ----------
        record : mapping, row of a frame, or array
            Named values: numbers, categories, texts, dates, lists of tags, missing values. Columns may be new.
        among : list of labels
            The labels allowed for this guess; all classes by default.
        key : str
            Idempotency key: a second request with the same key returns the ticket of the first.
        """
        with self._lock:
            self._make_ready()
            ticket, last = self._guess(record, among, key), self._log.pending()
        self._wait(last)
        return ticket

    def _guess(self, record: Any, among: Any, key: str | None) -> Ticket:
        """Make a guess and append its event, without waiting for the disk."""
        if key is not None and (before := self._of_request(key, Ticket)) is not None:
            return before
        state = self._state
        allowed, written, now = named_among(state.places, among), record_to_json(record), self._now()
        self._is_stale = True  # until the event is applied completely: Ctrl-C may come at any moment
        try:
            decision = state.decide(record, allowed)
        except ValueError:  # a refused record changes nothing
            self._is_stale = False
            raise
        body = {
            "record": written,
            "label": decision.label,
            "wanted": decision.wanted,
            "propensity": decision.propensity,
            "among": allowed,
            "additions": decision.encoded.additions,
        }
        name = f"{self._log.last_seq + 1}-{self._next_secret()}"
        event = Event(self._log.last_seq + 1, now, Kind.GUESSED, name, body, decision.encoded.row, key)
        state.take_guess(event, decision)
        self._log.append(event)
        self._close_beyond(state.settings.max_open)
        ticket = Ticket(name, state.classes[decision.label], decision.propensity, moment(event.time))
        if key is not None:
            _remember(self._requests, key, ticket)
        self._is_stale = False
        return ticket

    def tell(self, ticket: "str | Ticket", correct: bool) -> bool:
        """Record whether a guess was right; possible at any later time, from any process.

        Repeating the same feedback has no effect, so it can be resent safely.

        Parameters
        ----------
        ticket : str or Ticket
            A ticket, or its id.
        correct : bool
            Whether the guessed label was right.

        Returns
        -------
        bool
            Whether the feedback is new.

        Raises
        ------
        ValueError
            If the ticket is unknown or closed, or has the opposite feedback; use `correct_answer` to change that.
        """
        with self._lock:
            self._make_ready()
            is_news, last = self._tell(ticket, correct), self._log.pending()
        self._wait(last)
        return is_news

    def _tell(self, ticket: "str | Ticket", correct: bool) -> bool:
        """Append feedback to the log unless already recorded, without waiting for the disk."""
        name, answer = name_of(ticket), check_answer(correct)
        if name in self._state.open:
            self._add(Kind.TOLD, name, {"correct": answer})
            _remember(self._answers, name, answer)
            return True
        if (before := self._answer_of(name)) != answer:
            was = f"told {before} before, and {answer} now; if {before} was a mistake, say so"
            if before is None:
                was = f"withdrawn, and is closed; if {answer} is known now, say so"
            raise TicketConflictError(f"ticket {name!r} was {was}", "correct", id=name, correct=answer)
        return False

    def guess_many(self, records: Iterable[Any], among: Any = None) -> list[Ticket]:
        """Guess a label for each record, with one write to disk.

        If a record is refused, no tickets are returned: those of earlier records are closed without feedback.
        """
        tickets: list[Ticket] = []
        with self._lock:
            self._make_ready()
            try:
                tickets.extend(self._guess(record, among, None) for record in records)
            except ValueError:
                for ticket in tickets:  # the caller never gets them: missing feedback must not count
                    if ticket.id in self._state.open:
                        self._add(Kind.SILENT, ticket.id, {"says": NOTHING})
                raise
            last = self._log.pending()
        self._wait(last)
        return tickets

    def tell_many(self, answers: "Iterable[tuple[str | Ticket, bool]]") -> list[bool]:
        """Record feedback for many guesses, given as (ticket, correct) pairs, with one write to disk."""
        with self._lock:
            self._make_ready()
            news, last = [self._tell(ticket, correct) for ticket, correct in answers], self._log.pending()
        self._wait(last)
        return news

    # Other events.

    def correct_answer(self, ticket: "str | Ticket", correct: bool) -> None:
        """Replace feedback that was mistaken.

        The state is rebuilt as if the corrected feedback had been given at first: all events since then are replayed.
        """
        self._correct(ticket, check_answer(correct))

    def withdraw(self, ticket: "str | Ticket") -> None:
        """Withdraw feedback that was mistaken; the ticket stays closed."""
        self._correct(ticket, None)

    def _correct(self, ticket: "str | Ticket", correct: bool | None) -> None:
        name = name_of(ticket)
        with self._lock:
            self._make_ready()
            if name in self._state.open:
                raise TicketConflictError(f"ticket {name!r} has no answer yet that could be a mistake; use tell")
            before = self._answer_of(name)
            answered = [event.seq for event in self._log.about_ticket(name) if event.kind == Kind.TOLD]
            if not answered or answered[0] <= self._log.compacted:
                raise TicketConflictError(
                    f"ticket {name!r}: its answer was compacted into a snapshot, and cannot be corrected"
                )
            if before == correct:
                return
            self._is_stale = True  # set first: if the write fails, the state must be rebuilt from the log
            self._add(Kind.CORRECTED, name, {"correct": correct, "answered": answered[0]})
            self._log.wait(self._log.pending())

    def shadow(
        self,
        record: Any,
        label: Any,
        correct: bool | None,
        *,
        propensity: float | None = None,
        key: str | None = None,
    ) -> Shadow:
        """Learn from a decision of the application; return what the decider would have guessed.

        Parameters
        ----------
        record : mapping, row of a frame, or array
            As for `guess`.
        label : object
            The label that the application chose: one of the classes.
        correct : bool or None
            Whether it was right; None if unknown.
        propensity : float
            Probability with which the application chose the label; required by learners that weight by it.
        key : str
            Names the request: a second one with the same key is answered as the first was, and learned from once.
        """
        answer = None if correct is None else check_answer(correct)
        if propensity is not None:
            propensity = check_number("propensity", propensity, above=0.0, at_most=1.0)
        with self._lock:
            self._make_ready()
            shadow = None if key is None else self._of_request(key, Shadow)
            if shadow is None:
                shadow = self._shadow(record, label, {"correct": answer, "propensity": propensity}, key)
            last = self._log.pending()
        self._wait(last)
        return shadow

    def _shadow(self, record: Any, label: Any, feedback: dict[str, Any], key: str | None) -> Shadow:
        """Apply a decision of the application and append its event, without waiting for the disk."""
        state = self._state
        place = place_of(state.places, label)
        if place is None:
            raise no_class_error(f"label must be one of {some_of(state.classes)}; got {brief(label)}", label)
        encoded, would = state.would_guess(record)
        body = {
            "record": record_to_json(record),
            "label": place,
            **feedback,
            "would": would,
            "additions": encoded.additions,
        }
        event = Event(self._log.last_seq + 1, self._now(), Kind.WATCHED, None, body, encoded.row, key)
        self._is_stale = True  # as in `_guess`
        try:
            state.apply(event)
        except ValueError:  # a refusal by the learner changes nothing
            self._is_stale = False
            raise
        self._log.append(event)
        shadow = _shadow_of(body, state.classes)
        if key is not None:
            _remember(self._requests, key, shadow)
        self._is_stale = False
        return shadow

    def add_class(self, label: Any) -> None:
        """Add a label to the classes; it can be guessed from the next record on."""
        with self._lock:
            self._make_ready()
            check_classes([*self._state.classes, label])
            self._add(Kind.JOINED, None, {"label": describe(label)})
            last = self._log.pending()
        self._wait(last)

    def change(self, **settings: Any) -> None:
        """Change settings from now on: deadline, silence, exploration_floor, max_open, as in `open`.

        Examples
        --------
        >>> import os, tempfile
        >>> import onebit
        >>> path = os.path.join(tempfile.mkdtemp(), "routing.onebit")
        >>> with Decider.open(path, classes=2, learner=onebit.BanditPerceptron()) as decider:
        ...     decider.change(deadline=3600.0)
        ...     decider.settings.deadline
        3600.0
        """
        if not settings:
            raise ValueError(f"name what to change: {', '.join(CHANGEABLE)}")
        with self._lock:
            self._make_ready()
            others = self.settings.changed(settings).changeable()
            self._add(Kind.CHANGED, None, {name: others[name] for name in settings})
            self._close_beyond(self.settings.max_open)
            last = self._log.pending()
        self._wait(last)

    # Earlier requests and feedback.

    def _of_request(self, key: str, wanted: type[_Reply]) -> _Reply | None:
        """Return the result of an earlier request with that key, if there is one."""
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
            raise ValueError(f"key must be a text of at most {_LONGEST_KEY} characters; got {brief(key)}")
        before: Ticket | Shadow | None = self._requests.get(key)
        if before is None:
            if len((line := self._log.pending()).lines) >= _RECENT:  # it may be pending, and dropped from the cache
                self._log.wait(line)
            event = self._log.with_key(key)
            before = None if event is None else _reply_of(event, self._state.classes)
        if before is None or isinstance(before, wanted):
            return before
        raise ValueError(
            f"key {key!r} names a request of another kind, a {type(before).__name__.lower()}; choose another"
        )

    def _answer_of(self, name: str) -> bool | None:
        """Return the feedback of a closed ticket, or raise ValueError if there is none."""
        if name in self._answers:
            return self._answers[name]
        events = self._log.about_ticket(name)
        answers = [event.body["correct"] for event in events if event.kind in (Kind.TOLD, Kind.CORRECTED)]
        if answers:
            return bool(answers[-1]) if answers[-1] is not None else None
        if events and events[-1].kind == Kind.SILENT:
            closed = moment(events[-1].time)
            raise TicketConflictError(f"ticket {name!r} was closed without an answer at {closed}: too late")
        raise UnknownTicketError(f"ticket {name!r:.80} is none of this decider's, or was compacted away")


def _reply_of(event: Event, classes: list[Any]) -> Ticket | Shadow:
    """Rebuild the result of a request from its event."""
    if event.ticket is None:
        return _shadow_of(event.body, classes)
    return Ticket(event.ticket, classes[event.body["label"]], event.body["propensity"], moment(event.time))


def _shadow_of(body: Mapping[str, Any], classes: list[Any]) -> Shadow:
    return Shadow(classes[body["would"]], bool(body["would"] == body["label"]))


def _remember(recent: "OrderedDict[str, Any]", name: str, value: Any) -> None:
    recent[name] = value
    if len(recent) > _RECENT:
        recent.popitem(last=False)
