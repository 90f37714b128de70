"""Facts in the linear space: one weight vector per class, and the latest examples to replay.

Rows are divided by their length and kept as lists of entries, so dense and sparse rows are the same rows. When the
budget is full the oldest example makes room. Its share stays in the weights: where they are explicit, projecting a
forgotten example costs nothing, and the guarantee holds whatever the budget.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.compiled import compiled, inlined
from onebit.inputs import Floats, Integers, Rows, SparseRows
from onebit.rounds import Record, note
from onebit.spaces.facts import Settings, Signs, choose, is_outdated, is_worth_storing, prove, stepped

SIZE, NEXT = 0, 1
_VISITS_PER_REPLAY = 50


class LinearFacts(NamedTuple):
    """The memory: weights, and one place per stored example."""

    weights: Floats
    """One row per feature, one column per class."""
    columns: npt.NDArray[np.int64]
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


class Entries(NamedTuple):
    """One row's entries, divided by the row's length."""

    columns: npt.NDArray[np.int64]
    values: Floats


def new_memory(n_features: int, n_classes: int, capacity: int, width: int) -> LinearFacts:
    """Return an empty memory."""
    return LinearFacts(
        np.zeros((n_features, n_classes)),
        np.zeros((capacity, width), dtype=np.int64),
        np.zeros((capacity, width)),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity),
        np.zeros((n_classes, capacity), dtype=np.int8),
        np.zeros((n_classes, capacity)),
        np.zeros(n_classes),
        np.zeros(n_classes, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


def enlarged(memory: LinearFacts, capacity: int, width: int) -> LinearFacts:
    """Return a copy with more places, or with room for longer rows."""
    n, old_width = memory.columns.shape
    larger = new_memory(memory.weights.shape[0], memory.weights.shape[1], capacity, width)
    for name in ("columns", "values"):
        getattr(larger, name)[:n, :old_width] = getattr(memory, name)
    for name in ("signs", "alphas"):
        getattr(larger, name)[:, :n] = getattr(memory, name)
    for name in ("lengths", "squares"):
        getattr(larger, name)[:n] = getattr(memory, name)
    for name in ("weights", "totals", "cursors", "counts"):
        getattr(larger, name)[:] = getattr(memory, name)
    return larger


@inlined
def dense_entries(X: Floats, t: int, out: Entries) -> int:
    """Write a dense row's entries and return how many there are."""
    n = 0
    for j in range(X.shape[1]):
        if X[t, j] != 0.0:
            out.columns[n], out.values[n] = j, X[t, j]
            n += 1
    return n


@inlined
def sparse_entries(X: SparseRows, t: int, out: Entries) -> int:
    """Write a sparse row's entries and return how many there are."""
    n = 0
    for entry in range(X.starts[t], X.starts[t + 1]):
        if X.values[entry] != 0.0:
            out.columns[n], out.values[n] = X.columns[entry], X.values[entry]
            n += 1
    return n


@inlined
def shorten(row: Entries, n: int) -> float:
    """Divide a row by its length and return its squared length: 1, but for rounding and for a row of zeros."""
    largest, total, square = 1.0, 0.0, 0.0
    for e in range(n):
        total += row.values[e] * row.values[e]
    if n > 0 and not 1e-200 < total < 1e200:  # squares that would overflow or vanish
        largest, total = 0.0, 0.0
        for e in range(n):
            largest = max(largest, abs(row.values[e]))
        for e in range(n):
            total += (row.values[e] / largest) ** 2
    length = math.sqrt(total)
    for e in range(n):
        row.values[e] = row.values[e] / largest / length
        square += row.values[e] * row.values[e]
    return square


@inlined
def score(memory: LinearFacts, row: Entries, n: int, out: Floats) -> None:
    """Write every class's score of a row."""
    weights = memory.weights
    for i in range(out.shape[0]):
        out[i] = 0.0
    for e in range(n):
        value, j = row.values[e], row.columns[e]
        for i in range(out.shape[0]):
            out[i] += value * weights[j, i]


@compiled
def step_on(memory: LinearFacts, i: int, s: int, settings: Settings) -> bool:
    """Take the step on the fact about class i and example s; say whether its coefficient changed beyond tolerance."""
    columns, values, sign, old = memory.columns[s], memory.values[s], memory.signs[i, s], memory.alphas[i, s]
    total = 0.0
    for e in range(memory.lengths[s]):
        total += values[e] * memory.weights[columns[e], i]
    new = stepped(old, sign, total, memory.squares[s], settings.softness)
    if abs(new - old) <= settings.tolerance:
        return False
    memory.alphas[i, s] = new
    memory.totals[i] += new - old
    for e in range(memory.lengths[s]):
        memory.weights[columns[e], i] += sign * (new - old) * values[e]
    return True


@compiled
def replay(memory: LinearFacts, i: int, settings: Settings) -> None:
    """Visit class i's facts in turn, from where the last replay stopped, until none is left that needs a step."""
    size, s, quiet = memory.counts[SIZE], memory.cursors[i], 0
    for _ in range(_VISITS_PER_REPLAY * settings.replays):
        s = s + 1 if s + 1 < size else 0
        if memory.signs[i, s] != 0 and step_on(memory, i, s, settings):
            quiet = 0
        else:
            quiet += 1
            if quiet == size:
                break
    memory.cursors[i] = s


@compiled
def learn(
    memory: LinearFacts, row: Entries, n: int, square: float, current: Floats, new: Signs, settings: Settings
) -> None:
    """Store an example, step on the violated facts about it, and replay others."""
    place, capacity = memory.counts[SIZE], memory.squares.shape[0]
    if place < capacity:
        memory.counts[SIZE] = place + 1
    else:
        place = memory.counts[NEXT]
        memory.counts[NEXT] = place + 1 if place + 1 < capacity else 0
    memory.lengths[place], memory.squares[place] = n, square
    for e in range(n):
        memory.columns[place, e], memory.values[place, e] = row.columns[e], row.values[e]
    for i in range(new.shape[0]):
        memory.totals[i] -= memory.alphas[i, place]
        memory.signs[i, place], memory.alphas[i, place] = new[i], 0.0
    for i in range(new.shape[0]):
        if new[i] != 0 and new[i] * current[i] < 1.0:
            step_on(memory, i, place, settings)
            replay(memory, i, settings)


@inlined
def hear(
    memory: LinearFacts,
    row: Entries,
    n: int,
    square: float,
    current: Floats,
    new: Signs,
    correct: bool,
    watch: Floats,
    settings: Settings,
) -> bool:
    """Take in an answer: forget what is out of date, then learn what it proves. Say whether anything changed."""
    if is_outdated(watch, correct, new.shape[0], settings):
        memory.weights[:] = 0.0
        memory.alphas[:] = 0.0
        memory.totals[:] = 0.0
        memory.counts[:] = 0
        memory.cursors[:] = 0
        current[:] = 0.0
    if not is_worth_storing(new, current, square, memory.totals, memory.counts[SIZE], settings):
        return False
    learn(memory, row, n, square, current, new, settings)
    return True


class LinearMoves(NamedTuple):
    """The compiled functions for one kind of row."""

    read: Callable[..., tuple[int, float]]
    """(X, t, row) → entries, squared length."""
    score_rows: Callable[..., None]
    """(memory, X, row, out)."""
    play: Callable[..., int]
    """Plays on until the stream ends or the memory must grow; returns the rounds played, or −1 − the bad round."""


@cache
def linear_moves(is_sparse: bool) -> LinearMoves:
    """Return the compiled functions for dense or for sparse rows."""
    entries: Callable[..., int] = sparse_entries if is_sparse else dense_entries

    @inlined
    def fetch(X: Rows, t: int, row: Entries) -> tuple[int, float]:
        n = entries(X, t, row)
        return n, shorten(row, n)

    @compiled
    def read(X: Rows, t: int, row: Entries) -> tuple[int, float]:
        return fetch(X, t, row)

    @compiled
    def score_rows(memory: LinearFacts, X: Rows, row: Entries, out: Floats) -> None:
        for t in range(out.shape[0]):
            n, _ = read(X, t, row)
            score(memory, row, n, out[t])

    @compiled
    def play(
        memory: LinearFacts,
        X: Rows,
        y: Integers,
        first: int,
        row: Entries,
        seed_and_round: tuple[int, int],
        hears_label: bool,
        settings: Settings,
        watch: Floats,
        record: Record,
    ) -> int:
        n_classes, capacity = memory.signs.shape
        current, new = np.empty(n_classes), np.empty(n_classes, np.int8)
        for t in range(first, y.shape[0]):
            if memory.counts[SIZE] == capacity and capacity < settings.budget:
                return t
            n, square = fetch(X, t, row)
            score(memory, row, n, current)
            label, explored = choose(current, seed_and_round[0], seed_and_round[1] + t, settings)
            if label < 0:
                return -1 - t
            correct = label == y[t]
            prove(label, correct, y[t] if hears_label else -1, new)
            changed = hear(memory, row, n, square, current, new, correct, watch, settings)
            note(record, t, label, explored, correct, changed)
        return len(y)

    return LinearMoves(read, score_rows, play)
