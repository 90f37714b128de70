"""The multiclass passive-aggressive algorithm, with full information."""

from dataclasses import dataclass
from typing import Any, ClassVar

from onebit.bounds import BOUNDS, Claim
from onebit.engine.jit import jit_internal
from onebit.engine.loop import clear
from onebit.game import Answer
from onebit.learners.base import Learner
from onebit.learners.gradient import (
    SQUARE,
    GradientState,
    PassiveAggressiveSettings,
    Scratch,
    Weights,
    passive_aggressive,
    passive_aggressive_settings,
)


@dataclass(eq=False, repr=False)
class FullInformationPassiveAggressive(Learner):
    """The floor under `ConservativePassiveAggressive`: the shortest step that puts the right label ahead by 1.

    Its feedback is the label itself: ``tell(guess, correct, label=…)``. The highest score is guessed. With y the right
    label and r the best other one, y gains τ·x and r loses it, τ = min(C, max(0, 1 − ⟨w_y − w_r, x⟩)/(2‖x‖²)) (PA-I).
    So it learns from right guesses too, where they were narrow.

    Parameters
    ----------
    C : float
        The largest step: above 0, or ``math.inf`` for the plain passive-aggressive step.

    Notes
    -----
    Guarantee: At most max(2R², 1/C)/γ² mistakes, always, on examples that are weakly separable with margin γ within
    radius R: with C ≥ 1/(2R²) as few as `MulticlassPerceptron` promises. On any examples, and for any U with losses
    ℓ(U) of the same kind, max(2R², 1/C)·(‖U‖² + 2C·Σ ℓ(U)) (Crammer et al., Theorem 4). With late answers it bounds the
    answers that find the right label not ahead.

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

    def _new_state(self) -> GradientState:
        return _State(passive_aggressive_settings(self.C), self.n_features_in_, len(self.classes_))

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return Theorem 10's ⌊2(R/γ)²⌋ mistakes, which hold here too if C is 1/(2R²) or more."""
        if not 2.0 * passive_aggressive_settings(self.C).largest * radius * radius >= 1.0:
            return ()
        return (BOUNDS["10"].claim(f"{type(self).__name__}, C ≥ 1/(2R²)", radius=radius, margin=margin),)


@jit_internal
def _learn(_state: Weights, answer: Answer, scratch: Scratch, settings: PassiveAggressiveSettings) -> Any:
    gains, scores, label, rival = scratch.gains, scratch.scores, answer.truth, -1
    clear(gains)
    for i in range(scores.shape[0]):
        if i != label and (rival < 0 or scores[i] > scores[rival]):
            rival = i
    if rival < 0:
        return False
    # One class gains what another loses, so the squared length of the direction is 2‖x‖².
    size = passive_aggressive(scores[label] - scores[rival], 1.0, 2.0 * scratch.known[SQUARE], settings.largest)
    gains[label], gains[rival] = size, -size
    return size != 0.0


class _State(GradientState):
    learn = staticmethod(_learn)
    full_information = True
