"""Who plays in the paper's experiments, and what their games left behind."""

from dataclasses import dataclass

import numpy as np

from onebit.inputs import Floats, Integers
from onebit.kernels import Rational
from onebit.learners import BanditPerceptron, Banditron, Learner, MulticlassPerceptron

DATASETS = {"strong": "strongly separable", "weak": "weakly separable"}
RATES = (0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
"""Banditron's exploration rates in the paper."""
PAPER_ROUNDS, PAPER_RUNS = 5_000_000, 20


@dataclass(frozen=True)
class Contestant:
    """A learner of the experiments."""

    key: str
    """Its name in the tables, such as "banditron-0.02"."""
    title: str
    """Its name in figures, such as "Banditron, ε = 0.02"."""
    learner: Learner
    """With its settings; never played itself, only cloned."""
    published: str | None
    """The paper's name of its curve, if the paper has one."""


def contestants() -> list[Contestant]:
    """Return everyone who plays, in the order of the tables."""
    listed = [
        Contestant("algorithm-1", "Algorithm 1", BanditPerceptron(), "perceptron-linear"),
        Contestant(
            "algorithm-1-authors",
            "Algorithm 1, authors' update",
            BanditPerceptron(update="authors"),
            "perceptron-linear",
        ),
        Contestant("algorithm-2", "Algorithm 2", BanditPerceptron(Rational()), "perceptron-rational"),
        Contestant(
            "algorithm-2-authors",
            "Algorithm 2, authors' update",
            BanditPerceptron(Rational(), update="authors"),
            "perceptron-rational",
        ),
    ]
    listed += [
        Contestant(f"banditron-{rate:g}", f"Banditron, ε = {rate:g}", Banditron(rate), f"banditron-{rate:g}")
        for rate in RATES
    ]
    listed.append(
        Contestant("multiclass-perceptron", "Multiclass Perceptron (told the label)", MulticlassPerceptron(), None)
    )
    return listed


@dataclass(frozen=True)
class Outcome:
    """All runs of one contestant on one data set."""

    dataset: str
    """ "strong" or "weak"."""
    contestant: Contestant
    rounds: Integers
    """The checkpoints, increasing; the last is the number of rounds."""
    mistakes: Integers
    """Cumulative mistakes, one row per run, one column per checkpoint."""
    learned: dict[str, Floats]
    """What the first run had learned at the end: "weights" (K, d), or "support" (n, d) and "coefficients" (n, K)."""

    @property
    def mean(self) -> Floats:
        """Mean curve over the runs."""
        curve: Floats = self.mistakes.mean(axis=0)
        return curve

    @property
    def standard_error(self) -> Floats:
        """Standard error of the mean curve; zero if there was one run."""
        n_runs = len(self.mistakes)
        if n_runs == 1:
            return np.zeros(self.mistakes.shape[1])
        spread: Floats = self.mistakes.std(axis=0, ddof=1) / np.sqrt(n_runs)
        return spread
