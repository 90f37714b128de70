"""What any learner must beat: guessing at random, and the label that was right most often, whatever the features."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.engine.algorithm import READY, UNSCORED, Algorithm
from onebit.engine.jit import jit_inline
from onebit.engine.state import Scratch, State, check_finite
from onebit.game import Answer
from onebit.inputs import Floats, Rows, check_number
from onebit.learners.base import Learner
from onebit.learners.exploring import choose_mostly_highest, fill_propensities, mostly_highest, write_propensities
from onebit.learners.run import LearnedArray
from onebit.spaces.linear import LinearSpace
from onebit.spaces.rule import Rule


@dataclass(eq=False, repr=False)
class UniformGuess(Learner):
    """Guesses every label with the same probability and never learns.

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
        return LinearSpace(_UNIFORM, (1.0,), self.n_features_in_, len(self.classes_))

    def predict_proba(self, X: Any) -> Floats:
        """Return the same probability for every class: the baseline of a log loss."""
        scores = self.score_classes(X)
        return np.full(scores.shape, 1.0 / scores.shape[1])


@jit_inline
def _learn_nothing(_answer: Answer, _scratch: Scratch, _settings: Any) -> bool:
    return False


_UNIFORM = Rule(f"{__name__}:_UNIFORM", mostly_highest, fill_propensities, _learn_nothing, _learn_nothing)


@dataclass(eq=False, repr=False)
class Majority(Learner):
    """Guesses the label that was right in the largest share of the rounds in which it was tried.

    The share is (right + 1)/(tried + 1): each label is tried, in the order of the classes, before any that has failed
    is tried again. With probability `exploration` the label is drawn uniformly, so that the commonest label is not
    missed forever after a bad start. Features are checked, and ignored. `tried_` and `right_` are the counts.

    Guarantee: None. If labels are drawn independently and exploration is above 0, every share converges to its label's
    frequency, and the guesses to the commonest label.

    Parameters
    ----------
    exploration : float
        How often a label is drawn uniformly: in [0, 1].

    Examples
    --------
    >>> learner = Majority(exploration=0, classes=["no", "yes"])
    >>> for answer in (False, True):
    ...     learner.tell(learner.guess([0.0]), correct=answer)
    >>> learner.guess([0.0]).label, learner.tried_.tolist(), learner.right_.tolist()
    ('yes', [1.0, 1.0], [0.0, 1.0])

    References
    ----------
    Sutton, Barto (2018). Reinforcement learning: an introduction. MIT Press. Sections 2.2 and 2.6: ε-greedy shares,
    optimistic at first.
    """

    exploration: float = 0.05
    _poor_score: ClassVar[bool] = True  # it ignores the features

    def _new_state(self) -> State:
        settings = _Settings(check_number("exploration", self.exploration, at_least=0.0, at_most=1.0))
        n_classes = len(self.classes_)
        return _Shares(_Counts(np.zeros((2, n_classes)), np.zeros(self.n_features_in_)), settings, n_classes)

    tried_, right_ = LearnedArray(), LearnedArray()


class _Counts(NamedTuple):
    counts: Floats  # how often each label was tried, and how often it was right
    width: Floats  # as long as a row: a saved file is no smaller than the rows it takes


class _Settings(NamedTuple):
    exploration: float


class _Shares(State):
    arrays: _Counts
    learn_from_log = State.learn_as_played
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = {"counts": ("", "class")}

    def algorithm(self, is_sparse: bool) -> Algorithm:
        return Algorithm(_score, choose_mostly_highest, write_propensities, _update)

    def check_arrays(self, arrays: _Counts) -> None:
        check_finite(arrays.counts)
        if (arrays.counts < 0.0).any():
            raise ValueError("a count is below 0")

    def score_rows(self, rows: Rows) -> Floats:
        tried, right = self.arrays.counts
        return np.tile((right + 1.0) / (tried + 1.0), (rows.shape[0], 1))

    def learned(self) -> dict[str, Floats]:
        tried, right = self.arrays.counts.copy()
        return {"tried": tried, "right": right}


@jit_inline
def _score(state: _Counts, X: Floats, t: int, scratch: Scratch, _settings: _Settings) -> int:
    off = 0.0
    for j in range(X.shape[1]):
        off += X[t, j] - X[t, j]  # features are ignored, but must be finite
    for i in range(scratch.scores.shape[0]):
        scratch.scores[i] = (state.counts[1, i] + 1.0) / (state.counts[0, i] + 1.0)
    return READY if off == 0.0 else UNSCORED


@jit_inline
def _update(state: _Counts, _X: Floats, _t: int, _scratch: Scratch, answer: Answer, _settings: _Settings) -> bool:
    state.counts[0, answer.label] += 1.0
    state.counts[1, answer.label] += answer.correct
    return True
