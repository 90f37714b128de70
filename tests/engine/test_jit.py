"""Functions that only compiled code calls: compiled once for all constants, to machine code only in callers."""

import gc
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import DefaultPassBuilder, Flags, StateDict
from numba.core.errors import TypingError
from numba.core.types import BaseFunction

from onebit.engine.jit import _NEEDLESS_PASSES, by_reference, jit, jit_inline, jit_internal, jit_no_refcount
from onebit.inputs import Floats


@jit
def third(x: float) -> float:
    return x / 3.0


@jit_inline
def half(x: float) -> float:
    return 0.5 * x


@jit_internal
def sixth(x: float) -> float:
    return half(third(x))


@jit
def sum_of_sixths(x: float) -> float:
    return sixth(6.0) + sixth(12.0) + sixth(x)


def test_a_constant_is_no_type_of_its_own() -> None:
    assert sum_of_sixths(18.0) == 6.0
    internal: Any = sixth
    assert len(internal.signatures) == 1


def test_what_python_can_call_has_machine_code_wherever_it_was_compiled_first() -> None:
    assert sum_of_sixths(6.0) == 4.0
    assert third(9.0) == 3.0
    assert half(9.0) == 4.5


def test_garbage_is_collected_again_after_compiling() -> None:
    assert gc.isenabled()
    assert jit(lambda x: x + 1)(1) == 2
    assert gc.isenabled()


def test_another_version_of_numba_compiles_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.engine.jit._USES_PRIVATE_PARTS", False)
    monkeypatch.setattr("onebit.engine.jit._NotFromPython._makes", JITCodeLibrary)

    @jit_internal
    def twice(x: float) -> float:
        return 2.0 * x

    @jit
    def four_times(x: float) -> float:
        return twice(twice(x))

    assert four_times(3.0) == 12.0


class Pair(NamedTuple):
    factors: Floats
    is_negative: bool


@jit_internal
def product_of(pair: Pair, numbers: Floats) -> Any:
    total = 0.0
    for i in range(numbers.shape[0]):
        total += pair.factors[i] * numbers[i]
    pair.factors[0] = total
    return -total if pair.is_negative else total


@jit_no_refcount
def product(factors: Floats, is_negative: bool, numbers: Floats) -> Any:
    pair = by_reference(Pair(factors, is_negative))
    return product_of(pair, numbers) + pair.factors[0]


def test_a_named_tuple_is_handed_on_by_reference() -> None:
    for is_negative, expected in ((False, 22.0), (True, 0.0)):
        factors = np.array([1.0, 2.0])
        assert product(factors, is_negative, np.array([3.0, 4.0])) == expected
        assert factors[0] == 11.0


def test_a_reference_has_the_fields_of_its_tuple_only() -> None:
    @jit_no_refcount
    def other(factors: Floats) -> Any:
        pair: Any = by_reference(Pair(factors, True))
        return pair.other

    with pytest.raises(TypingError, match="Unknown attribute 'other'"):
        other(np.ones(2))


def test_types_are_remembered_while_something_is_compiled_and_no_longer() -> None:
    functions: Any = BaseFunction
    before = functions.get_call_type
    seen = []

    def once(x: float) -> float:
        return x + x + x

    class _Listener(event.Listener):
        def on_start(self, _event: Any) -> None:
            seen.append(functions.get_call_type)

        def on_end(self, _event: Any) -> None:
            seen.append(functions.get_call_type)

    listener = _Listener()
    with event.install_listener("numba:run_pass", listener):
        assert jit(once)(2.0) == 6.0
    assert before not in seen
    assert functions.get_call_type is before


def test_numba_has_the_passes_that_are_left_out() -> None:
    state, flags, builder = cast(tuple[Any, Any, Any], (StateDict(), Flags, DefaultPassBuilder))
    state.flags, state.func_ir = flags(), None
    passes = {made.__name__ for made, _ in builder.define_nopython_pipeline(state).passes}
    assert passes >= _NEEDLESS_PASSES
