"""A bank: members that learn from the same answers, each with a kernel of its own, and what Python does with them.

An answer proves the same facts to every member, whichever guessed. So all of them learn from every round, and each can
be judged: after "right", every member that would have said something else was wrong; after "wrong", every member that
would have said the same was. Here are the arrays, and what is rare: the store grows, columns get a new scale, many rows
are scored at once.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from onebit.compiled import frugal
from onebit.draws import Draw
from onebit.inputs import Floats, Integers, Rows, SparseRows, dense
from onebit.kernels import Kernel
from onebit.learners.bandit_svm import regressions
from onebit.learners.bandit_svm.guesses import (
    ASK_ALL,
    ASKED,
    LATELY,
    ROW_KIND,
    BankState,
    FactMemory,
    Scratch,
    choose,
    is_denied,
    is_to_follow,
    new_watch,
    preference,
    write_chances,
)
from onebit.learners.bandit_svm.quiet import run_in_blocks
from onebit.learners.bandit_svm.separators import (
    CODE,
    DENSE,
    DUE,
    IN_PYTHON,
    IS_LINEAR,
    IT_IS,
    IT_IS_ANOTHER,
    IT_IS_NOT,
    KIND,
    LANDMARKS,
    LAPLACE,
    LENGTH,
    N_COUNTS,
    OF_UNITS,
    PRODUCTIVE,
    RAW,
    RIGHT,
    SCALE,
    SEEN,
    SIZE,
    SPARSE,
    STATISTICS,
    TO_FORGET,
    VALUES,
    WRONG,
    Settings,
)
from onebit.learners.bandit_svm.vote import (
    ITSELF,
    LOSS,
    LOUDEST,
    TRUST,
    compare_all,
    learn_row,
    refit,
    score_row,
    what_is_lost,
)
from onebit.learners.dense_memory import DenseMemory
from onebit.lengths import row_lengths, unit_rows
from onebit.loop import Game, Record, plugged
from onebit.memory import check_stored, in_python
from onebit.rounds import Answer
from onebit.scaling import change_weights, new_scale, new_statistics, put_in_force, scaled_rows

_FIRST_CAPACITY = 16


class BankMemory(DenseMemory, FactMemory):
    """A bank's state.

    Rows are dense to it. Where columns are scaled, sparse rows are scaled in another way, and a column of zeros behind
    tells them from rows that came dense.
    """

    arrays: BankState
    rooms: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {
            "rows": ("", "example"),
            "units": ("", "example"),
            "examples": ("", "example"),
            "grams": ("", "example", "example"),
            "targets": ("", "example"),
            "alphas": ("", "", "example"),
            "coefficients": ("", "example", ""),
            "scores": ("", "", "example"),
            "landmarks": ("", "landmark"),
            "landmark_changes": ("feature", "feature"),
            "landmark_weights": ("feature", ""),
        }
    )
    class_axes: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"targets": 0, "alphas": 1, "coefficients": 2, "scores": 1, "sums": 2, "weights": 1, "guard": 1, "guesses": 1}
        | {"landmark_weights": 1, "row_changes": 0, "row_weights": 1}
    )

    def __init__(
        self,
        kernels: tuple[Kernel, ...],
        bases: tuple[Kernel, ...],
        settings: Settings,
        hears_label: bool,
        n_features: int,
        n_classes: int,
        has_regressions: bool = False,
    ) -> None:
        self.n_classes, self._hears_label = n_classes, hears_label
        self.kernels, self.bases, self.settings = kernels, bases, settings
        self._in_python = settings.bases[:, CODE] == IN_PYTHON
        self.measures_in_python = bool(self._in_python.any())
        self.arrays = self._new_state(n_features, has_regressions)
        self.sight = self.new_sight()

    def _new_state(self, n_features: int, has_regressions: bool) -> BankState:
        settings, K = self.settings, self.n_classes
        m, n, width = len(self.kernels), min(settings.budget, _FIRST_CAPACITY), n_features + settings.scales
        n_scaled = n_features * settings.scales
        has_guard = settings.scales and settings.guarded
        scaling = np.stack([new_statistics(n_scaled), new_scale(n_scaled)])
        return BankState(
            rows=np.zeros((n_features, n)),
            units=np.zeros((width, n)),
            examples=np.zeros((3, n)),
            grams=np.zeros((len(self.bases), n, n)),
            targets=np.zeros((K, n)),
            alphas=np.zeros((m, K, n)),
            coefficients=np.zeros((m, n, K)),
            scores=np.zeros((m, K, n)),
            sums=np.zeros((m, 2, K)),
            weights=np.zeros((width * bool(settings.plan[:, IS_LINEAR].any()), K)),
            guard=np.zeros((n_features * has_guard, K)),
            members=np.repeat([[0.0, 1.0, 0.0]], m + has_guard, axis=0),
            guesses=np.zeros((2, K), np.int64),
            counts=np.zeros(N_COUNTS, np.int64),
            watch=new_watch(),
            scaling=np.stack([scaling, scaling]),
            **regressions.new_arrays(width, K, n, has_regressions),
        )

    def new_sight(self) -> Scratch:
        """Return scratch arrays."""
        return self._scratch_for(self.arrays)

    def _scratch_for(self, state: BankState) -> Scratch:
        n_asked, (n_bases, capacity, _), n_classes = len(state.members), state.grams.shape, len(state.targets)
        return Scratch(
            scores=np.empty(n_classes),
            opinions=np.empty((n_asked, n_classes)),
            targets=np.empty(n_classes),
            chances=np.empty(n_classes),
            row=np.zeros((3, len(state.units))),
            lines=np.zeros((VALUES + n_bases, capacity)),
            numbers=np.zeros(ITSELF + n_bases),
            flags=np.zeros(ASKED + n_asked + n_bases, np.int64),
            features=np.zeros((2, len(state.landmark_changes))),
            estimates=np.zeros((4, n_classes)),
            known=np.zeros((3, state.mixture.shape[1])),
        )

    def game(self, is_sparse: bool) -> Game:
        """Return the game: one for all kernels, since rows are dense and formulas are told by numbers."""
        return bank_game(self._hears_label)

    @property
    def trust(self) -> Floats:
        """What each member counts in the vote."""
        trust: Floats = self.arrays.members[: len(self.kernels), TRUST]
        return trust

    def prepare(self, rows: Rows) -> Floats:
        """Return rows as one array, having let every kernel look whether it accepts them."""
        filled = dense(rows)
        if self.settings.scales:
            if isinstance(rows, SparseRows):
                return np.concatenate([filled, np.zeros((len(filled), 1))], axis=1)
        else:
            for kernel in self.bases:
                # The others take any row, or say in `measure` what they cannot take.
                if not kernel.normalize and type(kernel).prepare is not Kernel.prepare:
                    kernel.prepare(filled)
        return filled

    def run(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play prepared rows: quiet rounds in blocks, all others one by one."""
        run_in_blocks(self, super().run, rows, y, start, seed, first_round, record)

    def fill(self, row: Rows) -> None:
        """Write the values of kernels that only Python can compute."""
        x, size, stored = self._as_seen(row), self.size, self._stored(self.arrays)
        for b, kernel in enumerate(self.bases):
            if self._in_python[b]:
                ready = kernel.prepare(x)
                if size:
                    self.sight.lines[VALUES + b, :size] = kernel.matrix(ready, kernel.prepare(stored))[0]
                self.sight.numbers[ITSELF + b] = kernel.matrix(ready, ready)[0, 0]

    def _stored(self, state: BankState) -> Floats:
        """Return the stored examples as the kernels see them."""
        n = int(state.counts[SIZE])
        stored: Floats = (state.units[:, :n] * state.examples[LENGTH, :n]).T.copy()
        return stored

    def grow(self, rows: Rows) -> None:
        """Double the places, up to the budget."""
        now, sizes = self.arrays, {"example": min(self.settings.budget, 2 * self.arrays.examples.shape[1])}
        if len(now.mixture):
            sizes["landmark"] = min(regressions.MOST_LANDMARKS, sizes["example"])
            sizes["feature"] = len(now.landmark_changes) - now.landmarks.shape[1] + sizes["landmark"]
        self.arrays = self.larger(**sizes)

    def add_class(self) -> None:
        """Make room for one more class; where there are too many the regression on rows is given up."""
        super().add_class()
        width, n_classes = len(self.arrays.units), self.n_classes
        if not regressions.sees_rows(width, n_classes):
            self.arrays = self.arrays._replace(
                row_changes=np.zeros((n_classes, 0, 0)), row_weights=np.zeros((0, n_classes))
            )
            self.renew()

    def forgetful(self) -> BankState:
        """Return arrays in which all facts are forgotten; the linear member keeps its weights and its guarantee."""
        learned = ("landmark_changes", "landmark_weights", "row_changes", "row_weights", "mixture")
        fresh: BankState = self.copies("counts", "sums", "members", "guesses", *learned)
        fresh.counts[SIZE] = fresh.counts[LANDMARKS] = 0
        for name in learned:
            getattr(fresh, name)[:] = 0.0
        if len(fresh.mixture):
            fresh.mixture[:] = regressions.new_mixture()
        fresh.counts[DUE] -= TO_FORGET
        fresh.sums[:], fresh.guesses[:] = 0.0, 0
        fresh.members[:, LOSS], fresh.members[:, TRUST] = 0.0, 1.0
        return fresh

    def scale_again(self, kind: int) -> None:
        """Scale the columns and all stored examples anew, and take in what that changes."""
        now, n = self.arrays, self.size
        # Where no value can be lost the largest array is written over: after an interrupt the scale is still due, and
        # everything in it is written again before it is used.
        names = ["counts", "scaling", "weights", "units", "examples", "scores", "alphas", "coefficients", "sums"]
        fresh: BankState = self.copies(*names, *([] if self.settings.is_bounded else ["grams"]))
        fresh.counts[DUE] = 0
        # What belongs to no stored example means the same hyperplanes as before.
        fresh.weights[:] -= self._share_of_examples(fresh)
        put_in_force(
            fresh.scaling[kind, STATISTICS], fresh.counts[SEEN + kind], kind == DENSE, fresh.scaling[kind, SCALE]
        )
        if len(fresh.weights):
            change_weights(now.scaling[kind, SCALE], fresh.scaling[kind, SCALE], fresh.weights)
        of_kind = np.flatnonzero(now.examples[KIND, :n] == kind)
        seen = _with_constant(scaled_rows(fresh.scaling[kind, SCALE], now.rows[:, of_kind].T))
        fresh.units[:, of_kind], fresh.examples[LENGTH, of_kind] = unit_rows(seen).T, row_lengths(seen)
        fresh.weights[:] += self._share_of_examples(fresh)
        self._compare_compiled(fresh, self.sight)
        if self._compare_in_python(fresh) and refit(fresh, self.sight, self.settings):
            self.arrays = fresh
        else:
            now.counts[DUE] = 0  # a kernel that cannot take its examples on the new scale: the old one stays

    def _share_of_examples(self, state: BankState) -> Any:
        """Return what the stored examples are worth in the linear member's weights."""
        n, linear = int(state.counts[SIZE]), np.flatnonzero(self.settings.plan[:, IS_LINEAR])
        # No matrix product: its last bits depend on the number of threads.
        return np.einsum("js,si->ji", state.units[:, :n], state.coefficients[linear[0], :n]) if len(linear) else 0.0

    def _compare_compiled(self, state: BankState, scratch: Scratch) -> None:
        bases, size = self.settings.bases, int(state.counts[SIZE])
        compare_all(size, bases, state.units, state.examples[LENGTH], state.grams, scratch.row, scratch.lines)

    def _compare_in_python(self, state: BankState) -> bool:
        """Write the values of stored examples that only Python can compute; return whether the kernels take them."""
        stored = self._stored(state)
        for b, kernel in enumerate(self.bases if len(stored) else ()):
            if self._in_python[b]:
                try:
                    ready = kernel.prepare(stored)
                    state.grams[b, : len(stored), : len(stored)] = kernel.matrix(ready, ready)
                except ValueError:
                    return False
        return True

    # Looking.

    def _ask_all(self, prepared: Rows, row: Rows | str) -> None:
        """Measure a row, and ask every member, even where one would guess alone."""
        self.measure(prepared, row)  # first, since it may grow
        flags = self.sight.flags
        flags[ASK_ALL] = 1
        try:
            self.measure(prepared, row)
        finally:
            flags[ASK_ALL] = 0

    def narrowed(self, prepared: Rows, row: Rows | str, among: Integers) -> Any:
        """Measure a row; where one member guessed alone, and not what is allowed, all are asked."""
        self.measure(prepared, row)
        is_other = np.argmax(self.sight.scores) not in among
        if is_other:
            self._ask_all(prepared, row)
        names = (*self.per_class, "estimates")
        narrow = {name: np.ascontiguousarray(getattr(self.sight, name)[..., among]) for name in names}
        if is_other and len(self.arrays.mixture):
            guesses = np.ascontiguousarray(self.arrays.guesses[:, among])
            _propose(narrow["estimates"], guesses, self.arrays.mixture, self.sight.known, narrow["scores"])
        return self.sight._replace(**narrow)

    def opinions(self, row: Rows) -> Floats:
        """Return every member's scores of a row (m × K). Nothing is learned."""
        self._ask_all(self.prepare(row), row)
        opinions: Floats = self.sight.opinions[: len(self.kernels)].copy()
        return opinions

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores, as a guess is made from them, by matrix products."""
        self.do_what_is_due()
        now, settings, trust = self.arrays, self.settings, self.trust
        seen, stored = self._as_seen(rows), self._stored(now)
        opinions = np.empty((len(trust), len(seen), self.n_classes))
        for k, kernel in enumerate(self.kernels):
            if settings.plan[k, IS_LINEAR]:
                opinions[k] = unit_rows(seen) @ now.weights
            else:
                coefficients = now.coefficients[k, : self.size]
                opinions[k] = kernel.combine(kernel.prepare(seen), kernel.prepare(stored), coefficients)
        scores: Floats = opinions[0]
        alone = np.zeros(len(seen), bool)
        if len(opinions) > 1:
            heard = np.clip(opinions, -LOUDEST, LOUDEST)
            scores = np.tensordot(trust / trust.sum(), heard, axes=1)
            if settings.is_bounded and not in_python(is_to_follow)(now.counts, settings.guarded):
                leader = int(np.argmax(trust))
                alone = _are_sure(opinions[leader]) & in_python(regressions.may_guess_alone)(now.mixture)
                scores[alone] = heard[leader, alone]
        votes, scores = scores.copy(), self._leaning(scores, rows) if settings.guarded else scores
        if len(now.mixture):
            self._let_propose(seen, alone, votes, scores)
        return scores

    def _let_propose(self, seen: Floats, alone: Any, votes: Floats, scores: Floats) -> None:
        """Let the regressions propose labels, unless a member guesses alone."""
        now, scratch = self.arrays, self.new_sight()
        regressions.propose_many(now, scratch, unit_rows(seen), row_lengths(seen), alone, votes, scores)

    def _leaning(self, scores: Floats, rows: Rows) -> Floats:
        """Return scores as guarded guesses are made from them."""
        now, n_classes, top = self.arrays, self.n_classes, scores.max(axis=1)
        disproved, stored = now.targets[:, : self.size] == IT_IS_NOT, now.rows[:, : self.size].T
        raw = dense(rows)[:, : len(now.rows)]
        for t in np.flatnonzero(in_python(is_denied)(top)):
            same = (stored == raw[t]).all(axis=1)
            scores[t] -= in_python(what_is_lost)(scores[t]) * disproved[:, same].any(axis=1)
        right, wrong = now.guesses[RIGHT], now.guesses[WRONG]
        leaning: Floats = scores + in_python(preference)(
            right, wrong, n_classes, self.settings.softness, now.watch[LATELY] * (top < 0.0)[:, None]
        )
        return leaning

    def _as_seen(self, rows: Rows) -> Floats:
        """Return rows as the kernels see them; sparse ones are prepared first."""
        filled: Any = self.prepare(rows) if isinstance(rows, SparseRows) else rows
        if not self.settings.scales:
            return np.ascontiguousarray(filled)
        n_features = len(self.arrays.rows)
        kind = SPARSE if filled.shape[1] > n_features else DENSE
        return _with_constant(scaled_rows(self.arrays.scaling[kind, SCALE], filled[:, :n_features]))

    # Files.

    def filled(self) -> dict[str, int]:
        """Return how many examples are stored, and the places for landmarks and features that go with so many."""
        # There may be fewer landmarks than that, in a bank from an earlier version's file: it still needs the places.
        n = min(regressions.MOST_LANDMARKS, self.size)
        n_beside = len(self.arrays.landmark_changes) - self.arrays.landmarks.shape[1]
        return {"example": self.size, "landmark": n, "feature": n_beside + n}

    def blank_regressions(self, n_examples: int) -> dict[str, Any]:
        """Return the arrays of regressions that have learned nothing, with room for as many landmarks as examples."""
        width, n_classes, take_part = len(self.arrays.units), self.n_classes, len(self.arrays.mixture) > 0
        return dict(regressions.new_arrays(width, n_classes, n_examples, take_part))

    @property
    def is_symmetric(self) -> Any:
        """Of which bases the value of two rows is the same to the last bit whichever of them came first."""
        codes, of_units = self.settings.bases[:, CODE], self.settings.bases[:, OF_UNITS] != 0.0
        return (codes == LAPLACE) | (of_units & (codes != IN_PYTHON))

    def follows(self) -> tuple[str, ...]:
        """Return the kernel values: nine tenths of the memory, and they are computed again in no time."""
        return ("grams",) if self.is_symmetric.all() else ()

    def rebuild(self, arrays: BankState) -> None:
        """Write the kernel values of the stored examples; if nothing was learned from them, learn it."""
        scratch = self._scratch_for(arrays)
        self._compare_compiled(arrays, scratch)
        if not arrays.sums.any():  # from a file of an earlier version, with other members
            refit(arrays, scratch, self.settings)

    def check_arrays(self, arrays: BankState) -> None:
        """Raise unless the store is as large as it says, and some member is trusted."""
        settings, due = self.settings, arrays.counts[DUE]
        check_stored(arrays.counts[SIZE], arrays.examples.shape[1], settings.budget)
        scale_due = due % TO_FORGET
        is_known = np.isin(arrays.examples[KIND], (DENSE, SPARSE)).all()
        if not is_known or scale_due > (1 + SPARSE) * settings.scales or due > TO_FORGET + SPARSE + 1:
            raise ValueError("a row of no known kind")
        if scale_due and not arrays.counts[SEEN + scale_due - 1]:
            raise ValueError("a scale is due, and no row was seen")
        if not (np.isfinite(arrays.members) & (arrays.members >= 0.0)).all():
            raise ValueError(f"losses must be numbers, and not negative; got {arrays.members[:, LOSS].tolist()}")
        for name, blank in self.blank_regressions(arrays.examples.shape[1]).items():
            array = getattr(arrays, name)
            if array.shape != blank.shape:
                raise ValueError(f"{name} has shape {array.shape}, not {blank.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} is NaN or infinite")
        if arrays.counts[LANDMARKS] > arrays.landmarks.shape[1]:
            raise ValueError(
                f"there cannot be {arrays.counts[LANDMARKS]} landmarks in {arrays.landmarks.shape[1]} places"
            )
        if (arrays.mixture[regressions.NUMBERS :] < 0.0).any():
            raise ValueError("the mixture counts a negative number")
        trust = arrays.members[: len(self.kernels), TRUST]
        if trust.max() != 1.0:
            raise ValueError(f"trust must lie between 0 and 1, and someone's be 1; got {trust.tolist()}")

    def takes(self, row: Rows, n_features: int) -> bool:
        """Return whether a row is as wide as all rows; one that came sparse has the column that says so."""
        is_wide = self.settings.scales and row.shape[1] == n_features + 1
        return not isinstance(row, SparseRows) and (row.shape[1] == n_features or is_wide)

    def learned(self) -> dict[str, Floats]:
        """Return the examples and their coefficients: one column per class, for each member if there are several."""
        self.do_what_is_due()
        coefficients = self.arrays.coefficients[:, : self.size].copy()
        support = self.arrays.rows[:, : self.size].T.copy()
        return {"support": support, "coefficients": coefficients[0] if len(coefficients) == 1 else coefficients}


_propose = frugal(in_python(regressions.propose))


def _with_constant(rows: Floats) -> Floats:
    """Return scaled rows with the constant behind them."""
    return np.column_stack([rows, np.ones(len(rows))])


def _are_sure(opinion: Floats) -> Any:
    """Return which rows a member is sure about, given its scores of them: see `vote.is_sure`."""
    best = opinion.max(axis=1)
    others = np.sort(opinion, axis=1)[:, -2] if opinion.shape[1] > 1 else np.full(len(opinion), -np.inf)
    return (IT_IS - best <= PRODUCTIVE) & (others - IT_IS_ANOTHER <= PRODUCTIVE)


@cache
def bank_game(hears_label: bool) -> Game:
    """Return the game of a bank."""

    def measure(state: BankState, X: Floats, t: int, scratch: Scratch, settings: Settings) -> int:
        # What follows sees nothing of X, whose type may differ, and need not be compiled for each.
        n_features = state.rows.shape[0]
        scratch.flags[ROW_KIND] = SPARSE if X.shape[1] > n_features else DENSE
        for j in range(n_features):
            scratch.row[RAW, j] = X[t, j]
        return score_row(state, scratch, settings)

    def hear(state: BankState, _X: Floats, _t: int, scratch: Scratch, answer: Answer, settings: Settings) -> bool:
        return learn_row(state, scratch, answer.label, answer.explored, answer.correct, answer.truth, settings)

    def decide(scratch: Scratch, draw: Draw, settings: Settings) -> tuple[int, bool]:
        return choose(scratch, draw, settings)

    def weigh(scratch: Scratch, settings: Settings) -> None:
        write_chances(scratch, settings)

    return plugged(Game(measure, decide, weigh, hear, hears_label=hears_label))
