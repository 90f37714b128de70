"""The data sets of a comparison: found by path, folder or name, read, shuffled and preprocessed."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onebit.arena.grid import Spec
from onebit.inputs import Integers
from onebit.streams import DataSet, bundled, paper_strong, paper_weak, preprocess, read_table
from onebit.streams.files import BUNDLED, SUFFIXES

DRAWN = {"paper_strong": paper_strong, "paper_weak": paper_weak}
"""Streams that are drawn, not shuffled."""


class Source(NamedTuple):
    """Where a data set comes from; a worker reads it again from there."""

    name: str
    path: Path | None = None
    """None for a set that is known by its name."""
    label: str | None = None


def find_sources(given: Sequence[str], label: str | None = None) -> list[Source]:
    """Return the data sets behind files, folders and names.

    Parameters
    ----------
    given : sequence of str
        Paths of files, of folders (every data set in them, by name), or names of sets that come with onebit.
    label : str, optional
        The label column of CSV files.
    """
    found: list[Source] = []
    for text in given:
        path = Path(text)
        if path.is_dir():
            inside = sorted(child for child in path.iterdir() if child.suffix.lower() in SUFFIXES)
            if not inside:
                raise ValueError(f"{path}: the folder has no data set; files end in {', '.join(SUFFIXES)}")
            found += [_file(child, label) for child in inside]
        elif path.is_file() or path.suffix.lower() in SUFFIXES:
            found.append(_file(path, label))
        elif text in BUNDLED or text in DRAWN:
            found.append(Source(text))
        else:
            known = ", ".join(sorted([*BUNDLED, *DRAWN]))
            raise ValueError(f"{text}: there is no such file or folder, and no data set of that name ({known})")
    return _with_distinct_names(found)


def _file(path: Path, label: str | None) -> Source:
    is_csv = SUFFIXES.get(path.suffix.lower()) == "csv"
    return Source(path.stem.removesuffix("_csr"), path.resolve(), label if is_csv else None)


def _with_distinct_names(sources: list[Source]) -> list[Source]:
    """Use the file's whole name, then its path, where two sets would have the same."""
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


@lru_cache(maxsize=2)
def load(source: Source) -> DataSet:
    """Read a data set, kept for the next call."""
    return bundled(source.name) if source.path is None else read_table(source.path, source.label)


def make_rounds(stream: Spec, source: Source, seed: int) -> tuple[Any, Integers, int]:
    """Return the rows and labels of one run, in order and preprocessed, and the number of classes."""
    settings: dict[str, Any] = dict(stream.settings)
    n_rounds = settings["rounds"]
    if "content" in settings:
        data = load(source)
        if data.content != settings["content"]:
            raise ValueError(f"{source.path or source.name} has changed while it was being played; run again")
        order = np.random.default_rng(seed).permutation(len(data.y))[:n_rounds]
        X, y, n_classes = data.X[order], data.y[order], data.n_classes
    else:
        X, y = DRAWN[source.name](n_rounds, seed)
        n_classes = 3
    return preprocess(X, settings["preprocessing"], settings["unit_length"]), y, n_classes
