"""Adaptive gradient descent on the logistic loss, with randomized decoding and fading uniform exploration."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from onebit.engine.jit import jit_inline, jit_internal
from onebit.engine.state import LARGEST_SQUARE
from onebit.game import Answer
from onebit.inputs import check_integer, check_number
from onebit.learners.base import Learner
from onebit.learners.gradient import COUNT, PROPENSITY, GradientState, Scratch, Weights, adaptive_step, write_softmax


@dataclass(eq=False, repr=False)
class AdaptiveSurrogate(Learner):
    """Draws from the softmax where that is unsure, from all labels now and then, and takes steps of its own size.

    Let p be the largest entry of softmax(Wx). With probability q = 2B√(K/T) a label is drawn uniformly. Otherwise the
    label with the highest score is guessed, or with probability min(1, 2(1 − p)) one drawn from the softmax. A right
    guess leads to a step along −G, G = (softmax(Wx) − e)xᵀ/P, where e marks the label and P is its propensity:
    2B/√(2Σ‖G‖²) times G, the sum over all G so far. Weights outside the ball ‖W‖ ≤ B are projected onto it. A wrong
    guess leads to no step.

    Parameters
    ----------
    norm_bound : float
        B: the weights that it is to compete with are no longer (all classes together); from 1e-30 to 1e100. The
        diameter of that ball, 2B, stands for the authors' B.
    horizon : int, optional
        T, the number of rounds. By default it is not known: round t explores with the q of T = t, where t counts the
        answers so far. No doubling is needed: that q falls, and adds up to no more than twice what a known T gives.

    Notes
    -----
    Guarantee: For any weights U in the ball and rows no longer than R, E[M] ≤ Σ ℓ(U) + Σ qₜ + 19·B²R²K/q in T rounds
    fixed beforehand, where ℓ is the logistic loss in base 2 and q the last qₜ: with R = 1, at most (2 + 9.5)·B√(KT)
    above Σ ℓ(U) for a known T, and (4 + 9.5)·B√(KT) without.

    Examples
    --------
    >>> learner = AdaptiveSurrogate(norm_bound=5.0, horizon=10_000, classes=4, seed=3)
    >>> learner.probabilities([1.0, 0.0]).tolist()
    [0.25, 0.25, 0.25, 0.25]

    References
    ----------
    Shibukawa, Tsuchiya, Sakaue, Yamanishi (2025). Bandit and delayed feedback in online structured prediction. NeurIPS.
    """

    norm_bound: float = 5.0
    horizon: int | None = None
    # In the 300 rows of scikit-learn's check nearly every guess is uniform.
    _poor_score: ClassVar[bool] = True

    def _new_state(self) -> GradientState:
        bound = check_number("norm_bound", self.norm_bound, at_least=1e-30, at_most=1e100)
        rounds = 0 if self.horizon is None else check_integer("horizon", self.horizon, low=1, high=2**53)
        return _State(_Settings(float(rounds), bound), self.n_features_in_, len(self.classes_))


class _Settings(NamedTuple):
    horizon: float  # 0 if unknown
    norm_bound: float


@jit_inline
def _mix(scratch: Scratch, settings: _Settings) -> tuple[int, float, float]:
    greedy = write_softmax(scratch)
    rounds = settings.horizon if settings.horizon > 0.0 else scratch.known[COUNT] + 1.0
    uniformly = min(1.0, 2.0 * settings.norm_bound * math.sqrt(scratch.soft.shape[0] / rounds))
    return greedy, uniformly, min(1.0, 2.0 * (1.0 - scratch.soft[greedy]))


@jit_internal
def _learn(state: Weights, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    if not answer.correct:
        return False
    return adaptive_step(state, answer.label, scratch, scratch.known[PROPENSITY], settings.norm_bound)


class _State(GradientState):
    mix, learn = staticmethod(_mix), staticmethod(_learn)
    divides, longest_square, projects = True, LARGEST_SQUARE, True
