"""What goes wrong in a year: Ctrl-C, a full disk, damaged pages. All of it is noticed, and nothing of it stays."""

import os
import signal
import sqlite3
import sys
import threading
import time
import warnings
from contextlib import closing
from linecache import getline
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live_places import begun
from onebit.decider.decider import Decider
from onebit.decider.replay import _same_state
from onebit.decider.sqlite import SQLiteLog
from onebit.decider.tickets import LogError, LogWriteError, LostJournalWarning


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "desk.onebit"


def play(desk: Decider, n: int, start: int = 0) -> list[Any]:
    tickets = [desk.guess({"x": float(i % 7), "word": "uvw"[i % 3]}) for i in range(start, start + n)]
    for i, ticket in enumerate(tickets):
        desk.tell(ticket, i % 2 == 0)
    return tickets


class Interrupted:
    """Something that is used as before, but for one Ctrl-C which comes after a call whose first argument begins so."""

    def __init__(self, used: Any, after: str) -> None:
        self.used, self.after = used, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.used, name)

    def execute(self, statement: str, *values: Any) -> Any:
        result = self.used.execute(statement, *values)
        self.interrupt_after(statement)
        return result

    def executemany(self, statement: str, lines: Any) -> Any:
        result = self.used.executemany(statement, lines)
        self.interrupt_after(statement)
        return result

    def __enter__(self) -> Any:
        return self.used.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.used.__exit__(*error)
        self.interrupt_after("exit")

    def interrupt_after(self, what: str) -> None:
        if self.after and what.startswith(self.after):
            self.after = ""
            raise KeyboardInterrupt


@pytest.mark.parametrize(("moment", "n_guesses"), [("INSERT", 1), ("BEGIN", 65), ("INSERT", 65), ("COMMIT", 65)])
def test_ctrl_c_while_it_writes(path: Path, moment: str, n_guesses: int) -> None:
    """Few events are one statement, which is a transaction by itself; many are several in one."""
    with begun(path) as desk:
        play(desk, 3)
        log: Any = desk._log
        log._connection = Interrupted(log._connection, moment)
        with pytest.raises(KeyboardInterrupt):
            desk.guess_many([{"x": 1.0}] * n_guesses)
        is_there = n_guesses == 1 or moment == "COMMIT"
        assert desk.status().guesses == 3 + n_guesses * is_there
        desk.tell(desk.guess({"x": 1.0}), True)
        assert desk.status().guesses == 4 + n_guesses * is_there
        assert desk.verify()


def test_what_is_written_is_not_said_to_be_lost(path: Path) -> None:
    """Another thread waits for the same batch when Ctrl-C comes just after it was written."""
    with begun(path) as desk:
        log: Any = desk._log
        log._connection = Interrupted(log._connection, "INSERT")
        with pytest.raises(KeyboardInterrupt), desk.batch() as batches:
            desk.guess({"x": 1.0})
        assert [batch.is_done and batch.error is None for batch in batches] == [True]


def test_ctrl_c_before_anything_is_written_leaves_no_gap(path: Path) -> None:
    with begun(path) as desk:
        play(desk, 3)
        log: Any = desk._log
        with pytest.raises(LogWriteError), desk.batch() as batches:  # noqa: PT012 -- it is raised at the end
            desk.guess({"x": 1.0})
            log._queueing = Interrupted(log._queueing, "exit")
            with pytest.raises(KeyboardInterrupt):
                log.wait(batches[-1])
        play(desk, 3)
        assert desk.verify()
    with Decider.open(path) as desk:
        assert desk.verify()


class CtrlC:
    """Ctrl-C at the n-th line of what decides and writes."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        if event == "call":
            return self if Path(frame.f_code.co_filename).stem in ("decider", "log", "state", "contextlib") else None
        # Leaving a block is a line too, at which no signal comes.
        if event == "line" and not getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def is_free(lock: Any) -> bool:
    """Return whether another thread gets a lock."""
    got: list[bool] = []

    def take() -> None:
        got.append(lock.acquire(timeout=1.0))
        if got[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return got[0]


def ctrl_c_at(path: Path, step: int) -> None:
    is_news, moment = True, 1
    with begun(path) as desk:
        play(desk, 2)
        tracing = sys.gettrace()
        while is_news:
            desk.tell(desk.guess({"x": 1.0}), True)
            before, interrupt = desk.status(), CtrlC(moment)
            sys.settrace(interrupt)
            try:
                desk.tell(desk.guess({"x": 2.0}, key=f"k{moment}"), False)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(tracing)
            assert is_free(desk._lock), "other threads would wait for ever"
            is_news, moment = interrupt.left <= 0, moment + step
            ticket = desk.guess({"x": 2.0}, key=f"k{moment - step}")
            desk.tell(ticket, False)
            after = desk.status()
            assert (after.guesses, after.wrong) == (before.guesses + 1, before.wrong + 1), interrupt.left
        assert moment > 100
        assert desk.verify()
        assert desk.status().differences == 0
    with Decider.open(path) as desk:
        assert desk.verify()


@pytest.mark.filterwarnings("error")
def test_ctrl_c_at_some_lines(path: Path) -> None:
    ctrl_c_at(path, step=5)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_ctrl_c_at_every_line(path: Path) -> None:
    ctrl_c_at(path, step=1)


def no_room(*_: Any) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_classes_in_an_array(path: Path) -> None:
    for _ in range(2):
        with begun(path, classes=np.array(["a", "b"])) as desk:
            assert desk.classes == ["a", "b"]


def test_a_label_that_is_named_twice_is_no_likelier(path: Path) -> None:
    with begun(path, exploration_floor=1.0) as desk:
        tickets = [desk.guess({"x": 1.0}, among=["a", "a", "b"]) for _ in range(200)]
        assert {ticket.propensity for ticket in tickets} == {0.5}
        assert 70 < sum(ticket.label == "a" for ticket in tickets) < 130
        for wrong in (3, (label for label in "ab")):
            with pytest.raises(ValueError, match="among must be a list"):
                desk.guess({"x": 1.0}, among=wrong)


def test_a_correction_that_cannot_be_written_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(path) as desk:
        (ticket,) = play(desk, 1)
        with monkeypatch.context() as patched:
            patched.setattr(SQLiteLog, "_commit", no_room)
            with pytest.raises(LogWriteError, match="nothing of this happened"):
                desk.correct_answer(ticket, False)
        assert not desk.tell(ticket, True), "no news: that is what it was told"
        assert desk.verify()


def test_a_snapshot_that_cannot_be_written_is_nobodys_fault(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer was written: the call that came when a snapshot was due must not say that nothing happened."""
    monkeypatch.setattr("onebit.decider.state._EVENTS_PER_SNAPSHOT", 5)
    monkeypatch.setattr("onebit.decider.state._WORTH_A_SNAPSHOT", 1)
    monkeypatch.setattr(SQLiteLog, "_insert", no_room)
    with begun(path) as desk:
        play(desk, 10)
        with pytest.raises(LogWriteError, match="events are safe"):
            desk.snapshot()
    monkeypatch.undo()
    with Decider.open(path) as desk:
        assert desk.status().right + desk.status().wrong == 10
        assert desk.verify()


def test_a_batch_that_is_lost_is_told_at_the_latest_when_it_closes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = begun(path, durability="batch")
    desk._log.flush()
    monkeypatch.setattr(SQLiteLog, "_commit", no_room)
    desk.guess({"x": 1.0})
    while desk._log.unreported is None:
        time.sleep(0.001)
    with pytest.raises(LogWriteError, match="nothing of this happened"):
        desk.close()


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)
        connection.commit()


def test_damaged_settings_are_noticed(path: Path) -> None:
    begun(path, exploration_floor=0.02).close()
    Decider.open(path).close()
    damage(path, "UPDATE about SET value = replace(value, '\"b\"', '\"d\"') WHERE name = 'settings'")
    with pytest.raises(LogError, match="settings are damaged"):
        Decider.open(path)
    damage(path, "UPDATE about SET value = '[' WHERE name = 'settings'")
    with pytest.raises(LogError, match="settings cannot be read"):
        Decider.open(path)


def test_a_correction_that_is_not_found_is_noticed(path: Path) -> None:
    """The index that finds corrections lost one: without it the learner would be another."""
    with begun(path) as desk:
        desk.withdraw(play(desk, 5)[2])
    for is_now, becomes in (("corrected", "x"), ("x", "corrected")):
        renamed = f"replace(sql, '= ''{is_now}', '= ''{becomes}')"
        damage(path, f"UPDATE sqlite_master SET sql = {renamed} WHERE name = 'events_corrected'")
        damage(path, "REINDEX events_corrected" if becomes == "x" else "SELECT 1")
    with pytest.raises(LogError, match="corrections are looked up"):
        Decider.open(path)


def test_a_log_that_ends_before_its_snapshot_is_noticed(path: Path) -> None:
    with begun(path) as desk:
        play(desk, 5)
        desk.snapshot()
    damage(path, "DELETE FROM events WHERE seq > 8")
    path.with_name(path.name + ".last").unlink()
    with pytest.raises(LogError, match="the log ends with event 8, and event 11 was known"):
        Decider.open(path)


def test_a_snapshot_on_damaged_pages_is_passed_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(path) as desk:
        play(desk, 5)
        desk.snapshot()
    fetch = SQLiteLog._fetch

    def damaged(self: Any, statement: str, values: Any = ()) -> Any:
        if statement.startswith("SELECT content"):
            raise sqlite3.DatabaseError("database disk image is malformed")
        return fetch(self, statement, values)

    monkeypatch.setattr(SQLiteLog, "_fetch", damaged)
    with Decider.open(path) as desk:
        assert desk.verify()


def test_a_lost_key_is_noticed_by_verify(path: Path) -> None:
    with begun(path) as desk:
        desk.guess({"x": 1.0}, key="k")
    damage(path, "UPDATE sqlite_master SET sql = sql || ' AND key > ''z''' WHERE name = 'events_by_key'")
    damage(path, "REINDEX events_by_key")
    damage(path, "UPDATE sqlite_master SET sql = replace(sql, ' AND key > ''z''', '') WHERE name = 'events_by_key'")
    with Decider.open(path) as desk, pytest.raises(LogError, match="is damaged"):
        desk.verify()


def test_forgetting_nothing_changes_nothing(path: Path) -> None:
    with begun(path) as desk:
        (ticket,) = play(desk, 1)
        assert desk.forget(where={"word": "nobody's"}) == 0
        for slip in (ticket, ticket.id):
            with pytest.raises(ValueError, match="tickets must be a list"):
                desk.forget(slip)
        assert desk.verify()
        desk.withdraw(ticket)


def test_what_another_program_keeps_in_the_journal_is_not_called_erased(path: Path) -> None:
    with begun(path) as desk, closing(sqlite3.connect(path)) as reader:
        (ticket,) = play(desk, 1)
        log: Any = desk._log
        log._connection.execute("PRAGMA busy_timeout = 1")
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM events").fetchone() == (3,)
        with pytest.raises(LogWriteError, match="another program reads it"):
            desk.forget([ticket])
        reader.rollback()
        assert desk.forget([ticket]) == 0, "its events are gone; now they are written over, too"


def test_a_fork_does_not_wait_for_a_thread_that_is_not_there(path: Path) -> None:
    is_held, may_go = threading.Event(), threading.Event()
    with begun(path) as desk:

        def hold() -> None:
            with desk._lock:
                is_held.set()
                may_go.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        is_held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            try:
                desk.close()
                desk.guess({"x": 1.0})
            except ValueError:
                os._exit(0)
            os._exit(1)
        ended = os.waitpid(child, 0)[1]
        may_go.set()
        holder.join()
        assert ended == 0
        play(desk, 2)
        assert desk.verify()


def test_records_of_which_one_is_refused_leave_no_tickets(path: Path) -> None:
    with begun(path, silence="wrong", max_open=3) as desk:
        with pytest.raises(ValueError, match="inf"):
            desk.guess_many([{"x": 1.0}, {"x": 2.0}, {"x": np.inf}])
        status = desk.status()
        assert (status.open, status.silent, status.wrong) == (0, 2, 0)
        assert desk.verify()


def test_a_key_that_waits_in_a_long_line_is_known(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.decider.state._RECENT", 3)
    with begun(path) as desk:
        with desk.batch():
            tickets = [desk.guess({"x": 1.0}, key=f"k{i}") for i in (*range(6), 0)]
        assert tickets[0] == tickets[6]
        assert desk.status().guesses == 6


def test_a_file_that_is_removed_or_replaced_is_noticed(path: Path) -> None:
    desk = begun(path)
    play(desk, 2)
    path.rename(path.with_name("moved"))
    with pytest.raises(LogWriteError, match="removed or replaced"):
        desk.guess({"x": 1.0})
    path.write_bytes(b"")
    with pytest.raises(LogWriteError, match="removed or replaced"):
        desk.guess({"x": 1.0})
    path.unlink()
    path.with_name("moved").rename(path)
    play(desk, 1)
    desk.close()
    with Decider.open(path) as desk:
        assert desk.status().guesses == 3


def test_a_lost_journal_is_noticed(path: Path) -> None:
    """As after kill -9, when somebody tidies up, also what says how far the log goes."""
    with begun(path) as desk:
        play(desk, 2)
        kept = {name: path.with_name(path.name + name).read_bytes() for name in ("", "-wal", ".owner", ".last")}
    mark = path.with_name(path.name + ".last")
    mark.unlink()
    left = path.with_name(path.name + ".owner")
    left.write_bytes(kept[".owner"])
    path.write_bytes(kept[""])
    with (
        pytest.warns(LostJournalWarning, match="may be lost"),
        pytest.raises(LogError, match="there is no decider in it"),
    ):
        Decider.open(path)
    left.write_bytes(kept[".owner"])
    mark.write_bytes(kept[".last"])
    path.with_name(path.name + "-wal").write_bytes(kept["-wal"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Decider.open(path) as desk:
            assert desk.status().guesses == 2


@pytest.mark.parametrize("call", ["guess", "tell", "shadow"])
def test_a_full_disk_takes_one_replay(path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """However many calls are refused: what each of them changed is undone in memory."""
    n_read, events = 0, SQLiteLog.events

    def counted(log: SQLiteLog, after: int = 0) -> Any:
        nonlocal n_read
        for event in events(log, after):
            n_read += 1
            yield event

    monkeypatch.setattr(SQLiteLog, "events", counted)
    with begun(path) as desk:
        play(desk, 50)
        ticket = desk.guess({"x": 1.0})
        calls: dict[str, Any] = {
            "guess": lambda: desk.guess({"x": 2.0}),
            "tell": lambda: desk.tell(ticket, True),
            "shadow": lambda: desk.shadow({"x": 2.0, "new": "word"}, "a", True, propensity=0.5),
        }
        with monkeypatch.context() as patched:
            patched.setattr(SQLiteLog, "_commit", no_room)
            for _ in range(10):
                with pytest.raises(LogWriteError, match="nothing of this happened"):
                    calls[call]()
            assert n_read <= 102, "each event was read once"
            assert desk.status().guesses == 51
        assert n_read <= 102
        calls[call]()
        play(desk, 5)
        with monkeypatch.context() as patched:
            patched.setattr(SQLiteLog, "_commit", no_room)
            for _ in range(3):
                with pytest.raises(LogWriteError):
                    desk.guess({"x": 2.0})
        desk.guess({"x": 2.0})
        assert n_read <= 102 + 20, "only what came since"
        desk.correct_answer(ticket, False) if call == "tell" else desk.compact()
        with monkeypatch.context() as patched:
            patched.setattr(SQLiteLog, "_commit", no_room)
            for _ in range(2):
                with pytest.raises(LogWriteError):
                    desk.guess({"x": 2.0})
        play(desk, 5)
        before = desk._state
        if call == "tell":
            assert desk.verify()
    with Decider.open(path) as desk:
        assert _same_state(desk._state, before)
