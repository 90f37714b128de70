"""Functions that only compiled code calls: compiled once for all constants, to machine code only in callers."""

import gc
from typing import Any

import pytest
from numba.core.codegen import JITCodeLibrary

from onebit.compiled import compiled, inlined, shared


@compiled
def third(x: float) -> float:
    return x / 3.0


@inlined
def half(x: float) -> float:
    return 0.5 * x


@shared
def sixth(x: float) -> float:
    return half(third(x))


@compiled
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
    assert compiled(lambda x: x + 1)(1) == 2
    assert gc.isenabled()


def test_another_version_of_numba_compiles_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.compiled._USES_PRIVATE_PARTS", False)
    monkeypatch.setattr("onebit.compiled._NotFromPython._makes", JITCodeLibrary)

    @shared
    def twice(x: float) -> float:
        return 2.0 * x

    @compiled
    def four_times(x: float) -> float:
        return twice(twice(x))

    assert four_times(3.0) == 12.0
