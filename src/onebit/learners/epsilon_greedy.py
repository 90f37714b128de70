"""ε-greedy over ridge or logistic regression."""

from dataclasses import dataclass

from onebit.engine.state import State
from onebit.inputs import check_number
from onebit.learners.regression import RegressionLearner, RegressionState


@dataclass(eq=False, repr=False)
class EpsilonGreedy(RegressionLearner):
    """Guesses the label that a regression predicts to be most likely right, and now and then any label.

    Class i regresses 1 for right and 0 for wrong on the rounds in which it was guessed. There is no intercept: give
    rows a column of ones.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: in [0, 1]. With 0 it is plain greedy.
    scores : "ridge" or "logistic"
        Ridge regression, or logistic regression of first order with adaptive steps (AdaGrad), in O(d).
    diagonal : bool
        Of ridge: whether to keep only the diagonal of each Aᵢ, O(d) instead of O(d²) for the guessed class.
    regularization : float
        Of ridge: λ in Aᵢ = λI + Σxxᵀ. Of logistic: where the summed squares of the gradients start. Greater than 0.
    learning_rate : float
        Of logistic: what gradients are multiplied by before they are divided by the root of those sums; up to 1e100.

    Notes
    -----
    Guarantee: `exploration`·(K−1)/K mistakes per round from exploring, at least, if there is always one right label.
    With a rate of order (K/T)^(1/3), a probability of each label that is linear in x and rows that are drawn
    independently, Õ(T^(2/3)) more mistakes than the best labels would make (Langford and Zhang, for a relative that
    explores in epochs).

    Examples
    --------
    >>> learner = EpsilonGreedy(exploration=0.3, classes=3)
    >>> learner.probabilities([1.0, 0.0]).round(3)
    array([0.8, 0.1, 0.1])

    References
    ----------
    Langford, Zhang (2008). The epoch-greedy algorithm for contextual multi-armed bandits. NIPS 20.
    Duchi, Hazan, Singer (2011). Adaptive subgradient methods for online learning and stochastic optimization. JMLR 12.
    """

    exploration: float = 0.05
    scores: str = "ridge"
    diagonal: bool = False
    regularization: float = 1.0
    learning_rate: float = 0.5

    def _new_state(self) -> State:
        rate = check_number("exploration", self.exploration, at_least=0.0, at_most=1.0)
        return RegressionState(self, (rate,))
