import errno
import io
import sys
import zipfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from encoded_records import dense
from onebit.streams import bundled, read_table
from onebit.streams.files import BUNDLED
from tables import write


def test_numbers_and_words(tmp_path: Path) -> None:
    data = read_table(write(tmp_path, "size,colour,class\n1.5,red,b\n-2,blue,a\n3e1,red,b\n"))
    assert data.name == "table"
    assert data.X.tolist() == [[1.5, 0.0, 1.0], [-2.0, 1.0, 0.0], [30.0, 0.0, 1.0]]
    assert data.label_names == ("a", "b")
    assert data.y.tolist() == [1, 0, 1]
    assert data.X.dtype == np.float64
    assert data.y.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        ("a,label,b\n1,x,2\n3,y,4\n5,x,6\n", None, ("x", "y", "x")),
        ("a,b,TARGET\n1,2,x\n3,4,y\n", None, ("x", "y")),
        ("a,b,kind\n1,2,x\n3,4,y\n5,6,x\n", None, ("x", "y", "x")),
        ("a,kind,b\n1,x,2\n3,y,4\n5,x,6\n", "kind", ("x", "y", "x")),
        ("a,kind,b\n1,x,2\n3,y,4\n5,x,6\n", "1", ("x", "y", "x")),
        ("x,1,2\ny,3,4\nx,1,2\n", "0", ("x", "y", "x")),
        ("x,1,2\ny,3,4\nx,1,2\n", "-3", ("x", "y", "x")),
        ("1,2,x\n3,4,y\n5,6,x\n", None, ("x", "y", "x")),
        ("0,1,label\n1,2,x\n3,4,y\n5,6,x\n", None, ("x", "y", "x")),
        ("red,round,x\nred,flat,y\nblue,round,x\n", None, ("x", "y", "x")),
        ("1;2;x\n3;4;y\n5;6;x\n", None, ("x", "y", "x")),
        ("1\t2\tx\n3\t4\ty\n5\t6\tx\n\n", None, ("x", "y", "x")),
        ('\ufeffa,class\n"1","x, or not"\n2,y\n3,y\n', None, ("x, or not", "y", "y")),
    ],
)
def test_label_column_and_header(tmp_path: Path, text: str, label: str | None, expected: tuple[str, ...]) -> None:
    data = read_table(write(tmp_path, text), label)
    assert tuple(data.label_names[code] for code in data.y) == expected


def test_labels_that_only_python_takes_for_numbers_are_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,label\n1,1_0\n2,10\n3,7\n4,7\n")
    assert read_table(tmp_path / "a.csv").label_names == ("10", "1_0", "7")


def test_number_labels_are_sorted_as_numbers(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "a,y\n1,10\n2,9\n3,10\n")).label_names == ("9", "10")


@pytest.mark.parametrize(
    ("text", "label", "words"),
    [
        ("", None, ["table.csv", "empty"]),
        ("a,class\n", None, ["header", "no rows"]),
        ("a,b,class\n1,2,x\n1,y\n", None, ["line 3", "2 columns", "3"]),
        ("a,b,class\n1,2,x\n1,,y\n", None, ["line 3", "'b'", "empty"]),
        ("a,b,class\n1,2,x\n1,NaN,y\n", None, ["line 3", "'b'", "'NaN'"]),
        ("a,b,class\n1,2,x\n1,?,y\n", None, ["line 3", "'b'", "'?'"]),
        ("a,b,class\n1,2,x\n1,2,\n", None, ["line 3", "'class'", "empty"]),
        ("a,b,class\n1,inf,x\n1,2,y\n", None, ["line 2", "'b'", "inf", "finite"]),
        ("a,class\n1,x\n2,y\nthree,x\n", None, ["line 4", "'a'", "'three'"]),
        ("a,class\n1,x\n2,x\n", None, ["'class'", "all 2 rows", "x"]),
        ("a,price\n1,1.5\n2,2.5\n3,1.5\n", None, ["'price'", "a measurement rather than a label", "1.5"]),
        ("a,name\n1,x\n2,y\n3,z\n", None, ["'name'", "label of its own"]),
        ("a,b\n1,x\n2,y\n3,x\n", "c", ["no column 'c'", "'a', 'b'"]),
        ("a,b\n1,x\n2,y\n3,x\n", "7", ["no column 7", "0 to 1"]),
        (",a,class\n0,1,x\n1,2,y\n2,2,y\n", None, ["column 0", "no name", "row number"]),
        ("a,a,class\n0,1,x\n1,2,y\n", None, ["two columns", "'a'"]),
        ("class\nx\ny\nx\n", None, ["only one column"]),
        ('a,class\n1,"x\n2,y\n', None, ["line", "cut off"]),
        ("text,class\n" + "".join(f"word {i},{i % 2}\n" for i in range(150)), None, ["'text'", "150", "free text"]),
    ],
)
def test_bad_csv_names_file_and_place(tmp_path: Path, text: str, label: str | None, words: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=r"table\.csv") as caught:
        read_table(path, label)
    for word in words:
        assert word in str(caught.value)


def test_svmlight(tmp_path: Path) -> None:
    data = read_table(write(tmp_path, "1 1:0.5 3:2\n-1 2:1\n1 1:1 # a note\n", "rows.svm"))
    assert scipy.sparse.issparse(data.X)
    assert data.X.toarray().tolist() == [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert data.label_names == ("-1", "1")
    for broken in ("1 1:0.5 3\n-1 2:1\n", "", "1 1:nan\n-1 1:1\n", "words\n"):
        with pytest.raises(ValueError, match=r"rows\.svm"):
            read_table(write(tmp_path, broken, "rows.svm"))


def test_npz_dense_and_sparse_have_the_same_labels(tmp_path: Path) -> None:
    X = scipy.sparse.random_array((30, 5), density=0.4, rng=1, format="csr")
    y = np.arange(30) % 3 + 4
    np.savez(tmp_path / "a.npz", X=X.toarray(), y=y)
    parts: dict[str, Any] = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    np.savez(tmp_path / "b_csr.npz", **parts, y=y - 4, classes=np.array(["p", "q", "r"]))
    dense, sparse = read_table(tmp_path / "a.npz"), read_table(tmp_path / "b_csr.npz")
    assert np.array_equal(dense.X, sparse.X.toarray())
    assert np.array_equal(dense.y, sparse.y)
    assert (dense.label_names, sparse.label_names) == (("4", "5", "6"), ("p", "q", "r"))
    assert (dense.name, sparse.name) == ("a", "b")
    assert dense.content != sparse.content


def test_bad_npz(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    X, y = np.random.default_rng(0).normal(size=(500, 4)), np.arange(500) % 2
    np.savez(path, X=X, y=y)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"a\.npz: is not a whole npz file"):
        read_table(path)
    np.savez(path, X=np.array([{}, {}], dtype=object), y=y[:2], allow_pickle=True)
    with pytest.raises(ValueError, match=r"a\.npz: is not a whole npz file of plain arrays"):
        read_table(path)
    np.savez(path, features=X)
    with pytest.raises(ValueError, match=r"must hold X and y.*it holds features"):
        read_table(path)
    X[7, 2] = np.nan
    np.savez(path, X=X, y=y)
    with pytest.raises(ValueError, match=r"a\.npz: .*X\[7, 2\] is nan"):
        read_table(path)
    np.savez(path, data=np.ones(3), indices=[0, 1, 9], indptr=[0, 2, 3], shape=[2, 3], y=y[:2])
    with pytest.raises(ValueError, match=r"a\.npz: .*no sparse matrix"):
        read_table(path)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        read_table(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"must be one of \.csv"):
        read_table(write(tmp_path, "1,2", "a.xlsx"))
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=[0, 1])
    with pytest.raises(
        ValueError, match=r"only tables \(CSV, Parquet, ARFF\) have columns to choose; got label='kind'"
    ):
        read_table(tmp_path / "a.npz", "kind")


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name: str) -> None:
    data = bundled(name)
    assert data.X.shape[0] == len(data.y)
    assert data.n_classes == data.y.max() + 1 >= 2


def test_bundled_by_another_name() -> None:
    with pytest.raises(ValueError, match="no bundled data set 'mnist'; there are breast_cancer"):
        bundled("mnist")


def test_npz_that_asks_for_more_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.zeros((500_000, 8)), y=np.arange(500_000) % 2)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr("onebit.machine_memory.memory", lambda: 2e7)
    monkeypatch.setattr("onebit.files.npy.read_array", lambda *_, **__: pytest.fail("memory was taken"))
    with pytest.raises(ValueError, match=r"a\.npz: does not fit into memory \(it asks for 0\.0335 GiB"):
        read_table(path)


def test_a_header_may_not_promise_more_than_the_file_holds(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (700_000_000, 1)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(80))
        archive.writestr("y.npy", b"")
    with pytest.raises(ValueError, match=r"a\.npz: is not a whole npz file .*X has 80 bytes where .* needs 5600000000"):
        read_table(tmp_path / "a.npz")


def test_any_damage_to_an_npz_is_one_kind_of_error(tmp_path: Path) -> None:
    """Flipped bytes reach zlib, the headers, the checksums and the flags of the archive."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(40, 3)), np.arange(40) % 2
    path = tmp_path / "a.npz"
    n_refused = 0
    for save in (np.savez, np.savez_compressed):
        save(path, X=X, y=y)
        whole = path.read_bytes()
        for at in generator.integers(len(whole), size=300):
            damaged = bytearray(whole)
            damaged[at] ^= int(generator.integers(1, 256))
            path.write_bytes(damaged)
            try:
                data = read_table(path)
            except ValueError as error:
                n_refused += "a.npz" in str(error)
            else:
                assert np.array_equal(data.X, X), "what is read is what was written"
    assert n_refused > 400


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), }(",
        "{'descr': '<f8','''ortran_order': False, 'shape': (4, 2), }",
        "{'descr': ',', 'fortran_order': False, 'shape': (4, 2), }",
        "{'descr': '<f8', 1: False, 'shape': (4, 2), }",
    ],
)
def test_a_damaged_header_in_a_sound_npz(tmp_path: Path, header: str) -> None:
    """NumPy reads a header as Python code, and lets the errors of that pass."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", b"\x93NUMPY\x01\x00" + f"\x76\0{header:<118}".encode() + bytes(64))
    with pytest.raises(ValueError, match=r"a\.npz: is not a whole npz file"):
        read_table(tmp_path / "a.npz")


def test_a_part_of_an_npz_without_its_ending_is_not_there(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X", b"")
    with pytest.raises(ValueError, match=r"a\.npz: must hold X and y.*it holds nothing"):
        read_table(tmp_path / "a.npz")


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"folder\.csv: is a folder"):
        read_table(tmp_path / "folder.csv")

    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "whatever", str(path))

    path = write(tmp_path, "a,class\n1,x\n2,y\n3,x\n")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ValueError, match=r"table\.csv: cannot be read \(Permission denied\)"):
        read_table(path)


def test_no_memory_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError("Unable to allocate 32 GiB")

    monkeypatch.setattr("onebit.streams.files._content", refuse)
    with pytest.raises(ValueError, match=r"table\.csv: does not fit into memory \(Unable to allocate 32 GiB\)"):
        read_table(write(tmp_path, "a,class\n1,x\n2,y\n3,x\n"))


def test_without_polars_one_line_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "polars" or name.startswith("polars.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r"table\.csv: reading tables needs polars, .*: pip install 'onebit\[files\]'"):
        read_table(write(tmp_path, "a,class\n1,x\n2,y\n"))


def test_later_records_are_encoded_as_the_table_was(tmp_path: Path) -> None:
    text = "when,w,zip,n,class\n2024-01-01,red,01234,1.5,a\n2024-01-02T12:00,blue,8001,,b\n2024-01-02,red,8001,2,b\n"
    data = read_table(write(tmp_path, text), missing="indicator")
    assert data.encoder is not None
    records: list[dict[str, Any]] = [
        {"when": "2024-01-01", "w": "red", "zip": "01234", "n": 1.5},
        {"when": datetime(2024, 1, 2, 12), "w": "blue", "zip": 8001, "n": None, "team": "new"},
        {"when": date(2024, 1, 2), "w": "red", "zip": "8001", "n": "2"},
    ]
    for record, row in zip(records, data.X, strict=True):
        assert np.array_equal(dense(data.encoder.look(record).row), row)
