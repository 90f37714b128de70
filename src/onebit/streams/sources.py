"""Where rounds come from, by name: the one registry of data sets and streams for all commands.

A source is a file, a set that comes with scikit-learn or with onebit, or a stream that is drawn anew for every seed. Of
onebit's own there is no list: every function that `onebit.streams` exports is known by its name, as a stream if it
takes ``(rounds, seed)``, as a data set if it takes nothing. A stream of the user's own is named by import path.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import onebit.streams
from onebit.inputs import Integers, check_rows
from onebit.labels import check_labels
from onebit.strangers import did_you_mean, find_by_import_path, is_import_path
from onebit.streams.data_set import DataSet, as_matrix, make_data_set
from onebit.streams.files import BUNDLED, SUFFIXES, TABLES, bundled, ending, plain_name, read_table
from onebit.streams.reading import PLAIN, Reading

# A stream tells how many classes it has by its labels; in so many rounds rare ones occur too.
_ENOUGH_ROUNDS = 10_000


class Source(NamedTuple):
    """Where rounds come from; a worker reads or draws them again from there."""

    name: str
    """In tables and figures."""
    path: Path | None = None
    """Of a file; None for a set or stream that is known by its name."""
    reading: Reading = PLAIN
    """What the user has said about a file with columns."""
    stream: str | None = None
    """The name or import path of a stream that is drawn; None for a data set."""


def find_sources(given: Sequence[str], reading: Reading = PLAIN) -> list[Source]:
    """Return the sources behind files, folders, names and import paths.

    Parameters
    ----------
    given : sequence of str
        Paths of files, of folders (every data set in them, by name), names of sets and streams that come with onebit,
        or import paths of functions ``stream(rounds, seed)``.
    reading : Reading
        What the user has said about files with columns.
    """
    found: list[Source] = []
    for text in given:
        path = Path(text)
        if path.is_dir():
            inside = sorted(child for child in path.iterdir() if ending(child))
            if not inside:
                raise ValueError(f"{path}: the folder has no data set; files end in {', '.join(SUFFIXES)}")
            found += [_file(child, reading) for child in inside]
        else:
            found.append(_find_source(text, reading))
    _check_reading(found, reading)
    return _with_distinct_names(found)


def find_source(text: str, reading: Reading = PLAIN) -> Source:
    """Return the source behind a file, a name or an import path.

    >>> find_source("paper_weak")
    Source(name='paper_weak', path=None, reading=Reading(...), stream='paper_weak')
    """
    found = _find_source(text, reading)
    _check_reading([found], reading)
    return found


def _check_reading(sources: Sequence[Source], reading: Reading) -> None:
    """Raise if something is said about columns, and none of the sources has any that could be chosen."""
    if reading != PLAIN and all(source.reading == PLAIN for source in sources):
        said = ", ".join(name for name, value in reading._asdict().items() if value != Reading._field_defaults[name])
        raise ValueError(
            f"{', '.join(source.name for source in sources)}: only tables (CSV, Parquet, ARFF) have columns to choose "
            f"and ways to be read; leave out {said}"
        )


def _find_source(text: str, reading: Reading) -> Source:
    path = Path(text)
    if path.is_file() or ending(path):
        return _file(path, reading)
    if text in BUNDLED or text in _exported([]):
        return Source(text)
    if text in _exported(["rounds", "seed"]):
        return Source(text, stream=text)
    if is_import_path(text):
        # Found now rather than by a worker.
        draw_function(text)
        return Source(text, stream=text)
    if path.is_dir():
        raise ValueError(f"{text}: is a folder; name one file in it")
    known = known_names()
    raise ValueError(
        f"{text}: there is no such file or folder, and no data set of that name ({', '.join(known)}). Files end in "
        f"{', '.join(SUFFIXES)}; a stream of your own is named by import path, such as mypackage.streams:mine"
        f"{did_you_mean(text, known)}"
    )


def known_names() -> list[str]:
    """Return the names of all sets and streams that come with scikit-learn or onebit.

    >>> known_names()
    ['breast_cancer', 'digits', 'iris', 'paper_strong', 'paper_weak', 'wedges', 'wine']
    """
    return sorted([*BUNDLED, *_exported([]), *_exported(["rounds", "seed"])])


def _exported(parameters: list[str]) -> dict[str, Callable[..., Any]]:
    """Return the functions that `onebit.streams` exports with these parameters."""
    return {
        name: function
        for name, function in inspect.getmembers(onebit.streams, inspect.isfunction)
        if list(inspect.signature(function).parameters) == parameters
    }


def _file(path: Path, reading: Reading) -> Source:
    # Files without columns may lie in the same folder: what chooses columns is not meant for them.
    has_columns = SUFFIXES.get(ending(path) or "") in TABLES
    return Source(plain_name(path), path.resolve(), reading if has_columns else PLAIN)


def _with_distinct_names(sources: list[Source]) -> list[Source]:
    """Use the file's whole name, then its path, where two sets would have the same."""
    # animals.csv beside animals.npz, then a/animals.csv beside b/animals.csv.
    for longer in (lambda path: path.name, str):
        names = [source.name for source in sources]
        sources = [
            source._replace(name=longer(source.path)) if names.count(source.name) > 1 and source.path else source
            for source in sources
        ]
    for source in sources:
        if [other.name for other in sources].count(source.name) > 1:
            raise ValueError(f"{source.name}: the data set is named twice")
    return sources


def draw_function(stream: str) -> Callable[..., Any]:
    """Return the function ``stream(rounds, seed)`` behind a name or an import path."""
    if not is_import_path(stream):
        return _exported(["rounds", "seed"])[stream]
    function: Callable[..., Any] = find_by_import_path(stream, "stream", known_names())
    if not callable(function):
        raise ValueError(f"stream {stream}: must be a function stream(rounds, seed) that returns X, y; is {function!r}")
    return function


def draw(stream: str, rounds: int, seed: int) -> tuple[Any, Integers, int]:
    """Return the rows and labels of a stream, and the number of classes.

    >>> X, y, n_classes = draw("paper_weak", 5, seed=0)
    >>> X.shape, n_classes
    ((5, 3), 3)
    """
    X, y = _drawn(stream, rounds, seed)
    n_classes = _n_classes(stream)
    if y.max() >= n_classes:
        raise ValueError(
            f"stream {stream}: label {y.max()} is missing from the first {_ENOUGH_ROUNDS} rounds of seed 0, which tell "
            "how many classes there are; let it occur there"
        )
    return X, y, n_classes


@lru_cache  # the same for every run of a comparison
def _n_classes(stream: str) -> int:
    """Return how many classes a stream has: by one draw for all seeds, so that all runs are the same game."""
    return int(_drawn(stream, _ENOUGH_ROUNDS, seed=0)[1].max()) + 1


def _drawn(stream: str, rounds: int, seed: int) -> tuple[Any, Integers]:
    """Return what the function draws, checked: a stranger's may return anything."""
    drawn = draw_function(stream)(rounds, seed)
    if not isinstance(drawn, tuple) or len(drawn) != 2:
        raise ValueError(f"stream {stream}: must return X, y; returned {type(drawn).__name__}")
    try:
        rows = check_rows(drawn[0])
        labels = check_labels(drawn[1], rounds)
        if rows.shape[0] != rounds:
            raise ValueError(f"X must have one row for each of the {rounds} rounds; got {rows.shape[0]}")
    except ValueError as error:
        raise ValueError(f"stream {stream}: {error}") from error
    if labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(f"stream {stream}: labels must be whole numbers, counted from 0; got {labels[:3].tolist()}, …")
    return as_matrix(rows), labels


@lru_cache(maxsize=2)  # a worker plays the runs of one data set one after the other; all sets at once need not fit
def load(source: Source) -> DataSet:
    """Read a data set, kept for the next call."""
    if source.path is not None:
        return read_table(source.path, **source.reading._asdict())
    if source.name in BUNDLED:
        return bundled(source.name)
    X, y = _exported([])[source.name]()
    return make_data_set(source.name, X, y, source.name)


def as_data_set(source: Source, rounds: int) -> DataSet:
    """Return a data set, or the first rounds of a stream as one.

    >>> as_data_set(Source("wedges"), 50).X.shape, as_data_set(find_source("paper_weak"), 50).X.shape
    ((78, 2), (50, 3))
    """
    if source.stream is None:
        return load(source)
    X, y, _ = draw(source.stream, rounds, seed=0)
    return make_data_set(source.name, X, y, source.name)
