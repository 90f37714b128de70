"""Tables: readable numbers, and CSV files."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

from onebit.files import replace_file
from onebit.reporting.names import in_csv


def grouped(number: float, digits: int = 0) -> str:
    """Return a number with its thousands separated by a space, as in every table, figure and text.

    >>> grouped(5_000_000), grouped(1234.56, 1)
    ('5 000 000', '1 234.6')
    """
    # As a decimal number is rounded: 7.35 in binary is a little less, and would be 7.3.
    exact = Decimal(repr(float(number))) if digits else number
    return f"{exact:,.{digits}f}".replace(",", " ")


def with_error(mean: float, standard_error: float) -> str:
    """Return a mean with its standard error, or alone where one run leaves the error undefined.

    >>> with_error(1234.4, 5.6), with_error(6.55, 0.47), with_error(1234.0, math.nan)
    ('1 234 ± 6', '6.6 ± 0.5', '1 234')
    """
    if math.isnan(standard_error):
        return grouped(mean)
    # An error below one mistake would read as none.
    digits = 1 if 0.0 < standard_error < 1.0 else 0
    return f"{grouped(mean, digits)} ± {grouped(standard_error, digits)}"


def what_means_are(n_runs: int) -> str:
    """Return the caption for what `with_error` shows."""
    if n_runs == 1:
        return "Mistakes of a single run, which has no standard error"
    return "Mistakes: mean over the runs ± standard error"


def filled(columns: Sequence[str], rows: Iterable[Sequence[str]], nothing: str = "") -> list[int]:
    """Return the places of the columns in which some row has something: the others are not worth their width.

    >>> filled(["learner", "mistakes", "paper"], [["a", "3", ""], ["b", "", ""]])
    [0, 1]
    """
    rows = list(rows)
    return [at for at in range(len(columns)) if any(row[at] != nothing for row in rows)]


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
