"""Ways to explore against plain Python: what is written is the chance of what is drawn."""

import math

import numpy as np
import pytest

from onebit.engine.jit import in_python
from onebit.engine.randomness import Draw, uniform
from onebit.learners.exploring import (
    fill_propensities,
    mostly_highest,
    n_allowed,
    propensity_of,
    write_softmax,
)

SCORES = np.array([0.5, 2.0, -1.0, 2.0])


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_labels_are_drawn_with_the_propensities_that_are_written(rate: float) -> None:
    propensities, counts, n = np.empty(4), np.zeros(4), 4000
    in_python(fill_propensities)(SCORES, (rate,), propensities)
    assert propensities.tolist() == [propensity_of(i == 1, rate, 4) for i in range(4)]
    assert propensities.sum() == pytest.approx(1.0)
    n_explored = 0
    for round in range(n):
        label, explored = in_python(mostly_highest)(SCORES, Draw(7, round), (rate,))
        assert explored == (uniform(Draw(7, round)) < rate)
        counts[label] += 1
        n_explored += explored
    assert n_explored / n == pytest.approx(rate, abs=0.03)
    assert counts / n == pytest.approx(propensities, abs=0.03)


def test_the_softmax_of_scores_however_large() -> None:
    out = np.empty(4)
    assert in_python(write_softmax)(SCORES, 2.0, out) == 1
    weights = np.exp(2.0 * SCORES)
    assert out == pytest.approx(weights / weights.sum())
    narrowed = np.array([-math.inf, 1e300, -math.inf, 1e300])
    assert in_python(write_softmax)(narrowed, 1.0, out) == 1
    assert out.tolist() == [0.0, 0.5, 0.0, 0.5]
    assert in_python(n_allowed)(narrowed) == 2
