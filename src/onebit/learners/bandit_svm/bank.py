"""A bank of kernels that hear the same facts.

An answer proves the same facts to every kernel, whoever guessed. So all of them learn from every round, and each one's
own opinion can be judged: after "right", every kernel that would have said something else was wrong; after "wrong",
every kernel that would have said the same was. Here is the memory that Python holds: what grows, what is scaled anew,
and what is had for many rows at once. `bank_facts` has the arrays, `bank_plan` the kernels' formulas, `bank_vote` what
they say, `bank_learning` what an answer changes, `bank_steps` how.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from onebit.compiled import compiled, inlined
from onebit.inputs import Floats, Integers, Rows, SparseRows, dense, unlocked
from onebit.kernels import Kernel
from onebit.learners.bandit_svm.bank_facts import DUE, BankFacts, BankSight, new_bank_facts, new_bank_sight
from onebit.learners.bandit_svm.bank_learning import hear_row
from onebit.learners.bandit_svm.bank_plan import CODE, IN_PYTHON, LINEAR, is_symmetric, new_bank
from onebit.learners.bandit_svm.bank_scaling import compare_all, replay_all, score_again, see_again
from onebit.learners.bandit_svm.bank_vote import LOUDEST, hold_vote, measure_row, what_is_lost
from onebit.learners.bandit_svm.facts import (
    IT_IS,
    IT_IS_ANOTHER,
    IT_IS_NOT,
    SIZE,
    FactMemory,
    FactNumbers,
    Settings,
    curiosity,
    fact_game,
    is_denied,
    is_productive,
    is_to_follow,
)
from onebit.learners.bandit_svm.rows import DENSE, SPARSE
from onebit.learners.dense_memory import DenseMemory
from onebit.lengths import unit_rows
from onebit.loop import Game, Record
from onebit.memory import check_stored, grown
from onebit.scaling import scaled


class BankMemory(DenseMemory, FactMemory):
    """Facts, seen through a bank of kernels.

    Rows are dense to it. Where columns are scaled, sparse rows are scaled in another way, and a column of zeros behind
    tells them from rows that came dense.
    """

    arrays: BankFacts
    rooms: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {
            "rows": ("", "example"),
            "features": ("", "example"),
            "units": ("", "example"),
            "lengths": ("example",),
            "kinds": ("example",),
            "grams": ("", "example", "example"),
            "targets": ("", "example"),
            "alphas": ("", "", "example"),
            "coefficients": ("", "example", ""),
            "scores": ("", "", "example"),
            "weight": ("example",),
        }
    )
    class_axes: ClassVar[Mapping[str, int]] = MappingProxyType(
        {
            "targets": 0,
            "alphas": 1,
            "coefficients": 2,
            "scores": 1,
            "totals": 1,
            "supports": 1,
            "weights": 1,
            "guard": 1,
            "right": 0,
            "wrong": 0,
        }
    )

    def __init__(
        self, kernels: tuple[Kernel, ...], settings: Settings, hears_label: bool, n_features: int, n_classes: int
    ) -> None:
        self.n_classes = n_classes
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

    def prepare(self, rows: Rows) -> Floats:
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

    def run(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play prepared rows; the loop stops where a new scale is due."""
        super().run(rows, y, start, seed, first_round, record)
        self._scale_if_due()

    def _scale_if_due(self) -> None:
        """Put a scale in force that an answer made due.

        Not while that answer is heard: whoever breaks this off must not hear it twice.
        """
        if self.arrays.counts[DUE]:
            self._scale_again()

    def _scale_again(self) -> None:
        """Put the scale of the rows so far in force, scale all stored examples anew, and take in what that changes.

        All at once: whoever breaks it off finds either the old scale, still due to be changed, or the new one.
        """
        now, numbers, kind = self.arrays, self.bank.numbers, int(self.arrays.counts[DUE]) - 1
        changed = ["counts", "scales", "weights", "features", "units", "lengths", "scores"]
        # Where no value can be lost the largest array is written over. Whoever breaks that off finds the scale still
        # due, and everything in it is written again before it is used.
        changed += [] if numbers.is_bounded else ["grams"]
        fresh = now._replace(**{name: getattr(now, name).copy() for name in changed})
        fresh.counts[DUE] = 0
        self.renew()  # Ctrl-C may have left paper of another size
        see_again(fresh, self.sight, kind, numbers)
        if not self._compare_in_python(fresh) or not score_again(fresh, self.sight, self.settings):
            now.counts[DUE] = 0  # a kernel that cannot take its examples on the new scale: the old one stays
            return
        self.arrays = fresh
        replay_all(fresh, self.sight, self.settings)

    def _compare_in_python(self, arrays: BankFacts) -> bool:
        """Write the similarities of stored examples that only Python can compute; return whether all take them."""
        stored = arrays.features[:, : self.size].T.copy()
        for b, kernel in enumerate(self.bank.bases if self.size else ()):
            if self._in_python[b]:
                try:
                    ready = kernel.prepare(stored)
                    arrays.grams[b, : self.size, : self.size] = kernel.matrix(ready, ready)
                except ValueError:
                    return False
        return True

    def add_class(self) -> None:
        """Make room for one more class; a scale that is due comes first, as it would if somebody looked meanwhile."""
        self._scale_if_due()
        super().add_class()

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
            targets=grown(now.targets, (n_classes, n)),
            alphas=grown(now.alphas, (m, n_classes, n)),
            coefficients=grown(now.coefficients, (m, n, n_classes)),
            scores=grown(now.scores, (m, n_classes, n)),
            weight=grown(now.weight, (n,)),
        )

    def narrowed(self, prepared: Rows, row: Rows | str, among: Integers) -> Any:
        """Measure a row; where one kernel guessed alone, and not what is allowed, all are asked."""
        self.measure(prepared, row)
        sight = self.sight
        if not sight.asked.all() and np.argmax(sight.scores) not in among:
            hold_vote(self.arrays, sight, self.settings)
        narrow = {name: np.ascontiguousarray(getattr(sight, name)[..., among]) for name in self.per_class}
        return sight._replace(**narrow)

    def opinions(self, row: Rows) -> Floats:
        """Return every kernel's scores of a row (m × K). Nothing is learned."""
        self.chances(row)
        hold_vote(self.arrays, self.sight, self.settings)
        opinions: Floats = self.sight.opinions[: len(self.bank.kernels)].copy()
        return opinions

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores, as a guess is made from them, by matrix products."""
        self._scale_if_due()
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
            heard = np.clip(opinions, -LOUDEST, LOUDEST)
            scores = np.tensordot(now.trust / now.trust.sum(), heard, axes=1)
            if self.bank.numbers.is_bounded and not is_to_follow(now, facts):
                leader = int(np.argmax(now.trust))
                alone = _are_sure(opinions[leader])
                scores[alone] = heard[leader, alone]
        if facts.guarded:
            for t in np.flatnonzero(is_denied(scores.max(axis=1))):
                same = (stored == seen[t]).all(axis=1)
                disproved = now.targets[:, : self.size] == IT_IS_NOT
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

    def filled(self) -> dict[str, int]:
        """Return how many examples are stored."""
        return {"example": self.size}

    def follows(self) -> tuple[str, ...]:
        """Return the similarities: nine tenths of the memory, and kernels compute them again in no time."""
        return ("grams",) if all(map(is_symmetric, self.bank.bases)) else ()

    def rebuild(self, arrays: BankFacts) -> None:
        """Write the similarities of the stored examples."""
        compare_all(arrays, new_bank_sight(arrays), self.bank.numbers)

    def check_arrays(self, arrays: BankFacts) -> None:
        """Raise unless the store is as large as it says, and somebody is trusted."""
        scales = self.settings.facts.scales
        check_stored(arrays.counts[SIZE], len(arrays.lengths), self.settings.facts.budget)
        if arrays.kinds.max() > SPARSE or arrays.counts[DUE] > (1 + SPARSE) * scales:
            raise ValueError("a row of no known kind")
        if arrays.counts[DUE] and not arrays.seen[arrays.counts[DUE] - 1]:
            raise ValueError("a scale is due, and no row was seen")
        if not (np.isfinite(arrays.losses) & (arrays.losses >= 0.0)).all():
            raise ValueError(f"losses must be numbers, and not negative; got {arrays.losses.tolist()}")
        if arrays.trust.max() != 1.0 or not (arrays.trust >= 0.0).all():
            raise ValueError(f"trust must lie between 0 and 1, and someone's be 1; got {arrays.trust.tolist()}")

    def takes(self, row: Rows, n_features: int) -> bool:
        """Return whether a row is as wide as all rows; one that came sparse has the column that says so."""
        is_wide = self.settings.facts.scales and row.shape[1] == n_features + 1
        return not isinstance(row, SparseRows) and (row.shape[1] == n_features or is_wide)

    def learned(self) -> dict[str, Floats]:
        """Return the examples and their coefficients: one column per class, for each kernel if there are several."""
        self._scale_if_due()
        coefficients = self.arrays.coefficients[:, : self.size].copy()
        stored = self.arrays.rows if self.settings.facts.scales else self.arrays.features
        support = stored[:, : self.size].T.copy()
        return {"support": support, "coefficients": coefficients[0] if len(coefficients) == 1 else coefficients}


def _are_sure(opinion: Floats) -> Any:
    """Return which rows a kernel is sure about, given its scores of them: see `is_sure`."""
    is_best = np.arange(opinion.shape[1]) == np.argmax(opinion, axis=1)[:, None]
    return ~is_productive(np.where(is_best, IT_IS, IT_IS_ANOTHER), opinion).any(axis=1)


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


@cache
def bank_game(hears_label: bool) -> Game:
    """Return the game of a bank."""

    def measure(memory: BankFacts, X: Floats, t: int, sight: BankSight, settings: FactNumbers) -> int:
        read(memory, X, t, settings.facts.scales, sight)
        return measure_row(memory, sight, settings)

    return fact_game(measure, hear_row, hears_label)
