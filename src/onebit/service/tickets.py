"""Tickets for the web pages: records as text, and the history of each."""

import json
from typing import Any

from onebit.decider.decider import Decider
from onebit.decider.tickets import Event, Kind
from onebit.service.bodies import described_ticket
from onebit.service.web import Problem

MOST_LISTED = 50
"""Maximum number of open tickets on a page."""
_LISTED_VALUES, _LISTED_LETTERS = 12, 160  # of a record in a list
_SHOWN_VALUES, _SHOWN_LETTERS = 200, 4_000  # of the record of one ticket
_NAME_LETTERS = 80


def open_tickets(decider: Decider, older_than: str | None, limit: int) -> dict[str, Any]:
    """Return open tickets, newest first, with their records."""
    found = decider.open_tickets(older_than, limit + 1)
    listed = []
    for ticket in found[:limit]:
        asked = next((event for event in decider.look_up(ticket) if event.kind == Kind.GUESSED), None)
        record = None if asked is None else asked.body["record"]
        listed.append(described_ticket(ticket) | {"record": shown_record(record, _LISTED_VALUES, _LISTED_LETTERS)})
    return {"tickets": listed, "has_more": len(found) > limit}


def one_ticket(decider: Decider, name: str) -> dict[str, Any]:
    """Return the details of a ticket, by its id or the key of its request; raises Problem if unknown."""
    events = decider.look_up(name)
    asked = next((event for event in events if event.kind == Kind.GUESSED), None)
    if asked is None:
        raise Problem(404, f"there is no ticket {name!r:.80}, nor a request with that key, or it was compacted away")
    body, classes = asked.body, decider.classes
    return {
        "id": asked.ticket,
        "key": asked.key,
        "time": asked.time,
        "label": classes[body["label"]],
        "propensity": body["propensity"],
        "is_explored": body["label"] != body["wanted"],
        "among": None if body["among"] is None else [classes[i] for i in body["among"]][:_SHOWN_VALUES],
        "record": shown_record(body["record"], _SHOWN_VALUES, _SHOWN_LETTERS),
        "state": state_of(events),
        "history": [
            {"time": event.time, "kind": str(event.kind), "correct": event.body.get("correct")} for event in events
        ],
    }


def state_of(events: list[Event]) -> str:
    """Return the state of a ticket: open, right, wrong, withdrawn, or closed without feedback."""
    last = events[-1]
    if last.kind == Kind.CLOSED:
        return "silent"
    if last.kind == Kind.GUESSED:
        return "open"
    return {True: "right", False: "wrong", None: "withdrawn"}[last.body["correct"]]


def shown_record(record: Any, most: int, longest: int) -> dict[str, Any]:
    """Return the first values of a record as pairs of short strings, and the number of the others.

    >>> shown_record({"subject": "lost", "sent": {"$date": "2026-11-16"}, "tags": ["a", "b"], "zip": None}, 3, 160)
    {'values': [['subject', 'lost'], ['sent', '2026-11-16'], ['tags', 'a, b']], 'n_more': 1}
    """
    if isinstance(record, dict) and set(record) == {"$mapping"}:
        pairs = [(str(name), value) for name, value in record["$mapping"]]
    elif isinstance(record, dict):
        pairs = list(record.items())
    else:
        pairs = [(str(place), value) for place, value in enumerate(record or ())]
    values = [[_cut(name, _NAME_LETTERS), _cut(_text_of(value), longest)] for name, value in pairs[:most]]
    return {"values": values, "n_more": len(pairs) - len(values)}


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or value == []:
        return "—"
    if isinstance(value, dict) and len(value) == 1:
        ((kind, held),) = value.items()
        if kind in ("$date", "$datetime", "$float"):
            return str(held)
        if kind == "$set":
            return _text_of(held)
    if isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value):
        return ", ".join(map(_text_of, value))
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
