"""What the desk's page is told, to whom, at what cost, and that its files are all there; without a browser."""

import json
import re
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urljoin

import numpy as np
import pytest

pytest.importorskip("starlette")


import onebit
from onebit.decider.decider import Decider, _kernel_weights
from onebit.service.access import Tokens
from onebit.service.app import _PAGE, _shown_record
from onebit.service.gate import _PAGE_PARTS
from served import Served

SCRIPT = "<img src=x onerror=alert(1)>"
LIGHT = {"classes": ["a", "b", SCRIPT], "learner": "BanditPerceptron"}
DESK = "/v1/shop/routing"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        yield served


def guess(served: Served, n: int = 1, **record: Any) -> list[dict[str, Any]]:
    return [
        served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0, **record}, "key": f"k{i}"}).json for i in range(n)
    ]


# The decider's side.


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Decider]:
    learner = onebit.UniformGuess()
    with Decider.open(tmp_path / "desk.onebit", classes=["a", "b"], learner=learner, durability="batch") as desk:
        yield desk


def test_the_course_follows_from_the_log(desk: Decider) -> None:
    tickets = desk.guess_many([{"x": 1.0}] * 30)
    assert [tuple(each)[1:] for each in desk.learning_curve()] == [(30, 0, 0, 0)]
    desk.tell_many((ticket, at % 3 > 0) for at, ticket in enumerate(tickets[:20]))
    told = desk.learning_curve()
    assert [each.answered for each in told] == [*range(1, 21), 20]
    assert told[-1][1:] == (30, 20, 7, 0)
    assert told == sorted(told)
    desk.correct_answer(tickets[0], True)
    desk.withdraw(tickets[3])
    assert desk.learning_curve()[-1][1:] == (30, 19, 5, 0), "what was corrected counts as it should have been"
    assert desk.verify()


def test_the_course_is_bounded_and_in_the_snapshot(desk: Decider) -> None:
    for _ in range(20):
        tickets = desk.guess_many([{"x": 1.0}] * 100)
        desk.tell_many((ticket, ticket.label == "a") for ticket in tickets)
    told = desk.learning_curve()
    assert 250 < len(told) <= 513
    steps = {after.answered - before.answered for before, after in pairwise(told[:-1])}
    assert steps == {4}
    state = desk._state
    again = desk._history.of_bytes(desk._history.to_bytes(state))
    assert (again.curve, again.stride) == (state.curve, state.stride)


def test_open_tickets_newest_first_and_in_pages(desk: Decider) -> None:
    ids = [desk.guess({"x": 1.0}, key=f"order-{i}").id for i in range(7)]
    desk.tell(ids[5], True)
    assert [ticket.id for ticket in desk.open_tickets(limit=3)] == [ids[6], ids[4], ids[3]]
    assert [ticket.id for ticket in desk.open_tickets(ids[5])] == ids[4::-1], "a page may begin at one that is closed"
    assert desk.open_tickets(ids[0]) == []
    with pytest.raises(ValueError, match="is no ticket's id"):
        desk.open_tickets("nonsense")
    with pytest.raises(ValueError, match="is no ticket's id"):
        desk.open_tickets(1)  # type: ignore[arg-type]
    assert [event.kind for event in desk.look_up(ids[5])] == ["guessed", "feedback"]
    assert [event.ticket for event in desk.look_up("order-5")] == [ids[5], ids[5]]
    assert desk.look_up("nobody's") == []


def test_weights_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _kernel_weights(onebit.UniformGuess()) == []
    assert _kernel_weights(onebit.BanditSVM()) == [], "nothing is known before the first round"
    # A bank without the minute of compiling it.
    memory = SimpleNamespace(trust=np.array([1.0, 3.0]))
    bank = (onebit.kernels.Linear(), onebit.kernels.Gaussian(0.5))
    for name, value in (("_started", True), ("_state", memory), ("bank_", bank)):
        monkeypatch.setattr(onebit.BanditSVM, name, value, raising=False)
    assert _kernel_weights(onebit.BanditSVM()) == [("Gaussian, width 0.5", 0.75), ("linear", 0.25)]


@pytest.mark.ci
def test_weights_of_a_real_bank(tmp_path: Path) -> None:
    with Decider.open(tmp_path / "desk.onebit", classes=["a", "b"], durability="batch") as desk:
        for i in range(20):
            desk.tell(desk.guess({"x": float(i % 2), "y": 1.0}), i % 3 > 0)
        weights = dict(desk.kernel_weights())
        gaussians = {f"Gaussian, width {width}" for width in ("0.25", "0.5", "1")}
        assert set(weights) == {"linear", "Laplace, sharpness 3", "Laplace, sharpness 12"} | gaussians
        assert sum(weights.values()) == pytest.approx(1.0)


# What the page is told.


def test_the_desk_of_a_decider(served: Served) -> None:
    empty = served.ask("GET", f"{DESK}/desk").json
    assert (empty["report"]["guesses"], empty["weights"], len(empty["course"])) == (0, [], 1)
    tickets = guess(served, 4, subject=SCRIPT)
    served.ask("POST", f"{DESK}/tell", [{"id": each["id"], "correct": False} for each in tickets[:2]])
    (listed,) = served.ask("GET", "/v1/overview").json["deciders"]
    assert listed["name"] == "shop/routing"
    assert listed["state"] == "ready"
    found = served.ask("GET", f"{DESK}/columns").json
    assert [(each["name"], each["kind"]) for each in found["columns"]] == [("x", "number"), ("subject", "category")]
    assert found["n_more"] == 0


def test_numbers_are_no_older_than_a_moment(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.app._FRESH_SECONDS", -1.0)
    for n in range(1, 4):
        (ticket, *_) = [served.ask("POST", f"{DESK}/guess", {"record": {"x": float(n)}}).json]
        served.ask("POST", f"{DESK}/tell", {"id": ticket["id"], "correct": n > 1})
        frame = served.ask("GET", f"{DESK}/desk").json
        assert frame["report"]["answered"] == frame["course"][-1][2] == n
        assert frame["status"]["n_classes"] == len(frame["report"]["by_class"]) == 3
        (listed,) = served.ask("GET", "/v1/overview").json["deciders"]
        assert listed["numbers"]["answered"] == n
        assert listed["numbers"]["mistakes"]["number"] == 1


def test_a_ticket_and_its_life(served: Served) -> None:
    (ticket, other) = guess(served, 2, subject=SCRIPT)
    name = ticket["id"]

    def look(name: str = name) -> Any:
        return served.ask("GET", f"{DESK}/ticket?id={name}").json

    assert [each["id"] for each in served.ask("GET", f"{DESK}/open").json["tickets"]] == [other["id"], name]
    page = served.ask("GET", f"{DESK}/open?limit=1").json
    assert page["has_more"]
    assert page["tickets"][0]["record"]["values"] == [["x", "1.0"], ["subject", SCRIPT]]
    rest = served.ask("GET", f"{DESK}/open?limit=1&older_than={other['id']}").json
    assert ([each["id"] for each in rest["tickets"]], rest["has_more"]) == ([name], False)
    assert look()["state"] == "open"
    assert look("k0") == look()
    for verb, said, state in (
        ("tell", {"correct": True}, "right"),
        ("correct", {"correct": False}, "wrong"),
        ("withdraw", {}, "withdrawn"),
    ):
        assert served.ask("POST", f"{DESK}/{verb}", {"id": name} | said).status == 200
        assert look()["state"] == state
    assert [each["kind"] for each in look()["history"]] == ["guessed", "feedback", "corrected", "corrected"]
    assert served.ask("GET", f"{DESK}/ticket?id=none").status == 404
    assert served.ask("GET", f"{DESK}/ticket").status == 404
    for query in ("limit=-1", "limit=1e9", "limit=51", "older_than=%00", "older_than=9" + "9" * 40):
        assert served.ask("GET", f"{DESK}/open?{query}").status == 422, query


def test_a_busy_decider_keeps_the_list_waiting_half_a_second(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.app._PATIENCE_SECONDS", 0.05)
    served.ask("PUT", "/v1/shop/busy", LIGHT)
    busy, is_free = served.service.workers.get("shop", "busy").open_decider(), threading.Event()
    is_held = threading.Event()

    def hold() -> None:
        with busy._lock:
            is_held.set()
            is_free.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait(20)
    try:
        for _ in range(3):
            states = {each["name"]: each["state"] for each in served.ask("GET", "/v1/overview").json["deciders"]}
            assert states == {"shop/busy": "busy", "shop/routing": "ready"}
    finally:
        is_free.set()
        holder.join()


def test_what_cannot_be_opened_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "broken.onebit").write_bytes(b"no database" * 100)
    with Served(tmp_path) as served:
        (listed,) = served.ask("GET", "/v1/overview").json["deciders"]
        assert listed["state"] == "fault"
        assert "cannot be used" in listed["says"]
        assert served.ask("GET", "/v1/shop/broken/desk").status == 503


def test_records_are_shown_as_texts_of_a_bounded_length() -> None:
    assert _shown_record([1, 2.5, True, None], 9, 9)["values"] == [["0", "1"], ["1", "2.5"], ["2", "true"], ["3", "—"]]
    record = {"subject": "lost", "sent": {"$date": "2026-11-16"}, "tags": ["a", "b"], "zip": None}
    shown = {"values": [["subject", "lost"], ["sent", "2026-11-16"], ["tags", "a, b"]], "n_more": 1}
    assert _shown_record(record, 3, 160) == shown
    odd = {"$mapping": [["$x", {"$set": ["a"]}], ["y", {"$float": "nan"}], ["z", {"deep": [1]}]]}
    assert _shown_record(odd, 9, 99)["values"] == [["$x", "a"], ["y", "nan"], ["z", '{"deep": [1]}']]
    cut = _shown_record({f"{i}" * 100: "x" * 10_000 for i in range(1_000)}, 12, 160)
    assert (len(cut["values"]), cut["n_more"]) == (12, 988)
    assert len(json.dumps(cut, ensure_ascii=False)) < 12 * 260
    assert _shown_record(None, 9, 9) == {"values": [], "n_more": 0}


# Who may look.


def test_who_may_look_and_answer(tmp_path: Path) -> None:
    who = {"player": ["play"], "reader": ["read"], "boss": ["admin"], "other": ["read"]}
    token = {
        name: Tokens(tmp_path).add(name, roles, ["else" if name == "other" else "shop"]) for name, roles in who.items()
    }
    with Served(tmp_path) as served:

        def ask(name: str, method: str, path: str, body: Any = None) -> Any:
            return served.ask(method, path, body, authorization=f"Bearer {token[name]}")

        assert ask("boss", "PUT", DESK, LIGHT).status == 201
        ticket = ask("boss", "POST", f"{DESK}/guess", {"record": {"x": 1.0}}).json["id"]
        for path in (f"{DESK}/desk", f"{DESK}/open", f"{DESK}/ticket?id={ticket}", f"{DESK}/columns"):
            assert [ask(name, "GET", path).status for name in who] == [403, 200, 200, 403], path
            assert served.ask("GET", path).status == 401
        answer = {"id": ticket, "correct": True}
        assert [ask(name, "POST", f"{DESK}/tell", answer).status for name in who] == [200, 403, 200, 403]
        refused = ask("reader", "POST", f"{DESK}/correct", answer).json["detail"]
        assert refused == "token 'reader' has the role read; this needs admin"
        assert ask("other", "GET", "/v1/overview").json == {"deciders": []}
        assert ask("player", "GET", "/v1/overview").status == 403
        assert ask("boss", "GET", "/v1/me").json["roles"] == ["play", "read", "admin"]
        assert ask("reader", "GET", "/v1/me").json["roles"] == ["read"]
        assert served.ask("GET", "/v1/me").status == 401
        # The pages themselves tell nothing, whether there is such a decider or not.
        pages = [served.ask("GET", path) for path in ("/", "/desk/shop/routing", "/desk/shop/nothing", "/api")]
        assert [page.status for page in pages] == [200] * 4
        assert pages[1].body == pages[2].body
        assert pages[0].body == pages[1].body.replace(b'="../../', b'="./')


def test_without_tokens_everybody_on_this_machine_may(served: Served) -> None:
    told = served.ask("GET", "/v1/me").json
    assert told["roles"] == ["play", "read", "admin"]
    assert not told["has_token"]


# The files.


@pytest.mark.parametrize("where", ["/", "/desk/shop/routing"])
def test_all_files_of_the_page_are_there_and_nothing_else(served: Served, where: str) -> None:
    """A browser finds them where a proxy keeps the service under a path of its own, too."""
    under = "http://proxy.example/tools/onebit"
    page = served.ask("GET", where).body.decode()
    named = [urljoin(under + where, name) for name in re.findall(r'(?:href|src)="([^"#]*)"', page)]
    assert named.count(f"{under}/") == 1, "the way home"
    seen = set[str]()
    while named:
        address = named.pop()
        path = address.removeprefix(under)
        assert path != address, f"{address} is not the service's"
        found = served.ask("GET", path)
        assert found.status == 200, path
        seen.add(path)
        if path.endswith(".js"):
            assert found.headers["content-type"] == "text/javascript; charset=utf-8"
            texts = re.findall(r'from "(\S+)"', found.body.decode()) if "vendor" not in path else []
            named += [urljoin(address, text) for text in texts]
    assert {path.name for path in _PAGE.iterdir()} - {"index.html"} == {
        path.removeprefix("/page/") for path in seen if path.startswith("/page/")
    }
    for path in ("/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd", "/parts/", "/page/none.js"):
        assert served.ask("GET", path).status == 404, path


def test_no_script_knows_where_the_service_is(served: Served) -> None:
    for file in _PAGE.glob("*.js"):
        assert not re.search(r"""(href: |request\(\w+, |fetch\(|from )["'`]/""", file.read_text(encoding="utf-8")), (
            file.name
        )
    api = served.ask("GET", "/openapi.json").json
    assert urljoin("http://proxy.example/tools/onebit/openapi.json", api["servers"][0]["url"]).endswith(
        "/tools/onebit/"
    )
    assert 'href="openapi.json"' in served.ask("GET", "/api").body.decode()


def test_nothing_runs_that_stands_in_the_page_and_nothing_comes_from_elsewhere(served: Served) -> None:
    for path in ("/", "/desk/shop/routing", "/page/main.js", "/parts/elements.js"):
        policy = served.ask("GET", path).headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
    assert "script-src" not in served.ask("GET", f"{DESK}/status").headers["content-security-policy"]
    for file in (*_PAGE.iterdir(), *_PAGE_PARTS.glob("*.*")):
        text = file.read_text(encoding="utf-8")
        assert "innerHTML" not in text, file.name
        assert "cookie" not in text.replace("never as a cookie", ""), file.name
        assert "//" not in text.replace("// ", "").replace("http://www.w3.org/2000/svg", ""), file.name
    html = (_PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", html)
