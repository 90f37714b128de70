"""Playing a support set in blocks: scores by matrix products, with the same guesses as round by round.

A block of rows is scored at once against the examples stored so far. Walking through the block, each update's effect is
added to the rows still to come. Such scores differ from those of a single round by rounding (or, where a polynomial
stands in for the kernel, by its error), so each comes with a margin, and a row whose scores are closer to each other or
to zero than their margins is scored again, alone and exactly as a single round would. A rule only compares scores with
each other and with zero, so every guess is the same.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onebit.engine.jit import jit, jit_inline
from onebit.engine.lengths import LEAST_SQUARE
from onebit.engine.loop import CHANGED, UNSCORED, Algorithm, ready_if_finite
from onebit.engine.state import Playable
from onebit.inputs import Floats, Integers, Rows
from onebit.spaces.base import Numbers, rule_algorithm
from onebit.spaces.screen import Screen

if TYPE_CHECKING:
    from onebit.spaces.support_set import SupportSet

# A block must be long enough for a fast product and short enough that few of its rows are changed by its own updates.
_ROWS = 256
# A polynomial's scores cost the same however large the store is: there a block only amortises the Python overhead.
_ROWS_WITH_SCREEN = 4096
# A sum of n products is off by at most n·2⁻⁵³ times the sum of their sizes; 4 covers the product, the kernel and slack.
_ROUNDING = 4.0 * 2.0**-53
# Allowance for terms that are not counted one by one.
_SPARE_TERMS = 64


def rows_in_block(screen: Screen | None) -> int:
    """Return how many rows to score at once."""
    return _ROWS if screen is None else _ROWS_WITH_SCREEN


class BlockScores(NamedTuple):
    """The scores of a block's rows, and how far off they may be."""

    scores: Floats
    margins: Floats
    """The error bound of each class's score."""
    exact: Integers
    """The row whose scores are exact, −1 if none is; one entry."""


class Block(Playable):
    """The scores of some rows against a support set that changes meanwhile."""

    def __init__(self, space: "SupportSet", screen: Screen | None, rows: Floats, expect_many_updates: bool) -> None:
        self.space, self.rows, self.scratch = space, rows, space.scratch
        self.settings = Numbers(space.settings.rule, ())  # scores come from Python: no kernel in the loop
        self.n_updates = 0
        squares = np.einsum("ij,ij->i", rows, rows)
        self._radius = float(np.sqrt(squares.max()))
        # A small store is scored faster than a long polynomial.
        self._screen = screen if screen is not None and screen.n_terms < 2 * space.size else None
        if self._screen is not None:
            self._screen.catch_up(space.points, space.coefficients)
            scores = self._screen.score_rows(rows)
        else:
            scores = space.score_rows(rows)
        scores[squares < LEAST_SQUARE] = np.nan  # the products underflow: such rows are scored exactly
        self.arrays = BlockScores(scores, np.zeros(scores.shape[1]), np.array([-1]))
        self._gram = self._compared(rows, rows) if expect_many_updates else None
        self._score_margins()

    def algorithm(self, is_sparse: bool) -> Algorithm:
        """Return the rule's algorithm on precomputed scores; only Python can store an example."""
        return rule_algorithm(self.space.rule, _known_score, _leave_to_python, pauses=True)

    def _score_margins(self) -> None:
        space, rows = self.space, self.rows
        # NumPy's numbers overflow to infinity where Python's raise: then every row is scored exactly, which is right.
        radius: Any = np.float64(max(self._radius, float(space.arrays.radius[0])))
        terms = rows.shape[1] + space.size + len(rows) + _SPARE_TERMS
        totals = space.arrays.totals
        with np.errstate(over="ignore", invalid="ignore"):
            error = _ROUNDING * terms * space.kernel.sensitivity(radius)
            if self._screen is not None:
                error += self._screen.error(radius, _ROUNDING)
            if not np.isfinite(error):
                self.arrays.margins[:] = np.inf
            else:
                # A class that has gained nothing has a score of exactly 0, however long the rows are.
                self.arrays.margins[:] = np.where(totals > 0.0, error * totals, 0.0)

    def _settle(self, why: int, rows: Rows, t: int, named: Rows | str) -> None:
        """Score a doubtful row exactly, or apply the update of row t−1."""
        if why == CHANGED:
            self._update(t - 1)
        elif self.arrays.exact[0] != t:
            self.space.score(self.rows[t : t + 1], named)
            self.arrays.scores[t], self.arrays.exact[0] = self.space.scratch.current, t
        else:
            super()._settle(why, rows, t, named)

    def _update(self, t: int) -> None:
        """Store row t, and add what each class gained of it to the rows that follow."""
        row, gains = self.rows[t : t + 1], self.scratch.gains
        self.n_updates += 1
        self.space.add(row, gains)
        self._score_margins()
        if t + 1 < len(self.rows):  # rows before t were played already
            later = slice(t + 1, None)
            values = self._compared(row, self.rows[later])[0] if self._gram is None else self._gram[t, later]
            _spread(values, gains, self.arrays.scores, t + 1)

    def _compared(self, some: Floats, others: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # rows with such values are scored exactly
            return self.space.kernel.matrix(some, others)


@jit_inline
def _known_score(state: BlockScores, _X: Floats, t: int, _kernel: Any, out: Floats) -> int:
    """Write row t's scores, if they are exact or accurate enough."""
    for i in range(out.shape[0]):
        out[i] = state.scores[t, i]
    if t != state.exact[0] and _is_in_doubt(out, state.margins):
        return UNSCORED
    return ready_if_finite(out)


@jit_inline
def _is_in_doubt(scores: Floats, margins: Floats) -> bool:
    """Return whether a comparison of two scores, or of one with zero, could have another result without rounding."""
    doubt = False  # no early return: without branches the comparisons are vectorised
    for i in range(margins.shape[0]):
        if margins[i] > 0.0:
            doubt |= abs(scores[i]) <= margins[i]
            for j in range(margins.shape[0]):
                if j != i:
                    doubt |= abs(scores[i] - scores[j]) <= margins[i] + margins[j]
    return doubt


@jit_inline
def _leave_to_python(_state: BlockScores, _X: Floats, _t: int, _gains: Floats) -> None:
    """Do nothing: the loop pauses after a change, and `Block` stores the row."""


@jit
def _spread(values: Floats, gains: Floats, scores: Floats, first: int) -> None:
    for j in range(values.shape[0]):
        for i in range(gains.shape[0]):
            scores[first + j, i] += values[j] * gains[i]
