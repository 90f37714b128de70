"""One weight vector per class, and the game of those who draw a guess from scores and step along a gradient.

A guess is uniform with some chance u; otherwise it is drawn from the softmax of the scores with some chance m;
otherwise it is the label with the highest score. A learner is its u and m, and its step.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from onebit.engine.jit import frugal, inlined, shared
from onebit.engine.loop import READY, UNSCORED, Game, clear, highest
from onebit.engine.randomness import Draw, uniform, uniform_label
from onebit.engine.state import LARGEST_SQUARE, Memory, check_finite, divisible_chance
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Rows, SparseRows, unlocked

CONSERVATIVE, PASSIVE_AGGRESSIVE, MAJORITY, GAPTRON, SURROGATE, LOGISTIC = range(6)
"""Who plays: `ConservativePassiveAggressive`, `FullInformationPassiveAggressive`, `Majority`, `Gaptron`,
`AdaptiveSurrogate` or `FullInformationLogistic`."""
TOLD = (PASSIVE_AGGRESSIVE, LOGISTIC)
"""Who is told the label."""

TRIED, RIGHT = range(2)
"""Rows of `Weights.counts`."""
HEARD, SQUARES, LONGEST, LENGTH = range(4)
"""Places in `Weights.sums`: answers heard, Σ‖G‖² of the steps, the square of the longest row learned from, ‖W‖²."""
SQUARE, COUNT, UNIFORM, SOFT, CHANCE = range(5)
"""Places in `Sight.known`: ‖x‖², answers heard before, u, m, and the chance that the guessed label had."""

LN2 = math.log(2.0)


class Weights(NamedTuple):
    """What was learned."""

    weights: Floats
    """One row per feature, one column per class."""
    counts: Floats
    """How often each label was tried, and right; of `Majority` only."""
    sums: Floats


class Sight(NamedTuple):
    """What is known about one round."""

    scores: Floats
    soft: Floats
    """Their softmax."""
    gains: Floats
    """How much of x each class gains."""
    chances: Floats
    known: Floats


class Numbers(NamedTuple):
    """The settings of a learner; what they mean depends on who plays."""

    kind: int
    exploration: float
    """The least chance of a uniform guess; for `AdaptiveSurrogate` the horizon, 0 for none."""
    step: float
    """The largest step, or the learning rate, or 0 for the theorem's; from `AdaptiveSurrogate` on the norm bound."""
    longest: float
    """No row is longer; 0 if that is not known."""


class GradientMemory(Memory):
    """Weights, and a few sums."""

    arrays: Weights
    settings: Numbers
    may_have_kernel = False
    class_axes: ClassVar[Mapping[str, int]] = MappingProxyType({"weights": 1, "counts": 1})
    per_class = "scores", "soft", "gains", "chances"

    def __init__(self, settings: Numbers, n_features: int, n_classes: int) -> None:
        self.settings, self.n_classes = settings, n_classes
        self.arrays = Weights(np.zeros((n_features, n_classes)), np.zeros((2, n_classes)), np.zeros(4))
        self.sight = self.new_sight()

    def new_sight(self) -> Sight:
        """Return scratch paper."""
        scores, soft, gains, chances = np.zeros((4, self.n_classes))
        return Sight(scores, soft, gains, chances, np.zeros(5))

    def game(self, is_sparse: bool) -> Game:
        """Return the one game, for dense or sparse rows, with or without the label."""
        return _GAMES[is_sparse]._replace(hears_label=self.settings.kind in TOLD)

    def hear(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from an answer; a late one is a step from the weights of now, with the chance of then."""
        if self._seen != guess.round:
            self.measure(guess.row, guess.row)
        return self._hear_measured(guess.row, guess.index, correct, truth, guess.propensity)

    def hear_logged(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn as if the label had been guessed with that propensity."""
        if truth < 0 and self.settings.kind in TOLD:
            return False  # it learns from labels, and this one is not known
        self.measure(row, row)
        divides = self.settings.kind in (GAPTRON, SURROGATE)
        heard, chance = self.arrays.sums[HEARD], divisible_chance(propensity, row) if divides else 1.0
        try:
            return self._hear_measured(unlocked(row), label, correct, truth, chance)
        finally:
            self.arrays.sums[HEARD] = heard  # exploration fades with the rounds that were played

    def _hear_measured(self, row: Rows, label: int, correct: bool, truth: int, chance: float) -> bool:
        moves, memory, sight, settings = self._at_hand[type(row)]
        self.sight.known[CHANCE] = chance
        self._seen = -1
        return moves.hear(memory, row, sight, label, False, correct, truth, settings)

    def check_arrays(self, arrays: Weights) -> None:
        """Raise unless counts are, and sums of squares can be."""
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

    def takes(self, row: Rows, n_features: int) -> bool:
        """Return whether a row is as wide as all rows; sparse ones stay sparse."""
        return bool(row.shape[1] == n_features)

    def learned(self) -> dict[str, Floats]:
        """Return the weights, one row per class, or how often each label was tried and right."""
        if self.settings.kind == MAJORITY:
            return {"tried": self.arrays.counts[TRIED].copy(), "right": self.arrays.counts[RIGHT].copy()}
        return {"weights": self.arrays.weights.T.copy(), "sums": self.arrays.sums.copy()}


# Scores.


@inlined
def _score(memory: Weights, X: Floats, t: int, sight: Sight, _settings: Numbers) -> float:
    scores, weights, square = sight.scores, memory.weights, 0.0
    clear(scores)
    for j in range(X.shape[1]):
        square += X[t, j] * X[t, j]
        for i in range(scores.shape[0]):
            scores[i] += X[t, j] * weights[j, i]
    return square


@inlined
def _score_sparse(memory: Weights, X: SparseRows, t: int, sight: Sight, _settings: Numbers) -> float:
    scores, weights, square = sight.scores, memory.weights, 0.0
    clear(scores)
    for entry in range(X.starts[t], X.starts[t + 1]):
        square += X.values[entry] * X.values[entry]
        for i in range(scores.shape[0]):
            scores[i] += X.values[entry] * weights[X.columns[entry], i]
    return square


@shared
def _finish_measuring(memory: Weights, square: float, sight: Sight, settings: Numbers) -> int:
    scores, off = sight.scores, square - square
    if settings.kind == MAJORITY:
        for i in range(scores.shape[0]):
            scores[i] = (memory.counts[RIGHT, i] + 1.0) / (memory.counts[TRIED, i] + 1.0)
    for i in range(scores.shape[0]):
        off += scores[i] - scores[i]
    if settings.kind >= GAPTRON and square > LARGEST_SQUARE:
        return UNSCORED
    sight.known[SQUARE], sight.known[COUNT] = square, memory.sums[HEARD]
    return READY if off == 0.0 else UNSCORED


# The guess.


@inlined
def _mix(sight: Sight, settings: Numbers) -> int:
    """Write softmax, u and m to the scratch paper, and return the label with the highest score."""
    scores, soft, known, kind = sight.scores, sight.soft, sight.known, settings.kind
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


@inlined
def _chance(label: int, greedy: int, sight: Sight) -> Any:
    u, m = sight.known[UNIFORM], sight.known[SOFT]
    drawn = m * sight.soft[label] if m > 0.0 else 0.0
    return u / sight.scores.shape[0] + (1.0 - u) * (drawn + (1.0 - m if label == greedy else 0.0))


@frugal
def _decide(sight: Sight, draw: Draw, settings: Numbers) -> tuple[int, bool]:
    greedy = _mix(sight, settings)
    label, explored, u, m = greedy, False, sight.known[UNIFORM], sight.known[SOFT]
    if u > 0.0 or m > 0.0:
        number = uniform(draw)
        # One number serves all choices: below a chance it is, once stretched, uniform again, and so it is above.
        if number < u:
            label, explored = uniform_label(number / u, sight.scores.shape[0]), True
        elif m > 0.0:
            number = (number - u) / (1.0 - u)
            if number < m:
                number /= m
                for i in range(sight.scores.shape[0]):
                    number -= sight.soft[i]
                    if number < 0.0:
                        label = i
                        break
    sight.known[CHANCE] = _chance(label, greedy, sight)
    return label, explored


@frugal
def _weigh(sight: Sight, settings: Numbers) -> None:
    greedy = _mix(sight, settings)
    for i in range(sight.chances.shape[0]):
        sight.chances[i] = _chance(i, greedy, sight)


# The step.


@inlined
def _passive_aggressive(score: float, sign: float, square: float, largest: float) -> float:
    """Return the step that lifts sign·score to 1, or as far as the largest step does."""
    loss = 1.0 - sign * score
    if loss <= 0.0 or square == 0.0:
        return 0.0
    size = min(largest, loss / square)
    return sign * size if size < math.inf else 0.0


@inlined
def _learn_conservatively(answer: Answer, sight: Sight, settings: Numbers) -> Any:
    gains, label, sign = sight.gains, answer.label, 1.0 if answer.correct else -1.0
    clear(gains)
    gains[label] = _passive_aggressive(sight.scores[label], sign, sight.known[SQUARE], settings.step)
    return gains[label] != 0.0


@inlined
def _as_guessed(answer: Answer) -> Answer:
    """Return what is heard by one who guesses the right label: to be told it is worth as much."""
    return Answer(answer.truth, answer.explored, True, answer.truth)


@inlined
def _learn_aggressively(answer: Answer, sight: Sight, settings: Numbers) -> Any:
    gains, scores, label, rival = sight.gains, sight.scores, answer.label, -1
    clear(gains)
    for i in range(scores.shape[0]):
        if i != label and (rival < 0 or scores[i] > scores[rival]):
            rival = i
    if rival < 0:
        return False
    # One class gains what another loses: the step is as long as one along a row of twice the square.
    size = _passive_aggressive(scores[label] - scores[rival], 1.0, 2.0 * sight.known[SQUARE], settings.step)
    gains[label], gains[rival] = size, -size
    return size != 0.0


@inlined
def _count(memory: Weights, answer: Answer) -> None:
    memory.counts[TRIED, answer.label] += 1.0
    memory.counts[RIGHT, answer.label] += answer.correct


@inlined
def _descend(memory: Weights, answer: Answer, sight: Sight, settings: Numbers) -> bool:
    """Write the step along minus the gradient of the logistic loss, in base 2, divided by the label's chance."""
    sums, gains, soft, square = memory.sums, sight.gains, sight.soft, sight.known[SQUARE]
    sums[HEARD] += 1.0
    if not answer.correct or square == 0.0:
        return False
    n_classes, chance, length = gains.shape[0], sight.known[CHANCE], 0.0
    for i in range(n_classes):
        gains[i] = (1.0 - soft[i] if i == answer.label else -soft[i]) / (chance * LN2)
        length += gains[i] * gains[i]
    if not length * square < math.inf:  # of a ticket whose chance somebody made up
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
        product += gains[i] * sight.scores[i]
    sums[LENGTH] += 2.0 * product + rate * rate * length * square
    return True


@shared
def _learn(memory: Weights, answer: Answer, sight: Sight, settings: Numbers) -> Any:
    if settings.kind == CONSERVATIVE:
        return _learn_conservatively(answer, sight, settings)
    if settings.kind == PASSIVE_AGGRESSIVE:
        return _learn_aggressively(_as_guessed(answer), sight, settings)
    if settings.kind == LOGISTIC:
        sight.known[CHANCE] = 1.0
        return _descend(memory, _as_guessed(answer), sight, settings)
    return _descend(memory, answer, sight, settings)


@inlined
def _step(memory: Weights, X: Floats, t: int, gains: Floats) -> None:
    for j in range(X.shape[1]):
        for i in range(gains.shape[0]):
            memory.weights[j, i] += X[t, j] * gains[i]


@inlined
def _step_sparse(memory: Weights, X: SparseRows, t: int, gains: Floats) -> None:
    for entry in range(X.starts[t], X.starts[t + 1]):
        for i in range(gains.shape[0]):
            memory.weights[X.columns[entry], i] += X.values[entry] * gains[i]


@shared
def _project(memory: Weights, bound: float) -> None:
    """Bring the weights back into the ball; their length is kept up to date, and added up anew only at its edge."""
    weights, sums = memory.weights, memory.sums
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


def _game(score: Any, step: Any) -> Game:
    def measure(memory: Weights, X: Rows, t: int, sight: Sight, settings: Numbers) -> int:
        square = score(memory, X, t, sight, settings)
        return _finish_measuring(memory, square, sight, settings)

    def hear(memory: Weights, X: Rows, t: int, sight: Sight, answer: Answer, settings: Numbers) -> Any:
        if settings.kind == MAJORITY:
            _count(memory, answer)
            return True
        changed = _learn(memory, answer, sight, settings)
        if changed:
            step(memory, X, t, sight.gains)
            if settings.kind >= SURROGATE:
                _project(memory, settings.step)
        return changed

    return Game(inlined(measure), _decide, _weigh, inlined(hear))


_GAMES = {False: _game(_score, _step), True: _game(_score_sparse, _step_sparse)}
