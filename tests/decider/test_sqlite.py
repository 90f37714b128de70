"""What was acknowledged is there, or its loss is told: damaged journals, old backups, and clocks that err."""

import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from in_process import onebit as onebit_command
from live_places import begun
from onebit.decider.decider import Decider
from onebit.decider.logged_rounds import read_decider
from onebit.decider.sqlite import _Mark, _MarkFile, _OwnerFile
from onebit.decider.tickets import Kind, LogError, LostEventsError, LostJournalWarning, OwnedError
from onebit.files import make_folder
from onebit.service.workers import WorkerPool


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "desk.onebit"


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def copied(path: Path, folder: Path, *suffixes: str) -> Path:
    """Return a copy of a decider's files as they are now, as after kill -9."""
    folder.mkdir()
    for suffix in suffixes:
        shutil.copy(beside(path, suffix), beside(folder / path.name, suffix))
    return folder / path.name


def cut(content: bytearray, chance: random.Random) -> bytes:
    return bytes(content[: chance.randrange(len(content))])


def flip(content: bytearray, chance: random.Random) -> bytes:
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def zero(content: bytearray, chance: random.Random) -> bytes:
    start = chance.randrange(len(content))
    content[start : start + 4096] = bytes(len(content[start : start + 4096]))
    return bytes(content)


def mix(content: bytearray, chance: random.Random) -> bytes:
    start = chance.randrange(len(content))
    content[start : start + 100] = chance.randbytes(100)
    return bytes(content)


def lose(_content: bytearray, _chance: random.Random) -> bytes:
    return b""


Damage = Callable[[bytearray, random.Random], bytes]


def damaged(path: Path, folder: Path, damage: Damage, chance: random.Random) -> Path:
    copy = copied(path, folder, "", "-wal", ".last")
    journal = beside(copy, "-wal")
    content = damage(bytearray(journal.read_bytes()), chance)
    journal.write_bytes(content)
    if not content:
        journal.unlink()
    return copy


@pytest.mark.parametrize("n_before", [0, 6], ids=["journal alone", "file and journal"])
def test_a_damaged_journal_loses_nothing_in_silence(path: Path, tmp_path: Path, n_before: int) -> None:
    """Whatever is done to it: all that was acknowledged is there, or opening says how much is not."""
    chance, n_refused = random.Random(n_before), 0
    with begun(path) as desk:
        for i in range(n_before):
            desk.guess({"x": float(i)})
    with begun(path) as desk:
        tickets = [desk.guess({"x": float(i)}, key=f"k{i}") for i in range(8)]
        last = desk.status().events
        for n, damage in enumerate([lose, *[cut, flip, zero, mix] * 6]):
            copy = damaged(path, tmp_path / str(n), damage, chance)
            before = {each.name: each.read_bytes() for each in copy.parent.glob("*[lt]")}
            said = ""
            try:
                with begun(copy) as other:
                    assert [other.guess({"x": float(i)}, key=f"k{i}") for i in range(8)] == tickets
                continue
            except LostEventsError as error:
                said = str(error)
            n_refused += 1
            assert str(copy) in said
            assert f"to {last})" in said or f"all {last} events" in said
            assert {each.name: each.read_bytes() for each in copy.parent.glob("*[lt]")} == before
    assert n_refused > 10


def test_a_loss_can_be_accepted(path: Path, tmp_path: Path) -> None:
    with begun(path) as desk:
        desk.guess({"x": 1.0}, key="k0")
    with begun(path) as desk:
        desk.guess({"x": 1.0}, key="k1")
        one, two = (copied(path, tmp_path / name, "", ".last") for name in ("one", "two"))
    with pytest.raises(LostEventsError, match=r"2 events \(3 to 4\) that were acknowledged.*accept_loss=True"):
        Decider.open(one)
    with Decider.open(one, accept_loss=True) as desk:
        assert desk.lost == {"acknowledged": 4, "found": 2}
        assert desk.guess({"x": 1.0}, key="k0").id.startswith("2-")
        desk.guess({"x": 1.0}, key="k1")
        assert [event.body["lost"] for event in desk.events(2) if event.kind == Kind.OPENED] == [desk.lost]
    with Decider.open(one) as desk:
        assert desk.lost is None
        assert desk.verify()
    with pytest.raises(LostEventsError):
        read_decider(str(two))
    for said in ("event 4 was acknowledged, and event 2 is the last", "nothing was lost"):
        done = onebit_command("accept-loss", str(two))
        assert done.returncode == 0
        assert said in done.stdout
    with pytest.raises(ValueError, match="accept_loss must be True or False"):
        Decider.open(two, accept_loss=1)  # type: ignore[arg-type]


def test_a_service_goes_on_with_a_file_whose_loss_was_accepted(tmp_path: Path) -> None:
    path = tmp_path / "shop" / "routing.onebit"
    path.parent.mkdir()
    begun(path).close()
    backup = path.read_bytes()
    begun(path).close()
    path.write_bytes(backup)
    desks = WorkerPool(tmp_path)
    try:
        desks.open_all()
        desk = desks.get("shop", "routing")
        desk.opened.wait()
        assert isinstance(desk.fault, LostEventsError)
        assert onebit_command("accept-loss", str(path)).returncode == 0
        assert not desks.create("shop", "routing", {"classes": ["a", "b", "c"]}), "it is no new one"
        assert desks.get("shop", "routing").open_decider().status().events == 3
    finally:
        desks.close()


def test_an_old_backup_is_a_loss(path: Path, tmp_path: Path) -> None:
    with begun(path) as desk:
        desk.guess({"x": 1.0})
    backup = path.read_bytes()
    with begun(path) as desk:
        desk.guess({"x": 2.0})
    newest = path.read_bytes()
    path.write_bytes(backup)
    with pytest.raises(LostEventsError, match="an old backup"):
        Decider.open(path)
    with Decider.open(copied(path, tmp_path / "alone", "")) as desk:  # without what says how far it went
        for i in range(5):
            desk.guess({"x": float(i)})
    path.write_bytes((tmp_path / "alone" / path.name).read_bytes())
    with pytest.raises(LostEventsError, match=r"event 4 and others .* went on elsewhere"):
        Decider.open(path)
    path.write_bytes(newest)
    Decider.open(path).close()


def test_a_file_that_is_gone_is_a_loss(path: Path) -> None:
    begun(path).close()
    path.unlink()
    for about in ({}, {"classes": 2}):
        with pytest.raises(LostEventsError, match="all 1 events"):
            Decider.open(path, **about)  # type: ignore[arg-type]
    with pytest.raises(LogError, match="there is no decider"):
        Decider.open(path, accept_loss=True)
    beside(path, ".last").unlink()
    begun(path).close()


def test_what_was_compacted_is_not_lost(path: Path) -> None:
    with begun(path) as desk:
        desk.forget([desk.guess({"x": 1.0})])
        desk.compact()
    with Decider.open(path) as desk:
        assert desk.status().guesses == 1


def test_a_mark_is_whole_or_none(tmp_path: Path) -> None:
    file = _MarkFile(tmp_path / "desk.onebit")
    assert file.read() is None
    for seq in (1, 2, 3):
        file.write(_Mark(seq, bytes([seq] * 8)))
    content = file.path.read_bytes()
    assert len(content) < 512, "a sector of a disk, which is written whole"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert _MarkFile(tmp_path / "desk.onebit").read() == (3, bytes([3] * 8))
    for end in range(len(content)):
        for damaged_ in (content[:end], content[:end] + bytes([content[end] ^ 1]) + content[end + 1 :]):
            file.path.write_bytes(damaged_)
            with pytest.raises(ValueError, match=r"."):
                _MarkFile(tmp_path / "desk.onebit").read()


def test_a_damaged_mark_is_told_and_made_anew(path: Path) -> None:
    begun(path).close()
    beside(path, ".last").write_bytes(b"\0" * 1024)
    with pytest.warns(LostJournalWarning, match="is damaged"):
        Decider.open(path).close()
    Decider.open(path).close()
    assert _MarkFile(path).read() is not None


def test_a_mark_that_cannot_be_written_refuses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(path) as desk:
        with monkeypatch.context() as patched:
            patched.setattr(_MarkFile, "write", lambda *_: os.stat("/nowhere"))
            desk.guess({"x": 1.0})
        before = _MarkFile(path).read()
        desk.guess({"x": 1.0})
        after = _MarkFile(path).read()
    assert (before and before.seq, after and after.seq) == (1, 3)


@pytest.mark.parametrize("damage", [cut, lose])
def test_a_loss_that_cannot_be_told_is_warned_of(path: Path, tmp_path: Path, damage: Damage) -> None:
    """After a kill, with the mark gone and the journal cut, empty or alone."""
    with begun(path) as desk:
        desk.guess({"x": 1.0})
        copy = copied(path, tmp_path / "one", "", "-wal", ".owner")
        alone = copied(path, tmp_path / "two", "-wal", ".owner")
    journal = beside(copy, "-wal")
    journal.write_bytes(damage(bytearray(journal.read_bytes()), random.Random(1)))
    for each in (copy, alone):
        with pytest.warns(LostJournalWarning, match=r"desk\.onebit\.last, which tells how far .*may be lost"):
            begun(each).close()


def test_a_mark_that_is_taken_away_is_made_anew(path: Path) -> None:
    with begun(path) as desk:
        beside(path, ".last").unlink()
        desk.guess({"x": 1.0})
        found = _MarkFile(path).read()
        assert found is not None
        assert found.seq == 2
        beside(path, ".last").write_bytes(b"")  # in its place: it is written on
        desk.guess({"x": 1.0})
        found = _MarkFile(path).read()
        assert found is not None
        assert found.seq == 3


def test_the_mark_of_the_last_owner_is_gone_on_from(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for the lock must not remember what the mark was before."""
    begun(path).close()
    with monkeypatch.context() as patched:

        def late(file: Path) -> _OwnerFile:
            patched.undo()
            with begun(path) as other:
                for _ in range(8):
                    other.guess({"x": 1.0})
            return _OwnerFile(file)

        patched.setattr("onebit.decider.sqlite._OwnerFile", late)
        with begun(path) as desk:
            found = _MarkFile(path).read()
            assert found is not None
            assert found.seq == desk.status().events


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_beside_the_file_keeps_nobody_waiting(path: Path) -> None:
    os.mkfifo(beside(path, ".last"))
    with pytest.raises(LogError, match=r"desk\.onebit\.last: cannot be read .*no plain file.*move it away"):
        begun(path)


def test_an_owner_removes_only_its_own_file(path: Path) -> None:
    with begun(path):
        beside(path, ".owner").unlink()
        other = begun(path)
    assert beside(path, ".owner").exists()
    with pytest.raises(OwnedError):
        begun(path)
    other.close()
    assert not beside(path, ".owner").exists()


# The clock.


class Clock:
    now = 1_794_960_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("wrong", [1_794_960_000_000.0, -1.0, float("nan"), float("inf"), None, "noon"])
def test_a_clock_that_errs_once_spoils_nothing(path: Path, wrong: Any) -> None:
    clock = Clock()
    with pytest.raises(ValueError, match="clock must return seconds since 1970"):
        begun(path, clock=lambda: wrong)
    assert not path.exists()
    with begun(path, clock=clock) as desk:
        ticket = desk.guess({"x": 1.0})
        right, clock.now = clock.now, wrong
        for call in (
            lambda: desk.guess({"x": 1.0}),
            lambda: desk.tell(ticket, True),
            lambda: desk.shadow({"x": 1.0}, "a", None),
            lambda: desk.add_class("d"),
        ):
            with pytest.raises(ValueError, match=r"clock must return seconds .* got .*Are they milliseconds"):
                call()
        clock.now = right
        assert desk.status().events == 2
        assert desk.tell(ticket, True)
        assert desk.verify()
    with pytest.raises(ValueError, match="clock must return"):
        Decider.open(path, clock=lambda: wrong)
    with Decider.open(path, clock=clock) as desk:
        assert desk.status().events == 4


# What lies beside the file, and who may read it.


@pytest.mark.parametrize("is_hard", [False, True])
@pytest.mark.parametrize("suffix", [".owner", ".last"])
def test_a_link_beside_the_file_leads_nowhere(path: Path, tmp_path: Path, suffix: str, is_hard: bool) -> None:
    victim = tmp_path / "victim"
    victim.write_text('{"keep": "this"}')
    (os.link if is_hard else os.symlink)(victim, beside(path, suffix))
    if suffix == ".last" and is_hard:  # it is read, and replaced, never written
        with pytest.warns(LostJournalWarning, match="is damaged"):
            begun(path).close()
    else:
        with pytest.raises(LogError, match=r"is a link: remove it|no file of a decider's|symbolic link.*move it away"):
            begun(path)
    assert victim.read_text() == '{"keep": "this"}'
    beside(path, suffix).unlink()
    begun(path).close()


def test_a_file_of_another_program_is_not_written_over(path: Path) -> None:
    other = beside(path, ".owner")
    other.write_text("a recipe")
    with pytest.raises(LogError, match="no file of a decider's; move it away"):
        begun(path)
    assert other.read_text() == "a recipe"


def modes(path: Path) -> dict[str, str]:
    return {each.name[len(path.name) :]: oct(each.stat().st_mode & 0o777) for each in path.parent.iterdir()}


def test_only_the_owner_reads_a_deciders_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, before = sqlite3.connect, os.umask(0)

    def connected(*given: Any, **options: Any) -> Any:
        assert modes(path)[""] == "0o600", "before SQLite opens it: who has it open then may read it for good"
        return connect(*given, **options)

    try:
        monkeypatch.setattr(sqlite3, "connect", connected)
        with begun(path) as desk:
            desk.guess({"x": 1.0})
            assert modes(path) == dict.fromkeys(["", "-shm", "-wal", ".last", ".owner"], "0o600")
        monkeypatch.undo()
        path.chmod(0o644)  # as an older onebit left it
        with Decider.open(path):
            assert set(modes(path).values()) == {"0o600"}
    finally:
        os.umask(before)


def test_a_link_to_a_decider_has_the_same_owner(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.onebit"
    begun(path).close()
    link.symlink_to(path)
    with Decider.open(path), pytest.raises(OwnedError):
        Decider.open(link)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["desk.onebit", "desk.onebit.last", "link.onebit"]


def test_new_folders_survive_a_loss_of_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("onebit.files._sync_folder", synced.append)
    for _ in range(2):
        make_folder(tmp_path / "one" / "two")
    assert sorted(synced) == [tmp_path, tmp_path / "one"]
    WorkerPool(tmp_path / "served").open("shop/routing", {"classes": 2}).close()
    assert {tmp_path, tmp_path / "served"} <= set(synced)


# What is read of it.


def test_verify_says_as_a_log_error_that_a_page_cannot_be_read(path: Path) -> None:
    class Broken:
        def __init__(self, used: Any) -> None:
            self.used = used

        def __getattr__(self, name: str) -> Any:
            return getattr(self.used, name)

        def execute(self, statement: str, *values: Any) -> Any:
            if statement.startswith("PRAGMA integrity_check"):
                raise sqlite3.DatabaseError("database disk image is malformed")
            return self.used.execute(statement, *values)

    with begun(path) as desk:
        log: Any = desk._log
        log._connection = Broken(log._connection)
        with pytest.raises(LogError, match=r"is damaged .*malformed"):
            desk.verify()


LOOKS: dict[str, Callable[[Decider], Any]] = {
    "open_tickets": lambda desk: desk.open_tickets(),
    "classes": lambda desk: desk.classes,
    "columns": lambda desk: desk.columns(),
    "by_class": lambda desk: desk.by_class(),
    "course": lambda desk: desk.learning_curve(),
    "kernel_weights": lambda desk: desk.kernel_weights(),
}


@pytest.mark.parametrize("look", LOOKS)
def test_what_is_another_processs_is_not_answered_from_memory(path: Path, look: str) -> None:
    with begun(path) as desk:
        desk.guess({"x": 1.0})
        path.rename(beside(path, ".away"))
        with pytest.raises(LogError, match="removed or replaced"):
            LOOKS[look](desk)
        beside(path, ".away").rename(path)
        LOOKS[look](desk)


def test_what_another_process_has_written_is_read(path: Path) -> None:
    """Its owner file was tidied away, and another process opened it."""
    with begun(path) as desk, desk.batch():
        ticket = desk.guess({"x": 1.0})
        desk._log.flush()
        beside(path, ".owner").unlink()
        with begun(path) as other:
            other.tell(ticket, True)
            new = other.guess({"x": 2.0})
        assert [each.id for each in desk.open_tickets()] == [new.id]


# What is erased.


# What is nested too deep.


def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    text, database = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("not a log")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE t (a)")
    before = {}
    for path in (text, database):
        path.chmod(0o644)
        before[path] = path.read_bytes(), oct(path.stat().st_mode)
        for classes in (None, 3):
            with pytest.raises(LogError, match=r"cannot be used as a log|is another program's SQLite file"):
                Decider.open(path, classes=classes)
    assert {path: (path.read_bytes(), oct(path.stat().st_mode)) for path in before} == before
    assert {path.name.removesuffix(".owner") for path in tmp_path.iterdir()} == {"notes.txt", "other.sqlite"}
