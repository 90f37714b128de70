"""A table as read from a file: named columns, not yet interpreted."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from onebit.import_paths import did_you_mean
from onebit.machine_memory import check_memory
from onebit.streams.child_reader import read_parquet_in_child
from onebit.streams.reading import Reading, option

LABEL_NAMES = ("label", "class", "target", "y")
"""A column of this name is the label unless another is asked for; without one it is the last column."""
# ASCII digits only: Python accepts 1_0 and ٣ as numbers, but in a file they are words.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity)")
_DATE_ATTRIBUTE = re.compile(r"""(?im)^([^\S\n]*@attribute\s+(?:'[^'\n]*'|"[^"\n]*"|\S+))\s+date\b.*$""")
_ATTRIBUTE = re.compile(r"(?im)^[^\S\n]*@attribute\b")
_DATA = re.compile(r"(?im)^[^\S\n]*@data\b")
_BYTES_OF_A_CELL = 64  # as a Python object, a cell of a column and a number


class Table(NamedTuple):
    """Columns by position; text is not yet interpreted."""

    path: Path
    frame: pl.DataFrame
    names: list[str]
    description: str
    """How the file was read, for the summary."""
    place: Callable[[int], str]
    """Where a row is, for error messages."""

    def at(self, row: int, j: int) -> str:
        """Return where a cell is, for an error."""
        return f"{self.path}, {self.place(row)}, column {self.names[j]!r}"

    def position(self, wanted: str | int) -> int:
        """Return the position of a column that was named, or raise a ValueError."""
        n = len(self.names)
        if wanted in self.names:
            return self.names.index(str(wanted))
        try:
            position = int(wanted)
        except TypeError:
            raise ValueError(f"{self.path}: a column is named by a text or a position; got {wanted!r:.80}") from None
        except ValueError:
            near = did_you_mean(str(wanted), self.names)
            if len(self.names) == 1:
                near = ". If it has more, say what stands between them with delimiter (--delimiter)"
            raise ValueError(
                f"{self.path}: has no column {wanted!r}; its columns are {shorten(self.names)}{near}"
            ) from None
        if not -n <= position < n:
            raise ValueError(f"{self.path}: has no column {position}; its {n} columns are 0 to {n - 1}")
        return position % n

    def positions(self, wanted: Sequence[str | int]) -> list[int]:
        """Return the positions of columns; a text may name several with commas between."""
        known: dict[str | int, int] = {name: j for j, name in enumerate(self.names)} if wanted else {}
        found = []
        for each in wanted:
            several = isinstance(each, str) and each not in known and "," in each
            parts = [part.strip() for part in str(each).split(",")] if several else [each]
            found += [known[name] if name in known else self.position(name) for name in parts]
        return found


def header_is_first(cells: pl.DataFrame, reading: Reading) -> bool:
    """Return whether the first row names the columns.

    It does if one of its cells is a name that the user gave; or is a usual name of labels and comes nowhere else in its
    column; or if none of its cells is a number, and none comes again or there are only numbers below one of them.
    """
    first = cells.row(0)
    again = cells.slice(1).select(pl.col(name) == cell for name, cell in zip(cells.columns, first, strict=True))
    repeats = again.select(pl.all().any()).row(0)
    usual = () if isinstance(reading.label, str) else LABEL_NAMES
    given = [name for name in (reading.label, *reading.drop, *reading.columns) if isinstance(name, str)]
    named = {part.strip() for name in given for part in (name, *name.split(","))}
    for cell, repeated in zip(first, repeats, strict=True):
        # A number may be a position instead.
        if (cell in named and not (repeated and _NUMBER.fullmatch(cell))) or (cell.lower() in usual and not repeated):
            return True
    if any(_NUMBER.fullmatch(cell) for cell in first):
        return False
    return not any(repeats) or any(
        cells.slice(1).select(pl.all().str.contains(f"^(?:{_NUMBER.pattern})$").all()).row(0)
    )


def column_names(path: Path, line: str, header: Sequence[Any], reading: Reading) -> list[str]:
    """Return the names in a header, or raise if a column that will be used has no unique name."""
    names = [str(cell) for cell in header]
    dropped = {f"{name}" for name in reading.drop}
    for j, name in enumerate(names):
        if not name and dropped.isdisjoint((f"{j}", f"{j - len(names)}")):
            raise ValueError(
                f"{path}, {line}: column {j} has no name. If it is a row number, leave it out with "
                f"{option('drop', [j])}; otherwise name it"
            )
        names[j] = name or f"column {j}"
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{path}, {line}: two columns are named {twice!r}")
    return names


def read_parquet(path: Path) -> Table:
    """Read a Parquet file."""
    return _typed(path, read_parquet_in_child(path), "Parquet")


def read_arff(path: Path, text: str) -> Table:
    """Read an ARFF file: numbers, nominal values, strings and dates."""
    from sklearn.externals import _arff  # scipy's reader supports neither quotes nor line numbers

    # Sparse rows are made dense: a row of two letters has as many cells as there are attributes.
    head = _DATA.search(text)
    n_rows = text.count("\n", head.end()) if head else 0
    check_memory(_BYTES_OF_A_CELL * len(_ATTRIBUTE.findall(text)) * n_rows)
    try:
        # Dates are text that `columns` parses.
        found = _arff.loads(_DATE_ATTRIBUTE.sub(r"\1 string", text))
    except Exception as error:  # a damaged file may raise anything
        raise ValueError(f"{path}: is not a whole ARFF file ({_first_line(error)})") from error
    columns = []
    for j, (name, kind) in enumerate(found["attributes"]):
        values = [row[j] for row in found["data"]]
        if isinstance(kind, list):
            columns.append(pl.Series(name, values, dtype=pl.String).cast(pl.Categorical))
        else:
            columns.append(pl.Series(name, values, dtype=pl.String if kind == "STRING" else pl.Float64))
    return _typed(path, pl.DataFrame(columns), "ARFF")


def _typed(path: Path, frame: pl.DataFrame, description: str) -> Table:
    names = list(frame.columns)
    if frame.height == 0 or not names:
        raise ValueError(f"{path}: the file is empty")
    frame.columns = [f"{j}" for j in range(len(names))]
    frame = frame.with_columns(pl.col(pl.String).str.strip_chars())
    return Table(path, frame, names, description, lambda row: f"row {row + 1}")


def shorten(names: Sequence[str], most: int = 12) -> str:
    """Return names for a message, the first of them if there are many.

    >>> shorten(["a", "b", "c"], 2)
    "'a', 'b', … (3 in all)"
    """
    return ", ".join(map(repr, names[:most])) + (f", … ({len(names)} in all)" if len(names) > most else "")


def _first_line(error: BaseException) -> str:
    """Return the short message of an error; ``str`` of an ARFF error may fail where the file has a percent sign."""
    try:
        message = str(error).strip()
    except Exception:
        message = str(getattr(error, "message", ""))
    return (message or type(error).__name__).splitlines()[0][:200]
