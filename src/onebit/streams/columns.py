"""Interprets the columns of a table as numbers, dates or words, and finds the label.

The same rules hold for every file format. Nothing is guessed silently: what is ambiguous, or would become hundreds of
columns, is refused with a remedy, and the data set records how each column was read.
"""

import re
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from onebit.inputs import Floats
from onebit.machine_memory import check_memory
from onebit.streams.reading import MAX_WORDS, Reading, option
from onebit.streams.table import LABEL_NAMES, Table, shorten

# Missing values as spreadsheets, R, pandas and UCI files write them, case-insensitive.
_MISSING = ("", "?", "nan", "na", "n/a", "null")
_EXPONENT = "(?:[eE][+-]?[0-9]+)?"
_INFINITE = "(?i:[+-]?inf(?:inity)?)"
_POINT = rf"^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}|{_INFINITE})$"
_COMMA = rf"^(?:[+-]?(?:[0-9]+,?[0-9]*|,[0-9]+){_EXPONENT}|{_INFINITE})$"
# Ambiguous: 1,234 may be 1234 or 1.234.
_THOUSAND_OR_DECIMAL = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"
_THOUSANDS = r"^[+-]?[0-9]{1,3}(?:[.,' ][0-9]{3})+(?:[.,][0-9]+)?$"
_WITH_SIGN = r"^(?:[+-]?[$€£¥] ?[+-]?[0-9][0-9.,]*|[+-]?[0-9][0-9.,]* ?[%‰$€£¥])$"
_CODE = r"^[+-]?0[0-9]+$"
_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
_DATE = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}(?:\.[0-9]+)?))?(?:Z|([+-][0-9]{2}):?([0-9]{2}))?)?$"
)
_OTHER_DATE = r"^(?:[0-9]{1,2}([./-])[0-9]{1,2}([./-])(?:[0-9]{4}|[0-9]{2})|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})\b"
_CELLS_AT_ONCE = 1_000_000  # of dates: more take more memory
_FEW_ROWS = 20  # in fewer rows, a column that counts rows or never repeats may be coincidence

_SECONDS = 86_400.0  # of a day
_UNITS_IN_A_DAY = {None: 1.0, "ms": 1e3 * _SECONDS, "us": 1e6 * _SECONDS, "ns": 1e9 * _SECONDS}  # None: a date
_IS_MISSING = " is missing"
_NUMBERS, _DAYS = "numbers", "dates, in days since 1970"


# What Parquet may hold, beside numbers.
_TYPED = (pl.Boolean, pl.Date, pl.Datetime, pl.String, pl.Categorical, pl.Enum)


class _Encoded(NamedTuple):
    """One column as the learner will see it."""

    values: Floats
    """One row per row, one column per number."""
    endings: tuple[str, ...]
    """For each of them, what its name has after that of the column."""
    kind: str
    """The kind as shown in summaries: "numbers"."""
    note: str = ""
    """A note for the summary, such as the number of words."""


class TableColumns(NamedTuple):
    """What the columns of a table became."""

    X: Floats
    labels: Any
    """As they are written: whole numbers, truth values or words."""
    where: str
    """The column of labels, for an error."""
    about: dict[str, str]
    """The summary, by name."""
    feature_names: tuple[str, ...]


def read_columns(table: Table, reading: Reading) -> TableColumns:
    """Understand the columns of a table: features as numbers, and the labels.

    Parameters
    ----------
    table : Table
        From any kind of file.
    reading : Reading
        The user's reading options.
    """
    target, why = _label_column(table, reading)
    features = _feature_columns(table, reading, target)
    kinds = table.frame.dtypes
    for j in (*features, target):
        kind = kinds[j]
        if not (kind.is_numeric() or isinstance(kind, _TYPED)):
            raise ValueError(f"{table.path}: column {table.names[j]!r} holds {kind}; {_leave_out(table, j)}")
    table, n_missing = _find_missing(table, [*features, target], target, reading)
    labels = _labels(table, target)
    encoded = _encode_all(table, features, reading)
    n_columns = sum(column.values.shape[1] for column in encoded.values())
    check_memory(8 * table.frame.height * n_columns)
    X = np.hstack([column.values for column in encoded.values()])
    names = [f"{table.names[j]}{end}" for j, column in encoded.items() for end in column.endings]
    unused = sorted(set(range(len(table.names))).difference([target, *features]))
    about = {
        "read as": table.description,
        "label": f"{table.names[target]!r} ({why})",
        "columns": _say_columns(table, encoded),
        "dropped": shorten([table.names[j] for j in unused]) or "nothing",
        "missing": _say_missing(table, n_missing),
    }
    return TableColumns(X, labels, f"{table.path}, column {table.names[target]!r}", about, tuple(names))


# Which columns.


def _label_column(table: Table, reading: Reading) -> tuple[int, str]:
    """Return the position of the label, and why it is this one."""
    if reading.label is not None:
        return table.position(reading.label), "as asked for"
    dropped = set(table.positions(reading.drop))
    found = [j for j, column in enumerate(table.names) if column.lower() in LABEL_NAMES and j not in dropped]
    if found:
        return found[0], "by its name; --label chooses another"
    left = [j for j in range(len(table.names)) if j not in dropped]
    if not left:
        raise ValueError(f"{table.path}: no column is left; drop fewer of {shorten(table.names)}")
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
    features = [j for j in range(len(table.names)) if j in taken and j not in dropped and j != target]
    if not features:
        remedy = "name others in columns (--columns)" if wanted else "drop fewer"
        raise ValueError(f"{table.path}: no column is left beside the label {table.names[target]!r}; {remedy}")
    return features


def _find_missing(table: Table, used: list[int], target: int, reading: Reading) -> tuple[Table, dict[int, int]]:
    """Return the table with nulls where values are missing, and how many each column has; or refuse them."""
    frame, kinds = table.frame, table.frame.dtypes
    text = [f"{j}" for j in used if kinds[j] == pl.String]
    floats = [f"{j}" for j in used if kinds[j].is_float()]
    is_missing = pl.col(text).str.to_lowercase().is_in(_MISSING)
    has_missing = frame.select(is_missing.any()).row(0) if text else ()
    affected = [name for name, has in zip(text, has_missing, strict=True) if has]
    is_there = ~pl.col(affected).str.to_lowercase().is_in(_MISSING)
    frame = frame.with_columns(pl.when(is_there).then(pl.col(affected)), pl.col(floats).fill_nan(None))
    counts = frame.select([f"{j}" for j in used]).null_count().row(0)
    n_missing = {j: count for j, count in zip(used, counts, strict=True) if count}
    for j in (j for j, count in n_missing.items() if count == frame.height):
        remedy = "name another label column with label (--label)" if j == target else _leave_out(table, j)
        raise ValueError(f"{table.path}: column {table.names[j]!r} has no value at all; {remedy}")
    if n_missing and (reading.missing == "refuse" or target in n_missing):
        among = n_missing if reading.missing == "refuse" else [target]
        first = frame.select(pl.col([f"{j}" for j in among]).is_null().arg_max()).row(0)
        row, j = min(zip(first, among, strict=True))
        cell = table.frame.to_series(j)[row]
        what = f"is {cell!r}" if cell not in ("", None) else "is empty"
        fill = f"remove or fill such rows, or take {option('missing', 'indicator')}"
        remedy = "remove such rows" if j == target else fill
        raise ValueError(f"{table.at(row, j)}: {what}; {remedy}")
    return table._replace(frame=frame), n_missing


# Interpreting columns.


class _TextKinds(NamedTuple):
    """What the text columns are; any other is dates or words."""

    numbers: dict[int, pl.Series]
    codes: set[int]
    """Whole numbers that begin with 0."""
    with_commas: set[int]
    """Numbers with decimal commas."""
    n_numbers: dict[int, int]
    """How many cells of a column are numbers, where not all are."""


def _encode_all(table: Table, features: list[int], reading: Reading) -> dict[int, _Encoded]:
    """Return every feature column as numbers, in order."""
    kinds = table.frame.dtypes
    columns = {j: table.frame.to_series(j) for j in features}
    text = _kinds_of_text(table, [j for j in features if kinds[j] == pl.String], reading)
    dates = _dates(table, text.n_numbers, reading)
    words = [j for j in features if j not in text.numbers and j not in dates and _is_words(kinds[j])]
    n_words = _count_words(table, words)
    check_memory(8 * table.frame.height * sum(min(count, reading.max_words or MAX_WORDS) for count in n_words.values()))
    named = set(table.positions(reading.columns))
    encoded = {}
    for j, column in columns.items():
        if j in text.numbers:
            kind = "numbers with decimal commas" if j in text.with_commas else _NUMBERS
            encoded[j] = _numbers(table, j, text.numbers[j], kind)
        elif kinds[j].is_numeric() or kinds[j] == pl.Boolean:
            encoded[j] = _numbers(table, j, column.cast(pl.Float64))
        elif kinds[j].is_temporal():
            unit = getattr(kinds[j], "time_unit", None)
            encoded[j] = _numbers(table, j, column.to_physical() / _UNITS_IN_A_DAY[unit], _DAYS)
        elif j in dates:
            encoded[j] = _numbers(table, j, dates[j], _DAYS)
        else:
            note = "codes, for they begin with 0" if j in text.codes else ""
            encoded[j] = _words(table, j, n_words[j], reading, note)
        if encoded[j].kind == _NUMBERS and j not in named:
            _check_counter(table, j, encoded[j].values[:, 0])
    return encoded


def _kinds_of_text(table: Table, text: list[int], reading: Reading) -> _TextKinds:
    """Find the columns of text in which every value is a number, all columns at once."""
    n_given = {j: table.frame.height - table.frame.to_series(j).null_count() for j in text}
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
    n_codes = [j for j, count in _count_matches(table, [*with_points, *with_commas], _CODE).items() if count]
    codes = {j for j in n_codes if not found[f"{j}"].str.contains("[.eE]").any()}
    numbers = found.select(pl.exclude([f"{j}" for j in codes]).cast(pl.Float64, strict=False))
    n_numbers = {j: max(n_points.get(j, 0), n_commas.get(j, 0)) for j in set(left).difference(with_commas)}
    return _TextKinds({int(each.name): each for each in numbers}, codes, set(with_commas), n_numbers)


def _count_matches(table: Table, columns: list[int], pattern: str) -> dict[int, int]:
    """Return how many cells of each column match, all columns at once."""
    if not columns:
        return {}
    counts = table.frame.select(pl.col([f"{j}" for j in columns]).str.contains(pattern).sum()).row(0)
    return dict(zip(columns, counts, strict=True))


def _check_decimal_commas(table: Table, with_commas: list[int], with_points: list[int]) -> None:
    """Raise if commas may be thousands separators, or if some numbers of the file have points instead."""
    cells = table.frame.select([f"{j}" for j in with_commas])
    has_comma = pl.all().str.contains(",", literal=True)
    unclear = (has_comma & pl.all().str.contains(_THOUSAND_OR_DECIMAL)).sum()
    if sum(cells.select(unclear).row(0)) == sum(cells.select(has_comma.sum()).row(0)):
        j = with_commas[0]
        row = int(table.frame.to_series(j).str.contains(",", literal=True).arg_max() or 0)
        cell = table.frame.to_series(j)[row]
        raise ValueError(
            f"{table.at(row, j)}: is {cell!r}, which may mean {cell.replace(',', '.')} or {cell.replace(',', '')}; "
            f"say {option('decimal', ',')} for the first, and write numbers without thousands separators for the second"
        )
    for j in with_points:
        has_point = table.frame.to_series(j).str.contains(".", literal=True)
        if has_point.any():
            row = int(has_point.arg_max() or 0)
            raise ValueError(
                f"{table.at(row, j)}: is {table.frame.to_series(j)[row]!r}, but column {table.names[with_commas[0]]!r} "
                "has decimal commas; write all numbers in one way, or leave one of the columns out: "
                f"{option('drop', [table.names[j]])}"
            )


def _dates(table: Table, n_numbers: dict[int, int], reading: Reading) -> dict[int, pl.Series]:
    """Return the columns that are dates, as days; raise for what looks like a number or a date and cannot be read so.

    Parameters
    ----------
    table : Table
        It has nulls where values are missing.
    n_numbers : dict
        How many cells are numbers, for each column of text in which not all are.
    reading : Reading
        The user's reading options.
    """
    columns = list(n_numbers)
    n_given = {j: table.frame.height - table.frame.to_series(j).null_count() for j in columns}
    _check_slips(table, [j for j in columns if 2 * n_numbers[j] > n_given[j]], reading)
    for pattern, what, remedy in (
        (_THOUSANDS, "a number with thousands separators", "write it without them"),
        (_WITH_SIGN, "a number with a sign of money or percent", "write it without"),
        (_OTHER_DATE, "a date whose order of day and month is not known", "write it as 2024-12-31"),
    ):
        for j, count in _count_matches(table, columns, pattern).items():
            if 2 * count > n_given[j]:
                row, cell = _first_match(table, j, pattern)
                raise ValueError(f"{table.at(row, j)}: is {cell!r}, {what}; {remedy}, or {_leave_out(table, j)}")
    if reading.decimal is not None:
        _check_decimal_as_asked(table, n_given, reading.decimal)
    return _days(table, [j for j, count in _count_matches(table, columns, _DATE).items() if count == n_given[j]])


def _first_match(table: Table, j: int, pattern: str) -> tuple[int, str]:
    """Return the first row of a column that matches, and its cell."""
    column = table.frame.to_series(j)
    row = int(column.str.contains(pattern).arg_max() or 0)
    return row, column[row]


def _check_slips(table: Table, mostly_numbers: list[int], reading: Reading) -> None:
    """Raise for a word among mostly numbers: it is a typing error, which one column per number would hide."""
    for j in mostly_numbers:
        column = table.frame.to_series(j)
        pattern = _COMMA if reading.decimal == "," else _POINT
        row = int((~column.str.contains(pattern)).arg_max() or 0)
        hint = ""
        if row == 0 and table.names[j] == f"column {j}":
            hint = "; if these are the names of columns, some of them come again below: take those rows out"
        raise ValueError(f"{table.at(row, j)}: is {column[row]!r} where most rows have a number{hint}")


def _check_decimal_as_asked(table: Table, n_given: dict[int, int], decimal: str) -> None:
    """Raise if a column would be numbers with the other decimal sign than the user gave."""
    other, pattern = (".", _POINT) if decimal == "," else (",", _COMMA)
    for j, count in _count_matches(table, list(n_given), pattern).items():
        if count == n_given[j]:
            row, cell = _first_match(table, j, re.escape(other))
            raise ValueError(
                f"{table.at(row, j)}: is {cell!r}, but decimal is {decimal!r}; "
                f"say {option('decimal', other)}, or leave it away"
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


def _numbers(table: Table, j: int, column: pl.Series, kind: str = _NUMBERS) -> _Encoded:
    """Return a column of numbers; missing ones are the mean, and a second column marks them."""
    values = column.to_numpy().astype(np.float64)
    n_missing = table.frame.to_series(j).null_count()
    is_missing = np.isnan(values) if n_missing else np.zeros(len(values), np.bool_)  # only a null gives NaN
    is_wrong = ~np.isfinite(values) & ~is_missing
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise ValueError(f"{table.at(row, j)}: is {table.frame.to_series(j)[row]}; numbers must be finite")
    if not n_missing:
        return _Encoded(values[:, None], ("",), kind)
    with np.errstate(over="ignore"):
        mean = values[~is_missing].mean()
    # The mean of huge numbers may overflow; the median cannot.
    values[is_missing] = mean if np.isfinite(mean) else np.median(values[~is_missing] / 2.0) * 2.0
    return _Encoded(np.column_stack([values, is_missing]), ("", _IS_MISSING), kind)


def _check_counter(table: Table, j: int, values: Floats) -> None:
    """Raise if a column counts the rows, from 0 or 1."""
    if len(values) >= _FEW_ROWS and values[0] in (0.0, 1.0) and bool((np.diff(values) == 1.0).all()):
        raise ValueError(
            f"{table.path}: column {table.names[j]!r} counts the rows ({values[0]:g}, {values[1]:g}, …), which says "
            "nothing about a label. "
            f"Leave it out with {option('drop', [table.names[j]])}, or keep it by naming it in columns (--columns)"
        )


def _is_words(kind: pl.DataType) -> bool:
    return isinstance(kind, (pl.String, pl.Categorical, pl.Enum))


def _count_words(table: Table, columns: list[int]) -> dict[int, int]:
    """Return how many different words each column has, all columns at once."""
    if not columns:
        return {}
    counts = table.frame.select(pl.col([f"{j}" for j in columns]).drop_nulls().n_unique()).row(0)
    return dict(zip(columns, counts, strict=True))


def _words(table: Table, j: int, n_words: int, reading: Reading, note: str) -> _Encoded:
    """Return one column of 0 and 1 for each word of a column, in order, the last for missing ones if there are any."""
    column = table.frame.to_series(j)
    never_again = reading.max_words is None and n_words == len(column) >= _FEW_ROWS
    if never_again or n_words > (reading.max_words or MAX_WORDS):
        raise ValueError(_too_many_words(table, j, n_words, len(column)))
    width = n_words + (column.null_count() > 0)
    # A dictionary: each call of Polars costs as much as thousands of cells, and there may be thousands of columns.
    cells = column.to_list()
    words = sorted(set(cells).difference([None]))
    places = {word: at for at, word in enumerate([*words, None])}
    values = np.zeros((len(cells), width))
    values[np.arange(len(cells)), [places[cell] for cell in cells]] = 1.0
    endings = (*(f"={word}" for word in words), _IS_MISSING)[:width]
    return _Encoded(values, endings, "words", f"{n_words} different{', ' + note if note else ''}")


def _too_many_words(table: Table, j: int, n_words: int, n_rows: int) -> str:
    name = table.names[j]
    return (
        f"{table.path}: column {name!r} has {n_words} different words in {n_rows} rows. A name, a code or free text is "
        f"no feature: {_leave_out(table, j)}, or allow one column per word with {option('max_words', n_words)}"
    )


def _leave_out(table: Table, j: int) -> str:
    return f"leave it out with {option('drop', [table.names[j]])}"


def _labels(table: Table, target: int) -> Any:
    """Return whole numbers if all labels are written as such, so that 10 comes after 9; otherwise words.

    Two labels that are written differently, 7 and 007, stay two.
    """
    column = table.frame.to_series(target)
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        if column.dtype.is_float():
            _check_whole(table, target, column.to_numpy())
        return column.to_numpy()
    column = column.cast(pl.String)
    if column.str.contains(_WHOLE).all():
        numbers = column.cast(pl.Int64, strict=False)
        if numbers.null_count() == 0:
            return numbers.to_numpy()
    elif column.str.contains(_POINT).all() and not column.str.contains(_CODE).any():
        values = column.cast(pl.Float64, strict=False)
        if values.null_count() == 0 and values.n_unique() == column.n_unique():
            _check_whole(table, target, values.to_numpy())
            return values.to_numpy()
    # NumPy strings all take as much room as the longest one.
    labels = column.to_list()
    check_memory(4 * len(labels) * max(map(len, labels)))
    return np.array(labels)


def _check_whole(table: Table, target: int, values: Floats) -> None:
    is_real = np.isfinite(values) & (values != np.trunc(values))
    if is_real.any():
        row = int(is_real.argmax())
        raise ValueError(
            f"{table.at(row, target)}: is {values[row]:g}, a measurement rather than a label; "
            "name another label column with label (--label), or write classes instead of numbers"
        )


# The summary.


def _say_columns(table: Table, encoded: dict[int, _Encoded]) -> str:
    kinds: dict[str, list[str]] = {}
    for j, column in encoded.items():
        note = f" ({column.note})" if column.note else ""
        kinds.setdefault(column.kind, []).append(f"{table.names[j]!r}{note}")
    return "; ".join(f"{len(names)} of {kind}: {_listed(names)}" for kind, names in kinds.items())


def _say_missing(table: Table, n_missing: dict[int, int]) -> str:
    if not n_missing:
        return "nothing"
    listed = _listed([f"{table.names[j]!r} in {count} rows" for j, count in n_missing.items()])
    return f"{listed}; numbers filled with the mean, a column of 0 and 1 beside them says where; words: one more word"


def _listed(texts: list[str], most: int = 8) -> str:
    return ", ".join(texts[:most]) + (f", … and {len(texts) - most} more" if len(texts) > most else "")
