"""The four ways a function is compiled, with their types kept.

Division by zero gives an infinity, as in NumPy: checking for it would keep loops from being vectorised. All leave a
plain Python function when ``NUMBA_DISABLE_JIT=1`` is set, so that debuggers and coverage see the very code that runs
compiled.
"""

import gc
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite.binding import parse_assembly
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral

from onebit.code_cache import keep_on_disk
from onebit.compile_notice import NOTICE

_Function = TypeVar("_Function", bound=Callable[..., Any])

_listen: Any = event.register
_listen("numba:compile", NOTICE)

# Nobody calls compiled code from C.
_NOT_FROM_C: Any = {"no_cfunc_wrapper": True}
# Numba keeps this option to itself, by its underscore; without it the code is the same, and slower.
_WITHOUT_COUNTING: Any = {"_nrt": False}
# What Numba calls the globals by which code finds Python objects, and the functions that take them apart.
_ENVIRONMENT, _WRAPPER = "NumbaEnv", "_ZN7cpython"
# To link without compiling, and to compare options quickly, parts of Numba are used that it keeps to itself: with other
# versions code is compiled as usual, in twice the time.
_USES_PRIVATE_PARTS = numba.__version__.startswith("0.68.")


def compiled(function: _Function, *, is_long: bool = False) -> _Function:
    """Compile a function that Python calls.

    Parameters
    ----------
    function : callable
        Python's.
    is_long : bool
        Whether a call takes long enough to let other threads run Python meanwhile. Compiled code touches no Python
        object, and whoever calls it holds the arrays, and the lock of their learner, until it returns. In a call of a
        microsecond, giving the interpreter up and waiting for it again would cost more than the call.
    """
    made = numba.njit(error_model="numpy", nogil=is_long, **_NOT_FROM_C)(function)
    return cast(_Function, _finished(made, _Dispatcher))


def frugal(function: _Function, *, is_long: bool = False) -> _Function:
    """Compile a function that Python calls in every round, and that makes no arrays of its own.

    Numba counts references to every array in every named tuple that is passed on, and there it costs five times what
    the rest of a round of Algorithm 1 does. A function that makes no arrays has nothing to count.
    """
    options = _NOT_FROM_C | _WITHOUT_COUNTING
    made = numba.njit(error_model="numpy", nogil=is_long, **options)(function)
    return cast(_Function, _finished(made, _Dispatcher))


def shared(function: _Function) -> _Function:
    """Compile a function that only compiled code calls, and that is too large to be copied into each caller.

    As `frugal`, it makes no arrays. Python cannot call it: what takes Python's objects apart would take as long to
    compile as the function itself.
    """
    options = _NOT_FROM_C | _WITHOUT_COUNTING | {"no_cpython_wrapper": True}
    return cast(_Function, _finished(numba.njit(error_model="numpy", **options)(function), _NotFromPython))


def _finished(function: Any, kind: type) -> Any:
    """Return a compiled function, of our kind of Numba's class; what Python calls keeps its code on disk."""
    if isinstance(function, CPUDispatcher):  # not where nothing is compiled
        dispatcher: Any = function if kind is _NotFromPython else keep_on_disk(function)
        dispatcher.__class__ = kind
        if _USES_PRIVATE_PARTS:
            dispatcher._compiler._customize_flags = _QuickFlags
    return function


class _QuickFlags(Flags):
    """Numba's options of one function. It compares them often, which would take a tenth of the time to compile."""

    def __hash__(self) -> int:
        return hash(_QuickFlags)

    def __eq__(self, other: object) -> bool:
        whole: Any = super()
        return bool(self._values == getattr(other, "_values", None) or whole.__eq__(other))


class _ForLinking(JITCodeLibrary):
    """Compiled code that callers link in and optimise as their own.

    Numba would optimise it by itself first, and make machine code that is never run: half of the time to compile.
    """

    def _optimize_final_module(self) -> None:
        if self._has_wrapper():
            whole: Any = super()
            whole._optimize_final_module()

    def _finalize_final_module(self) -> None:
        whole: Any = super()
        if self._has_wrapper():
            whole._finalize_final_module()
            return
        whole._finalize_dynamic_globals()
        # Numba writes to the globals by which code would find Python objects, as soon as it is compiled.
        names = [each.name for each in self._final_module.global_variables if _ENVIRONMENT in each.name]
        codegen: Any = self._codegen
        codegen._add_module(parse_assembly("\n".join(f'@"{name}" = common global i64 0' for name in names)))
        self._finalized = True

    def _has_wrapper(self) -> bool:
        """Say whether Python can call it: then it is compiled to the end."""
        return any(function.name.startswith(_WRAPPER) for function in self._final_module.functions)


class _Dispatcher(CPUDispatcher):
    """Compiles without collecting garbage meanwhile: that takes a sixth of the time, and finds next to nothing."""

    _makes: type[JITCodeLibrary] = JITCodeLibrary
    """What compiled code is made into."""

    def compile(self, sig: Any) -> Any:
        """Return the compiled form for a signature."""
        context: Any = self.targetctx
        codegen = context.codegen()
        with global_compiler_lock:
            is_enabled, before = gc.isenabled(), codegen._library_class
            gc.disable()
            try:
                codegen._library_class = self._makes  # whatever the caller, which is being compiled, is made into
                return super().compile(sig)
            finally:
                codegen._library_class = before
                if is_enabled:
                    gc.enable()


class _NotFromPython(_Dispatcher):
    """A function without a way in for Python, which would crash."""

    _makes = _ForLinking if _USES_PRIVATE_PARTS else JITCodeLibrary

    def __call__(self, *_args: Any, **_options: Any) -> Any:
        raise TypeError(
            f"{self.py_func.__name__} is compiled for compiled code only; compile its py_func with `compiled` to try it"
        )

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for types, not once more for every constant that is passed."""
        of_type: Any = unliteral
        return super().get_call_template([of_type(kind) for kind in args], kws)


def inlined(function: _Function) -> _Function:
    """Compile a small function that only compiled code calls; its body is copied into each caller.

    A call across compiled functions costs more than a whole round of Algorithm 1 in three dimensions, so every step of
    the game's inner loop (score, guess, learn, update) is inlined.
    """
    return cast(_Function, numba.njit(inline="always", error_model="numpy")(function))
