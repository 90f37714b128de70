"""RegCB: confidence bounds from all regressions that fit nearly as well as the best."""

import math
from dataclasses import dataclass

from onebit.engine.jit import jit_inline
from onebit.engine.lengths import MOST
from onebit.inputs import check_choice, check_number
from onebit.learners.regression import RegressionLearner, RegressionState, Scratch, Settings, clipped


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

    def _new_state(self) -> RegressionState:
        mellowness = check_number("mellowness", self.mellowness, at_least=0.0, at_most=MOST)
        variant = check_choice("variant", self.variant, ("optimistic", "elimination"))
        # Minus the costs, so that higher scores are better.
        return _State(self, (mellowness, 1.0 if variant == "optimistic" else -1.0), right=0.0, wrong=-1.0)


@jit_inline
def _among_the_plausible(scratch: Scratch, settings: Settings) -> None:
    """Spread the propensity evenly over the labels with the best upper bound, or over those that may be the best."""
    propensities, n = scratch.propensities, scratch.propensities.shape[0]
    mellowness, sign = settings.own
    factor = math.sqrt(mellowness * math.log(n * (scratch.answers[0] + 1.0)))
    bar = -math.inf
    for i in range(n):
        bar = max(bar, clipped(scratch.scores[i] + sign * factor * scratch.widths[i]))
    n_plausible = 0
    for i in range(n):
        if clipped(scratch.scores[i] + factor * scratch.widths[i]) >= bar:
            propensities[i] = 1.0
            n_plausible += 1
    for i in range(n):
        propensities[i] /= n_plausible


class _State(RegressionState):
    has_widths, write_propensities = True, staticmethod(_among_the_plausible)
