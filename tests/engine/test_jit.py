"""Functions that only compiled code calls are compiled once for all constants, to machine code only in callers.

What is used of Numba's private parts is there, and without it the games are the same.
"""

import gc
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import caching, event
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import NumbaError, TypingError
from numba.core.types import BaseFunction
from numba.extending import overload

import onebit
from onebit.engine.code_cache import NOT_KEPT
from onebit.engine.jit import (
    _KNOWN,
    by_reference,
    jit,
    jit_inline,
    jit_internal,
    jit_no_refcount,
)
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


two: Any = namedtuple
Ab, BA = two("Two", "a b"), two("Two", "b a")


@jit_no_refcount
def first_fields(first: Floats, second: Floats) -> Any:
    pair, riap = by_reference(Ab(first, second)), by_reference(BA(first, second))
    return 10.0 * pair.a[0] + riap.a[0]


def test_named_tuples_of_one_name_are_told_apart_by_reference() -> None:
    assert first_fields(np.ones(1), np.full(1, 2.0)) == 12.0


def test_a_reference_is_not_returned_nor_counted_nor_of_another_tuple() -> None:
    def returned(factors: Floats) -> Any:
        return by_reference(Pair(factors, True))

    def of_plain_tuple(factors: Floats) -> Any:
        return by_reference((factors, True))

    def counted(factors: Floats) -> Any:
        return by_reference(Pair(factors, True)).factors[0]

    for function, how, message in (
        (returned, jit_internal, "must not be returned"),
        (of_plain_tuple, jit_internal, "by_reference"),
        (counted, jit, "count no references"),
    ):
        inner: Any = how(function)

        @jit
        def outer(factors: Floats, inner: Any = inner) -> float:
            inner(factors)
            return 0.0

        with pytest.raises((TypeError, NumbaError), match=message):
            outer(np.ones(2))


def test_an_internal_function_returns_no_array() -> None:
    @jit_internal
    def same(a: Floats) -> Floats:
        return a

    @jit
    def total(n: int) -> Any:
        return same(np.ones(n)).sum()

    for _ in range(2):
        with pytest.raises((TypeError, NumbaError), match="must return no array"):
            total(3)


_WITH_ANOTHER_NUMBA = """
import numba
numba.__version__ = "9.9.9"
import onebit
from onebit.engine import jit
assert not jit._USES_PRIVATE_PARTS
X, y = onebit.streams.paper_strong(rounds=300, seed=1)
print(*(onebit.play(learner, X, y, seed=7).mistakes for learner in (onebit.BanditPerceptron(), onebit.BanditSVM())))
"""


def test_the_version_of_numba_is_known() -> None:
    """Fails on purpose when the pin of Numba is raised: a comment beside `_KNOWN` has what to do then."""
    assert numba.__version__.startswith(_KNOWN)


@pytest.mark.ci
def test_another_version_of_numba_plays_the_same_games(tmp_path: Path) -> None:
    X, y = onebit.streams.paper_strong(rounds=300, seed=1)
    learners = onebit.BanditPerceptron(), onebit.BanditSVM()
    expected = [onebit.play(learner, X, y, seed=7).mistakes for learner in learners]
    command, environment = [sys.executable, "-c", _WITH_ANOTHER_NUMBA], os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    played = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert [int(word) for word in played.stdout.split()] == expected


def test_where_numbas_cache_has_changed_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(caching, "CompileResultCacheImpl")

    def plus_seven(x: float) -> float:
        return x + 7.0

    assert jit(plus_seven)(1.0) == 8.0
    assert "in another way" in NOT_KEPT[plus_seven.__qualname__]


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


def ratio(a: float, b: float) -> float:
    return a / b


@overload(ratio, strict=False)
def _ratio(a: Any, b: Any) -> Any:
    return lambda a, b: a / b


def test_remembered_types_keep_the_implementation_of_each_function() -> None:
    """Numba's own error model raises; ours does not, though both call the same overload in one compilation."""

    @numba.njit(error_model="python")
    def theirs(a: float, b: float) -> float:
        return ratio(a, b)

    @jit
    def ours(a: float, b: float) -> float:
        x = ratio(a, b)
        return x if b == 0.0 else theirs(a, b)

    assert ours(1.0, 0.0) == np.inf
    assert ours(1.0, 4.0) == 0.25
