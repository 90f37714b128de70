"""CSV files: a label column, numbers as they are, words as one column per word.

Delimiters are commas, semicolons or tabs. The first line is a header if it names the label, or if none of its cells is
a number or comes again in its column. Nothing is guessed about what is missing: an error names file, line and column.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onebit.inputs import Floats
from onebit.streams.data_set import DataSet, make_data_set

LABEL_NAMES = ("label", "class", "target", "y")
"""A column of this name is the label unless another is asked for; without one it is the last column."""

# What spreadsheets, R, pandas and UCI files write for a missing value.
_MISSING = frozenset(("", "?", "nan", "na", "n/a", "null"))
_DELIMITERS = ",;\t"
_MANY = 100  # a column with more words than this, most of them different, is a name or free text


class _Line(NamedTuple):
    number: int
    """Counted from 1, as editors do."""
    cells: list[str]


class _Table(NamedTuple):
    path: Path
    names: list[str]
    lines: list[_Line]

    def column(self, j: int) -> list[str]:
        return [line.cells[j] for line in self.lines]

    def at(self, row: int, j: int) -> str:
        return f"{self.path}, line {self.lines[row].number}, column {self.names[j]!r}"


def read_csv(path: Path, name: str, label: str | int | None = None) -> DataSet:
    """Read a CSV file.

    Parameters
    ----------
    path : Path
        The file, UTF-8.
    name : str
        What the data set will be called.
    label : str or int, optional
        The label column: a name from the header, or a position counted from 0 (from the end if negative).
    """
    lines = _read_lines(path)
    table = _Table(path, *_split_header(path, lines, label))
    target = _label_column(table, label)
    if len(table.names) == 1:
        raise ValueError(f"{path}: found only one column, {table.names[0]!r}; a label needs features beside it")
    _check_missing(table)
    features = [_encode(table, j) for j in range(len(table.names)) if j != target]
    return make_data_set(name, np.hstack(features), _labels(table, target), f"{path}, column {table.names[target]!r}")


def _read_lines(path: Path) -> list[_Line]:
    try:
        # "-sig": Excel begins its files with a mark that would become part of the first name.
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            # The first line decides: it has no free text in which the others may occur.
            delimiter = max(_DELIMITERS, key=first.count)
            reader = csv.reader(_without_zeros(path, file), delimiter=delimiter, skipinitialspace=True, strict=True)
            lines = [_Line(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if cells]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
        ) from error
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}; is the file cut off?") from error
    if not lines:
        raise ValueError(f"{path}: the file is empty")
    width = len(lines[0].cells)
    for line in lines:
        if len(line.cells) != width:
            raise ValueError(
                f"{path}, line {line.number}: has {len(line.cells)} columns where the first line has {width}"
            )
    return lines


def _without_zeros(path: Path, file: Iterable[str]) -> Iterator[str]:
    """Yield the lines, or raise where there is a zero byte: Python reads it as a letter, and nothing shows it."""
    for number, line in enumerate(file, 1):
        if "\0" in line:
            raise ValueError(f"{path}, line {number}: has a zero byte; save the file as UTF-8 text, not UTF-16")
        yield line


def _split_header(path: Path, lines: list[_Line], label: str | int | None) -> tuple[list[str], list[_Line]]:
    first, rest = lines[0].cells, lines[1:]
    if not _is_header(first, rest, label):
        return [f"column {j}" for j in range(len(first))], lines
    if not rest:
        raise ValueError(f"{path}: has a header and no rows")
    for j, column in enumerate(first):
        if not column:
            raise ValueError(
                f"{path}, line 1: column {j} has no name. If it is a row number, remove it, for it would be taken "
                "for a feature; otherwise name it"
            )
    if len(set(first)) < len(first):
        twice = next(column for column in first if first.count(column) > 1)
        raise ValueError(f"{path}, line 1: two columns are named {twice!r}")
    return first, rest


def _is_header(first: list[str], rest: list[_Line], label: str | int | None) -> bool:
    wanted = [str(label)] if isinstance(label, str) else list(LABEL_NAMES)
    repeats = [any(line.cells[j] == cell for line in rest) for j, cell in enumerate(first)]
    if any(cell.lower() in map(str.lower, wanted) and not again for cell, again in zip(first, repeats, strict=True)):
        return True
    return not any(repeats) and not any(_is_number(cell) for cell in first)


def _label_column(table: _Table, label: str | int | None) -> int:
    n = len(table.names)
    if label is None:
        found = [j for j, column in enumerate(table.names) if column.lower() in LABEL_NAMES]
        return found[0] if found else n - 1
    if label in table.names:
        return table.names.index(str(label))
    try:
        position = int(label)
    except ValueError:
        raise ValueError(f"{table.path}: has no column {label!r}; its columns are {_shorten(table.names)}") from None
    if not -n <= position < n:
        raise ValueError(f"{table.path}: has no column {position}; its {n} columns are 0 to {n - 1}")
    return position % n


def _check_missing(table: _Table) -> None:
    for row, line in enumerate(table.lines):
        if _MISSING.isdisjoint(map(str.lower, line.cells)):
            continue
        j, cell = next((j, cell) for j, cell in enumerate(line.cells) if cell.lower() in _MISSING)
        what = f"is {cell!r}" if cell else "is empty"
        raise ValueError(f"{table.at(row, j)}: {what}; remove such rows or fill them first")


def _encode(table: _Table, j: int) -> Floats:
    """Return a column of numbers as it is, and any other as one column of 0 and 1 for each of its words."""
    cells = table.column(j)
    column = _numbers(cells)
    if column is not None:
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise ValueError(f"{table.at(row, j)}: is {cells[row]}; numbers must be finite")
        return column[:, None]
    are_numbers = [_is_number(cell) for cell in cells]
    # Mostly numbers: the odd word is a slip, and one column per number would hide it.
    if 2 * sum(are_numbers) > len(cells):
        row = are_numbers.index(False)
        raise ValueError(f"{table.at(row, j)}: is {cells[row]!r} where most rows have a number")
    words, places = np.unique(np.array(cells), return_inverse=True)
    if len(words) > _MANY and 2 * len(words) > len(cells):
        raise ValueError(
            f"{table.path}: column {table.names[j]!r} has {len(words)} different words in {len(cells)} rows. "
            "A name or free text is no feature: remove the column, or turn it into numbers first"
        )
    column = np.zeros((len(cells), len(words)))
    column[np.arange(len(cells)), places] = 1.0
    return column


def _labels(table: _Table, target: int) -> Any:
    """Return whole numbers if all labels are, so that 10 comes after 9; otherwise words."""
    cells = table.column(target)
    numbers = _numbers(cells)
    if numbers is None:
        return np.array(cells)
    try:
        return np.array([int(cell) for cell in cells])
    except ValueError:
        return numbers


def _numbers(cells: list[str]) -> Floats | None:
    """Return the cells as numbers if all of them are."""
    # Python reads 1_000 as a number; a file that has it means a word.
    if any("_" in cell for cell in cells):
        return None
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return None


def _is_number(cell: str) -> bool:
    return _numbers([cell]) is not None


def _shorten(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (", …" if len(names) > most else "")
