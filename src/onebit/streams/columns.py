"""Interpret the columns of a table as numbers, dates or words, and find the label.

The same rules hold for every file format. Nothing is guessed silently: what is ambiguous, or would become hundreds of
columns, is refused with a remedy, and the data set records how each column was read. The encoder makes rows of them.
"""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from onebit.inputs import Floats
from onebit.machine_memory import check_memory
from onebit.streams.reading import MAX_WORDS, Reading, option
from onebit.streams.table import LABEL_NAMES, Table, shorten

if TYPE_CHECKING:
    from onebit.encoding import Encoder

# Missing values as spreadsheets, R, pandas and UCI files write them, case-insensitive.
_MISSING = ("", "?", "nan", "na", "n/a", "null")
_EXPONENT = "(?:[eE][+-]?[0-9]+)?"
_INFINITE = "(?i:[+-]?inf(?:inity)?)"
_POINT = rf"^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}|{_INFINITE})$"
_COMMA = rf"^(?:[+-]?(?:[0-9]+,?[0-9]*|,[0-9]+){_EXPONENT}|{_INFINITE})$"
# Ambiguous: 1,234 may be 1234 or 1.234.
_THOUSAND_OR_DECIMAL = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"
_CODE = r"^[+-]?0[0-9]+$"
_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
_DATE = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}(?:\.[0-9]+)?))?(?:Z|([+-][0-9]{2}):?([0-9]{2}))?)?$"
)
_THOUSANDS = r"^[+-]?[0-9]{1,3}(?:[.,' ][0-9]{3})+(?:[.,][0-9]+)?$"
_WITH_SIGN = r"^(?:[+-]?[$€£¥] ?[+-]?[0-9][0-9.,]*|[+-]?[0-9][0-9.,]* ?[%‰$€£¥])$"
_OTHER_DATE = r"^(?:[0-9]{1,2}([./-])[0-9]{1,2}([./-])(?:[0-9]{4}|[0-9]{2})|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})\b"
# What most cells of a column may look like without being readable, and the remedy.
_REFUSED = {
    _THOUSANDS: "a number with thousands separators; write it without them",
    _WITH_SIGN: "a number with a sign of money or percent; write it without",
    _OTHER_DATE: "a date whose order of day and month is not known; write it as 2024-12-31",
}
_CELLS_AT_ONCE = 1_000_000  # of dates: more take more memory
_FEW_ROWS = 20  # in fewer rows, a column that counts rows or never repeats may be coincidence
_SECONDS = 86_400.0  # of a day
_UNITS_IN_A_DAY = {None: 1.0, "ms": 1e3 * _SECONDS, "us": 1e6 * _SECONDS, "ns": 1e9 * _SECONDS}  # None: a date
_NUMBERS, _DAYS = "numbers", "dates, in days since 1970"
_WORDS = (pl.String, pl.Categorical, pl.Enum)
_TYPED = (*_WORDS, pl.Boolean, pl.Date, pl.Datetime)  # what Parquet may hold, beside numbers


class TableColumns(NamedTuple):
    """What the columns of a table hold."""

    features: list[tuple[str, str, Any, tuple[str, ...] | None]]
    """Name, kind, values and words of each, as in `onebit.encoding.TableColumn`."""
    labels: Any  # as they are written: whole numbers, truth values or words
    where: str  # the column of labels, for an error
    about: dict[str, str]  # the summary, by name

    def encode(self) -> "tuple[Encoder, Floats]":
        """Return the encoder of the features, and their rows."""
        from onebit.encoding import Encoder, TableColumn  # slow to import, and not needed to read a table

        return Encoder.of_table([TableColumn(*each) for each in self.features])

    @property
    def X(self) -> Floats:  # noqa: N802
        """The rows."""
        return self.encode()[1]


def read_columns(table: Table, reading: Reading) -> TableColumns:
    """Understand the columns of a table: features as numbers or words, and the labels."""
    target, why = _label_column(table, reading)
    features = _feature_columns(table, reading, target)
    types = table.frame.dtypes
    for j in (*features, target):
        kind = types[j]
        if not (kind.is_numeric() or isinstance(kind, _TYPED)):
            raise ValueError(f"{table.path}: column {table.names[j]!r} holds {kind}; {_leave_out(table, j)}")
    table, n_missing = _find_missing(table, [*features, target], target, reading)
    labels = _labels(table, target)
    found, kinds = _understand(table, features, reading)
    unused = sorted(set(range(len(table.names))).difference([target, *features]))
    missing = [f"{table.names[j]!r} in {count} rows" for j, count in n_missing.items()]
    filled = "numbers filled with the mean, a column of 0 and 1 beside them says where; words: one more word"
    about = {
        "read as": table.description,
        "label": f"{table.names[target]!r} ({why})",
        "columns": "; ".join(f"{len(names)} of {kind}: {_listed(names)}" for kind, names in kinds.items()),
        "dropped": shorten([table.names[j] for j in unused]) or "nothing",
        "missing": f"{_listed(missing)}; {filled}" if missing else "nothing",
    }
    return TableColumns(found, labels, f"{table.path}, column {table.names[target]!r}", about)


def _listed(texts: list[str], most: int = 8) -> str:
    return ", ".join(texts[:most]) + (f", … and {len(texts) - most} more" if len(texts) > most else "")


def _leave_out(table: Table, j: int) -> str:
    return f"leave it out with {option('drop', [table.names[j]])}"


# Which columns.


def _label_column(table: Table, reading: Reading) -> tuple[int, str]:
    """Return the position of the label, and why it is this one."""
    if reading.label is not None:
        return table.position(reading.label), "as asked for"
    dropped = set(table.positions(reading.drop))
    left = [j for j in range(len(table.names)) if j not in dropped]
    if not left:
        raise ValueError(f"{table.path}: no column is left; drop fewer of {shorten(table.names)}")
    named = [j for j in left if table.names[j].lower() in LABEL_NAMES]
    if named:
        return named[0], "by its name; --label chooses another"
    return left[-1], "the last column; --label chooses another"


def _feature_columns(table: Table, reading: Reading, target: int) -> list[int]:
    if len(table.names) == 1:
        raise ValueError(
            f"{table.path}: found only one column, {table.names[0]!r}; a label needs features beside it. "
            "If there are more, say what stands between them with delimiter (--delimiter)"
        )
    dropped, wanted = set(table.positions(reading.drop)), table.positions(reading.columns)
    for j in dropped & {target, *wanted}:
        role = "the label" if j == target else "one of columns (--columns)"
        raise ValueError(f"{table.path}: column {table.names[j]!r} is dropped and {role}; take it out of one")
    taken = set(wanted) or set(range(len(table.names)))
    features = sorted(taken - dropped - {target})
    if not features:
        remedy = "name others in columns (--columns)" if wanted else "drop fewer"
        raise ValueError(f"{table.path}: no column is left beside the label {table.names[target]!r}; {remedy}")
    return features


def _find_missing(table: Table, used: list[int], target: int, reading: Reading) -> tuple[Table, dict[int, int]]:
    """Return the table with nulls where values are missing, and how many each column has; or refuse them."""
    frame, kinds = table.frame, table.frame.dtypes
    text = [f"{j}" for j in used if kinds[j] == pl.String]
    floats = [f"{j}" for j in used if kinds[j].is_float()]
    has_missing = frame.select(pl.col(text).str.to_lowercase().is_in(_MISSING).any()).row(0) if text else ()
    affected = [name for name, has in zip(text, has_missing, strict=True) if has]
    is_there = ~pl.col(affected).str.to_lowercase().is_in(_MISSING)
    frame = frame.with_columns(pl.when(is_there).then(pl.col(affected)), pl.col(floats).fill_nan(None))
    counts = frame.select([f"{j}" for j in used]).null_count().row(0)
    n_missing = {j: count for j, count in zip(used, counts, strict=True) if count}
    for j in (j for j, count in n_missing.items() if count == frame.height):
        remedy = "name another label column with label (--label)" if j == target else _leave_out(table, j)
        raise ValueError(f"{table.path}: column {table.names[j]!r} has no value at all; {remedy}")
    refused = n_missing if reading.missing == "refuse" else [j for j in n_missing if j == target]
    if refused:
        first = frame.select(pl.col([f"{j}" for j in refused]).is_null().arg_max()).row(0)
        row, j = min(zip(first, refused, strict=True))
        cell = table.frame.to_series(j)[row]
        what = "is empty" if cell in ("", None) else f"is {cell!r}"
        fill = f"remove or fill such rows, or take {option('missing', 'indicator')}"
        raise ValueError(f"{table.at(row, j)}: {what}; {'remove such rows' if j == target else fill}")
    return table._replace(frame=frame), n_missing


# What columns hold.


def _understand(table: Table, features: list[int], reading: Reading) -> tuple[list[Any], dict[str, list[str]]]:
    """Return the features as `TableColumns` has them; and their names, with notes, by kind."""
    types, n_rows = table.frame.dtypes, table.frame.height
    n_given = {j: n_rows - table.frame.to_series(j).null_count() for j in features}
    text = [j for j in features if types[j] == pl.String]
    numbers, with_commas, codes, n_numbers = _numbers_in_text(table, text, n_given, reading)
    _check_refused(table, n_numbers, n_given, reading)
    days = _days(table, [j for j, count in _count_matches(table, n_numbers, _DATE).items() if count == n_given[j]])
    words = [j for j in features if j not in numbers and j not in days and isinstance(types[j], _WORDS)]
    n_words = _for_each(table, words, lambda cells: cells.drop_nulls().n_unique())
    check_memory(8 * n_rows * sum(min(count, reading.max_words or MAX_WORDS) for count in n_words.values()))
    named = set(table.positions(reading.columns))
    found: list[Any] = []
    kinds: dict[str, list[str]] = {}
    for j in features:
        column, name, note = table.frame.to_series(j), table.names[j], ""
        if j in n_words:
            kind, note = "words", f" ({n_words[j]} different{', codes, for they begin with 0' if j in codes else ''})"
            _check_words(table, j, n_words[j], reading)
            found.append((name, "category", *_words(column)))
        elif j in days or types[j].is_temporal():
            kind, unit = _DAYS, _UNITS_IN_A_DAY[getattr(types[j], "time_unit", None)]
            found.append((name, "days", _floats(table, j, days[j] if j in days else column.to_physical() / unit), None))
        else:
            kind = "numbers with decimal commas" if j in with_commas else _NUMBERS
            values = _floats(table, j, numbers[j] if j in numbers else column.cast(pl.Float64))
            if kind == _NUMBERS and j not in named:
                _check_counter(table, j, values)
            found.append((name, "number", values, None))
        kinds.setdefault(kind, []).append(f"{name!r}{note}")
    return found, kinds


def _for_each(table: Table, columns: Iterable[int], count: Callable[[pl.Expr], pl.Expr]) -> dict[int, int]:
    """Return a number for each of some columns, in one call: a call costs as much as thousands of cells."""
    names = [f"{j}" for j in columns]
    counts = table.frame.select(count(pl.col(names))).row(0) if names else ()
    return {int(name): count for name, count in zip(names, counts, strict=True)}


def _count_matches(table: Table, columns: Iterable[int], pattern: str) -> dict[int, int]:
    return _for_each(table, columns, lambda cells: cells.str.contains(pattern).sum())


def _first_match(table: Table, j: int, pattern: str, *, negate: bool = False) -> tuple[str, str]:
    """Return where the first cell of a column that matches, or does not, is, and the cell."""
    column = table.frame.to_series(j)
    row = int((column.str.contains(pattern) != negate).arg_max() or 0)
    return table.at(row, j), column[row]


def _numbers_in_text(
    table: Table, text: list[int], n_given: dict[int, int], reading: Reading
) -> tuple[dict[int, pl.Series], set[int], set[int], dict[int, int]]:
    """Find the columns of text in which every value is a number, all columns at once.

    Returns their numbers; which of them have decimal commas; the columns of codes, whole numbers that begin with 0; and
    how many cells are numbers in each other column.
    """
    n_points = _count_matches(table, text if reading.decimal != "," else [], _POINT)
    with_points = [j for j, count in n_points.items() if count == n_given[j]]
    left = sorted(set(text).difference(with_points))
    n_commas = _count_matches(table, left if reading.decimal != "." else [], _COMMA)
    with_commas = [j for j, count in n_commas.items() if count == n_given[j]]
    if reading.decimal is None and with_commas:
        _check_decimal_commas(table, with_commas, with_points)
    found = table.frame.select(
        pl.col([f"{j}" for j in with_points]),
        pl.col([f"{j}" for j in with_commas]).str.replace(",", ".", literal=True),
    )
    maybe_codes = [j for j, count in _count_matches(table, [*with_points, *with_commas], _CODE).items() if count]
    codes = {j for j in maybe_codes if not found[f"{j}"].str.contains("[.eE]").any()}
    numbers = found.select(pl.exclude([f"{j}" for j in codes]).cast(pl.Float64, strict=False))
    n_numbers = {j: max(n_points.get(j, 0), n_commas.get(j, 0)) for j in set(left).difference(with_commas)}
    return {int(each.name): each for each in numbers}, set(with_commas), codes, n_numbers


def _check_decimal_commas(table: Table, with_commas: list[int], with_points: list[int]) -> None:
    """Raise if commas may be thousands separators, or if some numbers of the file have points instead."""
    n_commas = sum(_count_matches(table, with_commas, ",").values())
    if sum(_count_matches(table, with_commas, _THOUSAND_OR_DECIMAL).values()) == n_commas:
        where, cell = _first_match(table, with_commas[0], ",")
        raise ValueError(
            f"{where}: is {cell!r}, which may mean {cell.replace(',', '.')} or {cell.replace(',', '')}; "
            f"say {option('decimal', ',')} for the first, and write numbers without thousands separators for the second"
        )
    for j in with_points:
        where, cell = _first_match(table, j, r"\.")
        if "." in (cell or ""):
            raise ValueError(
                f"{where}: is {cell!r}, but column {table.names[with_commas[0]]!r} has decimal commas; write all "
                f"numbers in one way, or leave one of the columns out: {option('drop', [table.names[j]])}"
            )


def _check_refused(table: Table, n_numbers: dict[int, int], n_given: dict[int, int], reading: Reading) -> None:
    """Raise for a column that looks like numbers or dates and cannot be read so."""
    for j, count in n_numbers.items():
        if 2 * count > n_given[j]:  # a typing error, which one column per number would hide
            where, cell = _first_match(table, j, _COMMA if reading.decimal == "," else _POINT, negate=True)
            is_name = table.names[j] == f"column {j}" and cell == table.frame.to_series(j)[0]
            hint = "; if these are the names of columns, some of them come again below: take those rows out"
            raise ValueError(f"{where}: is {cell!r} where most rows have a number{hint if is_name else ''}")
    for pattern, what in _REFUSED.items():
        for j, count in _count_matches(table, n_numbers, pattern).items():
            if 2 * count > n_given[j]:
                where, cell = _first_match(table, j, pattern)
                raise ValueError(f"{where}: is {cell!r}, {what}, or {_leave_out(table, j)}")
    if reading.decimal is not None:
        other, pattern = (".", _POINT) if reading.decimal == "," else (",", _COMMA)
        for j, count in _count_matches(table, n_numbers, pattern).items():
            if count == n_given[j]:
                where, cell = _first_match(table, j, re.escape(other))
                raise ValueError(
                    f"{where}: is {cell!r}, but decimal is {reading.decimal!r}; say {option('decimal', other)}, "
                    "or leave it away"
                )


def _days(table: Table, columns: list[int]) -> dict[int, pl.Series]:
    """Return days since 1970, UTC, of dates written as ISO 8601 does."""
    days: dict[int, pl.Series] = {}
    height = table.frame.height
    at_once = max(1, _CELLS_AT_ONCE // height)  # stacked: thousands of columns would be thousands of query plans
    for start in range(0, len(columns), at_once):
        some = columns[start : start + at_once]
        found = _days_of(pl.concat([table.frame.to_series(j) for j in some], rechunk=True))
        days |= {j: found.slice(at * height, height) for at, j in enumerate(some)}
    for j, column in days.items():
        given = table.frame.to_series(j)
        if column.null_count() > given.null_count():
            row = int((column.is_null() & given.is_not_null()).arg_max() or 0)
            raise ValueError(f"{table.at(row, j)}: is {given[row]!r}, which is no date")
    return days


def _days_of(column: pl.Series) -> pl.Series:
    """Return days since 1970; null for what is not a date."""
    part = [pl.col("text").str.extract(_DATE, group) for group in range(1, 7)]
    hours, minutes, seconds = (each.cast(pl.Float64).fill_null(0.0) for each in part[1:4])
    shift_hours, shift_minutes = (each.cast(pl.Float64).fill_null(0.0) for each in part[4:6])
    shift = shift_hours * 60 + shift_minutes * pl.when(part[4].str.starts_with("-")).then(-1.0).otherwise(1.0)
    is_time = (hours < 24) & (minutes < 60) & (seconds < 61) & (shift_hours.abs() < 24) & (shift_minutes < 60)
    days = part[0].str.to_date("%Y-%m-%d", strict=False).cast(pl.Int32).cast(pl.Float64)
    fraction = (hours * 3600 + minutes * 60 + seconds - shift * 60) / _SECONDS
    return pl.DataFrame({"text": column}).select(pl.when(is_time).then(days + fraction)).to_series()


def _floats(table: Table, j: int, column: pl.Series) -> Floats:
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
        raise ValueError(
            f"{table.path}: column {table.names[j]!r} counts the rows ({values[0]:g}, {values[1]:g}, …), which says "
            "nothing about a label. "
            f"Leave it out with {option('drop', [table.names[j]])}, or keep it by naming it in columns (--columns)"
        )


def _check_words(table: Table, j: int, n_words: int, reading: Reading) -> None:
    """Raise if a column has too many words, or none comes twice; a column of kind "text" could be let through here."""
    n_rows = table.frame.height
    never_again = reading.max_words is None and n_words == n_rows >= _FEW_ROWS
    if never_again or n_words > (reading.max_words or MAX_WORDS):
        raise ValueError(
            f"{table.path}: column {table.names[j]!r} has {n_words} different words in {n_rows} rows. A name, a code "
            f"or free text is no feature: {_leave_out(table, j)}, or allow one column per word with "
            f"{option('max_words', n_words)}"
        )


def _words(column: pl.Series) -> tuple[Any, tuple[str, ...]]:
    """Return for each row the position of its word, and the words in order; missing ones come after the last."""
    # A dictionary: each call of Polars costs as much as thousands of cells, and there may be thousands of columns.
    cells = column.to_list()
    words = sorted(set(cells).difference([None]))
    positions = {word: at for at, word in enumerate([*words, None])}
    return np.fromiter(map(positions.__getitem__, cells), np.int64, len(cells)), tuple(words)


def _labels(table: Table, target: int) -> Any:
    """Return whole numbers if all labels are written as such, so that 10 comes after 9; otherwise words.

    Two labels that are written differently, 7 and 007, stay two.
    """
    column = table.frame.to_series(target)
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return _check_whole(table, target, column.to_numpy())
    column = column.cast(pl.String)
    if column.str.contains(_WHOLE).all():
        numbers = column.cast(pl.Int64, strict=False)
        if numbers.null_count() == 0:
            return numbers.to_numpy()
    elif column.str.contains(_POINT).all() and not column.str.contains(_CODE).any():
        values = column.cast(pl.Float64, strict=False)
        if values.null_count() == 0 and values.n_unique() == column.n_unique():
            return _check_whole(table, target, values.to_numpy())
    # NumPy strings all take as much room as the longest one.
    labels = column.to_list()
    check_memory(4 * len(labels) * max(map(len, labels)))
    return np.array(labels)


def _check_whole(table: Table, target: int, values: Any) -> Any:
    is_real = np.isfinite(values) & (values != np.trunc(values)) if values.dtype.kind == "f" else np.zeros(1)
    if is_real.any():
        row = int(is_real.argmax())
        raise ValueError(
            f"{table.at(row, target)}: is {values[row]:g}, a measurement rather than a label; "
            "name another label column with label (--label), or write classes instead of numbers"
        )
    return values
