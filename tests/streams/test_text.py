"""Tables from text: delimiters, encodings, ARFF."""

import codecs
from pathlib import Path

import numpy as np
import pytest

from onebit.streams import bundled, read_table
from onebit.streams.text import _find_delimiter
from tables import labels, read, write


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
    assert _find_delimiter(sample) == delimiter


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


def test_text_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"a,class\n1,caf\xe9\n2,tea\n")
    with pytest.raises(ValueError, match=r"table\.csv: is not UTF-8"):
        read_table(tmp_path / "table.csv")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,class\n1,café\n2,y\n3,y\n".encode("cp1252"), r"is not UTF-8 text .*line 2.*cp1252.*save it as UTF-8"),
        ("a,class\n1,x\n2,y\n3,x\n".encode("utf-16-le"), r"line 1: has a zero byte"),
        (b"a,class\n1,x\n2,y\x00\n3,x\n", r"line 3: has a zero byte"),
        (b"a,class\n1," + b"x" * 200_000 + b"\n", r"line 2: field larger than"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", r"table\.csv"),
    ],
)
def test_csv_that_is_no_text(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_table(tmp_path / "table.csv")


def test_quoted_line_breaks_and_very_many_columns(tmp_path: Path) -> None:
    data = read_table(write(tmp_path, 'a,"the\nclass"\n1,"x\ny"\n2,z\n3,z\n'))
    assert data.label_names == ("x\ny", "z")
    n = 20_000
    lines = [",".join([*(f"c{j}" for j in range(n)), "class"])]
    lines += [",".join([*(str(i * j % 7) for j in range(n)), "xyx"[i % 3]]) for i in range(4)]
    assert read_table(write(tmp_path, "\n".join(lines))).X.shape == (4, n)
