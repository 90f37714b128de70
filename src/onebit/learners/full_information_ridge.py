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
    diagonal : bool
        Whether to keep only the diagonal of each Aᵢ: O(d) for each class and round instead of O(d²).
    regularization : float
        λ in Aᵢ = λI + Σxxᵀ; greater than 0.
    classes, seed
        As for every `Learner`; nothing is drawn.

    Notes
    -----
    Guarantee:
    For any weights U and rows no longer than R, M ≤ 2(1 + R²/λ)·(λ‖U‖² + Σ‖Ux − e‖²), always, where e marks the right
    label. For the sum of ‖Wx − e‖²/(1 + xᵀA⁻¹x), with W and A as they are before the round, is the least of λ‖U‖² +
    Σ‖Ux − e‖² over all U (Zhdanov and Kalnishkan); xᵀA⁻¹x is R²/λ at most; and where another label is not behind the
    right one, ‖Wx − e‖² is ½ or more. With late answers it bounds those that find the right label not ahead. An added
    class starts without rounds, and the guarantee holds from there on; it holds with `among` as long as the right label
    is allowed; known rounds (`learn_from`) count in the sum. The diagonal form has no guarantee.

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
