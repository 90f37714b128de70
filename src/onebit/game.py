"""The words of the game: a guess, an answer, a trace of what happened.

Each round the learner is shown features, names one label (the *guess*) and gets one bit of feedback: right or wrong.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.extras import require_extra
from onebit.inputs import Floats, Integers, Rows, SparseRows
from onebit.typed_json import Trusted, describe, parse, restore, write

TOKEN = 8
"""How many random bytes a ticket carries: they cannot be guessed."""
_ID = re.compile(f"([0-9]{{1,18}})-([0-9a-f]{{{2 * TOKEN}}})")

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


class Guess(NamedTuple):
    """A ticket: what the learner guessed in one round, and what `tell` needs when the feedback comes.

    Keep it for as long as the answer takes, or only its `id`. The learner that issued it takes it once, as it is, in
    any order (`onebit.learners.tickets` describes what a saved or copied learner takes). It travels as JSON.

    Attributes
    ----------
    round : int
        Which round it was, counted from 0.
    label : object
        The label that was guessed, one of the learner's classes.
    propensity : float
        The chance with which this label was drawn. It is 1 for a learner that draws nothing, and is not the
        probability that the label is right.
    explored : bool
        Whether the label was drawn to explore rather than because of its score.
    confidence : float or None
        The estimated probability that the label is right, calibrated by the feedback so far; None until there is
        enough of it, and for a learner without scores. Whole streams are played without it: see `onebit.play`.

    Examples
    --------
    >>> import onebit
    >>> learner = onebit.BanditPerceptron(classes=["no", "yes"])
    >>> text = learner.guess([1.0, 0.5]).to_json()
    >>> learner.tell(Guess.from_json(text), correct=True)
    >>> name = learner.guess([0.2, 0.7]).id
    >>> learner.tell(name, correct=False)
    """

    round: int
    label: Any
    propensity: float
    explored: bool
    index: int  # type: ignore[assignment]  # hides tuple.index, which a ticket does not need
    """The label's position among the classes."""
    row: Rows
    """A copy of the features, as one row."""
    scores: Floats
    """The scores the guess was made from; empty if the learner has none."""
    version: int
    """How many updates the learner had made by then."""
    confidence: float | None
    evidence: Floats
    """What the confidence was estimated from; empty if there is none."""
    labels: tuple[Any, ...]
    """The classes when the guess was made; empty in a ticket from JSON."""
    token: bytes
    """Drawn at random for this ticket alone."""

    @property
    def id(self) -> str:
        """A short name for `tell`: the round and random bytes."""
        return f"{self.round}-{self.token.hex()}"

    @property
    def ranking(self) -> list[Any]:
        """The allowed labels, the highest score first; empty for a learner without scores and a ticket from JSON."""
        scores = self.scores[: len(self.labels)]
        return [self.labels[i] for i in np.argsort(-scores, kind="stable").tolist() if scores[i] > -np.inf]

    def to_json(self) -> str:
        """Return the whole ticket as a JSON text, for `from_json`; its label must be one that can be saved."""
        row, fields = self.row, self._asdict()
        for name in ("round", "token", "labels"):  # the id has the first two
            del fields[name]
        if isinstance(row, SparseRows):
            fields["row"] = {
                "values": row.values.tolist(),
                "columns": row.columns.tolist(),
                "n_columns": row.n_columns,
            }
        else:
            fields["row"] = row[0].tolist()
        described = {"label": describe(self.label), "scores": describe(self.scores.tolist())}
        return write({"onebit": "guess", "id": self.id, **fields, **described, "evidence": self.evidence.tolist()})

    @classmethod
    def from_json(cls, text: str | bytes, trusted: Iterable[Any] = ()) -> "Guess":
        """Return the ticket that `to_json` wrote; whether it is genuine is for the learner to say.

        Parameters
        ----------
        text : str
            The JSON text.
        trusted : list
            Classes of labels that are not plain values, such as an Enum, or their import paths.
        """
        allowed = Trusted(trusted)
        try:
            fields = parse(text)
            if type(fields) is not dict or fields.pop("onebit", None) != "guess":
                raise ValueError("it is not marked as a guess")
            round, token = read_id(fields.pop("id"))
            row, label = _row_of_json(fields.pop("row")), restore(fields.pop("label"), allowed)
            scores = _floats(restore(fields.pop("scores"), allowed))  # a label that was not allowed has −∞
            fields |= {"row": row, "scores": scores, "evidence": _floats(fields.pop("evidence"))}
            return cls(round=round, label=label, labels=(), token=token, **fields)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise ValueError(f"text must be what Guess.to_json() returned; got {text!r:.80} ({error})") from error

    def __repr__(self) -> str:
        return (
            f"Guess(round={self.round}, label={self.label!r}, propensity={self.propensity:.6g}, "
            f"explored={self.explored})"
        )

    def __eq__(self, other: object) -> bool:
        return self is other  # two rounds are never the same ticket, and arrays have no truth value

    def __hash__(self) -> int:
        return hash(self.token)


def read_id(text: Any) -> tuple[int, bytes]:
    """Return the round and the token of a ticket's id, or raise ValueError."""
    found = _ID.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"a ticket's id is like '17-{'0f' * TOKEN}'; got {text!r:.80}")
    return int(found[1]), bytes.fromhex(found[2])


def _floats(numbers: Any) -> Floats:
    if type(numbers) is not list or not all(type(number) is float for number in numbers):
        raise ValueError(f"{numbers!r:.80} is no list of numbers")
    return np.array(numbers, dtype=np.float64)


def _row_of_json(row: Any) -> Rows:
    if type(row) is list:
        return _floats(row)[None]
    values, columns, n_columns = _floats(row["values"]), row["columns"], row["n_columns"]
    if type(columns) is not list or not all(type(column) is int for column in [*columns, n_columns]):
        raise ValueError(f"{columns!r:.80} is no list of columns")
    return SparseRows(values, np.array(columns, dtype=np.int64), np.array([0, len(columns)]), n_columns)


class Answer(NamedTuple):
    """The feedback on one guess: its label, and whether it was right."""

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


class ByRound(NamedTuple):
    """What happened in each round of a game with confidence, one entry a round."""

    confidence: Floats
    """The confidence of the guess; NaN where there was too little feedback."""
    right: npt.NDArray[np.bool_]
    """Whether the guess, or the suggestion, was right."""
    asked: npt.NDArray[np.bool_]
    """Whether the label was asked for."""


@dataclass(frozen=True)
class Trace:
    """What happened when one learner played one stream; `plot` draws it, `to_frame` is a table of it.

    Attributes
    ----------
    rounds, mistakes, updates, uniform_guesses : int
        Rounds played, wrong guesses (in rounds that were not asked about), rounds in which the learner changed, guesses
        drawn to explore.
    curve : Curve
        Cumulative mistakes at a bounded number of checkpoints, the last being the last round.
    guesses : array or None
        The label guessed in every round, if it was asked for.
    asked, suggestions_right : int
        Rounds in which the label was asked for, and in how many of them the suggestion was right.
    wrong_limit : float or None
        The most mistakes that `wrong_at_most` allowed by the theorem.
    by_round : ByRound or None
        Confidence, right and asked of every round, of a game with confidence.
    """

    rounds: int
    mistakes: int
    updates: int
    uniform_guesses: int
    curve: Curve = field(repr=False)
    guesses: npt.NDArray[Any] | None = field(default=None, repr=False)
    asked: int = 0
    suggestions_right: int = 0
    wrong_limit: float | None = field(default=None, repr=False)
    by_round: ByRound | None = field(default=None, repr=False)

    def to_frame(self) -> "polars.DataFrame":
        """Return the curve as a Polars frame: round, mistakes so far, and their share of the rounds so far.

        Examples
        --------
        >>> import numpy as np
        >>> curve = Curve(np.array([1, 2, 4]), np.array([1, 1, 2]))
        >>> Trace(rounds=4, mistakes=2, updates=2, uniform_guesses=0, curve=curve).to_frame()["rate"].to_list()
        [1.0, 0.5, 0.5]
        """
        require_extra("frames need", "files")
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
            require_extra("figures need", "figures")
            from matplotlib import pyplot

            _, axes = pyplot.subplots(layout="constrained")
        # The curve begins before the first round, with nothing.
        axes.plot([0, *self.curve.rounds.tolist()], [0, *self.curve.mistakes.tolist()], **line)
        axes.set(xlabel="rounds", ylabel="mistakes so far", xlim=(0, self.rounds))
        axes.set_ylim(bottom=0)
        return axes
