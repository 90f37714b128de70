"""A log in PostgreSQL: one owner, whatever happens to its connection; and services that share a database."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")

import psycopg

import onebit
from onebit.cli.serve import _LOG_VARIABLE
from onebit.cli.serve import command as serve
from onebit.decider.decider import Decider
from onebit.decider.log import EventLog, Snapshot
from onebit.decider.postgres import Database, PostgresLog
from onebit.decider.tickets import Event, Kind, LogError, LogUnsureError, LogWriteError, OwnedError, UnreachableError
from postgres_server import REQUIRED, Server, require_server
from relay import Relay

InDatabase = tuple[str, str]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everybody be given up after a second."""
    monkeypatch.setattr("onebit.decider.postgres._PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr("onebit.decider.postgres._BEAT_SECONDS", 0.2)
    monkeypatch.setattr("onebit.decider.postgres._REGAIN_SECONDS", 0.5)
    monkeypatch.setattr("onebit.decider.postgres._REFUSED_SECONDS", 0.05)


def event(seq: int, kind: str = Kind.OPENED, ticket: str | None = None) -> Event:
    return Event(seq, float(seq), kind, ticket, {"at": time.perf_counter()})


def write(log: PostgresLog, *events: Event) -> None:
    for each in events:
        log.append(each)
    log.flush()


@contextmanager
def opened(place: InDatabase) -> Iterator[PostgresLog]:
    log = PostgresLog(*place, about={"began": 1.0})
    try:
        yield log
    finally:
        with suppress(LogError, LogWriteError):
            log.close()


def end_sessions(server: Server, which: str = "TRUE") -> int:
    """Let the server end the sessions of all logs."""
    statement = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'onebit' AND {which}"
    with psycopg.connect(server.url) as connection:
        return len(connection.execute(statement).fetchall())


def seqs(place: InDatabase) -> list[int]:
    url, name = place
    statement = "SELECT seq FROM onebit.events JOIN onebit.deciders d ON d.id = decider WHERE d.name = %s ORDER BY seq"
    with psycopg.connect(url) as connection:
        return [seq for (seq,) in connection.execute(statement, [name]).fetchall()]


def until(is_so: Callable[[], bool], seconds: float = 20.0) -> float:
    """Wait for something, and return how long it took."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() < began + seconds, "it does not happen"
        time.sleep(0.01)
    return time.monotonic() - began


# One owner.


def test_an_owner_whose_session_ended_goes_on(server: Server, in_database: InDatabase) -> None:
    with opened(in_database) as log:
        write(log, event(1), event(2, Kind.GUESSED, "t"))
        assert end_sessions(server) == 1
        assert [each.seq for each in log.find(ticket="t")] == [2]
        assert end_sessions(server) == 1
        write(log, event(3))
    assert seqs(in_database) == [1, 2, 3]


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_that_was_cut_off(
    server: Server, in_database: InDatabase, is_committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = PostgresLog._append
    cuts: list[int] = []

    def cut_off(log: PostgresLog, connection: Any, lines: Any) -> int:
        if cuts:
            return insert(log, connection, lines)
        if is_committed:
            insert(log, connection, lines)
        cuts.append(end_sessions(server))
        connection.execute("SELECT 1")
        raise AssertionError("the session ended")

    with opened(in_database) as log:
        write(log, event(1))
        with monkeypatch.context() as patched:
            patched.setattr(PostgresLog, "_append", cut_off)
            write(log, event(2), event(3))
        assert cuts == [1]
        write(log, event(4))
    assert seqs(in_database) == [1, 2, 3, 4]


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_that_was_cut_off_when_another_took_over(
    server: Server, in_database: InDatabase, is_committed: bool, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = PostgresLog._append
    others: list[PostgresLog] = []

    def cut_off(log: PostgresLog, connection: Any, lines: Any) -> int:
        if others:
            return insert(log, connection, lines)
        if is_committed:
            insert(log, connection, lines)
        end_sessions(server)
        others.append(PostgresLog(*in_database))
        connection.execute("SELECT 1")
        raise AssertionError("the session ended")

    with opened(in_database) as log:
        write(log, event(1))
        with monkeypatch.context() as patched:
            patched.setattr(PostgresLog, "_append", cut_off)
            if is_committed:
                write(log, event(2))
            else:
                with pytest.raises(LogWriteError, match=r"is open in .*nothing of this happened"):
                    write(log, event(2))
        (other,) = others
        with pytest.raises(OwnedError):
            log.discard_pending()
        write(other, event(3 if is_committed else 2))
        other.close()
        with pytest.raises(LogWriteError):
            write(log, event(3))
        until(lambda: log.refusal is None)
        log.discard_pending()
        assert log.last_seq == (3 if is_committed else 2)
        write(log, event(log.last_seq + 1))
    assert seqs(in_database) == list(range(1, log.last_seq + 1))


def test_a_commit_that_is_refused_at_its_last_try(
    server: Server, in_database: InDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs: list[int] = []

    def refused(log: PostgresLog, connection: Any, _lines: Any) -> int:
        epochs.append(log._epoch)
        if len(epochs) < 3:
            end_sessions(server)
            connection.execute("SELECT 1")
        return 0

    with opened(in_database) as log:
        write(log, event(1))
        with monkeypatch.context() as patched:
            patched.setattr(PostgresLog, "_append", refused)
            with pytest.raises(LogWriteError, match="nothing of this happened"):
                write(log, event(2))
    assert len(epochs) == 3
    assert seqs(in_database) == [1]


def test_who_is_the_owner_again_knows_what_others_did(server: Server, in_database: InDatabase, impatient: None) -> None:
    """Also if it was asked nothing meanwhile, and so nothing of its own was refused."""
    url, name = in_database
    with Decider.open(url, name=name, classes=2, learner=onebit.UniformGuess()) as desk:
        desk.guess({"x": 1.0})
        taken: list[Decider] = []

        def takes_over() -> bool:
            with suppress(OwnedError):
                taken.append(Decider.open(url, name=name))
            return bool(taken)

        with desk._log._access:  # its heart must not be first
            end_sessions(server)
            until(takes_over)
        with taken[0] as other:
            ticket = other.guess({"x": 2.0})
            for look in (desk.open_tickets, desk.columns, desk.by_class, desk.learning_curve):
                with pytest.raises(OwnedError):  # and no answer from memory
                    look()
            until(lambda: isinstance(desk.refusal, OwnedError))
        until(lambda: desk.refusal is None)
        assert desk.status().guesses == 2
        assert desk.tell(ticket, True), "a ticket of another owner"
        assert desk.verify()


def test_the_database_refuses_what_a_former_owner_sends(server: Server, in_database: InDatabase) -> None:
    with opened(in_database) as log, Database(server.url).connect() as connection:
        write(log, event(1))
        lines = [(2, 2.0, "opened", None, "{}", None, None, b"checksum")]
        log._epoch -= 1  # as if another had taken over
        assert log._append(connection, lines) == 0
        log._epoch += 1
        assert log._append(connection, [(3, *lines[0][1:])]) == 0, "an event between is missing"
        log._epoch -= 1
        with pytest.raises(LogWriteError, match="snapshot cannot be written"):
            log.save_snapshot(Snapshot(1, b""))
    assert seqs(in_database) == [1]


def test_a_session_that_says_nothing_loses_the_lock(in_database: InDatabase, impatient: None) -> None:
    """So does a machine that stands still, or is cut off: whatever it says later is said to nobody."""
    with opened(in_database) as log:
        write(log, event(1))
        with log._access:  # its heart cannot beat
            with pytest.raises(OwnedError):
                PostgresLog(*in_database)
            taken: list[PostgresLog] = []

            def takes_over() -> bool:
                with suppress(OwnedError):
                    taken.append(PostgresLog(*in_database))
                return bool(taken)

            assert 0.5 < until(takes_over) < 5.0
        write(taken[0], event(2))
        with pytest.raises(LogWriteError, match=r"nothing of this happened"):
            write(log, event(2))
        taken[0].close()
    assert seqs(in_database) == [1, 2]


def test_an_owner_that_says_nothing_for_long_stays_the_owner(in_database: InDatabase, impatient: None) -> None:
    with opened(in_database) as log:
        time.sleep(1.5)
        assert log._epoch == 1
        write(log, event(1))
        assert log._epoch == 1


@pytest.mark.slow  # test_postgres_faults.py cuts one in the fast run
def test_a_network_that_swallows_everything(server: Server, in_database: InDatabase, impatient: None) -> None:
    """The owner notices within its patience; a standby takes over; what the owner sent is never written."""
    _, name = in_database
    with Relay(server.port) as relay:
        far = server.url.replace(str(server.port), str(relay.port))
        desk = Decider.open(far, name=name, classes=2, learner=onebit.UniformGuess())
        ticket = desk.guess({"x": 1.0}, key="first")
        with desk._log._access:  # its heart must not notice first
            relay.swallow()
            began = time.monotonic()
            with pytest.raises(LogUnsureError, match="it is not known yet whether this was written"):
                desk.tell(ticket, True)
        assert time.monotonic() - began < 12.0
        with pytest.raises(UnreachableError, match="cannot be reached"):
            desk.status()
        taken: list[Decider] = []

        def takes_over() -> bool:
            with suppress(OwnedError):
                taken.append(Decider.open(server.url, name=name))
            return bool(taken)

        until(takes_over)
        with taken[0] as standby:
            assert standby.guess({"x": 1.0}, key="first") == ticket
            relay.mend()  # what was kept back arrives now
            until(lambda: isinstance(desk.refusal, OwnedError))
            with pytest.raises(OwnedError, match="is open in this process"):
                desk.tell(ticket, True)
            assert standby.status().open == 1
            assert standby.tell(ticket, False)
        until(lambda: desk.refusal is None)  # its heart tries again
        with suppress(LogWriteError):  # the first to notice that others have written
            desk.guess({"x": 2.0})
        with pytest.raises(ValueError, match="was told False before"):
            desk.tell(ticket, True)
        assert desk.verify()
        desk.close()


def test_a_database_that_is_gone_for_a_while(server: Server, in_database: InDatabase, impatient: None) -> None:
    _, name = in_database
    with Relay(server.port) as relay:
        far = server.url.replace(str(server.port), str(relay.port))
        with Decider.open(far, name=name, classes=2, learner=onebit.UniformGuess()) as desk:
            ticket = desk.guess({"x": 1.0})
            relay.cut()
            with pytest.raises(LogWriteError):
                desk.tell(ticket, True)
            with pytest.raises(LogError, match="cannot be reached"):
                desk.tell(ticket, True)
            relay.mend()
            until(lambda: desk.refusal is None)
            assert desk.tell(ticket, True)
            assert desk.status().right == 1
            assert desk.verify()


def test_who_is_closed_stays_closed(in_database: InDatabase, impatient: None) -> None:
    with opened(in_database) as log:
        write(log, event(1))
    for late in (log.about, log._regain, lambda: log._select("seq", "snapshots", "FALSE")):
        with pytest.raises(LogError, match="is closed"):
            late()
    PostgresLog(*in_database).close()


# What is refused.


def test_names_and_places(server: Server) -> None:
    for name in ("", "a\nb", "a" * 201, 7):
        with pytest.raises(ValueError, match="name must be a text"):
            Decider.open(server.url, name=name, classes=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="say which"):
        Decider.open(server.url, classes=2)
    with pytest.raises(ValueError, match="leave it out"):
        Decider.open("somewhere.onebit", name="a", classes=2)
    with pytest.raises(LogError, match="there is no decider"):
        Decider.open(server.url, name="nobody")


def test_texts_that_a_database_cannot_keep(in_database: InDatabase) -> None:
    url, name = in_database
    with Decider.open(url, name=name, classes=["a", "b\0"], learner=onebit.UniformGuess()) as desk:
        ticket = desk.guess({"x\0": "\0", "ü": "\U0001f600"}, key="ü")
        with pytest.raises(ValueError, match="NUL"):
            desk.guess({"x": 1.0}, key="a\0")
        with pytest.raises(ValueError, match="NUL"):
            desk.tell("a\0", True)
        with pytest.raises(ValueError, match="surrogates"):
            desk.guess({"x": 1.0}, key="\ud800")
        assert desk.tell(ticket, True)
    with Decider.open(url, name=name) as desk:
        assert desk.guess({"x": 1.0}, key="ü") == ticket
        assert desk.verify()


def test_a_password_is_never_said(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for url in (
        "postgresql://me:hunter2@127.0.0.1:1/x",
        "postgresql://me:hunter2%@127.0.0.1/x",
        "postgresql://me:hunter2@127.0.0.1/x?port=many&password=hunter2",
        "postgresql://127.0.0.1:1/x?password=hunter2",
        "postgresql://me:at@hunter2@127.0.0.1/x",
        "postgresql://me:at@x:hunter2@127.0.0.1/x",
        "postgresql://me:1/hunter2@127.0.0.1/x",
        "postgresql://127.0.0.1:hunter2/x",
        server.url.replace("onebit@", "nobody:hunter2@"),
    ):
        with pytest.raises((LogError, ValueError)) as caught:
            Decider.open(url, name="a", classes=2)
        told += words_of(caught.value)
    url = server.url.replace("onebit@", "onebit:hunter2@")
    with Decider.open(url, name="secret", classes=2, learner=onebit.UniformGuess()) as desk:
        told += [repr(desk.status()), repr(desk), repr(desk._log)]
        with pytest.raises(LogError) as caught:
            Decider.open(url, name="secret")
        told.append(str(caught.value))
    with pytest.raises(LogError) as caught:
        Decider.open(url, name="secret", classes=3)
    told.append(str(caught.value))
    for url in ("postgresql://me:hunter2@host/x", "postgresql://host/x?password=hunter2"):
        with pytest.raises(ValueError, match="--log must have no password") as refused:
            serve(tmp_path, port=0, rate=0.0, log=url)
        told.append(str(refused.value))
    monkeypatch.setenv(_LOG_VARIABLE, "mysql://me:hunter2@host/x")
    with pytest.raises(ValueError, match="must be the URL") as refused:
        serve(tmp_path, port=0, rate=0.0)
    told.append(str(refused.value))
    assert len(told) > 10
    assert [each for each in told if "hunter2" in each] == []


def words_of(error: BaseException | None) -> list[str]:
    """Return all that a traceback would say of an exception."""
    if error is None:
        return []
    return [str(error), *words_of(error.__cause__ or (None if error.__suppress_context__ else error.__context__))]


def test_a_newer_format_is_refused(in_database: InDatabase) -> None:
    with opened(in_database):
        pass
    with psycopg.connect(in_database[0]) as connection:
        connection.execute("UPDATE onebit.format SET version = 99")
    try:
        with pytest.raises(LogError, match="update onebit"):
            PostgresLog(*in_database)
    finally:
        with psycopg.connect(in_database[0]) as connection:
            connection.execute(f"UPDATE onebit.format SET version = {EventLog.FORMAT_VERSION}")


def test_an_event_that_is_missing_at_the_end_is_noticed(in_database: InDatabase) -> None:
    with opened(in_database) as log:
        write(log, event(1), event(2))
    with psycopg.connect(in_database[0]) as connection:
        connection.execute("DELETE FROM onebit.events WHERE seq = 2 AND decider = %s", [log._id])
    with pytest.raises(LogError, match="event 2 is missing"):
        PostgresLog(*in_database)


def test_many_begin_at_once(server: Server) -> None:
    """Tables are made once, and one of many becomes the owner."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE anew_{os.getpid()}")
    url = server.url.removesuffix("postgres") + f"anew_{os.getpid()}"
    got: list[PostgresLog | None] = []

    def begin() -> None:
        try:
            got.append(PostgresLog(url, "a", {"began": 1.0}))
        except OwnedError:
            got.append(None)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    owners = [each for each in got if each is not None]
    assert (len(got), len(owners)) == (6, 1)
    assert owners[0].about() == {"began": 1.0}
    owners[0].close()


def test_it_is_said_where_there_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postgres_server.binaries", lambda: None)
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no PostgreSQL server"):
        require_server()
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="no PostgreSQL server"):
        require_server()


# Services.

LIGHT = {"classes": ["a", "b"], "learner": "UniformGuess"}
SHOP = "/v1/shop"


def test_services_share_a_database(
    server: Server, tmp_path: Path, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("starlette")
    from served import Served

    monkeypatch.setattr("onebit.service.workers._LOOK_SECONDS", 0.05)
    # A service has a session for each decider of its database, so that those of other tests could be too many.
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE services")
    url, name = server.url.rpartition("/")[0] + "/services", "shop/desk"
    desk = f"/v1/{name}"
    with Served(tmp_path / "b", log=url) as standby:
        with Served(tmp_path / "a", log=url) as owner:
            assert owner.ask("PUT", desk, LIGHT).status == 201
            ticket = owner.ask("POST", f"{desk}/guess", {"record": {"x": 1.0}, "key": "k"}).json
            reply = standby.ask("POST", f"{desk}/guess", {"record": {"x": 1.0}, "key": "k"})
            until(lambda: standby.ask("GET", f"{desk}/status").json.get("error") == "OwnedError")
            reply = standby.ask("POST", f"{desk}/guess", {"record": {"x": 1.0}, "key": "k"})
            assert (reply.status, reply.headers["retry-after"]) == (503, "2")
            assert "is open in this process on" in reply.json["detail"]
            assert standby.ask("PUT", desk, LIGHT).json["error"] == "OwnedError"
            assert name in standby.ask("GET", "/v1").json["deciders"]
            assert name not in standby.ask("GET", "/v1").json["open_here"]
            assert name in owner.ask("GET", "/v1").json["open_here"]
            until(lambda: standby.ask("GET", "/readyz").status == 200)
            assert standby.ask("GET", f"{SHOP}/nobody/status").status == 404
            assert b"onebit_decider_up" in owner.ask("GET", "/metrics").body
        until(lambda: standby.ask("POST", f"{desk}/guess", {"record": {"x": 2.0}, "key": "k"}).status == 200)
        assert standby.ask("POST", f"{desk}/guess", {"record": {"x": 2.0}, "key": "k"}).json == ticket
        assert standby.ask("POST", f"{desk}/tell", {"id": ticket["id"], "correct": True}).json == {"news": True}
        assert standby.ask("GET", f"{desk}/status").json["guesses"] == 1


def test_a_service_whose_database_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("starlette")
    from onebit.service.gate import Problem
    from served import Served

    with Served(tmp_path, log="postgresql://me:hunter2@127.0.0.1:1/x") as served:
        replies = [served.ask("GET", path) for path in ("/readyz", f"{SHOP}/desk/status")]
        replies.append(served.ask("PUT", f"{SHOP}/desk", LIGHT))
        assert served.ask("GET", "/healthz").status == 200
    assert [reply.status for reply in replies] == [503] * 3
    assert all("retry-after" in reply.headers for reply in replies)
    assert "127.0.0.1" not in replies[1].json["detail"]
    assert "cannot be reached" in caplog.text
    assert "hunter2" not in caplog.text + repr(replies)
    assert Problem.of(LogUnsureError("?")).status == 504, "a client sends it again only where that cannot count twice"
