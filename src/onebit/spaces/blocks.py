"""Playing a support set in blocks: scores by matrix products, with the same guesses as round by round.

A block of rows is scored at once against the examples stored so far. Walking through the block, each update's effect is
added to the rows still to come. Such scores differ from those of a single round by rounding (or, where a polynomial
stands in for the kernel, by its error), so each comes with a margin, and a row whose scores are closer to each other or
to zero than their margins is scored again, alone and exactly as a single round would. A rule only compares scores with
each other and with zero, so every guess is the same.
"""

import math
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.engine.jit import jit, jit_inline
from onebit.engine.lengths import LEAST_SQUARE
from onebit.engine.loop import CHANGED, READY, UNSCORED, Record, compile_algorithm, ready_if_finite
from onebit.engine.state import Scratch, unlocked, unscored_error
from onebit.inputs import Floats, Integers
from onebit.kernels import Kernel, Series
from onebit.spaces.rule import Numbers, rule_algorithm

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
_MOST_TERMS = 512  # with more terms, a few hundred examples are scored faster directly
_TILE = 128  # rows at once: terms × 128 numbers stay in the second-level cache


def rows_in_block(screen: "Screen | None") -> int:
    """Return how many rows to score at once."""
    return _ROWS if screen is None else _ROWS_WITH_SCREEN


class BlockScores(NamedTuple):
    """The scores of a block's rows, and how far off they may be."""

    scores: Floats
    margins: Floats
    """The error bound of each class's score."""
    exact: Integers
    """The row whose scores are exact, −1 if none is; one entry."""


class Block:
    """The scores of some rows against a support set that changes meanwhile."""

    def __init__(self, space: "SupportSet", screen: "Screen | None", rows: Floats, expect_many_updates: bool) -> None:
        self.space, self.rows, self.n_updates = space, rows, 0
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

    def play(self, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play the rows, which are a stream's rounds from `start` on; only Python can store an example."""
        algorithm = rule_algorithm(self.space.rule, _known_score, _leave_to_python, pauses=True)
        scratch, settings = self.space.scratch, Numbers(self.space.settings.rule, ())  # scores come from Python
        loop = compile_algorithm(algorithm, BlockScores, Scratch, Numbers).loop
        t, why, X = 0, CHANGED, unlocked(self.rows)
        while why != READY:
            t, why = loop(self.arrays, X, y, t, start, seed, first_round, settings, scratch, record)
            if why == CHANGED:
                self._update(t - 1, scratch.gains)
            elif why != READY and self.arrays.exact[0] != t:  # in doubt: scored exactly
                self.space.score(self.rows[t : t + 1], f"X[{start + t}]")
                self.arrays.scores[t], self.arrays.exact[0] = self.space.scratch.current, t
            elif why != READY:
                raise unscored_error(f"X[{start + t}]")

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

    def _update(self, t: int, gains: Floats) -> None:
        """Store row t, and add what each class gained of it to the rows that follow."""
        row = self.rows[t : t + 1]
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


class Screen:
    """A polynomial that approximates a support set when few features vary: its cost does not grow with the set.

    A kernel close to Σⱼ aⱼ⟨x,x'⟩ʲ makes a class's score close to a polynomial in x, whose coefficient of the monomial
    x^α is a_{|α|}·multinomial(α)·Σₛ cₛ·xₛ^α. In three dimensions degree 8 has 165 monomials, and the error for the
    rational kernel is 2·10⁻⁵ for each unit of coefficient: enough to decide nearly every round without the examples.

    Features that are the same in every row, such as a column of ones, need no monomials: with each example xₛ they add
    the same bₛ to ⟨x,xₛ⟩, and Σⱼ aⱼ(z + bₛ)ʲ is a polynomial in the product z of the other features.
    """

    def __init__(self, series: Series, row: Floats, varies: npt.NDArray[np.bool_], n_classes: int) -> None:
        exponents = [
            powers
            for degree in range(len(series.coefficients))
            for powers in combinations_with_replacement(range(np.count_nonzero(varies)), degree)
        ]
        place = {powers: m for m, powers in enumerate(exponents)}
        self.n_terms = len(exponents)
        self._series, self._row, self._varies = series, row.copy(), varies
        # Monomials in order of degree: each is one made before, times one more variable.
        self._parents = np.array([place[powers[:-1]] if powers else 0 for powers in exponents])
        self._variables = np.array([powers[-1] if powers else 0 for powers in exponents])
        self._degrees = np.array([len(powers) for powers in exponents])
        self._scale = np.array([float(_orderings(powers)) for powers in exponents])
        self._weights = np.zeros((self.n_terms, n_classes))
        self._n_points = 0

    @classmethod
    def for_kernel(
        cls, kernel: Kernel, rows: Floats, n_classes: int, varies: npt.NDArray[np.bool_] | None = None
    ) -> "Screen | None":
        """Return an empty screen, or None if the kernel has no short polynomial in the features that vary.

        Features that differ among `rows` vary, and those in `varies`.
        """
        differs = (rows != rows[0]).any(axis=0)
        varies = differs if varies is None else differs | varies
        n = int(np.count_nonzero(varies))
        series = kernel.series(n)
        if series is None or math.comb(len(series.coefficients) - 1 + n, n) > _MOST_TERMS:
            return None
        return cls(series, rows[0], varies, n_classes)

    def fitting(self, kernel: Kernel, rows: Floats) -> "Screen | None":
        """Return a screen for these rows and those before: this one, unless another feature varies."""
        fixed = ~self._varies
        if (rows[:, fixed] == self._row[fixed]).all():
            return self
        varies = self._varies | (rows[0] != self._row)
        return Screen.for_kernel(kernel, rows, self._weights.shape[1], varies)

    def catch_up(self, points: Floats, coefficients: Floats) -> None:
        """Add the examples that were stored since the last call."""
        for start in range(self._n_points, len(points), _TILE):
            some = points[start : start + _TILE]
            terms = np.empty((self.n_terms, len(some)))
            _monomials(np.ascontiguousarray(some[:, self._varies].T), self._parents, self._variables, terms)
            same = some[:, ~self._varies] @ self._row[~self._varies]
            terms *= _moved(self._series.coefficients, same)[self._degrees]
            self._weights += (terms * self._scale[:, None]) @ coefficients[start : start + _TILE]
        self._n_points = len(points)

    def score_rows(self, rows: Floats) -> Floats:
        """Return every row's score for every class, within `error` times the class's total coefficient."""
        scores = np.empty((len(rows), self._weights.shape[1]))
        columns = np.flatnonzero(self._varies)
        _score_tiles(unlocked(rows), columns, self._parents, self._variables, self._weights, scores)
        return scores

    def error(self, radius: float, rounding: float) -> float:
        """Return the largest error of a score for each unit of coefficient, on a ball of that radius."""
        powers = radius ** (2.0 * np.arange(len(self._series.coefficients)))
        size = float(np.abs(self._series.coefficients) @ powers)
        # The product of the constant features enters every power; 64 is an allowance, as in blocks.
        n_fixed = len(powers) * np.count_nonzero(~self._varies)
        return self._series.error + rounding * float(self.n_terms + self._n_points + n_fixed + 64) * size


def _moved(coefficients: Floats, by: Floats) -> Floats:
    """Return the coefficients of Σⱼ aⱼ(z + b)ʲ as a polynomial in z, one column for each b.

    >>> _moved(np.array([0.0, 0.0, 1.0]), np.array([3.0])).ravel().tolist()
    [9.0, 6.0, 1.0]
    """
    n = len(coefficients)
    moved = np.zeros((n, len(by)))
    for i in range(n):
        for j in range(i, n):
            moved[i] += coefficients[j] * math.comb(j, i) * by ** (j - i)
    return moved


def _orderings(powers: tuple[int, ...]) -> int:
    """Return how many sequences of variables make the same monomial (a multinomial coefficient).

    >>> _orderings((0, 0, 1))
    3
    """
    counts = [powers.count(variable) for variable in set(powers)]
    return math.factorial(len(powers)) // math.prod(math.factorial(count) for count in counts)


@jit
def _monomials(columns: Floats, parents: Integers, variables: Integers, terms: Floats) -> None:
    """Write every monomial of every column; a monomial is its parent times one more variable."""
    for r in range(terms.shape[1]):
        terms[0, r] = 1.0
    for m in range(1, terms.shape[0]):
        parent, variable = parents[m], variables[m]
        for r in range(terms.shape[1]):
            terms[m, r] = terms[parent, r] * columns[variable, r]


@jit
def _score_tiles(
    rows: Floats, features: Integers, parents: Integers, variables: Integers, weights: Floats, scores: Floats
) -> None:
    n_terms, n_classes = weights.shape
    columns = np.zeros((features.shape[0], _TILE))
    terms = np.empty((n_terms, _TILE))
    totals = np.empty((n_classes, _TILE))
    for start in range(0, rows.shape[0], _TILE):
        n = min(_TILE, rows.shape[0] - start)
        for r in range(n):
            for j in range(features.shape[0]):
                columns[j, r] = rows[start + r, features[j]]
        _monomials(columns, parents, variables, terms)
        totals[:] = 0.0
        for m in range(n_terms):
            for i in range(n_classes):
                weight = weights[m, i]
                for r in range(_TILE):
                    totals[i, r] += weight * terms[m, r]
        for r in range(n):
            for i in range(n_classes):
                scores[start + r, i] = totals[i, r]
