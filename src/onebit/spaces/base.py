"""A space: where scores live. It turns features into scores and applies what a rule says each class gains."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from onebit.inputs import Floats, Integers, Rows
from onebit.rounds import Guess, Record, Rule
from onebit.spaces.moves import Moves


class Space(ABC):
    """The memory of a learner that follows a rule, and the arithmetic on it."""

    n_features: int
    n_classes: int

    def prepare(self, rows: Rows) -> Rows:
        """Return rows as the space takes them; raises ValueError for a row it cannot take."""
        return rows

    @abstractmethod
    def scores(self, row: Rows) -> Floats:
        """Return one prepared row's score for every class."""

    @abstractmethod
    def score_rows(self, rows: Rows) -> Floats:
        """Return every prepared row's score for every class, fast; rounding may differ from `scores`."""

    @abstractmethod
    def add(self, row: Rows, gains: Floats) -> None:
        """Let every class i gain gains[i] times the prepared row."""

    def decide(
        self, moves: Moves, row: Rows, seed: int, round: int, settings: Any
    ) -> tuple[int, bool, float, Floats, Rows]:
        """Return a guess: label (−1 if a score is not finite), explored, probability, scores, prepared row.

        Raises ValueError for a row that the space cannot take.
        """
        prepared = self.prepare(row)
        scores = self.scores(prepared)
        return (*moves.decide(scores, seed, round, settings), scores, prepared)

    def hear(self, moves: Moves, guess: Guess, current: Floats, correct: bool, truth: int, settings: Any) -> bool:
        """Learn from the answer to one guess and say whether anything changed."""
        gains = np.empty(self.n_classes)
        changed = moves.learn(guess.scores, current, guess.index, guess.explored, correct, truth, settings, gains)
        if changed:
            self.add(guess.row, gains)
        return changed

    @abstractmethod
    def play(
        self, rule: Rule, settings: Any, X: Rows, y: Integers, seed: int, first_round: int, record: Record
    ) -> None:
        """Play a whole stream, guess for guess as one round at a time would."""

    @abstractmethod
    def bookmark(self) -> Self:
        """Return a space that stays as this one is now, whatever is added to this one later."""

    @abstractmethod
    def arrays(self) -> dict[str, Floats]:
        """Return copies of what was learned, by name."""
