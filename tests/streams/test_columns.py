"""What columns mean: numbers, dates, words, codes, labels; and what is said about them."""

import codecs
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from onebit.streams import bundled, describe, read_table
from onebit.streams.table import find_delimiter

FUZZ = Path(__file__).with_name("fuzz_files.py")


def read(folder: Path, text: str | bytes, name: str = "table.csv", **options: Any) -> Any:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(path, **options)


def labels(data: Any) -> list[str]:
    return [data.label_names[code] for code in data.y]


def rows(values: Iterable[object]) -> str:
    """Return a table of one column n, and labels a and b."""
    return "n,y\n" + "".join(f"{value},{'ab'[i % 2]}\n" for i, value in enumerate(values))


def iris_as(delimiter: str, decimal: str) -> str:
    data = bundled("iris")
    lines = [
        delimiter.join([*(str(value).replace(".", decimal) for value in row), data.label_names[code]])
        for row, code in zip(data.X.tolist(), data.y.tolist(), strict=True)
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("delimiter", "decimal"), [(";", ","), ("\t", ","), ("|", ","), (",", "."), (";", ".")])
def test_iris_is_the_same_however_it_is_written(tmp_path: Path, delimiter: str, decimal: str) -> None:
    found, iris = read(tmp_path, iris_as(delimiter, decimal)), bundled("iris")
    assert np.array_equal(found.X, iris.X)
    assert labels(found) == labels(iris)
    assert found.content == iris.content


@pytest.mark.parametrize(
    ("sample", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("5,1;3,5;x\n4,9;3,0;y\n", ";"),
        ("length,cm;species\n5,1;x\n", ";"),
        ('"a;b",c\n"d;e",f\n', ","),
        ("1,2,3;4\n5,6,7;8\n", ","),
        ("a b\tc\n1 2\t3\n", "\t"),
        ("note, long;x\nan other, one;y\n", ","),
        ("one\ntwo\n", ","),
    ],
)
def test_what_stands_between_cells_is_found(sample: str, delimiter: str) -> None:
    assert find_delimiter(sample) == delimiter


def test_a_delimiter_that_is_given(tmp_path: Path) -> None:
    assert read(tmp_path, "1~2~x\n3~4~y\n5~6~x\n", delimiter="~").X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read(tmp_path, " 1  2 x\n3 4   y\n5 6 x  \n", delimiter=" ").X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read(tmp_path, "1§2§x\n3§4§y\n5§6§x\n", delimiter="§").X.tolist() == [[1, 2], [3, 4], [5, 6]]
    for wrong in ("", "ab", "\n", '"', "1"):
        with pytest.raises(ValueError, match="delimiter must be one sign"):
            read(tmp_path, "1,2\n", delimiter=wrong)
    with pytest.raises(ValueError, match="delimiter and decimal must differ"):
        read(tmp_path, "1,2\n", delimiter=",", decimal=",")


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


@pytest.mark.parametrize("text", ["|", ",,\n,,\n", " \n\t\n", '""\n'])
def test_nothing_but_empty_cells(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"table\.csv: the file is empty"):
        read(tmp_path, text)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "cp1252", "shift_jis"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    word = "日本" if encoding == "shift_jis" else "café"
    content = f"a,y\n1,{word}\n2,tea\n3,tea\n".encode(encoding)
    given = encoding if encoding in ("cp1252", "shift_jis") else None
    assert read(tmp_path, content, encoding=given).label_names == tuple(sorted([word, "tea"]))
    with pytest.raises(ValueError, match=r"encoding must be one that Python knows.*got 'klingon'"):
        read(tmp_path, content, encoding="klingon")
    with pytest.raises(ValueError, match=r"table\.csv: is not UTF-16 text"):
        read(tmp_path, codecs.BOM_UTF16_LE + b"a\0,", encoding=None)


@pytest.mark.parametrize(
    "text",
    [
        'a, "the, class"\n1, "x, y"\n2, z\n3, z\n',
        'a,y\n1,5" pipe\n2,6" pipe\n3,5" pipe\n',
        "x^2,y\n1,a\n2,b\n3,a\n",
        "a,y\r1,b\r2,c\r3,b\r",
        "\ufeff\ufeffa,y\n1,b\n2,c\n3,b\n",
        "\n\ufeffa,y\n1,b\n2,c\n3,b\n",
        "\n\n a , y \n\n 1 ,\tb\n2,c\n,\n   \n3,b\n\n",
        '"a","y"\r\n"1","b\nb"\r\n"2","c ""c"""\r\n"3","b\nb"\r\n',
    ],
)
def test_text_that_polars_reads_in_its_own_way(tmp_path: Path, text: str) -> None:
    data = read(tmp_path, text)
    assert data.X.tolist() == [[1], [2], [3]]
    assert data.y.tolist() in ([0, 1, 0], [0, 1, 1])


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    X = generator.normal(size=(500, 4)) * 10.0 ** generator.integers(-300, 300, size=(500, 4))
    text = "\n".join(",".join([*map(repr, row), "ab"[i % 2]]) for i, row in enumerate(X.tolist()))
    assert np.array_equal(read(tmp_path, text).X, X)
    assert np.array_equal(read(tmp_path, text.replace(",", ";").replace(".", ",")).X, X)


def test_packed_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(b"a,y\n1,b\n2,c\n3,b\n")
    assert read(tmp_path, packed, "fruit.csv.gz").name == "fruit"
    assert read(tmp_path, gzip.compress(b"1 1:2\n-1 2:1\n1 1:1\n"), "rows.svm.gz").X.shape == (3, 2)
    for broken in (packed[:-9], b"a,y\n1,b\n", packed[:20] + b"\0\0\0" + packed[23:]):
        with pytest.raises(ValueError, match=r"fruit\.csv\.gz: is not a whole gz file"):
            read(tmp_path, broken, "fruit.csv.gz")
    monkeypatch.setattr("onebit.streams.files.memory", lambda: 4e6)
    monkeypatch.setattr("onebit.machine_memory.memory", lambda: 4e6)
    with pytest.raises(ValueError, match=r"bomb\.csv\.gz: does not fit into memory"):
        read(tmp_path, gzip.compress(b"1,2\n" * 10**6), "bomb.csv.gz")


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


ARFF = """% a comment
@relation fruit
@attribute weight numeric
@attribute colour {red, 'dark green'}
@attribute picked date "yyyy-MM-dd"
@attribute class {apple, banana}
@data
150,red,2024-01-01,apple
120,'dark green',2024-01-02,banana
?,red,2024-01-02,apple
"""


def test_arff(tmp_path: Path) -> None:
    data = read(tmp_path, ARFF, "fruit.arff", missing="indicator")
    assert data.X.tolist() == [[150, 0, 0, 1, 19723], [120, 0, 1, 0, 19724], [135, 1, 0, 1, 19724]]
    assert data.label_names == ("apple", "banana")
    with pytest.raises(ValueError, match=r"fruit\.arff, row 3, column 'weight': is empty"):
        read(tmp_path, ARFF, "fruit.arff")
    for broken in (
        ARFF.replace("numeric", "matrix"),
        ARFF.replace("{apple", "apple"),
        "hello",
        ARFF + "1,2\n",
        ARFF.replace("numeric", "%s%"),
    ):
        with pytest.raises(ValueError, match=r"fruit\.arff"):
            read(tmp_path, broken, "fruit.arff", missing="indicator")


def test_what_was_read_is_told(tmp_path: Path) -> None:
    text = "team,amount,days,id,vip\na,1.5,3,8,yes\nb,2.5,4,9,no\na,3.5,1,8,no\n"
    assert describe(read(tmp_path, text, drop=["id"])) == {
        "read as": "text with commas between cells, names in line 1",
        "rows": "3",
        "label": "'vip' (the last column; --label chooses another)",
        "classes": "2: no 2, yes 1",
        "columns": "1 of words: 'team' (2 different); 2 of numbers: 'amount', 'days'",
        "dropped": "'id'",
        "missing": "nothing",
    }
    assert describe(read(tmp_path, text, label="team"))["label"] == "'team' (as asked for)"
    assert describe(read(tmp_path, text.replace("id", "class")))["label"].startswith("'class' (by its name")


def test_importing_onebit_does_not_import_polars() -> None:
    script = "import sys, onebit, onebit.cli; print(*({'polars', 'scipy.io'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert found.split() == []


def fuzz(seed: int, cases: int, seconds: float) -> dict[str, int]:
    run = subprocess.run(
        [sys.executable, str(FUZZ), str(seed), str(cases), str(seconds)],
        env={**os.environ, "RUST_BACKTRACE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"status {run.returncode}: {run.stderr[-3000:]}"
    seen: dict[str, int] = json.loads(run.stdout)
    return seen


@pytest.mark.ci
def test_damaged_files_are_read_or_refused() -> None:
    seen = fuzz(seed=0, cases=440, seconds=30)
    assert len(seen) >= 20, "every kind was read and refused"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_damaged_files_for_ten_minutes(seed: int) -> None:
    assert sum(fuzz(seed, cases=10**9, seconds=150).values()) > 1000


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
