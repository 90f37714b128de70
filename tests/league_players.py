"""Players of a league that cost no time."""

from pathlib import Path
from typing import Any

import numpy as np

from onebit.experiments import Player, PlayerTrace, Spec
from onebit.inputs import Integers
from onebit.learners.run import default_checkpoints

COIN = f"{__name__}:Coin"


class Coin(Player):
    """Errs with a rate of its own."""

    def __init__(self, rate: float = 0.5, fails_with: int = 0, long: bool = False) -> None:
        self.rate, self.fails_with, self.long = rate, fails_with, long

    @property
    def spec(self) -> Spec:
        return Spec(COIN, {"rate": self.rate, "fails_with": self.fails_with, "long": self.long})

    def effort(self, *, rounds: int, n_features: int, n_classes: int) -> float:
        return 1e15 * self.long * (n_features == 4)

    def play(self, X: Any, y: Integers, n_classes: int, seed: int, scratch: Path) -> PlayerTrace:
        if n_classes == self.fails_with and seed == 1:
            raise ValueError("more classes than it can count")
        wrong = np.random.default_rng([seed, int(100 * self.rate)]).random(len(y)) < self.rate
        mistakes = np.cumsum(wrong, dtype=np.int64)[default_checkpoints(len(y)) - 1]
        return PlayerTrace(mistakes, 0, int(len(y) * self.rate / 10))


class Matrix(Coin):
    """Has a diagonal form, and is no learner of onebit."""

    def __init__(self, diagonal: bool = False) -> None:
        super().__init__()
        self.diagonal = diagonal

    @property
    def spec(self) -> Spec:
        return Spec("league_players:Matrix", {"diagonal": self.diagonal})
