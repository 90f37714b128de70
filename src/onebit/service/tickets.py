"""Tickets as a page shows them: what was seen, in words, and what happened to each since."""

import json
from typing import Any

from onebit.decider.decider import Decider
from onebit.decider.events import Event, Kind
from onebit.service.bodies import described_ticket
from onebit.service.web import Problem

MOST_LISTED = 50
"""Open tickets on a page."""
_LISTED_VALUES, _LISTED_LETTERS = 12, 160  # of a record in a list
_SHOWN_VALUES, _SHOWN_LETTERS = 200, 4_000  # of the record of one ticket
_NAME_LETTERS = 80


def open_tickets(desk: Decider, older_than: str | None, limit: int) -> dict[str, Any]:
    """Return tickets that wait for an answer, the newest first, with their records."""
    found = desk.open_tickets(older_than, limit + 1)
    listed = []
    for ticket in found[:limit]:
        asked = next((event for event in desk.look_up(ticket) if event.kind == Kind.GUESSED), None)
        record = None if asked is None else asked.body["record"]
        listed.append(described_ticket(ticket) | {"record": shown_record(record, _LISTED_VALUES, _LISTED_LETTERS)})
    return {"tickets": listed, "has_more": len(found) > limit}


def one_ticket(desk: Decider, name: str) -> dict[str, Any]:
    """Return all about a ticket, by its id or its request's key; raises Problem if there is none."""
    events = desk.look_up(name)
    asked = next((event for event in events if event.kind == Kind.GUESSED), None)
    if asked is None:
        raise Problem(404, f"there is no ticket {name!r:.80}, nor a request with that key, or it was compacted away")
    said, classes = asked.body, desk.classes
    return {
        "id": asked.ticket,
        "key": asked.key,
        "time": asked.time,
        "label": classes[said["label"]],
        "propensity": said["propensity"],
        "is_explored": said["label"] != said["wanted"],
        "among": None if said["among"] is None else [classes[i] for i in said["among"]][:_SHOWN_VALUES],
        "record": shown_record(said["record"], _SHOWN_VALUES, _SHOWN_LETTERS),
        "state": state_of(events),
        "history": [
            {"time": event.time, "kind": str(event.kind), "correct": event.body.get("correct")} for event in events
        ],
    }


def state_of(events: list[Event]) -> str:
    """Return how a ticket stands: open, right, wrong, withdrawn, or closed without an answer."""
    last = events[-1]
    if last.kind == Kind.SILENT:
        return "silent"
    if last.kind == Kind.GUESSED:
        return "open"
    return {True: "right", False: "wrong", None: "withdrawn"}[last.body["correct"]]


def shown_record(record: Any, most: int, longest: int) -> dict[str, Any]:
    """Return a record of the log as pairs of texts, and how many more it has; nothing longer than a page can show.

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
