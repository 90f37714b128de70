"""Facts in the space of a kernel: stored examples, what is proved of each, and every class's separator.

The similarities of all stored examples are kept, and so are their scores, so a step on one fact costs one pass over one
row. When the budget is full, the example with the smallest coefficients makes room, and every fourth time the next one
in turn: noise has large coefficients and would stay for ever. What goes is projected onto the example most like it
(Orabona, Keshet, Caputo 2009).
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from onebit.compiled import frugal, inlined
from onebit.inputs import Floats, Integers, Rows, check_finite, dense
from onebit.kernels import ENTRIES_AT_ONCE, Kernel, Value, is_lost
from onebit.learners.bandit_svm.drift import new_watch
from onebit.learners.bandit_svm.facts import SIZE, FactNumbers, Settings, Signs, fact_game, stepped
from onebit.loop import FULL, UNSCORED, Game, Memory, grown, ready_if_finite

REMOVED = 1  # behind SIZE in `counts`
_FIRST_CAPACITY = 16
# One removal in four goes in turn: enough to wash noise out, too few to lose what is needed.
_TURNOVER = 4


class KernelFacts(NamedTuple):
    """What was learned: one place per stored example."""

    points: Floats
    """One column per example (d × capacity): a round's similarities are added up feature by feature."""
    squares: Floats
    gram: Floats
    signs: Signs
    """What is proved (K × capacity)."""
    alphas: Floats
    """The dual coefficients, never negative (K × capacity)."""
    coefficients: Floats
    """What each class gained of each example (capacity × K): sign times alpha, and what it took over from others."""
    scores: Floats
    """Every class's score of each example (K × capacity)."""
    totals: Floats
    """The sum of each class's alphas."""
    weight: Floats
    """Σᵢ coefficients², per example."""
    counts: Integers
    """How many examples are stored, and how many were removed."""
    watch: Floats
    """How the guesses went, for `is_outdated`."""


class KernelSight(NamedTuple):
    """What is known about one round."""

    scores: Floats
    signs: Signs
    """What the answer proves."""
    similarities: Floats
    """With every stored example."""
    square: Floats
    """‖x‖², the only entry."""
    itself: Floats
    """k(x, x), the only entry."""
    chances: Floats


class KernelFactMemory(Memory):
    """Stored examples, seen through a kernel."""

    arrays: KernelFacts

    def __init__(self, kernel: Kernel, settings: Settings, hears_label: bool, n_features: int, n_classes: int) -> None:
        self.kernel, self.settings, self._hears_label = kernel, FactNumbers(settings, kernel.parameters), hears_label
        self.measures_in_python = type(kernel).value is None
        self.arrays = new_facts(n_features, n_classes, min(settings.budget, _FIRST_CAPACITY))
        self.sight = self.new_sight()

    def new_sight(self) -> KernelSight:
        """Return scratch paper."""
        n_classes, n = self.arrays.signs.shape
        return KernelSight(
            scores=np.empty(n_classes),
            signs=np.empty(n_classes, np.int8),
            similarities=np.zeros(n),
            square=np.empty(1),
            itself=np.empty(1),
            chances=np.empty(n_classes),
        )

    def game(self, is_sparse: bool) -> Game:
        """Return the game with this kernel; rows are dense by now."""
        return kernel_game(type(self.kernel).value, self._hears_label)

    def fill(self, row: Rows) -> None:
        """Write the values of a kernel that is a Python function."""
        x, size = dense(row), self.size
        if size:
            self.sight.similarities[:size] = self.kernel.matrix(x, support(self.arrays))[0]
        # A user's function may give 0 where it likes: only its being a number is asked for.
        self.sight.square[0], self.sight.itself[0] = 1.0, self.kernel.matrix(x, x)[0, 0]

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.arrays.counts[SIZE])

    def prepare(self, rows: Rows) -> Floats:
        """Return dense rows that the kernel accepts."""
        ready = dense(rows)
        check_finite(ready, "features")
        return self.kernel.prepare(ready)

    def rows_at_once(self, n_features: int) -> int:
        """Return how many rows to prepare at a time."""
        return max(1, ENTRIES_AT_ONCE // n_features)

    def make_room(self, rows: Rows, t: int) -> None:
        """Double the places, up to the budget."""
        now, n_classes = self.arrays, len(self.arrays.totals)
        n = min(self.settings.facts.budget, 2 * len(now.squares))
        self.arrays = now._replace(
            points=grown(now.points, (len(now.points), n)),
            squares=grown(now.squares, (n,)),
            gram=grown(now.gram, (n, n)),
            signs=grown(now.signs, (n_classes, n)),
            alphas=grown(now.alphas, (n_classes, n)),
            coefficients=grown(now.coefficients, (n, n_classes)),
            scores=grown(now.scores, (n_classes, n)),
            weight=grown(now.weight, (n,)),
        )

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores by matrix products."""
        learned = self.learned()
        return self.kernel.combine(dense(rows), learned["support"], learned["coefficients"])

    def learned(self) -> dict[str, Floats]:
        """Return the examples and their coefficients, one column per class."""
        return {"support": support(self.arrays), "coefficients": self.arrays.coefficients[: self.size].copy()}


def new_facts(n_features: int, n_classes: int, capacity: int) -> KernelFacts:
    """Return an empty memory."""
    return KernelFacts(
        points=np.zeros((n_features, capacity)),
        squares=np.zeros(capacity),
        gram=np.zeros((capacity, capacity)),
        signs=np.zeros((n_classes, capacity), dtype=np.int8),
        alphas=np.zeros((n_classes, capacity)),
        coefficients=np.zeros((capacity, n_classes)),
        scores=np.zeros((n_classes, capacity)),
        totals=np.zeros(n_classes),
        weight=np.zeros(capacity),
        counts=np.zeros(2, dtype=np.int64),
        watch=new_watch(),
    )


def support(memory: KernelFacts) -> Floats:
    """Return the stored examples, one row each."""
    return memory.points[:, : memory.counts[SIZE]].T.copy()


@inlined
def add_up(memory: KernelFacts, similarities: Floats, out: Floats) -> None:
    """Write every class's score of an example with those similarities."""
    coefficients = memory.coefficients
    for i in range(out.shape[0]):
        out[i] = 0.0
    for s in range(memory.counts[SIZE]):
        for i in range(out.shape[0]):
            out[i] += similarities[s] * coefficients[s, i]


@frugal
def worst_fact(memory: KernelFacts, i: int, settings: Settings) -> int:
    """Return the fact of class i whose dual slope is steepest, or −1 if none is beyond the tolerance."""
    signs, alphas, scores = memory.signs[i], memory.alphas[i], memory.scores[i]
    worst, steepest = -1, settings.tolerance  # the steepest first: the fewest steps to the optimum
    for s in range(memory.counts[SIZE]):
        slope = 1.0 - signs[s] * scores[s] - alphas[s] * settings.softness
        if signs[s] != 0 and ((slope > steepest) or (-slope > steepest and alphas[s] > 0.0)):
            worst, steepest = s, abs(slope)
    return worst


@frugal
def step_on(memory: KernelFacts, i: int, s: int, settings: Settings) -> None:
    """Take the step on the fact about class i and example s."""
    old, sign = memory.alphas[i, s], memory.signs[i, s]
    new = stepped(old, sign, memory.scores[i, s], memory.gram[s, s], settings.softness)
    memory.alphas[i, s] = new
    memory.totals[i] += new - old
    _gain(memory, i, s, sign * (new - old))


@inlined
def _gain(memory: KernelFacts, i: int, s: int, gain: float) -> None:
    """Let class i gain that much of example s."""
    if gain == 0.0:
        return
    scores, row, before = memory.scores[i], memory.gram[s], memory.coefficients[s, i]
    memory.coefficients[s, i] = before + gain
    memory.weight[s] += gain * (2.0 * before + gain)
    for r in range(memory.counts[SIZE]):
        scores[r] += gain * row[r]


@frugal
def make_place(memory: KernelFacts, sight: KernelSight) -> int:
    """Project the example with the smallest coefficients, or the next in turn, onto the one most like it."""
    size, gram, similarities, scores = memory.counts[SIZE], memory.gram, sight.similarities, sight.scores
    place = 0
    for s in range(1, size):
        if memory.weight[s] < memory.weight[place]:
            place = s
    removed = memory.counts[REMOVED]  # counts removals, so that turns go on across calls
    memory.counts[REMOVED] = removed + 1
    if removed % _TURNOVER == 0:
        place = removed // _TURNOVER % size
    heir = -1
    for s in range(size):
        if s != place and (heir < 0 or gram[place, s] > gram[place, heir]):
            heir = s
    for i in range(scores.shape[0]):
        memory.totals[i] -= memory.alphas[i, place]
        share = memory.coefficients[place, i]
        if share != 0.0:
            _gain(memory, i, place, -share)
            scores[i] -= share * similarities[place]
            # The projection of k(x, ·) onto k(heir, ·): the least that is lost by one example's going.
            if heir >= 0 and gram[heir, heir] > 0.0:
                inherited = share * gram[place, heir] / gram[heir, heir]
                _gain(memory, i, heir, inherited)
                scores[i] += inherited * similarities[heir]
                old = memory.alphas[i, heir]
                # An inherited share counts as the heir's own only where it has the heir's sign.
                memory.alphas[i, heir] = max(0.0, old + memory.signs[i, heir] * inherited)
                memory.totals[i] += memory.alphas[i, heir] - old
    return place


@frugal
def store(memory: KernelFacts, X: Floats, t: int, sight: KernelSight) -> int:
    """Store row t with what is proved of it, and return its place."""
    place = int(memory.counts[SIZE])
    if place == memory.squares.shape[0]:
        place = make_place(memory, sight)
    else:
        memory.counts[SIZE] = place + 1
    for j in range(X.shape[1]):
        memory.points[j, place] = X[t, j]
    for s in range(memory.counts[SIZE]):
        memory.gram[place, s] = memory.gram[s, place] = sight.similarities[s]
    memory.squares[place], memory.gram[place, place] = sight.square[0], sight.itself[0]
    memory.weight[place] = 0.0
    for i in range(sight.scores.shape[0]):
        memory.signs[i, place], memory.scores[i, place] = sight.signs[i], sight.scores[i]
        memory.alphas[i, place] = memory.coefficients[place, i] = 0.0
    return place


@frugal
def learn(memory: KernelFacts, X: Floats, t: int, sight: KernelSight, settings: Settings) -> None:
    """Store an example, step on the violated facts about it, and replay what that upset."""
    place = store(memory, X, t, sight)
    # A step costs one pass over the store: while it is small, more of them fit into the same work.
    replays = settings.replays * settings.budget // memory.counts[SIZE]
    for i in range(sight.signs.shape[0]):
        if sight.signs[i] != 0 and sight.signs[i] * memory.scores[i, place] < 1.0:
            step_on(memory, i, place, settings)
            for _ in range(replays):
                worst = worst_fact(memory, i, settings)
                if worst < 0:
                    break
                step_on(memory, i, worst, settings)


@frugal
def forget(memory: KernelFacts) -> None:
    """Forget everything but how the guesses went; what is stored is overwritten place by place."""
    memory.counts[SIZE] = 0
    memory.totals[:] = 0.0


@cache
def kernel_game(value: Value | None, hears_label: bool) -> Game:
    """Return the game with a kernel; None stands for kernels that are Python functions of rows."""
    compare = _compared_before if value is None else _comparing(value)

    def measure(memory: KernelFacts, X: Floats, t: int, sight: KernelSight, settings: FactNumbers) -> int:
        capacity = memory.squares.shape[0]
        if memory.counts[SIZE] == capacity and capacity < settings.facts.budget:
            return FULL
        if sight.similarities.shape[0] < capacity:  # Ctrl-C came when the memory had grown, and the paper had not
            return FULL
        compare(memory, X, t, settings.kernel, sight)
        if is_lost(sight.itself[0], sight.square[0], X, t):
            return UNSCORED
        add_up(memory, sight.similarities, sight.scores)
        return ready_if_finite(sight.scores)

    return fact_game(measure, learn, forget, hears_label)


def _comparing(value: Value) -> Callable[..., None]:
    """Return the compiled function that writes ‖x‖², k(x, x) and the similarities of row t with what is stored."""

    @inlined
    def compare(memory: KernelFacts, X: Floats, t: int, parameters: Any, sight: KernelSight) -> None:
        points, out, size, square = memory.points, sight.similarities, memory.counts[SIZE], 0.0
        for s in range(size):
            out[s] = 0.0
        for j in range(X.shape[1]):
            entry = X[t, j]
            square += entry * entry
            if entry != 0.0:  # bits, one-hot columns and pixels are mostly zero
                column = points[j]
                for s in range(size):
                    out[s] += entry * column[s]
        for s in range(size):
            out[s] = value(out[s], square, memory.squares[s], parameters)
        sight.square[0], sight.itself[0] = square, value(square, square, square, parameters)

    return compare


@inlined
def _compared_before(_memory: KernelFacts, _X: Floats, _t: int, _parameters: Any, _sight: KernelSight) -> None:
    """Do nothing: Python has written the values of a kernel that is a function of rows."""
