"""Deciders for AI agents: the tools over MCP, and a process that is killed between two of them."""

import asyncio
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import onebit
from onebit.decider.agents import _TOOLS, _answer, _create_server, _error_text, _schema_of, serve_stdio
from onebit.decider.calls import Verb
from onebit.decider.client import LARGEST_BODY, RemoteDecider
from onebit.decider.decider import Decider
from onebit.decider.requests import checked, request_of
from onebit.service.access import Tokens
from served import serving_here

mcp = pytest.importorskip("mcp")

LABELS = ["small-model", "large-model", "search"]
RECORD = {"task": "sum up a contract", "pages": 12}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Decider]:
    with Decider.open(tmp_path / "routing.onebit", LABELS, onebit.BanditPerceptron()) as desk:
        yield desk


def talk(desk: Decider | RemoteDecider, conversation: Callable[[Any], Awaitable[Any]], mode: str = "auto") -> Any:
    """Let the SDK's own client talk to a server, without a process."""

    async def session() -> Any:
        async with mcp.Client(_create_server(desk, "which model"), mode=mode) as client:
            return await conversation(client)

    return asyncio.run(session())


async def said(client: Any, name: str, **arguments: Any) -> Any:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client: Any, name: str, arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error, result
    return str(result.content[0].text)


async def every_verb(client: Any) -> None:
    ticket = await said(client, "guess", record=RECORD, key="t-1")
    assert ticket["label"] in LABELS
    assert await said(client, "guess", record=RECORD, key="t-1") == ticket
    answer = {"id": ticket["id"], "correct": True}
    assert [await said(client, "tell", **answer) for _ in range(2)] == [{"news": True}, {"news": False}]
    assert await said(client, "correct", id=ticket["id"], correct=False) == {"done": True}
    assert "was told False before" in await refused(client, "tell", answer)
    assert await said(client, "withdraw", id=ticket["id"]) == {"done": True}
    shadows = [await said(client, "shadow", record=RECORD, label="search", correct=True, key="t-2") for _ in range(2)]
    assert shadows[0] == shadows[1]
    assert await said(client, "add_class", label="calculator") == {"classes": [*LABELS, "calculator"]}
    only = await said(client, "guess", record=RECORD, among=["calculator"])
    assert only["label"] == "calculator"
    status = await said(client, "status")
    assert (status["guesses"], status["open"], status["watched"]) == (2, 1, 1)
    assert "path" not in status
    assert (await said(client, "report"))["guesses"] == 2


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_verb(desk: Decider, mode: str) -> None:
    talk(desk, every_verb, mode)
    assert desk.verify()


def test_every_verb_of_a_service(tmp_path: Path) -> None:
    tokens = {role: Tokens(tmp_path).add(role, [role], ["shop"]) for role in ("admin", "play")}
    with serving_here(tmp_path) as url:
        with onebit.Client(url, tokens["admin"]) as client:
            talk(client.create("shop/models", LABELS, "BanditPerceptron"), every_verb)
        with onebit.Client(url, tokens["play"]) as client:

            async def conversation(session: Any) -> str:
                await said(session, "guess", record=RECORD)
                return await refused(session, "add_class", {"label": "x"})

            assert "this needs" in talk(client.decider("shop/models"), conversation)
    with onebit.Client(url, retries=0) as client:

        async def gone(session: Any) -> str:
            return await refused(session, "status", {})

        assert "cannot be reached" in talk(client.decider("shop/models"), gone)


def test_tools_say_how_they_are_used(desk: Decider) -> None:
    async def conversation(client: Any) -> Any:
        for tool in (await client.list_tools()).tools:
            verb, schema = _TOOLS[tool.name].call, tool.input_schema
            assert schema == _schema_of(verb)
            assert (schema["type"], schema["additionalProperties"]) == ("object", False)
            _, _, example = str(tool.description).partition("Example: ")
            if schema["required"]:
                assert set(schema["required"]) <= json.loads(example).keys() <= schema["properties"].keys()
                checked(request_of(verb), json.loads(example))
        return client.instructions

    told = talk(desk, conversation)
    assert "which model" in told
    assert '"small-model", "large-model", "search"' in told


@pytest.mark.parametrize("labels", [[b"a", b"b"], [float("inf"), 1.5], ["\ud800", "b"]])
def test_labels_that_json_has_not_are_refused_at_once(tmp_path: Path, labels: list[Any]) -> None:
    with (
        Decider.open(tmp_path / "odd.onebit", labels, onebit.UniformGuess()) as desk,
        pytest.raises(ValueError, match="labels for agents must be texts or numbers"),
    ):
        _create_server(desk)


def test_what_is_refused_changes_nothing(desk: Decider) -> None:
    hostile: list[tuple[str, Any, str]] = [
        ("guess", {}, "record is missing"),
        ("guess", {"record": 3}, "record must be an object"),
        ("guess", {"record": RECORD, "color": 1}, "there is no field 'color'"),
        ("guess", {"record": RECORD, "among": ["none"]}, 'can join: add_class {"label": "none"}'),
        ("guess", {"record": RECORD, "key": "k" * 201}, "key must be"),
        ("tell", {"id": "none", "correct": True}, "none of this decider's"),
        ("tell", {"id": 3, "correct": True}, "ticket must be"),
        ("tell", {"id": "none", "correct": "yes"}, "correct must be True or False"),
        ("shadow", {"record": RECORD, "label": "none", "correct": True}, 'add_class {"label": "none"}'),
        ("add_class", {"label": "search"}, "search"),
        ("add_class", {"label": 1.5}, "label must be a text"),
        ("status", {"all": True}, "there is no field 'all'"),
    ]

    async def conversation(client: Any) -> None:
        for name, arguments, expected in hostile:
            assert expected in await refused(client, name, arguments), (name, expected)
        with pytest.raises(mcp.MCPError, match="there is no tool 'forget'"):
            await client.call_tool("forget", {})

    before = desk.status()
    talk(desk, conversation)
    assert desk.status() == before
    assert desk.verify()


def test_what_the_client_of_the_sdk_does_not_send(desk: Decider) -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    before = desk.status()
    for value, expected in (
        (float("nan"), "NaN"),
        ("\ud800", "no Unicode"),
        (deep, "deep"),
        ("a" * LARGEST_BODY, "larger than"),
        (10**400, "x"),
    ):
        with pytest.raises((ValueError, RecursionError)) as found:
            _answer(desk, "guess", {"record": {"x": value}})
        assert expected in _error_text("guess", found.value)
    assert desk.status() == before


def test_a_bug_is_not_told(desk: Decider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(decider: Decider) -> Any:
        raise KeyError("a secret of the house")

    monkeypatch.setitem(_TOOLS, "status", Verb(broken))

    async def conversation(client: Any) -> str:
        return await refused(client, "status", {})

    assert "went wrong inside" in talk(desk, conversation)
    assert "a secret of the house" in caplog.text


def test_the_disk_keeps_nobody_waiting(desk: Decider, monkeypatch: pytest.MonkeyPatch) -> None:
    is_free = threading.Event()

    def slow(decider: Decider) -> Any:
        return {"waited": is_free.wait(10)}

    monkeypatch.setitem(_TOOLS, "status", Verb(slow))

    async def conversation(client: Any) -> Any:
        waiting = asyncio.create_task(said(client, "status"))
        await asyncio.sleep(0)
        ticket = await said(client, "guess", record=RECORD)
        was_done = waiting.done()
        is_free.set()
        return ticket["label"] in LABELS, was_done, await waiting

    assert talk(desk, conversation) == (True, False, {"waited": True})


def line(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_messages_that_cannot_be_read_change_nothing(desk: Decider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK drops them, and goes on."""

    def call(number: int, value: str) -> str:
        asked = '{"name":"guess","arguments":{"record":{"x":' + value + "}}}"
        return f'{{"jsonrpc":"2.0","method":"tools/call","params":{asked},"id":{number}}}'

    values = ["[" * 900 + "]" * 900, "[" * 100_000 + "]" * 100_000, '"\\ud800"', "9" * 5000]
    sent = [call(number, value) for number, value in enumerate(values)] + ["{nope", "[]", ""]
    sent.append('{"jsonrpc":"2.0","method":"ping","id":7}')
    incoming, outgoing = io.BytesIO("\n".join(sent).encode()), io.BytesIO()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(incoming))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(outgoing))
    before = desk.status()
    serve_stdio(desk)
    assert [json.loads(each)["id"] for each in outgoing.getvalue().splitlines()] == [7]
    assert desk.status() == before


def test_a_process_that_is_killed_knows_its_answers(tmp_path: Path) -> None:
    words = ["mcp", "m.onebit", "--classes", ",".join(LABELS), "--learner", "BanditPerceptron", "--about", "x"]
    began = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    plain = {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    with subprocess.Popen(
        [sys.executable, "-m", "onebit", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | plain,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(text: str) -> Any:
            process.stdin.write(text)  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            return json.loads(process.stdout.readline())  # type: ignore[union-attr]

        assert "tools" in ask(line(1, "initialize", **began))["result"]["capabilities"]
        process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        asked = {"name": "guess", "arguments": {"record": RECORD, "key": "t-1"}}
        ticket = ask(line(2, "tools/call", **asked))["result"]["structuredContent"]
        answer = {"name": "tell", "arguments": {"id": ticket["id"], "correct": True}}
        assert ask(line(3, "tools/call", **answer))["result"]["structuredContent"] == {"news": True}
        process.kill()

    async def again(client: Any) -> None:
        assert await said(client, "guess", record=RECORD, key="t-1") == ticket
        assert await said(client, "tell", id=ticket["id"], correct=True) == {"news": False}
        assert (await said(client, "status"))["right"] == 1

    with Decider.open(tmp_path / "m.onebit") as desk:
        talk(desk, again)
        assert desk.verify()


@pytest.mark.ci
def test_hosts_start_and_end_it(tmp_path: Path) -> None:
    """The SDK's own client starts the process, ends its input, and starts it again: BanditSVM, compiled."""
    words = ["-m", "onebit", "mcp", "m.onebit", "--classes", "small,large"]
    server = mcp.StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=str(tmp_path))

    async def conversation(n_before: int) -> None:
        async with mcp.Client(mcp.stdio_client(server)) as client:
            assert (await said(client, "status"))["guesses"] == n_before
            for i in range(20):
                ticket = await said(client, "guess", record={"pages": i * 7 % 20})
                assert await said(client, "tell", id=ticket["id"], correct=ticket["label"] == "small") == {"news": True}

    asyncio.run(conversation(0))
    asyncio.run(conversation(20))
    with Decider.open(tmp_path / "m.onebit") as desk:
        assert desk.verify()
        assert desk.status().right > 20
