"""One learner against one stream: `play`, and the `Trace` of what happened."""

import math
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.asking import Asking
from onebit.engine.algorithm import EXPLORED, MISTAKES, UPDATES
from onebit.extras import require_extra
from onebit.game import Guess
from onebit.inputs import Floats, Integers, check_choice, check_integer, check_real, check_switch
from onebit.learners import Learner
from onebit.learners.run import all_or_nothing, new_record, play_rounds, play_stream
from onebit.streams import AdaptiveStream, DataSet, LearnerView

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

_MOST_ROUNDS = 2**53  # checkpoints are floats before they are whole numbers


class Curve(NamedTuple):
    """Cumulative mistakes at checkpoints."""

    rounds: Integers
    mistakes: Integers


class ByRound(NamedTuple):
    """What happened in each round of a game with confidence, one entry a round.

    The confidence is NaN where there was too little feedback; `right` is of the guess or the suggestion.
    """

    confidence: Floats
    right: npt.NDArray[np.bool_]
    asked: npt.NDArray[np.bool_]


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

    Examples
    --------
    >>> import numpy as np
    >>> curve = Curve(np.array([1, 2, 4]), np.array([1, 1, 2]))
    >>> Trace(rounds=4, mistakes=2, updates=2, uniform_guesses=0, curve=curve).to_frame()["rate"].to_list()
    [1.0, 0.5, 0.5]
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
        """Return the curve as a Polars frame: round, mistakes so far, and their share of the rounds so far."""
        require_extra("frames need", "files")
        import polars

        rounds, mistakes = self.curve
        return polars.DataFrame({"round": rounds, "mistakes": mistakes, "rate": mistakes / rounds})

    def plot(self, axes: "Axes | None" = None, **line: Any) -> "Axes":
        """Draw mistakes so far against rounds, in new axes if none are given.

        ``line`` is passed on to `matplotlib.axes.Axes.plot`, such as ``label`` and ``color``.
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


def play(
    learner: Learner,
    X: Any,
    y: Any = None,
    *,
    seed: int | None = None,
    engine: str = "stream",
    fresh: bool = True,
    checkpoints: npt.ArrayLike | None = None,
    keep_guesses: bool = False,
    max_rounds: int = 1_000_000,
    on_progress: Callable[[int, int], None] | None = None,
    confidence: bool = False,
    wrong_at_most: float | None = None,
    ask_at_most: float | None = None,
) -> Trace:
    """Play a stream with a learner and return what happened.

    Parameters
    ----------
    learner : Learner
        Starts afresh, and holds what it learned afterwards.
    X : array or sparse matrix of shape (rounds, features), DataSet, iterator of pairs, or AdaptiveStream
        The rounds, in order. A `DataSet` brings its labels, which are its `label_names`. An iterator, such as a
        generator, gives ``(features, label)`` round by round; the learner must be given its classes beforehand.
    y : array of shape (rounds,), or of bool and shape (rounds, K)
        The labels, used only to answer right or wrong (full-information learners get them). Where several labels may be
        right, a matrix: whether each of the K labels is right in each round, in the order of the classes; at most 63.
    seed : int, optional
        Names the learner's random numbers; the learner's own seed if not given.
    engine : {"stream", "rounds"}
        "stream" plays compiled, over the whole stream. "rounds" calls `guess` and `tell` round by round: slower, and
        guess for guess the same.
    fresh : bool
        False to play on from what the learner knows.
    checkpoints : array of int, optional
        Rounds at which the curve is written down, besides the last; by default a few hundred.
    keep_guesses : bool
        Keep the label guessed in every round.
    max_rounds : int
        Where an adaptive stream or an iterator that never ends is cut off.
    on_progress : callable, optional
        Called now and then with how many rounds are played, and of how many. It does not change the game.
    confidence : bool
        Estimate the confidence of every guess: ``trace.by_round`` has it. Such games, and those that ask, are played
        round by round.
    wrong_at_most : float, optional
        In (0, 1): the share of wrong decisions among those made alone. Where the learner is not sure enough the label
        is asked for: it is learned, and the round is no mistake. docs/theory/asking.md says what is guaranteed.
    ask_at_most : float, optional
        In (0, 1): the share of rounds in which the label may be asked for, where it helps most. Give one of the two.

    Returns
    -------
    Trace
        Mistakes, updates, the curve, the guesses if wanted, and how often the label was asked for.

    Examples
    --------
    >>> import onebit
    >>> X, y = onebit.streams.paper_strong(rounds=10_000, seed=1)
    >>> trace = onebit.play(onebit.BanditPerceptron(), X, y, seed=7)
    >>> trace.mistakes < 300, int(trace.curve.rounds[-1])
    (True, 10000)
    >>> trace = onebit.play(onebit.BanditPerceptron(), X, y, seed=7, wrong_at_most=0.02)
    >>> trace.mistakes <= trace.wrong_limit, trace.asked < 1_000
    (True, True)
    """
    if not isinstance(learner, Learner):
        raise ValueError(f"learner must be an onebit learner such as BanditPerceptron(); got {learner!r}")
    if isinstance(X, (AdaptiveStream, DataSet, Iterator)):
        if y is not None:
            kind = "an adaptive stream" if isinstance(X, AdaptiveStream) else type(X).__name__
            raise ValueError(f"y must be left out with {kind}, which gives its own labels")
    elif y is None:
        raise ValueError("y is missing: give the label of every round")
    if engine != "stream":
        check_choice("engine", engine, ("stream", "rounds"))
    game = None
    if confidence is not False or wrong_at_most is not None or ask_at_most is not None:
        check_switch("confidence", confidence)
        game = _Confident(wrong_at_most, ask_at_most)
    asks = None if game is None else game.asks
    if isinstance(X, (AdaptiveStream, Iterator)):
        limit = check_integer("max_rounds", max_rounds, low=1, high=_MOST_ROUNDS)
        record = new_record(limit, checkpoints, keep_guesses)
        # After the arguments are checked: what an iterator has given cannot be given back.
        n_features, labels, rounds = _read_pairs(learner, X, fresh) if isinstance(X, Iterator) else _watch(learner, X)
        with all_or_nothing(learner, fresh):
            learner.begin(n_features, labels, seed=seed, fresh=fresh)
            played = play_rounds(learner, rounds, record, asks=asks)
            if played == 0:
                raise ValueError("the stream ended before its first round")
    else:
        classes = None
        if isinstance(X, DataSet):
            classes = np.array(X.label_names)
            X, y = X.X, classes[X.y]
        options: dict[str, Any] = {"checkpoints": checkpoints, "keep_guesses": keep_guesses, "on_progress": on_progress}
        options |= {"by_round": engine == "rounds" or game is not None, "asks": asks}
        record = play_stream(learner, X, y, seed=seed, fresh=fresh, classes=classes, **options)
        played = int(record.checkpoints[-1])  # the last one is the last round
    inside = record.checkpoints < played  # an adaptive stream may end before its last checkpoint
    mistakes = int(record.counts[MISTAKES])
    return Trace(
        rounds=played,
        mistakes=mistakes,
        updates=int(record.counts[UPDATES]),
        uniform_guesses=int(record.counts[EXPLORED]),
        curve=Curve(np.append(record.checkpoints[inside], played), np.append(record.cumulative[inside], mistakes)),
        guesses=learner.classes_[record.guesses[:played]] if len(record.guesses) else None,
        **({} if game is None else game.outcome()),
    )


class _Confident:
    """A game in which the confidence of every guess is noted, and the label is asked for where a rule wants it."""

    def __init__(self, wrong_at_most: float | None, ask_at_most: float | None) -> None:
        self._asking = None
        if wrong_at_most is not None or ask_at_most is not None:
            self._asking = Asking(wrong_at_most=wrong_at_most, ask_at_most=ask_at_most)
        self._confidence, self._right, self._asked = array("d"), bytearray(), bytearray()

    def asks(self, guess: Guess, correct: bool) -> bool:
        """Note a guess, and return whether its label is asked for."""
        ask = False
        if self._asking is not None:
            decision = self._asking.decide(guess.confidence)
            ask = decision.ask
            self._asking.answer(decision, correct)
        self._confidence.append(math.nan if guess.confidence is None else guess.confidence)
        self._right.append(correct)
        self._asked.append(ask)
        return ask

    def outcome(self) -> dict[str, Any]:
        """Return what a trace says about confidence and asking."""
        right, asked = (np.frombuffer(each, np.uint8).astype(np.bool_) for each in (self._right, self._asked))
        return {
            "asked": int(asked.sum()),
            "suggestions_right": int((right & asked).sum()),
            "wrong_limit": None if self._asking is None else self._asking.limit(),
            "by_round": ByRound(np.array(self._confidence), right, asked),
        }


_Opened = tuple[int, Any, Iterator[tuple[Any, int]]]
"""How many features a stream has that is not known beforehand, its labels, and its rounds for `play_rounds`."""


def _watch(learner: Learner, stream: AdaptiveStream) -> _Opened:
    """Open a stream that watches the learner."""

    def rounds() -> Iterator[tuple[Any, int]]:
        t = 0
        while (chosen := stream.next(LearnerView(t, learner.probabilities))) is not None:
            yield chosen[0], learner.index_of(chosen[1])  # before the guess is drawn, as the game demands
            t += 1

    return stream.n_features, stream.classes, rounds()


def _read_pairs(learner: Learner, pairs: Iterator[Any], fresh: bool) -> _Opened:
    """Open an iterator of features and labels, by its first pair."""
    classes = learner.classes_ if not fresh and hasattr(learner, "classes_") else learner.classes
    if classes is None or isinstance(classes, str):
        raise ValueError(
            "classes must be given to a learner that plays an iterator, which does not tell its labels beforehand: "
            f"{type(learner).__name__}(classes=[…])"
        )

    def checked() -> Iterator[tuple[Any, Any]]:
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"an iterator of rounds must give pairs (features, label); got {pair!r:.80}")
            yield pair[0], pair[1]

    given = checked()
    first = list(islice(given, 1))
    shape = next((getattr(x, "shape", None) or check_real(x, "features").shape for x, _ in first), ())
    rounds = ((features, learner.index_of(label)) for features, label in chain(first, given))
    return int(shape[-1]) if shape else 1, classes, rounds
