"""The four ways to compile a function, with its types kept.

Division by zero gives an infinity, as in NumPy: checking for it would keep loops from being vectorised. All leave a
plain Python function when ``NUMBA_DISABLE_JIT=1`` is set, so that debuggers and coverage see the very code that runs
compiled.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
from llvmlite.binding import parse_assembly
from numba.core import cgutils, event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import lower_getattr_generic
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.types import Any as AnyType
from numba.core.types import Array, BaseFunction, BaseNamedTuple, Type, unliteral
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_builtin, register_model, type_callable

from onebit.engine.code_cache import CodeCache
from onebit.engine.compile_notice import NOTICE

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Content = TypeVar("_Content", bound=tuple[Any, ...])

_njit: Any = numba.njit
event.register("numba:compile", NOTICE)


def jit(function: _Function, *, is_long: bool = False) -> _Function:
    """Compile a function that Python calls.

    If it `is_long`, the interpreter lock is released during the call: compiled code touches no Python object, and its
    caller keeps the arrays and the learner's lock. Around a call of a microsecond that would cost more than the call.
    """
    return _compiled(function, _Dispatcher, nogil=is_long)


def jit_no_refcount(function: _Function, *, is_long: bool = False) -> _Function:
    """Compile a function that Python calls in every round, and that makes no arrays of its own.

    Numba counts references to every array in every named tuple that is passed on, and there it costs five times what
    the rest of a round of Algorithm 1 does. A function that makes no arrays has nothing to count.
    """
    return _compiled(function, _Dispatcher, nogil=is_long, **_UNCOUNTED)


def jit_internal(function: _Function) -> _Function:
    """Compile a function that only compiled code calls, and that is too large to be copied into each caller.

    As with `jit_no_refcount`, it must make no arrays; nor may it return one. Python cannot call it: compiling what
    takes Python's objects apart would take as long as compiling the function itself.
    """
    return _compiled(function, _NotFromPython, no_cpython_wrapper=True, **_UNCOUNTED)


def _compiled(function: _Function, kind: "type[_Dispatcher]", **options: Any) -> _Function:
    """Return a compiled function, which compiles faster; what Python calls keeps its code on disk."""
    made = _njit(error_model="numpy", no_cfunc_wrapper=True, **options)(function)  # not called from C
    if isinstance(made, CPUDispatcher):  # not where nothing is compiled
        made.__class__ = kind
        if _USES_PRIVATE_PARTS:
            made._compiler._customize_flags = _QuickFlags
        if kind is not _NotFromPython:
            made._cache = CodeCache(made)
    return cast(_Function, made)


def jit_inline(function: _Function) -> _Function:
    """Compile a small function that only compiled code calls; its body is copied into each caller.

    A call across compiled functions costs more than a whole round of Algorithm 1 in three dimensions, so every step of
    the round loop (score, choose, update) is inlined.
    """
    return cast(_Function, _njit(inline="always", error_model="numpy")(function))


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python of a compiled function: what is seldom called need not be compiled for every algorithm."""
    plain: Callable[..., Any] = getattr(function, "py_func", function)
    return plain


# What is used of Numba that is private to it, to compile in half of the time. There is a plain way beside everything:
# with a version of Numba that is not known, functions are compiled by its usual passes. On such a version a test in
# tests/engine/test_jit.py fails: then compare these classes with the new Numba, and raise `_KNOWN`.

_KNOWN = "0.68."  # how the versions begin whose private parts are as they are used here
_USES_PRIVATE_PARTS = numba.__version__.startswith(_KNOWN)
# Options of functions that make no arrays. `_nrt` is a private option of Numba that switches reference counting off;
# with it on, results are the same.
_UNCOUNTED: Any = {"_nrt": False}


class _QuickFlags(Flags):
    """Numba's options of one function. It compares them often, which would take a tenth of the time to compile."""

    def __hash__(self) -> int:
        return hash(_QuickFlags)

    def __eq__(self, other: object) -> bool:
        return bool(self._values == getattr(other, "_values", None) or super().__eq__(other))


class _ForLinking(JITCodeLibrary):
    """Compiled code that callers link in and optimise as their own.

    Numba would optimise it by itself first, and make machine code that is never run: half of the time to compile. What
    Python can call, by a wrapper that unpacks its arguments, is compiled to the end.
    """

    def _optimize_final_module(self) -> None:
        if self._has_wrapper():
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._has_wrapper():
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        # Numba fills in globals that point to Python objects right after compiling, so they must exist: empty ones are
        # defined here.
        names = [each.name for each in self._final_module.global_variables if "NumbaEnv" in each.name]
        self._codegen._add_module(parse_assembly("\n".join(f'@"{name}" = common global i64 0' for name in names)))
        self._finalized = True

    def _has_wrapper(self) -> bool:
        return any(function.name.startswith("_ZN7cpython") for function in self._final_module.functions)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Collect no garbage meanwhile: that takes a fifth of the time to compile, and finds next to nothing."""
    is_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if is_enabled:
            if not gc.get_freeze_count():  # move all objects to the oldest generation: the next collection skips them
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def _remembering_types() -> Iterator[None]:
    """Find out once, and not for every use, what functions such as "+" return for arguments of certain types.

    Numba tries all it knows about a function each time, which would take a fifth of the time to compile.
    """
    before: Any = BaseFunction.get_call_type
    found: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        key = context, self, tuple(args), tuple(kws.items()), ConfigStack.top_or_none()
        if key not in found:
            signature = before(self, context, args, kws)
            found[key] = signature, self._impl_keys[signature.args]
        # Numba keeps one implementation for the types, that of the function typed last; it must be this function's.
        signature, implementation = found[key]
        self._impl_keys[signature.args] = implementation
        return signature

    if before.__module__ == __name__ or not _USES_PRIVATE_PARTS:  # inside another of these, which remembers already
        yield
        return
    try:
        BaseFunction.get_call_type = get_call_type
        yield
    finally:
        BaseFunction.get_call_type = before


class _Dispatcher(CPUDispatcher):
    """Compiles in half of the time."""

    _makes: type[JITCodeLibrary] = JITCodeLibrary
    """What compiled code is made into."""

    def compile(self, sig: Any) -> Any:
        """Return the compiled form for a signature."""
        codegen = self.targetctx.codegen()
        with global_compiler_lock, _without_collecting(), _remembering_types():
            before = codegen._library_class
            try:
                codegen._library_class = self._makes  # the caller that is being compiled may use another class
                return super().compile(sig)
            finally:
                codegen._library_class = before


class _NotFromPython(_Dispatcher):
    """A function without a way in for Python, which would crash."""

    _makes = _ForLinking if _USES_PRIVATE_PARTS else JITCodeLibrary

    def compile(self, sig: Any) -> Any:
        """Return the compiled form for a signature; raise TypeError if it returns an array."""
        made = super().compile(sig)
        for each in self.overloads.values():
            returned = each.signature.return_type
            if any(isinstance(kind, Array) for kind in getattr(returned, "types", [returned])):
                # The caller would release a reference that was never counted.
                raise TypeError(f"{self.py_func.__name__} must return no array; let it write to one that it is given")
        return made

    def __call__(self, *_args: Any, **_options: Any) -> Any:
        """Raise TypeError."""
        raise TypeError(
            f"{self.py_func.__name__} is compiled for compiled code only; compile its py_func with `jit` to try it"
        )

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for types, not once more for every constant that is passed."""
        return super().get_call_template([unliteral(kind) for kind in args], kws)


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
