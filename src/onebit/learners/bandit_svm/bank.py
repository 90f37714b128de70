"""A bank: members that learn from the same answers, each with a kernel of its own, and what Python does with them.

An answer proves the same facts to every member, whichever guessed. So all of them learn from every round, and each can
be judged: after "right", every member with another label was wrong; after "wrong", every member with the same was. Here
are the arrays, and what is rare: the store grows, columns get a new scale, all is forgotten.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from onebit.engine.loop import READY, Algorithm, CompiledAlgorithm, Record
from onebit.engine.scaling import FACTOR, LIMIT, change_weights, new_scale, new_statistics, put_in_force, scaled_rows
from onebit.engine.state import State, check_stored
from onebit.inputs import Floats, Integers, Rows, SparseRows, dense, take
from onebit.kernels import Kernel
from onebit.learners.bandit_svm import regressions
from onebit.learners.bandit_svm.playing import ALGORITHM, call, run_in_blocks
from onebit.learners.bandit_svm.rounds import CHOOSE, LEARN, REFIT, SCORE_ALL
from onebit.learners.bandit_svm.separators import (
    CODE,
    IN_PYTHON,
    IT_IS,
    IT_IS_ANOTHER,
    KIND,
    LAPLACE,
    LENGTH,
    N_ENTRIES,
    OF_UNITS,
    VALUES,
)
from onebit.learners.bandit_svm.vote import (
    ASK_ALL,
    ASKED,
    DENSE,
    DISPUTED,
    DUE,
    FOLLOWED,
    IS_LINEAR,
    ITSELF,
    LANDMARKS,
    LOSS,
    N_COUNTS,
    SCALE,
    SEEN,
    SIZE,
    SPARSE,
    TO_FORGET,
    TRUST,
    BankArrays,
    BankScratch,
    Settings,
    new_watch,
)

_FIRST_CAPACITY = 16


class BankState(State):
    """A bank's state."""

    arrays: BankArrays
    per_class: ClassVar[tuple[str, ...]] = "scores", "opinions", "targets", "propensities", "estimates"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {
            "columns": ("example", "entry"),
            "raws": ("example", "entry"),
            "values": ("example", "value"),
            "units": ("", "example"),
            "examples": ("", "example"),
            "grams": ("", "example", "example"),
            "targets": ("class", "example"),
            "alphas": ("", "class", "example"),
            "coefficients": ("", "example", "class"),
            "importance": ("", "example"),
            "scores": ("", "class", "example"),
            "sums": ("", "", "class"),
            "weights": ("", "class"),
            "guard": ("", "class"),
            "guesses": ("", "class"),
            "landmarks": ("", "landmark"),
            "landmark_changes": ("feature", "feature"),
            "landmark_weights": ("feature", "class"),
            "row_changes": ("class", "", ""),
            "row_weights": ("", "class"),
        }
    )
    takes_sparse = True

    def __init__(
        self,
        kernels: tuple[Kernel, ...],
        bases: tuple[Kernel, ...],
        settings: Settings,
        n_features: int,
        n_classes: int,
        has_regressions: bool = False,
    ) -> None:
        self.kernels, self.bases, self.settings, self.n_classes = kernels, bases, settings, n_classes
        self._in_python = np.flatnonzero(settings.bases[:, CODE] == IN_PYTHON)
        self.scores_in_python = len(self._in_python) > 0
        self.arrays = self._new_state(n_features, has_regressions)
        self.scratch = self.new_scratch()

    def _new_state(self, n_features: int, has_regressions: bool) -> BankArrays:
        settings, K = self.settings, self.n_classes
        m, n, width = len(self.kernels), min(settings.budget, _FIRST_CAPACITY), n_features + settings.scales
        is_linear = settings.plan[:, IS_LINEAR] != 0
        has_guard = settings.scales and settings.guarded and not is_linear.all()
        scaling = np.stack([make(n_features * settings.scales) for make in (new_statistics, new_scale)])
        return BankArrays(
            columns=np.zeros((n, 1), np.int64),
            raws=np.zeros((n, 1)),
            values=np.zeros((n, int(is_linear.all()))),
            units=np.zeros((width * (not is_linear.all()), n)),
            examples=np.zeros((3, n)),
            grams=np.zeros((len(self.bases), n, n)),
            targets=np.zeros((K, n)),
            alphas=np.zeros((m, K, n)),
            coefficients=np.zeros((m, n, K)),
            importance=np.zeros((m, n)),
            scores=np.zeros((m, K, n)),
            sums=np.zeros((m, 2, K)),
            weights=np.zeros((width * bool(is_linear.any()), K)),
            guard=np.zeros((n_features * has_guard, K)),
            members=np.repeat([[0.0, 1.0, 0.0]], m + has_guard, axis=0),
            guesses=np.zeros((2, K), np.int64),
            counts=np.zeros(N_COUNTS, np.int64),
            watch=new_watch(),
            scaling=np.stack([scaling, scaling]),
            **regressions.new_arrays(width, K, n, has_regressions),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Compiled code must be able to write to arrays, and those of a pickle that was mapped from disk are read-only.
        super().__setstate__(state)
        arrays: list[Any] = [each if each.flags.writeable else each.copy() for each in self.arrays]
        self.arrays = BankArrays(*arrays)

    def new_scratch(self) -> BankScratch:
        """Return scratch arrays."""
        return self._scratch_for(self.arrays)

    def _scratch_for(self, state: BankArrays) -> BankScratch:
        n_asked, (n_bases, capacity, _), n_classes = len(state.members), state.grams.shape, len(state.targets)
        return BankScratch(
            scores=np.empty(n_classes),
            opinions=np.empty((n_asked, n_classes)),
            targets=np.empty(n_classes),
            propensities=np.empty(n_classes),
            columns=np.zeros(state.columns.shape[1], np.int64),
            entries=np.zeros((3, state.columns.shape[1])),
            unit=np.zeros(max(len(state.units), len(state.weights))),
            lines=np.zeros((VALUES + n_bases, capacity)),
            nearest=np.zeros((n_bases, capacity), np.int64),
            numbers=np.zeros(ITSELF + n_bases),
            flags=np.zeros(ASKED + n_asked + n_bases, np.int64),
            features=np.zeros((2, len(state.landmark_changes))),
            estimates=np.zeros((4, n_classes)),
            known=np.zeros((3, state.mixture.shape[1])),
        )

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.arrays.counts[SIZE])

    @property
    def trust(self) -> Floats:
        """What each member counts in the vote."""
        return np.asarray(self.arrays.members[: len(self.kernels), TRUST])

    def algorithm(self, is_sparse: bool) -> Algorithm:
        """Raise TypeError: a bank has none."""
        raise TypeError("BankMemory has no Game: compiled code is called through rounds.run")

    def _compiled_for(self, rows: Rows) -> CompiledAlgorithm:
        return ALGORITHM

    def prepare(self, rows: Rows) -> Rows:
        """Return the rows, having let every kernel look whether it accepts them."""
        for kernel in () if self.settings.scales else self.bases:
            # The others take any row, or say in `score` what they cannot take.
            if not kernel.normalize and type(kernel).prepare is not Kernel.prepare:
                kernel.prepare(dense(rows))
        return rows

    def run(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play prepared rows: quiet rounds in blocks, all others one by one."""
        run_in_blocks(self, super().run, rows, y, start, seed, first_round, record)
        self.do_what_is_due()

    def fill(self, row: Rows) -> None:
        """Write the values of kernels that only Python can compute."""
        size, stored, x = self.size, self._stored(self.arrays), dense(row)
        if self.settings.scales:
            kind = SPARSE if isinstance(row, SparseRows) else DENSE
            x = np.column_stack([scaled_rows(self.arrays.scaling[kind, SCALE], x), np.ones(len(x))])
        for b in self._in_python:
            ready = self.bases[b].prepare(x)
            if size:
                self.scratch.lines[VALUES + b, :size] = self.bases[b].matrix(ready, self.bases[b].prepare(stored))[0]
            self.scratch.numbers[ITSELF + b] = self.bases[b].matrix(ready, ready)[0, 0]

    def _ask_all(self, prepared: Rows, row: Rows | str) -> None:
        """Measure a row, and ask every member, even where one would guess alone."""
        self.score(prepared, row)  # first, since it may grow
        flags = self.scratch.flags
        flags[ASK_ALL] = 1
        try:
            self.score(prepared, row)
        finally:
            flags[ASK_ALL] = 0

    def guess_among(self, row: Rows, seed: int, round: int, among: Integers) -> tuple[int, bool, float, Floats, Rows]:
        """Return what `guess` does, as if there were no other labels; the scores of those are −∞."""
        narrow, place, explored = self._choose_among(row, among, seed, round)
        scores = np.full_like(self.scratch.scores, -np.inf)
        scores[among] = narrow.scores
        return int(among[place]), explored, float(narrow.propensities[place]), scores, self.prepare(row)

    def probabilities_among(self, row: Rows, among: Integers) -> Floats:
        """Return the chance of each label if only some are allowed: 0 for the others. Nothing is learned."""
        propensities = np.zeros(self.n_classes)
        propensities[among] = self._choose_among(row, among, 0, 0)[0].propensities
        return propensities

    def _choose_among(self, row: Rows, among: Integers, seed: int, round: int) -> tuple[BankScratch, int, bool]:
        prepared = self.prepare(row)
        self.score(prepared, row)
        is_other = bool(np.argmax(self.scratch.scores) not in among)
        if is_other:  # where one member guessed alone, and not what is allowed, all are asked
            self._ask_all(prepared, row)
        narrow = self.scratch._replace(
            **{name: np.ascontiguousarray(getattr(self.scratch, name)[..., among]) for name in self.per_class}
        )
        state = self.arrays._replace(guesses=np.ascontiguousarray(self.arrays.guesses[:, among]))
        proposes = is_other and len(state.mixture) > 0
        found = call(CHOOSE, state, narrow, self.settings, seed=seed, first_round=round, explored=proposes)
        return narrow, found[2], found[3]

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn what is proved, whichever system tried it; its mistakes are no sign of drift, and no dispute."""
        self.score(self.prepare(row), row)
        tally, watch = self.arrays.counts[DISPUTED : FOLLOWED + 1], self.arrays.watch
        kept = tally.copy(), watch.copy()
        self._scored_round = -1
        try:
            watch[:] = new_watch()
            answer: Any = {"label": label, "correct": correct, "truth": truth}
            return call(LEARN, self.arrays, self.scratch, self.settings, **answer)[3]
        finally:
            tally[:], watch[:] = kept

    def opinions(self, row: Rows) -> Floats:
        """Return every member's scores of a row (m × K). Nothing is learned."""
        self._ask_all(self.prepare(row), row)
        return np.array(self.scratch.opinions[: len(self.kernels)])

    def score_rows(self, rows: Rows) -> Floats:
        """Return every row's scores, as a guess is made from them."""
        out, t, why = np.empty((rows.shape[0], self.n_classes)), 0, READY
        if self.scores_in_python:
            for t in range(len(out)):
                row = take(rows, t, t + 1)
                self.score(row, row)
                out[t] = self.scratch.scores
            return out
        while t < len(out):
            t, why, _, _ = call(SCORE_ALL, self.arrays, self.scratch, self.settings, rows, t=t, out=out)
            if why != READY:
                self._settle(why, rows, t, f"X[{t}]")
        self._scored_round = -1
        return out

    # What is rare. It is not done while an answer is learned from: interrupted, it would be learned from twice.

    def make_room(self, rows: Rows, t: int) -> None:
        """Grow, or do what is due, if that is what play was stopped for."""
        if self.arrays.counts[DUE]:
            self.do_what_is_due()
            return
        now = self.arrays
        n, (_, width) = now.examples.shape[1], now.columns.shape
        longest = int(np.diff(rows.starts).max()) if isinstance(rows, SparseRows) else rows.shape[1]
        width = max(width, longest + self.settings.scales)
        if self.size == n:
            n = min(self.settings.budget, 2 * n)
        sizes = {"example": n, "entry": width, "value": width if now.values.shape[1] else 0}
        if len(now.mixture):
            sizes["landmark"] = min(regressions.MOST_LANDMARKS, n)
            sizes["feature"] = len(now.landmark_changes) - now.landmarks.shape[1] + sizes["landmark"]
        found = self.enlarged(sizes)
        self._ready, self._scored_round = {}, -1  # first: broken off, nothing must go on with the old arrays
        self.arrays = found

    def restore(self, bookmark: Any) -> None:
        """Come back to the moment of a bookmark."""
        self.scratch.nearest[:] = 0  # first: broken off, the stored examples are others
        super().restore(bookmark)

    def add_class(self) -> None:
        """Make room for one more class, which is not right where another is; the regression on rows may be given up."""
        self.do_what_is_due()  # as it would be in another call meanwhile
        super().add_class()
        targets, n_classes = self.arrays.targets, self.n_classes
        targets[-1, (targets == IT_IS).any(axis=0)] = IT_IS_ANOTHER
        if not regressions.sees_rows(len(self.scratch.unit), n_classes):
            self.arrays = self.arrays._replace(
                row_changes=np.zeros((n_classes, 0, 0)), row_weights=np.zeros((0, n_classes))
            )
            self.renew()

    def do_what_is_due(self) -> None:
        """Forget, and put a new scale in force, each at once: an interrupt leaves it done, or still due."""
        if self.arrays.counts[DUE]:
            self.renew()  # arrays are replaced, and Ctrl-C may have left scratch arrays of another size
        if self.arrays.counts[DUE] >= TO_FORGET:
            self.arrays = self._forgetful()
        if self.arrays.counts[DUE]:
            self._scale_again(int(self.arrays.counts[DUE]) - 1)

    def _copies(self, *names: str) -> BankArrays:
        return self.arrays._replace(**{name: getattr(self.arrays, name).copy() for name in names})

    def _forgetful(self) -> BankArrays:
        """Return arrays in which all facts are forgotten; weights that a guarantee rests on are kept."""
        learned = ["landmark_changes", "landmark_weights", "row_changes", "row_weights", "mixture", "sums", "guesses"]
        learned += ["weights"] * self.settings.scales  # where columns are scaled it rests on the guard's
        fresh = self._copies("counts", "members", *learned)
        fresh.counts[SIZE] = fresh.counts[LANDMARKS] = 0
        fresh.counts[DUE] -= TO_FORGET
        for name in learned:
            getattr(fresh, name)[:] = 0
        if len(fresh.mixture):
            fresh.mixture[:] = regressions.new_mixture()
        fresh.members[:, LOSS], fresh.members[:, TRUST] = 0.0, 1.0
        return fresh

    def _scale_again(self, kind: int) -> None:
        """Scale the columns and all stored examples of a kind anew, and take in what that changes."""
        now, n = self.arrays, self.size
        # Where no value can be lost the Gram matrices are written over: after an interrupt the scale is still due.
        names = [
            "counts",
            "scaling",
            "weights",
            "values",
            "units",
            "examples",
            "scores",
            "alphas",
            "coefficients",
            "importance",
            "sums",
        ]
        fresh = self._copies(*names, *([] if self.settings.is_bounded else ["grams"]))
        fresh.counts[DUE] = 0
        # What belongs to no stored example means the same hyperplanes as before.
        fresh.weights[:] -= self._share_of_examples(fresh)
        statistics, scale = fresh.scaling[kind]
        put_in_force(statistics, fresh.counts[SEEN + kind], kind == DENSE, scale)
        if len(fresh.weights):
            change_weights(now.scaling[kind, SCALE], scale, fresh.weights)
        places = np.flatnonzero(now.examples[KIND, :n] == kind)
        seen = self._seen_entries(scale, kind, places)
        # In order for sparse rows: how wide the widest row is must not change the last bits.
        squares = np.cumsum(seen * seen, axis=1)[:, -1] if kind == SPARSE else np.einsum("ij,ij->i", seen, seen)
        fresh.examples[LENGTH, places] = lengths = np.sqrt(squares)
        unit, width = seen / lengths[:, None], seen.shape[1]
        if fresh.values.shape[1]:
            fresh.values[places, :width] = unit
        else:
            fresh.units[:, places] = 0.0
            for s, place in enumerate(places):
                n_entries = int(now.examples[N_ENTRIES, place])
                fresh.units[now.columns[place, :n_entries], place] = unit[s, :n_entries]
        fresh.weights[:] += self._share_of_examples(fresh)
        if self._compare_in_python(fresh) and self._refit(fresh, self.scratch, learns=True):
            self.arrays = fresh
        else:
            now.counts[DUE] = 0  # a kernel that cannot take its examples on the new scale: the old one stays

    def _seen_entries(self, scale: Floats, kind: int, places: Integers) -> Floats:
        """Return the entries of stored rows of a kind on a scale, with the constant, and zeros behind it."""
        now, n_features = self.arrays, len(self.scratch.unit) - 1
        if kind == DENSE:
            return np.column_stack([scaled_rows(scale, now.raws[places, :n_features]), np.ones(len(places))])
        columns, is_entry = now.columns[places], np.arange(now.columns.shape[1]) < now.examples[N_ENTRIES, places, None]
        with_constant = np.concatenate([scale, new_scale(1)], axis=1)
        with_constant[[FACTOR, LIMIT], -1] = 1.0  # the constant is not scaled
        return np.where(is_entry, scaled_rows(with_constant[:, columns], now.raws[places]), 0.0)

    def _share_of_examples(self, state: BankArrays) -> Any:
        """Return what the stored examples are worth in the linear member's weights."""
        n, linear = int(state.counts[SIZE]), np.flatnonzero(self.settings.plan[:, IS_LINEAR])
        if not len(linear):
            return 0.0
        gained = state.coefficients[linear[0], :n]
        if len(state.units):
            # No matrix product: its last bits depend on the number of threads.
            return np.einsum("js,si->ji", state.units[:, :n], gained)
        return self._rows_of(state, state.values, len(state.weights)).T @ gained

    def _rows_of(self, state: BankArrays, entries: Floats, width: int) -> Any:
        """Return stored rows, of those entries, as a sparse matrix."""
        n = int(state.counts[SIZE])
        is_entry = np.arange(state.columns.shape[1]) < state.examples[N_ENTRIES, :n, None]
        starts = np.concatenate([[0], np.cumsum(is_entry.sum(axis=1))])
        return scipy.sparse.csr_array((entries[:n][is_entry], state.columns[:n][is_entry], starts), shape=(n, width))

    def _refit(self, state: BankArrays, scratch: BankScratch, learns: bool) -> bool:
        return call(REFIT, state, scratch, self.settings, explored=learns)[3]

    def _compare_in_python(self, state: BankArrays) -> bool:
        """Write the values of stored examples that only Python can compute; return whether the kernels take them."""
        stored = self._stored(state)
        for b in self._in_python if len(stored) else ():
            try:
                ready = self.bases[b].prepare(stored)
                state.grams[b, : len(stored), : len(stored)] = self.bases[b].matrix(ready, ready)
            except ValueError:
                return False
        return True

    def _stored(self, state: BankArrays) -> Floats:
        """Return the stored examples as the kernels see them."""
        n = int(state.counts[SIZE])
        return np.array((state.units[:, :n] * state.examples[LENGTH, :n]).T, order="C")

    def filled(self) -> dict[str, int]:
        """Return how many examples are stored, and the places for landmarks and features that go with so many."""
        now, n = self.arrays, min(regressions.MOST_LANDMARKS, self.size)
        n_beside = len(now.landmark_changes) - now.landmarks.shape[1]
        return {"example": self.size, "landmark": n, "feature": n_beside + n}

    @property
    def is_symmetric(self) -> Any:
        """Of which bases the value of two rows is the same to the last bit whichever of them came first."""
        codes, of_units = self.settings.bases[:, CODE], self.settings.bases[:, OF_UNITS] != 0.0
        return (codes == LAPLACE) | (of_units & (codes != IN_PYTHON))

    def follows(self) -> tuple[str, ...]:
        """Return the kernel values: nine tenths of the memory, and they are computed again in no time."""
        return ("grams",) if self.is_symmetric.all() else ()

    def rebuild(self, arrays: BankArrays) -> None:
        """Write the kernel values of the stored examples."""
        self._refit(arrays, self._scratch_for(arrays), learns=False)

    def check_arrays(self, arrays: BankArrays) -> None:
        """Raise unless the store is as large as it says, every position is one that there is, and trust adds up."""
        settings, due, (n, width) = self.settings, arrays.counts[DUE], arrays.columns.shape
        check_stored(arrays.counts[SIZE], n, settings.budget)
        scale_due, is_kind = due % TO_FORGET, np.isin(arrays.examples[KIND], (DENSE, SPARSE))
        if not is_kind.all():
            raise ValueError("an example is neither of a dense nor of a sparse row")
        if scale_due > (1 + SPARSE) * settings.scales or due > TO_FORGET + SPARSE + 1:
            raise ValueError(f"counts say that {due} is due, which is no known task")
        if scale_due and not arrays.counts[SEEN + scale_due - 1]:
            raise ValueError("a scale is due, and no row was seen")
        n_entries, n_columns = arrays.examples[N_ENTRIES], max(len(arrays.units), len(arrays.weights))
        if not np.isin(n_entries, np.arange(width + 1)).all() or arrays.columns.max() >= n_columns:
            raise ValueError("an example has entries beyond its row")
        if arrays.values.shape[1] != (0 if len(arrays.units) else width):
            raise ValueError(f"scaled entries are {arrays.values.shape[1]} wide, entries as they came {width}")
        if settings.scales:
            size = arrays.counts[SIZE]
            last = n_entries[:size, None] - 1
            # Only columns have a scale: the constant is behind them, and there alone.
            is_last, is_column = np.arange(width) == last, np.arange(width) < last
            if (last < 0).any() or ((arrays.columns[:size] == n_columns - 1) != is_last)[is_last | is_column].any():
                raise ValueError("a scaled example lacks its constant, or has it among its columns")
        if not np.isfinite(arrays.importance).all():
            raise ValueError("the importance of an example is NaN or infinite")
        members = arrays.members
        if not (np.isfinite(members) & (members >= 0.0)).all() or members[: len(self.kernels), TRUST].max() != 1.0:
            raise ValueError(f"losses must not be negative, and one member's trust be 1; got {members.tolist()}")
        regressions.check_arrays(arrays, n_columns, self.n_classes, n, len(self.arrays.mixture) > 0)
        if arrays.counts[LANDMARKS] > arrays.landmarks.shape[1]:
            raise ValueError(f"{arrays.counts[LANDMARKS]} landmarks do not fit {arrays.landmarks.shape[1]} places")

    def learned(self) -> dict[str, Floats]:
        """Return the weights if all is linear; otherwise the examples, and the coefficients of each member."""
        self.do_what_is_due()
        now, n = self.arrays, self.size
        if now.values.shape[1]:
            return {"weights": now.weights.T.copy()}
        coefficients = now.coefficients[:, :n].copy()
        support = self._rows_of(now, now.raws, len(now.units)).toarray()[:, : len(now.units) - self.settings.scales]
        return {"support": support, "coefficients": coefficients[0] if len(coefficients) == 1 else coefficients}
