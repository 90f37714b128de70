"""Interpret the columns of a table as numbers, dates or words, and find the label.

The same rules hold for every file format. Nothing is guessed silently: what is ambiguous, or would become hundreds of
columns, is refused with a remedy, and the data set records how each column was read. `onebit.encoding` turns the columns
into rows.
"""

import re
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from onebit.encoding.table_column import TableColumn
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
_CODE = r"^[+-]?0[0-9]+$"
_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
_DATE = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}(?:\.[0-9]+)?))?(?:Z|([+-][0-9]{2}):?([0-9]{2}))?)?$"
)
# What most cells of a column may look like, and cannot be read as: a pattern, what it is, the remedy.
_REFUSED = (
    (
        r"^[+-]?[0-9]{1,3}(?:[.,' ][0-9]{3})+(?:[.,][0-9]+)?$",
        "a number with thousands separators",
        "write it without them",
    ),
    (
        r"^(?:[+-]?[$€£¥] ?[+-]?[0-9][0-9.,]*|[+-]?[0-9][0-9.,]* ?[%‰$€£¥])$",
        "a number with a sign of money or percent",
        "write it without",
    ),
    (
        r"^(?:[0-9]{1,2}([./-])[0-9]{1,2}([./-])(?:[0-9]{4}|[0-9]{2})|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})\b",
        "a date whose order of day and month is not known",
        "write it as 2024-12-31",
    ),
)
_CELLS_AT_ONCE = 1_000_000  # of dates: more take more memory
_FEW_ROWS = 20  # in fewer rows, a column that counts rows or never repeats may be coincidence
_SECONDS = 86_400.0  # of a day
_UNITS_IN_A_DAY = {None: 1.0, "ms": 1e3 * _SECONDS, "us": 1e6 * _SECONDS, "ns": 1e9 * _SECONDS}  # None: a date
_NUMBERS, _DAYS = "numbers", "dates, in days since 1970"
# What Parquet may hold, beside numbers.
_TYPED = (pl.Boolean, pl.Date, pl.Datetime, pl.String, pl.Categorical, pl.Enum)


class TableColumns(NamedTuple):
    """What the columns of a table hold."""

    features: list[TableColumn]
    labels: Any
    """As they are written: whole numbers, truth values or words."""
    where: str
    """The column of labels, for an error."""
    about: dict[str, str]
    """The summary, by name."""
