"""onebit mcp: what is wrong is said before an agent begins."""

from pathlib import Path

import pytest

from in_process import onebit as command

mcp = pytest.importorskip("mcp")


def test_the_command_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = command("mcp", str(tmp_path / "none.onebit"))
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "classes" in nothing.stderr
    assert "give its --url too" in command("mcp", "x", "--token-file", "t").stderr
    assert "namespace and a name" in command("mcp", "x", "--url", "http://127.0.0.1:9").stderr
    assert "onebit's own" in command("mcp", "x", "--classes", "a", "--learner", "os:system").stderr
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert "pip install 'onebit[mcp]'" in command("mcp", "x").stderr
