"""What a claim states, and the exact numbers in it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from onebit.bounds import BOUNDS, _check_decimal, at_most, squared_ratio


def test_claims_beyond_a_float_are_told_by_their_logarithm() -> None:
    huge = BOUNDS["21"].claim(n_classes=3, radius=1, margin=0.1, dimension=5000)
    sharp = BOUNDS["21-sharp"].claim(n_classes=3, radius=1, margin=0.1, dimension=5000)
    tiny = BOUNDS["5"].claim(n_classes=3, margin=1e-6)
    assert huge.value is sharp.value is tiny.value is None
    assert huge.log2 == pytest.approx(5000 * math.log2(21) + 1)
    assert sharp.log2 == pytest.approx(5000 * math.log2(math.sqrt(200) + 1) + 1)
    assert tiny.log2 is not None
    assert tiny.log2 < -1022


def test_what_claims_allow() -> None:
    always = BOUNDS["10"].claim(radius=1, margin=0.1)
    average = BOUNDS["2"].claim(n_classes=3, radius=1, margin=0.1)
    forced = BOUNDS["11"].claim(n_classes=3, radius=1, margin=0.1)
    silent = BOUNDS["10"].silence("there is no margin")
    assert at_most([always, average], "mistakes") == 200
    assert at_most([always, average], "expected mistakes") == 200, "what holds in every run holds on average"
    assert at_most([average], "mistakes") == math.inf, "what holds on average need not hold in every run"
    assert at_most([forced, silent], "expected mistakes") == at_most([], "updates") == math.inf


def test_numbers_are_read_as_decimals() -> None:
    assert _check_decimal("margin", 0.1) == Fraction(1, 10)
    assert _check_decimal("margin", np.float64(0.1)) == Fraction(1, 10)
    assert _check_decimal("margin", 3) == 3
    assert _check_decimal("margin", Fraction(2, 7)) == Fraction(2, 7)
    assert squared_ratio(0.7, 0.07) == 100
