"""Values as JSON that keep their type: labels, settings, and what a learner keeps.

An Enum, a date, a kernel or a function is written as the import path of its class and what it is made of. It is
restored only if the reader lists this path as trusted: a text from elsewhere runs no code.
"""

import enum
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.import_paths import find_by_import_path, import_path_of

_Arrays = list[npt.NDArray[Any]]

_PLAIN = (str, int, bool, type(None))
# Booleans, whole numbers, floats, bytes, words, spans of time and dates.
_PLAIN_KINDS = "biufSUmM"
_MOST_NESTED = 40
_COLLECTIONS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset, "dict": dict}


class Trusted:
    """What a file or text from outside may name: classes and functions, by import path.

    `things` are classes, functions, or import paths, which are imported when they are met; `ours` need no trust.
    """

    def __init__(self, things: Iterable[Any] = (), ours: Mapping[str, Any] | None = None) -> None:
        if isinstance(things, (str, bytes, type)) or not isinstance(things, Iterable):
            raise ValueError(f"trusted must be a list of classes, functions or import paths; got {things!r}")
        self._paths: set[str] = set()
        self._found = dict(ours or {})
        self._ours = set(self._found.values())
        for thing in things:
            if isinstance(thing, str):
                self._paths.add(thing)
            else:
                self._found[import_path_of(thing)] = thing

    def find(self, path: Any) -> Any:
        """Return what a path names, or raise ValueError unless it is trusted."""
        if not isinstance(path, str):
            raise ValueError(f"{path!r} is no import path")
        if path not in self._found:
            if path not in self._paths:
                raise ValueError(
                    f"it names {path!r}, which is not onebit's own: if you trust it, pass trusted=[{path!r}]"
                )
            self._found[path] = find_by_import_path(path, "trusted")
        return self._found[path]

    def is_ours(self, cls: Any) -> bool:
        """Return whether a class needs no trust, and so must not be given what its constructor would refuse."""
        return cls in self._ours


def describe(value: Any, arrays: _Arrays | None = None, depth: int = 0) -> Any:
    """Return a value, `depth` deep in another, as JSON can write it; arrays are put into `arrays`, or refused."""
    if type(value) in _PLAIN:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if depth > _MOST_NESTED:
        raise ValueError(f"values must be nested less than {_MOST_NESTED} deep, and not hold themselves")

    def each(items: Iterable[Any]) -> list[Any]:
        return [describe(item, arrays, depth + 1) for item in items]

    kind = type(value)
    if kind is list:
        return each(value)
    if kind is tuple:
        return {"tuple": each(value)}
    if kind in (set, frozenset):
        # In an order of its own: that of a set differs from process to process.
        return {kind.__name__: sorted(each(value), key=write)}
    if kind is dict:
        return {"dict": [each(pair) for pair in value.items()]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if isinstance(value, np.generic) and value.dtype.kind in _PLAIN_KINDS:
        return {"numpy": [value.dtype.str, value.tobytes().hex()]}
    if kind is np.ndarray and value.dtype.kind in _PLAIN_KINDS and arrays is not None:
        arrays.append(value.copy(order="K"))  # sums depend on the order
        return {"array": len(arrays) - 1}
    if kind is np.ndarray and value.dtype == object:
        return {"objects": [list(value.shape), each(value.ravel().tolist())]}
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return {"import": import_path_of(value)}
    return _describe_object(value, kind, each)


def _describe_object(value: Any, cls: Any, each: Callable[[Iterable[Any]], list[Any]]) -> Any:
    if isinstance(value, enum.Enum) and value.name in cls.__members__:  # flags that were joined are no member
        return {"member": [import_path_of(cls), value.name]}
    taken = [field.name for field in fields(value) if field.init] if is_dataclass(value) else []
    # A data class that keeps more than its constructor takes is saved by its state, as any other.
    if is_dataclass(value) and set(getattr(value, "__dict__", ())) <= set(taken):
        return {"made": [import_path_of(cls), each([name, getattr(value, name)] for name in taken)]}
    try:
        how, given, *rest = value.__reduce_ex__(2)
    except Exception as error:
        raise ValueError(f"{value!r:.80} cannot be saved: {error}") from error
    if how.__name__ == "__newobj__" and given[0] is cls and not any(rest[1:]):
        return {"new": [import_path_of(cls), each(given[1:]), *each(rest[:1])]}
    if how is cls and not any(rest):
        return {"called": [import_path_of(cls), each(given)]}
    raise ValueError(f"{value!r:.80} cannot be saved: a {cls.__name__} is not made of plain values")


def restore(described: Any, trusted: Trusted, arrays: Sequence[npt.NDArray[Any]] = ()) -> Any:
    """Return a value that was described; raises ValueError for what could not have been, or is not trusted."""
    try:
        return _restore(described, trusted, arrays, 0)
    except ValueError:
        raise
    except Exception as error:  # a user's constructor may raise anything
        raise ValueError(f"{described!r:.80} describes nothing ({type(error).__name__}: {error})") from error


def _restore(described: Any, trusted: Trusted, arrays: Sequence[npt.NDArray[Any]], depth: int) -> Any:
    if depth > 2 * _MOST_NESTED:
        raise ValueError("it is nested too deep")

    def each(items: Any) -> list[Any]:
        if type(items) is not list:
            raise ValueError(f"{items!r:.80} is no list")
        return [_restore(item, trusted, arrays, depth + 1) for item in items]

    if type(described) is list:
        return each(described)
    if type(described) is not dict:
        return described
    ((kind, held),) = described.items()
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](each(held))
    if kind == "bytes":
        return bytes.fromhex(held)
    if kind == "float":
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[held]
    if kind == "numpy":
        return _restore_scalar(*held)
    if kind == "array":
        if type(held) is not int or not 0 <= held < len(arrays):
            raise ValueError(f"{held!r:.80} is no position among {len(arrays)}")
        return arrays[held]
    if kind == "objects":
        return np.fromiter(each(held[1]), dtype=object).reshape(held[0])
    return _restore_object(kind, held, trusted, each)


def _restore_scalar(name: str, content: str) -> Any:
    dtype = np.dtype(name)
    if dtype.kind not in _PLAIN_KINDS or dtype.fields is not None or dtype.shape:
        raise ValueError(f"{name!r} is no scalar")
    (scalar,) = np.frombuffer(bytes.fromhex(content), dtype=dtype)
    return scalar


def _restore_object(kind: str, held: Any, trusted: Trusted, each: Callable[[Any], list[Any]]) -> Any:
    if kind == "import":
        return trusted.find(held)
    path, made_of, *state = held
    cls = trusted.find(path)
    if not isinstance(cls, type):
        raise ValueError(f"{path!r} is no class")
    if kind == "member" and issubclass(cls, enum.Enum):
        return cls[made_of]
    if kind == "made" and is_dataclass(cls):
        return cls(**{str(name): value for name, value in each(made_of)})
    if kind not in ("called", "new"):
        raise ValueError(f"{kind!r} is no kind of value")
    if trusted.is_ours(cls):  # only its constructor makes one: it checks, and methods stay what they are
        (settings,) = each(state)
        return cls(*each(made_of), **settings)
    if kind == "called":
        return cls(*each(made_of))
    value: Any = cls.__new__(cls, *each(made_of))
    for attributes in each(state):
        if hasattr(value, "__setstate__"):
            value.__setstate__(attributes)
        else:
            vars(value).update(attributes or {})
    return value


def parse(text: str | bytes) -> Any:
    """Return what a JSON text holds; raises ValueError for all that is none."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no number of JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def write(described: Any) -> str:
    """Return the JSON text of something described."""
    return json.dumps(described, allow_nan=False, separators=(",", ":"))
