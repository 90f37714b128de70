"""The client against a real service: retries count once, errors are the library's own, and kill -9 loses nothing."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from onebit.decider.client import Client, _error_of
from onebit.decider.decider import Decider
from onebit.decider.tickets import Kind, LogError, LogWriteError, OwnedError, TicketConflictError
from onebit.service.access import Tokens
from served import serving_here

NAME = "shop/routing"
LIGHT: dict[str, Any] = {"classes": ["a", "b", "c"], "learner": "BanditPerceptron"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(folder: Path, port: int, *options: str) -> Iterator[tuple[subprocess.Popen[str], list[dict[str, Any]]]]:
    """Run a service, and collect its journal."""
    command = [sys.executable, "-m", "onebit", "serve", str(folder), "--port", str(port), *options]
    journal: list[dict[str, Any]] = []
    is_up = threading.Event()

    def read() -> None:
        for line in process.stderr or ():
            journal.append(json.loads(line))
            if journal[-1]["says"].startswith("listening"):
                is_up.set()

    # Plain Python begins sooner, and decides the same.
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=plain) as process:
        reader = threading.Thread(target=read)
        reader.start()
        try:
            assert is_up.wait(60), journal
            yield process, journal
        finally:
            process.kill()
            process.wait()
            reader.join()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service for all tests that leave it running."""
    with serving_here(tmp_path_factory.mktemp("served")) as url:
        with Client(url, timeout=60.0) as client:
            client.create(NAME, **LIGHT)
        yield url


def test_the_verbs(url: str) -> None:
    with Client(url) as client:
        desk = client.create("shop/verbs", **LIGHT)
        assert client.deciders() == [NAME, "shop/verbs"]
        ticket = desk.guess({"x": 1.5, "tags": {"late"}}, among=["a", "b"], key="k")
        assert ticket.label in ("a", "b")
        assert desk.guess({"x": 2.5}, key="k") == ticket
        assert [desk.tell(ticket, correct=True), desk.tell(ticket.id, correct=True)] == [True, False]
        desk.correct_answer(ticket, correct=False)
        desk.withdraw(ticket)
        tickets = desk.guess_many([{"x": i / 9} for i in range(1_200)])
        assert len({each.id for each in tickets}) == 1_200
        assert all(desk.tell_many((each, each.label == "a") for each in tickets))
        desk.add_class("d")
        told = desk.shadow({"x": 1.0}, "d", correct=True, key="s")
        assert told == desk.shadow({"x": 1.0}, "d", correct=True, key="s")
        assert (told.label in "abcd", desk.classes) == (True, ["a", "b", "c", "d"])
        status = desk.status()
        assert (status["guesses"], status["open"], status["watched"]) == (1_201, 0, 1)
        assert desk.report()["answered"] == 1_200
        assert [event["seq"] for event in desk.events()] == list(range(1, status["events"] + 1))


def test_errors_are_the_librarys_own(url: str) -> None:
    with Client(url, retries=0) as client:
        desk = client.decider(NAME)
        ticket = desk.guess({"x": 1.0})
        desk.tell(ticket, True)
        with pytest.raises(
            TicketConflictError, match=r"was told True before, and False now.*: correct_answer\('.*', False\)$"
        ):
            desk.tell(ticket, False)
        with pytest.raises(ValueError, match=r"A new label can join: add_class\('news'\)$"):
            desk.guess({"x": 1.0}, among=["news"])
        with pytest.raises(ValueError, match="is none of this decider's"):
            desk.tell_many([(ticket, True), ("none", True)])
        with pytest.raises(ValueError, match="correct must be True or False"):
            desk.tell(ticket, "yes")  # type: ignore[arg-type]
        with pytest.raises(LogError, match="there is no decider shop/none"):
            client.decider("shop/none").status()
        with pytest.raises(LogError, match="was begun with classes"):
            client.create(NAME, classes=["z"])
        desk.change(deadline=3600, max_open=50_000)
        with pytest.raises(
            LogError, match=r"has deadline=3600\.0, and is opened with 60; leave it out, or call change"
        ):
            client.create(NAME, classes=["a", "b", "c"], deadline=60)
        with pytest.raises(ValueError, match="there is no field 'seed'"):
            desk.change(seed=3)
        with pytest.raises(ValueError, match="silence must be"):
            desk.change(silence="maybe")
        with pytest.raises(ValueError, match="learner must be one of onebit's own"):
            client.create("shop/other", classes=2, learner="")
        with pytest.raises(TypeError, match="cannot be sent: labels and settings are"):
            client.create("shop/other", classes={"a", "b"})
    for name, kind in (("OwnedError", OwnedError), ("LogWriteError", LogWriteError), ("?", RuntimeError)):
        assert type(_error_of({"error": name, "detail": "so"}, 503)) is kind
    assert "answered 502" in str(_error_of(None, 502))
    for wrong in ("ftp://x", "127.0.0.1:80", "http://", "http://x/?a"):
        with pytest.raises(ValueError, match="url must be"):
            Client(wrong)
    with pytest.raises(ValueError, match="name must be"):
        Client(url).decider("routing")
    with pytest.raises(ConnectionError, match="cannot be reached"):
        Client(f"http://127.0.0.1:{free_port()}", retries=1).deciders()


def test_tokens(tmp_path: Path) -> None:
    token = Tokens(tmp_path).add("app", ["admin"], ["shop"])
    with (
        serving_here(tmp_path, under="/tools/onebit") as url,
        Client(url, retries=0) as nobody,
        Client(url, token) as client,
    ):
        with pytest.raises(PermissionError, match="a valid token is needed"):
            nobody.deciders()
        with pytest.raises(PermissionError, match="may not see the namespace 'else'"):
            client.create("else/routing", **LIGHT)
        client.create(NAME, **LIGHT)
        assert token not in repr(client)


def _message(sender: socket.socket) -> bytes:
    """Return a whole request or answer; nothing at the end."""
    said = b""
    while piece := sender.recv(65536):
        said += piece
        head, _, body = said.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        if head != said and len(body) >= int(length[1] if length else 0):
            break
    return said


class _Cutting:
    """A relay before a service that cuts the connection after some requests, answered or not."""

    def __init__(self, port: int, chance: float) -> None:
        self._port, self._chance, self._random = port, chance, random.Random(5)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.n_cut = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(caller,), daemon=True).start()

    def _relay(self, caller: socket.socket) -> None:
        with caller, socket.create_connection(("127.0.0.1", self._port)) as service:
            while asked := _message(caller):
                service.sendall(asked)
                answer = _message(service)
                if self._random.random() < self._chance:
                    self.n_cut += 1
                    return  # it has arrived, and the caller does not know
                caller.sendall(answer)

    def close(self) -> None:
        self._listening.close()


def test_a_cut_connection_counts_nothing_twice(url: str) -> None:
    relay = _Cutting(int(url.rpartition(":")[2]), chance=0.3)
    with Client(f"http://127.0.0.1:{relay.port}", retries=20, timeout=5.0) as client:
        desk = client.create("shop/cut", **LIGHT)
        for i in range(30):
            ticket = desk.guess({"x": i / 7})
            desk.tell(ticket, ticket.label == "a")
        relay.close()
    assert relay.n_cut > 5
    with Client(url) as client:
        status = client.decider("shop/cut").status()
        assert (status["guesses"], status["right"] + status["wrong"]) == (30, 30)


def test_what_is_not_sent_again_needs_no_connection_of_before(url: str) -> None:
    with Client(url) as client:
        desk = client.create("shop/idle", **LIGHT)
        (connection,) = client._idle
        connection.sock.shutdown(socket.SHUT_RDWR)  # as the service lets go of one that nobody uses
        desk.add_class("d")
        assert desk.classes[-1] == "d"


def kill_and_check(folder: Path, kills: int, n_threads: int) -> None:
    """Kill a service under load, again and again; its clients go on as if nothing had happened."""
    port, chance, token = free_port(), random.Random(kills), Tokens(folder).add("app", ["admin"], ["shop"])
    told: list[tuple[str, str, Any]] = []
    is_over = threading.Event()
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        generator = random.Random(seed)
        try:
            with Client(f"http://127.0.0.1:{port}", token, retries=1_000) as client:
                desk = client.decider(NAME)
                while not is_over.is_set():
                    ticket = desk.guess({"x": generator.gauss(0.0, 1.0), "y": generator.gauss(0.0, 1.0)})
                    told.append(("guess", ticket.id, ticket.label))
                    if generator.random() < 0.8:  # some are never answered
                        correct = ticket.label == "a"
                        desk.tell(ticket, correct)
                        told.append(("tell", ticket.id, correct))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(n_threads)]
    for n_killed in range(kills + 1):
        with serving(folder, port, "--rate", "0") as (process, journal):
            if not n_killed:
                with Client(f"http://127.0.0.1:{port}", token, timeout=60.0) as client:
                    client.create(NAME, **LIGHT)
                for thread in threads:
                    thread.start()
            n_before = len(told)
            end = time.monotonic() + 60.0
            while len(told) < n_before + 50 and not failures:
                assert time.monotonic() < end, "it does not play again"
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, 0.3))
            if n_killed == kills:
                is_over.set()
                for thread in threads:
                    thread.join(30)
            process.send_signal(signal.SIGTERM if is_over.is_set() else signal.SIGKILL)
            process.wait(20)
    assert failures == []
    assert journal[-1]["says"].startswith("stopped"), "the last one was let finish"
    assert token not in json.dumps(journal)
    with Decider.open(folder / "shop" / "routing.onebit") as desk:
        assert desk.verify()
        guesses = {
            event.ticket: desk.classes[event.body["label"]] for event in desk.events() if event.kind == Kind.GUESSED
        }
        answers = [(event.ticket, event.body["correct"]) for event in desk.events() if event.kind == Kind.FEEDBACK]
    assert len(dict(answers)) == len(answers), "an answer was counted twice"
    # Every request was answered in the end, so the clients know all that is in the log, and no more.
    assert guesses == {ticket: label for verb, ticket, label in told if verb == "guess"}
    assert dict(answers) == {ticket: correct for verb, ticket, correct in told if verb == "tell"}
    print(f"{len(told)} events, {kills} services killed")


@pytest.mark.ci
def test_kill_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.decider.client._LONGEST_PAUSE", 0.2)
    kill_and_check(tmp_path, kills=1, n_threads=4)


@pytest.mark.slow
def test_kill_at_200_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.decider.client._LONGEST_PAUSE", 0.2)
    kill_and_check(tmp_path, kills=200, n_threads=8)
