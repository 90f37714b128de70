"""The loop's small parts against plain Python, and what it writes down between two checkpoints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onebit.engine.loop import (
    READY,
    UNSCORED,
    Record,
    clear,
    highest,
    is_right,
    note_right,
    ready_if_finite,
)

from onebit.engine.jit import in_python, jit
from onebit.inputs import Floats
from onebit.labels import codes_of_right

property_test = settings(derandomize=True, deadline=None, max_examples=60)
scores = st.lists(st.floats(allow_nan=False), min_size=1, max_size=6)


def record(checkpoints: list[int], n_guesses: int = 0) -> Record:
    return Record(
        np.zeros(4, dtype=np.int64),
        np.array(checkpoints),
        np.zeros(len(checkpoints), dtype=np.int64),
        np.full(n_guesses, -1, dtype=np.int32),
    )


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
    for row, code in zip(right, codes_of_right(right).tolist(), strict=True):
        assert [of_one(label, code) for label in range(3)] == row.tolist()


def test_right_rounds_pass_their_checkpoints() -> None:
    noted = record([2, 4, 8], n_guesses=8)
    noted.counts[0] = 3
    note_right(noted, 1, np.array([0, 1, 2]))
    assert noted.cumulative.tolist() == [3, 3, 0]
    assert noted.counts.tolist() == [3, 0, 0, 2]
    assert noted.guesses.tolist() == [-1, 0, 1, 2, -1, -1, -1, -1]
    note_right(noted, 4, np.array([1, 1, 1]))
    assert noted.counts[3] == 2, "the last checkpoint is a round away"
