"""Tables as files: numbers for people, CSV for programs."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from onebit.files import replace_file
from onebit.reporting.names import in_csv


def grouped(number: float) -> str:
    """Return a whole number with its thousands set apart.

    >>> grouped(5_000_000)
    '5 000 000'
    """
    return f"{number:,.0f}".replace(",", " ")


def with_error(mean: float, standard_error: float) -> str:
    """Return a mean with its standard error, or alone where one run leaves the error undefined.

    >>> with_error(1234.4, 5.6), with_error(1234.0, math.nan)
    ('1 234 ± 6', '1 234')
    """
    return grouped(mean) if math.isnan(standard_error) else f"{grouped(mean)} ± {grouped(standard_error)}"


def what_means_are(n_runs: int) -> str:
    """Say above a table what `with_error` shows."""
    if n_runs == 1:
        return "Mistakes of a single run, which has no standard error"
    return "Mistakes: mean over the runs ± standard error"


def number(value: float | None) -> str:
    """Return a number as CSV files hold it: ten digits, nothing for None and NaN.

    >>> number(1 / 3), number(None)
    ('0.3333333333', '')
    """
    # Ten digits: more than anyone reads, fewer than differ between machines.
    return "" if value is None or math.isnan(value) else f"{value:.10g}"


def write_csv(path: Path, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV; the same lines give the same bytes, and no cell is a formula to a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([in_csv(cell) for cell in line] for line in lines)
    replace_file(path, text.getvalue().encode())
