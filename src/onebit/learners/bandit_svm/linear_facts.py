"""Facts in the linear space: one weight vector per class, and the latest examples to replay.

Rows are divided by their length and kept as lists of entries, so dense and sparse rows are the same rows. When the
budget is full the oldest example makes room. Its share stays in the weights: where they are explicit, projecting a
forgotten example costs nothing, and the guarantee holds whatever the budget.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from onebit.compiled import compiled, frugal, inlined
from onebit.inputs import Floats, Integers, Rows, SparseRows, unlocked
from onebit.learners.bandit_svm.drift import new_watch
from onebit.learners.bandit_svm.facts import SIZE, FactNumbers, Settings, Signs, fact_game, stepped
from onebit.lengths import shorten
from onebit.loop import FULL, Game, Memory, grown, ready_if_finite

NEXT = 1  # behind SIZE in `counts`
_FIRST_CAPACITY = 16  # doubled when full, up to the budget
# Most visits find nothing to do: this many of them cost about as much as one replay with a kernel.
_VISITS_PER_REPLAY = 50


class LinearFacts(NamedTuple):
    """What was learned: weights, and one place per stored example."""

    weights: Floats
    """One row per feature, one column per class."""
    columns: Integers
    """Where each example has entries (capacity × width)."""
    values: Floats
    lengths: Integers
    """How many entries each example has."""
    squares: Floats
    signs: Signs
    """What is proved (K × capacity)."""
    alphas: Floats
    """The dual coefficients, never negative (K × capacity)."""
    totals: Floats
    """The sum of each class's alphas."""
    cursors: Integers
    """Where each class's replays go on."""
    counts: Integers
    """How many examples are stored, and the place of the oldest once the budget is full."""
    watch: Floats
    """How the guesses went, for `is_outdated`."""


class LinearSight(NamedTuple):
    """What is known about one round: its row as entries, divided by the row's length."""

    scores: Floats
    signs: Signs
    """What the answer proves."""
    columns: Integers
    values: Floats
    length: Integers
    """How many entries there are, the only entry."""
    itself: Floats
    """The squared length, 1 but for rounding and for a row of zeros; the only entry."""
    chances: Floats


class LinearFactMemory(Memory):
    """One weight vector per class, on rows divided by their length."""

    arrays: LinearFacts

    def __init__(self, settings: Settings, hears_label: bool, n_features: int, n_classes: int) -> None:
        self.settings, self._hears_label = FactNumbers(settings, ()), hears_label
        self.arrays = new_facts(n_features, n_classes, min(settings.budget, _FIRST_CAPACITY), width=1)
        self.sight = self.new_sight()

    def new_sight(self) -> LinearSight:
        """Return scratch paper."""
        n_classes, width = len(self.arrays.totals), self.arrays.columns.shape[1]
        return LinearSight(
            scores=np.empty(n_classes),
            signs=np.empty(n_classes, np.int8),
            columns=np.empty(width, np.int64),
            values=np.empty(width),
            length=np.empty(1, np.int64),
            itself=np.empty(1),
            chances=np.empty(n_classes),
        )

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.arrays.counts[SIZE])

    def game(self, is_sparse: bool) -> Game:
        """Return the game on dense or on sparse rows."""
        return linear_game(is_sparse, self._hears_label)

    def make_room(self, rows: Rows, t: int) -> None:
        """Double the places if they are full, up to the budget; widen them if a row is longer than any before."""
        now, n_classes, n = self.arrays, len(self.arrays.totals), len(self.arrays.squares)
        if now.counts[SIZE] == n:
            n = min(self.settings.facts.budget, 2 * n)
        width = max(now.columns.shape[1], _longest(rows))
        self.arrays = now._replace(
            columns=grown(now.columns, (n, width)),
            values=grown(now.values, (n, width)),
            lengths=grown(now.lengths, (n,)),
            squares=grown(now.squares, (n,)),
            signs=grown(now.signs, (n_classes, n)),
            alphas=grown(now.alphas, (n_classes, n)),
        )

    def score_rows(self, rows: Rows) -> Floats:
        """Return ⟨wᵢ, x⟩/‖x‖ for every row and class."""
        out, width = np.empty((rows.shape[0], len(self.arrays.totals))), max(1, _longest(rows))
        read = _reading(isinstance(rows, SparseRows))
        read(self.arrays.weights, unlocked(rows), np.empty(width, dtype=np.int64), np.empty(width), out)
        return out

    def learned(self) -> dict[str, Floats]:
        """Return the weights, one row per class."""
        return {"weights": self.arrays.weights.T.copy()}


def new_facts(n_features: int, n_classes: int, capacity: int, width: int) -> LinearFacts:
    """Return an empty memory, with room for examples of so many entries."""
    return LinearFacts(
        weights=np.zeros((n_features, n_classes)),
        columns=np.zeros((capacity, width), dtype=np.int64),
        values=np.zeros((capacity, width)),
        lengths=np.zeros(capacity, dtype=np.int64),
        squares=np.zeros(capacity),
        signs=np.zeros((n_classes, capacity), dtype=np.int8),
        alphas=np.zeros((n_classes, capacity)),
        totals=np.zeros(n_classes),
        cursors=np.zeros(n_classes, dtype=np.int64),
        counts=np.zeros(2, dtype=np.int64),
        watch=new_watch(),
    )


def _longest(rows: Rows) -> int:
    """Return the most entries that a row can have."""
    return int(np.diff(rows.starts).max()) if isinstance(rows, SparseRows) else int(rows.shape[1])


@inlined
def dense_width(X: Floats, _t: int) -> int:
    """Return the most entries that row t can have."""
    width: int = X.shape[1]
    return width


@inlined
def sparse_width(X: SparseRows, t: int) -> int:
    """Return the most entries that row t can have."""
    width: int = X.starts[t + 1] - X.starts[t]
    return width


@inlined
def dense_entries(X: Floats, t: int, columns: Integers, values: Floats) -> int:
    """Write a dense row's entries and return how many there are."""
    n = 0
    for j in range(X.shape[1]):
        if X[t, j] != 0.0:
            columns[n], values[n] = j, X[t, j]
            n += 1
    return n


@inlined
def sparse_entries(X: SparseRows, t: int, columns: Integers, values: Floats) -> int:
    """Write a sparse row's entries and return how many there are."""
    n = 0
    for entry in range(X.starts[t], X.starts[t + 1]):
        if X.values[entry] != 0.0:
            columns[n], values[n] = X.columns[entry], X.values[entry]
            n += 1
    return n


@inlined
def score(weights: Floats, columns: Integers, values: Floats, n: int, out: Floats) -> None:
    """Write every class's score of a row, given by its entries."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for e in range(n):
        value, j = values[e], columns[e]
        for i in range(out.shape[0]):
            out[i] += value * weights[j, i]


@frugal
def step_on(memory: LinearFacts, i: int, s: int, settings: Settings) -> bool:
    """Take the step on the fact about class i and example s; say whether its coefficient changed beyond tolerance."""
    columns, values, sign, old = memory.columns[s], memory.values[s], memory.signs[i, s], memory.alphas[i, s]
    total = 0.0
    for e in range(memory.lengths[s]):
        total += values[e] * memory.weights[columns[e], i]
    new = stepped(old, sign, total, memory.squares[s], settings.softness)
    # Smaller steps would only polish, and replays would never end. With a small C all steps are small: none is longer
    # than what its fact lacks, divided by the softness.
    if abs(new - old) * max(1.0, settings.softness) <= settings.tolerance:
        return False
    memory.alphas[i, s] = new
    memory.totals[i] += new - old
    for e in range(memory.lengths[s]):
        memory.weights[columns[e], i] += sign * (new - old) * values[e]
    return True


@frugal
def replay(memory: LinearFacts, i: int, settings: Settings) -> None:
    """Visit class i's facts in turn, from where the last replay stopped, until none is left that needs a step."""
    size, s, quiet = memory.counts[SIZE], memory.cursors[i], 0
    for _ in range(_VISITS_PER_REPLAY * settings.replays):
        s = s + 1 if s + 1 < size else 0
        if memory.signs[i, s] != 0 and step_on(memory, i, s, settings):
            quiet = 0
        else:
            quiet += 1  # a whole turn without a step: all facts are satisfied
            if quiet == size:
                break
    memory.cursors[i] = s


@frugal
def learn(memory: LinearFacts, _X: Rows, _t: int, sight: LinearSight, settings: Settings) -> None:
    """Store an example, step on the violated facts about it, and replay others."""
    place, capacity, n = memory.counts[SIZE], memory.squares.shape[0], sight.length[0]
    if place < capacity:
        memory.counts[SIZE] = place + 1
    else:
        place = memory.counts[NEXT]
        memory.counts[NEXT] = place + 1 if place + 1 < capacity else 0
    memory.lengths[place], memory.squares[place] = n, sight.itself[0]
    for e in range(n):
        memory.columns[place, e], memory.values[place, e] = sight.columns[e], sight.values[e]
    for i in range(sight.signs.shape[0]):
        memory.totals[i] -= memory.alphas[i, place]
        memory.signs[i, place], memory.alphas[i, place] = sight.signs[i], 0.0
    for i in range(sight.signs.shape[0]):
        if sight.signs[i] != 0 and sight.signs[i] * sight.scores[i] < 1.0:
            step_on(memory, i, place, settings)
            replay(memory, i, settings)


@cache
def linear_game(is_sparse: bool, hears_label: bool) -> Game:
    """Return the game on dense or on sparse rows."""
    entries: Callable[..., int] = sparse_entries if is_sparse else dense_entries
    width: Callable[..., int] = sparse_width if is_sparse else dense_width

    def measure(memory: LinearFacts, X: Rows, t: int, sight: LinearSight, settings: FactNumbers) -> int:
        capacity = memory.squares.shape[0]
        if memory.counts[SIZE] == capacity and capacity < settings.facts.budget:
            return FULL
        if width(X, t) > sight.values.shape[0]:  # a longer row than any before
            return FULL
        n = entries(X, t, sight.columns, sight.values)
        sight.length[0], sight.itself[0] = n, shorten(sight.values, n)
        score(memory.weights, sight.columns, sight.values, n, sight.scores)
        return ready_if_finite(sight.scores)

    return fact_game(measure, learn, forget, hears_label)


@frugal
def forget(memory: LinearFacts) -> None:
    """Forget everything but how the guesses went."""
    memory.weights[:] = 0.0
    memory.alphas[:] = 0.0
    memory.totals[:] = 0.0
    memory.counts[:] = 0
    memory.cursors[:] = 0


@cache
def _reading(is_sparse: bool) -> Callable[..., None]:
    entries: Callable[..., int] = sparse_entries if is_sparse else dense_entries

    @compiled
    def read(weights: Floats, X: Rows, columns: Integers, values: Floats, out: Floats) -> None:
        for t in range(out.shape[0]):
            n = entries(X, t, columns, values)
            shorten(values, n)
            score(weights, columns, values, n, out[t])

    return read
