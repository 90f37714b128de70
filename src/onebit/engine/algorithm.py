"""What a round is made of: score the row, choose a label, update the state with the answer.

An `Algorithm` is the compiled functions that do so. The round loop, which calls them, is in `onebit.engine.state`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.engine.jit import jit_inline
from onebit.inputs import Floats, Integers


@jit_inline
def is_right(label: int, code: int) -> bool:
    """Return whether a label is right in a round with this code: see `labels.classes_and_codes`."""
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


READY, FULL, UNSCORED, CHANGED = range(4)
"""Why the loop stops: at the end; before a round for which the arrays must grow; before a row that cannot be scored
(or, in blocks, not surely enough); after a change, if the algorithm pauses."""


class CompiledAlgorithm(NamedTuple):
    """An algorithm's functions as Python calls them: the loop with named tuples, the others with plain ones.

    Handing over a named tuple costs half a microsecond, a plain one next to nothing.
    """

    loop: Callable[..., tuple[int, int]]
    """(state, X, y, t, start, seed, first_round, settings, scratch, record) → the next t, why the loop stopped.

    X is not marked read-only."""
    guess: Callable[..., tuple[int, int, bool, float]]
    """(state, row, scratch, seed, round, settings) → READY or why not, label, explored, propensity."""
    update: Callable[..., bool]
    """(state, row, scratch, answer, settings) → changed."""


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
