"""One weight vector per class, for learners that draw a guess from scores and step along a gradient.

A guess is uniform with probability u; otherwise it is drawn from the softmax of the scores with probability m;
otherwise it is the label with the highest score. Learners differ in u, m and the step.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from onebit.engine.jit import jit_inline, jit_internal, jit_no_refcount
from onebit.engine.loop import READY, UNSCORED, Algorithm, clear, highest
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.engine.state import LARGEST_SQUARE, State, check_finite, divisible_chance
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Rows, SparseRows, unlocked

CONSERVATIVE, PASSIVE_AGGRESSIVE, MAJORITY, GAPTRON, SURROGATE, LOGISTIC = range(6)
"""The learner: `ConservativePassiveAggressive`, `FullInformationPassiveAggressive`, `Majority`, `Gaptron`,
`AdaptiveSurrogate` or `FullInformationLogistic`."""
FULL_INFORMATION = (PASSIVE_AGGRESSIVE, LOGISTIC)
"""The learners with full information."""

TRIED, RIGHT = range(2)
"""Rows of `Weights.counts`."""
ANSWERS, SQUARES, LONGEST, LENGTH = range(4)
"""Positions in `Weights.sums`: answers so far, Σ‖G‖² of the steps, the largest ‖x‖² learned from, ‖W‖²."""
SQUARE, COUNT, UNIFORM, SOFT, CHANCE = range(5)
"""Positions in `Scratch.known`: ‖x‖², answers so far, u, m, and the propensity of the guessed label."""

LN2 = math.log(2.0)


class Weights(NamedTuple):
    """What was learned."""

    weights: Floats
    """One row per feature, one column per class."""
    counts: Floats
    """How often each label was tried, and right; for `Majority` only."""
    sums: Floats


class Scratch(NamedTuple):
    """What is known about one round."""

    scores: Floats
    soft: Floats
    """Their softmax."""
    gains: Floats
    """How much of x each class gains."""
    propensities: Floats
    known: Floats


class Numbers(NamedTuple):
    """The settings of a learner; their meaning depends on its kind."""

    kind: int
    exploration: float
    """The least probability of a uniform guess; for `AdaptiveSurrogate` the horizon, 0 for none."""
    step: float
    """The largest step, the learning rate (0 for the theorem's), or the norm bound."""
    longest: float
    """The largest ‖x‖; 0 if unknown."""


class GradientState(State):
    """Weights, and a few sums."""

    arrays: Weights
    settings: Numbers
    may_have_kernel = False
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"weights": ("", "class"), "counts": ("", "class")}
    )
    takes_sparse = True
    per_class = "scores", "soft", "gains", "propensities"

    def __init__(self, settings: Numbers, n_features: int, n_classes: int) -> None:
        self.settings, self.n_classes = settings, n_classes
        self.arrays = Weights(np.zeros((n_features, n_classes)), np.zeros((2, n_classes)), np.zeros(4))
        self.scratch = self.new_scratch()

    def new_scratch(self) -> Scratch:
        """Return empty scratch arrays."""
        scores, soft, gains, propensities = np.zeros((4, self.n_classes))
        return Scratch(scores, soft, gains, propensities, np.zeros(5))

    def algorithm(self, is_sparse: bool) -> Algorithm:
        """Return the shared algorithm, for dense or sparse rows, with or without full information."""
        return _ALGORITHMS[is_sparse]._replace(full_information=self.settings.kind in FULL_INFORMATION)

    def update(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from an answer; a late one steps from the current weights, with the propensity of the guess."""
        if self._scored_round != guess.round:
            self.score(guess.row, guess.row)
        return self._update_scored(guess.row, guess.index, correct, truth, guess.propensity)

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn as if the label had been guessed with that propensity."""
        if truth < 0 and self.settings.kind in FULL_INFORMATION:
            return False  # it learns from labels, and this one is unknown
        self.score(row, row)
        divides = self.settings.kind in (GAPTRON, SURROGATE)
        n_answers, chance = self.arrays.sums[ANSWERS], divisible_chance(propensity, row) if divides else 1.0
        try:
            return self._update_scored(unlocked(row), label, correct, truth, chance)
        finally:
            self.arrays.sums[ANSWERS] = n_answers  # exploration decays with rounds played, not with known ones

    def _update_scored(self, row: Rows, label: int, correct: bool, truth: int, chance: float) -> bool:
        compiled, state, scratch, settings = self._ready[type(row)]
        self.scratch.known[CHANCE] = chance
        self._scored_round = -1
        return compiled.update(state, row, scratch, label, False, correct, truth, settings)

    def check_arrays(self, arrays: Weights) -> None:
        """Raise unless counts and sums of squares are possible."""
        check_finite(arrays.weights, arrays.counts, arrays.sums[:LENGTH])
        if (arrays.counts < 0.0).any() or (arrays.sums[:LENGTH] < 0.0).any():
            raise ValueError("a count, or a sum of squares, is below 0")

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's score for every class."""
        if self.settings.kind == MAJORITY:
            right, tried = self.arrays.counts[RIGHT], self.arrays.counts[TRIED]
            return np.tile((right + 1.0) / (tried + 1.0), (rows.shape[0], 1))
        matrix: Any = rows
        if isinstance(rows, SparseRows):
            matrix = scipy.sparse.csr_array((rows.values, rows.columns, rows.starts), shape=rows.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            products: Floats = np.nan_to_num(matrix @ self.arrays.weights)
        return products

    def learned(self) -> dict[str, Floats]:
        """Return the weights, one row per class, or how often each label was tried and right."""
        if self.settings.kind == MAJORITY:
            return {"tried": self.arrays.counts[TRIED].copy(), "right": self.arrays.counts[RIGHT].copy()}
        return {"weights": self.arrays.weights.T.copy(), "sums": self.arrays.sums.copy()}


# Scores.


@jit_inline
def _score(state: Weights, X: Floats, t: int, scratch: Scratch, _settings: Numbers) -> float:
    scores, weights, square = scratch.scores, state.weights, 0.0
    clear(scores)
    for j in range(X.shape[1]):
        square += X[t, j] * X[t, j]
        for i in range(scores.shape[0]):
            scores[i] += X[t, j] * weights[j, i]
    return square


@jit_inline
def _score_sparse(state: Weights, X: SparseRows, t: int, scratch: Scratch, _settings: Numbers) -> float:
    scores, weights, square = scratch.scores, state.weights, 0.0
    clear(scores)
    for entry in range(X.starts[t], X.starts[t + 1]):
        square += X.values[entry] * X.values[entry]
        for i in range(scores.shape[0]):
            scores[i] += X.values[entry] * weights[X.columns[entry], i]
    return square


@jit_internal
def _finish_scoring(state: Weights, square: float, scratch: Scratch, settings: Numbers) -> int:
    scores, off = scratch.scores, square - square
    if settings.kind == MAJORITY:
        for i in range(scores.shape[0]):
            scores[i] = (state.counts[RIGHT, i] + 1.0) / (state.counts[TRIED, i] + 1.0)
    for i in range(scores.shape[0]):
        off += scores[i] - scores[i]
    if settings.kind >= GAPTRON and square > LARGEST_SQUARE:
        return UNSCORED
    scratch.known[SQUARE], scratch.known[COUNT] = square, state.sums[ANSWERS]
    return READY if off == 0.0 else UNSCORED


# The guess.


@jit_inline
def _mix(scratch: Scratch, settings: Numbers) -> int:
    """Write softmax, u and m to the scratch, and return the label with the highest score."""
    scores, soft, known, kind = scratch.scores, scratch.soft, scratch.known, settings.kind
    greedy, n_classes = highest(scores), scores.shape[0]
    known[UNIFORM], known[SOFT] = 0.0, 0.0
    if kind == MAJORITY:
        known[UNIFORM] = settings.exploration
    elif kind >= GAPTRON:
        total = 0.0
        for i in range(n_classes):
            soft[i] = math.exp(scores[i] - scores[greedy])
            total += soft[i]
        for i in range(n_classes):
            soft[i] /= total
        top = soft[greedy]
        if kind == GAPTRON:
            known[UNIFORM] = max(1.0 - top if top >= 0.5 else 1.0, settings.exploration)
        elif kind == SURROGATE:
            rounds = settings.exploration if settings.exploration > 0.0 else known[COUNT] + 1.0
            known[UNIFORM] = min(1.0, 2.0 * settings.step * math.sqrt(n_classes / rounds))
            known[SOFT] = min(1.0, 2.0 * (1.0 - top))
    return greedy


@jit_inline
def _chance(label: int, greedy: int, scratch: Scratch) -> Any:
    u, m = scratch.known[UNIFORM], scratch.known[SOFT]
    drawn = m * scratch.soft[label] if m > 0.0 else 0.0
    return u / scratch.scores.shape[0] + (1.0 - u) * (drawn + (1.0 - m if label == greedy else 0.0))


@jit_no_refcount
def _choose(scratch: Scratch, draw: Draw, settings: Numbers) -> tuple[int, bool]:
    greedy = _mix(scratch, settings)
    label, explored, u, m = greedy, False, scratch.known[UNIFORM], scratch.known[SOFT]
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
    scratch.known[CHANCE] = _chance(label, greedy, scratch)
    return label, explored


@jit_no_refcount
def _probabilities(scratch: Scratch, settings: Numbers) -> None:
    greedy = _mix(scratch, settings)
    for i in range(scratch.propensities.shape[0]):
        scratch.propensities[i] = _chance(i, greedy, scratch)


# The step.


@jit_inline
def _passive_aggressive(score: float, sign: float, square: float, largest: float) -> float:
    """Return the step that raises sign·score to 1, or the largest step."""
    loss = 1.0 - sign * score
    if loss <= 0.0 or square == 0.0:
        return 0.0
    size = min(largest, loss / square)
    return sign * size if size < math.inf else 0.0


@jit_inline
def _learn_conservatively(answer: Answer, scratch: Scratch, settings: Numbers) -> Any:
    gains, label, sign = scratch.gains, answer.label, 1.0 if answer.correct else -1.0
    clear(gains)
    gains[label] = _passive_aggressive(scratch.scores[label], sign, scratch.known[SQUARE], settings.step)
    return gains[label] != 0.0


@jit_inline
def _as_guessed(answer: Answer) -> Answer:
    """Return the answer to a right guess of the true label, which carries the same information."""
    return Answer(answer.truth, answer.explored, True, answer.truth)


@jit_inline
def _learn_aggressively(answer: Answer, scratch: Scratch, settings: Numbers) -> Any:
    gains, scores, label, rival = scratch.gains, scratch.scores, answer.label, -1
    clear(gains)
    for i in range(scores.shape[0]):
        if i != label and (rival < 0 or scores[i] > scores[rival]):
            rival = i
    if rival < 0:
        return False
    # One class gains what another loses, so the squared length of the direction is 2‖x‖².
    size = _passive_aggressive(scores[label] - scores[rival], 1.0, 2.0 * scratch.known[SQUARE], settings.step)
    gains[label], gains[rival] = size, -size
    return size != 0.0


@jit_inline
def _count(state: Weights, answer: Answer) -> None:
    state.counts[TRIED, answer.label] += 1.0
    state.counts[RIGHT, answer.label] += answer.correct


@jit_inline
def _descend(state: Weights, answer: Answer, scratch: Scratch, settings: Numbers) -> bool:
    """Write the step along minus the gradient of the base-2 logistic loss, divided by the label's propensity."""
    sums, gains, soft, square = state.sums, scratch.gains, scratch.soft, scratch.known[SQUARE]
    sums[ANSWERS] += 1.0
    if not answer.correct or square == 0.0:
        return False
    n_classes, chance, length = gains.shape[0], scratch.known[CHANCE], 0.0
    for i in range(n_classes):
        gains[i] = (1.0 - soft[i] if i == answer.label else -soft[i]) / (chance * LN2)
        length += gains[i] * gains[i]
    if not length * square < math.inf:  # a forged ticket may have any propensity
        return False
    if settings.kind == GAPTRON:
        sums[LONGEST] = max(sums[LONGEST], square)
        longest = settings.longest * settings.longest if settings.longest > 0.0 else sums[LONGEST]
        rate = settings.step
        if rate == 0.0:
            rate = settings.exploration * LN2 * LN2 / (2.0 * n_classes * n_classes * longest)
    else:
        sums[SQUARES] += length * square
        # Any two weights in the ball are within twice the norm bound of each other.
        rate = 2.0 * settings.step / math.sqrt(2.0 * sums[SQUARES]) if sums[SQUARES] > 0.0 else 0.0
    if not rate < math.inf:
        return False
    product = 0.0
    for i in range(n_classes):
        gains[i] *= rate
        product += gains[i] * scratch.scores[i]
    sums[LENGTH] += 2.0 * product + rate * rate * length * square
    return True


@jit_internal
def _learn(state: Weights, answer: Answer, scratch: Scratch, settings: Numbers) -> Any:
    if settings.kind == CONSERVATIVE:
        return _learn_conservatively(answer, scratch, settings)
    if settings.kind == PASSIVE_AGGRESSIVE:
        return _learn_aggressively(_as_guessed(answer), scratch, settings)
    if settings.kind == LOGISTIC:
        scratch.known[CHANCE] = 1.0
        return _descend(state, _as_guessed(answer), scratch, settings)
    return _descend(state, answer, scratch, settings)


@jit_inline
def _step(state: Weights, X: Floats, t: int, gains: Floats) -> None:
    for j in range(X.shape[1]):
        for i in range(gains.shape[0]):
            state.weights[j, i] += X[t, j] * gains[i]


@jit_inline
def _step_sparse(state: Weights, X: SparseRows, t: int, gains: Floats) -> None:
    for entry in range(X.starts[t], X.starts[t + 1]):
        for i in range(gains.shape[0]):
            state.weights[X.columns[entry], i] += X.values[entry] * gains[i]


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


def _algorithm(score: Any, step: Any) -> Algorithm:
    def score_row(state: Weights, X: Rows, t: int, scratch: Scratch, settings: Numbers) -> int:
        square = score(state, X, t, scratch, settings)
        return _finish_scoring(state, square, scratch, settings)

    def update(state: Weights, X: Rows, t: int, scratch: Scratch, answer: Answer, settings: Numbers) -> Any:
        if settings.kind == MAJORITY:
            _count(state, answer)
            return True
        changed = _learn(state, answer, scratch, settings)
        if changed:
            step(state, X, t, scratch.gains)
            if settings.kind >= SURROGATE:
                _project(state, settings.step)
        return changed

    return Algorithm(jit_inline(score_row), _choose, _probabilities, jit_inline(update))


_ALGORITHMS = {False: _algorithm(_score, _step), True: _algorithm(_score_sparse, _step_sparse)}
