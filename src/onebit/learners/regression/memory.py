"""The memory and the game of all learners on regressions."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.engine.jit import frugal, inlined, shared
from onebit.engine.lengths import LEAST, MOST
from onebit.engine.loop import UNSCORED, Game, highest, ready_if_finite
from onebit.engine.randomness import Draw, uniform
from onebit.engine.state import check_finite
from onebit.game import Answer
from onebit.inputs import Floats, Rows, check_number, dense
from onebit.learners.dense_memory import DenseMemory
from onebit.learners.inverses import check_symmetric
from onebit.learners.regression.exploring import (
    CONFIDENT,
    ELIMINATING,
    OPTIMISTIC,
    SAMPLING,
    Exploring,
    RegressionSight,
    drawn_label,
    is_uncertain,
    weigh,
)
from onebit.learners.regression.ridge import (
    FULL_RIDGE,
    LOGISTIC,
    SLACK,
    Regression,
    Regressions,
    absorb,
    predicted,
    squared_width,
)
from onebit.learners.regression.winning import drawn_winner
from onebit.machine_memory import check_memory

_WITH_WIDTHS = (OPTIMISTIC, CONFIDENT, ELIMINATING, SAMPLING)


class RegressionNumbers(NamedTuple):
    """The numbers that the game needs."""

    regression: Regression
    exploring: Exploring
    has_widths: bool
    """Whether `measure` computes them: in the full form that takes the longest."""
    most_square: float
    """The largest ‖x‖² that is taken."""
    hears_label: bool
    """Whether the label is told: then every class learns from every round."""


def check_regularization(value: Any) -> float:
    """Return λ, or raise ValueError."""
    return check_number("regularization", value, above=LEAST, at_most=MOST)


class RegressionMemory(DenseMemory):
    """One regression per class."""

    arrays: Regressions
    may_have_kernel = False
    class_axes: ClassVar[Mapping[str, int]] = MappingProxyType(
        dict.fromkeys(("weights", "grams", "inverses", "responses", "steps"), 0)
    )
    per_class: ClassVar[tuple[str, ...]] = "scores", "projected", "widths", "chances"

    def __init__(
        self, regression: Regression, exploring: Exploring, n_features: int, n_classes: int, hears_label: bool = False
    ) -> None:
        most = MOST * min(1.0, regression.regularization)  # then A⁻¹b and xᵀA⁻¹x are floats
        has_widths = exploring.way in _WITH_WIDTHS
        self.settings = RegressionNumbers(regression, exploring, has_widths, most, hears_label)
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
        self.sight = self.new_sight()

    def _start(self, label: int) -> None:
        """Let a class's A be λI."""
        regularization = self.settings.regression.regularization
        for squares, value in ((self.arrays.grams, regularization), (self.arrays.inverses, 1.0 / regularization)):
            own = squares[label]
            if own.shape[1] == 1:
                own[:] = value
            else:
                np.fill_diagonal(own, value)

    def add_class(self) -> None:
        """Let a class join that has seen nothing."""
        super().add_class()
        self._start(self.n_classes - 1)

    def new_sight(self) -> RegressionSight:
        """Return scratch paper."""
        n, n_features = self.arrays.weights.shape
        scores, projected, widths, below, chances = np.empty((5, n))
        square, heard, image = np.empty(1), np.empty(1, np.int64), np.empty(n_features)
        return RegressionSight(scores, projected, widths, square, heard, image, below, chances)

    def game(self, is_sparse: bool) -> Game:
        """Return the game; rows are dense by now."""
        return _GAME._replace(hears_label=self.settings.hears_label)

    def hear_logged(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Take the round in as one of its own; the chance is not needed: which rows were tried does not bias a fit."""
        if truth < 0 and self.settings.hears_label:
            return False  # it learns from labels, and this one is not known
        return self.hear_as_played(row, label, False, correct, truth)

    def check_arrays(self, arrays: Regressions) -> None:
        """Raise unless every A is no less than at the start, and its inverse no more.

        In the full form nothing else is asked of an inverse: long rows after short ones can cost an honest one all its
        digits, until it is made anew from A. So it is soon enough, whatever a file says.
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
        """Return what each class's regression predicts."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Floats = dense(rows) @ self.arrays.weights.T
        return scores

    def learned(self) -> dict[str, Floats]:
        """Return the weights, A⁻¹ (or its diagonal; or the summed squares of gradients), and the answers heard."""
        is_first_order = self.settings.regression.kind == LOGISTIC
        squares = self.arrays.grams if is_first_order else self.arrays.inverses
        name = "squares" if is_first_order else "inverses"
        shown = squares[:, :, 0] if squares.shape[2] == 1 and squares.shape[1] != 1 else squares
        heard = self.arrays.heard.astype(float)
        return {"weights": self.arrays.weights.copy(), name: shown.copy(), "heard": heard}


@shared
def _look_at(memory: Regressions, x: Floats, sight: RegressionSight, settings: RegressionNumbers) -> int:
    square = 0.0
    for j in range(x.shape[0]):
        square += x[j] * x[j]
    if not square < settings.most_square:  # nor NaN
        return UNSCORED
    regression = settings.regression
    sight.square[0], sight.heard[0] = square, memory.heard[0]
    for i in range(sight.scores.shape[0]):
        score, width = predicted(memory, i, x), 0.0
        if settings.has_widths:
            width = squared_width(memory, i, x, square, sight.image, regression) ** 0.5
        sight.scores[i], sight.widths[i] = score, width
        sight.projected[i] = min(max(score, regression.low), regression.high)
    return ready_if_finite(sight.scores)


@inlined
def _measure(memory: Regressions, X: Floats, t: int, sight: RegressionSight, settings: RegressionNumbers) -> int:
    return _look_at(memory, X[t], sight, settings)


@inlined
def _weigh(sight: RegressionSight, settings: RegressionNumbers) -> None:
    weigh(sight, settings.exploring)


@frugal
def _choose(sight: RegressionSight, draw: Draw, exploring: Exploring) -> int:
    # Quadrature in every round would take most of its time.
    if exploring.way == SAMPLING and is_uncertain(sight):
        return drawn_winner(sight.scores, sight.widths, exploring.strength, draw)
    weigh(sight, exploring)
    return drawn_label(sight.chances, uniform(draw))


@inlined
def _decide(sight: RegressionSight, draw: Draw, settings: RegressionNumbers) -> tuple[int, bool]:
    label = _choose(sight, draw, settings.exploring)
    return label, label != highest(sight.scores)


@inlined
def _hear(
    memory: Regressions, X: Floats, t: int, sight: RegressionSight, answer: Answer, settings: RegressionNumbers
) -> bool:
    memory.heard[0] += 1
    if settings.hears_label:
        for i in range(sight.scores.shape[0]):
            absorb(memory, i, X[t], sight.square[0], i == answer.truth, sight.image, settings.regression)
    else:
        absorb(memory, answer.label, X[t], sight.square[0], answer.correct, sight.image, settings.regression)
    return True


_GAME = Game(_measure, _decide, _weigh, _hear)
