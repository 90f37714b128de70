"""Guessing at random: what any learner must beat."""

from typing import Any, ClassVar

import numpy as np

from onebit.engine.jit import jit_inline
from onebit.engine.state import Scratch, State
from onebit.game import Answer
from onebit.inputs import Floats
from onebit.learners.base import Learner
from onebit.learners.exploring import mostly_highest, write_chances
from onebit.spaces import Rule, space_for


class UniformGuess(Learner):
    """Guesses every label with the same probability and never learns.

    Notes
    -----
    Guarantee: T(K−1)/K expected mistakes in T rounds, whatever the stream, if the right label is one of the K that are
    allowed.

    Examples
    --------
    >>> UniformGuess(classes=4).probabilities([0.0])
    array([0.25, 0.25, 0.25, 0.25])

    References
    ----------
    Beygelzimer et al. (2019). ICML. Step 6 of Algorithm 1, on its own.
    """

    _poor_score: ClassVar[bool] = True

    def _new_state(self) -> State:
        # It has a state nevertheless, so that features are checked as in other learners.
        return space_for(None, RULE, (1.0,), self.n_features_in_, len(self.classes_))

    def predict_proba(self, X: Any) -> Floats:
        """Return the same probability for every class: the baseline of a log loss."""
        scores = self.score_classes(X)
        return np.full(scores.shape, 1.0 / scores.shape[1])


@jit_inline
def _learn(_answer: Answer, _scratch: Scratch, _settings: Any) -> bool:
    return False


RULE = Rule(f"{__name__}:RULE", mostly_highest, write_chances, _learn, _learn)
