"""Conservative one-versus-all with passive-aggressive steps: no exploration at all."""

from dataclasses import dataclass
from typing import Any

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
class ConservativePassiveAggressive(Learner):
    """One binary learner per class; the highest score is guessed, and only its learner is updated.

    With s = 1 for right and s = −1 for wrong, the guessed class gains s·τ·x, τ = min(C, max(0, 1 − s⟨w, x⟩)/‖x‖²): the
    shortest step after which s⟨w, x⟩ ≥ 1, but never more than C (PA-I). It never explores.

    Parameters
    ----------
    C : float
        The largest step: above 0, or ``math.inf`` for the plain passive-aggressive step.

    Notes
    -----
    Guarantee: On examples that are strongly separable with margin γ within radius R, at most 4·max(R², 1/C)/γ² mistakes
    in rounds whose highest score is 0 or more, always. Nothing is known of rounds in which every score is negative:
    where all are below −1 the same mistake can repeat forever.

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

    def _new_state(self) -> GradientState:
        return _State(passive_aggressive_settings(self.C), self.n_features_in_, len(self.classes_))


@jit_internal
def _learn(_state: Weights, answer: Answer, scratch: Scratch, settings: PassiveAggressiveSettings) -> Any:
    gains, label, sign = scratch.gains, answer.label, 1.0 if answer.correct else -1.0
    clear(gains)
    gains[label] = passive_aggressive(scratch.scores[label], sign, scratch.known[SQUARE], settings.largest)
    return gains[label] != 0.0


class _State(GradientState):
    learn = staticmethod(_learn)
