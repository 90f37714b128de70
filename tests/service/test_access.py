"""Tokens: a file that changes while the service runs, expiry, and changes at once."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from onebit.service.access import Tokens, _expiry, check_name
from served import DESK, LIGHT, Served, is_problem


def test_tokens_come_and_go_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.access._LOOK_AGAIN_SECONDS", -1.0)
    tokens = Tokens(tmp_path)
    assert tokens.caller(None) is not None
    token = Tokens(tmp_path).add("app", ["play"], ["shop"])
    assert tokens.caller(None) is None
    caller = tokens.caller(f"bearer {token}")
    assert caller is not None
    assert (caller.name, caller.all_roles) == ("app", ["play"])
    assert token not in (tmp_path / "tokens.json").read_text(encoding="utf-8")
    assert (tmp_path / "tokens.json").stat().st_mode & 0o077 == 0
    Tokens(tmp_path).remove("app")
    assert tokens.caller(f"bearer {token}") is None
    assert tokens.caller(None) is None, "it stays closed when the last one is gone"
    (tmp_path / "tokens.json").write_text("[{}]", encoding="utf-8")
    assert Tokens(tmp_path).caller(None) is None, "a broken file lets nobody in"


def test_tokens_that_could_not_be_read_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.access._LOOK_AGAIN_SECONDS", -1.0)
    token = Tokens(tmp_path).add("app", ["play"], ["shop"])

    def refuse(_tokens: Tokens) -> Any:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(Tokens, "stored", refuse)
        tokens = Tokens(tmp_path)
        assert tokens.caller(f"bearer {token}") is None
    assert tokens.caller(f"bearer {token}") is not None, "whose rights changed, and nothing else"


def test_a_file_of_tokens_means_that_tokens_are_required(tmp_path: Path) -> None:
    Tokens(tmp_path).add("app", ["admin"], ["*"])
    assert Tokens(tmp_path).remove("app") == 0
    assert Tokens(tmp_path).caller(None) is None, "it is empty"
    with Served(tmp_path) as served:
        assert is_problem(served.ask("PUT", DESK, LIGHT), 401)
        token = Tokens(tmp_path).add("new", ["admin"], ["*"])
        served.service.tokens._looked = 0.0
        assert served.ask("PUT", DESK, LIGHT, authorization=f"Bearer {token}").status == 201
        (tmp_path / "tokens.json").unlink()
        served.service.tokens._looked = 0.0
        assert is_problem(served.ask("GET", "/v1"), 401)
    with Served(tmp_path) as served:
        assert served.ask("GET", "/v1").status == 200, "who deletes the file means it"


def test_a_file_of_tokens_that_cannot_be_looked_at_lets_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> Any:
        raise PermissionError

    monkeypatch.setattr(Path, "stat", refuse)
    assert Tokens(tmp_path).caller(None) is None


def test_tokens_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", "d", "0d", "-1d", "1y", "1.5d", "999999w", "2020-01-01", "tomorrow", "٣d"):
        with pytest.raises(ValueError, match="expires must be"):
            Tokens(tmp_path).add("app", ["play"], ["*"], text)
    assert not (tmp_path / "tokens.json").exists()
    token = {
        name: f"Bearer {Tokens(tmp_path).add(name, ['admin'], ['*'], ends)}"
        for name, ends in {"short": "30m", "long": "2999-01-01T12:00:00+02:00", "endless": None}.items()
    }
    with Served(tmp_path) as served:
        assert [served.ask("GET", "/v1", authorization=each).status for each in token.values()] == [200] * 3
        now = time.time() + 1801
        monkeypatch.setattr("onebit.service.access.time.time", lambda: now)
        assert [served.ask("GET", "/v1", authorization=each).status for each in token.values()] == [401, 200, 200]
        refused = served.ask("POST", f"{DESK}/guess", {"record": {}}, authorization=token["short"])
        assert is_problem(refused, 401, "token 'short' expired at 20")
        assert served.ask("GET", "/healthz", authorization=token["short"]).status == 200


def test_when_a_token_ends() -> None:
    now = datetime(2026, 11, 17, 12, tzinfo=UTC)
    ends = {"90d": "2027-02-15T12:00:00+00:00", "2027-01-01": "2027-01-01T00:00:00+00:00"}
    assert {text: _expiry(text, now).isoformat() for text in ends} == ends


def test_names_are_safe_in_addresses_and_as_files() -> None:
    assert check_name("namespace", "shop-2") == "shop-2"
    with pytest.raises(ValueError, match=r"namespace must be 1 to 64 small letters, .*; got '../shop'"):
        check_name("namespace", "../shop")


def test_a_token_from_before_tokens_expired_still_works(tmp_path: Path) -> None:
    token = Tokens(tmp_path).add("app", ["play"], ["*"])
    (known,) = json.loads((tmp_path / "tokens.json").read_bytes())
    del known["expires"]
    (tmp_path / "tokens.json").write_text(json.dumps([known]), encoding="utf-8")
    caller = Tokens(tmp_path).caller(f"Bearer {token}")
    assert caller is not None
    assert not caller.is_expired
    for ends in ("soon", "2999-01-01", 7):
        (tmp_path / "tokens.json").write_text(json.dumps([known | {"expires": ends}]), encoding="utf-8")
        assert Tokens(tmp_path).caller(f"Bearer {token}") is None, "a broken file lets nobody in"


CHANGE_AT_ONCE = """
import os, sys
from pathlib import Path
from onebit.service.access import Tokens

folder, may_begin = Path(sys.argv[1]), os.pipe()
for child in "abcd":
    if os.fork() == 0:
        os.close(may_begin[1])
        os.read(may_begin[0], 1)
        for turn in range(8):
            Tokens(folder).add(f"{child}{turn}", ["play"], ["*"])
            if turn % 2:
                Tokens(folder).remove(f"{child}{turn}")
        os._exit(0)
os.close(may_begin[1])
print([os.waitstatus_to_exitcode(os.wait()[1]) for _ in "abcd"])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_tokens_that_are_changed_at_once_are_all_kept(tmp_path: Path) -> None:
    folder = tmp_path / "decisions"
    done = subprocess.run([sys.executable, "-c", CHANGE_AT_ONCE, str(folder)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[0, 0, 0, 0]\n", "")
    assert sorted(each.name for each in Tokens(folder).stored()) == [
        f"{name}{turn}" for name in "abcd" for turn in (0, 2, 4, 6)
    ]
    assert [path.name for path in folder.iterdir()] == ["tokens.json"], "the lock is gone"


def test_a_file_of_tokens_that_is_a_link_to_nothing_lets_nobody_in(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "served", tmp_path / "elsewhere"
    token = Tokens(elsewhere).add("app", ["read"], ["*"])
    folder.mkdir()
    (folder / "tokens.json").symlink_to(elsewhere / "later" / "tokens.json")  # of a disk that is not there yet
    tokens = Tokens(folder)
    assert tokens.are_required
    assert tokens.caller(f"Bearer {token}") is None
    (elsewhere / "later").mkdir()
    (elsewhere / "tokens.json").rename(elsewhere / "later" / "tokens.json")
    tokens._looked = 0.0
    assert tokens.caller(f"Bearer {token}") is not None


def test_removing_a_token_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no token 'app'; there are none"):
        Tokens(tmp_path / "decisions").remove("app")
    assert list(tmp_path.iterdir()) == []
