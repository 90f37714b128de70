"""Connections: whoever opens many, or is slow, shuts nobody else out."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")

from onebit.service.access import Tokens
from onebit.service.app import Service
from onebit.service.server import Connections, _counted_as, raise_file_limit
from served import DESK, LIGHT, running_here, serving_here

HALF_A_HEAD = b"POST /v1/shop/routing/guess HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


class Asking:
    """A client at one of this machine's addresses, 127.0.0.1 to 127.0.0.9, with one connection."""

    def __init__(self, url: str, number: int = 1, token: str = "") -> None:
        at = urlsplit(url)
        source = (f"127.0.0.{number}", 0)
        self._connection = HTTPConnection(str(at.hostname), at.port, timeout=20, source_address=source)
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self.headers: dict[str, str] = {}

    def ask(self, method: str = "POST", path: str = f"{DESK}/guess", body: Any = None) -> int:
        body = {"record": {"x": 1.0}} if body is None else body
        self._connection.request(method, path, json.dumps(body), self._headers)
        reply: HTTPResponse = self._connection.getresponse()
        self.headers, content = {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        if reply.status >= 400:
            assert self.headers["content-type"] == "application/problem+json"
            assert json.loads(content)["status"] == reply.status
        return reply.status

    def ask_once(self) -> int:
        try:
            return self.ask()
        finally:
            self.close()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def slow_sockets(url: str, count: int, number: int) -> Iterator[list[socket.socket]]:
    """Open connections that have sent half a head."""
    at = urlsplit(url)
    with ExitStack() as opened:
        yield [
            opened.enter_context(slow_socket((str(at.hostname), at.port or 0), f"127.0.0.{number}"))
            for _ in range(count)
        ]


def slow_socket(where: tuple[str, int], source: str) -> socket.socket:
    made = socket.create_connection(where, timeout=20, source_address=(source, 0))
    with suppress(ConnectionError):  # it was refused, and has been closed by now
        made.sendall(HALF_A_HEAD)
    return made


def said(connection: socket.socket) -> int:
    """Return the status of what a connection was sent, once it ends; 0 if it was cut off."""
    received = b""
    try:
        while data := connection.recv(65536):
            received += data
    except ConnectionError:
        pass
    return int(received.split()[1]) if received else 0


def wait_until(is_so: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_slow_connections_shut_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.server._HEAD_SECONDS", 1.5)
    monkeypatch.setattr("onebit.service.server._REFUSED_SECONDS", 0.2)
    places = Connections(16, 11)  # 4 of them are kept for those who are known
    with serving_here(tmp_path, places=places) as url:
        established = Asking(url)
        assert established.ask("PUT", DESK, LIGHT) == 201
        assert established.ask() == 200, "the first guess compiles"
        with slow_sockets(url, 20, 2) as slow:
            wait_until(lambda: places._n_taken == 12)
            assert established.ask() == 200, "it has its place"
            same, known, unknown = Asking(url, 2), Asking(url), Asking(url, 3)
            assert same.ask() == 503, "this address has no more"
            assert int(same.headers["retry-after"]) >= 1
            assert unknown.ask() == 503, "the others are kept"
            assert int(unknown.headers["retry-after"]) >= 1
            assert [known.ask(), established.ask()] == [200, 200]
            known.close()
            while places._n_taken > 1:
                assert established.ask() == 200
                time.sleep(0.05)
            assert sorted(said(each) for each in slow) == [408] * 11 + [503] * 9
            assert [unknown.ask(), same.ask(), Asking(url).ask_once(), established.ask()] == [200] * 4
        for each in (established, same, unknown):
            each.close()
        wait_until(lambda: places._n_taken == 0)


def test_whoever_is_refused_can_read_so_while_it_sends(tmp_path: Path) -> None:
    with serving_here(tmp_path, places=Connections(1, 1)) as url:
        first = Asking(url)
        assert first.ask("PUT", DESK, LIGHT) == 201
        for _ in range(5):
            other = Asking(url)
            assert other.ask(body={"record": {"x": "a" * 500_000}}) == 503
            other.close()
        assert first.ask() == 200
        first.close()


def test_only_who_has_a_token_is_known(tmp_path: Path) -> None:
    token, places = Tokens(tmp_path).add("app", ["admin"], ["*"]), Connections(16, 16)
    with serving_here(tmp_path, places=places, tokens_required=True) as url:
        for number, shown, path in ((2, "", "/healthz"), (3, "wrong", DESK), (4, token, DESK)):
            asking = Asking(url, number, shown)
            asking.ask("GET" if path == "/healthz" else "PUT", path, LIGHT)
            asking.close()
    assert list(places._known) == ["127.0.0.4"]


def test_whoever_reads_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.server._SEND_SECONDS", 0.2)
    places = Connections(4, 4)
    with serving_here(tmp_path, places=places) as url:
        at = urlsplit(url)
        with socket.socket() as greedy:
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.connect((str(at.hostname), at.port))
            greedy.settimeout(0.1)
            asked = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100
            wait_until(lambda: places._n_taken == 1)
            end = time.monotonic() + 10.0
            while places._n_taken and time.monotonic() < end:
                try:
                    greedy.sendall(asked)
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
            wait_until(lambda: places._n_taken == 0)


@contextmanager
def slow_reader(url: str) -> Iterator[socket.socket]:
    at = urlsplit(url)
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(10.0)
        made.connect((str(at.hostname), at.port))
        yield made


ASK_FOR_MUCH = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_whoever_leaves_the_end_of_an_answer_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.server._SEND_SECONDS", 0.2)
    places = Connections(4, 4)
    with running_here(Service(tmp_path), places) as (url, server), slow_reader(url) as slow:
        state = server.server_state
        for n_asked in range(1, 1_000):  # until the system has no room for the next answer
            with suppress(ConnectionError):  # it has been let go already
                slow.sendall(ASK_FOR_MUCH)
            wait_until(lambda n=n_asked: state.total_requests >= n or not state.connections)  # type: ignore[misc]
            if not state.connections or any(each.transport.get_write_buffer_size() for each in state.connections):
                break
        wait_until(lambda: places._n_taken == 0, 3.0)  # as it is idle it is closed, which waits for the reader


def test_whoever_reads_hardly_anything_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.server._SEND_SECONDS", 0.5)
    places = Connections(4, 4)
    with running_here(Service(tmp_path), places) as (url, server):
        asking = Asking(url)
        assert asking.ask("PUT", DESK, LIGHT) == 201
        assert asking.ask(body={"record": {"text": "word " * 190_000}}) == 200
        asking.close()
        wait_until(lambda: places._n_taken == 0)
        with slow_reader(url) as slow:
            wait_until(lambda: places._n_taken == 1)
            for each in server.server_state.connections:  # else the system takes megabytes at once
                each.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            slow.sendall(f"GET {DESK}/log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            end = time.monotonic() + 3.0
            while places._n_taken:
                assert time.monotonic() < end
                slow.recv(2048)
                time.sleep(0.05)


def test_large_requests_that_arrive_slowly_take_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.gate._MOST_BYTES_HELD", 500_000)
    app: Any = Service(tmp_path)
    with running_here(app) as (url, _server):
        at = urlsplit(url)
        asking = Asking(url)
        assert asking.ask("PUT", DESK, LIGHT) == 201
        large = {"record": {"x": "word " * 60_000}}
        assert asking.ask(body=large) == 200
        head = b"POST /v1/shop/routing/guess HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        with socket.create_connection((str(at.hostname), at.port), timeout=20) as slow:
            slow.sendall(head + b"Content-Length: 400000\r\n\r\n" + b" " * 399_999)
            wait_until(lambda: app._n_held == 399_999)
            assert asking.ask(body=large) == 503, "it says so, and when to try again"
            assert asking.headers["retry-after"] == "1"
            assert asking.ask() == 200, "small ones are taken"
        wait_until(lambda: app._n_held == 0)
        assert asking.ask(body=large) == 200
        asking.close()


@pytest.mark.parametrize("path", ["/", "/healthz", "/page/desk.js"])
def test_nothing_is_read_of_what_is_sent_without_a_token(tmp_path: Path, path: str) -> None:
    Tokens(tmp_path).add("app", ["play"], ["*"])
    with serving_here(tmp_path) as url:
        at = urlsplit(url)
        with socket.create_connection((str(at.hostname), at.port), timeout=5) as sent:
            sent.sendall(
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                "Content-Type: application/json\r\nContent-Length: 4000000\r\n\r\n".encode()
            )
            assert said(sent) == 401, "before its body comes"


def test_networks_count_as_one_address() -> None:
    counted = {"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::"}
    counted |= {"::1": "::1", "a socket": "a socket"}
    assert {host: _counted_as(host) for host in counted} == counted


def test_places(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Connections(4, 2)
    asked = ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3")
    assert [places.take(address) is None for address in asked] == [True, True, False, True, False]
    now = 0.0
    monkeypatch.setattr("onebit.service.server.time.monotonic", lambda: now)
    places = Connections(8, 3)
    assert [places.take("a") for _ in range(3)] == [None] * 3
    assert "from this address" in str(places.take("a"))
    assert [places.take(each) for each in "bcd"] == [None] * 3
    assert "6 connections" in str(places.take("e")), "two places are kept"
    places.know("e")
    assert [places.take("e") for _ in range(2)] == [None] * 2
    assert "8 connections" in str(places.take("e"))
    places.give_back("e")
    now = 599.0
    assert places.take("e") is None
    places.give_back("e")
    now = 600.0
    assert places.take("e") is not None, "that was ten minutes ago"
    for each in "aaabcde":
        places.give_back(each)
    assert (places._n_taken, places._taken) == (0, {})
    for number in range(20_000):
        places.know(str(number))
    assert len(places._known) <= 10_000


def test_how_many_there_may_be() -> None:
    def limits(places: Connections) -> tuple[int, int]:
        return places._most, places._most_of_address

    assert limits(Connections(None, None, 20_000)) == (1000, 250)
    assert limits(Connections(None, None, 256)) == (128, 32)
    assert limits(Connections(None, 100, 256)) == (128, 100)
    assert limits(Connections(5_000, 5_000, 10_000)) == (5000, 5000)
    with pytest.raises(ValueError, match=r"--max-connections 5001 needs 10002 open files.*ulimit -n.*at most 5000"):
        Connections(5_001, None, 10_000)
    for most, of_address in ((0, None), (10, 0), (10, 11)):
        with pytest.raises(ValueError, match="--max-connections"):
            Connections(most, of_address, 10_000)


def test_the_limit_of_open_files_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 500), hard))
        raised = raise_file_limit()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert raised == 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# A process of its own.


@contextmanager
def served_by_a_process(folder: Path, n_files: tuple[int, int], first: str = "pass") -> Iterator[tuple[str, int]]:
    """Run ``onebit serve`` with a soft and a hard limit of open files."""
    code = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, {n_files}); {first}"
    code += "; from onebit.cli import app; app()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", str(folder), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    ) as running:
        try:
            assert running.stderr is not None
            for line in running.stderr:
                if found := re.search(r"listening on (http://[0-9.:]+)", line):
                    yield found[1], running.pid
                    break
            else:
                pytest.fail("it does not listen")
        finally:
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=60)


@pytest.mark.ci
def test_1100_slow_sockets(tmp_path: Path) -> None:
    with served_by_a_process(tmp_path, (256, 4096)) as (url, _pid):
        established = Asking(url)
        assert established.ask("PUT", DESK, LIGHT) == 201
        with slow_sockets(url, 1_100, 1):
            asked, began = 0, time.monotonic()
            while time.monotonic() < began + 5.0:
                assert established.ask() == 200
                asked += 1
            other, elsewhere = Asking(url), Asking(url, 2)
            assert other.ask() == 503
            assert int(other.headers["retry-after"]) >= 1
            assert elsewhere.ask() == 200, "from another address all is as ever"
            wait_until(lambda: Asking(url).ask_once() == 200, seconds=40)
            assert [established.ask(), elsewhere.ask()] == [200, 200]
        print(f"{asked} requests of an established client in 5 seconds")
        for each in (established, other, elsewhere):
            each.close()


@pytest.mark.ci
def test_a_process_without_files_left_goes_on(tmp_path: Path) -> None:
    """As if the caps were not: accepting fails, nothing spins or ends, and afterwards all is as before."""
    uncapped = "import onebit.service.server as s; s.Connections.take = lambda *_: None"
    with served_by_a_process(tmp_path, (100, 100), uncapped) as (url, pid):
        established = Asking(url)
        assert established.ask("PUT", DESK, LIGHT) == 201
        assert established.ask() == 200

        def seconds_of_work() -> float:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        with slow_sockets(url, 200, 1):
            time.sleep(1.0)
            before = seconds_of_work()
            time.sleep(3.0)
            assert seconds_of_work() - before < 1.0, "it does not spin"
            assert established.ask() == 200
        assert [established.ask(), Asking(url).ask_once()] == [200, 200]
        established.close()
