"""Tables: named columns of a file, read as numbers, dates or words, of which one is the label.

Nothing is guessed silently: what is ambiguous, or would become hundreds of columns, is refused with a remedy, and the
summary says how each column was read.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from onebit.encoding import TableColumn
from onebit.encoding.fields import date_numbers, moment_of
from onebit.import_paths import did_you_mean
from onebit.inputs import Floats
from onebit.machine_memory import check_memory
from onebit.streams.reading import Reading, option

LABEL_NAMES = ("label", "class", "target", "y")  # of the column that is the label by default, otherwise the last
# ASCII digits only: Python accepts 1_0 and ٣ as numbers, but in a file they are words.
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity)")
# Missing values as spreadsheets, R, pandas and UCI files write them, case-insensitive.
_MISSING = ("", "?", "nan", "na", "n/a", "null")
_THOUSAND_OR_DECIMAL = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"  # ambiguous: 1,234 may be 1234 or 1.234
_CODE = r"^[+-]?0[0-9]+$"
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?$"
)
# What most cells of a column may look like without being readable, and the remedy.
_REFUSED = {
    r"[+-]?[0-9]{1,3}(?:[.,' ][0-9]{3})+(?:[.,][0-9]+)?$": "a number with thousands separators; write it without them",
    r"(?:[+-]?[$€£¥] ?[+-]?[0-9][0-9.,]*|[+-]?[0-9][0-9.,]* ?[%‰$€£¥])$": (
        "a number with a sign of money or percent; write it without"
    ),
    r"(?:[0-9]{1,2}([./-])[0-9]{1,2}([./-])(?:[0-9]{4}|[0-9]{2})|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})\b": (
        "a date whose order of day and month is not known; write it as 2024-12-31"
    ),
}
_FEW_ROWS = 20  # in fewer rows, a column that counts rows or never repeats may be coincidence
_MOST_WORDS = 100  # a column with more different words than this is a name, a code or free text
_MOST_NAMED = 12  # columns in an error message
_OTHER_DELIMITER = "If there are more, say what stands between them with delimiter (--delimiter)"
_UNITS_IN_A_DAY = {None: 1.0, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}  # None: a date
_WORDS = (pl.String, pl.Categorical, pl.Enum)
_TYPED = (*_WORDS, pl.Boolean, pl.Date, pl.Datetime)  # what Parquet may hold, beside numbers


class Table(NamedTuple):
    """Columns by position; text is not yet interpreted."""

    path: Path
    frame: pl.DataFrame  # with columns "0", "1", …: Polars takes some names for patterns
    names: list[str]
    description: str  # how the file was read, for the summary
    place: Callable[[int], str]  # where a row is, for error messages

    @classmethod
    def of_frame(cls, path: Path, frame: pl.DataFrame, description: str) -> "Table":
        """Return the columns of a frame that was read from a file."""
        names = list(frame.columns)
        if frame.height == 0 or not names:
            raise ValueError(f"{path}: the file is empty")
        frame.columns = [f"{j}" for j in range(len(names))]
        frame = frame.with_columns(pl.col(pl.String).str.strip_chars())
        return cls(path, frame, names, description, lambda row: f"row {row + 1}")

    def at(self, row: int, j: int) -> str:
        """Return where a cell is, for an error."""
        return f"{self.path}, {self.place(row)}, column {self.names[j]!r}"

    def column(self, j: int, sign: str = ":") -> str:
        """Return which column an error is about."""
        return f"{self.path}{sign} column {self.names[j]!r}"

    def leave_out(self, j: int) -> str:
        """Return the remedy for a column that cannot be read."""
        return f"leave it out with {option('drop', [self.names[j]])}"

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
            near = f". {_OTHER_DELIMITER}" if n == 1 else did_you_mean(str(wanted), self.names)
            known = _shorten(self.names)
            raise ValueError(f"{self.path}: has no column {wanted!r}; its columns are {known}{near}") from None
        if not -n <= position < n:
            raise ValueError(f"{self.path}: has no column {position}; its {n} columns are 0 to {n - 1}")
        return position % n

    def positions(self, wanted: Sequence[str | int]) -> list[int]:
        """Return the positions of columns; a text may name several with commas between."""
        found: list[int] = []
        for each in wanted:
            is_list = isinstance(each, str) and "," in each and each not in self.names
            found += map(self.position, [part.strip() for part in str(each).split(",")] if is_list else [each])
        return found


def _shorten(names: Sequence[str]) -> str:
    more = f", … ({len(names)} in all)" if len(names) > _MOST_NAMED else ""
    return ", ".join(map(repr, names[:_MOST_NAMED])) + more


def _listed(texts: list[str]) -> str:
    return ", ".join(texts[:8]) + (f", … and {len(texts) - 8} more" if len(texts) > 8 else "")


class _TableColumns(NamedTuple):
    features: list[TableColumn]
    labels: Any  # as they are written: whole numbers, truth values or words
    where: str  # the column of labels, for an error
    about: dict[str, str]  # the summary, by name


class _Numbers(NamedTuple):
    """The columns of text in which every value is a number."""

    columns: dict[int, pl.Series]
    with_commas: set[int]
    codes: set[int]  # columns of whole numbers that begin with 0
    others: dict[int, int]  # how many cells are numbers in each other column


def read_columns(table: Table, reading: Reading) -> _TableColumns:
    """Understand the columns of a table: features as numbers or words, and the labels."""
    target, why, chosen = _label_and_features(table, reading)
    types = table.frame.dtypes
    for j in (*chosen, target):
        if not (types[j].is_numeric() or isinstance(types[j], _TYPED)):
            raise ValueError(f"{table.column(j)} holds {types[j]}; {table.leave_out(j)}")
    table, n_missing = _find_missing(table, [*chosen, target], target, reading)
    labels = _labels(table, target)
    numbers = _numbers_in_text(table, [j for j in chosen if types[j] == pl.String], reading)
    named = set(table.positions(reading.columns))
    features: list[TableColumn] = []
    by_kind: dict[str, list[str]] = {}
    for j in chosen:
        kind, note, feature = _feature(table, j, numbers, reading)
        if kind == "numbers" and j not in named:
            _check_counter(table, j, feature.values)
        features.append(feature)
        by_kind.setdefault(kind, []).append(f"{table.names[j]!r}{note}")
    unused = [name for j, name in enumerate(table.names) if j not in {target, *chosen}]
    missing = [f"{table.names[j]!r} in {count} rows" for j, count in n_missing.items()]
    filled = "numbers filled with the mean, a column of 0 and 1 beside them says where; words: one more word"
    about = {
        "read as": table.description,
        "label": f"{table.names[target]!r} ({why})",
        "columns": "; ".join(f"{len(names)} of {kind}: {_listed(names)}" for kind, names in by_kind.items()),
        "dropped": _shorten(unused) or "nothing",
        "missing": f"{_listed(missing)}; {filled}" if missing else "nothing",
    }
    return _TableColumns(features, labels, table.column(target, ","), about)


def _label_and_features(table: Table, reading: Reading) -> tuple[int, str, list[int]]:
    """Return the position of the label, why it is this one, and the positions of the features."""
    names = table.names
    asked_for = None if reading.label is None else table.position(reading.label)
    if len(names) == 1:
        message = f"found only one column, {names[0]!r}; a label needs features beside it. {_OTHER_DELIMITER}"
        raise ValueError(f"{table.path}: {message}")
    dropped = set(table.positions(reading.drop))
    left = [j for j in range(len(names)) if j not in dropped]
    by_name = [j for j in left if names[j].lower() in LABEL_NAMES]
    if asked_for is not None:
        target, why = asked_for, "as asked for"
    elif not left:
        raise ValueError(f"{table.path}: no column is left; drop fewer of {_shorten(names)}")
    else:
        target = by_name[0] if by_name else left[-1]
        why = f"{'by its name' if by_name else 'the last column'}; --label chooses another"
    wanted = table.positions(reading.columns)
    for j in dropped & {target, *wanted}:
        role = "the label" if j == target else "one of columns (--columns)"
        raise ValueError(f"{table.column(j)} is dropped and {role}; take it out of one")
    features = sorted(set(wanted or left) - {target})
    if not features:
        remedy = "name others in columns (--columns)" if wanted else "drop fewer"
        raise ValueError(f"{table.path}: no column is left beside the label {names[target]!r}; {remedy}")
    return target, why, features


def _find_missing(table: Table, used: list[int], target: int, reading: Reading) -> tuple[Table, dict[int, int]]:
    """Return the table with nulls where values are missing, and how many each column has; or refuse them."""
    kinds = table.frame.dtypes
    text = pl.col([f"{j}" for j in used if kinds[j] == pl.String])
    floats = pl.col([f"{j}" for j in used if kinds[j].is_float()])
    is_there = ~text.str.to_lowercase().is_in(_MISSING)
    frame = table.frame.with_columns(pl.when(is_there).then(text), floats.fill_nan(None))
    counts = frame.select([f"{j}" for j in used]).null_count().row(0)
    n_missing = {j: count for j, count in zip(used, counts, strict=True) if count}
    for j in (j for j, count in n_missing.items() if count == frame.height):
        remedy = "name another label column with label (--label)" if j == target else table.leave_out(j)
        raise ValueError(f"{table.column(j)} has no value at all; {remedy}")
    refused = n_missing if reading.missing == "refuse" else [j for j in n_missing if j == target]
    if refused:
        first = frame.select(pl.col([f"{j}" for j in refused]).is_null().arg_max()).row(0)
        row, j = min(zip(first, refused, strict=True))
        cell = table.frame.to_series(j)[row]
        what = "is empty" if cell in ("", None) else f"is {cell!r}"
        fill = f"remove or fill such rows, or take {option('missing', 'indicator')}"
        raise ValueError(f"{table.at(row, j)}: {what}; {'remove such rows' if j == target else fill}")
    return table._replace(frame=frame), n_missing


def _numbers_in_text(table: Table, text: list[int], reading: Reading) -> _Numbers:
    """Find the numbers in columns of text, in all at once: a call of Polars costs as much as thousands of cells."""
    frame, found = table.frame, _Numbers({}, set(), set(), {})
    for sign in (".", ",") if reading.decimal is None else (reading.decimal,):
        cells = pl.col([f"{j}" for j in text if j not in found.columns])
        if sign == ",":
            cells = pl.when(~cells.str.contains(".", literal=True)).then(cells.str.replace(",", ".", literal=True))
        for column in frame.select(cells.cast(pl.Float64, strict=False).fill_nan(None)):
            j, n_numbers = int(column.name), frame.height - column.null_count()
            found.others[j] = max(found.others.get(j, 0), n_numbers)
            if column.null_count() == frame.to_series(j).null_count():
                found.columns[j] = column
                found.with_commas.update({j} if sign == "," else ())
    names = [f"{j}" for j in found.columns]
    if reading.decimal is None and found.with_commas:
        _check_decimal_commas(table, sorted(found.with_commas), sorted(found.columns.keys() - found.with_commas))
    is_code = pl.col(names).str.contains(_CODE).any() & ~pl.col(names).str.contains("[.,eE]").any()
    found.codes.update(int(column.name) for column in frame.select(is_code) if column[0])
    return found


def _check_decimal_commas(table: Table, with_commas: list[int], with_points: list[int]) -> None:
    """Raise if commas may be thousands separators, or if some numbers of the file have points instead."""
    cells = pl.col([f"{j}" for j in with_commas])
    is_clear = cells.str.contains(",", literal=True) & ~cells.str.contains(_THOUSAND_OR_DECIMAL)
    if not any(table.frame.select(is_clear.any()).row(0)):
        where, cell = _first(table, with_commas[0], ".*,")
        meanings = f"{cell.replace(',', '.')} or {cell.replace(',', '')}"
        remedy = f"say {option('decimal', ',')} for the first, and write numbers without thousands separators"
        raise ValueError(f"{where}: is {cell!r}, which may mean {meanings}; {remedy} for the second")
    has_points = table.frame.select(pl.col([f"{j}" for j in with_points]).str.contains(".", literal=True).any())
    for j in (int(column.name) for column in has_points if column[0]):
        where, cell = _first(table, j, r".*\.")
        other = f"column {table.names[with_commas[0]]!r} has decimal commas; write all numbers in one way"
        raise ValueError(f"{where}: is {cell!r}, but {other}, or {table.leave_out(j)}")


def _first(table: Table, j: int, pattern: str) -> tuple[str, str]:
    """Return where the first cell of a column that matches is, and the cell."""
    cells = table.frame.to_series(j)
    row = next(row for row, cell in enumerate(cells) if cell is not None and re.match(pattern, cell))
    return table.at(row, j), cells[row]


def _feature(table: Table, j: int, numbers: _Numbers, reading: Reading) -> tuple[str, str, TableColumn]:
    """Return the kind of a column and a note, for the summary, and its values."""
    column, name = table.frame.to_series(j), table.names[j]
    if column.dtype.is_temporal():
        unit = _UNITS_IN_A_DAY[getattr(column.dtype, "time_unit", None)]
        days = _finite(table, j, column.to_physical() / unit)
        return "dates, in days since 1970", "", TableColumn(name, "days", days)
    if not isinstance(column.dtype, _WORDS) or (j in numbers.columns and j not in numbers.codes):
        kind = "numbers with decimal commas" if j in numbers.with_commas else "numbers"
        read = numbers.columns[j] if j in numbers.columns else column.cast(pl.Float64)
        return kind, "", TableColumn(name, "number", _finite(table, j, read))
    cells = column.to_list()
    counts = Counter(cells)
    n_given = len(cells) - counts.pop(None, 0)
    if column.dtype == pl.String and j not in numbers.codes:
        _check_readable(table, j, counts, n_given, numbers.others[j], reading)
        if all(map(_DATE.match, counts)):
            days_of = {None: np.nan}
            for cell in counts:
                moment = moment_of(cell)
                if moment is None:
                    raise ValueError(f"{table.at(cells.index(cell), j)}: is {cell!r}, which is no date")
                days_of[cell] = date_numbers(moment)[0]
            days = np.array([days_of[cell] for cell in cells])
            return "dates, in days since 1970", "", TableColumn(name, "days", days)
    is_identifier = reading.max_words is None and len(counts) == len(cells) >= _FEW_ROWS
    if is_identifier or len(counts) > (reading.max_words or _MOST_WORDS):
        what = f"has {len(counts)} different words in {len(cells)} rows. A name, a code or free text is no feature"
        remedy = f"{table.leave_out(j)}, or allow one column per word with {option('max_words', len(counts))}"
        raise ValueError(f"{table.column(j)} {what}: {remedy}")
    words = sorted(counts)
    positions = {word: at for at, word in enumerate([*words, None])}
    values = np.fromiter(map(positions.__getitem__, cells), np.int64, len(cells))
    note = f" ({len(words)} different{', codes, for they begin with 0' if j in numbers.codes else ''})"
    return "words", note, TableColumn(name, "category", values, tuple(words))


def _check_readable(table: Table, j: int, counts: Counter[str], n_given: int, n_numbers: int, reading: Reading) -> None:
    """Raise for a column of text that looks like numbers or dates and cannot be read so."""
    other = "." if reading.decimal == "," else ","
    if 2 * n_numbers > n_given:  # a typing error, which one column per number would hide
        where, cell = _first(table, j, f"(?!(?:{NUMBER.pattern})$)|.*[{other}]")
        is_name = table.names[j] == f"column {j}" and cell == table.frame.to_series(j)[0]
        hint = "; if these are the names of columns, some of them come again below: take those rows out"
        raise ValueError(f"{where}: is {cell!r} where most rows have a number{hint if is_name else ''}")
    for pattern, what in _REFUSED.items():
        if 2 * sum(count for cell, count in counts.items() if re.match(pattern, cell)) > n_given:
            where, cell = _first(table, j, pattern)
            raise ValueError(f"{where}: is {cell!r}, {what}, or {table.leave_out(j)}")
    if reading.decimal is not None and all(map(NUMBER.fullmatch, counts)):
        where, cell = _first(table, j, f".*[{other}]")
        remedy = f"say {option('decimal', other)}, or leave it away"
        raise ValueError(f"{where}: is {cell!r}, but decimal is {reading.decimal!r}; {remedy}")


def _finite(table: Table, j: int, column: pl.Series) -> Floats:
    """Return a column of numbers, NaN where missing, or raise if one is not finite."""
    values: Floats = column.to_numpy().astype(np.float64)
    given, is_wrong = table.frame.to_series(j), ~np.isfinite(values)
    if np.count_nonzero(is_wrong) > given.null_count():
        row = int((is_wrong & given.is_not_null().to_numpy()).argmax())
        raise ValueError(f"{table.at(row, j)}: is {given[row]}; numbers must be finite")
    return values


def _check_counter(table: Table, j: int, values: Floats) -> None:
    """Raise if a column counts the rows, from 0 or 1."""
    if len(values) >= _FEW_ROWS and values[0] in (0.0, 1.0) and bool((np.diff(values) == 1.0).all()):
        what = f"counts the rows ({values[0]:g}, {values[1]:g}, …), which says nothing about a label"
        remedy = f"{table.leave_out(j)}, or keep it by naming it in columns (--columns)"
        raise ValueError(f"{table.column(j)} {what}: {remedy}")


def _labels(table: Table, target: int) -> Any:
    """Return whole numbers if all labels are written as such, so that 10 comes after 9; otherwise words."""
    column = table.frame.to_series(target)
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        values = column.to_numpy()
    else:
        labels: list[str] = column.cast(pl.String).to_list()
        numbers = _numbers_of_labels(set(labels))
        if numbers is None:
            check_memory(4 * len(labels) * max(map(len, labels)))  # each takes as much room as the longest one
            return np.array(labels)
        values = np.array([numbers[label] for label in labels])
    is_real = np.isfinite(values) & (values != np.trunc(values)) if values.dtype.kind == "f" else np.zeros(1)
    if is_real.any():
        row = int(is_real.argmax())
        remedy = "name another label column with label (--label), or write classes instead of numbers"
        raise ValueError(f"{table.at(row, target)}: is {values[row]:g}, a measurement rather than a label; {remedy}")
    return values


def _numbers_of_labels(labels: set[str]) -> dict[str, Any] | None:
    """Return the numbers that all labels are, if these tell them apart (7 and 007 stay two), or None."""
    if all(map(_WHOLE.fullmatch, labels)):
        is_small = max(map(len, labels)) < 21 and max(abs(int(label)) for label in labels) < 2**63
        return {label: int(label) for label in labels} if is_small else None
    if not all(NUMBER.fullmatch(label) and "," not in label and not re.match(_CODE, label) for label in labels):
        return None
    numbers = {label: float(label) for label in labels}
    return numbers if len(set(numbers.values())) == len(labels) else None
