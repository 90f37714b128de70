"""The decider: a learner plus an event log. Every call is in the log before it returns; the state follows from it."""

import math
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from heapq import nsmallest
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from onebit.decider.log import Batch, EventLog
from onebit.decider.replay import History
from onebit.decider.settings import Settings, open_log
from onebit.decider.state import Recorder, State
from onebit.decider.tickets import Event, Kind, LogError, Moment, Shadow, Status, Ticket
from onebit.game import TICKET_BYTES
from onebit.inputs import brief, check_choice, check_number, check_switch
from onebit.kernels import kernel_name
from onebit.labels import check_classes
from onebit.learners import BanditSVM, Learner
from onebit.typed_json import describe

_Result = TypeVar("_Result")


class Decider:
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

    def __init__(self, log: EventLog, trusted: Any, clock: Callable[[], float]) -> None:
        self._log, self._history = log, History(log, trusted)
        self._lock, self._pid, self._is_closed = threading.RLock(), os.getpid(), False
        self._recorder = Recorder(log, self._history, clock)

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
        wrong_at_most: float | None = None,
        ask_at_most: float | None = None,
        seed: int = 0,
        trusted: Any = (),
        clock: Callable[[], float] = time.time,
        accept_loss: bool = False,
    ) -> Self:
        """Create a decider in a new file, or reopen an existing one.

        Parameters
        ----------
        path : str or path-like
            A SQLite file, or the URL of a PostgreSQL database, which can hold many deciders:
            ``"postgresql://user@host/database"``.
        classes : int or list
            The labels. Required for a new decider; on reopening they must be the initial or the current ones.
        learner : Learner
            `BanditSVM` by default. On reopening it must be the same.
        name : str
            Name of the decider in the database.
        kinds : dict
            Kinds of columns that would be inferred wrongly: ``{"zip": "category", "subject": "text"}``.
        durability : "full" or "batch"
            "full": every event is on disk before its call returns. "batch": within 20 milliseconds, and a crash of the
            process loses the events since the last write.
        deadline : float
            Seconds after which a ticket without feedback is closed; never by default.
        silence : "nothing" or "wrong"
            How a ticket closed without feedback counts: not at all, or as a wrong guess.
        exploration_floor : float
            Share of guesses drawn uniformly, so that `onebit evaluate` can estimate how other learners would do.
        max_open : int
            Maximum number of open tickets; beyond it the oldest is closed, as at its deadline.
        wrong_at_most : float
            In (0, 1): the share of wrong decisions among those that are not asked about. Where the learner is not sure
            enough, ``ticket.ask`` is True: a person decides, and `label` teaches it. See docs/theory/asking.md.
        ask_at_most : float
            In (0, 1): the share of guesses that may be asked about, where a label helps most. Give one of the two.
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
        LogError
            If the log cannot be used: it is damaged, of a newer onebit, none of a decider, or cannot be reached.
        """
        options = {"kinds": kinds, "deadline": deadline, "silence": silence, "seed": seed, "max_open": max_open}
        options |= {"exploration_floor": exploration_floor, "wrong_at_most": wrong_at_most, "ask_at_most": ask_at_most}
        about, now = None, Settings.check_time(clock())
        if classes is not None:
            settings = Settings.new(classes, BanditSVM() if learner is None else learner, **options)
            about = settings.described() | {"began": now}
        is_durable = check_choice("durability", durability, ("full", "batch")) == "full"
        log = open_log(path, name, about, accept_loss=check_switch("accept_loss", accept_loss))
        try:
            decider = cls(log, trusted, clock)
            given, state = options | {"classes": classes, "learner": learner}, decider._state
            state.settings.check_same(log.path, given, state.classes)
            # Versions and platform may influence guesses.
            found: dict[str, Any] = {name: version(name) for name in ("onebit", "numpy", "numba")}
            found |= {"python": platform.python_version(), "machine": platform.machine()}
            found |= {} if log.lost is None else {"lost": log.lost}
            decider._write(decider._recorder.record, Kind.OPENED, None, found)
            if not is_durable:
                log.write_in_background()
            return decider
        except BaseException:
            log.close()
            raise

    def close(self) -> None:
        """Close the log, after writing a snapshot if a replay would be long."""
        if os.getpid() != self._pid:  # a fork must touch neither the log nor the lock
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                self._recorder.finish()
            finally:
                self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def batch(self) -> AbstractContextManager[list[Batch]]:
        """Return a context in which this thread's calls share one wait for the disk, at the end of the block.

        It yields the batches in which the events are written; at its end `LogWriteError` is raised if one was not.
        """
        return self._log.batch()

    @property
    def refusal(self) -> LogError | None:
        """Why this process lost the log, if it did: another process took it over, or it is unreachable."""
        return self._log.refusal

    @property
    def lost(self) -> dict[str, int] | None:
        """Numbers of the last "acknowledged" and the last "found" event, if opened with `accept_loss`."""
        return self._log.lost

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._state.settings

    @property
    def _state(self) -> State:
        return self._recorder.state

    # All calls go through one of these two. The lock is taken by a plain ``with``: in a custom context manager Ctrl-C
    # could leave it locked.

    def _read(self, look: Callable[[State], _Result]) -> _Result:
        """Return what a function finds in the state, after checking that this process still owns the log."""
        self._check_usable()
        with self._lock:
            self._check_usable()
            self._log.check_owned()
            self._recorder.make_ready()
            return look(self._state)

    def _write(self, operation: Callable[..., _Result], *args: Any) -> _Result:
        """Return the result of an operation that records events, once they are on disk."""
        self._check_usable()
        with self._lock:
            self._check_usable()
            result, batch = self._recorder.run(operation, *args)
        self._log.settle(batch)
        return result

    def _check_usable(self) -> None:
        """Raise ValueError in a fork, before the lock is taken, whose holder may not exist there; and after `close`."""
        if os.getpid() != self._pid:
            raise ValueError("the decider belongs to the process that opened it, of which this is a fork")
        if self._is_closed:
            raise ValueError("the decider is closed; open it again: Decider.open(path)")

    # Guess and tell.

    def guess(self, record: Any, among: Any = None, *, key: str | None = None) -> Ticket:
        """Guess a label for a record, from the labels in `among` or all classes; return a ticket for `tell`.

        The record is a mapping, row of a frame, or array: numbers, categories, texts, dates, lists of tags, missing
        values. Columns may be new. A second request with the same `key` returns the ticket of the first.
        """
        return self._write(self._recorder.guess, record, among, key)

    def tell(self, ticket: "str | Ticket", correct: bool) -> bool:
        """Record whether a guess was right; possible at any later time, from any process. Return whether it is new.

        Repeating the same feedback has no effect, so it can be resent safely. ValueError is raised if the ticket, given
        by itself or its id, is unknown or closed, or has other feedback; use `correct_answer` to change that.
        """
        return self._write(self._recorder.answer, _id_of(ticket), _check_feedback(correct))

    def label(self, ticket: "str | Ticket", label: Any) -> bool:
        """Record the right label of a guess, which teaches more than `tell`; return whether the feedback is new."""
        return self._write(lambda: self._recorder.answer(_id_of(ticket), None, self._state.index_of(label)))

    def guess_many(self, records: Iterable[Any], among: Any = None) -> list[Ticket]:
        """Guess a label for each record, with one write to disk.

        If a record is refused, no tickets are returned: those of earlier records are closed without feedback.
        """

        def guess_all() -> list[Ticket]:
            tickets: list[Ticket] = []
            try:
                tickets.extend(self._recorder.guess(record, among, None) for record in records)
            except ValueError:
                self._recorder.close_unanswered(ticket.id for ticket in tickets)
                raise
            return tickets

        return self._write(guess_all)

    def tell_many(self, answers: "Iterable[tuple[str | Ticket, bool]]") -> list[bool]:
        """Record feedback for many guesses, given as (ticket, correct) pairs, with one write to disk."""
        answer = self._recorder.answer
        return self._write(lambda: [answer(_id_of(ticket), _check_feedback(correct)) for ticket, correct in answers])

    # Other events.

    def correct_answer(self, ticket: "str | Ticket", correct: bool | None = None, *, label: Any = None) -> None:
        """Replace feedback that was mistaken: by whether the guess was right, or by the right label.

        The state is rebuilt as if the corrected feedback had been given at first: all events since then are replayed.
        """
        if (correct is None) == (label is None):
            raise ValueError("give one of the two, correct or label; to take feedback back call withdraw(ticket)")
        if label is None:
            self._write(self._recorder.correct, _id_of(ticket), _check_feedback(correct))
        else:
            self._write(lambda: self._recorder.correct(_id_of(ticket), None, self._state.index_of(label)))

    def withdraw(self, ticket: "str | Ticket") -> None:
        """Withdraw feedback that was mistaken; the ticket stays closed."""
        self._write(self._recorder.correct, _id_of(ticket), None)

    def shadow(
        self, record: Any, label: Any, correct: bool | None, *, propensity: float | None = None, key: str | None = None
    ) -> Shadow:
        """Learn from a decision of the application: its label, and whether that was right, None if unknown.

        Return what the decider would have guessed. `propensity` is the probability with which the application chose the
        label; learners that weight by it require it. `record` and `key` are those of `guess`.
        """
        feedback = {"correct": None if correct is None else _check_feedback(correct), "propensity": propensity}
        if propensity is not None:
            feedback["propensity"] = check_number("propensity", propensity, above=0.0, at_most=1.0)
        return self._write(self._recorder.shadow, record, label, feedback, key)

    def add_class(self, label: Any) -> None:
        """Add a label to the classes; it can be guessed from the next record on."""

        def add() -> None:
            check_classes([*self._state.classes, label])
            self._recorder.record(Kind.CLASS_ADDED, None, {"label": describe(label)})

        self._write(add)

    def change(self, **settings: Any) -> None:
        """Change settings from now on: deadline, silence, exploration_floor, max_open, as in `open`.

        Also wrong_at_most and ask_at_most: with another limit its count begins anew; None stops asking.
        """

        def change() -> None:
            others = self.settings.changed(settings).changeable()
            self._recorder.record(Kind.CHANGED, None, {name: others[name] for name in settings})
            self._recorder.close_oldest(self.settings.max_open)

        self._write(change)

    # What is known.

    @property
    def classes(self) -> list[Any]:
        """The labels that can be guessed."""
        return self._read(lambda state: list(state.classes))

    def columns(self) -> list[Any]:
        """Return how each column of the records is encoded."""
        return self._read(lambda state: state.encoder.columns())

    def status(self) -> Status:
        """Return counts of guesses, feedback and tickets, and the settings."""
        return self._read(self._history.status)

    def status_within(self, seconds: float) -> Status | None:
        """Return the status, or None if it takes longer than `seconds`: a correction may be replayed for minutes."""
        if not self._lock.acquire(timeout=seconds):
            return None
        try:
            return None if self._recorder.is_stale else self.status()
        finally:
            self._lock.release()

    @staticmethod
    def least_bytes(n_classes: int = 0) -> int:
        """Return roughly the bytes of a decider without learner and tickets: log cache, thread, encoder, classes."""
        return (8 << 20) + 1_000 * n_classes

    def n_bytes(self) -> int:
        """Return the approximate memory use in bytes."""
        state = self._state
        return self.least_bytes(len(state.classes)) + state.learner.n_bytes() + state.row_bytes

    def ticket_bytes(self) -> int:
        """Return the approximate memory of one more open ticket: a row as the latest, and a score for each class."""
        state = self._state
        return TICKET_BYTES + (0 if state.latest_row is None else state.latest_row.nbytes + 8 * len(state.classes))

    def by_class(self) -> dict[Any, tuple[int, int, int]]:
        """Return for each label how often it was guessed, right, and wrong."""
        return self._read(lambda state: dict(zip(state.classes, map(tuple, state.counts), strict=True)))

    def learning_curve(self) -> list[Moment]:
        """Return the learning curve: up to 512 points, evenly spaced by feedback, and the current one."""
        return self._read(lambda state: [*state.curve, state.moment(self._log.last_time)])

    def kernel_weights(self) -> list[tuple[str, float]]:
        """Return the weights of a `BanditSVM`'s kernels, largest first; empty for other learners."""
        return self._read(lambda state: _kernel_weights(state.learner))

    def open_tickets(
        self, older_than: str | None = None, limit: int = 100, *, asked: bool | None = None, order: str = "newest"
    ) -> list[Ticket]:
        """Return tickets without feedback, `limit` at most, by `order`: newest, oldest or doubt (least sure) first.

        `older_than` is the id of a ticket, which may be closed: only those before it are returned. With `asked` only
        those that were asked about (True), or the others (False).
        """
        check_choice("order", order, ("newest", "oldest", "doubt"))
        end = math.inf
        if older_than is not None:
            number = older_than.partition("-")[0] if isinstance(older_than, str) else ""  # of its guess event
            if not (number.isascii() and number.isdigit() and len(number) < 20):
                raise ValueError(f"ticket {older_than!r:.80} is no ticket's id")
            end = int(number)

        def find(state: State) -> list[Ticket]:
            opened = reversed(state.open.items()) if order == "newest" else state.open.items()
            found = ((name, each) for name, each in opened if each.seq < end and asked in (None, each.ask))
            if order == "doubt":  # without a confidence, labels are needed most
                first = nsmallest(limit, found, key=lambda item: item[1].body["confidence"] or 0.0)
            else:
                first = list(islice(found, limit))
            return [state.ticket_of(name, each.time, each.body, each.ask) for name, each in first]

        return self._read(find)

    def look_up(self, ticket: "str | Ticket") -> list[Event]:
        """Return all events of a ticket in the log, by its id or the key of its request."""
        name = _id_of(ticket)
        self._read(lambda _state: None)
        keyed = (event.ticket for event in self._log.find(key=name) if event.ticket is not None)
        return self._log.find(ticket=name) or [each for ticket in keyed for each in self._log.find(ticket=ticket)]

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events in the log with numbers above `after`, in order."""
        self._read(lambda _state: None)
        yield from self._log.events(after)

    # Maintenance.

    def warm_up(self) -> None:
        """Compile the learner's code before the first guess; takes about ten seconds for `BanditSVM`, once."""
        # Before the first record, which decides it, with dense and with sparse rows.
        for row in self._state.encoder.example_rows():
            twin = self._history.settings.new_learner()
            for correct in (False, True):
                twin.tell(twin.guess(row), correct)  # type: ignore[arg-type]

    def snapshot(self) -> None:
        """Write a snapshot of the state, so that opening needs no replay; also done automatically."""
        self._write(self._recorder.snapshot)

    def compact(self) -> int:
        """Remove all events covered by a new snapshot, with their records; return how many.

        Kept are the learner's state (`BanditSVM` stores up to `budget` rows), names of columns and categories, counts,
        and the events of open tickets. Earlier feedback cannot be corrected any more, nor the whole log be replayed.
        """

        def compact() -> int:
            self._recorder.snapshot()
            return self._log.compact(self._state.open)

        return self._write(compact)

    def forget(self, tickets: "Iterable[str | Ticket]" = (), where: Mapping[str, Any] | None = None) -> int:
        """Erase the events of some guesses, such as those of one person; return how many.

        Erased, and overwritten on disk, are the events of `tickets`, and all guesses and shadow decisions whose records
        have the values of `where`; a dot selects from a mapping or list: ``{"customer.id": 17, "tags.0": "x"}``. Open
        tickets among them are closed without feedback. The rest is as with `compact`.
        """
        if isinstance(tickets, (str, Ticket)):
            raise ValueError(f"tickets must be a list of tickets or their ids; got {brief(tickets)}")
        names = {_id_of(ticket) for ticket in tickets}

        def forget() -> int:
            gone = []
            for event in self._history.matching(where):
                if event.ticket is None:  # a shadow decision
                    gone.append(event.seq)
                else:
                    names.add(event.ticket)
            self._recorder.close_unanswered(name for name in list(self._state.open) if name in names)
            self._recorder.snapshot()
            gone += [event.seq for name in sorted(names) for event in self._log.find(ticket=name)]
            self._state.requests.clear()  # the remaining ones are found in the log
            self._state.feedback.clear()
            self._log.erase(gone)
            return len(gone)

        return self._write(forget)

    def export(self, path: "str | os.PathLike[str]") -> int:
        """Write every guess in the log to a CSV or Parquet file, one row each; return how many.

        Columns: ticket, time, label, propensity, correct (empty without feedback), answered, and the record as JSON.
        """
        return self._read(lambda state: self._history.write_guesses(Path(path), state.classes))

    def verify(self) -> bool:
        """Replay the whole log; return whether the result equals the current state to the last bit.

        Raises LogError if any part of the file is damaged.
        """
        return self._read(self._history.verify)


def _kernel_weights(learner: Learner) -> list[tuple[str, float]]:
    if not isinstance(learner, BanditSVM) or not learner._started:
        return []
    if (trust := getattr(learner._state, "trust", None)) is None:  # a single linear space has no weights
        return []
    shares = (trust / trust.sum()).tolist()
    named = [(kernel_name(kernel), share) for kernel, share in zip(learner.bank_, shares, strict=True)]
    return sorted(named, key=lambda each: -each[1])


def _id_of(ticket: str | Ticket) -> str:
    name = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(name, str):
        raise ValueError(f"ticket must be a ticket or its id; got {brief(ticket)}")
    return name


def _check_feedback(correct: Any) -> bool:
    if not isinstance(correct, (bool, np.bool_)):
        raise ValueError(f"correct must be True or False; got {brief(correct)}")
    return bool(correct)
