"""The linear space."""

import numpy as np
import pytest
import scipy.sparse

import onebit
from onebit.checks.problems import noisy_problem


@pytest.mark.parametrize("power", [-1000, -565, 532, 1000])
def test_linear_learners_score_what_floats_cannot_hold(power: int) -> None:
    problem = noisy_problem(200, n_features=12)
    X = np.ldexp(problem.X, power)
    learner = onebit.MulticlassPerceptron().fit(problem.X, problem.y)
    scaled = onebit.MulticlassPerceptron().fit(X, problem.y)
    sparse = onebit.MulticlassPerceptron().fit(scipy.sparse.csr_array(X), problem.y)
    assert np.array_equal(scaled.predict(X), learner.predict(problem.X))
    assert np.array_equal(sparse.predict(scipy.sparse.csr_array(X)), learner.predict(problem.X))
    assert np.array_equal(sparse.weights_, scaled.weights_)
