"""The four ways a function is compiled, with their types kept.

Division by zero gives an infinity, as in NumPy: checking for it would keep loops from being vectorised. All leave a
plain Python function when ``NUMBA_DISABLE_JIT=1`` is set, so that debuggers and coverage see the very code that runs
compiled.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.registry import CPUDispatcher

from onebit.code_cache import keep_on_disk
from onebit.compile_notice import NOTICE

_Function = TypeVar("_Function", bound=Callable[..., Any])

_listen: Any = event.register
_listen("numba:compile", NOTICE)

# Nobody calls compiled code from C.
_NOT_FROM_C: Any = {"no_cfunc_wrapper": True}
# Numba keeps this option to itself, by its underscore; without it the code is the same, and slower.
_WITHOUT_COUNTING: Any = {"_nrt": False}


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
    return cast(_Function, keep_on_disk(numba.njit(error_model="numpy", nogil=is_long, **_NOT_FROM_C)(function)))


def frugal(function: _Function, *, is_long: bool = False) -> _Function:
    """Compile a function that Python calls in every round, and that makes no arrays of its own.

    Numba counts references to every array in every named tuple that is passed on, and there it costs five times what
    the rest of a round of Algorithm 1 does. A function that makes no arrays has nothing to count.
    """
    options = _NOT_FROM_C | _WITHOUT_COUNTING
    return cast(_Function, keep_on_disk(numba.njit(error_model="numpy", nogil=is_long, **options)(function)))


def shared(function: _Function) -> _Function:
    """Compile a function that only compiled code calls, and that is too large to be copied into each caller.

    As `frugal`, it makes no arrays. Python cannot call it: what takes Python's objects apart would take as long to
    compile as the function itself.
    """
    options = _NOT_FROM_C | _WITHOUT_COUNTING | {"no_cpython_wrapper": True}
    dispatcher: Any = keep_on_disk(numba.njit(error_model="numpy", **options)(function))
    if isinstance(dispatcher, CPUDispatcher):  # not where nothing is compiled
        dispatcher.__class__ = _NotFromPython
    return cast(_Function, dispatcher)


class _NotFromPython(CPUDispatcher):
    """A function without a way in for Python, which would crash."""

    def __call__(self, *_args: Any, **_options: Any) -> Any:
        raise TypeError(
            f"{self.py_func.__name__} is compiled for compiled code only; compile its py_func with `compiled` to try it"
        )


def inlined(function: _Function) -> _Function:
    """Compile a small function that only compiled code calls; its body is copied into each caller.

    A call across compiled functions costs more than a whole round of Algorithm 1 in three dimensions, so every step of
    the game's inner loop (score, guess, learn, update) is inlined.
    """
    return cast(_Function, numba.njit(inline="always", error_model="numpy")(function))
