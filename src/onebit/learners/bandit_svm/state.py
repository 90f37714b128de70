"""The state of a bank: members that learn from the same answers, each with a kernel of its own.

Here compiled code is called, and what is rare is done: the store grows, columns get a new scale, all is forgotten.
"""

import math
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, cast

import numpy as np
import scipy.sparse

from onebit.engine.algorithm import FULL, MISTAKES, READY, UPDATES, Algorithm, CompiledAlgorithm, Record
from onebit.engine.scaling import FACTOR, LIMIT, change_weights, new_scale, put_in_force, scaled_rows
from onebit.engine.state import State, check_stored, grown
from onebit.inputs import Floats, Integers, Rows, SparseRows, dense, take, unlocked
from onebit.kernels import Gaussian, Kernel, Laplace, Linear, Polynomial
from onebit.learners.bandit_svm import bank, guesses, rounds, separators
from onebit.learners.bandit_svm.bank import BankArrays, BankScratch, Settings
from onebit.learners.run import new_record

_FIRST_CAPACITY = 16
_MOST_LANDMARKS = 300  # a round costs two passes over a matrix of this size
_MOST_OF_ROWS = 1 << 18  # classes × features²: the regression on rows is left out where a round would cost more
_MOST_BESIDE = 200  # features: beyond, the regression on landmarks has a constant beside the similarities, and no row
_LARGE = 1e300  # sums of squared coefficients are clipped there
_CALM = 2048  # quiet rounds are looked for after so many without a mistake, in which nothing was stored
_WORTH_IT = 64  # rounds that must be quiet for the search to be worth its time
_BLOCK, _AT_ONCE = 128, 1 << 16  # rows scored at once, and rows between which Ctrl-C is noticed

_NO_INTEGERS, _NO_SCORES, _NO_RECORD = np.empty(0, np.int64), np.empty((0, 0)), tuple(new_record(1, [1]))
_NO_ROWS, _NO_ANSWER, _FIRST = (np.empty(0), _NO_INTEGERS, _NO_INTEGERS), (0, False, False, -1), (0, 0, 0, 0)
_NOTHING: dict[str, Any] = {"rows": _NO_ROWS, "y": _NO_INTEGERS, "where": _FIRST, "answer": _NO_ANSWER}
_NOTHING |= {"record": _NO_RECORD, "out": _NO_SCORES}
_PROPENSITIES = BankScratch._fields.index("propensities")


def _entries(rows: Rows) -> Any:
    """Return values, columns and starts of rows, as `rounds.run` takes them."""
    rows = unlocked(rows)
    return rows[:3] if isinstance(rows, SparseRows) else (rows.reshape(-1), _NO_INTEGERS, _NO_INTEGERS)


def _guess(state: Any, row: Rows, scratch: Any, seed: int, round: int, settings: Any) -> tuple[int, int, bool, float]:
    arrays, where, nothing = (state, scratch, settings), (0, 0, seed, round), (_NO_ANSWER, _NO_RECORD, _NO_SCORES)
    _, why, label, explored = rounds.run(rounds.SCORE, arrays, _entries(row), _NO_INTEGERS, where, *nothing)
    return why, label, explored, float(scratch[_PROPENSITIES][label]) if why == READY else 0.0


def _update(state: Any, _row: Rows, scratch: Any, answer: Any, settings: Any) -> bool:
    arrays, answer = (state, scratch, settings), answer[:4]
    return rounds.run(rounds.LEARN, arrays, _NO_ROWS, _NO_INTEGERS, _FIRST, answer, _NO_RECORD, _NO_SCORES)[3]


_COMPILED = CompiledAlgorithm(cast(Any, rounds.run), _guess, _update)


def _plan_members(kernels: tuple[Kernel, ...], settings: Settings, width: int) -> tuple[tuple[Kernel, ...], Settings]:
    """Return the kernels with values of their own, and the settings with the plan of all members.

    A kernel whose exponent is another's times a power of two is had by squaring.
    """
    bases: list[Kernel] = []
    plan, numbers = np.zeros((len(kernels), 3), np.int64), []
    for k, kernel in enumerate(kernels):
        plan[k, bank.IS_LINEAR] = type(kernel) is Linear and bool(kernel.normalize)
        found = [(b, n) for b, base in enumerate(bases) if (n := _squarings(base, kernel)) >= 0]
        plan[k, bank.BASE], plan[k, bank.SQUARINGS] = found[0] if found else (len(bases), 0)
        if not found:
            code = _code(kernel)
            parameter = 0.0 if code == bank.IN_PYTHON else kernel.parameters[0] / (width if code == bank.LAPLACE else 1)
            bases.append(kernel)
            numbers.append((code, bool(kernel.normalize), parameter))
    is_bounded = all(map(_is_bounded, bases))
    return tuple(bases), settings._replace(plan=plan, bases=np.array(numbers, np.float64), is_bounded=is_bounded)


def _code(kernel: Kernel) -> int:
    if type(kernel) in separators.COMPILED:
        return separators.COMPILED.index(type(kernel))
    return bank.LAPLACE if type(kernel) is Laplace and not kernel.normalize else bank.IN_PYTHON


def _is_bounded(kernel: Kernel) -> bool:
    is_steep = isinstance(kernel, Polynomial) and kernel.degree >= sys.float_info.max_exp  # (1 + 1)ⁿ is no float
    is_short = bool(kernel.normalize) or isinstance(kernel, (Gaussian, Laplace))
    return is_short and not is_steep and _code(kernel) != bank.IN_PYTHON


def _squarings(base: Kernel, kernel: Kernel) -> int:
    """Return how often a kernel's values must be squared to get another's, or −1."""
    # A subclass may have another formula.
    if type(base) is type(kernel) and type(base) in (Gaussian, Laplace) and base.normalize == kernel.normalize:
        ratio = kernel.parameters[0] / base.parameters[0]
        return next((n for n in range(9) if ratio == 2.0**n), -1)
    return -1


class BankState(State):
    """A bank's state; only the default bank has regressions."""

    arrays: BankArrays
    scratch: BankScratch
    per_class: ClassVar[tuple[str, ...]] = "scores", "opinions", "targets", "propensities", "estimates"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(bank.GROWING)
    takes_sparse = may_have_kernel = True
    n_extra = guesses.N_EXTRA

    def __init__(
        self, kernels: tuple[Kernel, ...], settings: Settings, n_features: int, n_classes: int, has_regressions: bool
    ) -> None:
        self.bases, settings = _plan_members(kernels, settings, n_features + settings.scales)
        self.kernels, self.settings, self.n_classes = kernels, settings, n_classes
        self.n_features, self.has_regressions = n_features, has_regressions
        codes, of_units = settings.bases[:, bank.CODE], settings.bases[:, bank.OF_UNITS] != 0.0
        self._in_python = np.flatnonzero(codes == bank.IN_PYTHON)
        self.scores_in_python = len(self._in_python) > 0
        # Of each base, whether its values, to the last bit, do not depend on which of two rows came first.
        self._is_symmetric = (codes == bank.LAPLACE) | (of_units & (codes != bank.IN_PYTHON))
        self.arrays = bank.new_arrays(self._sizes(min(settings.budget, _FIRST_CAPACITY), 1))
        self.scratch = self.new_scratch()

    def _sizes(self, capacity: int, n_entries: int) -> dict[str, int]:
        """Return how long each axis is, with places for so many examples of so many entries; one left out is 0 long."""
        plan, scales, n_features, n_classes = self.settings.plan, self.settings.scales, self.n_features, self.n_classes
        m, n_bases, width, are_linear = len(plan), len(self.bases), n_features + scales, plan[:, bank.IS_LINEAR] != 0
        has_guard = scales and self.settings.guarded and not are_linear.all()
        sizes = {"example": capacity, "entry": n_entries, "class": n_classes, "member": m, "base": n_bases}
        sizes |= {"line": bank.VALUES + n_bases, "number": bank.ITSELF + n_bases, "width": width}
        sizes |= {"scaled": n_features * scales, "guarded": n_features * has_guard, "asked": m + has_guard}
        sizes |= {"flag": bank.ASKED + m + has_guard + n_bases, "weight": width * bool(are_linear.any())}
        sizes |= {"value": n_entries} if are_linear.all() else {"unit": width}
        if self.has_regressions:
            n_landmarks, sees_row = min(capacity, _MOST_LANDMARKS), width <= _MOST_BESIDE
            sizes |= {"seen": width, "landmark": n_landmarks, "feature": n_landmarks + (width if sees_row else 1)}
            sizes |= {"row": width * (sees_row and n_classes * width**2 <= _MOST_OF_ROWS), "mixture": bank.N_MIXED + 2}
        return sizes

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Compiled code must be able to write to arrays, and those of a pickle that was mapped from disk are read-only.
        super().__setstate__(state)
        arrays: list[Any] = [each if each.flags.writeable else each.copy() for each in self.arrays]
        self.arrays = BankArrays(*arrays)

    def new_scratch(self, arrays: BankArrays | None = None) -> BankScratch:
        return bank.zeros(BankScratch, self._sizes(*(arrays or self.arrays).columns.shape))

    @property
    def size(self) -> int:
        """How many examples are stored."""
        return int(self.arrays.counts[bank.SIZE])

    @property
    def is_exclusive(self) -> bool:
        """Whether a right label proves all others wrong."""
        return bool(self.settings.exclusive and not self.arrays.counts[bank.IS_SHARED])

    @property
    def trust(self) -> Floats:
        """What each member counts in the vote."""
        return np.asarray(self.arrays.members[: len(self.kernels), bank.TRUST])

    def algorithm(self, is_sparse: bool) -> Algorithm:
        raise TypeError("a bank has no Algorithm: compiled code is called through rounds.run")

    def _compiled_for(self, rows: Rows) -> CompiledAlgorithm:
        return _COMPILED

    def _run(self, task: int, state: Any = None, scratch: Any = None, **given: Any) -> tuple[int, int, int, bool]:
        arrays = tuple(state or self.arrays), tuple(scratch or self.scratch), tuple(self.settings)
        return rounds.run(task, arrays, *(_NOTHING | given).values())

    def _run_rows(self, task: int, rows: Rows, *, start: int = 0, seed: int = 0, first: int = 0, **given: Any) -> None:
        t, why, entries = 0, FULL, _entries(rows)
        while why != READY:
            t, why, _, _ = self._run(task, rows=entries, where=(t, start, seed, first), **given)
            if why != READY:
                self._settle(why, rows, t, f"X[{start + t}]")

    def extra(self, label: int) -> Floats:
        out, now, seen = np.empty(guesses.N_EXTRA), self.arrays, self.scratch
        learned, known = (now.mixture, now.targets, now.counts), (seen.opinions, seen.estimates, seen.lines, seen.flags)
        guesses.write_extra(learned, known, seen.known[0], len(self.kernels), label, out)
        return out

    def prepare(self, rows: Rows) -> Rows:
        for kernel in () if self.settings.scales else self.bases:
            # The others take any row, or refuse it in `score`.
            if not kernel.normalize and type(kernel).prepare is not Kernel.prepare:
                kernel.prepare(dense(rows))
        return rows

    def fill(self, row: Rows) -> None:
        size, stored, x = self.size, self._stored(self.arrays), dense(row)
        if self.settings.scales:
            kind = bank.SPARSE if isinstance(row, SparseRows) else bank.DENSE
            x = np.column_stack([scaled_rows(self.arrays.scaling[kind, bank.SCALE], x), np.ones(len(x))])
        for b in self._in_python:
            base, ready = self.bases[b], self.bases[b].prepare(x)
            if size:
                self.scratch.lines[bank.VALUES + b, :size] = base.matrix(ready, base.prepare(stored))[0]
            self.scratch.numbers[bank.ITSELF + b] = base.matrix(ready, ready)[0, 0]

    def _ask_all(self, prepared: Rows, row: Rows | str) -> None:
        """Score a row, and ask every member, even where one would guess alone."""
        self.score(prepared, row)  # first, since it may grow
        flags = self.scratch.flags
        flags[bank.ASK_ALL] = 1
        try:
            self.score(prepared, row)
        finally:
            flags[bank.ASK_ALL] = 0

    def opinions(self, row: Rows) -> Floats:
        """Return every member's scores of a row (m × K)."""
        self._ask_all(self.prepare(row), row)
        return np.array(self.scratch.opinions[: len(self.kernels)])

    def choose_among(self, prepared: Rows, row: Rows, seed: int, round: int, among: Integers) -> tuple[Any, int, bool]:
        self.score(prepared, row)
        is_other = bool(np.argmax(self.scratch.scores) not in among)
        if is_other:  # where one member guessed alone, and not what is allowed, all are asked
            self._ask_all(prepared, row)
        scratch = self._only(among)
        state = self.arrays._replace(guesses=np.ascontiguousarray(self.arrays.guesses[:, among]))
        where, answer = (0, 0, seed, round), (0, is_other and self.has_regressions, False, -1)
        _, _, place, explored = self._run(rounds.CHOOSE, state, scratch, where=where, answer=answer)
        return scratch, place, explored

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn what is proved, whichever system tried it; its mistakes are no sign of drift, and no dispute."""
        self.score(self.prepare(row), row)
        tally, watch = self.arrays.counts[bank.DISPUTED : bank.FOLLOWED + 1], self.arrays.watch
        # As if it had been explored: a tie that another system decided is no evidence.
        kept, answer = (tally.copy(), watch.copy()), (label, True, correct, truth)
        self._scored_round = -1
        try:
            watch[:] = 0.0, 0.0, 0.0, math.inf
            return self._run(rounds.LEARN, answer=answer)[3]
        finally:
            tally[:], watch[:] = kept

    def score_rows(self, rows: Rows) -> Floats:
        out = np.empty((rows.shape[0], self.n_classes))
        if self.scores_in_python:
            for t in range(len(out)):
                row = take(rows, t, t + 1)
                self.score(row, row)
                out[t] = self.scratch.scores
        else:
            self._run_rows(rounds.SCORE_ALL, rows, out=out)
            self._scored_round = -1
        return out

    def run(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play prepared rows: quiet rounds in blocks, all others one by one; guesses and arrays are the same."""
        t, n, given = 0, _CALM, cast(Any, {"seed": seed, "first": first_round, "record": tuple(record)})
        while t < len(y):
            stop, before, n_quiet = min(t + n, len(y)), record.counts.copy(), 0
            self._run_rows(rounds.PLAY, take(rows, t, stop), start=start + t, y=y[t:stop], **given)
            if n < _CALM or (before == record.counts)[[MISTAKES, UPDATES]].all():
                n_quiet = self._play_quiet(
                    take(rows, stop, stop + _AT_ONCE), y[stop : stop + _AT_ONCE], start + stop, given["record"]
                )
            # After a failed search, wait twice as many rounds before the next, up to `_CALM`.
            t, n = stop + n_quiet, 1 if n_quiet >= _WORTH_IT else min(2 * n, _CALM)
        self.do_what_is_due()

    def _play_quiet(self, rows: Any, y: Integers, first: int, record: Any) -> int:
        """Play quiet rounds, a stream's from `first` on; return how many: 0 if they cannot be played in blocks."""
        now, leader, width = self.arrays, int(np.argmax(self.trust)), len(self.scratch.unit)
        base, _, is_linear = self.settings.plan[leader].tolist()
        if isinstance(rows, SparseRows) or not self._is_symmetric[base]:
            return 0
        # Only examples with a coefficient matter; a linear leader uses its weights instead.
        used = np.flatnonzero(now.coefficients[leader, : 0 if is_linear else self.size].any(axis=1))
        units, lengths = np.ascontiguousarray(now.units[:, used].T), now.examples[bank.LENGTH, used]
        coefficients = now.weights if is_linear else now.coefficients[leader, used]
        block = np.empty((width + 1 + self.n_classes + bank.VALUES + 1, _BLOCK))
        arrays = tuple(now), tuple(self.settings)
        leading = leader, units, lengths, coefficients, np.arange(width)
        return rounds.play_quiet(arrays, unlocked(rows), y, first, record, leading, block)

    # What is rare. It is not done while an answer is learned from: interrupted, it would be learned from twice.

    def make_room(self, rows: Rows, t: int) -> None:
        if self.arrays.counts[bank.DUE]:
            self.do_what_is_due()
            return
        n, n_entries = self.arrays.columns.shape
        longest = int(np.diff(rows.starts).max()) if isinstance(rows, SparseRows) else rows.shape[1]
        if self.size == n:
            n = min(self.settings.budget, 2 * n)
        shapes = bank.shapes(BankArrays, self._sizes(n, max(n_entries, longest + self.settings.scales)))
        wider = [grown(array, shapes[name]) for name, array in self.arrays._asdict().items()]
        self._ready, self._scored_round = {}, -1  # first: broken off, nothing must go on with the old arrays
        self.arrays = BankArrays(*wider)

    def restore(self, bookmark: Any) -> None:
        self.scratch.nearest[:] = 0  # first: broken off, the stored examples are others
        super().restore(bookmark)

    def add_class(self) -> None:
        self.do_what_is_due()  # as it would be in another call meanwhile
        super().add_class()
        now, shapes = self.arrays, bank.shapes(BankArrays, self._sizes(*self.arrays.columns.shape))
        if self.is_exclusive:
            now.targets[-1, (now.targets == bank.IT_IS).any(axis=0)] = bank.IT_IS_ANOTHER
        if now.row_weights.shape != shapes["row_weights"]:  # too many classes for the regression on rows
            self.arrays = now._replace(
                row_changes=np.zeros(shapes["row_changes"]), row_weights=np.zeros(shapes["row_weights"])
            )
            self.renew()

    def do_what_is_due(self) -> None:
        """Forget, and put a new scale in force, each at once: an interrupt leaves it done, or still due."""
        if self.arrays.counts[bank.DUE]:
            self.renew()  # arrays are replaced, and Ctrl-C may have left scratch arrays of another size
        if self.arrays.counts[bank.DUE] & bank.TO_SHARE:
            self._share()
        if self.arrays.counts[bank.DUE] & bank.TO_FORGET:
            self.arrays = self._forgetful()
        if self.arrays.counts[bank.DUE]:
            self._scale_again(int(self.arrays.counts[bank.DUE]) - 1)

    def _copied(self) -> BankArrays:
        # Where no value can be lost the Gram matrices are written over: after an interrupt the scale is still due.
        shared = "columns", "raws", "grams" if self.settings.is_bounded else ""
        copies = {name: array.copy() for name, array in self.arrays._asdict().items() if name not in shared}
        return self.arrays._replace(**copies)

    def _forgetful(self) -> BankArrays:
        """Return arrays in which all facts are forgotten; weights that a guarantee rests on are kept."""
        fresh = self._copied()
        learned = [fresh.landmark_changes, fresh.landmark_weights, fresh.row_changes, fresh.row_weights, fresh.sums]
        learned += [fresh.weights] * self.settings.scales  # where columns are scaled it rests on the guard's
        for array in (*learned, fresh.guesses):
            array[:] = 0
        fresh.counts[[bank.SIZE, bank.LANDMARKS]] = 0
        fresh.counts[bank.DUE] -= bank.TO_FORGET
        fresh.mixture[:] = bank.new_mixture()[: len(fresh.mixture)]
        fresh.members[:, bank.LOSS], fresh.members[:, bank.TRUST] = 0.0, 1.0
        return fresh

    def _share(self) -> None:
        """Take back what was proved because only one label could be right; weights a guarantee rests on are kept."""
        fresh, n, scales = self._copied(), self.size, self.settings.scales
        fresh.weights[:] -= self._share_of_examples(fresh) if scales else 0.0
        targets, alphas, gained = fresh.targets[:, :n], fresh.alphas[:, :, :n], fresh.coefficients[:, :n]
        is_inferred = targets == bank.IT_IS_ANOTHER
        if self.n_classes == 2 and self.settings.is_closed:  # the other of two, since one was wrong
            is_inferred |= (targets == bank.IT_IS) & (targets == bank.IT_IS_NOT).any(axis=0)
        taken = np.where(is_inferred, alphas, 0.0)
        alphas -= taken
        gained -= (np.sign(targets) * taken).transpose(0, 2, 1)
        fresh.importance[:, :n] = np.minimum(np.einsum("msi,msi->ms", gained, gained), _LARGE)
        fresh.sums[:, bank.TOTAL] -= taken.sum(axis=2)
        fresh.sums[:, bank.SUPPORT] -= (taken > 0.0).sum(axis=2)
        targets[is_inferred] = 0.0
        fresh.weights[:] += self._share_of_examples(fresh) if scales else 0.0
        fresh.counts[bank.DUE] -= bank.TO_SHARE
        fresh.counts[bank.IS_SHARED] = 1
        self._run(rounds.REFIT, fresh, answer=(0, True, False, -1))
        self.arrays = fresh

    def _scale_again(self, kind: int) -> None:
        """Scale the columns and all stored examples of a kind anew, and take in what that changes."""
        now, fresh = self.arrays, self._copied()
        fresh.counts[bank.DUE] = 0
        # What belongs to no stored example means the same hyperplanes as before.
        fresh.weights[:] -= self._share_of_examples(fresh)
        statistics, scale = fresh.scaling[kind]
        put_in_force(statistics, fresh.counts[bank.SEEN + kind], kind == bank.DENSE, scale)
        if len(fresh.weights):
            change_weights(now.scaling[kind, bank.SCALE], scale, fresh.weights)
        places = np.flatnonzero(now.examples[bank.KIND, : self.size] == kind)
        seen = self._seen_entries(scale, kind, places)
        # In order for sparse rows: how wide the widest row is must not change the last bits.
        squares = np.cumsum(seen * seen, axis=1)[:, -1] if kind == bank.SPARSE else np.einsum("ij,ij->i", seen, seen)
        fresh.examples[bank.LENGTH, places] = lengths = np.sqrt(squares)
        unit, width = seen / lengths[:, None], seen.shape[1]
        if fresh.values.shape[1]:
            fresh.values[places, :width] = unit
        else:
            fresh.units[:, places] = 0.0
            for s, place in enumerate(places):
                n_entries = int(now.examples[bank.N_ENTRIES, place])
                fresh.units[now.columns[place, :n_entries], place] = unit[s, :n_entries]
        fresh.weights[:] += self._share_of_examples(fresh)
        learns = 0, True, False, -1
        if self._compare_in_python(fresh) and self._run(rounds.REFIT, fresh, answer=learns)[3]:
            self.arrays = fresh
        else:
            now.counts[bank.DUE] = 0  # a kernel that cannot take its examples on the new scale: the old one stays

    def _seen_entries(self, scale: Floats, kind: int, places: Integers) -> Floats:
        """Return the entries of stored rows of a kind on a scale, with the constant, and zeros behind it."""
        now = self.arrays
        if kind == bank.DENSE:
            return np.column_stack([scaled_rows(scale, now.raws[places, : self.n_features]), np.ones(len(places))])
        is_entry = np.arange(now.columns.shape[1]) < now.examples[bank.N_ENTRIES, places, None]
        with_constant = np.concatenate([scale, new_scale(1)], axis=1)
        with_constant[[FACTOR, LIMIT], -1] = 1.0  # the constant is not scaled
        return np.where(is_entry, scaled_rows(with_constant[:, now.columns[places]], now.raws[places]), 0.0)

    def _share_of_examples(self, state: BankArrays) -> Any:
        """Return what the stored examples are worth in the linear member's weights."""
        n, linear = int(state.counts[bank.SIZE]), np.flatnonzero(self.settings.plan[:, bank.IS_LINEAR])
        if not len(linear):
            return 0.0
        gained = state.coefficients[linear[0], :n]
        if len(state.units):
            # No matrix product: its last bits depend on the number of threads.
            return np.einsum("js,si->ji", state.units[:, :n], gained)
        return self._rows_of(state, state.values, len(state.weights)).T @ gained

    def _rows_of(self, state: BankArrays, entries: Floats, width: int) -> Any:
        """Return stored rows, of those entries, as a sparse matrix."""
        n = int(state.counts[bank.SIZE])
        is_entry = np.arange(state.columns.shape[1]) < state.examples[bank.N_ENTRIES, :n, None]
        starts = np.concatenate([[0], np.cumsum(is_entry.sum(axis=1))])
        return scipy.sparse.csr_array((entries[:n][is_entry], state.columns[:n][is_entry], starts), shape=(n, width))

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
        n = int(state.counts[bank.SIZE])
        return np.array((state.units[:, :n] * state.examples[bank.LENGTH, :n]).T, order="C")

    def filled(self) -> dict[str, int]:
        sizes = self._sizes(self.size, 1)
        return {axis: sizes.get(axis, 0) for axis in ("example", "landmark", "feature")}

    def follows(self) -> tuple[str, ...]:
        # Nine tenths of the memory, and they are computed again in no time.
        return ("grams",) if self._is_symmetric.all() else ()

    def rebuild(self, arrays: BankArrays) -> None:
        self._run(rounds.REFIT, arrays, self.new_scratch(arrays))

    def check_arrays(self, arrays: BankArrays) -> None:
        settings, width, scales = self.settings, arrays.columns.shape[1], self.settings.scales
        size, due, is_shared = arrays.counts[[bank.SIZE, bank.DUE, bank.IS_SHARED]].tolist()
        check_stored(size, len(arrays.columns), settings.budget)
        for name, shape in bank.shapes(BankArrays, self._sizes(*arrays.columns.shape)).items():
            if getattr(arrays, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(arrays, name).shape}, not {shape}")
        for name in ("importance", *BankArrays._fields[BankArrays._fields.index("landmarks") :]):
            if not np.isfinite(getattr(arrays, name)).all():
                raise ValueError(f"{name} is NaN or infinite")
        (_, kinds, n_entries), task = arrays.examples, due % bank.TO_FORGET
        if is_shared > settings.finds_out:
            raise ValueError("it has found that labels are not exclusive, and was not to find out")
        if not np.isin(kinds, (bank.DENSE, bank.SPARSE)).all():
            raise ValueError("an example is neither of a dense nor of a sparse row")
        is_known = task <= (1 + bank.SPARSE) * scales and due < bank.TO_SHARE << (settings.finds_out and not is_shared)
        if not is_known or (task and not arrays.counts[bank.SEEN + task - 1]):
            raise ValueError(f"counts has {due} as due, which is no known task, or no row was seen for it")
        if not np.isin(n_entries, np.arange(width + 1)).all() or arrays.columns.max() >= self.n_features + scales:
            raise ValueError("an example has entries beyond its row")
        if scales:
            # Only columns have a scale: the constant is behind them, and there alone.
            last, place = n_entries[:size, None] - 1, np.arange(width)
            is_constant = arrays.columns[:size] == self.n_features
            if (last < 0).any() or (is_constant != (place == last))[place <= last].any():
                raise ValueError("a scaled example lacks its constant, or has it among its columns")
        if (arrays.mixture[bank.NUMBERS :] < 0.0).any():
            raise ValueError("the mixture counts a negative number")
        members = arrays.members
        if not (np.isfinite(members) & (members >= 0.0)).all() or members[: len(self.kernels), bank.TRUST].max() != 1.0:
            raise ValueError(f"losses must not be negative, and one member's trust be 1; got {members.tolist()}")
        if arrays.counts[bank.LANDMARKS] > arrays.landmarks.shape[1]:
            raise ValueError("more landmarks are counted than there are places")

    def learned(self) -> dict[str, Floats]:
        self.do_what_is_due()
        now, n = self.arrays, self.size
        if now.values.shape[1]:
            return {"weights": now.weights.T.copy()}
        coefficients = now.coefficients[:, :n].copy()
        support = self._rows_of(now, now.raws, len(now.units)).toarray()[:, : self.n_features]
        return {"support": support, "coefficients": coefficients[0] if len(coefficients) == 1 else coefficients}
