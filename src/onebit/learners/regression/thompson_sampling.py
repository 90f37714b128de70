"""Thompson sampling with a normal posterior for every class."""

from typing import Any

from onebit.engine.lengths import MOST
from onebit.engine.state import State
from onebit.inputs import check_number
from onebit.learners.regression.exploring import SAMPLING
from onebit.learners.regression.learner import RegressionLearner, ridge


class ThompsonSampling(RegressionLearner):
    """Draws every class's weights from its posterior, and guesses the label that they predict to be best.

    Class i regresses 1 for right and 0 for wrong on the rounds in which it was guessed; its posterior is normal with
    mean wᵢ and covariance `spread`²·Aᵢ⁻¹. Only the predictions ⟨wᵢ, x⟩ matter, which are independent and normal, so K
    normal numbers are drawn, from the round's own random words. `probabilities` are the probabilities that each is the
    largest, by quadrature to twelve digits; for ten labels that takes ten times as long as a round, so streams, which
    only draw, skip it. That "right" proves the other labels wrong is not used. There is no intercept: give rows a
    column of ones.

    Parameters
    ----------
    spread : float
        The posterior's standard deviation, in widths √(xᵀAᵢ⁻¹x); from 1e-10 to 1e100.
    diagonal : bool
        Whether to keep only the diagonal of each Aᵢ: O(d) for each class and round instead of O(d²).
    regularization : float
        λ in Aᵢ = λI + Σxxᵀ, the prior's precision; greater than 0.
    classes : None, int or list
        The labels, or how many; `play` and `fit` infer them from y.
    seed : int
        Seed of the learner's random numbers.

    Notes
    -----
    Guarantee:
    If the probability that label i is right is linear in x, with weights and rows of length at most 1, then with
    `spread` of order √(D·log(T/δ)), where D = Kd, it makes at most Õ(D^(3/2)·√T) more mistakes in T rounds than the
    best labels would, with probability 1 − δ (Agrawal and Goyal). The default explores far less. The diagonal form has
    no guarantee. An added class starts from the prior, and the guarantee holds from there on; `among` and known rounds
    (`learn_from`) leave it as it is.

    Examples
    --------
    >>> learner = ThompsonSampling(classes=3)
    >>> learner.probabilities([1.0, 0.5]).round(3)
    array([0.333, 0.333, 0.333])
    >>> learner.learn_from([[1.0, 0.5]], [0], False).probabilities([1.0, 0.5]).round(3)
    array([0.3 , 0.35, 0.35])

    References
    ----------
    Agrawal, Goyal (2013). Thompson sampling for contextual bandits with linear payoffs. ICML.
    """

    def __init__(
        self,
        spread: float = 0.25,
        diagonal: bool = False,
        regularization: float = 1.0,
        *,
        classes: Any = None,
        seed: int = 0,
    ) -> None:
        self.spread = spread
        self.diagonal = diagonal
        self.regularization = regularization
        self.classes = classes
        self.seed = seed

    def _new_state(self) -> State:
        spread = check_number("spread", self.spread, at_least=1e-10, at_most=MOST)
        return self._remember(ridge(self.diagonal, self.regularization), SAMPLING, spread)
