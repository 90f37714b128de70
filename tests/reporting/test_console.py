import io
import warnings

import pytest
from rich.console import Console

from onebit.reporting.console import progress_bar


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
