"""What users write: things of their own by import path, ``package.module:name``, and settings, ``setting=value``."""

import difflib
import importlib
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any


def is_import_path(text: str) -> bool:
    """Return whether a text has the form ``package.module:name``."""
    module, _, name = text.partition(":")
    return name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def import_path_of(thing: Any) -> str:
    """Return where another process finds a class or function, or raise ValueError if it cannot."""
    name = getattr(thing, "__qualname__", repr(thing))
    module = getattr(thing, "__module__", None)
    # A spawned worker starts without the objects of a session or of a function's body: it can only import.
    if module in (None, "__main__") or not name.isidentifier():
        where = "the script or session itself" if name.isidentifier() else "another function or an object"
        raise ValueError(
            f"{name} is defined in {where}, where other processes cannot find it; put it at the top level of a module "
            "that can be imported"
        )
    return f"{module}:{name}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that names the nearest of ours, or nothing if none is near."""
    plain = {ours.lower().replace("_", ""): ours for ours in known}
    near = difflib.get_close_matches(name.lower().replace("_", ""), plain, n=1)
    return f". Did you mean {plain[near[0]]}?" if near else ""


def find_by_import_path(path: str, what: str, known: Iterable[str] = ()) -> Any:
    """Import ``package.module:name``, searching the current folder last.

    Errors begin with `what` it is for, such as "learner", and may propose one of the names `known`.
    """
    module_name, _, name = path.partition(":")
    # `python -m` looks into the current folder, the script `onebit` does not. Spawned workers inherit sys.path.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ValueError(f"{what} {path}: {module_name} needs {error.name!r}, which is not installed") from error
        raise ValueError(
            f"{what} {path}: there is no module {error.name!r}; start in the folder that holds it, or install it"
            f"{did_you_mean(module_name, known)}"
        ) from error
    except (Exception, SystemExit) as error:
        raise ValueError(f"{what} {path}: importing it failed with {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise ValueError(f"{what} {path}: the module {module_name} has no {name!r}")
    return getattr(module, name)


def read_settings(owner: str, text: str, first: str = "") -> dict[str, Any]:
    """Read ``setting=value,setting=value``; a value alone is that of the setting `first`, if that is given."""
    given: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        setting, equals, value = map(str.strip, part.partition("="))
        if first and not equals:
            setting, value = first, setting
        elif not equals or not setting:
            raise ValueError(f"settings of {owner} are written setting=value, with commas between; got {part!r}")
        if setting in given:
            raise ValueError(f"{setting} is given twice: {given[setting]!r} and {_read_value(value)!r}")
        given[setting] = _read_value(value)
    return given


def _read_value(text: str) -> bool | int | float | str | None:
    """Read a value: a truth value, none, a number, or else the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):  # 1 and 1.0 are different settings, and a degree must be an int
        with suppress(ValueError):
            return kind(text)
    return text
