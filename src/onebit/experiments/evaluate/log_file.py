"""A log of rounds from a file with named columns: CSV, Parquet and whatever else the project reads."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onebit.experiments.evaluate.logged_rounds import LoggedRounds, logged_rounds
from onebit.inputs import Floats
from onebit.streams.columns import read_columns
from onebit.streams.files import plain_name, understand_table
from onebit.streams.reading import PLAIN, Reading
from onebit.streams.table import Table

RIGHT_WORDS = ("true", "right", "yes", "1", "1.0")
WRONG_WORDS = ("false", "wrong", "no", "0", "0.0")
UNKNOWN_WORDS = ("", "none", "null", "nan", "na", "n/a", "unknown", "?")
BETWEEN_LABELS = "|"
"""What stands between the labels of a cell."""


class LogColumns(NamedTuple):
    """The columns of a file that record what happened; all others are features.

    A name that is None stands for the usual one, if the file has it: "propensity" and "among".
    """

    guess: str = "guess"
    correct: str = "correct"
    propensity: str | None = None
    among: str | None = None


USUAL = LogColumns()
"""The usual names."""


def read_log(
    path: str | Path,
    columns: LogColumns = USUAL,
    *,
    classes: Sequence[str] | None = None,
    reading: Reading = PLAIN,
) -> LoggedRounds:
    r"""Read a log of rounds from a table: one row a round, in the order in which they were played.

    Parameters
    ----------
    path : str or Path
        A CSV or other delimited text, Parquet or ARFF file.
    columns : LogColumns
        The names of the columns for what was guessed, whether it was right (true or false, right or wrong, 1 or 0,
        empty where unknown), with which propensity (empty where unknown), and which labels were allowed
        (with ``|`` between them; empty where all were). All other columns are features.
    classes : sequence of str, optional
        All labels that there are: the right one is always among them. Without it the labels are those that were guessed
        or allowed, and there may be others.
    reading : Reading
        Further reading options; the label is not used.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "desk.csv"
    >>> _ = path.write_text("length,guess,correct,propensity\n3.5,mail,true,0.9\n1.5,phone,false,0.2\n0.5,mail,,0.9\n")
    >>> log = read_log(path)
    >>> log.classes[log.guesses].tolist(), log.answers.tolist(), log.propensities.tolist()
    (['mail', 'phone', 'mail'], [1, 0, -1], [0.9, 0.2, 0.9])
    """
    asked = reading._replace(label=columns.guess).checked()

    def understand(table: Table, asked: Reading) -> LoggedRounds:
        return _understand(table, asked, columns, classes)

    return understand_table(Path(path), asked, understand)


def _understand(table: Table, asked: Reading, columns: LogColumns, classes: Sequence[str] | None) -> LoggedRounds:
    guess, correct = _named(table, columns.guess, "--guess"), _named(table, columns.correct, "--correct")
    propensity = _named_or_usual(table, columns.propensity, "propensity", "--propensity")
    among = _named_or_usual(table, columns.among, "among", "--among")
    roles = [place for place in (correct, propensity, among) if place is not None]
    if len({guess, *roles}) <= len(roles):
        named = ", ".join(repr(table.names[place]) for place in (guess, *roles))
        raise ValueError(f"{table.path}: a column cannot say two things; guess, correct and the others are {named}")
    found = read_columns(table, asked._replace(drop=(*asked.drop, *roles)))
    words = np.array([str(label) for label in found.labels.tolist()])
    log = logged_rounds(
        found.X,
        words,
        [_answer(table, row, correct, cell) for row, cell in enumerate(_cells(table, correct))],
        None if propensity is None else _chances(table, propensity),
        among=None if among is None else [_labels(cell) for cell in _cells(table, among)],
        classes=classes,
        name=plain_name(table.path),
    )
    columns_by_role = {"guesses": guess, "answers": correct, "propensities": propensity, "allowed": among}
    given = {role: repr(table.names[place]) for role, place in columns_by_role.items() if place is not None}
    facts = {name: found.about[name] for name in ("read as", "columns", "missing")}
    return replace(log, about=tuple((facts | given).items()))


def _named(table: Table, name: str, option: str) -> int:
    try:
        return table.position(name)
    except ValueError as error:
        raise ValueError(f"{error}. Name the right one with {option}") from error


def _named_or_usual(table: Table, name: str | None, usual: str, option: str) -> int | None:
    if name is not None:
        return _named(table, name, option)
    return table.names.index(usual) if usual in table.names else None


def _cells(table: Table, j: int) -> list[Any]:
    cells: list[Any] = table.frame.to_series(j).to_list()
    return cells


def _answer(table: Table, row: int, j: int, cell: Any) -> bool | None:
    word = "" if cell is None else str(cell).strip().lower()
    if word in UNKNOWN_WORDS:
        return None
    if word not in RIGHT_WORDS and word not in WRONG_WORDS:
        raise ValueError(
            f"{table.at(row, j)}: is {cell!r}, which is neither right nor wrong; write true or false (right or wrong, "
            "yes or no, 1 or 0), and nothing where nobody said"
        )
    return word in RIGHT_WORDS


def _chances(table: Table, j: int) -> Floats:
    chances = np.full(table.frame.height, np.nan)
    for row, cell in enumerate(_cells(table, j)):
        word = "" if cell is None else str(cell).strip()
        if word.lower() in UNKNOWN_WORDS:
            continue
        try:
            chances[row] = float(re.sub(",", ".", word))
        except ValueError:
            chances[row] = np.inf
        if not 0.0 < chances[row] <= 1.0:
            raise ValueError(
                f"{table.at(row, j)}: is {cell!r}; a propensity is above 0 and at most 1: the chance that the guessed "
                "label had. Leave the cell empty where it is not known"
            )
    return chances


def _labels(cell: Any) -> list[str] | None:
    """Return the labels in a cell, or None if all are allowed."""
    if isinstance(cell, (list, tuple)):
        return [str(label) for label in cell] or None
    parts = [] if cell is None else [part.strip() for part in str(cell).split(BETWEEN_LABELS)]
    return [part for part in parts if part] or None
