"""Facts in the linear space: one weight vector per class, and the latest examples to replay.

Rows are divided by their length and kept as lists of entries, so dense and sparse rows are the same rows. When the
budget is full the oldest example makes room. Its share stays in the weights: where they are explicit, projecting a
forgotten example costs nothing, and the guarantee holds whatever the budget.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np

from onebit.compiled import compiled, frugal, inlined, shared
from onebit.inputs import Floats, Integers, Rows, SparseRows, unlocked
from onebit.learners.bandit_svm.drift import new_watch
from onebit.learners.bandit_svm.facts import (
    SIZE,
    FactMemory,
    FactNumbers,
    Settings,
    Signs,
    change_of_support,
    curiosity,
    fact_game,
    hearing,
    is_worth_storing,
    lack,
    look_up,
    stepped,
)
from onebit.learners.bandit_svm.rows import (
    DENSE,
    SPARSE,
    change_scale,
    count_entry,
    scale_is_due,
)
from onebit.lengths import shorten
from onebit.loop import FULL, Game, ready_if_finite
from onebit.memory import check_stored, grown
from onebit.rounds import Answer
from onebit.scaling import new_scale, new_statistics, scaled

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
    raws: Floats
    """The same entries as they came, to be scaled anew; empty if nothing is scaled."""
    kinds: Signs
    """Whether an example came as a dense row (0) or as a sparse one (1)."""
    lengths: Integers
    """How many entries each example has."""
    squares: Floats
    targets: Floats
    """What is proved, as the scores that are due (K × capacity)."""
    alphas: Floats
    """The dual coefficients, never negative (K × capacity)."""
    totals: Floats
    """The sum of each class's alphas."""
    supports: Integers
    """How many of them are above 0."""
    cursors: Integers
    """Where each class's replays go on."""
    counts: Integers
    """How many examples are stored, and the place of the oldest once the budget is full."""
    right: Integers
    """How often each class was guessed, and it was right."""
    wrong: Integers
    tally: Integers
    watch: Floats
    """How the guesses went, for `is_outdated`."""
    statistics: Floats
    """Of the columns, for dense and for sparse rows (2 × 4 × d); empty if nothing is scaled."""
    scales: Floats
    """How columns are scaled, for dense and for sparse rows (2 × 4 × d)."""
    seen: Integers
    """How many dense and how many sparse rows were heard."""


class LinearSight(NamedTuple):
    """What is known about one round: its row as entries, divided by the row's length."""

    scores: Floats
    opinions: Floats
    """What the weights alone say, the only row."""
    reference: Integers
    """0: there is one opinion."""
    follow: Signs
    """Whether it is to be followed where it disputes the highest score, the only entry."""
    targets: Floats
    """What the answer proves."""
    columns: Integers
    values: Floats
    raws: Floats
    """The same entries as they came, if they are scaled."""
    length: Integers
    """How many entries there are, the only entry."""
    itself: Floats
    """The squared length, 1 but for rounding and for a row of zeros; the only entry."""
    chances: Floats


class LinearFactMemory(FactMemory):
    """One weight vector per class, on rows divided by their length."""

    arrays: LinearFacts
    rooms: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {
            "columns": ("example", "entry"),
            "values": ("example", "entry"),
            "raws": ("example", "raw"),
            "kinds": ("example",),
            "lengths": ("example",),
            "squares": ("example",),
            "targets": ("", "example"),
            "alphas": ("", "example"),
        }
    )
    class_axes: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"weights": 1, "targets": 0, "alphas": 0, "totals": 0, "supports": 0, "cursors": 0, "right": 0, "wrong": 0}
    )

    def __init__(self, settings: Settings, hears_label: bool, n_features: int, n_classes: int) -> None:
        self.settings, self._hears_label, self.n_classes = FactNumbers(settings, ()), hears_label, n_classes
        self.arrays = new_facts(n_features, n_classes, min(settings.budget, _FIRST_CAPACITY), 1, settings.scales)
        self.sight = self.new_sight()

    def new_sight(self) -> LinearSight:
        """Return scratch paper."""
        n_classes, width = len(self.arrays.totals), self.arrays.columns.shape[1]
        return LinearSight(
            scores=np.empty(n_classes),
            opinions=np.empty((1, n_classes)),
            reference=np.zeros(1, np.int64),
            follow=np.zeros(1, np.int8),
            targets=np.empty(n_classes),
            columns=np.empty(width, np.int64),
            values=np.empty(width),
            raws=np.empty(self.arrays.raws.shape[1]),
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
        width = max(now.columns.shape[1], _longest(rows) + self.settings.facts.scales)
        self.arrays = now._replace(
            columns=grown(now.columns, (n, width)),
            values=grown(now.values, (n, width)),
            raws=grown(now.raws, (n, width * self.settings.facts.scales)),
            kinds=grown(now.kinds, (n,)),
            lengths=grown(now.lengths, (n,)),
            squares=grown(now.squares, (n,)),
            targets=grown(now.targets, (n_classes, n)),
            alphas=grown(now.alphas, (n_classes, n)),
        )

    def score_rows(self, rows: Rows) -> Floats:
        """Return ⟨wᵢ, x⟩/‖x‖ for every row and class, as a guess is made from it."""
        out, scales = np.empty((rows.shape[0], len(self.arrays.totals))), self.settings.facts.scales
        width = 1 + _longest(rows)
        read = _reading(isinstance(rows, SparseRows))
        values, raws = np.empty((2, width))
        read(self.arrays, unlocked(rows), scales, np.empty(width, dtype=np.int64), values, raws, out)
        facts = self.settings.facts
        if facts.guarded:
            out += curiosity(self.arrays.right, self.arrays.wrong, out.shape[1], facts.softness)
        return out

    def filled(self) -> dict[str, int]:
        """Return how many examples are stored; rows keep their width."""
        width = self.arrays.columns.shape[1]
        return {"example": self.size, "entry": width, "raw": width * self.settings.facts.scales}

    def check_arrays(self, arrays: LinearFacts) -> None:
        """Raise unless every position is one that there is."""
        n, width = arrays.columns.shape
        check_stored(arrays.counts[SIZE], n, self.settings.facts.budget)
        if arrays.raws.shape[1] != width * self.settings.facts.scales:
            raise ValueError(f"entries as they came are {arrays.raws.shape[1]} wide, scaled ones {width}")
        if max(arrays.cursors.max(), arrays.counts[NEXT]) >= n or arrays.kinds.max() > SPARSE:
            raise ValueError("a place is beyond the store, or a row of no known kind")
        if arrays.lengths.max() > width or arrays.columns.max() >= len(arrays.weights):
            raise ValueError("an example has entries beyond its row")
        if self.settings.facts.scales:
            size = arrays.counts[SIZE]
            last, constant = arrays.lengths[:size, None] - 1, len(arrays.weights) - 1
            # Only columns have a scale: the constant is behind them, and there alone.
            is_last, is_column = np.arange(width) == last, np.arange(width) < last
            if (last < 0).any() or ((arrays.columns[:size] == constant) != is_last)[is_last | is_column].any():
                raise ValueError("a scaled example lacks its constant, or has it among its columns")

    def takes(self, row: Rows, n_features: int) -> bool:
        """Return whether a row is as wide as all rows; sparse ones stay sparse."""
        return bool(row.shape[1] == n_features)

    def learned(self) -> dict[str, Floats]:
        """Return the weights, one row per class."""
        return {"weights": self.arrays.weights.T.copy()}


def new_facts(n_features: int, n_classes: int, capacity: int, width: int, scales: bool = False) -> LinearFacts:
    """Return an empty memory, with room for examples of so many entries."""
    n_scaled = n_features if scales else 0
    return LinearFacts(
        weights=np.zeros((n_features + scales, n_classes)),
        columns=np.zeros((capacity, width), dtype=np.int64),
        values=np.zeros((capacity, width)),
        raws=np.zeros((capacity, width * scales)),
        kinds=np.zeros(capacity, dtype=np.int8),
        lengths=np.zeros(capacity, dtype=np.int64),
        squares=np.zeros(capacity),
        targets=np.zeros((n_classes, capacity)),
        alphas=np.zeros((n_classes, capacity)),
        totals=np.zeros(n_classes),
        supports=np.zeros(n_classes, dtype=np.int64),
        cursors=np.zeros(n_classes, dtype=np.int64),
        counts=np.zeros(2, dtype=np.int64),
        right=np.zeros(n_classes, dtype=np.int64),
        wrong=np.zeros(n_classes, dtype=np.int64),
        tally=np.zeros(2, dtype=np.int64),
        watch=new_watch(),
        statistics=np.stack([new_statistics(n_scaled), new_statistics(n_scaled)]),
        scales=np.stack([new_scale(n_scaled), new_scale(n_scaled)]),
        seen=np.zeros(2, dtype=np.int64),
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
def dense_entries(
    memory: LinearFacts, X: Floats, t: int, scales: bool, columns: Integers, values: Floats, raws: Floats
) -> int:
    """Write a dense row's entries, scaled if asked, and return how many there are."""
    n = 0
    for j in range(X.shape[1]):
        value = X[t, j]
        if scales:
            columns[n], values[n], raws[n] = j, scaled(memory.scales[DENSE], j, value), value
            n += 1
        elif value != 0.0:
            columns[n], values[n] = j, value
            n += 1
    return add_constant(memory, scales, columns, values, raws, n)


@inlined
def sparse_entries(
    memory: LinearFacts, X: SparseRows, t: int, scales: bool, columns: Integers, values: Floats, raws: Floats
) -> int:
    """Write a sparse row's entries, scaled if asked, and return how many there are."""
    n = 0
    for entry in range(X.starts[t], X.starts[t + 1]):
        j, value = X.columns[entry], X.values[entry]
        if scales:
            columns[n], values[n], raws[n] = j, scaled(memory.scales[SPARSE], j, value), value
            n += 1
        elif value != 0.0:
            columns[n], values[n] = j, value
            n += 1
    return add_constant(memory, scales, columns, values, raws, n)


@inlined
def add_constant(memory: LinearFacts, scales: bool, columns: Integers, values: Floats, raws: Floats, n: int) -> int:
    """Write the constant behind n entries, if rows are scaled, and return how many there are now."""
    if not scales:
        return n
    columns[n], values[n], raws[n] = memory.weights.shape[0] - 1, 1.0, 1.0
    return n + 1


@inlined
def score(weights: Floats, columns: Integers, values: Floats, n: int, out: Floats) -> None:
    """Write every class's score of a row, given by its entries."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for e in range(n):
        value, j = values[e], columns[e]
        for i in range(out.shape[0]):
            out[i] += value * weights[j, i]


@shared
def step_on(memory: LinearFacts, i: int, s: int, settings: Settings) -> bool:
    """Take the step on the fact about class i and example s; say whether its coefficient changed beyond tolerance."""
    columns, values, target, old = memory.columns[s], memory.values[s], memory.targets[i, s], memory.alphas[i, s]
    total = 0.0
    for e in range(memory.lengths[s]):
        total += values[e] * memory.weights[columns[e], i]
    new = stepped(old, target, total, memory.squares[s], settings.softness)
    # Smaller steps would only polish, and replays would never end. With a small C all steps are small: none is longer
    # than what its fact lacks, divided by the softness.
    if abs(new - old) * max(1.0, settings.softness) <= settings.tolerance:
        return False
    memory.alphas[i, s] = new
    memory.totals[i] += new - old
    memory.supports[i] += change_of_support(old, new)
    for e in range(memory.lengths[s]):
        memory.weights[columns[e], i] += np.sign(target) * (new - old) * values[e]
    return True


@shared
def replay(memory: LinearFacts, i: int, settings: Settings) -> None:
    """Visit class i's facts in turn, from where the last replay stopped, until none is left that needs a step."""
    size, s, quiet = memory.counts[SIZE], memory.cursors[i], 0
    # After forgetting everything there is nothing to visit; what lies in the first place is forgotten too.
    for _ in range(_VISITS_PER_REPLAY * settings.replays if size > 0 else 0):
        s = s + 1 if s + 1 < size else 0
        if memory.targets[i, s] != 0.0 and step_on(memory, i, s, settings):
            quiet = 0
        else:
            quiet += 1  # a whole turn without a step: all facts are satisfied
            if quiet == size:
                break
    memory.cursors[i] = s


@shared
def learn(memory: LinearFacts, kind: int, sight: LinearSight, settings: Settings) -> None:
    """Store an example, step on the violated facts about it, and replay others."""
    place, capacity, n = memory.counts[SIZE], memory.squares.shape[0], sight.length[0]
    if place < capacity:
        memory.counts[SIZE] = place + 1
    else:
        place = memory.counts[NEXT]
        memory.counts[NEXT] = place + 1 if place + 1 < capacity else 0
    memory.lengths[place], memory.squares[place], memory.kinds[place] = n, sight.itself[0], kind
    for e in range(n):
        memory.columns[place, e], memory.values[place, e] = sight.columns[e], sight.values[e]
        if settings.scales:
            memory.raws[place, e] = sight.raws[e]
    for i in range(sight.targets.shape[0]):
        memory.totals[i] -= memory.alphas[i, place]
        memory.supports[i] += change_of_support(memory.alphas[i, place], 0.0)
        memory.targets[i, place] = sight.targets[i]
        memory.alphas[i, place] = 0.0
    for i in range(sight.targets.shape[0]):
        if lack(sight.targets[i], sight.opinions[0, i]) > 0.0:
            step_on(memory, i, place, settings)
            replay(memory, i, settings)


@inlined
def judge(memory: LinearFacts, sight: LinearSight, _answer: Answer, settings: Settings) -> bool:
    """Say whether the example is worth storing."""
    return is_worth_storing(sight, sight.opinions[0], sight.itself[0], memory.totals, memory.supports, settings)


@shared
def add_examples(memory: LinearFacts, sign: float) -> None:
    """Add to the weights what the stored examples have a share in, or take it out."""
    for s in range(memory.counts[SIZE]):
        for i in range(memory.totals.shape[0]):
            share = sign * np.sign(memory.targets[i, s]) * memory.alphas[i, s]
            for e in range(memory.lengths[s] if share != 0.0 else 0):
                memory.weights[memory.columns[s, e], i] += share * memory.values[s, e]


@frugal
def scale_again(memory: LinearFacts, kind: int) -> None:
    """Scale all stored examples of a kind by the scale in force."""
    for s in range(memory.counts[SIZE]):
        if memory.kinds[s] == kind:
            last = memory.lengths[s] - 1
            for e in range(last):
                memory.values[s, e] = scaled(memory.scales[kind], memory.columns[s, e], memory.raws[s, e])
            memory.values[s, last] = 1.0
            memory.squares[s] = shorten(memory.values[s], last + 1)


@inlined
def complete(_memory: LinearFacts, _sight: LinearSight, _numbers: FactNumbers) -> None:
    """Do nothing: there is one opinion, and it is written."""


@cache
def linear_game(is_sparse: bool, hears_label: bool) -> Game:
    """Return the game on dense or on sparse rows."""
    entries: Callable[..., int] = sparse_entries if is_sparse else dense_entries
    width: Callable[..., int] = sparse_width if is_sparse else dense_width

    def measure(memory: LinearFacts, X: Rows, t: int, sight: LinearSight, settings: FactNumbers) -> int:
        capacity, scales = memory.squares.shape[0], settings.facts.scales
        if memory.counts[SIZE] == capacity and capacity < settings.facts.budget:
            return FULL
        if width(X, t) + scales > sight.values.shape[0]:  # a longer row than any before
            return FULL
        n = entries(memory, X, t, scales, sight.columns, sight.values, sight.raws)
        sight.length[0], sight.itself[0] = n, shorten(sight.values, n)
        score(memory.weights, sight.columns, sight.values, n, sight.opinions[0])
        for i in range(sight.scores.shape[0]):
            sight.scores[i] = sight.opinions[0, i]
        look_up(memory, sight, settings.facts)
        return ready_if_finite(sight.scores)

    return fact_game(measure, _hears(SPARSE if is_sparse else DENSE), hears_label)


@cache
def _hears(kind: int) -> Callable[..., bool]:
    """Return how rows of a kind are learned from: compiled once for all games on them."""

    def learn_row(memory: LinearFacts, sight: LinearSight, settings: FactNumbers) -> None:
        learn(memory, kind, sight, settings.facts)

    def count_row(memory: LinearFacts, sight: LinearSight, settings: FactNumbers) -> None:
        count(memory, kind, sight, settings.facts)

    return shared(hearing(complete, judge, inlined(learn_row), forget, inlined(count_row)))


@shared
def count(memory: LinearFacts, kind: int, sight: LinearSight, settings: Settings) -> None:
    """Take the row into the statistics of the columns, and scale all stored examples anew if that is due."""
    memory.seen[kind] += 1
    for e in range(sight.length[0] - 1):  # the last is the constant
        count_entry(memory, kind, sight.columns[e], sight.raws[e])
    if scale_is_due(memory, kind):
        add_examples(memory, -1.0)
        n = float(memory.seen[kind])
        change_scale(memory.scales[kind], memory.statistics[kind], n, kind == DENSE, memory.weights)
        scale_again(memory, kind)
        add_examples(memory, 1.0)
        for i in range(memory.totals.shape[0]):
            replay(memory, i, settings)


@shared
def forget(memory: LinearFacts, sight: LinearSight, _settings: FactNumbers) -> None:
    """Forget everything but how the guesses went."""
    memory.weights[:] = 0.0
    memory.right[:] = 0
    memory.wrong[:] = 0
    sight.opinions[:] = 0.0
    memory.alphas[:] = 0.0
    memory.totals[:] = 0.0
    memory.supports[:] = 0
    memory.counts[:] = 0
    memory.cursors[:] = 0


@cache
def _reading(is_sparse: bool) -> Callable[..., None]:
    entries: Callable[..., int] = sparse_entries if is_sparse else dense_entries

    @compiled
    def read(
        memory: LinearFacts, X: Rows, scales: bool, columns: Integers, values: Floats, raws: Floats, out: Floats
    ) -> None:
        for t in range(out.shape[0]):
            n = entries(memory, X, t, scales, columns, values, raws)
            shorten(values, n)
            score(memory.weights, columns, values, n, out[t])

    return read
