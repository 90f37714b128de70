"""The service: what it answers, to whom, and that nothing that is sent to it breaks it."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("fastapi")

from in_process import onebit
from onebit.cli.serve import PASSWORD_FILE_VARIABLE, _database
from onebit.decider.client import MOST_AT_ONCE, Client
from onebit.decider.decider import Decider
from onebit.decider.tickets import UnreachableError
from onebit.service.app import create_app
from onebit.service.bodies import own_learner
from onebit.service.limits import MOST_READERS, MOST_WAITING, Allowance
from onebit.service.metrics import _OfDeciders
from onebit.service.stores import Folder
from onebit.service.tokens import FILE, Tokens, add_token, read_tokens, remove_token
from onebit.service.web import LARGEST_BODY, Problem
from onebit.service.workers import DeciderWorker, Load, WorkerPool
from served import Reply, Served, running_here

LIGHT: dict[str, Any] = {"classes": ["a", "b", "c"], "learner": "BanditPerceptron"}
DESK = "/v1/shop/routing"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service for tests that leave it as it was, or do not mind."""
    with Served(tmp_path_factory.mktemp("served")) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        yield served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        yield served


def is_problem(reply: Reply, status: int, said: str = "") -> bool:
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json"), reply
    assert reply.json["status"] == status
    assert said in reply.json["detail"]
    assert "Traceback" not in reply.json["detail"]
    return True


# The verbs.


def test_a_round(served: Served) -> None:
    ticket = served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.5, "at": {"$date": "2026-11-16"}}, "key": "k"}).json
    assert ticket["label"] in LIGHT["classes"]
    again = served.ask("POST", f"{DESK}/guess", {"record": {"x": 9.0}, "key": "k"}).json
    assert again == ticket, "the same request is the same ticket"
    answer = {"id": ticket["id"], "correct": True}
    assert [served.ask("POST", f"{DESK}/tell", answer).json for _ in range(2)] == [{"news": True}, {"news": False}]
    assert is_problem(served.ask("POST", f"{DESK}/tell", answer | {"correct": False}), 409, "was told True before")
    advice = served.ask("POST", f"{DESK}/tell", answer | {"correct": False}).json["detail"]
    assert advice.endswith(f'say so: POST …/correct {{"id": "{ticket["id"]}", "correct": false}}')
    unknown = {"record": {"x": 1.0}, "label": "news", "correct": True}
    assert is_problem(served.ask("POST", f"{DESK}/shadow", unknown), 422, 'join: POST …/classes {"label": "news"}')
    assert served.ask("POST", f"{DESK}/correct", answer | {"correct": False}).json == {"done": True}
    assert served.ask("GET", f"{DESK}/status").json["wrong"] == 1
    assert served.ask("POST", f"{DESK}/withdraw", {"id": ticket["id"]}).json == {"done": True}
    status = served.ask("GET", f"{DESK}/status").json
    assert (status["guesses"], status["right"], status["wrong"], status["open"]) == (1, 0, 0, 0)
    assert "path" not in status
    shadow = {"record": {"x": 1.0}, "label": "b", "correct": True}
    assert served.ask("POST", f"{DESK}/shadow", shadow).json["label"] in LIGHT["classes"]
    assert served.ask("POST", f"{DESK}/classes", {"label": 7}).json == {"classes": ["a", "b", "c", 7]}
    assert served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}, "among": [7]}).json["label"] == 7


def test_an_unknown_ticket_is_404_and_one_that_stands_otherwise_409(served: Served) -> None:
    ids = [served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}}).json["id"] for _ in range(3)]
    assert served.ask("POST", f"{DESK}/tell", {"id": ids[0], "correct": True}).status == 200
    for verb, more in (("tell", {"correct": True}), ("correct", {"correct": True}), ("withdraw", {})):
        for name in ("2-0123456789abcdef", "none", ""):
            assert is_problem(served.ask("POST", f"{DESK}/{verb}", {"id": name} | more), 404, "is none of this")
        assert is_problem(served.ask("POST", f"{DESK}/{verb}", {"id": 7} | more), 422, "ticket must be")
    assert is_problem(served.ask("POST", f"{DESK}/tell", {"id": ids[0], "correct": False}), 409, "was told True")
    assert is_problem(served.ask("POST", f"{DESK}/correct", {"id": ids[1], "correct": True}), 409, "no answer yet")
    assert is_problem(served.ask("POST", f"{DESK}/withdraw", {"id": ids[1]}), 409, "no answer yet")
    served.ask("POST", f"{DESK}/settings", {"max_open": 1})
    assert is_problem(served.ask("POST", f"{DESK}/tell", {"id": ids[1], "correct": True}), 409, "without an answer")
    told = [{"id": name, "correct": False} for name in (ids[0], "none", ids[2])]
    *refused, news = served.ask("POST", f"{DESK}/tell", told).json
    assert [(each["status"], each["error"]) for each in refused] == [(409, "ValueError"), (404, "ValueError")]
    assert news == {"news": True}


def test_lists_answer_for_every_item(served: Served) -> None:
    items = [{"record": {"x": 1.0}}, {"record": 3}, {"record": {"x": 2.0}, "among": ["none"]}, {"record": {"x": 3.0}}]
    first, *refused, last = served.ask("POST", f"{DESK}/guess", items).json
    assert [each["status"] for each in refused] == [422, 422]
    told = [{"id": first["id"], "correct": True}, {"id": "none", "correct": True}, {"id": last["id"], "correct": "yes"}]
    news, *refused = served.ask("POST", f"{DESK}/tell", told).json
    assert news == {"news": True}
    assert [each["error"] for each in refused] == ["ValueError"] * 2
    assert served.ask("GET", f"{DESK}/status").json["guesses"] == 2
    for count in (0, MOST_AT_ONCE + 1):
        assert is_problem(served.ask("POST", f"{DESK}/guess", items[:1] * count), 422, "1 to 1000 items")


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


def test_the_log_is_paged(served: Served) -> None:
    served.ask("POST", f"{DESK}/guess", [{"record": {"x": 1.0}, "among": ["a", "b"]}] * 5)
    first = served.ask("GET", f"{DESK}/log?limit=4").json
    rest = served.ask("GET", f"{DESK}/log?after={first['next']}").json
    assert [event["seq"] for event in first["events"] + rest["events"]] == [1, 2, 3, 4, 5, 6]
    assert rest["events"][0]["body"]["among"] == ["a", "b"]
    assert rest["events"][0]["body"]["label"] in ("a", "b")
    assert served.ask("GET", f"{DESK}/log?after=6").json == {"events": [], "next": 6}
    for query in ("after=-1", "after=x", "limit=1001", "after=²", f"after={'9' * 400}"):
        assert is_problem(served.ask("GET", f"{DESK}/log?{query}"), 422, "must be a whole number")


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        served.ask("PUT", DESK, LIGHT)
        ticket = served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}, "key": "k"}).json
    (tmp_path / "shop" / "Strange Name.onebit").write_bytes(b"")
    (tmp_path / "shop" / "broken.onebit").write_bytes(b"no log at all, but long enough to look at" * 100)
    with Served(tmp_path) as served:
        assert served.ask("GET", "/v1").json == {
            "deciders": ["shop/broken", "shop/routing"],
            "open_here": ["shop/routing"],
        }
        assert served.ask("GET", "/readyz").json == {"ready": True, "deciders": 2, "open_here": 1}
        assert is_problem(served.ask("POST", "/v1/shop/broken/guess", {"record": {}}), 503, "cannot be used")
        assert served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}, "key": "k"}).json == ticket
        assert served.ask("POST", f"{DESK}/tell", {"id": ticket["id"], "correct": True}).json == {"news": True}


def test_what_cannot_be_written_is_said_and_may_be_tried_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("POST", f"{DESK}/guess", {"record": {"x": 1.0}, "key": "k"})
    with monkeypatch.context() as patched:
        patched.setattr("onebit.decider.sqlite._INSERT", "INSERT INTO nowhere VALUES ")
        reply = served.ask(*asked)
        assert is_problem(reply, 503, "nothing of this happened")
        assert reply.headers["retry-after"] == "1"
        assert "/" not in reply.json["detail"], "no paths"
    assert served.ask(*asked).status == 200
    assert served.ask("GET", f"{DESK}/status").json["guesses"] == 1


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
    n_slow = (os.cpu_count() or 1) // MOST_READERS + 2  # more readers than Python would have threads
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
    monkeypatch.setattr("onebit.service.workers.MOST_WAITING", 0)
    reply = served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}})
    assert is_problem(reply, 503, "in line")
    assert MOST_WAITING > 0


def test_a_line_that_is_too_large(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.workers.MOST_BYTES_WAITING", 100)
    small, large = {"record": {"x": 1.0}}, {"record": {"x": 1.0}, "key": "k" * 100}
    for _ in range(10):  # what is answered is in line no more
        assert served.ask("POST", f"{DESK}/guess", small).status == 200
        assert is_problem(served.ask("POST", f"{DESK}/guess", large), 503, "are in line; try again")


def test_a_decider_that_is_busy_takes_not_all_the_room_in_line(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.workers.MOST_BYTES_FOR_ONE", 100)
    small, large = {"record": {"x": 1.0}}, {"record": {"x": 1.0}, "key": "k" * 100}
    desk = served.service.workers.get("shop", "routing")
    for _ in range(5):
        assert served.ask("POST", f"{DESK}/guess", small).status == 200
        assert is_problem(served.ask("POST", f"{DESK}/guess", large), 503, "are in line for shop/routing; try again")
        assert desk._n_bytes == desk._load.n_bytes == 0


def test_metrics_do_not_wait_for_a_decider_that_is_busy(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.metrics._PATIENCE_SECONDS", 0.01)
    served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}})

    def scraped() -> dict[str, str]:
        lines = served.ask("GET", "/metrics").body.decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if "routing" in line)

    free = scraped()
    busy = [name for name in free if name.startswith("onebit_decider_busy")]
    assert [free[name] for name in busy] == ["0.0"]
    with served.service.workers.get("shop", "routing").open_decider()._lock:
        assert scraped() == free | {busy[0]: "1.0"}


def test_two_who_scrape_at_once_both_see_a_busy_decider() -> None:
    scraped: list[int] = []

    class Busy:
        """A desk, and its decider, which answers once; while the second scrape waits for it, a third comes."""

        is_ours = True

        def status_within(self, _seconds: float) -> Any:
            if len(scraped) == 1:
                scraped.append(0)
                scrape()
            return None if scraped else Mock()

    desk: Any = Busy()
    desk.decider, desks = desk, [("shop", "routing", desk)]
    collector = _OfDeciders(desks)  # type: ignore[arg-type]

    def scrape() -> None:
        scraped.append(sum(len(family.samples) for family in collector.collect()))

    for _ in range(3):
        scrape()
    first, _, *others = scraped
    assert others == [first] * 3


# Stopping.


def test_what_is_refused_when_the_service_stops_is_never_written(tmp_path: Path) -> None:
    """SIGTERM while a decider is busy: what it has begun is answered as it went, all else 504, and not done later."""
    app = create_app(tmp_path)
    with running_here(app, timeout_graceful_shutdown=0.2) as (url, server), ThreadPoolExecutor(8) as threads:
        with Client(url) as client:
            client.create("shop/routing", **LIGHT)
            known = client.decider("shop/routing").guess({"x": 1.0}, key="known")

        def ask(method: str, path: str, body: Any) -> Reply:
            connection = HTTPConnection(url.removeprefix("http://"), timeout=20)
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())

        desk = app.state.service.workers.get("shop", "routing")
        with desk.open_decider()._lock:  # it is busy
            begun = threads.submit(ask, "POST", f"{DESK}/guess", {"record": {"x": 1.0}, "key": "begun"})
            wait_until(lambda: desk._n_bytes > 0 and desk._line.empty())
            in_line = [
                threads.submit(ask, "POST", f"{DESK}/guess", {"record": {"x": 1.0}, "key": "in line"}),
                threads.submit(ask, "POST", f"{DESK}/tell", {"id": known.id, "correct": True}),
                threads.submit(ask, "POST", f"{DESK}/classes", {"label": "late"}),
            ]
            wait_until(lambda: desk._line.qsize() == 3)
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


# Making deciders.

MADE = {"classes": ["a", "b"], "learner": own_learner("UniformGuess")}


def test_one_that_is_being_opened_keeps_no_other_from_being_made(tmp_path: Path) -> None:
    is_free = threading.Event()

    def opener(path: Path, *given: Any, **told: Any) -> Decider:
        assert path.stem != "slow" or is_free.wait(10)
        return Decider.open(path, *given, **told)

    Folder(tmp_path).open("shop/slow", MADE).close()
    desks = WorkerPool(Folder(tmp_path, opener))
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


class Elsewhere:
    """A database that others may have made deciders in."""

    is_shared = True

    def __init__(self, *faults: Exception) -> None:
        self.n_looks, self._faults = 0, list(faults)

    def deciders(self) -> dict[str, str | None]:
        self.n_looks += 1
        if self._faults:
            raise self._faults.pop()
        return {}

    def open(self, title: str, told: dict[str, Any]) -> Decider:
        raise AssertionError("there is none")


@pytest.mark.parametrize("is_away", [False, True])
def test_many_who_ask_for_what_is_not_there_look_together(is_away: bool) -> None:
    store = Elsewhere(*[UnreachableError("it is away")] * 9 * is_away)
    desks = WorkerPool(store)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(desks.find("shop", f"none-{i}") for i in range(50)), return_exceptions=True)

    assert {each.status for each in asyncio.run(ask())} == {503 if is_away else 404}
    assert store.n_looks == 2, "one for the first, and one for all who came meanwhile"


def test_a_standby_goes_on_looking_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.workers.LOOK_SECONDS", 0.01)
    desks = WorkerPool(Elsewhere(RuntimeError("can't start new thread")))
    desks.open_all()
    end = time.monotonic() + 5.0
    while desks.awaited and time.monotonic() < end:
        time.sleep(0.01)
    is_ready = not desks.awaited
    desks.close()
    assert is_ready


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, "classes is missing"),
        ({"classes": None}, "classes must be a count or a list"),
        (LIGHT | {"classes": None}, "classes must be a count or a list"),
        ({"classes": True}, "classes must be a count or a list"),
        ({"classes": 1.5}, "classes must be a count or a list"),
        ({"classes": {"a": 1}}, "classes must be a count or a list"),
        ({"classes": []}, "at least one label"),
        ({"classes": 0}, "classes must be"),
        ({"classes": "abc"}, "classes must be a count or a list"),
        ({"classes": ["a", "a"]}, "a"),
        ({"classes": [1.5]}, "a label must be"),
        ({"classes": 10**9}, "100000 classes"),
        (LIGHT | {"learner": "os:system"}, "onebit's own"),
        (LIGHT | {"learner": "Banditron:kernel=os:system"}, "kernel must be one of"),
        (LIGHT | {"learner": "Banditron:kernel = os.path:join"}, "kernel must be one of"),
        (LIGHT | {"learner": "Banditron:exploration=7"}, "exploration"),
        (LIGHT | {"learner": "FullInformationRidge"}, "must be told the right label"),
        (LIGHT | {"learner": 3}, "onebit's own"),
        (LIGHT | {"deadline": -1}, "deadline"),
        (LIGHT | {"silence": "maybe"}, "silence"),
        (LIGHT | {"kinds": {"x": "colour"}}, "x"),
        (LIGHT | {"kinds": [1]}, "kinds must be an object"),
        (LIGHT | {"seed": "x"}, "seed"),
        (LIGHT | {"durability": "none"}, "there is no field 'durability'"),
    ],
)
def test_what_no_decider_can_be_made_of(shared: Served, told: Any, said: str) -> None:
    assert is_problem(shared.ask("PUT", "/v1/shop/other", told), 422, said)
    assert is_problem(shared.ask("PUT", "/v1/elsewhere/other", told), 422, said)
    assert not (shared.folder / "elsewhere").exists()
    assert shared.ask("GET", "/v1").json["deciders"] == ["shop/routing"]
    assert [path.name for path in shared.folder.glob("shop/*.onebit")] == ["routing.onebit"]


def test_the_same_decider_again(shared: Served) -> None:
    assert shared.ask("PUT", DESK, LIGHT).status == 200
    assert is_problem(shared.ask("PUT", DESK, {"classes": None}), 422, "classes must be a count")
    assert is_problem(shared.ask("PUT", DESK, LIGHT | {"learner": "Banditron"}), 409, "was begun with learner")
    assert is_problem(shared.ask("PUT", DESK, LIGHT | {"classes": ["z"]}), 409, "was begun with classes")
    assert own_learner("Banditron:exploration=0.1", 3).get_params()["seed"] == 3


@pytest.mark.parametrize("name", ["..", "%2e%2e", "A", "a.b", "-a", "a" * 65, "é", "a%00", "~", ".hidden", "a\n"])
def test_names_that_would_be_paths(shared: Served, name: str) -> None:
    before = sorted(shared.folder.rglob("*"))
    for path in (f"/v1/{name}/x", f"/v1/shop/{name}"):
        assert is_problem(shared.ask("PUT", path, LIGHT), 422, "small letters")
    assert is_problem(shared.ask("PUT", "/v1/shop/../x", LIGHT), 404)
    assert sorted(shared.folder.rglob("*")) == before


# Who may ask.


def test_roles_and_namespaces(tmp_path: Path) -> None:
    names = {"player": ["play"], "reader": ["read"], "boss": ["admin"], "other": ["admin"]}
    token = {
        name: add_token(tmp_path, name, roles, ["*"] if name == "boss" else ["shop" if name != "other" else "else"])
        for name, roles in names.items()
    }
    with Served(tmp_path) as served:

        def ask(name: str, method: str, path: str, body: Any = None) -> int:
            reply = served.ask(method, path, body, authorization=f"Bearer {token[name]}")
            assert reply.status < 400 or is_problem(reply, reply.status)
            return reply.status

        record = {"record": {"x": 1.0}}
        assert ask("player", "PUT", DESK, LIGHT) == 403
        assert ask("boss", "PUT", DESK, LIGHT) == 201
        assert [ask(name, "POST", f"{DESK}/guess", record) for name in names] == [200, 403, 200, 403]
        assert [ask(name, "GET", f"{DESK}/log") for name in names] == [403, 200, 200, 403]
        assert [ask(name, "GET", f"{DESK}/report") for name in names] == [403, 200, 200, 403]
        assert [ask(name, "POST", f"{DESK}/classes", {"label": name}) for name in names] == [403, 403, 200, 403]
        assert [ask(name, "GET", "/metrics") for name in names] == [403, 403, 200, 403]
        # Whether another's decider is there cannot be told from the answer.
        there, not_there = (
            served.ask("GET", f"/v1/shop/{name}/status", authorization=f"Bearer {token['other']}")
            for name in ("routing", "nothing")
        )
        assert there.body == not_there.body
        listed = served.ask("GET", "/v1", authorization=f"Bearer {token['other']}")
        assert listed.json["deciders"] == []


def test_without_a_token(tmp_path: Path) -> None:
    token = add_token(tmp_path, "app", ["play"], ["*"])
    with Served(tmp_path, tokens_required=True) as served:
        for authorization in (
            "",
            "Bearer",
            "Bearer ",
            f"Basic {token}",
            f"Bearer {token}x",
            f"Bearer {token[:-1]}",
            "Bearer \xff",
        ):
            reply = served.ask("POST", f"{DESK}/guess", {"record": {}}, authorization=authorization)
            assert is_problem(reply, 401, "token")
            assert reply.headers["www-authenticate"] == "Bearer"
        for path in ("/healthz", "/readyz", "/", "/openapi.json"):
            assert served.ask("GET", path).status == 200
        assert is_problem(served.ask("GET", "/metrics"), 401)
        for _ in range(30):
            reply = served.ask("GET", "/v1")
        assert is_problem(reply, 429), "whoever tries tokens out is slowed down"


def test_tokens_come_and_go_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.tokens._LOOK_AGAIN_SECONDS", -1.0)
    tokens = Tokens(tmp_path, required=False)
    assert tokens.caller(None) is not None
    token = add_token(tmp_path, "app", ["play"], ["shop"])
    assert tokens.caller(None) is None
    caller = tokens.caller(f"bearer {token}")
    assert caller is not None
    assert (caller.name, caller.has_role("play"), caller.has_role("read")) == ("app", True, False)
    assert token not in (tmp_path / FILE).read_text(encoding="utf-8")
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    remove_token(tmp_path, "app")
    assert tokens.caller(f"bearer {token}") is None
    assert tokens.caller(None) is None, "it stays closed when the last one is gone"
    (tmp_path / FILE).write_text("[{}]", encoding="utf-8")
    assert Tokens(tmp_path, required=False).caller(None) is None, "a broken file lets nobody in"


def test_tokens_that_could_not_be_read_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.tokens._LOOK_AGAIN_SECONDS", -1.0)
    token = add_token(tmp_path, "app", ["play"], ["shop"])

    def refuse(_folder: Path) -> Any:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr("onebit.service.tokens.read_tokens", refuse)
        tokens = Tokens(tmp_path, required=False)
        assert tokens.caller(f"bearer {token}") is None
    assert tokens.caller(f"bearer {token}") is not None, "whose rights changed, and nothing else"


def test_a_file_of_tokens_means_that_tokens_are_required(tmp_path: Path) -> None:
    add_token(tmp_path, "app", ["admin"], ["*"])
    assert remove_token(tmp_path, "app") == 0
    assert Tokens(tmp_path, required=False).caller(None) is None, "it is empty"
    with Served(tmp_path) as served:
        assert is_problem(served.ask("PUT", DESK, LIGHT), 401)
        token = add_token(tmp_path, "new", ["admin"], ["*"])
        served.service.tokens._looked = 0.0
        assert served.ask("PUT", DESK, LIGHT, authorization=f"Bearer {token}").status == 201
        (tmp_path / FILE).unlink()
        served.service.tokens._looked = 0.0
        assert is_problem(served.ask("GET", "/v1"), 401)
    with Served(tmp_path) as served:
        assert served.ask("GET", "/v1").status == 200, "who deletes the file means it"


def test_a_file_of_tokens_that_cannot_be_looked_at_lets_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> Any:
        raise PermissionError

    monkeypatch.setattr(Path, "stat", refuse)
    assert Tokens(tmp_path, required=False).caller(None) is None


def test_tokens_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", "d", "0d", "-1d", "1y", "1.5d", "999999w", "2020-01-01", "tomorrow", "٣d"):
        with pytest.raises(ValueError, match="expires must be"):
            add_token(tmp_path, "app", ["play"], ["*"], text)
    assert not (tmp_path / FILE).exists()
    token = {
        name: f"Bearer {add_token(tmp_path, name, ['admin'], ['*'], ends)}"
        for name, ends in {"short": "30m", "long": "2999-01-01T12:00:00+02:00", "endless": None}.items()
    }
    with Served(tmp_path) as served:
        assert [served.ask("GET", "/v1", authorization=each).status for each in token.values()] == [200] * 3
        now = time.time() + 1801
        monkeypatch.setattr("onebit.service.tokens.time.time", lambda: now)
        assert [served.ask("GET", "/v1", authorization=each).status for each in token.values()] == [401, 200, 200]
        refused = served.ask("POST", f"{DESK}/guess", {"record": {}}, authorization=token["short"])
        assert is_problem(refused, 401, "token 'short' expired at 20")
        assert served.ask("GET", "/healthz", authorization=token["short"]).status == 200


def test_a_token_from_before_tokens_expired_still_works(tmp_path: Path) -> None:
    token = add_token(tmp_path, "app", ["play"], ["*"])
    (known,) = json.loads((tmp_path / FILE).read_bytes())
    del known["expires"]
    (tmp_path / FILE).write_text(json.dumps([known]), encoding="utf-8")
    caller = Tokens(tmp_path, required=False).caller(f"Bearer {token}")
    assert caller is not None
    assert not caller.is_expired
    for ends in ("soon", "2999-01-01", 7):
        (tmp_path / FILE).write_text(json.dumps([known | {"expires": ends}]), encoding="utf-8")
        assert Tokens(tmp_path, required=False).caller(f"Bearer {token}") is None, "a broken file lets nobody in"


CHANGE_AT_ONCE = """
import os, sys
from pathlib import Path
from onebit.service.tokens import add_token, remove_token

folder, may_begin = Path(sys.argv[1]), os.pipe()
for child in "abcd":
    if os.fork() == 0:
        os.close(may_begin[1])
        os.read(may_begin[0], 1)
        for turn in range(8):
            add_token(folder, f"{child}{turn}", ["play"], ["*"])
            if turn % 2:
                remove_token(folder, f"{child}{turn}")
        os._exit(0)
os.close(may_begin[1])
print([os.waitstatus_to_exitcode(os.wait()[1]) for _ in "abcd"])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_tokens_that_are_changed_at_once_are_all_kept(tmp_path: Path) -> None:
    folder = tmp_path / "decisions"
    done = subprocess.run([sys.executable, "-c", CHANGE_AT_ONCE, str(folder)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[0, 0, 0, 0]\n", "")
    assert sorted(each["name"] for each in read_tokens(folder)) == [
        f"{name}{turn}" for name in "abcd" for turn in (0, 2, 4, 6)
    ]
    assert [path.name for path in folder.iterdir()] == [FILE], "the lock is gone"


def test_a_file_of_tokens_that_is_a_link_to_nothing_lets_nobody_in(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "served", tmp_path / "elsewhere"
    token = add_token(elsewhere, "app", ["read"], ["*"])
    folder.mkdir()
    (folder / FILE).symlink_to(elsewhere / "later" / FILE)  # of a disk that is not there yet
    tokens = Tokens(folder, required=False)
    assert tokens.are_required
    assert tokens.caller(f"Bearer {token}") is None
    (elsewhere / "later").mkdir()
    (elsewhere / FILE).rename(elsewhere / "later" / FILE)
    tokens._looked = 0.0
    assert tokens.caller(f"Bearer {token}") is not None


def test_a_look_at_a_decider_that_was_closed_says_that_the_service_stops(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        desk = served.service.workers.get("shop", "routing")
        desk.stop()
        desk.join()
        for method, path in (("GET", f"{DESK}/status"), ("GET", f"{DESK}/log")):
            reply = served.ask(method, path)
            assert (reply.status, reply.json["error"]) == (503, "BusyError"), reply.json


def test_the_path_of_a_file_that_went_away_is_not_told(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        assert served.ask("PUT", "/v1/shop/desk", LIGHT).status == 201
        for path in (tmp_path / "shop").iterdir():
            path.unlink()
        reply = served.ask("PUT", "/v1/shop/desk", LIGHT)
        assert reply.status == 503
        assert str(tmp_path) not in reply.json["detail"]


def test_removing_a_token_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no token 'app'; there are none"):
        remove_token(tmp_path / "decisions", "app")
    assert list(tmp_path.iterdir()) == []


def test_pages_of_other_sites_may_not_ask(shared: Served) -> None:
    assert is_problem(shared.ask("GET", "/v1", host="evil.example"), 421)
    for origin in ("http://evil.example", "http://[", "http://½", "null", ""):
        assert is_problem(shared.ask("GET", "/v1", origin=origin), 403)
    assert is_problem(shared.ask("GET", "/v1", sec_fetch_site="cross-site"), 403)
    for said in ({"x_forwarded_for": "192.0.2.7"}, {"x_forwarded_proto": "https"}, {"via": "1.1 tools.example"}):
        assert is_problem(shared.ask("GET", "/v1", **said), 403, "make a token first")
    assert is_problem(shared.ask("POST", f"{DESK}/guess", {}, content_type="text/plain"), 415, "got 'text/plain'")
    assert shared.ask("GET", "/v1", host="localhost:99", origin="http://localhost:99").status == 200


# What is sent.


def test_oversized_deep_and_broken(shared: Served) -> None:
    path = f"{DESK}/guess"
    assert is_problem(shared.ask("POST", path, b" " * (LARGEST_BODY + 1)), 413)
    assert is_problem(shared.ask("POST", path, b" " * (LARGEST_BODY + 1), content_length="5"), 413)
    assert is_problem(shared.ask("POST", path, b"{}", content_length="x"), 413)
    for body in (b"", b"{", b"\xff\xfe", b"NaN", b'{"record":{"x":NaN}}', b'"\\ud800"', b'{"record":{"\\uD800":1}}'):
        assert is_problem(shared.ask("POST", path, body), 422)
    for body in (b"\xff", b'{"record":{"x":"\xff"}}', b'{"\xed\xa0\x80":1}'):
        assert is_problem(shared.ask("POST", path, body), 422, "must be JSON in UTF-8")
    for depth in (30, 300, 900, 100_000):
        for nested in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
            for body in (nested, b'{"record":' + nested + b"}", b'{"record":{"x":1},"among":' + nested + b"}"):
                assert shared.ask("POST", path, body).status in (200, 422)
            assert is_problem(shared.ask("POST", f"{DESK}/tell", b'{"id":"x","correct":' + nested + b"}"), 422)


def test_it_still_works(shared: Served) -> None:
    """After all that was sent by the tests before."""
    desk = shared.service.workers.get("shop", "routing").open_decider()
    assert desk.verify()


def test_addresses_that_are_none(shared: Served) -> None:
    assert is_problem(shared.ask("GET", "/nowhere"), 404)
    assert is_problem(shared.ask("GET", "/v1/shop/none/status"), 404, "there is no decider shop/none")
    reply = shared.ask("DELETE", "/v1")
    assert is_problem(reply, 405)
    assert reply.headers["allow"] == "GET"


def test_a_bug_is_not_told(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_desk: Decider) -> Any:
        raise KeyError("a secret of the house")

    monkeypatch.setattr("onebit.service.bodies.status_call", broken)
    reply = shared.ask("GET", f"{DESK}/status")
    assert is_problem(reply, 500, "went wrong inside")
    assert b"secret" not in reply.body


def test_no_caller_asks_too_much(tmp_path: Path) -> None:
    with Served(tmp_path, rate=5.0) as served:
        served.ask("PUT", DESK, LIGHT)
        statuses = [served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}}).status for _ in range(8)]
        assert statuses[0] == 200
        assert 429 in statuses
        reply = served.ask("POST", f"{DESK}/guess", [{"record": {"x": 1.0}}] * 100)
        assert is_problem(reply, 429)
        assert int(reply.headers["retry-after"]) >= 1
    now = 0.0
    allowance = Allowance(10.0, clock=lambda: now)
    assert allowance.take("a", 100) == 0.0, "more than a burst is possible, and paid for later"
    assert allowance.take("a") > 9.0
    assert allowance.take("b") == 0.0
    now = 20.0
    assert allowance.take("a") == 0.0


# What the operator sees.


def test_metrics_and_the_page(shared: Served) -> None:
    shared.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}})
    text = shared.ask("GET", "/metrics").body.decode()
    assert 'onebit_requests_total{status="200",verb="guess"}' in text
    assert 'onebit_guesses_total{decider="routing",namespace="shop"}' in text
    page = shared.ask("GET", "/api")
    assert b"/v1/{namespace}/{name}/guess" in page.body
    assert b"http" not in page.body, "nothing is loaded from anywhere"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    paths = shared.ask("GET", "/openapi.json").json["paths"]
    assert len(paths) == 26


def test_commands(tmp_path: Path) -> None:
    folder = str(tmp_path / "served")
    refused = onebit("serve", folder, "--host", "0.0.0.0")
    assert refused.returncode == 1
    assert "can be reached from other machines" in refused.stderr
    made = onebit("tokens", "add", folder, "app", "--role", "play", "--role", "read", "--namespace", "shop")
    assert made.stdout.startswith("onebit_")
    assert [each["roles"] for each in read_tokens(Path(folder))] == [["play", "read"]]
    listed = onebit("tokens", "list", folder).stdout
    assert "app" in listed
    assert made.stdout.strip() not in listed
    assert onebit("tokens", "add", folder, "app", "--role", "play").returncode == 1
    assert "role must be one of" in onebit("tokens", "add", folder, "b", "--role", "king").stderr
    assert "namespace must be" in onebit("tokens", "add", folder, "b", "--role", "play", "--namespace", "../x").stderr
    assert onebit("tokens", "add", folder, "b", "--role", "play", "--expires", "90d").returncode == 0
    assert "expires must be" in onebit("tokens", "add", folder, "c", "--role", "play", "--expires", "never").stderr
    listed = onebit("tokens", "list", folder).stdout
    assert "never" in listed
    removed = [onebit("tokens", "remove", folder, name) for name in ("app", "b")]
    assert [each.returncode for each in removed] == [0, 0]
    assert ["last token" in each.stderr for each in removed] == [False, True]
    assert "there is no token 'app'" in onebit("tokens", "remove", folder, "app").stderr


def test_the_password_of_a_database_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, url = tmp_path / "password", "postgresql://onebit@database/onebit"
    monkeypatch.setenv("PGPASSWORD", "another")
    monkeypatch.setenv(PASSWORD_FILE_VARIABLE, str(file))
    for content, said in (
        (None, "cannot be read .No such file"),
        (b"", "must have one line"),
        (b"hunter2\nmore\n", "must have one line"),
        (b"hunter2\xff", "it is no text"),
    ):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ValueError, match=said) as refused:
            _database(url)
        assert "hunter2" not in str(refused.value)
    file.write_bytes(b"hunter2\n")
    assert _database(None) is None
    assert os.environ["PGPASSWORD"] == "another", "there is no database"
    assert _database(url) == url
    assert os.environ["PGPASSWORD"] == "hunter2"


def test_what_breaks_while_it_is_written_breaks_no_later_request() -> None:
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

    async def ask() -> None:
        desk = DeciderWorker("shop/routing", Broken, Load())  # type: ignore[arg-type]
        desk.opened.wait()
        try:
            for _ in range(2):
                with pytest.raises(RuntimeError, match="a bug"):
                    await asyncio.wait_for(desk.submit(lambda _: 1, 0), 5.0)
        finally:
            desk.stop()
            desk.join()

    asyncio.run(ask())
