"""The linear form: one weight vector per class, and the latest examples to replay.

Rows are divided by their length and kept as lists of entries, so dense and sparse rows are the same rows. When the
budget is full the oldest example makes room. Its share stays in the weights, and the guarantee with it.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.compiled import compiled, frugal, inlined, shared
from onebit.draws import Draw
from onebit.inputs import Floats, Integers, Rows, SparseRows, unlocked
from onebit.learners.bandit_svm.guesses import (
    FOLLOW,
    LATELY,
    REFERENCE,
    ROW_KIND,
    FactMemory,
    choose,
    count_row,
    is_outdated,
    is_to_follow,
    keep_account,
    new_watch,
    prefer,
    preference,
    write_chances,
)
from onebit.learners.bandit_svm.separators import (
    DENSE,
    DUE,
    KIND,
    LENGTH,
    N_COUNTS,
    NEXT,
    SCALE,
    SEEN,
    SIZE,
    SPARSE,
    STATISTICS,
    TO_FORGET,
    TOLERANCE,
    Settings,
    change_coefficient,
    is_worth_storing,
    lack,
    prove,
    stepped,
)
from onebit.lengths import shorten
from onebit.loop import FULL, Game, highest, plugged, ready_if_finite
from onebit.memory import check_stored, in_python
from onebit.rounds import Answer
from onebit.scaling import change_weights, count_entry, new_scale, new_statistics, put_in_force, scaled

ENTRIES = 2
"""Where `examples` says how many entries each has, behind its squared length and its kind."""
_ROW_ENTRIES = FOLLOW + 1  # the same of the row at hand, in `flags`
_FIRST_CAPACITY = 16  # doubled when full, up to the budget
# Most visits find nothing to do: this many of them cost about as much as one replay with a kernel.
_VISITS_PER_REPLAY = 50


class LinearState(NamedTuple):
    """What was learned: weights, and one place per stored example."""

    weights: Floats
    """One row per feature, one column per class."""
    columns: Integers
    """Where each example has entries (capacity × width)."""
    values: Floats
    raws: Floats
    """The same entries as they came, to be scaled anew; empty if nothing is scaled."""
    examples: Floats
    """The squared length of each example, its kind and the number of its entries (3 × capacity)."""
    targets: Floats
    """What is proved, as the scores that are due (K × capacity)."""
    alphas: Floats
    """The dual coefficients, never negative (K × capacity)."""
    sums: Floats
    """The sum of each class's alphas, and how many are above 0 (2 × K)."""
    cursors: Integers
    """Where each class's replays go on."""
    guesses: Integers
    """How often each class was guessed and it was right, and wrong (2 × K)."""
    counts: Integers
    watch: Floats
    """How the guesses went, for `is_outdated`."""
    scaling: Floats
    """Statistics and scale of the columns, for dense and for sparse rows (2 × 2 × 4 × d), or empty."""


class LinearScratch(NamedTuple):
    """What is known about one round: its row as entries, divided by the row's length."""

    scores: Floats
    opinions: Floats
    """What the weights alone say, the only row."""
    targets: Floats
    """What the answer proves."""
    chances: Floats
    columns: Integers
    values: Floats
    raws: Floats
    """The same entries as they came, if they are scaled."""
    square: Floats
    """The squared length, 1 but for rounding and for a row of zeros; the only entry."""
    flags: Integers
    """As `vote` names them, and the number of entries."""


class LinearMemory(FactMemory):
    """One weight vector per class, on rows divided by their length."""

    arrays: LinearState
    rooms: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {
            "columns": ("example", "entry"),
            "values": ("example", "entry"),
            "raws": ("example", "raw"),
            "examples": ("", "example"),
            "targets": ("", "example"),
            "alphas": ("", "example"),
        }
    )
    class_axes: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"weights": 1, "targets": 0, "alphas": 0, "sums": 1, "cursors": 0, "guesses": 1}
    )

    def __init__(self, settings: Settings, hears_label: bool, n_features: int, n_classes: int) -> None:
        self.settings, self._hears_label, self.n_classes = settings, hears_label, n_classes
        self.arrays = new_state(n_features, n_classes, min(settings.budget, _FIRST_CAPACITY), 1, settings.scales)
        self.sight = self.new_sight()

    def new_sight(self) -> LinearScratch:
        """Return scratch arrays."""
        n_classes, width = self.arrays.sums.shape[1], self.arrays.columns.shape[1]
        return LinearScratch(
            scores=np.empty(n_classes),
            opinions=np.empty((1, n_classes)),
            targets=np.empty(n_classes),
            chances=np.empty(n_classes),
            columns=np.empty(width, np.int64),
            values=np.empty(width),
            raws=np.empty(self.arrays.raws.shape[1]),
            square=np.empty(1),
            flags=np.zeros(_ROW_ENTRIES + 1, np.int64),
        )

    def game(self, is_sparse: bool) -> Game:
        """Return the game on dense or on sparse rows."""
        return linear_game(is_sparse, self._hears_label)

    def grow(self, rows: Rows) -> None:
        """Double the places if they are full, up to the budget; widen them if a row is longer than any before."""
        n, scales = self.arrays.examples.shape[1], self.settings.scales
        if self.size == n:
            n = min(self.settings.budget, 2 * n)
        width = max(self.arrays.columns.shape[1], _longest(rows) + scales)
        self.arrays = self.larger(example=n, entry=width, raw=width * scales)

    def forgetful(self) -> LinearState:
        """Return arrays in which everything is forgotten but how the guesses went and rows are scaled."""
        fresh: LinearState = self.copies("counts", "weights", "alphas", "sums", "cursors", "guesses")
        fresh.counts[SIZE] = fresh.counts[NEXT] = 0
        fresh.counts[DUE] -= TO_FORGET
        for array in (fresh.weights, fresh.alphas, fresh.sums, fresh.cursors, fresh.guesses):
            array[:] = 0
        return fresh

    def scale_again(self, kind: int) -> None:
        """Scale the columns and all stored examples of a kind anew, and take in what that changes."""
        names = "counts", "scaling", "weights", "values", "examples", "alphas", "sums", "cursors"
        fresh: LinearState = self.copies(*names)
        fresh.counts[DUE] = 0
        statistics, scale = fresh.scaling[kind]
        # What belongs to no stored example means the same hyperplanes as before.
        move_examples(fresh, kind, scale, -1.0)
        put_in_force(statistics, fresh.counts[SEEN + kind], kind == DENSE, scale)
        change_weights(self.arrays.scaling[kind, SCALE], scale, fresh.weights)
        move_examples(fresh, kind, scale, 1.0)
        replay_all(fresh, self.settings)
        self.arrays = fresh

    def score_rows(self, rows: Rows) -> Floats:
        """Return ⟨wᵢ, x⟩/‖x‖ for every row and class, as a guess is made from it."""
        self.do_what_is_due()
        now, settings = self.arrays, self.settings
        out, width = np.empty((rows.shape[0], self.n_classes)), 1 + _longest(rows)
        read = _reading(isinstance(rows, SparseRows))
        values, raws = np.empty((2, width))
        columns = np.empty(width, dtype=np.int64)
        read(now.weights, now.scaling, unlocked(rows), settings.scales, columns, values, raws, out)
        if settings.guarded:
            unclaimed = now.watch[LATELY] * (out.max(axis=1, keepdims=True) < 0.0)
            softness, (right, wrong) = settings.softness, now.guesses
            out += in_python(preference)(right, wrong, self.n_classes, softness, unclaimed)
        return out

    def filled(self) -> dict[str, int]:
        """Return how many examples are stored; rows keep their width."""
        width = self.arrays.columns.shape[1]
        return {"example": self.size, "entry": width, "raw": width * self.settings.scales}

    def check_arrays(self, arrays: LinearState) -> None:
        """Raise unless every position is one that there is."""
        (n, width), scales = arrays.columns.shape, self.settings.scales
        check_stored(arrays.counts[SIZE], n, self.settings.budget)
        if arrays.raws.shape[1] != width * scales:
            raise ValueError(f"entries as they came are {arrays.raws.shape[1]} wide, scaled ones {width}")
        is_known = np.isin(arrays.examples[KIND], (DENSE, SPARSE)).all()
        if max(arrays.cursors.max(), arrays.counts[NEXT]) >= n or not is_known:
            raise ValueError("a place is beyond the store, or a row of no known kind")
        n_entries = arrays.examples[ENTRIES]
        if not np.isin(n_entries, np.arange(width + 1)).all() or arrays.columns.max() >= len(arrays.weights):
            raise ValueError("an example has entries beyond its row")
        if scales:
            size = arrays.counts[SIZE]
            last, constant = n_entries[:size, None] - 1, len(arrays.weights) - 1
            # Only columns have a scale: the constant is behind them, and there alone.
            is_last, is_column = np.arange(width) == last, np.arange(width) < last
            if (last < 0).any() or ((arrays.columns[:size] == constant) != is_last)[is_last | is_column].any():
                raise ValueError("a scaled example lacks its constant, or has it among its columns")

    def takes(self, row: Rows, n_features: int) -> bool:
        """Return whether a row is as wide as all rows; sparse ones stay sparse."""
        return bool(row.shape[1] == n_features)

    def learned(self) -> dict[str, Floats]:
        """Return the weights, one row per class."""
        self.do_what_is_due()
        return {"weights": self.arrays.weights.T.copy()}


def new_state(n_features: int, n_classes: int, capacity: int, width: int, scales: bool = False) -> LinearState:
    """Return an empty state, with room for examples of so many entries."""
    n_scaled = n_features if scales else 0
    scaling = np.stack([new_statistics(n_scaled), new_scale(n_scaled)])
    return LinearState(
        weights=np.zeros((n_features + scales, n_classes)),
        columns=np.zeros((capacity, width), dtype=np.int64),
        values=np.zeros((capacity, width)),
        raws=np.zeros((capacity, width * scales)),
        examples=np.zeros((3, capacity)),
        targets=np.zeros((n_classes, capacity)),
        alphas=np.zeros((n_classes, capacity)),
        sums=np.zeros((2, n_classes)),
        cursors=np.zeros(n_classes, dtype=np.int64),
        guesses=np.zeros((2, n_classes), dtype=np.int64),
        counts=np.zeros(N_COUNTS, dtype=np.int64),
        watch=new_watch(),
        scaling=np.stack([scaling, scaling]),
    )


def _longest(rows: Rows) -> int:
    """Return the most entries that a row can have."""
    return int(np.diff(rows.starts).max()) if isinstance(rows, SparseRows) else int(rows.shape[1])


# Reading a row: what is compiled for dense and for sparse rows.


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
def dense_entries(X: Floats, t: int, keeps_zeros: bool, columns: Integers, values: Floats) -> int:
    """Write where a dense row has entries, and which; return how many there are."""
    n = 0
    for j in range(X.shape[1]):
        if keeps_zeros or X[t, j] != 0.0:
            columns[n], values[n] = j, X[t, j]
            n += 1
    return n


@inlined
def sparse_entries(X: SparseRows, t: int, keeps_zeros: bool, columns: Integers, values: Floats) -> int:
    """Write where a sparse row has entries, and which; return how many there are."""
    n = 0
    for entry in range(X.starts[t], X.starts[t + 1]):
        if keeps_zeros or X.values[entry] != 0.0:
            columns[n], values[n] = X.columns[entry], X.values[entry]
            n += 1
    return n


@shared
def score_entries(
    weights: Floats, scale: Floats, scales: bool, n: int, columns: Integers, values: Floats, raws: Floats, out: Floats
) -> tuple[int, float]:
    """Scale the n entries of a row, add the constant, divide by the length, and write every class's score.

    Return the number of entries then, and the squared length.
    """
    if scales:
        for e in range(n):
            raws[e] = values[e]
            values[e] = scaled(scale, columns[e], raws[e])
        columns[n], values[n], raws[n] = weights.shape[0] - 1, 1.0, 1.0
        n += 1
    square = shorten(values, n)
    for i in range(out.shape[0]):
        out[i] = 0.0
    for e in range(n):
        value, j = values[e], columns[e]
        for i in range(out.shape[0]):
            out[i] += value * weights[j, i]
    return n, square


@cache
def linear_game(is_sparse: bool, hears_label: bool) -> Game:
    """Return the game on dense or on sparse rows."""
    entries: Callable[..., int] = sparse_entries if is_sparse else dense_entries
    width: Callable[..., int] = sparse_width if is_sparse else dense_width
    kind = SPARSE if is_sparse else DENSE

    def measure(state: LinearState, X: Rows, t: int, scratch: LinearScratch, settings: Settings) -> int:
        capacity, scales, flags = state.examples.shape[1], settings.scales, scratch.flags
        if state.counts[DUE] or (state.counts[SIZE] == capacity and capacity < settings.budget):
            return FULL
        if width(X, t) + scales > scratch.values.shape[0]:  # a longer row than any before
            return FULL
        columns, values = scratch.columns, scratch.values
        n = entries(X, t, scales, columns, values)
        opinion, scores = scratch.opinions[0], scratch.scores
        n, square = score_entries(
            state.weights, state.scaling[kind, SCALE], scales, n, columns, values, scratch.raws, opinion
        )
        scratch.square[0] = square
        flags[ROW_KIND], flags[REFERENCE], flags[_ROW_ENTRIES] = kind, 0, n
        flags[FOLLOW] = is_to_follow(state.counts, settings.guarded)
        for i in range(scores.shape[0]):
            scores[i] = opinion[i]
        if settings.guarded:
            lately = state.watch[LATELY] if opinion[highest(opinion)] < 0.0 else 0.0
            prefer(state.guesses, settings.softness, lately, scores)
        return ready_if_finite(scores)

    def decide(scratch: LinearScratch, draw: Draw, settings: Settings) -> tuple[int, bool]:
        return choose(scratch, draw, settings)

    def weigh(scratch: LinearScratch, settings: Settings) -> None:
        write_chances(scratch, settings)

    def hear(state: LinearState, _X: Rows, _t: int, scratch: LinearScratch, answer: Answer, settings: Settings) -> bool:
        return learn_entries(state, scratch, answer.label, answer.explored, answer.correct, answer.truth, settings)

    return plugged(Game(measure, decide, weigh, hear, hears_label=hears_label))


@cache
def _reading(is_sparse: bool) -> Callable[..., None]:
    entries: Callable[..., int] = sparse_entries if is_sparse else dense_entries
    kind = SPARSE if is_sparse else DENSE

    @compiled
    def read(
        weights: Floats,
        scaling: Floats,
        X: Any,
        scales: bool,
        columns: Integers,
        values: Floats,
        raws: Floats,
        out: Floats,
    ) -> None:
        for t in range(out.shape[0]):
            n = entries(X, t, scales, columns, values)
            score_entries(weights, scaling[kind, SCALE], scales, n, columns, values, raws, out[t])

    return read


# Learning.


@shared
def replay(state: LinearState, settings: Settings, i: int, first: int, tolerance: float) -> None:
    """Visit class i's facts in turn, from where the last replay stopped, until none is left that needs a step.

    If `first` is not −1, that example is visited before.
    """
    size, softness, weights = state.counts[SIZE], settings.softness, state.weights
    targets, alphas, columns, values = state.targets[i], state.alphas[i], state.columns, state.values
    cursor, quiet = state.cursors[i], 0
    # After everything was forgotten there is nothing to visit.
    for visit in range(1 + (_VISITS_PER_REPLAY * settings.replays if size > 0 else 0)):
        s = first
        if visit > 0:
            s = cursor = cursor + 1 if cursor + 1 < size else 0
            quiet += 1  # a whole turn without a step: all facts are satisfied
        if s >= 0 and targets[s] != 0.0:
            n, score, old = int(state.examples[ENTRIES, s]), 0.0, alphas[s]
            for e in range(n):
                score += values[s, e] * weights[columns[s, e], i]
            new = stepped(old, targets[s], score, state.examples[LENGTH, s], softness)
            # Smaller steps change next to nothing, and replays would never end. With a small C all steps are small:
            # none is longer than what its fact lacks, divided by the softness.
            if abs(new - old) * max(1.0, softness) > tolerance:
                quiet, alphas[s] = 0, new
                change_coefficient(state.sums, i, old, new)
                amount = new - old if targets[s] > 0.0 else old - new
                for e in range(n):
                    weights[columns[s, e], i] += amount * values[s, e]
        if quiet == size:
            break
    state.cursors[i] = cursor


@inlined
def store_entries(state: LinearState, scratch: LinearScratch) -> int:
    """Store the row with what is proved of it, and return its place; when all are taken, that of the oldest."""
    counts, capacity, n = state.counts, state.examples.shape[1], scratch.flags[_ROW_ENTRIES]
    place = int(counts[SIZE])
    if place < capacity:
        counts[SIZE] = place + 1
    else:
        place = int(counts[NEXT])
        counts[NEXT] = place + 1 if place + 1 < capacity else 0
    state.examples[LENGTH, place], state.examples[ENTRIES, place] = scratch.square[0], n
    state.examples[KIND, place] = scratch.flags[ROW_KIND]
    for e in range(n):
        state.columns[place, e], state.values[place, e] = scratch.columns[e], scratch.values[e]
    for e in range(min(n, state.raws.shape[1])):
        state.raws[place, e] = scratch.raws[e]
    for i in range(scratch.targets.shape[0]):
        change_coefficient(state.sums, i, state.alphas[i, place], 0.0)
        state.targets[i, place] = scratch.targets[i]
        state.alphas[i, place] = 0.0
    return place


@shared
def learn_entries(
    state: LinearState,
    scratch: LinearScratch,
    label: int,
    explored: bool,
    correct: bool,
    truth: int,
    settings: Settings,
) -> bool:
    """Learn from the answer about the row at hand, and say whether it was stored; see `onebit.loop.Game`."""
    targets, opinion, n_classes = scratch.targets, scratch.opinions[0], scratch.targets.shape[0]
    prove(label, correct, truth, settings.is_closed, targets)
    outdated = is_outdated(state.watch, correct, n_classes, settings.softness)
    keep_account(state.counts, state.guesses, opinion, label, explored, correct)
    is_wanted = is_worth_storing(targets, opinion, scratch.square[0], state.sums, settings.guarded)
    if is_wanted:
        place = store_entries(state, scratch)
        for i in range(n_classes):
            if lack(targets[i], opinion[i]) > 0.0:
                replay(state, settings, i, place, TOLERANCE)
    kind = scratch.flags[ROW_KIND]
    n = count_row(state.counts, kind, settings.scales, outdated)
    for e in range(scratch.flags[_ROW_ENTRIES] - 1 if settings.scales else 0):  # the last is the constant
        count_entry(state.scaling[kind, STATISTICS], scratch.columns[e], scratch.raws[e], n, kind == DENSE)
    return is_wanted


@frugal
def move_examples(state: LinearState, kind: int, scale: Floats, sign: float) -> None:
    """Take the share of the stored examples out of the weights, or scale those of a kind and put it back."""
    weights, columns, values, examples = state.weights, state.columns, state.values, state.examples
    for s in range(state.counts[SIZE]):
        n = int(examples[ENTRIES, s])
        if sign > 0.0 and examples[KIND, s] == kind:
            for e in range(n - 1):
                values[s, e] = scaled(scale, columns[s, e], state.raws[s, e])
            values[s, n - 1] = 1.0
            examples[LENGTH, s] = shorten(values[s], n)
        for i in range(weights.shape[1]):
            share = sign * (state.alphas[i, s] if state.targets[i, s] > 0.0 else -state.alphas[i, s])
            for e in range(n if share != 0.0 else 0):
                weights[columns[s, e], i] += share * values[s, e]


@frugal
def replay_all(state: LinearState, settings: Settings) -> None:
    """Take in what the new scale changed."""
    for i in range(state.targets.shape[0]):
        replay(state, settings, i, -1, TOLERANCE)
