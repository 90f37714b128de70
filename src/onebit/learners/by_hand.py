"""`ByHand`: the state of a learner defined by four methods; its content is all attributes of the learner.

- ``_start()`` checks the settings and forgets everything; `n_features_in_` and `classes_` are known. Copy the settings
  that rounds need: a run uses those that were set when it began.
- ``_choose(row, round)`` returns a label's position, whether it was explored, and its propensity; ``_draw(round)`` is
  the random number. It raises ValueError for a row it cannot take.
- ``_update(guess, answer)`` learns from one `Answer` and returns whether anything changed.
- ``_probabilities(row)`` returns the propensity of each label, without side effects.

Two more are optional: ``_add_class()`` makes room for one more class, which `classes_` has already, and
``_learn_from_log(row, answer, propensity)`` learns from a round that another system played, like `_update`.
"""

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.engine.algorithm import Algorithm
from onebit.engine.randomness import Draw, uniform
from onebit.engine.state import State
from onebit.game import Answer, Guess
from onebit.inputs import Floats, Integers, Rows, check_rows, take

if TYPE_CHECKING:
    from onebit.learners.base import Learner

_ROUNDING = 1e-9  # sums of propensities
_WITHOUT = {
    "_add_class": "cannot take a new class; give it _add_class, or start a new one",
    "_learn_from_log": "cannot learn from rounds that others played; give it _learn_from_log",
}


class ByHand(State):
    """The state of a learner with `_start`, `_choose`, `_update` and `_probabilities` instead of an `Algorithm`."""

    plays_by_hand = True

    _learner: Any

    def __init__(self, learner: "Learner") -> None:
        super().__init__((), (), len(learner.classes_))
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
        raise TypeError("a learner that is played by hand has no Algorithm")

    def guess(self, row: Rows, seed: int, round: int) -> tuple[int, bool, float, Floats, Rows]:
        chosen = self._own("_choose")(check_rows(row, "features"), round)
        if not isinstance(chosen, tuple) or len(chosen) != 3:
            raise ValueError(
                f"_choose must return a label's position, whether it was explored, its propensity; got {chosen!r}"
            )
        index, explored, propensity = chosen
        if not isinstance(index, (int, np.integer)) or not 0 <= index < self.n_classes:
            raise ValueError(f"_choose must return a position among the {self.n_classes} classes; got {index!r}")
        if not 0.0 < propensity <= 1.0 + _ROUNDING:
            raise ValueError(f"_choose must return the propensity of its guess, in (0, 1]; got {propensity!r}")
        return int(index), bool(explored), float(propensity), np.empty(0), row

    def probabilities(self, row: Rows) -> Floats:
        propensities: Floats = self._own("_probabilities")(check_rows(row, "features"))
        if np.shape(propensities) != (self.n_classes,) or not np.isfinite(propensities).all():
            raise ValueError(f"_probabilities must return the propensity of each class; got {propensities!r:.80}")
        return propensities

    def guess_among(self, row: Rows, seed: int, round: int, among: Integers) -> tuple[int, bool, float, Floats, Rows]:
        propensities = self.probabilities_among(row, among)
        place = np.searchsorted(np.cumsum(propensities[among]), uniform(Draw(seed, round)), side="right")
        index = int(among[min(int(place), len(among) - 1)])
        return index, False, float(propensities[index]), np.empty(0), row

    def probabilities_among(self, row: Rows, among: Integers) -> Floats:
        asked = self.probabilities(row)
        allowed, propensities = asked[among], np.zeros(len(asked))
        total = allowed.sum()
        propensities[among] = allowed / total if total > 0.0 else 1.0 / len(among)
        return propensities

    def add_class(self) -> None:
        self._own("_add_class")()
        self.n_classes += 1

    def learns_from_logs(self) -> bool:
        return hasattr(self._learner, "_learn_from_log")

    def learn_from_log(self, row: Rows, label: int, correct: bool, truth: int, propensity: float | None) -> bool:
        answer = Answer(label, False, correct, truth, math.nan if propensity is None else propensity)
        return bool(self._own("_learn_from_log")(check_rows(row, "features"), answer, propensity))

    def update(self, guess: Guess, correct: bool, truth: int) -> bool:
        answer = Answer(guess.index, guess.explored, correct, truth, guess.propensity)
        return bool(self._own("_update")(guess, answer))

    def score_rows(self, rows: Rows) -> Floats:
        return np.array([self.probabilities(take(rows, t, t + 1)) for t in range(rows.shape[0])])

    def takes(self, row: Rows, n_features: int) -> bool:
        return bool(row.shape[1] == n_features)

    def takes_scores(self, scores: Floats, label: int) -> bool:
        return len(scores) == 0

    def learned(self) -> dict[str, Floats]:
        kept = {name: value for name, value in vars(self._learner).items() if isinstance(value, np.ndarray)}
        return {name: value.copy() for name, value in kept.items() if name not in ("classes_", "feature_names_in_")}

    def bookmark(self) -> dict[str, Any]:
        settings = self._learner.get_params(deep=False)
        # Not this object, which refers back to the learner, nor the lock, which is held.
        own = {*settings, "_state", "_lock"}
        kept = {name: value for name, value in vars(self._learner).items() if name not in own}
        # Attributes may refer back to the learner; the copies must too.
        return copy.deepcopy(kept, {id(self._learner): self._learner, id(self): self})

    def restore(self, bookmark: dict[str, Any]) -> None:
        vars(self._learner).update(bookmark)
