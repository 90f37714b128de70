"""A learner that follows a rule in a space: most of them."""

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from onebit.inputs import Floats, Integers, Rows
from onebit.kernels import as_kernel
from onebit.learners.base import bad_row_error
from onebit.learners.space_learner import SpaceLearner
from onebit.rounds import Guess, Record, Rule
from onebit.spaces import LinearSpace, Space, SupportSet
from onebit.spaces.moves import Moves, moves


class RuleLearner(SpaceLearner):
    """Plays one rule: in the linear space if it has no kernel, otherwise in the kernel's.

    A subclass gives the rule and its settings; everything else is here.

    Attributes
    ----------
    weights_ : array of shape (K, n_features)
        What each class has learned; without a kernel only.
    support_, coefficients_ : arrays of shapes (n, n_features) and (n, K)
        The stored examples and how much of each every class has gained; with a kernel only.
    """

    kernel: Any = None
    _space: Space
    _settings: Any

    @property
    @abstractmethod
    def rule(self) -> Rule:
        """The rule, chosen by the settings."""

    def _rule_settings(self) -> tuple[float, ...]:
        """Check the settings and return the numbers the rule needs."""
        return ()

    def _start(self) -> None:
        self._settings, kernel = self._rule_settings(), as_kernel(self.kernel)
        self.__dict__.pop("_moves", None)
        n_features, n_classes = self.n_features_in_, len(self.classes_)
        if kernel is None:
            self._space = LinearSpace(n_features, n_classes)
        else:
            self._space = SupportSet(kernel, n_features, n_classes)

    def _decide(self, row: Rows, round: int) -> tuple[int, bool, float, Floats, Rows]:
        decision = self._space.decide(self._moves, row, self._key, round, self._settings)
        if decision[0] < 0:
            raise bad_row_error(row)
        return decision

    def _hear(self, guess: Guess, correct: bool, truth: int) -> bool:
        # When feedback is late the learner has moved on: the rule sees the scores of then and of now.
        current = guess.scores if guess.version == self.n_updates_ else self._space.scores(guess.row)
        return self._space.hear(self._moves, guess, current, correct, truth, self._settings)

    def _probabilities(self, row: Rows) -> Floats:
        scores = self._space.scores(row)
        if not np.isfinite(scores).all():
            raise bad_row_error(row)
        out = np.empty(len(scores))
        self._moves.probabilities(scores, self._settings, out)
        return out

    @cached_property
    def _moves(self) -> Moves:
        return moves(self.rule)

    def __getstate__(self) -> dict[str, Any]:
        # Compiled functions are made again where a saved learner is loaded.
        return {name: value for name, value in self.__dict__.items() if name != "_moves"}

    def _play(self, X: Rows, y: Integers, first_round: int, record: Record) -> None:
        self._space.play(self.rule, self._settings, X, y, self._key, first_round, record)
