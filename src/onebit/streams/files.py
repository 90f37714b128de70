"""Data sets from files, by their ending, and the ones that come with scikit-learn, by name."""

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scipy.sparse

from onebit.encoding import Encoder
from onebit.extras import missing_extra
from onebit.files import read_npz
from onebit.machine_memory import check_memory, memory, no_more_than
from onebit.streams.data_set import DataSet, make_data_set
from onebit.streams.reading import Reading, option

if TYPE_CHECKING:
    from onebit.streams.table import Table

BUNDLED = ("breast_cancer", "digits", "iris", "wine")  # data sets that come with scikit-learn
SUFFIXES = {  # what a file is, by its ending
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), "text"),
    ".parquet": "parquet",
    **dict.fromkeys((".arff", ".arff.gz"), "arff"),
    **dict.fromkeys((".svm", ".svmlight", ".libsvm", ".svm.gz", ".svmlight.gz", ".libsvm.gz"), "svmlight"),
    ".npz": "npz",
}
TABLES = ("text", "parquet", "arff")  # files with named columns, of which one is the label
_ROOM = 4  # times the size of a file: what reading it takes
_CHUNK = 1 << 20  # bytes that are unpacked at once
_HALF_AN_ERROR = 500  # letters
_SPARSE_PARTS = ("data", "indices", "indptr", "shape")  # of a CSR matrix, as scipy.sparse.save_npz names them


def read_table(path: str | Path, label: str | int | None = None, **options: Any) -> DataSet:
    r"""Read a data set from a file; its ending determines the format.

    Tables (CSV and other delimited text, Parquet, ARFF) have columns: numbers stay numbers, dates become days since
    1970, words become one column each, and one column is the label. svmlight files give sparse rows, npz files dense or
    sparse ones. docs/files.md has every rule.

    Parameters
    ----------
    path : str or Path
        The file.
    label : str or int, optional
        The label column of a table, by name or position. By default the one named label, class, target or y, else the
        last.
    **options
        Columns of a table to leave out, `drop`, or the only ones to take, `columns`; `missing`, "refuse" or
        "indicator"; of text, `delimiter`, `decimal` and `encoding`, which are otherwise detected; the limits
        `max_words` of a column and `max_gib` of memory. `onebit.streams.reading.Reading` explains each.

    Returns
    -------
    DataSet
        Rows, labels as 0…K−1, and the labels' names; of a table also the encoder, for later records. `describe`
        summarises what was read.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> _ = path.write_text("weight,colour,class\n150,red,apple\n120,yellow,banana\n160,green,apple\n")
    >>> data = read_table(path)
    >>> data.X.shape, data.label_names, data.y.tolist()
    ((3, 4), ('apple', 'banana'), [0, 1, 0])
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(
            f"path must be that of a file; got {type(path).__name__}. Rows that are in memory are played as they are: "
            "onebit.play(learner, X, y)"
        )
    path, reading = Path(path), Reading(label, **options).checked()
    kind = _kind_of(path)
    if kind in TABLES:
        with open_table(path, reading) as table:
            from onebit.streams.table import read_columns  # needs Polars

            found = read_columns(table, reading)
            encoder, X = Encoder.of_table(found.features)
            data = make_data_set(plain_name(path), X, found.labels, found.where)
            return replace(data, about=tuple(found.about.items()), encoder=encoder)
    for name, value in reading.given.items():
        if name in ("label", "drop", "columns"):
            raise ValueError(f"{path}: only tables (CSV, Parquet, ARFF) have columns to choose; got {name}={value!r}")
    with _reading_errors(path, reading):
        data = _read_svmlight(path) if kind == "svmlight" else _read_npz(path)
        if data.is_sparse:  # a learner keeps a number for each class and column, and a short row may name a high one
            check_memory(8 * data.X.shape[1] * data.n_classes)
        return data


@contextmanager
def open_table(path: Path, reading: Reading) -> Iterator["Table"]:
    """Read a file of named columns; errors inside, of memory and of Polars too, become a ValueError that names it."""
    kind = _kind_of(path)
    if kind not in TABLES:
        raise ValueError(f"{path}: must be a table (CSV, Parquet, ARFF), which has named columns; it is {kind}")
    if (line := missing_extra("reading tables needs", "files")) is not None:
        raise ValueError(f"{path}: {line}")
    from polars.exceptions import PanicException, PolarsError

    from onebit.streams.text import READERS

    with _reading_errors(path, reading):
        try:
            yield READERS[kind](path, b"" if kind == "parquet" else _content(path), reading)
        except (PanicException, PolarsError) as error:  # such as a date beyond all calendars, or a name that is none
            raise ValueError(f"{path}: cannot be understood ({str(error).splitlines()[0]})") from error


def _kind_of(path: Path) -> str:
    suffix = ending(path)
    if suffix is None:
        raise ValueError(f"{path}: the ending must be one of {', '.join(SUFFIXES)}; got {path.suffix!r}")
    if not path.is_file():
        what = "is a folder; name a file in it" if path.is_dir() else "there is no such file"
        raise ValueError(f"{path}: {what}")
    return SUFFIXES[suffix]


@contextmanager
def _reading_errors(path: Path, reading: Reading) -> Iterator[None]:
    """Limit the memory for reading a file, and turn any error into a ValueError that names the file."""
    try:
        with no_more_than(reading.most_bytes(path.stat().st_size)):
            yield
    except MemoryError as error:
        more = f", or allow more with {option('max_gib', round(memory() / 2**30))}" if reading.max_gib is None else ""
        message = f"{path}: does not fit into memory ({error}); keep fewer rows or columns of it{more}"
        raise ValueError(message) from error
    except ValueError as error:
        message = str(error)  # a cell or name in it may be megabytes long; the remedy is at the end
        if len(message) <= 2 * _HALF_AN_ERROR:
            raise
        raise ValueError(f"{message[:_HALF_AN_ERROR]} … {message[-_HALF_AN_ERROR:]}") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ValueError(f"{path}: cannot be read ({reason})") from error


def ending(path: Path) -> str | None:
    """Return the ending that determines a file's format, or None.

    >>> ending(Path("a.b.CSV")), ending(Path("a.csv.gz")), ending(Path("a.gz"))
    ('.csv', '.csv.gz', None)
    """
    name = path.name.lower()
    return max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len, default=None)


def plain_name(path: Path) -> str:
    """Return what a data set is called: the file without its ending.

    >>> plain_name(Path("sets/letters_csr.npz")), plain_name(Path("sets/flowers.csv.gz"))
    ('letters', 'flowers')
    """
    return path.name[: -len(ending(path) or path.suffix) or None].removesuffix("_csr")  # of sparse npz files


def _content(path: Path) -> bytes:
    """Return the content of a file, decompressed if needed."""
    with path.open("rb") as file:
        if path.suffix.lower() != ".gz":
            check_memory(_ROOM * path.stat().st_size)
            return file.read()
        packed, content, allowed = gzip.GzipFile(fileobj=file), io.BytesIO(), memory()
        try:
            while part := packed.read(_CHUNK):
                content.write(part)
                if _ROOM * content.tell() > allowed:
                    raise MemoryError(f"unpacked and read, it takes more than the {allowed / 2**30:.3g} GiB allowed")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: is not a whole gz file ({error})") from error
    return content.getvalue()


def bundled(name: str) -> DataSet:
    """Return one of scikit-learn's own data sets: breast_cancer, digits, iris or wine.

    Examples
    --------
    >>> bundled("iris").X.shape
    (150, 4)
    """
    if name not in BUNDLED:
        raise ValueError(f"there is no bundled data set {name!r}; there are {', '.join(BUNDLED)}")
    import sklearn.datasets

    data = getattr(sklearn.datasets, f"load_{name}")()
    return make_data_set(name, data.data, data.target, name, [str(target) for target in data.target_names])


def _read_svmlight(path: Path) -> DataSet:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(_content(path)))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: is not a whole svmlight file ({error})") from error
    if X.shape[0] == 0:
        raise ValueError(f"{path}: the file is empty")
    return make_data_set(plain_name(path), X, y, str(path))


def _read_npz(path: Path) -> DataSet:
    try:
        with zipfile.ZipFile(path) as archive:
            found = [entry.removesuffix(".npy") for entry in archive.namelist() if entry.endswith(".npy")]
            wanted = [part for part in ("X", "y", "classes", *_SPARSE_PARTS) if part in found]
            held = read_npz(archive, wanted, check_memory)  # a small file can ask for more memory than there is
        check_memory(8 * held["X"].size if "X" in held else 0)  # which becomes floats
    except (OSError, MemoryError):
        raise
    except Exception as error:  # whatever comes of a damaged file
        raise ValueError(f"{path}: is not a whole npz file of plain arrays ({error})") from error
    if "y" not in held or not ("X" in held or held.keys() >= set(_SPARSE_PARTS)):
        holds = ", ".join(found) or "nothing"
        raise ValueError(f"{path}: must hold X and y, or {', '.join(_SPARSE_PARTS)} and y; it holds {holds}")
    if "X" not in held:
        try:
            *parts, shape = (held[part] for part in _SPARSE_PARTS)
            held["X"] = scipy.sparse.csr_array(tuple(parts), shape=tuple(shape.tolist()))
            held["X"].check_format(full_check=True)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: data, indices, indptr and shape are no sparse matrix ({error})") from error
    names = held["classes"].ravel().tolist() if "classes" in held else None
    return make_data_set(plain_name(path), held["X"], held["y"], str(path), names)
