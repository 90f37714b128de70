"""The space of a kernel: stored examples, and how much of each every class has gained.

One store is shared by all classes: row s holds an example, ``coefficients[s, i]`` what class i gained of it, and class
i's score is Σₛ coefficients[s, i]·k(xₛ, x). The same example may be stored many times (the paper's sets J are
multisets). The store doubles when it is full.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.engine.jit import jit, jit_inline
from onebit.engine.loop import FULL, UNSCORED, Algorithm, Record, ready_if_finite
from onebit.engine.state import check_stored, unlocked
from onebit.inputs import Floats, Integers, Rows, check_finite, dense, take
from onebit.kernels import Kernel, Value, is_lost
from onebit.spaces.blocks import Block, Screen, rows_in_block
from onebit.spaces.rule import Numbers, Rule, Space, rule_algorithm

_FIRST_ROWS = 256  # rows that show which features vary; others may show later
_FIRST_CAPACITY = 16  # doubled when full: a copy per doubling, none per round
# Above one update in sixteen rounds, computing all kernel values within a block at once is cheaper.
_MANY_UPDATES = 1 / 16


class Examples(NamedTuple):
    """The arrays of a kernel learner; rows from `size` on are spare capacity."""

    points: Floats
    squares: Floats
    """Squared lengths."""
    coefficients: Floats
    """One column per class."""
    totals: Floats
    """Σₛ |coefficients[s, i]| for every class i: the scale of rounding errors."""
    radius: Floats
    """The length of the longest example; one entry."""
    size: Integers
    """The number of examples; one entry."""


class SupportSet(Space):
    """Examples with a coefficient per class, and a kernel."""

    arrays: Examples
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"points": ("example", ""), "squares": ("example",), "coefficients": ("example", "class"), "totals": ("class",)}
    )
    _screen: Screen | None = None
    _expects_many_updates = False

    def __init__(
        self, kernel: Kernel, rule: Rule, settings: tuple[float, ...], n_features: int, n_classes: int
    ) -> None:
        self.kernel, self.rule, self.n_classes = kernel, rule, n_classes
        self.settings = Numbers(settings, kernel.parameters)
        self.scores_in_python = type(kernel).value is None
        self.arrays = Examples(
            points=np.zeros((_FIRST_CAPACITY, n_features)),
            squares=np.zeros(_FIRST_CAPACITY),
            coefficients=np.zeros((_FIRST_CAPACITY, n_classes)),
            totals=np.zeros(n_classes),
            radius=np.zeros(1),
            size=np.zeros(1, dtype=np.int64),
        )
        self.scratch = self.new_scratch()

    def algorithm(self, is_sparse: bool, rule: Rule | None = None) -> Algorithm:
        """Return a rule's algorithm for one round at a time; streams are played in blocks."""
        value = type(self.kernel).value
        return rule_algorithm(rule or self.rule, _filled_score if value is None else _exact_score(value), store)

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
        """Return every row's scores by matrix products."""
        with np.errstate(invalid="ignore", over="ignore"):  # the caller checks for scores that are not finite
            return self.kernel.combine(dense(rows), self.points, self.coefficients)

    def make_room(self, rows: Rows, t: int) -> None:
        """Double the capacity."""
        self.arrays = self.enlarged({"example": 2 * len(self.arrays.squares)})

    def add(self, row: Floats, gains: Floats) -> None:
        """Store a prepared row with its gains."""
        if self.size == len(self.arrays.squares):
            self.make_room(row, 0)
            self.renew()
        _store_one(self.arrays, unlocked(row), gains)

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, record: Record) -> None:
        """Play a whole stream in blocks of rows that are scored together."""
        some = self.prepare(take(X, 0, _FIRST_ROWS))
        self._screen = Screen.for_kernel(self.kernel, some, self.n_classes)
        self._expects_many_updates = False
        try:
            super().play(X, y, seed, first_round, record)
        finally:
            self._screen = None  # it belongs to this stream, not to the state

    def rows_at_once(self, n_features: int) -> int:
        """Return the number of rows in a block."""
        return rows_in_block(self._screen)

    def play_prepared(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play a block."""
        if self._screen is not None:
            self._screen = self._screen.fitting(self.kernel, dense(rows))
        block = Block(self, self._screen, dense(rows), self._expects_many_updates)
        block.play(y, start, seed, first_round, record)
        self._expects_many_updates = block.n_updates > _MANY_UPDATES * len(y)

    def bookmark(self) -> Examples:
        """Return what `restore` needs; the store is shared, because examples are only appended."""
        now = self.arrays
        return now._replace(totals=now.totals.copy(), radius=now.radius.copy(), size=now.size.copy())

    def filled(self) -> dict[str, int]:
        """Return how many examples are stored."""
        return {"example": self.size}

    def check_arrays(self, arrays: Examples) -> None:
        """Raise unless the arrays are as long as `size`."""
        check_stored(arrays.size[0], len(arrays.squares))

    def learned(self) -> dict[str, Floats]:
        """Return the examples and their coefficients, one column per class."""
        return {"support": self.points.copy(), "coefficients": self.coefficients.copy()}


@jit_inline
def store(state: Examples, X: Floats, t: int, gains: Floats) -> None:
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
def _store_one(state: Examples, row: Floats, gains: Floats) -> None:
    store(state, row, 0, gains)


@cache
def _exact_score(value: Value) -> Callable[..., int]:
    """Return the compiled sum over the store for one kernel, in the order of the store."""

    @jit_inline
    def score(state: Examples, X: Floats, t: int, parameters: Any, out: Floats) -> int:
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
def _filled_score(state: Examples, _X: Floats, _t: int, _parameters: Any, out: Floats) -> int:
    """Check the scores that Python has computed, for a kernel that is a Python function."""
    return FULL if state.size[0] == state.squares.shape[0] else ready_if_finite(out)


@jit
def _add_up(values: Floats, coefficients: Floats, out: Floats) -> None:
    for s in range(values.shape[0]):
        for i in range(out.shape[0]):
            out[i] += values[s] * coefficients[s, i]
