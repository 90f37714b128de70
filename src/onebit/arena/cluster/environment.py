"""What must be the same on two machines, so that a game played on one is as good as a game played on the other."""

import importlib
import re
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, NamedTuple

from onebit.arena.code import code_version, reachable
from onebit.arena.executors import PlayBatch
from onebit.arena.grid import JSON, Batch
from onebit.strangers import import_path_of, is_import_path

_OURS = __name__.partition(".")[0]
_ALWAYS = ("scikit-learn",)  # beside those of `code_version`: learners may wrap its classifiers


class Needs(NamedTuple):
    """What a worker must have."""

    modules: tuple[str, ...]
    """Whose code decides the games, with all that they import."""
    packages: tuple[str, ...]
    """Whose versions are in the description."""
    described: str
    """The environment of the process that writes the store."""


def needs_of(play_batch: PlayBatch, todo: Sequence[Batch]) -> Needs:
    """Return what a worker must have to play these batches.

    Parameters
    ----------
    play_batch : callable
        Who plays them.
    todo : sequence of Batch
        What is played: users' own code is named in there by import path.
    """
    named = {name for batch in todo for cell in batch.cells for name in _import_paths(cell.player, cell.stream)}
    modules = tuple(sorted(_modules_of(play_batch) | named))
    has_rivals = any(name.partition(".")[0] == _OURS for name in named)
    packages = (*_ALWAYS, *(_rivals() if has_rivals else ()))
    return Needs(modules, packages, describe_environment(modules, packages))


def describe_environment(modules: Iterable[str], packages: Iterable[str]) -> str:
    """Return code, Python and libraries as one line, as the keys of results have them, and some packages more."""
    for module in modules:
        importlib.import_module(module)
    # After the import: what was imported is what is on the disk now, or older, and then the two differ.
    versions = [f"{package} {_version(package)}" for package in packages]
    return ", ".join([code_version(reachable(*modules)), *versions])


def difference(theirs: str, ours: str) -> str:
    """Say what differs between two environments.

    >>> difference("code 12ab, python 3.12, numpy 2.4.6", "code 12ab, python 3.11, numpy 2.4.6")
    'it has python 3.12, this run needs python 3.11'
    """
    differing = [
        (there, here) for there, here in zip(theirs.split(", "), ours.split(", "), strict=True) if there != here
    ]
    there, here = (", ".join(parts) for parts in zip(*differing, strict=True))
    return f"it has {there}, this run needs {here}"


def _modules_of(play_batch: Any) -> set[str]:
    """Return the modules of a function, and of all functions that it is a `partial` of."""
    if isinstance(play_batch, partial):
        functions = [play_batch.func, *filter(callable, play_batch.args)]
        return {module for function in functions for module in _modules_of(function)}
    # An error, if it is in a script or a session, where other machines cannot find it.
    return {import_path_of(play_batch).partition(":")[0]}


def _import_paths(*specs: Any) -> Iterable[str]:
    """Return the modules of all import paths in specs, however deep in their settings."""
    for spec in specs:
        for text in _texts([spec.name, dict(spec.settings)]):
            if is_import_path(text):
                yield text.partition(":")[0]


def _texts(value: JSON) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _rivals() -> list[str]:
    """Return the packages of the extra ``rivals`` that are installed here: their versions are settings of players."""
    wanted = [line for line in requires(_OURS) or () if re.search(r"extra == .rivals", line)]
    packages = [re.split(r"[^\w.-]", line)[0] for line in wanted]
    return sorted(package for package in packages if _version(package) != "missing")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
