"""Names, numbers and tables as they are shown, and tables as CSV files.

A name from outside (of a file, a label, a learner) may hold codes that a terminal obeys, bytes that are no text, or
what matplotlib or a spreadsheet takes for a formula. All code that shows names uses these functions.
"""

import csv
import io
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import NamedTuple

from onebit.files import replace_file

_FIGURE = 40  # as wide as a panel is
_FORMULA = frozenset("=+-@")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(inf|nan)", re.IGNORECASE)


def printable(text: str, keep: str = "") -> str:
    """Return a text in which whatever cannot be seen is written as its escape, except characters to keep."""

    def seen(letter: str) -> str:
        if letter.isprintable() or letter in keep:
            return letter
        byte = ord(letter) - 0xDC00  # where Python puts the bytes of a file's name that are no UTF-8
        return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else ascii(letter)[1:-1]

    return text if text.isprintable() else "".join(map(seen, text))


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters: its beginning and its end, which tell files apart."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def in_figure(text: str, most: int = _FIGURE) -> str:
    """Return a name for matplotlib to draw: short, and never a formula."""
    return shortened(printable(text), most).replace("$", r"\$")


def in_page(text: str) -> str:
    """Return a name, or any plain text, as HTML."""
    return escape(printable(text))


def _in_csv(cell: object) -> object:
    """Return a cell of a CSV table: a text that a spreadsheet would compute gets an apostrophe in front."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    # Normalised, since some spreadsheets take the wide forms of these signs too.
    is_formula = unicodedata.normalize("NFKC", text[:1]) in _FORMULA and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def grouped(number: float | None, digits: int = 0) -> str:
    """Return a number with its thousands separated by a space, as everywhere; nothing for None and NaN."""
    if number is None or math.isnan(number):
        return ""
    # As a decimal number is rounded: 7.35 in binary is a little less, and would be 7.3.
    exact = Decimal(repr(float(number))) if digits else number
    return f"{exact:,.{digits}f}".replace(",", " ")


def bound_text(value: float | None, log2: float | None = None) -> str:
    """Return a bound, given with its logarithm if it outgrows a float; beyond fifteen digits a power of 2 says more."""
    if value is None or not (value == 0.0 or 1e-6 < value < 1e15):
        return f"2^{math.log2(value or 0.0) if log2 is None else log2:.4g}"
    return grouped(value) if value % 1 == 0 else f"{value:.6g}"


def with_error(mean: float, standard_error: float) -> str:
    """Return a mean with its standard error, or alone where one run leaves the error undefined."""
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


def fixed(value: float | None, form: str) -> str:
    """Return a number in a format, nothing for None and NaN."""
    return "" if value is None or math.isnan(value) else f"{value:{form}}"


def write_csv(path: Path, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV: no cell is a formula to a spreadsheet, floats have ten digits, None and NaN are empty."""

    def written(cell: object) -> object:
        # More digits than anyone reads, fewer than differ between machines.
        return fixed(cell, ".10g") if isinstance(cell, float) else _in_csv(cell)

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(written, line) for line in lines)
    replace_file(path, text.getvalue().encode())


class Cell(NamedTuple):
    """A cell with more than its text."""

    text: str
    kind: str = ""
    """"good", "bad", "known" or "dim": how it is coloured."""
    small: str = ""
    """What stands beside it in small letters, on a page."""


@dataclass(frozen=True)
class Table:
    """A table for the screen and for a page; columns in which no cell has anything are left out."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    title: str = ""
    notes: Sequence[str] = ()  # lines below it
    styles: Sequence[str] = ()
    """Of each column: "name", "number", "remark" or nothing; the first is a name and the others are numbers if not
    given."""
    sections: Sequence[int] = ()  # rows before which there is a line, on the screen

    def filled(self) -> "list[tuple[str, str, list[Cell]]]":
        """Return heading, style and cells of every column in which some cell has something."""
        styles = self.styles or ("name", *["number"] * (len(self.columns) - 1))
        rows = [[Cell(each) if isinstance(each, str) else each for each in row] for row in self.rows]
        cells = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(self.columns)
        columns = zip(self.columns, styles, cells, strict=True)
        return [column for column in columns if any(cell.text for cell in column[2])]
