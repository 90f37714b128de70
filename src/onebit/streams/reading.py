"""The options of reading a file: names, defaults, and what each means, for Python and the command line alike."""

import shlex
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from onebit.inputs import check_choice, check_integer, check_number

_SMALL, _TIMES = 2 * 2**30, 200  # bytes; times the size of a file


class Reading(NamedTuple):
    """What to read of a file, and how."""

    label: Annotated[
        str | int | None,
        "Label column, by name or position (from the end if negative); otherwise label, class, target, y or the last.",
    ] = None
    drop: Annotated[tuple[str | int, ...], "Columns to leave out; repeat it or put commas between."] = ()
    columns: Annotated[tuple[str | int, ...], "The only columns to take; repeat it or put commas between."] = ()
    missing: Annotated[
        str,
        "refuse, or indicator: the column's mean (a word of its own among words), and a column of 0 and 1 beside it.",
    ] = "refuse"
    delimiter: Annotated[str | None, "What stands between cells; otherwise it is found out."] = None
    decimal: Annotated[str | None, "What stands before decimals, . or ,; otherwise it is found out."] = None
    encoding: Annotated[str | None, "Of text, such as cp1252; otherwise UTF-8, or what its mark says."] = None
    max_words: Annotated[
        int | None,
        "The most different words a column may have, each a column then; otherwise 100, and one must come twice.",
    ] = None
    max_gib: Annotated[
        float | None,
        "The most memory that reading may take, in GiB; otherwise 2, or 200 times the file's size if that is more.",
    ] = None

    def checked(self) -> "Reading":
        """Return the same with every value checked and lists made tuples, or raise a ValueError."""
        check_choice("missing", self.missing, ("refuse", "indicator"))
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
        """Return the most memory that reading a file of that size may take."""
        return max(_SMALL, _TIMES * file_size) if self.max_gib is None else self.max_gib * 2**30

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}


def option(name: str, value: Any) -> str:
    """Return an option as written in Python and on the command line, for an error's remedy.

    >>> option("drop", ["ticket no"]), option("max_words", 300)
    ("drop=['ticket no'] (--drop 'ticket no')", 'max_words=300 (--max-words 300)')
    """
    word = value[0] if isinstance(value, list) else value
    return f"{name}={value!r} (--{name.replace('_', '-')} {shlex.quote(str(word))})"


def _several(names: Sequence[str | int] | str | int) -> tuple[str | int, ...]:
    return (names,) if isinstance(names, (str, int)) else tuple(names)


PLAIN = Reading()  # all defaults
