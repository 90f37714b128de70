"""The four ways to compile a function, with its types kept.

Division by zero gives an infinity, as in NumPy: checking for it would keep loops from being vectorised. All leave a
plain Python function when ``NUMBA_DISABLE_JIT=1`` is set, so that debuggers and coverage see the very code that runs
compiled.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import cgutils, event
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import lower_getattr_generic
from numba.core.registry import CPUDispatcher
from numba.core.types import Any as AnyType
from numba.core.types import BaseNamedTuple, Type
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_builtin, register_model, type_callable

from onebit.engine.code_cache import CodeCache
from onebit.engine.compile_notice import NOTICE
from onebit.engine.numba_private import OPTIONS, Dispatcher, NotFromPython, WithoutCounting

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Content = TypeVar("_Content", bound=tuple[Any, ...])

_njit: Any = numba.njit
event.register("numba:compile", NOTICE)


def jit(function: _Function, *, is_long: bool = False) -> _Function:
    """Compile a function that Python calls.

    Parameters
    ----------
    function : callable
        Python's.
    is_long : bool
        Whether to release the interpreter lock during the call. Compiled code touches no Python object, and its caller
        keeps the arrays and the learner's lock until it returns. In a call of a microsecond, releasing and taking the
        lock again would cost more than the call.
    """
    return _compiled(function, Dispatcher, nogil=is_long)


def jit_no_refcount(function: _Function, *, is_long: bool = False) -> _Function:
    """Compile a function that Python calls in every round, and that makes no arrays of its own.

    Numba counts references to every array in every named tuple that is passed on, and there it costs five times what
    the rest of a round of Algorithm 1 does. A function that makes no arrays has nothing to count. No argument may be
    None: branches are compiled whatever the types are.
    """
    return _compiled(function, WithoutCounting, nogil=is_long, **OPTIONS)


def jit_internal(function: _Function) -> _Function:
    """Compile a function that only compiled code calls, and that is too large to be copied into each caller.

    As with `jit_no_refcount`, it must make no arrays, and no argument may be None; nor may it return an array. Python
    cannot call it: compiling what takes Python's objects apart would take as long as compiling the function itself.
    """
    return _compiled(function, NotFromPython, no_cpython_wrapper=True, **OPTIONS)


def _compiled(function: _Function, kind: type[Dispatcher], **options: Any) -> _Function:
    """Return a compiled function, which compiles faster; what Python calls keeps its code on disk."""
    made = _njit(error_model="numpy", no_cfunc_wrapper=True, **options)(function)  # not called from C
    if isinstance(made, CPUDispatcher):  # not where nothing is compiled
        kind.take(made)
        if kind is not NotFromPython:
            made._cache = CodeCache(made)
    return cast(_Function, made)


def jit_inline(function: _Function) -> _Function:
    """Compile a small function that only compiled code calls; its body is copied into each caller.

    A call across compiled functions costs more than a whole round of Algorithm 1 in three dimensions, so every step of
    the round loop (score, choose, update) is inlined.
    """
    return cast(_Function, _njit(inline="always", error_model="numpy")(function))


# Named tuples of many arrays, handed on from one compiled function to the next.


def by_reference(content: _Content) -> _Content:
    """Return a named tuple that is passed on by its address, which is valid until the calling function returns.

    Numba passes on every number of every array in a tuple, eight for a matrix, in each call. For two dozen arrays that
    is a quarter of the code to compile. Only for `jit_no_refcount` and `jit_internal`: no references are counted. The
    same call, made again, overwrites the tuple that it wrote before.
    """
    return content


class _Reference(Type):
    """The type of a named tuple's address."""

    def __init__(self, content: Any) -> None:
        self.content = content
        super().__init__(f"Reference({content})")

    @property
    def key(self) -> Any:
        """What it is known by: names of named tuples leave out their fields."""
        return self.content


@register_model(_Reference)
class _Address(PrimitiveModel):
    """What compiled code has of it: a pointer."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(kind.content).get_value_type().as_pointer())

    def get_return_type(self) -> Any:
        """Raise TypeError."""
        raise TypeError("a reference must not be returned: the tuple is gone when the function returns that made it")


@type_callable(by_reference)
def _type_of_reference(_context: Any) -> Any:
    return lambda content: _Reference(content) if isinstance(content, BaseNamedTuple) else None


@lower_builtin(by_reference, AnyType)
def _address(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    """Write a tuple to the stack of the function that is compiled."""
    if context.enable_nrt:
        raise TypeError("by_reference is for jit_no_refcount and jit_internal functions, which count no references")
    return cgutils.alloca_once_value(builder, arguments[0])


@infer_getattr
class _FieldTypes(AttributeTemplate):
    """The types of its fields."""

    key = _Reference

    def generic_resolve(self, reference: Any, name: str) -> Any:
        """Return the type of a field, or None if there is no such field."""
        content = reference.content
        return content.types[content.fields.index(name)] if name in content.fields else None


@lower_getattr_generic(_Reference)
def _load(_context: Any, builder: Any, kind: Any, address: Any, name: str) -> Any:
    """Load a field."""
    return builder.load(cgutils.gep_inbounds(builder, address, 0, kind.content.fields.index(name)))
