"""What columns mean: numbers, dates, words, codes, labels; and what is said about them."""

import subprocess
import sys
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from onebit.streams import describe, read_table
from tables import labels, read, rows


def test_labels_that_are_written_differently_stay_apart(tmp_path: Path) -> None:
    written = ["007", "7", "1_0", "10", "٣", "3", "07", "1.0", "1"]
    data = read(tmp_path, "a,label\n" + "".join(f"{i % 4},{each}\n" for i, each in enumerate([*written, "7"])))
    assert labels(data)[:9] == written
    assert read(tmp_path, "a,y\n1,10\n2,9\n3,10\n").label_names == ("9", "10"), "numbers are in order of size"
    huge = [str(2**70), str(2**70 + 1)]
    assert read(tmp_path, f"a,y\n1,{huge[0]}\n2,{huge[1]}\n3,{huge[0]}\n").label_names == tuple(huge)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("v;y\n1,234;a\n2,345;b\n1,123;a\n", {}, ["line 2", "'v'", "1.234 or 1234", "--decimal ,"]),
        ("v;w;y\n1,5;2.5;a\n2,5;1.5;b\n1;1;a\n", {}, ["line 2", "'w'", "'2.5'", "'v' has decimal commas"]),
        ("v,y\n1.234.567,a\n2.345.678,b\n1.234.567,a\n", {}, ["line 2", "'v'", "thousands"]),
        ('v,y\n"1,234.5",a\n"2,345.5",b\n"1,234.5",a\n', {}, ["line 2", "'v'", "thousands"]),
        ("v,y\n3/4/2024,a\n4/4/2024,b\n3/4/2024,a\n", {}, ["line 2", "'v'", "2024-12-31", "--drop"]),
        ("v,y\n2024-02-30,a\n2024-01-01,b\n2024-01-01,a\n", {}, ["line 2", "'v'", "no date"]),
        ("v,y\n2024-01-01T25:00,a\n2024-01-01,b\n2024-01-01,a\n", {}, ["line 2", "'v'", "no date"]),
        (rows(range(1, 35)), {}, ["'n' counts the rows (1, 2, …)", "--drop n"]),
        (rows(f"w{i}" for i in range(30)), {}, ["'n' has 30 different words in 30", "--drop n"]),
        (rows(f"w{i % 300}" for i in range(900)), {}, ["300 different", "--max-words 300"]),
        ("a,b,y\n1,2,x\n1,,y\n", {}, ["line 3", "'b'", "empty", "--missing indicator"]),
        ("a,b,y\n1,2,x\n1,2,\n2,2,y\n", {"missing": "indicator"}, ["line 3", "'y'", "empty", "remove such rows"]),
        ("a,b,y\n1,,x\n1,,y\n2,,y\n", {"missing": "indicator"}, ["'b' has no value at all"]),
        ("a,b,y\n1,2,x\n1,2\n2,2,y\n", {"missing": "indicator"}, ["line 3", "2 columns"]),
        ("a,b,y\n1,2,x\n2,2,y\n", {"drop": ["y"], "label": "y"}, ["'y' is dropped and the label"]),
        ("a,b,y\n1,2,x\n2,2,y\n", {"drop": ["a"], "columns": ["a"]}, ["'a' is dropped and one of columns (--columns)"]),
        (rows(range(1, 35)), {}, ["drop=['n'] (--drop n)", "columns (--columns)"]),
        (rows(f"w{i % 300}" for i in range(900)), {}, ["drop=['n'] (--drop n)", "max_words=300 (--max-words 300)"]),
        ("a,b,y\n1,2,x\n1,,y\n", {}, ["missing='indicator' (--missing indicator)"]),
        (",b,y\n1,2,x\n2,2,y\n", {}, ["drop=[0] (--drop 0)"]),
        ("v,y\n1,a\n2.5,b\n1.25,a\n", {"decimal": ","}, ["line 3", "'2.5', but decimal is ','", "decimal='.'"]),
        ("v;y\n1;a\n2,5;b\n1,25;a\n", {"decimal": "."}, ["line 3", "'2,5', but decimal is '.'", "decimal=','"]),
        ("a,Team,c\n1,2,x\n2,2,y\n", {"label": "team"}, ["no column 'team'", "Did you mean Team?"]),
        ("a,Team,c\n1,2,x\n2,2,y\n", {"label": "Team", "delimiter": ";"}, ["no column 'Team'", "delimiter"]),
        ("a,b,y\n1,2,x\n2,2,y\n", {"label": ["y"]}, ["named by a text or a position; got ['y']"]),
        ("a,b,y\n1,2,x\n2,2,y\n", {"drop": ["lost"]}, ["no column 'lost'", "'a', 'b', 'y'"]),
        ("a,b,y\n1,2,x\n2,2,y\n", {"drop": ["a,b"]}, ["no column is left beside the label"]),
        ("a,b,y\n1,2,x\n2,2,y\n", {"columns": ["y"]}, ["beside the label 'y'; name others in columns (--columns)"]),
        ("a,b,y\n1,,x\n1,,y\n2,,y\n", {}, ["'b' has no value at all", "--drop b"]),
        (
            "a,b,y\n1,2,nan\n1,3,nan\n2,4,\n",
            {},
            ["'y' has no value at all", "another label column"],
        ),
        ("a,b,y\n1,2,0.5\n1,3,1.25\n2,4,0.5\n", {}, ["line 2", "'y'", "0.5, a measurement", "--label"]),
        ("v,y\n$1.5,a\n$2,b\n$1.5,a\n", {}, ["line 2", "'v'", "'$1.5'", "money or percent", "--drop v"]),
        ("v,y\n5%,a\n12.5 %,b\n5%,a\n", {}, ["line 2", "'v'", "'5%'", "money or percent"]),
        ("u,y\n1,a\n2,b\nu,y\n3,a\n4,b\n", {}, ["line 1", "'u' where most rows have a number", "names of columns"]),
        ("a b y\n1 2 x\n2 2 y\n", {}, ["only one column", "--delimiter"]),
        ('a,y\n1,x\n\n2,"y"z\n', {}, ["line 4"]),
    ],
)
def test_what_is_refused_and_the_remedy(tmp_path: Path, text: str, options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"table\.csv") as caught:
        read(tmp_path, text, **options)
    for word in words:
        assert word in str(caught.value)


def test_names_with_blanks_after_commas(tmp_path: Path) -> None:
    data = read(tmp_path, "a,b,c,y\n1,2,3,x\n2,2,1,y\n", columns=["a, b"])
    assert data.feature_names == ("a", "b")


def test_the_remedies_help(tmp_path: Path) -> None:
    assert read(tmp_path, "v;y\n1,234;a\n2,345;b\n1,123;a\n", decimal=",").X[0, 0] == 1.234
    counted = "n,v,y\n" + "".join(f"{i},{i % 3},{'ab'[i % 2]}\n" for i in range(30))
    assert read(tmp_path, counted, drop=["n"]).X.shape == (30, 1)
    assert read(tmp_path, counted, columns=["n,v"]).X.shape == (30, 2)
    assert read(tmp_path, rows(f"w{i % 300}" for i in range(900)), max_words=300).X.shape == (900, 300)
    assert read(tmp_path, rows(range(1_700_000_000, 1_700_000_030))).X.shape == (30, 1), "a clock is no row number"
    assert read(tmp_path, ",a,class\n0,1,x\n1,2,y\n2,2,y\n", drop=[0]).X.tolist() == [[1], [2], [2]]


def test_missing_values_with_an_indicator(tmp_path: Path) -> None:
    data = read(tmp_path, "v,w,d,y\n1,,2024-01-01,a\nNA,x,?,b\n3,z,2024-01-03,a\n", missing="indicator")
    day = 19723.0
    assert data.X.tolist() == [
        [1, 0, 0, 0, 1, day, 0],
        [2, 1, 1, 0, 0, day + 1, 1],
        [3, 0, 0, 1, 0, day + 2, 0],
    ]
    assert "'v' in 1 rows, 'w' in 1 rows, 'd' in 1 rows" in describe(data)["missing"]


def test_dates_are_days(tmp_path: Path) -> None:
    written = ["1970-01-02", "1970-01-02T12:00", "1970-01-02 12:00:00.5Z", "1970-01-02T02:00:00+02:00", "1969-12-31"]
    data = read(tmp_path, "when,y\n" + "".join(f"{each},{'ab'[i % 2]}\n" for i, each in enumerate(written)))
    assert data.X[:, 0].tolist() == [1.0, 1.5, 1.5 + 0.5 / 86_400, 1.0, -1.0]
    assert describe(data)["columns"] == "1 of dates, in days since 1970: 'when'"
    daily = "when,y\n" + "".join(f"2024-01-{day:02d},{'ab'[day % 2]}\n" for day in range(1, 32))
    assert read(tmp_path, daily).X.shape == (31, 1), "a day after the other is no row number"


def test_codes_that_begin_with_0_are_words(tmp_path: Path) -> None:
    data = read(tmp_path, "zip,v,y\n01234,00.5,a\n1234,01.5,b\n01234,1.5,b\n")
    assert data.X.tolist() == [[1, 0, 0.5], [0, 1, 1.5], [1, 0, 1.5]]
    assert "codes" in describe(data)["columns"]


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    X = generator.normal(size=(500, 4)) * 10.0 ** generator.integers(-300, 300, size=(500, 4))
    text = "\n".join(",".join([*map(repr, row), "ab"[i % 2]]) for i, row in enumerate(X.tolist()))
    assert np.array_equal(read(tmp_path, text).X, X)
    assert np.array_equal(read(tmp_path, text.replace(",", ";").replace(".", ",")).X, X)


def test_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "v": [1.5, None, 2.5, 3.5],
            "n": pl.Series([1, 2, 3, 5], dtype=pl.UInt8),
            "b": [True, False, True, True],
            "w": pl.Series(["x", "y", "x", "x"], dtype=pl.Categorical),
            "d": pl.Series([0, 1, 1, 2]).cast(pl.Date),
            "t": pl.Series([0, 43_200_000, 0, 0]).cast(pl.Datetime("ms", "UTC")),
            "kind": ["007", "7", "7", "007"],
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    data = read_table(tmp_path / "a.parquet", missing="indicator")
    assert data.X[:2].tolist() == [[1.5, 0, 1, 1, 1, 0, 0, 0], [2.5, 1, 2, 0, 0, 1, 1, 0.5]]
    assert data.label_names == ("007", "7")
    with pytest.raises(ValueError, match=r"a\.parquet, row 2, column 'v': is empty"):
        read_table(tmp_path / "a.parquet")
    frame.with_columns(l=pl.Series([[1], [2], [3], [4]])).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet: column 'l' holds List.*--drop"):
        read_table(tmp_path / "b.parquet", "kind", missing="indicator")
    assert read_table(tmp_path / "b.parquet", "kind", missing="indicator", drop=["l"]).X.shape == (4, 8)
    with pytest.raises(ValueError, match=r"table\.parquet: is not a whole Parquet file"):
        read(tmp_path, b"PAR1", "table.parquet")


def test_importing_onebit_does_not_import_polars() -> None:
    script = "import sys, onebit, onebit.cli; print(*({'polars', 'scipy.io'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert found.split() == []


def test_the_columns_have_names(tmp_path: Path) -> None:
    text = "v,when,w,y\n1.5,2024-01-01,b,p\n,2024-01-02,a,q\n2,2024-01-02,,p\n"
    data = read(tmp_path, text, missing="indicator")
    assert data.feature_names == ("v", "v is missing", "when", "w=a", "w=b", "w is missing")
    assert data.X.shape[1] == len(data.feature_names)
    assert data.X[1, 1] == data.X[1, 3] == data.X[2, 5] == 1.0


def test_a_frame_is_no_file() -> None:
    with pytest.raises(ValueError, match=r"path must be that of a file; got DataFrame.*onebit.play"):
        read_table(pl.DataFrame({"a": [1.0]}))  # type: ignore[arg-type]


@pytest.mark.parametrize("cells", [["red", "blue", "red"], ["2024-03-01", "2024-03-02", "2024-03-04"], ["1", "?", "2"]])
def test_many_columns_take_no_more_calls_of_polars_than_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: list[str]
) -> None:
    """One call per column and rule made 20 000 columns of words take 27 s."""
    calls, taken = [], []

    def counted(call: Any, *what: Any, **options: Any) -> Any:
        calls.append(call)
        return call(*what, **options)

    for name in ("select", "select_seq", "with_columns"):  # all that a frame or a column computes goes through these
        monkeypatch.setattr(pl.DataFrame, name, partialmethod(partial(counted, getattr(pl.DataFrame, name))))
    for n in (2, 300):
        calls.clear()
        text = [",".join([*(f"c{j}" for j in range(n)), "class"])]
        text += [",".join([*[cell] * n, label]) for cell, label in zip(cells, "aba", strict=True)]
        assert read(tmp_path, "\n".join(text), missing="indicator").X.shape[0] == 3
        taken.append(len(calls))
    assert taken[0] == taken[1] > 0
