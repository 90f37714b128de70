"""What must be the same in two processes, so that a game played by one is as good as a game played by the other."""

import importlib
from functools import cache, partial
from importlib.metadata import version
from typing import Any, NamedTuple

from onebit.code_version import code_version, reachable
from onebit.experiments.grid import Batch, Spec
from onebit.experiments.players import paths_in, player_from
from onebit.import_paths import import_path_of

_VERSION = "version"
"""The setting with a rival's version; by default the installed one."""
_WRAPPED = "scikit-learn"  # learners may wrap its classifiers


class EnvironmentMismatchError(RuntimeError):
    """A worker has other code or other libraries than the process that writes the store."""


class Needs(NamedTuple):
    """What a worker must have."""

    modules: tuple[str, ...]
    """Whose code decides the games, with all that they import."""
    rivals: tuple[Spec, ...]
    """Players that depend on the version of another program; one of each."""
    described: tuple[str, ...]
    """The environment of the process that writes the store: code, Python, libraries and rivals, with versions."""


def needs_of(play_batch: Any, batch: Batch) -> Needs:
    """Return what a worker must have to play a batch; users' own code is named in there by import path."""
    specs = {batch.stream, *(cell.player for cell in batch.cells)}
    named = {path.partition(":")[0] for spec in specs for path in paths_in([spec.name, dict(spec.settings)])}
    rivals = {spec.name: spec for spec in specs if _VERSION in spec.settings}
    return _described(tuple(sorted(_modules_of(play_batch) | named)), tuple(rivals[name] for name in sorted(rivals)))


def _described(modules: tuple[str, ...], rivals: tuple[Spec, ...]) -> Needs:
    for module in modules:
        importlib.import_module(module)
    # After the import: what was imported is what is on the disk now, or older, and then the two differ.
    ours = code_version(reachable(*modules)).split(", ")
    installed = (f"{rival.name} {_installed(rival)}" for rival in rivals)
    return Needs(modules, rivals, (*ours, f"{_WRAPPED} {version(_WRAPPED)}", *installed))


@cache  # once in every process
def check_environment(needs: Needs) -> None:
    """Raise EnvironmentMismatchError unless this process has all that is needed."""
    try:
        here = _described(needs.modules, needs.rivals).described
    except (Exception, SystemExit) as error:
        raise EnvironmentMismatchError(f"{type(error).__name__}: {error}") from error
    differing = [(own, needed) for own, needed in zip(here, needs.described, strict=True) if own != needed]
    if differing:
        own, needed = (", ".join(parts) for parts in zip(*differing, strict=True))
        raise EnvironmentMismatchError(f"it has {own}, this run needs {needed}")


def _modules_of(play_batch: Any) -> set[str]:
    """Return the modules of a function, and of all functions that it is a `partial` of."""
    if isinstance(play_batch, partial):
        functions = [play_batch.func, *filter(callable, play_batch.args)]
        return {module for function in functions for module in _modules_of(function)}
    # An error, if it is in a script or a session, where other machines cannot find it.
    return {import_path_of(play_batch).partition(":")[0]}


def _installed(rival: Spec) -> str:
    given = {setting: value for setting, value in rival.settings.items() if setting != _VERSION}
    return str(player_from(Spec(rival.name, given)).spec.settings[_VERSION])
