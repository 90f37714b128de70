"""SOBA and PNewtron against plain programs that invert their matrices anew in every round."""

import math
import re
from typing import Any

import numpy as np
import pytest

import onebit


@pytest.mark.parametrize(
    "named",
    [
        {"exploration": 0.0},
        {"exploration": 1.5},
        {"diagonal": "no"},
        {"diagonal": 1},
        {"regularization": 0.0},
        {"regularization": math.inf},
        {"sharpness": -1.0},
        {"curvature": 0},
        {"radius": math.nan},
        {"radius": 1e20},
    ],
    ids=str,
)
def test_bad_settings(named: dict[str, Any]) -> None:
    cls = onebit.SOBA if "regularization" in named else onebit.PNewtron
    with pytest.raises(ValueError, match=re.escape(next(iter(named)))):
        cls(**named, classes=3).guess([1.0, 2.0])


def test_steps_divided_by_next_to_nothing_are_refused() -> None:
    learner = onebit.SOBA(classes=3)
    learner.learn_from([[1.0, 2.0]], [1], True, 0.5)
    before = learner.weights_
    with pytest.raises(ValueError, match="propensities must not be so small"):
        learner.learn_from([[1.0, 2.0]], [1], True, 1e-200)
    with pytest.raises(ValueError, match="propensities are needed"):
        learner.learn_from([[1.0, 2.0]], [1], True)
    assert np.array_equal(learner.weights_, before)


def test_a_chance_whose_square_is_nothing_is_refused_even_for_a_row_of_zeros() -> None:
    learner = onebit.PNewtron(classes=2)
    with pytest.raises(ValueError, match="must not be so small"):
        learner.learn_from([[0.0]], [0], False, 1e-200)
    with pytest.raises(ValueError, match="exploration must be"):
        onebit.PNewtron(1e-300, classes=2).begin(1)
