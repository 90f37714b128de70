"""A bank of kernels that hear the same facts, and the vote among them.

An answer proves the same facts to every kernel, whoever guessed. So all of them learn from every round, and each one's
own opinion can be judged: after "right", every kernel that would have said something else was wrong; after "wrong",
every kernel that would have said the same was. The guess is a vote of the opinions, weighted by how often each was
wrong. Where the most trusted kernel is sure, so that nothing productive would be left to learn if it is right, it
guesses alone, and the others are asked only if it was wrong: most rounds of an easy stream need one kernel. Where the
vote holds every label to be wrong, those that were proved wrong of this very row are passed over.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from onebit.compiled import compiled, frugal, inlined
from onebit.inputs import Floats, Rows, SparseRows, dense, take, unlocked
from onebit.kernels import ENTRIES_AT_ONCE, Kernel, is_lost
from onebit.learners.bandit_svm.bank_facts import (
    STALE,
    BankFacts,
    BankSight,
    add_examples,
    ask,
    ask_all,
    forget,
    judge,
    learn_from_sight,
    new_bank_facts,
    new_bank_sight,
    rescore,
    write_similarities,
)
from onebit.learners.bandit_svm.bank_plan import CODE, IN_PYTHON, LINEAR, compare, is_too_long, new_bank
from onebit.learners.bandit_svm.facts import (
    SIZE,
    FactNumbers,
    Settings,
    curiosity,
    due_of,
    fact_game,
    is_denied,
    is_productive,
    is_to_follow,
    look_up,
)
from onebit.learners.bandit_svm.rows import DENSE, SPARSE, change_scale, count_dense, scale_is_due
from onebit.lengths import to_unit, unit_rows
from onebit.loop import FULL, READY, UNSCORED, Game, Memory, grown, highest, ready_if_finite
from onebit.scaling import count_square, scaled

# A vote counts a score beyond two margins as two: one kernel's certainty must not drown the others.
_LOUDEST = 2.0
# What a label that is passed over loses at least: more than scores in a vote can differ by.
_PASSED_OVER = 8.0


class BankMemory(Memory):
    """Facts, seen through a bank of kernels.

    Rows are dense to it. Where columns are scaled, sparse rows are scaled in another way, and a column of zeros behind
    tells them from rows that came dense.
    """

    arrays: BankFacts

    def __init__(
        self, kernels: tuple[Kernel, ...], settings: Settings, hears_label: bool, n_features: int, n_classes: int
    ) -> None:
        self.bank, self._hears_label = new_bank(kernels, n_features + settings.scales), hears_label
        self._in_python = (self.bank.numbers.forms[:, CODE] == IN_PYTHON).tolist()
        self.measures_in_python = any(self._in_python)
        self.settings = FactNumbers(settings, self.bank.numbers)
        self.arrays = new_bank_facts(self.bank, settings, n_features, n_classes)
        self.sight = self.new_sight()

    def new_sight(self) -> BankSight:
        """Return scratch paper."""
        return new_bank_sight(self.arrays)

    def game(self, is_sparse: bool) -> Game:
        """Return the game: one for all kernels, since rows are dense and formulas are told by numbers."""
        return bank_game(self._hears_label)

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.arrays.counts[SIZE])

    def prepare(self, rows: Rows) -> Rows:
        """Return rows as one array, having let every kernel look whether it accepts them."""
        filled = dense(rows)
        if self.settings.facts.scales:
            if isinstance(rows, SparseRows):
                return np.concatenate([filled, np.zeros((len(filled), 1))], axis=1)
        else:
            for kernel in self.bank.bases:
                # The others take any row, or say in `measure` what they cannot take.
                if not kernel.normalize and type(kernel).prepare is not Kernel.prepare:
                    kernel.prepare(filled)
        return filled

    def rows_at_once(self, n_features: int) -> int:
        """Return how many rows to prepare at a time, which may make them dense."""
        return max(1, ENTRIES_AT_ONCE // n_features)

    def fill(self, row: Rows) -> None:
        """Write the values of kernels that only Python can compute."""
        self._compare_again()
        x, size = self._as_seen(row), self.size
        stored = self.arrays.features[:, :size].T.copy()
        for b, kernel in enumerate(self.bank.bases):
            if self._in_python[b]:
                ready = kernel.prepare(x)
                if size:
                    self.sight.bases[b, :size] = kernel.matrix(ready, kernel.prepare(stored))[0]
                self.sight.itself[0, b] = kernel.matrix(ready, ready)[0, 0]

    def _compare_again(self) -> None:
        """Write the values of Python's kernels for all stored examples, if they were scaled anew."""
        if not self.arrays.counts[STALE]:
            return
        stored = self.arrays.features[:, : self.size].T.copy()
        for b, kernel in enumerate(self.bank.bases):
            if self._in_python[b] and len(stored):
                ready = kernel.prepare(stored)
                self.arrays.grams[b, : len(stored), : len(stored)] = kernel.matrix(ready, ready)
        rescore(self.arrays, self.sight, self.settings)
        self.arrays.counts[STALE] = 0

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
            dues=grown(now.dues, (n_classes, n)),
            alphas=grown(now.alphas, (m, n_classes, n)),
            coefficients=grown(now.coefficients, (m, n, n_classes)),
            scores=grown(now.scores, (m, n_classes, n)),
            weight=grown(now.weight, (n,)),
        )

    def opinions(self, row: Rows) -> Floats:
        """Return every kernel's scores of a row (m × K). Nothing is learned."""
        self.chances(row)
        ask_all(self.arrays, self.sight, self.settings)
        opinions: Floats = self.sight.opinions.copy()
        return opinions

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores, as a guess is made from them, by matrix products."""
        self._compare_again()
        at_once = self.rows_at_once(rows.shape[1])
        parts = [self._score_some(take(rows, t, t + at_once)) for t in range(0, rows.shape[0], at_once)]
        return np.concatenate(parts)

    def _score_some(self, rows: Rows) -> Floats:
        now, facts = self.arrays, self.settings.facts
        seen, stored = self._as_seen(rows), now.features[:, : self.size].T.copy()
        opinions = np.empty((len(now.trust), len(seen), len(self.sight.scores)))
        for k, kernel in enumerate(self.bank.kernels):
            if self.bank.numbers.plan[k, LINEAR]:
                opinions[k] = unit_rows(seen) @ now.weights
            else:
                coefficients = now.coefficients[k, : self.size]
                opinions[k] = kernel.combine(kernel.prepare(seen), kernel.prepare(stored), coefficients)
        scores: Floats = opinions[0]
        if len(opinions) > 1:
            heard = np.clip(opinions, -_LOUDEST, _LOUDEST)
            scores = np.tensordot(now.trust / now.trust.sum(), heard, axes=1)
            if self.bank.numbers.is_bounded and not is_to_follow(now, facts):
                leader = int(np.argmax(now.trust))
                alone = _are_sure(opinions[leader])
                scores[alone] = heard[leader, alone]
        if facts.guarded:
            for t in np.flatnonzero(is_denied(scores.max(axis=1))):
                same = (stored == seen[t]).all(axis=1)
                disproved = (now.signs[:, : self.size] < 0) & (now.dues[:, : self.size] == 1.0)
                scores[t] -= what_is_lost(scores[t]) * disproved[:, same].any(axis=1)
        return scores + curiosity(now.right, now.wrong, len(now.right), facts.softness) if facts.guarded else scores

    def _as_seen(self, rows: Rows) -> Floats:
        """Return rows as the kernels see them; sparse ones are prepared first."""
        filled: Any = self.prepare(rows) if isinstance(rows, SparseRows) else rows
        out = np.empty((len(filled), len(self.arrays.units)))
        _read_rows(self.arrays, unlocked(filled), self.settings.facts.scales, out)
        return out

    def learned(self) -> dict[str, Floats]:
        """Return the examples and their coefficients: one column per class, for each kernel if there are several."""
        self._compare_again()
        coefficients = self.arrays.coefficients[:, : self.size].copy()
        stored = self.arrays.rows if self.settings.facts.scales else self.arrays.features
        support = stored[:, : self.size].T.copy()
        return {"support": support, "coefficients": coefficients[0] if len(coefficients) == 1 else coefficients}


def _are_sure(opinion: Floats) -> Any:
    """Return which rows a kernel is sure about, given its scores of them: see `is_sure`."""
    is_best = np.arange(opinion.shape[1]) == np.argmax(opinion, axis=1)[:, None]
    return ~is_productive(np.where(is_best, 1, -1), opinion, due_of(is_best)).any(axis=1)


@inlined
def kind_of(memory: BankFacts, X: Floats) -> int:
    """Return whether rows that are to be scaled came dense or sparse."""
    return SPARSE if X.shape[1] > memory.rows.shape[0] else DENSE


@inlined
def read(memory: BankFacts, X: Floats, t: int, scales: bool, out: Floats) -> None:
    """Write row t as the kernels see it."""
    n_features = memory.rows.shape[0]
    if scales:
        kind = kind_of(memory, X)
        scale = memory.scales[kind]
        for j in range(n_features):
            out[j] = scaled(scale, j, X[t, j])
        out[n_features] = 1.0
    else:
        for j in range(X.shape[1]):
            out[j] = X[t, j]


@compiled
def _read_rows(memory: BankFacts, X: Floats, scales: bool, out: Floats) -> None:
    for t in range(out.shape[0]):
        read(memory, X, t, scales, out[t])


@inlined
def take_direction(sight: BankSight) -> None:
    """Write the length of the row in ``sight.features``, and the row divided by it; nothing is known of it yet."""
    n = sight.unit.shape[0]
    for j in range(n):
        sight.unit[j] = sight.features[0, j]
    unit, square = to_unit(sight.unit, n)
    length = math.sqrt(square)
    sight.length[0] = length * unit
    if length > 0.0:
        for j in range(n):
            sight.unit[j] /= length
    sight.is_multiplied[0] = 0
    for k in range(sight.asked.shape[0]):
        sight.asked[k] = 0


@inlined
def is_sure(opinion: Floats) -> bool:
    """Say whether nothing productive is left to learn if an opinion is right."""
    best, sure = highest(opinion), True
    for i in range(opinion.shape[0]):
        sign, due = (1, due_of(1.0)) if i == best else (-1, due_of(0.0))
        sure = sure and not is_productive(sign, opinion[i], due)
    return sure


@inlined
def write_vote(memory: BankFacts, sight: BankSight, leader: int) -> None:
    """Write the weighted mean of the opinions, or what the leader says alone."""
    m, n_classes = sight.opinions.shape
    total = 0.0
    for i in range(n_classes):
        sight.scores[i] = 0.0
    for k in range(m):
        if sight.asked[k]:
            trust, opinion = memory.trust[k] if leader < 0 else 1.0, sight.opinions[k]
            total += trust
            for i in range(n_classes):
                heard = opinion[i]
                if m > 1:
                    heard = min(_LOUDEST, max(-_LOUDEST, heard))
                sight.scores[i] += trust * heard
    for i in range(n_classes):
        sight.scores[i] /= total


@inlined
def what_is_lost(scores: Floats) -> Any:
    """Return what a label that is passed over loses, so that it is below all that are not."""
    # One kernel's scores are not clipped: where rows are long they may differ by any amount.
    lowest, top = scores[0], scores[0]
    for i in range(1, scores.shape[0]):
        lowest, top = min(lowest, scores[i]), max(top, scores[i])
    return max(_PASSED_OVER, 2.0 * (top - lowest))


@inlined
def pass_over(memory: BankFacts, sight: BankSight) -> None:
    """Lower the scores of labels that were proved wrong of this very row, so that no mistake on it is repeated."""
    disproved, (n_classes, _) = sight.chances, memory.signs.shape  # scratch paper, until chances are weighed
    for i in range(n_classes):
        disproved[i] = 0.0
    for s in range(memory.counts[SIZE]):
        is_same = True
        for j in range(memory.features.shape[0]):
            if memory.features[j, s] != sight.features[0, j]:
                is_same = False
                break
        if is_same:
            for i in range(n_classes):
                if memory.signs[i, s] < 0 and memory.dues[i, s] == 1.0:
                    disproved[i] = 1.0
    lost = what_is_lost(sight.scores)
    for i in range(n_classes):
        sight.scores[i] -= lost * disproved[i]


@frugal
def measure_row(memory: BankFacts, X: Floats, t: int, sight: BankSight, settings: FactNumbers) -> int:
    """Write what the kernels say about row t; see `onebit.loop.Game`."""
    capacity, size, facts, numbers = memory.lengths.shape[0], memory.counts[SIZE], settings.facts, settings.kernel
    if size == capacity and capacity < facts.budget:
        return FULL
    if sight.line.shape[0] < capacity:  # Ctrl-C came when the memory had grown, and the paper had not
        return FULL
    read(memory, X, t, facts.scales, sight.features[0])
    if ready_if_finite(sight.features[0]) != READY:
        return UNSCORED
    take_direction(sight)
    for b in range(sight.compared.shape[0]):
        sight.compared[b] = numbers.forms[b, CODE] == IN_PYTHON
        if is_too_long(numbers, b, sight.length[0]):
            return UNSCORED
    m, reference, leader = memory.trust.shape[0], 0, 0
    for k in range(1, m):
        if memory.productive[k] < memory.productive[reference]:
            reference = k
        if memory.trust[k] > memory.trust[leader]:
            leader = k
    sight.reference[0], sight.denied[0] = reference, 0
    if m > 1 and numbers.is_bounded and not is_to_follow(memory, facts):
        ask(memory, sight, leader, numbers)
        if is_sure(sight.opinions[leader]):
            write_vote(memory, sight, leader)
            look_up(memory, sight, facts)
            return READY
    ask_all(memory, sight, settings)
    if not numbers.is_bounded:
        for k in range(m):
            if is_lost(sight.itself[1, k], sight.length[0] ** 2, sight.features, 0):
                return UNSCORED
            if ready_if_finite(sight.opinions[k]) != READY:
                return UNSCORED
    write_vote(memory, sight, -1)
    if facts.guarded and is_denied(sight.scores[highest(sight.scores)]):
        sight.denied[0] = 1
        pass_over(memory, sight)
    look_up(memory, sight, facts)
    return READY


@frugal
def learn_row(memory: BankFacts, X: Floats, t: int, sight: BankSight, settings: FactNumbers) -> None:
    """Store row t, learn what is proved of it, and keep it as it came, to be scaled anew."""
    place = learn_from_sight(memory, sight, settings)
    if settings.facts.scales:
        for j in range(memory.rows.shape[0]):
            memory.rows[j, place] = X[t, j]
        memory.kinds[place] = kind_of(memory, X)


@frugal
def count_row(memory: BankFacts, X: Floats, t: int, sight: BankSight, settings: FactNumbers) -> None:
    """Take row t into the statistics of the columns, and scale all stored examples anew if that is due."""
    kind = kind_of(memory, X)
    if kind == DENSE:
        count_dense(memory, X, t)
    else:
        memory.seen[SPARSE] += 1
        for j in range(memory.rows.shape[0]):
            if X[t, j] != 0.0:
                count_square(memory.statistics[SPARSE], j, X[t, j])
    if scale_is_due(memory, kind):
        add_examples(memory, settings.kernel.plan, -1.0)
        change_scale(memory, kind, memory.weights)
        scale_again(memory, kind, sight, settings)


@frugal
def scale_again(memory: BankFacts, kind: int, sight: BankSight, settings: FactNumbers) -> None:
    """Scale all stored examples of a kind by the scale in force, and take in what that changes."""
    scale, n_features, size, numbers = memory.scales[kind], memory.rows.shape[0], memory.counts[SIZE], settings.kernel
    for s in range(size):
        if memory.kinds[s] == kind:
            for j in range(n_features):
                memory.features[j, s] = scaled(scale, j, memory.rows[j, s])
            copy_features(memory, sight, s)
            for j in range(sight.unit.shape[0]):
                memory.units[j, s] = sight.unit[j]
            memory.lengths[s] = sight.length[0]
    waits_for_python = False
    for s in range(size):
        copy_features(memory, sight, s)
        for b in range(sight.compared.shape[0]):
            sight.compared[b] = numbers.forms[b, CODE] == IN_PYTHON
            waits_for_python = waits_for_python or sight.compared[b] != 0
            compare(memory, size, sight, b, numbers)
        write_similarities(memory, sight, s)
    add_examples(memory, numbers.plan, 1.0)
    if waits_for_python:
        memory.counts[STALE] = 1
    else:
        rescore(memory, sight, settings)


@inlined
def copy_features(memory: BankFacts, sight: BankSight, s: int) -> None:
    """Write a stored example to `sight`, as if it came again."""
    for j in range(memory.features.shape[0]):
        sight.features[0, j] = memory.features[j, s]
    take_direction(sight)


@cache
def bank_game(hears_label: bool) -> Game:
    """Return the game of a bank."""

    def measure(memory: BankFacts, X: Floats, t: int, sight: BankSight, settings: FactNumbers) -> int:
        return measure_row(memory, X, t, sight, settings)

    return fact_game(measure, ask_all, judge, learn_row, forget, count_row, hears_label)
