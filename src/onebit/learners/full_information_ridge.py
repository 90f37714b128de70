"""Ridge regression of every class, with full information."""

from dataclasses import dataclass
from typing import ClassVar

from onebit.engine.state import State
from onebit.learners.regression import RegressionLearner, RegressionState


@dataclass(eq=False, repr=False)
class FullInformationRidge(RegressionLearner):
    """The floor under `LinUCB`, `SquareCB` and their kin: every class learns in every round, and nothing is explored.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. Class i regresses 1 on the rounds whose label
    it is, and 0 on all others. The highest prediction is guessed. There is no intercept: give rows a column of ones.

    Parameters
    ----------
    diagonal, regularization
        As for `LinUCB`.

    Notes
    -----
    Guarantee: For any weights U and rows no longer than R, M ≤ 2(1 + R²/λ)·(λ‖U‖² + Σ‖Ux − e‖²), always, where e marks
    the right label. With late answers it bounds those that find the right label not ahead. The diagonal form has no
    guarantee.

    Examples
    --------
    >>> learner = FullInformationRidge(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False, label="right")
    >>> learner.weights_.tolist()
    [[0.0, 0.0], [0.5, 0.0]]

    References
    ----------
    Zhdanov, Kalnishkan (2010). An identity for kernel ridge regression. ALT.
    """

    full_information: ClassVar[bool] = True

    diagonal: bool = False
    regularization: float = 1.0

    def _new_state(self) -> State:
        return RegressionState(self, (0.0,))
