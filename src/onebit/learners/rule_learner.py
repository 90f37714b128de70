"""A learner that follows a rule in a space: most of them."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from onebit.compiled import compiled
from onebit.draws import Draw
from onebit.inputs import Floats, Integers, Rows
from onebit.kernels import as_kernel
from onebit.learners.base import Learner, bad_row_error
from onebit.rounds import Guess, Record, Rule
from onebit.spaces import LinearSpace, Space, SupportSet


class RuleLearner(Learner):
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
        settings, kernel, _rule = self._rule_settings(), as_kernel(self.kernel), self.rule
        self._settings = settings
        n_features, n_classes = self.n_features_in_, len(self.classes_)
        if kernel is None:
            self._space = LinearSpace(n_features, n_classes)
        else:
            self._space = SupportSet(kernel, n_features, n_classes)

    def _prepare(self, rows: Rows) -> Rows:
        return self._space.prepare(rows)

    def _decide(self, row: Rows, draw: Draw) -> tuple[int, bool, float, Floats]:
        scores = self._space.scores(row)
        index, explored, probability = _decision(self.rule)(scores, draw, self._settings)
        if index < 0:
            raise bad_row_error(row)
        return index, explored, probability, scores

    def _hear(self, guess: Guess, correct: bool, truth: int) -> bool:
        # When feedback is late the learner has moved on: the rule sees the scores of then and of now.
        current = guess.scores if guess.version == self.n_updates_ else self._space.scores(guess.row)
        gains = np.empty(len(current))
        changed = _learning(self.rule)(
            guess.scores, current, guess.index, guess.explored, correct, truth, self._settings, gains
        )
        if changed:
            self._space.add(guess.row, gains)
        return changed

    def _probabilities(self, row: Rows) -> Floats:
        scores = self._space.scores(row)
        if not np.isfinite(scores).all():
            raise bad_row_error(row)
        out = np.empty(len(scores))
        _chances(self.rule)(scores, self._settings, out)
        return out

    def _play(self, X: Rows, y: Integers, first_round: int, record: Record) -> None:
        self._space.play(self.rule, self._settings, X, y, self._key, first_round, record)

    def _decision(self, rows: Rows) -> Floats:
        return self._space.score_rows(rows)

    def learned(self) -> dict[str, Floats]:
        """Return copies of the weights, or of the support set and its coefficients."""
        self._check_started("learned")
        return self._space.arrays()

    @property
    def weights_(self) -> Floats:
        """One weight vector per class."""
        return self._learned_array("weights", "kernel=None")

    @property
    def support_(self) -> Floats:
        """The stored examples, oldest first, repeats kept."""
        return self._learned_array("support", "a kernel")

    @property
    def coefficients_(self) -> Floats:
        """How much of each stored example every class has gained."""
        return self._learned_array("coefficients", "a kernel")

    def _learned_array(self, name: str, with_what: str) -> Floats:
        if not self._started or name not in (arrays := self._space.arrays()):
            raise AttributeError(f"{name}_ is there once {type(self).__name__} has played with {with_what}")
        return arrays[name]


@cache
def _decision(rule: Rule) -> Callable[..., tuple[int, bool, float]]:
    guess, probabilities = rule.guess, rule.probabilities

    @compiled
    def decide(scores: Floats, draw: Draw, settings: Any) -> tuple[int, bool, float]:
        for i in range(scores.shape[0]):
            if not np.isfinite(scores[i]):
                return -1, False, 0.0
        label, explored = guess(scores, draw, settings)
        chances = np.empty(scores.shape[0])
        probabilities(scores, settings, chances)
        return label, explored, chances[label]

    return decide


@cache
def _learning(rule: Rule) -> Callable[..., bool]:
    learn = rule.learn

    @compiled
    def hear(
        scores: Floats,
        current: Floats,
        label: int,
        explored: bool,
        correct: bool,
        truth: int,
        settings: Any,
        gains: Floats,
    ) -> bool:
        return learn(scores, current, label, explored, correct, truth, settings, gains)

    return hear


@cache
def _chances(rule: Rule) -> Callable[..., None]:
    probabilities = rule.probabilities

    @compiled
    def write(scores: Floats, settings: Any, out: Floats) -> None:
        probabilities(scores, settings, out)

    return write
