"""A bank of kernels over one store of facts: what is proved of an example, and every kernel's separators.

An answer proves the same facts to every kernel, whoever guessed. So all of them learn from every round, and each one's
own opinion can be judged: after "right", every kernel that would have said something else was wrong; after "wrong",
every kernel that would have said the same was. The guess is a vote of the opinions, weighted by how often each was
wrong.

Similarities of all stored examples are kept for every kernel that needs its own (powers of one are had by squaring),
and so are their scores, so a step on one fact costs one pass over one row. When the budget is full, the example with
the smallest coefficients makes room, and every fourth time the next one in turn: noise has large coefficients and would
stay for ever. What goes is projected onto the example most like it (Orabona, Keshet, Caputo 2009); of the linear kernel
nothing goes, since its weights can be kept as they are.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from onebit.compiled import frugal, inlined
from onebit.inputs import Floats, Integers, Rows, take
from onebit.kernels import ENTRIES_AT_ONCE, Gaussian, Kernel, Laplace, Linear, is_lost
from onebit.learners.bandit_svm.drift import new_watch
from onebit.learners.bandit_svm.facts import (
    SIZE,
    FactNumbers,
    Settings,
    Signs,
    curiosity,
    fact_game,
    is_productive,
    is_worth_storing,
    look_up,
    stepped,
)
from onebit.learners.bandit_svm.rows import (
    DENSE,
    SPARSE,
    as_seen,
    change_scale,
    count_dense,
    count_sparse,
    read_dense,
    read_sparse,
    scale_is_due,
)
from onebit.lengths import to_unit, unit_rows
from onebit.loop import FULL, READY, UNSCORED, Game, Memory, grown, highest, ready_if_finite
from onebit.rounds import Answer
from onebit.scaling import new_scale, new_statistics, scaled

REMOVED, STALE = 1, 2  # behind SIZE in `counts`
_FIRST_CAPACITY = 16
# One removal in four goes in turn: enough to wash noise out, too few to lose what is needed.
_TURNOVER = 4
# A vote counts a score beyond two margins as two: one kernel's certainty must not drown the others.
_LOUDEST = 2.0
# Below this trust a kernel has no say in a vote; and how many lessons it may have had by then.
_SAY, _HEAD_START = 1e-3, 100
# Steps for each class of each kernel after the columns were scaled anew.
_STEPS_AFTER_SCALING = 100


BASE, SQUARINGS, LINEAR = range(3)
"""What a bank's plan says of each kernel."""


class Bank(NamedTuple):
    """How the kernels of a bank are computed."""

    kernels: tuple[Kernel, ...]
    bases: tuple[Kernel, ...]
    """Kernels with similarities of their own; the others are powers of them."""
    plan: Integers
    """For each kernel its base, how often to square that, and whether it is the linear one (m × 3)."""


def new_bank(kernels: tuple[Kernel, ...]) -> Bank:
    """Return how to compute kernels: a Gaussian whose exponent is another's times a power of two is had by squaring."""
    bases: list[Kernel] = []
    plan = np.zeros((len(kernels), 3), dtype=np.int64)
    for k, kernel in enumerate(kernels):
        plan[k, LINEAR] = isinstance(kernel, Linear) and kernel.normalize
        for b, base in enumerate(bases):
            squarings = _squarings(base, kernel)
            if squarings is not None:
                plan[k, BASE], plan[k, SQUARINGS] = b, squarings
                break
        else:
            plan[k, BASE] = len(bases)
            bases.append(kernel)
    return Bank(kernels, tuple(bases), plan)


def _squarings(base: Kernel, kernel: Kernel) -> int | None:
    """Return how often a kernel's values must be squared to get another's, or None."""
    if base == kernel:
        return 0
    if isinstance(base, Gaussian) and isinstance(kernel, Gaussian) and base.normalize == kernel.normalize:
        ratio = kernel.parameters[0] / base.parameters[0]
        for squarings in range(1, 9):
            if ratio == 2.0**squarings:
                return squarings
    return None


class BankFacts(NamedTuple):
    """What was learned: one place per stored example."""

    rows: Floats
    """The examples as they came, one column each (d × capacity); empty if nothing is scaled."""
    features: Floats
    """The examples as the kernels see them, scaled and with the constant (D × capacity)."""
    units: Floats
    """The same, divided by their length: a round's products are added up feature by feature."""
    lengths: Floats
    kinds: Signs
    """Whether an example came as a dense row (0) or as a sparse one (1)."""
    grams: Floats
    """The similarities of the stored examples, for every base (bases × capacity × capacity)."""
    signs: Signs
    """What is proved (K × capacity)."""
    alphas: Floats
    """The dual coefficients, never negative (m × K × capacity)."""
    coefficients: Floats
    """What each class gained of each example: sign times alpha, and what it took over (m × capacity × K)."""
    scores: Floats
    """Every class's score of each example (m × K × capacity)."""
    totals: Floats
    """The sum of each class's alphas (m × K)."""
    weight: Floats
    """The sum of all squared coefficients of an example."""
    kept: Floats
    """The linear kernel's weights that belong to no stored example (D × K); empty if there is no such kernel."""
    losses: Floats
    """How often each kernel's own opinion was proved wrong."""
    trust: Floats
    """What each kernel's opinion counts in the vote: exp(−losses), the best one's being 1."""
    productive: Integers
    """How many rounds taught each kernel a fact that lacked much of its margin."""
    right: Integers
    """How often each class was guessed right."""
    tally: Integers
    counts: Integers
    """How many examples are stored, how many were removed, and whether similarities wait for Python."""
    watch: Floats
    """How the guesses went, for `is_outdated`."""
    statistics: Floats
    """Of the columns, for dense and for sparse rows (2 × 4 × d); empty if nothing is scaled."""
    scales: Floats
    """How columns are scaled, for dense and for sparse rows (2 × 3 × d)."""
    seen: Integers
    """How many dense and how many sparse rows were heard."""


class BankSight(NamedTuple):
    """What is known about one round."""

    scores: Floats
    """The vote."""
    opinions: Floats
    """Every kernel's scores (m × K)."""
    reference: Integers
    """The kernel with the fewest productive facts, the only entry."""
    follow: Signs
    """Whether to follow it where it disputes the vote, the only entry."""
    signs: Signs
    """What the answer proves."""
    features: Floats
    """The row, scaled, with the constant (1 × D)."""
    unit: Floats
    length: Floats
    bases: Floats
    """The similarities with every stored example, for every base."""
    similarities: Floats
    """The same for every kernel (m × capacity)."""
    itself: Floats
    """k(x, x) for every base, then for every kernel (2 × m)."""
    line: Floats
    """Room for one row of similarities."""
    distances: Floats
    chances: Floats


class BankMemory(Memory):
    """Facts, seen through a bank of kernels."""

    arrays: BankFacts

    def __init__(
        self, kernels: tuple[Kernel, ...], settings: Settings, hears_label: bool, n_features: int, n_classes: int
    ) -> None:
        self.bank, self._hears_label = new_bank(kernels), hears_label
        self.measures_in_python = any(_is_function(kernel) for kernel in kernels)
        width = n_features + settings.scales
        self.settings = FactNumbers(settings, (self.bank.plan, _parameters(self.bank, width)))
        self.arrays = _new_facts(self.bank, settings, n_features, width, n_classes)
        self.sight = self.new_sight()

    def new_sight(self) -> BankSight:
        """Return scratch paper."""
        (m, n_classes), n = self.arrays.totals.shape, len(self.arrays.lengths)
        width = len(self.arrays.units)
        return BankSight(
            scores=np.empty(n_classes),
            opinions=np.empty((m, n_classes)),
            reference=np.zeros(1, np.int64),
            follow=np.zeros(1, np.int8),
            signs=np.empty(n_classes, np.int8),
            features=np.empty((1, width)),
            unit=np.empty(width),
            length=np.empty(1),
            bases=np.zeros((len(self.arrays.grams), n)),
            similarities=np.zeros((m, n)),
            itself=np.zeros((2, m)),
            line=np.zeros(n),
            distances=np.zeros(n),
            chances=np.empty(n_classes),
        )

    def game(self, is_sparse: bool) -> Game:
        """Return the game with these kernels on dense or on sparse rows."""
        return bank_game(_forms(self.bank), is_sparse, self._hears_label)

    def fill(self, row: Rows) -> None:
        """Write the values of kernels that are Python functions."""
        x, size = as_seen(self.arrays, row, self.settings.facts.scales), self.size
        stored = self.arrays.features[:, :size].T.copy()
        if self.arrays.counts[STALE]:
            self._compare_again(stored)
        for b, kernel in enumerate(self.bank.bases):
            if _is_function(kernel):
                ready = kernel.prepare(x)
                if size:
                    self.sight.bases[b, :size] = kernel.matrix(ready, kernel.prepare(stored))[0]
                self.sight.itself[0, b] = kernel.matrix(ready, ready)[0, 0]

    def _compare_again(self, stored: Floats) -> None:
        """Write the values of Python's kernels for all stored examples, which were scaled anew."""
        for b, kernel in enumerate(self.bank.bases):
            if _is_function(kernel) and len(stored):
                ready = kernel.prepare(stored)
                self.arrays.grams[b, : len(stored), : len(stored)] = kernel.matrix(ready, ready)
        rescore(self.arrays, self.sight, self.settings)
        self.arrays.counts[STALE] = 0

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.arrays.counts[SIZE])

    def prepare(self, rows: Rows) -> Rows:
        """Return rows as they are, having let every kernel look whether it accepts them."""
        if not self.settings.facts.scales:
            for kernel in self.bank.bases:
                # The others take any row, or say in `measure` what they cannot take.
                if not kernel.normalize and type(kernel).prepare is not Kernel.prepare:
                    kernel.prepare(as_seen(self.arrays, rows, False))
        return rows

    def rows_at_once(self, n_features: int) -> int:
        """Return how many rows to let the kernels look at, which makes them dense."""
        return max(1, ENTRIES_AT_ONCE // n_features)

    def make_room(self, rows: Rows, t: int) -> None:
        """Double the places, up to the budget."""
        now = self.arrays
        (m, n_classes), n = now.totals.shape, min(self.settings.facts.budget, 2 * len(now.lengths))
        self.arrays = now._replace(
            rows=grown(now.rows, (len(now.rows), n)),
            features=grown(now.features, (len(now.features), n)),
            units=grown(now.units, (len(now.units), n)),
            lengths=grown(now.lengths, (n,)),
            kinds=grown(now.kinds, (n,)),
            grams=grown(now.grams, (len(now.grams), n, n)),
            signs=grown(now.signs, (n_classes, n)),
            alphas=grown(now.alphas, (m, n_classes, n)),
            coefficients=grown(now.coefficients, (m, n, n_classes)),
            scores=grown(now.scores, (m, n_classes, n)),
            weight=grown(now.weight, (n,)),
        )

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores, as a guess is made from them, by matrix products."""
        at_once = self.rows_at_once(rows.shape[1])
        parts = [self._score_some(take(rows, t, t + at_once)) for t in range(0, rows.shape[0], at_once)]
        return np.concatenate(parts)

    def _score_some(self, rows: Rows) -> Floats:
        now, scales = self.arrays, self.settings.facts.scales
        seen, stored = as_seen(now, rows, scales), now.features[:, : self.size].T.copy()
        opinions = np.empty((len(now.trust), len(seen), len(self.sight.scores)))
        for k, kernel in enumerate(self.bank.kernels):
            coefficients = now.coefficients[k, : self.size]
            opinions[k] = kernel.combine(kernel.prepare(seen), kernel.prepare(stored), coefficients)
            if self.bank.plan[k, LINEAR]:
                opinions[k] += unit_rows(seen) @ now.kept
        if len(opinions) > 1:
            opinions = np.clip(opinions, -_LOUDEST, _LOUDEST) * (now.trust / now.trust.sum())[:, None, None]
        scores: Floats = opinions.sum(axis=0)
        return scores + curiosity(now.right) if self.settings.facts.guarded else scores

    def learned(self) -> dict[str, Floats]:
        """Return the examples and their coefficients: one column per class, for each kernel if there are several."""
        coefficients = self.arrays.coefficients[:, : self.size].copy()
        stored = self.arrays.rows if self.settings.facts.scales else self.arrays.features
        support = stored[:, : self.size].T.copy()
        return {"support": support, "coefficients": coefficients[0] if len(coefficients) == 1 else coefficients}


def _is_function(kernel: Kernel) -> bool:
    """Return whether only Python can compute a kernel, from rows."""
    return type(kernel).value is None and not (isinstance(kernel, Laplace) and not kernel.normalize)


def _parameters(bank: Bank, width: int) -> tuple[tuple[float, ...], ...]:
    """Return the numbers that each base's compiled function is given, for rows of that many features."""
    numbers = []
    for kernel in bank.bases:
        share = 1.0 / width if isinstance(kernel, Laplace) else 1.0
        numbers.append(tuple(share * number for number in kernel.parameters))
    return tuple(numbers)


def _new_facts(bank: Bank, settings: Settings, n_features: int, width: int, n_classes: int) -> BankFacts:
    m, n = len(bank.kernels), min(settings.budget, _FIRST_CAPACITY)
    n_scaled = n_features if settings.scales else 0
    statistics = np.stack([new_statistics(n_scaled), new_statistics(n_scaled)])
    return BankFacts(
        rows=np.zeros((n_scaled, n)),
        features=np.zeros((width, n)),
        units=np.zeros((width, n)),
        lengths=np.zeros(n),
        kinds=np.zeros(n, np.int8),
        grams=np.zeros((len(bank.bases), n, n)),
        signs=np.zeros((n_classes, n), np.int8),
        alphas=np.zeros((m, n_classes, n)),
        coefficients=np.zeros((m, n, n_classes)),
        scores=np.zeros((m, n_classes, n)),
        totals=np.zeros((m, n_classes)),
        weight=np.zeros(n),
        kept=np.zeros((width if bank.plan[:, LINEAR].any() else 0, n_classes)),
        losses=np.zeros(m),
        trust=np.ones(m),
        productive=np.zeros(m, np.int64),
        right=np.zeros(n_classes, np.int64),
        tally=np.zeros(2, np.int64),
        counts=np.zeros(3, np.int64),
        watch=new_watch(),
        statistics=statistics,
        scales=np.stack([new_scale(n_scaled), new_scale(n_scaled)]),
        seen=np.zeros(2, np.int64),
    )


# How a base is computed: from a product of unit rows, of rows as they are, from ‖x−x'‖₁, or in Python beforehand.
_UNIT, _PRODUCT, _DISTANCE, _FILLED = range(4)


def _forms(bank: Bank) -> tuple[tuple[int, Any], ...]:
    """Return how each base is computed, and its compiled function."""
    forms: list[tuple[int, Any]] = []
    for kernel in bank.bases:
        if _is_function(kernel):
            forms.append((_FILLED, None))
        elif type(kernel).value is None:
            forms.append((_DISTANCE, None))
        else:
            forms.append((_UNIT if kernel.normalize else _PRODUCT, type(kernel).value))
    return tuple(forms)


@cache
def _comparing(forms: tuple[tuple[int, Any], ...]) -> Callable[..., None]:
    """Return the compiled function that writes every base's similarities, from products and distances.

    It is built like a list, one base at a time, since compiled code cannot loop over functions.
    """
    if not forms:

        @inlined
        def compare_none(
            _memory: BankFacts,
            _size: int,
            _products: Floats,
            _distances: Floats,
            _length: float,
            _p: Any,
            _out: Floats,
            _own: Floats,
        ) -> None:
            pass

        return compare_none
    first, others = _comparing_one(*forms[0]), _comparing(forms[1:])

    @inlined
    def compare_all(
        memory: BankFacts,
        size: int,
        products: Floats,
        distances: Floats,
        length: float,
        parameters: Any,
        out: Floats,
        itself: Floats,
    ) -> None:
        first(memory, size, products, distances, length, parameters[0], out[0], itself[:1])
        others(memory, size, products, distances, length, parameters[1:], out[1:], itself[1:])

    return compare_all


def _comparing_one(form: int, value: Any) -> Callable[..., None]:
    """Return the compiled function that writes one base's similarities with the stored examples, and with itself."""

    @inlined
    def of_units(
        memory: Any, size: int, products: Any, _d: Any, length: float, parameters: Any, out: Any, itself: Any
    ) -> None:
        own = 1.0 if length > 0.0 else 0.0  # a row of zeros has no direction
        for s in range(size):
            out[s] = value(products[s], own, 1.0 if memory.lengths[s] > 0.0 else 0.0, parameters)
        itself[0] = value(own, own, own, parameters)

    @inlined
    def of_products(
        memory: Any, size: int, products: Any, _d: Any, length: float, parameters: Any, out: Any, itself: Any
    ) -> None:
        square = length * length
        for s in range(size):
            other = memory.lengths[s]
            out[s] = value(products[s] * length * other, square, other * other, parameters)
        itself[0] = value(square, square, square, parameters)

    @inlined
    def of_distances(
        _memory: Any, size: int, _products: Any, distances: Any, _l: float, parameters: Any, out: Any, itself: Any
    ) -> None:
        for s in range(size):
            out[s] = math.exp(-parameters[0] * distances[s])
        itself[0] = 1.0

    @inlined
    def written_before(_memory: Any, _size: int, _a: Any, _b: Any, _l: float, _p: Any, _out: Any, _itself: Any) -> None:
        """Do nothing: Python has written the values of a kernel that is a function of rows."""

    return (of_units, of_products, of_distances, written_before)[form]


@inlined
def _multiply(memory: BankFacts, unit: Floats, size: int, out: Floats) -> None:
    """Write the products of a unit row with all stored ones."""
    for s in range(size):
        out[s] = 0.0
    for j in range(unit.shape[0]):
        entry = unit[j]
        if entry != 0.0:  # bits, one-hot columns and pixels are mostly zero
            column = memory.units[j]
            for s in range(size):
                out[s] += entry * column[s]


@inlined
def _distance(memory: BankFacts, features: Floats, size: int, out: Floats) -> None:
    """Write ‖x−x'‖₁ for all stored rows x'."""
    for s in range(size):
        out[s] = 0.0
    for j in range(memory.features.shape[0]):
        entry, column = features[0, j], memory.features[j]
        for s in range(size):
            out[s] += abs(entry - column[s])


@frugal
def similarity_row(memory: BankFacts, plan: Integers, k: int, s: int, out: Floats) -> None:
    """Write kernel k's similarities of example s with all stored ones."""
    row, size = memory.grams[plan[k, BASE], s], memory.counts[SIZE]
    for r in range(size):
        out[r] = row[r]
    square_often(out, size, plan[k, SQUARINGS])


@inlined
def square_often(values: Floats, size: int, times: int) -> None:
    """Square values in place, that many times."""
    for _ in range(times):
        for r in range(size):
            values[r] *= values[r]


@frugal
def gain(memory: BankFacts, plan: Integers, k: int, i: int, s: int, amount: float, line: Floats) -> None:
    """Let class i of kernel k gain that much of example s."""
    if amount == 0.0:
        return
    similarity_row(memory, plan, k, s, line)
    scores, before = memory.scores[k, i], memory.coefficients[k, s, i]
    memory.coefficients[k, s, i] = before + amount
    memory.weight[s] += amount * (2.0 * before + amount)
    for r in range(memory.counts[SIZE]):
        scores[r] += amount * line[r]


@frugal
def step_on(memory: BankFacts, plan: Integers, k: int, i: int, s: int, settings: Settings, line: Floats) -> None:
    """Take kernel k's step on the fact about class i and example s."""
    old, sign = memory.alphas[k, i, s], memory.signs[i, s]
    itself = memory.grams[plan[k, BASE], s, s]
    for _ in range(plan[k, SQUARINGS]):
        itself *= itself
    new = stepped(old, sign, memory.scores[k, i, s], itself, settings.softness)
    memory.alphas[k, i, s] = new
    memory.totals[k, i] += new - old
    gain(memory, plan, k, i, s, sign * (new - old), line)


@frugal
def worst_fact(memory: BankFacts, k: int, i: int, settings: Settings) -> int:
    """Return kernel k's fact of class i whose dual slope is steepest, or −1 if none is beyond the tolerance."""
    signs, alphas, scores = memory.signs[i], memory.alphas[k, i], memory.scores[k, i]
    worst, steepest = -1, settings.tolerance  # the steepest first: the fewest steps to the optimum
    for s in range(memory.counts[SIZE]):
        slope = 1.0 - signs[s] * scores[s] - alphas[s] * settings.softness
        if signs[s] != 0 and ((slope > steepest) or (-slope > steepest and alphas[s] > 0.0)):
            worst, steepest = s, abs(slope)
    return worst


@frugal
def replay(memory: BankFacts, plan: Integers, k: int, i: int, times: int, settings: Settings, line: Floats) -> None:
    """Let class i of kernel k take up to that many steps, the steepest first."""
    for _ in range(times):
        worst = worst_fact(memory, k, i, settings)
        if worst < 0:
            break
        step_on(memory, plan, k, i, worst, settings, line)


@frugal
def make_place(memory: BankFacts, plan: Integers, sight: BankSight) -> int:
    """Free the place of the example with the smallest coefficients, or of the next in turn."""
    size = memory.counts[SIZE]
    place = 0
    for s in range(1, size):
        if memory.weight[s] < memory.weight[place]:
            place = s
    removed = memory.counts[REMOVED]  # counts removals, so that turns go on across calls
    memory.counts[REMOVED] = removed + 1
    if removed % _TURNOVER == 0:
        place = removed // _TURNOVER % size
    for k in range(plan.shape[0]):
        if plan[k, LINEAR]:
            keep_weights(memory, k, place)
        else:
            hand_over(memory, plan, k, place, sight)
    return place


@frugal
def keep_weights(memory: BankFacts, k: int, place: int) -> None:
    """Keep what the linear kernel learned from an example that goes: its separators stay as they are."""
    for i in range(memory.kept.shape[1]):
        share = memory.coefficients[k, place, i]
        if share != 0.0:
            for j in range(memory.kept.shape[0]):
                memory.kept[j, i] += share * memory.units[j, place]
        memory.totals[k, i] -= memory.alphas[k, i, place]
        memory.coefficients[k, place, i] = memory.alphas[k, i, place] = 0.0


@frugal
def hand_over(memory: BankFacts, plan: Integers, k: int, place: int, sight: BankSight) -> None:
    """Project what a kernel learned from an example that goes onto the example most like it."""
    size, base, similarities, opinion = memory.counts[SIZE], plan[k, BASE], sight.similarities[k], sight.opinions[k]
    row, heir = memory.grams[base, place], -1
    for s in range(size):
        if s != place and (heir < 0 or row[s] > row[heir]):
            heir = s
    ratio = row[heir] / memory.grams[base, heir, heir] if heir >= 0 and memory.grams[base, heir, heir] > 0.0 else 0.0
    for _ in range(plan[k, SQUARINGS]):
        ratio *= ratio
    for i in range(opinion.shape[0]):
        memory.totals[k, i] -= memory.alphas[k, i, place]
        share = memory.coefficients[k, place, i]
        if share != 0.0:
            gain(memory, plan, k, i, place, -share, sight.line)
            opinion[i] -= share * similarities[place]
            # The projection of k(x, ·) onto k(heir, ·): the least that is lost by one example's going.
            inherited = share * ratio
            if inherited != 0.0:
                gain(memory, plan, k, i, heir, inherited, sight.line)
                opinion[i] += inherited * similarities[heir]
                old = memory.alphas[k, i, heir]
                # An inherited share counts as the heir's own only where it has the heir's sign.
                memory.alphas[k, i, heir] = max(0.0, old + memory.signs[i, heir] * inherited)
                memory.totals[k, i] += memory.alphas[k, i, heir] - old


@inlined
def write_similarities(memory: BankFacts, sight: BankSight, place: int) -> None:
    """Keep the similarities of the row in `sight`, which is stored at that place."""
    for b in range(memory.grams.shape[0]):
        gram, similarities = memory.grams[b], sight.bases[b]
        for s in range(memory.counts[SIZE]):
            gram[place, s] = gram[s, place] = similarities[s]
        gram[place, place] = sight.itself[0, b]


@frugal
def store(memory: BankFacts, plan: Integers, sight: BankSight) -> int:
    """Store the round's row with what is proved of it, and return its place."""
    place = int(memory.counts[SIZE])
    if place == memory.lengths.shape[0]:
        place = make_place(memory, plan, sight)
    else:
        memory.counts[SIZE] = place + 1
    for j in range(memory.units.shape[0]):
        memory.units[j, place] = sight.unit[j]
    for j in range(memory.features.shape[0]):
        memory.features[j, place] = sight.features[0, j]
    memory.lengths[place], memory.weight[place] = sight.length[0], 0.0
    write_similarities(memory, sight, place)
    for i in range(sight.signs.shape[0]):
        memory.signs[i, place] = sight.signs[i]
        for k in range(plan.shape[0]):
            memory.scores[k, i, place] = sight.opinions[k, i]
            memory.alphas[k, i, place] = memory.coefficients[k, place, i] = 0.0
    return place


@inlined
def judge(memory: BankFacts, sight: BankSight, answer: Answer, settings: Settings) -> bool:
    """Count which kernels were wrong, and say whether one that takes part wants the example."""
    known, is_wanted, least = highest_sign(sight.signs), False, memory.productive[sight.reference[0]]
    for k in range(memory.losses.shape[0]):
        opinion = sight.opinions[k]
        best = highest(opinion)
        # Without a known label all that is proved is that the guess was wrong.
        if (known >= 0 and best != known) or (known < 0 and best == answer.label):
            memory.losses[k] += 1.0
        # A kernel without a say that learned much more than the reference need not be taught: the guarantee stands.
        takes_part = memory.trust[k] > _SAY or memory.productive[k] <= 2 * least + _HEAD_START
        if takes_part and is_worth_storing(
            sight.signs, opinion, sight.itself[1, k], memory.totals[k], memory.counts[SIZE], settings
        ):
            is_wanted = True
    fewest = memory.losses[0]
    for k in range(1, memory.losses.shape[0]):
        fewest = min(fewest, memory.losses[k])
    for k in range(memory.losses.shape[0]):
        memory.trust[k] = math.exp(fewest - memory.losses[k])
    return is_wanted


@inlined
def highest_sign(signs: Signs) -> int:
    """Return the class that is proved to be the right one, or −1."""
    known = -1
    for i in range(signs.shape[0]):
        if signs[i] > 0:
            known = i
    return known


@frugal
def forget(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
    """Forget all facts; the linear kernel keeps its weights, and with them its guarantee."""
    plan = settings.kernel[0]
    for k in range(plan.shape[0]):
        if plan[k, LINEAR]:
            for s in range(memory.counts[SIZE]):
                keep_weights(memory, k, s)
        else:
            for i in range(sight.opinions.shape[1]):
                sight.opinions[k, i] = 0.0
    memory.counts[SIZE] = 0
    memory.totals[:] = 0.0
    memory.losses[:] = 0.0
    memory.trust[:] = 1.0
    memory.right[:] = 0


@frugal
def vote(memory: BankFacts, sight: BankSight, settings: Settings) -> None:
    """Write the weighted mean of the opinions, and who the reference is."""
    m, n_classes = sight.opinions.shape
    if m == 1:
        for i in range(n_classes):
            sight.scores[i] = sight.opinions[0, i]
    else:
        total, reference = 0.0, 0
        for i in range(n_classes):
            sight.scores[i] = 0.0
        for k in range(m):
            trust, opinion = memory.trust[k], sight.opinions[k]
            total += trust
            for i in range(n_classes):
                sight.scores[i] += trust * min(_LOUDEST, max(-_LOUDEST, opinion[i]))
            if memory.productive[k] < memory.productive[reference]:
                reference = k
        for i in range(n_classes):
            sight.scores[i] /= total
        sight.reference[0] = reference
    look_up(memory, sight, settings)


@frugal
def learn_from_sight(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> int:
    """Store an example, let every kernel step on the violated facts about it, and replay what that upset."""
    facts, plan = settings.facts, settings.kernel[0]
    # Before the store makes room, which changes opinions: the reference was asked with those the guess was made from.
    for k in range(plan.shape[0]):
        memory.productive[k] += teaches(sight.signs, sight.opinions[k])
    place = store(memory, plan, sight)
    # A step costs one pass over the store: while it is small, more of them fit into the same work.
    times = facts.replays * facts.budget / memory.counts[SIZE]
    for k in range(plan.shape[0]):
        for i in range(sight.signs.shape[0]):
            sign, score = sight.signs[i], memory.scores[k, i, place]
            if sign != 0 and sign * score < 1.0:
                step_on(memory, plan, k, i, place, facts, sight.line)
                # Replays make opinions better, so they go where opinions count.
                replay(memory, plan, k, i, int(times * memory.trust[k]), facts, sight.line)
    return place


@inlined
def teaches(signs: Signs, opinion: Floats) -> bool:
    """Say whether a fact lacks so much of its margin with a kernel that it is productive for it."""
    found = False
    for i in range(signs.shape[0]):
        found = found or (signs[i] != 0 and is_productive(signs[i], opinion[i]))
    return found


@frugal
def rescore(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
    """Write the scores of all stored examples anew, after their similarities changed, and take some steps."""
    facts, plan = settings.facts, settings.kernel[0]
    for k in range(plan.shape[0]):
        memory.scores[k] = 0.0
        for s in range(memory.counts[SIZE]):
            similarity_row(memory, plan, k, s, sight.line)
            for i in range(memory.signs.shape[0]):
                share, scores = memory.coefficients[k, s, i], memory.scores[k, i]
                if plan[k, LINEAR]:
                    for j in range(memory.kept.shape[0]):
                        scores[s] += memory.kept[j, i] * memory.units[j, s]
                if share != 0.0:
                    for r in range(memory.counts[SIZE]):
                        scores[r] += share * sight.line[r]
        for i in range(memory.signs.shape[0]):
            replay(memory, plan, k, i, _STEPS_AFTER_SCALING, facts, sight.line)


@inlined
def add_up(memory: BankFacts, k: int, similarities: Floats, out: Floats) -> None:
    """Write every class's score by kernel k of an example with those similarities."""
    coefficients = memory.coefficients[k]
    for i in range(out.shape[0]):
        out[i] = 0.0
    for s in range(memory.counts[SIZE]):
        for i in range(out.shape[0]):
            out[i] += similarities[s] * coefficients[s, i]


@inlined
def take_direction(sight: BankSight) -> None:
    """Write the length of the row in ``sight.features``, and the row divided by it."""
    n = sight.unit.shape[0]
    for j in range(n):
        sight.unit[j] = sight.features[0, j]
    unit, square = to_unit(sight.unit, n)
    length = math.sqrt(square)
    sight.length[0] = length * unit
    if length > 0.0:
        for j in range(n):
            sight.unit[j] /= length


@cache
def bank_game(forms: tuple[tuple[int, Any], ...], is_sparse: bool, hears_label: bool) -> Game:
    """Return the game with kernels of these forms on dense or on sparse rows."""
    read: Callable[..., None] = read_sparse if is_sparse else read_dense
    count_row: Callable[..., None] = count_sparse if is_sparse else count_dense
    kind, compare = SPARSE if is_sparse else DENSE, _comparing(forms)
    needs_distances = any(form == _DISTANCE for form, _ in forms)
    waits_for_python = any(form == _FILLED for form, _ in forms)

    @frugal
    def compare_row(memory: BankFacts, sight: BankSight, parameters: Any) -> None:
        """Write the similarities of the row in ``sight.features`` with all stored ones, and with itself."""
        size = memory.counts[SIZE]
        take_direction(sight)
        _multiply(memory, sight.unit, size, sight.line)
        if needs_distances:
            _distance(memory, sight.features, size, sight.distances)
        compare(memory, size, sight.line, sight.distances, sight.length[0], parameters, sight.bases, sight.itself[0])

    def measure(memory: BankFacts, X: Any, t: int, sight: BankSight, settings: FactNumbers) -> int:
        capacity, size, plan = memory.lengths.shape[0], memory.counts[SIZE], settings.kernel[0]
        if size == capacity and capacity < settings.facts.budget:
            return FULL
        if sight.line.shape[0] < capacity:  # Ctrl-C came when the memory had grown, and the paper had not
            return FULL
        read(memory, X, t, settings.facts.scales, sight.features)
        if ready_if_finite(sight.features[0]) != READY:
            return UNSCORED
        compare_row(memory, sight, settings.kernel[1])
        for k in range(plan.shape[0]):
            base, similarities, opinion = plan[k, BASE], sight.similarities[k], sight.opinions[k]
            itself = sight.itself[0, base]
            for s in range(size):
                similarities[s] = sight.bases[base, s]
            square_often(similarities, size, plan[k, SQUARINGS])
            for _ in range(plan[k, SQUARINGS]):
                itself *= itself
            sight.itself[1, k] = itself
            if is_lost(itself, sight.length[0] ** 2, sight.features, 0):
                return UNSCORED
            add_up(memory, k, similarities, opinion)
            if plan[k, LINEAR]:
                for j in range(memory.kept.shape[0]):
                    for i in range(opinion.shape[0]):
                        opinion[i] += sight.unit[j] * memory.kept[j, i]
            if ready_if_finite(opinion) != READY:
                return UNSCORED
        vote(memory, sight, settings.facts)
        return READY

    @frugal
    def learn_row(memory: BankFacts, X: Any, t: int, sight: BankSight, settings: FactNumbers) -> None:
        place = learn_from_sight(memory, sight, settings)
        if settings.facts.scales:
            read(memory, X, t, False, memory.rows[:, place : place + 1].T)
            memory.kinds[place] = kind

    @frugal
    def scale_again(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
        """Scale all stored examples of this kind by the scale in force, and take in what that changes."""
        scale, n_features, size = memory.scales[kind], memory.rows.shape[0], memory.counts[SIZE]
        for s in range(size):
            if memory.kinds[s] == kind:
                for j in range(n_features):
                    memory.features[j, s] = scaled(scale, j, memory.rows[j, s])
                copy_features(memory, sight, s)
                take_direction(sight)
                for j in range(sight.unit.shape[0]):
                    memory.units[j, s] = sight.unit[j]
                memory.lengths[s] = sight.length[0]
        for s in range(size):
            copy_features(memory, sight, s)
            compare_row(memory, sight, settings.kernel[1])
            write_similarities(memory, sight, s)
        if not waits_for_python:
            rescore(memory, sight, settings)

    @frugal
    def count(memory: BankFacts, X: Any, t: int, sight: BankSight, settings: FactNumbers) -> None:
        count_row(memory, X, t)
        if scale_is_due(memory, kind):
            change_scale(memory, kind, memory.kept)
            memory.counts[STALE] = waits_for_python
            scale_again(memory, sight, settings)

    return fact_game(measure, judge, learn_row, forget, count, hears_label)


@inlined
def copy_features(memory: BankFacts, sight: BankSight, s: int) -> None:
    """Write a stored example to `sight`, as if it came again."""
    for j in range(memory.features.shape[0]):
        sight.features[0, j] = memory.features[j, s]
