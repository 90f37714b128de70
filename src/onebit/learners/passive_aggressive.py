"""Passive-aggressive learners: the shortest step that puts a score right by a margin of 1."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from onebit.bounds import BOUNDS, Claim
from onebit.engine.algorithm import clear
from onebit.engine.jit import jit_inline, jit_internal
from onebit.game import Answer
from onebit.inputs import check_number
from onebit.learners.gradient import GradientLearner, GradientState, Scratch


class _Settings(NamedTuple):
    largest: float  # the largest step


def _settings(C: Any) -> _Settings:
    return _Settings(math.inf if isinstance(C, float) and math.inf == C else check_number("C", C, above=0.0))


@jit_inline
def _passive_aggressive(score: float, sign: float, square: float, largest: float) -> float:
    """Return the step that raises sign·score to 1, or the largest step."""
    loss = 1.0 - sign * score
    if loss <= 0.0 or square == 0.0:
        return 0.0
    size = min(largest, loss / square)
    return sign * size if size < math.inf else 0.0


@jit_internal
def _learn_bit(_state: Any, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    gains, label, sign = scratch.gains, answer.label, 1.0 if answer.correct else -1.0
    clear(gains)
    gains[label] = _passive_aggressive(scratch.scores[label], sign, scratch.square[0], settings.largest)
    return gains[label] != 0.0


@dataclass(eq=False, repr=False)
class ConservativePassiveAggressive(GradientLearner):
    """One binary learner per class; the highest score is guessed, and only its learner is updated.

    With s = 1 for right and s = −1 for wrong, the guessed class gains s·τ·x, τ = min(C, max(0, 1 − s⟨w, x⟩)/‖x‖²): the
    shortest step after which s⟨w, x⟩ ≥ 1, but never more than C (PA-I). It never explores.

    Guarantee: On examples that are strongly separable with margin γ within radius R, at most 4·max(R², 1/C)/γ² mistakes
    in rounds whose highest score is 0 or more, always. Nothing is known of rounds in which every score is negative:
    where all are below −1 the same mistake can repeat forever.

    Parameters
    ----------
    C : float
        The largest step: above 0, or ``math.inf`` for the plain passive-aggressive step.

    Examples
    --------
    >>> learner = ConservativePassiveAggressive(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False)
    >>> learner.weights_[0].tolist(), learner.guess([1.0, 0.0]).label
    ([-1.0, 0.0], 'right')

    References
    ----------
    Chen, Chen, Zhang, Chen, Zhang (2009). Beyond Banditron: a conservative and efficient reduction for online
    multiclass prediction with bandit setting model. ICDM.
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer (2006). Online passive-aggressive algorithms. JMLR 7 (PA-I).
    """

    C: float = 1.0

    _learn = staticmethod(_learn_bit)

    def _new_state(self) -> GradientState:
        return GradientState(self, _settings(self.C))


@jit_internal
def _learn_label(_state: Any, answer: Answer, scratch: Scratch, settings: _Settings) -> Any:
    gains, scores, label, rival = scratch.gains, scratch.scores, answer.truth, -1
    clear(gains)
    for i in range(scores.shape[0]):
        if i != label and (rival < 0 or scores[i] > scores[rival]):
            rival = i
    if rival < 0:
        return False
    # One class gains what another loses, so the squared length of the direction is 2‖x‖².
    size = _passive_aggressive(scores[label] - scores[rival], 1.0, 2.0 * scratch.square[0], settings.largest)
    gains[label], gains[rival] = size, -size
    return size != 0.0


@dataclass(eq=False, repr=False)
class FullInformationPassiveAggressive(GradientLearner):
    """The floor under `ConservativePassiveAggressive`: the shortest step that puts the right label ahead by 1.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. The highest score is guessed. With y the right
    label and r the best other one, y gains τ·x and r loses it, τ = min(C, max(0, 1 − ⟨w_y − w_r, x⟩)/(2‖x‖²)) (PA-I).
    So it learns from right guesses too, where they were narrow.

    Guarantee: At most max(2R², 1/C)/γ² mistakes, always, on examples that are weakly separable with margin γ within
    radius R: with C ≥ 1/(2R²) as few as `MulticlassPerceptron` promises. On any examples, and for any U with losses
    ℓ(U) of the same kind, max(2R², 1/C)·(‖U‖² + 2C·Σ ℓ(U)) (Crammer et al., Theorem 4). With late answers it bounds the
    answers that find the right label not ahead.

    Parameters
    ----------
    C : float
        The largest step: above 0, or ``math.inf`` for the plain passive-aggressive step.

    Examples
    --------
    >>> learner = FullInformationPassiveAggressive(classes=["left", "right"])
    >>> guess = learner.guess([1.0, 0.0])
    >>> learner.tell(guess, correct=False, label="right")
    >>> learner.weights_.tolist()
    [[-0.5, 0.0], [0.5, 0.0]]

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer (2006). Online passive-aggressive algorithms. JMLR 7 (PA-I, and
    multiclass problems).
    """

    full_information: ClassVar[bool] = True

    C: float = 1.0

    _learn = staticmethod(_learn_label)

    def _new_state(self) -> GradientState:
        return GradientState(self, _settings(self.C))

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return Theorem 10's ⌊2(R/γ)²⌋ mistakes, which hold here too if C is 1/(2R²) or more."""
        if not 2.0 * _settings(self.C).largest * radius * radius >= 1.0:
            return ()
        return (BOUNDS["10"].claim(f"{type(self).__name__}, C ≥ 1/(2R²)", radius=radius, margin=margin),)
