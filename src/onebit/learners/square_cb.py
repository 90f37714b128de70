"""SquareCB: guess by the gaps between predicted costs."""

import math
from dataclasses import dataclass

from onebit.engine.jit import jit_inline
from onebit.engine.lengths import MOST
from onebit.engine.loop import highest
from onebit.inputs import check_number
from onebit.learners.regression import RegressionLearner, RegressionState, Scratch, Settings, clipped


@dataclass(eq=False, repr=False)
class SquareCB(RegressionLearner):
    """Guesses each label with a probability that falls with the gap between its predicted cost and the lowest one.

    Class i regresses its cost, 1 for wrong and 0 for right, on the rounds in which it was guessed; fᵢ is the
    prediction, projected to [0, 1]. Any label but the one with the lowest cost has the propensity 1/(K + γ(fᵢ −
    f_best)), and that one has the rest. γ is `gamma_scale`·√t after t − 1 answers. There is no intercept: rows need a
    column of ones, or no regression can predict that a label is wrong nearly everywhere.

    Parameters
    ----------
    gamma_scale : float
        The less, the more it explores; greater than 0, up to 1e100.
    diagonal, regularization
        As for `LinUCB`.

    Notes
    -----
    Guarantee: If the cost of each label is, on average, a linear function of x with values in [0, 1], then with γ of
    order √(KT/R), where R bounds the regression's regret (of order K·d·log T for ridge), it makes O(√(KT·R)) more
    mistakes in T rounds than the best labels would, whatever the order of the rows (Foster and Rakhlin). The diagonal
    form bounds no such regret.

    Examples
    --------
    >>> learner = SquareCB(gamma_scale=10.0, classes=3)
    >>> guess = learner.guess([1.0])
    >>> learner.tell(guess, correct=False)
    >>> learner.probabilities([1.0]).round(3)[guess.index]
    np.float64(0.099)

    References
    ----------
    Foster, Rakhlin (2020). Beyond UCB: optimal and efficient contextual bandits with regression oracles. ICML.
    """

    gamma_scale: float = 100.0
    diagonal: bool = False
    regularization: float = 1.0

    def _new_state(self) -> RegressionState:
        scale = check_number("gamma_scale", self.gamma_scale, above=0.0, at_most=MOST)
        # Minus the costs, so that higher scores are better.
        return _State(self, (scale,), right=0.0, wrong=-1.0)


@jit_inline
def _by_gaps(scratch: Scratch, settings: Settings) -> None:
    propensities, n, best = scratch.propensities, scratch.propensities.shape[0], highest(scratch.scores)
    gamma = settings.own[0] * math.sqrt(scratch.answers[0] + 1.0)
    top, rest = clipped(scratch.scores[best]), 1.0
    for i in range(n):
        if i != best:
            propensities[i] = 1.0 / (n + gamma * (top - clipped(scratch.scores[i])))
            rest -= propensities[i]
    propensities[best] = rest


class _State(RegressionState):
    write_propensities = staticmethod(_by_gaps)
