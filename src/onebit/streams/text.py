"""Tables from delimited text (its encoding, what stands between cells, names in the first line), ARFF and Parquet.

Polars reads delimited text, all cells as text. What Polars reads differently, or refuses without a line number, is read
again by Python's csv module.
"""

import codecs
import csv
import io
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import polars as pl

from onebit.machine_memory import check_memory, memory
from onebit.streams.reading import Reading, option
from onebit.streams.table import LABEL_NAMES, NUMBER, Table

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "'|'"}  # those that are detected
_SAMPLE, _SAMPLE_LINES = 1 << 16, 100  # bytes and lines in which the delimiter is detected
_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ZLIB = (b"x^", b"x\x01")  # Polars decompresses what begins like this, even a column name such as x^2
# Measured: the memory Polars takes for text of one letter, and for a column of a few rows; and a cell of an ARFF file.
_BYTES_OF_A_CELL, _BYTES_OF_A_COLUMN, _BYTES_OF_AN_ARFF_CELL = 48, 10_000, 64
_PARQUET_SPEED = 1_000_000  # bytes that are read in a second, at least
_TOO_LARGE = 3  # status of a child
_PARQUET_CHILD = f"""
import os, sys
allowed = int(min(float(sys.argv[2]), 2**62))
try:
    import resource  # not on Windows
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an abort leaves no file
    most = allowed + (256 << 20) + (8 << 20) * (os.cpu_count() or 1)  # beside the frame, for Polars itself
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
except (ImportError, ValueError, OSError):
    pass
import polars
frame = polars.read_parquet(sys.argv[1], glob=False)
if frame.estimated_size() > allowed:
    sys.exit({_TOO_LARGE})
frame.write_ipc(sys.stdout.buffer)
"""
_DATE_ATTRIBUTE = re.compile(r"""(?im)^([^\S\n]*@attribute\s+(?:'[^'\n]*'|"[^"\n]*"|\S+))\s+date\b.*$""")
_ATTRIBUTE = re.compile(r"(?im)^[^\S\n]*@attribute\b")
_DATA = re.compile(r"(?im)^[^\S\n]*@data\b")


def _read_delimited(path: Path, content: bytes, reading: Reading) -> Table:
    text, delimiter = _decode(path, content, reading)
    n_cells = text.count(delimiter.encode()) + text.count(b"\n") + text.count(b"\r") + 1
    n_columns = text.lstrip().split(b"\n", 1)[0].count(delimiter.encode()) + 1
    check_memory(2 * len(text) + _BYTES_OF_A_CELL * n_cells + _BYTES_OF_A_COLUMN * n_columns)
    cells = _read_cells(path, text, delimiter)
    if cells.height == 0:
        raise ValueError(f"{path}: the file is empty")

    def line(row: int) -> str:
        return f"line {next(islice(_records(path, text, delimiter), row, None))[0]}"

    has_header = _header_is_first(cells, reading)
    if has_header and cells.height == 1:
        raise ValueError(f"{path}: has a header and no rows")
    names, where = [f"column {j}" for j in range(cells.width)], "no header"
    if has_header:
        names, where = _column_names(path, line(0), cells.row(0), reading), f"names in {line(0)}"
    between = {**_DELIMITERS, " ": "blanks"}.get(delimiter, repr(delimiter))
    description = f"text with {between} between cells, {where}"
    return Table(path, cells.slice(int(has_header)), names, description, lambda row: line(row + has_header))


def count_columns(path: Path, content: bytes, reading: Reading) -> int:
    """Return how many cells the first row has, without reading the others."""
    return next((len(cells) for _, cells in _records(path, *_decode(path, content, reading))), 0)


def _decode(path: Path, content: bytes, reading: Reading) -> tuple[bytes, str]:
    """Return text in UTF-8, and its delimiter."""
    text = _as_utf8(path, content, reading.encoding)
    if not text.strip():
        raise ValueError(f"{path}: the file is empty")
    sample = text[:_SAMPLE].decode(errors="ignore")
    return text, reading.delimiter or _find_delimiter(sample, len(text) <= _SAMPLE)


def _as_utf8(path: Path, content: bytes, encoding: str | None) -> bytes:
    """Return text in UTF-8 without a byte order mark, or raise if it is not in the given encoding."""
    marked = encoding or next((name for mark, name in _ENCODINGS.items() if content.startswith(mark)), "utf-8")
    text, remedy = content, "name its encoding, such as --encoding cp1252 or utf-16, or save it as UTF-8"
    try:
        if marked != "utf-8" or not content.isascii():
            text = content.decode(marked).encode()
    except LookupError:
        allowed = "one that Python knows, such as cp1252 or utf-16"
        raise ValueError(f"encoding must be {allowed}; got {encoding!r}") from None
    except UnicodeError as error:
        line = 1 + content[: getattr(error, "start", 0)].count(b"\n")
        reason = getattr(error, "reason", error)
        raise ValueError(f"{path}: is not {marked.upper()} text ({reason} in line {line}); {remedy}") from error
    while text.startswith(codecs.BOM_UTF8):  # some programs write the mark twice
        text = text[len(codecs.BOM_UTF8) :]
    before, zero, _ = text.partition(b"\0")
    if zero:
        line = 1 + before.count(b"\n")
        raise ValueError(f"{path}, line {line}: has a zero byte; {remedy}")
    return text


def _find_delimiter(sample: str, is_whole: bool = True) -> str:
    """Return the sign that comes equally often in every line; the last may be cut off unless the sample is whole.

    Of two such signs it is the more frequent one, but never a comma that is a decimal comma: ``5,1;3,5`` are two cells.
    """
    bare = re.sub(r'"[^"]*"', "q", sample)  # quoted text contains no delimiters
    lines = [line for line in re.split(r"[\r\n]+", bare) if line.strip()]
    lines = lines[: -1 if not is_whole and len(lines) > 1 else None][:_SAMPLE_LINES]
    even = [sign for sign in _DELIMITERS if lines[0].count(sign) and len({line.count(sign) for line in lines}) == 1]
    candidates = even or [sign for sign in _DELIMITERS if sign in lines[0]] or [","]
    best, *others = sorted(candidates, key=lines[0].count, reverse=True)
    if best != "," or not others:
        return best
    cells = [cell.strip() for line in lines[1:] or lines for cell in line.split(others[0]) if "," in cell]
    return others[0] if cells and all(_DECIMAL_COMMA.fullmatch(cell) for cell in cells) else best


def _read_cells(path: Path, text: bytes, delimiter: str, *, quickly: bool = True) -> pl.DataFrame:
    """Return stripped cells, without rows that are empty then; by Polars where it reads them as the csv module does."""
    cells = _read_quickly(text, delimiter) if quickly else None
    if cells is None:
        columns = zip(*(row for _, row in _records(path, text, delimiter)), strict=True)
        cells = pl.DataFrame([pl.Series(f"{j}", column, dtype=pl.String) for j, column in enumerate(columns)])
    cells.columns = [f"{j}" for j in range(cells.width)]
    cells = cells.with_columns(pl.all().str.strip_chars())
    has_empty = cells.width and (cells.to_series(0) == "").any()
    return cells.filter(pl.any_horizontal(pl.all() != "")) if has_empty else cells


def _read_quickly(text: bytes, delimiter: str) -> pl.DataFrame | None:
    """Return all cells by Polars, or None where it may read them differently from the csv module."""
    body = text.lstrip(b"\r\n")
    has_quotes = b'"' in text
    is_odd = delimiter == " " or not delimiter.isascii() or text.count(b"\r") != text.count(b"\r\n")
    is_odd = is_odd or body.startswith((*_ZLIB, codecs.BOM_UTF8))
    if is_odd or (has_quotes and re.search(re.escape(delimiter).encode() + rb'[ \t]+"', text)):
        return None
    try:
        cells = pl.read_csv(
            body, has_header=False, separator=delimiter, infer_schema=False, empty_string_is_null=False, glob=False
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    doubts = [pl.all().str.len_bytes() > csv.field_size_limit()]
    doubts += [pl.all().str.contains('"', literal=True)] if has_quotes else []
    doubts += [pl.last().str.strip_chars() == ""]  # Polars pads rows that are too short
    return None if any(any(cells.select(doubt.any()).row(0)) for doubt in doubts) else cells


def _records(path: Path, text: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row that is not empty, or raise at the first malformed one."""
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
            yield line, cells
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}; is the file cut off?") from error


def _header_is_first(cells: pl.DataFrame, reading: Reading) -> bool:
    """Return whether the first row names the columns, as docs/files.md says."""
    first, below = cells.row(0), cells.slice(1)
    repeats = below.select((pl.col(name) == cell).any() for name, cell in zip(cells.columns, first, strict=True)).row(0)
    usual = () if isinstance(reading.label, str) else LABEL_NAMES
    given = [name for name in (reading.label, *reading.drop, *reading.columns) if isinstance(name, str)]
    named = {part.strip() for name in given for part in (name, *name.split(","))}
    for cell, repeated in zip(first, repeats, strict=True):  # a number may be a position instead
        if (cell in named and not (repeated and NUMBER.fullmatch(cell))) or (cell.lower() in usual and not repeated):
            return True
    if any(NUMBER.fullmatch(cell) for cell in first):
        return False
    return not any(repeats) or any(below.select(pl.all().str.contains(f"^(?:{NUMBER.pattern})$").all()).row(0))


def _column_names(path: Path, line: str, header: Sequence[str], reading: Reading) -> list[str]:
    """Return the names in a header, or raise if a column that will be used has no unique name."""
    dropped = {f"{name}" for name in reading.drop}
    for j, name in enumerate(header):
        if not name and dropped.isdisjoint((f"{j}", f"{j - len(header)}")):
            remedy = f"If it is a row number, leave it out with {option('drop', [j])}; otherwise name it"
            raise ValueError(f"{path}, {line}: column {j} has no name. {remedy}")
    names = [name or f"column {j}" for j, name in enumerate(header)]
    ((most_frequent, count),) = Counter(names).most_common(1)
    if count > 1:
        raise ValueError(f"{path}, {line}: two columns are named {most_frequent!r}")
    return names


def _read_arff(path: Path, content: bytes, reading: Reading) -> Table:
    from sklearn.externals import _arff  # scipy's reader supports neither quotes nor line numbers

    text = _as_utf8(path, content, reading.encoding).decode()
    # Sparse rows are made dense: a row of two letters has as many cells as there are attributes.
    head = _DATA.search(text)
    n_rows = text.count("\n", head.end()) if head else 0
    check_memory(_BYTES_OF_AN_ARFF_CELL * len(_ATTRIBUTE.findall(text)) * n_rows)
    try:
        # Dates are text that `read_columns` parses.
        found = _arff.loads(_DATE_ATTRIBUTE.sub(r"\1 string", text))
    except Exception as error:  # a damaged file may raise anything
        # Not its ``str``, which may fail where the file has a percent sign.
        message = str(getattr(error, "message", error)).replace("%d", str(getattr(error, "line", "")))
        reason = message.strip() or type(error).__name__
        raise ValueError(f"{path}: is not a whole ARFF file ({reason.splitlines()[0][:200]})") from error
    types = {
        name: pl.Categorical if isinstance(kind, list) else pl.String if kind == "STRING" else pl.Float64
        for name, kind in found["attributes"]
    }
    return Table.of_frame(path, pl.DataFrame(found["data"], schema=types, orient="row"), "ARFF")


def _read_parquet(path: Path, _content: bytes, _reading: Reading) -> Table:
    """Read a Parquet file in a child process, which some damaged files end: Polars aborts."""
    damaged, seconds = f"{path}: is not a whole Parquet file", 60 + path.stat().st_size // _PARQUET_SPEED
    try:
        head = pl.scan_parquet(path, glob=False)
        check_memory(8 * len(head.collect_schema()) * head.select(pl.len()).collect().item())
        command = [sys.executable, "-P", "-c", _PARQUET_CHILD, str(path), str(memory())]  # -P: nothing from this folder
        child = subprocess.run(command, capture_output=True, check=False, timeout=seconds)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(f"{damaged} ({str(error).splitlines()[0]})") from error
    except subprocess.TimeoutExpired:
        raise ValueError(f"{damaged}: it could not be read in {seconds} s") from None
    if child.returncode == _TOO_LARGE:
        raise MemoryError("its pages unpack to more than is allowed")
    if child.returncode or not child.stdout:  # where SIGCHLD is ignored the status is always 0
        output = child.stderr.decode(errors="replace").strip() or "no reason was given"
        if asked := re.search(r"memory allocation of \d+ bytes failed", output):
            raise MemoryError(f"{asked[0]}; is it damaged?")
        reason = output.splitlines()[0]
        raise ValueError(f"{damaged}: its reader ended with status {child.returncode} ({reason[:200]})")
    return Table.of_frame(path, pl.read_ipc(child.stdout), "Parquet")


READERS = {"text": _read_delimited, "arff": _read_arff, "parquet": _read_parquet}
"""How a file is read, by what it is."""
