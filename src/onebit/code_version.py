"""The version of the code that a game depends on, independent of comments, docstrings, layout and other code.

What a module needs is read off its import statements, so there is no list of files to keep; nothing is imported for it.
A user's module counts with all that it imports and the packages that it is in. Within onebit a name that a package only
re-exports (``from onebit.learners import Learner``) leads to the module that defines it, and to nothing else: a change
in one learner leaves the stored games of the others valid.
"""

import ast
import importlib.util
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

_LIBRARIES = ("numpy", "scipy", "numba")  # what learners and streams compute with: another version, other last digits
_DIGITS = 16  # 64 bits of the hash: enough to tell versions of one program apart
_OURS = __name__.partition(".")[0]
# What onebit's own modules import without any effect on a game: claims about learners, which no learner reads while it
# plays, the cache of compiled code, and the messages during compilation.
_BESIDE_THE_GAME = ("onebit.bounds", "onebit.engine.code_cache", "onebit.engine.compile_notice")
_INSTALLED = ("site-packages", "dist-packages")
_STANDARD_LIBRARY = tuple(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib"))


class _Import(NamedTuple):
    """``from module import name as bound``; the name is empty for ``import module`` and ``from module import *``."""

    module: str
    name: str
    bound: str
    """What the importing module calls it; "*" if it has no one name."""


class _Module(NamedTuple):
    digest: str
    """Of the code without comments and docstrings."""
    imports: tuple[_Import, ...] = ()
    fault: str = ""
    """Why it cannot be parsed; its digest is that of its bytes then."""


def code_version(modules: Iterable[str]) -> str:
    """Return the version of these modules' code, and of Python and the libraries they compute with.

    A key covers code, settings and installed versions, but not the machine. Games are played with one thread and
    compiled without reordering sums, so that cores and load change nothing. On another kind of processor the last digit
    of functions such as ``exp`` and of matrix products may differ; such results are accepted as equal.

    Parameters
    ----------
    modules : iterable of str
        Names of modules, such as `reachable` returns; their order does not matter.
    """
    digest = sha256()
    for name in sorted(set(modules)):
        digest.update(f"{name} {_read(name).digest}\n".encode())
    libraries = ", ".join(f"{library} {version(library)}" for library in _LIBRARIES)
    # Python too: since 3.12 ``sum`` rounds differently, and another one may parse the same code to another tree.
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    return f"code {digest.hexdigest()[:_DIGITS]}, {python}, {libraries}"


def reachable(*roots: str) -> set[str]:
    """Return the modules that these import, directly or not, and these themselves.

    Followed are onebit, the root's own package, and whatever is neither installed nor of the standard library.

    Parameters
    ----------
    roots : str
        Names of modules.

    Examples
    --------
    >>> sorted(reachable("onebit.engine.randomness"))
    ['onebit.engine.jit', 'onebit.engine.randomness']
    """
    for root in roots:
        fault = _read(root).fault
        if fault:
            raise ValueError(f"{root} ({_path(root)}) cannot be read: {fault}")
    found: set[str] = set()
    todo = [name for root in roots for name in _packages_and(root) if _path(name) is not None]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _imported(name)
    return found


def _imported(importer: str) -> Iterator[str]:
    for found in _read(importer).imports:
        for name in _modules_behind(found, importer):
            path = _path(name)
            if path is not None and _is_followed(name, path, importer):
                yield name


def _modules_behind(found: _Import, importer: str) -> list[str]:
    """Return the modules, of which some may not exist, whose code decides what an import gives."""
    module, name, bound = found
    if _is_ours(module):
        # In a user's module `import onebit.kernels` gives access to all of onebit.
        return [*([] if _is_ours(importer) or bound != _OURS else [_OURS]), *_homes(module, name)]
    return [*_packages_and(module), *([f"{module}.{name}"] if name else [])]


def _homes(module: str, name: str) -> list[str]:
    """Return the modules of onebit that define what ``from module import name`` gives."""
    if not name:
        return [module]
    if _path(f"{module}.{name}") is not None:
        return [f"{module}.{name}"]
    imports = _read(module).imports if _path(module) is not None else ()
    passed_on = [inner for inner in imports if inner.bound == name and inner.module != module]
    return [home for inner in passed_on for home in _homes(inner.module, inner.name)] or [module]


def _packages_and(name: str) -> list[str]:
    """Return a module and its parent packages, whose code runs first; onebit's packages only re-export."""
    if _is_ours(name):
        return [name]
    parts = name.split(".")
    return [".".join(parts[: depth + 1]) for depth in range(len(parts))]


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == _OURS


def _is_followed(name: str, path: Path, importer: str) -> bool:
    top = name.partition(".")[0]
    if _is_ours(importer):
        return _is_ours(name) and not f"{name}.".startswith(tuple(f"{beside}." for beside in _BESIDE_THE_GAME))
    if top in (_OURS, importer.partition(".")[0]):
        return True
    is_installed = any(part in _INSTALLED for part in path.parts)
    is_standard = any(path.is_relative_to(folder) for folder in _STANDARD_LIBRARY)
    return not (is_installed or is_standard or top in _LIBRARIES)


def _path(name: str) -> Path | None:
    """Return the file of a module, or None if there is no such module, or it has no file."""
    spec = _spec(name)
    path = Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
    return path if path is not None and path.is_file() else None


def _spec(name: str) -> ModuleSpec | None:
    """Find a module without importing it, or the packages it is in, as `importlib.util.find_spec` would."""
    parent, _, last = name.rpartition(".")
    if name == "__main__":
        return None  # another one in every process
    loaded: ModuleSpec | None = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        return loaded
    if not parent:
        try:
            return importlib.util.find_spec(name)
        except ValueError:  # put into sys.modules by user code
            return None
    package = _spec(parent)
    folders = package.submodule_search_locations if package is not None else None
    # By its last name: for the whole one PathFinder looks for the parent in sys.modules.
    return None if folders is None else PathFinder.find_spec(last, list(folders))


def _read(name: str) -> _Module:
    path = _path(name)
    if path is None:
        raise ValueError(f"{name} has no file that could be read; its results cannot be stored by what was run")
    stamp = path.stat()
    return _parse(name, path, stamp.st_mtime_ns, stamp.st_size)


@cache
def _parse(name: str, path: Path, _mtime: int, _size: int) -> _Module:
    """Read a module once for every state of its file."""
    source = path.read_bytes()
    if path.suffix != ".py":
        return _Module(sha256(source).hexdigest())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escape sequences in users' code: Python gives them on import
            tree = ast.parse(source)
        imports = tuple(_imports_of(tree, name if path.name == "__init__.py" else name.rpartition(".")[0]))
        _drop_strings(tree)
        return _Module(sha256(ast.dump(tree).encode()).hexdigest(), imports)
    except SyntaxError as error:
        return _Module(sha256(source).hexdigest(), fault=f"line {error.lineno}: {error.msg}")
    except (ValueError, RecursionError) as error:
        return _Module(sha256(source).hexdigest(), fault=str(error))


def _imports_of(tree: ast.AST, package: str) -> Iterator[_Import]:
    above = package.split(".") if package else []
    todo = [tree]
    while todo:
        node = todo.pop()
        todo += node.orelse if isinstance(node, ast.If) and _is_for_types(node.test) else ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield _Import(alias.name, "", alias.asname or alias.name.partition(".")[0])
        # More dots than there are packages: such an import can only fail.
        elif isinstance(node, ast.ImportFrom) and node.level <= len(above):
            outer = above[: len(above) - node.level + 1] if node.level else []
            module = ".".join([*outer, node.module] if node.module else outer)
            for alias in node.names:
                yield _Import(module, "" if alias.name == "*" else alias.name, alias.asname or alias.name)


def _is_for_types(test: ast.expr) -> bool:
    """Return whether a condition is ``TYPE_CHECKING``, which is false at run time."""
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _drop_strings(tree: ast.AST) -> None:
    """Drop the statements that are only a string: docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [statement for statement in block if not _is_string(statement)])


def _is_string(statement: ast.AST) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
