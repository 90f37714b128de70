"""Which code decides a game, and its version: blind to comments, docstrings and layout, and to all code beside it.

What a module needs is read off its import statements, so there is no list of files to keep. A name that a package only
passes on (``from onebit.learners import Learner``) leads to the module that defines it: a change in one learner leaves
the stored games of the others valid.
"""

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

_LIBRARIES = ("numpy", "scipy", "numba")  # what learners and streams compute with: another version, other last digits
_DIGITS = 16  # 64 bits of the hash: enough to tell versions of one program apart


class _Import(NamedTuple):
    """``from module import name``, or ``import module`` where name is empty."""

    module: str
    name: str


class _Module(NamedTuple):
    digest: str
    """Of the code without comments and docstrings."""
    imports: tuple[_Import, ...]


def code_version(modules: Iterable[str]) -> str:
    """Return the version of these modules' code and of the libraries they compute with.

    Parameters
    ----------
    modules : iterable of str
        Names of modules, such as `reachable` returns; their order does not matter.
    """
    digest = sha256()
    for name in sorted(set(modules)):
        digest.update(f"{name} {_read(name).digest}\n".encode())
    libraries = ", ".join(f"{library} {version(library)}" for library in _LIBRARIES)
    return f"code {digest.hexdigest()[:_DIGITS]}, {libraries}"


def reachable(*roots: str) -> set[str]:
    """Return the modules that these import, directly or not, and these themselves.

    Followed are onebit, the root's own package, and what lies in the same folder unless that is where packages are
    installed.

    Parameters
    ----------
    roots : str
        Names of modules.

    Examples
    --------
    >>> sorted(reachable("onebit.draws"))
    ['onebit.code_cache', 'onebit.compiled', 'onebit.draws']
    """
    found: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _imported(name)
    return found


def _imported(name: str) -> Iterator[str]:
    for module, wanted in _read(name).imports:
        if _is_followed(module, name):
            home = _home(module, wanted)
            if _path(home) is not None and _is_followed(home, name):
                yield home


def _home(module: str, name: str) -> str:
    """Return the module that defines what ``from module import name`` gives."""
    if not name:
        return module
    if _path(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    # A folder without __init__.py is a package without a file, and passes nothing on.
    passed_on = _read(module).imports if _path(module) is not None else ()
    for inner in passed_on:
        if inner.name == name and inner.module != module:
            return _home(*inner)
    return module


def _is_followed(name: str, importer: str) -> bool:
    top, other = name.partition(".")[0], importer.partition(".")[0]
    if top in ("onebit", other):
        return True
    folder, importers = _folder(top), _folder(other)
    return folder is not None and folder == importers and folder.name not in ("site-packages", "dist-packages")


def _folder(top: str) -> Path | None:
    """Return the folder in which a top-level package or module lies."""
    path = _path(top)
    if path is None:
        return None
    return path.parent.parent if path.name == "__init__.py" else path.parent


def _path(name: str) -> Path | None:
    """Return the file of a module, or None if there is no such module, or it has no file."""
    try:
        spec = importlib.util.find_spec(name)
    # ImportError: its parent is no package. ValueError: __main__ of a session.
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _read(name: str) -> _Module:
    path = _path(name)
    if path is None:
        raise ValueError(f"{name} has no file that could be read; its results cannot be stored by what was run")
    stamp = path.stat()
    return _parse(name, path, stamp.st_mtime_ns, stamp.st_size)


@cache
def _parse(name: str, path: Path, _mtime: int, _size: int) -> _Module:
    """Read a module once for every state of its file."""
    if path.suffix != ".py":
        return _Module(sha256(path.read_bytes()).hexdigest(), ())
    tree = ast.parse(path.read_bytes())
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = tuple(found for node in ast.walk(tree) for found in _imports_of(node, package))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_string(statement)]  # type: ignore[attr-defined]
    return _Module(sha256(ast.dump(tree).encode()).hexdigest(), imports)


def _imports_of(node: ast.AST, package: str) -> list[_Import]:
    if isinstance(node, ast.Import):
        return [_Import(alias.name, "") for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    module = ".".join([*above, *([node.module] if node.module else [])])
    return [_Import(module, "" if alias.name == "*" else alias.name) for alias in node.names]


def _is_string(statement: ast.AST) -> bool:
    """Say whether a statement is a docstring, of a module, class, function or attribute."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
