"""The decider: a learner that an application can hold for a year.

``guess(record)`` names a label and hands out a ticket, ``tell(ticket.id, correct)`` says whether it was right, whenever
that is known. Both are in the log before the call returns, and everything else follows from the log.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

from onebit.decider.advice import no_class_error
from onebit.decider.events import Event, Kind
from onebit.decider.house import House
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
from onebit.encoding.record_json import record_to_json
from onebit.inputs import brief, check_number, check_switch
from onebit.labels import check_classes
from onebit.learners import Learner
from onebit.typed_json import describe

_RECENT = 10_000  # requests and answers that are known without asking the log
_LONGEST_KEY = 200

_Said = TypeVar("_Said", Ticket, Shadow)


class Decider(House):
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
        """Begin a decider in a new file, or go on with the one that is there.

        Parameters
        ----------
        path : str or path-like
            One SQLite file, which only its owner may read. Beside it lies one that says how far it goes, and three more
            while it is open. Or the URL of a PostgreSQL database, which keeps
            many deciders: ``"postgresql://user@host/database"``.
        classes : int or list
            The labels. Needed to begin one; later it may be left out, and must else be what it was then, or is now.
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
        accept_loss : bool
            Go on although the file has lost events that were acknowledged. The loss is noted in the log.

        Raises
        ------
        LostEventsError
            If events that were acknowledged are not in the file: its journal was damaged, or it is an old backup.
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
        about = None if begun is None else begun.described() | {"began": check_time(clock())}
        log = open_log(path, name, about, check_switch("accept_loss", accept_loss))

        def check(state: State) -> None:
            others = {"classes": classes} | {name: told[name] for name in CHANGEABLE}
            check_same(log.path, state.settings, others, trusted, state.classes)

        try:
            settings = settings_of(log.about(), trusted)
            check_same(log.path, settings, {"learner": learner, "kinds": kinds, "seed": seed}, trusted)
            return cls(log, settings, durability, trusted, clock, check)
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
            Which are allowed this time; no more of them than there are classes.
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
        allowed, written, now = named_among(state.places, among), record_to_json(record), self._now()
        self._is_stale = True  # until all of it is known: Ctrl-C may come at any moment
        try:
            decision = state.decide(record, allowed)
        except ValueError:  # a record that is refused changes nothing
            self._is_stale = False
            raise
        body = {
            "record": written,
            "label": decision.label,
            "wanted": decision.wanted,
            "propensity": decision.propensity,
            "among": allowed,
            "additions": decision.looked.additions,
        }
        name = f"{self._log.last_seq + 1}-{self._next_secret()}"
        event = Event(self._log.last_seq + 1, now, Kind.GUESSED, name, body, decision.looked.row, key)
        state.take_guess(event, decision)
        self._log.append(event)
        self._close_beyond(state.settings.max_open)
        ticket = Ticket(name, state.classes[decision.label], decision.propensity, moment(event.time))
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
            was = f"told {before} before, and {said} now; if {before} was a mistake, say so"
            if before is None:
                was = f"withdrawn, and is closed; if {said} is known now, say so"
            raise TicketConflictError(f"ticket {name!r} was {was}", "correct", id=name, correct=said)
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
                raise TicketConflictError(f"ticket {name!r} has no answer yet that could be a mistake; use tell")
            before = self._answer_of(name)
            told = [event.seq for event in self._log.about_ticket(name) if event.kind == Kind.TOLD]
            if not told or told[0] <= self._log.compacted:
                raise TicketConflictError(
                    f"ticket {name!r}: its answer was compacted into a snapshot, and cannot be corrected"
                )
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
        propensity: float | None = None,
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
        propensity : float
            The chance with which the application did that; learners that weigh by it need it.
        key : str
            Names the request: a second one with the same key is answered as the first was, and learned from once.
        """
        said = None if correct is None else check_answer(correct)
        if propensity is not None:
            propensity = check_number("propensity", propensity, above=0.0, at_most=1.0)
        with self._lock:
            self._make_ready()
            shadow = None if key is None else self._of_request(key, Shadow)
            if shadow is None:
                shadow = self._shadow(record, label, {"correct": said, "propensity": propensity}, key)
            last = self._log.pending()
        self._wait(last)
        return shadow

    def _shadow(self, record: Any, label: Any, said: dict[str, Any], key: str | None) -> Shadow:
        """Put what the application did in line."""
        state = self._state
        place = place_of(state.places, label)
        if place is None:
            raise no_class_error(f"label must be one of {some_of(state.classes)}; got {brief(label)}", label)
        looked, would = state.would_guess(record)
        body = {
            "record": record_to_json(record),
            "label": place,
            **said,
            "would": would,
            "additions": looked.additions,
        }
        event = Event(self._log.last_seq + 1, self._now(), Kind.WATCHED, None, body, looked.row, key)
        self._is_stale = True  # as in `_guess`
        try:
            state.apply(event)
        except ValueError:  # what the learner refuses changes nothing
            self._is_stale = False
            raise
        self._log.append(event)
        shadow = _shadow_of(body, state.classes)
        if key is not None:
            _remember(self._requests, key, shadow)
        self._is_stale = False
        return shadow

    def add_class(self, label: Any) -> None:
        """Let a label join the classes; it may be guessed from the next record on."""
        with self._lock:
            self._make_ready()
            check_classes([*self._state.classes, label])
            self._add(Kind.JOINED, None, {"label": describe(label)})
            last = self._log.pending()
        self._wait(last)

    def change(self, **told: Any) -> None:
        """Change settings, from now on: deadline, silence, exploration_floor, max_open, as in `open`.

        Examples
        --------
        >>> import os, tempfile
        >>> import onebit
        >>> path = os.path.join(tempfile.mkdtemp(), "routing.onebit")
        >>> with Decider.open(path, classes=2, learner=onebit.BanditPerceptron()) as desk:
        ...     desk.change(deadline=3600.0)
        ...     desk.settings.deadline
        3600.0
        """
        if not told:
            raise ValueError(f"name what to change: {', '.join(CHANGEABLE)}")
        with self._lock:
            self._make_ready()
            others = self.settings.changed(told).changeable()
            self._add(Kind.CHANGED, None, {name: others[name] for name in told})
            self._close_beyond(self.settings.max_open)
            last = self._log.pending()
        self._wait(last)

    # What was said before.

    def _of_request(self, key: str, wanted: type[_Said]) -> _Said | None:
        """Return what an earlier request with that key was answered."""
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
            raise ValueError(f"key must be a text of at most {_LONGEST_KEY} characters; got {brief(key)}")
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
            closed = moment(events[-1].time)
            raise TicketConflictError(f"ticket {name!r} was closed without an answer at {closed}: too late")
        raise UnknownTicketError(f"ticket {name!r:.80} is none of this decider's, or was compacted away")


def _said_before(event: Event, classes: list[Any]) -> Ticket | Shadow:
    """Return what a request was answered, by its event."""
    if event.ticket is None:
        return _shadow_of(event.body, classes)
    return Ticket(event.ticket, classes[event.body["label"]], event.body["propensity"], moment(event.time))


def _shadow_of(body: Mapping[str, Any], classes: list[Any]) -> Shadow:
    return Shadow(classes[body["would"]], bool(body["would"] == body["label"]))


def _remember(recent: "OrderedDict[str, Any]", name: str, value: Any) -> None:
    recent[name] = value
    if len(recent) > _RECENT:
        recent.popitem(last=False)
