import io
import warnings
from pathlib import Path

import pytest
from rich.console import Console

from onebit.extras import _EXTRAS
from onebit.reporting.console import prepare_report, print_facts, print_table, progress_bar
from onebit.reporting.text import Table


def test_warnings_for_users_are_lines_above_the_bar() -> None:
    console = Console(file=io.StringIO(), width=40)
    text = "out[/]/arena.sqlite: 1 of 8 stored results are damaged and will be played again"
    usual = warnings.showwarning
    with progress_bar(console, "playing") as show:
        warnings.simplefilter("always")
        warnings.warn(text, UserWarning, stacklevel=1)
        show(1, 2)
    assert isinstance(console.file, io.StringIO)
    assert f"note: {text}\n" in console.file.getvalue()
    assert warnings.showwarning is usual


def test_other_warnings_are_shown_as_ever() -> None:
    console = Console(file=io.StringIO())
    with pytest.warns(RuntimeWarning, match="overflow"), progress_bar(console, "playing"):
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
    assert isinstance(console.file, io.StringIO)
    assert "overflow" not in console.file.getvalue()


def test_without_matplotlib_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(record=True, width=200)
    monkeypatch.setitem(_EXTRAS, "figures", ("not_there_at_all",))
    assert not prepare_report(console, tmp_path)
    said = (
        "there will be no figures: figures need not_there_at_all, which is not installed: pip install 'onebit[figures]'"
    )
    assert said in console.export_text()


def test_what_was_read_is_text_and_no_markup() -> None:
    console = Console(record=True, width=80)
    print_facts(console, "a [red] file", {"columns": "[bold]", "label": "y"})
    printed = console.export_text()
    assert "a [red] file" in printed
    assert "[bold]" in printed


def test_long_names_are_shortened_and_sentences_are_not() -> None:
    console = Console(file=io.StringIO(), width=200)
    name, text = "n" * 100, " ".join(f"word{k}" for k in range(30))
    print_table(console, Table(("name", "text"), [(name, text)], styles=("name", "")))
    assert isinstance(console.file, io.StringIO)
    words = console.file.getvalue().split()
    assert [word for word in words if word.startswith("word")] == text.split()
    assert name not in words
