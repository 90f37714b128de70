"""SOBA, the Banditron with a second-order matrix of the directions tried; PNewtron, the online Newton step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from onebit.engine.algorithm import clear
from onebit.engine.jit import jit_inline
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.game import Answer
from onebit.inputs import check_number
from onebit.learners.exploring import choose_mostly_highest, n_allowed, write_propensities, write_softmax
from onebit.learners.second_order import MARGINS, Scratch, SecondOrderLearner, SecondOrderState, Settings


@jit_inline
def _plan_banditron(scratch: Scratch, answer: Answer, _settings: Settings) -> tuple[float, float]:
    other, best = -1, -math.inf
    for i in range(scratch.current.shape[0]):
        is_open = i != answer.label and scratch.scores[i] > -math.inf
        if is_open and (other < 0 or scratch.current[i] > best):
            other, best = i, scratch.current[i]
    if other < 0 or not answer.correct:
        return 0.0, 0.0
    clear(scratch.shares)
    scratch.shares[other], scratch.shares[answer.label] = 1.0, -1.0
    return 1.0 / answer.propensity, 1.0 / answer.propensity


@jit_inline
def _keeps_the_margins(state: Any, scratch: Scratch, weight: float, reach: float) -> bool:
    lead = 0.0
    for i in range(scratch.shares.shape[0]):
        lead += scratch.shares[i] * scratch.current[i]
    total = state.tallies[MARGINS] + weight * (lead * lead + 2.0 * lead) / (1.0 + weight * reach)  # mₜ
    if total < 0.0:
        return False
    state.tallies[MARGINS] = total
    return True


@dataclass(eq=False, repr=False)
class SOBA(SecondOrderLearner):
    """The second-order Banditron: steps only when it was right, the shorter the better a direction is known.

    It guesses as `Banditron` does. A right guess y, which had propensity p, takes a step away from the best other label
    towards y, divided by p: g = (e_other − e_y) ⊗ x/p. The matrix A gains p·ggᵀ, the target θ loses g, and the weights
    are A⁻¹θ. With z = √p·g, a step has m = ((w·z)² + 2w·g)/(1 + zᵀA⁻¹z), and is only taken if the sum of m over the
    steps taken stays at least 0: so it is taken wherever the best other label was not behind.

    Guarantee: With the whole matrix, and exploration of order 1/√T but for logarithms, K and d: expected mistakes
    beyond the loss of any fixed linear classifier grow as √T/η, but for logarithms. The loss lies between the hinge
    loss (η = 0) and its square (η = 1), and the bound holds for all η at once that the classifier's norm allows. For
    the diagonal nothing is proved.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: from 1e-50 to 1.
    regularization : float
        What A starts from, times the identity: from 1e-30 to 1e30.
    diagonal : bool
        Whether only the diagonal of A is kept, in the same formulas: O(Kd) for a round instead of O((Kd)²).

    Examples
    --------
    >>> learner = SOBA(exploration=0.3, classes=3, seed=4)
    >>> learner.probabilities([1.0, 0.0]).round(3)
    array([0.8, 0.1, 0.1])

    References
    ----------
    Beygelzimer, Orabona, Zhang (2017). Efficient online bandit multiclass learning with Õ(√T) regret. ICML.
    """

    exploration: float = 0.05
    regularization: float = 1.0

    _choose, _write_propensities = staticmethod(choose_mostly_highest), staticmethod(write_propensities)
    _plan, _accept = staticmethod(_plan_banditron), staticmethod(_keeps_the_margins)

    def _new_state(self) -> SecondOrderState:
        exploration = check_number("exploration", self.exploration, at_least=1e-50, at_most=1.0)
        floor = check_number("regularization", self.regularization, above=1e-31, at_most=1e30)
        return SecondOrderState(self, Settings(exploration, floor))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls()
        yield cls(exploration=0.2, diagonal=True)


@jit_inline
def _mixed(chance: float, exploration: float, n_classes: int) -> float:
    # Written this way, a single label has propensity exactly 1.
    return chance + exploration * (1.0 / n_classes - chance)


@jit_inline
def _choose(scratch: Scratch, draw: Draw, settings: Settings) -> tuple[int, bool]:
    number, exploration, n_classes = uniform(draw), settings.exploration, scratch.current.shape[0]
    write_softmax(scratch.current, settings.sharpness, scratch.shares)
    # One number serves both choices: on either side of the rate it is uniform again after rescaling.
    explored, label = number < exploration, 0
    if explored:
        label = uniform_label(number / exploration, n_classes)
    else:
        left = (number - exploration) / (1.0 - exploration)
        while label < n_classes - 1 and left >= scratch.shares[label]:
            left -= scratch.shares[label]
            label += 1
    scratch.propensities[label] = _mixed(scratch.shares[label], exploration, n_classes)
    return label, explored


@jit_inline
def _write_propensities(scratch: Scratch, settings: Settings) -> None:
    n_classes = scratch.current.shape[0]
    write_softmax(scratch.current, settings.sharpness, scratch.propensities)
    for i in range(n_classes):
        scratch.propensities[i] = _mixed(scratch.propensities[i], settings.exploration, n_classes)


@jit_inline
def _plan_newton(scratch: Scratch, answer: Answer, settings: Settings) -> tuple[float, float]:
    n, shares, scores, chance = n_allowed(scratch.scores), scratch.shares, scratch.scores, answer.propensity
    write_softmax(scores, settings.sharpness, shares)
    soft = shares[answer.label]
    sign, length, bend = 1.0, soft / chance, settings.curvature
    if answer.correct:
        sign, length, bend = -1.0, (1.0 - soft) / chance, chance * settings.curvature
    along = 0.0
    for i in range(shares.shape[0]):
        shares[i] = 0.0
        if scores[i] > -math.inf:
            shares[i] = sign * ((1.0 if i == answer.label else 0.0) - 1.0 / n)
            along += shares[i] * scores[i]
    if n < 2:
        return 0.0, 0.0
    return bend * length * length, length * (1.0 - bend * length * along)


@dataclass(eq=False, repr=False)
class PNewtron(SecondOrderLearner):
    """Draws labels by the softmax of its scores, and follows the leader on a quadratic model of the logistic loss.

    With p the softmax of α·Wx and q = (1 − exploration)·p + exploration/K the propensities, a right guess y gives the
    gradient G = (1 − p_y)/q_y · (1/K − e_y) ⊗ x with κ = q_y, a wrong one G = p_y/q_y · (e_y − 1/K) ⊗ x with κ = 1. On
    average G is (p − e) ⊗ x with e for the right label: the gradient of the logistic loss of α·Wx, divided by α. The
    weights minimise the sum of G·(W − Wₜ) + ½κβ(G·(W − Wₜ))² over all rounds and ‖W‖²/(2D), within the ball ‖W‖ ≤ D.
    α, β and D are the published ones by default.

    Guarantee: None for these settings (the P is for practical). Newtron, the same with the whole matrix and with a β
    and an exploration that its theorem chooses, has a logistic loss beyond that of the best weights in the ball of
    O(log T) if α is a constant, O(√T) if it grows as log T, and at most O(T^⅔), on examples of bounded length.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: from 1e-50 to 1.
    sharpness : float
        α: what scores are multiplied by before the softmax; up to 1e6.
    curvature : float
        β: how much the model bends along a gradient; from 1e-30 to 1e30.
    radius : float
        D: the largest norm of the weights, all classes together; from 1e-15 to 1e15.
    diagonal : bool
        Whether only the diagonal of the matrix is kept, in the same formulas: O(Kd) for a round instead of O((Kd)²).

    Examples
    --------
    >>> learner = PNewtron(exploration=0.3, classes=3, seed=4)
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=True)
    >>> bool(learner.probabilities([1.0, 0.0])[guess.index] > 1 / 3)
    True

    References
    ----------
    Hazan, Kale (2011). Newtron: an efficient bandit algorithm for online multiclass prediction. NIPS.
    """

    exploration: float = 0.05
    sharpness: float = 10.0
    curvature: float = 0.01
    radius: float = 1.0

    _choose, _write_propensities = staticmethod(_choose), staticmethod(_write_propensities)
    _plan = staticmethod(_plan_newton)

    def _new_state(self) -> SecondOrderState:
        exploration = check_number("exploration", self.exploration, at_least=1e-50, at_most=1.0)
        sharpness = check_number("sharpness", self.sharpness, above=0.0, at_most=1e6)
        curvature = check_number("curvature", self.curvature, above=1e-31, at_most=1e30)
        radius = check_number("radius", self.radius, above=1e-16, at_most=1e15)
        return SecondOrderState(self, Settings(exploration, 1.0 / radius, radius, sharpness, curvature))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls()
        yield cls(exploration=0.2, diagonal=True)
