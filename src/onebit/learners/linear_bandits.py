"""Learners that guess by linear regressions of "right" or "wrong", and explore in ways of their own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from onebit.engine.algorithm import highest
from onebit.engine.jit import jit_inline
from onebit.engine.scaling import MOST
from onebit.engine.state import State
from onebit.inputs import check_choice, check_integer, check_number
from onebit.learners.exploring import fill_propensities
from onebit.learners.regression import RegressionLearner, RegressionState, Scratch, Settings


@dataclass(eq=False, repr=False)
class EpsilonGreedy(RegressionLearner):
    """Guesses the label that a regression predicts to be most likely right, and now and then any label.

    Class i regresses 1 for right and 0 for wrong on the rounds in which it was guessed. Give rows a column of ones:
    there is no intercept.

    Guarantee: With a rate of order (K/T)^(1/3), a probability of each label that is linear in x and rows that are drawn
    independently, Õ(T^(2/3)) more mistakes than the best labels would make (Langford and Zhang, for a relative that
    explores in epochs).

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
        return RegressionState(self, Settings((rate,)))


@jit_inline
def _uniform_at_first(scratch: Scratch, settings: Settings) -> None:
    rate = 1.0 if scratch.answers[0] < settings.own[0] else 0.0
    fill_propensities(scratch.scores, (rate,), scratch.propensities)


@dataclass(eq=False, repr=False)
class ExploreFirst(RegressionLearner):
    """Draws labels uniformly for the first `n_first` answers, then guesses and learns as a greedy `EpsilonGreedy`.

    Guarantee: That of `EpsilonGreedy`, with `n_first` of order T^(2/3). A class that is added later is hardly ever
    tried.

    Parameters
    ----------
    n_first : int
        The number of answers after which it stops exploring; 0 or more.
    scores, diagonal, regularization, learning_rate
        As for `EpsilonGreedy`.

    Examples
    --------
    >>> learner = ExploreFirst(n_first=2, classes=["no", "yes"], seed=1)
    >>> learner.learn_labels([[1.0, 0.0], [0.0, 1.0]], ["yes", "no"]).probabilities([1.0, 0.0])
    array([0., 1.])

    References
    ----------
    Langford, Zhang (2008). The epoch-greedy algorithm for contextual multi-armed bandits. NIPS 20.
    """

    n_first: int = 300
    scores: str = "ridge"
    diagonal: bool = False
    regularization: float = 1.0
    learning_rate: float = 0.5

    _write_propensities = staticmethod(_uniform_at_first)

    def _new_state(self) -> State:
        n_first = check_integer("n_first", self.n_first, low=0, high=2**53)
        return RegressionState(self, Settings((float(n_first),)))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_first=40)


@dataclass(eq=False, repr=False)
class FullInformationRidge(RegressionLearner):
    """The floor under `LinUCB`, `SquareCB` and their kin: every class learns in every round, and nothing is explored.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. Class i regresses 1 on the rounds whose label
    it is, and 0 on all others. Give rows a column of ones.

    Guarantee: For any weights U and rows no longer than R, M ≤ 2(1 + R²/λ)·(λ‖U‖² + Σ‖Ux − e‖²), always, where e marks
    the right label. With late answers it bounds those that find the right label not ahead. None for the diagonal form.

    Parameters
    ----------
    diagonal, regularization
        As for `LinUCB`.

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
        return RegressionState(self, Settings((0.0,)))


@jit_inline
def _most_promising(scratch: Scratch, settings: Settings) -> None:
    best, top, alpha = 0, -math.inf, settings.own[0]
    for i in range(scratch.scores.shape[0]):
        hope = scratch.projected[i] + alpha * scratch.widths[i]
        if hope > top:
            best, top = i, hope
    scratch.propensities[best] = 1.0


@dataclass(eq=False, repr=False)
class LinUCB(RegressionLearner):
    """Guesses the label whose probability to be right may be the highest: ridge regression plus a confidence width.

    Class i regresses 1 for right and 0 for wrong on the features of the rounds in which it was guessed. The guess is
    the label with the highest wᵢ·x + `alpha`·√(xᵀAᵢ⁻¹x). Give rows a column of ones. That "right" proves the other
    labels wrong is not used, as in the paper, nor is it by the other learners on regressions.

    Guarantee: If the probability that label i is right is linear in x, with weights and rows of length at most 1, a
    variant that learns in stages makes at most Õ(√(KdT)) more mistakes in T rounds than the best labels would, for
    `alpha` of order √log(KT/δ), with probability 1 − δ (Chu et al.). None is known for this form, which is used in
    practice.

    Parameters
    ----------
    alpha : float
        How many widths to add to the prediction; 0 or more, up to 1e100.
    diagonal : bool
        Whether to keep only the diagonal of each Aᵢ: O(d) for each class and round instead of O(d²).
    regularization : float
        λ in Aᵢ = λI + Σxxᵀ; greater than 0.

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

    _write_propensities = staticmethod(_most_promising)

    def _new_state(self) -> State:
        alpha = check_number("alpha", self.alpha, at_least=0.0, at_most=MOST)
        return RegressionState(self, Settings((alpha,), has_widths=True))


@dataclass(eq=False, repr=False)
class Confidit(RegressionLearner):
    """Guesses the label with the highest upper confidence bound on a prediction that is projected to [−`alpha`, 1].

    The model: label i is right with probability (α + uᵢ·x)/(1 + α). So the mean of a target that is 1 for right and −α
    for wrong is uᵢ·x, which lies in [−α, 1]. In each round every wᵢ is projected to w′ᵢ, the nearest in the metric of
    Aᵢ whose prediction lies there: only the prediction changes. The guess ŷ has the highest w′ᵢ·x + √(`eta`·xᵀAᵢ⁻¹x).
    It alone learns: w ← A_new⁻¹(A_old·w′ + target·x), A ← A + xxᵀ, starting at A = (1 + α)²I.

    With α < 1 the paper tosses a coin for wrong guesses, +x or −x with mean −α·x; here the mean itself is taken.

    Guarantee: If rows have length 1 and labels are drawn by the model, then with the theorem's own growing η it makes
    O(√T·log T) more mistakes in T rounds than the best labels would, with high probability (Crammer and Gentile). With
    a fixed `eta`, other labels or the diagonal form nothing is proved.

    Parameters
    ----------
    alpha : float
        Of the model, in (−1, 1].
    eta : float
        How much to explore; 0 or more. The theorem's own grows with log t; experiments fix it.
    diagonal : bool
        Whether to keep only the diagonal of each Aᵢ, in the same formula: O(d) for each class and round.

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

    _write_propensities = staticmethod(_most_promising)

    def _new_state(self) -> State:
        alpha = check_number("alpha", self.alpha, above=-1.0, at_most=1.0)
        strength = math.sqrt(check_number("eta", self.eta, at_least=0.0))
        targets = Settings((strength,), wrong=-alpha, low=-alpha, high=1.0, has_widths=True)
        return RegressionState(self, targets._replace(regularization=(1.0 + alpha) ** 2, drops_products=True))


@jit_inline
def _clipped(score: float) -> float:
    """Return minus a cost, clipped to [−1, 0]."""
    return min(max(score, -1.0), 0.0)


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


@dataclass(eq=False, repr=False)
class SquareCB(RegressionLearner):
    """Guesses each label with a probability that falls with the gap between its predicted cost and the lowest one.

    Class i regresses its cost, 1 for wrong and 0 for right, on the rounds in which it was guessed; fᵢ is the
    prediction, projected to [0, 1]. Any label but the one with the lowest cost has the propensity 1/(K + γ(fᵢ −
    f_best)), and that one has the rest. γ is `gamma_scale`·√t after t − 1 answers. Rows need a column of ones.

    Guarantee: If the cost of each label is, on average, a linear function of x with values in [0, 1], then with γ of
    order √(KT/R), where R bounds the regression's regret (of order K·d·log T for ridge, unknown for the diagonal), it
    makes O(√(KT·R)) more mistakes in T rounds than the best labels would, in any order (Foster and Rakhlin).

    Parameters
    ----------
    gamma_scale : float
        The less, the more it explores; greater than 0, up to 1e100.
    diagonal, regularization
        As for `LinUCB`.

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

    _write_propensities = staticmethod(_by_gaps)

    def _new_state(self) -> State:
        scale = check_number("gamma_scale", self.gamma_scale, above=0.0, at_most=MOST)
        # Minus the costs, so that higher scores are better.
        return RegressionState(self, Settings((scale,), right=0.0, wrong=-1.0))


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


@dataclass(eq=False, repr=False)
class RegCB(RegressionLearner):
    """Bounds every label's cost by the predictions of all regressions that fit nearly as well as the best one.

    Class i regresses its cost, 1 for wrong and 0 for right, on the rounds in which it was guessed. A regression is
    plausible if its penalised squared error exceeds the least by at most β = `mellowness`·log(Kt), after t − 1 answers.
    "optimistic" guesses the label whose lowest plausible cost is lowest, uniformly among equals; "elimination" guesses
    uniformly among the labels that may be best. Rows need a column of ones.

    With ridge regression the plausible weights are an ellipsoid, on which predictions lie between w·x − √(β·xᵀA⁻¹x) and
    w·x + √(β·xᵀA⁻¹x); both are cut off at 0 and 1.

    Guarantee: If the cost of each label is, on average, a linear function of x with values in [0, 1], and rows are
    drawn independently, then with β of order K·d·log(T/δ) the optimistic form makes Õ(√T) times a coefficient of
    disagreement more mistakes in T rounds than the best labels would, with probability 1 − δ (Foster et al.). The
    default explores far less. None for the diagonal form.

    Parameters
    ----------
    mellowness : float
        The more, the more it explores; 0 or more, up to 1e100.
    variant : "optimistic" or "elimination"
        How a label is chosen.
    diagonal, regularization
        As for `LinUCB`.

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

    _write_propensities = staticmethod(_among_the_plausible)

    def _new_state(self) -> State:
        mellowness = check_number("mellowness", self.mellowness, at_least=0.0, at_most=MOST)
        variant = check_choice("variant", self.variant, ("optimistic", "elimination"))
        own = mellowness, 1.0 if variant == "optimistic" else -1.0
        return RegressionState(self, Settings(own, right=0.0, wrong=-1.0, has_widths=True))
