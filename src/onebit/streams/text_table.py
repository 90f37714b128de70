"""Delimited text, one row per line, read as text cells; `columns` interprets them.

Polars reads it. What Polars reads differently, or refuses without a line number, is read again by Python's csv module:
quotes inside cells, blanks before quotes, rows of the wrong length, lone carriage returns.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from onebit.machine_memory import check_memory
from onebit.streams.reading import Reading
from onebit.streams.table import Table, column_names, header_is_first

DELIMITERS = ",;\t|"
"""Delimiters that are detected."""
# Measured: the memory Polars takes for text of one letter, and for a column of a few rows.
_BYTES_OF_A_CELL, _BYTES_OF_A_COLUMN = 48, 10_000
_SAMPLE = 1 << 16  # bytes in which the delimiter is detected
_SAMPLE_LINES = 100
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SHOWN = {"\t": "tabs", " ": "blanks", ",": "commas", ";": "semicolons"}
_ZLIB = (b"x^", b"x\x01")  # Polars decompresses what begins like this, even a column name such as x^2
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")


class _Record(NamedTuple):
    line: int
    """The line where it begins, counted from 1."""
    cells: list[str]


def read_text_table(path: Path, data: bytes, reading: Reading) -> Table:
    """Read delimited text, all cells as text.

    Parameters
    ----------
    path : Path
        The name for error messages.
    data : bytes
        The content of the file.
    reading : Reading
        The user's reading options.
    """
    text = as_utf8(path, data, reading.encoding)
    if not text.strip():
        raise ValueError(f"{path}: the file is empty")
    delimiter = reading.delimiter or find_delimiter(text[:_SAMPLE].decode(errors="ignore"), len(text) <= _SAMPLE)
    _check_size(text, delimiter.encode())
    cells = _read_quickly(text, delimiter)
    if cells is None:
        cells = _frame([record.cells for record in _records(path, text, delimiter)])
    cells = _without_blanks(cells)
    if cells.height == 0:
        raise ValueError(f"{path}: the file is empty")
    if (cells.to_series(-1) == "").any():
        # Polars pads rows that are too short: only the csv module distinguishes them from rows that end with an empty
        # cell.
        for _ in _records(path, text, delimiter):
            pass

    def line(row: int) -> str:
        records = _records(path, text, delimiter)
        return f"line {next(record.line for at, record in enumerate(records) if at == row)}"

    has_header = header_is_first(cells, reading)
    if has_header and cells.height == 1:
        raise ValueError(f"{path}: has a header and no rows")
    names = column_names(path, line(0), cells.row(0), reading) if has_header else None
    between = _SHOWN.get(delimiter, repr(delimiter))
    description = f"text with {between} between cells, {f'names in {line(0)}' if has_header else 'no header'}"
    return Table(
        path,
        cells.slice(int(has_header)),
        names or [f"column {j}" for j in range(cells.width)],
        description,
        lambda row: line(row + has_header),
    )


def count_columns(path: Path, data: bytes, reading: Reading) -> int:
    """Return how many cells the first row has, without reading the others."""
    text = as_utf8(path, data, reading.encoding)
    if not text.strip():
        raise ValueError(f"{path}: the file is empty")
    delimiter = reading.delimiter or find_delimiter(text[:_SAMPLE].decode(errors="ignore"), len(text) <= _SAMPLE)
    return next((len(record.cells) for record in _records(path, text, delimiter)), 0)


def _check_size(text: bytes, delimiter: bytes) -> None:
    """Raise a MemoryError if the cells and columns of a text will take more memory than is allowed."""
    n_cells = text.count(delimiter) + text.count(b"\n") + text.count(b"\r") + 1
    n_columns = text.lstrip().split(b"\n", 1)[0].count(delimiter) + 1
    check_memory(2 * len(text) + _BYTES_OF_A_CELL * n_cells + _BYTES_OF_A_COLUMN * n_columns)


def as_utf8(path: Path, data: bytes, encoding: str | None) -> bytes:
    """Return text in UTF-8 without a byte order mark, or raise if it is not in the given encoding."""
    mark, found = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        if encoding is not None:
            text = data.decode(encoding).removeprefix("\ufeff").encode()
        elif found != "utf-8":
            text = data.decode(found).encode()
        else:
            text = data[len(mark) :]
            if not text.isascii():
                text.decode()
    except LookupError:
        raise ValueError(
            f"encoding must be one that Python knows, such as cp1252 or utf-16; got {encoding!r}"
        ) from None
    except UnicodeError as error:
        message, place = str(error), ""
        if isinstance(error, UnicodeDecodeError):
            line = error.object[: error.start].count(b"\n") + 1
            message, place = error.reason, f" at byte {error.start}, line {line}"
        named = (encoding or found).upper()
        raise ValueError(
            f"{path}: is not {named} text ({message}{place}); name its encoding, such as --encoding cp1252, "
            "or save it as UTF-8"
        ) from error
    while text.startswith(codecs.BOM_UTF8):  # some programs write the mark twice
        text = text[len(codecs.BOM_UTF8) :]
    if b"\0" in text:
        line = text[: text.index(b"\0")].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: has a zero byte; name its encoding, such as --encoding utf-16, or save it as UTF-8"
        )
    return text


def find_delimiter(sample: str, is_whole: bool = True) -> str:
    r"""Return the delimiter between cells.

    It is the character that occurs equally often in every line. Of two such characters it is the more frequent one, but
    never a comma that is a decimal comma: ``5,1;3,5`` are two cells.

    Parameters
    ----------
    sample : str
        The first lines.
    is_whole : bool
        False if the last line may be cut off.

    Examples
    --------
    >>> find_delimiter("a,b;c,d\n"), find_delimiter("5,1;3,5;x\n4,9;3;y\n"), find_delimiter("1,2,3;4\n")
    (',', ';', ',')
    """
    bare = re.sub(r'"[^"]*"', "q", sample)  # quoted text contains no delimiters
    lines = [line for line in re.split(r"[\r\n]+", bare) if line.strip()]
    lines = lines[: -1 if not is_whole and len(lines) > 1 else None][:_SAMPLE_LINES]
    even = [sign for sign in DELIMITERS if lines[0].count(sign) and len({line.count(sign) for line in lines}) == 1]
    candidates = even or [sign for sign in DELIMITERS if sign in lines[0]] or [","]
    best = max(candidates, key=lines[0].count)
    others = [sign for sign in candidates if sign != ","]
    if best != "," or not others:
        return best
    other = max(others, key=lines[0].count)
    cells = [cell.strip() for line in lines[1:] or lines for cell in line.split(other) if "," in cell]
    return other if cells and all(_DECIMAL_COMMA.fullmatch(cell) for cell in cells) else best


def _read_quickly(text: bytes, delimiter: str) -> pl.DataFrame | None:
    """Return all cells by Polars, or None where it would read them differently from the csv module."""
    if delimiter == " " or not delimiter.isascii() or text.count(b"\r") != text.count(b"\r\n"):
        return None
    has_quotes = b'"' in text
    if has_quotes and re.search(re.escape(delimiter).encode() + rb'[ \t]+"', text):
        return None
    body = text.lstrip(b"\r\n")
    if body.startswith((*_ZLIB, codecs.BOM_UTF8)):
        return None
    try:
        cells = pl.read_csv(
            body, has_header=False, separator=delimiter, infer_schema=False, empty_string_is_null=False, glob=False
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    too_long = (pl.all().str.len_bytes() > csv.field_size_limit()).any()
    quotes = pl.all().str.contains('"', literal=True).any()
    doubtful = any(cells.select(too_long).row(0)) or (has_quotes and any(cells.select(quotes).row(0)))
    return None if doubtful else cells


def _records(path: Path, text: bytes, delimiter: str) -> Iterator[_Record]:
    """Yield the rows that are not empty, by Python's csv module, or raise at the first malformed one."""
    lines = io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", newline="")
    blanks = delimiter == " "
    source = (re.sub(r"[ \t]+", " ", line.strip(" \t")).replace(" \n", "\n") for line in lines) if blanks else lines
    reader = csv.reader(source, delimiter=delimiter, skipinitialspace=not blanks, strict=True)
    before, width = 0, 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            width = width or len(cells)
            if len(cells) != width:
                raise ValueError(f"{path}, line {line}: has {len(cells)} columns where the first line has {width}")
            yield _Record(line, cells)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}; is the file cut off?") from error


def _frame(rows: list[list[str]]) -> pl.DataFrame:
    columns = [pl.Series(f"{j}", column, dtype=pl.String) for j, column in enumerate(zip(*rows, strict=True))]
    return pl.DataFrame(columns)


def _without_blanks(cells: pl.DataFrame) -> pl.DataFrame:
    """Return stripped cells, without rows that are empty then."""
    if cells.width == 0:
        return cells
    cells.columns = [f"{j}" for j in range(cells.width)]
    edges = cells.select(pl.all().str.contains(r"^\s|\s$").any()).row(0)
    padded = [name for name, has_blanks in zip(cells.columns, edges, strict=True) if has_blanks]
    cells = cells.with_columns(pl.col(padded).str.strip_chars())
    if (cells.to_series(0) == "").any():
        cells = cells.filter(pl.any_horizontal(pl.all() != ""))
    return cells
