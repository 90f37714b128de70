"""Learners and kernels as plain settings, so that a cell can be hashed, stored and played in another process."""

from collections.abc import Iterable
from dataclasses import fields
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import onebit.kernels
import onebit.learners
from onebit.arena.grid import JSON, Spec
from onebit.kernels import Custom, Kernel
from onebit.learners import Learner

_NOT_SETTINGS = ("classes", "seed")
PLAYED = (
    "compiled.py",
    "draws.py",
    "inputs.py",
    "kernels.py",
    "learners",
    "play.py",
    "rounds.py",
    "spaces",
    "streams",
)


def describe(learner: Learner) -> Spec:
    """Return a learner's class and settings.

    >>> describe(onebit.learners.Banditron(0.02)).label
    'Banditron(exploration=0.02, kernel=None)'
    """
    settings = {
        name: _describe_value(name, value)
        for name, value in learner.get_params(deep=False).items()
        if name not in _NOT_SETTINGS
    }
    return Spec(type(learner).__name__, settings)


def build(spec: Spec) -> Learner:
    """Return the learner that `describe` described.

    >>> build(describe(onebit.learners.Banditron(0.02)))
    Banditron(exploration=0.02)
    """
    settings = {name: _build_value(value) for name, value in spec.settings.items()}
    learner: Learner = getattr(onebit.learners, spec.name)(**settings)
    return learner


def code_version(names: Iterable[str] = PLAYED) -> str:
    """Return the version and a hash of the code that decides a game, so that no other code's results are reused.

    Parameters
    ----------
    names : iterable of str
        Files and folders of the package that the result depends on.
    """
    digest = sha256()
    for name in names:
        for path in _sources(files("onebit").joinpath(name)):
            digest.update(path.read_bytes())
    return f"{version('onebit')}+{digest.hexdigest()[:12]}"


def _sources(entry: Traversable) -> list[Traversable]:
    if entry.is_file():
        return [entry] if entry.name.endswith(".py") else []
    inside = sorted(entry.iterdir(), key=lambda child: child.name)
    return [path for child in inside for path in _sources(child)]


def _describe_value(name: str, value: Any) -> JSON:
    if isinstance(value, Kernel) and not isinstance(value, Custom):
        parts: Any = value
        settings = {field.name: getattr(value, field.name) for field in fields(parts)}
        return {"kernel": type(value).__name__, **settings}
    if callable(value):
        raise TypeError(
            f"{name}={value!r} is a function, which a stored result cannot name; use a kernel of onebit.kernels"
        )
    described: JSON = value
    return described


def _build_value(value: JSON) -> Any:
    if isinstance(value, dict) and "kernel" in value:
        settings: dict[str, Any] = dict(value)
        return getattr(onebit.kernels, settings.pop("kernel"))(**settings)
    return value
