"""Facts in the space of a kernel: stored examples, what is proved of each, and every class's separator.

The similarities of all stored examples are kept, and so are their scores, so a step on one fact costs one pass over one
row. When the budget is full, the example with the smallest coefficients makes room, and every fourth time the next one
in turn: noise has large coefficients and would stay for ever. What goes is projected onto the example most like it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from onebit.compiled import compiled, inlined
from onebit.inputs import Floats, Integers
from onebit.kernels import Value
from onebit.rounds import Record, note
from onebit.spaces.facts import Settings, Signs, choose, is_outdated, is_worth_storing, prove, stepped

SIZE, REMOVED = 0, 1
_TURNOVER = 4


class KernelFacts(NamedTuple):
    """The memory: one place per stored example."""

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


def new_memory(n_features: int, n_classes: int, capacity: int) -> KernelFacts:
    """Return an empty memory."""
    return KernelFacts(
        np.zeros((n_features, capacity)),
        np.zeros(capacity),
        np.zeros((capacity, capacity)),
        np.zeros((n_classes, capacity), dtype=np.int8),
        np.zeros((n_classes, capacity)),
        np.zeros((capacity, n_classes)),
        np.zeros((n_classes, capacity)),
        np.zeros(n_classes),
        np.zeros(capacity),
        np.zeros(2, dtype=np.int64),
    )


def enlarged(memory: KernelFacts, capacity: int) -> KernelFacts:
    """Return a copy with more places."""
    n = memory.squares.shape[0]
    larger = new_memory(memory.points.shape[0], memory.signs.shape[0], capacity)
    for name in ("points", "signs", "alphas", "scores"):
        getattr(larger, name)[:, :n] = getattr(memory, name)
    for name in ("squares", "coefficients", "weight"):
        getattr(larger, name)[:n] = getattr(memory, name)
    larger.gram[:n, :n] = memory.gram
    larger.totals[:] = memory.totals
    larger.counts[:] = memory.counts
    return larger


@inlined
def add_up(memory: KernelFacts, similarities: Floats, out: Floats) -> None:
    """Write every class's score of an example with those similarities."""
    coefficients = memory.coefficients
    for i in range(out.shape[0]):
        out[i] = 0.0
    for s in range(memory.counts[SIZE]):
        for i in range(out.shape[0]):
            out[i] += similarities[s] * coefficients[s, i]


@compiled
def worst_fact(memory: KernelFacts, i: int, settings: Settings) -> int:
    """Return the fact of class i whose dual slope is steepest, or −1 if none is beyond the tolerance."""
    signs, alphas, scores = memory.signs[i], memory.alphas[i], memory.scores[i]
    worst, steepest = -1, settings.tolerance
    for s in range(memory.counts[SIZE]):
        slope = 1.0 - signs[s] * scores[s] - alphas[s] * settings.softness
        if signs[s] != 0 and ((slope > steepest) or (-slope > steepest and alphas[s] > 0.0)):
            worst, steepest = s, abs(slope)
    return worst


@compiled
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


@compiled
def make_room(memory: KernelFacts, similarities: Floats, current: Floats) -> int:
    """Project the example with the smallest coefficients, or the next in turn, onto the one most like it."""
    size, gram = memory.counts[SIZE], memory.gram
    place = 0
    for s in range(1, size):
        if memory.weight[s] < memory.weight[place]:
            place = s
    removed = memory.counts[REMOVED]
    memory.counts[REMOVED] = removed + 1
    if removed % _TURNOVER == 0:
        place = removed // _TURNOVER % size
    heir = -1
    for s in range(size):
        if s != place and (heir < 0 or gram[place, s] > gram[place, heir]):
            heir = s
    for i in range(current.shape[0]):
        memory.totals[i] -= memory.alphas[i, place]
        share = memory.coefficients[place, i]
        if share != 0.0:
            _gain(memory, i, place, -share)
            current[i] -= share * similarities[place]
            if heir >= 0 and gram[heir, heir] > 0.0:
                inherited = share * gram[place, heir] / gram[heir, heir]
                _gain(memory, i, heir, inherited)
                current[i] += inherited * similarities[heir]
                old = memory.alphas[i, heir]
                memory.alphas[i, heir] = max(0.0, old + memory.signs[i, heir] * inherited)
                memory.totals[i] += memory.alphas[i, heir] - old
    return place


@compiled
def store(
    memory: KernelFacts, point: Floats, square: float, similarities: Floats, itself: float, current: Floats, new: Signs
) -> int:
    """Store an example with what is proved of it, and return its place."""
    place = int(memory.counts[SIZE])
    if place == memory.squares.shape[0]:
        place = make_room(memory, similarities, current)
    else:
        memory.counts[SIZE] = place + 1
    for j in range(point.shape[0]):
        memory.points[j, place] = point[j]
    for s in range(memory.counts[SIZE]):
        memory.gram[place, s] = memory.gram[s, place] = similarities[s]
    memory.gram[place, place] = itself
    memory.squares[place] = square
    memory.weight[place] = 0.0
    for i in range(current.shape[0]):
        memory.signs[i, place], memory.scores[i, place] = new[i], current[i]
        memory.alphas[i, place] = memory.coefficients[place, i] = 0.0
    return place


@compiled
def learn(
    memory: KernelFacts,
    point: Floats,
    square: float,
    similarities: Floats,
    itself: float,
    current: Floats,
    new: Signs,
    settings: Settings,
) -> None:
    """Store an example, step on the violated facts about it, and replay what that upset."""
    place = store(memory, point, square, similarities, itself, current, new)
    # A step costs one pass over the store: while it is small, more of them fit into the same work.
    replays = settings.replays * settings.budget // memory.counts[SIZE]
    for i in range(new.shape[0]):
        if new[i] != 0 and new[i] * memory.scores[i, place] < 1.0:
            step_on(memory, i, place, settings)
            for _ in range(replays):
                worst = worst_fact(memory, i, settings)
                if worst < 0:
                    break
                step_on(memory, i, worst, settings)


@inlined
def hear(
    memory: KernelFacts,
    point: Floats,
    square: float,
    similarities: Floats,
    itself: float,
    current: Floats,
    new: Signs,
    correct: bool,
    watch: Floats,
    settings: Settings,
) -> bool:
    """Take in an answer: forget what is out of date, then learn what it proves. Say whether anything changed."""
    if is_outdated(watch, correct, new.shape[0], settings):
        memory.counts[SIZE] = 0
        memory.totals[:] = 0.0
        for i in range(new.shape[0]):
            current[i] = 0.0
    if not is_worth_storing(new, current, itself, memory.totals, memory.counts[SIZE], settings):
        return False
    learn(memory, point, square, similarities, itself, current, new, settings)
    return True


class KernelMoves(NamedTuple):
    """The compiled functions of one kernel."""

    compare: Callable[..., tuple[float, float]]
    """(memory, point, parameters, similarities) → ‖x‖², k(x, x)."""
    play: Callable[..., int]
    """Plays on until the stream ends or the memory must grow; returns the rounds played, or −1 − the bad round."""


@cache
def kernel_moves(value: Value) -> KernelMoves:
    """Return a kernel's compiled functions."""

    @inlined
    def measure(memory: KernelFacts, point: Floats, parameters: Any, out: Floats) -> tuple[float, float]:
        points, size = memory.points, memory.counts[SIZE]
        square = 0.0
        for s in range(size):
            out[s] = 0.0
        for j in range(point.shape[0]):
            entry = point[j]
            square += entry * entry
            if entry != 0.0:
                column = points[j]
                for s in range(size):
                    out[s] += entry * column[s]
        for s in range(size):
            out[s] = value(out[s], square, memory.squares[s], parameters)
        return square, value(square, square, square, parameters)

    @compiled
    def compare(memory: KernelFacts, point: Floats, parameters: Any, out: Floats) -> tuple[float, float]:
        return measure(memory, point, parameters, out)

    @compiled
    def play(
        memory: KernelFacts,
        X: Floats,
        y: Integers,
        first: int,
        start: int,
        seed_and_round: tuple[int, int],
        hears_label: bool,
        parameters: Any,
        settings: Settings,
        watch: Floats,
        record: Record,
    ) -> int:
        n_classes, capacity = memory.signs.shape
        current, new, similarities = np.empty(n_classes), np.empty(n_classes, np.int8), np.empty(capacity)
        for t in range(first, X.shape[0]):
            if memory.counts[SIZE] == capacity and capacity < settings.budget:
                return t
            square, itself = measure(memory, X[t], parameters, similarities)
            add_up(memory, similarities, current)
            label, explored = choose(current, seed_and_round[0], seed_and_round[1] + start + t, settings)
            if label < 0:
                return -1 - t
            correct = label == y[start + t]
            prove(label, correct, y[start + t] if hears_label else -1, new)
            changed = hear(
                memory, X[t], square, similarities, itself, current, new, correct, watch, settings
            )  # fmt: skip
            note(record, start + t, label, explored, correct, changed)
        return len(X)

    return KernelMoves(compare, play)
