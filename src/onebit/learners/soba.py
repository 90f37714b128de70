"""SOBA: Banditron with a second-order matrix of the directions tried."""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from onebit.engine.jit import jit_inline
from onebit.engine.loop import clear
from onebit.game import Answer
from onebit.inputs import check_number
from onebit.learners.exploring import choose_mostly_highest, write_propensities
from onebit.learners.second_order import MARGINS, Scratch, SecondOrderLearner, SecondOrderState, Settings


@jit_inline
def _plan(scratch: Scratch, answer: Answer, _settings: Settings) -> tuple[float, float]:
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
def _accept(state: Any, scratch: Scratch, weight: float, reach: float) -> bool:
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
    steps taken stays at least 0: so it is taken wherever the best other label was not behind. Not from the paper: the
    defaults of both settings, and the first of several best others.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: from 1e-50 to 1.
    regularization : float
        What A starts from, times the identity: from 1e-30 to 1e30.
    diagonal : bool
        Whether only the diagonal of A is kept, in the same formulas: O(Kd) for a round instead of O((Kd)²).

    Notes
    -----
    Guarantee: With the whole matrix, and exploration of order 1/√T but for logarithms, K and d: expected mistakes
    beyond the loss of any fixed linear classifier grow as √T/η, but for logarithms. The loss lies between the hinge
    loss (η = 0) and its square (η = 1), and the bound holds for all η at once that the classifier's norm allows. For
    the diagonal nothing is proved.

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
    _: KW_ONLY
    diagonal: bool = False

    _choose, _write_propensities = staticmethod(choose_mostly_highest), staticmethod(write_propensities)
    _plan, _accept = staticmethod(_plan), staticmethod(_accept)

    def _new_state(self) -> SecondOrderState:
        exploration = check_number("exploration", self.exploration, at_least=1e-50, at_most=1.0)
        floor = check_number("regularization", self.regularization, above=1e-31, at_most=1e30)
        return SecondOrderState(self, Settings(exploration, floor))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls()
        yield cls(exploration=0.2, diagonal=True)
