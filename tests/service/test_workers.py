"""Workers: queues and their limits, shared commits, the end of the service, and deciders that are found and made."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from onebit.decider.calls import own_learner
from onebit.decider.client import Client
from onebit.decider.decider import Decider
from onebit.decider.tickets import UnreachableError
from onebit.service.app import Service
from onebit.service.gate import Problem
from onebit.service.workers import _MOST_READERS, _MOST_WAITING, DeciderWorker, WorkerPool
from served import DESK, LIGHT, Reply, Served, is_problem, running_here


def test_many_at_once_share_commits_and_all_is_in_the_log(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    n_commits, log = 0, served.service.workers.get("shop", "routing").open_decider()._log
    write_pending = log._write_pending

    def counted() -> None:
        nonlocal n_commits
        n_commits += 1
        write_pending()

    monkeypatch.setattr(log, "_write_pending", counted)
    tickets = served.ask_all([("POST", f"{DESK}/guess", {"record": {"x": i / 7}}) for i in range(100)])
    served.ask_all([("POST", f"{DESK}/tell", {"id": ticket.json["id"], "correct": True}) for ticket in tickets])
    assert n_commits < 100
    events = served.ask("GET", f"{DESK}/log?after=1&limit=1000").json["events"]
    assert {event["ticket"] for event in events if event["kind"] == "guessed"} == {t.json["id"] for t in tickets}
    assert sum(event["kind"] == "feedback" for event in events) == 100


def test_a_slow_decider_keeps_only_its_own_callers_waiting(served: Served) -> None:
    served.ask("PUT", "/v1/shop/slow", LIGHT)
    served.ask_all([("POST", f"/v1/shop/{name}/guess", {"record": {"x": 1.0}}) for name in ("slow", "routing")])
    slow, is_free = served.service.workers.get("shop", "slow"), threading.Event()

    async def both() -> Any:
        waiting = asyncio.create_task(slow.submit(lambda _desk: is_free.wait(10), 0))
        try:
            return await served._ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}}, {}), waiting.done()
        finally:
            is_free.set()
            assert await waiting

    reply, was_done = served._runner.run(both())
    assert (reply.status, was_done) == (200, False)


def test_slow_deciders_leave_threads_to_read_others(served: Served) -> None:
    n_slow = (os.cpu_count() or 1) // _MOST_READERS + 2  # more readers than Python would have threads
    paths = [f"/v1/shop/slow-{i}" for i in range(n_slow)]
    with ExitStack() as held:
        for path in paths:
            assert served.ask("PUT", path, LIGHT).status == 201
            held.enter_context(served.service.workers.get("shop", path.rpartition("/")[2]).open_decider()._lock)

        async def ask() -> Any:
            waiting = [asyncio.create_task(served._ask("GET", f"{path}/status", None, {})) for path in 4 * paths]
            try:
                return await asyncio.wait_for(served._ask("GET", f"{DESK}/status", None, {}), 5.0)
            finally:
                held.close()
                await asyncio.gather(*waiting)

        assert served._runner.run(ask()).status == 200


def test_a_line_that_is_too_long(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.workers._MOST_WAITING", 0)
    reply = served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}})
    assert is_problem(reply, 503, "in line")
    assert _MOST_WAITING > 0


def test_a_line_that_is_too_large(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.workers._MOST_BYTES_WAITING", 100)
    small, large = {"record": {"x": 1.0}}, {"record": {"x": 1.0}, "key": "k" * 100}
    for _ in range(10):  # what is answered is in line no more
        assert served.ask("POST", f"{DESK}/guess", small).status == 200
        assert is_problem(served.ask("POST", f"{DESK}/guess", large), 503, "are in line; try again")


def test_a_decider_that_is_busy_takes_not_all_the_room_in_line(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.workers._MOST_BYTES_FOR_ONE", 100)
    small, large = {"record": {"x": 1.0}}, {"record": {"x": 1.0}, "key": "k" * 100}
    desk = served.service.workers.get("shop", "routing")
    for _ in range(5):
        assert served.ask("POST", f"{DESK}/guess", small).status == 200
        assert is_problem(served.ask("POST", f"{DESK}/guess", large), 503, "are in line for shop/routing; try again")
        assert desk._n_bytes == desk._pool.n_bytes == 0


def test_what_is_refused_when_the_service_stops_is_never_written(tmp_path: Path) -> None:
    """SIGTERM while a decider is busy: what it has begun is answered as it went, all else 504, and not done later."""
    app = Service(tmp_path)
    with running_here(app, timeout_graceful_shutdown=0.2) as (url, server), ThreadPoolExecutor(8) as threads:
        with Client(url) as client:
            client.create("shop/routing", **LIGHT)
            known = client.decider("shop/routing").guess({"x": 1.0}, key="known")

        def ask(method: str, path: str, body: Any) -> Reply:
            connection = HTTPConnection(url.removeprefix("http://"), timeout=20)
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())

        desk = app.workers.get("shop", "routing")
        with desk.open_decider()._lock:  # it is busy
            begun = threads.submit(ask, "POST", f"{DESK}/guess", {"record": {"x": 1.0}, "key": "begun"})
            wait_until(lambda: desk._n_bytes > 0 and desk._queue.empty())
            in_line = [
                threads.submit(ask, "POST", f"{DESK}/guess", {"record": {"x": 1.0}, "key": "in line"}),
                threads.submit(ask, "POST", f"{DESK}/tell", {"id": known.id, "correct": True}),
                threads.submit(ask, "POST", f"{DESK}/classes", {"label": "late"}),
            ]
            wait_until(lambda: desk._queue.qsize() == 3)
            server.should_exit = True
            for reply in [each.result(10) for each in in_line]:
                assert is_problem(reply, 504, "nothing of it happened")
                assert reply.headers["x-content-type-options"] == "nosniff"
            assert not begun.done()
        assert begun.result(10).status == 200
    with Decider.open(tmp_path / "shop" / "routing.onebit") as decider:
        assert [event.key for event in decider.events() if event.key] == ["known", "begun"]
        assert decider.status().open == 2
        assert decider.classes == LIGHT["classes"]
        assert decider.verify()


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 10.0
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_look_at_a_decider_that_was_closed_says_that_the_service_stops(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        desk = served.service.workers.get("shop", "routing")
        desk.stop()
        desk.threads[0].join()
        for method, path in (("GET", f"{DESK}/status"), ("GET", f"{DESK}/log")):
            reply = served.ask(method, path)
            assert (reply.status, reply.json["error"]) == (503, "BusyError"), reply.json


def test_what_breaks_while_it_is_written_breaks_no_later_request(tmp_path: Path) -> None:
    class Broken:
        refusal = None

        @contextmanager
        def batch(self) -> Iterator[list[Any]]:
            yield []
            raise RuntimeError("a bug")

        def n_bytes(self) -> int:
            return 0

        def close(self) -> None:
            pass

    class Breaking(WorkerPool):
        def open(self, _title: str, _told: dict[str, Any]) -> Any:
            return Broken()

    async def ask() -> None:
        desk = DeciderWorker(Breaking(tmp_path), "shop/routing")
        desk.opened.wait()
        try:
            for _ in range(2):
                with pytest.raises(RuntimeError, match="a bug"):
                    await asyncio.wait_for(desk.submit(lambda _: 1, 0), 5.0)
        finally:
            desk.stop()
            desk.threads[0].join()

    asyncio.run(ask())


# Deciders are found and made without waiting for others.


MADE = {"classes": ["a", "b"], "learner": own_learner("UniformGuess")}


def test_a_file_that_is_in_no_namespace_is_named_in_the_journal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Decider.open(tmp_path / "routing.onebit", classes=["a", "b"], learner=own_learner("UniformGuess")).close()
    pool = WorkerPool(tmp_path)
    pool.open_all()
    pool.close()
    [said] = caplog.messages
    assert said.startswith("routing.onebit is not served")
    assert "shop/routing.onebit" in said


def test_one_that_is_being_opened_keeps_no_other_from_being_made(tmp_path: Path) -> None:
    is_free = threading.Event()

    class Slow(WorkerPool):
        def open(self, title: str, told: dict[str, Any]) -> Decider:
            assert title != "shop/slow" or is_free.wait(10)
            return super().open(title, told)

    WorkerPool(tmp_path).open("shop/slow", MADE).close()
    desks = Slow(tmp_path)
    desks.open_all()
    with ThreadPoolExecutor(2) as threads:
        try:
            again = threads.submit(desks.create, "shop", "slow", MADE)
            time.sleep(0.05)
            assert threads.submit(desks.create, "shop", "quick", MADE).result(5.0)
        finally:
            is_free.set()
        assert not again.result(5.0)
    desks.close()
    with pytest.raises(Problem, match="is stopping"):
        desks.create("shop", "late", MADE)
    assert sorted(path.stem for path in tmp_path.glob("shop/*.onebit")) == ["quick", "slow"]


class Elsewhere(WorkerPool):
    """The workers of a database that others may have made deciders in."""

    def __init__(self, *faults: Exception) -> None:
        super().__init__(Path())
        self.is_shared = True
        self.n_looks, self._faults = 0, list(faults)

    def stored(self) -> dict[str, str | None]:
        self.n_looks += 1
        if self._faults:
            raise self._faults.pop()
        return {}

    def open(self, title: str, told: dict[str, Any]) -> Decider:
        raise AssertionError("there is none")


@pytest.mark.parametrize("is_away", [False, True])
def test_many_who_ask_for_what_is_not_there_look_together(is_away: bool) -> None:
    desks = Elsewhere(*[UnreachableError("it is away")] * 9 * is_away)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(desks.find("shop", f"none-{i}") for i in range(50)), return_exceptions=True)

    assert {each.status for each in asyncio.run(ask())} == {503 if is_away else 404}
    assert desks.n_looks == 2, "one for the first, and one for all who came meanwhile"


def test_a_standby_goes_on_looking_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.workers._LOOK_SECONDS", 0.01)
    desks = Elsewhere(RuntimeError("can't start new thread"))
    desks.open_all()
    end = time.monotonic() + 5.0
    while desks.awaited and time.monotonic() < end:
        time.sleep(0.01)
    is_ready = not desks.awaited
    desks.close()
    assert is_ready
