"""What pages are told of deciders, again and again: made by one thread for each decider, whoever looks at it.

Nothing of it walks the log. The course of mistakes is part of what a decider knows, and of the last events each is read
once. While nobody looks it costs nothing.
"""

import asyncio
import json
import time
from collections import OrderedDict
from typing import Any

from onebit.decider.decider import Decider
from onebit.decider.report import Recent, report, share_of
from onebit.service.bodies import described_report, status_call
from onebit.service.desks import Desk
from onebit.service.problems import problem_of

MOST_SHOWN = 100
"""Classes, and columns, that a page shows."""
_FRESH_SECONDS = 0.25
_PATIENCE_SECONDS = 0.5  # for a decider that is busy, in the list of all of them
_MOST_WATCHED = 16  # deciders whose last events are kept: some 2 MB each
_MOST_CATEGORIES = 12
_LEARNER_LETTERS = 200


class _Watch:
    """One decider as pages see it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._recent = Recent()
        self._turn = asyncio.Lock()
        self._frame, self._made = b"", -_FRESH_SECONDS

    async def frame(self) -> bytes:
        """Return all that changes, as JSON."""
        async with self._turn:
            if time.monotonic() - self._made > _FRESH_SECONDS:
                self._frame = await self.desk.read(self._look)
                self._made = time.monotonic()
            return self._frame

    def _look(self, decider: Decider) -> bytes:
        told, status = described_report(report(decider, self._recent)), status_call(decider)
        status |= {"n_classes": len(status.pop("classes")), "learner": f"{status['learner']:.{_LEARNER_LETTERS}}"}
        ranked = sorted(told["by_class"], key=lambda each: -each["guessed"])
        told["by_class"] = ranked[:MOST_SHOWN]
        settings = decider.settings
        frame = {
            "status": status,
            "report": told,
            "course": decider.course(),
            "weights": decider.kernel_weights(),
            "deadline": settings.deadline,
            "silence": settings.silence,
            "exploration_floor": settings.exploration_floor,
        }
        return json.dumps(frame, allow_nan=False, default=str).encode()


class _Brief:
    """The numbers of one decider in the list, which are not waited for when it is busy."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._task: asyncio.Task[Any] | None = None
        self._made = -1.0
        self._known: dict[str, Any] | None = None

    def begin(self) -> "asyncio.Task[Any] | None":
        """Begin to ask, unless somebody does."""
        if self._task is None and time.monotonic() - self._made > _FRESH_SECONDS:
            self._task = asyncio.create_task(self.desk.read(_brief))
        return self._task

    def said(self) -> dict[str, Any]:
        """Return what is known by now."""
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            error = task.exception()
            if error is not None:
                return {"state": "fault", "says": problem_of(error).detail}
            self._known, self._made = task.result(), time.monotonic()
        return {"state": "busy" if self._task is not None else "ready", "numbers": self._known}


class Watching:
    """All that pages look at."""

    def __init__(self) -> None:
        self._watches: OrderedDict[str, _Watch] = OrderedDict()
        self._briefs: dict[str, _Brief] = {}

    async def frame(self, desk: Desk) -> bytes:
        """Return all that changes of one decider, as JSON."""
        desk.open_decider()
        watch = self._watches.get(desk.title)
        if watch is None or watch.desk is not desk:
            watch = self._watches[desk.title] = _Watch(desk)
        self._watches.move_to_end(desk.title)
        if len(self._watches) > _MOST_WATCHED:
            self._watches.popitem(last=False)
        return await watch.frame()

    async def overview(self, desks: list[Desk]) -> list[dict[str, Any]]:
        """Return a few numbers of each."""
        briefs = []
        for desk in desks:
            if desk.title not in self._briefs or self._briefs[desk.title].desk is not desk:
                self._briefs[desk.title] = _Brief(desk)
            briefs.append(self._briefs[desk.title])
        asked = [task for brief in briefs if brief.desk.decider is not None and (task := brief.begin()) is not None]
        if asked:
            await asyncio.wait(asked, timeout=_PATIENCE_SECONDS)
        return [{"name": brief.desk.title, **_state_of(brief)} for brief in briefs]


def _state_of(brief: _Brief) -> dict[str, Any]:
    if brief.desk.decider is not None:
        return brief.said()
    if brief.desk.fault is not None:
        return {"state": "fault", "says": problem_of(brief.desk.fault).detail}
    return {"state": "opening"}


def _brief(decider: Decider) -> dict[str, Any]:
    status = decider.status()
    return {
        "guesses": status.guesses,
        "open": status.open,
        "answered": status.right + status.wrong,
        "mistakes": share_of(status.wrong, status.right + status.wrong)._asdict(),
        "last": decider.course()[-1].time,
    }


def columns_call(decider: Decider) -> dict[str, Any]:
    """Return what the columns of records became."""
    found = decider.columns()
    listed = [
        {
            "name": each.name,
            "kind": each.kind,
            "n_places": len(each.places),
            "categories": each.categories[:_MOST_CATEGORIES],
            "n_categories": len(each.categories),
            "seen": each.seen,
            "missing": each.missing,
            "shared": each.shared,
        }
        for each in found[:MOST_SHOWN]
    ]
    return {"columns": listed, "n_more": len(found) - len(listed)}
