"""What must be the same on two machines, so that a game played on one is as good as a game played on the other."""

import importlib
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple, TypeAlias

from onebit.code_version import code_version, reachable
from onebit.experiments.grid import JSON, Batch, Spec
from onebit.experiments.players import player_from
from onebit.experiments.run import PlayBatch
from onebit.import_paths import import_path_of, is_import_path

Described: TypeAlias = tuple[str, ...]
"""Code, Python, libraries and rivals, each with its version."""
_VERSION = "version"
"""The setting with a rival's version; by default the installed one."""
_WRAPPED = "scikit-learn"  # learners may wrap its classifiers


class Needs(NamedTuple):
    """What a worker must have."""

    modules: tuple[str, ...]
    """Whose code decides the games, with all that they import."""
    rivals: tuple[tuple[str, dict[str, JSON]], ...]
    """Names and settings of players that depend on the version of another program; one of each."""
    described: Described
    """The environment of the process that writes the store."""


def needs_of(play_batch: PlayBatch, todo: Sequence[Batch]) -> Needs:
    """Return what a worker must have to play these batches.

    Parameters
    ----------
    play_batch : callable
        The function that plays them.
    todo : sequence of Batch
        What is played: users' own code is named in there by import path.
    """
    cells = [cell for batch in todo for cell in batch.cells]
    named = {name for spec in {spec for cell in cells for spec in (cell.player, cell.stream)} for name in _named(spec)}
    modules = tuple(sorted(_modules_of(play_batch) | named))
    versioned = {cell.player.name: dict(cell.player.settings) for cell in cells if _VERSION in cell.player.settings}
    rivals = tuple(sorted(versioned.items(), key=lambda rival: rival[0]))
    return Needs(modules, rivals, describe_environment(modules, rivals))


def describe_environment(modules: Iterable[str], rivals: Iterable[tuple[str, dict[str, JSON]]]) -> Described:
    """Return code, Python and libraries as the keys of results have them, and the rivals that are installed.

    Parameters
    ----------
    modules : iterable of str
        Whose code counts, with all that they import.
    rivals : iterable of pairs
        Names and settings of players.
    """
    for module in modules:
        importlib.import_module(module)
    # After the import: what was imported is what is on the disk now, or older, and then the two differ.
    ours = code_version(reachable(*modules)).split(", ")
    return *ours, f"{_WRAPPED} {version(_WRAPPED)}", *(f"{name} {_installed(name, given)}" for name, given in rivals)


def difference(theirs: Described, ours: Described) -> str:
    """Return a message on what differs between two environments.

    >>> difference(("code 12ab", "python 3.12", "numpy 2.4.6"), ("code 12ab", "python 3.11", "numpy 2.4.6"))
    'it has python 3.12, this run needs python 3.11'
    """
    differing = [(there, here) for there, here in zip(theirs, ours, strict=True) if there != here]
    there, here = (", ".join(parts) for parts in zip(*differing, strict=True))
    return f"it has {there}, this run needs {here}"


def _modules_of(play_batch: Any) -> set[str]:
    """Return the modules of a function, and of all functions that it is a `partial` of."""
    if isinstance(play_batch, partial):
        functions = [play_batch.func, *filter(callable, play_batch.args)]
        return {module for function in functions for module in _modules_of(function)}
    # An error, if it is in a script or a session, where other machines cannot find it.
    return {import_path_of(play_batch).partition(":")[0]}


def _named(spec: Spec) -> set[str]:
    """Return the modules of all import paths in a spec, however deep in its settings."""
    return {text.partition(":")[0] for text in _texts([spec.name, dict(spec.settings)]) if is_import_path(text)}


def _texts(value: JSON) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _installed(name: str, settings: dict[str, JSON]) -> str:
    """Return a rival's installed version."""
    given = {setting: value for setting, value in settings.items() if setting != _VERSION}
    return str(player_from(Spec(name, given)).spec.settings[_VERSION])
