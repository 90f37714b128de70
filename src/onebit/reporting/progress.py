"""What a person sees while an arena plays, and the folder its results go to."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from onebit.reporting.names import on_screen, printable


@contextmanager
def progress_bar(console: Console, description: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time left; the function it gives is told how much is done, and of how much.

    Warnings meant for users (`UserWarning`) are shown above it, as one line each.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress, _warnings_as_lines(console):
        task = progress.add_task(printable(description), total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield show


@contextmanager
def _warnings_as_lines(console: Console) -> Iterator[None]:
    with warnings.catch_warnings():
        show_usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                say_note(console, str(message))
            else:
                show_usual(message, category, *where, **more)

        warnings.showwarning = show
        yield


def say_note(console: Console, text: str) -> None:
    """Print what a user should know, as one line; above a bar, if there is one."""
    console.print(Text.assemble(("note: ", "bold"), on_screen(text)), soft_wrap=True)


def prepare_folder(folder: Path) -> None:
    """Make sure that results can be written, before anything is played."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # To have the right to write is not enough: the disk may be full, or read-only.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ValueError(f"--out {folder} cannot be written ({reason}); choose another folder") from error


def say_where(console: Console, what: str, folder: Path) -> None:
    """Print what is in the folder now."""
    console.print(Text.assemble(f"{what} in ", on_screen(str(folder), "bold"), "."), soft_wrap=True)
