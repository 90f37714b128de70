"""Upper confidence bounds: the label whose prediction may be the highest is guessed."""

import math
from dataclasses import dataclass

from onebit.engine.jit import jit_inline
from onebit.engine.scaling import MOST
from onebit.engine.state import State
from onebit.inputs import check_number
from onebit.learners.regression import RegressionLearner, RegressionState, Scratch, Settings


@dataclass(eq=False, repr=False)
class LinUCB(RegressionLearner):
    """Guesses the label whose probability to be right may be the highest: ridge regression plus a confidence width.

    Class i regresses 1 for right and 0 for wrong on the features of the rounds in which it was guessed. The guess is
    the label with the highest wᵢ·x + `alpha`·√(xᵀAᵢ⁻¹x), the first of equals; nothing is drawn. There is no intercept:
    give rows a column of ones. That "right" proves the other labels wrong is not used, as in the paper, nor is it by
    the other learners on regressions.

    Parameters
    ----------
    alpha : float
        How many widths to add to the prediction; 0 or more, up to 1e100.
    diagonal : bool
        Whether to keep only the diagonal of each Aᵢ: O(d) for each class and round instead of O(d²).
    regularization : float
        λ in Aᵢ = λI + Σxxᵀ; greater than 0.

    Notes
    -----
    Guarantee: If the probability that label i is right is linear in x, with a weight vector of length at most 1 and
    rows of length at most 1, a variant that learns in stages makes at most Õ(√(KdT)) more mistakes in T rounds than the
    best labels would, for `alpha` of order √log(KT/δ), with probability 1 − δ (Chu et al.). This is the plain form,
    which is used in practice and which they could not analyse. The diagonal form has no guarantee.

    Examples
    --------
    >>> learner = LinUCB(classes=["no", "yes"])
    >>> guess = learner.guess([1.0, 0.5])
    >>> learner.tell(guess, correct=False)
    >>> guess.label, learner.guess([1.0, 0.5]).label
    ('no', 'yes')

    References
    ----------
    Li, Chu, Langford, Schapire (2010). A contextual-bandit approach to personalized news article recommendation. WWW.
    Chu, Li, Reyzin, Schapire (2011). Contextual bandits with linear payoff functions. AISTATS.
    """

    alpha: float = 1.0
    diagonal: bool = False
    regularization: float = 1.0

    def _new_state(self) -> State:
        alpha = check_number("alpha", self.alpha, at_least=0.0, at_most=MOST)
        return _OptimisticState(self, (alpha,))


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
        return _OptimisticState(
            self, (strength,), wrong=low, low=low, high=1.0, regularization=start, drops_products=True
        )


@jit_inline
def _most_promising(scratch: Scratch, settings: Settings) -> None:
    best, top, alpha = 0, -math.inf, settings.own[0]
    for i in range(scratch.scores.shape[0]):
        hope = scratch.projected[i] + alpha * scratch.widths[i]
        if hope > top:
            best, top = i, hope
    scratch.propensities[best] = 1.0


class _OptimisticState(RegressionState):
    """Guesses the label with the highest prediction plus ``own[0]`` widths, the first of equals."""

    has_widths, write_propensities = True, staticmethod(_most_promising)
