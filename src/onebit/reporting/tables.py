"""Tables as files: numbers for people, CSV for programs."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from onebit.files import replace_file


def grouped(number: float) -> str:
    """Return a whole number with its thousands set apart.

    >>> grouped(5_000_000)
    '5 000 000'
    """
    return f"{number:,.0f}".replace(",", " ")


def number(value: float | None) -> str:
    """Return a number as CSV files hold it: ten digits, nothing for None.

    >>> number(1 / 3), number(None)
    ('0.3333333333', '')
    """
    # Ten digits: more than anyone reads, fewer than differ between machines.
    return "" if value is None else f"{value:.10g}"


def write_csv(path: Path, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV; the same lines give the same bytes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    replace_file(path, text.getvalue().encode())
