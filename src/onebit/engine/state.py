"""What a learner has learned, as named arrays, and how rounds and streams are played on it.

A subclass of `State` gives the functions of its `Algorithm`; everything else is here. Whole streams and single rounds
call the same functions, so both make the same guesses.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.engine.algorithm import (
    CHANGED,
    EXPLORED,
    FULL,
    MISTAKES,
    PASSED,
    READY,
    UPDATES,
    Algorithm,
    CompiledAlgorithm,
    Record,
    is_right,
)
from onebit.engine.code_cache import is_ours
from onebit.engine.jit import in_python, jit, jit_no_refcount
from onebit.engine.randomness import Draw
from onebit.game import Answer, Guess
from onebit.inputs import ENTRIES_AT_ONCE, Floats, Integers, Rows, SparseRows, check_rows, dense, take, unlocked

# What a state holds beside what was learned: scratch arrays and compiled functions.
_NOTHING = np.empty(0)
_MADE_AGAIN = frozenset(("scratch", "_scored_round", "_ready", "_compiled"))


class Scratch(NamedTuple):
    """Scratch arrays for one round of a rule on scores: one number per class each."""

    scores: Floats
    """Those the guess was made from."""
    current: Floats
    """Those of now: the same array, unless feedback comes late."""
    gains: Floats
    """How much of x each class gains."""
    propensities: Floats


@cache
def compile_algorithm(
    algorithm: Algorithm, state_of: Any = tuple, scratch_of: Any = tuple, settings_of: Any = tuple
) -> CompiledAlgorithm:
    """Return an algorithm's compiled functions, compiled once; the types are those of its named tuples."""
    score, choose, probabilities, update, full_information, pauses = algorithm
    # A user's functions may make arrays; ours do not, and need not pay for counting them.
    finished = jit_no_refcount if all(is_ours(function) for function in (score, choose, probabilities, update)) else jit

    # The one round loop. Counting in local variables between checkpoints makes it three times as fast, and a status
    # instead of an exception lets it be left and entered again at the same round.
    def loop(
        state: Any,
        X: Any,
        y: Any,
        t: int,
        start: int,
        seed: int,
        first_round: int,
        settings: Any,
        scratch: Any,
        record: Record,
    ) -> tuple[int, int]:
        n, why, keep_guesses = len(y), READY, record.guesses.shape[0] > 0
        while t < n and why == READY:
            passed = record.counts[PASSED]
            checkpoint = record.checkpoints[passed] - start if passed < record.checkpoints.shape[0] else n
            stop = min(n, checkpoint)
            mistakes, updates, n_explored = 0, 0, 0
            while t < stop:
                why = score(state, X, t, scratch, settings)
                if why != READY:
                    break
                # The label is fixed before the guess is drawn: `choose` never sees y.
                label, explored = choose(scratch, Draw(seed, first_round + start + t), settings)
                correct = is_right(label, y[t])
                truth = y[t] if full_information else -1  # or one bit
                answer = Answer(label, explored, correct, truth, scratch.propensities[label])
                changed = update(state, X, t, scratch, answer, settings)
                mistakes += not correct
                updates += changed
                n_explored += explored
                if keep_guesses:
                    record.guesses[start + t] = label
                t += 1
                if pauses and changed:  # a constant when compiled: others do not pay for it
                    why = CHANGED
                    break
            record.counts[MISTAKES] += mistakes
            record.counts[UPDATES] += updates
            record.counts[EXPLORED] += n_explored
            # Left half-way, the loop comes back to the same checkpoint.
            if t == checkpoint and passed < record.checkpoints.shape[0]:
                record.cumulative[passed] = record.counts[MISTAKES]
                record.counts[PASSED] = passed + 1
        return t, why

    def guess(
        state: Any, row: Rows, scratch: Any, seed: int, round: int, settings: Any
    ) -> tuple[int, int, bool, float]:
        seen, numbers = scratch_of(*scratch), settings_of(*settings)
        why = score(state_of(*state), row, 0, seen, numbers)
        if why != READY:
            return why, -1, False, 0.0
        probabilities(seen, numbers)
        label, explored = choose(seen, Draw(seed, round), numbers)
        return why, int(label), bool(explored), float(seen.propensities[label])  # NumPy's own, if nothing is compiled

    def update_one(state: Any, row: Rows, scratch: Any, answer: Any, settings: Any) -> bool:
        return update(state_of(*state), row, 0, scratch_of(*scratch), Answer(*answer), settings_of(*settings))

    return CompiledAlgorithm(finished(loop, is_long=True), finished(guess), finished(update_one))


class State(ABC):
    """What a learner has learned. To copy, bookmark or pickle it is to copy its arrays."""

    arrays: Any
    """Named tuple: everything that was learned."""
    settings: Any
    """Named tuple: the numbers that the algorithm's functions are given."""
    scratch: Any
    """Named tuple: arrays for one round, at least ``scores`` and ``propensities``. When feedback is late the scores are
    those of the guess if there is also ``current``, and computed again if not."""
    n_classes: int

    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    """The axes of arrays that can grow: "class" where `add_class` adds an entry, a name of `filled` where there is
    spare capacity, "" for an axis that stays as it is."""
    per_class: ClassVar[tuple[str, ...]] = "scores", "current", "gains", "propensities"
    """What of `scratch` has one entry per class, along its last axis."""
    takes_sparse: ClassVar[bool] = False
    """Whether its functions take sparse rows; otherwise rows are made dense, as many at a time as fit in memory."""
    may_have_kernel: ClassVar[bool] = False
    """Whether a kernel can be to blame for a row that cannot be scored."""
    scores_in_python = False
    """Whether `fill` has something to do: then a stream is handed to the loop row by row."""
    plays_by_hand: ClassVar[bool] = False
    """Whether rounds are played by the learner's own `guess` and `tell`, which count them, and may fail half-way."""
    n_extra: ClassVar[int] = 0
    """How many numbers `extra` returns."""
    _scored_round = -1
    """The round whose scores are in `scratch`, as long as nothing has been learned since."""
    _ready: Mapping[type, tuple[CompiledAlgorithm, Any, Any, Any]] = MappingProxyType({})
    """What a round needs, by kind of rows: looking each up would cost a tenth of the round."""
    _compiled: Mapping[bool, CompiledAlgorithm] = MappingProxyType({})

    def __init__(self, arrays: Any, settings: Any, n_classes: int) -> None:
        self.arrays, self.settings, self.n_classes = arrays, settings, n_classes
        self.scratch = self.new_scratch()

    # What a subclass gives, or may replace.

    @abstractmethod
    def algorithm(self, is_sparse: bool) -> Algorithm:
        """Return the functions for dense or for sparse rows."""

    @abstractmethod
    def score_rows(self, rows: Rows) -> Floats:
        """Return every prepared row's score for every class, fast; rounding may differ from a round's."""

    @abstractmethod
    def learned(self) -> dict[str, Floats]:
        """Return copies of what was learned, by name, as people want it."""

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn from a round of another system (see `Answer`; propensity None: unknown); return whether it changed."""
        raise ValueError(f"{type(self).__name__} cannot learn from rounds that others played; give it learn_from_log")

    def learns_from_logs(self) -> bool:
        """Return whether `learn_from_log` is there."""
        return type(self).learn_from_log is not State.learn_from_log

    def extra(self, label: int) -> Floats:
        """Return what speaks for a label of the row scored last, beside its score: for the confidence in it."""
        return _NOTHING

    def extra_rows(self, rows: Rows, labels: Integers) -> Floats:
        """Return what speaks for a label of each of many rows, one row each."""
        out = np.zeros((len(labels), self.n_extra))
        for t in range(len(labels) if self.n_extra else 0):
            row = take(rows, t, t + 1)
            self.score(self.prepare(row), row)
            out[t] = self.extra(int(labels[t]))
        return out

    def prepare(self, rows: Rows) -> Rows:
        """Return rows in the form that the state takes; raises ValueError for a row it cannot take."""
        return rows if self.takes_sparse else dense(rows)

    def fill(self, row: Rows) -> None:
        """Write to `scratch` what only Python can compute: the values of a user's own kernel."""

    def make_room(self, rows: Rows, t: int) -> None:
        """Grow, so that row t can be scored and learned from: by default every axis of `filled` to twice its length."""
        shapes = ((axes, getattr(self.arrays, name).shape) for name, axes in self.axes.items())
        lengths = {axis: n for axes, shape in shapes for axis, n in zip(axes, shape, strict=True)}
        self.arrays = self.enlarged({axis: 2 * lengths[axis] for axis in self.filled()})

    def new_scratch(self) -> Any:
        """Return scratch arrays that fit the arrays: by default a rule's."""
        scores, gains, propensities = np.empty((3, self.n_classes))
        return Scratch(scores, scores, gains, propensities)

    def late_scratch(self, scores: Floats) -> Any:
        """Return the scratch arrays for a late answer to a guess that was made from those scores.

        If these and the current ones are kept apart, classes added since then count as not allowed.
        """
        if "current" not in self.scratch._fields:
            return self.scratch
        then = np.full(self.n_classes, -np.inf)
        then[: len(scores)] = scores
        return self.scratch._replace(scores=then)

    def filled(self) -> dict[str, int]:
        """Return how much of each axis with spare capacity is in use; what lies behind is not saved."""
        return {}

    def follows(self) -> tuple[str, ...]:
        """Return which arrays follow from the others, to the last bit: files leave them out; see `rebuild`."""
        return ()

    def rebuild(self, arrays: Any) -> None:
        """Write the arrays that follow from the others."""

    def check_arrays(self, arrays: Any) -> None:
        """Raise ValueError if arrays from a file have positions beyond what they point to; all else is checked."""

    def takes(self, row: Rows, n_features: int) -> bool:
        """Return whether `prepare` could have returned that row."""
        return row.shape[1] == n_features and (self.takes_sparse or not isinstance(row, SparseRows))

    def takes_scores(self, scores: Floats, label: int) -> bool:
        """Return whether a guess of that label can have been made from those scores; there may be more classes now.

        If a late answer uses them, they are finite, but for labels not allowed, of which the guess is none.
        """
        if "current" not in self.scratch._fields:
            return len(scores) <= len(self.scratch.scores)
        is_allowed = label < len(scores) <= self.n_classes and bool(scores[label] > -np.inf)
        return is_allowed and bool((scores < np.inf).all())  # nor NaN

    def rows_at_once(self, n_features: int) -> int:
        """Return how many rows of a stream to prepare at a time."""
        return 1 << 62 if self.takes_sparse else max(1, ENTRIES_AT_ONCE // n_features)

    # One round at a time.

    def guess(self, row: Rows, seed: int, round: int) -> tuple[int, bool, float, Floats, Rows]:
        """Return a round's label, whether it was explored, its propensity, the scores, and the prepared row."""
        self._scored_round = -1  # until all has gone well: then the scratch arrays are this round's
        prepared = self.prepare(row)
        if self.scores_in_python:
            self.fill(prepared)
        compiled, state, scratch, settings = self._ready.get(type(prepared)) or self._make_ready(prepared)
        why, label, explored, propensity = compiled.guess(state, prepared, scratch, seed, round, settings)
        if why != READY:
            self._settle(why, prepared, 0, row)
            return self.guess(row, seed, round)  # the same draw: the same round
        self._scored_round = round
        return label, explored, propensity, self.scratch.scores.copy(), prepared

    def update(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from the answer to one guess and return whether anything changed; `truth` as in `Answer`."""
        round, _, propensity, explored, label, row, scores, *_ = guess
        is_late = self._scored_round != round  # other rounds were played since the guess
        if is_late:
            self.score(row, row)
        compiled, state, scratch, settings = self._ready[type(row)]
        if is_late:
            scratch = tuple(self.late_scratch(scores))
        self._scored_round = -1
        return compiled.update(state, row, scratch, (label, explored, correct, truth, propensity), settings)

    def score(self, prepared: Rows, row: Rows | str) -> None:
        """Write the scores of a row to `scratch`; `row` is what an error names."""
        self._scored_round = -1
        if self.scores_in_python:
            self.fill(prepared)
        compiled, state, scratch, settings = self._make_ready(prepared)
        # Compiling a function without a guess takes longer than a million needless guesses.
        why, *_ = compiled.guess(state, unlocked(prepared), scratch, 0, 0, settings)
        if why != READY:
            self._settle(why, prepared, 0, row)
            self.score(prepared, row)

    def probabilities(self, row: Rows) -> Floats:
        """Return the propensity of each label. Nothing is learned."""
        self.score(self.prepare(row), row)
        propensities: Floats = self.scratch.propensities.copy()
        return propensities

    def learn_as_played(
        self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None, explored: bool = False
    ) -> bool:
        """Learn from a round of another system as from its own; the `learn_from_log` of states that this suits."""
        prepared = self.prepare(row)
        if truth < 0 and self.algorithm(isinstance(prepared, SparseRows)).full_information:
            return False  # it learns from labels, and this one is unknown
        self.score(prepared, row)
        compiled, arrays, scratch, settings = self._ready[type(prepared)]
        answer = label, explored, correct, truth, math.nan if propensity is None else propensity
        return compiled.update(arrays, unlocked(prepared), scratch, answer, settings)

    # Some of the labels only.

    def guess_among(self, row: Rows, seed: int, round: int, among: Integers) -> tuple[int, bool, float, Floats, Rows]:
        """Return what `guess` does, as if there were no other labels; the scores of those are −∞."""
        prepared = self.prepare(row)
        narrow, place, explored = self.choose_among(prepared, row, seed, round, among)
        scores = np.full_like(self.scratch.scores, -np.inf)
        if len(scores):
            scores[among] = narrow.scores
        return int(among[place]), bool(explored), float(narrow.propensities[place]), scores, prepared

    def probabilities_among(self, row: Rows, among: Integers) -> Floats:
        """Return the propensity of each label if only some are allowed: 0 for the others. Nothing is learned."""
        propensities = np.zeros(self.n_classes)
        propensities[among] = self.choose_among(self.prepare(row), row, 0, 0, among)[0].propensities
        return propensities

    def choose_among(self, prepared: Rows, row: Rows, seed: int, round: int, among: Integers) -> tuple[Any, int, bool]:
        """Return scratch arrays for the allowed labels only, the place of one among them, whether it was explored."""
        self._scored_round = -1  # the scratch arrays are of all labels: an answer computes scores again
        narrow, algorithm = self.narrowed(prepared, row, among), self.algorithm(isinstance(prepared, SparseRows))
        in_python(algorithm.probabilities)(narrow, self.settings)
        return narrow, *in_python(algorithm.choose)(narrow, Draw(seed, round), self.settings)

    def narrowed(self, prepared: Rows, row: Rows, among: Integers) -> Any:
        """Score a row, and return scratch arrays for the allowed labels only."""
        self.score(prepared, row)
        return self._only(among)

    def _only(self, among: Integers) -> Any:
        narrow = {name: np.ascontiguousarray(getattr(self.scratch, name)[..., among]) for name in self.per_class}
        return self.scratch._replace(**narrow)

    def add_class(self) -> None:
        """Make room for one more class, which has learned nothing yet."""
        wider = self.enlarged({"class": self.n_classes + 1})
        self._ready, self._scored_round = {}, -1  # first: broken off, nothing must go on with the old arrays
        self.arrays = wider
        self.n_classes += 1
        self.renew()

    def enlarged(self, sizes: Mapping[str, int]) -> Any:
        """Return the arrays with axes of these names made longer, by zeros."""
        wider = {}
        for name, axes in self.axes.items():
            array = getattr(self.arrays, name)
            wider[name] = grown(array, tuple(sizes.get(axis, n) for axis, n in zip(axes, array.shape, strict=True)))
        return self.arrays._replace(**wider)

    # A whole stream.

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, record: Record, first: int = 0) -> None:
        """Play rows of a stream, which are its rounds from `first` on; raises ValueError at a row it cannot score.

        The guesses are those that one round at a time would give.
        """
        self._scored_round = -1
        at_once = self.rows_at_once(X.shape[1])
        for start in range(0, len(y), at_once):
            stop = min(start + at_once, len(y))
            rows = self.prepare(X if stop - start == len(y) else take(X, start, stop))
            self.play_prepared(rows, y[start:stop], first + start, seed, first_round, record)

    def play_prepared(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play some rows of a stream, its rounds from `start` on."""
        if not self.scores_in_python:
            self.run(rows, y, start, seed, first_round, record)
            return
        for t in range(len(y)):
            row = take(rows, t, t + 1)
            self.fill(row)
            self.run(row, y[t : t + 1], start + t, seed, first_round, record)

    def run(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play prepared rows, which are a stream's rounds from `start` on, by the compiled loop."""
        t, why, loop, X = 0, FULL, self._compiled_for(rows).loop, unlocked(rows)
        while why != READY:
            t, why = loop(self.arrays, X, y, t, start, seed, first_round, self.settings, self.scratch, record)
            if why != READY:
                self._settle(why, rows, t, f"X[{start + t}]")

    def _settle(self, why: int, rows: Rows, t: int, named: Rows | str) -> None:
        """Grow if the arrays are full; raise ValueError for a row that cannot be scored."""
        if why != FULL:
            raise self.unscored_error(named)
        self.make_room(rows, t)
        self.renew()
        if self.scores_in_python:
            self.fill(take(rows, t, t + 1))

    def unscored_error(self, row: Rows | str) -> ValueError:
        """Return the error for a row whose scores are not finite: given itself, or by name where it was checked."""
        name = "these features" if not isinstance(row, str) else row
        if not isinstance(row, str):
            try:
                check_rows(row, "features")
            except ValueError as error:
                return error
        kernels = "; with a kernel, use a smaller degree or normalize=True, and see that one of your own returns no NaN"
        return ValueError(
            f"the scores of {name} are NaN or infinite, or vanish: the features are too large or too small. Scale them"
            f"{kernels * self.may_have_kernel}"
        )

    def _compiled_for(self, rows: Rows) -> CompiledAlgorithm:
        is_sparse = isinstance(rows, SparseRows)
        if is_sparse not in self._compiled:
            kinds: tuple[Any, ...] = type(self.arrays), type(self.scratch), type(self.settings)
            self._compiled = {**self._compiled, is_sparse: compile_algorithm(self.algorithm(is_sparse), *kinds)}
        return self._compiled[is_sparse]

    def _make_ready(self, rows: Rows) -> tuple[CompiledAlgorithm, Any, Any, Any]:
        """Return compiled functions, arrays, scratch arrays and settings for a kind of rows, and keep them."""
        ready = self._compiled_for(rows), tuple(self.arrays), tuple(self.scratch), tuple(self.settings)
        self._ready = {**self._ready, type(rows): ready}
        return ready

    # Copies.

    def renew(self) -> None:
        """Make scratch arrays again, and drop what `_make_ready` kept; called whenever `arrays` is replaced."""
        self.scratch, self._scored_round, self._ready = self.new_scratch(), -1, {}

    def bookmark(self) -> Any:
        """Return what `restore` needs to come back to this moment."""
        return type(self.arrays)(*(array.copy() for array in self.arrays))

    def restore(self, bookmark: Any) -> None:
        """Come back to the moment of a bookmark."""
        self._ready, self._scored_round = {}, -1  # first: broken off, nothing must go on with the old arrays
        self.arrays = bookmark
        self.renew()

    def n_bytes(self) -> int:
        """Return how many bytes the arrays take; 0 for a learner in plain Python, where it is not known."""
        return sum(array.nbytes for array in getattr(self, "arrays", ()))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _MADE_AGAIN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.scratch = self.new_scratch()


def grown(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return a larger array with the old one in its first corner, and zeros around it."""
    if array.shape == shape:
        return array
    larger = np.zeros(shape, dtype=array.dtype)
    larger[tuple(slice(n) for n in array.shape)] = array
    return larger


def check_stored(size: int, capacity: int, budget: int | None = None) -> None:
    """Raise ValueError unless so many examples fit into a store from a file, and that into its budget."""
    if size > capacity or (budget is not None and capacity > budget):
        raise ValueError(f"{size} examples in {capacity} places do not fit a budget of {budget}")


def check_finite(*arrays: Floats) -> None:
    """Raise ValueError unless arrays from a file hold numbers only."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("what it has learned is NaN or infinite")
