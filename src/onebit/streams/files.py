"""Data sets from files (CSV, svmlight, npz), and the ones that come with scikit-learn, by name."""

import os
import zipfile
from pathlib import Path
from typing import Any

import scipy.sparse

from onebit.npz import DAMAGE, check_fits, n_bytes, read_array
from onebit.streams.csv_table import read_csv
from onebit.streams.data_set import DataSet, make_data_set

BUNDLED = ("breast_cancer", "digits", "iris", "wine")
"""Data sets that come with scikit-learn."""
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".npz": "npz",
}
# The names under which scipy.sparse.save_npz keeps a CSR matrix.
_SPARSE_PARTS = ("data", "indices", "indptr", "shape")


def read_table(path: str | Path, label: str | int | None = None) -> DataSet:
    r"""Read a data set from a file; its ending says which kind it is.

    CSV has a header or not, numbers stay numbers and words become one column each. svmlight files give sparse rows.
    npz files hold ``X`` and ``y``, or a sparse matrix as ``data``, ``indices``, ``indptr`` and ``shape`` beside ``y``.

    Parameters
    ----------
    path : str or Path
        The file.
    label : str or int, optional
        CSV only: the label column by name or position. By default the one named label, class, target or y, else the
        last.

    Returns
    -------
    DataSet
        Rows, labels as 0…K−1, and the labels' names.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> _ = path.write_text("weight,colour,class\n150,red,apple\n120,yellow,banana\n160,green,apple\n")
    >>> data = read_table(path)
    >>> data.X.shape, data.label_names, data.y.tolist()
    ((3, 4), ('apple', 'banana'), [0, 1, 0])
    """
    path = Path(path)
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path}: the ending must be one of {', '.join(SUFFIXES)}; got {path.suffix!r}")
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file in it")
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    if label is not None and kind != "csv":
        raise ValueError(f"{path}: only CSV files have a label column to choose; got label={label!r}")
    # Sparse npz files are commonly marked so; the mark is no part of the name.
    name = path.stem.removesuffix("_csr")
    try:
        if kind == "csv":
            return read_csv(path, name, label)
        return _read_svmlight(path, name) if kind == "svmlight" else _read_npz(path, name)
    except MemoryError as error:
        raise ValueError(f"{path}: does not fit into memory ({error}); keep fewer rows or columns of it") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ValueError(f"{path}: cannot be read ({reason})") from error


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


def _read_svmlight(path: Path, name: str) -> DataSet:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: is not a whole svmlight file ({error})") from error
    if X.shape[0] == 0:
        raise ValueError(f"{path}: the file is empty")
    return make_data_set(name, X, y, str(path))


def _read_npz(path: Path, name: str) -> DataSet:
    try:
        with zipfile.ZipFile(path) as archive:
            found = [entry.removesuffix(".npy") for entry in archive.namelist() if entry.endswith(".npy")]
            wanted = [part for part in ("X", "y", "classes", *_SPARSE_PARTS) if part in found]
            # Before any memory is taken: a small file can ask for more than there is.
            check_fits(sum(n_bytes(archive, part) for part in wanted))
            held = {part: read_array(archive, part) for part in wanted}
    except DAMAGE as error:
        raise ValueError(f"{path}: is not a whole npz file of plain arrays ({error})") from error
    is_sparse = all(part in held for part in _SPARSE_PARTS)
    if "y" not in held or not ("X" in held or is_sparse):
        raise ValueError(
            f"{path}: must hold X and y, or {', '.join(_SPARSE_PARTS)} and y; it holds {', '.join(found) or 'nothing'}"
        )
    names = held["classes"].ravel().tolist() if "classes" in held else None
    return make_data_set(name, held["X"] if "X" in held else _sparse(path, held), held["y"], str(path), names)


def _sparse(path: Path, held: dict[str, Any]) -> Any:
    try:
        parts = (held["data"], held["indices"], held["indptr"])
        matrix = scipy.sparse.csr_array(parts, shape=tuple(held["shape"].tolist()))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: data, indices, indptr and shape are no sparse matrix ({error})") from error
    return matrix
