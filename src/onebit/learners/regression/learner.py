"""The base class of regression learners."""

import math
from typing import Any

from onebit.inputs import check_switch
from onebit.learners.base import Learner
from onebit.learners.regression.exploring import Exploring
from onebit.learners.regression.ridge import DIAGONAL_RIDGE, FULL_RIDGE, Regression
from onebit.learners.regression.state import RegressionState, check_regularization


def ridge(
    diagonal: Any,
    regularization: Any,
    *,
    right: float = 1.0,
    wrong: float = 0.0,
    low: float = -math.inf,
    high: float = math.inf,
    drops_products: bool = False,
) -> Regression:
    """Check the settings of ridge regression, and return it."""
    kind = DIAGONAL_RIDGE if check_switch("diagonal", diagonal) else FULL_RIDGE
    return Regression(kind, check_regularization(regularization), right, wrong, low, high, 1.0, drops_products)


class RegressionLearner(Learner):
    """Regresses right or wrong on the features, for each class on the rounds whose answers concern it."""

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return the cost of a matrix for every class, 0 for the diagonal."""
        is_full = not getattr(self, "diagonal", True) and getattr(self, "scores", "ridge") == "ridge"
        return float(rounds) * n_classes * n_features**2 if is_full else 0.0

    def _remember(self, regression: Regression, way: int, strength: float, n_first: int = 0) -> RegressionState:
        exploring = Exploring(way, strength, n_first)
        return RegressionState(regression, exploring, self.n_features_in_, len(self.classes_), self.full_information)
