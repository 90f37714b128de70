"""The user's options for reading a file with columns."""

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from onebit.inputs import check_choice, check_integer, check_number

MISSING = ("refuse", "indicator")
"""The ways to treat missing values."""
MAX_WORDS = 100
"""A column with more different words than this is a name, a code or free text."""
_SMALL, _TIMES = 2 * 2**30, 200  # bytes; times the size of a file


class Reading(NamedTuple):
    """What to read of a file, and how.

    Attributes
    ----------
    label : str or int, optional
        The label column, by name or position (from the end if negative). By default the one named label, class, target
        or y, else the last.
    drop, columns : tuples of str or int
        Columns to leave out; the only columns to take. A text may name several, with commas between.
    missing : {"refuse", "indicator"}
        A missing value is an error; or it becomes the mean of its column (a word of its own among words), and a column
        of 0 and 1 beside it marks where.
    delimiter, decimal, encoding : str, optional
        Of text: the delimiter between cells, the decimal sign ("." or ","), the encoding. Detected if not given; the
        encoding is UTF-8 unless a byte order mark names another.
    max_words : int, optional
        The most different words a column may have, each of which becomes a column. By default 100, and a column in
        which no word comes twice is refused.
    max_gib : float, optional
        The most memory that reading may take, in GiB. By default 2, or 200 times the size of the file if that is more.
        It is never more than the machine has.
    """

    label: str | int | None = None
    drop: tuple[str | int, ...] = ()
    columns: tuple[str | int, ...] = ()
    missing: str = "refuse"
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    max_words: int | None = None
    max_gib: float | None = None

    def checked(self) -> "Reading":
        """Return the same with every value checked and lists made tuples, or raise a ValueError."""
        check_choice("missing", self.missing, MISSING)
        if self.max_words is not None:
            check_integer("max_words", self.max_words, low=1)
        if self.max_gib is not None:
            check_number("max_gib", self.max_gib, above=0.0)
        if self.decimal is not None:
            check_choice("decimal", self.decimal, (".", ","))
        delimiter = "\t" if self.delimiter in ("tab", "\\t") else self.delimiter
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0' or delimiter.isalnum()):
            raise ValueError(f"delimiter must be one sign, such as ; or tab; got {delimiter!r}")
        if delimiter is not None and delimiter == self.decimal:
            raise ValueError(f"delimiter and decimal must differ; both are {delimiter!r}")
        return self._replace(drop=_several(self.drop), columns=_several(self.columns), delimiter=delimiter)

    def most_bytes(self, file_size: int) -> float:
        """Return the most memory that reading a file of that size may take.

        >>> Reading().most_bytes(1000) / 2**30, Reading(max_gib=3.5).most_bytes(1000) / 2**30
        (2.0, 3.5)
        """
        return max(_SMALL, _TIMES * file_size) if self.max_gib is None else self.max_gib * 2**30

    @property
    def chosen(self) -> list[str]:
        """The options that choose columns and were given, for an error about a file that has none."""
        given = {"label": self.label, "drop": self.drop, "columns": self.columns}
        return [f"{name}={value!r}" for name, value in given.items() if value not in (None, ())]


def option(name: str, value: Any) -> str:
    """Return an option as written in Python and on the command line, for an error's remedy.

    >>> option("drop", ["ticket no"]), option("max_words", 300)
    ("drop=['ticket no'] (--drop 'ticket no')", 'max_words=300 (--max-words 300)')
    """
    word = value[0] if isinstance(value, list) else value
    return f"{name}={value!r} (--{name.replace('_', '-')} {shlex.quote(str(word))})"


def _several(names: Sequence[str | int] | str | int) -> tuple[str | int, ...]:
    return (names,) if isinstance(names, (str, int)) else tuple(names)


PLAIN = Reading()
"""All defaults."""
