"""Which code decides a result: that of a game, by the modules it uses, and that of a compiled function, by its parts.

**Games.** What a module needs is read off its import statements, so there is no list of files to keep; nothing is
imported for it. Comments, docstrings, layout and other code do not count. A user's module counts with all that it
imports and the packages that it is in. Within onebit a name that a package only re-exports
(``from onebit.learners import Learner``) leads to the module that defines it, and to nothing else: a change in one
learner leaves the stored games of the others valid. Files of onebit are read once in a process.

**Compiled functions.** A function is known by everything it is made of: its code as loaded, the functions, constants
and defaults that it closes over or finds in its module, and theirs.
"""

import ast
import importlib.util
import sys
import sysconfig
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from numba.core.registry import CPUDispatcher

_Found = TypeVar("_Found")
_OURS = __name__.partition(".")[0]
_LIBRARIES = ("numpy", "scipy", "numba")  # what learners and streams compute with: another version, other last digits
_DIGITS = 16  # 64 bits of the hash: enough to tell versions of one program apart
# What onebit's own modules import without any effect on a game: claims about learners, which no learner reads while it
# plays, the cache of compiled code, and the messages during compilation.
_BESIDE_THE_GAME = (
    "onebit.bounds",
    "onebit.engine.code_cache",
    "onebit.engine.compile_notice",
    "onebit.code_version",
    "onebit.extras",
)
_INSTALLED = ("site-packages", "dist-packages")
_STANDARD_LIBRARY = tuple(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib"))
_BUILT_IN = ("builtins", "math", "typing")
_KNOWN_BY_VERSION = ("math", "numpy")  # what compiled code does with these is Numba's


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

    A key covers code, settings and installed versions, but not the machine. Games are played with one thread and
    compiled without reordering sums, so that cores and load change nothing. On another kind of processor the last digit
    of functions such as ``exp`` and of matrix products may differ; such results are accepted as equal.
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
    names = [name for found in _read(importer).imports for name in _modules_behind(found, importer)]
    return [name for name in names if (path := _path(name)) and _is_followed(name, path, importer)]


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
    imports = () if _path(module) is None else _read(module).imports
    passed_on = [each for each in imports if each.bound == name and each.module != module]
    return [home for each in passed_on for home in _homes(each.module, each.name)] or [module]


def _packages_and(name: str) -> list[str]:
    """Return a module and its parent packages, whose code runs first; onebit's packages only re-export."""
    if _is_ours(name):
        return [name]
    parts = name.split(".")
    return [".".join(parts[: depth + 1]) for depth in range(len(parts))]


def _is_followed(name: str, path: Path, importer: str) -> bool:
    top = name.partition(".")[0]
    if _is_ours(importer):
        return _is_ours(name) and not f"{name}.".startswith(tuple(f"{beside}." for beside in _BESIDE_THE_GAME))
    if top in (_OURS, importer.partition(".")[0]):
        return True
    is_installed = any(part in _INSTALLED for part in path.parts)
    is_standard = any(path.is_relative_to(folder) for folder in _STANDARD_LIBRARY)
    return not (is_installed or is_standard or top in _LIBRARIES)


@_once_for_ours
def _read(name: str) -> _Module:
    path = _path(name)
    if path is None:
        raise ValueError(f"{name} has no file that could be read; its results cannot be stored by what was run")
    stamp = path.stat()
    return _parse(name, path, stamp.st_mtime_ns, stamp.st_size)


@_once_for_ours
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
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imports = tuple(_imports_of(tree, package, is_lazy=name == _OURS))
        _drop_strings(tree)
        return _Module(sha256(ast.dump(tree).encode()).hexdigest(), imports)
    except SyntaxError as error:
        return _Module(sha256(source).hexdigest(), fault=f"line {error.lineno}: {error.msg}")
    except (ValueError, RecursionError) as error:
        return _Module(sha256(source).hexdigest(), fault=str(error))


def _imports_of(tree: ast.AST, package: str, is_lazy: bool) -> Iterator[_Import]:
    """Yield imports; those for types only where they name what is imported when it is first used."""
    above = package.split(".") if package else []
    todo = [tree]
    while todo:
        node = todo.pop()
        is_for_types = isinstance(node, ast.If) and _is_for_types(node.test) and not is_lazy
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


class ForeignCodeError(Exception):
    """Something in a function is not onebit's, or cannot be named."""


def identity(function: Any) -> str | None:
    """Return a hash of all that a function is made of, or None if something in it is not ours or cannot be named."""
    try:
        return sha256(made_of(function).encode()).hexdigest()
    except ForeignCodeError:
        return None


def is_ours(function: Any) -> bool:
    """Return whether a function, and all that it closes over or calls, is onebit's own."""
    return identity(function) is not None


def made_of(function: Any) -> str:
    """Return a text of all that a function is made of; raise ForeignCodeError if not all of it is onebit's."""
    return "\n".join(_parts(function, {}))


def _parts(thing: Any, seen: dict[int, int]) -> Iterator[str]:
    is_plain = isinstance(thing, types.FunctionType)
    if isinstance(thing, CPUDispatcher):
        yield repr(sorted(thing.targetoptions.items()))
        thing = thing.py_func
    if isinstance(thing, types.FunctionType):
        is_new = id(thing) not in seen  # functions may call each other in a circle
        # By its number too: a factory makes many functions of one name.
        yield f"{name_of(thing)} {seen.setdefault(id(thing), len(seen))}"
        if is_new:
            yield from _parts_of_code(thing.__code__)
            values = tuple(cell.cell_contents for cell in thing.__closure__ or ())
            for value in (values, thing.__defaults__, *(thing.__kwdefaults__ or {}).items(), *_found_by(thing)):
                yield from _parts(value, seen)
            if is_plain:
                yield from _parts_of_overloads(thing.__module__)
    elif isinstance(thing, type):
        yield f"{name_of(thing)}{getattr(thing, '_fields', '')}"
        # Of a named tuple compiled code sees the fields. What it sees of another class of ours is not known.
        if not hasattr(thing, "_fields") and thing.__module__ not in _BUILT_IN:
            raise ForeignCodeError
    elif isinstance(thing, types.ModuleType):
        yield thing.__name__
        if thing.__name__ not in _KNOWN_BY_VERSION:  # what is used of another is not known
            raise ForeignCodeError
    elif isinstance(thing, tuple):
        yield f"{len(thing)} items"
        if hasattr(thing, "_fields"):
            yield from _parts(type(thing), seen)
        for item in thing:
            yield from _parts(item, seen)
    elif thing is None or isinstance(thing, (bool, int, float, str)):
        yield repr(thing)
    else:
        raise ForeignCodeError


def _parts_of_code(code: types.CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts_of_code(constant)
        else:
            yield repr(constant)


def _parts_of_overloads(module: str) -> Iterator[str]:
    """Describe all code of a module.

    Compiled code that calls a plain function runs an overload of it. Nothing leads from the one to the other, but
    overloads and intrinsics stand in the module of their function.
    """
    for name, value in sorted(vars(sys.modules[module]).items() if module in sys.modules else ()):
        function = getattr(value, "_defn", value)  # of an intrinsic
        if isinstance(function, types.FunctionType) and function.__module__ == module:
            yield name
            yield from _parts_of_code(function.__code__)
        elif isinstance(value, (bool, int, float)):
            yield f"{name} = {value!r}"


def _found_by(function: types.FunctionType) -> list[tuple[str, Any]]:
    """Return what a function names in its module and, by their names there, in other modules of onebit."""
    names = _names_in(function.__code__)
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, module in list(found.items()):
        if isinstance(module, types.ModuleType) and module.__name__.startswith("onebit."):
            within = {f"{name}.{each}": getattr(module, each) for each in names if hasattr(module, each)}
            used = {each: value for each, value in within.items() if not isinstance(value, types.ModuleType)}
            found = {each: value for each, value in found.items() if each != name or not used} | used
    return list(found.items())


def _names_in(code: types.CodeType) -> list[str]:
    """Return the names that a function looks up, those of its comprehensions and inner functions too."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return sorted({*code.co_names, *(name for each in inner for name in _names_in(each))})


def name_of(thing: Any) -> str:
    """Return where a function or class is defined; raise ForeignCodeError if it is not onebit's or Python's."""
    module = getattr(thing, "__module__", None) or ""
    if not _is_ours(module) and module not in _BUILT_IN:
        raise ForeignCodeError
    return f"{module}.{thing.__qualname__}"
