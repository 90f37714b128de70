import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.bounds.claims import check_decimal, squared_ratio
from onebit.bounds.margin_transformation import InversePower, sharper_margin, transformed_margin


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
    assert InversePower(3, 10, 400).inverse_square == 3 * 10**400
    assert InversePower(3, 10, 400).log2 == pytest.approx(-math.log2(3) / 2 - 200 * math.log2(10))


def test_numbers_are_read_as_decimals() -> None:
    assert check_decimal("margin", 0.1) == Fraction(1, 10)
    assert check_decimal("margin", np.float64(0.1)) == Fraction(1, 10)
    assert check_decimal("margin", 3) == 3
    assert check_decimal("margin", Fraction(2, 7)) == Fraction(2, 7)
    assert squared_ratio(0.7, 0.07) == 100


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
def test_bad_input(function: object, n_classes: object, gamma: object, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        function(n_classes, gamma)  # type: ignore[operator]
