"""The one round loop, and the `Algorithm` that it plays.

A round has three steps: **score** the row, **choose** a label, **update** the state with the answer. The functions are
those of a learner's `State`. Whole streams and single rounds call the same ones, so both make the same guesses.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.engine.code_cache import is_ours
from onebit.engine.jit import jit, jit_inline, jit_no_refcount
from onebit.engine.randomness import Draw
from onebit.game import Answer
from onebit.inputs import Floats, Integers, Rows


@jit_inline
def is_right(label: int, code: int) -> bool:
    """Return whether a label is right in a round with this code: the right label, or as `labels.codes_of_right`."""
    return label == code if code >= -1 else (((-1 - code) >> label) & 1) == 1


class Algorithm(NamedTuple):
    """The functions of a learner that the loop calls.

    `state` is a named tuple of the arrays that were learned. `scratch` is a named tuple of arrays for one round, which
    `score` writes and the others read. Row t of X is meant throughout.

    Attributes
    ----------
    score : (state, X, t, scratch, settings) → READY, FULL or UNSCORED
        Writes the scores of a row. It learns nothing.
    choose : (scratch, draw, settings) → (label, explored)
        May call ``uniform(draw)``, once. It also writes ``scratch.propensities[label]`` if `update` needs that.
    probabilities : (scratch, settings)
        Writes the probability with which `choose` draws each label to ``scratch.propensities``.
    update : (state, X, t, scratch, answer, settings) → changed
        Learns from an answer. It cannot fail: what could go wrong does so in `score`.
    full_information : bool
        Whether every answer is the right label itself.
    pauses : bool
        Whether the loop stops after every change, for a state that only Python can change.
    """

    score: Callable[..., int]
    choose: Callable[..., tuple[int, bool]]
    probabilities: Callable[..., None]
    update: Callable[..., bool]
    full_information: bool = False
    pauses: bool = False


def inline_into_loop(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm whose functions are copied into the loop when it is compiled."""
    functions = {name: jit_inline(getattr(algorithm, name)) for name in ("score", "choose", "probabilities", "update")}
    return algorithm._replace(**functions)


READY, FULL, UNSCORED, CHANGED = range(4)
"""Why the loop stops: at the end; before a round for which the arrays must grow; before a row that cannot be scored
(or, in blocks, not surely enough); after a change, if the algorithm pauses."""


class CompiledAlgorithm(NamedTuple):
    """An algorithm's functions as Python calls them: the loop with named tuples, the others with plain ones.

    Handing a named tuple to compiled code costs half a microsecond, a plain one next to nothing; so the functions that
    are called in every round get plain ones, and name the fields again inside.
    """

    loop: Callable[..., tuple[int, int]]
    """(state, X, y, t, start, seed, first_round, settings, scratch, record) → the next t, why the loop stopped.

    X is not marked read-only."""
    guess: Callable[..., tuple[int, int, bool, float]]
    """(state, row, scratch, seed, round, settings) → READY or why not, label, explored, propensity."""
    update: Callable[..., bool]
    """(state, row, scratch, answer, settings) → changed."""


@cache
def compile_algorithm(
    algorithm: Algorithm, state_of: Any = tuple, scratch_of: Any = tuple, settings_of: Any = tuple
) -> CompiledAlgorithm:
    """Return an algorithm's compiled functions, compiled once; the types are those of its named tuples."""
    score, choose, probabilities, update, full_information, pauses = algorithm
    # A user's functions may make arrays; ours do not, and need not pay for counting them.
    finished = jit_no_refcount if all(is_ours(function) for function in (score, choose, probabilities, update)) else jit

    # The one round loop. Counting in local variables between checkpoints makes it three times as fast as counting in
    # the record, and a status instead of an exception lets it be left and entered again at the same round.
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


@jit_inline
def highest(scores: Floats) -> int:
    """Return the label with the highest score, the first of them if several share it."""
    best, top = 0, scores[0]
    for i in range(1, scores.shape[0]):
        if scores[i] > top:
            best, top = i, scores[i]
    return best


@jit_inline
def clear(values: Floats) -> None:
    """Set every entry to zero (a plain loop: slicing costs more than the rest of a round)."""
    for i in range(values.shape[0]):
        values[i] = 0.0


@jit_inline
def ready_if_finite(scores: Floats) -> int:
    """Return READY, or UNSCORED if a score is NaN or infinite."""
    # A sum of differences is 0 exactly if all are finite, and costs no branch per score.
    off = 0.0
    for i in range(scores.shape[0]):
        off += scores[i] - scores[i]
    return READY if off == 0.0 else UNSCORED


class Record(NamedTuple):
    """What the loop writes down while it plays: bounded memory, whatever the number of rounds."""

    counts: Integers
    """Mistakes, updates, explored guesses, checkpoints passed."""
    checkpoints: Integers
    cumulative: Integers
    guesses: npt.NDArray[np.int32]
    """One entry per round, or empty if they were not asked for."""


MISTAKES, UPDATES, EXPLORED, PASSED = range(4)


def note_right(record: Record, first: int, labels: Integers) -> None:
    """Write down rounds from `first` on that were guessed without exploring, all of them right, and changed nothing."""
    stop = first + len(labels)
    if len(record.guesses):
        record.guesses[first:stop] = labels
    passed = np.searchsorted(record.checkpoints, stop, side="right")
    record.cumulative[record.counts[PASSED] : passed] = record.counts[MISTAKES]
    record.counts[PASSED] = passed
