"""Which code decides the result of a game: that of the modules it uses.

What a module needs is read off its import statements; nothing is imported for it. Comments, docstrings, layout and
other code do not count. A user's module counts with all that it imports and the packages that it is in. Within onebit
a name that a package only re-exports leads to the module that defines it, and to nothing else: a change in one learner
leaves the stored games of the others valid.
"""

import ast
import importlib.util
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

_Found = TypeVar("_Found")
_OURS = __name__.partition(".")[0]
_LIBRARIES = ("numpy", "scipy", "numba")  # what learners and streams compute with: another version, other last digits
_DIGITS = 16  # 64 bits of the hash: enough to tell versions of one program apart
# What onebit's own modules import without any effect on a game: claims about learners, which no learner reads while it
# plays, the cache of compiled code, and the messages during compilation.
_BESIDE_THE_GAME = ("onebit.bounds.", "onebit.engine.code_cache.", "onebit.engine.compile_notice.", "onebit.extras.")
_STANDARD_LIBRARY = tuple(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib"))


class _Import(NamedTuple):
    """``from module import name as bound``; the name is empty for ``import module`` and ``from module import *``."""

    module: str
    name: str
    bound: str  # what the importing module calls it; "*" if it has no one name


class _Module(NamedTuple):
    digest: str  # of the code without comments and docstrings
    imports: tuple[_Import, ...] = ()
    fault: str = ""  # why it cannot be parsed; its digest is that of its bytes then


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == _OURS


def _once_for_ours(function: Callable[[str], _Found]) -> Callable[[str], _Found]:
    """Call a function once for every module of onebit, whose files do not change while it runs."""
    cached = cache(function)
    return lambda name: cached(name) if _is_ours(name) else function(name)


def code_version(modules: Iterable[str]) -> str:
    """Return the version of these modules' code, and of Python and the libraries they compute with.

    The machine is no part of it: on another kind of processor the last digit of functions such as ``exp`` may differ,
    and such results are accepted as equal.
    """
    digest = sha256()
    for name in sorted(set(modules)):
        digest.update(f"{name} {_read(name).digest}\n".encode())
    return f"code {digest.hexdigest()[:_DIGITS]}, {_versions()}"


@cache
def _versions() -> str:
    # Python too: since 3.12 ``sum`` rounds differently, and another one may parse the same code to another tree.
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    return ", ".join([python, *(f"{library} {version(library)}" for library in _LIBRARIES)])


def reachable(*roots: str) -> set[str]:
    """Return the modules that these import, directly or not, and these themselves.

    Followed are onebit, the root's own package, and whatever is neither installed nor of the standard library.
    """
    found: set[str] = set()
    todo: list[str] = []
    for root in roots:
        if fault := _read(root).fault:
            raise ValueError(f"{root} ({_path(root)}) cannot be read: {fault}")
        todo += [name for name in _packages_and(root) if _path(name) is not None]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _imported(name)
    return found


@_once_for_ours
def _imported(importer: str) -> list[str]:
    """Return the modules to follow whose code decides what a module's imports give."""
    names: list[str] = []
    for module, name, bound in _read(importer).imports:
        if not _is_ours(module):
            names += [*_packages_and(module), *([f"{module}.{name}"] if name else [])]
            continue
        if bound == _OURS and not _is_ours(importer):
            names.append(_OURS)  # in a user's module `import onebit.kernels` gives access to all of onebit
        names += _homes(module, name)
    return [name for name in names if (path := _path(name)) and _is_followed(name, path, importer)]


def _homes(module: str, name: str) -> list[str]:
    """Return the modules of onebit that define what ``from module import name`` gives."""
    if not name:
        return [module]
    if _path(f"{module}.{name}") is not None:
        return [f"{module}.{name}"]
    imports = () if _path(module) is None else _read(module).imports
    passed_on = [each for each in imports if each.bound == name and each.module != module]
    passed_on = passed_on or [each._replace(name=name) for each in imports if each.bound == "*"]
    return [home for each in passed_on for home in _homes(each.module, each.name)] or [module]


def _packages_and(name: str) -> list[str]:
    """Return a module and its parent packages, whose code runs first; onebit's packages only re-export."""
    if _is_ours(name):
        return [name]
    return list(accumulate(name.split("."), "{}.{}".format))


def _is_followed(name: str, path: Path, importer: str) -> bool:
    top = name.partition(".")[0]
    if _is_ours(importer):
        return _is_ours(name) and not f"{name}.".startswith(_BESIDE_THE_GAME)
    if top in (_OURS, importer.partition(".")[0]):
        return True
    is_installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    is_standard = any(path.is_relative_to(folder) for folder in _STANDARD_LIBRARY)
    return not (is_installed or is_standard or top in _LIBRARIES)


@_once_for_ours
def _path(name: str) -> Path | None:
    """Return the file of a module, or None if there is no such module, or it has no file."""
    spec = _spec(name)
    path = Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
    return path if path is not None and path.is_file() else None


def _spec(name: str) -> ModuleSpec | None:
    """Find a module without importing it, or the packages it is in, as `importlib.util.find_spec` would."""
    if name == "__main__":
        return None  # another one in every process
    loaded: ModuleSpec | None = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        return loaded
    parent, _, last = name.rpartition(".")
    if not parent:
        try:
            return importlib.util.find_spec(name)
        except ValueError:  # put into sys.modules by user code
            return None
    package = _spec(parent)
    folders = package.submodule_search_locations if package is not None else None
    # By its last name: for the whole one PathFinder looks for the parent in sys.modules.
    return None if folders is None else PathFinder.find_spec(last, list(folders))


@_once_for_ours
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
    fault = ""
    if path.suffix == ".py":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about escape sequences in users' code: Python gives them on import
                tree = ast.parse(source)
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            imports = tuple(_imports_of(tree, package, is_lazy=name == _OURS))
            _drop_strings(tree)
            return _Module(sha256(ast.dump(tree).encode()).hexdigest(), imports)
        except SyntaxError as error:
            fault = f"line {error.lineno}: {error.msg}"
        except (ValueError, RecursionError) as error:
            fault = str(error)
    return _Module(sha256(source).hexdigest(), fault=fault)


def _imports_of(tree: ast.AST, package: str, is_lazy: bool) -> Iterator[_Import]:
    """Yield imports; those for types only where they name what is imported when it is first used."""
    above = package.split(".") if package else []
    todo = [tree]
    while todo:
        node = todo.pop()
        test = getattr(node, "test", None)
        is_for_types = getattr(test, "attr", getattr(test, "id", "")) == "TYPE_CHECKING" and not is_lazy
        todo += getattr(node, "orelse", ()) if is_for_types else ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield _Import(alias.name, "", alias.asname or alias.name.partition(".")[0])
        # More dots than there are packages: such an import can only fail.
        elif isinstance(node, ast.ImportFrom) and node.level <= len(above):
            outer = above[: len(above) - node.level + 1] if node.level else []
            module = ".".join([*outer, node.module] if node.module else outer)
            for alias in node.names:
                yield _Import(module, "" if alias.name == "*" else alias.name, alias.asname or alias.name)


def _drop_strings(tree: ast.AST) -> None:
    """Drop statements that are only a string: docstrings of modules, classes, functions and attributes."""

    def is_string(statement: Any) -> bool:
        value = statement.value if isinstance(statement, ast.Expr) else None
        return isinstance(value, ast.Constant) and isinstance(value.value, str)

    for node in ast.walk(tree):  # a visitor would need twice the stack that `ast.dump` does
        for _, held in ast.iter_fields(node):
            if isinstance(held, list):
                held[:] = [each for each in held if not is_string(each)]
