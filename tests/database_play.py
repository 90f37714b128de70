"""Rounds of a decider whose database comes and goes, and whether its log has just what was played."""

import random
import secrets
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from onebit.decider.decider import Decider
from onebit.decider.tickets import Kind, LogWriteError, OwnedError, UnreachableError

Played = tuple[str, str, Any]
"""What was acknowledged: the verb, the ticket, and the label or the answer."""


def play(
    desk: Decider, seed: int, note: Callable[[Played], None], is_over: threading.Event, pause: float = 0.0
) -> None:
    """Play until it is over; what cannot be written is asked again, and notes are made of what was acknowledged."""
    generator = random.Random(f"{seed} {secrets.token_hex(8)}")

    def insist(work: Callable[[], Any]) -> Any:
        while True:
            try:
                return work()
            except (LogWriteError, OwnedError, UnreachableError):
                time.sleep(generator.uniform(0.0, 0.05))

    while not is_over.wait(pause):
        record, key = {"x": generator.gauss(0.0, 1.0), "y": generator.gauss(0.0, 1.0)}, secrets.token_hex(8)
        ticket = insist(partial(desk.guess, record, key=key))
        note(("guess", ticket.id, ticket.label))
        if generator.random() < 0.8:  # some are never answered
            correct = ticket.label == "a"
            insist(partial(desk.tell, ticket.id, correct))
            note(("tell", ticket.id, correct))


def check(desk: Decider, told: list[Played], most_unknown: int = 0) -> None:
    """Compare a log with what was acknowledged, event by event: nothing is lost, nothing twice, and no more is there.

    Parameters
    ----------
    desk : Decider
        The decider afterwards.
    told : list
        What was acknowledged.
    most_unknown : int
        How many events may be there beside: those of players that were ended before they heard.
    """
    assert desk.verify(), "the state is not what the log says"
    events = list(desk.events())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    guesses = [(event.ticket, desk.classes[event.body["label"]]) for event in events if event.kind == Kind.GUESSED]
    answers = [(event.ticket, event.body["correct"]) for event in events if event.kind == Kind.FEEDBACK]
    there: dict[str, dict[Any, Any]] = {"guess": dict(guesses), "tell": dict(answers)}
    assert len(there["guess"]) == len(guesses), "a guess was counted twice"
    assert len(there["tell"]) == len(answers), "an answer was counted twice"
    lost = [(verb, ticket, what) for verb, ticket, what in told if there[verb].get(ticket) != what]
    assert lost == [], "acknowledged, and not in the log"
    assert len(guesses) + len(answers) - len(set(told)) <= most_unknown
