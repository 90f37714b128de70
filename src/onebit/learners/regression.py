"""Learners that regress "right" or "wrong" on the features, one regression for every class (see `ridge`).

A learner's file has its way to explore: a subclass of `RegressionState` whose `probabilities_of` is a
compiled function ``(scratch, settings)``, which writes the propensity of each label from predictions and their widths.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.engine.jit import jit_inline, jit_internal, jit_no_refcount
from onebit.engine.lengths import LEAST, MOST
from onebit.engine.loop import UNSCORED, Algorithm, clear, highest, ready_if_finite
from onebit.engine.randomness import Draw, uniform
from onebit.engine.state import State, check_finite
from onebit.game import Answer
from onebit.inputs import Floats, Integers, Rows, check_number, check_switch, dense
from onebit.learners.base import Learner
from onebit.learners.ridge import (
    DIAGONAL_RIDGE,
    FULL_RIDGE,
    LOGISTIC,
    SLACK,
    Regression,
    Regressions,
    absorb,
    check_symmetric,
    predicted,
    squared_width,
)
from onebit.machine_memory import check_memory


class RegressionScratch(NamedTuple):
    """What is known about one round."""

    scores: Floats
    """The prediction of each class's regression; higher is better."""
    projected: Floats
    """The same, projected to the range of `Confidit`'s model."""
    widths: Floats
    """√(xᵀAᵢ⁻¹x); 0 where it is not needed."""
    square: Floats
    """‖x‖², the only entry."""
    answers: Integers
    """The number of answers so far; one entry."""
    image: Floats
    """Work space: one number per feature."""
    below: Floats
    """Work space of `ThompsonSampling`: one number per class."""
    propensities: Floats


class RegressionNumbers(NamedTuple):
    """The numbers that the compiled functions need."""

    regression: Regression
    exploring: tuple[float, float]
    """What a learner's `probabilities` needs."""
    has_widths: bool
    """Whether `score` computes widths, its most expensive part in the full form."""
    most_square: float
    """The largest ‖x‖² that is accepted."""
    full_information: bool
    """Whether the feedback is the label: then every class learns from every round."""


def check_regularization(value: Any) -> float:
    """Return λ, or raise ValueError."""
    return check_number("regularization", value, above=LEAST, at_most=MOST)


def ridge(
    diagonal: Any,
    regularization: Any,
    *,
    right: float = 1.0,
    wrong: float = 0.0,
    low: float = -math.inf,
    high: float = math.inf,
    drops_products: bool = False,
) -> Regression:
    """Check the settings of ridge regression, and return it."""
    kind = DIAGONAL_RIDGE if check_switch("diagonal", diagonal) else FULL_RIDGE
    return Regression(kind, check_regularization(regularization), right, wrong, low, high, 1.0, drops_products)


class RegressionLearner(Learner):
    """Regresses right or wrong on the features, for each class on the rounds whose answers concern it."""

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return the cost of a matrix for every class, 0 for the diagonal."""
        is_full = not getattr(self, "diagonal", True) and getattr(self, "scores", "ridge") == "ridge"
        return float(rounds) * n_classes * n_features**2 if is_full else 0.0


class RegressionState(State):
    """One regression per class."""

    arrays: Regressions
    may_have_kernel = False
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        dict.fromkeys(("weights", "responses"), ("class", ""))
        | dict.fromkeys(("grams", "inverses"), ("class", "", ""))
        | {"steps": ("class",)}
    )
    per_class: ClassVar[tuple[str, ...]] = "scores", "projected", "widths", "propensities"

    probabilities_of: ClassVar[Callable[..., None]]
    """``(scratch, settings)``: writes the propensity of each label, all 0 before."""
    draw: ClassVar[Callable[..., int]]
    """``(scratch, draw, settings)`` → label, for a learner that draws otherwise than from the propensities."""
    has_widths: ClassVar[bool] = False

    def __init__(self, learner: Learner, regression: Regression, *exploring: float) -> None:
        n_features, n_classes = learner.n_features_in_, len(learner.classes_)
        most = MOST * min(1.0, regression.regularization)  # then A⁻¹b and xᵀA⁻¹x do not overflow
        first, second = (*exploring, 0.0, 0.0)[:2]
        self.settings = RegressionNumbers(regression, (first, second), self.has_widths, most, learner.full_information)
        self.n_classes = n_classes
        width = n_features if regression.kind == FULL_RIDGE else 1
        try:
            check_memory(16 * n_classes * n_features * width)
        except MemoryError as error:
            raise ValueError(f"diagonal must be True for {n_features} features: {error}") from error
        squares, rows = (n_classes, n_features, width), (n_classes, n_features)
        self.arrays = Regressions(
            np.zeros(rows),
            np.zeros(squares),
            np.zeros(squares),
            np.zeros(rows),
            np.zeros(n_classes, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )
        for label in range(n_classes):
            self._start(label)
        self.scratch = self.new_scratch()

    def _start(self, label: int) -> None:
        """Set a class's A to λI."""
        regularization = self.settings.regression.regularization
        for squares, value in ((self.arrays.grams, regularization), (self.arrays.inverses, 1.0 / regularization)):
            own = squares[label]
            if own.shape[1] == 1:
                own[:] = value
            else:
                np.fill_diagonal(own, value)

    def add_class(self) -> None:
        """Add a class without rounds."""
        super().add_class()
        self._start(self.n_classes - 1)

    def new_scratch(self) -> RegressionScratch:
        """Return empty scratch arrays."""
        n, n_features = self.arrays.weights.shape
        scores, projected, widths, below, propensities = np.empty((5, n))
        square, answers, image = np.empty(1), np.empty(1, np.int64), np.empty(n_features)
        return RegressionScratch(scores, projected, widths, square, answers, image, below, propensities)

    def algorithm(self, is_sparse: bool) -> Algorithm:
        """Return the algorithm of the class's way to explore; rows are already dense."""
        kind = type(self)
        return _algorithm(kind.probabilities_of, getattr(kind, "draw", None), self.settings.full_information)

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn as from its own round; the propensity is not needed: the choice of rows does not bias a regression."""
        if truth < 0 and self.settings.full_information:
            return False  # it learns from labels, and this one is unknown
        return self.learn_as_played(row, label, False, correct, truth)

    def check_arrays(self, arrays: Regressions) -> None:
        """Raise unless every A is at least its start, and its inverse at most.

        In the full form nothing else is checked of an inverse: long rows after short ones can make a genuine one
        inaccurate, and it is soon recomputed from A in any case.
        """
        check_finite(arrays.weights, arrays.grams, arrays.inverses, arrays.responses)
        regression, grams, inverses = self.settings.regression, arrays.grams, arrays.inverses
        is_full = regression.kind == FULL_RIDGE
        diagonals = np.diagonal(grams, axis1=1, axis2=2) if is_full else grams[:, :, 0]
        if not (diagonals >= regression.regularization).all():
            raise ValueError("a regression's matrix is less than at the start")
        if is_full:
            for gram, inverse in zip(grams, inverses, strict=True):
                check_symmetric(gram, inverse)
            if np.abs(inverses).max() * regression.regularization > 1.0 + SLACK:
                raise ValueError("the inverse of a regression's matrix is more than at the start")
        elif regression.kind != LOGISTIC and not np.array_equal(inverses, 1.0 / grams):
            raise ValueError("the inverse of a regression's diagonal is another diagonal's")

    def score_rows(self, rows: Rows) -> Floats:
        """Return the prediction of each class's regression."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Floats = dense(rows) @ self.arrays.weights.T
        return scores

    def learned(self) -> dict[str, Floats]:
        """Return the weights, A⁻¹ (or its diagonal; or the summed squares of gradients), and the number of answers."""
        is_first_order = self.settings.regression.kind == LOGISTIC
        squares = self.arrays.grams if is_first_order else self.arrays.inverses
        name = "squares" if is_first_order else "inverses"
        shown = squares[:, :, 0] if squares.shape[2] == 1 and squares.shape[1] != 1 else squares
        heard = self.arrays.answers.astype(float)
        return {"weights": self.arrays.weights.copy(), name: shown.copy(), "heard": heard}


@jit_internal
def _score_row(state: Regressions, x: Floats, scratch: RegressionScratch, settings: RegressionNumbers) -> int:
    square = 0.0
    for j in range(x.shape[0]):
        square += x[j] * x[j]
    if not square < settings.most_square:  # nor NaN
        return UNSCORED
    regression = settings.regression
    scratch.square[0], scratch.answers[0] = square, state.answers[0]
    for i in range(scratch.scores.shape[0]):
        score, width = predicted(state, i, x), 0.0
        if settings.has_widths:
            width = squared_width(state, i, x, square, scratch.image, regression) ** 0.5
        scratch.scores[i], scratch.widths[i] = score, width
        scratch.projected[i] = min(max(score, regression.low), regression.high)
    return ready_if_finite(scratch.scores)


@jit_inline
def _score(state: Regressions, X: Floats, t: int, scratch: RegressionScratch, settings: RegressionNumbers) -> int:
    return _score_row(state, X[t], scratch, settings)


@jit_inline
def _update(
    state: Regressions, X: Floats, t: int, scratch: RegressionScratch, answer: Answer, settings: RegressionNumbers
) -> bool:
    state.answers[0] += 1
    if settings.full_information:
        for i in range(scratch.scores.shape[0]):
            absorb(state, i, X[t], scratch.square[0], i == answer.truth, scratch.image, settings.regression)
    else:
        absorb(state, answer.label, X[t], scratch.square[0], answer.correct, scratch.image, settings.regression)
    return True


@jit_inline
def drawn_label(propensities: Floats, number: float) -> int:
    """Draw a label by its propensity from a uniform number in [0, 1)."""
    total, last = 0.0, 0
    for i in range(propensities.shape[0]):
        if propensities[i] > 0.0:
            total, last = total + propensities[i], i
            if number < total:
                return i
    return last  # rounding: the propensities add up to a little less than 1


@cache
def _algorithm(probabilities: Any, draw_label: Any, full_information: bool) -> Algorithm:
    def write(scratch: RegressionScratch, settings: RegressionNumbers) -> None:
        clear(scratch.propensities)
        probabilities(scratch, settings)

    write = jit_no_refcount(write)

    def draw_by_propensity(scratch: RegressionScratch, draw: Draw, settings: RegressionNumbers) -> int:
        write(scratch, settings)
        return drawn_label(scratch.propensities, uniform(draw))

    chosen = jit_inline(draw_by_propensity) if draw_label is None else draw_label

    def choose(scratch: RegressionScratch, draw: Draw, settings: RegressionNumbers) -> tuple[int, bool]:
        label = chosen(scratch, draw, settings)
        return label, label != highest(scratch.scores)

    return Algorithm(_score, jit_no_refcount(choose), write, _update, full_information=full_information)


@jit_inline
def clipped(score: float) -> float:
    """Return minus a cost, clipped to [−1, 0]."""
    return min(max(score, -1.0), 0.0)


@jit_inline
def mostly_highest(scratch: RegressionScratch, rate: float) -> None:
    """Spread `rate` evenly over the labels, and give the rest to the one with the highest prediction."""
    n = scratch.propensities.shape[0]
    for i in range(n):
        scratch.propensities[i] = rate / n
    scratch.propensities[highest(scratch.scores)] += 1.0 - rate
