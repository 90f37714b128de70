"""What onebit uses of Numba that is private to it, to compile in half of the time.

Everything here has a plain way beside it: with a version of Numba that is not known, functions are compiled by its
usual passes. ``tests/engine/test_numba_private.py`` fails on such a version: then compare these classes with the new
Numba, and raise `KNOWN`.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from llvmlite.binding import parse_assembly
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.types import Array, BaseFunction, BaseTuple, NoneType, unliteral

KNOWN = "0.68."
"""How the versions begin whose private parts are as they are used here."""

_USES_PRIVATE_PARTS = numba.__version__.startswith(KNOWN)
# Compiler passes that change nothing in functions that make no arrays, closures or context managers, and do not branch
# on types. One of them inserts reference counting.
_NEEDLESS_PASSES = {
    "AnnotateTypes",
    "DeadBranchPrune",
    "DumpParforDiagnostics",
    "FindLiterallyCalls",
    "IRLegalization",
    "InlineClosureLikes",
    "InlineOverloads",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NoPythonSupportedFeatureValidation",
    "RewriteDynamicRaises",
    "RewriteSemanticConstants",
    "WithLifting",
}


class _FewPasses(CompilerBase):
    """Compiles a function that makes no arrays."""

    left_out = tuple(sorted(_NEEDLESS_PASSES))
    """What code on disk depends on beside its source."""

    def define_pipelines(self) -> list[PassManager]:
        few = PassManager("no_refcount")
        for made, purpose in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if made.__name__ not in _NEEDLESS_PASSES:
                few.add_pass(made, purpose)
        few.finalize()
        return [few]


# `_nrt` is a private option of Numba that switches reference counting off; with it on, results are the same.
OPTIONS: Any = {"_nrt": False} | ({"pipeline_class": _FewPasses} if _USES_PRIVATE_PARTS else {})
"""Options of functions that make no arrays."""


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


class Dispatcher(CPUDispatcher):
    """Compiles in half of the time."""

    _makes: type[JITCodeLibrary] = JITCodeLibrary
    """What compiled code is made into."""

    @classmethod
    def take(cls, made: Any) -> None:
        """Make a compiled function one of this kind."""
        made.__class__ = cls
        if _USES_PRIVATE_PARTS:
            made._compiler._customize_flags = _QuickFlags

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


class WithoutCounting(Dispatcher):
    """A function that counts no references."""

    def compile(self, sig: Any) -> Any:
        """Return the compiled form for a signature; raise TypeError for an argument that is None."""
        if any(isinstance(kind, NoneType) for kind in _flat(getattr(sig, "args", sig))):
            raise TypeError(f"{self.py_func.__name__} must be given no None: all its branches are compiled")
        return super().compile(sig)


class NotFromPython(WithoutCounting):
    """A function without a way in for Python, which would crash."""

    _makes = _ForLinking if _USES_PRIVATE_PARTS else JITCodeLibrary

    def compile(self, sig: Any) -> Any:
        """Return the compiled form for a signature; raise TypeError if it returns an array."""
        made = super().compile(sig)
        for each in self.overloads.values():
            if any(isinstance(kind, Array) for kind in _flat([each.signature.return_type])):
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


def _flat(kinds: Any) -> Iterator[Any]:
    """Yield types, and those in tuples."""
    for kind in kinds:
        yield kind
        if isinstance(kind, BaseTuple):
            yield from _flat(kind.types)
