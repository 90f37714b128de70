"""What every command says of the data it has read, and the words that make it read them in the same way again."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from onebit.reporting.console import on_screen
from onebit.streams.reading import Reading


def say_what_was_read(console: Console, name: str, about: Mapping[str, str]) -> None:
    """Print what `onebit.streams.describe` tells of a data set."""
    console.print(on_screen(name, "bold"), highlight=False, soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for what, text in about.items():
        table.add_row(what, on_screen(text))
    console.print(table)


def reading_words(reading: Reading) -> list[str]:
    """Return the options that were given.

    >>> reading_words(Reading(label="team", drop=("id", "name")))
    ['--label', 'team', '--drop', 'id', '--drop', 'name']
    """
    words = []
    for name, value in reading._asdict().items():
        if value != Reading._field_defaults[name]:
            for each in value if isinstance(value, tuple) else (value,):
                words += [f"--{name.replace('_', '-')}", str(each)]
    return words
