"""Banditron, SOBA, PNewtron and Confidit on SynSep and SynNonSep: error rates to hold beside those of their papers.

``python benchmarks/validate_synthetic.py`` tries every exploration on the first rounds, then plays the best of each to
the end. Second-order learners are diagonal, as in the experiments of the SOBA paper: nine classes times 400 features
would need a matrix of 3 600 × 3 600. The perceptron, which is told the label, is the floor.
"""

import argparse
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import onebit
from onebit.compiled import compiled
from onebit.draws import stream_generator
from onebit.inputs import Floats, Integers
from onebit.reporting.tables import grouped

N_CLASSES, N_FEATURES, N_CODE_BITS = 9, 400, 120
Stream = tuple[Floats, Integers]
ROWS_AT_ONCE = 50_000


class Player(NamedTuple):
    """Who plays."""

    name: str
    settings: tuple[float, ...]
    """Explorations; for Confidit values of its η."""
    play: Callable[[float, Stream, int], float]
    """(setting, stream, seed) → the share of mistakes."""


EXPLORATIONS = tuple(2.0**power for power in (-13, -11, -9, -7, -5, -3))


def syn_sep(rounds: int, seed: int) -> Stream:
    """Return SynSep: a class's code without five of its bits, and 20 of 280 bits that mean nothing."""
    generator = stream_generator(seed)
    codes = [
        generator.choice(N_CODE_BITS, generator.integers(20, 41), replace=False).tolist() for _ in range(N_CLASSES)
    ]
    y = generator.integers(N_CLASSES, size=rounds)
    X = np.zeros((rounds, N_FEATURES))
    for label, code in enumerate(codes):
        rows = np.flatnonzero(y == label)
        kept = np.argsort(generator.random((len(rows), len(code))), axis=1)[:, 5:]
        X[rows[:, None], np.array(code)[kept]] = 1.0
    for start in range(0, rounds, ROWS_AT_ONCE):
        some = X[start : start + ROWS_AT_ONCE, N_CODE_BITS:]
        some[np.arange(len(some))[:, None], np.argsort(generator.random(some.shape), axis=1)[:, :20]] = 1.0
    return X, y


def syn_non_sep(rounds: int, seed: int) -> Stream:
    """Return SynNonSep: SynSep with 5 % of the labels replaced by another."""
    X, y = syn_sep(rounds, seed)
    generator = stream_generator(seed + 1)
    is_wrong = generator.random(rounds) < 0.05
    return X, np.where(is_wrong, (y + generator.integers(1, N_CLASSES, rounds)) % N_CLASSES, y)


@compiled
def confidit_mistakes(X: Floats, y: Integers, n_classes: int, start: float, eta: float) -> int:
    """Return the mistakes of the diagonal Confidit: it plays the highest ⟨wᵢ, x⟩ + √(η·xᵀAᵢ⁻¹x)."""
    n, mistakes = X.shape[1], 0
    weights, diagonal = np.zeros((n_classes, n)), np.full((n_classes, n), start)
    for t in range(len(y)):
        best, top = 0, -math.inf
        for i in range(n_classes):
            score, width = 0.0, 0.0
            for j in range(n):
                if X[t, j] != 0.0:
                    score += weights[i, j] * X[t, j]
                    width += X[t, j] * X[t, j] / diagonal[i, j]
            if score + math.sqrt(eta * width) > top:
                best, top = i, score + math.sqrt(eta * width)
        mistakes += best != y[t]
        sign = 1.0 if best == y[t] else -1.0
        for j in range(n):
            old = diagonal[best, j]
            diagonal[best, j] += X[t, j] * X[t, j]
            weights[best, j] = (old * weights[best, j] + sign * X[t, j]) / diagonal[best, j]
    return mistakes


def share(learner: onebit.Learner, stream: Stream, seed: int) -> float:
    """Return the share of rounds in which a learner errs."""
    trace = onebit.play(learner, *stream, seed=seed)
    return trace.mistakes / trace.rounds


PLAYERS = [
    Player(
        "Perceptron, told the label", (0.0,), lambda _, stream, seed: share(onebit.MulticlassPerceptron(), stream, seed)
    ),
    Player("Banditron", EXPLORATIONS, lambda rate, stream, seed: share(onebit.Banditron(rate), stream, seed)),
    Player(
        "SOBA, diagonal",
        EXPLORATIONS,
        lambda rate, stream, seed: share(onebit.SOBA(rate, diagonal=True), stream, seed),
    ),
    Player(
        "PNewtron, diagonal",
        EXPLORATIONS,
        lambda rate, stream, seed: share(onebit.PNewtron(rate, diagonal=True), stream, seed),
    ),
    Player(
        "Confidit, diagonal",
        tuple(2.0**power for power in (-4, -2, 0, 2, 4, 6)),
        lambda eta, stream, _: confidit_mistakes(*stream, N_CLASSES, 4.0, eta) / len(stream[1]),
    ),
]


def main() -> None:
    """Play, and print one table for each stream."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--tried", type=int, default=100_000, help="rounds on which settings are compared")
    parser.add_argument("--players", nargs="+", default=[""], help="beginnings of their names; by default all")
    parser.add_argument("--seed", type=int, default=1)
    options, console = parser.parse_args(), Console(width=140)
    for title, make in (("SynSep", syn_sep), ("SynNonSep", syn_non_sep)):
        stream = make(options.rounds, options.seed)
        beginning = stream[0][: options.tried], stream[1][: options.tried]
        table = Table("", "with each setting", "best", "in all", title=f"{title}: % of mistakes")
        for name, settings, play in PLAYERS:
            if not name.startswith(tuple(options.players)):
                continue
            errors = [play(setting, beginning, options.seed) for setting in settings]
            best = settings[int(np.argmin(errors))]
            told = ", ".join(
                f"{setting:.3g}: {100 * error:.2f}" for setting, error in zip(settings, errors, strict=True)
            )
            table.add_row(name, told, f"{best:.3g}", f"{100 * play(best, stream, options.seed):.2f}")
            console.print(f"{title}, {name}: done")
        console.print(table)
        console.print(f"with each setting: {grouped(options.tried)} rounds; in all: {grouped(options.rounds)}")


if __name__ == "__main__":
    main()
