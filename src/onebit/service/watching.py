"""Data that the web pages poll, computed once for all viewers of a decider.

It never reads the whole log: the learning curve is part of the state, and each of the last events is read once. Nothing
is computed while no page is open.
"""

import asyncio
import json
import time
from collections import OrderedDict
from typing import Any

from onebit.decider.decider import Decider
from onebit.decider.report import Recent, report, share_of
from onebit.service.bodies import described_report, status_call
from onebit.service.problems import problem_of
from onebit.service.workers import DeciderWorker

MOST_SHOWN = 100
"""Maximum number of classes, and of columns, on a page."""
_FRESH_SECONDS = 0.25
_PATIENCE_SECONDS = 0.5  # for busy deciders, in the list
_MOST_WATCHED = 16  # deciders whose last events are cached: about 2 MB each
_MOST_CATEGORIES = 12
_LEARNER_LETTERS = 200


class _Watch:
    """Cached page data of one decider."""

    def __init__(self, worker: DeciderWorker) -> None:
        self.worker = worker
        self._recent = Recent()
        self._turn = asyncio.Lock()
        self._frame, self._made = b"", -_FRESH_SECONDS

    async def frame(self) -> bytes:
        """Return the changing data of the page, as JSON."""
        async with self._turn:
            if time.monotonic() - self._made > _FRESH_SECONDS:
                self._frame = await self.worker.read(self._look)
                self._made = time.monotonic()
            return self._frame

    def _look(self, decider: Decider) -> bytes:
        summary, status = described_report(report(decider, self._recent)), status_call(decider)
        status |= {"n_classes": len(status.pop("classes")), "learner": f"{status['learner']:.{_LEARNER_LETTERS}}"}
        ranked = sorted(summary["by_class"], key=lambda each: -each["guessed"])
        summary["by_class"] = ranked[:MOST_SHOWN]
        settings = decider.settings
        frame = {
            "status": status,
            "report": summary,
            "course": decider.course(),
            "weights": decider.kernel_weights(),
            "deadline": settings.deadline,
            "silence": settings.silence,
            "exploration_floor": settings.exploration_floor,
        }
        return json.dumps(frame, allow_nan=False, default=str).encode()


class _Brief:
    """Summary of one decider for the list; the page does not wait for busy deciders."""

    def __init__(self, worker: DeciderWorker) -> None:
        self.worker = worker
        self._task: asyncio.Task[Any] | None = None
        self._made = -1.0
        self._known: dict[str, Any] | None = None

    def begin(self) -> "asyncio.Task[Any] | None":
        """Start reading the summary, unless it is recent or being read."""
        if self._task is None and time.monotonic() - self._made > _FRESH_SECONDS:
            self._task = asyncio.create_task(self.worker.read(_brief))
        return self._task

    def state(self) -> dict[str, Any]:
        """Return the latest summary and whether it is being read."""
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            error = task.exception()
            if error is not None:
                return {"state": "fault", "says": problem_of(error).detail}
            self._known, self._made = task.result(), time.monotonic()
        return {"state": "busy" if self._task is not None else "ready", "numbers": self._known}


class Watching:
    """Data of all pages."""

    def __init__(self) -> None:
        self._watches: OrderedDict[str, _Watch] = OrderedDict()
        self._briefs: dict[str, _Brief] = {}

    async def frame(self, worker: DeciderWorker) -> bytes:
        """Return the changing data of one decider's page, as JSON."""
        worker.open_decider()
        watch = self._watches.get(worker.title)
        if watch is None or watch.worker is not worker:
            watch = self._watches[worker.title] = _Watch(worker)
        self._watches.move_to_end(worker.title)
        if len(self._watches) > _MOST_WATCHED:
            self._watches.popitem(last=False)
        return await watch.frame()

    async def overview(self, workers: list[DeciderWorker]) -> list[dict[str, Any]]:
        """Return a summary of each decider."""
        briefs = []
        for worker in workers:
            if worker.title not in self._briefs or self._briefs[worker.title].worker is not worker:
                self._briefs[worker.title] = _Brief(worker)
            briefs.append(self._briefs[worker.title])
        asked = [task for brief in briefs if brief.worker.decider is not None and (task := brief.begin()) is not None]
        if asked:
            await asyncio.wait(asked, timeout=_PATIENCE_SECONDS)
        return [{"name": brief.worker.title, **_state_of(brief)} for brief in briefs]


def _state_of(brief: _Brief) -> dict[str, Any]:
    if brief.worker.decider is not None:
        return brief.state()
    if brief.worker.fault is not None:
        return {"state": "fault", "says": problem_of(brief.worker.fault).detail}
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
    """Return how the columns of records are encoded."""
    found = decider.columns()
    listed = [
        {
            "name": each.name,
            "kind": each.kind,
            "n_places": len(each.slots),
            "categories": each.categories[:_MOST_CATEGORIES],
            "n_categories": len(each.categories),
            "seen": each.seen,
            "missing": each.missing,
            "shared": each.shared,
        }
        for each in found[:MOST_SHOWN]
    ]
    return {"columns": listed, "n_more": len(found) - len(listed)}
