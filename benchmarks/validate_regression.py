"""Learners on regressions beside Vowpal Wabbit's of the same name, on the same rounds.

Both see the same rows (columns standardised, a constant added) in the same orders. Vowpal Wabbit regresses by
stochastic gradient steps that are adaptive, normalised and invariant, ours by ridge regression: the ways to explore are
the same, the regressions are not. So each of its settings is played with three learning rates, and the best is shown
beside its default. "costs" are 0 for right and 1 for wrong, and every label starts at 0: hopeful. "rewards" are −1 and
0 as costs: a label starts as if it had always been wrong, as our ε-greedy and explore-first do.
"""

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

import onebit
from onebit.experiments.vowpal_wabbit import LEARNING_RATES, play_rounds, require, write_rounds
from onebit.inputs import Floats, Integers
from onebit.learners import Learner
from onebit.reporting.text import grouped

DEFAULT_RATE = "0.5"
REWARDS = "--loss0 -1 --loss1 0"


class Pair(NamedTuple):
    """One of ours and one of theirs."""

    ours: Learner
    theirs: str


PAIRS = (
    Pair(onebit.EpsilonGreedy(0.05), f"--epsilon 0.05 {REWARDS}"),
    Pair(onebit.EpsilonGreedy(0.05, "logistic"), f"--epsilon 0.05 {REWARDS}"),
    Pair(onebit.EpsilonGreedy(0.05), "--epsilon 0.05"),
    Pair(onebit.ExploreFirst(300), f"--first 300 {REWARDS}"),
    Pair(onebit.ExploreFirst(300), "--first 300"),
    Pair(onebit.SquareCB(10.0), "--squarecb --gamma_scale 10"),
    Pair(onebit.SquareCB(100.0), "--squarecb --gamma_scale 100"),
    Pair(onebit.SquareCB(1000.0), "--squarecb --gamma_scale 1000"),
    Pair(onebit.RegCB(0.001), "--regcb --regcbopt --mellowness 0.001"),
    Pair(onebit.RegCB(0.01), "--regcb --regcbopt --mellowness 0.01"),
    Pair(onebit.RegCB(0.1), "--regcb --regcbopt --mellowness 0.1"),
    Pair(onebit.RegCB(0.01, "elimination"), "--regcb --mellowness 0.01"),
    Pair(onebit.RegCB(0.001, "elimination"), "--regcb --mellowness 0.001"),
)


def prepared(X: Floats) -> Floats:
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    rows: Floats = np.column_stack([scaled, np.ones(len(X))])
    return rows


def sets(folder: Path | None, most: int) -> dict[str, tuple[Floats, Integers]]:
    found = {"digits": load_digits(return_X_y=True)}
    if folder is not None:
        data = np.load(folder / "pendigits.npz")
        found["pendigits"] = data["X"].astype(float), data["y"].astype(np.int64)
    return {name: (prepared(X)[:most], y[:most]) for name, (X, y) in found.items()}


def rate_of_ours(learner: Learner, X: Floats, y: Integers, orders: list[Integers]) -> Floats:
    return np.array([onebit.play(learner, X[o], y[o], seed=s).mistakes / len(y) for s, o in enumerate(orders)])


def rates_of_theirs(options: str, X: Floats, y: Integers, orders: list[Integers]) -> dict[str, Floats]:
    n_classes = len(np.unique(y))
    rates: dict[str, list[float]] = {rate: [] for rate in LEARNING_RATES}
    with tempfile.TemporaryDirectory() as folder:
        for seed, order in enumerate(orders):
            rounds = Path(folder) / "rounds.vw"
            write_rounds(rounds, X[order], y[order])
            for rate, found in rates.items():
                guesses, _ = play_rounds(f"{options} -l {rate} --random_seed {seed}", n_classes, rounds, y[order])
                found.append(float(np.mean(guesses != y[order])))
    return {rate: np.array(found) for rate, found in rates.items()}


def shown(rates: Floats) -> str:
    return f"{100 * rates.mean():.1f} ± {100 * rates.std(ddof=1):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with pendigits.npz, to play that too")
    parser.add_argument("--orders", type=int, default=5, help="in how many random orders each set is played")
    parser.add_argument("--most", type=int, default=5000, help="how many rows of a set are played at most")
    arguments = parser.parse_args()
    console = Console(width=150)
    console.print(f"Vowpal Wabbit {require()}; mistakes in % of the rounds, mean ± standard deviation over the orders")
    for name, (X, y) in sets(arguments.data, arguments.most).items():
        orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(arguments.orders)]
        table = Table(title=f"{name}: {grouped(len(y))} rounds, {X.shape[1]} features, {len(np.unique(y))} classes")
        for title in ("onebit", "%", "Vowpal Wabbit", "default rate, %", "best rate, %"):
            table.add_column(title)
        for pair in PAIRS:
            theirs = rates_of_theirs(pair.theirs, X, y, orders)
            best = min(theirs, key=lambda rate: float(theirs[rate].mean()))
            ours = shown(rate_of_ours(pair.ours, X, y, orders))
            table.add_row(
                repr(pair.ours), ours, pair.theirs, shown(theirs[DEFAULT_RATE]), f"{shown(theirs[best])} (-l {best})"
            )
        console.print(table)


if __name__ == "__main__":
    main()
