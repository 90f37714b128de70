"""The playground's server, asked directly: what it answers, whom, and in which words."""

import asyncio
import json
import re
from typing import Any, NamedTuple

import pytest

from onebit.decider.client import LARGEST_BODY
from onebit.playground import server
from onebit.playground.server import Playground, _Sessions
from onebit.service.gate import _PAGE_PARTS, Problem


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(app: Playground, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
    """Ask an application as a server would, without one."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    sent = {"host": "127.0.0.1:8017", "content-length": str(len(content))}
    sent |= {"content-type": "application/json"} if method == "POST" else {}
    sent |= headers or {}
    plain, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": plain, "raw_path": plain.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8017),
    }  # fmt: skip
    messages: list[Any] = []
    waiting = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> Any:
        return waiting.pop() if waiting else await asyncio.Event().wait()  # nobody hangs up

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(app(scope, receive, send))
    said = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return Reply(messages[0]["status"], said, b"".join(message.get("body", b"") for message in messages[1:]))


@pytest.fixture(scope="module")
def app() -> Playground:
    return Playground()


def new_session(app: Playground, **changes: Any) -> Reply:
    return ask(app, "POST", "/api/sessions", {"stream": "drawn", "learners": ["chance"], "seed": 1, **changes})


def test_a_session_from_its_beginning_to_its_end(app: Playground) -> None:
    made = new_session(app)
    assert made.status == 201
    path = f"/api/sessions/{made.json['id']}"
    point = {"x": 0.5, "y": 0.5, "label": "blue"}
    assert ask(app, "POST", f"{path}/points", {"points": [point]}).json["stream"]["points"] == [[0.5, 0.5, 0]]
    assert ask(app, "GET", f"{path}/promises").json[0]["says"] == "nothing yet: one class only"
    reached = ask(app, "POST", f"{path}/advance", {"rounds": 1}).json["round"]  # loads compiled code, which takes time
    assert reached == 1
    while reached < 3:  # fewer rounds than wanted are played if time is up
        reached = ask(app, "POST", f"{path}/advance", {"rounds": 3 - reached}).json["round"]
    assert reached == 3
    assert len(ask(app, "GET", f"{path}/regions?learner=0&size=8").json["scores"]) == 4
    assert ask(app, "GET", f"{path}/opinions?learner=0&x=0.1&y=0").json["chances"] == [0.25] * 4
    assert ask(app, "DELETE", path).status == 204
    assert ask(app, "GET", path).status == 404


def test_an_oracle(app: Playground) -> None:
    made = ask(app, "POST", "/api/oracles", {"classes": ["a", "b"], "learner": "chance"})
    path = f"/api/oracles/{made.json['id']}"
    assert ask(app, "POST", f"{path}/answer", {"round": 1, "correct": True}).json["right"] == 1
    again = ask(app, "POST", f"{path}/answer", {"round": 1, "correct": True})
    assert again.status == 409
    assert ask(app, "GET", path).json["answered"] == 1


def test_an_asker(app: Playground) -> None:
    made = ask(app, "POST", "/api/askers", {"wrong_at_most": 0.02})
    path = f"/api/askers/{made.json['id']}"
    assert ask(app, "POST", f"{path}/label", {"round": 1, "label": "7"}).json["asked"] == 1
    assert ask(app, "POST", f"{path}/label", {"round": 1, "label": "7"}).status == 409
    assert ask(app, "POST", f"{path}/go-on", {}).json == ask(app, "GET", path).json
    assert ask(app, "POST", "/api/askers", {"wrong_at_most": 2}).status == 422


def test_the_page_and_all_that_it_names_are_there_and_nothing_else(app: Playground) -> None:
    page = ask(app, "GET", "/")
    assert page.headers["content-type"].startswith("text/html")
    named = ["/page/main.js", "/parts/base.css", "/parts/vendor/NOTICE"]
    while named:
        path = named.pop()
        found = ask(app, "GET", path)
        assert found.status == 200, path
        if path.endswith(".js") and "vendor" not in path:
            folder = path.rpartition("/")[0]
            texts = re.findall(r'from "(\S+)"', found.body.decode())
            named += [text if text.startswith("/") else f"{folder}/{text.removeprefix('./')}" for text in texts]
    for path in re.findall(r'(?:href|src)="(/\S+)"', page.body.decode()):
        assert ask(app, "GET", path).status == 200, path
    for path in ("/page/../server.py", "/page/%2e%2e/server.py", "/page/..%2fserver.py", "/page//etc/passwd", "/docs"):
        assert ask(app, "GET", path).status == 404, path


def test_no_page_asks_for_anything_from_elsewhere() -> None:
    for path in (*server._PAGE.iterdir(), *_PAGE_PARTS.iterdir()):
        if path.suffix in (".html", ".css", ".js"):
            text = path.read_text(encoding="utf-8")
            assert "//" not in text.replace("// ", "").replace("http://www.w3.org/2000/svg", ""), path.name
            assert "innerHTML" not in text, path.name


def test_every_answer_has_the_headers_that_keep_a_page_safe(app: Playground) -> None:
    for reply in (ask(app, "GET", "/"), ask(app, "GET", "/nowhere"), ask(app, "GET", "/", headers={"host": "evil"})):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "[::1].evil.example"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-length": str(LARGEST_BODY + 1)}, 413),
    ],
)
def test_strangers_are_not_let_in(app: Playground, headers: dict[str, str], status: int) -> None:
    body = {"stream": "wedges", "learners": ["chance"]}
    reply = ask(app, "POST", "/api/sessions", body, headers)
    assert reply.status == status
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == status


def test_this_machine_is_let_in_under_its_names(app: Playground) -> None:
    for host in ("localhost:8017", "127.0.0.1:1", "[::1]:8017"):
        assert ask(app, "GET", "/api/catalogue", headers={"host": host, "origin": f"http://{host}"}).status == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/sessions", b"{", 422),
        ("/api/sessions", b"[" * 100_000, 422),
        ("/api/sessions", b" " * (LARGEST_BODY + 1), 413),
        ("/api/sessions", {"stream": "wedges", "learners": ["nobody"]}, 422),
        ("/api/sessions", {"stream": "os:system", "learners": ["chance"]}, 422),
        ("/api/sessions", {"stream": "csv", "learners": ["chance"]}, 422),
        ("/api/sessions", {"stream": "wedges", "learners": ["chance"], "seed": -1}, 422),
        ("/api/sessions", {"stream": "wedges", "learners": ["chance"], "sneaked": 1}, 422),
        ("/api/sessions", {"stream": "csv", "learners": ["chance"], "table": {"name": "a.csv", "text": ""}}, 422),
        ("/api/sessions/none/advance", {"rounds": 1}, 404),
        ("/api/sessions/none/advance", {"rounds": 10**9}, 422),
        ("/api/sessions/none/advance", {"rounds": True}, 422),
        ("/api/sessions/none/points", b'{"points": [{"x": NaN, "y": 0, "label": "blue"}]}', 422),
        ("/api/oracles", {"classes": ["a", "a"]}, 422),
        ("/api/oracles/none/answer", {"round": 1, "correct": "yes"}, 422),
        ("/api/nowhere", {}, 404),
    ],
)
def test_nonsense_is_refused_in_words(app: Playground, path: str, body: Any, status: int) -> None:
    reply = ask(app, "POST", path, body)
    assert reply.status in (status, 400), reply.body  # 400: no JSON at all
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["detail"]
    assert b"Traceback" not in reply.body


def test_a_bug_is_not_told_to_the_page(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(self: object, name: str) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(_Sessions, "get", broken)
    reply = ask(Playground(), "GET", "/api/sessions/any")
    assert reply.status == 500
    assert b"secret" not in reply.body
    assert "content-security-policy" in reply.headers
    assert "secret" in caplog.text


def test_sessions_are_bounded_in_number_and_age_and_unguessable(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(server, "_MOST_SESSIONS", 3)
    monkeypatch.setattr(server, "_IDLE_SECONDS", 10.0)
    monkeypatch.setattr("onebit.playground.server.time.monotonic", lambda: now[0])
    sessions = _Sessions()
    ids = [sessions.add(number) for number in range(3)]
    assert sessions.get(ids[0]) == 0
    fourth = sessions.add(3)  # the second was left alone longest
    with pytest.raises(Problem, match="there is no such session"):
        sessions.get(ids[1])
    assert [sessions.get(name) for name in (ids[0], ids[2], fourth)] == [0, 2, 3]
    now[0] = 10.5
    for name in (ids[0], ids[2], fourth):
        with pytest.raises(Problem):
            sessions.get(name)
    assert all(len(name) >= 20 for name in ids)


def test_a_body_that_is_nested_just_too_deep_for_its_error_is_refused(app: Playground) -> None:
    for depth in range(900, 1000, 5):
        body = b'{"classes":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
        assert ask(app, "POST", "/api/oracles", body).status == 422


def test_half_a_surrogate_is_named(app: Playground) -> None:
    half = ask(app, "POST", "/api/oracles", b'{"classes":["a","\\ud800"]}')
    assert half.status == 422
    assert "half of a pair of surrogates" in half.json["detail"]
