"""The protocol on a card: `guess`, `tell`, `probabilities`.

``guess(x)`` names a label, ``tell(guess, correct)`` is all a learner ever hears, ``probabilities(x)`` says what it
would guess, without side effects. What a learner knows is in its `Memory`; which guesses are open is in its `Tickets`;
``fit`` and ``predict`` are in its `Estimator` face.

``guess(x, among=…)`` allows some labels only, ``add_class`` and ``classes="grow"`` bring new ones, ``learn_from`` and
``learn_labels`` teach what is known already.

To write a learner, subclass `Learner` and give it one of two things: four methods (`_start`, `_decide`, `_hear`,
`_probabilities`), which are called round by round, or `_new_memory`, which returns a memory with a compiled game.
"""

import copy
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.exceptions import NotFittedError

from onebit.bounds import Claim
from onebit.draws import Draw, uniform
from onebit.frames import as_frame, is_frame
from onebit.inputs import (
    Floats,
    Integers,
    Rows,
    SparseRows,
    check_integer,
    check_real,
    check_rows,
    check_seed,
    check_sparse_row,
    take,
)
from onebit.labels import check_classes, check_labels, encode_labels, infer_classes
from onebit.learners.by_hand import ByHand
from onebit.learners.estimator import Estimator
from onebit.learners.tickets import Tickets
from onebit.loop import EXPLORED, MISTAKES, PASSED, UPDATES, Memory, Record, new_record
from onebit.rounds import Answer, Guess

_FLOAT64 = np.dtype(np.float64)


def _are_many(features: Any) -> bool:
    """Say whether features are those of many rounds: a matrix."""
    if isinstance(features, SparseRows):
        return True
    shape = getattr(features, "shape", None)
    return len(shape) == 2 if shape is not None else np.ndim(features) == 2


def _check_list(name: str, among: Any) -> npt.NDArray[Any]:
    """Return a list of labels as an array, or raise ValueError if it is none, or empty."""
    if isinstance(among, (str, bytes)) or not isinstance(among, Iterable):
        raise ValueError(f"{name} must be a list of labels; got {among!r}")
    labels = list(among)
    if not labels:
        raise ValueError(f"{name} must have at least one label; got none")
    return check_labels(labels, len(labels), name)


def _row_of(rows: Rows, t: int) -> Any:
    return take(rows, t, t + 1) if isinstance(rows, SparseRows) else rows[t]


def _check_answers(correct: Any, n: int) -> npt.NDArray[np.bool_]:
    answers = np.asarray(correct)
    if answers.dtype.kind != "b" or answers.shape not in ((), (n,)):
        raise ValueError(f"correct must be True or False for each of the {n} rounds; got {correct!r:.80}")
    return np.broadcast_to(answers, (n,))


def _check_chances(probabilities: Any, n: int) -> Floats:
    chances = check_real(probabilities, "probabilities").astype(np.float64)
    if chances.shape not in ((), (n,)):
        raise ValueError(f"probabilities must have {n} entries, one for each round; got shape {chances.shape}")
    wrong = ~((chances > 0.0) & (chances <= 1.0))
    if wrong.any():
        raise ValueError(f"probabilities must be above 0 and at most 1; got {chances[wrong].flat[0]!r}")
    return np.broadcast_to(chances, (n,))


class Learner(Estimator):
    """Base of every learner.

    Attributes
    ----------
    classes_ : array
        The labels it may guess; of dtype object where they are of several kinds.
    n_features_in_ : int
        How many features a round has.
    feature_names_in_ : array of str
        The names of the columns, if the first rows came in a frame.
    n_rounds_, n_mistakes_, n_updates_, n_uniform_guesses_ : int
        Guesses made, those it was told were wrong, rounds in which it changed, guesses drawn to explore.
    """

    hears_label: ClassVar[bool] = False
    """Whether it plays the full-information game, in which `tell` takes the label."""

    classes: Any
    seed: int

    n_features_in_: int
    n_rounds_: int
    n_mistakes_: int
    n_updates_: int
    n_uniform_guesses_: int

    # What a learner is made of: a memory, or four methods by hand.

    def _new_memory(self) -> Memory:
        """Check the settings and return an empty memory for `n_features_in_` features and the `classes_`."""
        return ByHand(self)

    def _start(self) -> None:
        """Check the settings and forget everything; `n_features_in_` and `classes_` are known.

        Copy the settings that rounds need: those count which were there when the run began.
        """
        raise TypeError(f"{type(self).__name__} must give _new_memory, or _start, _decide, _hear and _probabilities")

    def _decide(self, row: Rows, round: int) -> tuple[int, bool, float]:
        """Return a label's position, whether it was explored, its probability; `_draw(round)` is the random number.

        Raises ValueError for a row it cannot take; the features are finite.
        """
        raise TypeError(f"{type(self).__name__} must give _decide, or _new_memory")

    def _hear(self, guess: Guess, answer: Answer) -> bool:
        """Learn from one answer and say whether anything changed."""
        raise TypeError(f"{type(self).__name__} must give _hear, or _new_memory")

    def _probabilities(self, row: Rows) -> Floats:
        """Return the chance of each label, without side effects."""
        raise TypeError(f"{type(self).__name__} must give _probabilities, or _new_memory")

    def _add_class(self) -> None:
        """Make room for one more class; `classes_` has it already."""
        raise ValueError(f"{type(self).__name__} cannot take a new class; give it _add_class, or start a new one")

    def _hear_logged(self, row: Rows, answer: Answer, probability: float | None) -> bool:
        """Learn from a round that somebody else played, and say whether anything changed."""
        raise ValueError(f"{type(self).__name__} cannot learn from rounds that others played; give it _hear_logged")

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield learners with settings worth checking; the contract checks play them all."""
        yield cls()

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return what its theorems promise on examples that are strongly separable with that margin.

        With a kernel, radius and margin are those of the kernel's space. `onebit.bounds.at_most` reads the claims.
        """
        return ()

    # The game.

    def guess(self, features: npt.ArrayLike, among: Any = None) -> Guess:
        """Name a label for one round's features.

        Parameters
        ----------
        features : array of shape (n_features,) or (1, n_features), one sparse row, a frame of one row, or a row of one
            Finite real numbers. They are copied. The columns of a frame must be those of the first, in their order.
        among : list of labels, optional
            Which labels are allowed in this round: it is played as if there were no others. With ``classes="grow"``
            labels that are new join the classes.

        Returns
        -------
        Guess
            A ticket for `tell`; ``guess.label`` is the label.
        """
        with self._lock:
            row = self._one_row(features)
            if among is None or not self._grows:
                return self._issue(row, among, features)
            labels = _check_list("among", among)
            if self._started and all(label in self._labels for label in labels.tolist()):
                return self._issue(row, among, features)
            with self.all_or_nothing(fresh=False):
                self._codes_of(labels, row.shape[1], "among", features)
                return self._issue(row, among, features)

    def _issue(self, row: Rows, among: Any, given: Any) -> Guess:
        if self._tickets is None:
            if not self._started:
                self._begin(row.shape[1], None, None, given)
            self._tickets = Tickets()
        t = self.n_rounds_
        if among is None:
            index, explored, probability, scores, kept = self._memory.look(row, self._key, t)
        else:
            allowed = self._positions(among)
            index, explored, probability, scores, kept = self._memory.look_among(row, self._key, t, allowed)
        self.n_rounds_ = t + 1
        self.n_uniform_guesses_ += explored
        label, version = self._labels[index], self.n_updates_
        return self._tickets.issue(t, label, probability, explored, index, kept, scores, version)

    def tell(self, guess: Guess, correct: bool, label: Any = None) -> None:
        """Say whether a guess was right: at once, late, in any order, or never, but only once.

        Parameters
        ----------
        guess : Guess
            The ticket that `guess` returned, or an equal one: it may have been saved and loaded, but not edited.
        correct : bool
            Whether the guessed label was right.
        label : object
            The right label; only full-information learners take it.
        """
        with self._lock:
            tickets = self._tickets
            if tickets is None:
                raise ValueError(f"guess must be a ticket of this learner, which has issued none; got {guess!r}")
            own = tickets.own if guess is tickets.latest else None
            if own is None:
                own = tickets.check(guess, self._labels)
            if not isinstance(correct, (bool, np.bool_)):
                raise ValueError(f"correct must be True or False; got {correct!r}")
            right = bool(correct)
            truth = -1 if label is None and not self.hears_label else self._truth(own, right, label)
            # Crossed off only after it was heard: an error leaves the ticket open.
            self.n_updates_ += self._memory.hear(own, right, truth)
            if own is tickets.own:
                tickets.latest = tickets.own = None
            else:
                tickets.cross_off(own)
            self.n_mistakes_ += not right

    def guess_many(self, X: Any, among: Any = None) -> list[Guess]:
        """Name a label for every row of X: the same tickets as so many calls of `guess`, or none if a row is refused.

        Parameters
        ----------
        X : array or sparse matrix of shape (rounds, n_features)
            The rounds, none of which has been answered yet.
        among : list of labels, optional
            Which labels are allowed, in all of them.
        """
        rows = check_rows(X)
        with self.all_or_nothing(fresh=False):
            is_new = not self._started
            self._check_fit(rows, X)
            guesses = [self.guess(_row_of(rows, t), among) for t in range(rows.shape[0])]
            if is_new:
                self._check_columns(X, reset=True)
            return guesses

    def probabilities(self, features: npt.ArrayLike, among: Any = None) -> Floats:
        """Return the chance that `guess` would give to each of `classes_` now. Nothing is changed.

        Parameters
        ----------
        features : array of shape (n_features,) or (rows, n_features), or sparse rows
            One round's features, or many rounds': then there is one row of chances for each.
        among : list of labels, optional
            Which labels are allowed: the others have no chance.
        """
        with self._lock:
            looked_at = self
            if _are_many(features):
                rows: Rows = self._check_fit(check_rows(features, "features"), features)
            else:
                rows = self._one_row(features)
            if not self._started:
                # Looking must not start a run: a twin starts it instead.
                looked_at = self.__class__(**self.get_params(deep=False))
                looked_at._begin(rows.shape[1], None, None)
            allowed = None if among is None else looked_at._positions(among)
            memory, pieces = looked_at._memory, [take(rows, t, t + 1) for t in range(rows.shape[0])]
            chances = [memory.chances(row) if allowed is None else memory.chances_among(row, allowed) for row in pieces]
            return np.stack(chances) if _are_many(features) else chances[0]

    def score_classes(self, X: Any) -> Floats:
        """Return the score of every row (first axis) for every class (second axis)."""
        with self._lock:
            self._check_started("scores")
            rows = self._check_width(check_rows(X))
            self._check_columns(X, reset=False)
            memory, at_once = self._memory, self._memory.rows_at_once(rows.shape[1])
            # In pieces: preparing may fill sparse rows.
            pieces = [take(rows, start, start + at_once) for start in range(0, rows.shape[0], at_once)]
            return np.concatenate([memory.score_rows(memory.prepare(piece)) for piece in pieces])

    def learned(self) -> dict[str, Floats]:
        """Return copies of the arrays it has learned, by name."""
        with self._lock:
            self._check_started("learned")
            return self._memory.learned()

    # New labels.

    def add_class(self, label: Any) -> None:
        """Let a label join the classes; it can be guessed from the next round on.

        A learner that has begun keeps what it learned, and its open tickets. Its guarantee counts from here on: for the
        larger number of classes, and for rounds in which every label, the new one too, was there to be right.

        Parameters
        ----------
        label : object
            A label that is not among the classes yet.
        """
        with self._lock:
            if not self._started:
                raise ValueError(
                    f"label {label!r} can join when a run has begun: until then put it into the setting, "
                    'classes=[…], or guess with classes="grow" and among=[…]'
                )
            self._join([label])

    def _join(self, labels: list[Any]) -> None:
        """Add labels, all or none of them."""
        wider = check_classes([*self._labels, *labels])
        with self.all_or_nothing(fresh=False):
            for n in range(len(self._labels) + 1, len(wider) + 1):
                self.classes_ = wider[:n]
                self._labels = self.classes_.tolist()
                self._memory.add_class()

    def _positions(self, among: Any) -> Integers:
        """Return the positions of allowed labels, in the order of the classes."""
        return np.unique(encode_labels(_check_list("among", among), self.classes_, "among"))

    @property
    def _grows(self) -> bool:
        return isinstance(self.classes, str) and self.classes == "grow"

    # What is known already.

    def learn_from(self, X: Any, guesses: Any, correct: Any, probabilities: Any = None) -> Self:
        """Learn from rounds that somebody else played: which label was tried, and whether it was right.

        They are no rounds of this learner: nothing is guessed, and no mistake is counted. What a learner makes of them
        its docstring says. If one of them is refused, nothing was learned.

        Parameters
        ----------
        X : array or sparse matrix of shape (rounds, n_features)
            The rounds.
        guesses : array of shape (rounds,)
            The label that was tried in each.
        correct : array of bool of shape (rounds,), or bool
            Whether it was right; one truth value stands for all.
        probabilities : array of shape (rounds,), or float, optional
            The chance with which each label was tried, in (0, 1]; needed by learners that weigh by it.
        """
        rows = check_rows(X)
        labels = check_labels(guesses, rows.shape[0], "guesses")
        answers = _check_answers(correct, len(labels))
        chances = None if probabilities is None else _check_chances(probabilities, len(labels))
        with self.all_or_nothing(fresh=False):
            self._check_fit(rows, X)
            if not self._started and self.classes is None:
                raise ValueError("classes is not known: pass classes=, for labels that were never tried count too")
            codes = self._codes_of(labels, rows.shape[1], "guesses", X)
            for t, code in enumerate(codes.tolist()):
                truth = code if self.hears_label and answers[t] else -1
                chance = None if chances is None else float(chances[t])
                changed = self._memory.hear_logged(take(rows, t, t + 1), code, bool(answers[t]), truth, chance)
                self.n_updates_ += changed
        return self

    def learn_labels(self, X: Any, y: Any) -> Self:
        """Learn from rows whose label is known, as `learn_from` would if each had been tried for sure.

        Parameters
        ----------
        X : array or sparse matrix of shape (rows, n_features)
            The rows.
        y : array of shape (rows,)
            Their labels.
        """
        rows = check_rows(X)
        labels = check_labels(y, rows.shape[0])
        with self.all_or_nothing(fresh=False):
            self._check_fit(rows, X)
            self._codes_of(labels, rows.shape[1], "y", X)
            return self.learn_from(X, labels, True, 1.0)

    def _codes_of(self, labels: npt.NDArray[Any], n_features: int, name: str, given: Any) -> Integers:
        """Return the positions of labels; begins if need be, and lets new labels join where classes grow."""
        if not self._started:
            chosen = infer_classes(labels) if self.classes is None or self._grows else self.classes
            self._begin(n_features, check_classes(chosen), None, given)
        elif self._grows:
            new = [label for label in infer_classes(labels).tolist() if label not in self._labels]
            if new:
                self._join(new)
        return encode_labels(labels, self.classes_, name)

    # Runs and whole streams.

    def play_stream(
        self,
        X: Any,
        y: Any,
        *,
        seed: int | None = None,
        fresh: bool = True,
        classes: Any = None,
        checkpoints: npt.ArrayLike | None = None,
        keep_guesses: bool = False,
    ) -> Record:
        """Play a whole stream, compiled where the learner is; `onebit.play` is the friendlier way in."""
        rows = check_rows(X)
        labels = check_labels(y, rows.shape[0])
        record = new_record(len(labels), checkpoints, keep_guesses)
        with self._lock:
            self._play_checked(rows, labels, seed, fresh, classes, record, X)
        return record

    def _play_checked(
        self,
        rows: Rows,
        labels: npt.NDArray[Any],
        seed: int | None,
        fresh: bool,
        classes: Any,
        record: Record,
        given: Any,
    ) -> None:
        if len(labels) == 1 and not fresh and self._started and not self._memory.plays_by_hand:
            # One round happens whole or not at all (only `measure` can fail, which learns nothing): no need to copy a
            # memory of megabytes in order to give it back.
            codes = self.begin_stream(rows, labels, seed=seed, fresh=False, given=given)
            try:
                self._memory.play(rows, codes, self._key, self.n_rounds_, record)
            finally:
                self._count(record, int(record.counts[PASSED]))  # also when Ctrl-C came just after the round
            return
        with self.all_or_nothing(fresh):
            codes = self.begin_stream(rows, labels, seed=seed, fresh=fresh, classes=classes, given=given)
            self._memory.play(rows, codes, self._key, self.n_rounds_, record)
            if not self._memory.plays_by_hand:
                self._count(record, len(codes))

    def _count(self, record: Record, rounds: int) -> None:
        self.n_rounds_ += rounds
        self.n_mistakes_ += int(record.counts[MISTAKES])
        self.n_updates_ += int(record.counts[UPDATES])
        self.n_uniform_guesses_ += int(record.counts[EXPLORED])

    def begin_stream(
        self,
        rows: Rows,
        labels: npt.NDArray[Any],
        *,
        seed: int | None = None,
        fresh: bool = True,
        classes: Any = None,
        given: Any = None,
    ) -> Integers:
        """Get ready for the first round of a stream that was checked, and return its labels as indices.

        `given` is the stream's X as it came: a frame has names for its columns.
        """
        if not fresh and self._started:
            self.begin(rows.shape[1], None, seed=seed, fresh=False)
            self._check_columns(given, reset=False)
            codes = self._codes_of(labels, rows.shape[1], "y", given)
        else:
            chosen = classes if self.classes is None or self._grows else self.classes
            known = check_classes(infer_classes(labels) if chosen is None else chosen)
            codes = encode_labels(labels, known)
            self._begin(rows.shape[1], known, seed, given)
        return codes

    def begin(self, n_features: int, classes: Any = None, *, seed: int | None = None, fresh: bool = True) -> None:
        """Get ready for a game of that many features; with ``fresh=False`` keep what was learned."""
        check_integer("n_features", n_features, low=1)
        if fresh or not self._started:
            chosen = classes if self.classes is None or self._grows else self.classes
            self._begin(n_features, None if chosen is None else check_classes(chosen), seed)
            return
        if n_features != self.n_features_in_:
            raise self._width_error(n_features)
        if seed is not None and check_seed(seed) != self._key:
            raise ValueError(f"seed must stay {self._key} when play goes on; got {seed}. Leave it out, or start fresh")

    @contextmanager
    def all_or_nothing(self, fresh: bool = True) -> Iterator[None]:
        """Give back everything as it was if the game inside is broken off, by an error or by Ctrl-C.

        Parameters
        ----------
        fresh : bool
            Whether the game starts afresh: then the old memory is left alone, and need not be copied, unless it is the
            learner itself, played by hand.
        """
        with self._lock:
            before = dict(self.__dict__)
            bookmark = None
            if self._started and (not fresh or self._memory.plays_by_hand):
                before["_tickets"] = copy.copy(self._tickets)
                bookmark = self._memory.bookmark()
            try:
                yield
            except BaseException:
                self.__dict__.update(before)  # never emptied: other threads wait for the lock that is in there
                for name in self.__dict__.keys() - before.keys():
                    del self.__dict__[name]
                if bookmark is not None:
                    self._memory.n_classes = len(self.classes_)
                    self._memory.restore(bookmark)
                raise

    def __copy__(self) -> Self:
        """Return a learner of its own: two that shared a memory would each learn from the other's rounds."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a learner of its own, without open tickets: those are the original's."""
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        vars(twin).update(copy.deepcopy(self.__getstate__(), memo))
        vars(twin).pop("_tickets", None)
        return twin

    def index_of(self, label: Any) -> int:
        """Return a label's position among the classes, or raise ValueError."""
        return int(encode_labels(check_labels([label], 1, "label"), self.classes_, "label")[0])

    # What is underneath.

    def __new__(cls, *_settings: Any, **_named: Any) -> Self:
        """Give every learner a lock: a round is one thread's alone, so that many may share a learner."""
        learner = super().__new__(cls)
        learner._lock = threading.RLock()
        return learner

    def __getstate__(self) -> dict[str, Any]:
        # A copy, here or in another process, gets a lock of its own from `__new__`. What others play meanwhile must not
        # reach what is being saved.
        with self._lock:
            kept = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            return copy.deepcopy(kept, {id(self): self})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock = threading.RLock()  # the oldest forms of pickle know nothing of `__new__`
        self.__dict__.update(state)

    _lock: threading.RLock
    _memory: Memory
    _labels: list[Any]
    _key: int
    """The seed of the present run."""
    _tickets: Tickets | None = None
    """None before the first guess of a run: whole streams issue no tickets."""
    _row_shape: tuple[int] | None = None
    """The shape of one round's features, once it is known."""

    @property
    def _started(self) -> bool:
        return "_memory" in self.__dict__

    def __sklearn_is_fitted__(self) -> bool:
        return self._started

    def _check_started(self, action: str) -> None:
        if not self._started:
            raise NotFittedError(f"{type(self).__name__} has not played yet: guess, fit or onebit.play before {action}")

    def _begin(
        self, n_features: int, known_classes: npt.NDArray[Any] | None, seed: int | None, given: Any = None
    ) -> None:
        """Forget everything and set up an empty memory; on a bad setting nothing of the old is lost."""
        if known_classes is None:
            if self._grows:
                raise ValueError(
                    "no label is known yet: guess(x, among=[…]), learn_labels or play brings the first ones"
                )
            if self.classes is None:
                raise ValueError(
                    "classes is not known: pass a count or a list of labels, "
                    f'for example {type(self).__name__}(classes=["yes", "no"])'
                )
            known_classes = check_classes(self.classes)
        with self.all_or_nothing():
            self._key = check_seed(self.seed if seed is None else seed)
            self.classes_ = known_classes
            self._labels = known_classes.tolist()
            self.n_features_in_ = n_features
            self._row_shape = (n_features,)
            self._check_columns(as_frame(given), reset=True)
            self._memory = self._new_memory()
        self.n_rounds_ = self.n_mistakes_ = self.n_updates_ = self.n_uniform_guesses_ = 0
        self._tickets = None

    def _draw(self, round: int) -> float:
        """Return the round's uniform number in [0, 1)."""
        return uniform(Draw(self._key, round))

    def _one_row(self, features: Any) -> Rows:
        """Return a copy of one round's features as a matrix of one row; `measure` finds NaN and infinities."""
        if type(features) is np.ndarray and features.dtype is _FLOAT64 and features.shape == self._row_shape:
            return np.array(features, ndmin=2)  # what nearly every call brings
        if scipy.sparse.issparse(features) or isinstance(features, SparseRows):
            return self._check_width(check_sparse_row(features, "features"))
        features = as_frame(features)
        array = check_real(features, "features")
        if array.size == 0 or array.size != array.shape[-1]:
            raise ValueError(f"features must be one round's, of shape (n_features,); got shape {array.shape}")
        if self._started and is_frame(features):
            self._check_columns(features, reset=False)
        if self._started and array.size != self.n_features_in_:
            raise ValueError(f"features must have length {self.n_features_in_}; got {array.size}")
        return np.array(array, dtype=np.float64, ndmin=2)

    def _check_width(self, rows: Rows) -> Rows:
        if self._started and rows.shape[1] != self.n_features_in_:
            raise self._width_error(rows.shape[1])
        return rows

    def _check_fit(self, rows: Rows, given: Any) -> Rows:
        """Return rows if they are as wide as those before; a frame's columns must have the same names, too."""
        if self._started and is_frame(given):
            self._check_columns(given, reset=False)
        return self._check_width(rows)

    def _width_error(self, n_features: int) -> ValueError:
        name, known = type(self).__name__, self.n_features_in_
        return ValueError(f"X has {n_features} features, but {name} is expecting {known} features as input")

    def _truth(self, guess: Guess, correct: bool, label: Any) -> int:
        if not self.hears_label:
            if label is not None:
                raise ValueError(
                    f"{type(self).__name__} hears only right or wrong; call tell(guess, correct) without label"
                )
            return -1
        if label is None:
            raise ValueError(f"{type(self).__name__} learns from full information; call tell(guess, correct, label=…)")
        truth = self.index_of(label)
        if (truth == guess.index) != correct:
            raise ValueError(f"correct={correct} contradicts label={label!r} for a guess of {guess.label!r}")
        return truth
