"""Playing round by round in Python: the same loop, calling `guess` and `tell`.

`ByHand` is the state of a learner defined by four methods; its content is all attributes of the learner. The methods:

- ``_start()`` checks the settings and forgets everything; `n_features_in_` and `classes_` are known. Copy the settings
  that rounds need: a run uses those that were set when it began.
- ``_choose(row, round)`` returns a label's position, whether it was explored, and its propensity; ``_draw(round)`` is
  the random number. It raises ValueError for a row it cannot take; the features are finite.
- ``_update(guess, answer)`` learns from one `Answer` and returns whether anything changed.
- ``_probabilities(row)`` returns the propensity of each label, without side effects.

Two more are optional: ``_add_class()`` makes room for one more class, which `classes_` has already, and
``_learn_from_log(row, answer, propensity)`` learns from a round that another system played, like `_update`.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.engine.loop import EXPLORED, MISTAKES, PASSED, UPDATES, Algorithm, Record, is_right
from onebit.engine.randomness import Draw, uniform
from onebit.engine.state import State
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Integers, Rows, check_rows, row_of, take

if TYPE_CHECKING:
    from onebit.learners.base import Learner


_ROUNDING = 1e-9  # sums of propensities
_WITHOUT = {
    "_add_class": "cannot take a new class; give it _add_class, or start a new one",
    "_learn_from_log": "cannot learn from rounds that others played; give it _learn_from_log",
}


def play_rounds(
    learner: "Learner",
    rounds: Iterable[tuple[Any, int]],
    record: Record,
    *,
    answer: "Callable[[Guess, int, bool], bool] | None" = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Play rounds by calling `guess` and `tell`; return how many, at most as many as the record is for.

    Parameters
    ----------
    learner : Learner
        Its run has begun.
    rounds : iterable
        The features of each round and the position of its right label (or as `codes_of_right`).
    record : Record
        What happened is written there.
    answer : callable, optional
        Gives the feedback instead of `tell`; it is called with the guess, the code and whether the guess was right, and
        returns whether the label was asked for, which is no mistake.
    on_progress : callable, optional
        Called now and then with how many rounds are played, and of how many.
    """
    counts, limit, updates, t = record.counts, int(record.checkpoints[-1]), learner.n_updates_, 0
    step = progress_step(limit)
    for t, (features, code) in enumerate(rounds, start=1):
        guess = learner.guess(features)
        correct, asked = bool(is_right(guess.index, code)), False
        if answer is not None:
            asked = answer(guess, code, correct)
        elif learner.full_information:
            learner.tell(guess, correct, learner._labels[code])
        else:
            learner.tell(guess, correct)
        counts[MISTAKES] += not correct and not asked
        counts[EXPLORED] += guess.explored
        if len(record.guesses):
            record.guesses[t - 1] = guess.index
        if t == record.checkpoints[counts[PASSED]]:
            record.cumulative[counts[PASSED]] = counts[MISTAKES]
            counts[PASSED] += 1
        if on_progress is not None and (t % step == 0 or t == limit):
            on_progress(t, limit)
        if t == limit:
            break
    counts[UPDATES] = learner.n_updates_ - updates
    return t


def progress_step(n_rounds: int) -> int:
    """Return after how many rounds progress is reported: at most 200 times."""
    return max(50, n_rounds // 200)


def pairs_of(rows: Rows, codes: Integers) -> Iterator[tuple[Any, int]]:
    """Yield the features of each round, as `guess` takes them, and its code."""
    return ((row_of(rows, t), code) for t, code in enumerate(codes.tolist()))


class ByHand(State):
    """The state of a learner with `_start`, `_choose`, `_update` and `_probabilities` instead of an `Algorithm`."""

    plays_by_hand = True

    _learner: Any

    def __init__(self, learner: "Learner") -> None:
        self._learner = learner
        self._own("_start")()

    def _own(self, method: str) -> Any:
        """Return a method of the learner, or raise an error that says what to do without it."""
        if hasattr(self._learner, method):
            return getattr(self._learner, method)
        name = type(self._learner).__name__
        if method in _WITHOUT:
            raise ValueError(f"{name} {_WITHOUT[method]}")
        raise TypeError(f"{name} must give {method}: _start, _choose, _update and _probabilities, or _new_state")

    def algorithm(self, is_sparse: bool) -> Algorithm:
        """Raise TypeError: nothing is compiled."""
        raise TypeError("a learner that is played by hand has no Algorithm")

    def guess(self, row: Rows, seed: int, round: int) -> tuple[int, bool, float, Floats, Rows]:
        """Return the learner's choice."""
        chosen = self._own("_choose")(check_rows(row, "features"), round)
        if not isinstance(chosen, tuple) or len(chosen) != 3:
            raise ValueError(
                f"_choose must return a label's position, whether it was explored, its propensity; got {chosen!r}"
            )
        index, explored, propensity = chosen
        if not isinstance(index, (int, np.integer)) or not 0 <= index < len(self._learner.classes_):
            raise ValueError(
                f"_choose must return a position among the {len(self._learner.classes_)} classes; got {index!r}"
            )
        if not 0.0 < propensity <= 1.0 + _ROUNDING:
            raise ValueError(f"_choose must return the propensity of its guess, in (0, 1]; got {propensity!r}")
        return int(index), bool(explored), float(propensity), np.empty(0), row

    def probabilities(self, row: Rows) -> Floats:
        """Return the learner's probabilities."""
        propensities: Floats = self._own("_probabilities")(check_rows(row, "features"))
        if np.shape(propensities) != (len(self._learner.classes_),) or not np.isfinite(propensities).all():
            raise ValueError(f"_probabilities must return the propensity of each class; got {propensities!r:.80}")
        return propensities

    def guess_among(self, row: Rows, seed: int, round: int, among: Integers) -> tuple[int, bool, float, Floats, Rows]:
        """Draw one of the allowed labels from the learner's probabilities, restricted to them."""
        propensities = self.probabilities_among(row, among)
        place = np.searchsorted(np.cumsum(propensities[among]), uniform(Draw(seed, round)), side="right")
        index = int(among[min(int(place), len(among) - 1)])
        return index, False, float(propensities[index]), np.empty(0), row

    def probabilities_among(self, row: Rows, among: Integers) -> Floats:
        """Return the learner's probabilities restricted to the allowed labels; uniform if all are 0."""
        asked = self.probabilities(row)
        allowed, propensities = asked[among], np.zeros(len(asked))
        total = allowed.sum()
        propensities[among] = allowed / total if total > 0.0 else 1.0 / len(among)
        return propensities

    def add_class(self) -> None:
        """Add a class to the learner."""
        self._own("_add_class")()

    def learns_from_logs(self) -> bool:
        """Return whether the learner has `_learn_from_log`."""
        return hasattr(self._learner, "_learn_from_log")

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        """Learn from a round that another system played."""
        answer = Answer(label, False, correct, truth)
        return bool(self._own("_learn_from_log")(check_rows(row, "features"), answer, propensity))

    def update(self, guess: Guess, correct: bool, truth: int) -> bool:
        """Learn from the answer to one guess."""
        return bool(self._own("_update")(guess, Answer(guess.index, guess.explored, correct, truth)))

    def play(self, X: Rows, y: Integers, seed: int, first_round: int, record: Record) -> None:
        """Play a whole stream."""
        play_rounds(self._learner, pairs_of(X, y), record)

    def score_rows(self, rows: Rows) -> Floats:
        """Return the probabilities of every row: there are no scores."""
        return np.array([self.probabilities(take(rows, t, t + 1)) for t in range(rows.shape[0])])

    def takes(self, row: Rows, n_features: int) -> bool:
        """Return whether a ticket's row has the right width."""
        return bool(row.shape[1] == n_features)

    def takes_scores(self, scores: Floats, label: int) -> bool:
        """Return whether a ticket has no scores."""
        return len(scores) == 0

    def learned(self) -> dict[str, Floats]:
        """Return copies of every array that the learner keeps, by name."""
        kept = {name: value for name, value in vars(self._learner).items() if isinstance(value, np.ndarray)}
        return {name: value.copy() for name, value in kept.items() if name not in ("classes_", "feature_names_in_")}

    def bookmark(self) -> dict[str, Any]:
        """Return copies of the learner's attributes, except its settings."""
        settings = self._learner.get_params(deep=False)
        # Not this object, which refers back to the learner, nor the lock, which is held.
        own = {*settings, "_state", "_lock"}
        kept = {name: value for name, value in vars(self._learner).items() if name not in own}
        # Attributes may refer back to the learner; the copies must too.
        return copy.deepcopy(kept, {id(self._learner): self._learner, id(self): self})

    def restore(self, bookmark: dict[str, Any]) -> None:
        """Restore the attributes of a bookmark."""
        vars(self._learner).update(bookmark)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
