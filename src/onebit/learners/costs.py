"""Learners that regress the cost of each label: 1 for wrong, 0 for right."""

import math
from dataclasses import dataclass

from onebit.engine.jit import jit_inline
from onebit.engine.loop import highest
from onebit.engine.scaling import MOST
from onebit.engine.state import State
from onebit.inputs import check_choice, check_number
from onebit.learners.regression import RegressionLearner, RegressionState, Scratch, Settings


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

    def _new_state(self) -> State:
        scale = check_number("gamma_scale", self.gamma_scale, above=0.0, at_most=MOST)
        # Minus the costs, so that higher scores are better.
        return _SquareCBState(self, (scale,), right=0.0, wrong=-1.0)


@jit_inline
def _by_gaps(scratch: Scratch, settings: Settings) -> None:
    propensities, n, best = scratch.propensities, scratch.propensities.shape[0], highest(scratch.scores)
    gamma = settings.own[0] * math.sqrt(scratch.answers[0] + 1.0)
    top, rest = _clipped(scratch.scores[best]), 1.0
    for i in range(n):
        if i != best:
            propensities[i] = 1.0 / (n + gamma * (top - _clipped(scratch.scores[i])))
            rest -= propensities[i]
    propensities[best] = rest


class _SquareCBState(RegressionState):
    write_propensities = staticmethod(_by_gaps)


@dataclass(eq=False, repr=False)
class RegCB(RegressionLearner):
    """Bounds every label's cost by the predictions of all regressions that fit nearly as well as the best one.

    Class i regresses its cost, 1 for wrong and 0 for right, on the rounds in which it was guessed. A regression is
    plausible if its penalised squared error exceeds the least by at most β = `mellowness`·log(Kt), after t − 1 answers.
    "optimistic" guesses the label whose lowest plausible cost is lowest, uniformly among equals; "elimination" guesses
    uniformly among the labels that may be best: whose lowest plausible cost is at most the lowest highest one. There is
    no intercept: rows need a column of ones.

    Parameters
    ----------
    mellowness : float
        The more, the more it explores; 0 or more, up to 1e100.
    variant : "optimistic" or "elimination"
        How a label is chosen.
    diagonal, regularization
        As for `LinUCB`.

    Notes
    -----
    With ridge regression no search for bounds is needed. The penalised error of weights v is that of the best, w, plus
    (v − w)ᵀA(v − w), so the plausible v are an ellipsoid, on which v·x has the largest value w·x + √(β·xᵀA⁻¹x) and the
    smallest w·x − √(β·xᵀA⁻¹x); both are cut off at 0 and 1.

    Guarantee: If the cost of each label is, on average, a linear function of x with values in [0, 1], and rows are
    drawn independently, then with β of order K·d·log(T/δ) the optimistic form makes Õ(√T) times a coefficient of
    disagreement more mistakes in T rounds than the best labels would, with probability 1 − δ (Foster et al.). The
    default explores far less. The diagonal form has no guarantee.

    Examples
    --------
    >>> learner = RegCB(classes=3)
    >>> guess = learner.guess([1.0])
    >>> learner.tell(guess, correct=False)
    >>> learner.probabilities([1.0])[guess.index]
    np.float64(0.0)

    References
    ----------
    Foster, Agarwal, Dudík, Luo, Schapire (2018). Practical contextual bandits with regression oracles. ICML.
    """

    mellowness: float = 0.01
    variant: str = "optimistic"
    diagonal: bool = False
    regularization: float = 1.0

    def _new_state(self) -> State:
        mellowness = check_number("mellowness", self.mellowness, at_least=0.0, at_most=MOST)
        variant = check_choice("variant", self.variant, ("optimistic", "elimination"))
        # Minus the costs, so that higher scores are better.
        return _RegCBState(self, (mellowness, 1.0 if variant == "optimistic" else -1.0), right=0.0, wrong=-1.0)


@jit_inline
def _among_the_plausible(scratch: Scratch, settings: Settings) -> None:
    """Spread the propensity evenly over the labels with the best upper bound, or over those that may be the best."""
    propensities, n = scratch.propensities, scratch.propensities.shape[0]
    mellowness, sign = settings.own
    factor = math.sqrt(mellowness * math.log(n * (scratch.answers[0] + 1.0)))
    bar = -math.inf
    for i in range(n):
        bar = max(bar, _clipped(scratch.scores[i] + sign * factor * scratch.widths[i]))
    n_plausible = 0
    for i in range(n):
        if _clipped(scratch.scores[i] + factor * scratch.widths[i]) >= bar:
            propensities[i] = 1.0
            n_plausible += 1
    for i in range(n):
        propensities[i] /= n_plausible


class _RegCBState(RegressionState):
    has_widths, write_propensities = True, staticmethod(_among_the_plausible)


@jit_inline
def _clipped(score: float) -> float:
    """Return minus a cost, clipped to [−1, 0]."""
    return min(max(score, -1.0), 0.0)
