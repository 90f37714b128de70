"""The small functions that algorithms share, against plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.engine.algorithm import (
    READY,
    UNSCORED,
    clear,
    highest,
    is_right,
    ready_if_finite,
)
from onebit.engine.jit import in_python, jit
from onebit.inputs import Floats
from onebit.labels import classes_and_codes

property_test = settings(derandomize=True, deadline=None, max_examples=60)
scores = st.lists(st.floats(allow_nan=False), min_size=1, max_size=6)


@property_test
@given(scores)
def test_the_first_of_the_highest(values: list[float]) -> None:
    assert in_python(highest)(np.array(values)) == values.index(max(values))


@property_test
@given(scores)
def test_only_finite_scores_are_ready(values: list[float]) -> None:
    row = np.array(values)
    with np.errstate(invalid="ignore"):
        assert in_python(ready_if_finite)(row) == (READY if np.isfinite(row).all() else UNSCORED)
    in_python(clear)(row)
    assert not row.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_compiled_code_sees_what_is_not_finite(bad: float) -> None:
    @jit
    def checked(row: Floats) -> int:
        return ready_if_finite(row)

    assert (checked(np.array([0.0, 1e308])), checked(np.array([1.0, bad]))) == (READY, UNSCORED)


def test_a_code_is_a_label_or_a_set_of_labels() -> None:
    of_one = in_python(is_right)
    assert [[of_one(label, code) for label in range(3)] for code in (-1, 0, 2)] == [
        [False, False, False],
        [True, False, False],
        [False, False, True],
    ]
    right = np.array([[True, False, True], [False, True, True], [True, True, True]])
    for row, code in zip(right, classes_and_codes(right, range(3))[1].tolist(), strict=True):
        assert [of_one(label, code) for label in range(3)] == row.tolist()
