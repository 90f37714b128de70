"""The protocol of every learner: `guess`, `tell`, `probabilities`.

``guess(x)`` returns a label, ``tell(guess, correct)`` gives the feedback, ``probabilities(x)`` returns the propensity
of each label, without side effects. What was learned is in the `State`, the open guesses in `Tickets`, ``fit`` and
``predict`` in `Estimator`, the current run in `Run`, and new classes and known rounds in `Taught`.

To write a learner, subclass `Learner` and give it one of two things: four methods (`_start`, `_choose`, `_update`,
`_probabilities`), which are called round by round, or `_new_state`, which returns a state with a compiled algorithm.
"""

import os
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from onebit.bounds import Claim
from onebit.engine.loop import EXPLORED, MISTAKES, PASSED, UPDATES, Record, new_record
from onebit.engine.state import State
from onebit.game import Answer, Guess
from onebit.inputs import (
    Floats,
    Integers,
    Rows,
    SparseRows,
    check_integer,
    check_rows,
    take,
)
from onebit.labels import check_classes, check_labels, encode_labels, infer_classes, positions
from onebit.learners.by_hand import ByHand
from onebit.learners.lessons import Taught, check_list
from onebit.learners.saving import save
from onebit.learners.tickets import Tickets, is_fit


def _are_many(features: Any) -> bool:
    """Return whether features are those of many rounds: a matrix."""
    if isinstance(features, SparseRows):
        return True
    shape = getattr(features, "shape", None)
    return len(shape) == 2 if shape is not None else np.ndim(features) == 2


def _row_of(rows: Rows, t: int) -> Any:
    return take(rows, t, t + 1) if isinstance(rows, SparseRows) else rows[t]


class Learner(Taught):
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
        Guesses made, guesses reported wrong, rounds in which the state changed, guesses drawn to explore.
    """

    # What a subclass defines: a state, or four methods.

    def _new_state(self) -> State:
        """Check the settings and return an empty state for `n_features_in_` features and the `classes_`."""
        return ByHand(self)

    def _start(self) -> None:
        """Check the settings and forget everything; `n_features_in_` and `classes_` are known.

        Copy the settings that rounds need: a run uses those that were set when it began.
        """
        raise TypeError(f"{type(self).__name__} must give _new_state, or _start, _choose, _update and _probabilities")

    def _choose(self, row: Rows, round: int) -> tuple[int, bool, float]:
        """Return a label's position, whether it was explored, its propensity; `_draw(round)` is the random number.

        Raises ValueError for a row it cannot take; the features are finite.
        """
        raise TypeError(f"{type(self).__name__} must give _choose, or _new_state")

    def _update(self, guess: Guess, answer: Answer) -> bool:
        """Learn from one answer and return whether anything changed."""
        raise TypeError(f"{type(self).__name__} must give _update, or _new_state")

    def _probabilities(self, row: Rows) -> Floats:
        """Return the propensity of each label, without side effects."""
        raise TypeError(f"{type(self).__name__} must give _probabilities, or _new_state")

    def _add_class(self) -> None:
        """Make room for one more class; `classes_` has it already."""
        raise ValueError(f"{type(self).__name__} cannot take a new class; give it _add_class, or start a new one")

    def _learn_from_log(self, row: Rows, answer: Answer, propensity: float | None) -> bool:
        """Learn from a round that another system played, and return whether anything changed."""
        raise ValueError(f"{type(self).__name__} cannot learn from rounds that others played; give it _learn_from_log")

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
        """Return the entries of this class in a league of so many rounds, by the suffix of the class's name.

        By default one, with the default settings. A class overrides this if it must know the rounds in advance, comes
        in two forms, or cannot play without further settings (then it has no entry).
        """
        return {"": cls()}

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        """Return roughly how many numbers it touches in a whole stream, or 0 where that grows only linearly.

        A league skips games that would take too long by this number, not by the clock, so that every machine plays the
        same games.
        """
        return 0.0

    def promise(self, *, n_classes: int, n_features: int, radius: float, margin: float) -> tuple[Claim, ...]:
        """Return what its theorems promise on examples that are strongly separable with that margin.

        With a kernel, radius and margin are those of the kernel's space. `onebit.bounds.at_most` reads the claims.
        """
        return ()

    # Rounds.

    def guess(self, features: npt.ArrayLike, among: Any = None) -> Guess:
        """Guess a label for one round's features.

        Parameters
        ----------
        features : array of shape (n_features,) or (1, n_features), one sparse row, a frame of one row, or a row of one
            Finite real numbers. They are copied. The columns of a frame must be those of the first, in their order.
        among : list of labels, optional
            The labels allowed in this round; it is played as if there were no others. With ``classes="grow"`` new
            labels are added to the classes.

        Returns
        -------
        Guess
            A ticket for `tell`; ``guess.label`` is the label.
        """
        with self._lock:
            row = self._one_row(features)
            if self._started and (among is None or not self._grows):
                return self._issue(row, among, features)
            labels = None if among is None else check_list("among", among)
            allowed = None if labels is None else labels.tolist()  # the input may be an iterator
            if self._started and (labels is None or (positions(labels, self.classes_) >= 0).all()):
                return self._issue(row, allowed, features)
            # A refused first guess must not begin a run.
            with self.all_or_nothing(fresh=False):
                if labels is not None and self._grows:
                    self._codes_of(labels, row.shape[1], "among", features)
                return self._issue(row, allowed, features)

    def _issue(self, row: Rows, among: Any, given: Any) -> Guess:
        if self._tickets is None:
            if not self._started:
                self._begin(row.shape[1], None, None, given)
            self._tickets = Tickets(self._max_open_tickets)
        t = self.n_rounds_
        if among is None:
            index, explored, propensity, scores, kept = self._state.guess(row, self._key, t)
        else:
            allowed = self._positions(among)
            index, explored, propensity, scores, kept = self._state.guess_among(row, self._key, t, allowed)
        self.n_rounds_ = t + 1
        self.n_uniform_guesses_ += explored
        label, version = self._labels[index], self.n_updates_
        return self._tickets.issue(t, label, propensity, explored, index, kept, scores, version)

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
            tickets, own = self._open_ticket(guess)
            if not isinstance(correct, (bool, np.bool_)):
                raise ValueError(f"correct must be True or False; got {correct!r}")
            right = bool(correct)
            truth = -1 if label is None and not self.full_information else self._truth(own, right, label)
            # Closed only after the update: an error leaves the ticket open.
            self.n_updates_ += self._state.update(own, right, truth)
            tickets.close(own)
            self.n_mistakes_ += not right

    def drop(self, guess: Guess | str) -> None:
        """Close a ticket that will get no feedback, to free its memory; nothing is learned.

        Parameters
        ----------
        guess : Guess or str
            The ticket, its JSON, or its `id`, as for `tell`.
        """
        with self._lock:
            tickets, own = self._open_ticket(guess)
            tickets.close(own)

    def _open_ticket(self, guess: Guess | str) -> tuple[Tickets, Guess]:
        """Return the open tickets and the checked ticket, or raise ValueError if it is not open."""
        tickets = self._tickets
        if tickets is None:
            raise ValueError(f"guess must be a ticket of this learner, which has issued none; got {guess!r}")
        latest, own = tickets.latest, tickets.own
        if latest is not None and own is not None and (guess is latest or (type(guess) is str and guess == own.id)):
            return tickets, own
        if isinstance(guess, str) and guess.lstrip().startswith("{"):  # an id never does
            guess = Guess.from_json(guess)
        own = tickets.find(guess) if isinstance(guess, str) else tickets.check(guess, self._labels)
        # Tickets of this run are valid; one from a file may be forged.
        if own.learner != tickets.run and not is_fit(own, self._state, self.n_features_in_):
            raise ValueError(f"guess of round {own.round} has a row or scores that no guess is made from")
        return tickets, own

    @property
    def max_open_tickets(self) -> int:
        """How many open tickets the learner keeps whole, so that `tell` needs only their `id`; 10 000 by default.

        When there are more, the oldest expires: `tell` then takes the ticket itself, but not its id. A ticket kept
        whole takes about 600 bytes and 8 more for every feature and class, an expired one 8. It is not a constructor
        setting, since it does not affect what is learned.
        """
        return self._max_open_tickets

    @max_open_tickets.setter
    def max_open_tickets(self, most: int) -> None:
        with self._lock:
            self._max_open_tickets = check_integer("max_open_tickets", most, low=1)
            if self._tickets is not None:
                self._tickets.most = self._max_open_tickets

    def guess_many(self, X: Any, among: Any = None) -> list[Guess]:
        """Guess a label for every row of X: the same tickets as calls of `guess`, or none if a row is refused.

        Parameters
        ----------
        X : array or sparse matrix of shape (rounds, n_features)
            The rounds, none of which has been answered yet.
        among : list of labels, optional
            Which labels are allowed, in all of them.
        """
        rows = check_rows(X)
        among = None if among is None else check_list("among", among).tolist()
        with self.all_or_nothing(fresh=False):
            is_new = not self._started
            self._check_fit(rows, X)
            guesses = [self.guess(_row_of(rows, t), among) for t in range(rows.shape[0])]
            if is_new:
                self._check_columns(X, reset=True)
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
            looked_at = self
            if _are_many(features):
                rows: Rows = self._check_fit(check_rows(features, "features"), features)
            else:
                rows = self._one_row(features)
            if not self._started:
                # This must not start a run: a copy starts it instead.
                looked_at = self.__class__(**self.get_params(deep=False))
                looked_at._begin(rows.shape[1], None, None)
            allowed = None if among is None else looked_at._positions(among)
            state, pieces = looked_at._state, [take(rows, t, t + 1) for t in range(rows.shape[0])]
            propensities = [
                state.probabilities(row) if allowed is None else state.probabilities_among(row, allowed)
                for row in pieces
            ]
            return np.stack(propensities) if _are_many(features) else propensities[0]

    def score_classes(self, X: Any) -> Floats:
        """Return the score of every row (first axis) for every class (second axis)."""
        with self._lock:
            self._check_started("scores")
            rows = self._check_width(check_rows(X))
            self._check_columns(X, reset=False)
            state, at_once = self._state, self._state.rows_at_once(rows.shape[1])
            # In pieces: preparing may make sparse rows dense.
            pieces = [take(rows, start, start + at_once) for start in range(0, rows.shape[0], at_once)]
            return np.concatenate([state.score_rows(state.prepare(piece)) for piece in pieces])

    def learned(self) -> dict[str, Floats]:
        """Return copies of the arrays it has learned, by name."""
        with self._lock:
            self._check_started("learned")
            return self._state.learned()

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the learner to a file, for `onebit.load`: settings, what was learned, counts, and open tickets.

        The file is replaced atomically. Labels and settings that are not plain values (an Enum, a function as a kernel)
        must be importable, and must be named as trusted when the file is loaded. A learner defined by four methods is
        saved with all its attributes, if these are arrays and plain values.

        Parameters
        ----------
        path : str or path-like
            The file; its folder must exist.

        Raises
        ------
        ValueError
            If something cannot be saved. Nothing is written then.
        OSError
            If the file cannot be written. An old file stays as it was.
        """
        save(self, path)

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
        """Play a whole stream, compiled where the learner is; most callers want `onebit.play`."""
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
        is_one = len(labels) == 1 and not fresh and self._started and not self._state.plays_by_hand
        if is_one and not (self._grows and labels.tolist()[0] not in self._labels):
            # A single round cannot fail halfway (only `score` can fail, before any change): no copy of the state is
            # needed.
            codes = self.begin_stream(rows, labels, seed=seed, fresh=False, given=given)
            try:
                self._state.play(rows, codes, self._key, self.n_rounds_, record)
            finally:
                self._count(record, int(record.counts[PASSED]))  # also when Ctrl-C came just after the round
            return
        with self.all_or_nothing(fresh):
            codes = self.begin_stream(rows, labels, seed=seed, fresh=fresh, classes=classes, given=given)
            self._state.play(rows, codes, self._key, self.n_rounds_, record)
            if not self._state.plays_by_hand:
                self._count(record, len(codes))

    def can_play_again(self, row: Floats) -> bool:
        """Return whether `play_again` can play rows like this one: after the first round, with a compiled algorithm."""
        if not self._started or row.shape != self._row_shape or self._state.plays_by_hand or self.full_information:
            return False
        kind = type(self)
        return kind.guess is Learner.guess and kind.tell is Learner.tell  # the compiled loop would bypass overrides

    def play_again(self, X: Floats, guessed: Integers, correct: npt.NDArray[np.bool_]) -> bool:
        """Replay earlier rounds, each answered before the next guess, as `guess` and `tell` did but compiled.

        Parameters
        ----------
        X : array of shape (rounds, n_features)
            The rows.
        guessed : array
            What it guessed: positions among the classes.
        correct : array
            Whether the guess was right.

        Returns
        -------
        bool
            Whether it guesses the same again. If not, or if it refuses a row, nothing is changed.
        """
        record = new_record(len(guessed), [len(guessed)], keep_guesses=True)
        try:
            with self.all_or_nothing(fresh=False):
                # −1 is no label: it makes the guess wrong, which is all that bandit feedback contains.
                self._state.play(check_rows(X), np.where(correct, guessed, -1), self._key, self.n_rounds_, record)
                if not np.array_equal(record.guesses, guessed):
                    raise ValueError("it guesses otherwise now")
                self._count(record, len(guessed))
        except ValueError:
            return False
        return True

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
        """Prepare for the first round of a checked stream, and return its labels as indices.

        `given` is the stream's X before checking: a frame has column names.
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

    def _truth(self, guess: Guess, correct: bool, label: Any) -> int:
        if not self.full_information:
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
