"""Database, network and owner are ended at any moment: nothing acknowledged is lost, and nothing counts twice."""

import os
import random
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")

import psycopg

import onebit
from database_play import Played, check, play
from onebit.decider.client import Client, RemoteDecider
from onebit.decider.decider import Decider
from onebit.decider.tickets import LogError, OwnedError
from play_postgres import play_until_ended
from postgres_server import Server, require_server
from relay import Relay

PROGRAM = Path(__file__).parent.parent / "play_postgres.py"
InDatabase = tuple[str, str]


def disturb_and_check(url: str, name: str, disturb: Callable[[random.Random], None], times: int) -> list[float]:
    """Play in four threads while something is disturbed; return how many seconds nobody was answered, each time."""
    told: list[Played] = []
    is_over, chance, pauses = threading.Event(), random.Random(times), []
    with Decider.open(url, name=name, classes=["a", "b", "c"], learner=onebit.BanditPerceptron()) as desk:
        threads = [threading.Thread(target=play, args=(desk, seed, told.append, is_over)) for seed in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(times):
                wait_for_more(told, 20)
                time.sleep(chance.uniform(0.0, 0.2))
                began = time.monotonic()
                disturb(chance)
                wait_for_more(told, 1)
                pauses.append(time.monotonic() - began)
            wait_for_more(told, 20)
        finally:
            is_over.set()
            for thread in threads:
                thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        check(desk, told)
        # Every request was answered in the end, so nothing else is there.
    with Decider.open(url, name=name) as desk:
        check(desk, told)
    print(f"{len(told)} events, {times} times disturbed; seconds without an answer: median "
          f"{statistics.median(pauses):.2f}, longest {max(pauses):.2f}")  # fmt: skip
    return pauses


def wait_for_more(told: list[Played], n: int) -> None:
    enough, end = len(told) + n, time.monotonic() + 60.0
    while len(told) < enough:
        assert time.monotonic() < end, "it does not play again"
        time.sleep(0.002)


def kill_database(server: Server) -> Callable[[random.Random], None]:
    def disturb(_chance: random.Random) -> None:
        server.kill()
        server.start()

    return disturb


def end_session(server: Server) -> Callable[[random.Random], None]:
    def disturb(_chance: random.Random) -> None:
        with psycopg.connect(server.url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'onebit'"
            )

    return disturb


def test_a_database_that_is_killed(server: Server, in_database: InDatabase) -> None:
    disturb_and_check(*in_database, kill_database(server), times=1)


def test_sessions_that_are_ended(server: Server, in_database: InDatabase) -> None:
    disturb_and_check(*in_database, end_session(server), times=2)


def test_a_network_that_is_cut(server: Server, in_database: InDatabase) -> None:
    def disturb(chance: random.Random) -> None:
        relay.cut()
        time.sleep(chance.uniform(0.0, 0.2))
        relay.mend()

    with Relay(server.port) as relay:
        far = server.url.replace(str(server.port), str(relay.port))
        disturb_and_check(far, in_database[1], disturb, times=2)


def opened_when_free(url: str, name: str) -> Decider:
    """Open a decider as soon as the server has noticed that its owner is gone."""
    give_up = time.monotonic() + 5.0
    while True:
        try:
            return Decider.open(url, name=name)
        except OwnedError:
            assert time.monotonic() < give_up
            time.sleep(0.02)


def read_record(record: Path) -> list[Played]:
    said = [line.split() for line in record.read_text().splitlines()]
    return [(verb, ticket, what if verb == "guess" else what == "True") for verb, ticket, what in said]


def take_over_and_check(url: str, name: str, folder: Path, times: int, how: signal.Signals) -> list[float]:
    """End the owner under load, again and again, while another waits; return how long it took to take over."""
    Decider.open(url, name=name, classes=["a", "b", "c"], learner=onebit.BanditPerceptron()).close()
    record, chance, taken = folder / "record", random.Random(times), []
    # Plain Python begins sooner, and decides the same.
    path = os.pathsep.join([str(PROGRAM.parent), os.environ.get("PYTHONPATH", "")])
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}

    processes: list[subprocess.Popen[str]] = []

    def begin() -> "subprocess.Popen[str]":
        command = [sys.executable, str(PROGRAM), url, name, str(record), "4"]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=plain))
        says(processes[-1], "waiting")
        return processes[-1]

    def says(process: "subprocess.Popen[str]", what: str) -> None:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{what}\n"

    def end(process: "subprocess.Popen[str]") -> None:
        with process:
            process.kill()

    try:
        owner = begin()
        says(owner, "playing")
        for _ in range(times):
            standby = begin()
            time.sleep(chance.uniform(0.1, 0.5))
            began = time.monotonic()
            owner.send_signal(how)
            says(standby, "playing")
            taken.append(time.monotonic() - began)
            if how == signal.SIGSTOP:
                owner.send_signal(signal.SIGCONT)  # it wants to go on, and must not
                time.sleep(1.0)
            end(owner)
            owner = standby
        time.sleep(0.3)
    finally:
        for process in processes:
            end(process)
    with opened_when_free(url, name) as desk:
        told = read_record(record)
        assert len(told) > 4 * times
        check(desk, told, most_unknown=4 * (times + 1))
    print(f"{len(told)} events, {times} owners ended; seconds to take over: median {statistics.median(taken):.2f}, "
          f"longest {max(taken):.2f}")  # fmt: skip
    return taken


def test_an_owner_that_is_killed(in_database: InDatabase, tmp_path: Path) -> None:
    """A fork plays: a process of its own takes seconds to begin."""
    url, name = in_database
    record = tmp_path / "record"
    Decider.open(url, name=name, classes=["a", "b", "c"], learner=onebit.BanditPerceptron()).close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it has threads, which do not matter to the fork
        owner = os.fork()
    if not owner:
        try:
            play_until_ended(url, name, str(record), 2)
        finally:
            os._exit(1)
    try:
        give_up = time.monotonic() + 60.0
        while not record.exists() or record.read_bytes().count(b"\n") < 20:
            assert time.monotonic() < give_up
            time.sleep(0.01)
        with pytest.raises(OwnedError, match=f"is open in process {owner} on "):
            Decider.open(url, name=name)
    finally:
        os.kill(owner, signal.SIGKILL)
        os.waitpid(owner, 0)
    with opened_when_free(url, name) as desk:
        check(desk, read_record(record), most_unknown=2)


@pytest.mark.ci
def test_owners_that_are_killed(in_database: InDatabase, tmp_path: Path) -> None:
    assert max(take_over_and_check(*in_database, tmp_path, 20, signal.SIGKILL)) < 10.0


@pytest.mark.ci
def test_an_owner_that_stands_still(in_database: InDatabase, tmp_path: Path) -> None:
    """It loses the decider, and what it says when it goes on is refused."""
    assert 5.0 < max(take_over_and_check(*in_database, tmp_path, 3, signal.SIGSTOP)) < 20.0


@pytest.mark.slow
def test_a_database_that_is_killed_200_times() -> None:
    require_server()
    with Server(fsync=True) as server:
        disturb_and_check(server.url, "desk", kill_database(server), times=200)


@pytest.mark.slow
def test_sessions_that_are_ended_200_times(server: Server, in_database: InDatabase) -> None:
    disturb_and_check(*in_database, end_session(server), times=200)


@pytest.mark.ci
def test_a_network_that_swallows_everything_for_a_while(server: Server, in_database: InDatabase) -> None:
    def disturb(chance: random.Random) -> None:
        relay.swallow()
        time.sleep(chance.choice([1.0, 12.0]))
        relay.mend()

    with Relay(server.port) as relay:
        far = server.url.replace(str(server.port), str(relay.port))
        assert max(disturb_and_check(far, in_database[1], disturb, times=6)) < 30.0


@contextmanager
def serving(url: str, folder: Path, port: int) -> "Iterator[subprocess.Popen[str]]":
    """Run a service, and return when it listens."""
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1", "ONEBIT_LOG": url}
    command = [sys.executable, "-m", "onebit", "serve", str(folder), "--port", str(port), "--rate", "0"]
    with (folder / f"{port}.txt").open("a") as journal:
        process = subprocess.Popen(command, stderr=journal, text=True, env=plain)
    try:
        wait_until(lambda: answers(port), 60.0)
        yield process
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False


def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    give_up = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.ci
def test_services_that_are_killed(server: Server, in_database: InDatabase, tmp_path: Path) -> None:
    """`test_postgres.py` has a small form of it."""
    kill_services_and_check(server, in_database[1], tmp_path, times=20)


@pytest.mark.slow
def test_services_and_database_are_killed_together(tmp_path: Path) -> None:
    require_server()
    with Server(fsync=True) as server:
        kill_services_and_check(server, "shop/routing", tmp_path, times=50, database_too=True)


def kill_services_and_check(server: Server, name: str, tmp_path: Path, times: int, database_too: bool = False) -> None:
    """Kill one of two services again and again, while clients ask whichever answers."""
    pytest.importorskip("starlette")
    url = server.url.replace("onebit@", "onebit:hunter2@")
    told: list[Played] = []
    ports, is_over, taken = [free_port(), free_port()], threading.Event(), []

    def work(seed: int) -> None:
        generator = random.Random(seed)
        clients = [Client(f"http://127.0.0.1:{port}", retries=0) for port in ports]

        def insist(verb: Callable[[RemoteDecider], Any]) -> Any:
            while True:
                try:
                    return verb(clients[0].decider(name))
                except (OSError, LogError):  # it is down, or the other's
                    clients.reverse()
                    time.sleep(0.02)

        while not is_over.wait(0.05):  # not too many events: who takes over replays them all
            key, record = secrets.token_hex(8), {"x": generator.gauss(0.0, 1.0)}
            ticket = insist(methodcaller("guess", record, key=key))
            told.append(("guess", ticket.id, ticket.label))
            insist(methodcaller("tell", ticket, ticket.label == "a"))
            told.append(("tell", ticket.id, ticket.label == "a"))
        for client in clients:
            client.close()

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(4)]
    with ExitStack() as stack:
        services = [stack.enter_context(serving(url, tmp_path, port)) for port in ports]
        with Client(f"http://127.0.0.1:{ports[0]}", timeout=60.0) as client:
            client.create(name, classes=["a", "b", "c"], learner="BanditPerceptron")
        for thread in threads:
            thread.start()
        for n in range(times):
            owner = n % 2
            wait_for_more(told, 20)
            began = time.monotonic()
            services[owner].kill()
            services[owner].wait()
            if database_too:
                server.kill()
                server.start()
            assert "hunter2" not in Path(f"/proc/{services[1 - owner].pid}/cmdline").read_text()
            time.sleep(0.1)  # what was answered before is heard
            wait_for_more(told, 20)
            taken.append(time.monotonic() - began)
            if n + 1 < times:
                services[owner] = stack.enter_context(serving(url, tmp_path, ports[owner]))
        is_over.set()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        services[times % 2].terminate()
        services[times % 2].wait(30)
    journals = [(tmp_path / f"{port}.txt").read_text() for port in ports]
    assert "stopped: all is answered and closed" in journals[times % 2]
    assert "hunter2" not in "".join(journals)
    with opened_when_free(server.url, name) as desk:
        check(desk, told)
    print(f"{len(told)} events, {times} services killed; seconds until clients went on: median "
          f"{statistics.median(taken):.2f}, longest {max(taken):.2f}")  # fmt: skip
    assert max(taken) < (30.0 if database_too else 15.0)
