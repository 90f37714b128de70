"""Functions that only compiled code calls: compiled once for all constants, to machine code only in callers."""

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.errors import NumbaError, TypingError

from onebit.engine.jit import by_reference, jit, jit_inline, jit_internal, jit_no_refcount
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


def test_an_internal_function_returns_no_array_and_takes_no_none() -> None:
    @jit_internal
    def same(a: Floats) -> Floats:
        return a

    @jit
    def total(n: int) -> Any:
        return same(np.ones(n)).sum()

    for _ in range(2):
        with pytest.raises((TypeError, NumbaError), match="must return no array"):
            total(3)
    with pytest.raises((TypeError, NumbaError), match="must be given no None"):
        jit_no_refcount(lambda a, b: a if b is None else 1.5)(1, None)
