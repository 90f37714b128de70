"""The space of a kernel: stored examples, and how much of each every class has gained.

Class i's score is Σₛ coefficients[s, i]·k(xₛ, x). The same example may be stored many times (the paper's sets J are
multisets).

A stream is played in blocks of rows, with the same guesses as round by round. A block is scored at once, and each
update's effect is added to the rows still to come. Such scores are off by rounding (or by the error of a polynomial
that stands in for the kernel), at most by a margin. A row whose scores are closer to each other or to zero than their
margins is scored again, alone and exactly: a rule only compares scores with each other and with zero.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.engine.algorithm import CHANGED, FULL, READY, UNSCORED, Algorithm, Record, ready_if_finite
from onebit.engine.jit import jit, jit_inline
from onebit.engine.scaling import LEAST_SQUARE
from onebit.engine.state import Scratch, check_stored, compile_algorithm
from onebit.inputs import ENTRIES_AT_ONCE, Floats, Integers, Rows, check_finite, dense, unlocked
from onebit.kernels import Kernel, Value, is_lost
from onebit.spaces.rule import Numbers, Rule, Space, rule_algorithm
from onebit.spaces.screen import Screen

_FIRST_CAPACITY = 16  # doubled when full: a copy per doubling, none per round
# A block must be long enough for a fast product and short enough that few of its rows are changed by its own updates.
_ROWS = 256
# A polynomial's scores cost the same however large the store is: there a block only amortises the Python overhead.
_ROWS_WITH_SCREEN = 4096
# Above one update in sixteen rounds, computing all kernel values within a block at once is cheaper.
_MANY_UPDATES = 1 / 16
# A sum of n products is off by at most n·2⁻⁵³ times the sum of their sizes; 4 covers the product, the kernel and slack.
_ROUNDING = 4.0 * 2.0**-53
_SPARE_TERMS = 64  # allowance for terms that are not counted one by one


class _Examples(NamedTuple):
    """The arrays of a kernel learner; rows from `size` on are spare capacity."""

    points: Floats
    squares: Floats  # squared lengths
    coefficients: Floats  # one column per class
    totals: Floats  # Σₛ |coefficients[s, i]| for every class i: the scale of rounding errors
    radius: Floats  # the length of the longest example; one entry
    size: Integers  # the number of examples; one entry


class SupportSet(Space):
    """Examples with a coefficient per class, and a kernel."""

    arrays: _Examples
    may_have_kernel = True
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "points": ("example", ""),
        "squares": ("example",),
        "coefficients": ("example", "class"),
        "totals": ("class",),
    }
    _screen: Screen | None = None
    _expects_many_updates = False

    def __init__(
        self, kernel: Kernel, rule: Rule, settings: tuple[float, ...], n_features: int, n_classes: int
    ) -> None:
        self.kernel, self.rule, self.scores_in_python = kernel, rule, type(kernel).value is None
        points, squares = np.zeros((_FIRST_CAPACITY, n_features)), np.zeros(_FIRST_CAPACITY)
        coefficients, totals = np.zeros((_FIRST_CAPACITY, n_classes)), np.zeros(n_classes)
        arrays = _Examples(points, squares, coefficients, totals, np.zeros(1), np.zeros(1, dtype=np.int64))
        super().__init__(arrays, Numbers(settings, kernel.parameters), n_classes)

    def algorithm(self, is_sparse: bool, rule: Rule | None = None) -> Algorithm:
        value = type(self.kernel).value
        return rule_algorithm(rule or self.rule, _filled_score if value is None else _exact_score(value), _store)

    def fill(self, row: Rows) -> None:
        """Write the scores, added up in the order of the store."""
        self.scratch.current[:] = 0.0
        if self.size:
            _add_up(self.kernel.matrix(dense(row), self.points)[0], self.arrays.coefficients, self.scratch.current)

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.arrays.size[0])

    @property
    def points(self) -> Floats:
        """The stored examples, oldest first."""
        return self.arrays.points[: self.size]

    @property
    def coefficients(self) -> Floats:
        """How much of each example every class has gained."""
        return self.arrays.coefficients[: self.size]

    def prepare(self, rows: Rows) -> Floats:
        """Return dense rows that the kernel accepts."""
        ready = dense(rows)
        check_finite(ready, "features")
        return self.kernel.prepare(ready)

    def score_rows(self, rows: Rows) -> Floats:
        with np.errstate(invalid="ignore", over="ignore"):  # the caller checks for scores that are not finite
            ready, out = dense(rows), np.zeros((rows.shape[0], self.n_classes))
            at_once = max(1, ENTRIES_AT_ONCE // max(1, self.size))
            for start in range(0, len(out) if self.size else 0, at_once):
                some = slice(start, start + at_once)
                out[some] = self.kernel.matrix(ready[some], self.points) @ self.coefficients
        return out

    def add(self, row: Floats, gains: Floats) -> None:
        """Store a prepared row with its gains."""
        if self.size == len(self.arrays.squares):
            self.make_room(row, 0)
            self.renew()
        _store_one(self.arrays, unlocked(row), gains)

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, record: Record, first: int = 0) -> None:
        self._screen = Screen.for_kernel(self.kernel, X, self.n_classes)
        self._expects_many_updates = False
        try:
            super().play(X, y, seed, first_round, record, first)
        finally:
            self._screen = None  # it belongs to this stream, not to the state

    def rows_at_once(self, n_features: int) -> int:
        return _ROWS if self._screen is None else _ROWS_WITH_SCREEN

    def play_prepared(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play a block."""
        block = _Block(self, self._screen, dense(rows), self._expects_many_updates)
        block.play(y, start, seed, first_round, record)
        self._expects_many_updates = block.n_updates > _MANY_UPDATES * len(y)

    def bookmark(self) -> _Examples:
        # The store is shared: examples are only appended.
        now = self.arrays
        return now._replace(totals=now.totals.copy(), radius=now.radius.copy(), size=now.size.copy())

    def filled(self) -> dict[str, int]:
        return {"example": self.size}

    def check_arrays(self, arrays: _Examples) -> None:
        check_stored(arrays.size[0], len(arrays.squares))

    def learned(self) -> dict[str, Floats]:
        return {"support": self.points.copy(), "coefficients": self.coefficients.copy()}


@jit_inline
def _store(state: _Examples, X: Floats, t: int, gains: Floats) -> None:
    """Store row t with its gains; there must be room."""
    s, square = state.size[0], 0.0
    for j in range(X.shape[1]):
        state.points[s, j] = X[t, j]
        square += X[t, j] * X[t, j]
    state.squares[s] = square
    for i in range(gains.shape[0]):
        state.coefficients[s, i] = gains[i]
        state.totals[i] += abs(gains[i])
    # Blocks need totals and radius for their error bounds.
    state.radius[0] = max(state.radius[0], square**0.5)
    state.size[0] = s + 1


@jit
def _store_one(state: _Examples, row: Floats, gains: Floats) -> None:
    _store(state, row, 0, gains)


@cache
def _exact_score(value: Value) -> Callable[..., int]:
    """Return the compiled sum over the store for one kernel, in the order of the store."""

    @jit_inline
    def score(state: _Examples, X: Floats, t: int, parameters: Any, out: Floats) -> int:
        size, square = state.size[0], 0.0
        if size == state.squares.shape[0]:
            return FULL
        for j in range(X.shape[1]):
            square += X[t, j] * X[t, j]
        if is_lost(value(square, square, square, parameters), square, X, t):
            return UNSCORED
        for i in range(out.shape[0]):
            out[i] = 0.0
        for s in range(size):  # in the order of the store, so that every engine gets identical results
            dot = 0.0
            for j in range(X.shape[1]):
                dot += X[t, j] * state.points[s, j]
            k = value(dot, square, state.squares[s], parameters)
            for i in range(out.shape[0]):
                out[i] += k * state.coefficients[s, i]
        return ready_if_finite(out)

    return score


@jit_inline
def _filled_score(state: _Examples, _X: Floats, _t: int, _parameters: Any, out: Floats) -> int:
    """Check the scores that Python has computed, for a kernel that is a Python function."""
    return FULL if state.size[0] == state.squares.shape[0] else ready_if_finite(out)


@jit
def _add_up(values: Floats, coefficients: Floats, out: Floats) -> None:
    for s in range(values.shape[0]):
        for i in range(out.shape[0]):
            out[i] += values[s] * coefficients[s, i]


# A block.


class _BlockScores(NamedTuple):
    """The scores of a block's rows, and how far off they may be."""

    scores: Floats
    margins: Floats  # the error bound of each class's score
    exact: Integers  # the row whose scores are exact, −1 if none is; one entry


class _Block:
    """The scores of some rows against a support set that changes meanwhile."""

    def __init__(self, space: SupportSet, screen: Screen | None, rows: Floats, expect_many_updates: bool) -> None:
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
        self.arrays = _BlockScores(scores, np.zeros(scores.shape[1]), np.array([-1]))
        self._gram = self._compared(rows, rows) if expect_many_updates else None
        self._score_margins()

    def play(self, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play the rows, which are a stream's rounds from `start` on; only Python can store an example."""
        algorithm = rule_algorithm(self.space.rule, _known_score, _leave_to_python, pauses=True)
        scratch, settings = self.space.scratch, Numbers(self.space.settings.rule, ())  # scores come from Python
        loop = compile_algorithm(algorithm, _BlockScores, Scratch, Numbers).loop
        t, why, X = 0, CHANGED, unlocked(self.rows)
        while why != READY:
            t, why = loop(self.arrays, X, y, t, start, seed, first_round, settings, scratch, record)
            if why == CHANGED:
                self._update(t - 1, scratch.gains)
            elif why != READY and self.arrays.exact[0] != t:  # in doubt: scored exactly
                self.space.score(self.rows[t : t + 1], f"X[{start + t}]")
                self.arrays.scores[t], self.arrays.exact[0] = self.space.scratch.current, t
            elif why != READY:
                raise self.space.unscored_error(f"X[{start + t}]")

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
def _known_score(state: _BlockScores, _X: Floats, t: int, _kernel: Any, out: Floats) -> int:
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
def _leave_to_python(_state: _BlockScores, _X: Floats, _t: int, _gains: Floats) -> None:
    """Do nothing: the loop pauses after a change, and `Block` stores the row."""


@jit
def _spread(values: Floats, gains: Floats, scores: Floats, first: int) -> None:
    for j in range(values.shape[0]):
        for i in range(gains.shape[0]):
            scores[first + j, i] += values[j] * gains[i]
