"""One line when compiling takes long: once, to a person at a terminal or to the log, and never in the way."""

import io
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from numba.core import event
from rich.console import Console

from onebit.engine.compile_notice import CompileNotice
from onebit.engine.jit import jit
from onebit.reporting.console import progress_bar

TEXT = "compiling its code for this machine, which can take a minute; it is kept on disk, so this happens once"


def a_function(*, ours: bool = True) -> Any:
    def plus_one(x: int) -> int:
        return x + 1

    return jit(plus_one) if ours else numba.njit(plus_one)


@contextmanager
def compiling(notice: CompileNotice, function: Any) -> Iterator[None]:
    """What Numba tells while it compiles a function."""
    told = SimpleNamespace(data={"dispatcher": function})
    notice.on_start(told)
    try:
        yield
    finally:
        notice.on_end(told)


def wait_for(seen: Callable[[], Any]) -> None:
    end = time.monotonic() + 5.0
    while not seen() and time.monotonic() < end:
        time.sleep(0.005)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def noted(seconds: float) -> tuple[CompileNotice, list[str]]:
    notice, said = CompileNotice(seconds), list[str]()
    notice.show = said.append
    return notice, said


def test_numba_tells_it(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    notice = CompileNotice(0.0)
    caplog.set_level(logging.INFO, "onebit")
    with event.install_listener("numba:compile", notice):
        assert a_function()(1) == 2
        wait_for(lambda: caplog.records)
        assert a_function()(1.5) == 2.5
    assert notice.n_compiled == 2
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [("onebit", "INFO", TEXT)]
    assert capsys.readouterr() == ("", "")


def test_quick_compiling_says_nothing() -> None:
    notice, said = noted(30.0)
    with compiling(notice, a_function()):
        assert [thread.daemon for thread in threading.enumerate() if isinstance(thread, threading.Timer)] == [True]
    wait_for(lambda: not any(isinstance(thread, threading.Timer) for thread in threading.enumerate()))
    assert said == []


def test_many_short_ones_are_long_together_and_said_once() -> None:
    notice, said = noted(0.2)
    function = a_function()
    for _ in range(3):
        with compiling(notice, function):
            time.sleep(0.01)
    assert said == []
    for _ in range(2):
        with compiling(notice, function), compiling(notice, a_function()):  # the inner one is compiled for the outer
            time.sleep(0.3)
    assert said == [TEXT]


def test_what_others_compile_is_not_ours_to_speak_of() -> None:
    notice, said = noted(0.0)
    with compiling(notice, a_function(ours=False)):
        time.sleep(0.05)
    assert (said, notice.n_compiled) == ([], 0)


def test_a_function_that_cannot_be_compiled_is_counted_out() -> None:
    notice, said = noted(30.0)
    function = a_function()
    with pytest.raises(numba.TypingError), event.install_listener("numba:compile", notice):
        function("text")
    assert notice._n_begun == 0
    assert said == []


def test_where_nothing_can_be_kept_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    notice, said = noted(0.0)
    function = a_function()

    def nowhere(_function: Any) -> Any:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("onebit.engine.code_cache._numba_cache", nowhere)
    with compiling(notice, function):
        wait_for(lambda: said)
    (text,) = said
    assert "each time" in text
    assert "NUMBA_CACHE_DIR" in text


@pytest.mark.parametrize(
    ("is_command", "stream", "shown"),
    [
        (True, Terminal(), f"onebit: {TEXT}\n"),
        (True, io.StringIO(), ""),
        (False, Terminal(), ""),
        (True, None, ""),
    ],
)
def test_a_command_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_command: bool,
    stream: io.StringIO | None,
    shown: str,
) -> None:
    caplog.set_level(logging.INFO, "onebit")
    notice = CompileNotice()
    notice.is_command = is_command
    monkeypatch.setattr(sys, "stderr", stream)
    notice.print_once(TEXT)
    notice.print_once(TEXT)
    assert ("" if stream is None else stream.getvalue()) == shown
    assert len(caplog.records) == (0 if shown else 1)


def test_at_a_prompt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    CompileNotice().print_once(TEXT)
    assert capsys.readouterr().err == f"onebit: {TEXT}\n"


def test_standard_error_that_is_closed_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Terminal()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    notice = CompileNotice()
    notice.is_command = True
    notice.print_once(TEXT)


def test_it_is_a_line_above_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", Terminal())
    notice = CompileNotice()
    notice.is_command = True
    with progress_bar(Console(file=screen, force_terminal=True, width=200), "playing") as show:
        show(1, 2)
        notice.print_once(TEXT)
        show(2, 2)
    lines = [line for line in screen.getvalue().splitlines() if "compiling" in line]
    assert len(lines) == 1
    assert lines[0].endswith(f"onebit: {TEXT}"), "nothing of the bar is in its line"
