"""Logs of rounds, from lists and from files."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from onebit.experiments.evaluate import LogColumns, logged_rounds, read_log

X = [[0.5, 1.0], [1.5, 0.0], [2.5, 1.0]]
TEXT = """size,team,said,right?,chance,allowed
1.5,red,a,yes,0.5,a|b
2.5,blue,b,no,1,
3.5,red,a,,,c | a
"""
NAMED = LogColumns("said", "right?", "chance", "allowed")


def written(folder: Path, text: str = TEXT, name: str = "desk.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_from_lists() -> None:
    log = logged_rounds(X, ["b", "a", "b"], [True, None, False], [0.5, np.nan, 1.0], among=[["a", "b"], None, ["b"]])
    assert log.classes.tolist() == ["a", "b"]
    assert log.answers.tolist() == [1, -1, 0]
    assert log.is_answered.tolist() == [True, False, True]
    assert log.n_allowed.tolist() == [2, 2, 1]
    assert not log.is_complete
    assert log.truths().tolist() == [1, -1, -1]


def test_of_two_classes_that_are_all_the_other_one_is_right() -> None:
    answers: list[bool | None] = [True, None, False]
    assert logged_rounds(X, ["b", "a", "b"], answers, classes=["a", "b"]).truths().tolist() == [1, -1, 0]
    assert logged_rounds(X, ["b", "a", "b"], answers, classes=["a", "b", "c"]).truths().tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"X": np.empty((0, 2)), "guesses": [], "correct": []}, "X"),
        ({"correct": [None, None, None]}, "correct is None in all of the 3 rounds"),
        ({"correct": [True, 1, False]}, r"correct\[1\] must be True, False, or None where unknown; got 1"),
        ({"correct": [True]}, "correct must have 3 entries, one for each round; got 1"),
        ({"propensities": [0.5, 0.0, 1.0]}, r"propensities\[1\] must be above 0 and at most 1.*got 0"),
        ({"propensities": [0.5, 1.0, 1.5]}, r"propensities\[2\] must be above 0 and at most 1.*got 1.5"),
        (
            {"classes": ["a", "c"]},
            r"guesses\[0\] is 'b', which is not among the 2 classes.*list every label",
        ),
        ({"among": [["a"], None, None]}, r"guesses\[0\] is 'b', which among\[0\] does not allow"),
        ({"among": ["ab", None, None]}, r"among\[0\] must be a list of labels"),
        ({"among": [None, [], None]}, r"among\[1\] must have at least one label"),
        ({"among": [None]}, "among must have 3 entries"),
    ],
)
def test_what_is_no_log_is_refused(change: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"X": X, "guesses": ["b", "a", "b"], "correct": [True, None, False]}
    with pytest.raises(ValueError, match=said):
        logged_rounds(**(given | change))


def test_a_log_from_a_file(tmp_path: Path) -> None:
    log = read_log(written(tmp_path), NAMED)
    assert log.name == "desk"
    assert log.X.tolist() == [[1.5, 0.0, 1.0], [2.5, 1.0, 0.0], [3.5, 0.0, 1.0]]
    assert log.classes.tolist() == ["a", "b", "c"]
    assert log.guesses.tolist() == [0, 1, 0]
    assert log.answers.tolist() == [1, 0, -1]
    np.testing.assert_array_equal(log.propensities, [0.5, 1.0, np.nan])
    assert log.among is not None
    assert [None if each is None else each.tolist() for each in log.among] == [[0, 1], None, [0, 2]]


def test_parquet_and_the_usual_names(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"x": [1.0, 2.0, 4.0], "guess": [3, 10, 3], "correct": [True, False, None], "propensity": [1.0, None, 0.25]}
    )
    frame.write_parquet(tmp_path / "desk.parquet")
    log = read_log(tmp_path / "desk.parquet", classes=["3", "7", "10"])
    assert log.classes[log.guesses].tolist() == ["3", "10", "3"]
    assert log.answers.tolist() == [1, 0, -1]
    np.testing.assert_array_equal(log.propensities, [1.0, np.nan, 0.25])
    assert log.is_complete
    assert log.X.shape == (3, 1)


def test_a_log_that_always_said_the_same(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "x,guess,correct\n1,a,0\n2,a,1\n"))
    assert log.classes.tolist() == ["a"]
    assert np.isnan(log.propensities).all()


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        (TEXT, NAMED._replace(guess="label"), "has no column 'label'.*Name the right one with --guess"),
        (TEXT, NAMED._replace(correct="ok"), "has no column 'ok'.*Name the right one with --correct"),
        (TEXT, NAMED._replace(propensity="p"), "has no column 'p'.*Name the right one with --propensity"),
        (TEXT, NAMED._replace(among="set"), "has no column 'set'.*Name the right one with --among"),
        (TEXT, NAMED._replace(correct="said"), "a column cannot mean two things"),
        (TEXT.replace("yes", "maybe"), NAMED, "desk.csv, line 2, column 'right.': is 'maybe', which is neither right"),
        (TEXT.replace("0.5", "50"), NAMED, "desk.csv, line 2, column 'chance': is '50'; a propensity is above 0"),
        (TEXT.replace("0.5", "0"), NAMED, "desk.csv, line 2, column 'chance': is '0'; a propensity is above 0"),
        (TEXT.replace("0.5", "half"), NAMED, "desk.csv, line 2, column 'chance': is 'half'; a propensity is above 0"),
        (TEXT.splitlines()[0] + "\n", NAMED, "desk.csv"),
        ("", NAMED, "desk.csv: the file is empty"),
    ],
)
def test_a_file_that_is_no_log_is_refused(tmp_path: Path, text: str, columns: LogColumns, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_log(written(tmp_path, text), columns)


def test_only_tables_are_logs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be a table"):
        read_log(written(tmp_path, "1 1:2\n", "rounds.svm"))
    with pytest.raises(ValueError, match="there is no such file"):
        read_log(tmp_path / "lost.csv")
