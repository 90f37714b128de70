"""What a person sees at the terminal: tables, a progress bar, lines; and the folder that results go to."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from onebit.extras import missing_extra
from onebit.reporting.text import Table, printable, shortened

_CELL = 60  # letters of a name or a number in a cell; other texts are broken into lines
_WIDTH = 140  # of a table that goes to a file or pipe: no column is broken
_COLORS = {"good": "green", "bad": "red", "dim": "dim"}


def _as_text(text: str, style: str = "", most: int | None = None) -> Text:
    """Return a name for Rich to print: never markup, whole unless there is a limit."""
    seen = printable(text)
    return Text(seen if most is None else shortened(seen, most), style)


def print_line(console: Console, text: str, mark: str = "", style: str = "bold", keep: str = "") -> None:
    """Print a text, after a mark such as "note: ", as one line however long it is, except characters to keep."""
    console.print(Text.assemble((mark, style), printable(text, keep)), soft_wrap=True)


def print_facts(console: Console, name: str, facts: Mapping[str, str]) -> None:
    """Print a name, and below it what there is to know of it."""
    console.print(_as_text(name, "bold"), soft_wrap=True)
    grid = RichTable(box=None, show_header=False, padding=(0, 1, 0, 1))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for what, text in facts.items():
        grid.add_row(what, _as_text(text))
    console.print(grid)


def print_table(console: Console, table: Table) -> None:
    """Print a table, not narrower than it is where no terminal limits it."""
    shown = RichTable(
        title=_as_text(table.title) if table.title else None,
        caption=Text("\n").join(map(_as_text, table.notes)) if table.notes else None,
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
    )
    columns = table.filled()
    for heading, style, _ in columns:
        is_number = style == "number"
        shown.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    limits = [_CELL if style in ("name", "number") else None for _, style, _ in columns]
    for at, row in enumerate(zip(*(cells for _, _, cells in columns), strict=True)):
        if at and at in table.sections:
            shown.add_section()
        texts = (_as_text(cell.text, _COLORS.get(cell.kind, ""), most) for cell, most in zip(row, limits, strict=True))
        shown.add_row(*texts)
    (console if console.is_terminal else Console(width=_WIDTH, file=console.file)).print(shown)


@contextmanager
def progress_bar(console: Console, description: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time left, and warnings for users above it; call what it yields with (done, total)."""
    name, parts, left = TextColumn("{task.description}", markup=False), MofNCompleteColumn(), TextColumn("time left")
    columns = name, BarColumn(), parts, TimeElapsedColumn(), left, TimeRemainingColumn()
    with Progress(*columns, console=console) as progress, warnings.catch_warnings():
        show_usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                print_line(console, str(message), "note: ")
            else:
                show_usual(message, category, *where, **more)

        warnings.showwarning = show
        task = progress.add_task(printable(description), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def prepare_folder(folder: Path, given: str | None = None) -> None:
    """Make sure that something can be written, before anything is played."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # To have the right to write is not enough: the disk may be full, or read-only.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        named = given or f"--out {folder}"
        raise ValueError(f"{named} cannot be written ({reason}); choose another folder") from error


def prepare_report(console: Console, folder: Path) -> bool:
    """Prepare a folder for results; return whether figures can be drawn, and print one line if not."""
    prepare_folder(folder)
    line = missing_extra("figures need", "figures")
    if line is not None:
        print_line(console, f"there will be no figures: {line}", "note: ")
    return line is None
