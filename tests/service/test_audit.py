"""The audit log of a service: who did what, in files that stay small, whatever happens to the disk."""

import json
import os
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from onebit.cli.serve import command as serve
from onebit.service.access import AuditLog, Tokens
from served import DESK, LIGHT, Served


def audited(folder: Path, file: str = "audit.jsonl") -> list[Any]:
    return [json.loads(line) for line in (folder / file).read_bytes().splitlines()]


def test_who_did_what_is_noted(tmp_path: Path) -> None:
    boss, player = (
        f"Bearer {Tokens(tmp_path).add(*who, ['*'])}" for who in (("boss", ["admin"]), ("player", ["play"]))
    )
    with Served(tmp_path) as served:
        served.ask("PUT", DESK, LIGHT, authorization=boss)
        ticket = served.ask("POST", f"{DESK}/guess", {"record": {"x": "a secret"}}, authorization=player).json
        served.ask("POST", f"{DESK}/tell", {"id": ticket["id"], "correct": True}, authorization=player)
        served.ask("POST", f"{DESK}/tell", {"id": "none", "correct": True}, authorization=player)
        served.ask("POST", f"{DESK}/classes", {"label": "d"}, authorization=player)
        served.ask("GET", f"{DESK}/status", authorization=boss)
        served.ask("GET", f"{DESK}/status", authorization=player)
        served.ask("GET", f"{DESK}/status", authorization="Bearer wrong")
        served.ask("POST", "/v1/../etc/passwd", {}, authorization="Bearer wrong")
        served.ask("GET", "/healthz")
    found = audited(tmp_path)
    assert [(each["token"], each["verb"], each["decider"], each["status"]) for each in found] == [
        ("boss", "create", "shop/routing", 201),
        ("player", "guess", "shop/routing", 200),
        ("player", "tell", "shop/routing", 200),
        ("player", "tell", "shop/routing", 404),
        ("player", "classes", "shop/routing", 403),
        ("player", "status", "shop/routing", 403),
        (None, "status", "shop/routing", 401),
        (None, "other", None, 401),
    ]
    assert {each["address"] for each in found} == {"127.0.0.1"}
    assert all(datetime.fromisoformat(each["time"]).tzinfo for each in found)
    assert b"secret" not in (tmp_path / "audit.jsonl").read_bytes(), "records never are in it"
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o077 == 0


def test_the_same_again_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of full load must not push out what an admin did before."""
    audit = AuditLog(tmp_path)
    for number in range(10_000):
        audit.note("app", ("guess", "tell")[number % 2], DESK, 200, "192.0.2.7")
    audit.note("app", "guess", DESK, 503, "192.0.2.7")
    audit.note("boss", "settings", DESK, 200, "192.0.2.7")
    audit._write()

    def found() -> list[Any]:
        return [(each["verb"], each["status"], each["requests"]) for each in audited(tmp_path)]

    soon, later = [("guess", 503, 1), ("settings", 200, 1)], [("guess", 200, 5000), ("tell", 200, 5000)]
    assert found() == soon, "what was taken all the time waits for a minute"
    now = time.time()
    monkeypatch.setattr("onebit.service.access.time.time", lambda: now + 60.0)
    audit._write()
    assert found() == soon + later
    audit.note("app", "guess", DESK, 200, "192.0.2.7")
    audit._stop.set()
    audit._write()
    assert found() == [*soon, *later, ("guess", 200, 1)], "and no longer than until the service ends"


def test_the_audit_log_can_be_switched_off(tmp_path: Path) -> None:
    with Served(tmp_path, audit=False) as served:
        assert served.ask("PUT", DESK, LIGHT).status == 201
    assert not (tmp_path / "audit.jsonl").exists()


def test_the_audit_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.access._LARGEST_FILE", 1_000)
    monkeypatch.setattr("onebit.service.access._N_FILES", 3)
    audit = AuditLog(tmp_path)
    for number in range(100):
        audit.note(f"t{number}", "correct", DESK, 200, "127.0.0.1")
        audit._write()
    files = ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)
    assert all((tmp_path / file).stat().st_size <= 1_000 for file in files)
    kept = [each["token"] for file in files for each in audited(tmp_path, file)]
    assert kept == [f"t{number}" for number in range(100 - len(kept), 100)], "the latest, in order"


def test_an_audit_log_that_cannot_be_written_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("onebit.service.access._MOST_WAITING", 3)
    write, audit = os.write, AuditLog(tmp_path)

    def full(opened: int, content: bytes) -> int:
        if len(content) < 60:
            raise OSError(28, "No space left on device")
        return write(opened, content[:50])  # half a line

    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        for number in range(6):
            audit.note(f"t{number}", "correct", DESK, 200, "")
            audit._write()
    audit._write()
    found = audited(tmp_path)
    assert [each.get("token") for each in found] == ["t0", "t1", "t2", "t3", None]
    assert found[-1]["requests"] == 2
    assert caplog.text.count("cannot be written") == 1


def test_names_that_are_made_up_do_not_fill_the_audit_log(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path)
    for turn in range(2):
        for i in range(1_000):
            audit.note("app", "guess", f"/v1/other/d{turn}-{i}/guess", 403, "192.0.2.7")
        audit.note("admin", "settings", "/v1/shop/routing/settings", 200, "192.0.2.8")
        audit._write()
    found = audited(tmp_path)
    assert sum(each["requests"] for each in found) == 2_002
    assert [each["decider"] for each in found].count("shop/routing") == 2
    assert [each["decider"] for each in found].count(None) == 2
    assert len(found) == 14


def test_a_service_without_room_for_its_audit_log_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").mkdir()
    with pytest.raises(OSError, match="serve with --no-audit"):
        AuditLog(tmp_path)
    with pytest.raises(OSError, match="serve with --no-audit"):
        serve(tmp_path, port=0, rate=0.0)


def test_the_name_of_an_expired_token_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = Tokens(tmp_path).add("short", ["admin"], ["*"], "30m")
    now = time.time() + 1801
    monkeypatch.setattr("onebit.service.access.time.time", lambda: now)
    with Served(tmp_path) as served:
        assert served.ask("GET", "/v1", authorization=f"Bearer {token}").status == 401
    assert [each["token"] for each in audited(tmp_path)] == ["short"]
