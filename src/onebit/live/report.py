"""How a decider fares, with what chance may do to the numbers, and alarms with a likely cause.

The learner's rival here is whoever always says one label. After "right" the label is known; after "wrong" only one is
ruled out. So how often the rival would have been right lies between two numbers, and both are told.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from scipy.stats import fisher_exact

from onebit.live.decider import Decider
from onebit.live.events import Kind

RECENT_EVENTS = 10_000
"""How far back alarms look."""
_RECENT_ANSWERS = 200
_FEWEST_ANSWERS = 50  # on both sides, before anything is said about a change
_UNLIKELY = 0.001
_MANY_UNANSWERED = 100
_MANY_ALIKE = 100
_FEWEST_MISTAKES = 20
_SAME_MISTAKE = 0.9
_DEVIATIONS = 1.959963984540054  # of a normal distribution, between which 95 % lie


class Share(NamedTuple):
    """A share of many, and where the true one lies with 95 % confidence (Wilson)."""

    number: int
    of: int
    share: float | None
    low: float
    high: float


class OfClass(NamedTuple):
    """How guesses of one label went."""

    label: Any
    guessed: int
    mistakes: Share


class Constant(NamedTuple):
    """Always saying the label that was right most often: how many answered guesses it would have had right."""

    label: Any
    right_at_least: int
    right_at_most: int


class Alarm(NamedTuple):
    """Something that wants looking at."""

    kind: str
    """drift, one label, same mistake, all wrong, or no answers."""
    says: str
    likely_cause: str


class Report(NamedTuple):
    """What `report` returns."""

    guesses: int
    answered: int
    open: int
    silent: int
    mistakes: Share
    recent_mistakes: Share
    by_class: list[OfClass]
    constant: Constant | None
    alarms: list[Alarm]


class _Round(NamedTuple):
    label: int | None
    """None where the guess is too long ago."""
    correct: bool


class _Seen(NamedTuple):
    """What alarms need of an event: of its record they know nothing."""

    kind: str
    ticket: str | None
    label: int | None
    correct: bool | None


class Recent:
    """The last events of a decider: whoever reports again and again reads each of them once."""

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque(maxlen=RECENT_EVENTS)
        self._last = 0

    def of(self, desk: Decider, last: int) -> list[_Seen]:
        """Return them, with those that are new; `last` is the number of the last event."""
        for event in desk.events(max(self._last, last - RECENT_EVENTS)):
            said = event.body
            self._seen.append(_Seen(event.kind, event.ticket, said.get("label"), said.get("correct")))
            self._last = event.seq
        return list(self._seen)


def report(desk: Decider, recent_events: Recent | None = None) -> Report:
    """Return how a decider fares.

    Mistakes are those of all answers. What is recent, and what alarms are about, is found in the last 10 000 events.

    Parameters
    ----------
    desk : Decider
        The decider.
    recent_events : Recent
        Its last events, as far as an earlier report has read them.
    """
    status, by_class = desk.status(), desk.by_class()
    recent = (recent_events or Recent()).of(desk, status.events)
    rounds = _answered(recent)
    last = rounds[-_RECENT_ANSWERS:]
    found = [
        _drift(rounds),
        _all_wrong(last),
        _one_label(recent, rounds, len(by_class)),
        _same_mistake(last, list(by_class)),
        _no_answers(recent, status.oldest_open),
    ]
    return Report(
        guesses=status.guesses,
        answered=status.right + status.wrong,
        open=status.open,
        silent=status.silent,
        mistakes=share_of(status.wrong, status.right + status.wrong),
        recent_mistakes=_mistakes(last),
        by_class=[
            OfClass(label, guessed, share_of(wrong, right + wrong))
            for label, (guessed, right, wrong) in by_class.items()
        ],
        constant=_constant(by_class),
        alarms=[alarm for alarm in found if alarm is not None],
    )


def share_of(count: int, of: int) -> Share:
    """Return a share with its interval.

    >>> share_of(1, 10)
    Share(number=1, of=10, share=0.1, low=0.0179, high=0.4042)
    """
    if not of:
        return Share(0, 0, None, 0.0, 1.0)
    squared = _DEVIATIONS**2
    middle = count + squared / 2
    half = _DEVIATIONS * math.sqrt(count * (of - count) / of + squared / 4)
    low, high = (middle - half) / (of + squared), (middle + half) / (of + squared)
    return Share(count, of, count / of, round(max(low, 0.0), 4), round(min(high, 1.0), 4))


def _constant(by_class: dict[Any, tuple[int, int, int]]) -> Constant | None:
    right = {label: counts[1] for label, counts in by_class.items()}
    label = max(right, key=lambda each: right[each])
    if not right[label]:
        return None
    others_wrong = sum(wrong for each, (_, _, wrong) in by_class.items() if each != label)
    return Constant(label, right[label], right[label] + others_wrong)


def _answered(events: Iterable[_Seen]) -> list[_Round]:
    """Return the answered rounds in the order of their answers; corrections count, withdrawn answers do not."""
    labels: dict[str | None, int | None] = {}
    answers: dict[str | None, bool | None] = {}
    for event in events:
        if event.kind == Kind.GUESSED:
            labels[event.ticket] = event.label
        elif event.kind == Kind.TOLD or (event.kind == Kind.CORRECTED and event.ticket in answers):
            answers[event.ticket] = event.correct
    return [_Round(labels.get(ticket), correct) for ticket, correct in answers.items() if correct is not None]


def _mistakes(rounds: list[_Round]) -> Share:
    return share_of(sum(not each.correct for each in rounds), len(rounds))


def _drift(rounds: list[_Round]) -> Alarm | None:
    n_recent = min(_RECENT_ANSWERS, len(rounds) // 2)
    if n_recent < _FEWEST_ANSWERS:
        return None
    before, now = _mistakes(rounds[:-n_recent]), _mistakes(rounds[-n_recent:])
    table = [[now.number, now.of - now.number], [before.number, before.of - before.number]]
    if fisher_exact(table, alternative="greater").pvalue >= _UNLIKELY:
        return None
    return Alarm(
        "drift",
        f"{now.number} mistakes in the last {now.of} answers, {before.number} in the {before.of} before",
        "what is decided about has changed, a column means something else since a release, or other people answer",
    )


def _all_wrong(last: list[_Round]) -> Alarm | None:
    if len(last) < _FEWEST_ANSWERS or any(each.correct for each in last):
        return None
    return Alarm(
        "all wrong",
        f"all of the last {len(last)} answers are wrong",
        "the application says correct the wrong way round, compares labels of different types, or the right label is "
        "none of the classes",
    )


def _one_label(recent: Sequence[_Seen], rounds: list[_Round], n_classes: int) -> Alarm | None:
    said = [event.label for event in recent if event.kind == Kind.GUESSED][-_MANY_ALIKE:]
    if n_classes < 2 or len(said) < _MANY_ALIKE or len(set(said)) > 1:
        return None
    mistakes = _mistakes(rounds[-_MANY_ALIKE:])
    if mistakes.number < _FEWEST_MISTAKES:  # it may well be right
        return None
    return Alarm(
        "one label",
        f"the last {len(said)} guesses are one label, with {mistakes.number} mistakes in {mistakes.of} answers",
        "all records look the same (columns are missing, or empty), answers stopped coming, or the learner does not "
        "explore: exploration_floor helps",
    )


def _same_mistake(last: list[_Round], classes: list[Any]) -> Alarm | None:
    wrong = Counter(each.label for each in last if not each.correct and each.label is not None)
    guessed = Counter(each.label for each in last)
    if len(guessed) < 2 or wrong.total() < _FEWEST_MISTAKES:
        return None
    (label, count), *_ = wrong.most_common(1)
    if count < _SAME_MISTAKE * wrong.total() or count < guessed[label] / 2:
        return None
    return Alarm(
        "same mistake",
        f"{count} of the last {wrong.total()} mistakes are {classes[label]!r:.80}",
        "records of a label that is none of the classes look like this one's: add_class adds it; or nothing in the "
        "records tells the two apart",
    )


def _no_answers(recent: Sequence[_Seen], oldest_open: Any) -> Alarm | None:
    n_since = 0
    for event in reversed(recent):
        if event.kind in (Kind.TOLD, Kind.CORRECTED):
            break
        n_since += event.kind == Kind.GUESSED
    if n_since < _MANY_UNANSWERED:
        return None
    since = "" if oldest_open is None else f"; the oldest open ticket is of {oldest_open:%Y-%m-%d %H:%M} UTC"
    return Alarm(
        "no answers",
        f"{n_since} guesses since the last answer{since}",
        "the application no longer calls tell, tells another decider, or answers come late by nature",
    )
