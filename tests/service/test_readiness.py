"""A service is ready when its first guess need not wait for the compiler, and a client waits until then."""

import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette")

import onebit
from onebit.decider.client import Client
from onebit.decider.decider import Decider
from onebit.inputs import SparseRows
from onebit.service.app import Service
from onebit.service.workers import WorkerPool
from served import DESK, LIGHT, Served, running_here


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Return what the warming up of every decider waits for, once it is cleared."""
    may_end = threading.Event()
    may_end.set()
    monkeypatch.setattr(Decider, "warm_up", lambda _self: may_end.wait(20))
    yield may_end
    may_end.set()


def wait_until(seen: Callable[[], Any]) -> None:
    end = time.monotonic() + 10.0
    while not seen() and time.monotonic() < end:
        time.sleep(0.01)
    assert seen()


def until_ready(served: Served) -> None:
    end = time.monotonic() + 10.0
    while served.ask("GET", "/readyz").status != 200 and time.monotonic() < end:
        time.sleep(0.01)


def test_a_service_is_not_ready_while_it_compiles(
    tmp_path: Path, compiler: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "onebit.serve")
    with Served(tmp_path, warms=True) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
    caplog.clear()
    compiler.clear()
    with Served(tmp_path, warms=True) as served:
        reply = served.ask("GET", "/readyz")
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert reply.json["detail"] == "not ready: 0 deciders are being opened, 1 are being compiled"
        assert served.ask("GET", "/healthz").status == 200
        assert served.ask("GET", f"{DESK}/status").status == 200
        threading.Timer(0.3, compiler.set).start()
        assert served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}}).status == 200, "it waits in line"
        until_ready(served)
        assert served.ask("GET", "/readyz").json == {"ready": True, "deciders": 1, "open_here": 1}
    said = [record.getMessage() for record in caplog.records if getattr(record, "decider", "") == "shop/routing"]
    assert said[0] == "compiling what its first guess needs"
    assert re.fullmatch(r"is ready: compiled in 0\.\d seconds", said[1])


def test_a_decider_that_is_made_is_compiled_before_the_answer_and_keeps_no_others_waiting(
    tmp_path: Path, compiler: threading.Event
) -> None:
    desks = WorkerPool(tmp_path, warms=True)
    desks.open_all()
    told = {"classes": ["a", "b"], "learner": onebit.BanditPerceptron()}
    try:
        assert desks.create("shop", "first", told)
        compiler.clear()
        made: list[bool] = []
        makers = [threading.Thread(target=lambda: made.append(desks.create("shop", "second", told))) for _ in range(2)]
        for maker in makers:
            maker.start()
        end = time.monotonic() + 5.0
        while ("shop", "second") not in desks._workers and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1)
        assert (made, desks.awaited) == ([], "")
        assert not desks.create("shop", "first", told), "the lock is free"
        compiler.set()
        for maker in makers:
            maker.join(10)
        assert sorted(made) == [False, True]
    finally:
        compiler.set()
        desks.close()


def test_what_cannot_be_compiled_in_advance_is_said_and_the_service_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(_self: Decider) -> None:
        raise ValueError("it takes other rows")

    monkeypatch.setattr(Decider, "warm_up", failing)
    with Served(tmp_path, warms=True) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
        assert served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}}).status == 200
    assert "cannot be compiled in advance: it takes other rows" in caplog.text


def test_a_service_that_compiles_stops_at_once(tmp_path: Path, compiler: threading.Event) -> None:
    with Served(tmp_path, warms=True) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
    compiler.clear()
    app, replies = Service(tmp_path, warms=True), list[int]()
    desks = app.workers
    with running_here(app, on_stop=desks.stopping.set) as (url, _):
        said = json.dumps({"record": {"x": 1.0}}).encode()
        asked = urllib.request.Request(f"{url}{DESK}/guess", said, {"content-type": "application/json"})
        waiting = threading.Thread(target=lambda: replies.append(status_of(asked)))
        desk = desks.get("shop", "routing")
        wait_until(lambda: [each.is_alive() for each in desk.threads] == [True, True])
        waiting.start()
        wait_until(desk._queue.qsize)
        began = time.monotonic()
    assert time.monotonic() - began < 5.0
    waiting.join()
    assert replies == [503], "what was in line is refused"
    assert desk.decider is not None
    assert desk.decider._is_closed
    assert desks.has_left_threads
    compiler.set()
    wait_until(lambda: not desks.has_left_threads)
    with Decider.open(tmp_path / "shop" / "routing.onebit") as decider:
        assert decider.status().guesses == 0


def test_a_service_that_opens_deciders_stops_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Served(tmp_path) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
    may_open = threading.Event()

    class Late(WorkerPool):
        def open(self, *given: Any) -> Decider:
            may_open.wait(20)
            return super().open(*given)

    desks = Late(tmp_path)
    desks.open_all()
    began = time.monotonic()
    desks.close()
    assert time.monotonic() - began < 5.0
    assert "is left while it is being opened" in caplog.text
    may_open.set()
    wait_until(lambda: not desks.has_left_threads)  # a process that goes on closes it all the same
    Decider.open(tmp_path / "shop" / "routing.onebit").close()


@pytest.mark.parametrize(("record", "kinds"), [(None, [False, True]), ([1.0], [False]), ([1.0] * 2000, [True])])
def test_rows_are_compiled_for_as_records_become(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Any, kinds: list[bool]
) -> None:
    with Decider.open(tmp_path / "desk.onebit", classes=2, learner=onebit.BanditPerceptron()) as desk:
        if record is not None:
            desk.guess(record)
        rows: list[Any] = []
        guess = onebit.BanditPerceptron.guess

        def noted(self: onebit.BanditPerceptron, row: Any) -> onebit.Guess:
            rows.append(row)
            return guess(self, np.zeros(2))

        monkeypatch.setattr(onebit.BanditPerceptron, "guess", noted)
        desk.warm_up()
        assert [isinstance(row, SparseRows) for row in rows[::2]] == kinds


def test_a_client_waits_longer_for_an_answer_than_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.decider.client._CONNECT_SECONDS", 0.2)
    body = b'{"deciders": []}'
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_late() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                time.sleep(0.5)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        server = threading.Thread(target=answer_late)
        server.start()
        with Client(f"http://127.0.0.1:{listening.getsockname()[1]}", retries=0) as client:
            assert client.deciders() == []
        server.join()


# With the compiler itself.


@contextmanager
def serving(folder: Path, cache: Path) -> Iterator[tuple[str, list[str]]]:
    """Run a service that finds nothing compiled; yield its address, and what it says."""
    command = [sys.executable, "-m", "onebit", "serve", str(folder), "--port", "0"]
    surroundings = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    said: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=surroundings) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        url = ""
        while not url:
            says = json.loads(next(lines))["says"]
            url = says.removeprefix("listening on ") if says.startswith("listening on ") else ""
        reader = threading.Thread(target=lambda: said.extend(json.loads(line)["says"] for line in lines))
        reader.start()
        try:
            yield url, said
        finally:
            process.terminate()
            process.wait(120)
            reader.join()


def status_of(asked: str | urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(asked, timeout=20) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.ci
@pytest.mark.parametrize("n_guesses", [0, 3])
def test_a_signal_ends_a_service_within_the_compiler(tmp_path: Path, n_guesses: int) -> None:
    """While it warms up, or while it opens a decider whose events it replays."""
    (tmp_path / "decisions" / "shop").mkdir(parents=True)
    with Decider.open(tmp_path / "decisions" / "shop" / "routing.onebit", ["a", "b"]) as desk:
        for _ in range(n_guesses):
            desk.tell(desk.guess({"x": 1.0}), True)
    with serving(tmp_path / "decisions", tmp_path / "cache") as (url, _):
        assert status_of(f"{url}/healthz") == 200
        assert status_of(f"{url}/readyz") == 503
        time.sleep(1.0)
        began = time.monotonic()
    assert time.monotonic() - began < 10.0, "it waited for the compiler"


@pytest.mark.ci
def test_the_first_guess_of_a_service_that_is_ready_is_quick(tmp_path: Path) -> None:
    with serving(tmp_path / "decisions", tmp_path / "first") as (url, _), Client(url) as client:
        desk = client.create("shop/routing", ["a", "b"])  # BanditSVM; the client has its defaults
        began = time.monotonic()
        desk.guess({"x": 1.0, "subject": "where is my parcel"})
        assert time.monotonic() - began < 5.0
    with serving(tmp_path / "decisions", tmp_path / "second") as (url, said):
        n_waited = 0
        while status_of(f"{url}/readyz") == 503:
            assert status_of(f"{url}/healthz") == 200
            n_waited += 1
            time.sleep(0.2)
        assert n_waited > 5
        began = time.monotonic()
        with Client(url) as client:
            client.decider("shop/routing").guess({"x": 1.0, "subject": "where is my parcel"})
        assert time.monotonic() - began < 5.0
    assert any(re.match(r"is ready: compiled in \d+\.\d seconds", line) for line in said)
