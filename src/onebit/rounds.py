"""The words of the game: a guess, an answer, a trace of what happened.

Each round the learner is shown features, names one label (the *guess*) and is told one bit: right or wrong.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy.typing as npt

from onebit.inputs import Floats, Integers, Rows

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


class Guess(NamedTuple):
    """A ticket: what the learner said in one round, and what `tell` will need when the answer comes.

    Keep it for as long as the answer takes. It can be told once, as it is, to the learner that issued it, in any order
    (`onebit.learners.tickets` says what becomes of it when the learner is saved or copied).

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
    """The scores the guess was made from; empty if the learner has none."""
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
        return self is other  # two rounds are never the same ticket, and arrays have no truth value

    def __hash__(self) -> int:
        return hash((self.learner, self.round))


class Answer(NamedTuple):
    """What a learner hears: the guess it made, and whether it was right."""

    label: int
    """The guessed label's position among the classes."""
    explored: bool
    correct: bool
    truth: int
    """The right label in the full-information game, −1 in the bandit game."""


class Curve(NamedTuple):
    """Cumulative mistakes at checkpoints."""

    rounds: Integers
    mistakes: Integers


@dataclass(frozen=True)
class Trace:
    """What happened when one learner played one stream; `plot` draws it, `to_frame` is a table of it.

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

    def to_frame(self) -> "polars.DataFrame":
        """Return the curve as a Polars frame: round, mistakes so far, and their share of the rounds so far.

        >>> import numpy as np
        >>> curve = Curve(np.array([1, 2, 4]), np.array([1, 1, 2]))
        >>> Trace(rounds=4, mistakes=2, updates=2, uniform_guesses=0, curve=curve).to_frame()["rate"].to_list()
        [1.0, 0.5, 0.5]
        """
        import polars

        rounds, mistakes = self.curve
        return polars.DataFrame({"round": rounds, "mistakes": mistakes, "rate": mistakes / rounds})

    def plot(self, axes: "Axes | None" = None, **line: Any) -> "Axes":
        """Draw mistakes so far against rounds.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to; a new figure if not given.
        **line
            Passed on to `matplotlib.axes.Axes.plot`, such as ``label`` and ``color``.

        Returns
        -------
        matplotlib Axes
        """
        if axes is None:
            from matplotlib import pyplot

            _, axes = pyplot.subplots(layout="constrained")
        # The curve begins before the first round, with nothing.
        axes.plot([0, *self.curve.rounds.tolist()], [0, *self.curve.mistakes.tolist()], **line)
        axes.set(xlabel="rounds", ylabel="mistakes so far", xlim=(0, self.rounds))
        axes.set_ylim(bottom=0)
        return axes
