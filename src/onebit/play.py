"""One learner against one stream."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from onebit.inputs import Integers, Rows, SparseRows, check_choice, check_integer
from onebit.learners import Learner
from onebit.rounds import (
    EXPLORED,
    MISTAKES,
    UPDATES,
    Curve,
    Record,
    Trace,
    default_checkpoints,
    new_record,
    note,
)
from onebit.streams import AdaptiveStream, LearnerView


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
        points = None if checkpoints is None else _check_checkpoints(checkpoints, np.shape(y)[0])
        record = learner.play_stream(X, y, seed=seed, fresh=fresh, checkpoints=points, keep_guesses=keep_guesses)
        return _trace(learner, record, np.shape(y)[0])
    with learner.all_or_nothing():
        rows, codes = learner.begin_stream(X, y, seed=seed, fresh=fresh)
        n = len(codes)
        points = default_checkpoints(n) if checkpoints is None else _check_checkpoints(checkpoints, n)
        record = new_record(n, points, keep_guesses)
        for t in range(n):
            _one_round(learner, _row(rows, t), codes[t], t, record)
    return _trace(learner, record, n)


def _one_round(learner: Learner, features: Any, code: int, t: int, record: Record) -> None:
    updates = learner.n_updates_
    guess = learner.guess(features)
    correct = guess.index == code
    if learner.hears_label:
        learner.tell(guess, correct, label=learner.classes_[code])
    else:
        learner.tell(guess, correct)
    note(record, t, guess.index, guess.explored, correct, learner.n_updates_ > updates)


def _row(rows: Rows, t: int) -> Any:
    if not isinstance(rows, SparseRows):
        return rows[t]
    first, last = rows.starts[t], rows.starts[t + 1]
    return csr_array((rows.values[first:last], rows.columns[first:last], [0, last - first]), shape=(1, rows.n_columns))


def _play_adaptive(
    learner: Learner,
    stream: AdaptiveStream,
    seed: int | None,
    fresh: bool,
    checkpoints: npt.ArrayLike | None,
    keep_guesses: bool,
    max_rounds: int,
) -> Trace:
    limit = check_integer("max_rounds", max_rounds, low=1)
    learner.begin(stream.n_features, stream.classes, seed=seed, fresh=fresh)
    points = default_checkpoints(limit) if checkpoints is None else _check_checkpoints(checkpoints, limit)
    record = new_record(limit, points, keep_guesses)
    played = 0
    while played < limit:
        chosen = stream.next(LearnerView(played, learner.probabilities))
        if chosen is None:
            break
        features, label = chosen
        _one_round(learner, features, learner.index_of(label), played, record)
        played += 1
    if played == 0:
        raise ValueError("the adaptive stream ended before its first round")
    return _trace(learner, record, played)


def _check_checkpoints(checkpoints: npt.ArrayLike, n_rounds: int) -> Integers:
    points = np.unique(np.append(np.asarray(checkpoints), n_rounds))
    if points.dtype.kind not in "iu" or points[0] < 1 or points[-1] > n_rounds:
        raise ValueError(f"checkpoints must be whole numbers from 1 to {n_rounds}; got {checkpoints!r}")
    return points.astype(np.int64)


def _trace(learner: Learner, record: Record, n_rounds: int) -> Trace:
    inside = record.checkpoints < n_rounds
    mistakes = int(record.counts[MISTAKES])
    return Trace(
        rounds=n_rounds,
        mistakes=mistakes,
        updates=int(record.counts[UPDATES]),
        uniform_guesses=int(record.counts[EXPLORED]),
        curve=Curve(np.append(record.checkpoints[inside], n_rounds), np.append(record.cumulative[inside], mistakes)),
        guesses=learner.classes_[record.guesses[:n_rounds]] if len(record.guesses) else None,
    )
