"""LinUCB: ridge regression of every class with upper confidence bounds."""

from dataclasses import dataclass

from onebit.engine.lengths import MOST
from onebit.engine.state import State
from onebit.inputs import check_number
from onebit.learners.regression import OptimisticState, RegressionLearner


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
        return OptimisticState(self, (alpha,))
