"""The entries of the paper's experiments, and our own learner: a comparison on its two streams."""

from onebit.experiments.comparison import Comparison
from onebit.experiments.entries import Entry, enter
from onebit.kernels import Rational
from onebit.learners import BanditPerceptron, Banditron, BanditSVM, MulticlassPerceptron
from onebit.streams.sources import Source

DATASETS = {"strong": "strongly separable", "weak": "weakly separable"}
STREAMS = {"strong": "paper_strong", "weak": "paper_weak"}
RATES = (0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
"""Banditron's exploration rates in the paper."""
PAPER_ROUNDS, PAPER_RUNS = 5_000_000, 20  # Section 6
QUICK_ROUNDS, QUICK_RUNS = 100_000, 5  # seconds, and the order of the curves is already that of the full game


def contestants() -> list[Entry]:
    """Return all entries, in the order of the tables."""
    return [
        enter(BanditPerceptron(), "Algorithm 1", "algorithm-1"),
        enter(BanditPerceptron(update="authors"), "Algorithm 1, authors' update", "algorithm-1-authors"),
        enter(BanditPerceptron(Rational()), "Algorithm 2", "algorithm-2"),
        enter(BanditPerceptron(Rational(), update="authors"), "Algorithm 2, authors' update", "algorithm-2-authors"),
        *(enter(Banditron(rate), f"Banditron, ε = {rate:g}", f"banditron-{rate:g}") for rate in RATES),
        # Ours, on rows as the paper's algorithms get them.
        enter(BanditSVM(scale=None), "BanditSVM (ours)", "bandit-svm"),
        enter(MulticlassPerceptron(), "Multiclass Perceptron", "multiclass-perceptron"),
    ]


def paper_comparison(rounds: int = PAPER_ROUNDS, runs: int = PAPER_RUNS, seed: int = 0) -> Comparison:
    """Return what is played; the paper's size by default.

    Parameters
    ----------
    rounds, runs : int
        How much.
    seed : int
        Run r plays data and random numbers of seed + r.
    """
    return Comparison(
        tuple(Source(dataset, stream=stream) for dataset, stream in STREAMS.items()),
        tuple(contestants()),
        rounds=rounds,
        runs=runs,
        seed=seed,
        # The paper's features have length at most 1 by construction, as the rational kernel needs.
        preprocessing="none",
        # Figures 6 to 8 show what was learned.
        keep_learned=True,
    )
