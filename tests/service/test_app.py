"""The service: what it answers, to whom, and that nothing that is sent to it breaks it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from onebit.decider.calls import own_learner
from onebit.decider.client import LARGEST_BODY, MOST_AT_ONCE
from onebit.decider.decider import Decider
from onebit.service.access import Tokens
from onebit.service.app import _ROUTES, _api_page, _document
from onebit.service.gate import _Allowance
from served import DESK, LIGHT, Served, is_problem


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service for tests that leave it as it was, or do not mind."""
    with Served(tmp_path_factory.mktemp("served")) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        yield served


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


def test_it_asks_and_is_told_labels(served: Served) -> None:
    path = "/v1/shop/asking"
    assert served.ask("PUT", path, LIGHT | {"wrong_at_most": 0.02}).status == 201
    tickets = [served.ask("POST", f"{path}/guess", {"record": {"x": float(i)}}).json for i in range(3)]
    assert [(each["ask"], each["confidence"]) for each in tickets] == [(True, None)] * 3
    assert sorted(tickets[0]["ranking"]) == LIGHT["classes"]
    queue = served.ask("GET", f"{path}/asked?limit=2&order=oldest").json
    assert ([each["id"] for each in queue["tickets"]], queue["has_more"]) == (
        [tickets[0]["id"], tickets[1]["id"]],
        True,
    )
    assert queue["tickets"][1]["record"] == {"values": [["x", "1.0"]], "n_more": 0}
    answer = {"id": tickets[0]["id"], "label": "b"}
    assert [served.ask("PUT", f"{path}/label", answer).json for _ in range(2)] == [{"news": True}, {"news": False}]
    assert is_problem(served.ask("PUT", f"{path}/label", answer | {"label": "c"}), 409, '"label": "c"')
    assert served.ask("POST", f"{path}/correct", answer | {"label": "c"}).json == {"done": True}
    assert is_problem(served.ask("PUT", f"{path}/label", {"id": tickets[1]["id"], "label": "z"}), 422, "'z'")
    assert is_problem(served.ask("GET", f"{path}/asked?order=best"), 422, "'newest', 'oldest', 'doubt'")
    assert len(served.ask("GET", f"{path}/asked").json["tickets"]) == 2
    assert served.ask("POST", f"{path}/tell", {"id": tickets[2]["id"], "correct": False}).json == {"news": True}
    events = served.ask("GET", f"{path}/log").json["events"]
    assert [each["body"].get("label") for each in events if each["kind"] in ("feedback", "corrected")] == [
        "b",
        "c",
        None,
    ]
    assert events[1]["body"]["ranking"] == tickets[0]["ranking"]
    assert served.ask("GET", f"{path}/limits").json == {"limits": []}
    assert served.ask("GET", f"{path}/confidence").json == {"groups": [], "risk": []}
    assert (
        served.ask("POST", f"{path}/settings", {"wrong_at_most": None, "ask_at_most": 0.1}).json["ask_at_most"] == 0.1
    )
    assert is_problem(served.ask("POST", f"{path}/settings", {"wrong_at_most": 2}), 422, "between 0 and 1")
    metrics = served.ask("GET", "/metrics").body.decode()
    assert 'onebit_asked_total{decider="asking",namespace="shop"} 3.0' in metrics
    assert 'onebit_suggestions_right_total{decider="asking",namespace="shop"} ' in metrics


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
        ({"classes": [1.5]}, "each a text of 1 to 200 letters or a whole number"),
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


def test_roles_and_namespaces(tmp_path: Path) -> None:
    names = {"player": ["play"], "reader": ["read"], "boss": ["admin"], "other": ["admin"]}
    token = {
        name: Tokens(tmp_path).add(name, roles, ["*"] if name == "boss" else ["shop" if name != "other" else "else"])
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
    token = Tokens(tmp_path).add("app", ["play"], ["*"])
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


def test_the_path_of_a_file_that_went_away_is_not_told(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        assert served.ask("PUT", "/v1/shop/desk", LIGHT).status == 201
        for path in (tmp_path / "shop").iterdir():
            path.unlink()
        reply = served.ask("PUT", "/v1/shop/desk", LIGHT)
        assert reply.status == 503
        assert str(tmp_path) not in reply.json["detail"]


def test_pages_of_other_sites_may_not_ask(shared: Served) -> None:
    assert is_problem(shared.ask("GET", "/v1", host="evil.example"), 421)
    for origin in ("http://evil.example", "http://[", "http://½", "null", ""):
        assert is_problem(shared.ask("GET", "/v1", origin=origin), 403)
    assert is_problem(shared.ask("GET", "/v1", sec_fetch_site="cross-site"), 403)
    for said in ({"x_forwarded_for": "192.0.2.7"}, {"x_forwarded_proto": "https"}, {"via": "1.1 tools.example"}):
        assert is_problem(shared.ask("GET", "/v1", **said), 403, "make a token first")
    assert is_problem(shared.ask("POST", f"{DESK}/guess", {}, content_type="text/plain"), 415, "got 'text/plain'")
    assert shared.ask("GET", "/v1", host="localhost:99", origin="http://localhost:99").status == 200


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

    monkeypatch.setattr("onebit.decider.decider.Decider.status", broken)
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
    allowance = _Allowance(2.0, clock=lambda: 0.0)
    assert [allowance.take("shop") for _ in range(3)] == [0.0, 0.0, 0.5]
    now = 0.0
    allowance = _Allowance(10.0, clock=lambda: now)
    assert allowance.take("a", 100) == 0.0, "more than a burst is possible, and paid for later"
    assert allowance.take("a") > 9.0
    assert allowance.take("b") == 0.0
    now = 20.0
    assert allowance.take("a") == 0.0


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
    assert len(paths) == 31


# The documentation.


def test_every_route_is_in_the_document_and_on_the_page() -> None:
    paths, page = _document()["paths"], _api_page()
    for route in _ROUTES:
        operation = paths[route.path.replace(":path", "")][route.method.lower()]
        assert operation["description"] == route.description
        assert ("requestBody" in operation) == (route.method in ("POST", "PUT"))
        assert f"{route.method} {route.path}" in page
    assert sum(map(len, paths.values())) == len(_ROUTES)


def test_references_lead_somewhere_and_operations_have_names_of_their_own() -> None:
    made = _document()
    schemas = made["components"]["schemas"]
    assert set(re.findall(r"#/components/schemas/(\w+)", json.dumps(made))) <= schemas.keys()
    assert schemas["Guess"]["required"] == ["record"]
    assert not schemas["Guess"]["additionalProperties"]
    assert schemas["TicketResult"]["required"][:4] == ["id", "label", "propensity", "time"]
    assert schemas["TicketResult"]["required"][4:] == ["confidence", "ask", "ranking"]
    names = [operation["operationId"] for methods in made["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)
