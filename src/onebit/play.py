"""One learner against one stream."""

from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.inputs import check_choice, check_integer, check_rows
from onebit.labels import check_labels
from onebit.learners import Learner
from onebit.learners.by_hand import ASKING, AtHand, play_by_hand
from onebit.loop import ENDED, EXPLORED, MISTAKES, READY, UPDATES, Record, new_record
from onebit.rounds import Curve, Trace
from onebit.streams import AdaptiveStream, LearnerView

_MOST_ROUNDS = 2**53  # checkpoints are floats before they are whole numbers


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
) -> Trace:
    """Let a learner play a stream and return what happened.

    Parameters
    ----------
    learner : Learner
        Starts afresh, and holds what it learned afterwards.
    X : array or sparse matrix of shape (rounds, features), or AdaptiveStream
        The rounds, in order.
    y : array of shape (rounds,)
        The labels, used only to answer right or wrong (full-information learners are told them).
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
        Where an adaptive stream that never ends is cut off.

    Returns
    -------
    Trace
        Mistakes, updates, the curve, and the guesses if asked for.

    Examples
    --------
    >>> import onebit
    >>> X, y = onebit.streams.paper_strong(rounds=10_000, seed=1)
    >>> trace = onebit.play(onebit.BanditPerceptron(), X, y, seed=7)
    >>> trace.mistakes < 300, int(trace.curve.rounds[-1])
    (True, 10000)
    """
    if not isinstance(learner, Learner):
        raise ValueError(f"learner must be an onebit learner such as BanditPerceptron(); got {learner!r}")
    check_choice("engine", engine, ("stream", "rounds"))
    if isinstance(X, AdaptiveStream):
        if y is not None:
            raise ValueError("y must be left out with an adaptive stream, which gives its own labels")
        return _play_adaptive(learner, X, seed, fresh, checkpoints, keep_guesses, max_rounds)
    if y is None:
        raise ValueError("y is missing: give the label of every round")
    if engine == "stream":
        record = learner.play_stream(
            X, y, seed=seed, fresh=fresh, checkpoints=checkpoints, keep_guesses=keep_guesses
        )  # fmt: skip
        return _trace(learner, record, int(record.checkpoints[-1]))  # the last one is the last round
    rows = check_rows(X)
    labels = check_labels(y, rows.shape[0])
    with learner.all_or_nothing(fresh):
        codes = learner.begin_stream(rows, labels, seed=seed, fresh=fresh, given=X)
        record = new_record(len(codes), checkpoints, keep_guesses)
        play_by_hand(learner, rows, codes, record)
    return _trace(learner, record, len(codes))


class _Watched:
    """The rounds of an adaptive stream, as the loop sees them: only the present one is known."""

    def __init__(self, stream: AdaptiveStream, limit: int) -> None:
        self.stream, self._limit, self.code = stream, limit, -1

    def __len__(self) -> int:
        return self._limit

    def __getitem__(self, t: int) -> int:
        return self.code


def _ask_stream(learner: Learner, rounds: _Watched, t: int, sight: AtHand, _settings: None) -> int:
    """Let the stream choose round t, then let the learner guess it."""
    chosen = rounds.stream.next(LearnerView(t, learner.probabilities))
    if chosen is None:
        return ENDED
    features, label = chosen
    rounds.code = learner.index_of(label)  # before the guess is drawn, as the game demands
    sight.guess = learner.guess(features)
    return READY


_WATCHED_GAME = ASKING._replace(measure=_ask_stream)


def _play_adaptive(
    learner: Learner,
    stream: AdaptiveStream,
    seed: int | None,
    fresh: bool,
    checkpoints: npt.ArrayLike | None,
    keep_guesses: bool,
    max_rounds: int,
) -> Trace:
    limit = check_integer("max_rounds", max_rounds, low=1, high=_MOST_ROUNDS)
    record = new_record(limit, checkpoints, keep_guesses)
    rounds = _Watched(stream, limit)
    with learner.all_or_nothing(fresh):
        learner.begin(stream.n_features, stream.classes, seed=seed, fresh=fresh)
        played = play_by_hand(learner, rounds, rounds, record, _WATCHED_GAME)
        if played == 0:
            raise ValueError("the adaptive stream ended before its first round")
    return _trace(learner, record, played)


def _trace(learner: Learner, record: Record, n_rounds: int) -> Trace:
    inside = record.checkpoints < n_rounds  # an adaptive stream may end before its last checkpoint
    mistakes = int(record.counts[MISTAKES])
    return Trace(
        rounds=n_rounds,
        mistakes=mistakes,
        updates=int(record.counts[UPDATES]),
        uniform_guesses=int(record.counts[EXPLORED]),
        curve=Curve(np.append(record.checkpoints[inside], n_rounds), np.append(record.cumulative[inside], mistakes)),
        guesses=learner.classes_[record.guesses[:n_rounds]] if len(record.guesses) else None,
    )
