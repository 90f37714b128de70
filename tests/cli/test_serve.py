"""onebit serve: what is refused before anything listens."""

import os
from pathlib import Path

import pytest

from in_process import onebit
from onebit.cli.serve import _PASSWORD_FILE_VARIABLE, _database


def test_without_tokens_no_other_machine_is_served(tmp_path: Path) -> None:
    refused = onebit("serve", str(tmp_path / "served"), "--host", "0.0.0.0")
    assert refused.returncode == 1
    assert "can be reached from other machines" in refused.stderr
    assert not (tmp_path / "served").exists()


def test_the_password_of_a_database_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, url = tmp_path / "password", "postgresql://onebit@database/onebit"
    monkeypatch.setenv("PGPASSWORD", "another")
    monkeypatch.setenv(_PASSWORD_FILE_VARIABLE, str(file))
    for content, said in (
        (None, "cannot be read .No such file"),
        (b"", "must have one line"),
        (b"hunter2\nmore\n", "must have one line"),
        (b"hunter2\xff", "it is no text"),
    ):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ValueError, match=said) as refused:
            _database(url)
        assert "hunter2" not in str(refused.value)
    file.write_bytes(b"hunter2\n")
    assert _database(None) is None
    assert os.environ["PGPASSWORD"] == "another", "there is no database"
    assert _database(url) == url
    assert os.environ["PGPASSWORD"] == "hunter2"
