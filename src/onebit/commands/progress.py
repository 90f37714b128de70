"""The progress bar with time left that long commands show."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def progress_bar(what: str, *, stderr: bool = False) -> Iterator[Callable[[float, float], None]]:
    """Show a bar; the function it yields takes what is done and the total."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=stderr)) as progress:
        task = progress.add_task(what, total=None)

        def show(done: float, total: float) -> None:
            progress.update(task, completed=done, total=total)

        yield show
