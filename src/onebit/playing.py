"""One learner against one stream."""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from onebit.asking import Asking
from onebit.engine.loop import ENDED, EXPLORED, MISTAKES, PASSED, READY, UPDATES, Record, is_right, new_record
from onebit.game import ByRound, Curve, Trace
from onebit.inputs import as_frame, check_choice, check_integer, check_real, check_rows, check_switch, is_frame, take
from onebit.labels import check_answers, first_right
from onebit.learners import Learner
from onebit.learners.by_hand import ASKING, AtHand, play_by_hand
from onebit.learners.run import all_or_nothing, begin_stream, play_stream, row_of
from onebit.streams import AdaptiveStream, DataSet, LearnerView

_PIECES, _SHORTEST_PIECE = 200, 50  # how often progress is reported
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
        Called now and then with how many rounds are played, and of how many; with the engine "stream" only. It does
        not change the game.
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
    check_choice("engine", engine, ("stream", "rounds"))
    if isinstance(X, (AdaptiveStream, DataSet, Iterator)):
        if y is not None:
            kind = "an adaptive stream" if isinstance(X, AdaptiveStream) else type(X).__name__
            raise ValueError(f"y must be left out with {kind}, which gives its own labels")
    elif y is None:
        raise ValueError("y is missing: give the label of every round")
    asks = wrong_at_most is not None or ask_at_most is not None
    asking = Asking(wrong_at_most=wrong_at_most, ask_at_most=ask_at_most) if asks else None
    game = _Confident(learner, asking) if check_switch("confidence", confidence) or asks else None
    if isinstance(X, (AdaptiveStream, Iterator)):
        return _play_adaptive(learner, X, seed, fresh, checkpoints, keep_guesses, max_rounds, game)
    classes = None
    if isinstance(X, DataSet):
        classes = np.array(X.label_names)
        X, y = X.X, classes[X.y]
    if engine == "stream" and on_progress is None and game is None:
        record = play_stream(
            learner, X, y, seed=seed, fresh=fresh, classes=classes, checkpoints=checkpoints, keep_guesses=keep_guesses
        )
        return _trace(learner, record, int(record.checkpoints[-1]))  # the last one is the last round
    rows = check_rows(X)
    labels = check_answers(y, rows.shape[0])
    record = new_record(len(labels), checkpoints, keep_guesses)
    with all_or_nothing(learner, fresh):
        codes = begin_stream(learner, rows, labels, X, seed=seed, fresh=fresh, classes=classes)
        if game is not None:
            given = ((row_of(rows, t), code) for t, code in enumerate(codes.tolist()))
            game.play(given, record, on_progress)
        elif engine == "stream" and on_progress is not None:
            # A frame is cut itself: its columns have names.
            cut = partial(take, rows) if not is_frame(X) else lambda start, stop: X[start:stop]
            _play_in_pieces(learner, cut, labels, record, on_progress)
        else:
            play_by_hand(learner, rows, codes, record)
    return _trace(learner, record, len(labels), game)


class _Confident:
    """A game in which every guess has a confidence, and the label is asked for where a rule wants it."""

    def __init__(self, learner: Learner, asking: Asking | None) -> None:
        self._learner, self._asking = learner, asking
        self._confidence, self._right, self._asked = array("d"), bytearray(), bytearray()

    def play(
        self, rounds: Iterable[tuple[Any, int]], record: Record, on_progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Play rounds, given as features and the position of the label; return how many."""
        learner, counts, limit = self._learner, record.counts, int(record.checkpoints[-1])
        often, updates, t = max(_SHORTEST_PIECE, limit // _PIECES), learner.n_updates_, 0
        for t, (features, code) in enumerate(rounds, start=1):
            guess = learner.guess(features)
            correct, ask = bool(is_right(guess.index, code)), False
            if self._asking is not None:
                decision = self._asking.decide(guess.confidence)
                ask = decision.ask
                self._asking.answer(decision, correct)
            named = guess.index if correct else first_right(code)  # where several are right, one of them
            if ask and named >= 0:
                learner.label(guess, learner._labels[named])
            elif learner.full_information:
                learner.tell(guess, correct, learner._labels[code])
            else:
                learner.tell(guess, correct)
            self._confidence.append(math.nan if guess.confidence is None else guess.confidence)
            self._right.append(correct)
            self._asked.append(ask)
            counts[MISTAKES] += not correct and not ask
            counts[EXPLORED] += guess.explored
            if len(record.guesses):
                record.guesses[t - 1] = guess.index
            if t == record.checkpoints[counts[PASSED]]:
                record.cumulative[counts[PASSED]] = counts[MISTAKES]
                counts[PASSED] += 1
            if on_progress is not None and (t % often == 0 or t == limit):
                on_progress(t, limit)
            if t == limit:
                break
        counts[UPDATES] = learner.n_updates_ - updates
        return t

    def outcome(self) -> dict[str, Any]:
        """Return what a trace says about confidence and asking."""
        right, asked = (np.frombuffer(each, np.uint8).astype(np.bool_) for each in (self._right, self._asked))
        asking = self._asking
        return {
            "asked": int(asked.sum()),
            "suggestions_right": int((right & asked).sum()),
            "wrong_limit": None if asking is None else asking.limit(),
            "by_round": ByRound(np.array(self._confidence), right, asked),
        }


def _play_in_pieces(
    learner: Learner,
    cut: Callable[[int, int], Any],
    labels: npt.NDArray[Any],
    record: Record,
    on_progress: Callable[[int, int], None],
) -> None:
    """Play a stream that has begun piece by piece, rows as `cut` gives them, and tell after each how far it is."""
    n_rounds = len(labels)
    size = max(_SHORTEST_PIECE, n_rounds // _PIECES)
    for start in range(0, n_rounds, size):
        stop = min(start + size, n_rounds)
        inside = (record.checkpoints > start) & (record.checkpoints <= stop)
        part = play_stream(
            learner,
            cut(start, stop),
            labels[start:stop],
            fresh=False,
            checkpoints=record.checkpoints[inside] - start,
            keep_guesses=len(record.guesses) > 0,
        )
        record.cumulative[inside] = record.counts[MISTAKES] + part.cumulative[: np.count_nonzero(inside)]
        record.counts[:] += part.counts
        record.guesses[start:stop] = part.guesses
        on_progress(stop, n_rounds)


class _Pairs:
    """An iterator of features and labels as an adaptive stream, which takes no notice of the learner."""

    def __init__(self, learner: Learner, pairs: Iterator[Any], fresh: bool) -> None:
        is_known = not fresh and hasattr(learner, "classes_")
        self.classes = learner.classes_ if is_known else learner.classes
        if self.classes is None or isinstance(self.classes, str):
            raise ValueError(
                "classes must be given to a learner that plays an iterator, which does not tell its labels beforehand: "
                f"{type(learner).__name__}(classes=[…])"
            )
        self._pairs = map(self._check, pairs)
        self._first = next(self._pairs, None)
        features = np.zeros(1) if self._first is None else self._first[0]
        shape = features.shape if hasattr(features, "shape") else check_real(as_frame(features), "features").shape
        self.n_features = int(shape[-1]) if shape else 1

    def _check(self, pair: Any) -> tuple[Any, Any]:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"an iterator of rounds must give pairs (features, label); got {pair!r:.80}")
        return pair[0], pair[1]

    def next(self, _learner: LearnerView) -> tuple[Any, Any] | None:
        first, self._first = self._first, None
        return next(self._pairs, None) if first is None else first


class _Watched:
    """The rounds of an adaptive stream, as the loop sees them: only the present one is known."""

    def __init__(self, stream: AdaptiveStream, limit: int) -> None:
        self.stream, self._limit, self.code = stream, limit, -1

    def __len__(self) -> int:
        return self._limit

    def __getitem__(self, t: int) -> int:
        return self.code


def _ask_stream(learner: Learner, rounds: _Watched, t: int, scratch: AtHand, _settings: None) -> int:
    """Let the stream choose round t, then let the learner guess it."""
    chosen = rounds.stream.next(LearnerView(t, learner.probabilities))
    if chosen is None:
        return ENDED
    features, label = chosen
    rounds.code = learner.index_of(label)  # before the guess is drawn, as the game demands
    scratch.guess = learner.guess(features)
    return READY


_WATCHED_GAME = ASKING._replace(score=_ask_stream)


def _play_adaptive(
    learner: Learner,
    given: AdaptiveStream | Iterator[Any],
    seed: int | None,
    fresh: bool,
    checkpoints: npt.ArrayLike | None,
    keep_guesses: bool,
    max_rounds: int,
    game: _Confident | None,
) -> Trace:
    limit = check_integer("max_rounds", max_rounds, low=1, high=_MOST_ROUNDS)
    record = new_record(limit, checkpoints, keep_guesses)
    # After the arguments are checked: what an iterator has given cannot be given back.
    stream = _Pairs(learner, given, fresh) if isinstance(given, Iterator) else given
    rounds = _Watched(stream, limit)
    with all_or_nothing(learner, fresh):
        learner.begin(stream.n_features, stream.classes, seed=seed, fresh=fresh)
        if game is None:
            played = play_by_hand(learner, rounds, rounds, record, _WATCHED_GAME)
        else:
            played = game.play(_watched(learner, rounds.stream), record)
        if played == 0:
            raise ValueError("the stream ended before its first round")
    return _trace(learner, record, played, game)


def _watched(learner: Learner, stream: AdaptiveStream) -> Iterator[tuple[Any, int]]:
    """Yield the rounds of an adaptive stream, each chosen when the one before is over."""
    t = 0
    while (chosen := stream.next(LearnerView(t, learner.probabilities))) is not None:
        yield chosen[0], learner.index_of(chosen[1])
        t += 1


def _trace(learner: Learner, record: Record, n_rounds: int, game: _Confident | None = None) -> Trace:
    inside = record.checkpoints < n_rounds  # an adaptive stream may end before its last checkpoint
    mistakes = int(record.counts[MISTAKES])
    return Trace(
        rounds=n_rounds,
        mistakes=mistakes,
        updates=int(record.counts[UPDATES]),
        uniform_guesses=int(record.counts[EXPLORED]),
        curve=Curve(np.append(record.checkpoints[inside], n_rounds), np.append(record.cumulative[inside], mistakes)),
        guesses=learner.classes_[record.guesses[:n_rounds]] if len(record.guesses) else None,
        **({} if game is None else game.outcome()),
    )
