"""How Python calls the compiled function: single rounds, and streams, of which quiet rounds are played in blocks.

In a quiet round the leading member is sure and right, and nothing is stored or due. An easy stream has many. They are
scored in blocks, with the operations of a single round in the same order, so every guess and every bit of the state is
the same.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.engine.jit import jit_internal, jit_no_refcount
from onebit.engine.lengths import LEAST_SQUARE, MOST_SQUARE
from onebit.engine.loop import MISTAKES, READY, UPDATES, CompiledAlgorithm, Record, new_record, note_right
from onebit.engine.scaling import count_entry, scaled
from onebit.engine.state import in_python
from onebit.inputs import Floats, Integers, Rows, SparseRows, take, unlocked
from onebit.learners.bandit_svm.regressions import count_sure, may_guess_alone
from onebit.learners.bandit_svm.rounds import LEARN, PLAY, SCORE, run
from onebit.learners.bandit_svm.separators import (
    CODE,
    IT_IS,
    IT_IS_ANOTHER,
    LAPLACE,
    LENGTH,
    PRODUCTIVE,
    compare,
    counts_for,
    lack,
    squared_often,
    write_powers,
    write_products,
)
from onebit.learners.bandit_svm.vote import (
    BEST,
    DENSE,
    DUE,
    LATELY,
    RIGHT,
    ROUNDS,
    SCALE,
    SEEN,
    STATISTICS,
    USUALLY,
    BankScratch,
    is_outdated,
    is_to_follow,
)

if TYPE_CHECKING:
    from onebit.learners.bandit_svm.bank import BankState

# Quiet rounds are looked for after so many rounds in which there was no mistake, and nothing was stored.
_CALM = 2048
# Rounds that must be quiet for the search to be worth its time; rows scored at once; and rows between which Ctrl-C is
# noticed.
_WORTH_IT, _BLOCK, _AT_ONCE = 64, 128, 1 << 16
# Rows in the first block of a quiet stretch.
_FIRST_BLOCK = 16


_NO_INTEGERS, _NO_SCORES, _NO_RECORD = np.empty(0, np.int64), np.empty((0, 0)), tuple(new_record(1, [1]))
_NO_ROWS, _NO_ANSWER = np.empty((0, 1)), (0, False, False, -1)
_PROPENSITIES = BankScratch._fields.index("propensities")


def _as_entries(rows: Rows) -> Any:
    """Return values, columns and starts of rows, as `rounds.run` takes them."""
    rows = unlocked(rows)
    return rows[:3] if isinstance(rows, SparseRows) else (rows.reshape(-1), _NO_INTEGERS, _NO_INTEGERS)


def call(
    task: int,
    state: Any,
    scratch: Any,
    settings: Any,
    rows: Rows = _NO_ROWS,
    *,
    t: int = 0,
    y: Integers = _NO_INTEGERS,
    start: int = 0,
    seed: int = 0,
    first_round: int = 0,
    label: int = 0,
    explored: bool = False,
    correct: bool = False,
    truth: int = -1,
    record: Any = _NO_RECORD,
    out: Floats = _NO_SCORES,
) -> tuple[int, int, int, bool]:
    """Call `rounds.run`, which says what the arguments mean."""
    # No other types, for which everything would be compiled again.
    answer = int(label), bool(explored), bool(correct), int(truth)
    arrays = tuple(state), tuple(scratch), tuple(settings)
    return run(task, *arrays, _as_entries(rows), t, y, start, seed, first_round, answer, tuple(record), out)


def _loop(
    state: Any,
    X: Rows,
    y: Integers,
    t: int,
    start: int,
    seed: int,
    first: int,
    settings: Any,
    scratch: Any,
    record: Any,
) -> tuple[int, int]:
    numbers: Any = {"t": t, "y": y, "start": start, "seed": seed, "first_round": first, "record": record}
    return call(PLAY, state, scratch, settings, X, **numbers)[:2]


def _look(state: Any, row: Rows, scratch: Any, seed: int, round: int, settings: Any) -> tuple[int, int, bool, float]:
    arrays = state, scratch, settings, _as_entries(row)  # not by `call`: a keyword costs as much as an array
    _, why, label, explored = run(SCORE, *arrays, 0, _NO_INTEGERS, 0, seed, round, _NO_ANSWER, _NO_RECORD, _NO_SCORES)
    return why, label, explored, float(scratch[_PROPENSITIES][label]) if why == READY else 0.0


def _learn(
    state: Any, _row: Rows, scratch: Any, label: int, explored: bool, correct: bool, truth: int, settings: Any
) -> bool:
    answer = label, explored, correct, truth
    arrays = state, scratch, settings, _as_entries(_NO_ROWS)
    return run(LEARN, *arrays, 0, _NO_INTEGERS, 0, 0, 0, answer, _NO_RECORD, _NO_SCORES)[3]


ALGORITHM = CompiledAlgorithm(_loop, _look, _learn)
"""The compiled functions that `onebit.engine.state.State` calls."""


def run_in_blocks(
    state: "BankState",
    play: Callable[..., None],
    rows: Rows,
    y: Integers,
    start: int,
    seed: int,
    first_round: int,
    record: Record,
) -> None:
    """Play prepared rows; guesses and state are those of `play`, which goes one by one, to the last bit."""
    t, n = 0, _CALM
    while t < len(y):
        stop, before = min(t + n, len(y)), record.counts.copy()
        play(take(rows, t, stop), y[t:stop], start + t, seed, first_round, record)
        is_calm = (before == record.counts)[[MISTAKES, UPDATES]].all()
        t, first, is_going_on = stop, stop, is_calm or n < _CALM
        while is_going_on and t < len(y):
            labels = y[t : t + _AT_ONCE]
            n_quiet = _try_quiet(state, take(rows, t, t + _AT_ONCE), labels)
            note_right(record, start + t, labels[:n_quiet])
            t += n_quiet
            is_going_on = n_quiet == len(labels)
        # After a failed search, wait twice as many rounds before the next, up to `_CALM`.
        n = 1 if t >= first + _WORTH_IT else min(2 * n, _CALM)


def _try_quiet(state: "BankState", rows: Any, y: Integers) -> int:
    """Play quiet rounds, and return how many; 0 if this bank cannot play them in blocks now."""
    now, settings, leader = state.arrays, state.settings, int(np.argmax(state.trust))
    base, squarings, is_linear = settings.plan[leader].tolist()
    is_alone = (
        settings.is_bounded
        and in_python(may_guess_alone)(now.mixture)
        and not in_python(is_to_follow)(now.counts, settings.guarded)
    )
    is_full = state.size == now.examples.shape[1] < settings.budget
    if not is_alone or not state.is_symmetric[base] or now.counts[DUE] or is_full or isinstance(rows, SparseRows):
        return 0
    width = len(state.scratch.unit)
    # Only examples with a coefficient matter; a linear leader uses its weights instead.
    used = np.flatnonzero(now.coefficients[leader, : 0 if is_linear else state.size].any(axis=1))
    return play_quiet(
        unlocked(rows),
        y,
        bool(is_linear),
        settings.bases[base],
        squarings,
        np.ascontiguousarray(now.units[:, used]),
        np.ascontiguousarray(now.examples[:, used]),
        now.weights if is_linear else now.coefficients[leader, used],
        now.sums[leader],
        settings.softness,
        now.scaling[DENSE, SCALE],
        now.scaling[DENSE, STATISTICS],
        now.counts[SEEN + DENSE :],
        now.guesses,
        now.watch,
        now.mixture,
        np.arange(width),
        np.empty(width),
        np.empty((width + 1 + state.n_classes + 3, _BLOCK)),
    )


@jit_internal
def see_rows(X: Floats, first: int, n_rows: int, scale: Floats, units: Floats, lengths: Floats) -> int:
    """Write rows, one column each, by the operations of `see_row`; return how many, up to one whose square is lost."""
    width, n_scaled = units.shape[0], scale.shape[1]
    for r in range(n_rows):
        square = 0.0
        for j in range(width):
            entry = 1.0
            if n_scaled == 0:
                entry = X[first + r, j]
            elif j < n_scaled:
                entry = scaled(scale, j, X[first + r, j])
            units[j, r] = entry
            square += entry * entry
        if not LEAST_SQUARE < square < MOST_SQUARE:
            return r
        lengths[r] = math.sqrt(square)
        for j in range(width):
            units[j, r] /= lengths[r]
    return n_rows


@partial(jit_no_refcount, is_long=True)
def play_quiet(
    X: Floats,
    y: Integers,
    is_linear: bool,
    base: Floats,
    squarings: int,
    units: Floats,
    examples: Floats,
    coefficients: Floats,
    sums: Floats,
    softness: float,
    scale: Floats,
    statistics: Floats,
    heard: Integers,
    guesses: Integers,
    watch: Floats,
    mixture: Floats,
    columns: Integers,
    unit: Floats,
    block: Floats,
) -> int:
    """Play quiet rounds as `score_row` and `learn_row` would, to the last bit; return how many: the next is not quiet.

    Only the leading member is asked, about a block of rows at a time, by the same operations in the same order. For
    that, its kernel's values must not depend on which of two rows came first. `columns` counts up to the width of a
    row; `unit` and `block` are room; for the rest see `_try_quiet`.
    """
    width, n_classes = unit.shape[0], guesses.shape[1]
    seen, seen_lengths, scores = block[:width], block[width], block[width + 1 : width + 1 + n_classes]
    products, room, values, none = block[-3], block[-2], block[-1], columns.reshape((1, width))
    # The kernel's value of any row with itself, unless all of it is 0.
    own = compare(base, seen, seen_lengths, unit, 1.0, 0, products, room, values)
    square, start = squared_often(own, squarings), 0
    while start < y.shape[0]:
        # The first blocks are small: most stretches are short.
        n_wanted = min(_FIRST_BLOCK + start, block.shape[1], y.shape[0] - start)
        n_rows = see_rows(X, start, n_wanted, scale, seen, seen_lengths)
        for i in range(n_classes):
            for r in range(n_rows):
                scores[i, r] = 0.0
        for s in range(coefficients.shape[0]):
            terms = seen[s] if is_linear else values
            if not is_linear:
                for j in range(width):
                    unit[j] = units[j, s]
                if base[CODE] != LAPLACE:
                    write_products(n_rows, none, block, examples, seen, columns, unit, width, unit, products)
                compare(base, seen, seen_lengths, unit, examples[LENGTH, s], n_rows, products, room, values)
                write_powers(values, n_rows, squarings, values)
            for i in range(n_classes):
                coefficient, line = coefficients[s, i], scores[i]
                for r in range(n_rows):
                    line[r] += coefficient * terms[r]
        for r in range(n_rows):
            t, n, is_quiet = start + r, heard[0] + 1, True
            for i in range(n_classes):
                lacks = lack(IT_IS if i == y[t] else IT_IS_ANOTHER, scores[i, r])
                is_quiet = is_quiet and not counts_for(i, lacks, PRODUCTIVE, square, sums)
            if not is_quiet or (scale.shape[1] > 0 and n & (n - 1) == 0):
                return t
            before = watch[ROUNDS], watch[LATELY], watch[USUALLY], watch[BEST]
            if is_outdated(watch, True, n_classes, softness):
                watch[ROUNDS], watch[LATELY], watch[USUALLY], watch[BEST] = before
                return t
            guesses[RIGHT, y[t]] += 1
            if mixture.shape[0] > 0:
                count_sure(mixture, False)
            heard[0] = n
            for j in range(scale.shape[1]):
                count_entry(statistics, j, X[t, j], n, True)
        start += n_rows
        if n_rows < n_wanted:
            break
    return start
