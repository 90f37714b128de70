"""onebit playground: where it listens, and what it needs."""

import socket

import pytest

from in_process import onebit
from onebit.cli.playground import _listen
from onebit.extras import _EXTRAS


def test_another_port_is_taken_where_one_is_in_use() -> None:
    with _listen(0) as first:
        port = first.getsockname()[1]
        with _listen(port) as second:
            assert second.getsockname()[1] not in (0, port)
            assert second.getsockname()[0] == "127.0.0.1"
    assert isinstance(first, socket.socket)


def test_what_is_missing_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_EXTRAS, "serve", ("uvicorn", "not_there_at_all"))
    run = onebit("playground", "--no-browser")
    assert run.returncode == 1
    line = "the playground needs not_there_at_all, which is not installed: pip install 'onebit[serve]'"
    assert run.stderr == f"error: {line}\n"
    assert onebit("playground", "--port", "99999").returncode == 1
