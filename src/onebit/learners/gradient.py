"""One weight vector per class, for learners that use the size of scores, not only their order.

A learner's file has its mathematics: a subclass of `GradientState` with two compiled functions.

- ``mix(scratch, settings)`` returns the label with the highest score and how a guess is drawn: uniformly with the first
  probability; otherwise from ``soft`` with the second; otherwise the highest. By default the highest is guessed.
- ``learn(state, answer, scratch, settings)`` writes to ``gains`` how much of x each class gains, and returns whether
  any does.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from onebit.engine.jit import jit_inline, jit_internal, jit_no_refcount
from onebit.engine.loop import READY, UNSCORED, Algorithm, highest
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.engine.state import State, check_finite, divisible_chance, unlocked
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Rows, SparseRows
from onebit.learners.base import Learner
from onebit.spaces.linear import step_dense, step_sparse, sum_up_dense, sum_up_sparse

ANSWERS, SQUARES, LONGEST, LENGTH = range(4)
"""Positions in `Weights.sums`: answers so far, Σ‖G‖² of the steps, the largest ‖x‖² learned from, ‖W‖²."""
SQUARE, COUNT, PROPENSITY = range(3)
"""Positions in `Scratch.known`: ‖x‖², answers before this round, the propensity of the guess."""


class Weights(NamedTuple):
    """What was learned."""

    weights: Floats  # one row per feature, one column per class
    sums: Floats


class Scratch(NamedTuple):
    """What is known about one round."""

    scores: Floats
    soft: Floats  # their softmax
    gains: Floats  # how much of x each class gains
    propensities: Floats
    known: Floats


@jit_inline
def _guess_highest(scratch: Scratch, _settings: Any) -> tuple[int, float, float]:
    return highest(scratch.scores), 0.0, 0.0


class GradientState(State):
    """Weights, and a few sums; `settings` is a named tuple of numbers."""

    arrays: Weights
    may_have_kernel = False
    takes_sparse = True
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("", "class")}
    per_class = "scores", "soft", "gains", "propensities"

    mix: ClassVar[Callable[..., tuple[int, float, float]]] = staticmethod(_guess_highest)
    learn: ClassVar[Callable[..., bool]]
    full_information: ClassVar[bool] = False
    divides: ClassVar[bool] = False
    """Whether a step is divided by the label's propensity."""
    longest_square: ClassVar[float] = math.inf
    """Rows with a larger ‖x‖² are refused."""
    projects: ClassVar[bool] = False
    """Whether weights are projected onto the ball of radius ``settings.norm_bound``."""

    def __init__(self, learner: Learner, settings: Any) -> None:
        self.settings, self.n_classes = settings, len(learner.classes_)
        self.arrays = Weights(np.zeros((learner.n_features_in_, self.n_classes)), np.zeros(4))
        self.scratch = self.new_scratch()

    def new_scratch(self) -> Scratch:
        scores, soft, gains, propensities = np.zeros((4, self.n_classes))
        return Scratch(scores, soft, gains, propensities, np.zeros(3))

    def algorithm(self, is_sparse: bool) -> Algorithm:
        return _algorithm(type(self), is_sparse)

    def update(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from an answer; a late one steps from the current weights, with the propensity of the guess."""
        if self._scored_round != guess.round:
            self.score(guess.row, guess.row)
        return self._update_scored(guess.row, guess.index, correct, truth, guess.propensity)

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn as if the label had been guessed with that propensity."""
        if truth < 0 and self.full_information:
            return False  # it learns from labels, and this one is unknown
        self.score(row, row)
        n_answers, chance = self.arrays.sums[ANSWERS], divisible_chance(propensity, row) if self.divides else 1.0
        try:
            return self._update_scored(unlocked(row), label, correct, truth, chance)
        finally:
            self.arrays.sums[ANSWERS] = n_answers  # exploration decays with rounds played, not with known ones

    def _update_scored(self, row: Rows, label: int, correct: bool, truth: int, propensity: float) -> bool:
        compiled, state, scratch, settings = self._ready[type(row)]
        self.scratch.known[PROPENSITY] = propensity
        self._scored_round = -1
        return compiled.update(state, row, scratch, label, False, correct, truth, settings)

    def check_arrays(self, arrays: Weights) -> None:
        check_finite(arrays.weights, arrays.sums[:LENGTH])
        if (arrays.sums[:LENGTH] < 0.0).any():
            raise ValueError("a count, or a sum of squares, is below 0")

    def score_rows(self, rows: Rows) -> Floats:
        matrix: Any = rows
        if isinstance(rows, SparseRows):
            matrix = scipy.sparse.csr_array((rows.values, rows.columns, rows.starts), shape=rows.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            products: Floats = np.nan_to_num(matrix @ self.arrays.weights)
        return products

    def learned(self) -> dict[str, Floats]:
        return {"weights": self.arrays.weights.T.copy(), "sums": self.arrays.sums.copy()}


@cache
def _algorithm(kind: type[GradientState], is_sparse: bool) -> Algorithm:
    mix, learn, longest_square, projects = kind.mix, kind.learn, kind.longest_square, kind.projects
    sum_up: Any = sum_up_sparse if is_sparse else sum_up_dense
    square_of: Any = _square_sparse if is_sparse else _square_dense
    step: Any = step_sparse if is_sparse else step_dense

    def score(state: Weights, X: Rows, t: int, scratch: Scratch, _settings: Any) -> int:
        sum_up(state, X, t, scratch.scores)
        return _finish_scoring(state, square_of(X, t), scratch, longest_square)

    def choose(scratch: Scratch, draw: Draw, settings: Any) -> tuple[int, bool]:
        greedy, u, m = mix(scratch, settings)
        label, explored = _drawn(greedy, u, m, scratch, draw)
        scratch.known[PROPENSITY] = _propensity(label, greedy, u, m, scratch)
        return label, explored

    def probabilities(scratch: Scratch, settings: Any) -> None:
        greedy, u, m = mix(scratch, settings)
        for i in range(scratch.propensities.shape[0]):
            scratch.propensities[i] = _propensity(i, greedy, u, m, scratch)

    def update(state: Weights, X: Rows, t: int, scratch: Scratch, answer: Answer, settings: Any) -> Any:
        state.sums[ANSWERS] += 1.0
        changed = learn(state, answer, scratch, settings)
        if changed:
            step(state, X, t, scratch.gains)
            if projects:
                _project(state, settings.norm_bound)
        return changed

    functions = jit_inline(score), jit_no_refcount(choose), jit_no_refcount(probabilities), jit_inline(update)
    return Algorithm(*functions, full_information=kind.full_information)


# Scores.


@jit_inline
def _square_dense(X: Floats, t: int) -> float:
    square = 0.0
    for j in range(X.shape[1]):
        square += X[t, j] * X[t, j]
    return square


@jit_inline
def _square_sparse(X: SparseRows, t: int) -> float:
    square = 0.0
    for entry in range(X.starts[t], X.starts[t + 1]):
        square += X.values[entry] * X.values[entry]
    return square


@jit_internal
def _finish_scoring(state: Weights, square: float, scratch: Scratch, longest_square: float) -> int:
    off = square - square
    for i in range(scratch.scores.shape[0]):
        off += scratch.scores[i] - scratch.scores[i]
    if square > longest_square:
        return UNSCORED
    scratch.known[SQUARE], scratch.known[COUNT] = square, state.sums[ANSWERS]
    return READY if off == 0.0 else UNSCORED


# The guess.


@jit_inline
def _propensity(label: int, greedy: int, u: float, m: float, scratch: Scratch) -> Any:
    drawn = m * scratch.soft[label] if m > 0.0 else 0.0
    return u / scratch.scores.shape[0] + (1.0 - u) * (drawn + (1.0 - m if label == greedy else 0.0))


@jit_inline
def _drawn(greedy: int, u: float, m: float, scratch: Scratch, draw: Draw) -> tuple[int, bool]:
    label, explored = greedy, False
    if u > 0.0 or m > 0.0:
        number = uniform(draw)
        # One number serves all choices: on either side of a threshold it is uniform again after rescaling.
        if number < u:
            label, explored = uniform_label(number / u, scratch.scores.shape[0]), True
        elif m > 0.0:
            number = (number - u) / (1.0 - u)
            if number < m:
                number /= m
                for i in range(scratch.scores.shape[0]):
                    number -= scratch.soft[i]
                    if number < 0.0:
                        label = i
                        break
    return label, explored


@jit_internal
def _project(state: Weights, bound: float) -> None:
    """Project the weights onto the ball; their norm is updated incrementally and recomputed only at its edge."""
    weights, sums = state.weights, state.sums
    if sums[LENGTH] <= bound * bound:
        return
    length = 0.0
    for j in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            length += weights[j, i] * weights[j, i]
    if length > bound * bound:
        shrink = bound / math.sqrt(length)
        for j in range(weights.shape[0]):
            for i in range(weights.shape[1]):
                weights[j, i] *= shrink
        length = bound * bound
    sums[LENGTH] = length
