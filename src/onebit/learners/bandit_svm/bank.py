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
from onebit.inputs import Floats, Integers, Rows, SparseRows, dense, unlocked
from onebit.kernels import ENTRIES_AT_ONCE, Kernel, is_lost
from onebit.learners.bandit_svm.bank_facts import (
    DUE,
    BankFacts,
    BankSight,
    ask,
    ask_all,
    forget,
    judge,
    learn_from_sight,
    new_bank_facts,
    new_bank_sight,
    replay,
)
from onebit.learners.bandit_svm.bank_plan import CODE, IN_PYTHON, LINEAR, is_too_long, new_bank
from onebit.learners.bandit_svm.facts import (
    SIZE,
    FactNumbers,
    Settings,
    curiosity,
    due_of,
    fact_game,
    hearing,
    is_denied,
    is_productive,
    is_to_follow,
    look_up,
)
from onebit.learners.bandit_svm.rows import DENSE, SPARSE, change_scale, count_entry, scale_is_due
from onebit.lengths import row_lengths, to_unit, unit_rows
from onebit.loop import FULL, READY, UNSCORED, Game, Memory, Record, grown, highest, ready_if_finite
from onebit.rounds import Guess
from onebit.scaling import scaled

# A vote counts a score beyond two margins as two: one kernel's certainty must not drown the others.
_LOUDEST = 2.0
# Steps for each class of each kernel after the columns were scaled anew.
_STEPS_AFTER_SCALING = 100
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
        x, size = self._as_seen(row), self.size
        stored = self.arrays.features[:, :size].T.copy()
        for b, kernel in enumerate(self.bank.bases):
            if self._in_python[b]:
                ready = kernel.prepare(x)
                if size:
                    self.sight.bases[b, :size] = kernel.matrix(ready, kernel.prepare(stored))[0]
                self.sight.itself[0, b] = kernel.matrix(ready, ready)[0, 0]

    # A new scale: rare, so Python's work.

    def hear(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from the answer to one guess, and scale all that is stored anew if that is due."""
        changed = super().hear(guess, correct, truth)
        if self.arrays.counts[DUE]:
            self._scale_again()
        return changed

    def run(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play prepared rows; the loop stops where a new scale is due."""
        super().run(rows, y, start, seed, first_round, record)
        if self.arrays.counts[DUE]:
            self._scale_again()

    def _scale_again(self) -> None:
        """Put the scale of the rows so far in force, scale all stored examples anew, and take in what that changes.

        All at once: whoever breaks it off finds either the old scale, still due to be changed, or the new one.
        """
        now, (plan, _, _, _), size = self.arrays, self.bank.numbers, self.size
        counts, scales, weights = now.counts.copy(), now.scales.copy(), now.weights.copy()
        features, units, lengths = now.features.copy(), now.units.copy(), now.lengths.copy()
        kind, counts[DUE] = int(counts[DUE]) - 1, 0
        linear = np.flatnonzero(plan[:, LINEAR]).tolist()
        for k in linear:  # what belongs to no stored example means the same hyperplanes as before
            weights -= units[:, :size] @ now.coefficients[k, :size]
        _change_scale(scales[kind], now.statistics[kind], float(now.seen[kind]), kind == DENSE, weights)
        mine = np.flatnonzero(now.kinds[:size] == kind)
        seen = np.ones((len(mine), len(features)))
        _scale_rows(scales[kind], np.ascontiguousarray(now.rows[:, mine].T), seen)
        features[:, mine] = seen.T
        stored = np.ascontiguousarray(features[:, :size].T)
        lengths[:size], units[:, :size] = row_lengths(stored), unit_rows(stored).T
        for k in linear:
            weights += units[:, :size] @ now.coefficients[k, :size]
        grams, scores = np.zeros_like(now.grams), np.zeros_like(now.scores)
        with np.errstate(over="ignore", invalid="ignore"):
            for b, kernel in enumerate(self.bank.bases if size else ()):
                ready = kernel.prepare(stored)
                grams[b, :size, :size] = kernel.matrix(ready, ready)
            for k, (base, squarings, is_linear) in enumerate(plan.tolist()):
                similar = grams[base, :size, :size]
                for _ in range(squarings):
                    similar = similar * similar
                own = units[:, :size].T @ weights if is_linear else similar @ now.coefficients[k, :size]
                scores[k, :, :size] = own.T
        if not np.isfinite(scores).all() or not np.isfinite(grams).all():
            now.counts[DUE] = 0  # a kernel that cannot take its examples on the new scale: the old one stays
            return
        self._at_hand, self._seen = {}, -1
        self.arrays = now._replace(
            counts=counts,
            scales=scales,
            weights=weights,
            features=features,
            units=units,
            lengths=lengths,
            grams=grams,
            scores=scores,
        )
        for k, i in np.ndindex(scores.shape[:2] if size else (0, 0)):
            replay(self.arrays, plan, k, i, _STEPS_AFTER_SCALING, self.settings.facts, self.sight.line)

    def make_room(self, rows: Rows, t: int) -> None:
        """Double the places, up to the budget; or put a scale in force, if that is what play was stopped for."""
        now = self.arrays
        if now.counts[DUE]:
            self._scale_again()
            return
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
        opinions: Floats = self.sight.opinions[: len(self.bank.kernels)].copy()
        return opinions

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores, as a guess is made from them, by matrix products."""
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
        if not self.settings.facts.scales:
            return np.ascontiguousarray(filled)
        n_features = len(self.arrays.rows)
        out = np.ones((len(filled), n_features + 1))
        _scale_rows(self.arrays.scales[int(filled.shape[1] > n_features)], unlocked(filled), out)
        return out

    def learned(self) -> dict[str, Floats]:
        """Return the examples and their coefficients: one column per class, for each kernel if there are several."""
        coefficients = self.arrays.coefficients[:, : self.size].copy()
        stored = self.arrays.rows if self.settings.facts.scales else self.arrays.features
        support = stored[:, : self.size].T.copy()
        return {"support": support, "coefficients": coefficients[0] if len(coefficients) == 1 else coefficients}


def _are_sure(opinion: Floats) -> Any:
    """Return which rows a kernel is sure about, given its scores of them: see `is_sure`."""
    is_best = np.arange(opinion.shape[1]) == np.argmax(opinion, axis=1)[:, None]
    return ~is_productive(np.where(is_best, 1, -1), opinion, due_of(is_best)).any(axis=1)


@compiled
def _change_scale(scale: Floats, statistics: Floats, n: float, is_centred: bool, weights: Floats) -> None:
    change_scale(scale, statistics, n, is_centred, weights)


@compiled
def _scale_rows(scale: Floats, X: Floats, out: Floats) -> None:
    """Scale all columns but the last, which is the constant."""
    for t in range(out.shape[0]):
        for j in range(out.shape[1] - 1):
            out[t, j] = scaled(scale, j, X[t, j])


@inlined
def read(memory: BankFacts, X: Floats, t: int, scales: bool, sight: BankSight) -> None:
    """Copy row t: what follows sees nothing of X, whose type may differ, and need not be compiled for each."""
    if scales:
        n_features = memory.rows.shape[0]
        sight.kind[0] = SPARSE if X.shape[1] > n_features else DENSE
        for j in range(n_features):
            sight.raw[j] = X[t, j]
    else:
        for j in range(X.shape[1]):
            sight.features[0, j] = X[t, j]


@inlined
def scale_row(memory: BankFacts, sight: BankSight) -> None:
    """Write the row as the kernels see it."""
    n_features = memory.rows.shape[0]
    scale = memory.scales[sight.kind[0]]
    for j in range(n_features):
        sight.features[0, j] = scaled(scale, j, sight.raw[j])
    sight.features[0, n_features] = 1.0


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
    m, n_classes = memory.trust.shape[0], sight.scores.shape[0]
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
def measure_row(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> int:
    """Write what the kernels say about the row that was read; see `onebit.loop.Game`."""
    capacity, size, facts, numbers = memory.lengths.shape[0], memory.counts[SIZE], settings.facts, settings.kernel
    if memory.counts[DUE] or (size == capacity and capacity < facts.budget):
        return FULL
    if sight.line.shape[0] < capacity:  # Ctrl-C came when the memory had grown, and the paper had not
        return FULL
    if facts.scales:
        scale_row(memory, sight)
    if ready_if_finite(sight.features[0]) != READY:
        return UNSCORED
    take_direction(sight)
    for b in range(sight.compared.shape[0]):
        sight.compared[b] = numbers.forms[b, CODE] == IN_PYTHON
        if is_too_long(numbers, b, sight.length[0]):
            return UNSCORED
    m, reference, leader = memory.trust.shape[0], 0, 0
    for k in range(1, memory.productive.shape[0]):
        if memory.productive[k] < memory.productive[reference]:
            reference = k
        if k < m and memory.trust[k] > memory.trust[leader]:
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
def learn_row(memory: BankFacts, sight: BankSight, settings: FactNumbers) -> None:
    """Store the row, learn what is proved of it, and keep it as it came, to be scaled anew."""
    place = learn_from_sight(memory, sight, settings)
    if settings.facts.scales:
        for j in range(memory.rows.shape[0]):
            memory.rows[j, place] = sight.raw[j]
        memory.kinds[place] = sight.kind[0]


@inlined
def count_row(memory: BankFacts, sight: BankSight, _settings: FactNumbers) -> None:
    """Take the row into the statistics of the columns, and say if a new scale is due."""
    kind = sight.kind[0]
    memory.seen[kind] += 1
    for j in range(memory.rows.shape[0]):
        count_entry(memory, kind, j, sight.raw[j])
    if scale_is_due(memory, kind):
        memory.counts[DUE] = 1 + kind


hear_row = frugal(hearing(ask_all, judge, learn_row, forget, count_row))


@cache
def bank_game(hears_label: bool) -> Game:
    """Return the game of a bank."""

    def measure(memory: BankFacts, X: Floats, t: int, sight: BankSight, settings: FactNumbers) -> int:
        read(memory, X, t, settings.facts.scales, sight)
        return measure_row(memory, sight, settings)

    return fact_game(measure, hear_row, hears_label)
