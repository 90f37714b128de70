"""Report on a decider: mistakes with confidence intervals, and alarms with a likely cause.

The baseline always guesses the same label. After "right" the true label is known; after "wrong" only one is excluded.
So the report gives a lower and an upper bound on how often the baseline would have been right.

Decisions made alone, and suggestions that a person was asked about, are counted apart: `mistakes` are those of
decisions made alone.

References
----------
S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon (2021). Time-uniform, nonparametric, nonasymptotic confidence sequences.
Annals of Statistics 49. (Theorem 4 with the stitched boundary, equation 10.)
"""

import math
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import fisher_exact, t

from onebit.asking import Asking
from onebit.confidence import reliability, risk_by_coverage
from onebit.decider.tickets import Event, Kind, Status

_RECENT_EVENTS = 10_000  # number of events that alarms are based on
_RECENT_ANSWERS = 200
_FEWEST_ANSWERS = 50  # before and after a change
_UNLIKELY = 0.001
_MANY = 100  # guesses of one label, or without an answer
_RECENT_GUESSES = 500
_NEARLY_ALL = 0.9
_LEAST_VARIANCE = 10.0  # the interval at any time is narrowest from so many mistakes on
_ZETA = 3.1055  # ζ(1.4)
_LIMITS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
_MOST_REPLAYED, _FEWEST_REPLAYED, _PARTS = 4_000, 100, 5
_FEWEST_MISTAKES = 20
_DRAWN = 60  # points of risk
_DEVIATIONS = 1.959963984540054  # standard deviations of a central 95 % interval
_CAUSES = {
    "drift": "what is decided about has changed, a column means something else since a release, or other people answer",
    "all wrong": "the application says correct the wrong way round, compares labels of different types, or the right "
    "label is none of the classes",
    "one label": "all records look the same (columns are missing, or empty), or the learner does not explore: "
    "exploration_floor helps",
    "same mistake": "records of a label that is none of the classes look like this one's: let it join them; or this "
    "one is rare, and nothing in the records tells it from another",
    "no answers": "the application no longer calls tell, tells another decider, or answers come late by nature",
    "asks always": "the records do not say enough to stay within the limit: give more columns, or allow more wrong "
    "decisions (change wrong_at_most)",
}


class _Share(NamedTuple):
    """A share, with a 95 % confidence interval for the probability (Wilson).

    The probability of a mistake changes while a learner learns; the interval is for its mean over these rounds. It is
    not corrected for repeated reports.
    """

    number: int
    of: int
    share: float | None
    low: float
    high: float


class _Cost(NamedTuple):
    """What a limit on wrong decisions would cost: the share of guesses asked about."""

    wrong_at_most: float
    asked: _Share


class _Group(NamedTuple):
    """Guesses of nearly the same confidence: its mean, and how many were right."""

    confidence: float
    right: _Share


class _Sureness(NamedTuple):
    """How often guesses were right by their confidence, and the share wrong among those with the most confidence."""

    groups: list[_Group]
    risk: list[tuple[float, float]]
    """Pairs: a share of the guesses, those with the most confidence, and what share of them was wrong."""


class _OfClass(NamedTuple):
    """Guesses and mistakes of one label."""

    label: Any
    guessed: int
    mistakes: _Share


class _Constant(NamedTuple):
    """The baseline that always guesses the label that was right most often: bounds on its right guesses."""

    label: Any
    right_at_least: int
    right_at_most: int


class _Alarm(NamedTuple):
    """A likely problem; its kind is one of `_CAUSES`."""

    kind: str
    says: str
    likely_cause: str


class Report(NamedTuple):
    """Result of `report`."""

    guesses: int
    answered: int
    """Includes tickets closed without feedback that count as wrong."""
    open: int
    silent: int
    mistakes: _Share
    """Of decisions made alone."""
    mistakes_at_any_time: _Share
    """The same with an interval that holds for all reports at once, however often one looks."""
    recent_mistakes: _Share
    asked: _Share
    """Of all guesses."""
    recent_asked: _Share
    suggestions_right: _Share
    """Of the answered guesses that were asked about."""
    by_class: list[_OfClass]
    constant: _Constant | None
    alarms: list[_Alarm]


class _Seen(NamedTuple):
    """The parts of an event that alarms need; silence that counts as wrong is feedback."""

    seq: int
    kind: str
    ticket: str | None
    label: int | None
    correct: bool | None
    confidence: float | None
    ask: bool
    """Whether a person was asked, of a guess and what follows on it."""


_Round = tuple[int | None, bool]  # the guessed label, None if not among the recent events; whether it was right


def report(decider: Any, recent: "deque[_Seen] | None" = None) -> Report:
    """Return a report on a decider: `mistakes` covers all feedback, the rest the last 10 000 events.

    `recent`, empty at first, keeps these events, so that repeated reports read each event once.
    """
    status, by_class = decider.status(), decider.by_class()
    recent = _recent_events(decider, recent)
    asked = [event.ask for event in recent if event.kind == Kind.GUESSED][-_RECENT_GUESSES:]
    alone = _answered(event for event in recent if not event.ask)
    label = max(by_class, key=lambda each: by_class[each][1])
    right, n_answered = by_class[label][1], status.right + status.wrong
    others_wrong = sum(wrong for each, (_, _, wrong) in by_class.items() if each != label)
    return Report(
        guesses=status.guesses,
        answered=n_answered,
        open=status.open,
        silent=status.silent,
        mistakes=share_of(status.wrong, n_answered),
        mistakes_at_any_time=_share_at_any_time(status.wrong, n_answered),
        recent_mistakes=_mistakes(alone[-_RECENT_ANSWERS:]),
        asked=share_of(status.asked, status.guesses),
        recent_asked=share_of(sum(asked), len(asked)),
        suggestions_right=share_of(status.suggestions_right, status.asked_answered),
        by_class=[_OfClass(label, n, share_of(wrong, right + wrong)) for label, (n, right, wrong) in by_class.items()],
        constant=_Constant(label, right, right + others_wrong) if right else None,
        alarms=_alarms(recent, alone, asked, list(by_class), status),
    )


def _recent_events(decider: Any, recent: "deque[_Seen] | None" = None) -> "deque[_Seen]":
    """Return the last 10 000 events of a decider; those after the last of `recent` are read and added to it."""
    recent, status = deque() if recent is None else recent, decider.status()
    asks = {event.ticket: event.ask for event in recent}
    for event in decider.events(max(recent[-1].seq if recent else 0, status.events - _RECENT_EVENTS)):
        if event.kind == Kind.GUESSED:
            asks[event.ticket] = _is_asked(event)
        elif event.ticket is not None and event.ticket not in asks:  # its guess is not recent
            asks[event.ticket] = status.asked > 0 and any(map(_is_asked, decider.look_up(event.ticket)))
        correct, ask = event.body.get("correct"), asks.get(event.ticket, False)
        # Where a person was asked, silence says nothing.
        kind = Kind.FEEDBACK if event.kind == Kind.CLOSED and correct is False and not ask else event.kind
        confidence = event.body.get("confidence")
        recent.append(_Seen(event.seq, kind, event.ticket, event.body.get("label"), correct, confidence, ask))
    while len(recent) > _RECENT_EVENTS:
        recent.popleft()
    return recent


def _is_asked(event: Event) -> bool:
    return bool(event.body.get("decision", (False,))[0])


def share_of(count: int, of: int) -> _Share:
    """Return a share with its confidence interval."""
    if not of:
        return _Share(0, 0, None, 0.0, 1.0)
    squared = _DEVIATIONS**2
    middle = count + squared / 2
    half = _DEVIATIONS * math.sqrt(count * (of - count) / of + squared / 4)
    low = (middle - half) / (of + squared) if count else 0.0
    high = (middle + half) / (of + squared) if count < of else 1.0
    return _Share(count, of, count / of, low, high)


def _share_at_any_time(count: int, of: int) -> _Share:
    """Return a share with a 95 % confidence sequence: an interval that holds after every round at once.

    It is for the mean, over all answered rounds so far, of the probability that a guess was wrong. That may change from
    round to round in any way, but whether and when an answer comes must not depend on whether the guess was right.
    """
    if not of:
        return _Share(0, 0, None, 0.0, 1.0)
    # The sum of squares of the outcomes, each 0 or 1, is their count.
    variance = max(float(count), _LEAST_VARIANCE)
    log = math.log(_ZETA * (math.log2(variance / _LEAST_VARIANCE) + 1.0) ** 1.4 / 0.025)
    first, second = (2.0**0.25 + 2.0**-0.25) / math.sqrt(2.0), (math.sqrt(2.0) + 1.0) / 2.0
    half = (math.sqrt(first**2 * variance * log + (second * log) ** 2) + second * log) / of
    return _Share(count, of, count / of, max(0.0, count / of - half), min(1.0, count / of + half))


def costs_of_limits(decider: Any) -> list[_Cost]:
    """Return what each of some limits on wrong decisions would cost, going by recent events; none if they are too few.

    The rule of asking is played on the confidences and answers of the log. What labels teach the learner is left out:
    with another limit it may ask less, or more. The first half prepares the rule and is not counted. The interval is
    rough: it is from the means of five parts, which are not quite independent of each other, or of as many rounds if
    that is wider.
    """
    rounds = _confidences(decider)[-_MOST_REPLAYED:]
    n_counted = len(rounds) // 2 // _PARTS * _PARTS
    if n_counted < _FEWEST_REPLAYED:
        return []
    costs = []
    for limit in _LIMITS:
        asking, asks = Asking(wrong_at_most=limit), []
        for each, right in rounds:
            decision = asking.decide(each)
            asking.answer(decision, right)
            asks.append(decision.ask)
        means = np.reshape(asks[-n_counted:], (_PARTS, -1)).mean(axis=1)
        mean, half = float(means.mean()), float(t.ppf(0.975, _PARTS - 1) * means.std(ddof=1) / math.sqrt(_PARTS))
        n_asked = sum(asks[-n_counted:])
        # Parts that are all alike say nothing about chance.
        least = share_of(n_asked, n_counted)
        low, high = min(mean - half, least.low), max(mean + half, least.high)
        costs.append(_Cost(limit, _Share(n_asked, n_counted, mean, max(0.0, low), min(1.0, high))))
    return costs


def how_sure(decider: Any) -> _Sureness:
    """Return whether confidence was what it claims, going by recent events; nothing if too few are answered."""
    known = [(confidence, right) for confidence, right in _confidences(decider) if confidence is not None]
    if len(known) < _FEWEST_REPLAYED:
        return _Sureness([], [])
    confidence, right = (np.array(each) for each in zip(*known, strict=True))
    groups = [_Group(mean, share_of(n_right, of)) for mean, n_right, of in reliability(confidence, right)]
    risk = risk_by_coverage(confidence, right)
    at = np.unique(np.linspace(len(risk) // 10, len(risk) - 1, _DRAWN).astype(int))
    return _Sureness(groups, [(float(i + 1) / len(risk), float(risk[i])) for i in at])


def _confidences(decider: Any) -> list[tuple[float | None, bool]]:
    """Return of answered guesses the confidence and whether they were right, in the order of their answers."""
    recent = _recent_events(decider)
    confidence = {event.ticket: event.confidence for event in recent if event.kind == Kind.GUESSED}
    answers: dict[str | None, bool | None] = {}
    for event in recent:
        if event.kind in (Kind.FEEDBACK, Kind.CORRECTED) and event.ticket in confidence:
            answers[event.ticket] = event.correct
    return [(confidence[ticket], right) for ticket, right in answers.items() if right is not None]


def _answered(events: Iterable[_Seen]) -> list[_Round]:
    """Return rounds with feedback, in its order; corrected feedback counts, withdrawn does not."""
    labels: dict[str | None, int | None] = {}
    answers: dict[str | None, bool | None] = {}
    for event in events:
        if event.kind == Kind.GUESSED:
            labels[event.ticket] = event.label
        elif event.kind == Kind.FEEDBACK or (event.kind == Kind.CORRECTED and event.ticket in answers):
            answers[event.ticket] = event.correct
    return [(labels.get(ticket), correct) for ticket, correct in answers.items() if correct is not None]


def _mistakes(rounds: list[_Round]) -> _Share:
    return share_of(sum(not correct for _, correct in rounds), len(rounds))


def _alarms(
    recent: Iterable[_Seen], alone: list[_Round], asked: list[bool], classes: list[Any], status: Status
) -> list[_Alarm]:
    """Return what is alarming in recent events; `alone` are the answered rounds that were not asked about."""
    found = {
        "drift": _drift(alone),
        "all wrong": _all_wrong(alone, len(classes)),
        "one label": _one_label(recent, len(classes)),
        "same mistake": _same_mistake(alone[-_RECENT_ANSWERS:], classes),
        "no answers": _no_answers(recent, status),
    }
    if len(asked) == _RECENT_GUESSES and sum(asked) >= _NEARLY_ALL * len(asked):
        found["asks always"] = f"a person was asked about {sum(asked)} of the last {len(asked)} guesses"
    return [_Alarm(kind, says, _CAUSES[kind]) for kind, says in found.items() if says is not None]


def _drift(rounds: list[_Round]) -> str | None:
    n_recent = min(_RECENT_ANSWERS, len(rounds) // 2)
    if n_recent < _FEWEST_ANSWERS:
        return None
    before, now = _mistakes(rounds[:-n_recent]), _mistakes(rounds[-n_recent:])
    table = [[now.number, now.of - now.number], [before.number, before.of - before.number]]
    if fisher_exact(table, alternative="greater").pvalue >= _UNLIKELY:
        return None
    return f"{now.number} mistakes in the last {now.of} answers, {before.number} in the {before.of} before"


def _all_wrong(rounds: list[_Round], n_classes: int) -> str | None:
    # With many labels even uniform guesses are seldom right.
    by_chance = math.ceil(math.log(_UNLIKELY) / math.log1p(-1.0 / n_classes)) if n_classes > 1 else 0
    last = rounds[-max(_RECENT_ANSWERS, by_chance) :]
    if len(last) < max(_FEWEST_ANSWERS, by_chance) or any(correct for _, correct in last):
        return None
    return f"all of the last {len(last)} answers are wrong"


def _one_label(recent: Iterable[_Seen], n_classes: int) -> str | None:
    guesses = [event for event in recent if event.kind == Kind.GUESSED]
    since = next((at for at, event in enumerate(reversed(guesses)) if event.label != guesses[-1].label), len(guesses))
    if n_classes < 2 or since < _MANY:
        return None
    # Only feedback on these guesses: later feedback may belong to earlier ones.
    alike = {event.ticket for event in guesses[-since:]}
    mistakes = _mistakes(_answered(event for event in recent if event.ticket in alike)[-_MANY:])
    if mistakes.number < _FEWEST_MISTAKES:  # the label may be right
        return None
    return f"the last {since} guesses are one label, with {mistakes.number} mistakes in {mistakes.of} answers to them"


def _same_mistake(last: list[_Round], classes: list[Any]) -> str | None:
    wrong = Counter(label for label, correct in last if not correct and label is not None)
    guessed = Counter(label for label, _ in last if label is not None)
    if len(guessed) < 2 or wrong.total() < _FEWEST_MISTAKES:
        return None
    (label, count), *_ = wrong.most_common(1)
    if count < _NEARLY_ALL * wrong.total() or count < guessed[label] / 2:
        return None
    return f"{count} of the last {wrong.total()} mistakes are {classes[label]!r:.80}"


def _no_answers(recent: Iterable[_Seen], status: Status) -> str | None:
    n_since, longest, before = 0, 0, 0
    for event in recent:
        if event.kind in (Kind.FEEDBACK, Kind.CORRECTED):
            longest, n_since = max(longest, n_since), 0
        elif event.seq > before + 1:  # feedback may have been removed by compaction
            n_since = 0
        n_since += event.kind == Kind.GUESSED
        before = event.seq
    # No alarm where feedback is rare or comes in batches.
    if before < status.events or n_since < _MANY or n_since <= 2 * longest:
        return None
    oldest = status.oldest_open
    since = "" if oldest is None else f"; the oldest open ticket is of {oldest:%Y-%m-%d %H:%M} UTC"
    return f"{n_since} guesses since the last answer{since}"
