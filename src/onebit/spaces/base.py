"""A space: where scores live. It turns features into scores and applies what a rule says each class gains."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from onebit.inputs import Floats, Integers, Rows
from onebit.rounds import Record, Rule


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

    @abstractmethod
    def play(
        self, rule: Rule, settings: Any, X: Rows, y: Integers, seed: int, first_round: int, record: Record
    ) -> None:
        """Play a whole stream, guess for guess as one round at a time would."""

    @abstractmethod
    def arrays(self) -> dict[str, Floats]:
        """Return copies of what was learned, by name."""


NO_SCORES = np.empty(0)
