import inspect
import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import bounds
from onebit.bounds import BOUNDS, _InversePower, sharper_margin, transformed_margin

SMALL: dict[str, Any] = {"n_classes": 3, "radius": 1.0, "margin": 0.1, "dimension": 4}
SMALL |= {"reach": 0.1, "directions": 9, "exploration": 0.5, "n_kernels": 5, "softness": 0.005, "n_hypotheses": 100}


def call(function: Callable[..., float], **changes: Any) -> float:
    values = SMALL | changes
    return function(**{name: values[name] for name in inspect.signature(function).parameters})


def test_every_theorem_is_listed() -> None:
    assert {"2", "3", "4", "5", "6", "10", "11", "21", "24"} <= set(BOUNDS)
    assert all(entry.side in ("upper", "lower") for entry in BOUNDS.values())


@pytest.mark.parametrize("entry", BOUNDS.values(), ids=BOUNDS)
def test_every_bound_is_public(entry: bounds.Bound[...]) -> None:
    assert not entry.name.startswith("_")
    assert getattr(bounds, entry.name) is entry


@pytest.mark.parametrize("entry", BOUNDS.values(), ids=BOUNDS)
def test_an_entry_describes_its_function(entry: bounds.Bound[...]) -> None:
    assert list(entry.parameters) == list(inspect.signature(entry).parameters)
    assert all(entry.parameters.values())
    assert entry.title.startswith("Return ")
    assert call(entry) >= 0.0


@pytest.mark.parametrize("entry", BOUNDS.values(), ids=BOUNDS)
def test_a_claim_is_the_function_in_words(entry: bounds.Bound[...]) -> None:
    numbers = {name: SMALL[name] for name in entry.parameters}
    claim = entry.claim(**numbers)
    assert (claim.theorem, claim.side) == (entry.theorem, entry.side)
    assert (claim.about, claim.binds) == (entry.about, entry.binds)
    assert claim.value == entry(**numbers)
    assert claim.value is not None
    assert claim.log2 == pytest.approx(math.log2(claim.value))
    assert entry.claim("somebody", **numbers) == replace(claim, binds="somebody")
    silent = entry.silence("there is no margin")
    assert (silent.value, silent.log2, silent.silent_because) == (None, None, "there is no margin")


@pytest.mark.parametrize("entry", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_numpys_whole_numbers_are_whole_numbers(entry: bounds.Bound[...], kind: Callable[[int], Any]) -> None:
    # In 32 digits 99·4·10⁸ mistakes came out negative.
    plain = SMALL | {"n_classes": 100, "margin": 1e-4}
    numbers = {name: plain[name] for name in entry.parameters}
    fixed = {name: kind(value) if isinstance(value, int) else value for name, value in numbers.items()}
    expected, found = entry(**numbers), entry(**fixed)
    assert (found, type(found)) == (expected, type(expected))
    assert entry.claim(**fixed) == entry.claim(**numbers)


@pytest.mark.parametrize("entry", [e for e in BOUNDS.values() if "n_classes" in e.parameters], ids=lambda e: e.theorem)
@pytest.mark.parametrize("wrong", ["3", None, 2.5, True, [3], 1j])
def test_a_number_of_classes_that_is_none_is_named(entry: bounds.Bound[...], wrong: Any) -> None:
    with pytest.raises(ValueError, match="n_classes must be a whole number"):
        call(entry, n_classes=wrong)


def test_known_values() -> None:
    assert bounds.perceptron_mistakes(3, 1, 0.1) == 800
    assert bounds.perceptron_updates(3, 0.7, 0.07) == 400  # in floats 399
    assert bounds.kernel_perceptron_mistakes(10, 1, 0.5) == 144
    assert bounds.bandit_lower_bound(4, 1, 0.1) == 37.5
    assert bounds.one_example_lower_bound(4, 1, 1) == 1.5
    assert bounds.multiclass_perceptron_mistakes(1, 0.1) == 200
    assert bounds.full_information_lower_bound(2, 1, 0.3) == 5.5
    assert bounds.nearest_neighbor_mistakes(3, 1, 0.5, 3) == 250.0
    assert bounds.nearest_neighbor_mistakes_sharp(3, 1, 0.5, 3) == pytest.approx(2 * (math.sqrt(8) + 1) ** 3)
    assert bounds.ignorant_lower_bound(1 / 1600, 6) == pytest.approx(1.0)
    assert bounds.full_information_lower_bound_sharp(3, 1, 0.3) == pytest.approx(22 / 3)
    assert bounds.ignorant_lower_bound_with(100) == 1.0
    assert bounds.ignorant_lower_bound_with_sharp(1) == 0.5
    assert bounds.nearest_neighbor_memory(1, 0.5, 3) == 125.0
    assert bounds.bandit_svm_mistakes(4, 0.3, 0.1, 1.0) == 3 * 36
    assert bounds.bandit_svm_mistakes(1, 0.3, 0.1, 1.0) == 36
    assert bounds.full_information_svm_mistakes(3, 1, 0.1) == 400
    assert bounds.guarded_svm_mistakes(3, 1, 0.1, 1, 0) == 99211
    assert bounds.bandit_halving_mistakes(3, 1000) == 20
    assert bounds.rational_kernel_mistakes(2, 1.0) == 36192256
    assert bounds.rational_kernel_mistakes_sharp(2, 1.0) == 2262016
    assert round(bounds.ignorant_lower_bound(1e-5, 10), 6) == 39062.5
    assert round(bounds.ignorant_lower_bound_sharp(1e-5, 10), 1) == 45017.4
    assert round(bounds.ignorant_lower_bound_with_sharp(400), 6) == 19.0
    assert round(bounds.ignorant_lower_bound.log2(1e-5, 1000), 1) == 2314.0
    assert round(bounds.rational_kernel_mistakes.log2(3, 0.01), 1) == 411.4
    assert round(bounds.rational_kernel_mistakes_sharp.log2(3, 0.01), 1) == 296.9
    assert bounds.rational_kernel_margin(2, 1.0) == pytest.approx(
        math.sqrt(8 / bounds.rational_kernel_mistakes(2, 1.0))
    )


def test_the_trivial_half_of_theorem_24() -> None:
    # One example of the less likely label costs every learner half a mistake; the stated bound must stay below.
    for gamma in (0.999, 0.1, 1 / 160, 0.0062):
        for d in (1, 2, 3):
            assert bounds.ignorant_lower_bound(gamma, d) <= 0.5 <= bounds.ignorant_lower_bound_sharp(gamma, d)


@given(st.floats(1e-8, 0.9), st.integers(1, 60))
@settings(max_examples=200, derandomize=True)
def test_rounding_the_packing_of_theorem_24_costs_nothing(gamma: float, d: int) -> None:
    assert bounds.ignorant_lower_bound_sharp(gamma, d) >= bounds.ignorant_lower_bound(gamma, d)


@given(st.integers(1, 2000))
@settings(max_examples=200, derandomize=True)
def test_floors_are_exact_at_decimal_margins(tenths: int) -> None:
    margin = tenths / 1000  # written with at most three decimals
    if 2 * tenths**2 <= 4 * 1000**2:
        assert bounds.perceptron_updates(2, 1, margin) == 4 * 1000**2 // tenths**2
        assert bounds.perceptron_updates(2, 1000, tenths) == 4 * 1000**2 // tenths**2


def test_integers_stay_integers() -> None:
    for number in ("2", "2-updates", "4", "6", "6-sharp", "10", "FullInformationSVM"):
        assert type(call(BOUNDS[number])) is int
    assert bounds.perceptron_mistakes(3, 1, 1e-200) == 8 * 10**400


def test_a_margin_rounded_past_its_limit_counts_as_the_limit() -> None:
    assert bounds.multiclass_perceptron_mistakes(1, 1.4142135623730952) == 1
    assert bounds.perceptron_updates(3, 1, 1.1547005383792517) == 3


def test_one_class_makes_no_mistakes() -> None:
    assert bounds.perceptron_mistakes(1, 1, 0.1) == 0
    assert bounds.bandit_lower_bound(1, 1, 0.1) == 0.0


@pytest.mark.parametrize("margin", [0.3, 0.05, 0.011])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_logarithms_agree(K: int, margin: float) -> None:
    exact = bounds.rational_kernel_mistakes(K, margin)
    assert bounds.rational_kernel_mistakes.log2(K, margin) == pytest.approx(math.log2(exact), rel=1e-12)
    sharp = bounds.rational_kernel_mistakes_sharp(K, margin)
    assert bounds.rational_kernel_mistakes_sharp.log2(K, margin) == pytest.approx(math.log2(sharp), rel=1e-12)
    assert sharp < exact
    value = bounds.nearest_neighbor_mistakes(K, 1, margin, 7)
    assert bounds.nearest_neighbor_mistakes.log2(K, 1, margin, 7) == pytest.approx(math.log2(value), rel=1e-12)
    lower = bounds.ignorant_lower_bound(margin / 100, 9)
    assert bounds.ignorant_lower_bound.log2(margin / 100, 9) == pytest.approx(math.log2(lower), rel=1e-12)


def test_beyond_a_float() -> None:
    assert bounds.nearest_neighbor_mistakes(3, 1, 0.1, 5000) == math.inf
    assert bounds.nearest_neighbor_mistakes_sharp(3, 1, 0.1, 5000) == math.inf
    assert bounds.nearest_neighbor_mistakes.log2(3, 1, 0.1, 5000) == pytest.approx(5000 * math.log2(21) + 1)
    with pytest.raises(OverflowError, match=r"ignorant_lower_bound\.log2"):
        bounds.ignorant_lower_bound(1e-5, 1000)
    with pytest.raises(OverflowError, match=r"ignorant_lower_bound_sharp\.log2"):
        bounds.ignorant_lower_bound_sharp(1e-5, 1000)
    with pytest.raises(OverflowError, match=r"mistakes\.log2"):
        bounds.rational_kernel_mistakes(2000, 1e-30)
    assert bounds.rational_kernel_mistakes.log2(2000, 1e-30) > 1e7


def test_upper_bounds_lie_above_lower_ones() -> None:
    for K, margin in [(2, 0.5), (3, 0.1), (7, 0.01)]:
        assert bounds.bandit_lower_bound(K, 1, margin) <= bounds.perceptron_mistakes(K, 1, margin)
        assert bounds.full_information_lower_bound(K, 1, margin) <= bounds.multiclass_perceptron_mistakes(1, margin)


@pytest.mark.parametrize("entry", [entry for entry in BOUNDS.values() if "margin" in entry.parameters])
@pytest.mark.parametrize("bad", [0.0, -0.1, math.nan, math.inf, "0.1", None, True])
def test_bad_margins_are_named(entry: bounds.Bound[...], bad: Any) -> None:
    with pytest.raises(ValueError, match="margin must be"):
        call(entry, margin=bad)


@pytest.mark.parametrize(
    ("number", "changes", "named"),
    [
        ("2", {"n_classes": 0}, "n_classes must be at least 1; got 0"),
        ("2", {"n_classes": "3"}, "n_classes must be a whole number"),
        ("2", {"radius": 0.0}, "radius must be greater than 0"),
        ("2", {"margin": 1.2}, r"margin must be at most 2·radius/√n_classes = 1.1547.*got 1.2"),
        ("3-remark", {"n_classes": 401}, "margin must be at most"),
        ("3", {"n_classes": 101}, r"n_classes must be at most \(radius/margin\)² = 100"),
        ("6", {"n_classes": 1}, "n_classes must be at least 2"),
        ("10", {"margin": 1.5}, "margin must be at most"),
        ("11", {"n_classes": 1}, "n_classes must be at least 2"),
        ("11", {"margin": 1.3}, "margin must be at most .* 1.2247"),
        ("21", {"dimension": 0}, "dimension must be at least 1"),
        ("21", {"n_classes": 1}, "n_classes must be at least 2"),
        ("24", {"margin": 1.0}, "margin must be below 1"),
        ("24", {"dimension": 2.0}, "dimension must be a whole number"),
        ("24-directions", {"directions": 0}, "directions must be at least 1"),
        ("21-reach", {"reach": 0.0}, "reach must be greater than 0"),
        ("BanditSVM", {"exploration": 1.5}, "exploration must be greater than 0 and at most 1"),
    ],
)
def test_broken_assumptions_are_named(number: str, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        call(BOUNDS[number], **changes)


def test_beyond_a_float_a_claim_is_told_by_its_logarithm() -> None:
    """At least infinity would not be true, and at most infinity says nothing."""
    huge = 10**400
    for theorem, numbers, size in (
        ("24-sharp", {"margin": 1e-5, "dimension": 1000}, 2314.2),
        ("3", {"n_classes": 3, "radius": 1, "margin": 1e-200}, math.log2(huge // 4)),
        ("3-remark", {"n_classes": huge, "radius": 1e100, "margin": 1e-200}, math.log2(huge) - 1),
        ("11", {"n_classes": 3, "radius": 1, "margin": 1e-200}, math.log2(huge) - 1),
        ("11-sharp", {"n_classes": 2, "radius": 1, "margin": 1e-200}, math.log2(huge) - 1),
        ("24-directions", {"directions": huge**2}, math.log2(huge) - math.log2(10)),
        ("24-directions-sharp", {"directions": huge**2}, math.log2(huge)),
        ("21-sharp", {"n_classes": 2, "radius": 1e-3, "margin": 1e-320, "dimension": 1}, 317 * math.log2(10) + 0.5),
        ("21-reach", {"n_classes": 3, "radius": 1, "reach": 1, "dimension": 10**9}, 10**9 * math.log2(3)),
        ("21-memory", {"radius": 1, "reach": 1, "dimension": 10**9}, 10**9 * math.log2(3)),
        ("BanditSVM", {"n_classes": 4, "radius": 1, "margin": 1e-200, "exploration": 1}, math.log2(12 * huge)),
    ):
        claim = BOUNDS[theorem].claim(**numbers)
        assert claim.value is None, theorem
        assert claim.log2 == pytest.approx(size, rel=1e-4), theorem
    for function, numbers in (
        (bounds.bandit_lower_bound, {"n_classes": 3, "radius": 1, "margin": 1e-200}),
        (bounds.full_information_lower_bound_sharp, {"n_classes": 3, "radius": 1, "margin": 1e-200}),
        (bounds.ignorant_lower_bound_with, {"directions": huge**2}),
        (bounds.ignorant_lower_bound_with_sharp, {"directions": huge**2}),
    ):
        with pytest.raises(OverflowError, match=r"the bound is about 2\^\d+; use \w+\.log2 instead"):
            function(**numbers)
    assert bounds.nearest_neighbor_mistakes_within(3, 1, 1, 10**9) == math.inf
    assert bounds.ignorant_lower_bound(5e-324, 3) == pytest.approx(2.0 ** bounds.ignorant_lower_bound.log2(5e-324, 3))


ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "n_classes": st.integers(1, 10) | st.integers(1, 10**9),
    "radius": st.floats(1e-300, 1e300) | st.sampled_from([1.0, 0.7, 1e-320]),
    "margin": st.floats(1e-300, 1e300) | st.sampled_from([1.0, 0.07, 5e-324]),
    "reach": st.floats(1e-300, 1e300),
    "dimension": st.integers(1, 20) | st.integers(1, 10**9),
    "directions": st.integers(1, 10**30),
    "exploration": st.floats(1e-300, 1.0),
    "n_kernels": st.integers(1, 10**6),
    "softness": st.floats(0.0, 1e300),
    "n_hypotheses": st.integers(1, 10**9) | st.just(10**400),
}


@pytest.mark.parametrize("entry", BOUNDS.values(), ids=BOUNDS)
@given(data=st.data())
@settings(max_examples=60, derandomize=True, deadline=None)
def test_every_number_is_finite_or_refused(entry: bounds.Bound[...], data: st.DataObject) -> None:
    numbers = {name: data.draw(ARGUMENTS[name], label=name) for name in entry.parameters}
    refused = ""
    try:
        claim = entry.claim(**numbers)
    except ValueError as error:
        refused = str(error)
    if refused:
        assert re.match(rf"({'|'.join(entry.parameters)}) must be", refused)
    elif claim.value is None:
        assert claim.log2 is not None
        assert math.isfinite(claim.log2)
        assert abs(claim.log2) > 1000
    elif claim.value == 0:
        assert claim.log2 is None
    else:
        assert claim.value == entry(**numbers)
        assert 0.0 < claim.value < math.inf
        assert claim.log2 == pytest.approx(math.log2(claim.value))
        assert entry.log2(**numbers) == pytest.approx(claim.log2, rel=1e-9, abs=1e-9)


@given(K=st.integers(2, 50), gamma=st.floats(1e-3, 2.0), R=st.floats(0.5, 2.0))
@settings(max_examples=100, derandomize=True)
def test_no_theorem_contradicts_another(K: int, gamma: float, R: float) -> None:
    """What is forced on everybody is at most what is promised to somebody, wherever both speak."""
    numbers: dict[str, Any] = {"n_classes": K, "radius": R, "margin": gamma, "exploration": 1.0, "dimension": 3}
    numbers |= {"n_kernels": 1, "softness": 0.0}

    def said(theorem: str) -> float | None:
        entry = BOUNDS[theorem]
        try:
            claim = entry.claim(**{name: numbers[name] for name in entry.parameters})
        except ValueError:
            return None
        return -math.inf if claim.log2 is None else claim.log2

    for lower, uppers in (
        ("3", ("2", "4", "BanditSVM")),
        ("3-remark", ("2", "BanditSVM")),
        ("11", ("10", "2")),
        ("11-sharp", ("10",)),
    ):
        forced = said(lower)
        for upper in uppers:
            promised = said(upper)
            if forced is not None and promised is not None:
                assert forced <= promised + 1e-9, (lower, upper)
    for sharp, stated in (("6-sharp", "6"), ("21-sharp", "21")):
        better, worse = said(sharp), said(stated)
        assert (better is None) == (worse is None)
        assert better is None or worse is None or better <= worse


# Theorem 5


def direct(K: int, gamma: float) -> tuple[float, float]:
    """Theorem 5 letter by letter, in floats, where they suffice."""
    L, S = math.ceil(math.log2(2 * K - 2)), math.ceil(math.sqrt(2 / gamma))
    r, s = 2 * math.ceil(math.log2(4 * K - 3) / 4) + 1, math.ceil(math.log2(2 / gamma))
    first = -L * S / 2 * math.log2(376 * L * S) - math.log2(2 * math.sqrt(K))
    second = -(s + 0.5) * r * (K - 1) * math.log2(2 ** (s + 1) * r * (K - 1) * (4 * s + 2))
    return first, second - math.log2(4 * math.sqrt(K) * (4 * K - 5) * 2 ** (K - 1))


@pytest.mark.parametrize("K", [2, 3, 4, 5, 10, 17, 100])
@pytest.mark.parametrize("gamma", [1.0, 0.7, 0.3, 0.07, 0.011, 1e-4, 1e-7])
def test_statement_letter_by_letter(K: int, gamma: float) -> None:
    margin = transformed_margin(K, gamma)
    first, second = direct(K, gamma)
    assert margin.chebyshev.log2 == pytest.approx(first, rel=1e-12)
    assert margin.rational.log2 == pytest.approx(second, rel=1e-12)
    assert margin.log2 == pytest.approx(max(first, second), rel=1e-12)


@given(st.integers(2, 60), st.floats(1e-9, 1.0))
@settings(max_examples=200, derandomize=True)
def test_sharper_is_larger_by_at_least_the_constants_of_the_proof(K: int, gamma: float) -> None:
    stated, sharper = transformed_margin(K, gamma), sharper_margin(K, gamma)
    assert sharper.chebyshev.log2 >= stated.chebyshev.log2 + 1.0 - 1e-9
    assert sharper.rational.log2 >= stated.rational.log2 + 2.0 - 1e-9


@given(st.integers(2, 30), st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
@settings(max_examples=100, derandomize=True)
def test_more_margin_never_hurts(K: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    for function in (transformed_margin, sharper_margin):
        assert function(K, low).log2 <= function(K, high).log2


def test_ceilings_are_exact_at_whole_numbers() -> None:
    # 2/0.02 = 100 and √100 = 10 exactly; 2/γ = 2³ gives s = 3.
    assert transformed_margin(3, 0.02).chebyshev.exponent == 2 * 10
    assert transformed_margin(3, 0.25).rational.base == 2**4 * 3 * 2 * 14
    # √2/γ is never whole: just above and below 4 = √2/γ.
    assert sharper_margin(2, math.sqrt(2) / 4 * 1.0001).chebyshev.exponent == 2
    assert sharper_margin(2, math.sqrt(2) / 4 * 0.9999).chebyshev.exponent == 3


def test_many_classes_prefer_chebyshev_and_small_margins_the_rational_functions() -> None:
    few, many = transformed_margin(2, 1e-6), transformed_margin(20, 0.1)
    assert few.larger is few.rational
    assert many.larger is many.chebyshev


def test_the_largest_possible_margin() -> None:
    for K in (2, 3, 10):
        largest = math.sqrt(K / (K - 1))
        assert transformed_margin(K, largest) == transformed_margin(K, Fraction(largest))
        assert sharper_margin(K, largest).log2 > transformed_margin(K, largest).log2
    assert transformed_margin(2, 1.4).chebyshev.log2 == pytest.approx(direct(2, 1.4)[0], rel=1e-12)
    assert sharper_margin(2, math.sqrt(2)).chebyshev.exponent == 2
    assert sharper_margin(2, math.sqrt(2)) == sharper_margin(2, 1.4)


def test_inverse_square_is_exact() -> None:
    assert _InversePower(3, 10, 400).inverse_square == 3 * 10**400
    assert _InversePower(3, 10, 400).log2 == pytest.approx(-math.log2(3) / 2 - 200 * math.log2(10))


@pytest.mark.parametrize("function", [transformed_margin, sharper_margin])
@pytest.mark.parametrize(
    ("n_classes", "gamma", "named"),
    [
        (1, 0.1, "n_classes must be at least 2; got 1"),
        (3, 0.0, "margin must be greater than 0; got 0.0"),
        (3, -0.1, "margin"),
        (3, math.nan, "margin"),
        (2, 1.5, "margin must be at most .* = 1.41421.*give margin/R"),
        (3, 1.23, "margin must be at most .* = 1.22474, the largest weak margin of 3 classes"),
        (10, 1.4, "margin must be at most .* = 1.05409"),
        (3, "0.1", "margin must be a number"),
        (2.5, 0.1, "n_classes"),
    ],
)
def test_bad_input_of_theorem_5(function: object, n_classes: object, gamma: object, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        function(n_classes, gamma)  # type: ignore[operator]
