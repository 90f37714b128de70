"""Data of the web pages: what they poll, computed once for all viewers of a decider, and tickets as text.

What is polled never reads the whole log: the learning curve is part of the state, each of the last events is read once.
"""

import asyncio
import json
import math
import time
from collections import deque
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta

from onebit.decider import calls
from onebit.decider.client import MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.decider.report import report, share_of
from onebit.decider.tickets import Kind
from onebit.service.gate import Problem, problem_of
from onebit.service.workers import DeciderWorker

MOST_WATCHED = 16  # deciders whose last events are cached: about 2 MB each
_MOST_LISTED = 50  # maximum number of open tickets on a page
_MOST_SHOWN = 100  # classes, and columns, on a page
_FRESH_SECONDS = 0.25
_PATIENCE_SECONDS = 0.5  # for busy deciders, in the list
_MOST_CATEGORIES = 12
_LEARNER_LETTERS = 200
_LISTED_VALUES, _LISTED_LETTERS = 12, 160  # of a record in a list
_SHOWN_VALUES, _SHOWN_LETTERS = 200, 4_000  # of the record of one ticket
_NAME_LETTERS = 80
_Number = Annotated[int, Meta(ge=0, lt=10**16, description="a whole number from 0")]
_Limit = Annotated[int, Meta(ge=0, le=MOST_AT_ONCE, description=f"a whole number from 0 to {MOST_AT_ONCE}")]
_ListLimit = Annotated[int, Meta(ge=0, le=_MOST_LISTED, description=f"a whole number from 0 to {_MOST_LISTED}")]


class Watch:
    """The changing data of a decider's page, computed once for all viewers."""

    def __init__(self, worker: DeciderWorker) -> None:
        self._worker = worker
        self._turn, self._recent = asyncio.Lock(), deque[Any]()
        self._frame, self._made = b"", -math.inf

    async def frame(self) -> bytes:
        """Return the data as JSON."""
        self._worker.open_decider()
        async with self._turn:
            if time.monotonic() - self._made > _FRESH_SECONDS:
                self._frame = await self._worker.read(self._look)
                self._made = time.monotonic()
            return self._frame

    def _look(self, decider: Decider) -> bytes:
        summary, status = calls.plain(report(decider, self._recent)), calls.status(decider)
        status |= {"n_classes": len(status.pop("classes")), "learner": f"{status['learner']:.{_LEARNER_LETTERS}}"}
        summary["by_class"] = sorted(summary["by_class"], key=lambda each: -each["guessed"])[:_MOST_SHOWN]
        frame = {"status": status, "report": summary, "course": decider.course(), "weights": decider.kernel_weights()}
        frame |= {name: getattr(decider.settings, name) for name in ("deadline", "silence", "exploration_floor")}
        return json.dumps(frame, allow_nan=False, default=str).encode()


def overview(workers: list[DeciderWorker]) -> list[dict[str, Any]]:
    """Return a summary of each decider; busy ones are waited for half a second in total."""
    end = time.monotonic() + _PATIENCE_SECONDS
    return [{"name": worker.title, **_summary(worker, max(end - time.monotonic(), 0.0))} for worker in workers]


def _summary(worker: DeciderWorker, seconds: float) -> dict[str, Any]:
    if not worker.opened.is_set():
        return {"state": "opening"}
    try:
        status, is_busy = worker.status_within(seconds)
    except (Problem, ValueError, OSError) as error:
        return {"state": "fault", "says": problem_of(error).detail}
    numbers: dict[str, Any] | None = None
    if status is not None:
        n_answered = status.right + status.wrong
        numbers = {"guesses": status.guesses, "open": status.open, "answered": n_answered}
        numbers |= {"mistakes": share_of(status.wrong, n_answered)._asdict(), "last": status.last.timestamp()}
    return {"state": "busy" if is_busy else "ready", "numbers": numbers}


# What is asked about a decider. Parameters are the query of a request.


def log_page(decider: Decider, after: _Number = 0, limit: _Limit = MOST_AT_ONCE) -> dict[str, Any]:
    """Return a page of the log."""
    return calls.page_of_events(islice(decider.events(after), limit), decider.classes, after)


def columns(decider: Decider) -> dict[str, Any]:
    """Return how the first columns of records are encoded."""
    found = decider.columns()
    listed = []
    for each in found[:_MOST_SHOWN]:
        column = each._asdict() | {"n_places": len(each.slots), "n_categories": len(each.categories)}
        del column["slots"]
        listed.append(column | {"categories": each.categories[:_MOST_CATEGORIES]})
    return {"columns": listed, "n_more": len(found) - len(listed)}


def open_tickets(decider: Decider, older_than: str | None = None, limit: _ListLimit = 10) -> dict[str, Any]:
    """Return open tickets, newest first, with their records."""
    found = decider.open_tickets(older_than, limit + 1)
    listed = []
    for ticket in found[:limit]:
        asked = next((event for event in decider.look_up(ticket) if event.kind == Kind.GUESSED), None)
        record = _shown_record(None if asked is None else asked.body["record"], _LISTED_VALUES, _LISTED_LETTERS)
        listed.append({**calls.ticket_result(ticket), "record": record})
    return {"tickets": listed, "has_more": len(found) > limit}


def one_ticket(decider: Decider, id: str = "") -> dict[str, Any]:
    """Return the details of a ticket, by its id or the key of its request; raises Problem if unknown."""
    events = decider.look_up(id)
    asked = next((event for event in events if event.kind == Kind.GUESSED), None)
    if asked is None:
        raise Problem(404, f"there is no ticket {id!r:.80}, nor a request with that key, or it was compacted away")
    body, classes, last = asked.body, decider.classes, events[-1]
    unanswered: dict[str, str] = {Kind.GUESSED: "open", Kind.CLOSED: "silent"}
    answered = {True: "right", False: "wrong", None: "withdrawn"}
    return {
        "id": asked.ticket,
        "key": asked.key,
        "time": asked.time,
        "label": classes[body["label"]],
        "propensity": body["propensity"],
        "is_explored": body["label"] != body["wanted"],
        "among": None if body["among"] is None else [classes[i] for i in body["among"]][:_SHOWN_VALUES],
        "record": _shown_record(body["record"], _SHOWN_VALUES, _SHOWN_LETTERS),
        "state": unanswered.get(last.kind) or answered[last.body["correct"]],
        "history": [
            {"time": event.time, "kind": str(event.kind), "correct": event.body.get("correct")} for event in events
        ],
    }


def _shown_record(record: Any, most: int, longest: int) -> dict[str, Any]:
    """Return the first values of a record as pairs of short strings, and the number of the others."""
    if isinstance(record, dict) and set(record) == {"$mapping"}:
        pairs = [(str(name), value) for name, value in record["$mapping"]]
    elif isinstance(record, dict):
        pairs = list(record.items())
    else:
        pairs = [(str(place), value) for place, value in enumerate(record or ())]
    values = [[_cut(name, _NAME_LETTERS), _cut(_text_of(value), longest)] for name, value in pairs[:most]]
    return {"values": values, "n_more": len(pairs) - len(values)}


def _text_of(value: Any) -> str:
    if value is None or value == []:
        return "—"
    if isinstance(value, dict) and value.keys() & {"$date", "$datetime", "$float", "$set"} and len(value) == 1:
        return _text_of(*value.values())
    if isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value):
        return ", ".join(map(_text_of, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
