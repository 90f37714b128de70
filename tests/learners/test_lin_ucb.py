"""LinUCB against the textbook."""

import numpy as np
import pytest

import onebit
from ridge_programs import Ridge, check_same, play_in_numpy


@pytest.mark.parametrize("diagonal", [False, True])
def test_lin_ucb_is_what_the_textbook_says(diagonal: bool) -> None:
    ridge = Ridge(diagonal, 0.5)
    guesses = play_in_numpy(
        lambda x, _: int(np.argmax(ridge.weights @ x + 0.7 * ridge.widths(x))),
        lambda label, x, correct: ridge.learn(label, x, float(correct)),
    )
    check_same(onebit.LinUCB(0.7, diagonal, 0.5), guesses, ridge.weights)
