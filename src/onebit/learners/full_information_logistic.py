"""Online multinomial logistic regression, with full information."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from onebit.engine.jit import jit_inline, jit_internal
from onebit.engine.state import LARGEST_SQUARE
from onebit.game import Answer
from onebit.inputs import check_number
from onebit.learners.base import Learner
from onebit.learners.gradient import GradientState, Scratch, Weights, adaptive_step, write_softmax


@dataclass(eq=False, repr=False)
class FullInformationLogistic(Learner):
    """The floor under `AdaptiveSurrogate` and `Gaptron`: their gradient in every round, and nothing to explore.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. The highest score is guessed. Every answer
    leads to a step along −G, G = (softmax(Wx) − e)xᵀ/ln 2, where e marks the right label: 2B/√(2Σ‖G‖²) times G, the sum
    over all G so far, as in `AdaptiveSurrogate`. Weights outside the ball ‖W‖ ≤ B are projected onto it.

    Parameters
    ----------
    norm_bound : float
        B: the weights that it is to compete with are no longer (all classes together); from 1e-30 to 1e100.

    Notes
    -----
    Guarantee: For any weights U in the ball and rows no longer than R, M ≤ S + a√S + a², always, where S = Σ ℓ(U), ℓ is
    the logistic loss in base 2 and a = 4BR/√(ln 2). With late answers it bounds those that find the right label not
    ahead.

    Examples
    --------
    >>> learner = FullInformationLogistic(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False, label="right")
    >>> learner.guess([1.0, 0.0]).label
    'right'

    References
    ----------
    Streeter, McMahan (2010). Less regret via online conditioning. arXiv:1002.4862 (the size of the steps).
    """

    full_information: ClassVar[bool] = True

    norm_bound: float = 5.0

    def _new_state(self) -> GradientState:
        bound = check_number("norm_bound", self.norm_bound, at_least=1e-30, at_most=1e100)
        return _State(_Settings(bound), self.n_features_in_, len(self.classes_))


class _Settings(NamedTuple):
    norm_bound: float


@jit_inline
def _mix(scratch: Scratch, _settings: _Settings) -> tuple[int, float, float]:
    return write_softmax(scratch), 0.0, 0.0


@jit_internal
def _learn(state: Weights, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    return adaptive_step(state, answer.truth, scratch, 1.0, settings.norm_bound)


class _State(GradientState):
    mix, learn = staticmethod(_mix), staticmethod(_learn)
    full_information, longest_square, projects = True, LARGEST_SQUARE, True
