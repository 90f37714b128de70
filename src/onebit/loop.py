"""The one loop that plays the game, and what plugs into it.

Whatever a learner keeps, a round is the same four steps: **measure** (what does the memory say about these features?),
**decide** (which label?), **hear** (learn from the answer) and note. A learner's `Memory` plugs in the first three as a
`Game`; whole streams and single rounds call the same three, so they play the same game.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from onebit.code_cache import is_ours
from onebit.compiled import compiled, frugal, inlined
from onebit.draws import Draw
from onebit.inputs import Floats, Integers, Rows, SparseRows, check_rows, check_whole_numbers, take, unlocked
from onebit.rounds import Answer, Guess


class Game(NamedTuple):
    """What a learner plugs into the loop: functions that know its memory; the loop does not.

    `memory` and `sight` are named tuples of arrays: the first is what was learned, the second is scratch paper for one
    round, on which `measure` writes and the others read. Row t of X is meant throughout.

    Attributes
    ----------
    measure : (memory, X, t, sight, settings) → READY, FULL or UNSCORED
        Writes what the memory says about a row. It learns nothing.
    decide : (sight, draw, settings) → (label, explored)
        May call ``uniform(draw)``, once.
    weigh : (sight, settings)
        Writes the chance that `decide` gives to each label to ``sight.chances``.
    hear : (memory, X, t, sight, answer, settings) → changed
        Learns from an answer. It cannot fail: what could go wrong does so in `measure`.
    hears_label : bool
        Whether the learner belongs to the full-information game.
    pauses : bool
        Whether the loop stops after every change, for a memory that only Python can change.
    is_compiled : bool
        False if the functions are plain Python: then so is the loop.
    """

    measure: Callable[..., int]
    decide: Callable[..., tuple[int, bool]]
    weigh: Callable[..., None]
    hear: Callable[..., bool]
    hears_label: bool = False
    pauses: bool = False
    is_compiled: bool = True


def plugged(game: Game) -> Game:
    """Return a game whose functions are inlined into the loop."""
    functions = {name: inlined(getattr(game, name)) for name in ("measure", "decide", "weigh", "hear")}
    return game._replace(**functions)


# What a memory holds beside what was learned: scratch paper, and compiled functions.
_SCRATCH = frozenset(("sight", "_seen", "_at_hand", "_ready_moves"))
# More rows than any stream has.
_ALL_ROWS = 1 << 62

READY, FULL, UNSCORED, CHANGED, ENDED = range(5)
"""Why the loop stops: at the end; before a round for which memory must grow; before a row that cannot be scored (or, in
blocks, not surely enough); after a change, if the game pauses; because a stream that watches the learner has ended."""


class Moves(NamedTuple):
    """A game's functions as Python calls them: the loop with named tuples, the others with plain ones.

    Handing a named tuple to compiled code costs half a microsecond, a plain one next to nothing; so the functions that
    are called in every round get plain ones, and name the fields again inside.
    """

    loop: Callable[..., tuple[int, int]]
    """(memory, X, y, t, start, seed, first_round, settings, sight, record) → the next t, why the loop stopped."""
    look: Callable[..., tuple[int, int, bool, float]]
    """(memory, row, sight, seed, round, settings) → READY or why not, label, explored, probability."""
    measure: Callable[..., int]
    """(memory, row, sight, settings) → READY or why not; the chances are weighed too."""
    hear: Callable[..., bool]
    """(memory, row, sight, label, explored, correct, truth, settings) → changed."""


@cache
def moves(game: Game, memory_of: Any = tuple, sight_of: Any = tuple, settings_of: Any = tuple) -> Moves:
    """Return a game's moves, compiled once; the types are those of its named tuples."""
    measure, decide, weigh, hear, hears_label, pauses, is_compiled = game
    # A stranger's functions may make arrays; ours do not, and need not pay for counting them.
    finished = frugal if all(is_ours(function) for function in (measure, decide, weigh, hear)) else compiled

    # The one round loop. Counting in local variables between checkpoints makes it three times as fast as counting in
    # the record, and a status instead of an exception lets it be left and entered again at the same round.
    def loop(
        memory: Any,
        X: Any,
        y: Any,
        t: int,
        start: int,
        seed: int,
        first_round: int,
        settings: Any,
        sight: Any,
        record: Record,
    ) -> tuple[int, int]:
        n, why, keep_guesses = len(y), READY, record.guesses.shape[0] > 0
        while t < n and why == READY:
            passed = record.counts[PASSED]
            checkpoint = record.checkpoints[passed] - start if passed < record.checkpoints.shape[0] else n
            stop = min(n, checkpoint)
            mistakes, updates, n_explored = 0, 0, 0
            while t < stop:
                why = measure(memory, X, t, sight, settings)
                if why != READY:
                    break
                # The label is fixed before the guess is drawn: `decide` never sees y.
                label, explored = decide(sight, Draw(seed, first_round + start + t), settings)
                correct = label == y[t]
                answer = Answer(label, explored, correct, y[t] if hears_label else -1)  # bandits hear one bit
                changed = hear(memory, X, t, sight, answer, settings)
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

    def measure_one(memory: Any, row: Rows, sight: Any, settings: Any) -> int:
        seen, numbers = sight_of(*sight), settings_of(*settings)
        why = measure(memory_of(*memory), row, 0, seen, numbers)
        if why == READY:
            weigh(seen, numbers)
        return why

    measured = finished(measure_one) if is_compiled else measure_one

    def look(memory: Any, row: Rows, sight: Any, seed: int, round: int, settings: Any) -> tuple[int, int, bool, float]:
        why = measured(memory, row, sight, settings)
        if why != READY:
            return why, -1, False, 0.0
        seen = sight_of(*sight)
        label, explored = decide(seen, Draw(seed, round), settings_of(*settings))
        return why, label, explored, float(seen.chances[label])

    def hear_one(
        memory: Any, row: Rows, sight: Any, label: int, explored: bool, correct: bool, truth: int, settings: Any
    ) -> bool:
        answer = Answer(label, explored, correct, truth)
        return hear(memory_of(*memory), row, 0, sight_of(*sight), answer, settings_of(*settings))

    if not is_compiled:
        return Moves(loop, look, measured, hear_one)
    compiled_loop = finished(loop, is_long=True)

    def loop_on_any_rows(memory: Any, X: Rows, *rest: Any) -> tuple[int, int]:
        return compiled_loop(memory, unlocked(X), *rest)

    return Moves(loop_on_any_rows, finished(look), measured, finished(hear_one))


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


@inlined
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
    """One entry per round, or empty when nobody asked for them."""


MISTAKES, UPDATES, EXPLORED, PASSED = range(4)


def new_record(n_rounds: int, checkpoints: npt.ArrayLike | None = None, keep_guesses: bool = False) -> Record:
    """Return an empty record for that many rounds; by default with a few hundred checkpoints."""
    points = default_checkpoints(n_rounds) if checkpoints is None else _check_checkpoints(checkpoints, n_rounds)
    return Record(
        np.zeros(4, dtype=np.int64),
        points,
        np.zeros(len(points), dtype=np.int64),
        np.zeros(n_rounds if keep_guesses else 0, dtype=np.int32),
    )


def _check_checkpoints(checkpoints: npt.ArrayLike, n_rounds: int) -> Integers:
    points = np.unique(np.append(check_whole_numbers("checkpoints", checkpoints), n_rounds))
    if points[0] < 1 or points[-1] > n_rounds:
        raise ValueError(f"checkpoints must be whole numbers from 1 to {n_rounds}; got {checkpoints!r}")
    return points


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


class Sight(NamedTuple):
    """Scratch paper for one round of a rule on scores: one number per class each."""

    scores: Floats
    """Those the guess was made from."""
    current: Floats
    """Those of now: the same array, unless feedback comes late."""
    gains: Floats
    """How much of x each class gains."""
    chances: Floats


class Board(ABC):
    """What the loop plays on: named arrays, scratch paper for one round, and the functions that know them."""

    arrays: Any
    """Named tuple: everything that was learned."""
    settings: Any
    """The numbers that the game's functions are given."""
    sight: Any
    """Named tuple: what is known about the round at hand, with at least ``scores`` (those the guess was made from) and
    ``chances``."""

    @abstractmethod
    def game(self, is_sparse: bool) -> Game:
        """Return the functions for dense or for sparse rows."""

    def run(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play prepared rows, which are a stream's rounds from `start` on."""
        t, loop = 0, self._moves(rows).loop
        while True:
            t, why = loop(self.arrays, rows, y, t, start, seed, first_round, self.settings, self.sight, record)
            if why == READY:
                return
            self._settle(why, rows, t, f"X[{start + t}]")

    def _settle(self, why: int, rows: Rows, t: int, named: Rows | str) -> None:
        """Do what the loop was left for; raise ValueError for a row that cannot be scored."""
        raise unscored_error(named)

    _ready_moves: dict[bool, Moves]

    def _moves(self, rows: Rows) -> Moves:
        is_sparse = isinstance(rows, SparseRows)
        try:
            return self._ready_moves[is_sparse]
        except (AttributeError, KeyError):
            kinds: tuple[Any, ...] = type(self.arrays), type(self.sight), type(self.settings)
            found = moves(self.game(is_sparse), *kinds)
            self._ready_moves = {**getattr(self, "_ready_moves", {}), is_sparse: found}
            return found


class Memory(Board):
    """What a learner knows. To copy, bookmark or pickle it is to copy its arrays."""

    measures_in_python = False
    """Whether `fill` has something to do: then a stream is handed to the loop row by row."""
    plays_by_hand: ClassVar[bool] = False
    """Whether rounds are played by the learner's own `guess` and `tell`, which count them, and may fail half-way."""
    _seen = -1
    """The round that `sight` is about, as long as nothing has been learned since."""
    _at_hand: Mapping[type, tuple[Moves, Any, Any, Any]] = MappingProxyType({})
    """What a round needs, by kind of rows: looking each up would cost a tenth of the round."""

    n_classes: int
    class_axes: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Which of the arrays have one entry per class, and along which axis."""
    per_class: ClassVar[tuple[str, ...]] = "scores", "current", "gains", "chances"
    """What of `sight` has one entry per class, along its last axis."""

    rooms: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    """For arrays with room to grow: the name of every axis that has it, and \"\" for the others."""

    def filled(self) -> dict[str, int]:
        """Return how much of each such axis is in use; what lies behind is not saved."""
        return {}

    def check_arrays(self, arrays: Any) -> None:
        """Raise ValueError if arrays from a file could lead compiled code astray: positions beyond what they point to.

        Their shapes and dtypes fit together by then, and whole numbers are not negative.
        """

    def takes(self, row: Rows, n_features: int) -> bool:
        """Return whether `prepare` could have returned that row: by default, if it is dense and as wide as all rows."""
        return not isinstance(row, SparseRows) and row.shape[1] == n_features

    def takes_scores(self, scores: Floats, label: int) -> bool:
        """Return whether a guess of that label can have been made from those scores; there may be more classes now."""
        return len(scores) <= len(self.sight.scores)

    def new_sight(self) -> Any:
        """Return scratch paper that fits the arrays: by default a rule's."""
        scores, gains, chances = np.empty((3, self.n_classes))
        return Sight(scores, scores, gains, chances)

    @abstractmethod
    def score_rows(self, rows: Rows) -> Floats:
        """Return every prepared row's score for every class, fast; rounding may differ from a round's."""

    @abstractmethod
    def learned(self) -> dict[str, Floats]:
        """Return copies of what was learned, by name, as people want it."""

    def sight_of_late(self, scores: Floats) -> Any:
        """Return the scratch paper for an answer that comes late to a guess made from those scores."""
        return self.sight

    def prepare(self, rows: Rows) -> Rows:
        """Return rows as the memory takes them; raises ValueError for a row it cannot take."""
        return rows

    def fill(self, row: Rows) -> None:
        """Write to `sight` what only Python can measure: the values of a kernel of the user's own."""

    def make_room(self, rows: Rows, t: int) -> None:
        """Grow, so that row t can be measured and learned from."""

    def rows_at_once(self, n_features: int) -> int:
        """Return how many rows of a stream to prepare at a time: all, if preparing makes no copy."""
        return _ALL_ROWS

    # One round at a time.

    def look(self, row: Rows, seed: int, round: int) -> tuple[int, bool, float, Floats, Rows]:
        """Return a round's label, whether it was explored, its probability, the scores, and the prepared row."""
        self._seen = -1  # until all has gone well: whatever fails, the scratch paper is not the last round's any more
        prepared = self.prepare(row)
        if self.measures_in_python:
            self.fill(prepared)
        try:
            moves, memory, sight, settings = self._at_hand[type(prepared)]
        except KeyError:
            moves, memory, sight, settings = self._put_at_hand(prepared)
        why, label, explored, probability = moves.look(memory, prepared, sight, seed, round, settings)
        if why != READY:
            self._settle(why, prepared, 0, row)
            return self.look(row, seed, round)  # the same draw: the same round
        self._seen = round
        return label, explored, probability, self.sight.scores.copy(), prepared

    def chances(self, row: Rows) -> Floats:
        """Return the chance of each label. Nothing is learned."""
        self.measure(self.prepare(row), row)
        chances: Floats = self.sight.chances.copy()
        return chances

    # Some of the labels only.

    def look_among(self, row: Rows, seed: int, round: int, among: Integers) -> tuple[int, bool, float, Floats, Rows]:
        """Return what `look` does, as if there were no other labels; the scores of those are −∞."""
        narrow, prepared = self._weighed(row, among)
        decide = self.game(isinstance(prepared, SparseRows)).decide
        place, explored = in_python(decide)(narrow, Draw(seed, round), self.settings)
        scores = np.full_like(self.sight.scores, -np.inf)
        if len(scores):
            scores[among] = narrow.scores
        return int(among[place]), bool(explored), float(narrow.chances[place]), scores, prepared

    def chances_among(self, row: Rows, among: Integers) -> Floats:
        """Return the chance of each label if only some are allowed: 0 for the others. Nothing is learned."""
        narrow, _ = self._weighed(row, among)
        chances = np.zeros(self.n_classes)
        chances[among] = narrow.chances
        return chances

    def _weighed(self, row: Rows, among: Integers) -> tuple[Any, Rows]:
        """Return what is known about a row if there are no other labels, with their chances, and the prepared row."""
        self._seen = -1  # the scratch paper is about this row, and about all labels: an answer measures anew
        prepared = self.prepare(row)
        narrow = self.narrowed(prepared, row, among)
        in_python(self.game(isinstance(prepared, SparseRows)).weigh)(narrow, self.settings)
        return narrow, prepared

    def narrowed(self, prepared: Rows, row: Rows | str, among: Integers) -> Any:
        """Measure a row, and return what is known about it if there are no other labels."""
        self.measure(prepared, row)
        narrow = {name: np.ascontiguousarray(getattr(self.sight, name)[..., among]) for name in self.per_class}
        return self.sight._replace(**narrow)

    def add_class(self) -> None:
        """Make room for one more class, which has learned nothing yet."""
        wider = {}
        for name, axis in self.class_axes.items():
            shape = list(getattr(self.arrays, name).shape)
            shape[axis] += 1
            wider[name] = grown(getattr(self.arrays, name), tuple(shape))
        self.arrays = self.arrays._replace(**wider)
        self.n_classes += 1
        self.renew()

    # What others have tried.

    def hear_logged(self, row: Rows, label: int, correct: bool, truth: int, probability: float | None) -> bool:
        """Learn from a round that somebody else played, and say whether anything changed.

        Parameters
        ----------
        row : Rows
            The features, as they came.
        label, correct, truth
            As in `Answer`.
        probability : float or None
            The chance that the label was tried with, if it is known.
        """
        raise ValueError(f"{type(self).__name__} cannot learn from rounds that others played; give it hear_logged")

    def measure(self, prepared: Rows, row: Rows | str) -> None:
        """Write what is known about a row to `sight`; `row` is what an error names."""
        self._seen = -1
        if self.measures_in_python:
            self.fill(prepared)
        moves, memory, sight, settings = self._put_at_hand(prepared)
        why = moves.measure(memory, unlocked(prepared), sight, settings)
        if why != READY:
            self._settle(why, prepared, 0, row)
            self.measure(prepared, row)

    def hear(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from the answer to one guess and say whether anything changed; `truth` as in `Answer`."""
        round, _, _, explored, label, row, scores, _, _, _ = guess
        if self._seen != round:
            # The answer is late: the memory has moved on since the guess.
            self.measure(row, row)
            moves, memory, _, settings = self._at_hand[type(row)]
            sight = tuple(self.sight_of_late(scores))
        else:
            moves, memory, sight, settings = self._at_hand[type(row)]
        self._seen = -1
        return moves.hear(memory, row, sight, label, explored, correct, truth, settings)

    def _put_at_hand(self, rows: Rows) -> tuple[Moves, Any, Any, Any]:
        """Return the moves for a kind of rows, and arrays, scratch paper and settings as plain tuples; keep them."""
        ready = self._moves(rows), tuple(self.arrays), tuple(self.sight), tuple(self.settings)
        self._at_hand = {**self._at_hand, type(rows): ready}
        return ready

    def renew(self) -> None:
        """Put scratch paper and all that is at hand aside; called whenever `arrays` is replaced."""
        self.sight, self._seen, self._at_hand = self.new_sight(), -1, {}

    # A whole stream.

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, record: Record) -> None:
        """Play a stream, guess for guess as one round at a time would; raises ValueError at a row it cannot score."""
        self._seen = -1
        at_once = self.rows_at_once(X.shape[1])
        for start in range(0, len(y), at_once):
            stop = min(start + at_once, len(y))
            rows = self.prepare(X if stop - start == len(y) else take(X, start, stop))
            self.play_prepared(rows, y[start:stop], start, seed, first_round, record)

    def play_prepared(self, rows: Rows, y: Integers, start: int, seed: int, first_round: int, record: Record) -> None:
        """Play some rows of a stream, its rounds from `start` on."""
        if not self.measures_in_python:
            self.run(rows, y, start, seed, first_round, record)
            return
        for t in range(len(y)):
            row = take(rows, t, t + 1)
            self.fill(row)
            self.run(row, y[t : t + 1], start + t, seed, first_round, record)

    def _settle(self, why: int, rows: Rows, t: int, named: Rows | str) -> None:
        """Grow if the memory is full."""
        if why != FULL:
            super()._settle(why, rows, t, named)
        self.make_room(rows, t)
        self.renew()
        if self.measures_in_python:
            self.fill(take(rows, t, t + 1))

    # Copies.

    def bookmark(self) -> Any:
        """Return what `restore` needs to come back to this moment."""
        return type(self.arrays)(*(array.copy() for array in self.arrays))

    def restore(self, bookmark: Any) -> None:
        """Come back to the moment of a bookmark."""
        self.arrays = bookmark
        self.renew()

    def __getstate__(self) -> dict[str, Any]:
        # Scratch paper and compiled functions are made again where a saved memory is loaded.
        return {name: value for name, value in vars(self).items() if name not in _SCRATCH}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.sight = self.new_sight()


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python of a compiled function: what is seldom called need not be compiled for every game."""
    plain: Callable[..., Any] = getattr(function, "py_func", function)
    return plain


def grown(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return a larger array with the old one in its first corner, and zeros around it."""
    larger = np.zeros(shape, dtype=array.dtype)
    larger[tuple(slice(n) for n in array.shape)] = array
    return larger


def check_stored(size: int, capacity: int, budget: int | None = None) -> None:
    """Raise ValueError unless so many examples fit into a store from a file, and that into its budget."""
    if size > capacity or (budget is not None and capacity > budget):
        raise ValueError(f"{size} examples in {capacity} places do not fit a budget of {budget}")


def unscored_error(row: Rows | str) -> ValueError:
    """Return the error for a row whose scores are not finite: given itself, or by name where it was checked before."""
    name = "these features" if not isinstance(row, str) else row
    if not isinstance(row, str):
        try:
            check_rows(row, "features")
        except ValueError as error:
            return error
    return ValueError(
        f"the scores of {name} are NaN or infinite, or vanish: the features are too large or too small for the kernel, "
        "or a kernel of your own returned NaN. Scale them, use a smaller degree or normalize=True"
    )
