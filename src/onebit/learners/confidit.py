"""Confidit: second-order upper confidence bounds for labels drawn by a linear model."""

import math
from dataclasses import dataclass

from onebit.engine.state import State
from onebit.inputs import check_number
from onebit.learners.regression import OptimisticState, RegressionLearner


@dataclass(eq=False, repr=False)
class Confidit(RegressionLearner):
    """Guesses the label with the highest upper confidence bound on a prediction that is projected to [−`alpha`, 1].

    The model: label i is right with probability (α + uᵢ·x)/(1 + α). So the mean of a target that is 1 for right and −α
    for wrong is uᵢ·x, which lies in [−α, 1]. In each round every wᵢ is projected to w′ᵢ, the nearest in the metric of
    Aᵢ whose prediction lies there: only the prediction changes. The guess ŷ has the highest w′ᵢ·x + √(`eta`·xᵀAᵢ⁻¹x).
    It alone learns: w ← A_new⁻¹(A_old·w′ + target·x), A ← A + xxᵀ, starting at A = (1 + α)²I.

    With α < 1 the paper tosses a coin for wrong guesses, +x or −x with mean −α·x; here the mean itself is taken, which
    has the same expectation and less variance. With the default α = 1 there is no coin in either. That "right" proves
    the other labels wrong is not used, as in the paper.

    Parameters
    ----------
    alpha : float
        Of the model, in (−1, 1].
    eta : float
        How much to explore; 0 or more. The theorem's own grows with log t; experiments fix it.
    diagonal : bool
        Whether to keep only the diagonal of each Aᵢ, in the same formula: O(d) for each class and round.

    Notes
    -----
    Guarantee: If rows have length 1 and labels are drawn by the model, then with the theorem's own growing η it makes
    O(√T·log T) more mistakes in T rounds than the best labels would, with high probability, for any choice of rows and
    model (Crammer and Gentile). With a fixed `eta`, other labels or the diagonal form nothing is proved.

    Examples
    --------
    >>> learner = Confidit(classes=["no", "yes"])
    >>> guess = learner.guess([0.6, 0.8])
    >>> learner.tell(guess, correct=False)
    >>> learner.weights_.round(2).tolist()
    [[-0.12, -0.16], [0.0, 0.0]]

    References
    ----------
    Crammer, Gentile (2013). Multiclass classification with bandit feedback using adaptive regularization. Machine
    Learning 90.
    """

    alpha: float = 1.0
    eta: float = 0.1
    diagonal: bool = False

    def _new_state(self) -> State:
        alpha = check_number("alpha", self.alpha, above=-1.0, at_most=1.0)
        strength = math.sqrt(check_number("eta", self.eta, at_least=0.0))
        start, low = (1.0 + alpha) ** 2, -alpha
        return OptimisticState(
            self, (strength,), wrong=low, low=low, high=1.0, regularization=start, drops_products=True
        )
