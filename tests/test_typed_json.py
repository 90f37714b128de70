"""Values as JSON: they come back as what they were, and a text from elsewhere runs no code."""

import enum
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pytest

from onebit.kernels import Gaussian
from onebit.typed_json import Trusted, describe, parse, restore, write


class Color(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0


@dataclass
class Counter:
    start: int
    n: int = field(init=False, default=0)


def there_and_back(value: Any, trusted: Any = ()) -> Any:
    return restore(parse(write(describe(value))), Trusted(trusted))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        "ä",
        0.1,
        math.inf,
        -math.inf,
        b"\x00\xff",
        (1, ("a", [2.0, None])),
        {"a": 1, (1, 2): "a pair", 3: {"float": "inf"}},
        frozenset({1, "a"}),
        {1, 2},
        np.float32(0.1),
        np.int8(-3),
        np.bool_(True),
        np.datetime64("2026-01-02"),
        np.str_("word"),
    ],
    ids=lambda value: "frozenset" if isinstance(value, frozenset) else repr(value),  # its order varies with the process
)
def test_plain_values_come_back_as_what_they_were(value: Any) -> None:
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_what_is_like_a_description_is_a_value() -> None:
    assert math.isnan(there_and_back(math.nan))
    for value in ({"float": "inf"}, {"tuple": [1]}, {"import": "os:system"}):
        assert there_and_back(value) == value


def test_the_order_of_a_set_is_its_own() -> None:
    assert write(describe({"b", "a", 1})) == write(describe({1, "a", "b"})) == '{"set":["a","b",1]}'


def test_arrays_are_put_beside_the_text() -> None:
    arrays: list[Any] = []
    described = describe({"w": np.arange(3.0), "labels": np.array(["a", (1, 2)], dtype=object)}, arrays)
    back = restore(described, Trusted(), arrays)
    assert np.array_equal(back["w"], np.arange(3.0))
    assert back["labels"].tolist() == ["a", (1, 2)]
    with pytest.raises(ValueError, match="cannot be saved"):
        describe(np.arange(3.0))
    for position in (1, -1, "0", True):
        with pytest.raises(ValueError, match="is no position among 1"):
            restore({"array": position}, Trusted(), arrays)


@pytest.mark.parametrize("value", [Color.RED, Point(1.0, 2.0), Counter(3), date(2026, 1, 2), Point])
def test_other_things_need_to_be_trusted(value: Any) -> None:
    if isinstance(value, Counter):
        value.n = 5
    of = value if isinstance(value, type) else type(value)
    path = f"{of.__module__}:{of.__qualname__}"
    with pytest.raises(ValueError, match=r"it names .*: if you trust it, pass trusted="):
        there_and_back(value, ())
    assert there_and_back(value, [path]) == value
    assert there_and_back(value, [of]) == value


def test_a_text_runs_no_code_that_it_names() -> None:
    for described in ({"called": ["os:system", ["true"]]}, {"import": "os:system"}, {"new": ["os:system", []]}):
        with pytest.raises(ValueError, match="'os:system', which is not onebit's own"):
            restore(described, Trusted())
    with pytest.raises(ValueError, match="is no class"):
        restore({"called": ["os:getcwd", []]}, Trusted(["os:getcwd"]))


def test_onebits_own_are_made_by_their_constructors() -> None:
    ours = Trusted(ours={"onebit.kernels:Gaussian": Gaussian})
    kernel = Gaussian(0.5, normalize=True)
    assert restore(parse(write(describe(kernel))), ours) == kernel
    (kind, (path, made_of)) = next(iter(describe(kernel).items()))
    assert kind == "made"
    assert path == "onebit.kernels:Gaussian"
    with pytest.raises(ValueError, match="width"):
        restore({kind: [path, [["width", -1.0], *made_of[1:]]]}, ours)


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ({}, "not enough values"),
        ({"a": 1, "b": 2}, "too many values"),
        ({"float": "1e999"}, "describes nothing"),
        ({"float": 0.5}, "describes nothing"),
        ({"tuple": 3}, "3 is no list"),
        ({"bytes": "xy"}, "non-hexadecimal"),
        ({"numpy": ["O", "00"]}, "'O' is no scalar"),
        ({"numpy": ["f8", "00"]}, "multiple of element size"),
        ({"unknown": ["builtins:int", []]}, "'unknown' is no kind of value"),
        ({"dict": [[1]]}, "has length 1"),
    ],
)
def test_what_describes_nothing_is_refused(described: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        restore(described, Trusted(["builtins:int"]))


def test_depth_is_bounded() -> None:
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(ValueError, match="nested less than 40 deep"):
        describe(itself)
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deep"):
        restore(deep, Trusted())
    with pytest.raises(ValueError, match="nested too deep"):
        parse("[" * 200_000)
    for text in ("NaN", "Infinity", "{", ""):
        with pytest.raises(ValueError, match=r"no number of JSON|Expecting"):
            parse(text)


def test_what_is_not_made_of_values_is_not_described() -> None:
    for value in (open, lambda: 0, iter(()), OrderedDict.fromkeys, object):
        if value in (open, object):
            assert set(describe(value)) == {"import"}
            continue
        with pytest.raises(ValueError, match=r"cannot be saved|cannot find it"):
            describe(value)
    with pytest.raises(ValueError, match="trusted must be a list"):
        Trusted("os:system")
