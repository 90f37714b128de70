"""The protocol of every learner: `guess`, `tell`, `probabilities`, and the scikit-learn estimator that it is too.

What was learned is in the `State`, the open guesses in `Tickets`; how a run begins and streams are played is in
`onebit.learners.run`. A learner of your own gives `_new_state`, or the four methods of `onebit.learners.by_hand`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.exceptions import NotFittedError

from onebit import inputs, kernels
from onebit.bounds import Claim
from onebit.confidence import Confidence
from onebit.engine.randomness import Draw, uniform
from onebit.engine.state import State
from onebit.files import replace_file
from onebit.game import Guess, Tickets
from onebit.inputs import Floats, Rows, SparseRows
from onebit.labels import check_labels, encode_labels, positions
from onebit.learners import run
from onebit.learners.by_hand import ByHand
from onebit.learners.saving import to_bytes

_NOTHING = np.empty(0)
_FLOAT64 = np.dtype(np.float64)


class Learner(run.CommonSettings):
    """Base of every learner; a scikit-learn classifier whose `fit` plays one pass over the rows.

    It has no `predict_proba`: `probabilities` are the propensities of a guess, which explores. For class probabilities
    wrap it in `sklearn.calibration.CalibratedClassifierCV`.

    Parameters
    ----------
    classes : None, int, list or "grow"
        The labels, or how many; `play` and `fit` infer them from y. With "grow" they join when they are met.
    seed : int
        Seed of the learner's random numbers.

    Attributes
    ----------
    classes_ : array
        The labels it may guess; of dtype object where they are of several kinds.
    n_features_in_ : int
        How many features a round has.
    feature_names_in_ : array of str
        The names of the columns, if the first rows came in a frame.
    n_rounds_, n_mistakes_, n_updates_, n_uniform_guesses_ : int
        Guesses made, guesses reported wrong, rounds in which the state changed, guesses drawn to explore.
    weights_ : array of shape (K, n_features)
        The weight vector of each class, of learners that have them; without a kernel only.
    support_, coefficients_ : arrays of shapes (n, n_features) and (n, K)
        The stored examples and how much of each every class has gained; with a kernel only.
    """

    full_information: ClassVar[bool] = False
    """Whether its feedback is the label, which `tell` then takes."""
    _poor_score: ClassVar[bool] = False  # whether the few rows of scikit-learn's own checks are too few for it
    classes_: npt.NDArray[Any]
    n_features_in_: int
    n_rounds_: int
    n_mistakes_: int
    n_updates_: int
    n_uniform_guesses_: int
    weights_, support_, coefficients_ = run.LearnedArray(), run.LearnedArray(), run.LearnedArray()

    _state: State
    _labels: tuple[Any, ...]
    _key: int  # the seed of the current run
    _in_force: dict[str, Any]  # the settings of the current run: changes made meanwhile apply from the next one
    _tickets: Tickets | None = None  # none before the first guess of a run: whole streams issue no tickets
    _confidence: Confidence | None = None  # none before the first guess either, and for a learner of four methods
    _max_open_tickets: int = 10_000
    _started: bool = False  # whether a run has begun, and there is a state
    _row_shape: tuple[int] | None = None  # of one round's features, once it is known

    # What a subclass defines: a state, or four methods.

    def _new_state(self) -> State:
        """Check the settings and return an empty state for `n_features_in_` features and the `classes_`."""
        return ByHand(self)

    def _keep(self) -> dict[str, Any]:
        """Return what a file must hold beside the state's arrays, for `_take_back`."""
        return {}

    def _take_back(self, kept: dict[str, Any]) -> None:
        """Restore what `_keep` returned, from a file that is not trusted; raises ValueError."""
        if kept:
            raise ValueError(f"it gives the learner {', '.join(kept)}, which it does not keep")

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield learners with settings worth checking; the contract checks play them all."""
        yield cls()

    @classmethod
    def contenders(cls, rounds: int) -> dict[str, Self]:
        """Return the entries of this class in a league of so many rounds, by the suffix of the class's name."""
        return {"": cls()}

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return roughly how many numbers it touches in a whole stream, or 0 where that grows only linearly.

        A league skips long games by it.
        """
        return 0.0

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return what its theorems promise on examples that are strongly separable with that margin.

        With a kernel, radius and margin are those of its space.
        """
        return ()

    # Rounds.

    def guess(self, features: npt.ArrayLike, among: Any = None) -> Guess:
        """Guess a label for one round's features; return a ticket for `tell`, whose ``label`` it is.

        Parameters
        ----------
        features : array of shape (n_features,) or (1, n_features), one sparse row, a frame of one row, or a row of one
            Finite real numbers. They are copied. The columns of a frame must be those of the first, in their order.
        among : list of labels, optional
            The labels allowed in this round; it is played as if there were no others. With ``classes="grow"`` new
            labels are added to the classes.
        """
        with self._lock:
            row, labels, is_known = self._row(features), None, self._started
            if among is not None and run.grows(self):
                labels = run.check_list(among)
                among = labels.tolist()  # the input may be an iterator
                is_known = is_known and bool((positions(labels, self.classes_) >= 0).all())
            if is_known:
                return self._issue(row, among)
            # A refused first guess must not begin a run, and a refused one must not add labels.
            with run.all_or_nothing(self, fresh=False):
                if labels is not None:
                    run.codes_of(self, labels, row.shape[1], "among", features)
                else:
                    run.begin(self, row.shape[1], run.classes_for(self), given=features)
                return self._issue(row, among)

    def _new_confidence(self) -> Confidence | None:
        """Return an estimator of confidence that has learned nothing; None for a learner of four methods."""
        return None if self._state.plays_by_hand else Confidence(self._state.n_extra)

    def _row(self, features: Any) -> Rows:
        """Return a copy of one round's features as a matrix of one row; `score` finds NaN and infinities."""
        if type(features) is np.ndarray and features.dtype is _FLOAT64 and features.shape == self._row_shape:
            return features[None].copy()  # the common case
        if scipy.sparse.issparse(features) or isinstance(features, SparseRows):
            row = inputs.check_sparse(features, "features", one_round=True)
            if self._started and row.n_columns != self.n_features_in_:
                run.check_width(self, row.n_columns)
            return row
        features = inputs.as_frame(features)
        array = inputs.check_real(features, "features")
        if array.ndim == 0 or array.size == 0 or array.size != array.shape[-1]:
            raise ValueError(f"features must be one round's, of shape (n_features,); got shape {array.shape}")
        if self._started and inputs.is_frame(features):
            run.check_columns(self, features, reset=False)
        if self._started and array.size != self.n_features_in_:
            raise ValueError(f"features must have length {self.n_features_in_}; got {array.size}")
        return np.array(array, dtype=np.float64, ndmin=2)

    def _issue(self, row: Rows, among: Any) -> Guess:
        if self._tickets is None:
            self._tickets = Tickets()
            self._confidence = self._confidence or self._new_confidence()
        t, state = self.n_rounds_, self._state
        allowed = None if among is None else run.allowed_positions(self, among)
        guessed = state.guess(row, self._key, t) if allowed is None else state.guess_among(row, self._key, t, allowed)
        index, explored, propensity, scores, kept = guessed
        self.n_rounds_ = t + 1
        self.n_uniform_guesses_ += explored
        confidence, evidence = None, _NOTHING
        if self._confidence is not None:
            extra = state.extra(index) if state.n_extra else _NOTHING
            evidence, estimate = self._confidence.observe(scores, index, extra)
            confidence = estimate if estimate == estimate else None  # NaN: too little feedback
        labels, version = self._labels, self.n_updates_
        about = t, labels[index], propensity, explored, index, kept, scores, version, confidence, evidence, labels
        return self._tickets.issue(about, self._max_open_tickets)

    def tell(self, guess: Guess | str, correct: bool, label: Any = None) -> None:
        """Give the feedback on a guess: at once, late, in any order, or never, but only once.

        Parameters
        ----------
        guess : Guess or str
            The ticket that `guess` returned, or an equal one: it may have been saved and loaded, but not edited. Or its
            JSON. Or its `id`, while the learner remembers it: see `max_open_tickets`.
        correct : bool
            Whether the guessed label was right.
        label : object
            The right label; only full-information learners take it.
        """
        with self._lock:
            tickets = self._issued(guess)
            own = tickets.close(guess, self)
            try:
                if not isinstance(correct, (bool, np.bool_)):
                    raise ValueError(f"correct must be True or False; got {correct!r}")
                right, truth = bool(correct), -1
                if self.full_information or label is not None:
                    truth = self._check_label(own, right, label)
                self.n_updates_ += self._state.update(own, right, truth)
                if self._confidence is not None and len(own.evidence):
                    self._confidence.learn(own.evidence, own.index, right)
            except BaseException:  # an error leaves the ticket open
                tickets.reopen(own)
                raise
            self.n_mistakes_ += not right

    def _check_label(self, own: Guess, right: bool, label: Any) -> int:
        """Return the position of the right label, or raise ValueError."""
        name = type(self).__name__
        if not self.full_information:
            raise ValueError(f"{name} takes only right or wrong: call tell(guess, correct), or label(guess, label)")
        if label is None:
            raise ValueError(f"{name} learns from full information; call tell(guess, correct, label=…)")
        truth = self.index_of(label)
        if (truth == own.index) != right:
            raise ValueError(f"correct={right} contradicts label={label!r} for a guess of {own.label!r}")
        return truth

    def label(self, guess: Guess | str, label: Any) -> bool:
        """Give the right label as the feedback on a guess, which teaches more than a bit; return whether it was right.

        With ``classes="grow"`` the label may be new. The learner learns whether its guess was right, as from `tell`; if
        it was wrong, it then learns the label, as from `learn_labels`, if it can.
        """
        with self._lock:
            own = self._issued(guess).look_up(guess, self)
            if run.grows(self) and label not in self._labels:
                run.join(self, [label])
            index = self.index_of(label)
            correct = index == own.index
            self.tell(guess, correct, label if self.full_information else None)
            if not correct and not self.full_information and self._state.learns_from_logs():
                self.n_updates_ += self._state.learn_from_log(own.row, index, True, -1, 1.0)
            return correct

    def drop(self, guess: Guess | str) -> None:
        """Close a ticket (or its JSON, or its `id`) that will get no feedback, to free its memory."""
        with self._lock:
            self._issued(guess).close(guess, self)

    def _issued(self, guess: Guess | str) -> Tickets:
        if self._tickets is None:
            raise ValueError(f"guess must be a ticket of this learner, which has issued none; got {guess!r}")
        return self._tickets

    @property
    def max_open_tickets(self) -> int:
        """How many open tickets the learner keeps whole, so that `tell` needs only their `id`; 10 000 by default.

        When there are more, the oldest expires: `tell` then takes the ticket itself. A ticket kept whole takes about
        1 000 bytes and 8 more for every feature and class, an expired one 8.
        """
        return self._max_open_tickets

    @max_open_tickets.setter
    def max_open_tickets(self, most: int) -> None:
        self._max_open_tickets = inputs.check_integer("max_open_tickets", most, low=1)

    def guess_many(self, X: Any, among: Any = None) -> list[Guess]:
        """Guess a label for every row of X: the same tickets as calls of `guess`, or none if a row is refused.

        `among` lists the labels that are allowed, in all of them.
        """
        rows = inputs.check_rows(X)
        among = None if among is None else run.check_list(among).tolist()
        with run.all_or_nothing(self, fresh=False):
            is_new = not self._started
            run.check_width(self, rows.shape[1], X)
            guesses = [self.guess(inputs.row_of(rows, t), among) for t in range(rows.shape[0])]
            if is_new:
                run.check_columns(self, X, reset=True)
            return guesses

    def probabilities(self, features: npt.ArrayLike, among: Any = None) -> Floats:
        """Return the propensity of each of `classes_`: the probability with which `guess` would draw it now.

        This is not how likely a label is to be right. Nothing is changed.

        Parameters
        ----------
        features : array of shape (n_features,) or (rows, n_features), or sparse rows
            One round's features, or many rounds': then one row of propensities for each.
        among : list of labels, optional
            Which labels are allowed: the others have propensity 0.
        """
        with self._lock:
            are_many = (len(features.shape) if hasattr(features, "shape") else np.ndim(features)) == 2
            rows = inputs.check_rows(features, "features") if are_many else self._row(features)
            run.check_width(self, rows.shape[1], features if are_many else None)
            learner = self
            if not self._started:  # this must not start a run: a copy starts it instead
                learner = type(self)(**self.get_params(deep=False))
                run.begin(learner, rows.shape[1], run.classes_for(learner))
            state, every = learner._state, (inputs.take(rows, t, t + 1) for t in range(rows.shape[0]))
            if among is None:
                found = [state.probabilities(row) for row in every]
            else:
                allowed = run.allowed_positions(learner, among)
                found = [state.probabilities_among(row, allowed) for row in every]
            return np.stack(found) if are_many else found[0]

    def score_classes(self, X: Any) -> Floats:
        """Return the score of every row (first axis) for every class (second axis)."""
        with self._lock:
            self._check_started("scores")
            rows = inputs.check_rows(X)
            run.check_width(self, rows.shape[1])
            run.check_columns(self, X, reset=False)
            state, at_once = self._state, self._state.rows_at_once(rows.shape[1])
            # In pieces: preparing may make sparse rows dense.
            pieces = [inputs.take(rows, start, start + at_once) for start in range(0, rows.shape[0], at_once)]
            return np.concatenate([state.score_rows(state.prepare(piece)) for piece in pieces])

    def confidence(self, X: Any) -> Floats:
        """Return for every row of X the estimated probability that `predict` is right, without exploring or learning.

        It is calibrated by the feedback on the guesses so far; NaN until there is enough of it.
        """
        scores = self.score_classes(X)
        if self._confidence is None:
            return np.full(len(scores), np.nan)
        with self._lock:
            best = np.argmax(scores, axis=1)
            return self._confidence.estimate_rows(scores, best, self._state.extra_rows(inputs.check_rows(X), best))

    def learned(self) -> dict[str, Floats]:
        """Return copies of the arrays it has learned, by name."""
        with self._lock:
            self._check_started("learned")
            return self._state.learned()

    def n_bytes(self) -> int:
        """Return roughly how much memory its state and open tickets take."""
        tickets = 0 if self._tickets is None else self._tickets.n_bytes()
        return tickets + (self._state.n_bytes() if self._started else 0)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the learner to a file, for `onebit.load`: settings, what was learned, counts, and open tickets.

        The file is replaced atomically; if something cannot be saved (ValueError) or written (OSError), an old file
        stays as it was. Labels and settings that are not plain values (an Enum, a function as a kernel) must be
        importable, and must be named as trusted when the file is loaded.
        """
        replace_file(Path(os.path.realpath(path)), to_bytes(self))  # a link stays a link

    # New labels, and what is known already.

    def add_class(self, label: Any) -> None:
        """Add a label to the classes; it can be guessed from the next round on."""
        with self._lock:
            if not self._started:
                remedy = 'until then put it into the setting, classes=[…], or guess with classes="grow" and among=[…]'
                raise ValueError(f"label {label!r} can join when a run has begun: {remedy}")
            if any(type(own) is type(label) and own == label for own in self._labels):
                raise ValueError(f"label {label!r:.80} is one of the classes already")
            run.join(self, [label])

    def index_of(self, label: Any) -> int:
        """Return a label's position among the classes, or raise ValueError."""
        return int(encode_labels(check_labels([label], 1, "label"), self.classes_, "label")[0])

    def learn_from(self, X: Any, guesses: Any, correct: Any, propensities: Any = None) -> Self:
        """Learn from rounds that another system played: which label was tried, and whether it was right.

        Nothing is guessed, and no mistake is counted. If one row is refused, nothing is learned.

        Parameters
        ----------
        X, guesses : arrays of shapes (rounds, n_features) and (rounds,)
            The rounds, dense or sparse, and the label that was tried in each.
        correct : array of bool of shape (rounds,), or bool
            Whether it was right; one truth value stands for all.
        propensities : array of shape (rounds,), or float, optional
            The probability with which each label was tried, in (0, 1]; needed by learners that weight by it.
        """
        run.learn_known(self, "guesses", X, guesses, correct, propensities)
        return self

    def learn_labels(self, X: Any, y: Any) -> Self:
        """Learn from rows X whose labels y are known, as `learn_from` with the right label and propensity 1."""
        run.learn_known(self, "y", X, y, True, 1.0)
        return self

    # Runs and whole streams.

    def begin(self, n_features: int, classes: Any = None, *, seed: int | None = None, fresh: bool = True) -> None:
        """Prepare for rounds with that many features; with ``fresh=False`` keep what was learned."""
        inputs.check_integer("n_features", n_features, low=1)
        if fresh or not self._started:
            with run.all_or_nothing(self):
                run.begin(self, n_features, run.classes_for(self, classes), seed)
            return
        run.check_width(self, n_features)
        if seed is not None and inputs.check_seed(seed) != self._key:
            raise ValueError(f"seed must stay {self._key} when play goes on; got {seed}. Leave it out, or start fresh")

    # The scikit-learn estimator.

    def fit(self, X: Any, y: Any) -> Self:
        """Reset, then play one pass over the rows of X; y is used only to answer right or wrong."""
        run.play_stream(self, X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Play on over more rows. `classes` must name every label on the first call if the constructor did not."""
        run.play_stream(self, X, y, fresh=False, classes=classes)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return finite scores; for two classes, as scikit-learn has it, the second's score minus the first's."""
        scores = self.score_classes(X)
        if scores.shape[1] == 2:
            with np.errstate(over="ignore", invalid="ignore"):  # inf − inf gives NaN
                scores = scores[:, 1] - scores[:, 0]
        return np.nan_to_num(scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the highest score for every row, without exploring or learning."""
        best = np.argmax(self.score_classes(X), axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`, for labels of any type (accuracy_score accepts few)."""
        guesses = np.argmax(self.score_classes(X), axis=1)
        truth = positions(check_labels(y, len(guesses)), self.classes_)
        return float(np.average(guesses == truth, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = self._poor_score
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._started

    def _check_started(self, action: str) -> None:
        if not self._started:
            raise NotFittedError(f"{type(self).__name__} has not played yet: guess, fit or onebit.play before {action}")

    def _draw(self, round: int) -> float:
        """Return the round's uniform number in [0, 1)."""
        return uniform(Draw(self._key, round))


def in_linear_space(learner: Learner) -> bool:
    """Return whether a margin in R^d is also one in the learner's space, so that its promise applies."""
    kernel = getattr(learner, "kernel", None)
    # A bank of kernels, by name or as a list, promises what its linear kernel does, or nothing.
    return kernel is None or isinstance(kernel, (kernels.Linear, str, list, tuple))
