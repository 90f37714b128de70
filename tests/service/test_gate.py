"""The service under attack: fuzzed requests made of its own OpenAPI page, and hostile bytes on a real connection.

Whatever is sent, there is no 500, every error is a problem, nothing of another namespace is told, and what the deciders
know afterwards is what a replay of their logs gives.
"""

import json
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

pytest.importorskip("starlette")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onebit.decider.client import LARGEST_BODY, Client
from onebit.decider.decider import Decider
from onebit.service.access import Tokens
from served import LIGHT, Served, serving_here

SECRET = "the-label-of-somebody-else"
ANSWERS = {200, 201, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429}


def is_told(status: int, headers: dict[str, str], body: bytes, folder: Path) -> None:
    """Fail unless an answer is one that may be given."""
    assert status in ANSWERS, (status, body)
    text = body.decode()
    assert SECRET not in text
    assert str(folder) not in text
    assert "Traceback" not in text
    kind = headers["content-type"].partition(";")[0]
    if status >= 400:
        assert kind == "application/problem+json", (status, body)
        assert json.loads(text)["status"] == status
    elif kind == "application/json":
        json.loads(text, parse_constant=pytest.fail)


# What is sent: every operation of the page, with its example made worse.

WORSE: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(1e308, -1e308, 5e-324, 2**53, -(2**63), 10**400, float("nan"), float("inf"), True, None),
        *("\ud800", "\0", "", "é" * 300, "a" * 5000, "../..", "<script>", "'--", [], {}, [[]]),
        *({"$date": "x"}, {"$set": [1]}, {"$mapping": 3}, {"$": None}),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORSE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3) | st.just("$date"), inner),
    max_leaves=8,
)
CELLS = st.floats(-1e6, 1e6) | st.integers(-9, 9) | st.text("ab é<>\0", max_size=9) | st.none() | st.booleans()
LABELS = st.sampled_from(["a", "b", "c", "d", 7, SECRET])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "record": st.dictionaries(st.sampled_from(["x", "y", "mail", "é", "a b"]), CELLS, max_size=4),
    "among": st.none() | st.lists(LABELS, min_size=1, max_size=3, unique=True),
    "key": st.none() | st.sampled_from([f"k{i}" for i in range(9)]),
    "id": st.integers(0, 10_000),  # stands for a ticket that there is
    "correct": st.booleans(),
    "label": LABELS,
    "propensity": st.none() | st.floats(0.1, 1),
    "classes": st.lists(LABELS, min_size=1, max_size=4, unique=True) | st.integers(1, 5),
    "learner": st.sampled_from(["BanditPerceptron", "UniformGuess"]),
    "deadline": st.none() | st.floats(1, 1e9),
    "exploration_floor": st.floats(0, 1),
}
NAMES = [
    "n1",
    "n2",
    "secret",
    "",
    " ",
    "..",
    "%2e%2e",
    "ROUTING",
    "é",
    "a\0",
    "a" * 65,
    "-",
    "a/b",
    "tokens.json",
    "\ufffd",
]
DEEP = [b"[" * 5000, b'{"a":' * 900 + b"1" + b"}" * 900, b"1e999"]


class Sent(NamedTuple):
    method: str
    path: str
    body: Any
    caller: str
    kind: str


def requests(paths: dict[str, Any]) -> st.SearchStrategy[Sent]:
    """Requests for every operation of an OpenAPI page: a good one, or one with a single thing made worse."""
    operations = [(method, path, said) for path, methods in paths.items() for method, said in methods.items()]
    about_deciders = [operation for operation in operations if "{name}" in operation[1]]

    @st.composite
    def drawn(draw: Any) -> Sent:
        def one_of(*values: Any) -> Any:
            return draw(st.sampled_from(values))

        worse = one_of("", "", "", "", "house", "space", "name", "method", "caller", "role", "kind", "query",
                       "list", "field", "cell", "body", "bytes")  # fmt: skip
        method, path, said = one_of(*(operations if worse == "house" else about_deciders))
        space = one_of("vault", "..", "SHOP", "no") if worse == "space" else "shop"
        path = path.replace("{namespace}", space).replace("{name}", one_of(*NAMES) if worse == "name" else "routing")
        if method == "get":
            names = ("after", "limit", "older_than", "id") if worse == "query" else ()
            asked = {name: draw(JSON) for name in names} or {"limit": 5}
            path += "?" + urlencode(asked, errors="replace")
        if worse == "method":
            method = one_of("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW")
        example = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example", {})
        item = st.fixed_dictionaries({name: FIELDS[name] for name in example})
        body: Any = draw(item)
        if worse == "list":
            body = [body, *draw(st.lists(item | JSON, max_size=3))]
        elif worse == "field":
            body |= {one_of(*example, "more"): draw(JSON)}
        elif worse == "cell":
            body |= {"record": {"x": draw(WORSE)}}
        elif worse == "body":
            body = draw(JSON)
        elif worse == "bytes":
            body = draw(st.binary(max_size=30) | st.sampled_from(DEEP))
        callers = {"caller": ["nobody", "broken"], "role": ["play", "read"]}.get(worse, ["admin"])
        kind = one_of("text/plain", "", "application/json; charset=x") if worse == "kind" else "application/json"
        return Sent(method.upper(), path, body, one_of(*callers), kind)

    return drawn()


def fuzz(folder: Path, n_requests: int) -> Counter[int]:
    """Send so many, and return how often each status came."""
    tokens = {role: Tokens(folder).add(role, [role], ["shop"]) for role in ("admin", "play", "read")}
    tokens |= {"nobody": "", "broken": "onebit_\xff"}
    owner = {"authorization": f"Bearer {Tokens(folder).add('owner', ['admin'], ['vault'])}"}
    told: Counter[int] = Counter()
    tickets: list[str] = []
    with Served(folder, rate=0.0, tokens_required=True) as served:
        served.ask("PUT", "/v1/shop/routing", LIGHT, authorization=f"Bearer {tokens['admin']}")
        served.ask("PUT", "/v1/vault/secret", LIGHT | {"classes": [SECRET]}, **owner)
        served.ask("POST", "/v1/vault/secret/guess", {"record": {"x": 1.0}}, **owner)
        before = served.ask("GET", "/v1/vault/secret/log", **owner).json

        def real(item: Any) -> Any:
            if isinstance(item, dict) and type(item.get("id")) is int and tickets:
                return item | {"id": tickets[item["id"] % len(tickets)]}
            return [real(each) for each in item] if isinstance(item, list) else item

        @settings(
            max_examples=n_requests, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(sent=requests(served.ask("GET", "/openapi.json").json["paths"]))
        def one(sent: Sent) -> None:
            token = f"Bearer {tokens[sent.caller]}"
            reply = served.ask(sent.method, sent.path, real(sent.body), authorization=token, content_type=sent.kind)
            told[reply.status] += 1
            if SECRET.encode() in reply.body:  # it may be a label here too, for whoever said so
                assert sent.path.startswith("/v1/shop/"), sent
                reply = reply._replace(body=reply.body.replace(SECRET.encode(), b"own"))
            is_told(reply.status, reply.headers, reply.body, folder)
            if reply.status == 200 and sent.path.endswith("/guess"):
                answers = reply.json if isinstance(reply.json, list) else [reply.json]
                tickets.extend(answer["id"] for answer in answers if "id" in answer)

        one()
        assert served.ask("GET", "/v1/vault/secret/log", **owner).json == before
        for _, _, desk in served.service.workers:
            assert desk.open_decider().verify(), desk.title
        assert served.service.workers.get("shop", "routing").open_decider().status().events > n_requests / 20
    for path in folder.rglob("*.onebit"):
        with Decider.open(path) as decider:
            assert decider.verify()
    assert {path.name for path in folder.iterdir()} <= {"shop", "vault", "tokens.json", "audit.jsonl"}
    assert {path.name for path in (folder / "vault").iterdir()} == {"secret.onebit", "secret.onebit.last"}
    return told


def test_fuzzed_requests(tmp_path: Path) -> None:
    told = fuzz(tmp_path, 400)
    assert told[200] > 100, told


@pytest.mark.slow
def test_ten_thousand_fuzzed_requests(tmp_path: Path) -> None:
    told = fuzz(tmp_path, 10_000)
    print(sorted(told.items()))
    assert told.total() >= 10_000
    assert told[200] > 3_000, told


# Hostile bytes.


def talk(url: str, *pieces: bytes, is_cut: bool = False) -> list[tuple[int, dict[str, str], bytes]]:
    """Send bytes, and return all answers until the connection ends."""
    address = urlsplit(url)
    received = b""
    with socket.create_connection((str(address.hostname), address.port or 0), timeout=10) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.02 if len(pieces) > 1 else 0.0)
            if is_cut:
                return []
            while data := connection.recv(65536):
                received += data
        except ConnectionError:  # it was closed while more was being sent
            pass
    answers = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        headers = dict(line.lower().split(": ", 1) for line in head.decode("latin-1").splitlines()[1:])
        length = int(headers.get("content-length", 0)) if status >= 200 else 0
        answers.append((status, headers, rest[:length]))
        received = rest[length:]
    return answers


class Attacked(NamedTuple):
    url: str
    token: str
    folder: Path

    def post(self, body: bytes, *more: str, length: Any = None, path: str = "/v1/shop/routing/guess") -> bytes:
        lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.token}"]
        lines += ["Content-Type: application/json", *more]
        lines += [] if length == "" else [f"Content-Length: {len(body) if length is None else length}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    def get(self, target: bytes, *more: bytes) -> bytes:
        lines = [b"GET " + target + b" HTTP/1.1", b"Host: x", b"Authorization: Bearer " + self.token.encode(), *more]
        return b"\r\n".join([*lines, b"Connection: close", b"", b""])


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("attacked")
    token = Tokens(folder).add("admin", ["admin"], ["shop"])
    with serving_here(folder, tokens_required=True) as url:
        with Client(url, token) as client:
            client.create("shop/routing", **LIGHT)
        yield Attacked(url, token, folder)
    with Decider.open(folder / "shop" / "routing.onebit") as desk:
        assert desk.verify()


GUESS = b'{"record":{"x":1}}'
CLOSE = "Connection: close"


def test_bytes_that_are_no_request(attacked: Attacked) -> None:
    both = [CLOSE, "Transfer-Encoding: chunked"]
    hostile: list[tuple[bytes, set[int]]] = [
        (b"\0\1\2 no http at all\r\n\r\n", {400}),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 401}),
        (b"GET /healthz\r\n\r\n", {200, 400}),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n", {400}),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {400, 401, 404}),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {400, 401}),
        (b"GET /v1/shop HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {401}),
        (b"GET /v1/shop HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000, {0, 400, 431}),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\nConnection: close\r\n\r\n", {0, 431}),
        (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {0, 400, 401, 431}),
        (attacked.get(b"/v1/\0"), {400}),
        (attacked.get(b"/v1/\xff\xfe"), {400}),
        (attacked.get(b"/v1/%00/x/status"), {422}),
        (attacked.get(b"/v1/%2e%2e/%2e%2e/status"), {422}),
        (attacked.get(b"/v1/shop%2frouting/status"), {200}),
        (attacked.get(b"/v1/shop/../shop/routing/status"), {404}),
        (attacked.get(b"/parts/../web.py"), {404}),
        (attacked.get(b"/parts/%2e%2e/web.py"), {404}),
        (attacked.get(b"/page/..%2f..%2f..%2ftokens.json"), {404}),
        (attacked.get(b"/desk//etc/passwd"), {404}),
        (attacked.get(b"/parts/%00"), {404}),
        (attacked.get(b"//v1"), {404}),
        (attacked.get(b"/v1/"), {404}),
        (attacked.get(b"/v1/vault/secret/status"), {403}),
        (attacked.get(b"/v1/shop/%ed%a0%80/status"), {422}),
        (attacked.get(b"http://elsewhere.example/v1"), {200, 404}),
        (attacked.get(b"/v1", b"Authorization: Bearer other"), {400}),
        (attacked.get(b"/healthz", b"Upgrade: websocket", b"Sec-WebSocket-Key: x"), {200}),
        (attacked.get(b"/v1/shop/routing/log?after=" + b"9" * 5000), {422}),
        (attacked.post(GUESS, CLOSE, "Content-Type: text/plain"), {400}),
        (attacked.post(GUESS, CLOSE, "Content-Length: 3"), {400}),
        (attacked.post(GUESS, CLOSE, length="-1"), {400}),
        (attacked.post(GUESS, CLOSE, length="18, 18"), {200, 400}),
        (attacked.post(GUESS, CLOSE, length=10**30), {400, 413}),
        (attacked.post(GUESS, CLOSE, length=LARGEST_BODY + 1), {413}),
        (attacked.post(b"12\r\n" + GUESS + b"\r\n0\r\n\r\n", *both, length=""), {200}),
        (attacked.post(b"12\r\n" + GUESS + b"\r\n0\r\n\r\n", *both, length=3), {200, 400}),
        (attacked.post(b"zz\r\n" + GUESS, *both, length=""), {400}),
        (attacked.post(b"", CLOSE), {422}),
        (attacked.post(GUESS, CLOSE, "Expect: 100-continue"), {200}),
        (attacked.post(b"[" * 100_000, CLOSE), {422}),
        (attacked.post(b'{"record":{"x":' + b"9" * 5000 + b"}}", CLOSE), {200, 422}),
        (attacked.post(b'{"record":{"x":1e999}}', CLOSE), {422}),
    ]  # fmt: skip
    for sent, expected in hostile:
        answers = [answer for answer in talk(attacked.url, sent) if answer[0] >= 200]
        if not answers and 0 in expected:  # it hung up on somebody who was still sending
            continue
        assert len(answers) == 1 or sent.startswith(b"PRI"), (sent[:200], answers)
        assert answers[0][0] in expected, (sent[:200], answers)
        if answers[0][0] != 431:
            is_told(*answers[0], attacked.folder)
        assert answers[0][1]["x-content-type-options"] == "nosniff"


def test_many_requests_in_one_packet(attacked: Attacked) -> None:
    told = talk(attacked.url, attacked.post(GUESS) * 5 + attacked.post(b"{") + attacked.post(GUESS, CLOSE))
    assert [status for status, _, _ in told] == [200] * 5 + [422, 200]
    ids = [json.loads(body)["id"] for status, _, body in told if status == 200]
    assert len(set(ids)) == 6
    for rest in (b"\0\0\0\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n"):
        for status, headers, body in talk(attacked.url, attacked.post(GUESS), rest):
            is_told(status, headers, body, attacked.folder)


def test_a_large_request_that_is_refused_early_is_read_to_its_end(attacked: Attacked) -> None:
    refused = attacked.post(b" " * 500_000).replace(b"Bearer", b"Basic")
    told = talk(attacked.url, refused + attacked.post(GUESS, CLOSE))
    assert [status for status, _, _ in told] == [401, 200]


def test_what_never_ends_is_let_go(attacked: Attacked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.gate._BODY_SECONDS", 0.2)
    monkeypatch.setattr("onebit.service.server._HEAD_SECONDS", 0.2)
    whole = attacked.post(GUESS)
    for sent in (b"", whole[:30], whole[: -len(GUESS)], whole[:-5]):
        ((status, headers, body),) = talk(attacked.url, sent)
        assert (status, headers["content-type"]) == (408, "application/problem+json"), (sent, status, body)
    endless = (b"100000\r\n" + b" " * 0x100000 + b"\r\n") * 4
    told = talk(attacked.url, attacked.post(b"", "Transfer-Encoding: chunked", length="") + endless)
    assert [status for status, _, _ in told] == [413]
    # Slow is fine, as long as all comes in time.
    pieces = re.findall(rb"(?s).{1,40}", attacked.post(GUESS, CLOSE))
    assert [status for status, _, _ in talk(attacked.url, *pieces)] == [200]


def test_half_a_request_does_nothing(attacked: Attacked) -> None:
    with Client(attacked.url, attacked.token) as client:
        before = client.decider("shop/routing").status()["guesses"]
        talk(attacked.url, attacked.post(GUESS, length=len(GUESS) + 10), is_cut=True)
        time.sleep(0.1)
        assert client.decider("shop/routing").status()["guesses"] == before
