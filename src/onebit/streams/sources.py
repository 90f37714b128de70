"""Data sets and streams by name, for all commands: a file, a set, or a stream that is drawn anew for every seed.

Every function that `onebit.streams` exports is known by its name, as a stream if it takes ``(rounds, seed)``, as a data
set if it takes nothing. A stream of the user's own is named by import path. Changes are written before any of them:
``noise:0.05:digits`` (see `onebit.streams.changes`).
"""

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import onebit.streams
from onebit.import_paths import did_you_mean, find_by_import_path, is_import_path
from onebit.inputs import Integers, check_rows
from onebit.labels import check_answers
from onebit.streams.changes import CHANGES, Change, split_changes
from onebit.streams.data_set import DataSet, Matrix, as_matrix, make_data_set
from onebit.streams.files import BUNDLED, SUFFIXES, TABLES, bundled, ending, plain_name, read_table
from onebit.streams.reading import PLAIN, Reading

_ENOUGH_ROUNDS = 10_000  # a stream's classes are found from its labels; in so many rounds rare ones occur too
_MOST_DRAWN = 1000  # the most rounds drawn for each one played, where a change leaves rounds out


class Source(NamedTuple):
    """A data set or stream by name; a worker reads or draws its rounds again from this."""

    name: str  # in tables and figures; its changes are written before it
    path: Path | None = None  # of a file; None for a set or stream that is known by its name
    reading: Reading = PLAIN  # the user's options for reading a file with columns
    stream: str | None = None  # the name or import path of a stream that is drawn; None for a data set
    changes: tuple[Change, ...] = ()  # what is done to it, the last first

    @property
    def function(self) -> Callable[..., Any]:
        """The function ``stream(rounds, seed)`` that draws it."""
        return _function_of(str(self.stream))

    @property
    def about(self) -> dict[str, str]:
        """A readable description of its changes, or nothing."""
        described = "; then ".join(str(change) for change in reversed(self.changes))
        return {"changed": described} if described else {}

    @property
    def has_several_right(self) -> bool:
        """Whether several labels may be right in a round, so that there is a matrix in place of labels."""
        is_made = any(change.name == "several" for change in self.changes)
        return is_made or (self.stream is not None and _kind(self.stream)[1])

    def check_one_right(self) -> None:
        """Raise ValueError if several labels may be right in a round."""
        if self.has_several_right:
            raise ValueError(f"{self.name}: several labels may be right in a round; `onebit compare` plays it")

    def drawn(self, rounds: int, seed: int) -> tuple[Matrix, Integers, int]:
        """Return the rows and labels of a stream with its changes, and the number of classes."""
        n_drawn = rounds
        while n_drawn <= 2 * _MOST_DRAWN * rounds:
            X, y, n_classes = self.unchanged(n_drawn, seed)
            X, y = self.changed(X, y, n_classes, seed, keeps_rounds=False)
            if len(y) >= rounds:
                return *self.changed(X[:rounds], y[:rounds], n_classes, seed), n_classes
            n_drawn *= 2  # the longer draw begins with the shorter
        raise ValueError(f"{self.name}: {n_drawn // 2} rounds leave only {len(y)} of {rounds}; thin it out less")

    def unchanged(self, rounds: int, seed: int) -> tuple[Any, Integers, int]:
        """Return the rows and labels of a stream before its changes, and the number of classes."""
        X, y = _drawn(str(self.stream), rounds, seed)
        n_classes = _kind(str(self.stream))[0]
        if y.ndim == 1 and y.max() >= n_classes:
            where = f"the first {_ENOUGH_ROUNDS} rounds of seed 0, which tell how many classes there are"
            raise ValueError(f"stream {self.stream}: label {y.max()} is missing from {where}; let it occur there")
        return X, y, n_classes

    def load(self) -> DataSet:
        """Read a data set, or take it from the last call; of its changes only the thinning is done."""
        return _load(self)

    def as_data_set(self, rounds: int) -> DataSet:
        """Return a data set, or the first rounds of a stream as one, with all changes."""
        self.check_one_right()
        if self.stream is not None:
            return make_data_set(self.name, *self.drawn(rounds, seed=0)[:2], self.name)
        data = self.load()
        X, y = self.changed(data.X, data.y, data.n_classes, seed=0)
        return replace(data, X=X, y=y)

    def changed(
        self, X: Matrix, y: Integers, n_classes: int, seed: int, *, keeps_rounds: bool = True
    ) -> tuple[Matrix, Integers]:
        """Return rounds, in the order in which they are played, after the changes that leave none out, or others."""
        for change in reversed(self.changes):
            if change.keeps_rounds == keeps_rounds:
                X, y = change.applied(X, y, n_classes, seed)
        return X, y


def find_sources(given: Sequence[str], reading: Reading = PLAIN) -> list[Source]:
    """Return the sources behind files, folders (every data set in them, by name), names and import paths."""
    found: list[Source] = []
    for text in given:
        before, _, rest = _split(text)
        path, names = Path(rest), [text]
        if path.is_dir():
            names = [f"{before}{child}" for child in sorted(path.iterdir()) if ending(child)]
        if not names:
            raise ValueError(f"{path}: the folder has no data set; files end in {', '.join(SUFFIXES)}")
        found += [_find(name, reading) for name in names]
    if reading != PLAIN and all(source.reading == PLAIN for source in found):
        titles, options = ", ".join(source.name for source in found), ", ".join(reading.given)
        have = "have columns to choose and ways to be read"
        raise ValueError(f"{titles}: only tables (CSV, Parquet, ARFF) {have}; leave out {options}")
    return _with_distinct_names(found)


def find_source(text: str, reading: Reading = PLAIN) -> Source:
    """Return the source behind a file, a name or an import path, with the changes that are written before it.

    >>> find_source("paper_weak").stream, find_source("noise:0.05:wine").changes
    ('paper_weak', (LabelNoise(rate=0.05),))
    """
    if Path(rest := _split(text)[2]).is_dir():
        raise ValueError(f"{rest}: is a folder; name one file in it")
    return find_sources([text], reading)[0]


def _split(text: str) -> tuple[str, tuple[Change, ...], str]:
    """Return the changes that a text begins with, as they are written and as they are, and the rest."""
    changes, rest = ((), text) if Path(text).is_file() else split_changes(text)
    return text.removesuffix(rest), changes, rest


def _find(text: str, reading: Reading) -> Source:
    before, changes, rest = _split(text)
    path = Path(rest)
    if path.is_file() or ending(path):
        # Files without columns may be in the same folder: column options do not apply to them.
        has_columns = SUFFIXES.get(ending(path) or "") in TABLES
        return Source(before + plain_name(path), path.resolve(), reading if has_columns else PLAIN, changes=changes)
    if rest in BUNDLED or rest in _exported([]):
        return Source(before + rest, changes=changes)
    if rest in _exported(["rounds", "seed"]) or is_import_path(rest):
        _function_of(rest)  # fails here rather than in a worker
        return Source(before + rest, stream=rest, changes=changes)
    known = known_names()
    raise ValueError(
        f"{rest}: there is no such file or folder, and no data set of that name ({', '.join(known)}). Files end in "
        f"{', '.join(SUFFIXES)}; a stream of your own is named by import path, such as mypackage.streams:mine; changes "
        f"are written before the data, such as noise:0.05:digits{did_you_mean(rest, [*known, *CHANGES])}"
    )


def known_names() -> list[str]:
    """Return the names of all sets and streams that come with scikit-learn or onebit."""
    return sorted([*BUNDLED, *_exported([]), *_exported(["rounds", "seed"])])


def _exported(parameters: list[str]) -> dict[str, Callable[..., Any]]:
    """Return the functions that `onebit.streams` exports with these parameters."""
    found = inspect.getmembers(onebit.streams, inspect.isfunction)
    return {name: each for name, each in found if list(inspect.signature(each).parameters) == parameters}


def _with_distinct_names(sources: list[Source]) -> list[Source]:
    """Use the file's whole name, then its path, where two sets would have the same."""
    # animals.csv beside animals.npz, then a/animals.csv beside b/animals.csv.
    for longer in (lambda path: path.name, str):
        counts = Counter(source.name for source in sources)
        for i, source in enumerate(sources):
            if counts[source.name] > 1 and source.path:
                sources[i] = source._replace(name=_before(source) + longer(source.path))
    for name, count in Counter(source.name for source in sources).items():
        if count > 1:
            raise ValueError(f"{name}: the data set is named twice")
    return sources


def _before(source: Source) -> str:
    """Return the changes of a source as they are written at the beginning of its name."""
    return "".join(f"{part}:" for part in source.name.split(":")[: 2 * len(source.changes)])


def _function_of(stream: str) -> Callable[..., Any]:
    """Return the function ``stream(rounds, seed)`` behind a name or an import path."""
    if not is_import_path(stream):
        return _exported(["rounds", "seed"])[stream]
    function: Callable[..., Any] = find_by_import_path(stream, "stream", known_names())
    if not callable(function):
        raise ValueError(f"stream {stream}: must be a function stream(rounds, seed) that returns X, y; is {function!r}")
    return function


@lru_cache  # one draw for all seeds, so that all runs have the same number of classes
def _kind(stream: str) -> tuple[int, bool]:
    """Return how many classes a stream has, and whether several labels may be right."""
    _, y = _drawn(stream, _ENOUGH_ROUNDS, seed=0)
    return y.shape[1] if y.ndim == 2 else int(y.max()) + 1, y.ndim == 2


def _drawn(stream: str, rounds: int, seed: int) -> tuple[Any, Integers]:
    """Return what the function draws, checked: a user's function may return anything."""
    drawn = _function_of(stream)(rounds, seed)
    try:
        if not isinstance(drawn, tuple) or len(drawn) != 2:
            raise ValueError(f"must return X, y; returned {type(drawn).__name__}")
        rows, labels = check_rows(drawn[0]), check_answers(drawn[1], rounds)
        if rows.shape[0] != rounds:
            raise ValueError(f"X must have one row for each of the {rounds} rounds; got {rows.shape[0]}")
        if labels.ndim == 1 and (labels.dtype.kind not in "iu" or labels.min() < 0):
            raise ValueError(f"labels must be whole numbers, counted from 0; got {labels[:3].tolist()}, …")
    except ValueError as error:
        raise ValueError(f"stream {stream}: {error}") from error
    return as_matrix(rows), labels


@lru_cache(maxsize=2)  # a worker plays the runs of one data set in sequence; all sets at once may not fit in memory
def _load(source: Source) -> DataSet:
    plain = source.name.removeprefix(_before(source))
    if source.path is not None:
        data = read_table(source.path, **source.reading._asdict())
    elif plain in BUNDLED:
        data = bundled(plain)
    else:
        X, y = _exported([])[plain]()
        data = make_data_set(source.name, X, y, source.name)
    X, y = source.changed(data.X, data.y, data.n_classes, seed=0, keeps_rounds=False)
    if len(set(y.tolist())) < 2:
        raise ValueError(f"{source.name}: rows of only one class are left; thin it out less")
    return replace(data, name=source.name, X=X, y=y)
