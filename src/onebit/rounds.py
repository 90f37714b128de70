"""The words of the game: a guess, a rule, a record of what happened.

Each round the learner is shown features, names one label (the *guess*) and is told one bit: right or wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.compiled import inlined
from onebit.inputs import Floats, Integers, Rows


class Guess(NamedTuple):
    """A ticket: what the learner said in one round, and what `tell` will need when the answer comes.

    Keep it for as long as the answer takes. It can be told once, to the learner that issued it, in any order.

    Attributes
    ----------
    round : int
        Which round it was, counted from 0.
    label : object
        The label that was guessed, one of the learner's classes.
    probability : float
        The chance this label had in this round.
    explored : bool
        Whether the label was drawn to explore rather than because of its score.
    """

    round: int
    label: Any
    probability: float
    explored: bool
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs on a ticket
    """The label's position among the classes."""
    row: Rows
    """A copy of the features, as one row."""
    scores: Floats
    """The scores the guess was made from."""
    version: int
    """How many updates the learner had made by then."""
    learner: str | None
    """The run of the learner that issued the ticket."""

    def __repr__(self) -> str:
        return (
            f"Guess(round={self.round}, label={self.label!r}, probability={self.probability:.6g}, "
            f"explored={self.explored})"
        )

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash((self.learner, self.round))


class Rule(NamedTuple):
    """How scores become a guess and feedback becomes a step: three compiled functions.

    Attributes
    ----------
    guess : (scores, draw, settings) → (label, explored)
        May call ``uniform(draw)``, once.
    probabilities : (scores, settings, out)
        Writes the chance that `guess` gives to each label.
    learn : (scores, current, label, explored, correct, truth, settings, gains) → changed
        Writes how much of x each class gains. `scores` are those of the guess, `current` those of now: they differ
        only when feedback comes late. `truth` is the label in the full-information game and −1 in the bandit game.
    hears_label : bool
        Whether the rule belongs to the full-information game.
    """

    guess: Callable[..., tuple[int, bool]]
    probabilities: Callable[..., None]
    learn: Callable[..., bool]
    hears_label: bool = False


@inlined
def highest(scores: Floats) -> int:
    """Return the label with the highest score, the first of them if several share it."""
    best, top = 0, scores[0]
    for i in range(1, scores.shape[0]):
        if scores[i] > top:
            best, top = i, scores[i]
    return best


@inlined
def clear(values: Floats) -> None:
    """Set every entry to zero (a plain loop: slicing costs more than the rest of a round)."""
    for i in range(values.shape[0]):
        values[i] = 0.0


class Record(NamedTuple):
    """What the compiled loops write down while they play: bounded memory, whatever the number of rounds."""

    counts: Integers
    """Mistakes, updates, explored guesses, checkpoints passed."""
    checkpoints: Integers
    cumulative: Integers
    guesses: npt.NDArray[np.int32]
    """One entry per round, or empty when nobody asked for them."""


MISTAKES, UPDATES, EXPLORED, PASSED = range(4)


def new_record(n_rounds: int, checkpoints: Integers, keep_guesses: bool) -> Record:
    """Return an empty record."""
    return Record(
        np.zeros(4, dtype=np.int64),
        checkpoints,
        np.zeros(len(checkpoints), dtype=np.int64),
        np.zeros(n_rounds if keep_guesses else 0, dtype=np.int32),
    )


@inlined
def note(record: Record, played: int, label: int, explored: bool, correct: bool, changed: bool) -> None:
    """Write down the round that was the `played`-th of this stream, counted from 0."""
    if not correct:
        record.counts[MISTAKES] += 1
    if changed:
        record.counts[UPDATES] += 1
    if explored:
        record.counts[EXPLORED] += 1
    if record.guesses.shape[0] > 0:
        record.guesses[played] = label
    passed = record.counts[PASSED]
    if played + 1 == record.checkpoints[passed]:
        record.cumulative[passed] = record.counts[MISTAKES]
        record.counts[PASSED] = min(passed + 1, record.checkpoints.shape[0] - 1)


def default_checkpoints(n_rounds: int, *, linear: int = 100, per_decade: int = 16) -> Integers:
    """Return at most a few hundred rounds at which to write the curve down: evenly spaced ones and log-spaced ones.

    >>> default_checkpoints(5).tolist()
    [1, 2, 3, 4, 5]
    """
    even = np.linspace(0, n_rounds, linear + 1)
    decades = np.log10(n_rounds)
    log = np.geomspace(1, n_rounds, int(np.ceil(per_decade * decades)) + 1)
    points = np.unique(np.rint(np.concatenate([even, log])).astype(np.int64))
    return points[points > 0]


class Curve(NamedTuple):
    """Cumulative mistakes at checkpoints."""

    rounds: Integers
    mistakes: Integers


@dataclass(frozen=True)
class Trace:
    """What happened when one learner played one stream.

    Attributes
    ----------
    rounds, mistakes, updates, uniform_guesses : int
        Rounds played, wrong guesses, rounds in which the learner changed, guesses drawn to explore.
    curve : Curve
        Cumulative mistakes at a bounded number of checkpoints, the last being the last round.
    guesses : array or None
        The label guessed in every round, if it was asked for.
    """

    rounds: int
    mistakes: int
    updates: int
    uniform_guesses: int
    curve: Curve = field(repr=False)
    guesses: npt.NDArray[Any] | None = field(default=None, repr=False)
