"""Options that several commands share."""

import sys

import pytest
from rich.console import Console

from onebit.cli.options import Games, Workers, has_figures, print_what_was_read, several, typed
from onebit.extras import _EXTRAS


def test_games_are_the_settings_of_a_comparison() -> None:
    assert Games(rounds=7, seed=3, preprocess="none", unit_length=True).settings == {
        "rounds": 7,
        "seed": 3,
        "unit_length": True,
        "rival_seconds": Games().rival_seconds,
        "preprocessing": "none",
    }


def test_a_cluster_brings_its_own_jobs() -> None:
    with Workers(jobs=2).executor(Console()) as executor:
        assert executor is None
    with pytest.raises(ValueError, match=r"--jobs must be .*; got 0"):
        Workers(jobs=0).executor(Console())
    with pytest.raises(ValueError, match=r"--jobs 2 is for this machine, and --dask tcp://a:1 for others"):
        Workers(jobs=2, dask="tcp://a:1").executor(Console())


def test_the_command_is_shown_as_a_shell_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/onebit", "compare", "my file.csv", "--label", "a'b"])
    assert typed() == "onebit compare 'my file.csv' --label 'a'\"'\"'b'"
    assert several([]) == []


def test_without_matplotlib_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(record=True, width=200)
    monkeypatch.setitem(_EXTRAS, "figures", ("not_there_at_all",))
    assert not has_figures(console)
    said = (
        "there will be no figures: figures need not_there_at_all, which is not installed: pip install 'onebit[figures]'"
    )
    assert said in console.export_text()


def test_what_was_read_is_text_and_no_markup() -> None:
    console = Console(record=True, width=80)
    print_what_was_read(console, "a [red] file", {"columns": "[bold]", "label": "y"})
    printed = console.export_text()
    assert "a [red] file" in printed
    assert "[bold]" in printed
