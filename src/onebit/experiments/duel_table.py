"""The table of a duel: mistakes beside those that cannot be avoided and those that are promised."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from onebit.reporting.tables import number, write_csv
from onebit.streams.adversaries import Challenge

# The game's size is repeated in every line, so that each can be read alone.
_COLUMNS = (
    *("adversary", "binds", "n_classes", "n_features", "radius", "margin", "rounds"),
    *("learner", "runs", "mean", "standard_error", "lower_bound", "sharp_lower_bound", "upper_bound"),
)


@dataclass(frozen=True)
class DuelRow:
    """One learner against one adversary, over all runs."""

    challenge: Challenge
    """The adversary's game, with the theorem that it comes from."""
    learner: str
    """Its settings; "γ" stands for a radius that equals the margin."""
    runs: int
    mean: float
    """Mistakes."""
    standard_error: float
    is_bound: bool
    """Whether the theorem covers such learners."""
    upper_bound: float | None
    """Expected mistakes that the learner's own theorem promises for this margin; None if it promises nothing."""
    full_information: bool = False

    @property
    def lower_bound(self) -> float | None:
        """Expected mistakes that the theorem forces on this learner; None if it does not cover it."""
        return self.challenge.stated.value if self.is_bound else None

    @property
    def sharp_lower_bound(self) -> float | None:
        """The same with the construction's best constant."""
        return self.challenge.forced.value if self.is_bound else None


def short_name(learner: str) -> str:
    """Return a learner's short name: without the names of settings whose values are clear by themselves.

    >>> short_name("BanditPerceptron(kernel=Rational(normalize=True), ties='random')")
    "BanditPerceptron(Rational, ties='random')"
    >>> short_name("Banditron(exploration=0.2)"), short_name("BanditSVM(kernel=None)")
    ('Banditron(0.2)', 'BanditSVM(kernel=None)')
    """
    short = re.sub(r",? ?normalize=(True|False)", "", learner)
    short = re.sub(r"kernel=(?!None)|(degree|width)=|(?<=Banditron\()exploration=", "", short)
    return short.replace("()", "")


def write_duel(rows: Iterable[DuelRow], path: Path) -> None:
    """Write a table as CSV, one line per row; cells that no theorem covers are empty."""
    write_csv(path, _COLUMNS, (_line(row) for row in rows))


def _line(row: DuelRow) -> list[object]:
    challenge = row.challenge
    size = [
        challenge.n_classes,
        challenge.n_features,
        number(challenge.radius),
        number(challenge.margin),
        challenge.rounds,
    ]
    numbers = (row.mean, row.standard_error, row.lower_bound, row.sharp_lower_bound, row.upper_bound)
    return [challenge.name, challenge.stated.binds, *size, row.learner, row.runs, *map(number, numbers)]
