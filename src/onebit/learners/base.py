"""The protocol on a card: `guess`, `tell`, `probabilities`.

``guess(x)`` names a label, ``tell(guess, correct)`` is all a learner ever hears, ``probabilities(x)`` says what it
would guess, without side effects. Learners are also scikit-learn estimators: the constructor stores its arguments
untouched, ``fit(X, y)`` plays the game over the rows, ``predict`` names the best label without playing.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse

from onebit.bounds import Claim
from onebit.inputs import (
    Floats,
    Integers,
    Rows,
    check_classes,
    check_labels,
    check_rows,
    check_seed,
    encode_labels,
    infer_classes,
)
from onebit.learners.estimator import Estimator
from onebit.rounds import EXPLORED, MISTAKES, UPDATES, Guess, Record, default_checkpoints, new_record

_FLOAT64 = np.dtype(np.float64)


class Learner(Estimator, ABC):
    """Base of every learner. A subclass stores its settings, and says how to start, decide, hear and play.

    Attributes
    ----------
    classes_ : array
        The labels it may guess.
    n_features_in_ : int
        How many features a round has.
    n_rounds_, n_mistakes_, n_updates_, n_uniform_guesses_ : int
        Guesses made, those it was told were wrong, rounds in which it changed, guesses drawn to explore.
    """

    hears_label: ClassVar[bool] = False
    """Whether it plays the full-information game, in which `tell` takes the label."""

    classes: Any
    seed: int

    n_rounds_: int
    n_mistakes_: int
    n_updates_: int
    n_uniform_guesses_: int

    # What a learner is made of: five things each subclass provides.

    @abstractmethod
    def _start(self) -> None:
        """Check the settings and set up an empty memory for `n_features_in_` features and the `classes_`."""

    @abstractmethod
    def _decide(self, row: Rows, round: int) -> tuple[int, bool, float, Floats, Rows]:
        """Return the label's index, whether it was explored, its probability, the scores, and the row to keep.

        Raises ValueError for a row it cannot take, NaN and infinities included.
        """

    @abstractmethod
    def _hear(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from one answer and say whether anything changed."""

    @abstractmethod
    def _probabilities(self, row: Rows) -> Floats:
        """Return the chance of each label, without side effects."""

    @abstractmethod
    def _play(self, X: Rows, y: Integers, first_round: int, record: Record) -> None:
        """Play a whole stream, compiled."""

    @abstractmethod
    def _decision(self, rows: Rows) -> Floats:
        """Return every row's score for every class."""

    @abstractmethod
    def learned(self) -> dict[str, Floats]:
        """Return copies of the arrays it has learned, by name."""

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield learners with settings worth checking; the contract checks play them all."""
        yield cls()

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return what its theorems promise on examples that are strongly separable with that margin.

        With a kernel, radius and margin are those of the kernel's space. `onebit.bounds.at_most` reads the claims.
        """
        return ()

    def _prepare(self, rows: Rows) -> Rows:
        """Return rows as the memory takes them, or raise ValueError."""
        return rows

    # The game.

    def guess(self, features: npt.ArrayLike) -> Guess:
        """Name a label for one round's features.

        Parameters
        ----------
        features : array of shape (n_features,), or one sparse row
            Finite real numbers. They are copied.

        Returns
        -------
        Guess
            A ticket for `tell`; ``guess.label`` is the label.
        """
        row = self._one_row(features)
        if self._run is None:
            self._begin(row.shape[1], None, None)
        t = self.n_rounds_
        index, explored, probability, scores, kept = self._decide(row, t)
        self.n_rounds_ = t + 1
        self.n_uniform_guesses_ += explored
        return Guess(t, self._labels[index], probability, explored, index, kept, scores, self.n_updates_, self._run)

    def tell(self, guess: Guess, correct: bool, label: Any = None) -> None:
        """Say whether a guess was right: at once, late, in any order, or never, but only once.

        Parameters
        ----------
        guess : Guess
            The ticket that `guess` returned.
        correct : bool
            Whether the guessed label was right.
        label : object
            The right label; only full-information learners take it.
        """
        place, bit = self._ticket_place(guess)
        if not isinstance(correct, (bool, np.bool_)):
            raise ValueError(f"correct must be True or False; got {correct!r}")
        right = bool(correct)
        truth = -1 if label is None and not self.hears_label else self._truth(guess, right, label)
        self.n_updates_ += self._hear(guess, right, truth)
        self._told[place] |= bit
        self.n_mistakes_ += not right

    def probabilities(self, features: npt.ArrayLike) -> Floats:
        """Return the chance that `guess` would give to each of `classes_` now. Nothing is changed."""
        row = self._one_row(features)
        if not self._started:
            blank = self.__class__(**self.get_params(deep=False))
            blank._begin(row.shape[1], None, None)
            return blank._probabilities(blank._prepare(row))
        return self._probabilities(self._prepare(row))

    # The scikit-learn face.

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then play the game over the rows of X; y is used only to answer right or wrong."""
        self.play_stream(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Play on over more rows. `classes` must name every label on the first call if the constructor did not."""
        self.play_stream(X, y, fresh=False, classes=classes)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the score of every row (first axis) for every class (second axis)."""
        self._check_started("decision_function")
        rows = self._check_width(check_rows(X))
        return self._decision(self._prepare(rows))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the highest score for every row: no exploring, no learning."""
        scores = self.decision_function(X)
        best: npt.NDArray[Any] = self.classes_[np.argmax(scores, axis=1)]
        return best

    def play_stream(
        self,
        X: Any,
        y: Any,
        *,
        seed: int | None = None,
        fresh: bool = True,
        classes: Any = None,
        checkpoints: Integers | None = None,
        keep_guesses: bool = False,
    ) -> Record:
        """Play a whole stream, compiled; `onebit.play` is the friendlier way in."""
        with self.all_or_nothing():
            rows, codes = self.begin_stream(X, y, seed=seed, fresh=fresh, classes=classes)
            points = default_checkpoints(len(codes)) if checkpoints is None else checkpoints
            record = new_record(len(codes), points, keep_guesses)
            self._play(rows, codes, self.n_rounds_, record)
            self.n_rounds_ += len(codes)
            self.n_mistakes_ += int(record.counts[MISTAKES])
            self.n_updates_ += int(record.counts[UPDATES])
            self.n_uniform_guesses_ += int(record.counts[EXPLORED])
        return record

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Give back everything as it was if the game inside is broken off, by an error or by Ctrl-C."""
        before = self._bookmark()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _bookmark(self) -> dict[str, Any]:
        """Return what is needed to come back to this moment."""
        before = dict(self.__dict__)
        if self._started:
            before["_told"] = self._told.copy()
        return before

    def begin_stream(
        self, X: Any, y: Any, *, seed: int | None = None, fresh: bool = True, classes: Any = None
    ) -> tuple[Rows, Integers]:
        """Check a stream, get ready for its first round, and return its rows and its labels as indices."""
        rows = check_rows(X)
        labels = check_labels(y, rows.shape[0])
        if not fresh and self._started:
            codes = encode_labels(labels, self.classes_)
            self.begin(rows.shape[1], None, seed=seed, fresh=False)
        else:
            chosen = self.classes if self.classes is not None else classes
            known = check_classes(infer_classes(labels) if chosen is None else chosen)
            codes = encode_labels(labels, known)
            self._begin(rows.shape[1], known, seed)
        return rows, codes

    def begin(self, n_features: int, classes: Any = None, *, seed: int | None = None, fresh: bool = True) -> None:
        """Get ready for a game of that many features; with ``fresh=False`` keep what was learned."""
        if fresh or not self._started:
            chosen = self.classes if self.classes is not None else classes
            self._begin(n_features, None if chosen is None else check_classes(chosen), seed)
            return
        if n_features != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} features, as before; got {n_features}")
        if seed is not None and check_seed(seed) != self._key:
            raise ValueError(f"seed must stay {self._key} when play goes on; got {seed}. Leave it out, or start fresh")

    def index_of(self, label: Any) -> int:
        """Return a label's position among the classes, or raise ValueError."""
        return int(encode_labels(np.asarray([label]), self.classes_, "label")[0])

    # What is underneath.

    _run: str | None = None
    """Names the present run, for its tickets; None before the first."""
    _row_shape: tuple[int] | None = None
    """The shape of one round's features, once it is known."""

    @property
    def _started(self) -> bool:
        return self._run is not None

    def __sklearn_is_fitted__(self) -> bool:
        return self._started

    def _check_started(self, action: str) -> None:
        if not self._started:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"{type(self).__name__} has not played yet: guess, fit or onebit.play before {action}")

    def _begin(self, n_features: int, known_classes: npt.NDArray[Any] | None, seed: int | None) -> None:
        """Forget everything and set up an empty memory; on a bad setting nothing of the old is lost."""
        if known_classes is None:
            if self.classes is None:
                raise ValueError(
                    "classes is not known: pass a count or a list of labels, "
                    f'for example {type(self).__name__}(classes=["yes", "no"])'
                )
            known_classes = check_classes(self.classes)
        with self.all_or_nothing():
            self._key = check_seed(self.seed if seed is None else seed)
            self.classes_ = known_classes
            self._labels: list[Any] = known_classes.tolist()
            self.n_features_in_ = n_features
            self._row_shape = (n_features,)
            self._start()
        self.n_rounds_ = self.n_mistakes_ = self.n_updates_ = self.n_uniform_guesses_ = 0
        self._told = bytearray()
        self._run = uuid.uuid4().hex

    def _one_row(self, features: Any) -> Rows:
        """Return a copy of one round's features as a matrix of one row; `_decide` finds NaN and infinities."""
        if type(features) is np.ndarray and features.dtype is _FLOAT64 and features.shape == self._row_shape:
            return np.array(features, ndmin=2)  # what nearly every call brings
        if scipy.sparse.issparse(features):
            row = check_rows(features.reshape(1, -1) if features.ndim == 1 else features, "features")
            if row.shape[0] != 1:
                raise ValueError(f"features must be one round's; got {row.shape[0]} rows")
            return self._check_width(row)
        array = np.asarray(features)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"features must be real numbers; got dtype {array.dtype}: {features!r}")
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"features must be one round's, of shape (n_features,); got shape {array.shape}")
        if self._run is not None and array.size != self.n_features_in_:
            raise ValueError(f"features must have length {self.n_features_in_}; got {array.size}")
        return np.array(array, dtype=np.float64, ndmin=2)

    def _check_width(self, rows: Rows) -> Rows:
        if self._started and rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} features, as before; got {rows.shape[1]}")
        return rows

    def _ticket_place(self, guess: Guess) -> tuple[int, int]:
        """Return where this ticket is crossed off, or raise if it is foreign or was told before."""
        if not isinstance(guess, Guess):
            raise ValueError(f"guess must be what guess(x) returned; got {guess!r}")
        t = guess.round
        if guess.learner != self._run or self._run is None:
            raise ValueError(f"guess of round {t} is foreign: another learner, or another run of it, issued it")
        place, bit = t >> 3, 1 << (t & 7)
        if place >= len(self._told):
            self._told.extend(bytes(place - len(self._told) + 1024))
        if self._told[place] & bit:
            raise ValueError(f"guess of round {t} was told before; each guess is told once")
        return place, bit

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


def bad_row_error(row: Rows) -> ValueError:
    """Return the error for a row whose scores are not finite."""
    try:
        check_rows(row, "features")
    except ValueError as error:
        return error
    return ValueError(
        "the scores of these features are NaN or infinite: the features are too large, or the kernel returned NaN. "
        "Scale them, or use normalize=True"
    )
