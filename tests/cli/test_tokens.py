"""onebit tokens: added, listed and removed."""

from pathlib import Path

from in_process import onebit
from onebit.service.access import Tokens


def test_tokens_are_added_listed_and_removed(tmp_path: Path) -> None:
    folder = str(tmp_path / "served")
    made = onebit("tokens", "add", folder, "app", "--role", "play", "--role", "read", "--namespace", "shop")
    assert made.stdout.startswith("onebit_")
    assert [each.roles for each in Tokens(Path(folder)).stored()] == [["play", "read"]]
    listed = onebit("tokens", "list", folder).stdout
    assert "app" in listed
    assert made.stdout.strip() not in listed
    assert onebit("tokens", "add", folder, "app", "--role", "play").returncode == 1
    assert "role must be one of" in onebit("tokens", "add", folder, "b", "--role", "king").stderr
    assert "namespace must be" in onebit("tokens", "add", folder, "b", "--role", "play", "--namespace", "../x").stderr
    assert onebit("tokens", "add", folder, "b", "--role", "play", "--expires", "90d").returncode == 0
    assert "expires must be" in onebit("tokens", "add", folder, "c", "--role", "play", "--expires", "never").stderr
    listed = onebit("tokens", "list", folder).stdout
    assert "never" in listed
    removed = [onebit("tokens", "remove", folder, name) for name in ("app", "b")]
    assert [each.returncode for each in removed] == [0, 0]
    assert ["last token" in each.stderr for each in removed] == [False, True]
    assert "there is no token 'app'" in onebit("tokens", "remove", folder, "app").stderr
